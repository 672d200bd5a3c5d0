"""Every kind of change asks for exactly the rows and stages that it can reach, and taking it back asks for nothing."""

import re
from collections import Counter
from collections.abc import Callable

import pytest
from checkouts import BOARDS, HANDOVER, PUSH, ROWS, SMALL_ROWS, Checkout
from rowproof.hashing import sha256_hex
from rowproof.recipes import all_statuses

HANDOVER_PY = "workflow/rowproof/chamber/handover_task.py"
PUSH_PY = "workflow/rowproof/chamber/push.py"
STATIC_PY = "workflow/rowproof/chamber/push_egos/static.py"
GRID_PY = "workflow/rowproof/chamber/grid.py"
STATISTICS_PY = "workflow/rowproof/evidence/statistics.py"
BUNDLE_PY = "workflow/rowproof/evidence/bundle.py"
SEEDING_PY = "workflow/rowproof/seeding.py"
PARTNERS = "config/partners/handover-place-partners-v1.yaml"
PUSH_PLAN = "config/plans/push-v1.yaml"
HANDOVER_PLAN = "config/plans/handover-v1.yaml"
HANDOVER_BOARD = "config/boards/handover-v1.yaml"
FACTS = "resources/published/handover-v1.yaml"

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


def moved(old: str, new: str) -> Edit:
    """Give a module another name, and its importers and whoever loads it by name with it."""

    def edit(checkout: Checkout) -> None:
        folder = checkout.root / "workflow"
        source = folder / f"{old.replace('.', '/')}.py"
        source.rename(folder / f"{new.replace('.', '/')}.py")
        changed = 0
        for path in sorted(folder.rglob("*.py")):
            text = path.read_text()
            told = re.sub(rf"\b{re.escape(old)}\b", new, text)
            package, _, name = old.rpartition(".")
            told = re.sub(
                rf"from {re.escape(package)} import {name}\b",
                f"from {package} import {new.rpartition('.')[2]} as {name}",
                told,
            )
            changed += text != told
            path.write_text(told)
        assert changed, f"nothing imports {old}: adapt the test"

    return edit


def another_version_of_the_partners(checkout: Checkout) -> None:
    """What a changed partner needs: a version of its own, pinned beside the first."""
    another_bias("presenter_mismatch_30")(checkout)
    checkout.edit(PARTNERS, "version: 1", "version: 2")
    checkout.lock("handover-v1")


ONE_MORE_ROW = replace(
    PUSH_PLAN, "  b-stat: {policy: static}\n", "  b-stat: {policy: static}\n  b-too: {policy: random}\n"
)

# name -> edit, the rows that it reaches, the jobs of each
REACHING: dict[str, tuple[Edit, tuple[str, ...], Counter]] = {
    "partner_version": (another_version_of_the_partners, HANDOVER, WHOLE),
    "handover_code": (replace(HANDOVER_PY, "TARGET_JITTER_M = 5e-3", "TARGET_JITTER_M = 6e-3"), HANDOVER, WHOLE),
    "push_code": (replace(PUSH_PY, "OBSERVATION_SIZE = 10", "OBSERVATION_SIZE = 11"), PUSH, WHOLE),
    # A row reaches its own policy and no other.
    "own_policy": (replace(STATIC_PY, "np.zeros(2", "np.ones(2"), ("push-v1/b-stat",), WHOLE),
    "seeding_code": (replace(SEEDING_PY, '"utf-8"', '"utf8"'), ROWS, WHOLE),
    "statistics_code": (replace(STATISTICS_PY, "BAD_SEED_GAP = 0.25", "BAD_SEED_GAP = 0.35"), ROWS, FROM_SUMMARY),
    "script_code": (append("workflow/scripts/summarise.py", "UNUSED = 1\n"), ROWS, FROM_SUMMARY),
    "bundle_code": (replace(BUNDLE_PY, 'f"snakemake {target}', 'f"snakemake  {target}'), ROWS, BUNDLE_ONLY),
    "numpy_pin": (replace("requirements.lock", "numpy==", "numpy==1"), ROWS, WHOLE),
}

# The same for plans, which may change for as long as no records are committed.
PLANS: dict[str, tuple[Edit, tuple[str, ...], Counter]] = {
    "plan_resamples": (replace(HANDOVER_PLAN, "n_resamples: 2000", "n_resamples: 1000"), HANDOVER, FROM_SUMMARY),
    "plan_cell": (replace(PUSH_PLAN, "success_reward: -1.2", "success_reward: -1.25"), PUSH, WHOLE),
    "plan_seeds": (replace(PUSH_PLAN, "seeds: [0, 1, 2, 3, 4]", "seeds: [0, 1, 2]"), PUSH, THREE_SEEDS),
}

