"""The impedance controller with the gains of a member."""

import math
from typing import Any

from rowproof.chamber.cocarry import rig
from rowproof.chamber.cocarry.impedance import Gains, ImpedanceController
from rowproof.errors import ConfigError

MAX_LAG_STEPS = 10


def read_gains(params: Any, where: str) -> Gains:
    """The gains of a member; none given means the default ones.

    Raises:
        ConfigError: parameters are withheld, missing, unknown, not finite or out of range.
    """
    if params == {}:
        return Gains()
    names = list(Gains.__dataclass_fields__)
    if params is None:
        raise ConfigError(f"{where}: its parameters are withheld; only the set's maintainer can run this member")
    if sorted(params) != sorted(names):
        raise ConfigError(f"{where}: parameters must be {sorted(names)}, found {sorted(params)}")
    try:
        values = {name: int(params[name]) if name == "lag_steps" else float(params[name]) for name in names}
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: parameters must be decimal text, lag_steps an integer: {error}") from None
    for name, value in values.items():
        if not math.isfinite(value) or value < 0 or (name in ("step_max", "damping") and value == 0):
            raise ConfigError(f"{where}: {name} must be finite and in range, found {value!r}")
    if values["lag_steps"] > MAX_LAG_STEPS:
        raise ConfigError(f"{where}: lag_steps must be at most {MAX_LAG_STEPS}, found {values['lag_steps']}")
    return Gains(**values)


def build(params: Any, where: str) -> ImpedanceController:
    """The partner; see :func:`read_gains`."""
    return ImpedanceController(rig.PARTNER, read_gains(params, where))
