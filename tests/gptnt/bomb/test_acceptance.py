"""What a whole bomb must do, over many missions; vectors and generation have their own files."""

import itertools
import os
import subprocess
import sys

import pytest
from gptnt.bomb.workbench import NEEDY_MISSION, play, transcript, transcripts
from helpers import ROOT
from rowproof.gptnt.bomb.bomb import MARKS, build
from rowproof.gptnt.bomb.mission import SOLVABLE, Mission
from rowproof.gptnt.bomb.modules import maze as maze_module
from rowproof.gptnt.bomb.oracle import next_in_module, next_step
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.bomb.published import multiple_module_n, single_module
from rowproof.gptnt.bomb.rules import maze, morse, password, venn, wire_sequence

MISSIONS = single_module() | multiple_module_n()


# ---- 4: instances, solutions, mistakes -------------------------------------------------------------------------


def in_range(module):
    """Whether a fresh instance keeps the ranges of its kind."""
    name = module.component
    if name == "Wires":
        return 3 <= len(module.rows) <= 6 and list(module.rows) == sorted(set(module.rows)) and module.rows[-1] < 6
    if name == "Keypad":
        return len(set(module.symbols)) == 4
    if name == "Simon":
        return 3 <= len(module.sequence) <= 5
    if name == "WhosOnFirst":
        return len(set(module.labels)) == 6
    if name == "Memory":
        return sorted(module.labels) == [1, 2, 3, 4] and 1 <= module.display <= 4
    if name == "Morse":
        return module.word in morse.FREQUENCIES_KHZ and module.index == 0
    if name == "Venn":
        columns = [wire.column for wire in module.wires]
        return 4 <= len(columns) <= 6 and columns == sorted(set(columns)) and any(module._must_cut)
    if name == "WireSequence":
        terminals = [wire.terminal for wire in module.wires]
        return len(terminals) == 9 and terminals == sorted(set(terminals)) and terminals[0] <= 3 < terminals[-1] <= 12
    if name == "Maze":
        distance = max(abs(a - b) for a, b in zip(module.position, module.goal, strict=True))
        return 1 <= module.number <= 9 and distance > 1
    if name == "Password":
        right = all(len(set(column)) == 6 for column in module.columns)
        return right and password.words_possible(module.columns) == [module.goal] != [module.showing.lower()]
    return name == "BigButton"


def mistake(bomb, draws):
    """Actions whose last one is a mistake for the only module, in view; empty if its instance offers none."""
    module = bomb.modules[0]
    right = next_in_module(bomb, 0)
    others = [("click_release", mark) for mark in MARKS[: bomb.mark_count()] if mark != right.mark]
    name = module.component
    if name == "BigButton":
        # Another way to operate the one element.
        return [("hold", "A"), ("release",)] if right.action == "click_release" else [("click_release", "A")]
    if name == "Morse":
        return [] if right.mark == "C" else [("click_release", "C")]
    if name == "Password":
        return [("click_release", MARKS[-1])]
    if name == "Maze":
        walls = [step for step in maze.STEPS if maze.wall_on(module.number, module.position, step)]
        return [("click_release", MARKS[maze_module.STEPS.index(draws.pick(walls))])] if walls else []
    if name == "Venn":
        to_cut = venn.wires_to_cut([wire[1:] for wire in module.wires], bomb.edgework)
        others = [("click_release", MARKS[i]) for i in range(len(module.wires)) if i + 1 not in to_cut]
    elif name == "WireSequence":
        to_cut = wire_sequence.terminals_to_cut(module.wires)
        others = [("click_release", MARKS[i]) for i, w in enumerate(module.shown, 1) if w.terminal not in to_cut]
        if any(wire.terminal in to_cut for wire in module.shown):
            others.append(("click_release", MARKS[len(module.shown) + 1]))
    return [draws.pick(others)] if others else []


