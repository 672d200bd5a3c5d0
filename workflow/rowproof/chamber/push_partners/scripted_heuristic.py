"""Walks straight to the centre; it has no parameters."""

from collections.abc import Callable
from typing import Any

import numpy as np

from rowproof.chamber.push_heuristic import scripted_heuristic
from rowproof.errors import ConfigError


def build(params: Any, where: str) -> Callable[[np.ndarray], np.ndarray]:
    """The partner.

    Raises:
        ConfigError: there are parameters.
    """
    if params != {}:
        raise ConfigError(f"{where}: scripted_heuristic must have no parameters, found {params!r}")
    return scripted_heuristic
