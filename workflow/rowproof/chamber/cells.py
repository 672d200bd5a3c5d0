"""Task parameters that a plan preregisters: one strict, frozen model per task."""

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rowproof.errors import ConfigError

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Condition = Annotated[str, Field(min_length=1)]


class HandoverCell(BaseModel):
    """One cell of the handover task: windows, ranges, stiffnesses and times, all positive and finite."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    condition: Condition
    lateral_window_m: Positive
    angular_window_deg: Positive
    seating_force_limit_n: Positive
    translation_range_m: Positive
    wrist_correction_deg: Positive
    reacquire_range_deg: Positive
    contact_stiffness_n_per_m: Positive
    angular_stiffness_n_per_deg: Positive
    regrasp_budget_s: Positive
    regrasp_duration_s: Positive


class PushCell(BaseModel):
    """The diagnostic task: ``steps`` moves of ``dt_s`` each; success needs a final reward of ``success_reward``."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    condition: Condition
    steps: Annotated[int, Field(gt=0)]
    dt_s: Positive
    # Minus a sum of distances (length units of the unit square), hence never above zero.
    success_reward: Annotated[float, Field(le=0, allow_inf_nan=False)]


Cell = TypeVar("Cell", bound=BaseModel)


def parse_cell(model: type[Cell], value: Any) -> Cell:
    """``value`` (plain data) as the cell ``model``.

    Raises:
        ConfigError: a key is missing or unknown, or a value is of another type or out of range.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, p['loc'])) or 'cell'}: {p['msg']}" for p in error.errors())
        raise ConfigError(f"the cell must be a valid {model.__name__}: {problems}") from None
