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


def rebuild_cost(status: RowStatus, measured: bool = False) -> Cost:
    """What must run again for one row, and how long that took last time.

    ``measured`` tells that another row of the board holds what a clock showed of this one.
    """
    if status.state == "current":
        return Cost((), 0.0)
    recorded = status.recorded
    every = stages = tuple(status.recipes)
    if recorded.recipes is None:
        pass
    elif status.state == "damaged" and recorded.provenance is not None and not recorded.provenance["dirty"]:
        stages = _damaged_stages(every, recorded.problems, measured)
    elif status.changes:
        stages = every[min(every.index(change.stage) for change in status.changes if change.stage in every) :]
    jobs = (recorded.provenance or {}).get("jobs")
    if jobs is None:
        return Cost(stages, None)
    return Cost(stages, round(sum(job["seconds"] for job in jobs if job["stage"] in stages), 3))


def _damaged_stages(every: tuple[str, ...], problems: list[str], measured: bool) -> tuple[str, ...]:
    """The stages that make again what is damaged; whatever the hashes vouch for is taken over."""

    def damaged(*prefixes: str) -> bool:
        return any(problem.startswith(prefixes) for problem in problems)

    needed = {"bundle"}
    if damaged(*LEARNED_PREFIXES):
        # Another training may give another checkpoint, which plays other episodes.
        needed |= {"train", "select", "simulate"}
    if damaged("episodes_seed"):
        needed.add("simulate")
    if damaged(TIMING) and not measured:
        needed.add("time")
    if damaged("bundle.json") or "simulate" in needed:
        needed.add("summary")
    return tuple(stage for stage in every if stage in needed)


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
    would render again; of ``rows``, only those whose rows are all among them.
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
        board = status.name.rpartition("/")[0]
        cost = rebuild_cost(status, any(s.state == "current" and s.name.rpartition("/")[0] == board for s in statuses))
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
        if board.reason and (not rows or all(f"{board.board}/{row}" in rows for row in board.rows)):
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
