"""The impedance controller, on either seat."""

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from rowproof.chamber.cocarry import rig
from rowproof.chamber.cocarry.kinematics import damped_step, tcp_and_jacobian
from rowproof.chamber.cocarry.observation import View

INTEGRAL_GAIN_PER_STEP = 0.05
INTEGRAL_LIMIT = 0.6
INTEGRAL_RADIUS_M = 0.12
RAD_PER_ACTION = 0.1
GRIPPER_OPEN = 1.0


@dataclass(frozen=True)
class Gains:
    """Parameters of the impedance controller; the defaults are those of the reference ego.

    Attributes:
        kp: displacement per control step and metre of error.
        ki: displacement per control step and unit of the error integral.
        step_max: largest displacement per control step and axis (m).
        damping: of the least-squares inverse (m/rad).
        lag_steps: control steps by which arm commands are delayed.
    """

    kp: float = 2.5
    ki: float = 0.6
    step_max: float = 0.03
    damping: float = 0.04
    lag_steps: int = 0


def _clip(value: float, limit: float) -> float:
    if value > limit:
        return limit
    return -limit if value < -limit else value


class ImpedanceController:
    """Moves its own tool centre point to where its bar end belongs when the bar is at the goal.

    It reads nothing but the goal and its own joint angles; orientation is left free.
    """

    def __init__(self, seat: int, gains: Gains) -> None:
        """Drive the arm of ``seat`` with ``gains``."""
        self.gains = gains
        self._end_m = rig.BAR_END_SIGNS[seat] * rig.BAR_HALF_SIZES_M[0]
        self._base_m = rig.BASE_POSITIONS_M[seat]
        # The bases are turned by 0 or 180 degrees about z, which is a sign of x and y.
        self._facing = 1.0 if seat == rig.EGO else -1.0
        self.reset(0)

    def reset(self, initial_state_seed: int) -> None:
        """Forget integral and delayed commands; the controller is the same for every initial state."""
        self._integral = (0.0, 0.0, 0.0)
        self._queue: deque[list[float]] = deque()

    def arm_command(self, goal_m: np.ndarray, angles_rad: list[float]) -> list[float]:
        """Seven normalised joint increments in [-1, 1] towards ``goal_m`` (world), before any delay."""
        gains = self.gains
        gx, gy, gz = goal_m.tolist()
        bx, by, bz = self._base_m
        (px, py, pz), columns = tcp_and_jacobian(angles_rad)
        ex = self._facing * (gx + self._end_m - bx) - px
        ey = self._facing * (gy - by) - py
        ez = gz - bz - pz
        ix, iy, iz = self._integral
        if math.sqrt(ex * ex + ey * ey + ez * ez) < INTEGRAL_RADIUS_M:
            ix = _clip(ix + INTEGRAL_GAIN_PER_STEP * ex, INTEGRAL_LIMIT)
            iy = _clip(iy + INTEGRAL_GAIN_PER_STEP * ey, INTEGRAL_LIMIT)
            iz = _clip(iz + INTEGRAL_GAIN_PER_STEP * ez, INTEGRAL_LIMIT)
            self._integral = (ix, iy, iz)
        kp, ki, step_max = gains.kp, gains.ki, gains.step_max
        wanted_m = (
            _clip(kp * ex + ki * ix, step_max),
            _clip(kp * ey + ki * iy, step_max),
            _clip(kp * ez + ki * iz, step_max),
        )
        return [_clip(step / RAD_PER_ACTION, 1.0) for step in damped_step(columns, wanted_m, gains.damping)]

    def act(self, view: View) -> np.ndarray:
        """See :class:`~rowproof.chamber.cocarry.player.Player`; the gripper is always told to open."""
        command = self.arm_command(view.goal_m, view.qpos[: rig.ARM_JOINTS].tolist())
        if self.gains.lag_steps > 0:
            self._queue.append(command)
            due = len(self._queue) > self.gains.lag_steps
            command = self._queue.popleft() if due else [0.0] * rig.ARM_JOINTS
        return np.array([*command, GRIPPER_OPEN], np.float32)
