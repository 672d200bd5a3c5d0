"""No partner at all (admission check A2)."""

from typing import Any

from rowproof.chamber.cocarry.zero_player import ZeroPlayer
from rowproof.errors import ConfigError


def build(params: Any, where: str) -> ZeroPlayer:
    """The partner.

    Raises:
        ConfigError: there are parameters.
    """
    if params != {}:
        raise ConfigError(f"{where}: partner_ablated_zero must have no parameters, found {params!r}")
    return ZeroPlayer()
