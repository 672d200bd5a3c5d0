"""Every kind of change asks for exactly the rows and stages that it can reach, and taking it back asks for nothing."""

from collections import Counter
from collections.abc import Callable

import pytest
from checkouts import BOARDS, HANDOVER, PUSH, ROWS, SMALL_ROWS, Checkout
from rowproof.recipes import all_statuses

HANDOVER_PY = "workflow/rowproof/chamber/handover_task.py"
PUSH_PY = "workflow/rowproof/chamber/push.py"
STATISTICS_PY = "workflow/rowproof/evidence/statistics.py"
BUNDLE_PY = "workflow/rowproof/evidence/bundle.py"
SEEDING_PY = "workflow/rowproof/seeding.py"
PARTNERS = "config/partners/handover-place-partners-v1.yaml"
PUSH_PLAN = "config/plans/push-v1.yaml"
HANDOVER_PLAN = "config/plans/handover-v1.yaml"
HANDOVER_BOARD = "config/boards/handover-v1.yaml"

WHOLE = Counter(specs=1, simulate=5, summarise=1, assemble=1, row=1)
THREE_SEEDS = Counter(specs=1, simulate=3, summarise=1, assemble=1, row=1)
# Records and summaries are taken over from the bundles, even in a fresh clone.
FROM_SUMMARY = Counter(summarise=1, assemble=1, row=1)
BUNDLE_ONLY = Counter(assemble=1, row=1)

Edit = Callable[[Checkout], None]


def replace(path: str, old: str, new: str) -> Edit:
    return lambda checkout: checkout.edit(path, old, new)


def append(path: str, text: str) -> Edit:
    def edit(checkout: Checkout) -> None:
        with (checkout.root / path).open("a") as stream:
            stream.write(text)

    return edit


def another_bias(member: str) -> Edit:
    """Give a presenter another mean grasp error (its name ends on the one it has)."""
    degrees = member.rpartition("_")[2]
    return replace(PARTNERS, f'grasp_pose_bias_deg: "{degrees}.0"', f'grasp_pose_bias_deg: "{degrees}.5"')


def other_layout(checkout: Checkout) -> None:
    """Another layout of a statement, other quotes, a comment and a docstring."""
    checkout.edit(SEEDING_PY, "return np.random.default_rng(", "return np.random.default_rng(  # here\n        ")
    checkout.edit(SEEDING_PY, '"""Named random', "'''Renamed random")
    checkout.edit(SEEDING_PY, 'nothing else."""', "nothing else.'''")


def new_module(checkout: Checkout) -> None:
    (checkout.root / "workflow/rowproof/chamber/unused.py").write_text("VALUE = 1\n")


# name -> edit, the rows that it reaches, the jobs of each
REACHING: dict[str, tuple[Edit, tuple[str, ...], Counter]] = {
    "partner_parameter": (another_bias("presenter_mismatch_30"), HANDOVER, WHOLE),
    "handover_code": (replace(HANDOVER_PY, "TARGET_JITTER_M = 5e-3", "TARGET_JITTER_M = 6e-3"), HANDOVER, WHOLE),
    "push_code": (replace(PUSH_PY, "OBSERVATION_SIZE = 10", "OBSERVATION_SIZE = 11"), PUSH, WHOLE),
    "seeding_code": (replace(SEEDING_PY, '"utf-8"', '"utf8"'), ROWS, WHOLE),
    "statistics_code": (replace(STATISTICS_PY, "BAD_SEED_GAP = 0.25", "BAD_SEED_GAP = 0.35"), ROWS, FROM_SUMMARY),
    "script_code": (append("workflow/scripts/summarise.py", "UNUSED = 1\n"), ROWS, FROM_SUMMARY),
    "bundle_code": (replace(BUNDLE_PY, 'f"snakemake {target}', 'f"snakemake  {target}'), ROWS, BUNDLE_ONLY),
    "plan_comment": (replace(HANDOVER_PLAN, "# Preregistration", "# Plan"), HANDOVER, WHOLE),
    "plan_resamples": (replace(HANDOVER_PLAN, "n_resamples: 2000", "n_resamples: 1000"), HANDOVER, WHOLE),
    "plan_cell": (replace(PUSH_PLAN, "success_reward: -1.2", "success_reward: -1.25"), PUSH, WHOLE),
    "plan_seeds": (replace(PUSH_PLAN, "seeds: [0, 1, 2, 3, 4]", "seeds: [0, 1, 2]"), PUSH, THREE_SEEDS),
    "numpy_pin": (replace("requirements.lock", "numpy==", "numpy==1"), ROWS, WHOLE),
}

HARMLESS: dict[str, Edit] = {
    "partner_not_evaluated": another_bias("presenter_mismatch_15"),
    "partner_role": replace(PARTNERS, "at the edge of", "near the edge of"),
    "observer_code": append("workflow/rowproof/jobs.py", "UNUSED = 1\n"),
    "comment": replace(HANDOVER_PY, "TARGET_JITTER_M = 5e-3", "# chosen\nTARGET_JITTER_M = 5e-3"),
    "layout_and_docstring": other_layout,
    "unrelated_module": new_module,
    "readme": append("README.md", "\nMore.\n"),
    "board_title": replace(HANDOVER_BOARD, "title: Handover and place", "title: Handover"),
    "board_description": replace(HANDOVER_BOARD, "A presenter hands over", "A presenter gives"),
    "row_label": replace(HANDOVER_BOARD, "label: oracle reference", "label: oracle"),
    "matplotlib_pin": replace("requirements.lock", "matplotlib==", "matplotlib==1"),
    "shards": replace("config/config.yaml", "shard_by: seed", "shard_by: partner"),
}

