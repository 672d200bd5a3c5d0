"""What players see of the scene."""

from typing import Any

import numpy as np

from rowproof.chamber.cocarry.scene import Scene
from rowproof.chamber.cocarry.telemetry import measure

STATE_SIZE = 46
BLIND_SLICE = slice(18, 43)
"""The part of the flat state that a partner-blind ego must not see: the partner's joints and the bar."""

_NAMES = ("panda_wristcam", "panda_partner")


def bar_pose(scene: Scene) -> np.ndarray:
    """Position (m) and quaternion (w, x, y, z) of the bar, float32 of shape (7,)."""
    pose = scene.bar.pose
    return np.concatenate([pose.p, pose.q]).astype(np.float32)


def raw_observation(scene: Scene) -> dict[str, Any]:
    """The published observation as nested arrays, float32 with a leading axis of one.

    ``agent``: per arm ``qpos`` and ``qvel`` (9 each; rad, rad/s, fingers m, m/s). ``extra``: ``goal_pos`` (3, m),
    ``bar_pose`` (7), ``bar_tilt_deg`` and ``wrist_stress_proxy`` (1 each, deg and N).
    """
    sample = measure(scene)
    agent = {
        name: {"qpos": arm.articulation.qpos[None], "qvel": arm.articulation.qvel[None]}
        for name, arm in zip(_NAMES, scene.arms, strict=True)
    }
    extra = {
        "goal_pos": scene.goal_m[None].copy(),
        "bar_pose": bar_pose(scene)[None],
        "bar_tilt_deg": np.array([[sample.tilt_deg]], np.float32),
        "wrist_stress_proxy": np.array([[sample.stress_n]], np.float32),
    }
    return {"agent": agent, "extra": extra}


class View:
    """The scene as one seat sees it."""

    def __init__(self, scene: Scene, seat: int) -> None:
        """Look at ``scene`` from ``seat`` (0 for the ego, 1 for the partner)."""
        self._scene = scene
        self._own = scene.arms[seat].articulation
        self._other = scene.arms[1 - seat].articulation
        self.seat = seat

    @property
    def qpos(self) -> np.ndarray:
        """Own joint positions, float32 of shape (9,)."""
        return self._own.qpos

    @property
    def goal_m(self) -> np.ndarray:
        """The goal in the world, float32 of shape (3,)."""
        return self._scene.goal_m

    def state(self) -> np.ndarray:
        """The input of learned players, float32 of shape (46,).

        Own positions and velocities (9, 9), the other arm's (9, 9), bar pose (7), goal (3); units as in
        :func:`raw_observation`.
        """
        own, other = self._own, self._other
        return np.concatenate(
            [own.qpos, own.qvel, other.qpos, other.qvel, bar_pose(self._scene), self._scene.goal_m]
        ).astype(np.float32, copy=False)


def blinded(state: np.ndarray) -> np.ndarray:
    """What a partner-blind ego gets for ``state`` (shape (46,)): the same, with zeros for the partner and the bar."""
    masked = state.copy()
    masked[BLIND_SLICE] = 0
    return masked