def solve(bomb):
    """Let the oracle play in turns of three seconds; whether it solved the bomb."""
    for _, effects, _ in play(bomb, next_step):
        assert not effects.refused and not effects.struck
    return bomb.solved


def check_instances(component, seeds):
    mistakes = 0
    for seed in seeds:
        mission = Mission(seed, 3000, (component,), seed % 11)
        bomb = build(mission)
        assert in_range(bomb.modules[0]), mission
        assert solve(bomb) and not bomb.strikes, mission

        bomb = build(mission)
        while bomb.zoomed is None:
            bomb.act(*next_step(bomb))
        wrong = mistake(bomb, Stream(mission.key, "mistakes"))
        if wrong:
            mistakes += 1
            struck = [bomb.act(*step).struck for step in wrong]
            assert struck[-1] == (0,) and bomb.strikes == [component], mission
            assert not bomb.modules[0].solved
            assert solve(bomb) and bomb.strikes == [component], mission
    assert mistakes >= len(seeds) // 2


@pytest.mark.parametrize("component", SOLVABLE)
def test_acceptance_4_every_instance_is_solvable_and_punishes_a_mistake(component):
    check_instances(component, range(30))


@pytest.mark.slow
@pytest.mark.parametrize("component", SOLVABLE)
def test_acceptance_4_a_thousand_instances(component):
    check_instances(component, range(1000))


# ---- 5: replay -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mission", [MISSIONS["mission_spec9"], NEEDY_MISSION], ids=["published", "needy"])
def test_acceptance_5_a_replay_is_equal_to_the_byte(mission):
    reordered = mission._replace(components=tuple(reversed(mission.components)))
    assert transcript(mission) == transcript(mission) == transcript(reordered)
    assert transcript(mission) != transcript(mission._replace(seed=mission.seed + 1))


def test_acceptance_5_nothing_depends_on_the_surroundings(tmp_path):
    expected = transcripts()
    for surroundings in (
        {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "Asia/Kolkata"},
        {"PYTHONHASHSEED": "77", "LC_ALL": "de_DE.UTF-8", "LANG": "tr_TR.UTF-8"},
    ):
        done = subprocess.run(
            [sys.executable, "-c", "from gptnt.bomb.workbench import transcripts; print(transcripts())"],
            cwd=tmp_path,
            env=os.environ | surroundings | {"PYTHONPATH": f"{ROOT / 'workflow'}{os.pathsep}{ROOT / 'tests'}"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == expected


# ---- 7: the clock ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MISSIONS)
def test_acceptance_7_doing_nothing_ends_exactly_at_zero(name):
    mission = MISSIONS[name]
    bomb = build(mission)
    for _ in range(mission.time_limit // 3 - 1):
        bomb.advance(3000)
        assert not bomb.over
    assert bomb.clock.remaining_q == 3 * 4000
    bomb.advance(3000)
    assert (bomb.outcome, bomb.clock.remaining_q, bomb.clock.game_ms) == ("timeout", 0, mission.time_limit * 1000)
    assert not bomb.strikes


def test_acceptance_7_time_is_kept_in_integers():
    bomb = build(NEEDY_MISSION)
    draws = Stream("clock", "steps")
    while not bomb.over:
        bomb.advance(1 + draws.below(5000))
        assert {type(bomb.clock.game_ms), type(bomb.clock.remaining_q)} == {int}
        assert {type(module.event_ms) for _, module in bomb._needy} <= {int, type(None)}
    assert bomb.outcome == "strikeout"


# ---- 8: synchronous play ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MISSIONS)
def test_acceptance_8_every_mission_can_be_solved_in_time(name):
    mission = MISSIONS[name]
    bomb = build(mission)
    turns = list(itertools.islice(play(bomb, next_step), mission.time_limit // 3))
    assert bomb.outcome == "solved" and not bomb.strikes
    assert not any(effects.refused for _, effects, _ in turns)
    assert bomb.modules_solved == len(mission.components)
    assert bomb.seconds_remaining == mission.time_limit - 3 * (len(turns) - 1)
