"""What games come to: rates, their intervals, and means over missions, from plain rows of sessions.

A run is the row of a session with its totals by role (:func:`rowproof.gptnt.database.runs`). Missions weigh alike.
Runs are compared within one suite revision and one setup of each player alone.
"""

import json
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rowproof.gptnt.database import connect
from rowproof.gptnt.database import runs as read_runs
from rowproof.gptnt.players.turns import DEFUSER, EXPERT
from rowproof.gptnt.rates import pass_at_k
from rowproof.gptnt.rates import wilson as wilson_interval
from rowproof.gptnt.recordings import ACTION_COUNTS, is_valid
from rowproof.gptnt.room import VALID_OUTCOMES, Record
from rowproof.llm.calls import Usage
from rowproof.llm.cost import Prices, cost
from rowproof.seeding import substream

RESAMPLES = 10_000
SEED = 0
# Intervals over fewer missions are flagged.
FEW_MISSIONS = 10

Run = Record


# ---- estimates -------------------------------------------------------------------------------------------------


class Estimate(NamedTuple):
    """A number with its two-sided interval of 95 %.

    Attributes:
        value: None if there is nothing to take it of.
        low: lower bound.
        high: upper bound.
        method: of the interval: ``wilson`` or ``bootstrap over missions``; empty if there is no value.
        n: number of missions.
        seed: of the bootstrap; None for other methods.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    method: str = ""
    n: int = 0
    seed: int | None = None

    @property
    def data(self) -> Record:
        """As plain data, with a flag for intervals over few missions."""
        return self._asdict() | {"few_missions": self.n < FEW_MISSIONS}


def wilson(successes: int, n: int) -> Estimate:
    """A rate over independent missions with its Wilson interval; see :func:`rowproof.gptnt.rates.wilson`."""
    if n == 0 and successes == 0:
        return Estimate(None)
    return Estimate(successes / max(n, 1), *wilson_interval(successes, n), "wilson", n)


def bootstrap(pairs: Sequence[tuple[float, float]], label: str, seed: int = SEED) -> Estimate:
    """The ratio of two sums over missions with a percentile interval (Efron 1979, Ann. Stat. 7).

    Whole missions are drawn, so that attempts of one stay together. For a mean over missions all weights are 1.

    Args:
        pairs: per mission its share of the numerator and of the denominator; the latter is positive.
        label: name of the random stream.
        seed: its root.
    """
    if not pairs:
        return Estimate(None)
    values = np.asarray(pairs, dtype=float)
    value = float(values[:, 0].sum() / values[:, 1].sum())
    drawn = values[substream(f"gptnt/results/{label}", seed).integers(0, len(values), (RESAMPLES, len(values)))]
    ratios = drawn[:, :, 0].sum(axis=1) / drawn[:, :, 1].sum(axis=1)
    low, high = (float(bound) for bound in np.percentile(ratios, (2.5, 97.5)))
    return Estimate(value, low, high, "bootstrap over missions", len(values), seed)


def shares(counts: Mapping[str, int]) -> dict[str, float]:
    """Each count as a share of their sum; they sum to 1, or are 0 where there is nothing to share."""
    total = sum(counts.values())
    return {key: count / total if total else 0.0 for key, count in counts.items()}


# ---- runs that count -------------------------------------------------------------------------------------------


def counts(run: Run) -> bool:
    """Whether a run is valid."""
    return is_valid(run["outcome"], run["is_hard_crash"])


class Group(NamedTuple):
    """What makes runs comparable: one suite revision and one setup of each player.

    Attributes:
        suite: name of the suite.
        revision: of the suite.
        defuser_fingerprint: of the defuser's capabilities.
        expert_fingerprint: of the expert's; empty without one.
        defuser: name of the defuser.
        expert: name of the expert; empty without one.
    """

    suite: str
    revision: int
    defuser_fingerprint: str
    expert_fingerprint: str
    defuser: str
    expert: str


def group_of(run: Run) -> Group:
    """The group of a run."""
    return Group(
        run["suite_name"],
        run["suite_revision"],
        run["defuser_capability_fingerprint"],
        run["expert_capability_fingerprint"],
        run["defuser_name"],
        run["expert_name"] or "",
    )


def select(runs: Iterable[Run]) -> list[Run]:
    """The runs that count, by group, mission and attempt: of each attempt the newest valid session alone."""
    newest: dict[tuple[Group, str, int], Run] = {}
    for run in sorted(runs, key=lambda run: (run["experiment_descriptor"]["start_time"], run["session_id"])):
        if counts(run):
            newest[group_of(run), run["mission_key"], run["attempt"]] = run
    return [newest[key] for key in sorted(newest)]


def _by_mission(runs: Iterable[Run]) -> dict[str, list[Run]]:
    missions: dict[str, list[Run]] = {}
    for run in runs:
        missions.setdefault(run["mission_key"], []).append(run)
    return dict(sorted(missions.items()))


def _solved(runs: Iterable[Run]) -> int:
    return sum(run["outcome"] == "solved" for run in runs)


def defuse_rate(runs: Iterable[Run], label: str, seed: int = SEED) -> Estimate:
    """Mean over missions of the share of solved attempts; also the estimated pass@1. ``runs`` are selected ones."""
    tries = [(_solved(one), len(one)) for one in _by_mission(runs).values()]
    if all(n == 1 for _, n in tries):
        return wilson(sum(c for c, _ in tries), len(tries))
    return bootstrap([(c / n, 1) for c, n in tries], f"{label}/defuse_rate", seed)


def first_attempt_rate(runs: Iterable[Run]) -> Estimate:
    """The leaderboard's pass@1: share of missions that attempt 1 solved. ``runs`` are selected ones."""
    first = [run for run in runs if run["attempt"] == 1]
    return wilson(_solved(first), len(first))


