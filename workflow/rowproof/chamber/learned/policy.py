"""Plays a trained actor with NumPy alone, in an order of operations that does not depend on the processor."""

from collections.abc import Mapping

import numpy as np

LAYER_NORM_EPS = 1e-5


class Affine:
    """A dense layer.

    Its sums are those of ``einsum``, whose one kernel serves all processors; matrix libraries choose theirs by
    processor, and with it the order of summation.
    """

    def __init__(self, weight: np.ndarray, bias: np.ndarray) -> None:
        """Take ``weight`` of shape (outputs, inputs) and ``bias`` of shape (outputs,)."""
        self._weight = np.ascontiguousarray(weight, np.float64)
        self._bias = bias.astype(np.float64)

    def __call__(self, inputs: np.ndarray) -> np.ndarray:
        """Outputs for ``inputs`` of shape (inputs,)."""
        return np.einsum("ij,j->i", self._weight, inputs) + self._bias


class LayerNorm:
    """Brings one vector to mean 0 and variance 1, then scales and shifts it."""

    def __init__(self, weight: np.ndarray, bias: np.ndarray) -> None:
        """Take scale and shift, each of the vector's shape."""
        self._weight, self._bias = weight.astype(np.float64), bias.astype(np.float64)

    def __call__(self, inputs: np.ndarray) -> np.ndarray:
        """The normalised ``inputs``."""
        centred = inputs - np.add.reduce(inputs) / len(inputs)
        variance = np.add.reduce(centred * centred) / len(inputs)
        return centred / np.sqrt(variance + LAYER_NORM_EPS) * self._weight + self._bias


class Actor:
    """The mean action of a trained actor.

    Attributes:
        state_size: length of the state that it takes.
        action_size: length of the action that it gives.
    """

    def __init__(self, tensors: Mapping[str, np.ndarray]) -> None:
        """Build the network from tensors named as in :class:`rowproof.chamber.learned.networks.Actor`."""
        depth = sum(name.startswith("hidden.") and name.endswith(".weight") for name in tensors)

        def layer(kind: type, name: str) -> Affine | LayerNorm:
            return kind(tensors[f"{name}.weight"], tensors[f"{name}.bias"])

        self._input_norm = layer(LayerNorm, "input_norm")
        self._hidden = [(layer(Affine, f"hidden.{i}"), layer(LayerNorm, f"norms.{i}")) for i in range(depth)]
        self._mean = layer(Affine, "mean")
        self.state_size = tensors["input_norm.weight"].shape[0]
        self.action_size = tensors["mean.bias"].shape[0]

    def mean_action(self, state: np.ndarray) -> np.ndarray:
        """The mean of the action distribution in ``state`` (shape (state_size,)), float32 of shape (action_size,)."""
        values = self._input_norm(state.astype(np.float64))
        for affine, norm in self._hidden:
            values = norm(np.maximum(affine(values), 0.0))
        return self._mean(values).astype(np.float32)
