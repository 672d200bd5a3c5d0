"""Metrics against values worked out by hand."""

import json
import math

import pytest
from gptnt.players.workbench import Puppet
from gptnt.recordings.workbench import played
from rowproof.gptnt import metrics
from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.database import build_db, connect
from rowproof.gptnt.database import runs as read_runs
from rowproof.gptnt.metrics import (
    Estimate,
    bootstrap,
    compare,
    defuse_rate,
    first_attempt_rate,
    group_metrics,
    group_of,
    pass_at_k,
    pass_rates,
    render,
    results,
    run_cost,
    select,
    shares,
    wilson,
)
from rowproof.gptnt.players.turns import Answer, AnswerError, Usage, do_nothing, send_message
from rowproof.gptnt.recordings import step_totals, write_game
from rowproof.llm.cost import Prices


def totals(**changes):
    base = {"turns": 4, "game_actions": 1, "messages": 1, "do_nothings": 2, "lost_turns": 1, "errors": {"unknown": 1}}
    tokens = {"input_tokens": 400, "cache_read_tokens": 0, "output_tokens": 40}
    reflection = {"turns": 1, "errors": {}, "input_tokens": 100, "cache_read_tokens": 0, "output_tokens": 10}
    return base | tokens | {"reflection": reflection} | changes


def run(mission="1|Wires", outcome="solved", attempt=1, **changes):
    """The row of a session, as far as metrics look at it."""
    return {
        "suite_name": "suite",
        "suite_revision": 1,
        "defuser_capability_fingerprint": "d",
        "expert_capability_fingerprint": "e",
        "defuser_name": "cutter",
        "expert_name": "reader",
        "mission_key": mission,
        "outcome": outcome,
        "attempt": attempt,
        "is_hard_crash": False,
        "session_id": f"{mission}/{attempt}/{outcome}",
        "attempt_name": f"{mission}/{attempt}",
        "experiment_descriptor": {"start_time": 0.0},
        "communication_style": "sync",
        "modules": mission.partition("|")[2].split(","),
        "strike_count": 0,
        "seconds_remaining": 30.0,
        "time_limit": 120,
        "num_modules_solved": int(outcome == "solved"),
        "n_modules": 1,
        "n_rounds": 4,
        "totals": {"defuser": totals(), "expert": totals(errors={}, lost_turns=0)},
        **changes,
    }


def of(runs, missions=None, **settings):
    runs = list(runs)
    return group_metrics(group_of(runs[0]), runs, missions, **settings)


# ---- formulas --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        (5, 10, 0.2366, 0.7634),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (1, 1, 0.2065, 1.0),
        (81, 263, 0.2553, 0.3662),
    ],
)
def test_wilson(successes, n, low, high):
    found = wilson(successes, n)
    assert (found.value, found.method, found.n, found.seed) == (successes / n, "wilson", n, None)
    assert found.low == pytest.approx(low, abs=5e-5) and found.high == pytest.approx(high, abs=5e-5)


def test_wilson_at_the_edges():
    assert wilson(0, 0) == Estimate(None)
    for successes, n in ((2, 1), (-1, 1)):
        with pytest.raises(ValueError, match="there must be units"):
            wilson(successes, n)


def test_pass_at_k_is_the_share_of_draws_with_a_success():
    assert pass_at_k(3, 1, 1) == pytest.approx(1 / 3)
    assert pass_at_k(3, 1, 2) == pytest.approx(2 / 3)
    assert pass_at_k(3, 1, 3) == 1.0
    assert pass_at_k(5, 2, 2) == pytest.approx(1 - 3 / 10)
    assert (pass_at_k(4, 0, 4), pass_at_k(4, 4, 1)) == (0.0, 1.0)
    for n, c, k in ((1, 1, 2), (3, 4, 1), (3, 1, 0)):
        with pytest.raises(ValueError, match="there must be"):
            pass_at_k(n, c, k)


def test_pass_at_k_is_unbiased():
    n, p = 4, 0.3
    for k in (1, 2, 3):
        expected = sum(math.comb(n, c) * p**c * (1 - p) ** (n - c) * pass_at_k(n, c, k) for c in range(n + 1))
        assert expected == pytest.approx(1 - (1 - p) ** k)


