"""The family's own figures of a row: what its records say beside success.

A pairing is the row's Defuser with one partner. All rates are taken per pairing over missions, each mission with equal
weight, and a row's figure is the mean over its pairings.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rowproof.gptnt.rates import pass_at_k, wilson

ROLES = ("defuser", "expert")
Record = Mapping[str, Any]


def _mean(values: Iterable[float]) -> float | None:
    own = list(values)
    return math.fsum(own) / len(own) if own else None


def _grouped(records: Iterable[Record], key: Callable[[Record], str]) -> dict[str, list[Record]]:
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return {name: groups[name] for name in sorted(groups)}


def _member(record: Record) -> str:
    return record["metadata"]["member"]


def _mission(record: Record) -> str:
    return record["metadata"]["mission"]


def _passed(records: Sequence[Record], k: int) -> float | None:
    """pass@k of one pairing: the mean over missions of the chance that one of ``k`` attempts is solved."""
    return _mean(
        pass_at_k(len(own), sum(record["success"] for record in own), k) for own in _grouped(records, _mission).values()
    )


def _pairing(records: Sequence[Record]) -> dict[str, Any]:
    first = [record for record in records if record["seed"] == 1]
    won, n = sum(record["success"] for record in first), len(first)
    return {
        "missions": n,
        # The leaderboard's definition: the first attempt alone.
        "pass_at_1": won / n if n else None,
        "pass_at_1_ci": list(wilson(won, n)) if n else None,
        "defuse_rate": _passed(records, 1),
        "pass_at_attempts": _passed(records, len({record["seed"] for record in records})),
        **_course(records),
    }


def _course(records: Sequence[Record]) -> dict[str, Any]:
    """How games went: means per game."""
    told = [record["metadata"] for record in records]
    solved = [metadata for metadata in told if metadata["outcome"] == "solved"]
    turns = sum(metadata[role]["turns"] for metadata in told for role in ROLES)
    errors = Counter()
    for metadata in told:
        for role in ROLES:
            errors.update(metadata[role]["errors"])
    return {
        "games": len(told),
        "outcomes": dict(sorted(Counter(metadata["outcome"] for metadata in told).items())),
        "strikes": _mean(metadata["strikes"] for metadata in told),
        "modules_solved_share": _mean(metadata["modules_solved"] / len(metadata["modules"]) for metadata in told),
        "seconds_left_solved": _mean(metadata["remaining_ms"] / 1000 for metadata in solved),
        "time_left_share_solved": _mean(metadata["remaining_ms"] / metadata["time_limit_ms"] for metadata in solved),
        **{
            f"{role}_{what}": _mean(metadata[role][what] for metadata in told)
            for role in ROLES
            for what in ("turns", "game_actions", "messages", "input_tokens", "output_tokens")
        },
        "errors_per_100_turns": {kind: 100 * errors[kind] / turns for kind in sorted(errors)} if turns else {},
    }


def summarise(records: Sequence[Record]) -> dict[str, Any]:
    """All figures of a row; nothing depends on the order of the records.

    Args:
        records: of :func:`rowproof.gptnt.evaluation.simulate`.

    Returns:
        ``attempts`` per mission and pairing; ``all`` games together; ``pairings`` by partner and ``modules`` by the
        types of modules on the bomb. Times are in seconds, turns, messages and tokens are means per game, what has no
        value is None. ``pass_at_1`` is the share of missions solved at the first attempt, with its Wilson interval;
        ``pass_at_attempts`` is pass@k for k = ``attempts``. Scripted players have no price, so there is no cost.
    """
    pairings = {name: _pairing(own) for name, own in _grouped(records, _member).items()}
    rates = ("pass_at_1", "defuse_rate", "pass_at_attempts")
    modules = _grouped(records, lambda record: "+".join(sorted(set(record["metadata"]["modules"]))))
    return {
        "attempts": len({record["seed"] for record in records}),
        "all": {**{name: _mean(own[name] for own in pairings.values()) for name in rates}, **_course(records)},
        "pairings": pairings,
        # Bombs of one module each; sets of modules that occur once say nothing.
        "modules": {
            name: {
                "games": len(own),
                "defuse_rate": _mean(record["success"] for record in own),
                "strikes": _mean(record["metadata"]["strikes"] for record in own),
                "defuser_turns": _mean(record["metadata"]["defuser"]["turns"] for record in own),
            }
            for name, own in modules.items()
        },
    }
