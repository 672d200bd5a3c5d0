"""Advantages and updates, against plain references written from the definitions."""

import copy
import math

import numpy as np
import pytest
from rowproof.seeding import substream

networks = pytest.importorskip("rowproof.chamber.learned.networks", reason="torch (extra training) is not installed")
from rowproof.chamber.learned import ppo  # noqa: E402

torch = networks.torch

STATES, ACTIONS = 5, 2


# ---- advantages ------------------------------------------------------------------------------------------------


def plain_advantages(rewards, values, next_values, ended, discount, lam):
    """The sum over all later steps of the same episode, each term written out."""
    count = len(rewards)
    deltas = [float(rewards[t]) + discount * float(next_values[t]) - float(values[t]) for t in range(count)]
    found = []
    for start in range(count):
        terms = []
        for t in range(start, count):
            terms.append((discount * lam) ** (t - start) * deltas[t])
            if ended[t]:
                break
        found.append(math.fsum(terms))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_advantages_are_those_of_the_definition(seed):
    rng = substream("test.advantages", seed)
    count = int(rng.integers(1, 80))
    rewards, values, following = rng.normal(0, 2, (3, count)).astype(np.float32)
    ended = rng.random(count) < 0.15
    discount, lam = rng.uniform(0, 1, 2)
    found = ppo.advantages(rewards, values, following, ended, discount, lam)
    assert found.dtype == np.float64
    assert found == pytest.approx(plain_advantages(rewards, values, following, ended, discount, lam), rel=1e-12)


CASES = {
    # Name: rewards, values, values that followed, ended, expected (discount 0.5, lambda 0.5).
    "success, nothing follows": ([1.0], [0.5], [0.0], [True], [0.5]),
    "out of time, the last state has a value": ([1.0], [0.5], [2.0], [True], [1.5]),
    "end of the rollout, the next state has a value": ([1.0], [0.5], [2.0], [False], [1.5]),
    "two steps of one episode": ([1.0, 1.0], [0.0, 2.0], [2.0, 4.0], [False, False], [2.25, 1.0]),
    "no advantage passes over an end": ([1.0, 1.0], [0.0, 2.0], [2.0, 4.0], [True, False], [2.0, 1.0]),
    "an end in the middle": ([0.0, 1.0, 8.0], [0.0] * 3, [0.0] * 3, [False, True, True], [0.25, 1.0, 8.0]),
}


@pytest.mark.parametrize("name", CASES)
def test_advantages_by_hand(name):
    *arrays, ended, expected = CASES[name]
    rewards, values, following = (np.array(each, np.float32) for each in arrays)
    assert ppo.advantages(rewards, values, following, np.array(ended), 0.5, 0.5).tolist() == expected


def test_advantages_accumulate_in_double_precision():
    count = 2000
    rewards = np.full(count, 0.1, np.float32)
    zeros = np.zeros(count, np.float32)
    found = ppo.advantages(rewards, zeros, zeros, np.zeros(count, bool), 1.0, 1.0)[0]
    single = np.float32(0)
    for reward in rewards:
        single += reward
    exact = count * float(np.float32(0.1))
    assert abs(found - exact) < 1e-9 < abs(float(single) - exact)


# ---- updates ---------------------------------------------------------------------------------------------------


def learners_of(config, seats=1, **changes):
    return ppo.Learners(config(**changes), seats, STATES, ACTIONS, 7)


def rollout_of(seats=1, count=40, seed=0, own=None):
    """Random steps with both kinds of ends; ``own`` replaces what the second seat saw and did."""
    rng = substream("test.rollout", seed)
    states = [rng.normal(0, 1, (count, STATES)).astype(np.float32) for _ in range(2)]
    actions = [rng.normal(0, 0.5, (count, ACTIONS)).astype(np.float32) for _ in range(2)]
    succeeded, truncated = np.zeros((2, count), bool)
    succeeded[[9, 25]] = truncated[[3, 17]] = True
    following = rng.normal(0, 1, (count, STATES)).astype(np.float32)
    rewards = rng.normal(0, 1, count).astype(np.float32)
    if own is not None:
        states[1], actions[1] = own
    return ppo.Rollout(states[:seats], actions[:seats], rewards, succeeded, truncated, following)


def tensors(module):
    return {name: value.tolist() for name, value in networks.tensors_of(module).items()}


def moved(before, after):
    return max(np.abs(np.subtract(before[name], after[name])).max() for name in before)


@pytest.fixture
def watched(monkeypatch):
    """Ratios of all epochs and seats, and the advantages that they were weighed with."""
    seen = {"ratios": [], "gains": []}
    clamp, minimum = torch.clamp, torch.minimum

    def watched_clamp(values, *limits, **more):
        # Limiting a gradient calls it by keyword.
        if limits:
            seen["ratios"].append(values.detach().numpy().copy())
        return clamp(values, *limits, **more)

    def watched_minimum(gain, clipped):
        seen["gains"].append(gain.detach().numpy().copy())
        return minimum(gain, clipped)

    monkeypatch.setattr(ppo.torch, "clamp", watched_clamp)
    monkeypatch.setattr(ppo.torch, "minimum", watched_minimum)
    return seen


