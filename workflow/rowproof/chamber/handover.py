"""``handover_place@v1``: a presenter hands over a part, an ego places it; closed form, no physics.

An episode is one draw of the presenter, one placement of the ego and one resolution. Every number is made of
IEEE double additions, multiplications, divisions and square roots in a fixed order, so records are equal to the
last bit on every platform that draws the same normals.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rowproof.chamber.cells import parse_cell
from rowproof.chamber.grid import differences, record_schema
from rowproof.chamber.handover_cell import HandoverCell
from rowproof.chamber.handover_learned import LEARNED_POLICIES, build_learned
from rowproof.chamber.handover_moves import Observation, Placement, Presentation
from rowproof.errors import ConfigError, RecordError
from rowproof.records import Kinds, check_fields
from rowproof.seeding import substream

TARGET_JITTER_M = 5e-3
REGRASP_REQUEST_THRESHOLD = 0.5


@dataclass(frozen=True)
class Outcome:
    """How a placement ends.

    Attributes:
        lateral_m: distance that is left between part and seat.
        angular_deg: angle that is left.
        force_n: seating force.
        binding: the conditions that are violated, among ``lateral``, ``angular``, ``force``; empty on success.
        failure_mode: ``none``; ``budget_mediated`` if a re-grasp free of charge would have succeeded; ``intrinsic``.
    """

    lateral_m: float
    angular_deg: float
    force_n: float
    binding: tuple[str, ...]
    failure_mode: str

    @property
    def success(self) -> bool:
        """Whether the part is seated."""
        return not self.binding


# ---- presenters ------------------------------------------------------------------------------------------------


class Presenter(Protocol):
    """A partner: one presentation per initial state."""

    @property
    def largest_error_deg(self) -> float:
        """A bound on the absolute grasp error."""

    def present(self, initial_state_seed: int) -> Presentation:
        """The presentation of the episode that starts from ``initial_state_seed``."""


@dataclass(frozen=True)
class DrawnPresenter:
    """Draws offset, grasp error and delay from normal distributions.

    The stream depends on the initial state and on whether the grasp is biased, not on the member: two biased members
    see the same standard normals and differ by their parameters alone.
    """

    lateral_offset_x_m: float
    lateral_offset_y_m: float
    lateral_sigma_m: float
    grasp_pose_bias_deg: float
    grasp_pose_sigma_deg: float
    timing_skew_bias_s: float
    timing_skew_sigma_s: float

    @classmethod
    def from_params(cls, params: Any, where: str) -> "DrawnPresenter":
        """Read the parameters of a partner set (name to decimal text); ``where`` names the member in messages.

        Raises:
            ConfigError: parameters are withheld, missing, unknown, not finite, or a sigma is negative.
        """
        names = list(cls.__dataclass_fields__)
        if params is None:
            raise ConfigError(f"{where}: its parameters are withheld; only the set's maintainer can run this member")
        if sorted(params) != sorted(names):
            raise ConfigError(f"{where}: parameters must be {sorted(names)}, found {sorted(params)}")
        try:
            values = {name: float(params[name]) for name in names}
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{where}: parameters must be decimal text: {error}") from None
        for name, value in values.items():
            if not math.isfinite(value) or ("_sigma_" in name and value < 0):
                raise ConfigError(f"{where}: {name} must be finite, and not negative if a sigma, found {value!r}")
        return cls(**values)

    @property
    def largest_error_deg(self) -> float:
        """Bias plus ten sigma; a normal variable passes ten sigma once in 1e22 draws."""
        return abs(self.grasp_pose_bias_deg) + 10.0 * self.grasp_pose_sigma_deg

    def present(self, initial_state_seed: int) -> Presentation:
        """Draw the presentation; see :class:`Presenter`."""
        variant = "matched" if self.grasp_pose_bias_deg == 0.0 else "mismatched"
        rng = substream(f"partner.handover_presenter.{variant}", initial_state_seed)
        # The order of the draws is part of the task.
        lateral_x_m = self.lateral_offset_x_m + self.lateral_sigma_m * rng.standard_normal()
        lateral_y_m = self.lateral_offset_y_m + self.lateral_sigma_m * rng.standard_normal()
        grasp_error_deg = self.grasp_pose_bias_deg + self.grasp_pose_sigma_deg * rng.standard_normal()
        timing_skew_s = max(0.0, self.timing_skew_bias_s + self.timing_skew_sigma_s * rng.standard_normal())
        return Presentation(lateral_x_m, lateral_y_m, grasp_error_deg, timing_skew_s)


@dataclass(frozen=True)
class AblatedPresenter:
    """No presenter: the part lies 0.35 m away, straight and at once, beyond the ego's reach (admission check A2)."""

    lateral_offset_m: float = 0.35
    largest_error_deg: float = 0.0

    def present(self, initial_state_seed: int) -> Presentation:
        """The same presentation whatever the initial state."""
        return Presentation(self.lateral_offset_m, 0.0, 0.0, 0.0)


