"""Commands nothing."""

from rowproof.chamber.cocarry.zero_player import ZeroPlayer


def build(root_seed: int) -> ZeroPlayer:
    """The ego, which draws nothing."""
    return ZeroPlayer()
