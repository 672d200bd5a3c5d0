"""Random hands: nothing crashes, and what must always hold holds after every action."""

import json
from collections import Counter

import pytest
from rowproof.gptnt.bomb.bomb import ACTIONS, build
from rowproof.gptnt.bomb.mission import NEEDY, SOLVABLE, Mission
from rowproof.gptnt.bomb.modules.needy import ACTIVE, DORMANT, RESTING
from rowproof.gptnt.bomb.observation import look, observe, text
from rowproof.gptnt.bomb.oracle import next_step, random_step
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.bomb.rules import keypad, maze, memory, morse, password, venn, wire_sequence, wires

COMPONENTS = (*SOLVABLE, *NEEDY)
MARKS = (None, "", "A", "b", "K", "L", "AB", "*", "1", "é")


# ---- what must always hold -------------------------------------------------------------------------------------


def wires_hold(module, bomb, struck):
    right = wires.wire_to_cut(module.colours, bomb.edgework.last_digit_odd) - 1
    assert module.solved == module.cut[right] and sum(module.cut) - module.solved == struck


def button_holds(module, bomb, struck):
    assert (module.strip_colour is not None) == (bomb.holding and bomb.modules[bomb.zoomed] is module)


def keypad_holds(module, bomb, struck):
    order = keypad.press_order(dict(zip(keypad.POSITIONS, module.symbols, strict=True)))
    green = {keypad.POSITIONS[key] for key in range(4) if module._light(key) == "green"}
    assert green == set(order[: module.progress]) and module.solved == (module.progress == 4)


def simon_holds(module, bomb, struck):
    progress = module.progress(bomb.clock.game_ms)
    assert 1 <= module.stage <= len(module.sequence) and 0 <= progress < module.stage
    since = [rhythm.since_ms for rhythm in module._rhythms]
    assert since == sorted(set(since)) and since[-1] <= bomb.clock.game_ms


def whos_on_first_holds(module, bomb, struck):
    assert module.solved == (module.stage == 4) and 1 <= module.stage <= 4 and len(set(module.labels)) == 6


def memory_holds(module, bomb, struck):
    assert sorted(module.labels) == [1, 2, 3, 4] and module.solved == (len(module.pressed) == memory.STAGES)


def morse_holds(module, bomb, struck):
    assert 0 <= module.index < 16 and (not module.solved or module.index == morse.presses_right(module.word))


def venn_holds(module, bomb, struck):
    right = venn.wires_to_cut([wire[1:] for wire in module.wires], bomb.edgework)
    cut = {number for number, cut in enumerate(module.cut, start=1) if cut}
    assert module.solved == (set(right) <= cut) and len(cut - set(right)) == struck


def wire_sequence_holds(module, bomb, struck):
    right = wire_sequence.terminals_to_cut(module.wires)
    assert module.solved == (module.panel == 5) and 1 <= module.panel <= 5
    assert {t for t in right if wire_sequence.panel_of(t) < module.panel} <= module.cut
    assert len(module.cut - right) <= struck


def maze_holds(module, bomb, struck):
    assert module.solved == (module.position == module.goal) and len(module.hit) <= struck
    assert all(0 <= place < maze.SIZE for place in module.position)


def password_holds(module, bomb, struck):
    assert all(0 <= index < 6 for index in module.indices)
    assert not module.solved or module.showing == module.goal.upper()
    assert password.words_possible(module.columns) == [module.goal]


def needy_holds(module, bomb, struck):
    assert module.phase in (DORMANT, ACTIVE, RESTING) and not module.solved
    if module.component == "NeedyCapacitor":
        assert module.held == (bomb.holding and bomb.modules[bomb.zoomed] is module)
        assert 0 <= module.charge_ms(bomb.clock.game_ms) <= module.duration_ms
    if not bomb.over:
        held = module.component == "NeedyCapacitor" and module.held and module.phase == ACTIVE
        assert (module.event_ms is None) == held and (held or module.event_ms > bomb.clock.game_ms)


