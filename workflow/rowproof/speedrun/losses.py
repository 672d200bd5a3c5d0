"""The rule by which the losses of a row are judged on the CPU track, and how an attempt ends by it."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Literal, NamedTuple

from rowproof.errors import RowproofError
from rowproof.speedrun.outcomes import Outcome

LOSS_SIGMA = 0.005
"""Least standard deviation (nats per token) of the loss between seeds that is taken as known on ``cpu-mini``."""
LOSS_Z = 2.33
GUARD_BAND = 0.002
"""Nats per token around the boundary of the loss rule: CPU types differ by less."""

Verdict = Literal["pass", "inconclusive", "miss"]


class LossTest(NamedTuple):
    """Outcome of a loss rule.

    Attributes:
        mean: mean loss over seeds, nats per token.
        threshold_met: mean at or below the threshold, the condition of the published reward.
        verdict: what the stricter rule says.
        margin_z: margin below the threshold in standard errors; None where it is undefined.
    """

    mean: float
    threshold_met: bool
    verdict: Verdict
    margin_z: float | None


def exact_mean(losses: Mapping[int, float]) -> Fraction:
    """The mean of losses as the decimals that they are written as.

    Raises:
        RowproofError: no loss, or one that is not finite.
    """
    if not losses or not all(type(loss) is float and math.isfinite(loss) for loss in losses.values()):
        raise RowproofError(
            f"a loss rule needs a finite loss of at least one seed, found {dict(losses)}: evaluate the runs"
        )
    # As decimals: three times 1.35 averages to 1.35, and not to its neighbour.
    return sum((Fraction(repr(loss)) for loss in losses.values()), Fraction(0)) / len(losses)


def known_sigma_test(losses: Mapping[int, float], threshold: float, sigma: float = LOSS_SIGMA) -> LossTest:
    """The rule of ``cpu-mini``: pass when ``(threshold - mean) * sqrt(n) >= 2.33 * sigma`` by more than the guard band.

    A margin within 0.002 of that boundary, and any smaller one that still meets the threshold, is inconclusive.

    Args:
        losses: loss (nats per token) of each seed, the unit; a repeated seed is no second sample.
        threshold: nats per token.
        sigma: known standard deviation of the loss between seeds, nats per token.

    Raises:
        RowproofError: no loss, or one that is not finite.
    """
    mean = exact_mean(losses)
    margin = Fraction(repr(threshold)) - mean
    root = math.sqrt(len(losses))
    if margin < 0:
        verdict: Verdict = "miss"
    elif float(margin) - LOSS_Z * sigma / root > GUARD_BAND:
        verdict = "pass"
    else:
        verdict = "inconclusive"
    return LossTest(float(mean), margin >= 0, verdict, round(float(margin) * root / sigma, 3))


def decide(found: Outcome | None, loss: LossTest | None) -> Outcome:
    """The outcome of an attempt.

    Args:
        found: what the earlier stages found; None or ``ok`` when all is well. ``nondeterministic`` leaves the loss to
            decide; all others end the attempt.
        loss: the loss rule's result; None when there is no loss.

    Raises:
        RowproofError: nothing was found and there is no loss either.
    """
    if found not in (None, Outcome.OK, Outcome.NONDETERMINISTIC):
        return found
    if loss is None:
        raise RowproofError("an attempt must end with a loss or with the code of a failure, found neither: evaluate it")
    if not loss.threshold_met:
        return Outcome.THRESHOLD_MISSED
    if found is Outcome.NONDETERMINISTIC:
        return found
    return Outcome.OK if loss.verdict == "pass" else Outcome.INCONCLUSIVE
