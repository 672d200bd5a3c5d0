"""The page of a board of the CPU track."""

import re

import pytest
from rowproof.evidence.columns import MISSING, columns_of
from rowproof.hashing import sha256_hex
from rowproof.records import encode_document
from rowproof.speedrun import page
from rowproof.speedrun.figures import summarise, timed
from rowproof.speedrun.page import cells, notes, sections, values
from rowproof.speedrun.verdicts import TWICE
from speedrun.board.workbench import cell_of, records_of, timing_of

BLOCKS = 3
TIMES = {"r0": 60.0, "r2": 30.0, "r3": 10.0, "r4": 10.5, TWICE: 10.0}
LOSSES = {"n1": 1.38}


def entry(name, cell, timing, **metadata):
    records = records_of(name, cell, LOSSES.get(name, 1.33), **metadata)
    return {
        "row": f"{name}-row",
        "policy": {"name": name},
        "summary": {"family": summarise(records)},
        "timed": timed(records, timing),
        "timing_sha256": sha256_hex(encode_document(timing)),
    }


@pytest.fixture(scope="module")
def board():
    """The rows by the names of their candidates; nobody changes them."""
    cell = cell_of(n_blocks=BLOCKS)
    timing = timing_of(cell, {name: [seconds] * BLOCKS for name, seconds in TIMES.items()})
    return {name: entry(name, cell, timing) for name in ("r0", "r2", "r3", "r4", "n1", "n7")}


@pytest.fixture
def rows(board):
    return list(board.values())


def line_of(text, row):
    """The cells of the first table line of a row."""
    found = re.search(rf"^\| {row}-row \|.*$", text, re.MULTILINE)
    assert found, f"no line of {row} in\n{text}"
    return [cell.strip() for cell in found[0].strip("|").split("|")]


def part(text, title):
    return text.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_the_engine_has_this_page():
    assert columns_of("nanogpt-speedrun-cpu-v1") is page


def test_every_row_has_a_cell_for_each_heading_and_a_value_for_each_name(rows):
    for row in rows:
        assert len(cells(row)) == len(page.HEADER) and all(type(cell) is str and cell for cell in cells(row))
        assert len(values(row)) == len(page.CSV_COLUMNS) and None not in values(row)


def test_cells_of_a_timed_row(board):
    assert cells(board["r3"]) == ["ok", "1.330", "6.00", "6.00", "6.00", "4.50", "valid, faster"]
    assert cells(board["r0"])[-1] == "baseline"


def test_cells_of_a_row_that_is_not_timed(board):
    missed = ["threshold_missed", "1.380", "6.00", "6.00", MISSING, "0.00", MISSING]
    assert cells(board["n1"]) == missed
    assert cells(board["n7"]) == ["noop_patch", *[MISSING] * 4, "0.00", MISSING]


def test_values_stand_under_their_names(board):
    found = dict(zip(page.CSV_COLUMNS, values(board["r3"]), strict=True))
    assert (found["outcome"], found["verdict"], found["says"]) == ("ok", "pass", "valid; faster")
    assert (found["wall_ratio"], found["ratio_ci_low"], found["ratio_ci_high"]) == (6.0, 6.0, 6.0)
    assert (found["reward"], found["reward_flops"], found["reward_code_variant"]) == (4.5, 4.5, 6.3)
    assert (found["train_tokens"], found["n_pairs"], found["sign_wins"], found["fsr"]) == (307_200, 3, 3, "")
    untimed = dict(zip(page.CSV_COLUMNS, values(board["n7"]), strict=True))
    assert (untimed["outcome"], untimed["reward"]) == ("noop_patch", 0.0)
    assert {untimed[name] for name in ("wall_ratio", "ratio_ci_low", "val_loss", "says", "verdict")} == {""}


def test_the_clock_may_find_another_outcome_than_the_records():
    cell = cell_of(n_blocks=BLOCKS)
    timing = timing_of(cell, {name: [seconds] * BLOCKS for name, seconds in TIMES.items()})
    row = entry("r3", cell, timing | {"peak_gflops": 1.0})
    assert row["summary"]["family"]["outcome"] == "ok"
    assert cells(row)[0] == values(row)[0] == "implausible" and cells(row)[-2:] == ["0.00", MISSING]
    assert line_of(part("\n".join(sections([row])), "Against what was expected"), "r3")[2] == (
        "**implausible** (expected ok)"
    )


