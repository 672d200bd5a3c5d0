"""What must hold in records, validation episodes and checkpoints of co-carry, asked after the fact."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rowproof.chamber.cells import parse_cell
from rowproof.chamber.cocarry.engine import SEED_POLICY
from rowproof.chamber.cocarry.seats import build_ego
from rowproof.chamber.cocarry_cell import CocarryCell
from rowproof.chamber.family import COCARRY_LEARNED
from rowproof.chamber.record_checks import differences, record_schema
from rowproof.chamber.validation_states import validation_states
from rowproof.errors import RecordError
from rowproof.records import Kinds, check_fields

RECORD_SCHEMA = record_schema(float)
METADATA_SCHEMA: dict[str, Kinds] = {
    "condition": (str,),
    "policy": (str,),
    "member": (str,),
    "partner_set": (str,),
    "max_tilt_deg": (float,),
    "centroid_to_goal": (float,),
    "n_steps": (float,),
}
LEARNED_METADATA_SCHEMA: dict[str, Kinds] = {
    "condition": (str,),
    "policy": (str,),
    SEED_POLICY: (str,),
    **{name: kinds for name, kinds in METADATA_SCHEMA.items() if name not in ("condition", "policy")},
}
EPISODE_SCHEMA: dict[str, Kinds] = {
    "initial_state_seed": (int,),
    "success": (bool,),
    "force_peak": (float,),
    "max_tilt_deg": (float,),
    "centroid_to_goal": (float,),
    "n_steps": (float,),
}


def measurement_problems(cell: CocarryCell, success: bool, force_n: float, metadata: Mapping[str, Any]) -> list[str]:
    """What is wrong with the measured values of one episode, as far as they must agree with each other.

    Args:
        cell: the limits.
        success: whether the episode ended in success.
        force_n: largest wrist force since the settle step.
        metadata: holds ``max_tilt_deg``, ``centroid_to_goal`` (m) and ``n_steps``, all floats.
    """
    tilt_deg, distance_m, steps = metadata["max_tilt_deg"], metadata["centroid_to_goal"], metadata["n_steps"]
    problems = []
    for name, value, upper in (
        ("force_peak", force_n, math.inf),
        ("max_tilt_deg", tilt_deg, float(np.float32(90.0))),
        ("centroid_to_goal", distance_m, math.inf),
    ):
        # The sign bit, not the value: -0.0 compares equal to 0.0 and is another line.
        if not math.isfinite(value) or math.copysign(1.0, value) < 0 or value > upper:
            problems.append(f"{name} must be finite and within 0 and {upper!r}, found {value!r}")
        elif abs(value) > float(np.finfo(np.float32).max) or float(np.float32(value)) != value:
            problems.append(f"{name} must be a single-precision value, found {value!r}")
    if not 1 <= steps <= cell.max_steps or steps != math.floor(steps):
        problems.append(f"n_steps must be a whole number from 1 to {cell.max_steps}, found {steps!r}")
    if not success:
        # Nothing but success ends an episode early.
        if steps != cell.max_steps:
            problems.append(f"n_steps of a failure must be {cell.max_steps}, found {steps!r}")
        return problems
    # The judge compares in single precision.
    radius_m, max_tilt_deg, max_force_n = (
        float(np.float32(limit)) for limit in (cell.goal_radius_m, cell.tilt_limit_deg, cell.force_limit_n)
    )
    for name, holds, must, value in (
        ("n_steps", steps >= cell.settle_step, f"at least {cell.settle_step}", steps),
        ("centroid_to_goal", distance_m <= radius_m, f"at most {radius_m!r}", distance_m),
        ("max_tilt_deg", tilt_deg < max_tilt_deg, f"below {max_tilt_deg!r}", tilt_deg),
        ("force_peak", force_n < max_force_n, f"below {max_force_n!r}", force_n),
    ):
        if not holds:
            problems.append(f"{name} of a success must be {must}, found {value!r}")
    return problems


def check_record(setup: Mapping[str, Any], spec: Mapping[str, Any], record: Any) -> list[str]:
    """What is wrong with ``record`` as the record of ``spec``, as far as can be told without running the episode.

    Schema, agreement with spec and setup, ranges and precision of the measurements, and what success and failure
    demand of them. For learned policies ``setup["checkpoints"]`` gives the URI of the checkpoint of each seed.
    That a failure did fail (its speed is not recorded) only a replay can tell.

    Returns:
        One message per problem; empty if there is none.

    Raises:
        ConfigError: the setup's own cell is not valid.
    """
    cell = parse_cell(CocarryCell, setup["cell"])
    where = f"seed {spec['seed']} episode {spec['episode_idx']}"
    try:
        check_fields(record, RECORD_SCHEMA, "record")
        learned = setup["policy"] in COCARRY_LEARNED
        played = {SEED_POLICY: setup["checkpoints"][spec["seed"]]} if learned else {}
        schema = LEARNED_METADATA_SCHEMA if learned else METADATA_SCHEMA
        metadata = check_fields(record["metadata"], schema, "metadata")
        problems = differences(
            {
                "seed": spec["seed"],
                "episode_idx": spec["episode_idx"],
                "initial_state_seed": spec["initial_state_seed"],
                "constraint_violation_peak": 0.0,
                "fallback_fired": 0,
            },
            record,
        )
        problems += differences(
            {
                "condition": cell.condition,
                "policy": setup["policy"],
                **played,
                "member": spec["member"],
                "partner_set": setup["partner_set"],
            },
            metadata,
        )
    except RecordError as error:
        return [f"{where}: {error}"]
    problems += measurement_problems(cell, record["success"], record["force_peak"], metadata)
    return [f"{where}: {problem}" for problem in problems]


def check_checkpoint(setup: Mapping[str, Any], uri: str, data: bytes) -> None:
    """Raise CheckpointError unless ``data`` is the checkpoint ``uri`` and holds players of this task."""
    build_ego(setup["policy"], 0, (uri, data))


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
