import math

import numpy as np
import pytest
from rowproof.chamber.cocarry import rig
from rowproof.chamber.cocarry.control import targets
from rowproof.chamber.cocarry.egos.cocarry_blind_impedance import BlindEgo
from rowproof.chamber.cocarry.egos.random import RandomEgo
from rowproof.chamber.cocarry.impedance import Gains, ImpedanceController
from rowproof.chamber.cocarry.kinematics import damped_step, tcp_and_jacobian
from rowproof.chamber.cocarry.seats import build_ego, build_partner
from rowproof.chamber.cocarry.zero_player import ZeroPlayer
from rowproof.errors import ConfigError
from rowproof.seeding import spawn_key

READY = list(rig.READY_POSTURE[:7])
PARAMS = {"damping": "0.0442", "ki": "0.6616", "kp": "1.1991", "lag_steps": "3", "step_max": "0.0286"}


class View:
    """What a player reads, without a simulator."""

    def __init__(self, goal_m, qpos=rig.READY_POSTURE):
        self.goal_m = np.array(goal_m, np.float32)
        self.qpos = np.array(qpos, np.float32)


FAR = (0.0, 0.12, 0.28)


# ---- kinematics ------------------------------------------------------------------------------------------------


def test_tcp_at_the_ready_posture():
    position_m, _ = tcp_and_jacobian(READY)
    assert position_m == pytest.approx((0.615013, 0.0, 0.169782), abs=1e-6)


@pytest.mark.parametrize("joint", range(7))
def test_jacobian_is_the_derivative_of_the_position(joint):
    angles_rad = [0.3, 0.5, -0.4, -1.7, 0.2, 2.1, -0.6]
    _, columns = tcp_and_jacobian(angles_rad)
    step_rad = 1e-6
    ahead, back = list(angles_rad), list(angles_rad)
    ahead[joint] += step_rad
    back[joint] -= step_rad
    difference = np.subtract(tcp_and_jacobian(ahead)[0], tcp_and_jacobian(back)[0]) / (2 * step_rad)
    assert columns[joint] == pytest.approx(difference, abs=1e-8)


def test_damped_step_solves_the_damped_system():
    _, columns = tcp_and_jacobian(READY)
    jacobian = np.array(columns).T
    wanted_m = (0.03, -0.01, 0.02)
    expected = jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + 0.04**2 * np.eye(3), wanted_m)
    assert damped_step(columns, wanted_m, 0.04) == pytest.approx(expected, rel=1e-9)


# ---- control targets -------------------------------------------------------------------------------------------


def test_targets_are_float32_sums():
    qpos = np.array(rig.READY_POSTURE, np.float32)
    action = np.array([0.3, -0.7, 1.0, 0.11, -1.0, 0.5, 0.9, 0.2], np.float32)
    found = targets(qpos, action)
    for q, a, target in zip(qpos, action, found[:7], strict=False):
        assert target == float(np.float32(q + np.float32(np.float32(0.1) * a)))
    assert all(float(np.float32(target)) == target for target in found)


@pytest.mark.parametrize(("gripper", "finger_m"), [(1.0, 0.04), (0.0, 0.015), (-1.0, -0.01), (5.0, 0.04)])
def test_gripper_targets(gripper, finger_m):
    action = np.array([0] * 7 + [gripper], np.float32)
    assert targets(np.zeros(9, np.float32), action)[7:] == pytest.approx([finger_m, finger_m], abs=1e-8)


def test_actions_are_clipped():
    wild = np.array([9.0, -9.0, 1.5, -1.5, 1.0, -1.0, 2.0, 3.0], np.float32)
    qpos = np.array(rig.READY_POSTURE, np.float32)
    assert targets(qpos, wild) == targets(qpos, np.clip(wild, -1, 1))


