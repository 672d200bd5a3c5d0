"""Binds trainings to weights: every seed has weights of its own, and they play as their validation says."""

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import safetensors.numpy

from rowproof.errors import RowproofError
from rowproof.evidence.checks import CheckTable
from rowproof.records import decode, encode_line

# Far more than any training leaves; a larger document is read by nobody.
MAX_DOCUMENT_BYTES = 64 << 20


def content_digest(data: bytes) -> str:
    """SHA-256 (64 hex) of the arrays of a checkpoint, whatever order or notes they are stored with.

    Raises:
        RowproofError: it is no safetensors file.
    """
    try:
        arrays = safetensors.numpy.load(data)
    except Exception as error:
        raise RowproofError(f"a checkpoint must be a safetensors file, found none: {error}") from None
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name}\0{array.dtype.str}\0{array.shape}\0".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def shared_weights(documents: Mapping[int, Mapping[str, Any]], selected: Mapping[int, bytes]) -> list[str]:
    """What trainings of different seeds have in common and cannot.

    Args:
        documents: training seed -> its document.
        selected: training seed -> bytes of the checkpoint that plays.
    """
    places: dict[str, list[str]] = defaultdict(list)
    for seed, document in documents.items():
        for saved in document["checkpoints"]:
            places[saved["uri"]].append(f"seed {seed} step {saved['step']}")
    problems = [f"{uri} is that of {' and '.join(where)}" for uri, where in places.items() if len(where) > 1]
    curves: dict[str, list[int]] = defaultdict(list)
    for seed, document in documents.items():
        # A training that is too short to draw a curve shows nothing.
        if document["curve"]["points"]:
            curves[encode_line(document["curve"])].append(seed)
    problems += [f"seeds {seeds} have the same curve" for seeds in curves.values() if len(seeds) > 1]
    contents: dict[str, list[int]] = defaultdict(list)
    for seed, data in selected.items():
        contents[content_digest(data)].append(seed)
    problems += [f"seeds {seeds} play with the same weights" for seeds in contents.values() if len(seeds) > 1]
    return problems


def replay_validation(module: str, setup: Mapping[str, Any], chosen: Mapping[str, Any], data: bytes) -> list[str]:
    """How the validation of the selected checkpoint comes out otherwise when it is run again.

    Args:
        module: of the engine, with its ``validate``.
        setup: of the selection.
        chosen: document of the selection.
        data: bytes of the selected checkpoint.
    """
    selected = chosen["selected"]
    (stated,) = [each["episodes"] for each in chosen["candidates"] if each["uri"] == selected["uri"]]
    fresh = import_module(module).validate(setup, selected["uri"], data)
    wrong = [i for i, (old, new) in enumerate(zip(stated, fresh, strict=False)) if encode_line(old) != encode_line(new)]
    if len(stated) != len(fresh):
        return [f"{len(stated)} episodes, {len(fresh)} when run again"]
    return [f"{len(wrong)} of {len(fresh)} episodes come out otherwise, first {wrong[0]}"] if wrong else []


def check_distinct(table: CheckTable, results: Path) -> None:
    """Add ``results:checkpoints``: no two trainings of any rows below ``results`` share a checkpoint."""
    must = "every training of every row has checkpoints of its own"
    with table.guard("results:checkpoints", must):
        places: dict[str, set[str]] = defaultdict(set)
        for path in sorted(results.glob("**/training_seed*.json")):
            if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_DOCUMENT_BYTES:
                raise RowproofError(f"{path.relative_to(results)} must be a plain file of bounded size")
            document = decode(path.read_bytes(), path.name)
            for saved in document["checkpoints"]:
                row, seed = path.parent.relative_to(results), document["training_seed"]
                places[saved["uri"]].add(f"{row} seed {seed}")
        shared = [
            f"{uri[:19]} is that of {' and '.join(sorted(rows))}" for uri, rows in places.items() if len(rows) > 1
        ]
        found = "; ".join(shared[:5] + [f"and {len(shared) - 5} more"] * (len(shared) > 5))
        way_out = "train each seed by itself: remove the rows and build them again"
        table.add(
            "results:checkpoints", not shared, must, f"{found}: {way_out}" if shared else f"{len(places)} distinct"
        )
