"""Rates of successes: the chance that one of k attempts succeeds, and Wilson's interval."""

import math

# Two-sided 95 %.
Z = 1.959964


def wilson(successes: int, n: int) -> tuple[float, float]:
    """Wilson's score interval of a rate over ``n`` independent units, two-sided 95 % (Wilson 1927).

    Raises:
        ValueError: no units, or not that many successes among them.
    """
    if not 0 <= successes <= n or n < 1:
        raise ValueError(f"there must be units, and at most that many successes, found {successes} of {n}")
    rate, square = successes / n, Z * Z
    centre = (rate + square / (2 * n)) / (1 + square / n)
    half = Z * math.sqrt(rate * (1 - rate) / n + square / (4 * n * n)) / (1 + square / n)
    return max(0.0, centre - half), min(1.0, centre + half)


def pass_at_k(n: int, successes: int, k: int) -> float:
    """The chance that at least one of ``k`` attempts succeeds, unbiased from ``n`` of which ``successes`` did.

    1 - C(n - c, k) / C(n, k), see Chen et al. 2021, "Evaluating Large Language Models Trained on Code".

    Raises:
        ValueError: fewer attempts than ``k``, or not that many successes among them.
    """
    if not 1 <= k <= n or not 0 <= successes <= n:
        raise ValueError(
            f"there must be at least {k} attempts and at most that many successes, found {successes} of {n}"
        )
    return 1.0 - math.comb(n - successes, k) / math.comb(n, k)
