"""Timing the rows of a board in turns, with runs that are looked up."""

import json

import pytest
from rowproof.errors import ConfigError, RowproofError
from rowproof.records import encode_document
from rowproof.speedrun.checks import check_timing
from rowproof.speedrun.figures import timed
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.timing import measure
from rowproof.speedrun.verdicts import TWICE
from speedrun.board.workbench import SEEDS, Runs, board_setup, cell_of, records_of

LOSSES = {"n1": 1.38}


@pytest.fixture
def setup():
    return board_setup(cell_of())


@pytest.fixture
def records(setup):
    return {name: records_of(name, setup["cell"], LOSSES.get(name, 1.33)) for name in setup["policies"]}


@pytest.fixture
def runs(monkeypatch):
    return Runs(monkeypatch)


def test_all_that_met_the_target_run_in_blocks(setup, records, runs):
    lines = []
    timing = measure(setup, records, lines.append)
    assert set(timing["scripts_sha256"]) == {"r0", "r2", "r3", "r4", TWICE}
    # A warm-up, then three blocks of the baseline at both ends and four runs between.
    assert len(timing["runs"]) == len(lines) == 1 + 3 * 6
    assert lines[0].startswith("warm-up: r0: ok, 60.") and lines[1].startswith("block 0: r0: ok, ")
    assert [seed for _, seed in runs.trained[1:]] == [seed for seed in SEEDS for _ in range(6)]
    assert timing["deterministic"] and timing["peak_gflops"] == 100.0


def test_what_is_measured_is_right_for_every_row(setup, records, runs):
    timing = json.loads(encode_document(measure(setup, records, len)))
    for name, own in records.items():
        assert check_timing(setup, own, timing) == [], name
        assert timed(own, timing)["timed"] is (name not in ("n1", "n7"))


def test_other_weights_than_in_the_verification_runs_are_noted(setup, records, runs):
    runs.drift = "!"
    timing = measure(setup, records, len)
    assert not timing["deterministic"]
    assert check_timing(setup, records["r3"], timing) == []
    assert timed(records["r3"], timing)["outcome"] == "nondeterministic"


@pytest.mark.parametrize("name", ["r0", "r3"])
def test_baseline_and_the_one_that_runs_twice_must_meet_the_target(setup, records, runs, name):
    records[name] = records_of(name, setup["cell"], 1.36)
    with pytest.raises(RowproofError, match=f"{name} must meet the target before anything is timed"):
        measure(setup, records, len)
    assert runs.trained == []


def test_a_timed_run_that_fails_ends_the_measurement(setup, records, runs):
    runs.outcomes["r4"] = Outcome.TIMEOUT
    with pytest.raises(RowproofError, match="found timeout of r4: as the test has it"):
        measure(setup, records, len)
    assert runs.trained[-1][0] == "r4"


def test_another_script_than_planned_is_not_timed(setup, records, runs):
    setup["cell"]["candidates"]["r4"]["script_sha256"] = "0" * 64
    with pytest.raises(ConfigError, match="r4: its script must have the digest 0000"):
        measure(setup, records, len)
    assert runs.trained == []


def test_a_row_that_the_plan_has_no_script_of_is_not_timed(setup, records, runs):
    del setup["cell"]["candidates"]["r4"]
    with pytest.raises(ConfigError, match="candidates must have r4, found r0, r2, r3, n1, n7"):
        measure(setup, records, len)
    assert runs.trained == []