def pass_rates(runs: Iterable[Run], label: str, seed: int = SEED) -> dict[int, Record]:
    """pass@k for each k from 2 to the most attempts of a mission. ``runs`` are selected ones.

    There is no value where a mission has fewer than k attempts; ``short`` says how many have.
    """
    tries = [(len(one), _solved(one)) for one in _by_mission(runs).values()]
    rates: dict[int, Record] = {}
    for k in range(2, max((n for n, _ in tries), default=0) + 1):
        short = sum(n < k for n, _ in tries)
        values = [] if short else [(pass_at_k(n, c, k), 1) for n, c in tries]
        rates[k] = bootstrap(values, f"{label}/pass@{k}", seed).data | {"short": short}
    return rates


def _mean(runs: Iterable[Run], value: Callable[[Run], float], label: str, seed: int, per_run: bool = False) -> Estimate:
    """Mean over missions of the mean of a mission's runs, or mean over all runs."""
    pairs = []
    for one in _by_mission(runs).values():
        total = sum(map(value, one))
        pairs.append((total, len(one)) if per_run else (total / len(one), 1))
    return bootstrap(pairs, label, seed)


# ---- one group -------------------------------------------------------------------------------------------------


def run_cost(run: Run, prices: Mapping[str, Prices]) -> dict[str, float] | None:
    """Cost of a run by role, each at the prices of its own player, look back included; None if one is not known."""
    names = {DEFUSER: run["defuser_name"], EXPERT: run["expert_name"]}
    costs = {}
    for role, total in run["totals"].items():
        parts = (total, total["reflection"])
        tokens = [sum(part[f"{key}_tokens"] for part in parts) for key in ("input", "output", "cache_read")]
        found = cost(Usage(*tokens), prices.get(names[role]))
        if found is None:
            return None
        costs[role] = found
    return costs


def _per_role(runs: Sequence[Run], role: str) -> Record | None:
    totals = [run["totals"][role] for run in runs if role in run["totals"]]
    if not totals:
        return None
    turns = sum(total["turns"] for total in totals)
    errors: Counter[str] = Counter()
    for total in totals:
        errors.update(total["errors"])
    solved = [run["totals"][role] for run in runs if role in run["totals"] and run["outcome"] == "solved"]
    mean = {
        f"{key}_per_run": statistics.fmean(total[key] for total in totals)
        for key in ("turns", *ACTION_COUNTS.values(), "input_tokens", "output_tokens")
    }
    return mean | {
        "input_tokens_per_solved_run": statistics.fmean(t["input_tokens"] for t in solved) if solved else None,
        "output_tokens_per_solved_run": statistics.fmean(t["output_tokens"] for t in solved) if solved else None,
        "action_shares": shares({key: sum(total[key] for total in totals) for key in ACTION_COUNTS.values()}),
        "errors_per_100_turns": {kind: 100 * n / turns for kind, n in sorted(errors.items())} if turns else {},
        "lost_turn_share": sum(total["lost_turns"] for total in totals) / turns if turns else None,
    }


def _invalid_kind(run: Run) -> str:
    return "crashed" if run["is_hard_crash"] else run["outcome"]


