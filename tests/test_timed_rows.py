"""Rows that are also timed: what a clock showed lies beside the evidence, and no digest of a row depends on it."""

import json
import platform
import shutil
from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from bundles import bare_recipes, commit_all, lock, make_project, places_of, plan_of
from bundles import recipes_of as recipes_of_row
from rowproof import git
from rowproof.boards import load_board
from rowproof.errors import RowproofError
from rowproof.evidence.bundle import build, split_episodes
from rowproof.evidence.leaderboard import render
from rowproof.evidence.statistics import row_summary
from rowproof.evidence.verify import verify_bundle
from rowproof.files import write_atomic
from rowproof.layout import PROVENANCE, SUMS, TIMING, bundle_files, encode_timing, read_timing
from rowproof.provenance import build_provenance, kept_provenance
from rowproof.recipes import prepare
from rowproof.records import decode, encode_document, encode_lines, split_lines
from rowproof.reproduce import compare
from rowproof.speedrun.evaluation import simulate, specs
from rowproof.speedrun.figures import summarise
from rowproof.speedrun.timing import measure
from rowproof.stages import TIMED_STAGES, stage_key, stage_keys
from rowproof.versions import installed
from rowproof.why import explain
from speedrun.board.workbench import SEEDS, Runs, cell_of

BOARD = "nanogpt-speedrun-cpu-v1"
ROWS = ("r0", "r3", "r4", "n7")
PROGRAM = "workflow/rowproof/speedrun/referee/inside/train.py"


def make_timed_project(root: Path) -> Path:
    """A committed project with one board of the CPU track."""
    make_project(root, boards=())
    rows = {name: {"policy": name} for name in ROWS}
    plan = {
        "schema": "rowproof/plan/1",
        "plan": BOARD,
        "board": BOARD,
        "task": "nanogpt_speedrun@v1",
        "grid": {
            "seeds": list(SEEDS),
            "partners": ["nobody"],
            "episodes_per_partner": 1,
            "root_seed": 0,
            "initial_state": "seed",
        },
        "cell": cell_of(ROWS),
        "statistics": {"n_resamples": 100, "root_seed": 0},
        "rows": rows,
        "decision_rules": "none",
    }
    board = {
        "schema": "rowproof/board/1",
        "board": BOARD,
        "title": "timed",
        "task": "nanogpt_speedrun@v1",
        "engine": BOARD,
        "tier": "statistical",
        "plan": BOARD,
        "partner_set": "speedrun-nobody-v1",
        "rows": rows,
    }
    config = {"schema": "rowproof/config/1", "boards": [BOARD], "shard_by": "seed"}
    for path, document in (
        (f"plans/{BOARD}.yaml", plan),
        (f"boards/{BOARD}.yaml", board),
        ("config.yaml", config),
    ):
        (root / "config" / path).write_text(yaml.safe_dump(document, sort_keys=False))
    lock(root, [BOARD])
    commit_all(root)
    return root


def recipes_of(root, row="r3"):
    return recipes_of_row(root, BOARD, row)


def jobs_of(recipes, commit):
    shards = [f"seed{seed}" for seed in SEEDS]
    return [
        {
            "stage": stage,
            "shard": shard,
            "commit": commit,
            "dirty": False,
            "seconds": 1.0,
            "platform": "test",
            "cpu_model": "test",
            "python": platform.python_version(),
            "versions": {name: installed(name) for name in recipe["pins"]},
        }
        for stage, recipe in recipes.items()
        for shard in (shards if stage == "simulate" else [None])
    ]


def write_row(folder, root, recipes, records, timing):
    """The bundle of a row, as the jobs would write it."""
    own = recipes["summary"]
    summary = row_summary(records, partners=own["partners"], **own["statistics"]) | {"family": summarise(records)}
    units = specs(recipes["simulate"]["setup"])
    episodes = split_episodes({"all": encode_lines(records)}, units)
    files = build(bare_recipes(recipes), plan_of(load_board(root, BOARD)), episodes, summary)
    jobs = jobs_of(recipes, git.tree_state(root).commit)
    provenance = build_provenance(files["bundle.json"], jobs, places_of(recipes))
    files |= {PROVENANCE: provenance, TIMING: encode_timing(timing)}
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return make_timed_project(tmp_path_factory.mktemp("timed") / "p")


