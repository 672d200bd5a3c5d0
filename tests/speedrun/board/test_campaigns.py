"""Rows timed in two campaigns: what is measured in each, and what may be said across."""

import copy
import json
import math

import numpy as np
import pytest
from rowproof.records import encode_document
from rowproof.seeding import substream
from rowproof.speedrun.blocks import Pair, bootstrap_interval, ratio_of_medians
from rowproof.speedrun.campaigns import across, ratio_of_ratios, step_across
from rowproof.speedrun.checks import check_timing
from rowproof.speedrun.figures import timed
from rowproof.speedrun.page import CSV_COLUMNS, notes, sections, values
from rowproof.speedrun.plan_cell import with_candidates
from rowproof.speedrun.timing import measure
from rowproof.speedrun.verdicts import TWICE
from speedrun.board.test_page import entry, line_of, part
from speedrun.board.workbench import Runs, board_setup, cell_of, records_of, timing_of

BLOCKS = 7
# The machine of the second campaign is half as fast.
FIRST = {"r0": 60.0, "r2": 30.0, "r3": 10.0, TWICE: 10.0}
SECOND = {"r0": 120.0, "r3": 20.0, "r4": 16.0, TWICE: 20.0}
CAMPAIGNS = {"r0": 1, "r2": 1, "r3": 1, "r4": 2, "n1": 2, "n7": 1}


@pytest.fixture(scope="module")
def plan():
    """Task parameters; nobody changes them."""
    return cell_of(n_blocks=BLOCKS)


@pytest.fixture
def setup(plan):
    return board_setup(copy.deepcopy(plan))


def campaign_setup(setup, campaigns, campaign):
    """What the spine makes of a plan for one campaign (:func:`rowproof.boards.board_setup`)."""
    shared = setup["cell"]["baseline"], setup["cell"]["twice"]
    own = {row: name for row, name in setup["policies"].items() if campaigns[row] == campaign or name in shared}
    return {**setup, "policies": own, "cell": with_candidates(setup["cell"], own.values()), "campaign": campaign}


def timing(cell, times, campaign=None, spread=0.0):
    """A timing with the seconds of every candidate; blocks lie ``spread`` apart."""
    offsets = [1 + spread * (block * 3 % BLOCKS - BLOCKS // 2) for block in range(BLOCKS)]
    own = {
        name: [seconds * (offsets[(block + k) % BLOCKS]) for block in range(BLOCKS)]
        for k, (name, seconds) in enumerate(times.items())
    }
    found = timing_of(cell, own)
    return found if campaign is None else {**found, "campaign": campaign}


# --- The setup of a campaign ------------------------------------------------------------------------------------------


def test_a_campaign_has_its_own_rows_and_the_shared_ones(setup):
    before = copy.deepcopy(setup)
    found = campaign_setup(setup, CAMPAIGNS, 2)
    assert setup == before
    assert found["policies"] == {name: name for name in ("r0", "r3", "r4", "n1")} and found["campaign"] == 2
    assert list(found["cell"]["candidates"]) == ["r0", "r3", "r4", "n1"]
    assert {**found["cell"], "candidates": setup["cell"]["candidates"]} == setup["cell"]


def test_a_row_of_a_new_campaign_leaves_an_old_one_alone(setup):
    old = {row: 1 for row in setup["policies"] if row != "r4"}
    without = board_setup(cell_of(tuple(old), n_blocks=BLOCKS))
    assert campaign_setup(setup, {**old, "r4": 2}, 1) == campaign_setup(without, old, 1)


# --- Measuring one ----------------------------------------------------------------------------------------------------


@pytest.fixture
def runs(monkeypatch):
    return Runs(monkeypatch)


def test_a_campaign_times_its_own_rows_with_the_shared_ones(setup, runs):
    own = campaign_setup(setup, CAMPAIGNS, 2)
    records = {row: records_of(row, setup["cell"], 1.38 if row == "n1" else 1.33) for row in own["policies"]}
    found = json.loads(encode_document(measure(own, records, len)))
    assert found["campaign"] == 2
    assert set(found["scripts_sha256"]) == {"r0", "r3", "r4", TWICE}
    assert {name for name, _ in runs.trained} == {"r0", "r3", "r4"}
    for row in own["policies"]:
        assert check_timing(own, records[row], found) == []
    assert timed(records["r4"], found)["campaign"] == 2


def test_a_board_without_campaigns_measures_the_first(setup, runs):
    records = {row: records_of(row, setup["cell"], 1.38 if row == "n1" else 1.33) for row in setup["policies"]}
    found = measure(setup, records, len)
    assert found["campaign"] == 1 and check_timing(setup, records["r3"], found) == []
    assert campaign_setup(setup, dict.fromkeys(setup["policies"], 1), 1) == {**setup, "campaign": 1}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"campaign": 1}, ["campaign must be 2, found 1"]),
        ({"campaign": "2"}, ["campaign must be 2, found '2'"]),
        ({"campaign": True}, ["campaign must be 2, found True"]),
        ({}, []),
    ],
)
def test_the_campaign_of_a_timing_is_that_of_its_setup(setup, changes, said):
    own = campaign_setup(setup, CAMPAIGNS, 2)
    found = timing(setup["cell"], SECOND, 2) | changes
    assert check_timing(own, records_of("r4", setup["cell"]), found) == said