# ---- the impedance controller ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seat", [rig.EGO, rig.PARTNER])
def test_controller_moves_its_end_towards_the_goal(seat):
    controller = ImpedanceController(seat, Gains())
    base_x_m, sign = rig.BASE_POSITIONS_M[seat][0], 1 if seat == rig.EGO else -1
    angles_rad = list(READY)
    for _ in range(60):
        step = controller.arm_command(np.array(FAR, np.float32), angles_rad)
        angles_rad = [a + 0.0393 * s for a, s in zip(angles_rad, step, strict=True)]
    x_m, y_m, z_m = tcp_and_jacobian(angles_rad)[0]
    world_m = (sign * x_m + base_x_m, sign * y_m, z_m)
    assert world_m == pytest.approx((0.115 * sign, 0.12, 0.28), abs=0.01)


def test_commands_stay_within_the_action_range_and_open_the_gripper():
    action = ImpedanceController(rig.EGO, Gains(kp=100.0, step_max=1.0)).act(View((0.5, 0.5, 0.5)))
    assert action.dtype == np.float32
    assert action.shape == (8,)
    assert np.abs(action[:7]).max() == 1.0
    assert action[7] == 1.0


def test_displacement_is_clipped_per_axis():
    far, farther = View((0.3, 0.3, 0.6)), View((0.4, 0.4, 0.7))
    controller = ImpedanceController(rig.EGO, Gains(ki=0.0))
    assert (controller.act(far) == controller.act(farther)).all()


def _goal_at(error_m):
    """A goal that leaves the ego in ready posture an error of this length along y."""
    x_m, y_m, z_m = tcp_and_jacobian([float(np.float32(a)) for a in READY])[0]
    return (x_m - 0.5 - 0.115, y_m + error_m, z_m)


def test_integral_grows_only_within_its_radius():
    near = ImpedanceController(rig.EGO, Gains(kp=0.0))
    assert np.abs(near.act(View(_goal_at(0.10)))[:7]).max() > 0
    outside = ImpedanceController(rig.EGO, Gains(kp=0.0))
    assert np.abs(outside.act(View(_goal_at(0.13)))[:7]).max() == 0


def test_integral_is_kept_outside_its_radius_and_cleared_by_reset():
    controller = ImpedanceController(rig.EGO, Gains(kp=0.0))
    inside = controller.act(View(_goal_at(0.10)))
    assert (controller.act(View(_goal_at(0.13))) == inside).all()
    controller.reset(0)
    assert np.abs(controller.act(View(_goal_at(0.13)))[:7]).max() == 0


def test_lag_delays_the_arm_alone():
    lagged, prompt = ImpedanceController(rig.EGO, Gains(lag_steps=3)), ImpedanceController(rig.EGO, Gains())
    views = [View((0.0, 0.12 + 0.01 * k, 0.28)) for k in range(8)]
    late = [lagged.act(view) for view in views]
    due = [prompt.act(view) for view in views]
    for action in late[:3]:
        assert action.tolist() == [0.0] * 7 + [1.0]
    for action, expected in zip(late[3:], due, strict=False):
        assert (action == expected).all()


def test_reset_clears_the_lag_queue():
    controller = ImpedanceController(rig.PARTNER, Gains(lag_steps=1))
    controller.act(View(FAR))
    controller.reset(0)
    assert np.abs(controller.act(View(FAR))[:7]).max() == 0


# ---- partners --------------------------------------------------------------------------------------------------


def _member(**changes):
    return {"name": "m", "class": "cocarry_impedance", "params": dict(PARAMS), **changes}


def test_partner_takes_its_parameters():
    partner = build_partner(_member())
    assert partner.gains == Gains(kp=1.1991, ki=0.6616, step_max=0.0286, damping=0.0442, lag_steps=3)


def test_class_without_parameters_has_the_default_gains():
    assert build_partner(_member(params={})).gains == Gains()


