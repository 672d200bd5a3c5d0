"""Spot re-simulation: what is drawn, what it finds, and what may be said of what it did not find."""

import json
import shutil
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
from rowproof.errors import HistoryGap
from rowproof.evidence.verify import verify_bundle
from rowproof.spot import Spot, add_spot_checks, compare, drawn, merged_at, upper_bound

ROW = "handover-v1/b-rnd"


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
    finding = compare({i: (line(True), line(True)) for i in range(40)}, 1750, "outcome")
    assert finding.holds is True
    assert finding.found == (
        "40 of 1,750 records re-simulated, 0 differ in success and 0 in bytes: "
        "with 95% confidence fewer than 7.2% are false"
    )


def test_where_digits_are_not_promised_success_decides():
    other_digits = {0: (line(True, 1.0), line(True, 1.5)), 1: (line(False), line(False))}
    assert compare(other_digits, 9, "outcome").holds is True
    assert "0 differ in success and 1 in bytes" in compare(other_digits, 9, "outcome").found
    assert compare(other_digits, 9, "exact").holds is False


@pytest.mark.parametrize("tier", ["exact", "outcome", "statistical"])
def test_a_changed_success_fails_in_every_tier(tier):
    finding = compare({5: (line(True), line(False))}, 9, tier)
    assert finding.holds is False
    assert "first record 5: recorded" in finding.found


def test_nothing_drawn_shows_nothing():
    assert compare({}, 9, "exact").holds is None


def test_all_of_a_row_needs_no_bound():
    assert compare({0: (line(True), line(True))}, 1, "exact").found.endswith("all of them hold")


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
    assert finding.found.startswith("5 of 16 records re-simulated, 0 differ in their bytes")


def test_forged_records_are_found(world, unreplayed, tmp_path):
    root, _ = world
    folder = forged(world, tmp_path, lambda record: record.update(success=not record["success"]))
    finding = Spot(folder, root, "public randomness", 1).episodes(8)
    assert finding.holds is False


@pytest.mark.slow
def test_a_training_comes_out_again_and_an_edited_one_does_not(world, tmp_path):
    root, _ = world
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
    assert (table.checks[-1].id, table.checks[-1].verdict) == ("records:spot", "unknown")
    assert table.checks[-1].found == "not run: the row does not verify"


def test_without_history_and_beacon_nothing_is_shown(world, unreplayed, tmp_path):
    root, _ = world
    bare = shutil.copytree(root, tmp_path / "bare", ignore=shutil.ignore_patterns(".git"))
    table = verify_bundle(bare / "results" / ROW, bare)
    add_spot_checks([table], bare, 4, False, None, 1)
    assert table.checks[-1].verdict == "unknown"
    assert "name one with --beacon" in table.checks[-1].found


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