# name -> edit, what the refusal says
REFUSED: dict[str, tuple[Edit, tuple[str, ...]]] = {
    "partner_parameter": (
        another_bias("presenter_mismatch_30"),
        (
            "config/plans/handover-v1.lock.json: partner handover_place_partners@v1/presenter_mismatch_30 must be as "
            "it was when the plan was locked, found other content",
            "give the new content a name or version of its own",
        ),
    ),
    "partners_unpinned": (
        replace(PARTNERS, "version: 1", "version: 2"),
        (
            "config/plans/handover-v1.lock.json: must pin partner handover_place_partners@v2/presenter_mismatch_30",
            "run `rowproof lock handover-v1`",
        ),
    ),
    "plan_resamples": (
        PLANS["plan_resamples"][0],
        (
            f"{HANDOVER_PLAN}: what binds a row must stay as it was committed before its records were made",
            "handover-v1/ref-script, handover-v1/b-rnd, handover-v1/b-stat",
            "'n_resamples': 1000",
            "another version of the board with a plan of its own",
        ),
    ),
    "plan_cell": (PLANS["plan_cell"][0], (f"{PUSH_PLAN}: what binds a row must stay", "push-v1/b-stat")),
    "plan_seeds": (PLANS["plan_seeds"][0], (f"{PUSH_PLAN}: what binds a row must stay", "-> [0, 1, 2]")),
    "unpinned_import": (
        replace(HANDOVER_PY, "import math\n", "import math\n\nimport pytest\n"),
        (f"{HANDOVER_PY}:", "import pytest", "requirements.lock"),
    ),
}

HARMLESS: dict[str, Edit] = {
    "partner_not_evaluated": another_bias("presenter_mismatch_15"),
    "partner_role": replace(PARTNERS, "at the edge of", "near the edge of"),
    "plan_comment": replace(HANDOVER_PLAN, "# Preregistration", "# Plan"),
    "plan_row": ONE_MORE_ROW,
    "plan_rules_for_readers": replace(PUSH_PLAN, "All listed rows", "All rows"),
    "observer_code": append("workflow/rowproof/jobs.py", "UNUSED = 1\n"),
    "comment": replace(HANDOVER_PY, "TARGET_JITTER_M = 5e-3", "# chosen\nTARGET_JITTER_M = 5e-3"),
    "layout_and_docstring": other_layout,
    "error_message": replace(GRID_PY, "seeds must be distinct integers", "the seeds must be distinct whole numbers"),
    "renamed_local": lambda checkout: rename_local(checkout, HANDOVER_PY, "length_m", "norm_m"),
    "moved_module": moved("rowproof.chamber.handover_task", "rowproof.chamber.handover_rules"),
    "moved_producer": moved("rowproof.chamber.handover", "rowproof.chamber.handover_run"),
    "unrelated_module": new_module,
    "readme": append("README.md", "\nMore.\n"),
    "board_title": replace(HANDOVER_BOARD, "title: Handover and place", "title: Handover"),
    "board_description": replace(HANDOVER_BOARD, "A presenter hands over", "A presenter gives"),
    "row_label": replace(HANDOVER_BOARD, "label: oracle reference", "label: oracle"),
    "published_facts": append(FACTS, "# more\n"),
    "matplotlib_pin": replace("requirements.lock", "matplotlib==", "matplotlib==1"),
    "shards": replace("config/config.yaml", "shard_by: seed", "shard_by: partner"),
}
# The boards that are rendered again.
RENDERED = {
    **{key: {"handover-v1"} for key in ("board_title", "board_description", "row_label", "published_facts")},
    "matplotlib_pin": set(BOARDS),
    # The page names what is preregistered and not shown.
    "plan_row": {"push-v1"},
}

# Real dry runs of the fast part: every kind of stage that a change can enter at, on one and on both boards.
FAST = ("own_policy", "statistics_code", "plan_cell", "partner_parameter", "plan_row")


def rename_local(checkout: Checkout, path: str, old: str, new: str) -> None:
    file = checkout.root / path
    text = file.read_text()
    assert text.count(old) > 1 and new not in text
    file.write_text(re.sub(rf"\b{old}\b", new, text))


def taken_back(checkout: Checkout) -> None:
    checkout.git("clean", "-q", "-f", "-d", "workflow", "config")
    checkout.git("checkout", "-q", "--", ".")


def not_current(checkout: Checkout) -> set[str]:
    statuses = all_statuses(checkout.root, checkout.root)
    return {status.name for status in statuses if status.state != "current"}


def fast(names):
    return [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in names]


# Engines are those of this process, so here no module may move.
@pytest.mark.parametrize(
    "name", fast([*REACHING, *PLANS, *(name for name in HARMLESS if not name.startswith("moved"))])
)
def test_rows_that_an_edit_reaches(fresh, name):
    edit, rows, _ = {**REACHING, **PLANS}.get(name) or (HARMLESS[name], (), None)
    if name in PLANS:
        fresh.unrecord()
    edit(fresh)
    assert not_current(fresh) == set(rows)
    taken_back(fresh)
    assert not_current(fresh) == set()