# Real dry runs of the fast part: every kind of stage that a change can enter at, on one and on both boards.
FAST = ("partner_parameter", "statistics_code", "bundle_code")


def not_current(checkout: Checkout) -> set[str]:
    statuses = all_statuses(checkout.root, checkout.root)
    return {status.name for status in statuses if status.state != "current"}


@pytest.mark.parametrize("name", [*REACHING, *HARMLESS])
def test_rows_that_an_edit_reaches(fresh, name):
    edit, rows, _ = REACHING.get(name) or (HARMLESS[name], (), None)
    edit(fresh)
    assert not_current(fresh) == set(rows)
    fresh.git("checkout", "-q", "--", ".")
    assert not_current(fresh) == set()


@pytest.mark.parametrize(
    "name", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in REACHING]
)
def test_jobs_that_an_edit_asks_for(fresh, name):
    edit, rows, jobs = REACHING[name]
    edit(fresh)
    plan = fresh.plan()
    boards = {row.partition("/")[0] for row in rows}
    assert plan == {**{row: jobs for row in rows}, **{board: Counter(leaderboard=1) for board in boards}}
    fresh.git("checkout", "-q", "--", ".")
    assert fresh.dry_run().nothing


def test_with_intermediate_files_the_bundle_alone_is_made_anew(worked):
    REACHING["bundle_code"][0](worked)
    assert worked.row_plan() == {row: BUNDLE_ONLY for row in SMALL_ROWS}


def test_harmless_edits_ask_for_no_row(fresh):
    for edit in HARMLESS.values():
        edit(fresh)
    # The rendered board shows title and labels, and matplotlib draws it.
    assert fresh.plan() == {board: Counter(leaderboard=1) for board in BOARDS}


@pytest.mark.slow
@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_edit_asks_for_no_row(fresh, name):
    HARMLESS[name](fresh)
    assert fresh.row_plan() == {}


HANDOVER_ROW, PUSH_ROW = SMALL_ROWS
IDENTITY = {"SHA256SUMS.txt", "bundle.json", "recipe.json", "provenance.json"}
EPISODES = {"episodes_seed0.jsonl", "episodes_seed1.jsonl"}

# name -> edit of the small project, its row, files of the bundle that must change
REAL: dict[str, tuple[Edit, str, set[str]]] = {
    "partner_parameter": (
        another_bias("presenter_mismatch_30"),
        HANDOVER_ROW,
        {*IDENTITY, *EPISODES, "identities.json"},
    ),
    "plan_resamples": (
        replace(HANDOVER_PLAN, "n_resamples: 100", "n_resamples: 99"),
        HANDOVER_ROW,
        {*IDENTITY, "plan.yaml"},
    ),
    "plan_cell": (
        replace(PUSH_PLAN, "success_reward: -1.2", "success_reward: -0.5"),
        PUSH_ROW,
        {*IDENTITY, *EPISODES, "plan.yaml"},
    ),
    # The file of the seed that is no longer evaluated goes away with the bundle that it belonged to.
    "plan_seeds": (
        replace(PUSH_PLAN, "  - 0\n  - 1\n", "  - 0\n"),
        PUSH_ROW,
        {*IDENTITY, "episodes_seed1.jsonl", "plan.yaml"},
    ),
    "bundle_code": (append(BUNDLE_PY, "UNUSED = 1\n"), PUSH_ROW, IDENTITY),
    "statistics_code": (replace(STATISTICS_PY, "BAD_SEED_GAP = 0.25", "BAD_SEED_GAP = 0.35"), PUSH_ROW, IDENTITY),
}


def changed_files(checkout: Checkout, row: str) -> set[str]:
    prefix = f"results/{row}/"
    return {path.removeprefix(prefix) for path in checkout.changed() if path.startswith(prefix)}


@pytest.mark.parametrize(
    "name",
    REAL,
)
@pytest.mark.slow
def test_git_shows_what_a_rebuild_changed_and_nothing_after_taking_it_back(fresh_small, name):
    edit, row, files = REAL[name]
    other = next(other for other in SMALL_ROWS if other != row)
    before = fresh_small.files()
    edit(fresh_small)
    fresh_small.commit()
    fresh_small.build(f"results/{row}").ok()
    assert changed_files(fresh_small, row) == files
    assert changed_files(fresh_small, other) == set()
    assert fresh_small.dry_run(f"results/{row}").nothing

    fresh_small.commit()
    fresh_small.git("checkout", "-q", "HEAD~2", "--", "config", "workflow")
    fresh_small.git("commit", "-q", "-m", "taken back")
    fresh_small.build(f"results/{row}").ok()
    assert fresh_small.files() == before
    fresh_small.git("add", "-A")
    original = fresh_small.git("diff", "--cached", "--name-only", "HEAD~3", "--").split()
    assert set(original) <= {f"results/{row}/provenance.json"}
