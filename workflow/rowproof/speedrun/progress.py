"""Lines of progress: which run of how many is over, how long it took, the ratio so far, and what is left."""

from collections.abc import Callable
from statistics import fmean, median

from rowproof.speedrun.attempts import Step

_ARMS = {"A": "base", "B": "patched"}


class Progress:
    """Tells of the runs of one attempt, which are planned as verifications of both scripts and timed pairs."""

    def __init__(self, n_seeds: int, n_pairs: int, report: Callable[[str], object]) -> None:
        """Plan ``n_seeds`` verifications of each script and ``n_pairs`` pairs after one that warms up."""
        self._left = {arm: n_seeds + 1 + n_pairs for arm in _ARMS}
        self._total, self._report = sum(self._left.values()), report
        self._wall_s: dict[str, list[float]] = {arm: [] for arm in _ARMS}
        self._timed_s: dict[str, list[float]] = {arm: [] for arm in _ARMS}

    def __call__(self, step: Step) -> None:
        """Tell of one run."""
        self._wall_s[step.arm].append(step.wall_s)
        if step.counts:
            self._left[step.arm] = max(0, self._left[step.arm] - 1)
        if step.stage == "time" and step.name != "warm-up":
            self._timed_s[step.arm].append(step.wall_s)
        parts = [
            f"run {self._total - sum(self._left.values())} of {self._total}",
            f"{step.stage} {_ARMS[step.arm]} {step.name}",
            f"{step.wall_s:.1f} s",
        ]
        if step.outcome != "ok":
            parts.append(step.outcome)
        if step.val_loss is not None:
            parts.append(f"loss {step.val_loss:.4f}")
        if all(self._timed_s.values()):
            base_s, patched_s = (median(self._timed_s[arm]) for arm in _ARMS)
            parts.append(f"ratio so far {base_s / patched_s:.3f}")
        parts.append(f"about {_duration(self.left_s())} left")
        self._report(", ".join(parts))

    def left_s(self) -> float:
        """Seconds that the planned runs still take; a script that has not run yet counts like the other one."""
        every = fmean([*self._wall_s["A"], *self._wall_s["B"]])
        return sum(count * fmean(self._wall_s[arm] or [every]) for arm, count in self._left.items())


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
