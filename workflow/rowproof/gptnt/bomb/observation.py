"""What the player at the bomb sees: plain data, and the same as text.

Only what shows on the present side is in it, in neutral words: no names of modules, no solutions, no seed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rowproof.gptnt.bomb import edgework as edge
from rowproof.gptnt.bomb.bomb import MARKS, SLOTS, Bomb, Slot
from rowproof.gptnt.bomb.components import MODULES
from rowproof.gptnt.bomb.modules.base import Module
from rowproof.gptnt.bomb.modules.keypad import RENDERINGS
from rowproof.gptnt.bomb.pose import FRONT

PLACES = ("upper left", "upper middle", "upper right", "lower left", "lower middle", "lower right")
TIMER, COVER = "timer", "blank cover"

PORT_LOOKS = {
    "DVI-D": "wide connector with a grid of small square holes and one flat blade",
    "Parallel": "very wide two-row connector with many round pins",
    "PS/2": "small round socket with a few pins",
    "RJ-45": "square network-style jack",
    "Serial": "short two-row connector with nine holes",
    "Stereo RCA": "two round sockets, one above the other",
}

_BY_LOOK = {module.shows: module for module in MODULES.values()}


def observe(bomb: Bomb, turn: int, names: bool = False, symbols: str = RENDERINGS[0]) -> dict[str, Any]:
    """Look at the bomb: :func:`look`, after which the red lights of the last strike go out.

    They are seen in one observation only, so a look changes the bomb. Call it once per turn.
    """
    seen = look(bomb, turn, names, symbols)
    for module in bomb.modules:
        module.calm()
    return seen


def look(bomb: Bomb, turn: int, names: bool = False, symbols: str = RENDERINGS[0]) -> dict[str, Any]:
    """What shows now, as plain data; nothing is changed.

    Keys: ``turn``, ``side``, ``zoomed_in``, ``holding``, ``timer`` (null if out of view), then ``module`` when zoomed
    in, ``slots`` before a face, ``edge`` before a narrow side, then ``marks`` (mark to description).

    Args:
        bomb: the bomb.
        turn: number of the player's turn, from 1.
        names: also give the component id of each module, for debugging.
        symbols: how symbols on keys are given: ``looks``, ``glyph`` or ``name``.

    Raises:
        ValueError: ``symbols`` is none of these.
    """
    if symbols not in RENDERINGS:
        raise ValueError(f"symbols must be one of {list(RENDERINGS)}, found {symbols!r}")
    side = bomb.side
    seen: dict[str, Any] = {
        "turn": turn,
        "side": side,
        "zoomed_in": bomb.zoomed is not None,
        "holding": bomb.holding,
        "timer": None,
    }
    if side == FRONT:
        seen["timer"] = {
            "display": bomb.clock.display,
            "strike_lights": len(bomb.strikes),
            "strike_indicator": bomb.mission.num_strikes_allowed > 1,
        }
    elements: Iterable[str]
    if bomb.zoomed is not None:
        module = bomb.modules[bomb.zoomed]
        seen["module"] = _outside(module, names) | module.view(bomb.clock.game_ms, symbols)
        elements = module.elements()
    elif side in ("front", "back"):
        ranks = bomb.facing()
        seen["slots"] = _slots(bomb, side, ranks, names)
        elements = [f"the module in the {PLACES[bomb.slots[rank].index]}" for rank in ranks]
    else:
        seen["edge"] = [_widget(widget) for widget in bomb.edgework.widgets if widget.edge == side]
        elements = ()
    seen["marks"] = dict(zip(MARKS, elements, strict=False))
    return seen


def _outside(module: Module, names: bool) -> dict[str, Any]:
    seen = {"name": module.component} if names else {}
    seen["shows"] = module.shows
    if not module.needy:
        seen["led"] = "green" if module.solved else "red" if module.struck else "off"
    return seen


def _slots(bomb: Bomb, side: str, ranks: Sequence[int], names: bool) -> list[dict[str, Any]]:
    marked = {bomb.slots[rank].index: (mark, bomb.modules[rank]) for mark, rank in zip(MARKS, ranks, strict=False)}
    slots = []
    for index in SLOTS:
        slot: dict[str, Any] = {"slot": index, "place": PLACES[index]}
        if index in marked:
            mark, module = marked[index]
            slot |= _outside(module, names) | {"mark": mark}
        else:
            slot["shows"] = TIMER if Slot(side, index) == bomb.timer_slot else COVER
        slots.append(slot)
    return slots


def _widget(widget: edge.Widget) -> dict[str, Any]:
    if isinstance(widget, edge.SerialNumber):
        return {"item": "label", "text": widget.text}
    if isinstance(widget, edge.Battery):
        return {"item": "batteries", "cells": widget.cells, "look": widget.type}
    if isinstance(widget, edge.Indicator):
        return {"item": "indicator", "text": widget.label, "lamp": "lit" if widget.lit else "unlit"}
    return {"item": "port plate", "ports": [PORT_LOOKS[port] for port in widget.ports]}


# ---- text ------------------------------------------------------------------------------------------------------


def text(seen: Mapping[str, Any]) -> str:
    """An observation as text, without a line break at its end; it is made from :func:`look`'s data alone."""
    side = seen["side"].upper()
    if seen["zoomed_in"]:
        lines = [f"Turn {seen['turn']}. You look closely at a module on the {side}. {_timer(seen['timer'])}"]
        lines += _holding(seen) + _module_lines(seen["module"], list(seen["marks"]))
    elif "slots" in seen:
        lines = [f"Turn {seen['turn']}. You face the {side} of the bomb. {_timer(seen['timer'])}"]
        lines += [f"  {slot['place']:<12}  {_slot(slot)}" for slot in seen["slots"]]
        lines.append(f"You can click: {', '.join(seen['marks'])}." if seen["marks"] else "Nothing here can be clicked.")
    else:
        timer = _timer(seen["timer"])
        lines = [f"Turn {seen['turn']}. You see the {side} side of the bomb. {timer} Nothing here can be clicked."]
        lines += [f"  - {_item(item)}" for item in seen["edge"]] or ["  - bare casing"]
    return "\n".join(lines)


