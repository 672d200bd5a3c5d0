"""No presenter at all (admission check A2)."""

from dataclasses import dataclass
from typing import Any

from rowproof.chamber.handover_moves import Presentation


@dataclass(frozen=True)
class AblatedPresenter:
    """No presenter: the part lies 0.35 m away, straight and at once, beyond the ego's reach."""

    lateral_offset_m: float = 0.35

    def present(self, initial_state_seed: int) -> Presentation:
        """The same presentation whatever the initial state."""
        return Presentation(self.lateral_offset_m, 0.0, 0.0, 0.0)


def build(params: Any, where: str) -> AblatedPresenter:
    """The presenter; it has no parameters."""
    return AblatedPresenter()
