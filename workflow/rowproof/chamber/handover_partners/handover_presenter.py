"""Presents with a grasp error, an offset and a delay of its own distribution."""

import math
from typing import Any

from rowproof.chamber.handover_drawn_presenter import DrawnPresenter
from rowproof.errors import ConfigError


def build(params: Any, where: str) -> DrawnPresenter:
    """The presenter with the parameters of a partner set.

    Raises:
        ConfigError: parameters are withheld, missing, unknown, not finite, or a sigma is negative.
    """
    names = list(DrawnPresenter.__dataclass_fields__)
    if params is None:
        raise ConfigError(f"{where}: its parameters are withheld; only the set's maintainer can run this member")
    if sorted(params) != sorted(names):
        raise ConfigError(f"{where}: parameters must be {sorted(names)}, found {sorted(params)}")
    try:
        values = {name: float(params[name]) for name in names}
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: parameters must be decimal text: {error}") from None
    for name, value in values.items():
        if not math.isfinite(value) or ("_sigma_" in name and value < 0):
            raise ConfigError(f"{where}: {name} must be finite, and not negative if a sigma, found {value!r}")
    return DrawnPresenter(**values)