def test_the_bootstrap_keeps_missions_whole():
    pairs = [(0.0, 1), (1.0, 1)] * 50
    found = bootstrap(pairs, "test")
    assert (found.value, found.n, found.seed) == (0.5, 100, 0)
    # Near the interval of the normal distribution for a mean of 100.
    assert found.low == pytest.approx(0.5 - 1.96 * 0.05, abs=0.015)
    assert found.high == pytest.approx(0.5 + 1.96 * 0.05, abs=0.015)
    assert bootstrap(pairs, "test") == found != bootstrap(pairs, "test", seed=1)
    assert bootstrap([], "test") == Estimate(None)
    assert bootstrap([(2.0, 1), (1.0, 3)], "ratio").value == 0.75


def test_shares_sum_to_one():
    assert shares({"a": 1, "b": 2, "c": 0}) == {"a": 1 / 3, "b": 2 / 3, "c": 0.0}
    assert shares({"a": 0}) == {"a": 0.0}


# ---- which runs count ------------------------------------------------------------------------------------------


def test_crashed_detonated_and_incomplete_runs_do_not_count():
    bad = [run("2|Maze", "detonated"), run("3|Maze", "incomplete"), run("4|Maze", is_hard_crash=True)]
    good = [run(f"{5 + n}|Maze", outcome) for n, outcome in enumerate(("solved", "timeout", "strikeout"))]
    assert select([*bad, *good]) == good
    found = of([*bad, *good])
    assert found["invalid"] == {"crashed": 1, "detonated": 1, "incomplete": 1} and found["runs"] == 3


def test_of_an_attempt_only_the_newest_valid_session_counts():
    old, new = (run(session_id=name, experiment_descriptor={"start_time": t}) for name, t in (("z", 1.0), ("a", 2.0)))
    crashed = run(session_id="b", is_hard_crash=True, experiment_descriptor={"start_time": 3.0})
    assert select([new, crashed, old]) == select([old, new, crashed]) == [new]


def test_attempts_and_setups_are_apart():
    runs = [run(), run(attempt=2), run(defuser_capability_fingerprint="d2"), run(suite_revision=2)]
    assert len(select(runs)) == 4 and len({group_of(one) for one in runs}) == 3


# ---- rates -----------------------------------------------------------------------------------------------------


def test_one_attempt_per_mission_gives_a_wilson_interval():
    runs = [run(f"{seed}|Wires", "solved" if seed < 5 else "timeout") for seed in range(10)]
    assert defuse_rate(runs, "x") == first_attempt_rate(runs) == wilson(5, 10)
    assert not of(runs)["defuse_rate"]["few_missions"] and of(runs[1:])["defuse_rate"]["few_missions"]


def test_missions_weigh_alike_however_many_attempts_they_have():
    runs = [run("1|Wires", attempt=n) for n in (1, 2, 3)] + [run("2|Wires", "timeout")]
    found = defuse_rate(runs, "x")
    assert (found.value, found.method, found.n) == (0.5, "bootstrap over missions", 2)


def test_the_leaderboard_looks_at_attempt_one_alone():
    runs = [run("1|Wires", "timeout"), run("1|Wires", attempt=2), run("2|Wires"), run("3|Wires", attempt=2)]
    assert first_attempt_rate(runs) == wilson(1, 2)


def test_pass_at_k_of_runs():
    runs = [run("1|Wires", "solved" if n == 1 else "timeout", n) for n in (1, 2, 3)]
    runs += [run("2|Wires", "strikeout", n) for n in (1, 2, 3)]
    found = pass_rates(runs, "x")
    assert list(found) == [2, 3] and found[2]["value"] == pytest.approx(1 / 3) and found[3]["value"] == 0.5
    short = pass_rates([*runs, run("3|Wires")], "x")
    assert (short[2]["value"], short[2]["short"]) == (None, 1)
    assert pass_rates([run()], "x") == {}


def test_order_of_rows_does_not_matter():
    runs = [run(f"{s}|Wires", ("solved", "timeout")[(s + n) % 2], n, strike_count=s) for s in range(4) for n in (1, 2)]
    assert of(runs) == of(runs[::-1])