def group_metrics(
    group: Group,
    runs: Iterable[Run],
    missions: Sequence[str] | None = None,
    prices: Mapping[str, Prices] | None = None,
    seed: int = SEED,
) -> Record:
    """All metrics of a group as plain data; a mean is over missions unless its key says otherwise.

    Args:
        group: the group.
        runs: all of its sessions, invalid ones too.
        missions: keys of the frozen suite's missions; None if the suite is not known.
        prices: by player name, all in one currency.
        seed: of the bootstrap.
    """
    runs = list(runs)
    valid = select(runs)
    solved = [run for run in valid if run["outcome"] == "solved"]
    played = sorted({run["mission_key"] for run in valid})
    label = "/".join(map(str, group))
    missing = None if missions is None else sorted(set(missions) - set(played))
    outcomes = {name: sum(run["outcome"] == name for run in valid) for name in VALID_OUTCOMES}
    costs = [run_cost(run, prices or {}) for run in valid]
    single = all(len(run["modules"]) == 1 for run in valid)
    modules = sorted({run["modules"][0] for run in valid}) if single else []

    def mean(name: str, value: Callable[[Run], float], over: Sequence[Run] = valid, per_run: bool = False) -> Record:
        return _mean(over, value, f"{label}/{name}", seed, per_run).data

    return {
        **group._asdict(),
        "runs": len(valid),
        "coverage": {
            "missions_played": len(played),
            "missions": None if missions is None else len(set(missions)),
            "share": len(set(missions) & set(played)) / len(set(missions)) if missions else None,
            "missing": missing,
            "unknown": None if missions is None else sorted(set(played) - set(missions)),
        },
        "invalid": dict(sorted(Counter(_invalid_kind(run) for run in runs if not counts(run)).items())),
        "outcome_shares": shares(outcomes),
        "defuse_rate": defuse_rate(valid, label, seed).data,
        "pass@1": first_attempt_rate(valid).data,
        "pass@k": pass_rates(valid, label, seed),
        "strikes": mean("strikes", lambda run: run["strike_count"]),
        "strikes_median_per_run": statistics.median(run["strike_count"] for run in valid) if valid else None,
        "seconds_remaining_per_solved_run": mean("seconds", lambda r: r["seconds_remaining"], solved, True),
        "time_left_share_per_solved_run": mean(
            "time", lambda r: r["seconds_remaining"] / r["time_limit"], solved, True
        ),
        "modules_solved_share": mean("modules", lambda run: run["num_modules_solved"] / run["n_modules"]),
        "modules_solved": mean("module count", lambda run: run["num_modules_solved"]),
        "rounds": mean("rounds", lambda run: run["n_rounds"]),
        "roles": {role: _per_role(valid, role) for role in (DEFUSER, EXPERT)},
        "cost_per_run": statistics.fmean(sum(one.values()) for one in costs) if costs and None not in costs else None,
        "modules": {
            module: defuse_rate([r for r in valid if r["modules"] == [module]], f"{label}/{module}", seed).data
            for module in modules
        },
    }


def compare(first: Iterable[Run], second: Iterable[Run], label: str, seed: int = SEED) -> Estimate:
    """Difference of two defuse rates, first minus second, over the missions that both played.

    Missions are drawn in pairs, so that what is hard for both does not widen the interval. ``runs`` are selected ones.
    """
    rates = [
        {key: _solved(one) / len(one) for key, one in _by_mission(runs).items()} for runs in (list(first), list(second))
    ]
    common = sorted(rates[0].keys() & rates[1].keys())
    return bootstrap([(rates[0][key] - rates[1][key], 1) for key in common], f"{label}/difference", seed)


# ---- all groups ------------------------------------------------------------------------------------------------


def results(
    runs: Iterable[Run],
    missions: Mapping[tuple[str, int], Sequence[str]],
    prices: Mapping[str, Prices] | None = None,
    seed: int = SEED,
) -> Record:
    """What ``results`` shows, as plain data: valid runs, invalid ones, metrics by group, and rates by pairing.

    Args:
        runs: of any suites.
        missions: keys of the missions of frozen suites, by name and revision.
        prices: by player name, all in one currency.
        seed: of the bootstrap.
    """
    groups: dict[Group, list[Run]] = {}
    for run in runs:
        groups.setdefault(group_of(run), []).append(run)
    valid = [run for one in groups.values() for run in select(one)]
    valid.sort(
        key=lambda run: (run["mission_key"], run["defuser_name"], run["communication_style"], run["attempt_name"])
    )
    invalid = [run for one in groups.values() for run in one if not counts(run)]
    metrics = [
        group_metrics(group, one, missions.get((group.suite, group.revision)), prices, seed)
        for group, one in sorted(groups.items())
    ]
    return {
        "runs": [_line(run) for run in valid],
        "invalid": sorted(
            (
                {"attempt_name": r["attempt_name"], "session_id": r["session_id"], "why": _invalid_kind(r)}
                for r in invalid
            ),
            key=lambda one: (one["attempt_name"], one["session_id"]),
        ),
        "groups": metrics,
        "pairings": pairing_rates(metrics),
    }


