"""The networks in torch, for training only.

Importing this module fixes which kernels torch uses, since kernels of different instruction sets sum in different
orders. It must happen before torch is loaded, so torch is imported from here and nowhere else.
"""

import os
import sys
from itertools import pairwise

import numpy as np

from rowproof.errors import RowproofError

PINNED_KERNELS = {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41"}

if "torch" in sys.modules and any(os.environ.get(name) != value for name, value in PINNED_KERNELS.items()):
    raise RowproofError(
        f"torch must be loaded with {PINNED_KERNELS}, found it loaded without: import {__name__} before torch"
    )
os.environ.update(PINNED_KERNELS)

import torch  # noqa: E402

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)


class Actor(torch.nn.Module):
    """Gaussian policy: mean from a network of dense layers, each followed by ReLU and LayerNorm; free deviations.

    The standard deviation is ``std_ceiling * sigmoid(std_parameter)``, the same in all states.
    """

    def __init__(
        self,
        state_size: int,
        action_size: int,
        hidden_units: list[int],
        mean_gain: float,
        std_ceiling: float,
        initial_std_parameter: float,
    ) -> None:
        """Orthogonal weights (gain sqrt 2, or ``mean_gain`` in the mean layer), zero biases, from torch's generator."""
        super().__init__()
        sizes = [state_size, *hidden_units]
        self.input_norm = torch.nn.LayerNorm(state_size)
        self.hidden = torch.nn.ModuleList(torch.nn.Linear(inputs, outputs) for inputs, outputs in pairwise(sizes))
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(units) for units in hidden_units)
        self.mean = torch.nn.Linear(sizes[-1], action_size)
        self.std_parameter = torch.nn.Parameter(torch.full((action_size,), initial_std_parameter))
        self._std_ceiling = std_ceiling
        for layer, gain in [*((layer, 2.0**0.5) for layer in self.hidden), (self.mean, mean_gain)]:
            torch.nn.init.orthogonal_(layer.weight, gain)
            torch.nn.init.zeros_(layer.bias)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Mean actions, shape (n, action_size), of states of shape (n, state_size)."""
        values = self.input_norm(states)
        for layer, norm in zip(self.hidden, self.norms, strict=True):
            values = norm(torch.relu(layer(values)))
        return self.mean(values)

    def std(self) -> torch.Tensor:
        """Standard deviation of each action component, shape (action_size,)."""
        return self._std_ceiling * torch.sigmoid(self.std_parameter)

    def distribution(self, states: torch.Tensor) -> torch.distributions.Normal:
        """The action distribution in each state, component by component."""
        means = self(states)
        return torch.distributions.Normal(means, self.std().expand_as(means))


class Critic(torch.nn.Module):
    """State values from dense layers with tanh, initialised as torch does it."""

    def __init__(self, state_size: int, hidden_units: list[int]) -> None:
        """Weights from torch's generator."""
        super().__init__()
        sizes = [state_size, *hidden_units]
        self.hidden = torch.nn.ModuleList(torch.nn.Linear(inputs, outputs) for inputs, outputs in pairwise(sizes))
        self.value = torch.nn.Linear(sizes[-1], 1)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Values, shape (n,), of states of shape (n, state_size)."""
        for layer in self.hidden:
            states = torch.tanh(layer(states))
        return self.value(states).squeeze(-1)


def tensors_of(module: torch.nn.Module) -> dict[str, np.ndarray]:
    """Name -> copy of each parameter, as float32 arrays."""
    return {name: value.detach().numpy().copy() for name, value in module.state_dict().items()}
