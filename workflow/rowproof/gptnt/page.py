"""What the page of a gptnt board shows beside success."""

from collections.abc import Mapping, Sequence
from typing import Any

from rowproof.evidence.columns import MISSING, interval, table

HEADER = ("pass@1", "pass@k", "Modules solved", "Strikes", "Time left (s)", "Turns", "Tokens in / out")
CSV_COLUMNS = (
    *("pass_at_1", "pass_at_k", "k", "modules_solved_share", "strikes", "seconds_left_solved"),
    *("defuser_turns", "expert_turns", "input_tokens", "output_tokens"),
)


def _text(value: float | None, digits: int = 2) -> str:
    return MISSING if value is None else f"{value:.{digits}f}"


def _tokens(figures: Mapping[str, Any]) -> tuple[float, float]:
    first, second = (
        figures[f"defuser_{what}_tokens"] + figures[f"expert_{what}_tokens"] for what in ("input", "output")
    )
    return first, second


def cells(row: Mapping[str, Any]) -> list[str]:
    """The cells of a row; see :class:`rowproof.evidence.columns.Columns`."""
    family = row["summary"]["family"]
    every = family["all"]
    tokens = _tokens(every)
    return [
        _text(every["pass_at_1"], 3),
        f"{_text(every['pass_at_attempts'], 3)} (k = {family['attempts']})",
        _text(every["modules_solved_share"], 3),
        _text(every["strikes"]),
        _text(every["seconds_left_solved"], 1),
        f"{_text(every['defuser_turns'], 1)} / {_text(every['expert_turns'], 1)}",
        f"{tokens[0]:.0f} / {tokens[1]:.0f}",
    ]


def values(row: Mapping[str, Any]) -> list[Any]:
    """The values of a row in the CSV file."""
    family = row["summary"]["family"]
    every = family["all"]
    names = ("modules_solved_share", "strikes", "seconds_left_solved", "defuser_turns", "expert_turns")
    own = [every["pass_at_1"], every["pass_at_attempts"], family["attempts"], *(every[name] for name in names)]
    return ["" if value is None else value for value in (*own, *_tokens(every))]


def notes(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Footnotes."""
    return [
        "A cell is one attempt with one partner; its episodes are the missions of the suite. pass@1: share of missions "
        "solved at the first attempt. pass@k: chance that one of k attempts solves a mission. Both are means over "
        "missions, then over partners.",
        "Modules solved: share per bomb, also of lost ones. Time left: on solved bombs. Turns: of Defuser and Expert, "
        "per game. Tokens: of both, per game; scripted players report one per turn, and cost nothing.",
    ]


def sections(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Tables by pairing and by module."""
    parts = ["## By pairing\n", _pairings(rows)]
    kinds = {kind for entry in rows for kind in entry["summary"]["family"]["modules"]}
    if all("+" not in kind for kind in kinds):
        parts += ["## Defuse rate by module\n", _modules(rows, sorted(kinds))]
    return parts


def _pairings(rows: Sequence[Mapping[str, Any]]) -> str:
    header = ("Defuser", "Expert", "pass@1 [95 % CI]", "Games", "Solved", "Out of time", "Struck out", "Strikes")
    lines = []
    for entry in rows:
        for partner, own in entry["summary"]["family"]["pairings"].items():
            ends = [str(own["outcomes"].get(outcome, 0)) for outcome in ("solved", "timeout", "strikeout")]
            rate = interval(own["pass_at_1"], own["pass_at_1_ci"])
            lines.append([entry["row"], partner, rate, str(own["games"]), *ends, _text(own["strikes"])])
    note = "Intervals are Wilson's over the missions of the first attempt."
    return table(header, lines) + f"\n{note}\n"


def _modules(rows: Sequence[Mapping[str, Any]], kinds: Sequence[str]) -> str:
    lines = [
        [entry["row"], *(_text(entry["summary"]["family"]["modules"][kind]["defuse_rate"]) for kind in kinds)]
        for entry in rows
    ]
    return table(("Row", *kinds), lines)