def pairing_rates(metrics: Iterable[Record]) -> list[Record]:
    """Defuse rates by suite, defuser and expert, from the metrics of groups."""
    keys = ("suite", "revision", "defuser", "expert", "defuser_fingerprint", "expert_fingerprint")
    return [{key: one[key] for key in keys} | {"defuse_rate": one["defuse_rate"]["value"]} for one in metrics]


def _line(run: Run) -> Record:
    return {
        "outcome": run["outcome"],
        "defuser": run["defuser_name"],
        "expert": run["expert_name"] or "solo",
        "comm": run["communication_style"],
        "mission": run["mission_key"],
        "suite": run["suite_name"],
        "revision": run["suite_revision"],
        "attempt": run["attempt"],
        "session_id": run["session_id"],
    }


def render(found: Record) -> str:
    """:func:`results` as text for a terminal."""
    if not found["runs"] and not found["invalid"]:
        return "no games yet: play some and run rowproof build-db"
    columns = ("outcome", "defuser", "expert", "comm", "mission")
    runs = [[str(number), *(run[key] for key in columns)] for number, run in enumerate(found["runs"], start=1)]
    lines = _columns([["#", *columns], *runs])
    lines.append(f"invalid sessions: {len(found['invalid'])}")
    lines += [f"  {one['why']}: {one['attempt_name']}" for one in found["invalid"]]
    for one in found["groups"]:
        lines += ["", f"{one['suite']} revision {one['revision']}: {one['defuser']} with {one['expert'] or 'nobody'}"]
        lines += _columns(_metric_rows(one))
    return "\n".join(lines)


def _metric_rows(one: Record) -> list[list[str]]:
    coverage = one["coverage"]
    known = "unknown suite" if coverage["missions"] is None else f"of {coverage['missions']} missions"
    named = {
        "defuse rate": one["defuse_rate"],
        "pass@1 (attempt 1)": one["pass@1"],
        **{f"pass@{k}": rate for k, rate in one["pass@k"].items()},
        "strikes": one["strikes"],
        "seconds left, solved runs": one["seconds_remaining_per_solved_run"],
        "time left, solved runs": one["time_left_share_per_solved_run"],
        "modules solved, share": one["modules_solved_share"],
        "rounds": one["rounds"],
        **{f"defuse rate of {module}": rate for module, rate in one["modules"].items()},
    }
    rows = [["coverage", f"{coverage['missions_played']} {known}", "", ""]]
    for key in ("missing", "unknown"):
        if coverage[key]:
            rows.append([f"{key} missions", ", ".join(coverage[key]), "", ""])
    rows.append(["outcomes", ", ".join(f"{key} {share:.3f}" for key, share in one["outcome_shares"].items()), "", ""])
    for name, estimate in named.items():
        rows.append([name, *_estimate_cells(estimate)])
    for role, means in one["roles"].items():
        if means is not None:
            text = ", ".join(
                f"{key.removesuffix('_per_run')} {value:.1f}"
                for key, value in means.items()
                if key.endswith("_per_run") and value is not None
            )
            rows.append([f"{role}, per run", text, "", ""])
    if one["cost_per_run"] is not None:
        rows.append(["cost per run", f"{one['cost_per_run']:.4f}", "", ""])
    return rows


def _estimate_cells(estimate: Record) -> list[str]:
    if estimate["value"] is None:
        short = estimate.get("short")
        return ["n/a", f"{short} missions have fewer attempts" if short else "", ""]
    seed = "" if estimate["seed"] is None else f", seed {estimate['seed']}"
    few = ", few missions" if estimate["few_missions"] else ""
    interval = f"{estimate['low']:.3f} to {estimate['high']:.3f}"
    return [f"{estimate['value']:.3f}", interval, f"{estimate['method']}, N = {estimate['n']}{seed}{few}"]


def _columns(rows: list[list[Any]]) -> list[str]:
    # A cell that spans the rest of its row must not widen its column.
    fixed = [row for row in rows if any(row[2:])]
    widths = [max((len(row[i]) for row in (rows if i == 0 else fixed)), default=0) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def run(
    database: Path,
    missions: Mapping[tuple[str, int], Sequence[str]],
    prices: Mapping[str, Prices] | None = None,
    as_json: bool = False,
    show: Callable[[str], object] = print,
) -> int:
    """Show the results of a database; see :func:`results`.

    Raises:
        ConfigError: there is no database, or it is none of this version.
        RecordError: a blob in it is damaged.
    """
    with connect(database) as connection:
        found = results(read_runs(connection), missions, prices)
    show(json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False) if as_json else render(found))
    return 0