@pytest.fixture(scope="module")
def made(project):
    """Recipes and records of all rows, and two measurements of their times; nobody changes them."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        runs = Runs(monkeypatch)
        recipes = {row: recipes_of(project, row) for row in ROWS}
        records = {}
        for row, own in recipes.items():
            setup = own["simulate"]["setup"]
            records[row] = list(simulate(setup, specs(setup)))
        first = measure(recipes["r3"]["time"]["setup"], records, len)
        runs.seconds["r3"] = 11.0
        second = measure(recipes["r3"]["time"]["setup"], records, len)
    assert first["runs"] != second["runs"]
    return recipes, records, (first, second)


@pytest.fixture(scope="module")
def results(project, made, tmp_path_factory):
    """The results of the board, all rows fine; copy them."""
    results = tmp_path_factory.mktemp("results")
    recipes, records, timings = made
    for row in ROWS:
        write_row(results / BOARD / row, project, recipes[row], records[row], timings[0])
    return results


@pytest.fixture
def workdir(results, tmp_path):
    shutil.copytree(results, tmp_path / "w/results")
    return tmp_path / "w"


@pytest.fixture
def folder(workdir):
    """The bundle of one row, for this test to break."""
    return workdir / "results" / BOARD / "r3"


@pytest.fixture
def own(project, tmp_path):
    """A project of the test's own, whose files it may edit."""
    return shutil.copytree(project, tmp_path / "own")


def states(root, workdir):
    return {row.row: row.state for row in prepare(root, workdir).rows}


def retime(folder, timing):
    (folder / TIMING).write_bytes(encode_timing(timing))


# --- Recipes ----------------------------------------------------------------------------------------------------------


def test_times_are_a_stage_between_records_and_summary(project):
    found = recipes_of(project)
    keys = stage_keys(found)
    assert tuple(found) == TIMED_STAGES == ("specs", "simulate", "time", "summary", "bundle")
    assert found["simulate"]["upstream"] == {"specs": keys["specs"]}
    assert found["summary"]["upstream"] == {"time": keys["time"]}


def test_all_rows_of_a_board_share_what_is_timed(project):
    recipes = {row: recipes_of(project, row) for row in ROWS}
    assert len({stage_key(own["time"]) for own in recipes.values()}) == 1
    assert recipes["r3"]["time"]["upstream"] == {row: stage_key(own["simulate"]) for row, own in recipes.items()}
    launch = prepare(project, project, touch=False)
    assert len({path for row in launch.rows for path in row.timings}) == 1
    assert launch.rows[0].timings[0].startswith(f"work/rows/{BOARD}/_rows/time-")


def test_programs_inside_the_sandbox_are_code_of_runs_and_times(project):
    found = recipes_of(project)
    for stage in ("simulate", "time"):
        assert PROGRAM in found[stage]["programs"] and PROGRAM in found[stage]["files"]
    assert "programs" not in found["specs"] and PROGRAM not in found["summary"]["files"]


@pytest.mark.parametrize(
    ("file", "stage"),
    [
        (PROGRAM, "simulate"),
        ("workflow/rowproof/speedrun/evaluation.py", "specs"),
        ("workflow/rowproof/speedrun/timing.py", "time"),
        ("workflow/scripts/time_runs.py", "time"),
        ("workflow/rowproof/speedrun/platforms.py", "time"),
        ("workflow/rowproof/speedrun/figures.py", "summary"),
        ("workflow/rowproof/evidence/bundle.py", "bundle"),
        ("workflow/rowproof/speedrun/page.py", None),
    ],
)
def test_code_enters_where_it_is_used_first(own, file, stage):
    before = stage_keys(recipes_of(own))
    with (own / file).open("a") as stream:
        stream.write("\nadded = 1\n")
    after = stage_keys(recipes_of(own))
    differing = [each for each in TIMED_STAGES if before[each] != after[each]]
    assert differing == (list(TIMED_STAGES[TIMED_STAGES.index(stage) :]) if stage else [])


