"""Costs that do not depend on a clock."""

import math
import time
from collections.abc import Mapping

import numpy as np

from rowproof.speedrun.corpus import VOCABULARY


def matrix_parameters(shapes: Mapping[str, tuple[int, ...]]) -> int:
    """Numbers in the matrices of a checkpoint that every token is multiplied with.

    Of the arrays with one row per token value one is counted, the head: the others are tables that are looked up.
    """
    matrices = [shape for shape in shapes.values() if len(shape) >= 2]
    tables = [shape for shape in matrices if shape[0] == VOCABULARY]
    others = [shape for shape in matrices if shape[0] != VOCABULARY]
    return sum(math.prod(shape) for shape in others) + max((math.prod(shape) for shape in tables), default=0)


def analytic_flops(shapes: Mapping[str, tuple[int, ...]], tokens: int) -> int:
    """FLOPs of training on ``tokens`` tokens, from the checkpoint alone: six per matrix parameter and token.

    Kaplan et al. 2020, section 2.1. Attention's own products are left out, because shapes do not tell how many layers
    there are; the figure stays a little below what a transformer needs.
    """
    return 6 * matrix_parameters(shapes) * tokens


def peak_gflops(repeats: int = 5, size: int = 1024) -> float:
    """The most GFLOP per CPU second that one core of this machine reaches in float32 matrix products.

    Numerical libraries must be limited to one thread. CPU time is used, so that waiting does not count.
    """
    left = np.ones((size, size), dtype=np.float32)
    right = np.full((size, size), 0.5, dtype=np.float32)
    best = 0.0
    for _ in range(repeats + 1):
        started_s = time.process_time()
        left @ right
        best = max(best, 2 * size**3 / 1e9 / (time.process_time() - started_s))
    return best
