"""The task parameters as a plan states them: all candidates of a board, and nothing but what the statistics do."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import Field, model_validator

from rowproof.speedrun.blocks import BOOTSTRAP_SEED, RESAMPLES
from rowproof.speedrun.cell import Candidate, Exclusion, PolicyName, SpeedrunCell
from rowproof.speedrun.losses import GUARD_BAND, LOSS_SIGMA
from rowproof.speedrun.protocol import MAX_STEAL, MIN_OCCUPANCY
from rowproof.speedrun.schema import Strict

# What the statistics do, in the words of the plan: it must not promise anything else.
_FIXED: dict[str, Any] = {
    "guard_band": GUARD_BAND,
    "resamples": RESAMPLES,
    "bootstrap_seed": BOOTSTRAP_SEED,
    "exclusion": Exclusion(min_occupancy=MIN_OCCUPANCY, max_steal=MAX_STEAL),
}


class PlanCell(SpeedrunCell):
    """What the plan of a board says of it; see :class:`~rowproof.speedrun.cell.SpeedrunCell`."""

    sigma: Annotated[float, Field(ge=LOSS_SIGMA)]
    candidates: Annotated[dict[PolicyName, Candidate], Field(min_length=2)]

    @model_validator(mode="after")
    def _as_measured(self) -> "PlanCell":
        for name, value in _FIXED.items():
            if getattr(self, name) != value:
                shown = value.model_dump() if isinstance(value, Strict) else value
                raise ValueError(f"{name} must be {shown}, which is what the statistics use: write that")
        seeds = [*self.feedback_seeds, *self.calibration_seeds]
        if len(set(seeds)) != len(seeds):
            raise ValueError("feedback_seeds and calibration_seeds must share no seed and repeat none")
        for name in ("baseline", "twice"):
            if getattr(self, name) not in self.candidates:
                raise ValueError(f"{name} must be a candidate, found {getattr(self, name)}")
        return self


def own_cell(cell: dict[str, Any], policy: str, partners: list[str]) -> dict[str, Any]:
    """Of the task parameters of a plan (plain data) those that bind a row: of the candidates its own alone."""
    return with_candidates(cell, [policy])


def with_candidates(cell: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The task parameters with these candidates alone."""
    own = set(names)
    candidates = {name: candidate for name, candidate in cell["candidates"].items() if name in own}
    return {**cell, "candidates": candidates}
