"""The evaluation grid of a partner-set row: which episodes must exist, known before anything runs."""

from collections.abc import Callable, Mapping
from typing import Any

from rowproof.errors import ConfigError

EPISODES_PER_SEED_BLOCK = 1000

# The initial state seed of an episode, by the name of the rule that a plan preregisters.
INITIAL_STATES: dict[str, Callable[[int, int], int]] = {
    "seed*1000+episode": lambda seed, episode: EPISODES_PER_SEED_BLOCK * seed + episode,
    "episode": lambda seed, episode: episode,
}


def specs(setup: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The episode specs of a row, ordered by seed, then member (both as given), then episode.

    The initial state seed does not depend on the member: every member, and every row, starts from the same states.

    Args:
        setup: plain data with ``seeds``, ``episodes_per_partner``, ``initial_state`` and ``members``.

    Returns:
        One dict per episode with ``seed``, ``episode_idx`` (unique within the seed), ``initial_state_seed`` and
        ``member`` (its name), in this order.

    Raises:
        ConfigError: seeds or members are empty, repeated or malformed, the episode count is below one, or the rule
            is unknown or would give one initial state to two seeds.
    """
    seeds, count, rule = setup["seeds"], setup["episodes_per_partner"], setup["initial_state"]
    names = [member["name"] for member in setup["members"]]
    if not seeds or any(type(seed) is not int or seed < 0 for seed in seeds) or len(set(seeds)) != len(seeds):
        raise ConfigError(f"seeds must be distinct integers from 0, at least one, found {seeds}")
    if not names or len(set(names)) != len(names):
        raise ConfigError(f"members must have distinct names, at least one, found {names}")
    if type(count) is not int or count < 1:
        raise ConfigError(f"episodes_per_partner must be an integer of at least 1, found {count!r}")
    if rule not in INITIAL_STATES:
        raise ConfigError(f"initial_state must be one of {list(INITIAL_STATES)}, found {rule!r}")
    if rule == "seed*1000+episode" and count > EPISODES_PER_SEED_BLOCK:
        # The block of one seed would run into the next one's, and seeds would no longer be independent.
        raise ConfigError(f"episodes_per_partner must be at most {EPISODES_PER_SEED_BLOCK} for {rule}, found {count}")
    initial_state_seed = INITIAL_STATES[rule]
    return [
        {
            "seed": seed,
            "episode_idx": index * count + episode,
            "initial_state_seed": initial_state_seed(seed, episode),
            "member": name,
        }
        for seed in seeds
        for index, name in enumerate(names)
        for episode in range(count)
    ]
