"""Judges a checkpoint in episodes that share neither presenter nor start states with the evaluation."""

import math
from collections.abc import Mapping
from typing import Any

from rowproof.chamber.cells import parse_cell
from rowproof.chamber.grid import validation_states
from rowproof.chamber.handover import build_presenter, run_episode
from rowproof.chamber.handover_cell import HandoverCell
from rowproof.chamber.handover_learned import build_learned
from rowproof.errors import RecordError
from rowproof.records import Kinds, check_fields

EPISODE_SCHEMA: dict[str, Kinds] = {"initial_state_seed": (int,), "success": (bool,), "force_peak": (float,)}


def check_checkpoint(setup: Mapping[str, Any], uri: str, data: bytes) -> None:
    """Raise CheckpointError unless ``data`` is the checkpoint ``uri`` and holds an ego of this task."""
    build_learned(setup["policy"], uri, data)


def validate(setup: Mapping[str, Any], uri: str, data: bytes) -> list[dict[str, Any]]:
    """The episodes by which one checkpoint is judged, in the order of seeds.

    Args:
        setup: plain data with ``policy``, ``cell``, ``member`` (the validation presenter), ``seeds`` and
            ``episodes_per_seed``.
        uri: name of the checkpoint.
        data: its bytes.

    Returns:
        One dict per episode with ``initial_state_seed``, ``success`` and ``force_peak`` (N).

    Raises:
        CheckpointError: other content than ``uri`` names, or no ego of this task.
        ConfigError: cell or presenter is not valid.
    """
    cell = parse_cell(HandoverCell, setup["cell"])
    ego, presenter = build_learned(setup["policy"], uri, data), build_presenter(setup["member"])
    episodes = []
    for initial_state_seed in validation_states(setup):
        # Learned egos draw nothing, so the root seed does not matter.
        outcome = run_episode(cell, presenter, ego, initial_state_seed, root_seed=0)
        episodes.append(
            {
                "initial_state_seed": initial_state_seed,
                "success": outcome.success,
                "force_peak": outcome.force_n,
            }
        )
    return episodes


def check_episodes(setup: Mapping[str, Any], episodes: Any) -> list[str]:
    """What is wrong with ``episodes`` as those of :func:`validate`, as far as can be told without running them.

    Returns:
        One message per problem; empty if there is none.

    Raises:
        ConfigError: the setup's own cell is not valid.
    """
    cell, states = parse_cell(HandoverCell, setup["cell"]), validation_states(setup)
    if not isinstance(episodes, list) or len(episodes) != len(states):
        return [f"must be {len(states)} episodes"]
    # A failure has missed one window at least, and the force of that alone is known.
    least_n = min(
        cell.contact_stiffness_n_per_m * cell.lateral_window_m,
        cell.angular_stiffness_n_per_deg * cell.angular_window_deg,
        cell.seating_force_limit_n,
    )
    problems = []
    for index, (state, episode) in enumerate(zip(states, episodes, strict=True)):
        try:
            check_fields(episode, EPISODE_SCHEMA, f"episode {index}")
        except RecordError as error:
            problems.append(str(error))
            continue
        if episode["initial_state_seed"] != state:
            problems.append(f"episode {index}: initial state must be {state}, found {episode['initial_state_seed']}")
        force_n = episode["force_peak"]
        low_n, high_n = (0.0, cell.seating_force_limit_n) if episode["success"] else (least_n, math.inf)
        # The sign bit as well: no force is -0.0.
        if not low_n <= force_n < high_n or math.copysign(1.0, force_n) < 0:
            problems.append(
                f"episode {index}: force_peak must be from {low_n!r} to below {high_n!r}, found {force_n!r}"
            )
    return problems
