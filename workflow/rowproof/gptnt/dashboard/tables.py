"""The tables of the overview: the metrics of every group of comparable games, as rows that can be sorted."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rowproof.gptnt.metrics import Group, Run, group_metrics, group_of, select
from rowproof.gptnt.players.turns import DEFUSER, EXPERT

Row = dict[str, Any]
# Keys of the missions of frozen suites, by name and revision.
Missions = Mapping[tuple[str, int], Sequence[str]]

# Metrics of :func:`rowproof.gptnt.metrics.group_metrics` that carry an interval, and what they are called here.
_ESTIMATES = {
    "defuse_rate": "defuse_rate",
    "pass@1": "pass@1",
    "modules_solved_share": "modules_solved_share",
    "strikes": "strikes",
    "seconds_remaining_per_solved_run": "seconds_left",
    "time_left_share_per_solved_run": "time_left_share",
    "rounds": "rounds",
}


def read_tables(runs: Iterable[Run], missions: Missions) -> dict[str, list[Row]]:
    """Rows of ``pairings``, ``modules`` and ``errors``.

    Args:
        runs: of :func:`rowproof.gptnt.database.runs`.
        missions: of the suites whose coverage is to be told.
    """
    groups: dict[Group, list[Run]] = {}
    for run in runs:
        groups.setdefault(group_of(run), []).append(run)
    tables: dict[str, list[Row]] = {"pairings": [], "modules": [], "errors": []}
    for group, own in sorted(groups.items()):
        metrics = group_metrics(group, own, missions.get((group.suite, group.revision)))
        head = _head(group, own)
        tables["pairings"].append(head | _pairing(metrics))
        for module, rate in metrics["modules"].items():
            tables["modules"].append(head | {"modules": [module], "module": module, "defuse_rate": rate})
        tables["errors"] += [head | row for row in _errors(metrics, select(own))]
    return tables


def _head(group: Group, runs: Sequence[Run]) -> Row:
    """What filters ask for, and what tells groups apart."""
    setups = [group.defuser_fingerprint[:6], group.expert_fingerprint[:6]]
    return {
        "suite": group.suite,
        "revision": group.revision,
        "defuser": group.defuser,
        "expert": group.expert or None,
        "style": ", ".join(sorted({run["communication_style"] for run in runs})),
        "modules": sorted({module for run in runs for module in run["modules"]}),
        "setup": " + ".join(filter(None, setups)),
    }


def _pairing(metrics: Mapping[str, Any]) -> Row:
    coverage = metrics["coverage"]
    row = {
        "runs": metrics["runs"],
        "invalid": sum(metrics["invalid"].values()),
        "missions_played": coverage["missions_played"],
        "missions": coverage["missions"],
        **{name: metrics[key] for key, name in _ESTIMATES.items()},
        **{f"pass@{k}": rate for k, rate in metrics["pass@k"].items()},
    }
    for role in (DEFUSER, EXPERT):
        means = metrics["roles"][role] or {}
        for name in ("turns_per_run", "input_tokens_per_run", "output_tokens_per_run", "lost_turn_share"):
            row[f"{role}_{name}"] = means.get(name)
    return row


def _errors(metrics: Mapping[str, Any], valid: Sequence[Run]) -> list[Row]:
    rows = []
    for role, means in metrics["roles"].items():
        totals = [run["totals"][role] for run in valid if role in run["totals"]]
        counts: Counter[str] = Counter()
        for total in totals:
            counts.update(total["errors"])
        turns = sum(total["turns"] for total in totals)
        for kind, rate in (means or {"errors_per_100_turns": {}})["errors_per_100_turns"].items():
            rows.append({"role": role, "kind": kind, "errors": counts[kind], "turns": turns, "per_100_turns": rate})
    return rows
