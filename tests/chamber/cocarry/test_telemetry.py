import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from rowproof.chamber.cocarry.telemetry import Judge, Sample, joint_speed_rad_per_s, norm3, reward, stress_n, tilt_deg
from rowproof.chamber.cocarry_cell import PUBLISHED_CELL as CELL

F32 = np.float32
GOOD = Sample(F32(5.0), F32(80.0), F32(0.09), F32(0.1))


def _next(value):
    return np.nextafter(F32(value), F32(np.inf))


def _before(value):
    return np.nextafter(F32(value), F32(0))


def test_norm_rounds_each_fused_sum_once():
    rng = np.random.default_rng(0)
    for vector in rng.normal(0, 50, (200, 3)).astype(np.float32):
        x, y, z = (Fraction(float(v)) for v in vector)
        total = F32(float(x * x))
        total = F32(float(y * y + Fraction(float(total))))
        total = F32(float(z * z + Fraction(float(total))))
        assert norm3(vector) == np.sqrt(total)
        assert isinstance(norm3(vector), float)


@pytest.mark.parametrize("angle_deg", [0.0, 4.0, -15.0, 89.0])
def test_tilt_is_the_angle_of_the_long_axis(angle_deg):
    half = math.radians(angle_deg) / 2
    quaternion = np.array([math.cos(half), 0, math.sin(half), 0], np.float32)
    assert tilt_deg(quaternion) == pytest.approx(abs(angle_deg), abs=1e-3)


def test_tilt_ignores_roll():
    half = 0.4
    assert tilt_deg(np.array([math.cos(half), math.sin(half), 0, 0], np.float32)) == 0


def test_tilt_of_a_quaternion_slightly_too_long():
    assert tilt_deg(np.array([0.70711, 0, 0.70711, 0], np.float32)) == 90.0


def test_a_good_sample_succeeds_at_the_settle_step_and_not_before():
    assert not Judge(CELL).success(14, GOOD)
    assert Judge(CELL).success(15, GOOD)


@pytest.mark.parametrize(
    ("sample", "succeeds"),
    [
        (GOOD._replace(distance_m=F32(0.10)), True),
        (GOOD._replace(distance_m=_next(0.10)), False),
        (GOOD._replace(tilt_deg=_before(15.0)), True),
        (GOOD._replace(tilt_deg=F32(15.0)), False),
        (GOOD._replace(stress_n=_before(130.0)), True),
        (GOOD._replace(stress_n=F32(130.0)), False),
        (GOOD._replace(joint_speed_rad_per_s=F32(0.2)), True),
        (GOOD._replace(joint_speed_rad_per_s=_next(0.2)), False),
    ],
)
def test_limits(sample, succeeds):
    assert Judge(CELL).success(15, sample) is succeeds


@pytest.mark.parametrize("bad", [GOOD._replace(tilt_deg=F32(16)), GOOD._replace(stress_n=F32(131))])
def test_maxima_latch_from_the_settle_step_on(bad):
    early = Judge(CELL)
    early.success(14, bad)
    assert early.success(15, GOOD)
    late = Judge(CELL)
    late.success(15, bad)
    assert not late.success(16, GOOD)
    assert (late.max_tilt_deg, late.max_stress_n) == (bad.tilt_deg, bad.stress_n)


# ---- both arms -------------------------------------------------------------------------------------------------


def _arm(force_n, qvel):
    forces = np.zeros((15, 6), np.float32)
    forces[9, :3] = force_n
    forces[8, :3] = 1000.0
    forces[9, 3:] = 1000.0
    articulation = SimpleNamespace(link_incoming_joint_forces=forces, qvel=np.array(qvel, np.float32))
    return SimpleNamespace(articulation=articulation, wrist=9)


QUIET = _arm((3, 0, 4), [0.1, 0, 0, 0, 0, 0, 0, 9, 9])
LOADED = _arm((0, 6, 8), [0, 0.3, 0, -0.4, 0, 0, 0, 9, 9])


@pytest.mark.parametrize("arms", [(QUIET, LOADED), (LOADED, QUIET)])
def test_the_worse_arm_counts(arms):
    scene = SimpleNamespace(holding=arms)
    assert stress_n(scene) == 10
    assert joint_speed_rad_per_s(scene) == F32(0.4)


def test_only_holding_arms_count():
    scene = SimpleNamespace(holding=(QUIET,))
    assert stress_n(scene) == 5
    assert joint_speed_rad_per_s(scene) == F32(0.1)


# Step, sample, expected reward; the speed norm of the arms is 0.5 rad/s.
AT_GOAL = Sample(F32(4.0), F32(80.0), F32(0.05), F32(0.4))
BASE = 2 - math.tanh(0.25) - math.tanh(5 * math.radians(4.0))
SETTLE = 1 - math.tanh(2.5)


@pytest.mark.parametrize(
    ("step", "sample", "expected"),
    [
        (20, AT_GOAL, BASE + SETTLE),
        (20, AT_GOAL._replace(distance_m=F32(0.2)), BASE + math.tanh(0.25) - math.tanh(1.0)),
        (20, AT_GOAL._replace(stress_n=F32(110.0)), BASE + SETTLE),
        (20, AT_GOAL._replace(stress_n=F32(130.0)), BASE + SETTLE - math.tanh(1.0)),
        (14, AT_GOAL._replace(stress_n=F32(130.0)), BASE + SETTLE),
    ],
)
def test_reward_without_success(step, sample, expected):
    scene = SimpleNamespace(holding=(QUIET, LOADED))
    assert reward(scene, sample, step, False, CELL) == pytest.approx(expected / 5, rel=1e-6)


def test_reward_of_success():
    assert reward(SimpleNamespace(holding=(QUIET,)), AT_GOAL, 20, True, CELL) == 1.0
