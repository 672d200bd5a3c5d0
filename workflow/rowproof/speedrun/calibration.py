"""Calibration of the CPU track: the target from the baseline's losses, and the steps of every rung from the target.

It comes before a plan and decides what the plan says. Its seeds are those of no row, and its runs are no evidence.
"""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from rowproof.errors import RowproofError
from rowproof.files import write_atomic
from rowproof.hashing import sha256_hex
from rowproof.records import encode_document
from rowproof.speedrun.corpus import audit_seed, stream
from rowproof.speedrun.losses import LOSS_SIGMA
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.referee.evaluation import WINDOW
from rowproof.speedrun.referee.ladder import read_script
from rowproof.speedrun.referee.runs import Referee, evaluate_weights, train
from rowproof.speedrun.statistics import calibrated_target, calibration_margin
from rowproof.speedrun.steps import read_ladder, steps_of, with_steps

SEEDS = (300, 301, 302, 303, 304)
STEP = 10
MAX_STEPS = 2000
SIGMA_UNIT = 0.001

Loss = Callable[[str, int], dict[str, float]]
"""Losses of a script with a seed: ``val_loss`` and ``audit_loss``, nats per token."""


class Losses:
    """Losses of scripts and seeds, each measured once and kept in a file."""

    def __init__(self, path: Path, referees: Sequence[Referee], report: Callable[[str], Any]) -> None:
        """Read what ``path`` holds; ``referees`` measure what it does not, each on a core of its own."""
        self._path, self._report = path, report
        self._known: dict[str, dict[str, float]] = json.loads(path.read_bytes()) if path.exists() else {}
        self._free: SimpleQueue[Referee] = SimpleQueue()
        for referee in referees:
            self._free.put(referee)
        self._pool = ThreadPoolExecutor(len(referees))

    def of(self, script: str, seeds: Iterable[int], audited: bool = False) -> list[dict[str, float]]:
        """The losses of a script, one entry per seed; ``audited`` ones with ``audit_loss``.

        Raises:
            RowproofError: a run or its evaluation did not end well.
        """
        kind = "audited" if audited else "plain"
        keys = {seed: f"{sha256_hex(script.encode('utf-8'))}-{seed}-{kind}" for seed in seeds}
        missing = [seed for seed, key in keys.items() if key not in self._known]
        measured = self._pool.map(lambda seed: self._measure(script, seed, audited), missing)
        for seed, found in zip(missing, measured, strict=True):
            self._known[keys[seed]] = found
        if missing:
            write_atomic(self._path, encode_document(dict(sorted(self._known.items()))))
        return [self._known[key] for key in keys.values()]

    def _measure(self, script: str, seed: int, audited: bool) -> dict[str, float]:
        referee = self._free.get()
        try:
            run = train(referee, script, seed)
            if run.outcome is not Outcome.OK or run.weights is None:
                raise RowproofError(f"a calibration run must end well, found {run.outcome}, seed {seed}: {run.detail}")
            # Texts differ by more than models do, so every seed has one of its own.
            own = replace(referee, salt=referee.salt + f" {seed}".encode())
            judge = own if audited else replace(own, audit=_short)
            found = evaluate_weights(judge, script, run.weights, script, "calibration", None)
        finally:
            self._free.put(referee)
        if found.outcome is not Outcome.OK:
            raise RowproofError(f"a calibration run must pass its audits, found {found.outcome}: {found.detail}")
        self._report(f"seed {seed}: loss {found.val_loss:.4f} in {run.cpu_s:.1f} CPU s")
        audit = {"audit_loss": found.audit_loss} if audited else {}
        return {"val_loss": found.val_loss, **audit, "cpu_s": round(run.cpu_s, 1)}


def _short(patched_sha256: str, salt: bytes) -> Any:
    """An audit text of the least length, where no audit loss is asked for."""
    return stream(audit_seed(patched_sha256, salt), 4 * WINDOW + 1)


