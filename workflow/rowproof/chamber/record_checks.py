"""What the checks of all engines share: the form of a record, and where it differs from what it must be."""

from collections.abc import Mapping
from typing import Any

from rowproof.records import Kinds, encode_line


def record_schema(force: type) -> dict[str, Kinds]:
    """Keys and types of an episode record, in the published order; ``force`` is the type of the stress channel."""
    return {
        "seed": (int,),
        "episode_idx": (int,),
        "initial_state_seed": (int,),
        "success": (bool,),
        "constraint_violation_peak": (float,),
        "fallback_fired": (int,),
        "force_peak": (force,),
        "metadata": (dict,),
    }


def differences(expected: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """One message per key of ``expected`` whose canonical text differs in ``found`` (so -0.0 is not 0.0).

    Raises:
        KeyError: a key is missing in ``found``; check its schema first.
        RecordError: a value has no canonical text.
    """
    return [
        f"{key} must be {encode_line(value)}, found {encode_line(found[key])}"
        for key, value in expected.items()
        if encode_line(value) != encode_line(found[key])
    ]