def test_notes_tell_machine_and_noise(rows):
    text = "\n".join(notes(rows))
    assert "at or below 1.35 nats" in text
    assert "Measured on 2 cores of a model, 2026-01-02." in text
    assert "r3 against itself 1.000 [1.000, 1.000] (valid, no difference shown); noise floor 0.000" in text
    assert "different jobs" not in text
    assert all("\n" not in note for note in notes(rows))


def test_notes_without_timed_rows_tell_no_machine(board):
    rows = [board["n7"], board["n1"]]
    assert not any("Measured on" in note for note in notes(rows))
    assert len(notes(rows)) == len(notes(list(board.values()))) - 1


def test_rows_of_two_measurements_are_said(board):
    assert any("different jobs" in note for note in notes([board["r0"], board["r3"] | {"timing_sha256": "0" * 64}]))


def test_every_table_has_every_row(rows):
    text = "\n".join(sections(rows))
    for title in ("Loss and cost", "Times", "Against what was expected"):
        for row in rows:
            line_of(part(text, title), row["policy"]["name"])
    assert "None" not in text and "nan" not in text
    assert all(part.endswith("\n") for part in sections(rows))
    # All lines of a table have as many cells as its head.
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({line.count("|") for line in table.splitlines()}) == 1, table


def test_loss_and_cost(rows):
    text = part("\n".join(sections(rows)), "Loss and cost")
    assert line_of(text, "r3") == [
        *("r3-row", "1.329 1.330 1.331", "6.9", "pass", "0.003", "307,200", "0.400", "174,976", "4.50"),
    ]
    assert line_of(text, "n7") == ["n7-row", " ".join([MISSING] * 3), *[MISSING] * 6, "0.00"]


def test_times(rows):
    text = part("\n".join(sections(rows)), "Times")
    assert line_of(text, "r2") == ["r2-row", "30.00", "2.00", "2.00", "2.00", "2.00", "3 of 3", MISSING, MISSING]
    assert line_of(text, "r3")[-1] == "low_tokens"
    assert line_of(text, "n1") == ["n1-row", *[MISSING] * 7, "low_tokens"]


def test_what_came_out_otherwise_than_expected_is_in_bold(rows):
    text = part("\n".join(sections(rows)), "Against what was expected")
    # Of r2 the base is not on this board.
    assert line_of(text, "r2") == ["r2-row", "r1", "ok", MISSING, MISSING]
    assert line_of(text, "r3") == ["r3-row", "r2", "ok", "**down** (expected same)", "**down** (expected same)"]
    assert line_of(text, "r4") == ["r4-row", "r3", "ok", "same", "**up** (expected same)"]
    assert line_of(text, "n1") == ["n1-row", "r3", "threshold_missed", "same", MISSING]
    assert line_of(text, "n7") == ["n7-row", "r0", "noop_patch", MISSING, MISSING]


def test_steps_of_the_ladder_are_tested_together(rows):
    text = part("\n".join(sections(rows)), "Against the script that it patches")
    # Two steps: the p value of 3 blocks won, 1/8, is doubled; that of none stays at 1.
    assert line_of(text, "r3") == ["r3-row", "r2", "3.000 [3.000, 3.000]", "3 of 3", "0.250"]
    assert line_of(text, "r4") == ["r4-row", "r3", "0.952 [0.952, 0.952]", "0 of 3", "1.000"]
    assert "Holm's correction for 2 steps; 3 blocks" in text
    assert "| r2-row |" not in text


def test_without_steps_there_is_no_table_of_them(board):
    text = "\n".join(sections([board["r0"], board["r2"], board["n7"]]))
    assert "Against the script that it patches" not in text
    assert "Share of the 2 patches that are valid and surely faster than 1.0 times: 0.50, 1.1 times: 0.50" in text


def test_the_share_of_fast_patches_leaves_the_baseline_out(rows):
    assert sections(rows)[-1] == (
        "Share of the 5 patches that are valid and surely faster than 1.0 times: 0.60, 1.1 times: 0.60, "
        "1.5 times: 0.60, 2.0 times: 0.40.\n"
    )


def test_a_board_without_timed_rows_has_a_page(board):
    rows = [board["n1"], board["n7"]]
    text = "\n".join(sections(rows))
    assert "Share of the 2 patches that are valid and surely faster than 1.0 times: 0.00" in text
    assert line_of(part(text, "Times"), "n7") == ["n7-row", *[MISSING] * 8]
