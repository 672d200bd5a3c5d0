"""Proximal policy optimisation of one or more actors that share a reward and a critic.

With one actor this is PPO with clipping, to which HAPPO reduces when a single agent learns; with several it is MAPPO
without parameter sharing: all actors are updated on the same advantages.
Sources: Schulman et al. 2017 (arXiv:1707.06347), Yu et al. 2022 (arXiv:2103.01955), Kuba et al. 2022
(arXiv:2109.11251); estimator of advantages: Schulman et al. 2016 (arXiv:1506.02438).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rowproof.chamber.learned.networks import Actor, Critic, tensors_of, torch
from rowproof.chamber.training_config import TrainingConfig

ADVANTAGE_EPS = 1e-5


def advantages(
    rewards: np.ndarray, values: np.ndarray, next_values: np.ndarray, ended: np.ndarray, discount: float, lam: float
) -> np.ndarray:
    """Generalised advantage estimates of one rollout, float64 of shape (n,).

    Args:
        rewards: of each step, shape (n,).
        values: of the state before each step, shape (n,).
        next_values: of the state that followed, shape (n,): 0 after success, the value of the last state of an
            episode that ran out of time.
        ended: whether the episode ended with the step, for either reason; no advantage passes over it.
        discount: per step.
        lam: the estimator's lambda.
    """
    deltas = rewards.astype(np.float64) + discount * next_values.astype(np.float64) - values
    estimates = np.zeros(len(deltas))
    following = 0.0
    for index in reversed(range(len(deltas))):
        following = deltas[index] + discount * lam * (0.0 if ended[index] else following)
        estimates[index] = following
    return estimates


@dataclass(frozen=True)
class Rollout:
    """What one update learns from: n consecutive environment steps.

    Attributes:
        states: per learner float32 of shape (n, state_size).
        actions: per learner float32 of shape (n, action_size), as sampled, before the environment clips them.
        rewards: shape (n,).
        succeeded: bool of shape (n,), whether the episode ended in success.
        truncated: bool of shape (n,), whether it ended otherwise.
        following: the first learner's state after each step, float32 of shape (n, state_size); at the end of an
            episode its last state, not the first of the next.
    """

    states: list[np.ndarray]
    actions: list[np.ndarray]
    rewards: np.ndarray
    succeeded: np.ndarray
    truncated: np.ndarray
    following: np.ndarray


class Learners:
    """Actors, critic and their optimisers."""

    def __init__(self, config: TrainingConfig, seats: int, state_size: int, action_size: int, torch_seed: int) -> None:
        """Initial networks: actors in the order of seats, then the critic, all from ``torch_seed``."""
        self._config = config
        torch.manual_seed(torch_seed)
        self.actors = [
            Actor(
                state_size,
                action_size,
                config.hidden_units,
                config.mean_gain,
                config.std_ceiling,
                config.initial_std_parameter,
            )
            for _ in range(seats)
        ]
        self.critic = Critic(state_size, config.hidden_units)
        self._optimisers = [
            *(
                torch.optim.Adam(a.parameters(), lr=config.learning_rate, eps=config.actor_adam_eps)
                for a in self.actors
            ),
            torch.optim.Adam(self.critic.parameters(), lr=config.learning_rate, eps=config.critic_adam_eps),
        ]

    def stds(self) -> list[np.ndarray]:
        """Per learner the standard deviation of its action, float32 of shape (action_size,)."""
        return [actor.std().detach().numpy().copy() for actor in self.actors]

    def update(self, rollout: Rollout) -> float:
        """Learn from one rollout; returns the mean value that the critic gave its states before."""
        config = self._config
        states = [torch.from_numpy(each) for each in rollout.states]
        actions = [torch.from_numpy(each) for each in rollout.actions]
        with torch.no_grad():
            old_values = self.critic(states[0])
            next_values = self.critic(torch.from_numpy(rollout.following)).numpy()
            old_log_probs = [
                actor.distribution(s).log_prob(a) for actor, s, a in zip(self.actors, states, actions, strict=True)
            ]
        estimates = advantages(
            rollout.rewards,
            old_values.numpy(),
            np.where(rollout.succeeded, np.float32(0), next_values),
            rollout.succeeded | rollout.truncated,
            config.discount,
            config.gae_lambda,
        )
        returns = torch.from_numpy((estimates + old_values.numpy()).astype(np.float32))
        estimates = estimates.astype(np.float32)
        normed = torch.from_numpy((estimates - estimates.mean()) / (estimates.std() + np.float32(ADVANTAGE_EPS)))
        *actor_optimisers, critic_optimiser = self._optimisers
        for _ in range(config.epochs):
            for actor, optimiser, own, acted, old in zip(
                self.actors, actor_optimisers, states, actions, old_log_probs, strict=True
            ):
                distribution = actor.distribution(own)
                ratio = torch.exp(distribution.log_prob(acted) - old).prod(-1)
                clipped = torch.clamp(ratio, 1 - config.clip, 1 + config.clip)
                gain = torch.minimum(ratio * normed, clipped * normed).mean()
                entropy = distribution.entropy().sum(-1).mean()
                optimiser.zero_grad()
                (-gain - config.entropy_coefficient * entropy).backward()
                torch.nn.utils.clip_grad_norm_(actor.parameters(), config.max_gradient_norm)
                optimiser.step()
            loss = torch.nn.functional.mse_loss(self.critic(states[0]), returns)
            critic_optimiser.zero_grad()
            loss.backward()
            critic_optimiser.step()
        return float(old_values.mean())

    # ---- saving and resuming -----------------------------------------------------------------------------------

    def _modules(self) -> dict[str, tuple[torch.nn.Module, torch.optim.Optimizer]]:
        names = [*(f"actor{index}" for index in range(len(self.actors))), "critic"]
        return dict(zip(names, zip([*self.actors, self.critic], self._optimisers, strict=True), strict=True))

    def state(self) -> dict[str, np.ndarray]:
        """Everything that a later update depends on: networks and moments of the optimisers."""
        found = {}
        for name, (module, optimiser) in self._modules().items():
            found |= {f"{name}.{key}": value for key, value in tensors_of(module).items()}
            for index, moments in optimiser.state_dict()["state"].items():
                found |= {f"{name}.adam.{index}.{key}": value.numpy().copy() for key, value in moments.items()}
        return found

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Take over what :meth:`state` gave."""
        for name, (module, optimiser) in self._modules().items():
            own = {key.removeprefix(f"{name}."): value for key, value in state.items() if key.startswith(f"{name}.")}
            tensors = {key: torch.from_numpy(value.copy()) for key, value in own.items()}
            module.load_state_dict({key: value for key, value in tensors.items() if not key.startswith("adam.")})
            moments: dict[int, dict[str, torch.Tensor]] = {}
            for key, value in tensors.items():
                if key.startswith("adam."):
                    _, index, moment = key.split(".")
                    moments.setdefault(int(index), {})[moment] = value
            optimiser.load_state_dict({**optimiser.state_dict(), "state": moments})
