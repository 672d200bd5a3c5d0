"""Rows of gptnt boards: which games they consist of, what a record says, and what is refused."""

import copy
import json
from itertools import permutations

import pytest
from helpers import ROOT
from rowproof.boards import load_board, load_config
from rowproof.errors import ConfigError
from rowproof.families import engines
from rowproof.gptnt import evaluation
from rowproof.gptnt.checks import check_record
from rowproof.gptnt.evaluation import games, simulate
from rowproof.gptnt.grid import NOBODY, mission_key, specs
from rowproof.gptnt.manual import Manual
from rowproof.gptnt.player_config import load_player
from rowproof.gptnt.suite_lock import frozen_suite, load_lock
from rowproof.gptnt.suites import BENCHMARK
from rowproof.records import encode_line

BOARDS = [name for name in load_config(ROOT)[0].boards if name.startswith("gptnt-")]


def setup_of(path, **changes):
    board, _, row = path.rpartition("/")
    return {**load_board(ROOT, board).row_setup(row), **changes}


@pytest.fixture(scope="module")
def pair():
    """A row of two partners, cut down to one attempt."""
    setup = setup_of("gptnt-single-pairwise-sync/scripted-careless", seeds=[2])
    setup["members"] = setup["members"][:2]
    return setup


@pytest.fixture(scope="module")
def played(pair):
    """Its units and records."""
    units = specs(pair)
    return units, list(simulate(pair, units))


# ---- boards ----------------------------------------------------------------------------------------------------


def test_every_suite_has_a_board():
    assert {name.removeprefix("gptnt-") for name in BOARDS} == {
        *BENCHMARK,
        "reference-oracle-sync",
        "reference-lottery-sync",
    }


@pytest.mark.parametrize("board", BOARDS)
def test_plans_pin_what_is_frozen(board):
    plan = load_board(ROOT, board).plan
    frozen = frozen_suite(load_lock(ROOT), plan.cell["suite"], plan.cell["revision"])
    assert plan.cell["suite_digest"] == frozen.digest
    assert plan.cell["manual_digest"] == Manual.read().digest
    assert plan.cell["players"] == {name: load_player(ROOT, name).fingerprint for name in plan.cell["players"]}
    assert plan.grid.episodes_per_partner == len(frozen.missions)


@pytest.mark.parametrize("board", BOARDS)
def test_every_row_has_each_mission_with_each_partner_in_each_attempt(board):
    loaded = load_board(ROOT, board)
    for row in loaded.board.rows:
        setup = loaded.row_setup(row)
        units = specs(setup)
        keys = {(u["seed"], u["member"], u["mission"]) for u in units}
        missions = {mission_key(m) for m in frozen_suite(load_lock(ROOT), loaded.plan.cell["suite"]).missions}
        assert keys == {(s, m["name"], key) for s in setup["seeds"] for m in setup["members"] for key in missions}
        assert len(units) == len(keys) == len({(u["seed"], u["episode_idx"]) for u in units})
        # Equal numbers start alike, whoever plays.
        assert len({(u["initial_state_seed"], u["mission"]) for u in units}) == len(missions)


# ---- games -----------------------------------------------------------------------------------------------------


def test_records_agree_with_their_specs_and_themselves(pair, played):
    units, records = played
    assert len(records) == 220
    for unit, record in zip(units, records, strict=True):
        assert check_record(pair, unit, record) == []
    outcomes = {record["metadata"]["outcome"] for record in records}
    assert {"solved", "strikeout"} <= outcomes, "a careless player must win and lose"


def test_a_record_depends_on_its_own_unit_alone(pair, played):
    units, records = played
    chosen = [3, 150, 7]
    for order in permutations(chosen):
        again = list(simulate(pair, [units[index] for index in order]))
        assert again == [records[index] for index in order]


def test_attempts_and_root_seeds_are_other_games(pair, played):
    units, records = played
    digests = [record["metadata"]["transcript_sha256"] for record in records[:40]]
    third = [{**unit, "seed": 3} for unit in units[:40]]
    assert [r["metadata"]["transcript_sha256"] for r in simulate(pair, third)] != digests
    assert [r["metadata"]["transcript_sha256"] for r in simulate({**pair, "root_seed": 1}, units[:40])] != digests


def test_the_digest_is_that_of_the_game(pair, played):
    units, records = played
    (_, spec, game) = next(games(pair, units[:1]))
    assert evaluation.transcript_digest(game) == records[0]["metadata"]["transcript_sha256"]
    assert (spec.defuser_name, spec.expert_name, spec.attempt) == ("scripted-careless", "scripted", 2)
    game.records["defuser"]["steps"][0]["timestamp"] += 1.0
    assert evaluation.transcript_digest(game) != records[0]["metadata"]["transcript_sha256"]


@pytest.mark.parametrize(
    ("path", "won"),
    [("gptnt-reference-oracle-sync/test-oracle", 110), ("gptnt-single-parametric-sync/scripted", 0)],
)
def test_bounds(path, won):
    setup = setup_of(path, seeds=[1])
    records = list(simulate(setup, specs(setup)))
    assert sum(record["success"] for record in records) == won
    assert {record["metadata"]["expert"]["turns"] for record in records} == {0}


