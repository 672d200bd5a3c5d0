"""``mpe_cooperative_push@v1``: two points, two landmarks, one shared reward; a diagnostic without contact or force.

Actions and observations are float32; positions and rewards are doubles, and each step is the same few roundings
everywhere, so records are equal to the last bit on every platform.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from rowproof.chamber.by_name import load
from rowproof.chamber.cells import parse_cell
from rowproof.chamber.push_cell import PushCell
from rowproof.seeding import substream

EGO, PARTNER = 0, 1
OBSERVATION_SIZE = 10

EGOS, PARTNERS = "rowproof.chamber.push_egos", "rowproof.chamber.push_partners"

Action = Callable[[np.ndarray], np.ndarray]


class Push:
    """The state of one environment: two landmarks and two agents in the square [-1, 1]^2.

    Attributes:
        rng: the running generator of initial states.
        steps: steps since the last reset.
    """

    def __init__(self, cell: PushCell, root_seed: int) -> None:
        """Make an environment that waits for its first :meth:`reset`."""
        self.cell = cell
        self.root_seed = root_seed
        self.rng = substream("env.mpe_cooperative_push", root_seed)
        self.landmarks: list[list[float]] = [[0.0, 0.0], [0.0, 0.0]]
        self.positions: list[list[float]] = [[0.0, 0.0], [0.0, 0.0]]
        self.velocities: list[list[float]] = [[0.0, 0.0], [0.0, 0.0]]
        self.steps = cell.steps

    def reset(self, episode: int | None) -> None:
        """Start the episode with this number; None draws the next one from the running generator."""
        if episode is not None:
            self.rng = substream(f"env.mpe_cooperative_push.episode.{episode}", self.root_seed)
        self.landmarks = self.rng.uniform(-1.0, 1.0, (2, 2)).tolist()
        self.positions = [self.rng.uniform(-1.0, 1.0, 2).tolist() for _ in (EGO, PARTNER)]
        self.velocities = [[0.0, 0.0], [0.0, 0.0]]
        self.steps = 0

    @property
    def truncated(self) -> bool:
        """Whether the episode has run its steps (or none was started); it never ends earlier."""
        return self.steps >= self.cell.steps

    @property
    def reward(self) -> float:
        """Minus the sum, over the landmarks, of the distance to the nearest agent."""
        total = 0.0
        for x, y in self.landmarks:
            total += min(math.sqrt((px - x) * (px - x) + (py - y) * (py - y)) for px, py in self.positions)
        return -total

    def step(self, ego: np.ndarray, partner: np.ndarray) -> float:
        """Move both agents and return the reward.

        Each action is a velocity, float32 of shape (2,), clipped to [-1, 1] per axis.

        Raises:
            ValueError: an action has another length or is not finite.
        """
        actions = [np.asarray(action, dtype=np.float32) for action in (ego, partner)]
        for action in actions:
            if action.shape != (2,) or not np.isfinite(action).all():
                raise ValueError(f"an action must be 2 finite numbers, found {action!r}")
        for agent, action in enumerate(actions):
            velocity = [min(max(v, -1.0), 1.0) for v in action.tolist()]
            self.velocities[agent] = velocity
            self.positions[agent] = [
                min(max(position + self.cell.dt_s * v, -1.0), 1.0)
                for position, v in zip(self.positions[agent], velocity, strict=True)
            ]
        self.steps += 1
        return self.reward

    def observation(self, agent: int) -> np.ndarray:
        """What ``agent`` sees, float32 of shape (10,).

        Own position, own velocity, both landmarks relative to itself, the other agent relative to itself.
        """
        x, y = self.positions[agent]
        values = [x, y, *self.velocities[agent]]
        for px, py in (*self.landmarks, self.positions[1 - agent]):
            values += [px - x, py - y]
        return np.array(values, dtype=np.float32)


def build_ego(policy: str, seed: int, episode_idx: int, root_seed: int) -> Action:
    """The ego ``policy`` at the start of one episode.

    Raises:
        ConfigError: there is no such policy.
    """
    return load(EGOS, policy, "policy").build(seed, episode_idx, root_seed)


def build_partner(member: Mapping[str, Any]) -> Action:
    """The partner of one entry of ``setup["members"]``, by its ``class``.

    Raises:
        ConfigError: the class is unknown or its parameters do not fit it.
    """
    where = f"partner {member['name']}"
    return load(PARTNERS, member["class"], f"{where}: class").build(member["params"], where)


def simulate(setup: Mapping[str, Any], specs: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The record of every spec, in the order of ``specs``; each depends on its own spec and ``setup`` alone.

    The cluster seed is the root seed of the environment and the initial state seed its episode number.

    Args:
        setup: plain data with ``cell``, ``policy``, ``root_seed``, ``partner_set`` and ``members``.
        specs: any part of :func:`rowproof.chamber.grid.specs`, in any order.

    Raises:
        ConfigError: the cell, policy or a member that runs is not valid.
    """
    cell = parse_cell(PushCell, setup["cell"])
    members = {member["name"]: member for member in setup["members"]}
    for spec in specs:
        ego = build_ego(setup["policy"], spec["seed"], spec["episode_idx"], setup["root_seed"])
        partner = build_partner(members[spec["member"]])
        push = Push(cell, spec["seed"])
        push.reset(spec["initial_state_seed"])
        while not push.truncated:
            push.step(ego(push.observation(EGO)), partner(push.observation(PARTNER)))
        yield {
            "seed": spec["seed"],
            "episode_idx": spec["episode_idx"],
            "initial_state_seed": spec["initial_state_seed"],
            "success": push.reward >= cell.success_reward,
            "constraint_violation_peak": 0.0,
            "fallback_fired": 0,
            "force_peak": None,
            "metadata": {
                "condition": cell.condition,
                "member": spec["member"],
                "partner_set": setup["partner_set"],
                "final_reward": push.reward,
            },
        }
