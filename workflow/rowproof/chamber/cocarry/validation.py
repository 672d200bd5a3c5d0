"""Judges a checkpoint in episodes that share neither partner nor start states with the evaluation."""

from collections.abc import Mapping
from typing import Any

from rowproof.chamber.cells import parse_cell
from rowproof.chamber.cocarry.learned_players import build_learned
from rowproof.chamber.cocarry.partners import build_partner
from rowproof.chamber.cocarry.runner import Runner
from rowproof.chamber.cocarry_cell import CocarryCell
from rowproof.chamber.grid import EPISODES_PER_SEED_BLOCK


def check_checkpoint(setup: Mapping[str, Any], uri: str, data: bytes) -> None:
    """Raise CheckpointError unless ``data`` is the checkpoint ``uri`` and holds players of this task."""
    build_learned(setup["policy"], uri, data)


def validate(setup: Mapping[str, Any], uri: str, data: bytes) -> list[dict[str, Any]]:
    """The episodes by which one checkpoint is judged, in the order of seeds.

    Args:
        setup: plain data with ``policy``, ``cell``, ``member`` (the validation partner), ``seeds`` and
            ``episodes_per_seed``.
        uri: name of the checkpoint.
        data: its bytes.

    Returns:
        One dict per episode with ``initial_state_seed``, ``success``, ``force_peak`` (N), ``max_tilt_deg`` and
        ``n_steps``.

    Raises:
        CheckpointError: other content than ``uri`` names, or no players of this task.
        ConfigError: cell or partner is not valid.
        SimulatorError: the simulator is not there.
        RobotFilesError: a robot file is missing or altered.
    """
    ego, own_partner = build_learned(setup["policy"], uri, data)
    partner = own_partner or build_partner(setup["member"])
    runner = Runner(parse_cell(CocarryCell, setup["cell"]))
    episodes = []
    for seed in setup["seeds"]:
        for index in range(setup["episodes_per_seed"]):
            initial_state_seed = EPISODES_PER_SEED_BLOCK * seed + index
            episode = runner.run(ego, partner, initial_state_seed)
            episodes.append(
                {
                    "initial_state_seed": initial_state_seed,
                    "success": episode.success,
                    "force_peak": episode.max_stress_n,
                    "max_tilt_deg": episode.max_tilt_deg,
                    "n_steps": episode.steps,
                }
            )
    return episodes
