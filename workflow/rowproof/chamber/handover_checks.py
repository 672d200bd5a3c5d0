"""What must hold in records, validation episodes and checkpoints of the handover, asked after the fact."""

import math
from collections.abc import Mapping
from typing import Any

from rowproof.chamber.cells import parse_cell
from rowproof.chamber.family import HANDOVER_LEARNED
from rowproof.chamber.handover import SEED_POLICY
from rowproof.chamber.handover_cell import HandoverCell
from rowproof.chamber.handover_drawn_presenter import DrawnPresenter
from rowproof.chamber.handover_episodes import build_ego, build_presenter
from rowproof.chamber.handover_partners.handover_presenter_ablated import AblatedPresenter
from rowproof.chamber.handover_task import judge
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
    "residual_lateral_m": (float,),
    "residual_angular_deg": (float,),
    "failure_mode": (str,),
}
LEARNED_METADATA_SCHEMA: dict[str, Kinds] = {
    "condition": (str,),
    "policy": (str,),
    SEED_POLICY: (str,),
    **{name: kinds for name, kinds in METADATA_SCHEMA.items() if name not in ("condition", "policy")},
}
EPISODE_SCHEMA: dict[str, Kinds] = {"initial_state_seed": (int,), "success": (bool,), "force_peak": (float,)}


def _failure_modes(cell: HandoverCell, lateral_m: float, angular_deg: float, largest_error_deg: float) -> set[str]:
    """The failure modes that two residuals allow, given the largest grasp error that the presenter can draw."""
    if not judge(cell, lateral_m, angular_deg)[1]:
        return {"none"}
    if angular_deg == 0.0:
        # Then position alone fails it, and no re-grasp mends that.
        return {"intrinsic"}
    modes = set()
    if angular_deg + cell.reacquire_range_deg <= largest_error_deg:
        # A re-grasp may have been executed; a free one would have left the same.
        modes.add("intrinsic")
    error_deg = angular_deg + cell.wrist_correction_deg
    if error_deg <= largest_error_deg:
        free_deg = max(0.0, error_deg - cell.reacquire_range_deg)
        modes.add("intrinsic" if judge(cell, lateral_m, free_deg)[1] else "budget_mediated")
    return modes


def _largest_error_deg(member: Mapping[str, Any]) -> float:
    """A bound on the absolute grasp error of a presenter; infinite where it is not known."""
    if member["params"] is None:
        return math.inf
    presenter = build_presenter(member)
    if isinstance(presenter, AblatedPresenter):
        return 0.0
    if isinstance(presenter, DrawnPresenter):
        # Bias plus ten sigma; a normal variable passes ten sigma once in 1e22 draws.
        return abs(presenter.grasp_pose_bias_deg) + 10.0 * presenter.grasp_pose_sigma_deg
    return math.inf


def check_record(setup: Mapping[str, Any], spec: Mapping[str, Any], record: Any) -> list[str]:
    """What is wrong with ``record`` as the record of ``spec``, as far as can be told without running the episode.

    Schema, agreement with spec and setup, signs, the force that the residuals make, success and failure mode.
    The failure mode of a member whose parameters are withheld is left open where it depends on the grasp error.
    For learned policies ``setup["checkpoints"]`` gives the URI of the checkpoint of each seed.

    Returns:
        One message per problem; empty if there is none.

    Raises:
        ConfigError: the setup's own cell or member is not valid.
    """
    cell = parse_cell(HandoverCell, setup["cell"])
    (member,) = (m for m in setup["members"] if m["name"] == spec["member"])
    largest_error_deg = _largest_error_deg(member)
    where = f"seed {spec['seed']} episode {spec['episode_idx']}"
    try:
        check_fields(record, RECORD_SCHEMA, "record")
        learned = setup["policy"] in HANDOVER_LEARNED
        played = {SEED_POLICY: setup["checkpoints"][spec["seed"]]} if learned else {}
        schema = LEARNED_METADATA_SCHEMA if learned else METADATA_SCHEMA
        metadata = check_fields(record["metadata"], schema, "metadata")
        lateral_m, angular_deg = metadata["residual_lateral_m"], metadata["residual_angular_deg"]
        # A residual that is not finite makes a force that is not, which no canonical text holds.
        force_n, binding = judge(cell, lateral_m, angular_deg)
        problems = differences(
            {
                "seed": spec["seed"],
                "episode_idx": spec["episode_idx"],
                "initial_state_seed": spec["initial_state_seed"],
                "success": not binding,
                "constraint_violation_peak": 0.0,
                "fallback_fired": 0,
                "force_peak": force_n,
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
    for name, value in (("residual_lateral_m", lateral_m), ("residual_angular_deg", angular_deg)):
        # The sign bit, not the value: -0.0 compares equal to 0.0 and is another line.
        if math.copysign(1.0, value) < 0:
            problems.append(f"{name} must not be negative, found {value!r}")
    modes = _failure_modes(cell, lateral_m, angular_deg, largest_error_deg)
    if not modes:
        problems.append(f"residual_angular_deg must fit a grasp error of {largest_error_deg!r}, found {angular_deg!r}")
    elif metadata["failure_mode"] not in modes:
        problems.append(f"failure_mode must be one of {sorted(modes)}, found {metadata['failure_mode']!r}")
    return [f"{where}: {problem}" for problem in problems]


def check_checkpoint(setup: Mapping[str, Any], uri: str, data: bytes) -> None:
    """Raise CheckpointError unless ``data`` is the checkpoint ``uri`` and holds an ego of this task."""
    build_ego(setup["policy"], (uri, data))


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
