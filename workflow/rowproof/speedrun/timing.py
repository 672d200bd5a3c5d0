"""Times of a campaign's rows: all candidates that meet the target, and the baseline, in randomised blocks."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rowproof.errors import RowproofError
from rowproof.speedrun.evaluation import planned_entry, platform_class, prepare_referee, read_cell
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.platforms import measure_machine
from rowproof.speedrun.referee.runs import time_blocks
from rowproof.speedrun.referee.sandbox import last_core
from rowproof.speedrun.verdicts import FIRST_CAMPAIGN, TWICE, floor_of, judge


def measure(
    setup: Mapping[str, Any], records: Mapping[str, Sequence[Mapping[str, Any]]], report: Callable[[str], Any]
) -> dict[str, Any]:
    """Time the rows of a campaign in turns: the content of ``timing.json``.

    Args:
        setup: plain data with ``policies`` (the candidate of each row, baseline and the one that runs twice among
            them), ``seeds``, ``cell`` and ``campaign`` (from 1, which it is when missing).
        records: of each row, by its name.
        report: takes a line of progress.

    Raises:
        ConfigError: scripts or corpus are not those of the plan.
        RowproofError: the baseline or the candidate that runs twice missed the target, or a run did not end as its
            verification run did; nothing can be said of any row then.
        SandboxError: the sandbox itself failed.
    """
    cell = read_cell(setup)
    earning = {setup["policies"][row] for row, own in records.items() if judge(own)[0].earns_reward}
    for name in (cell.baseline, cell.twice):
        if name not in earning:
            raise RowproofError(f"{name} must meet the target before anything is timed against it, found it does not")
    # Those that the plan does not have come last, and are refused.
    names = [*(name for name in cell.candidates if name in earning), *sorted(earning - set(cell.candidates))]
    scripts = {name: planned_entry(name, cell).script for name in names}
    verified = {
        (setup["policies"][row], record["seed"]): record["metadata"]["weights_sha256"]
        for row, own in records.items()
        for record in own
    }
    verified |= {(TWICE, seed): verified[cell.twice, seed] for seed in setup["seeds"]}
    referee = prepare_referee(cell, last_core())
    machine = measure_machine()
    timing = time_blocks(
        referee,
        {**scripts, TWICE: scripts[cell.twice]},
        cell.baseline,
        cell.n_blocks,
        cell.order_seed,
        setup["seeds"],
        verified,
        lambda run: report(_line(run)),
    )
    if timing["outcome"] != Outcome.OK:
        raise RowproofError(
            f"every timed run must end as its verification run did, found {timing['outcome']} of "
            f"{timing['failed_arm']}: {timing['runs'][-1]['detail']}"
        )
    timing |= {
        "campaign": setup.get("campaign", FIRST_CAMPAIGN),
        "twice": cell.twice,
        "peak_gflops": round(machine.peak_gflops_per_s, 1),
        "platform": platform_class(),
        "machine": machine.machine,
        "date": machine.date,
    }
    return {**timing, "aa_floor": floor_of(timing)}


def _line(run: Mapping[str, Any]) -> str:
    where = f"block {run['pair']}" if run["pair"] >= 0 else "warm-up"
    return f"{where}: {run['arm']}: {run['outcome']}, {run['t_wall_s']:.1f} s, {run['cpu_s']:.1f} CPU s"
