"""Which checkpoint of a training is evaluated: scores, the winner, and how unsteady the training was."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

SELECTION_SCHEMA = "rowproof/selection/1"
# Between two checkpoints in a row, as a share of the validation episodes; more is told as an instability.
INSTABILITY_DROP = 0.4


def score(episodes: Sequence[Mapping[str, Any]], limits: Mapping[str, float]) -> int:
    """Number of episodes that succeed with every measurement at most at its limit; a missing one is beyond it."""
    return sum(
        episode["success"] is True and all(episode.get(name, math.inf) <= limit for name, limit in limits.items())
        for episode in episodes
    )


def choose(candidates: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The candidate of the highest score, the earliest ``step`` among equals.

    Raises:
        ValueError: there is no candidate.
    """
    return min(candidates, key=lambda candidate: (-candidate["score"], candidate["step"]))


def selection(seed: int, judged: Sequence[Mapping[str, Any]], limits: Mapping[str, float]) -> dict[str, Any]:
    """The evidence of one selection: every candidate with its episodes and score, and the winner.

    Args:
        seed: the training seed.
        judged: candidates in the order of training, each with ``step``, ``uri`` and ``episodes``.
        limits: largest value of a measurement, by name.
    """
    candidates = [{**each, "score": score(each["episodes"], limits)} for each in judged]
    winner = choose(candidates)
    return {
        "schema": SELECTION_SCHEMA,
        "training_seed": seed,
        "candidates": candidates,
        "selected": {"step": winner["step"], "uri": winner["uri"]},
    }


def largest_drop(document: Mapping[str, Any]) -> float:
    """Largest fall of the share of points from one checkpoint to the next, up to 1; negative when it always rises."""
    shares = [each["score"] / len(each["episodes"]) for each in document["candidates"]]
    return max((before - after for before, after in pairwise(shares)), default=0.0)