def test_the_first_ratio_of_an_update_is_exactly_one(config, watched):
    learners = learners_of(config, epochs=3, learning_rate=0.01)
    for seed in range(2):
        watched["ratios"].clear()
        learners.update(rollout_of(seed=seed))
        first, *later = watched["ratios"]
        assert (first == 1).all() and len(later) == 2 and all((ratio != 1).any() for ratio in later)


def test_without_a_rate_nothing_is_learned(config, watched):
    learners = learners_of(config, epochs=3)
    for optimiser in learners._optimisers:
        optimiser.param_groups[0]["lr"] = 0.0
    before = [tensors(module) for module in (*learners.actors, learners.critic)]
    learners.update(rollout_of())
    assert [tensors(module) for module in (*learners.actors, learners.critic)] == before
    assert len(watched["ratios"]) == 3 and all((ratio == 1).all() for ratio in watched["ratios"])


def plain_targets(learners, rollout):
    """Advantages and returns, from the networks before the update."""
    config = learners._config
    with torch.no_grad():
        values = learners.critic(torch.from_numpy(rollout.states[0])).numpy()
        following = learners.critic(torch.from_numpy(rollout.following)).numpy()
    following = [0.0 if success else value for success, value in zip(rollout.succeeded, following, strict=True)]
    ended = rollout.succeeded | rollout.truncated
    found = plain_advantages(rollout.rewards, values, following, ended, config.discount, config.gae_lambda)
    return np.array(found), np.array(found) + values


def test_advantages_are_normed_with_the_deviation_of_the_population(config, watched):
    learners = learners_of(config)
    rollout = rollout_of()
    found, _ = plain_targets(learners, rollout)
    learners.update(rollout)
    # The first ratio is one, so the first gain is the normed advantage itself.
    expected = (found - found.mean()) / (np.sqrt(np.mean((found - found.mean()) ** 2)) + 1e-5)
    assert watched["gains"][0] == pytest.approx(expected, abs=1e-5)


def test_update_is_that_of_the_definition(config):
    changes = {"epochs": 4, "learning_rate": 0.02, "clip": 0.1, "entropy_coefficient": 0.3, "max_gradient_norm": 0.5}
    learners = learners_of(config, **changes)
    rollout = rollout_of()
    found, returns = plain_targets(learners, rollout)
    normed = torch.from_numpy(((found - found.mean()) / (found.std() + 1e-5)).astype(np.float32))
    actor, critic = copy.deepcopy(learners.actors[0]), copy.deepcopy(learners.critic)
    actor_adam = torch.optim.Adam(actor.parameters(), lr=0.02, eps=1e-5)
    critic_adam = torch.optim.Adam(critic.parameters(), lr=0.02, eps=1e-8)
    states, actions = torch.from_numpy(rollout.states[0]), torch.from_numpy(rollout.actions[0])

    def log_density():
        std = 0.5 / (1 + torch.exp(-actor.std_parameter))
        return -(((actions - actor(states)) / std) ** 2) / 2 - torch.log(std) - math.log(2 * math.pi) / 2

    old = log_density().detach()
    clipped_steps = 0
    for _ in range(4):
        ratio = (log_density() - old).sum(1).exp()
        bounded = ratio.clip(0.9, 1.1)
        clipped_steps += int((ratio != bounded).sum())
        gain = torch.where(ratio * normed < bounded * normed, ratio * normed, bounded * normed).sum() / len(normed)
        entropy = (0.5 * math.log(2 * math.pi * math.e) + torch.log(0.5 / (1 + torch.exp(-actor.std_parameter)))).sum()
        actor_adam.zero_grad()
        (-gain - 0.3 * entropy).backward()
        norm = sum((p.grad**2).sum() for p in actor.parameters()) ** 0.5
        for parameter in actor.parameters():
            parameter.grad *= min(1.0, 0.5 / float(norm))
        actor_adam.step()
        critic_adam.zero_grad()
        ((critic(states) - torch.from_numpy(returns.astype(np.float32))) ** 2).mean().backward()
        critic_adam.step()
    assert clipped_steps > 5
    learners.update(rollout)
    for expected, module in ((actor, learners.actors[0]), (critic, learners.critic)):
        after = networks.tensors_of(module)
        for name, tensor in networks.tensors_of(expected).items():
            assert after[name] == pytest.approx(tensor, abs=2e-5), name


def test_the_gradient_of_the_actor_alone_is_limited(config):
    before = learners_of(config)
    free, limited = learners_of(config), learners_of(config, max_gradient_norm=1e-12)
    for learners in (free, limited):
        learners.update(rollout_of())
    # Far below Adam's epsilon a gradient moves nothing.
    assert moved(tensors(before.actors[0]), tensors(limited.actors[0])) < 1e-8
    assert moved(tensors(before.actors[0]), tensors(free.actors[0])) > 1e-4
    assert tensors(free.critic) == tensors(limited.critic) != tensors(before.critic)


