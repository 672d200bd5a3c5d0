"""What 10,000 and 100,000 shards cost: planning them, and starting the process of one job among them.

Run: .venv/bin/python benchmarks/scale.py [shards ...]

The projects are temporary copies of this one with generated boards of ten rows and a hundred seeds, none of them built.
Planning is one ``snakemake -n``; a hundred thousand shards take minutes. A job is started as the SLURM executor starts
it on a node, and split by running less of it: the interpreter, the import of snakemake, the Snakefile read as a job
reads it, and all of it with the script. Times are CPU seconds, which a loaded machine blurs less than the clock.
"""

import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from planning import ROOT, commit, copy_project, dry_run, generate
from rowproof.jobs import LAUNCH_VARIABLE
from rowproof.recipes import prepare, write_launch

ROWS, SEEDS = 10, 100
REPEATS = 7


def cpu_s(command: list[str], root: Path, environment: Mapping[str, str]) -> tuple[float, float]:
    """CPU seconds and peak MB of a command with its children."""
    with tempfile.TemporaryFile() as output:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = subprocess.Popen(command, cwd=root, env=environment, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if process.returncode != 0:
            output.seek(0)
            raise SystemExit(f"{command} must succeed, found:\n{output.read().decode()[-3000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, usage.ru_maxrss / 1024


def job_commands(row, shard: str) -> dict[str, list[str]]:
    """Commands that do ever more of what a node does for one shard."""
    key = Path(row.product("simulate", "x")).parent.name.removeprefix("simulate-")
    target = f"simulate:board={row.board},row={row.row},key={key},shard={shard}"
    snakemake = [sys.executable, "-m", "snakemake"]
    job = ["--mode", "remote", "--allowed-rules", "simulate"]
    run = ["--target-jobs", target, "--cores", "all", "--force", "--force-use-threads", "--nolock", "--no-hooks"]
    run += ["--target-files-omit-workdir-adjustment", "--max-inventory-time", "0", "--executor", "local"]
    return {
        "interpreter": [sys.executable, "-c", ""],
        "import snakemake": [sys.executable, "-c", "import snakemake.cli"],
        "read Snakefile": [*snakemake, "--list-rules", *job],
        "whole job": [*snakemake, *run, *job],
    }


def measure_job(root: Path) -> None:
    """Print the medians for one shard of the first row."""
    row = prepare(root, root).rows[0]
    (specs,) = row.products("specs")
    variables = {k: v for k, v in os.environ.items() if not re.match("SLURM_|ROWPROOF_|PYTHON", k)}
    subprocess.run(
        [sys.executable, "-m", "snakemake", specs, "--cores", "1"],
        cwd=root,
        env=variables,
        check=True,
        capture_output=True,
    )
    launch = prepare(root, root)
    path = write_launch(launch, root)
    variables[LAUNCH_VARIABLE] = str(path)
    print(f"  launch file: {path.stat().st_size / 1024:.0f} KiB")
    commands = job_commands(launch.rows[0], "seed1")
    runs: dict[str, list] = {name: [] for name in commands}
    # In turn, so that what else the machine does falls on all of them.
    for _ in range(REPEATS):
        for name, command in commands.items():
            runs[name].append(cpu_s(command, root, variables))
    medians = {name: statistics.median(seconds for seconds, _ in found) for name, found in runs.items()}
    for name, seconds in medians.items():
        print(f"  {name:18} {seconds:6.2f} CPU s {seconds / medians['whole job']:6.0%}", flush=True)
    print(f"  peak memory of the whole job: {max(peak for _, peak in runs['whole job']):.0f} MB")


def main() -> None:
    for shards in [int(argument) for argument in sys.argv[1:]] or [10_000, 100_000]:
        boards = shards // (ROWS * SEEDS)
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            copy_project(root, results=False)
            (root / ".gitignore").write_bytes((ROOT / ".gitignore").read_bytes())
            generate(root, boards, ROWS, SEEDS)
            commit(root)
            start_s = time.perf_counter()
            rows = len(prepare(root, root, touch=False).rows)
            recipe_ms = 1000 * (time.perf_counter() - start_s) / rows
            print(f"{shards} shards in {rows} rows of {boards} boards: recipes {recipe_ms:.2f} ms per row")
            measure_job(root)
            clock_s, planning_s, peak_mb, jobs = dry_run(root)
            print(
                f"  planning {jobs} jobs: {planning_s:.1f} CPU s, {clock_s:.1f} s by the clock, {peak_mb:.0f} MB",
                flush=True,
            )


if __name__ == "__main__":
    main()
