"""The published time limits and mission sets."""

from collections.abc import Iterable
from typing import NamedTuple

from rowproof.gptnt.bomb.mission import SOLVABLE, Mission

# ---- time limits -----------------------------------------------------------------------------------------------


class _Turns(NamedTuple):
    """Turns that a module is granted for actions and stages, and how often its rules send one round the bomb."""

    actions: int
    stages: int
    side_info: int


SECONDS_PER_TURN = 3
ROTATION_TURNS, MIN_ROTATIONS, MAX_ROTATIONS = 8, 1, 4
BACK_PLACEMENT_TURNS = 8
ZOOM_TURNS = 2
STRIKE_TURNS = 3
DIALOGUE_TURNS = 10
TURNS = {
    "Wires": _Turns(1, 1, 1),
    "BigButton": _Turns(11, 2, 2),
    "Keypad": _Turns(4, 1, 0),
    "Simon": _Turns(15, 5, 1),
    "WhosOnFirst": _Turns(3, 3, 0),
    "Memory": _Turns(5, 5, 0),
    "Morse": _Turns(22, 1, 0),
    "Venn": _Turns(6, 1, 2),
    "WireSequence": _Turns(16, 4, 0),
    "Maze": _Turns(35, 1, 0),
    "Password": _Turns(51, 1, 0),
}


def time_limit_s(components: Iterable[str], back_allowed: bool) -> int:
    """The time limit (seconds) of the published formula for solvable ``components``.

    It grants turns of three seconds: for actions, stages, turning the bomb, zooming, one strike and talk.
    """
    turns = [TURNS[component] for component in components]
    rotations = min(max(sum(t.side_info for t in turns), MIN_ROTATIONS), MAX_ROTATIONS)
    total = sum(t.actions + t.stages + ZOOM_TURNS for t in turns)
    total += (ROTATION_TURNS + ZOOM_TURNS) * rotations + STRIKE_TURNS + DIALOGUE_TURNS
    if back_allowed:
        total += BACK_PLACEMENT_TURNS
    return SECONDS_PER_TURN * total


# ---- published mission sets ------------------------------------------------------------------------------------

# Seed to the number of widgets of each single-module mission, in the order of SOLVABLE.
SINGLE_MODULE_WIDGETS = {
    234: (3, 5, 2, 3, 1, 2, 5, 2, 5, 3, 2),
    286: (2, 3, 2, 4, 4, 1, 5, 2, 3, 4, 5),
    337: (2, 1, 2, 2, 3, 4, 3, 5, 5, 4, 3),
    561: (2, 4, 1, 4, 4, 1, 4, 4, 2, 4, 2),
    563: (2, 1, 1, 5, 3, 5, 4, 4, 5, 2, 1),
    798: (3, 2, 2, 4, 2, 2, 5, 1, 2, 2, 2),
    813: (3, 2, 5, 3, 4, 1, 3, 2, 1, 5, 2),
    845: (2, 3, 1, 3, 2, 5, 2, 1, 5, 3, 3),
    849: (5, 4, 4, 2, 1, 2, 2, 1, 5, 5, 1),
    960: (2, 1, 5, 5, 2, 5, 1, 1, 4, 1, 2),
}
# Seed, time limit in seconds, components in the order of the file.
MULTIPLE_MODULE_N = (
    (110, 300, ("Keypad", "Wires", "Maze")),
    (286, 300, ("WhosOnFirst", "Memory", "Password")),
    (337, 300, ("BigButton", "Simon", "Venn")),
    (412, 180, ("Keypad", "Simon", "WhosOnFirst")),
    (526, 180, ("Wires", "Maze", "Memory")),
    (619, 180, ("BigButton", "Memory", "WhosOnFirst")),
    (798, 300, ("Wires", "BigButton", "Keypad", "Memory")),
    (851, 300, ("Wires", "Keypad", "Simon", "WhosOnFirst")),
    (990, 300, ("Morse", "Venn", "WhosOnFirst", "Wires")),
    (1028, 300, ("Keypad", "Maze", "Password", "WireSequence")),
)


def single_module() -> dict[str, Mission]:
    """The 110 missions of the set ``single_module`` by name: eleven modules, ten seeds each, everything in front."""
    missions = {}
    for place, component in enumerate(SOLVABLE):
        limit_s = time_limit_s([component], back_allowed=False)
        for seed, widgets in SINGLE_MODULE_WIDGETS.items():
            missions[f"{component}-{seed}"] = Mission(
                seed, limit_s, (component,), widgets[place], force_modules_to_front=True
            )
    return missions


def multiple_module_n() -> dict[str, Mission]:
    """The ten missions of the set ``multiple_module_n`` by name: three or four modules, time limits set by hand."""
    return {
        f"mission_spec{number}": Mission(seed, limit_s, components, optional_widgets=5)
        for number, (seed, limit_s, components) in enumerate(MULTIPLE_MODULE_N)
    }