def one_state_many_times(config, **changes):
    """Learners and a rollout of equal one-step episodes, whose advantages are all equal and normed to zero."""
    learners = learners_of(config, epochs=1, actor_adam_eps=0.01, critic_adam_eps=0.01, learning_rate=0.1, **changes)
    same = np.tile(np.linspace(-1, 1, STATES, dtype=np.float32), (8, 1))
    rollout = ppo.Rollout(
        [same], [np.zeros((8, ACTIONS), np.float32)], np.ones(8, np.float32), np.ones(8, bool), np.zeros(8, bool), same
    )
    return learners, rollout


def test_entropy_is_summed_over_the_action(config):
    learners, rollout = one_state_many_times(config, entropy_coefficient=0.02)
    before = networks.tensors_of(learners.actors[0])
    learners.update(rollout)
    after = networks.tensors_of(learners.actors[0])
    # d log std / d parameter = 1 - sigmoid(1); Adam's first step is rate * g / (|g| + eps).
    gradient = 0.02 * (1 - 1 / (1 + math.exp(-1)))
    step = 0.1 * gradient / (gradient + 0.01)
    assert after["std_parameter"] - before["std_parameter"] == pytest.approx(np.full(ACTIONS, step), rel=1e-4)
    del before["std_parameter"]
    assert all((after[name] == tensor).all() for name, tensor in before.items())


def test_without_entropy_and_advantage_the_actor_stays(config):
    learners, rollout = one_state_many_times(config, entropy_coefficient=0.0)
    before = tensors(learners.actors[0])
    learners.update(rollout)
    assert tensors(learners.actors[0]) == before


def test_critic_loss_is_the_mean_squared_error(config):
    learners, rollout = one_state_many_times(config)
    with torch.no_grad():
        value = float(learners.critic(torch.from_numpy(rollout.states[0]))[0])
    before = networks.tensors_of(learners.critic)["value.bias"]
    assert learners.update(rollout) == pytest.approx(value, rel=1e-6)
    # The return of a one-step success is its reward.
    gradient = 2 * (value - 1.0)
    step = -0.1 * gradient / (abs(gradient) + 0.01)
    assert networks.tensors_of(learners.critic)["value.bias"] - before == pytest.approx([step], rel=1e-4)


# ---- several learners ------------------------------------------------------------------------------------------


def test_one_actor_learns_as_the_first_of_a_pair(config):
    alone, pair = learners_of(config), learners_of(config, seats=2, algorithm="mappo")
    assert tensors(alone.actors[0]) == tensors(pair.actors[0]) != tensors(pair.actors[1])
    # The second actor takes its numbers from the generator before the critic does.
    assert tensors(alone.critic) != tensors(pair.critic)
    pair.critic.load_state_dict(alone.critic.state_dict())
    for seed in range(3):
        assert alone.update(rollout_of(seed=seed)) == pair.update(rollout_of(seats=2, seed=seed))
    assert tensors(alone.actors[0]) == tensors(pair.actors[0])
    assert tensors(alone.critic) == tensors(pair.critic)


def test_what_the_second_of_a_pair_does_reaches_the_second_alone(config):
    first, second = (learners_of(config, seats=2, algorithm="mappo") for _ in range(2))
    other = (np.ones((40, STATES), np.float32), np.ones((40, ACTIONS), np.float32))
    first.update(rollout_of(seats=2))
    second.update(rollout_of(seats=2, own=other))
    assert tensors(first.actors[0]) == tensors(second.actors[0])
    assert tensors(first.critic) == tensors(second.critic)
    assert tensors(first.actors[1]) != tensors(second.actors[1])


def test_a_pair_learns_on_the_same_advantages(config, watched):
    learners_of(config, seats=2, algorithm="mappo", epochs=1).update(rollout_of(seats=2))
    own, partners = watched["gains"]
    assert (own == partners).all()


def test_networks_start_from_the_seed_alone(config):
    first = learners_of(config)
    networks.torch.rand(5)
    assert tensors(first.actors[0]) == tensors(learners_of(config).actors[0])


# ---- state -----------------------------------------------------------------------------------------------------


def test_restored_learners_go_on_to_the_same_bits(config):
    first = learners_of(config, seats=2, algorithm="mappo")
    first.update(rollout_of(seats=2))
    state = first.state()
    second = ppo.Learners(config(algorithm="mappo"), 2, STATES, ACTIONS, 8)
    second.restore(state)
    for learners in (first, second):
        learners.update(rollout_of(seats=2, seed=1))
    ends = [learners.state() for learners in (first, second)]
    assert ends[0].keys() == ends[1].keys()
    assert all(ends[0][name].tobytes() == ends[1][name].tobytes() for name in ends[0])


def test_state_is_a_copy(config):
    learners = learners_of(config)
    learners.update(rollout_of())
    state = {name: value.tobytes() for name, value in learners.state().items()}
    kept = learners.state()
    learners.update(rollout_of(seed=1))
    assert {name: value.tobytes() for name, value in kept.items()} == state
