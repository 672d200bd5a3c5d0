"""What must hold of the documents of trainings and selections, as far as it can be told without training again."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from rowproof.checkpoints import file_name
from rowproof.errors import RecordError, RowproofError
from rowproof.evidence.selection import selection
from rowproof.records import Kinds, check_fields, encode_line

TRAINING_SCHEMA = "rowproof/training-run/1"
TRAINING_FIELDS: dict[str, Kinds] = {
    "schema": (str,),
    "training": (str,),
    "training_seed": (int,),
    "frames": (int,),
    "checkpoints": (list,),
    "curve": (dict,),
}
CHECKPOINT_FIELDS: dict[str, Kinds] = {"step": (int,), "uri": (str,)}
CURVE_FIELDS: dict[str, Kinds] = {"columns": (list,), "points": (list,)}


def training_problems(document: Any, seed: int, config: Mapping[str, Any]) -> list[str]:
    """What is wrong with ``document`` as that of the training ``seed`` under ``config``, as far as can be told."""
    try:
        check_fields(document, TRAINING_FIELDS, "training")
        check_fields(document["curve"], CURVE_FIELDS, "training: curve")
        for saved in document["checkpoints"]:
            file_name(check_fields(saved, CHECKPOINT_FIELDS, "training: checkpoint")["uri"])
    except RowproofError as error:
        return [str(error)]
    every = config["checkpoint_frames"]
    expected = {
        "schema": TRAINING_SCHEMA,
        "training": config["training"],
        "training_seed": seed,
        "frames": config["frames"],
        "steps": list(range(every, config["frames"] + 1, every)),
    }
    found = {**document, "steps": [saved["step"] for saved in document["checkpoints"]]}
    problems = [
        f"{name} must be {value}, found {found[name]}" for name, value in expected.items() if found[name] != value
    ]
    columns, points = document["curve"]["columns"], document["curve"]["points"]
    whole = all(isinstance(name, str) for name in columns) and columns[:1] == ["frames"]
    whole = whole and all(
        isinstance(point, list)
        and len(point) == len(columns)
        and all(type(value) in (int, float) and math.isfinite(value) for value in point)
        for point in points
    )
    if not whole or any(before[0] >= after[0] for before, after in pairwise(points)):
        problems.append("the curve must have one finite number per column, with growing frames")
    return problems


def selection_problems(
    document: Any, seed: int, checkpoints: Sequence[Mapping[str, Any]], limits: Mapping[str, float]
) -> list[str]:
    """What is wrong with ``document`` as the selection among ``checkpoints``, apart from its episodes themselves."""
    try:
        judged = [
            {"step": saved["step"], "uri": saved["uri"], "episodes": candidate["episodes"]}
            for saved, candidate in zip(checkpoints, document["candidates"], strict=True)
        ]
        fresh = selection(seed, judged, limits)
    except (RecordError, ValueError, TypeError, KeyError, AttributeError) as error:
        return [f"must be a selection among the {len(checkpoints)} checkpoints of the training, found {error!r}"]
    return [
        f"{name} must be {encode_line(value)[:200]}, found {encode_line(document.get(name))[:200]}"
        for name, value in fresh.items()
        if encode_line(document.get(name)) != encode_line(value)
    ] + [f"unknown entries {sorted(set(document) - set(fresh))}" for _ in range(set(document) != set(fresh))]