def test_a_timing_that_names_no_campaign_is_the_first(setup):
    records, found = records_of("r2", setup["cell"]), timing(setup["cell"], FIRST)
    assert check_timing(campaign_setup(setup, CAMPAIGNS, 1), records, found) == []
    assert timed(records, found)["campaign"] == 1
    own = campaign_setup(setup, CAMPAIGNS, 2)
    assert "campaign must be 2, found 1" in check_timing(own, records_of("r3", setup["cell"]), found)[0]


def test_a_row_of_another_campaign_is_a_stranger(setup):
    own = {**campaign_setup(setup, CAMPAIGNS, 2), "cell": setup["cell"]}
    found = timing(setup["cell"], {**SECOND, "r2": 60.0}, 2)
    said = check_timing(own, records_of("r4", setup["cell"]), found)
    assert said == ["scripts_sha256 must name rows of campaign 2 alone, found ['r2']"]


# --- Across campaigns -------------------------------------------------------------------------------------------------


def test_the_interval_follows_from_both_by_the_formula():
    low, high = ratio_of_ratios(6.0, (5.0, 8.0), 3.0, (2.5, 3.3))
    assert low == pytest.approx(2 / math.exp(math.sqrt(math.log(6 / 5) ** 2 + math.log(3.3 / 3) ** 2)))
    assert high == pytest.approx(2 * math.exp(math.sqrt(math.log(8 / 6) ** 2 + math.log(3 / 2.5) ** 2)))
    # The other way round it is the inverse.
    back = ratio_of_ratios(3.0, (2.5, 3.3), 6.0, (5.0, 8.0))
    assert back == (pytest.approx(1 / high), pytest.approx(1 / low))


def test_the_interval_is_wider_than_either():
    low, high = ratio_of_ratios(2.0, (1.9, 2.1), 1.0, (0.9, 1.1))
    assert low / 2 < 0.9 and high / 2 > 1.1
    assert ratio_of_ratios(2.0, (1.9, 2.1), 1.0, (1.0, 1.0)) == (pytest.approx(1.9), pytest.approx(2.1))


def test_an_estimate_outside_of_its_interval_narrows_nothing():
    assert ratio_of_ratios(2.0, (2.1, 2.2), 1.0, (1.0, 1.0)) == (2.0, pytest.approx(2.2))


@pytest.mark.slow
@pytest.mark.parametrize(("block_sd", "heavy"), [(0.0, False), (0.03, False), (0.0, True)])
def test_an_interval_of_95_percent_covers_about_as_often(block_sd, heavy):
    """Simulated campaigns of seven blocks; the rows are alike, and their ratio to the baseline differs by machine."""
    n_boards, run_sd, covered = 400, 0.02, 0
    stream = substream("test.campaigns", int(heavy) + 2 * int(block_sd > 0))
    for _ in range(n_boards):
        sides = []
        for ratio in (3.0, 6.0):
            noise = (stream.standard_t(3, (3, BLOCKS)) if heavy else stream.standard_normal((3, BLOCKS))) * run_sd
            block = stream.standard_normal(BLOCKS) * block_sd
            base = 60 * np.exp(block + (noise[0] + noise[2]) / 2)
            own = 60 / ratio * np.exp(block + noise[1])
            pairs = [Pair(*map(float, pair)) for pair in zip(base, own, strict=True)]
            sides.append((ratio_of_medians(pairs), bootstrap_interval(pairs)))
        (first, first_ends), (second, second_ends) = sides
        low, high = ratio_of_ratios(second, second_ends, first, first_ends)
        covered += low <= 2.0 <= high
    # Of 400 boards, 95 % +- 2.2 % is two standard errors; seven blocks make it a little wider than it need be.
    assert 0.93 <= covered / n_boards <= 0.99


def figures(cell, spread=0.0, **seconds):
    """What is told of rows of two campaigns."""
    one, two = timing(cell, FIRST, spread=spread), timing(cell, SECOND | seconds, 2, spread)
    own = {name: timed(records_of(name, cell), one) for name in ("r0", "r2", "r3")}
    return own | {name: timed(records_of(name, cell), two) for name in ("r4",)}


