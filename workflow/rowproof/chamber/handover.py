"""The records of handover episodes."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rowproof.chamber.cells import parse_cell
from rowproof.chamber.handover_cell import HandoverCell
from rowproof.chamber.handover_episodes import Ego, Presenter, build_ego, build_presenter, is_learned, run_episode
from rowproof.errors import ConfigError

# Names the checkpoint that played, in the records of learned policies.
SEED_POLICY = "seed_policy"


def simulate(
    setup: Mapping[str, Any],
    specs: Iterable[Mapping[str, Any]],
    checkpoints: Mapping[int, tuple[str, bytes]] | None = None,
) -> Iterator[dict[str, Any]]:
    """The record of every spec, in the order of ``specs``; each depends on its own spec and ``setup`` alone.

    Args:
        setup: plain data with ``cell``, ``policy``, ``root_seed``, ``partner_set`` and ``members``.
        specs: any part of :func:`rowproof.chamber.grid.specs`, in any order.
        checkpoints: of learned policies, the URI and the bytes of the checkpoint that plays, by seed.

    Raises:
        ConfigError: the cell, policy or a member that runs is not valid, or a checkpoint is missing.
        CheckpointError: a checkpoint is not what its URI names, or holds no ego of this task.
    """
    cell = parse_cell(HandoverCell, setup["cell"])
    policy, root_seed = setup["policy"], setup["root_seed"]
    learned = is_learned(policy)
    checkpoints = checkpoints or {}
    members = {member["name"]: member for member in setup["members"]}
    presenters: dict[str, Presenter] = {}
    egos: dict[int, Ego] = {}
    for spec in specs:
        seed, name, initial_state_seed = spec["seed"], spec["member"], spec["initial_state_seed"]
        if name not in presenters:
            presenters[name] = build_presenter(members[name])
        if seed not in egos:
            if learned and seed not in checkpoints:
                raise ConfigError(f"policy {policy} must have a checkpoint for seed {seed}, found none")
            egos[seed] = build_ego(policy, checkpoints.get(seed))
        outcome = run_episode(cell, presenters[name], egos[seed], initial_state_seed, root_seed)
        yield {
            "seed": seed,
            "episode_idx": spec["episode_idx"],
            "initial_state_seed": initial_state_seed,
            "success": outcome.success,
            "constraint_violation_peak": 0.0,
            "fallback_fired": 0,
            "force_peak": outcome.force_n,
            "metadata": {
                "condition": cell.condition,
                "policy": policy,
                **({SEED_POLICY: checkpoints[seed][0]} if learned else {}),
                "member": name,
                "partner_set": setup["partner_set"],
                "residual_lateral_m": outcome.lateral_m,
                "residual_angular_deg": outcome.angular_deg,
                "failure_mode": outcome.failure_mode,
            },
        }
