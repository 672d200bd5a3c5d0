"""Runs the simulation of a whole row again by the code of a commit, in a process of its own."""

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rowproof.errors import HistoryGap, RowproofError
from rowproof.units import Trees, run_units

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
            "setup": dict(setup),
            "specs_producer": producers[0],
            "producer": producers[1],
            "units": None,
            "checkpoints": checkpoints,
        }
        try:
            made = run_units(tree, task, folder / "run", LIMIT_S)
        except RowproofError as error:
            raise HistoryGap(f"the code of commit {commit} cannot be run here: {error}") from None
        return made[: most_bytes + 1]
