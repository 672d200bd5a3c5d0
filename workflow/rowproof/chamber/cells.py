"""What the models of task parameters share.

Each engine has its model in a module of its own (``<engine>_cell.py``): in a shared module, a parameter added for one
engine would make the rows of all engines stale.
"""

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rowproof.errors import ConfigError

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Condition = Annotated[str, Field(min_length=1)]


class StrictCell(BaseModel):
    """Base of all cells: unknown keys and silent conversions are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


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