def test_another_row_on_the_board_asks_for_other_times_alone(own):
    before = stage_keys(recipes_of(own))
    path = own / f"config/boards/{BOARD}.yaml"
    board = yaml.safe_load(path.read_text())
    del board["rows"]["r4"]
    path.write_text(yaml.safe_dump(board, sort_keys=False))
    after = stage_keys(recipes_of(own))
    assert [stage for stage in TIMED_STAGES if before[stage] != after[stage]] == ["time", "summary", "bundle"]


# --- State of rows ----------------------------------------------------------------------------------------------------


def test_intact_rows_are_current(project, workdir):
    assert states(project, workdir) == dict.fromkeys(ROWS, "current")
    assert set(bundle_files(SEEDS, timed=True)) - set(bundle_files(SEEDS)) == {TIMING}


def edit_a_time(path):
    data = path.read_bytes()
    timing = json.loads(data)
    timing["runs"][3]["t_wall_s"] -= 1.0
    path.write_bytes(encode_document(timing))


DAMAGES = {
    "edited": edit_a_time,
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "in other bytes": lambda path: path.write_text(json.dumps(json.loads(path.read_bytes()))),
    "empty": lambda path: path.write_bytes(b""),
    "a list": lambda path: path.write_bytes(b"[]\n"),
    "missing": lambda path: path.unlink(),
    "a folder": lambda path: path.unlink() or path.mkdir(),
}


@pytest.mark.parametrize("how", DAMAGES)
def test_damaged_times_damage_their_row_alone(project, workdir, folder, how):
    DAMAGES[how](folder / TIMING)
    launch = prepare(project, workdir)
    assert {row.row: row.state for row in launch.rows} == dict.fromkeys(ROWS, "current") | {"r3": "damaged"}
    assert all(TIMING in reason for reason in launch.row(f"{BOARD}/r3").reasons)


def test_a_link_is_no_file_of_a_row(project, workdir, folder, tmp_path):
    shutil.move(folder / TIMING, tmp_path / "elsewhere")
    (folder / TIMING).symlink_to(tmp_path / "elsewhere")
    assert states(project, workdir)["r3"] == "damaged"


def test_other_times_change_no_digest_of_a_row(project, made, workdir, folder):
    recipes, records, timings = made
    other = folder.parent / "other"
    write_row(other, project, recipes["r3"], records["r3"], timings[1])
    for path in sorted(folder.iterdir()):
        assert ((other / path.name).read_bytes() == path.read_bytes()) is (path.name != TIMING), path.name
    assert TIMING not in (folder / SUMS).read_text()
    shutil.rmtree(other)
    retime(folder, timings[1])
    assert states(project, workdir)["r3"] == "current"
    assert not verify_bundle(folder, project).failures


# --- Taking times over ------------------------------------------------------------------------------------------------


def taken(launch, workdir):
    """What of the board's times lies among the products; None if there is nothing."""
    path = workdir / launch.rows[0].timings[0]
    return read_timing(path.read_bytes()) if path.exists() else None


def test_lost_times_are_taken_from_another_row(project, made, workdir, folder):
    (folder / TIMING).unlink()
    launch = prepare(project, workdir)
    assert taken(launch, workdir) == made[2][0]
    product = workdir / launch.rows[0].timings[0]
    jobs = json.loads(product.with_suffix(".job.json").read_bytes())["jobs"]
    assert [job["stage"] for job in jobs] == ["time"]


def test_times_that_all_rows_lost_are_measured_again(project, workdir):
    for row in ROWS:
        (workdir / "results" / BOARD / row / TIMING).unlink()
    launch = prepare(project, workdir)
    assert taken(launch, workdir) is None
    assert {row.state for row in launch.rows} == {"damaged"}
    for row in launch.rows:
        # Records and summary are kept; who made the bundle is told anew, since another job times it.
        assert all((workdir / path).exists() for stage in ("simulate", "summary") for path in row.products(stage))
        assert not (workdir / row.product("bundle", PROVENANCE)).exists()


