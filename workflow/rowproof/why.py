"""Why rows are stale: the changed item, the stage it enters, the rows it hits, what rebuilding will cost."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rowproof.layout import TIMING
from rowproof.recipes import Change, RowStatus, prepare

LEARNED_PREFIXES = ("training_seed", "selection_seed", "checkpoint_seed")


@dataclass(frozen=True)
class Cost:
    """Seconds that a rebuild will take on one core, from the seconds recorded when the bundle was made.

    ``seconds`` is None when nothing was recorded.
    """

    stages: tuple[str, ...]
    seconds: float | None


def rebuild_cost(status: RowStatus) -> Cost:
    """What must run again for one row, and how long that took last time."""
    if status.state == "current":
        return Cost((), 0.0)
    recorded = status.recorded
    every = stages = tuple(status.recipes)
    if recorded.recipes is None:
        pass
    elif status.state == "damaged":
        # What the hashes vouch for is taken over: only damaged trainings and damaged records come again.
        untrained = any(problem.startswith(LEARNED_PREFIXES) for problem in recorded.problems)
        lost = any(problem.startswith("episodes_seed") for problem in recorded.problems)
        untimed = any(problem.startswith(TIMING) for problem in recorded.problems)
        first = every[0] if untrained else "specs" if lost else "time" if untimed else "summary"
        stages = every[every.index(first) :]
    elif status.changes:
        stages = every[min(every.index(change.stage) for change in status.changes if change.stage in every) :]
    jobs = (recorded.provenance or {}).get("jobs")
    if jobs is None:
        return Cost(stages, None)
    return Cost(stages, round(sum(job["seconds"] for job in jobs if job["stage"] in stages), 3))


def source_file(change: Change, status: RowStatus) -> str:
    """The file in which a changed item is written."""
    if change.kind in ("code", "data"):
        return change.item
    if change.kind == "pin":
        return "requirements.lock"
    if change.item.startswith("setup.training."):
        return f"config/training/{status.recipes['train']['setup']['training']['training']}.yaml"
    board, _, _ = status.name.rpartition("/")
    if change.item.startswith(("setup.members", "setup.partner_set")):
        return f"config/partners/ (partner set of board {board})"
    if change.item in ("engine", "tier", "board", "row"):
        return f"config/boards/{board}.yaml"
    if change.item.startswith("setup.settings"):
        return f"config/ (settings of board {board})"
    return status.plan_path


def explain(root: Path, workdir: Path, rows: list[str]) -> list[dict[str, Any]]:
    """One entry per row that is not current (of ``rows``, or of all), as plain JSON data; then one per stale board.

    ``hits`` of a change lists every row of the project that the same change makes stale. Boards are what Snakemake
    would render again; of ``rows``, only their own.
    """
    found: dict[str, RowStatus] = {}
    launch = prepare(root, workdir, touch=False, statuses=found)
    statuses = list(found.values())
    hits: dict[tuple[str, str], list[str]] = {}
    for status in statuses:
        for change in status.changes:
            hits.setdefault((change.kind, change.item), []).append(status.name)
    report = []
    for status in statuses:
        if status.state == "current" or (rows and status.name not in rows):
            continue
        cost = rebuild_cost(status)
        report.append(
            {
                "row": status.name,
                "state": status.state,
                "reasons": status.reasons,
                "changes": [
                    {
                        "kind": change.kind,
                        "item": change.item,
                        "file": source_file(change, status),
                        "stage": change.stage,
                        "before": change.before,
                        "after": change.after,
                        "hits": hits[change.kind, change.item],
                    }
                    for change in status.changes
                ],
                "rebuild_stages": list(cost.stages),
                "estimated_seconds": cost.seconds,
            }
        )
    for board in launch.boards:
        if board.reason and (not rows or any(f"{board.board}/{row}" in rows for row in board.rows)):
            report.append({"board": board.board, "state": board.state, "reasons": [board.reason]})
    return report


def equivalents(root: Path, workdir: Path, rows: list[str]) -> list[dict[str, Any]]:
    """Current rows (of ``rows``, or of all) whose recorded code is connected with that at hand by attestations."""
    found: dict[str, RowStatus] = {}
    prepare(root, workdir, touch=False, statuses=found)
    return [
        {"row": status.name, "chains": {stage: list(chain) for stage, chain in status.bridges.items()}}
        for status in found.values()
        if status.bridges and status.state == "current" and (not rows or status.name in rows)
    ]


def render(report: list[dict[str, Any]]) -> str:
    """The report as text."""
    lines = []
    for entry in report:
        if "board" in entry:
            lines.append(f"board {entry['board']} is {entry['state']}: {entry['reasons'][0]}")
            continue
        seconds = entry["estimated_seconds"]
        cost = "no recorded time" if seconds is None else f"about {seconds:.1f} s on one core"
        lines.append(f"{entry['row']} is {entry['state']}; runs again: {', '.join(entry['rebuild_stages'])} ({cost})")
        if entry["changes"]:
            for change in entry["changes"]:
                if change["kind"] in ("code", "data"):
                    lines.append(f"  {change['stage']}: {change['kind']} {change['file']}")
                else:
                    lines.append(
                        f"  {change['stage']}: {change['kind']} {change['item']} in {change['file']}: "
                        f"{change['before']!r} -> {change['after']!r}"
                    )
                lines.append(f"    makes stale: {', '.join(change['hits'])}")
        else:
            lines += [f"  {reason}" for reason in entry["reasons"]]
    return "\n".join(lines)
