import warnings

import numpy as np
import pytest
from rowproof.chamber.cocarry import rig
from rowproof.chamber.cocarry.goals import GoalStream, evaluation_goal_m
from rowproof.chamber.cocarry.impedance import Gains, ImpedanceController
from rowproof.chamber.cocarry.observation import View
from rowproof.chamber.cocarry.runner import Runner
from rowproof.chamber.cocarry.seats import build_ego

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium (extra gym) is not installed")

pytestmark = pytest.mark.usefixtures("simulator")


@pytest.fixture
def env(simulator):
    from rowproof.chamber.cocarry.env import CocarryEnv

    return CocarryEnv()


def test_environment_passes_the_checker_without_warnings(simulator):
    from gymnasium.utils.env_checker import check_env
    from rowproof.chamber.cocarry import env as module

    module.register()
    module.register()
    made = gymnasium.make(module.ENV_ID)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(made.unwrapped)


def test_environment_plays_the_episodes_of_evaluation(env):
    ego = build_ego("ref_script_cocarry_impedance", 0)
    view = View(env.scene, rig.EGO)
    for seed in (0, 3):
        env.reset(seed=seed)
        ego.reset(seed)
        steps, over, rewards = 0, False, []
        while not over:
            state, reward, terminated, truncated, info = env.step(ego.act(view))
            assert env.observation_space.contains(state)
            rewards.append(reward)
            steps += 1
            over = terminated or truncated
        episode = Runner(env.cell).run(ego, ImpedanceController(rig.PARTNER, Gains()), seed)
        assert (steps, terminated, info["distance_m"]) == (episode.steps, episode.success, episode.distance_m)
        assert rewards[-1] == 1.0
        assert max(rewards[:-1]) < 0.6


def test_unseeded_resets_follow_the_goal_stream(env):
    goals = GoalStream(0)
    for _ in range(3):
        state, _ = env.reset()
        assert (state[43:] == goals.next().astype(np.float32)).all()
    state, _ = env.reset(seed=9)
    assert (state[43:] == evaluation_goal_m(9).astype(np.float32)).all()


def test_reused_scenes_are_those_of_training(simulator):
    from rowproof.chamber.cocarry.env import CocarryEnv

    def second_state(fresh_scenes):
        env = CocarryEnv(fresh_scenes=fresh_scenes)
        for _ in range(2):
            env.reset(seed=0)
            state = env.step(np.zeros(8, np.float32))[0]
        return state

    fresh, reused = second_state(True), second_state(False)
    assert (fresh != reused).any()


def test_step_needs_an_episode(env):
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(8, np.float32))


@pytest.mark.parametrize("action", [np.zeros(7), np.full(8, np.nan), np.zeros((1, 8))])
def test_step_refuses(env, action):
    env.reset(seed=0)
    with pytest.raises(ValueError, match="8 finite numbers"):
        env.step(action)


def test_reset_refuses_a_negative_seed(env):
    with pytest.raises(ValueError, match="must not be negative"):
        env.reset(seed=-1)
