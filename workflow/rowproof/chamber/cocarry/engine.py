"""``cocarry@v1``: the records of co-carry episodes, and what must hold in each."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from rowproof.chamber.cells import parse_cell
from rowproof.chamber.cocarry.egos import POLICIES, build_ego
from rowproof.chamber.cocarry.partners import Player, build_partner
from rowproof.chamber.cocarry.progress import Progress
from rowproof.chamber.cocarry.runner import Runner
from rowproof.chamber.cocarry_cell import CocarryCell
from rowproof.chamber.grid import differences, record_schema
from rowproof.errors import RecordError
from rowproof.records import Kinds, check_fields

__all__ = ["METADATA_SCHEMA", "POLICIES", "RECORD_SCHEMA", "check_record", "simulate"]

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


def simulate(setup: Mapping[str, Any], specs: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The record of every spec, in the order of ``specs``; each depends on its own spec and ``setup`` alone.

    Args:
        setup: plain data with ``cell``, ``policy``, ``root_seed``, ``partner_set`` and ``members``.
        specs: any part of :func:`rowproof.chamber.grid.specs`, in any order.

    Raises:
        ConfigError: the cell, policy or a member that runs is not valid.
        SimulatorError: the simulator is not there.
        RobotFilesError: a robot file is missing or altered.
        Stopped: the process was told to stop.
    """
    specs = list(specs)
    cell = parse_cell(CocarryCell, setup["cell"])
    ego = build_ego(setup["policy"], setup["root_seed"])
    members = {member["name"]: member for member in setup["members"]}
    # Built before the first episode, so that a faulty member is found in the first second and not after an hour.
    partners: dict[str, Player] = {}
    for spec in specs:
        if spec["member"] not in partners:
            partners[spec["member"]] = build_partner(members[spec["member"]])
    runner = Runner(cell)
    with Progress(len(specs)) as progress:
        for spec in specs:
            episode = runner.run(ego, partners[spec["member"]], spec["initial_state_seed"])
            yield {
                "seed": spec["seed"],
                "episode_idx": spec["episode_idx"],
                "initial_state_seed": spec["initial_state_seed"],
                "success": episode.success,
                "constraint_violation_peak": 0.0,
                "fallback_fired": 0,
                "force_peak": episode.max_stress_n,
                "metadata": {
                    "condition": cell.condition,
                    "policy": setup["policy"],
                    "member": spec["member"],
                    "partner_set": setup["partner_set"],
                    "max_tilt_deg": episode.max_tilt_deg,
                    "centroid_to_goal": episode.distance_m,
                    "n_steps": float(episode.steps),
                },
            }
            progress.finished(episode.steps)


def _measurements(cell: CocarryCell, success: bool, force_n: float, metadata: Mapping[str, Any]) -> list[str]:
    """What is wrong with the measured values of one record."""
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
    demand of them. That a failure did fail (its speed is not recorded) only a replay can tell.

    Returns:
        One message per problem; empty if there is none.

    Raises:
        ConfigError: the setup's own cell is not valid.
    """
    cell = parse_cell(CocarryCell, setup["cell"])
    where = f"seed {spec['seed']} episode {spec['episode_idx']}"
    try:
        check_fields(record, RECORD_SCHEMA, "record")
        metadata = check_fields(record["metadata"], METADATA_SCHEMA, "metadata")
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
                "member": spec["member"],
                "partner_set": setup["partner_set"],
            },
            metadata,
        )
    except RecordError as error:
        return [f"{where}: {error}"]
    problems += _measurements(cell, record["success"], record["force_peak"], metadata)
    return [f"{where}: {problem}" for problem in problems]