def test_two_players_on_the_same_missions():
    first = [run(f"{s}|Wires", "solved" if s < 8 else "timeout") for s in range(10)]
    second = [run(f"{s}|Wires", "solved" if s < 5 else "timeout", defuser_name="other") for s in range(12)]
    found = compare(first, second, "x")
    assert (found.value, found.n) == (pytest.approx(0.3), 10) and 0 <= found.low < 0.3 < found.high
    same = compare(first, first, "x")
    assert (same.value, same.low, same.high) == (0.0, 0.0, 0.0)


# ---- a group ---------------------------------------------------------------------------------------------------


def test_coverage_names_what_is_missing():
    found = of([run("1|Wires"), run("9|Maze")], ["1|Wires", "2|Wires", "3|Wires", "4|Wires"])["coverage"]
    assert found == {
        "missions_played": 2,
        "missions": 4,
        "share": 0.25,
        "missing": ["2|Wires", "3|Wires", "4|Wires"],
        "unknown": ["9|Maze"],
    }
    assert of([run()])["coverage"]["missions"] is None


def test_strikes_time_and_modules():
    runs = [
        run("1|Wires", strike_count=1, seconds_remaining=60.0, n_modules=2, num_modules_solved=2),
        run("2|Wires", seconds_remaining=30.0, n_modules=4, num_modules_solved=4),
        run("3|Wires", "strikeout", strike_count=3, seconds_remaining=90.0, n_modules=4, num_modules_solved=1),
    ]
    found = of(runs)
    assert found["strikes"]["value"] == pytest.approx(4 / 3) and found["strikes_median_per_run"] == 1
    assert found["seconds_remaining_per_solved_run"]["value"] == 45.0
    assert found["time_left_share_per_solved_run"]["value"] == pytest.approx(0.375)
    assert found["modules_solved_share"]["value"] == pytest.approx((1 + 1 + 0.25) / 3)
    assert found["modules_solved"]["value"] == pytest.approx(7 / 3)
    assert found["outcome_shares"] == {"solved": 2 / 3, "timeout": 0.0, "strikeout": 1 / 3}
    assert found["rounds"]["value"] == 4.0


def test_a_group_that_solved_nothing_has_no_time_left():
    found = of([run(outcome="timeout")])
    assert found["seconds_remaining_per_solved_run"]["value"] is None
    assert found["roles"]["defuser"]["input_tokens_per_solved_run"] is None


def test_turns_errors_and_tokens_by_role():
    runs = [run("1|Wires"), run("2|Wires", "timeout", totals={"defuser": totals(input_tokens=600), "expert": totals()})]
    defuser = of(runs)["roles"]["defuser"]
    assert defuser["turns_per_run"] == 4 and defuser["messages_per_run"] == 1
    assert (defuser["input_tokens_per_run"], defuser["input_tokens_per_solved_run"]) == (500, 400)
    assert defuser["errors_per_100_turns"] == {"unknown": 25.0} and defuser["lost_turn_share"] == 0.25
    assert defuser["action_shares"] == {"game_actions": 0.25, "messages": 0.25, "do_nothings": 0.5}
    assert of(runs)["roles"]["expert"]["errors_per_100_turns"] == {"unknown": 12.5}


def test_cost_is_taken_of_each_player_at_its_own_price():
    dear = Prices(input_per_million=10.0, output_per_million=100.0)
    cheap = Prices(input_per_million=1.0, output_per_million=2.0, cached_input_per_million=0.5)
    prices = {"cutter": dear, "reader": cheap}
    assert run_cost(run(), prices) == pytest.approx({"defuser": 0.005 + 0.005, "expert": 0.0005 + 0.0001})
    assert run_cost(run(), {"cutter": dear}) is None
    assert of([run()], prices=prices)["cost_per_run"] == pytest.approx(0.0106)
    assert of([run()])["cost_per_run"] is None
    cached = {"defuser": totals(), "expert": totals(cache_read_tokens=400)}
    assert run_cost(run(totals=cached), prices)["expert"] == pytest.approx(0.0003 + 0.0001)
    # The price of cached input is not known for the other.
    assert run_cost(run(totals=cached | {"defuser": totals(cache_read_tokens=1)}), prices) is None