def build_presenter(member: Mapping[str, Any]) -> Presenter:
    """The presenter of one entry of ``setup["members"]``, by its ``class``.

    Raises:
        ConfigError: the class is unknown or its parameters do not fit it.
    """
    if member["class"] == "handover_presenter":
        return DrawnPresenter.from_params(member["params"], f"partner {member['name']}")
    if member["class"] == "handover_presenter_ablated":
        return AblatedPresenter()
    raise ConfigError(
        f"partner {member['name']}: class must be handover_presenter or handover_presenter_ablated, "
        f"found {member['class']!r}"
    )


# ---- egos ------------------------------------------------------------------------------------------------------


def _at_most(x_m: float, y_m: float, limit_m: float) -> tuple[float, float]:
    length_m = math.sqrt(x_m * x_m + y_m * y_m)
    if length_m <= limit_m:
        return x_m, y_m
    scale = limit_m / length_m
    return x_m * scale, y_m * scale


def ref_script(cell: HandoverCell, seen: Observation, initial_state_seed: int, root_seed: int) -> Placement:
    """Undo the offset, turn the wrist as far as it goes, ask for a re-grasp when that is not enough.

    It asks whether or not the time allows it: the delay is hidden from it.
    """
    x_m, y_m = _at_most(-seen.lateral_x_m, -seen.lateral_y_m, cell.translation_range_m)
    reach_deg = cell.wrist_correction_deg
    left_deg = max(0.0, abs(seen.grasp_error_deg) - reach_deg)
    turn_deg = min(max(-seen.grasp_error_deg, -reach_deg), reach_deg)
    return Placement(x_m, y_m, turn_deg, 1.0 if left_deg >= cell.angular_window_deg else 0.0)


def random_ego(cell: HandoverCell, seen: Observation, initial_state_seed: int, root_seed: int) -> Placement:
    """Uniform over the command ranges; the same placement whatever the member."""
    rng = substream(f"benchmarks.handover_eval.ego_random.{initial_state_seed}", root_seed)
    reach_m, reach_deg = cell.translation_range_m, cell.wrist_correction_deg
    x_m = uniform(rng, -reach_m, reach_m)
    y_m = uniform(rng, -reach_m, reach_m)
    turn_deg = uniform(rng, -reach_deg, reach_deg)
    return Placement(x_m, y_m, turn_deg, float(rng.integers(0, 2)))


def static_ego(cell: HandoverCell, seen: Observation, initial_state_seed: int, root_seed: int) -> Placement:
    """Do nothing."""
    return Placement(0.0, 0.0, 0.0, 0.0)


Ego = Callable[[HandoverCell, Observation, int, int], Placement]
EGOS: dict[str, Ego] = {"ref_script_handover_ego": ref_script, "random": random_ego, "static": static_ego}
POLICIES = tuple(EGOS)
"""The policies that need no checkpoint."""


def uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """One draw, uniform from ``low`` to ``high``."""
    # What Generator.uniform computes, with a product and a sum that no compiler can fuse into one rounding.
    return low + (high - low) * rng.random()


# ---- the task --------------------------------------------------------------------------------------------------


def target_xy_m(initial_state_seed: int) -> tuple[float, float]:
    """The place target, jittered within +-5 mm; it is shown to the ego and never enters the outcome."""
    rng = substream("env.handover_place", initial_state_seed)
    return uniform(rng, -TARGET_JITTER_M, TARGET_JITTER_M), uniform(rng, -TARGET_JITTER_M, TARGET_JITTER_M)


def observe(presented: Presentation, initial_state_seed: int) -> Observation:
    """What the ego sees of a presentation."""
    target = target_xy_m(initial_state_seed)
    return Observation(*target, presented.lateral_x_m, presented.lateral_y_m, presented.grasp_error_deg)


