"""Runs units of a stage (episodes, trainings) by the code of one tree, in a process of its own."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rowproof import git
from rowproof.determinism import PINNED_ENVIRONMENT
from rowproof.errors import RowproofError
from rowproof.layout import learned_files
from rowproof.records import decode

if TYPE_CHECKING:
    from rowproof.boards import BoardSetup

WORKER = Path(__file__).with_name("attest_worker.py")
# Of what a process says, enough to tell why it failed.
_TAIL_BYTES = 4000


class Trees:
    """Commits as folders that can be run from, made of raw objects below a temporary folder."""

    def __init__(self, root: Path, folder: Path, fetched: Iterable[str]) -> None:
        """Commits of the repository around ``root``; ``fetched`` files are copied from the checkout."""
        self._root, self._folder, self._fetched = root, folder, sorted(set(fetched))

    def at(self, commit: str) -> Path:
        """The folder of a commit.

        Raises:
            HistoryGap: the commit is not in this clone.
        """
        place = self._folder / commit
        if not place.is_dir():
            making = place.with_suffix(".making")
            shutil.rmtree(making, ignore_errors=True)
            git.export(self._root, commit, making, ("workflow", "config", "resources"))
            for name in self._fetched:
                if (self._root / name).is_file():
                    (making / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(self._root / name, making / name)
            making.rename(place)
        return place


def run_units(tree: Path, task: Mapping[str, Any], folder: Path, limit_s: float | None = None) -> bytes:
    """The canonical lines of a task, made by the code of ``tree`` in a process of its own.

    Nothing of the process counts but the file of lines that it leaves.

    Args:
        tree: a project.
        task: what to run, see ``attest_worker.py``.
        folder: where the process may write; made if it is missing.
        limit_s: seconds after which the process is killed; None for no limit.

    Raises:
        RowproofError: the process failed, was killed, or left no lines.
    """
    folder.mkdir(parents=True, exist_ok=True)
    output = folder / "made.jsonl"
    whole = {**task, "root": str(tree), "output": str(output), "folder": str(folder / "training")}
    (folder / "task.json").write_bytes(json.dumps(whole).encode())
    complaint = _run(tree, folder, limit_s)
    if complaint is not None or not output.is_file():
        raise RowproofError(f"stage {task['stage']} must run, found: {complaint or 'no lines'}")
    return output.read_bytes()


def _run(tree: Path, folder: Path, limit_s: float | None) -> str | None:
    """Run the task in ``folder``; what went wrong, or None."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "ROWPROOF_", "GIT_"))}
    environment |= {**PINNED_ENVIRONMENT, "PYTHONPATH": str(tree / "workflow"), "PYTHONDONTWRITEBYTECODE": "1"}
    with (folder / "errors").open("w+b") as errors:
        process = subprocess.Popen(
            [sys.executable, str(WORKER), str(folder / "task.json")],
            cwd=tree,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return f"no end within {limit_s} s"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if code == 0:
            return None
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - _TAIL_BYTES))
        tail = errors.read().decode("utf-8", "replace").strip().splitlines()[-3:]
    return " | ".join(tail) or f"exit {code}"


def unit_task(setup: "BoardSetup", row: str, stage: str, producer: str | None, folder: Path) -> dict[str, Any]:
    """The task of running units of a stage of a row (see ``attest_worker.py``), with none chosen yet.

    ``folder`` is the row's bundle, whose checkpoints play if the row is learned.
    """
    task: dict[str, Any] = {
        "stage": stage,
        "board": setup.board.board,
        "row": row,
        "specs_producer": setup.engine.specs_module,
        "producer": producer,
        "units": [],
        "checkpoints": {},
        "first_update_of": [],
        "whole": [],
    }
    if row in setup.trainings and stage in ("select", "simulate"):
        for seed in setup.plan.grid.seeds:
            chosen = decode((folder / learned_files(seed)[1]).read_bytes(), "selection")["selected"]
            task["checkpoints"][str(seed)] = [chosen["uri"], str((folder / learned_files(seed)[2]).resolve())]
    return task