INVARIANTS = {
    "BigButton": button_holds,
    "Keypad": keypad_holds,
    "Maze": maze_holds,
    "Memory": memory_holds,
    "Morse": morse_holds,
    "Password": password_holds,
    "Simon": simon_holds,
    "Venn": venn_holds,
    "WhosOnFirst": whos_on_first_holds,
    "WireSequence": wire_sequence_holds,
    "Wires": wires_hold,
    **dict.fromkeys(NEEDY, needy_holds),
}


def check(bomb):
    allowed = bomb.mission.num_strikes_allowed
    assert len(bomb.strikes) <= allowed and bomb.clock.remaining_q >= 0
    ends = bomb.clock.remaining_q == 0 or len(bomb.strikes) == allowed
    assert bomb.detonated == (ends and not bomb.solved)
    assert bomb.solved == all(module.solved or module.needy for module in bomb.modules)
    assert not (bomb.holding and (bomb.over or bomb.zoomed is None))
    assert bomb.zoomed is None or (bomb.side in ("front", "back") and bomb.zoomed in bomb.facing())
    struck = Counter(bomb.strikes)
    for module in bomb.modules:
        if not (bomb.over and module.component in ("BigButton", "NeedyCapacitor")):
            # The strikes of equal modules cannot be told apart, so no bomb here has two of a kind.
            INVARIANTS[module.component](module, bomb, struck[module.component])


def snapshot(bomb):
    return bomb.state(), look(bomb, 1), bomb.clock.game_ms, [module.run.state for module in bomb.modules]


# ---- the hands -------------------------------------------------------------------------------------------------


def fuzz(component, actions):
    """Operate bombs with ``component`` for a number of actions; what was done, by outcome."""
    draws = Stream("fuzz", component)
    done = Counter()
    bomb, seed = None, 0
    for number in range(actions):
        if bomb is None or (bomb.over and draws.chance(1, 2)):
            if bomb is not None:
                done[bomb.outcome] += 1
            seed += 1
            others = draws.sample([c for c in COMPONENTS if c != component], draws.below(3))
            if {component, *others} <= set(NEEDY):
                others.append("Maze")
            bomb = build(Mission(seed, 20 + draws.below(200), (component, *others), draws.below(11), 5, 10))
        over = bomb.over
        before = snapshot(bomb) if number % 8 == 0 else None
        kind = draws.below(20)
        effects = None
        if kind < 4:
            bomb.advance(draws.pick((0, 1, 250, 1000, 3000, 20_000)))
        elif kind < 6:
            effects = bomb.act(draws.pick((*ACTIONS, "fly", "")), draws.pick(MARKS))
        else:
            # Mostly close to a module, or else most actions would only turn the bomb.
            step = next_step(bomb) if kind < 9 or bomb.zoomed is None else random_step(bomb, draws)
            effects = bomb.act(*step) if step else None
        if effects is not None:
            done["refused" if effects.refused else "struck" if effects.struck else "done"] += 1
            assert not over or effects.refused == "the game is over"
            assert not (before and effects.refused) or snapshot(bomb) == before
        check(bomb)
        if number % 16 == 0:
            seen = observe(bomb, 1 + number)
            assert text(json.loads(json.dumps(seen))) == text(seen)
    return done


@pytest.mark.parametrize("component", COMPONENTS)
def test_random_hands(component):
    # 14 x 1500: some 20,000 actions.
    done = fuzz(component, 1500)
    assert done["done"] > 400 and done["refused"] > 50 and done["struck"] > 10
    assert done["strikeout"] > 0 and done["timeout"] + done["solved"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("component", COMPONENTS)
def test_a_million_actions(component):
    done = fuzz(component, 1_000_000 // len(COMPONENTS) + 1)
    assert min(done[outcome] for outcome in ("strikeout", "timeout", "solved")) > 10
