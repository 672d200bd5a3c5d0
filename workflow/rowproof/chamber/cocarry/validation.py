"""Judges a checkpoint in episodes that share neither partner nor start states with the evaluation."""

from collections.abc import Mapping
from typing import Any

from rowproof.chamber.cells import parse_cell
from rowproof.chamber.cocarry.runner import Runner
from rowproof.chamber.cocarry.seats import build_ego, build_partner
from rowproof.chamber.cocarry_cell import CocarryCell
from rowproof.chamber.validation_states import validation_states


def validate(setup: Mapping[str, Any], uri: str, data: bytes) -> list[dict[str, Any]]:
    """The episodes by which one checkpoint is judged, in the order of seeds.

    Args:
        setup: plain data with ``policy``, ``cell``, ``member`` (the validation partner), ``seeds`` and
            ``episodes_per_seed``.
        uri: name of the checkpoint.
        data: its bytes.

    Returns:
        One dict per episode: ``initial_state_seed``, ``success``, and ``force_peak`` (N), ``max_tilt_deg``,
        ``centroid_to_goal`` (m) and ``n_steps`` as in records.

    Raises:
        CheckpointError: other content than ``uri`` names, or no players of this task.
        ConfigError: cell or partner is not valid.
        SimulatorError: the simulator is not there.
        RobotFilesError: a robot file is missing or altered.
    """
    # Learned egos draw nothing, so the root seed does not matter.
    ego = build_ego(setup["policy"], 0, (uri, data))
    partner = build_partner(setup["member"], (uri, data))
    runner = Runner(parse_cell(CocarryCell, setup["cell"]))
    episodes = []
    for initial_state_seed in validation_states(setup):
        episode = runner.run(ego, partner, initial_state_seed)
        episodes.append(
            {
                "initial_state_seed": initial_state_seed,
                "success": episode.success,
                "force_peak": episode.max_stress_n,
                "max_tilt_deg": episode.max_tilt_deg,
                "centroid_to_goal": episode.distance_m,
                "n_steps": float(episode.steps),
            }
        )
    return episodes
