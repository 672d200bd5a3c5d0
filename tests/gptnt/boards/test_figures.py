"""Figures of a row, and what its page shows of them."""

import copy

import pytest
from helpers import ROOT
from rowproof.boards import load_board
from rowproof.evidence.columns import columns_of
from rowproof.gptnt.evaluation import simulate
from rowproof.gptnt.figures import summarise
from rowproof.gptnt.grid import specs
from rowproof.gptnt.rates import pass_at_k, wilson


def record(mission, attempt, success, member="ann", **changes):
    metadata = {
        "member": member,
        "mission": mission,
        "modules": [mission.partition("-")[0]],
        "outcome": "solved" if success else "strikeout",
        "strikes": 0 if success else 3,
        "modules_solved": int(success),
        "remaining_ms": 30_000 if success else 10_000,
        "time_limit_ms": 60_000,
        "defuser": {"turns": 4, "game_actions": 2, "messages": 1, "errors": {}, "input_tokens": 4, "output_tokens": 4},
        "expert": {"turns": 3, "game_actions": 0, "messages": 3, "errors": {}, "input_tokens": 3, "output_tokens": 3},
        **changes,
    }
    return {"seed": attempt, "success": success, "metadata": metadata}


@pytest.fixture
def records():
    # Wires-1 is solved in one of two attempts, Maze-2 in both; with bob nothing is.
    return [
        record("Wires-1", 1, False),
        record("Wires-1", 2, True),
        record("Maze-2", 1, True),
        record("Maze-2", 2, True),
        *(record(mission, attempt, False, "bob") for mission in ("Wires-1", "Maze-2") for attempt in (1, 2)),
    ]


@pytest.mark.parametrize(("won", "n", "low", "high"), [(5, 10, 0.24, 0.76), (0, 10, 0.0, 0.28), (10, 10, 0.72, 1.0)])
def test_wilson(won, n, low, high):
    assert wilson(won, n) == pytest.approx((low, high), abs=0.005)


@pytest.mark.parametrize(
    ("n", "won", "k", "chance"), [(3, 1, 1, 1 / 3), (3, 1, 3, 1.0), (4, 2, 2, 5 / 6), (5, 0, 5, 0.0), (5, 5, 1, 1.0)]
)
def test_pass_at_k(n, won, k, chance):
    assert pass_at_k(n, won, k) == pytest.approx(chance)


@pytest.mark.parametrize("call", [lambda: wilson(3, 2), lambda: wilson(0, 0), lambda: pass_at_k(2, 1, 3)])
def test_impossible_counts_are_refused(call):
    with pytest.raises(ValueError, match="found"):
        call()


def test_rates_are_taken_per_pairing_over_missions(records):
    figures = summarise(records)
    assert figures["attempts"] == 2
    ann, bob = figures["pairings"]["ann"], figures["pairings"]["bob"]
    assert (ann["pass_at_1"], ann["defuse_rate"], ann["pass_at_attempts"]) == (0.5, 0.75, 1.0)
    assert (bob["pass_at_1"], bob["defuse_rate"], bob["pass_at_attempts"]) == (0.0, 0.0, 0.0)
    assert figures["all"]["defuse_rate"] == 0.375 and figures["all"]["pass_at_attempts"] == 0.5
    assert ann["outcomes"] == {"solved": 3, "strikeout": 1} and ann["strikes"] == 0.75
    # Time left counts on solved bombs alone, and is unknown where there are none.
    assert (ann["seconds_left_solved"], ann["time_left_share_solved"]) == (30.0, 0.5)
    assert bob["seconds_left_solved"] is None
    assert figures["modules"]["Maze"]["defuse_rate"] == 0.5 and figures["modules"]["Wires"]["games"] == 4


def test_errors_are_counted_per_turn(records):
    records[0]["metadata"]["expert"]["errors"] = {"unknown": 2}
    assert summarise(records)["all"]["errors_per_100_turns"] == {"unknown": pytest.approx(200 / (8 * 7))}


def test_figures_do_not_depend_on_the_order_of_records(records):
    assert summarise(records[::-1]) == summarise(records)


def test_nobody_takes_no_turns():
    setup = load_board(ROOT, "gptnt-reference-oracle-sync").row_setup("test-oracle")
    figures = summarise(list(simulate(setup, specs(setup)[:20])))
    assert figures["all"]["expert_turns"] == 0 and figures["all"]["pass_at_1"] == 1.0


def entry(records, row="scripted"):
    return {"row": row, "summary": {"family": summarise(records)}}


def test_the_page_shows_each_pairing_and_module(records):
    columns = columns_of("gptnt-v1")
    cells = columns.cells(entry(records))
    assert len(cells) == len(columns.HEADER)
    assert cells[:2] == ["0.250", "0.500 (k = 2)"]
    assert len(columns.values(entry(records))) == len(columns.CSV_COLUMNS)
    page = "\n".join(columns.sections([entry(records)]))
    assert "| scripted | bob | 0.000 [0.000, 0.658] | 4 | 0 | 0 | 4 | 3.00 |" in page
    assert "| Row | Maze | Wires |" in page and "| scripted | 0.50 | 0.25 |" in page
    assert columns.notes([entry(records)])


def test_bombs_of_several_modules_have_no_table_by_module(records):
    several = copy.deepcopy(records)
    several[0]["metadata"]["modules"] = ["Wires", "Maze"]
    assert "by module" not in "\n".join(columns_of("gptnt-v1").sections([entry(several)]))
