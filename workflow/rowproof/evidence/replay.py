"""Runs the simulation of a whole row again by the code of a commit, in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rowproof.attest import WORKER, Trees
from rowproof.determinism import PINNED_ENVIRONMENT
from rowproof.errors import HistoryGap

LIMIT_S = 900


def replay_at(
    root: Path,
    commit: str,
    producers: tuple[str, str],
    setup: Mapping[str, Any],
    players: Mapping[int, tuple[str, bytes]],
    fetched: Iterable[str],
    most_bytes: int,
) -> bytes:
    """The canonical lines of all records that the code of a commit makes.

    Nothing is written into the project, and nothing of the process counts but the file of records.

    Args:
        root: the project, of whose history the commit is.
        commit: 40 hex digits.
        producers: modules of the specs and of the simulation.
        setup: as recorded in the recipe of the simulation.
        players: of learned rows, seed -> URI and bytes of the checkpoint.
        fetched: files that the engine reads and that are not committed.
        most_bytes: of records; from one more on no more are read.

    Raises:
        HistoryGap: the commit cannot be run here, or not within :data:`LIMIT_S` seconds.
    """
    with tempfile.TemporaryDirectory(prefix="rowproof-replay-") as name:
        folder = Path(name)
        tree = Trees(root, folder / "trees", fetched).at(commit)
        checkpoints = {}
        for seed, (uri, data) in players.items():
            path = folder / f"checkpoint{seed}"
            path.write_bytes(data)
            checkpoints[str(seed)] = [uri, str(path)]
        task = {
            "stage": "simulate",
            "root": str(tree),
            "setup": dict(setup),
            "specs_producer": producers[0],
            "producer": producers[1],
            "units": None,
            "checkpoints": checkpoints,
            "output": str(folder / "made.jsonl"),
        }
        (folder / "task.json").write_text(json.dumps(task), encoding="utf-8")
        complaint = _run(tree, folder)
        if complaint is not None:
            raise HistoryGap(f"the code of commit {commit} cannot be run here: {complaint}")
        try:
            with (folder / "made.jsonl").open("rb") as stream:
                return stream.read(most_bytes + 1)
        except OSError as error:
            raise HistoryGap(f"the code of commit {commit} made no records: {error.strerror}") from None


def _run(tree: Path, folder: Path) -> str | None:
    """Runs the task in ``folder``; what went wrong, or None."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "ROWPROOF_", "GIT_"))}
    environment |= {**PINNED_ENVIRONMENT, "PYTHONPATH": str(tree / "workflow"), "PYTHONDONTWRITEBYTECODE": "1"}
    with (folder / "errors").open("wb") as errors:
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
            code = process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            return f"no end within {LIMIT_S} s"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if code == 0:
        return None
    with (folder / "errors").open("rb") as stream:
        stream.seek(max(0, (folder / "errors").stat().st_size - 4000))
        tail = stream.read().decode("utf-8", "replace").strip().splitlines()
    return tail[-1][:300] if tail else f"exit {code}"
