"""Scripted players of the co-carry task: the impedance controller, on either seat, and the empty seat."""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rowproof.chamber.cocarry import rig
from rowproof.chamber.cocarry.kinematics import damped_step, tcp_and_jacobian
from rowproof.chamber.cocarry.observation import View
from rowproof.errors import ConfigError

INTEGRAL_GAIN_PER_STEP = 0.05
INTEGRAL_LIMIT = 0.6
INTEGRAL_RADIUS_M = 0.12
MAX_LAG_STEPS = 10
RAD_PER_ACTION = 0.1
GRIPPER_OPEN = 1.0


class Player(Protocol):
    """Whoever drives an arm."""

    def reset(self, initial_state_seed: int) -> None:
        """Start an episode."""

    def act(self, view: View) -> np.ndarray:
        """The action of the next control step, float32 of shape (8,)."""


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

    @classmethod
    def from_params(cls, params: Any, where: str) -> "Gains":
        """Read the parameters of a partner set (name to decimal text); ``where`` names the member in messages.

        Raises:
            ConfigError: parameters are withheld, missing, unknown, not finite or out of range.
        """
        names = list(cls.__dataclass_fields__)
        if params is None:
            raise ConfigError(f"{where}: its parameters are withheld; only the set's maintainer can run this member")
        if sorted(params) != sorted(names):
            raise ConfigError(f"{where}: parameters must be {sorted(names)}, found {sorted(params)}")
        try:
            values = {name: int(params[name]) if name == "lag_steps" else float(params[name]) for name in names}
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{where}: parameters must be decimal text, lag_steps an integer: {error}") from None
        for name, value in values.items():
            if not math.isfinite(value) or value < 0 or (name in ("step_max", "damping") and value == 0):
                raise ConfigError(f"{where}: {name} must be finite and in range, found {value!r}")
        if values["lag_steps"] > MAX_LAG_STEPS:
            raise ConfigError(f"{where}: lag_steps must be at most {MAX_LAG_STEPS}, found {values['lag_steps']}")
        return cls(**values)


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
        """See :class:`Player`; the gripper is always told to open."""
        command = self.arm_command(view.goal_m, view.qpos[: rig.ARM_JOINTS].tolist())
        if self.gains.lag_steps > 0:
            self._queue.append(command)
            due = len(self._queue) > self.gains.lag_steps
            command = self._queue.popleft() if due else [0.0] * rig.ARM_JOINTS
        return np.array([*command, GRIPPER_OPEN], np.float32)


class ZeroPlayer:
    """Commands nothing: the arm yields to what pushes it and the gripper closes halfway."""

    def reset(self, initial_state_seed: int) -> None:
        """Nothing to forget."""

    def act(self, view: View) -> np.ndarray:
        """See :class:`Player`."""
        return np.zeros(rig.ACTION_SIZE, np.float32)


def build_partner(member: Mapping[str, Any]) -> Player:
    """The partner of one entry of ``setup["members"]``, by its ``class``.

    Raises:
        ConfigError: the class is unknown or its parameters do not fit it.
    """
    where = f"partner {member['name']}"
    if member["class"] == "cocarry_impedance":
        # A member without parameters is the controller with its default gains.
        gains = Gains() if member["params"] == {} else Gains.from_params(member["params"], where)
        return ImpedanceController(rig.PARTNER, gains)
    if member["class"] == "partner_ablated_zero" and member["params"] == {}:
        return ZeroPlayer()
    raise ConfigError(
        f"{where}: class must be cocarry_impedance, or partner_ablated_zero without parameters, "
        f"found {member['class']!r} with {member['params']!r}"
    )