def test_rows_are_compared_through_the_baseline_of_each(plan):
    told = figures(plan)
    found = across(told["r4"], told["r2"])
    # 120 / 16 over 60 / 30.
    assert found == {
        "campaigns": [2, 1],
        "wall_ratio": 3.75,
        "ratio_ci95": [3.75, 3.75],
        "floor": 0.0,
        "says": ["faster"],
    }
    assert across(told["r2"], told["r4"])["wall_ratio"] == pytest.approx(1 / 3.75, abs=1e-6)


def test_faster_needs_the_wider_interval_above_both_floors(plan):
    told = figures(plan, 0.01)
    found = across(told["r4"], told["r2"])
    assert found["floor"] == round(told["r4"]["aa_floor"] + told["r2"]["aa_floor"], 6) > 0
    low, high = found["ratio_ci95"]
    assert (high / low) > max(row["ratio_ci95"][1] / row["ratio_ci95"][0] for row in (told["r4"], told["r2"]))
    assert found["says"] == ["faster"]
    # Two machines that show the same ratio to the baseline.
    told = figures(plan, 0.01, r4=60.0)
    assert across(told["r4"], told["r2"])["says"] == ["no difference shown"]
    # A little faster, but by less than what both intervals leave open.
    told = figures(plan, 0.01, r4=58.5)
    found = across(told["r4"], told["r2"])
    assert found["wall_ratio"] > 1 and found["says"] == ["no difference shown"]
    told = figures(plan, 0.01, r4=100.0)
    assert across(told["r4"], told["r2"])["says"] == []


@pytest.mark.parametrize("which", ["r4", "r2"])
def test_what_is_not_valid_claims_nothing(plan, which):
    told = figures(plan)
    told[which] = told[which] | {"says": []}
    assert across(told["r4"], told["r2"])["says"] == []


def test_the_baseline_of_another_campaign_can_be_compared_with(plan):
    told = figures(plan)
    assert across(told["r4"], told["r0"])["says"] == ["faster"]
    assert across(told["r4"], told["r0"])["wall_ratio"] == told["r4"]["wall_ratio"]


# --- The page ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows(plan):
    """Rows of a board whose r4 was timed later, with a script that patches r2."""
    one, two = timing(plan, FIRST, spread=0.01), timing(plan, SECOND, 2, 0.01)
    first = [entry(name, plan, one) for name in ("r0", "r2", "r3")]
    return [*first, entry("r4", plan, two, base="r2"), entry("n7", plan, one)]


def test_the_page_says_which_rows_were_timed_together(rows):
    text = "\n".join(notes(rows))
    one, two = ([line for line in notes(rows) if line.startswith(f"Campaign {n}: Measured on")] for n in (1, 2))
    assert one[0].endswith("Timed together: r0-row, r2-row, r3-row.") and two[0].endswith("Timed together: r4-row.")
    assert "only through the baseline of each" in text and "different jobs" not in text
    alone = notes([row for row in rows if row["row"] != "r4-row"])
    assert any(line.startswith("Measured on") and line.endswith("r3-row.") for line in alone)
    assert "Campaign" not in "\n".join(alone)


def test_the_page_compares_across_campaigns_with_the_interval(rows):
    text = "\n".join(sections(rows))
    step = step_across(rows[3], rows)
    low, high = step["ratio_ci95"]
    assert line_of(part(text, "Against a script of another campaign"), "r4") == [
        *("r4-row", "2", "r2", "1", f"{step['wall_ratio']:.3f} [{low:.3f}, {high:.3f}]", "faster"),
    ]
    assert "| r4-row |" not in part(text, "Against the script that it patches")
    assert line_of(part(text, "Against the script that it patches"), "r3")[1] == "r2"
    # r4 was to take as long as its base.
    assert line_of(part(text, "Against what was expected"), "r4")[-1] == "**down** (expected same)"
    table = [line for line in part(text, "Against a script of another campaign").splitlines() if line.startswith("|")]
    assert [line.count("|") for line in table] == [7, 7, 7]


def test_within_a_campaign_nothing_goes_through_the_baseline(rows):
    assert [step_across(row, rows) for row in rows[:3]] == [None] * 3
    assert step_across(rows[4], rows) is None, "it was not timed"
    assert step_across(rows[3], [rows[3]]) is None, "its base has no row"
    text = "\n".join(sections(rows[:3]))
    assert "another campaign" not in text


def test_the_csv_file_names_the_campaign(rows):
    found = [dict(zip(CSV_COLUMNS, values(row), strict=True))["campaign"] for row in rows]
    assert found == [1, 1, 1, 2, ""]


def test_two_measurements_of_one_campaign_are_told(rows):
    odd = [rows[0] | {"timing_sha256": "0" * 64}, *rows[1:]]
    assert any("different jobs" in note for note in notes(odd))
