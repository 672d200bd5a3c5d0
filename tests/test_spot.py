"""Spot re-simulation: what is drawn, what it finds, and what may be said of what it did not find."""

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bundles import commit_all, make_project, make_row
from helpers import ROOT
from rowproof import git, spot
from rowproof.boards import load_board
from rowproof.cli import main
from rowproof.errors import HistoryGap, RowproofError
from rowproof.evidence.verify import verify_bundle
from rowproof.records import decode, encode_document, encode_line
from rowproof.spot import Before, Spot, add_spot_checks, compare, drawn, merged_at, read_options, upper_bound

ROW = "handover-v1/b-rnd"
SPEEDRUN = "nanogpt-speedrun-cpu-v1"


def line(success: bool, force_n: float = 1.0) -> bytes:
    return json.dumps({"success": success, "force_peak": force_n}, separators=(",", ":")).encode()


# --- The draw --------------------------------------------------------------------------------------------------------


def test_the_draw_follows_from_beacon_row_and_kind_alone():
    one = drawn("beacon", ROW, "records", 1750, 40)
    assert one == drawn("beacon", ROW, "records", 1750, 40) == sorted(set(one))
    assert len(one) == 40 and one[-1] < 1750
    others = [drawn("beacon2", ROW, "records", 1750, 40), drawn("beacon", ROW + "x", "records", 1750, 40)]
    assert all(other != one for other in [*others, drawn("beacon", ROW, "trainings", 1750, 40)])


def test_no_more_is_drawn_than_there_is():
    assert drawn("beacon", ROW, "records", 3, 40) == [0, 1, 2]


def test_ten_percent_of_forged_records_are_found_by_nearly_every_beacon():
    """40 honest draws of 1,750 records of which 175 are forged have a probability of 1.4 %."""
    forged = set(range(0, 1750, 10))
    found = sum(bool(forged & set(drawn(f"beacon {n}", ROW, "records", 1750, 40))) for n in range(100))
    assert found >= 95


# --- The bound -------------------------------------------------------------------------------------------------------


def test_the_bound_of_no_hit_has_a_closed_form():
    assert upper_bound(40, 0) == pytest.approx(1 - 0.05 ** (1 / 40), abs=1e-12)
    assert f"{upper_bound(40, 0):.1%}" == "7.2%"


def test_the_bound_grows_with_hits_and_shrinks_with_draws():
    bounds = [upper_bound(40, k) for k in range(41)]
    assert bounds == sorted(bounds) and bounds[-1] == 1.0
    assert upper_bound(400, 0) < upper_bound(40, 0)


@pytest.mark.parametrize("k", [0, 3, 600, 1100])
def test_the_bound_of_many_draws_leaves_five_percent_below(k):
    n = 1200
    p = upper_bound(n, k)
    draws = np.random.default_rng(3).binomial(n, p, size=100_000)
    assert np.mean(draws <= k) == pytest.approx(0.05, abs=0.004)


@pytest.mark.parametrize(("n", "k"), [(0, 0), (3, 4), (3, -1)])
def test_no_bound_without_draws(n, k):
    with pytest.raises(ValueError, match="a bound needs"):
        upper_bound(n, k)


@pytest.mark.parametrize("share", [0.01, 0.05, 0.072, 0.2, 0.5])
def test_the_bound_holds_as_often_as_it_says(share):
    """Draws without replacement from 1,750 records, as a spot check makes them."""
    rng, of, n, runs = np.random.default_rng(7), 1750, 40, 4000
    hits = rng.hypergeometric(round(share * of), of - round(share * of), n, size=runs)
    bounds = {k: upper_bound(n, int(k)) for k in set(hits.tolist())}
    covered = np.mean([share <= bounds[k] for k in hits.tolist()])
    # Three standard errors below 95 %.
    assert covered >= 0.95 - 3 * (0.95 * 0.05 / runs) ** 0.5


# --- The verdict -----------------------------------------------------------------------------------------------------


def test_the_verdict_states_the_bound():
    finding = compare({f"record {i}": (line(True), line(True)) for i in range(40)}, 1750, "outcome")
    assert finding.holds is True
    assert finding.found == (
        "40 of 1,750 episodes re-simulated, 0 differ in success: with 95 % confidence fewer than 7.2 % are false "
        "(Clopper-Pearson); 0 differ in bytes"
    )


