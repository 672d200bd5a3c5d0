"""CPU and wall seconds of verifying all results, and of the default spot check of one row of a slow engine.

Run: .venv/bin/python benchmarks/verify_speed.py

Wall seconds mean something on an idle machine alone; CPU seconds are those of the whole tree of processes.
"""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ALL = ("results",)
SPOT = ("--spot", "--beacon", "benchmark", "results/cocarry-v1/b-aht")
WALL_TARGET_S = 60.0
"""Of all results, on two cores."""
SPOT_TARGET_CPU_S = 60.0
NO_VERDICT = 2
"""From this exit code on, something was not verified to its end."""


def seconds_of(*arguments: str) -> tuple[float, float, int]:
    """CPU seconds, wall seconds and exit code of ``rowproof verify`` with these arguments."""
    before, start_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, "-m", "rowproof", "verify", "--quiet", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "workflow")}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=False)
    after, wall_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - start_s
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu_s, wall_s, done.returncode


def main() -> int:
    """Print a table; whether both targets are met is the exit code."""
    print("| what | CPU s | wall s | exit code |\n|---|---|---|---|")
    met = True
    for what, arguments in {
        "all results, one process": ("--cores", "1", *ALL),
        "all results, two processes": ("--cores", "2", *ALL),
        "default spot check of cocarry-v1/b-aht": SPOT,
    }.items():
        cpu_s, wall_s, code = seconds_of(*arguments)
        print(f"| {what} | {cpu_s:.1f} | {wall_s:.1f} | {code} |", flush=True)
        met &= code < NO_VERDICT
        met &= cpu_s <= SPOT_TARGET_CPU_S if arguments == SPOT else "2" not in arguments or wall_s <= WALL_TARGET_S
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