def test_ablated_partner_commands_nothing():
    partner = build_partner(_member(**{"class": "partner_ablated_zero", "params": {}}))
    assert partner.act(View(FAR)).tolist() == [0.0] * 8


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"class": "cocarry_other"}, "class must be"),
        ({"class": "partner_ablated_zero"}, "no parameters"),
        ({"class": "trained_pair", "params": {}}, "found no checkpoint"),
        ({"params": None}, "withheld"),
        ({"params": {**PARAMS, "extra": "1"}}, "parameters must be"),
        ({"params": {"kp": "1.0"}}, "parameters must be"),
        ({"params": {**PARAMS, "kp": "stiff"}}, "decimal text"),
        ({"params": {**PARAMS, "lag_steps": "1.5"}}, "decimal text"),
        ({"params": {**PARAMS, "lag_steps": "11"}}, "at most 10"),
        ({"params": {**PARAMS, "lag_steps": "-1"}}, "in range"),
        ({"params": {**PARAMS, "ki": "nan"}}, "finite"),
        ({"params": {**PARAMS, "step_max": "0.0"}}, "in range"),
        ({"params": {**PARAMS, "damping": "0"}}, "in range"),
    ],
)
def test_partner_refuses(changes, message):
    build_partner(_member())
    with pytest.raises(ConfigError, match=message):
        build_partner(_member(**changes))


# ---- egos ------------------------------------------------------------------------------------------------------

FIRST_RANDOM_ACTIONS = {
    0: (-0.747565, -0.246206, -0.247198, 0.048884, -0.595129, -0.291742, 0.890193, -0.051099),
    1: (0.746381, 0.298352, 0.925658, 0.837187, -0.816338, -0.461684, 0.245007, 0.376010),
}


@pytest.mark.parametrize("initial_state_seed", FIRST_RANDOM_ACTIONS)
def test_published_random_actions(initial_state_seed):
    ego = RandomEgo(0)
    ego.reset(initial_state_seed)
    action = ego.act(View(FAR))
    assert action.dtype == np.float32
    assert action == pytest.approx(FIRST_RANDOM_ACTIONS[initial_state_seed], abs=6e-7)


def test_published_random_stream():
    name = "benchmarks.cocarry_eval.ego_random.0"
    assert spawn_key(name) == (18263471079795887375, 17626533388673557500)


def test_random_ego_repeats_its_sequence_after_reset():
    ego = RandomEgo(0)
    ego.reset(5)
    first = [ego.act(View(FAR)) for _ in range(3)]
    ego.reset(5)
    assert all((ego.act(View(FAR)) == action).all() for action in first)


def test_random_ego_depends_on_the_root_seed():
    assert (RandomEgo(0).act(View(FAR)) != RandomEgo(1).act(View(FAR))).all()


def test_blind_ego_believes_in_its_commands():
    ego, measured = BlindEgo(), View(FAR)
    angles_rad = [float(a) for a in measured.qpos[:7]]
    controller = ImpedanceController(rig.EGO, Gains(ki=0.0))
    for _ in range(5):
        expected = np.array(controller.arm_command(measured.goal_m, angles_rad), np.float32)
        # The measured angles stay where they are; only the belief moves.
        assert (ego.act(measured)[:7] == expected).all()
        angles_rad = [a + 0.1 * float(e) for a, e in zip(angles_rad, expected, strict=True)]


def test_blind_ego_looks_again_after_reset():
    ego = BlindEgo()
    first = ego.act(View(FAR))
    ego.act(View(FAR))
    ego.reset(0)
    assert (ego.act(View(FAR)) == first).all()


def test_every_scripted_policy_can_be_built():
    for policy in ("ref_script_cocarry_impedance", "random", "static", "cocarry_blind_impedance"):
        ego = build_ego(policy, 0)
        ego.reset(0)
        assert ego.act(View(FAR)).shape == (8,)


def test_static_ego_commands_nothing():
    assert isinstance(build_ego("static", 0), ZeroPlayer)


def test_unknown_policy():
    with pytest.raises(ConfigError, match="policy must be one of"):
        build_ego("oracle", 0)


def test_a_learned_policy_needs_a_checkpoint():
    with pytest.raises(ConfigError, match="policy happo must have a checkpoint, found none"):
        build_ego("happo", 0)


def test_ready_posture_turns_the_fingers_along_the_bar():
    assert rig.READY_POSTURE[6] == -math.pi / 4