def test_damaged_records_ask_for_no_other_times(project, made, workdir, folder):
    (folder / f"episodes_seed{SEEDS[1]}.jsonl").unlink()
    launch = prepare(project, workdir)
    assert launch.row(f"{BOARD}/r3").state == "damaged" and taken(launch, workdir) == made[2][0]
    lost = [path for path in launch.row(f"{BOARD}/r3").products("simulate") if not (workdir / path).exists()]
    assert [Path(path).name for path in lost] == [f"seed{SEEDS[1]}.jsonl"]


def test_a_change_after_the_clock_keeps_the_times(own, made, workdir):
    with (own / "workflow/rowproof/speedrun/figures.py").open("a") as stream:
        stream.write("\nadded = 1\n")
    commit_all(own)
    launch = prepare(own, workdir)
    assert {row.state for row in launch.rows} == {"stale"} and taken(launch, workdir) == made[2][0]


def test_a_change_of_the_clock_keeps_the_records_and_no_times(own, workdir):
    with (own / "workflow/rowproof/speedrun/timing.py").open("a") as stream:
        stream.write("\nadded = 1\n")
    commit_all(own)
    launch = prepare(own, workdir)
    assert {row.state for row in launch.rows} == {"stale"} and taken(launch, workdir) is None
    assert all((workdir / path).exists() for row in launch.rows for path in row.products("simulate"))


def test_what_was_measured_here_is_kept(project, made, workdir, folder):
    launch = prepare(project, workdir, touch=False)
    product = workdir / launch.rows[0].timings[0]
    write_atomic(product, encode_timing(made[2][1]))
    (folder / TIMING).unlink()
    assert taken(prepare(project, workdir), workdir) == made[2][1]


def test_provenance_is_kept_unless_another_job_timed_the_row(folder):
    document, bundle = json.loads((folder / PROVENANCE).read_bytes()), (folder / "bundle.json").read_bytes()
    own = [job for job in document["jobs"] if job["stage"] == "time"]
    assert kept_provenance(folder / PROVENANCE, bundle, own) == (folder / PROVENANCE).read_bytes()
    assert kept_provenance(folder / PROVENANCE, bundle, [own[0] | {"seconds": 2.0}]) is None


# --- Why --------------------------------------------------------------------------------------------------------------


def explained(root, workdir):
    """What is said of rows; the board is not rendered here."""
    return [entry for entry in explain(root, workdir, []) if "row" in entry]


def test_why_names_the_clock_for_lost_times(project, workdir, folder):
    (folder / TIMING).unlink()
    (found,) = explained(project, workdir)
    assert (found["row"], found["state"]) == (f"{BOARD}/r3", "damaged")
    assert found["reasons"] == [f"{TIMING} is missing"]
    # Another row of the board holds the same times.
    assert found["rebuild_stages"] == ["bundle"] and found["estimated_seconds"] == 1.0


def test_why_names_the_clock_for_times_that_no_row_holds(project, workdir, folder):
    for other in folder.parent.iterdir():
        (other / TIMING).unlink(missing_ok=True)
    found = explained(project, workdir)
    assert [each["row"] for each in found] == [f"{BOARD}/{row}" for row in ROWS]
    for each in found:
        assert each["rebuild_stages"] == ["time", "bundle"] and each["estimated_seconds"] == 2.0


@pytest.mark.parametrize(
    ("file", "stage", "again"),
    [(PROGRAM, "simulate", 1), ("workflow/rowproof/speedrun/timing.py", "time", 2)],
)
def test_why_names_changed_code_with_its_stage_and_all_rows(own, workdir, file, stage, again):
    with (own / file).open("a") as stream:
        stream.write("\nadded = 1\n")
    found = explained(own, workdir)
    assert [each["row"] for each in found] == [f"{BOARD}/{row}" for row in ROWS]
    for each in found:
        assert each["state"] == "stale" and each["rebuild_stages"] == list(TIMED_STAGES[again:])
        (change,) = each["changes"]
        assert (change["kind"], change["item"], change["stage"]) == ("code", file, stage)
        assert change["hits"] == [f"{BOARD}/{row}" for row in ROWS]


# --- Verification -----------------------------------------------------------------------------------------------------


