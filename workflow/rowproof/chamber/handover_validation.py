"""Judges a checkpoint in episodes that share neither presenter nor start states with the evaluation."""

from collections.abc import Mapping
from typing import Any

from rowproof.chamber.cells import parse_cell
from rowproof.chamber.handover_cell import HandoverCell
from rowproof.chamber.handover_episodes import build_ego, build_presenter, run_episode
from rowproof.chamber.validation_states import validation_states


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
    ego, presenter = build_ego(setup["policy"], (uri, data)), build_presenter(setup["member"])
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