def mean_and_sd(values: Sequence[float]) -> tuple[float, float]:
    """Mean and sample standard deviation."""
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def pooled_sigma(sds: Sequence[float]) -> float:
    """The standard deviation that a loss test may take as known: pooled over rungs, rounded up, never below 0.005."""
    pooled = math.sqrt(math.fsum(sd**2 for sd in sds) / len(sds))
    return max(LOSS_SIGMA, round(math.ceil(pooled / SIGMA_UNIT - 1e-9) * SIGMA_UNIT, 3))


def calibrate(folder: Path, losses: Losses, n_final: int, report: Callable[[str], Any]) -> dict[str, Any]:
    """Target, sigma and steps of the ladder in ``folder``.

    The target is the smallest number with two decimals at or above mean + 3 standard deviations of the baseline. Sigma
    is pooled over the rungs at the steps that their patches have. A rung's steps are then the smallest multiple of ten
    whose mean loss lies below the target by 1.5 times what the loss rule demands of ``n_final`` seeds, found by
    halving around the number in its patch; the next smaller multiple fails.

    Returns:
        Plain data: ``target``, ``sigma``, ``margin``, ``base_gap`` (audit loss minus validation loss of the baseline),
        ``seeds``, and ``rungs``: of each its steps and the mean, deviation and CPU seconds of every number tried.

    Raises:
        RowproofError: a run did not end well, or no number of steps reaches the target.
    """
    names = [name for name in read_ladder(folder) if name.startswith("R")]
    base, rungs = names[0], names[1:]
    tried: dict[str, dict[int, dict[str, float]]] = {name: {} for name in names}

    def mean_loss(name: str, steps: int) -> float:
        script = with_steps(read_script(folder, name), steps)
        found = losses.of(script, SEEDS, audited=name == base)
        mean, sd = mean_and_sd([each["val_loss"] for each in found])
        cpu_s = mean_and_sd([each["cpu_s"] for each in found])[0]
        tried[name][steps] = {"mean": round(mean, 6), "sd": round(sd, 6), "cpu_s": round(cpu_s, 1)}
        report(f"{name} with {steps} steps: {mean:.4f} (sd {sd:.4f}), {cpu_s:.1f} CPU s")
        return mean

    at = {name: steps_of(read_script(folder, name)) for name in names}
    mean_loss(base, at[base])
    base_losses = losses.of(read_script(folder, base), SEEDS, audited=True)
    target = calibrated_target([each["val_loss"] for each in base_losses])
    base_gap, gap_sd = mean_and_sd([each["audit_loss"] - each["val_loss"] for each in base_losses])
    for name in rungs:
        mean_loss(name, at[name])
    sigma = pooled_sigma([tried[name][at[name]]["sd"] for name in rungs])
    bound = target - calibration_margin(sigma, n_final)
    report(f"target {target}, sigma {sigma}, rungs must reach {bound:.4f}")
    chosen = {base: at[base]}
    for name in rungs:
        chosen[name] = _smallest(lambda steps, name=name: mean_loss(name, steps) <= bound, at[name], name)
    return {
        "target": target,
        "sigma": sigma,
        "margin": round(target - bound, 6),
        "base_gap": round(base_gap, 6),
        "base_gap_sd": round(gap_sd, 6),
        "seeds": list(SEEDS),
        "rungs": {
            name: {"steps": chosen[name], "tried": {str(steps): tried[name][steps] for steps in sorted(tried[name])}}
            for name in names
        },
    }


def _smallest(reaches: Callable[[int], bool], start: int, name: str) -> int:
    """The multiple of ten, searched around ``start`` by halving, that reaches the target while the one before fails."""
    steps, width = start // STEP * STEP, STEP
    if reaches(steps):
        high, low = steps, steps - width
        while low > 0 and reaches(low):
            width *= 2
            high, low = low, max(0, low - width)
    else:
        low, high = steps, steps + width
        while not reaches(high):
            if high >= MAX_STEPS:
                raise RowproofError(
                    f"{name} must reach the target within {MAX_STEPS} steps, found it does not: mend it"
                )
            width *= 2
            low, high = high, min(high + width, MAX_STEPS)
    while high - low > STEP:
        middle = (low + high) // 2 // STEP * STEP
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high
