"""What a timed run notes about the machine around it."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

SUSPEND_S = 0.05
"""Clocks that differ by more since the start of a run tell that the machine slept."""


@dataclass(frozen=True)
class Reading:
    """The state of the machine at one moment.

    Attributes:
        load: running or waiting tasks, mean of the last minute.
        steal_ticks: clock ticks that other guests of the host took from the core so far.
        total_ticks: all ticks of the core so far.
        asleep_s: seconds that the machine has slept so far.
        core_mhz: clock rate of the core, ``None`` where the system does not tell.
    """

    load: float
    steal_ticks: int
    total_ticks: int
    asleep_s: float
    core_mhz: float | None


def read_machine(core: int) -> Reading:
    """The state of the machine now, that of ``core`` where it matters."""
    ticks = _ticks(core)
    asleep_s = time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)
    return Reading(os.getloadavg()[0], ticks[7], sum(ticks), asleep_s, _core_mhz(core))


def _ticks(core: int) -> list[int]:
    """What a core did so far: user, nice, system, idle, iowait, irq, softirq, steal; guests are part of user."""
    for line in Path("/proc/stat").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"cpu{core} "):
            return [int(field) for field in line.split()[1:9]]
    return [0] * 8


def _core_mhz(core: int) -> float | None:
    rates = [
        float(line.partition(":")[2])
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        if line.startswith("cpu MHz")
    ]
    return rates[core] if core < len(rates) else None


def steal_share(before: Reading, after: Reading) -> float:
    """Share of the time between two readings that other guests of the host took, 0 to 1."""
    total = after.total_ticks - before.total_ticks
    return (after.steal_ticks - before.steal_ticks) / total if total > 0 else 0.0


def slept(before: Reading, after: Reading) -> bool:
    """Whether the machine was suspended between two readings."""
    return after.asleep_s - before.asleep_s > SUSPEND_S


def idlest_core(watched_s: float = 0.3) -> int:
    """The core, of those that this process may use, that did least during the time watched; the first among equals."""
    cores = sorted(os.sched_getaffinity(0))
    before = {core: _ticks(core) for core in cores}
    time.sleep(watched_s)
    after = {core: _ticks(core) for core in cores}
    # The fourth and fifth field count what a core did not use: idle, and waiting for a disk.
    return max(cores, key=lambda core: sum(after[core][3:5]) - sum(before[core][3:5]))
