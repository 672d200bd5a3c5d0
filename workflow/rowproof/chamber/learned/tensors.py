"""The tensors of actors as bytes: safetensors, a format that holds tensors and nothing that could run."""

import re
from collections.abc import Mapping

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from rowproof.checkpoints import CheckpointError, uri_of


def encode(tensors: Mapping[str, np.ndarray]) -> bytes:
    """The file of some float32 tensors; equal tensors give equal bytes."""
    return save({name: np.ascontiguousarray(tensors[name]) for name in sorted(tensors)})


def decode(data: bytes, uri: str, seats: tuple[str, ...]) -> dict[str, dict[str, np.ndarray]]:
    """The actors of a checkpoint: seat -> tensor name -> float32 array.

    Args:
        data: the file.
        uri: its name, compared with the content before anything is parsed.
        seats: the seats that it must hold, e.g. ``("ego", "partner")``.

    Raises:
        CheckpointError: other content than ``uri``, no safetensors file, or other tensors than actors have.
    """
    if uri_of(data) != uri:
        raise CheckpointError(f"the checkpoint must be {uri}, found {uri_of(data)}")
    try:
        tensors = load(data)
    except (SafetensorError, ValueError, TypeError, KeyError) as error:
        raise CheckpointError(f"checkpoint {uri}: must be a safetensors file, found {error}") from None
    actors: dict[str, dict[str, np.ndarray]] = {seat: {} for seat in seats}
    for name, tensor in tensors.items():
        seat, _, own = name.partition(".")
        if seat not in actors or tensor.dtype != np.float32 or not np.isfinite(tensor).all():
            raise CheckpointError(
                f"checkpoint {uri}: must hold finite float32 tensors of {' and '.join(seats)}, found {name} "
                f"({tensor.dtype})"
            )
        actors[seat][own] = tensor
    for seat, own in actors.items():
        _check_shapes(own, f"checkpoint {uri}: {seat}")
    return actors


def _check_shapes(tensors: Mapping[str, np.ndarray], where: str) -> None:
    """Raise CheckpointError unless the tensors are those of one actor, whose layers fit each other."""
    depth = sum(re.fullmatch(r"hidden\.\d+\.weight", name) is not None for name in tensors)
    try:
        size = len(tensors["input_norm.weight"])
        expected = {"input_norm.weight": (size,), "input_norm.bias": (size,)}
        for index in range(depth):
            units = len(tensors[f"hidden.{index}.bias"])
            expected |= {f"hidden.{index}.weight": (units, size), f"hidden.{index}.bias": (units,)}
            expected |= {f"norms.{index}.weight": (units,), f"norms.{index}.bias": (units,)}
            size = units
        actions = len(tensors["mean.bias"])
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{where}: must hold the layers of an actor, found none named {error}") from None
    expected |= {"mean.weight": (actions, size), "mean.bias": (actions,), "std_parameter": (actions,)}
    found = {name: tensor.shape for name, tensor in tensors.items()}
    if found != expected or depth == 0:
        differing = sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))
        raise CheckpointError(f"{where}: layers must fit each other, found other shapes in {', '.join(differing)}")