@pytest.mark.parametrize("name", fast([*REACHING, *PLANS]))
def test_jobs_that_an_edit_asks_for(fresh, name):
    edit, rows, jobs = {**REACHING, **PLANS}[name]
    if name in PLANS:
        fresh.unrecord()
    edit(fresh)
    boards = {row.partition("/")[0] for row in rows}
    assert fresh.agreed_plan() == {**{row: jobs for row in rows}, **{b: Counter(leaderboard=1) for b in boards}}
    taken_back(fresh)
    assert fresh.agreed_plan() == {}


@pytest.mark.parametrize("name", fast(REFUSED))
def test_an_edit_that_is_refused(fresh, name):
    edit, parts = REFUSED[name]
    edit(fresh)
    message = fresh.refusal()
    for part in parts:
        assert part in message, message
    taken_back(fresh)
    assert fresh.agreed_plan() == {}


@pytest.mark.slow
def test_with_intermediate_files_the_bundle_alone_is_made_anew(worked):
    REACHING["bundle_code"][0](worked)
    assert {name: jobs for name, jobs in worked.agreed_plan().items() if "/" in name} == {
        row: BUNDLE_ONLY for row in SMALL_ROWS
    }


def test_harmless_edits_together_ask_for_no_row(fresh):
    for name, edit in HARMLESS.items():
        # Two edits of one text.
        if name != "comment":
            edit(fresh)
    # The rendered board shows title and labels, and matplotlib draws it.
    assert fresh.agreed_plan() == {board: Counter(leaderboard=1) for board in BOARDS}


@pytest.mark.parametrize("name", fast(HARMLESS))
def test_harmless_edit_asks_for_no_row(fresh, name):
    HARMLESS[name](fresh)
    assert fresh.agreed_plan() == {board: Counter(leaderboard=1) for board in RENDERED.get(name, ())}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["error_message", "renamed_local", "moved_module", "moved_producer", "plan_row"])
def test_a_committed_harmless_edit_leaves_all_rows_verified(fresh, name):
    """What was made by the code before is still what the code of today would make."""
    HARMLESS[name](fresh)
    fresh.commit()
    assert fresh.agreed_plan() == {board: Counter(leaderboard=1) for board in RENDERED.get(name, ())}
    verified = fresh.rowproof("verify", "--strict", *(f"results/{row}" for row in ROWS))
    assert verified.code == 0, verified.output[-4000:]


@pytest.mark.slow
def test_a_row_that_joins_a_plan_is_the_only_one_that_is_made(fresh):
    """It is bound by the version that brought it, the others by the one before, and one page shows them all."""
    ONE_MORE_ROW(fresh)
    fresh.edit("config/boards/push-v1.yaml", "rows:\n", "rows:\n  b-too:\n    policy: random\n")
    fresh.commit()
    before = fresh.files(*PUSH)
    assert fresh.agreed_plan() == {"push-v1/b-too": WHOLE, "push-v1": Counter(leaderboard=1)}
    fresh.build(cores=2).ok()
    assert fresh.files(*PUSH) == before
    fresh.commit()
    assert fresh.agreed_plan() == {}
    verified = fresh.rowproof("verify", "--strict", *(f"results/{row}" for row in (*PUSH, "push-v1/b-too")))
    assert verified.code == 0, verified.output[-4000:]


HANDOVER_ROW, PUSH_ROW = SMALL_ROWS
IDENTITY = {"SHA256SUMS.txt", "bundle.json", "recipe.json", "provenance.json"}
EPISODES = {"episodes_seed0.jsonl", "episodes_seed1.jsonl"}

# name -> edit of the small project, its row, files of the bundle that must change
REAL: dict[str, tuple[Edit, str, set[str]]] = {
    "partner_version": (
        another_version_of_the_partners,
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


def digests(checkout: Checkout, row: str) -> dict[str, str]:
    """File name -> SHA-256, of all files of a bundle."""
    return {path.name: sha256_hex(path.read_bytes()) for path in sorted((checkout.root / "results" / row).iterdir())}


@pytest.mark.parametrize("name", REAL)
@pytest.mark.slow
def test_what_a_rebuild_changes_and_nothing_after_taking_it_back(fresh_small, name):
    edit, row, files = REAL[name]
    other = next(other for other in SMALL_ROWS if other != row)
    if name.startswith("plan"):
        fresh_small.unrecord()
    first = fresh_small.git("rev-parse", "HEAD").strip()
    before, first_digests, other_digests = fresh_small.files(), digests(fresh_small, row), digests(fresh_small, other)
    edit(fresh_small)
    fresh_small.git("commit", "-q", "-a", "-m", "edited")
    fresh_small.build(f"results/{row}").ok()
    found = digests(fresh_small, row)
    assert {name for name in {*first_digests, *found} if first_digests.get(name) != found.get(name)} == files
    assert digests(fresh_small, other) == other_digests
    assert fresh_small.dry_run(f"results/{row}").nothing

    fresh_small.git("checkout", "-q", first, "--", "config", "workflow")
    fresh_small.git("commit", "-q", "-m", "taken back")
    fresh_small.build(f"results/{row}").ok()
    assert fresh_small.files() == before
