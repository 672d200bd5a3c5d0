"""What a board's page shows of its rows beside success: the columns of the CHAMBER benchmark, or those of a family."""

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

from rowproof.evidence.intervals import IQM, with_bound
from rowproof.evidence.statistics import BUNDLE_STREAM, LEADERBOARD_STREAM
from rowproof.families import engines
from rowproof.plain_text import markdown_cell

MISSING = "—"


class Columns(Protocol):
    """What a page module offers. A row is one of a ``leaderboard.json``, ``summary`` in it that of its bundle.

    Attributes:
        HEADER: headings of the columns of the main table.
        CSV_COLUMNS: names of the columns of the CSV file.
    """

    HEADER: tuple[str, ...]
    CSV_COLUMNS: tuple[str, ...]

    def cells(self, row: Mapping[str, Any]) -> list[str]:
        """The cells of the main table, one for each heading."""

    def values(self, row: Mapping[str, Any]) -> list[Any]:
        """The values of the CSV file, one for each name."""

    def notes(self, rows: Sequence[Mapping[str, Any]]) -> list[str]:
        """Footnotes, each one line of Markdown."""

    def sections(self, rows: Sequence[Mapping[str, Any]]) -> list[str]:
        """Further parts of the page in Markdown, each closed by a newline."""


class ChamberColumns:
    """The columns of the CHAMBER benchmark: its aggregate over episodes, and the stress."""

    HEADER = ("IQM [95 % CI]", "Mean", "Stress p90 (N)")
    CSV_COLUMNS = (
        *("success_iqm", "success_iqm_ci_low", "success_iqm_ci_high"),
        *("success_iqm_bound_by_seeds", "success_iqm_bound_by_episodes", "success_mean"),
        *("stress_episodes", "stress_p90_newton"),
    )

    def cells(self, row: Mapping[str, Any]) -> list[str]:
        """See :class:`Columns`."""
        published, stress = row["summary"]["published"], row["summary"]["stress"]
        return [
            with_bound(
                published["success_iqm"], published["success_iqm_ci_leaderboard_stream"], row.get("bounds", {}).get(IQM)
            ),
            f"{published['success_mean']:.3f}",
            MISSING if stress is None else f"{stress['p90']:.1f}",
        ]

    def values(self, row: Mapping[str, Any]) -> list[Any]:
        """See :class:`Columns`."""
        published, stress = row["summary"]["published"], row["summary"]["stress"] or {"n": 0, "p90": None}
        return [
            published["success_iqm"],
            *bounded_ends(published["success_iqm_ci_leaderboard_stream"], row.get("bounds", {}).get(IQM)),
            published["success_mean"],
            *(stress["n"], stress["p90"]),
        ]

    def notes(self, rows: Sequence[Mapping[str, Any]]) -> list[str]:
        """See :class:`Columns`."""
        return [
            "IQM: the published definition, over single episodes that count 0 or 1. It trims a quarter at either end, "
            "so it is 0 up to a success rate of about a quarter and 1 from about three quarters on: it understates a "
            "weak row and hides the failures of a strong one. Read it beside the success rate and the range.",
            f"Random stream of the IQM's interval: `{LEADERBOARD_STREAM}`. `bundle.json` also holds that under "
            f"`{BUNDLE_STREAM}`. The two differ by the noise of resampling alone, and each is right in its place.",
            "Stress p90: 90th percentile of the peak force over all episodes that have one, successful or not.",
        ]

    def sections(self, rows: Sequence[Mapping[str, Any]]) -> list[str]:
        """See :class:`Columns`."""
        return []


_CHAMBER = ChamberColumns()


def columns_of(engine: str) -> Columns:
    """The columns of boards of an engine."""
    module = engines()[engine].page_module
    # A module is as good as an object with these attributes.
    return _CHAMBER if module is None else import_module(module)  # type: ignore[return-value]


def shows_iqm(engine: str) -> bool:
    """Whether boards of an engine show the interquartile mean."""
    return engines()[engine].page_module is None


def bounded_ends(ends: Sequence[float], bound: Mapping[str, Any] | None) -> list[float | str]:
    """For a CSV file: both ends of an interval and no bounds, or no ends and the bounds by seeds and by episodes."""
    return [*ends, "", ""] if bound is None else ["", "", bound["by_seeds"]["value"], bound["by_episodes"]["value"]]


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, closed by a newline."""
    rows = (header, ["---"] * len(header), *lines)
    return "".join(f"| {' | '.join(map(markdown_cell, cells))} |\n" for cells in rows)


def interval(value: float, ends: Sequence[float]) -> str:
    """A value with its interval."""
    return f"{value:.3f} [{ends[0]:.3f}, {ends[1]:.3f}]"
