"""Seconds and memory of planning: ``snakemake -n`` of this repository and of synthetic projects of 10,000 jobs.

Run: .venv/bin/python benchmarks/planning.py [repeats]

The projects are temporary copies of this one with many generated boards, none of whose rows is built yet; nothing is
run in them. Memory is the peak of the planning process.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml
from rowproof.boards import load_board
from rowproof.plan_lock import write_lock
from rowproof.recipes import prepare

ROOT = Path(__file__).resolve().parents[1]
TARGET_S = 30.0
REPOSITORY_TARGET_S = 5.0
COPIED = ("Snakefile", "rules", "workflow", "config", "profiles", "resources", "requirements.lock", "envs")
# (boards, rows of each, seeds): a row is four jobs and one for each seed.
SHAPES = ((10, 10, 96), (25, 50, 4))


def copy_project(target: Path, results: bool) -> None:
    for name in (*COPIED, *(["results", "README.md", ".gitignore"] if results else [])):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy2(source, target / name)


def commit(root: Path) -> None:
    identity = ["-c", "user.name=benchmark", "-c", "user.email=benchmark@example.org", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-q", "-m", "state"]):
        subprocess.run(["git", "-C", str(root), *command], check=True, capture_output=True)


def generate(root: Path, boards: int, rows: int, seeds: int) -> None:
    """Replace the boards of the project by ``boards`` copies of the diagnostic one with many rows and seeds."""
    board = yaml.safe_load((root / "config/boards/push-v1.yaml").read_text())
    plan = yaml.safe_load((root / f"config/plans/{board['plan']}.yaml").read_text())
    names = [f"synthetic-{index}" for index in range(boards)]
    kinds = list(plan["rows"])
    chosen = {f"row-{index}": kinds[index % len(kinds)] for index in range(rows)}
    plan["grid"]["seeds"] = list(range(seeds))
    # JSON is YAML as well, and never holds the aliases that a YAML writer makes of equal parts.
    for name in names:
        new_plan = {
            **plan,
            "plan": name,
            "board": name,
            "rows": {row: plan["rows"][kind] for row, kind in chosen.items()},
        }
        new_board = {
            **board,
            "board": name,
            "plan": name,
            "rows": {row: board["rows"][kind] for row, kind in chosen.items()},
        }
        (root / f"config/plans/{name}.yaml").write_text(json.dumps(new_plan))
        (root / f"config/boards/{name}.yaml").write_text(json.dumps(new_board))
    config = yaml.safe_load((root / "config/config.yaml").read_text())
    config |= {"boards": names, "quick_rows": []}
    (root / "config/config.yaml").write_text(json.dumps(config))
    for name in names:
        write_lock(load_board(root, name))


def dry_run(root: Path) -> tuple[float, float, float, int]:
    """Seconds, CPU seconds, peak MB and number of planned jobs of one ``snakemake -n``."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "ROWPROOF_", "PYTHON"))}
    with tempfile.TemporaryFile() as output:
        start_s = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "snakemake", "-n", "--nocolor"],
            cwd=root,
            env=variables,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start_s
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode()
    if process.returncode != 0:
        raise SystemExit(f"snakemake -n must succeed, found exit code {process.returncode}:\n{text[-3000:]}")
    totals = [int(line.split()[1]) for line in text.splitlines() if line.startswith("total ")]
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, totals[0] if totals else 0


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    print(
        f"{'project':32} {'rows':>5} {'jobs':>6} {'first s':>8} {'median s':>9} {'CPU s':>6} {'peak MB':>8} "
        f"{'recipe ms/row':>14}"
    )
    projects = [("this repository", None), *((f"{b} boards x {r} rows x {s} seeds", (b, r, s)) for b, r, s in SHAPES)]
    missed = False
    for name, shape in projects:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            copy_project(root, results=shape is None)
            if shape is not None:
                generate(root, *shape)
            commit(root)
            start_s = time.perf_counter()
            rows = len(prepare(root, root, touch=False).rows)
            recipe_ms = 1000 * (time.perf_counter() - start_s) / rows
            # The first run also writes recipes and caches.
            runs = [dry_run(root) for _ in range(repeats)]
            median_s, cpu_s = (statistics.median(run[index] for run in runs) for index in (0, 1))
            print(
                f"{name:32} {rows:>5} {runs[0][3]:>6} {runs[0][0]:>8.1f} {median_s:>9.1f} {cpu_s:>6.1f} "
                f"{max(run[2] for run in runs):>8.0f} {recipe_ms:>14.2f}",
                flush=True,
            )
            missed |= median_s > (REPOSITORY_TARGET_S if shape is None else TARGET_S)
    print(f"targets: {REPOSITORY_TARGET_S:.0f} s for this repository, {TARGET_S:.0f} s for 10,000 jobs")
    sys.exit(int(missed))


if __name__ == "__main__":
    main()