def test_single_module_suites_have_rates_by_module():
    runs = [run("1|Wires"), run("2|Wires", "timeout"), run("1|Maze")]
    modules = of(runs)["modules"]
    assert {name: rate["value"] for name, rate in modules.items()} == {"Maze": 1.0, "Wires": 0.5}
    assert of([*runs, run("1|Maze,Wires")])["modules"] == {}


# ---- totals of a session ---------------------------------------------------------------------------------------


def test_the_look_back_is_apart():
    game = played(
        defuser=Puppet(
            lambda turn: Answer(do_nothing(), usage=Usage(7, 3)),
            lambda task: Answer(send_message("So."), errors=("reasoning_absent",), usage=Usage(100, 50)),
        )
    )
    total = step_totals(step for record in game.records.values() for step in record["steps"])["defuser"]
    assert total["turns"] == total["do_nothings"] == game.summary["n_rounds"] == 27
    assert (total["input_tokens"], total["output_tokens"], total["errors"], total["messages"]) == (189, 81, {}, 0)
    assert total["reflection"] == {
        "turns": 1,
        "errors": {"reasoning_absent": 1},
        "input_tokens": 100,
        "cache_read_tokens": 0,
        "output_tokens": 50,
    }


def test_lost_turns():
    def answer(turn):
        if turn.number == 1:
            raise AnswerError("server_error")
        if turn.number == 2:
            raise AnswerError("guardrail_violation")
        # A clumsy answer that wants nothing loses nothing.
        return Answer(do_nothing(), errors=("reasoning_absent",))

    game = played(defuser=Puppet(answer))
    total = step_totals(game.records["defuser"]["steps"])["defuser"]
    assert total["lost_turns"] == 2
    assert total["errors"] == {"guardrail_violation": 1, "reasoning_absent": 25, "server_error": 1}


# ---- the command -----------------------------------------------------------------------------------------------


@pytest.fixture
def database(tmp_path):
    for attempt in (1, 2):
        write_game(played(attempt=attempt), tmp_path / "records")
    write_game(played(alone=True, defuser=Puppet()), tmp_path / "records")
    write_game(played(Mission(851, 60, ("Maze",), 2), defuser=Puppet(lambda turn: 1 / 0)), tmp_path / "records")
    broken = played(Mission(851, 60, ("Maze",), 2), expert=Puppet(lambda turn: 1 / 0))
    write_game(broken, tmp_path / "records")
    build_db(tmp_path / "records", tmp_path / "games.duckdb")
    return tmp_path / "games.duckdb"


def test_results_of_a_database(database):
    lines = []
    assert metrics.run(database, {("workbench", 1): ["234|Wires", "851|Maze"]}, show=lines.append) == 0
    text = lines[0].splitlines()
    assert text[0].split() == ["#", "outcome", "defuser", "expert", "comm", "mission"]
    assert [line.split()[:4] for line in text[1:4]] == [
        ["1", "timeout", "scripted", "solo"],
        ["2", "solved", "scripted", "scripted"],
        ["3", "solved", "scripted", "scripted"],
    ]
    assert text[4] == "invalid sessions: 1" and text[5].startswith("  crashed: workbench[rev1]")
    assert "coverage" in lines[0] and "1 of 2 missions" in lines[0] and "pass@2" in lines[0]


def test_results_as_json(database):
    lines = []
    metrics.run(database, {}, as_json=True, show=lines.append)
    found = json.loads(lines[0])
    assert [one["outcome"] for one in found["runs"]] == ["timeout", "solved", "solved"]
    assert [one["why"] for one in found["invalid"]] == ["crashed"]
    assert [(one["expert"], one["defuse_rate"]) for one in found["pairings"]] == [("", 0.0), ("scripted", 1.0)]
    with connect(database) as connection:
        assert json.loads(json.dumps(results(read_runs(connection), {}))) == found


def test_no_games_yet():
    assert render(results([], {})) == "no games yet: play some and run rowproof build-db"
