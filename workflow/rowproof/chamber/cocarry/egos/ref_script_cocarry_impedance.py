"""The reference: the impedance controller with its default gains."""

from rowproof.chamber.cocarry import rig
from rowproof.chamber.cocarry.impedance import Gains, ImpedanceController


def build(root_seed: int) -> ImpedanceController:
    """The ego, which draws nothing."""
    return ImpedanceController(rig.EGO, Gains())