def test_where_digits_are_not_promised_success_decides():
    other_digits = {"a": (line(True, 1.0), line(True, 1.5)), "b": (line(False), line(False))}
    assert compare(other_digits, 9, "outcome").holds is True
    found = compare(other_digits, 9, "outcome").found
    assert "0 differ in success" in found and "1 differ in bytes" in found
    assert compare(other_digits, 9, "exact").holds is False


@pytest.mark.parametrize("tier", ["exact", "outcome", "statistical"])
def test_a_changed_success_fails_in_every_tier_and_is_named(tier):
    finding = compare({"episodes_seed1.jsonl: record 6": (line(True), line(False))}, 9, tier, SPEEDRUN)
    assert finding.holds is False
    assert "episodes_seed1.jsonl: record 6, field success: committed" in finding.found


@pytest.mark.parametrize(("recorded_loss", "holds"), [(1.501, True), (1.51, False)])
def test_where_a_record_is_a_run_its_engine_says_how_near_it_must_come(recorded_loss, holds):
    old, new = (
        encode_line({"success": True, "metadata": {"val_loss": loss}}).encode() for loss in (recorded_loss, 1.5)
    )
    finding = compare({"run": (old, new)}, 3, "statistical", SPEEDRUN)
    assert finding.holds is holds
    assert finding.found.startswith(
        f"1 of 3 runs re-simulated, {0 if holds else 1} differ by more than the tier allows"
    )


def test_some_of_many_differing_records_are_named():
    finding = compare({f"record {i}": (line(True), line(False)) for i in range(7)}, 9, "exact")
    assert "record 4, field success" in finding.found and "record 5" not in finding.found
    assert finding.found.endswith("and 2 more")


def test_a_row_of_forged_records_alone_fails_however_many_are_drawn():
    pairs = {f"record {i}": (line(True), line(i % 2 == 0)) for i in range(1700)}
    finding = compare(pairs, 1750, "outcome")
    assert finding.holds is False and "850 differ in success" in finding.found


def test_nothing_drawn_shows_nothing():
    assert compare({}, 9, "exact").holds is None


def test_all_of_a_row_needs_no_bound():
    assert (
        compare({"a": (line(True), line(True))}, 1, "exact").found == "1 of 1 episodes re-simulated, 0 differ in bytes"
    )


# --- End to end ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A project, and a row of it that is merged."""
    root = make_project(tmp_path_factory.mktemp("spot-project"), learned=True)
    for row in ("b-rnd", "b-aht"):
        make_row(root, root / "results", "handover-v1", row)
    return root, commit_all(root)


def _not_replayed(root: Path, name: str):
    setup = load_board(root, name)
    return replace(setup, engine=replace(setup.engine, replays=False))


def test_the_beacon_is_the_commit_that_merged_the_row(world):
    root, merged = world
    data = (root / "results" / ROW / "bundle.json").read_bytes()
    commit_all(root)
    assert merged_at(root, f"results/{ROW}/bundle.json", data) == merged
    with pytest.raises(HistoryGap, match="merge it first"):
        merged_at(root, f"results/{ROW}/bundle.json", data + b" ")
    assert git.tree_state(root).commit != merged


@pytest.fixture
def unreplayed(monkeypatch):
    monkeypatch.setattr(spot, "load_board", _not_replayed)


def forged(world, tmp_path: Path, change: Callable[[dict], None]) -> Path:
    root, _ = world
    folder = shutil.copytree(root / "results" / ROW, tmp_path / "b-rnd")
    path = folder / "episodes_seed0.jsonl"
    records = [json.loads(text) for text in path.read_text().splitlines()]
    for record in records:
        change(record)
    path.write_text("".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records))
    return folder


@pytest.mark.parametrize("cores", [1, 3])
def test_an_honest_row_comes_out_again(world, unreplayed, cores):
    root, merged = world
    check = Spot(root / "results" / ROW, root, None, cores)
    assert check.beacon == merged
    finding = check.episodes(5)
    assert finding.holds is True
    assert finding.found.startswith("5 of 16 episodes re-simulated, 0 differ in bytes")


def test_forged_records_are_found(world, unreplayed, tmp_path):
    root, _ = world
    folder = forged(world, tmp_path, lambda record: record.update(success=not record["success"]))
    finding = Spot(folder, root, "public randomness", 1).episodes(8)
    assert finding.holds is False


