"""The training loop: act, learn, save; a killed training goes on from its last checkpoint to the same bits."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from safetensors.numpy import load, save

from rowproof.chamber.learned.networks import tensors_of
from rowproof.chamber.learned.policy import Actor
from rowproof.chamber.learned.ppo import Learners, Rollout
from rowproof.chamber.learned.tensors import encode
from rowproof.chamber.training_config import TrainingConfig
from rowproof.checkpoints import file_name, store
from rowproof.files import write_atomic
from rowproof.hashing import sha256_hex
from rowproof.seeding import substream

SEATS = ("ego", "partner")
STATE_FILE = "resume.state"
# Updates that one point of the learning curve stands for.
CURVE_UPDATES = 10
CURVE_COLUMNS = ("frames", "reward_mean", "episodes", "successes", "value_mean", "action_std")
STREAMS = {"happo": "training.ego_ppo", "mappo": "training.joint_mappo"}
"""Prefix of the random streams of a training, by its algorithm."""


class Outcome(NamedTuple):
    """What one environment step led to.

    Attributes:
        states: per learning seat float32 of shape (state_size,); at the end of an episode its last states.
        reward: the shared reward, shaping included.
        succeeded: whether the episode ended in success.
        truncated: whether it ended for lack of time.
    """

    states: list[np.ndarray]
    reward: float
    succeeded: bool
    truncated: bool


class Task(Protocol):
    """What can be trained on."""

    state_size: int
    action_size: int

    def fresh(self, episode: int) -> list[np.ndarray]:
        """Start episode number ``episode`` (from 0) of the training as if nothing had run before; see ``reset``."""

    def reset(self) -> list[np.ndarray]:
        """Start the next episode; returns the states of the learning seats."""

    def step(self, actions: list[np.ndarray]) -> Outcome:
        """Let the learning seats act (float32 of shape (action_size,) each)."""


class Watcher(Protocol):
    """Who follows a training, and may end it by raising."""

    def resume(self, done: int) -> None:
        """Take note of the frames that an earlier process has left."""

    def advance(self, units: int, work: int, note: str) -> None:
        """Take note of so many frames more."""


def _torch_seed(config: TrainingConfig, seed: int) -> int:
    return int(substream(f"{STREAMS[config.algorithm]}.torch", seed).integers(0, 2**31 - 1))


class Training:
    """One training under way; all that it depends on is config, task and seed.

    Every checkpoint also ends the episode under way, as if its time were over, and the next one starts in a new
    scene, because nothing can save the inside of a physics engine. So what follows a checkpoint depends on what is
    saved with it alone.
    """

    def __init__(self, config: TrainingConfig, task: Task, seed: int, folder: Path) -> None:
        """Prepare the training ``seed``; ``folder`` is where checkpoints and the state to resume from lie."""
        seats = 1 if config.algorithm == "happo" else len(SEATS)
        self._config, self._task, self._seed, self._folder = config, task, seed, folder
        self.frames = 0
        self.saved: list[dict[str, Any]] = []
        self.curve: list[list[float]] = []
        self._episodes = 0
        self._recent = dict.fromkeys(("rewards", "episodes", "successes", "values", "updates"), 0.0)
        self._learners = Learners(config, seats, task.state_size, task.action_size, _torch_seed(config, seed))
        n = config.rollout_frames
        self._buffer = {
            **{f"states{i}": np.zeros((n, task.state_size), np.float32) for i in range(seats)},
            **{f"actions{i}": np.zeros((n, task.action_size), np.float32) for i in range(seats)},
            "rewards": np.zeros(n, np.float32),
            "succeeded": np.zeros(n, np.uint8),
            "truncated": np.zeros(n, np.uint8),
            "following": np.zeros((n, task.state_size), np.float32),
        }
        self._seats = range(seats)

    def run(self, watcher: Watcher) -> dict[str, Any]:
        """Train to the end and return the document of the training (plain data, without any timing)."""
        config, task = self._config, self._task
        if self._resume():
            watcher.resume(self.frames)
        states = task.fresh(self._episodes)
        self._prepare_rollout()
        while self.frames < config.frames:
            index = self.frames % config.rollout_frames
            outcome = self._step(index, states)
            self.frames += 1
            ended = outcome.succeeded or outcome.truncated
            cut = self.frames % config.checkpoint_frames == 0
            if cut and not ended:
                self._buffer["truncated"][index] = True
            if ended or cut:
                self._episodes += 1
                self._recent["episodes"] += 1
                self._recent["successes"] += outcome.succeeded
            if index == config.rollout_frames - 1:
                self._learn()
                watcher.advance(config.rollout_frames, config.rollout_frames, self._note())
            if cut:
                self._save()
                states = task.fresh(self._episodes)
            else:
                states = task.reset() if ended else outcome.states
        return {
            "schema": "rowproof/training-run/1",
            "training": config.training,
            "training_seed": self._seed,
            "frames": self.frames,
            "checkpoints": self.saved,
            "curve": {"columns": list(CURVE_COLUMNS), "points": self.curve},
        }

    def _step(self, index: int, states: list[np.ndarray]) -> Outcome:
        buffer, actions = self._buffer, []
        for seat in self._seats:
            mean = self._actors[seat].mean_action(states[seat])
            action = mean + self._stds[seat] * self._noise[index, seat]
            buffer[f"states{seat}"][index], buffer[f"actions{seat}"][index] = states[seat], action
            actions.append(action)
        outcome = self._task.step(actions)
        buffer["rewards"][index] = outcome.reward
        buffer["succeeded"][index] = outcome.succeeded
        buffer["truncated"][index] = outcome.truncated
        buffer["following"][index] = outcome.states[0]
        return outcome

    def _prepare_rollout(self) -> None:
        """What stays the same between two updates: the policies, and the noise of the actions."""
        self._actors = [Actor(tensors_of(actor)) for actor in self._learners.actors]
        self._stds = self._learners.stds()
        number = self.frames // self._config.rollout_frames
        stream = substream(f"{STREAMS[self._config.algorithm]}.noise.{number}", self._seed)
        shape = (self._config.rollout_frames, len(self._seats), self._task.action_size)
        self._noise = stream.standard_normal(shape, np.float32)

    def _learn(self) -> None:
        buffer, recent = self._buffer, self._recent
        value_mean = self._learners.update(
            Rollout(
                [buffer[f"states{seat}"] for seat in self._seats],
                [buffer[f"actions{seat}"] for seat in self._seats],
                buffer["rewards"],
                buffer["succeeded"].astype(bool),
                buffer["truncated"].astype(bool),
                buffer["following"],
            )
        )
        recent["rewards"] += float(np.mean(buffer["rewards"], dtype=np.float64))
        recent["values"] += value_mean
        recent["updates"] += 1
        self._prepare_rollout()
        if recent["updates"] == CURVE_UPDATES:
            self.curve.append(
                [
                    self.frames,
                    round(recent["rewards"] / CURVE_UPDATES, 6),
                    int(recent["episodes"]),
                    int(recent["successes"]),
                    round(recent["values"] / CURVE_UPDATES, 6),
                    round(float(np.mean(self._stds[0], dtype=np.float64)), 6),
                ]
            )
            self._recent = dict.fromkeys(recent, 0.0)

    def _note(self) -> str:
        if not self.curve:
            return "success unknown"
        episodes, successes = self.curve[-1][2:4]
        return f"success {successes} of {episodes}"

    # ---- saving and resuming -----------------------------------------------------------------------------------

    def _save(self) -> None:
        tensors = {
            f"{SEATS[seat]}.{name}": value
            for seat in self._seats
            for name, value in tensors_of(self._learners.actors[seat]).items()
        }
        self.saved.append({"step": self.frames, "uri": store(self._folder, encode(tensors))})
        position = {
            "seed": self._seed,
            "frames": self.frames,
            "episodes": self._episodes,
            "saved": self.saved,
            "curve": self.curve,
            "recent": self._recent,
        }
        state = {f"buffer.{name}": value for name, value in self._buffer.items()} | self._learners.state()
        data = save(state, {"position": json.dumps(position)})
        write_atomic(self._folder / STATE_FILE, sha256_hex(data).encode() + b"\n" + data)

    def _resume(self) -> bool:
        """Go on from the saved state, if there is a whole one whose checkpoints are all there."""
        found = _read_state(self._folder / STATE_FILE)
        if found is None:
            return False
        position, state = found
        whole = position["seed"] == self._seed and all(
            (self._folder / file_name(saved["uri"])).is_file() for saved in position["saved"]
        )
        if not whole:
            return False
        self._learners.restore(state)
        for name in self._buffer:
            self._buffer[name] = state[f"buffer.{name}"].copy()
        self.frames, self._episodes = position["frames"], position["episodes"]
        self.saved, self.curve, self._recent = position["saved"], position["curve"], position["recent"]
        return True


def _read_state(path: Path) -> tuple[dict[str, Any], Mapping[str, np.ndarray]] | None:
    """Position and tensors of a saved state; None when there is none or it is damaged, so that all starts anew."""
    if not path.is_file():
        return None
    digest, _, data = path.read_bytes().partition(b"\n")
    if digest.decode("ascii", "replace") != sha256_hex(data):
        return None
    header = int.from_bytes(data[:8], "little")
    return json.loads(json.loads(data[8 : 8 + header])["__metadata__"]["position"]), load(data)


def discard_state(folder: Path) -> None:
    """Remove what only an unfinished training needs."""
    (folder / STATE_FILE).unlink(missing_ok=True)