def test_what_a_game_costs_is_counted_per_role(played):
    _, records = played
    for record in records[:20]:
        for role in ("defuser", "expert"):
            counts = record["metadata"][role]
            # Scripted players report one token per turn.
            assert counts["input_tokens"] == counts["output_tokens"] == counts["turns"] > 0
            assert counts["game_actions"] + counts["messages"] <= counts["turns"]
        assert record["metadata"]["expert"]["game_actions"] == 0


# ---- refusals --------------------------------------------------------------------------------------------------

WRONG = {
    "another mission": lambda r: r["metadata"].update(mission="Wires-1"),
    "another partner": lambda r: r["metadata"].update(member="scripted_slow"),
    "another suite": lambda r: r["metadata"].update(suite="single-self-async@r1"),
    "another policy": lambda r: r["metadata"].update(policy="scripted"),
    "a success that was none": lambda r: r.update(success=not r["success"]),
    "too many modules": lambda r: r["metadata"].update(modules_solved=2),
    "a solved bomb with a module left": lambda r: r["metadata"].update(modules_solved=0),
    "more time than there was": lambda r: r["metadata"].update(remaining_ms=10**9),
    "an unknown outcome": lambda r: r["metadata"].update(outcome="draw"),
    "a crash that counts": lambda r: r["metadata"].update(crashed=True),
    "a missing field": lambda r: r["metadata"].pop("strikes"),
    "another number": lambda r: r.update(initial_state_seed=99),
    "a number that is text": lambda r: r["metadata"]["defuser"].update(turns="3"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_record_that_is_wrong_is_named(pair, played, what):
    units, records = played
    index = next(i for i, record in enumerate(records) if record["success"])
    record = json.loads(encode_line(records[index]))
    assert check_record(pair, units[index], record) == []
    WRONG[what](record)
    assert check_record(pair, units[index], record) != []


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("suite_digest", "0" * 32, "suite_digest must be 0+ as the plan has it"),
        ("manual_digest", "0" * 64, "manual_digest must be 0+ as the plan has it"),
        ("revision", 2, "revision must be 2 as the plan has it, found 1"),
        ("players", {"scripted": "0" * 32, "scripted-careless": "0" * 32}, "capability fingerprint must be 0+"),
        ("players", {"scripted-slow": "0" * 32}, "capability fingerprint must be None"),
        ("suite", "single-self-async", "suite must be single-self-async as the plan has it"),
        ("latency_ms", 0, "latency_ms"),
    ],
)
def test_other_content_than_planned_is_refused(pair, key, value, named):
    setup = copy.deepcopy(pair)
    setup["cell"][key] = value
    with pytest.raises(ConfigError, match=named):
        list(simulate(setup, specs(pair)[:1]))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda settings: settings["suite"].update(missions_path="configs/missions/other"), "suite_digest"),
        (lambda settings: settings["missions"][0].update(numStrikes=1), "suite_digest"),
        (lambda settings: settings["missions"][0].update(numStrikes="1"), "missions.0: numStrikes"),
        (lambda settings: settings["missions"].pop(), "suite_digest"),
        (lambda settings: settings.pop("suite"), "settings: suite: Field required"),
        (lambda settings: settings["players"].pop("scripted"), "player scripted: must stand in the settings"),
        (lambda settings: settings["players"]["scripted"]["capabilities"].pop("player_type"), "capability fingerprint"),
        (lambda settings: settings["players"]["scripted"].update(script="other"), "a script must be one of"),
    ],
)
def test_settings_that_the_plan_does_not_state_are_refused(pair, change, named):
    setup = copy.deepcopy(pair)
    change(setup["settings"])
    with pytest.raises(ConfigError, match=named):
        list(simulate(setup, specs(pair)[:1]))


def test_a_setup_without_settings_is_refused(pair):
    with pytest.raises(ConfigError, match="settings"):
        specs({**pair, "settings": None})


@pytest.mark.parametrize("params", [None, {}, {"player": "scripted-slow"}, {"player": "../scripted"}])
def test_a_partner_must_name_the_player_that_it_is_called_after(pair, params):
    setup = copy.deepcopy(pair)
    setup["members"][0]["params"] = params
    with pytest.raises(ConfigError, match=r"partner scripted: params\.player must be a player of the same name"):
        list(simulate(setup, specs(pair)[:1]))


def test_a_row_needs_the_pins_of_its_own_players_alone(pair, played):
    engine = engines()["gptnt-v1"]
    own = engine.own_cell(pair["cell"], "scripted-careless", ["scripted"])
    assert set(own["players"]) == {"scripted", "scripted-careless"}
    assert {**own, "players": pair["cell"]["players"]} == pair["cell"]
    setup = {**pair, "cell": own, "members": pair["members"][:1]}
    units = specs(setup)[:5]
    assert list(simulate(setup, units)) == played[1][:5]


def test_a_plan_must_have_all_missions_and_count_attempts_from_one(pair):
    with pytest.raises(ConfigError, match="110 missions"):
        specs({**pair, "episodes_per_partner": 100})
    with pytest.raises(ConfigError, match="from 1"):
        specs({**pair, "seeds": [0]})


def test_who_plays_alone_has_nobody_and_a_pair_has_an_expert(pair):
    alone = setup_of("gptnt-single-solo-player-sync/scripted")
    with pytest.raises(ConfigError, match=NOBODY):
        specs({**alone, "members": pair["members"]})
    with pytest.raises(ConfigError, match="an expert"):
        specs({**pair, "members": alone["members"]})