@pytest.mark.slow
def test_a_training_comes_out_again_and_an_edited_one_does_not(world, tmp_path, monkeypatch):
    root, _ = world
    # What the provenance of bundles of tests names.
    monkeypatch.setattr(spot, "cpu_model", lambda: "test")
    row = root / "results/handover-v1/b-aht"
    assert Spot(row, root, "a", 1).training().holds is True
    folder = shutil.copytree(row, tmp_path / "b-aht")
    for path in folder.glob("training_seed*.json"):
        path.write_text(path.read_text().replace("sha256:", "sha256:0", 1))
    assert Spot(folder, root, "a", 1).training().holds is False


def test_tables_tell_what_was_drawn_and_by_what(world, unreplayed):
    root, merged = world
    folder = root / "results" / ROW
    table = verify_bundle(folder, root)
    add_spot_checks([table], root, 4, True, None, 1)
    told = {check.id: check for check in table.checks if check.id.endswith(":spot")}
    assert told["records:spot"].verdict == "pass" and merged in told["records:spot"].found
    assert told["training:spot"].found.startswith("the policy of the row is not trained")


def test_an_engine_that_is_replayed_says_so(world):
    root, _ = world
    assert Spot(root / "results" / ROW, root, "x", 1).episodes(4).found == "every record is run again anyway"


def test_a_row_that_does_not_verify_is_not_run(world, tmp_path):
    root, _ = world
    folder = forged(world, tmp_path, lambda record: record.update(success=True))
    table = verify_bundle(folder, root)
    add_spot_checks([table], root, 4, False, "x", 1)
    assert (table.checks[-1].id, table.checks[-1].verdict) == ("records:spot", "not proven")
    assert table.checks[-1].found == "not run: the row does not verify"


def test_without_history_and_beacon_nothing_is_shown(world, unreplayed, tmp_path):
    root, _ = world
    bare = shutil.copytree(root, tmp_path / "bare", ignore=shutil.ignore_patterns(".git"))
    table = verify_bundle(bare / "results" / ROW, bare)
    add_spot_checks([table], bare, 4, False, None, 1)
    assert table.verdict == "not proven"
    assert "name a beacon with --beacon" in table.checks[-1].found


def test_what_cannot_run_here_is_no_proof_and_no_refutation(world, unreplayed, monkeypatch):
    root, _ = world
    table = verify_bundle(root / "results" / ROW, root)
    monkeypatch.setattr(spot, "installed", lambda name: "0.0.0")
    add_spot_checks([table], root, 4, False, "x", 1)
    assert table.verdict == "not proven"
    assert "not run: what the recipe pins must be installed" in table.checks[-1].found


def test_a_process_that_fails_is_no_proof_and_no_refutation(world, unreplayed, monkeypatch):
    root, _ = world
    table = verify_bundle(root / "results" / ROW, root)
    task = spot.unit_task
    monkeypatch.setattr(spot, "unit_task", lambda *args: {**task(*args), "producer": "rowproof.missing"})
    add_spot_checks([table], root, 4, False, "x", 1)
    assert table.verdict == "not proven"
    assert "No module named 'rowproof.missing'" in table.checks[-1].found


@pytest.mark.parametrize(("here", "holds"), [("the same", False), ("another", None)])
def test_other_digits_of_a_training_count_on_its_processor_alone(world, tmp_path, monkeypatch, here, holds):
    root, _ = world
    folder = shutil.copytree(root / "results/handover-v1/b-aht", tmp_path / "b-aht")
    jobs = [{"stage": "train", "shard": f"seed{seed}", "cpu_model": "the same"} for seed in (0, 1)]
    monkeypatch.setattr(spot, "read_provenance", lambda data: {"jobs": jobs})
    monkeypatch.setattr(spot, "cpu_model", lambda: here)
    other = decode((folder / "training_seed0.json").read_bytes(), "training") | {"seed": 77}
    monkeypatch.setattr(Spot, "_run", lambda self, tasks: [encode_document(other)])
    finding = Spot(folder, root, "a", 1).training()
    assert finding.holds is holds
    assert "field" in finding.found


# --- What a change adds ----------------------------------------------------------------------------------------------


@pytest.fixture
def grown(tmp_path):
    """A project with one row, the commit of that, and another row added since."""
    root = make_project(tmp_path / "grown")
    make_row(root, root / "results", "handover-v1", "b-stat")
    first = commit_all(root)
    make_row(root, root / "results", "handover-v1", "b-rnd")
    commit_all(root)
    return root, first


