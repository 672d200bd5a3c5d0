"""The reference without feedback."""

import numpy as np

from rowproof.chamber.cocarry import rig
from rowproof.chamber.cocarry.impedance import RAD_PER_ACTION, Gains, ImpedanceController
from rowproof.chamber.cocarry.observation import View


class BlindEgo:
    """The reference ego without feedback: it reads its joints once and then believes that every command is executed.

    The plant executes 39 % of a command, so it stops commanding long before the arm arrives.
    """

    def __init__(self) -> None:
        """The reference gains without integral."""
        self._controller = ImpedanceController(rig.EGO, Gains(ki=0.0))
        self.reset(0)

    def reset(self, initial_state_seed: int) -> None:
        """Forget the estimate."""
        self._controller.reset(initial_state_seed)
        self._angles_rad: list[float] | None = None

    def act(self, view: View) -> np.ndarray:
        """See :class:`~rowproof.chamber.cocarry.player.Player`."""
        if self._angles_rad is None:
            self._angles_rad = view.qpos[: rig.ARM_JOINTS].tolist()
        command = self._controller.arm_command(view.goal_m, self._angles_rad)
        action = np.array([*command, 1.0], np.float32)
        emitted = action[: rig.ARM_JOINTS].tolist()
        self._angles_rad = [a + RAD_PER_ACTION * e for a, e in zip(self._angles_rad, emitted, strict=True)]
        return action


def build(root_seed: int) -> BlindEgo:
    """The ego, which draws nothing."""
    return BlindEgo()