def judge(cell: HandoverCell, lateral_m: float, angular_deg: float) -> tuple[float, tuple[str, ...]]:
    """The seating force (N) of two residuals, and the conditions that they violate (limits are exclusive)."""
    force_n = cell.contact_stiffness_n_per_m * lateral_m + cell.angular_stiffness_n_per_deg * angular_deg
    violated = (
        ("lateral", lateral_m >= cell.lateral_window_m),
        ("angular", angular_deg >= cell.angular_window_deg),
        ("force", force_n >= cell.seating_force_limit_n),
    )
    return force_n, tuple(name for name, holds in violated if holds)


def resolve(cell: HandoverCell, presented: Presentation, placed: Placement) -> Outcome:
    """Resolve one placement.

    The translation counts up to the ego's range. The commanded wrist turn is ignored: the wrist takes off what its
    range allows, or the range of a re-grasp if one is asked for and fits the budget that the presenter's delay leaves.
    """
    x_m, y_m = _at_most(placed.translate_x_m, placed.translate_y_m, cell.translation_range_m)
    dx_m, dy_m = presented.lateral_x_m + x_m, presented.lateral_y_m + y_m
    # Not math.hypot or a BLAS norm: they round differently.
    lateral_m = math.sqrt(dx_m * dx_m + dy_m * dy_m)
    budget_s = cell.regrasp_budget_s - max(0.0, presented.timing_skew_s)
    regrasped = placed.regrasp > REGRASP_REQUEST_THRESHOLD and cell.regrasp_duration_s <= budget_s
    error_deg = abs(presented.grasp_error_deg)
    free_deg = max(0.0, error_deg - cell.reacquire_range_deg)
    angular_deg = free_deg if regrasped else max(0.0, error_deg - cell.wrist_correction_deg)
    force_n, binding = judge(cell, lateral_m, angular_deg)
    free_succeeds = not judge(cell, lateral_m, free_deg)[1]
    failure_mode = "none" if not binding else "budget_mediated" if free_succeeds else "intrinsic"
    return Outcome(lateral_m, angular_deg, force_n, binding, failure_mode)


def run_episode(cell: HandoverCell, presenter: Presenter, ego: Ego, initial_state_seed: int, root_seed: int) -> Outcome:
    """Present, place and resolve one episode; a pure function of its arguments."""
    presented = presenter.present(initial_state_seed)
    seen = observe(presented, initial_state_seed)
    return resolve(cell, presented, ego(cell, seen, initial_state_seed, root_seed))


# ---- records ---------------------------------------------------------------------------------------------------

RECORD_SCHEMA = record_schema(float)
# Names the checkpoint that played, in the records of learned policies.
SEED_POLICY = "seed_policy"
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


def _build_ego(policy: str, seed: int, checkpoints: Mapping[int, tuple[str, bytes]]) -> Ego:
    """The ego that plays the episodes of ``seed``."""
    if policy in EGOS:
        return EGOS[policy]
    if policy not in LEARNED_POLICIES:
        raise ConfigError(f"policy must be one of {[*POLICIES, *LEARNED_POLICIES]}, found {policy!r}")
    if seed not in checkpoints:
        raise ConfigError(f"policy {policy} must have a checkpoint for seed {seed}, found none")
    return build_learned(policy, *checkpoints[seed])


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
    checkpoints = checkpoints or {}
    members = {member["name"]: member for member in setup["members"]}
    presenters: dict[str, Presenter] = {}
    egos: dict[int, Ego] = {}
    for spec in specs:
        seed, name, initial_state_seed = spec["seed"], spec["member"], spec["initial_state_seed"]
        if name not in presenters:
            presenters[name] = build_presenter(members[name])
        if seed not in egos:
            egos[seed] = _build_ego(policy, seed, checkpoints)
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
                **({SEED_POLICY: checkpoints[seed][0]} if policy in LEARNED_POLICIES else {}),
                "member": name,
                "partner_set": setup["partner_set"],
                "residual_lateral_m": outcome.lateral_m,
                "residual_angular_deg": outcome.angular_deg,
                "failure_mode": outcome.failure_mode,
            },
        }


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
    largest_error_deg = math.inf if member["params"] is None else build_presenter(member).largest_error_deg
    where = f"seed {spec['seed']} episode {spec['episode_idx']}"
    try:
        check_fields(record, RECORD_SCHEMA, "record")
        learned = setup["policy"] in LEARNED_POLICIES
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
