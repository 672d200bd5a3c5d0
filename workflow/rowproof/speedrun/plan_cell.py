"""The task parameters as a plan states them: all candidates of a board, and nothing but what the statistics do."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import Field, model_validator

from rowproof.errors import ConfigError
from rowproof.speedrun.blocks import BOOTSTRAP_SEED, RESAMPLES
from rowproof.speedrun.cell import Candidate, Exclusion, PolicyName, SpeedrunCell
from rowproof.speedrun.losses import GUARD_BAND, LOSS_SIGMA
from rowproof.speedrun.protocol import MAX_STEAL, MIN_OCCUPANCY
from rowproof.speedrun.schema import Strict
from rowproof.speedrun.verdicts import FIRST_CAMPAIGN

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
    return _with_candidates(cell, [policy])


def campaign_setup(setup: Mapping[str, Any], campaigns: Mapping[str, int], campaign: int) -> dict[str, Any]:
    """The setup of a campaign: of what is timed in turns.

    A board grows by campaigns. Each is measured once, with the baseline and the candidate that runs twice in it, so
    that its rows can be compared with those of others.

    Args:
        setup: of the board (:func:`rowproof.boards.board_setup`).
        campaigns: the campaign of each row, from 1; that of baseline and the candidate that runs twice is the first.
        campaign: which one.

    Returns:
        ``setup`` with ``policies`` and ``candidates`` of this campaign alone, and ``campaign``.

    Raises:
        ConfigError: baseline or the candidate that runs twice have no row or another campaign, or no row has this one.
    """
    cell, policies = setup["cell"], setup["policies"]
    shared = {name: [row for row in policies if policies[row] == name] for name in (cell["baseline"], cell["twice"])}
    for name, rows in shared.items():
        found = sorted({campaigns[row] for row in rows})
        if found != [FIRST_CAMPAIGN]:
            raise ConfigError(
                f"{name} is timed in every campaign: it must have a row of campaign {FIRST_CAMPAIGN}, found {found}"
            )
    if campaign not in campaigns.values():
        raise ConfigError(f"campaign must be that of a row, found {campaign}: name it in the plan")
    own = {row: name for row, name in policies.items() if campaigns[row] == campaign or name in shared}
    return {**setup, "policies": own, "cell": _with_candidates(cell, own.values()), "campaign": campaign}


def _with_candidates(cell: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    own = set(names)
    candidates = {name: candidate for name, candidate in cell["candidates"].items() if name in own}
    return {**cell, "candidates": candidates}