@pytest.mark.parametrize(("row", "new"), [("b-stat", False), ("b-rnd", True)])
def test_rows_that_were_there_before_are_not_run(grown, unreplayed, row, new):
    root, first = grown
    table = verify_bundle(root / "results/handover-v1" / row, root)
    add_spot_checks([table], root, 4, False, "x", 1, Before(root, first))
    assert table.checks[-1].verdict == "pass"
    said = "4 of 16 episodes re-simulated" if new else f"no record is new since {first}"
    assert table.checks[-1].found.startswith(said)


@pytest.mark.parametrize("name", ["recipe.json", "episodes_seed0.jsonl", "episodes_seed1.jsonl"])
def test_records_and_what_they_claim_to_come_from_are_new_when_changed(grown, unreplayed, name):
    root, first = grown
    path = root / "results/handover-v1/b-stat" / name
    path.write_bytes(path.read_bytes().replace(b":0,", b":0 ,", 1) + b"\n")
    look = Spot(root / "results/handover-v1/b-stat", root, "x", 1, Before(root, first))
    assert not look._is_old(["episodes_seed0.jsonl", "episodes_seed1.jsonl"])


def test_a_change_is_what_came_since_histories_parted(grown):
    root, first = grown
    subprocess.run(["git", "-C", str(root), "branch", "-q", "side", first], check=True)
    assert Before(root, "side").commit == Before(root, first).commit == first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((4, False, "", None), "found an empty one"),
        ((None, True, "  ", None), "found an empty one"),
        ((None, False, "text", None), "--beacon must come with --spot or --retrain-one"),
        ((None, False, None, "HEAD"), "--added-since must come with --spot or --retrain-one"),
        ((4, False, None, "nowhere"), "found no such commit"),
        ((4, False, None, "--output=x"), "found no such commit"),
        ((4, False, None, ""), "found no such commit"),
    ],
)
def test_options_that_would_do_nothing_are_refused(world, options, message):
    root, _ = world
    with pytest.raises(RowproofError, match=message):
        read_options(root, *options)


@pytest.mark.parametrize(("depth", "known"), [(1, False), (2, True)])
def test_where_a_shallow_clone_begins_nothing_was_merged(grown, tmp_path, depth, known):
    root, _ = grown
    path, data = f"results/{ROW}/bundle.json", (root / "results" / ROW / "bundle.json").read_bytes()
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", f"--depth={depth}", root.as_uri(), str(clone)], check=True)
    if known:
        assert merged_at(clone, path, data) == git.tree_state(root).commit
    else:
        with pytest.raises(HistoryGap, match=r"shallow.* or name a beacon"):
            merged_at(clone, path, data)


def test_without_history_no_change_can_be_told(world, tmp_path):
    with pytest.raises(RowproofError, match="must have a history to look into"):
        read_options(tmp_path, 4, False, "x", "HEAD")


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5"])
def test_a_count_must_be_one(value, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["verify", f"--spot={value}", str(ROOT / "results/push-v1/b-stat")])
    assert ended.value.code == 2
    assert "must be a whole number of at least 1" in capsys.readouterr().err


@pytest.mark.slow
def test_a_committed_row_of_the_slow_engine_passes(capsys):
    assert main(["verify", "--quiet", "--spot", "4", "--beacon", "test", str(ROOT / "results/cocarry-v1/b-stat")]) == 0
    assert "FAIL" not in capsys.readouterr().out


@pytest.mark.slow
def test_forged_episodes_of_the_slow_engine_are_found(tmp_path):
    folder = shutil.copytree(ROOT / "results/cocarry-v1/b-stat", tmp_path / "b-stat")
    for path in folder.glob("episodes_seed*.jsonl"):
        records = [json.loads(text) for text in path.read_text().splitlines()]
        for record in records[::10]:
            record["success"] = not record["success"]
        path.write_text("".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records))
    finding = Spot(folder, ROOT, "public randomness", 2).episodes(40)
    assert finding.holds is False
    assert "field success" in finding.found


@pytest.mark.slow
def test_one_run_is_drawn_where_a_record_is_a_training():
    finding = Spot(ROOT / "results/nanogpt-speedrun-cpu-v1/n7-no-change", ROOT, "test", 2).episodes(40)
    assert finding.holds is True
    assert finding.found.startswith("1 of 3 runs re-simulated, 0 differ by more than the tier allows")
