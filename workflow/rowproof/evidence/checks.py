"""The check table that every verification fills: one line per thing that must hold."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from rowproof.errors import HistoryGap, RowproofError

Verdict = Literal["pass", "fail", "unknown"]


@dataclass(frozen=True)
class Check:
    """One line of a check table.

    Attributes:
        id: stable name, ``group:subject``.
        verdict: ``unknown`` means that what is needed to decide (say, git history) is not here; never a pass.
        must: what must hold.
        found: what was found.
    """

    id: str
    verdict: Verdict
    must: str
    found: str


@dataclass
class CheckTable:
    """Checks of one subject (a bundle or an archive), in the order in which they were made."""

    subject: str
    checks: list[Check] = field(default_factory=list)

    def add(self, check_id: str, holds: bool | None, must: str, found: str) -> bool:
        """Append a check; ``holds=None`` means unknown. Returns whether it passed."""
        verdict: Verdict = "unknown" if holds is None else "pass" if holds else "fail"
        self.checks.append(Check(check_id, verdict, must, found))
        return holds is True

    @contextmanager
    def guard(self, check_id: str, must: str) -> Iterator[None]:
        """Turn an exception of the block into a failing check: hostile evidence must never crash a verifier.

        A :class:`HistoryGap` makes the check unknown.
        """
        try:
            yield
        except HistoryGap as gap:
            self.add(check_id, None, must, str(gap))
        except Exception as error:
            text = str(error) if isinstance(error, RowproofError | OSError) else f"{type(error).__name__}: {error}"
            self.add(check_id, False, must, "; ".join(text.splitlines()))

    @property
    def passed(self) -> bool:
        """Whether there is at least one check and none fails (unknown does not fail)."""
        return bool(self.checks) and all(check.verdict != "fail" for check in self.checks)

    @property
    def failures(self) -> list[Check]:
        """The failing checks."""
        return [check for check in self.checks if check.verdict == "fail"]

    def as_json(self) -> dict[str, Any]:
        """The table as plain JSON data."""
        return {
            "subject": self.subject,
            "verdict": "pass" if self.passed else "fail",
            "checks": [{"id": c.id, "verdict": c.verdict, "must": c.must, "found": c.found} for c in self.checks],
        }

    def render(self, write: Callable[[str], Any], verbose: bool = True) -> None:
        """Write the table as text lines: failures and unknowns always, passes when ``verbose``."""
        shown = [c for c in self.checks if verbose or c.verdict != "pass"]
        width = max((len(c.id) for c in shown), default=0)
        for check in shown:
            line = f"{check.verdict.upper():<7} {check.id:<{width}}  {check.found}"
            if check.verdict != "pass":
                line += f"  [must hold: {check.must}]"
            write(printable(line))
        counts = {v: sum(c.verdict == v for c in self.checks) for v in ("pass", "fail", "unknown")}
        write(
            f"{'PASS' if self.passed else 'FAIL'} {printable(self.subject)}: "
            f"{counts['pass']} passed, {counts['fail']} failed, {counts['unknown']} unknown"
        )


def printable(text: str) -> str:
    """``text`` on one line and free of control characters, with which evidence could forge lines of the table."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