def _timer(timer: Mapping[str, Any] | None) -> str:
    if timer is None:
        return "The timer is not visible."
    if not timer["strike_indicator"]:
        return f"Timer {timer['display']}, no strike indicator."
    lights = timer["strike_lights"]
    return f"Timer {timer['display']}, {'strike lights: ' + 'X' * lights if lights else 'no strike lights'}."


def _holding(seen: Mapping[str, Any]) -> list[str]:
    return ["You are holding an element down."] if seen["holding"] else []


def _name(module: Mapping[str, Any]) -> str:
    return f" ({module['name']})" if "name" in module else ""


def _slot(slot: Mapping[str, Any]) -> str:
    if "mark" not in slot:
        return slot["shows"]
    led = f", status light {slot['led']}" if "led" in slot else ""
    return f"[{slot['mark']}] {slot['shows']}{_name(slot)}{led}"


def _module_lines(module: Mapping[str, Any], marks: Sequence[str]) -> list[str]:
    shows = module["shows"]
    led = f"; status light {module['led']}" if "led" in module else ""
    first, *lines = _BY_LOOK[shows].describe(module, marks)
    return [f"{shows[0].upper()}{shows[1:]}{_name(module)}{led}. {first}", *lines]


def _item(item: Mapping[str, Any]) -> str:
    if item["item"] == "label":
        return f"red and white label: {item['text']}"
    if item["item"] == "batteries":
        return f"battery holder with {item['cells']} {item['look']} cell{'s' if item['cells'] > 1 else ''}"
    if item["item"] == "indicator":
        return f'indicator "{item["text"]}", lamp {item["lamp"]}'
    return f"port plate: {'; '.join(item['ports'])}" if item["ports"] else "port plate, empty"
