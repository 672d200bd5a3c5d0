"""A mission: everything that determines one bomb."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from rowproof.errors import ConfigError

SOLVABLE = (
    *("BigButton", "Keypad", "Maze", "Memory", "Morse", "Password"),
    *("Simon", "Venn", "WhosOnFirst", "WireSequence", "Wires"),
)
NEEDY = ("NeedyCapacitor", "NeedyKnob", "NeedyVentGas")
MAX_MODULES = 11

# Field, spelling in mission files and on the wire, type, bounds. The order is that of the published digests.
_FIELDS: tuple[tuple[str, str, type, Any, Any], ...] = (
    ("seed", "seed", int, 0, None),
    ("time_limit", "timeLimit", int, 1, None),
    ("num_strikes_allowed", "numStrikes", int, 1, 5),
    ("components", "components", list, None, None),
    ("optional_widgets", "optWidgets", int, 0, 10),
    ("needy_time", "needyTime", int, 1, None),
    ("force_modules_to_front", "isFront", bool, None, None),
    ("time_scale", "timeScale", float, 0.1, 10.0),
    ("time_step_size", "timeStepSize", int, 1, None),
)
_REQUIRED = ("seed", "time_limit", "components", "optional_widgets")


class Mission(NamedTuple):
    """One mission; :meth:`from_data` reads and checks one.

    Attributes:
        seed: of the bomb, not negative.
        time_limit: start value of the timer, in seconds.
        components: ids of the modules; their order means nothing.
        optional_widgets: widgets besides the serial number.
        num_strikes_allowed: the bomb explodes at this many strikes.
        needy_time: seconds after which a needy module wakes at the latest.
        force_modules_to_front: leave the back empty.
        time_scale: speed of the game that the mission asks for; the bomb itself knows game time alone.
        time_step_size: game time of one turn in synchronous play, in milliseconds.
    """

    seed: int
    time_limit: int
    components: tuple[str, ...]
    optional_widgets: int
    num_strikes_allowed: int = 3
    needy_time: int = 60
    force_modules_to_front: bool = False
    time_scale: float = 1.0
    time_step_size: int = 3000

    @property
    def ranked_components(self) -> list[str]:
        """The components in alphabetical order; the place in it is the rank of a module."""
        return sorted(self.components)

    @property
    def key(self) -> str:
        """``<seed>|<components in alphabetical order>``: the root of every draw of the bomb."""
        return f"{self.seed}|{','.join(self.ranked_components)}"

    @classmethod
    def from_data(cls, data: Any, where: str) -> "Mission":
        """Read one mission; each key may stand in either spelling. ``where`` names its file in messages.

        Raises:
            ConfigError: a key is unknown, missing or there twice, a value has another type or is out of bounds, or no
                bomb can be built from it.
        """
        if not isinstance(data, Mapping):
            raise ConfigError(f"{where}: a mission must be an object, found {type(data).__name__}")
        known = {spelling for name, alias, *_ in _FIELDS for spelling in (name, alias)}
        unknown = sorted(str(key) for key in data if key not in known)
        if unknown:
            raise ConfigError(f"{where}: keys must be among {sorted(known)}, found {unknown}")
        values: dict[str, Any] = {}
        for name, alias, kind, low, high in _FIELDS:
            found = [key for key in dict.fromkeys((name, alias)) if key in data]
            if len(found) > 1:
                raise ConfigError(f"{where}: {name} must be there once, found {found}: remove one spelling")
            if found:
                values[name] = _checked(data[found[0]], kind, low, high, f"{where}: {found[0]}")
            elif name in _REQUIRED:
                raise ConfigError(f"{where}: {name} (or {alias}) must be there, found {sorted(map(str, data))}")
        values["components"] = tuple(values["components"])
        mission = cls(**values)
        mission.check(where)
        return mission

    def check(self, where: str) -> None:
        """Make sure that a bomb can be built.

        Raises:
            ConfigError: there are no modules to solve, more than there is room for, unknown ones, or a needy module
                would wake only after the end.
        """
        unknown = sorted(set(self.components) - {*SOLVABLE, *NEEDY})
        if unknown:
            raise ConfigError(f"{where}: components must be among {[*SOLVABLE, *NEEDY]}, found {unknown}")
        room = 5 if self.force_modules_to_front else MAX_MODULES
        if not 1 <= len(self.components) <= room:
            side = "front" if self.force_modules_to_front else "bomb"
            raise ConfigError(f"{where}: the {side} must hold 1 to {room} components, found {len(self.components)}")
        if set(self.components) <= set(NEEDY):
            raise ConfigError(f"{where}: components must hold one that can be solved, found {list(self.components)}")
        if self.needy_time > self.time_limit:
            raise ConfigError(
                f"{where}: needy_time must not exceed time_limit ({self.time_limit} s), found {self.needy_time}"
            )

    def wire_data(self) -> dict[str, Any]:
        """The mission as plain data in the wire's spelling; published digests of missions are taken of it."""
        data = {alias: getattr(self, name) for name, alias, *_ in _FIELDS}
        data["components"] = list(self.components)
        return data


def _checked(value: Any, kind: type, low: Any, high: Any, where: str) -> Any:
    if kind is list:
        if type(value) not in (list, tuple) or any(type(item) is not str for item in value):
            raise ConfigError(f"{where}: must be a list of component ids, found {value!r}")
        return value
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise ConfigError(f"{where}: must be of type {kind.__name__}, found {value!r}")
    # Written so that NaN fails.
    if low is not None and not (low <= value and (high is None or value <= high)):
        raise ConfigError(f"{where}: must be {low} or more{f', {high} at most' if high else ''}, found {value!r}")
    return value
