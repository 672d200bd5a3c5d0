"""The egos that are not learned."""

import numpy as np

from rowproof.chamber.cocarry import rig
from rowproof.chamber.cocarry.observation import View
from rowproof.chamber.cocarry.partners import RAD_PER_ACTION, Gains, ImpedanceController, Player, ZeroPlayer
from rowproof.errors import ConfigError
from rowproof.seeding import substream

REFERENCE, RANDOM, STATIC, BLIND = "ref_script_cocarry_impedance", "random", "static", "cocarry_blind_impedance"
POLICIES = (REFERENCE, RANDOM, STATIC, BLIND)


class RandomEgo:
    """Uniform over all actions, gripper included; the sequence depends on the initial state alone."""

    def __init__(self, root_seed: int) -> None:
        """Draw from the streams of ``root_seed``."""
        self._root_seed = root_seed
        self.reset(0)

    def reset(self, initial_state_seed: int) -> None:
        """Start the sequence of this initial state."""
        self._rng = substream(f"benchmarks.cocarry_eval.ego_random.{initial_state_seed}", self._root_seed)

    def act(self, view: View) -> np.ndarray:
        """See :class:`~rowproof.chamber.cocarry.partners.Player`."""
        return self._rng.uniform(-1.0, 1.0, size=rig.ACTION_SIZE).astype(np.float32)


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
        """See :class:`~rowproof.chamber.cocarry.partners.Player`."""
        if self._angles_rad is None:
            self._angles_rad = view.qpos[: rig.ARM_JOINTS].tolist()
        command = self._controller.arm_command(view.goal_m, self._angles_rad)
        action = np.array([*command, 1.0], np.float32)
        emitted = action[: rig.ARM_JOINTS].tolist()
        self._angles_rad = [a + RAD_PER_ACTION * e for a, e in zip(self._angles_rad, emitted, strict=True)]
        return action


def build_ego(policy: str, root_seed: int) -> Player:
    """The ego ``policy``; ``root_seed`` is the root of its random streams.

    Raises:
        ConfigError: there is no such policy.
    """
    if policy == REFERENCE:
        return ImpedanceController(rig.EGO, Gains())
    if policy == RANDOM:
        return RandomEgo(root_seed)
    if policy == STATIC:
        return ZeroPlayer()
    if policy == BLIND:
        return BlindEgo()
    raise ConfigError(f"policy must be one of {list(POLICIES)}, found {policy!r}")
