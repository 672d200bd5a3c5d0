"""What a row says of the machine: the class that its results repeat on, and the one that its times belong to."""

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from rowproof.errors import RowproofError

# One thread, as in the runs; apart from this process, whose libraries have started already.
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_PROBE = """
import json, torch
from rowproof.speedrun.referee.cost import peak_gflops
print(json.dumps([torch.__version__, torch.backends.cpu.get_cpu_capability(), peak_gflops()]))
"""
_PROBE_LIMIT_S = 300


class Machine(NamedTuple):
    """The machine of one job.

    Attributes:
        platform_class: versions and kernels that decide the bits of a run.
        machine: core count, CPU model, GPU model and major version of the kernel; no name of the machine.
        peak_gflops_per_s: operations per CPU second of one core in float32 matrix products, in units of 1e9.
        date: day of the job, UTC.
    """

    platform_class: dict[str, Any]
    machine: dict[str, Any]
    peak_gflops_per_s: float
    date: str


def measure_machine(threads: int = 1) -> Machine:
    """Look at this machine and measure its peak, which takes some seconds; once per job.

    Raises:
        RowproofError: PyTorch cannot be loaded.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE],
            env=os.environ | _ONE_THREAD,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RowproofError(f"torch must load within {_PROBE_LIMIT_S} s, found it still loading: try again") from None
    if done.returncode != 0:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise RowproofError(f"torch must load on this machine, found: {last}")
    torch_version, capability, peak = json.loads(done.stdout)
    platform_class = {
        "torch": torch_version,
        "architecture": platform.machine(),
        "cpu_capability": capability,
        "threads": threads,
    }
    machine = {
        "cores": os.cpu_count(),
        "cpu": _cpu_model(),
        "gpu": None,
        "kernel_major": int(platform.release().partition(".")[0]),
    }
    return Machine(platform_class, machine, round(peak, 3), datetime.now(UTC).strftime("%Y-%m-%d"))


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
