"""A player that sees everything: the next right action from the full state, and a random one.

It reads state machines and asks the rules; nothing in the game depends on it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from rowproof.gptnt.bomb.bomb import MARKS, Bomb
from rowproof.gptnt.bomb.modules import maze as maze_module
from rowproof.gptnt.bomb.modules import morse as morse_module
from rowproof.gptnt.bomb.modules.needy import ACTIVE
from rowproof.gptnt.bomb.pose import LEVEL
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.bomb.rules import (
    big_button,
    keypad,
    maze,
    memory,
    morse,
    needy_vent_gas,
    password,
    simon,
    venn,
    whos_on_first,
    wire_sequence,
    wires,
)

# A capacitor is seen to when it has charged for this long.
DISCHARGE_FROM_MS = 20_000


class Step(NamedTuple):
    """An action for :meth:`Bomb.act`."""

    action: str
    mark: str | None = None


def _press(element: int) -> Step:
    return Step("click_release", MARKS[element])


def _wires(module: Any, bomb: Bomb) -> Step | None:
    return _press(wires.wire_to_cut(module.colours, bomb.edgework.last_digit_odd) - 1)


def _big_button(module: Any, bomb: Bomb) -> Step | None:
    if module.strip_colour is not None:
        digit = big_button.release_digit(module.strip_colour)
        return Step("release") if digit in bomb.clock.display else None
    _, action = big_button.matching_rule(module.colour, module.label, bomb.edgework)
    return Step("hold", MARKS[0]) if action == "hold" else _press(0)


def _keypad(module: Any, bomb: Bomb) -> Step | None:
    order = keypad.press_order(dict(zip(keypad.POSITIONS, module.symbols, strict=True)))
    return _press(keypad.POSITIONS.index(order[module.progress]))


def _simon(module: Any, bomb: Bomb) -> Step | None:
    flash = module.sequence[module.progress(bomb.clock.game_ms)]
    return _press(simon.BUTTONS.index(simon.button_for(flash, bomb.edgework.has_vowel, len(bomb.strikes))))


def _whos_on_first(module: Any, bomb: Bomb) -> Step | None:
    return _press(module.labels.index(whos_on_first.label_to_press(module.display, module.labels)))


def _memory(module: Any, bomb: Bomb) -> Step | None:
    return _press(memory.position_to_press(module.display, module.labels, module.pressed) - 1)


def _morse(module: Any, bomb: Bomb) -> Step | None:
    away = morse.presses_right(module.word) - module.index
    return _press(morse_module.RIGHT if away > 0 else morse_module.LEFT if away < 0 else morse_module.TX)


def _venn(module: Any, bomb: Bomb) -> Step | None:
    numbers = venn.wires_to_cut([(w.colour, w.led, w.star) for w in module.wires], bomb.edgework)
    return next(_press(number - 1) for number in numbers if not module.cut[number - 1])


def _wire_sequence(module: Any, bomb: Bomb) -> Step | None:
    left = wire_sequence.terminals_to_cut(module.wires) - module.cut
    for element, wire in enumerate(module.shown, start=1):
        if wire.terminal in left:
            return _press(element)
    return _press(len(module.shown) + 1)


def _maze(module: Any, bomb: Bomb) -> Step | None:
    return _press(maze_module.STEPS.index(maze.path(module.number, module.position, module.goal)[0]))


def _password(module: Any, bomb: Bomb) -> Step | None:
    (word,) = password.words_possible(module.columns)
    for column, index in enumerate(password.presses_down(module.columns, word)):
        down = (index - module.indices[column]) % len(module.columns[column])
        if down:
            return _press(column + (password.LENGTH if 2 * down <= len(module.columns[column]) else 0))
    return _press(2 * password.LENGTH)


def _vent_gas(module: Any, bomb: Bomb) -> Step | None:
    if module.phase != ACTIVE:
        return None
    return _press("YN".index(needy_vent_gas.KEY_FOR[module.question]))


def _capacitor(module: Any, bomb: Bomb) -> Step | None:
    charge_ms = module.charge_ms(bomb.clock.game_ms)
    if module.held:
        return None if charge_ms else Step("release")
    return Step("hold", MARKS[0]) if charge_ms >= DISCHARGE_FROM_MS else None


def _knob(module: Any, bomb: Bomb) -> Step | None:
    return _press(0) if module.phase == ACTIVE and module.knob_points != module.must_point else None


_NEXT: dict[str, Callable[[Any, Bomb], Step | None]] = {
    "BigButton": _big_button,
    "Keypad": _keypad,
    "Maze": _maze,
    "Memory": _memory,
    "Morse": _morse,
    "NeedyCapacitor": _capacitor,
    "NeedyKnob": _knob,
    "NeedyVentGas": _vent_gas,
    "Password": _password,
    "Simon": _simon,
    "Venn": _venn,
    "WhosOnFirst": _whos_on_first,
    "WireSequence": _wire_sequence,
    "Wires": _wires,
}


def next_in_module(bomb: Bomb, rank: int) -> Step | None:
    """The next right action for a player who is close to the module ``rank``; None if there is nothing to do now."""
    module = bomb.modules[rank]
    return None if module.solved else _NEXT[module.component](module, bomb)


def next_step(bomb: Bomb) -> Step | None:
    """One right action towards solving the bomb; None if the right thing is to let time pass, or the game is over.

    Needy modules come first, then the module in view, the rest of its face, the other face.
    """
    if bomb.over:
        return None
    if bomb.holding and bomb.zoomed is not None:
        return next_in_module(bomb, bomb.zoomed)
    target = _target(bomb)
    if bomb.zoomed is not None:
        return next_in_module(bomb, target) if target == bomb.zoomed else Step("zoom_out")
    if bomb.pose.pitch != LEVEL:
        return Step("roll_up" if bomb.pose.pitch == "top" else "roll_down")
    if bomb.side in ("left", "right"):
        return Step("rotate_right")
    if target not in bomb.facing():
        return Step("flip")
    return Step("click_release", MARKS[bomb.facing().index(target)])


def _target(bomb: Bomb) -> int:
    facing = bomb.facing()

    def distance(rank: int) -> tuple[bool, bool, bool, int]:
        module = bomb.modules[rank]
        # Slots order the modules of a face.
        return not module.needy, rank != bomb.zoomed, rank not in facing, bomb.slots[rank].index

    wanting = [
        rank
        for rank, module in enumerate(bomb.modules)
        if not module.solved and (not module.needy or next_in_module(bomb, rank) is not None)
    ]
    return min(wanting, key=distance)


def random_step(bomb: Bomb, draws: Stream) -> Step | None:
    """One of the legal actions, each as likely as any other; None if the game is over."""
    actions = bomb.legal_actions()
    return Step(*draws.pick(actions)) if actions else None
