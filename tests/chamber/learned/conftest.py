"""What the tests of learned players share: a cheap task, small trainings, and actors with random tensors."""

from itertools import pairwise

import numpy as np
import pytest
from rowproof.chamber.training_config import TrainingConfig
from rowproof.seeding import substream

CONFIG = {
    "schema": "rowproof/training/1",
    "training": "toy",
    "algorithm": "happo",
    "blind": False,
    # Checkpoints fall into the middle of rollouts and of episodes.
    "frames": 1600,
    "checkpoint_frames": 400,
    "rollout_frames": 160,
    "epochs": 2,
    "hidden_units": [8, 8],
    "learning_rate": 1e-3,
    "actor_adam_eps": 1e-5,
    "critic_adam_eps": 1e-8,
    "discount": 0.9,
    "gae_lambda": 0.95,
    "clip": 0.1,
    "entropy_coefficient": 0.01,
    "max_gradient_norm": 10.0,
    "std_ceiling": 0.5,
    "initial_std_parameter": 1.0,
    "mean_gain": 0.01,
    "shaping_weight": 1.0,
}


class ToyTask:
    """A point that is pushed to a goal; what ``fresh`` clears outlives a reset, as contact caches do."""

    state_size = 5
    action_size = 2
    max_steps = 30

    def __init__(self, seed, seats=1):
        self._seed, self._seats = seed, seats

    def fresh(self, episode):
        self._goals = substream("test.toy", self._seed)
        for _ in range(episode):
            self._goals.uniform(-0.4, 0.4, 2)
        self._heat = 0.0
        return self.reset()

    def reset(self):
        self._goal = self._goals.uniform(-0.4, 0.4, 2)
        self._position, self._steps = np.zeros(2), 0
        return self._states()

    def step(self, actions):
        from rowproof.chamber.learned.trainer import Outcome

        self._heat += 0.001
        self._position = self._position + sum(action.clip(-1, 1) for action in actions) * (0.2 + self._heat)
        self._steps += 1
        distance = float(np.linalg.norm(self._position - self._goal))
        over = self._steps == self.max_steps
        succeeded = distance < 0.15 and not over
        return Outcome(self._states(), float(succeeded) - distance, succeeded, over)

    def _states(self):
        state = np.concatenate([self._position, self._goal, [self._steps / 10]]).astype(np.float32)
        return [state, state[::-1].copy()][: self._seats]


class Follower:
    """Notes what a training says of itself, and ends it at the ``stop``-th update."""

    class Ended(Exception):
        pass

    def __init__(self, stop=None):
        self._stop, self.resumed, self.advances = stop, [], []

    def resume(self, done):
        self.resumed.append(done)

    def advance(self, units, work, note):
        self.advances.append((units, work, note))
        if len(self.advances) == self._stop:
            raise self.Ended


@pytest.fixture(scope="session")
def config():
    """A function that makes a small configuration."""

    def make(**changes):
        return TrainingConfig.model_validate({**CONFIG, **changes})

    return make


@pytest.fixture(scope="session")
def toy():
    """The class of the cheap task."""
    return ToyTask


@pytest.fixture(scope="session")
def follower():
    """The class of a watcher that notes and ends."""
    return Follower


@pytest.fixture(scope="session")
def train(config):
    """A function that runs a training of the cheap task and gives its document."""

    def run(folder, seed=0, watcher=None, **changes):
        from rowproof.chamber.learned.trainer import Training

        chosen = config(**changes)
        task = ToyTask(seed, 2 if chosen.algorithm == "mappo" else 1)
        return Training(chosen, task, seed, folder).run(watcher or Follower())

    return run


@pytest.fixture(scope="session")
def actor_tensors():
    """A function that makes the tensors of an actor whose actions are of the order of one."""

    def make(label, state_size=46, hidden_units=(16, 16), action_size=8):
        rng = substream(f"test.actor.{label}", 0)
        sizes = [state_size, *hidden_units]

        def around(mean, *shape):
            return (mean + 0.3 * rng.standard_normal(shape)).astype(np.float32)

        tensors = {"input_norm.weight": around(1, state_size), "input_norm.bias": around(0, state_size)}
        for index, (inputs, outputs) in enumerate(pairwise(sizes)):
            tensors |= {
                f"hidden.{index}.weight": around(0, outputs, inputs) * np.float32(3 / inputs**0.5),
                f"hidden.{index}.bias": around(0, outputs),
                f"norms.{index}.weight": around(1, outputs),
                f"norms.{index}.bias": around(0, outputs),
            }
        weight = around(0, action_size, sizes[-1]) / np.float32(sizes[-1] ** 0.5)
        return tensors | {
            "mean.weight": weight,
            "mean.bias": around(0, action_size),
            "std_parameter": around(1, action_size),
        }

    return make
