"""Judges a checkpoint in episodes that share neither partner nor start states with the evaluation."""

from collections.abc import Mapping
from typing import Any

from rowproof.chamber.cells import parse_cell
from rowproof.chamber.cocarry.learned_players import build_learned
from rowproof.chamber.cocarry.measurements import measurement_problems
from rowproof.chamber.cocarry.partners import build_partner
from rowproof.chamber.cocarry.runner import Runner
from rowproof.chamber.cocarry_cell import CocarryCell
from rowproof.chamber.grid import validation_states
from rowproof.errors import RecordError
from rowproof.records import Kinds, check_fields

EPISODE_SCHEMA: dict[str, Kinds] = {
    "initial_state_seed": (int,),
    "success": (bool,),
    "force_peak": (float,),
    "max_tilt_deg": (float,),
    "centroid_to_goal": (float,),
    "n_steps": (float,),
}


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
        One dict per episode: ``initial_state_seed``, ``success``, and ``force_peak`` (N), ``max_tilt_deg``,
        ``centroid_to_goal`` (m) and ``n_steps`` as in records.

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


def check_episodes(setup: Mapping[str, Any], episodes: Any) -> list[str]:
    """What is wrong with ``episodes`` as those of :func:`validate`, as far as can be told without running them."""
    cell, states = parse_cell(CocarryCell, setup["cell"]), validation_states(setup)
    if not isinstance(episodes, list) or len(episodes) != len(states):
        return [f"must be {len(states)} episodes"]
    problems = []
    for index, (state, episode) in enumerate(zip(states, episodes, strict=True)):
        try:
            check_fields(episode, EPISODE_SCHEMA, f"episode {index}")
        except RecordError as error:
            problems.append(str(error))
            continue
        if episode["initial_state_seed"] != state:
            problems.append(f"episode {index}: initial state must be {state}, found {episode['initial_state_seed']}")
        found = measurement_problems(cell, episode["success"], episode["force_peak"], episode)
        problems += [f"episode {index}: {problem}" for problem in found]
    return problems
