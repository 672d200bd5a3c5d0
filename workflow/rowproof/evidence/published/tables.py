"""Check tables of published evidence: how rows are worded and told apart."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rowproof.evidence.checks import Check, CheckTable
from rowproof.plain_text import visible

STRICT = "strict:"
"""Start of the ids of all checks that the published verifier does not make."""
MAX_TEXT = 400
"""Characters shown of what a check found."""


def reference_rows(table: CheckTable) -> list[Check]:
    """The rows that the published verifier prints too, in its order."""
    return [check for check in table.checks if not check.id.startswith(STRICT)]


def shortened(text: str) -> str:
    """``text`` at a length that fits a table and without characters that a terminal or an encoder could choke on."""
    safe = visible(text[: 2 * MAX_TEXT])
    return safe if len(safe) <= MAX_TEXT else safe[:MAX_TEXT] + " ..."


def finished(table: CheckTable) -> CheckTable:
    """``table`` with all its texts made :func:`shortened`."""
    table.checks = [replace(c, id=shortened(c.id), found=shortened(c.found)) for c in table.checks]
    return table


def report(table: CheckTable, check_id: str, must: str, problems: Sequence[str], fine: str) -> bool:
    """Add a check that passes when there are no problems."""
    found = "; ".join(problems[:3]) + (f"; and {len(problems) - 3} more" if len(problems) > 3 else "")
    return table.add(check_id, not problems, must, found or fine)


def repeated(values: Sequence[Any]) -> set[Any]:
    """The values that occur more than once."""
    return {value for value, count in Counter(values).items() if count > 1}
