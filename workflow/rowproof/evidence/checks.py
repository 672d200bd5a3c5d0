"""The check table that every verification fills: one line per thing that must hold."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from rowproof.errors import HistoryGap, RowproofError
from rowproof.plain_text import visible

Verdict = Literal["pass", "fail", "unknown", "not proven"]


@dataclass(frozen=True)
class Check:
    """One line of a check table.

    Attributes:
        id: stable name, ``group:subject``.
        verdict: ``unknown`` means that what is needed to decide (say, git history) is not here; never a pass.
            ``not proven`` means the same of that on which all else rests: nothing that holds it is a pass.
        must: what must hold.
        found: what was found.
    """

    id: str
    verdict: Verdict
    must: str
    found: str


@dataclass
class CheckTable:
    """Checks of one subject (a bundle or an archive), in the order in which they were made.

    Attributes:
        subject: what is checked.
        checks: the lines so far.
        crashed: those of them that ended in an error of the checker itself. Such a check says nothing of the evidence,
            and yet no subject passes with one, or evidence could escape a check by making it fail to run.
    """

    subject: str
    checks: list[Check] = field(default_factory=list)
    crashed: list[Check] = field(default_factory=list)

    def add(self, check_id: str, holds: bool | None, must: str, found: str) -> bool:
        """Append a check; ``holds=None`` means unknown. Returns whether it passed."""
        verdict: Verdict = "unknown" if holds is None else "pass" if holds else "fail"
        self.checks.append(Check(check_id, verdict, must, found))
        return holds is True

    def leave_unproven(self, check_id: str, must: str, found: str) -> None:
        """Append a check that was not made and without which the subject does not pass."""
        self.checks.append(Check(check_id, "not proven", must, found))

    @contextmanager
    def guard(self, check_id: str, must: str) -> Iterator[None]:
        """Turn an exception of the block into a line of the table: no evidence must ever crash a verifier.

        What the block itself says against the evidence (:class:`RowproofError`) and what cannot be read make the check
        fail, a :class:`HistoryGap` makes it unknown. Any other exception was foreseen by nobody: the check is unknown
        as well, and among :attr:`crashed`.
        """
        try:
            yield
        except HistoryGap as gap:
            self.add(check_id, None, must, str(gap))
        except (RowproofError, OSError) as error:
            self.add(check_id, False, must, "; ".join(str(error).splitlines()))
        except Exception as error:
            text = "; ".join(f"{type(error).__name__}: {error}".splitlines())
            self.add(check_id, None, must, f"cannot be checked: {text}")
            self.crashed.append(self.checks[-1])

    @property
    def verdict(self) -> Verdict:
        """``fail`` where a check fails or there is none, ``unknown`` if one crashed, ``not proven``, else ``pass``."""
        if not self.checks or any(check.verdict == "fail" for check in self.checks):
            return "fail"
        if self.crashed:
            return "unknown"
        return "not proven" if any(check.verdict == "not proven" for check in self.checks) else "pass"

    @property
    def passed(self) -> bool:
        """Whether there is at least one check and none fails, crashed or is not proven (unknown ones do not count)."""
        return self.verdict == "pass"

    @property
    def failures(self) -> list[Check]:
        """What keeps the subject from passing: the failing checks, those that crashed and those that are not proven."""
        return [check for check in self.checks if check.verdict in ("fail", "not proven") or check in self.crashed]

    def as_json(self) -> dict[str, Any]:
        """The table as plain JSON data."""
        return {
            "subject": self.subject,
            "verdict": self.verdict,
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
            write(visible(line))
        unproven = sum(check.verdict == "not proven" for check in self.checks)
        counts = {v: sum(c.verdict == v for c in self.checks) for v in ("pass", "fail", "unknown")}
        write(
            f"{self.verdict.upper()} {visible(self.subject)}: "
            f"{counts['pass']} passed, {counts['fail']} failed, {counts['unknown']} unknown"
            + (f", {unproven} not proven" if unproven else "")
        )