def failing(folder, root):
    return [check.id for check in verify_bundle(folder, root).failures]


@pytest.mark.parametrize("row", ROWS)
def test_every_row_verifies(project, workdir, row):
    table = verify_bundle(workdir / "results" / BOARD / row, project)
    assert not table.failures, table.failures
    assert "timing:form" in {check.id for check in table.checks}


@pytest.mark.parametrize("how", ["edited", "truncated", "in other bytes", "empty", "a list"])
def test_damaged_times_are_told(project, folder, how):
    DAMAGES[how](folder / TIMING)
    assert failing(folder, project) == ["timing:form"]


def test_missing_times_are_told(project, folder):
    (folder / TIMING).unlink()
    assert set(failing(folder, project)) == {"files:set", "timing:form"}


def first_of(timing, arm):
    return next(run for run in timing["runs"] if run["arm"] == arm and run["pair"] == 0)


def exchange_arms(timing):
    one, other = first_of(timing, "r3"), first_of(timing, "r4")
    one["t_wall_s"], other["t_wall_s"] = other["t_wall_s"], one["t_wall_s"]
    one["arm"], other["arm"] = "r4", "r3"


# Each is sealed again with a digest of its own.
FORGED = {
    "a block left out": lambda t: t.update(runs=[run for run in t["runs"] if run["pair"] != 1]),
    "blocks run once more": lambda t: t["runs"].extend({**run, "pair": 3} for run in t["runs"][1:6]),
    "arms exchanged": exchange_arms,
    "an order that suits": lambda t: t.update(order_seed=t["order_seed"] + 1),
    "a floor that suits": lambda t: t.update(aa_floor=0.0),
    "times of another script": lambda t: t["scripts_sha256"].update(r3="0" * 64),
    "tokens of another run": lambda t: first_of(t, "r3").update(tokens=1),
    "weights of another run": lambda t: first_of(t, "r3").update(weights_sha256="0" * 64),
    "a disturbed run that slept at no time": lambda t: first_of(t, "r3").update(slept="no"),
    "a failed measurement": lambda t: t.update(outcome="crashed"),
    "a key that is gone": lambda t: t.pop("peak_gflops"),
}


@pytest.mark.parametrize("what", FORGED)
def test_forged_times_are_told_as_far_as_they_break_the_protocol(project, made, folder, what):
    timing = deepcopy(made[2][0])
    FORGED[what](timing)
    retime(folder, timing)
    assert failing(folder, project) == ["timing:form"]


def test_a_time_that_was_edited_and_sealed_again_moves_the_floor_or_passes(project, made, folder):
    """No file shows what a clock showed: an edited time that fits the protocol and its own digest stands."""
    timing = deepcopy(made[2][0])
    first_of(timing, "r4")["t_wall_s"] -= 1.0
    retime(folder, timing)
    assert failing(folder, project) == []
    # What the figures say follows all the same; only the candidate that runs twice cannot be edited alone.
    first_of(timing, "r3")["t_wall_s"] -= 1.0
    retime(folder, timing)
    assert failing(folder, project) == ["timing:form"]


def sealed_with(folder, project, made, change):
    """The row with other recipes, all that follows from them made again."""
    recipes, records, timings = made
    own = deepcopy(recipes["r3"])
    change(own)
    for earlier, later in (("simulate", "time"), ("time", "summary"), ("summary", "bundle")):
        key = "r3" if later == "time" else earlier
        if key in own[later]["upstream"]:
            own[later]["upstream"][key] = stage_key(own[earlier])
    shutil.rmtree(folder)
    write_row(folder, project, own, records["r3"], timings[0])
    return failing(folder, project)


def test_sealing_an_honest_row_changes_nothing(project, made, folder):
    assert sealed_with(folder, project, made, lambda recipes: None) == []


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda r: r["time"]["setup"]["cell"].update(n_blocks=2), "setup:plan"),
        (lambda r: r["time"]["setup"]["policies"].pop("r4"), "setup:plan"),
        (lambda r: r["time"].update(producer="rowproof.speedrun.page"), "history:code"),
        (lambda r: r["simulate"].update(programs=[PROGRAM]), "history:code"),
        (lambda r: r["time"].pop("programs"), "history:code"),
        (lambda r: r["time"]["upstream"].pop("r3"), "recipe:chain"),
        (lambda r: r["simulate"]["code"].update(key="0" * 64), "history:code"),
        (lambda r: r["simulate"]["files"].update({PROGRAM: "0" * 64}), "history:code"),
    ],
)
def test_a_recipe_that_was_edited_is_told(project, made, folder, change, check):
    assert check in sealed_with(folder, project, made, change)


# --- Comparison with a rebuilt row ------------------------------------------------------------------------------------


def shift_losses(folder, by):
    for path in sorted(folder.glob("episodes_*")):
        records = [decode(line, path.name) for _, line in split_lines(path.read_bytes(), path.name)]
        for record in records:
            record["metadata"]["val_loss"] = round(record["metadata"]["val_loss"] + by, 6)
        path.write_bytes(encode_lines(records))


@pytest.mark.parametrize(("by", "match"), [(0.0, True), (0.0015, True), (0.0025, False)])
def test_a_rebuilt_row_must_come_near_in_its_losses(folder, made, tmp_path, by, match):
    rebuilt = shutil.copytree(folder, tmp_path / "rebuilt")
    shift_losses(rebuilt, by)
    retime(rebuilt, made[2][1])
    found = compare(f"{BOARD}/r3", folder, rebuilt)
    assert (found.match, found.tier) == (match, "statistical")
    assert ("3 of 3 records" in found.detail) if match else ("record 1, field metadata.val_loss" in found.detail)


def test_a_rebuilt_row_with_fewer_seeds_differs(folder, tmp_path):
    rebuilt = shutil.copytree(folder, tmp_path / "rebuilt")
    (rebuilt / f"episodes_seed{SEEDS[2]}.jsonl").unlink()
    assert not compare(f"{BOARD}/r3", folder, rebuilt).match


# --- The board --------------------------------------------------------------------------------------------------------


@pytest.fixture
def rendered(project, workdir):
    """The results with the board rendered into them."""
    (board,) = prepare(project, workdir, touch=False).boards
    folder = workdir / "results" / BOARD
    files = render(load_board(project, BOARD).board.model_dump(by_alias=True), folder, project, board.key)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return files


def board_state(root, workdir):
    (board,) = prepare(root, workdir).boards
    return board.state, board.reason


def test_a_board_is_stale_when_it_shows_other_times(project, made, workdir, folder, rendered):
    assert board_state(project, workdir) == ("current", None)
    retime(folder, made[2][1])
    state, reason = board_state(project, workdir)
    assert (state, reason) == ("stale", "rows r3 changed")


def test_a_board_waits_for_a_row_that_lost_its_times(project, workdir, folder, rendered):
    (folder / TIMING).unlink()
    assert board_state(project, workdir)[1] == "rows r3 are not current"


def test_a_board_shows_what_follows_from_the_times(made, rendered):
    document = json.loads(rendered["leaderboard.json"])
    shown = {row["row"]: row for row in document["rows"]}
    assert [shown[row]["timed"]["timed"] for row in ROWS] == [True, True, True, False]
    assert shown["r3"]["timed"]["reward"] == pytest.approx(0.3 + 0.7 * 6, abs=0.1)
    assert len({row["timing_sha256"] for row in document["rows"]}) == 1
    page = rendered["leaderboard.md"].decode()
    assert "different jobs" not in page and "## Times" in page


def test_a_board_says_that_rows_were_timed_in_two_jobs(project, made, workdir, folder, rendered):
    retime(folder, made[2][1])
    board = load_board(project, BOARD).board.model_dump(by_alias=True)
    assert "different jobs" in render(board, folder.parent, project, "0" * 64)["leaderboard.md"].decode()


def test_a_board_with_damaged_times_is_not_rendered(project, workdir, folder):
    edit_a_time(folder / TIMING)
    board = load_board(project, BOARD).board.model_dump(by_alias=True)
    with pytest.raises(RowproofError, match="r3: timing:form"):
        render(board, folder.parent, project, "0" * 64)
