"""Let Python see files of other hosts only some time after the first look at each, as a shared file system may do.

Loaded by every Python process that has this folder on its path and the variable LATE_FOLDER. What was looked at is kept
there, because all processes of a host see the same. Late are, where snakemake was started, the products of shards and
what lies beside them; in jobs, the file of the launch and the checkpoints of a training that has ended.
"""

import builtins
import errno
import hashlib
import io
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

LATE_S = float(os.environ.get("LATE_S", "3"))
IN_JOB = "SLURM_JOB_ID" in os.environ
_PRODUCT = re.compile(r"work/rows/.*/simulate-[^/]*/[^/.]+\.(jsonl|job\.json)$")
_LAUNCH = re.compile(r"work/launch/[^/.]+\.json$")
_CHECKPOINT = re.compile(r"(work/rows/.*/train-[^/]*/seed[0-9]+)/[^/.]+\.safetensors$")
_stat, _lstat, _open = os.stat, os.lstat, io.open


def _is_of_another_host(path: str) -> bool:
    if not IN_JOB:
        return _PRODUCT.search(path) is not None
    checkpoint = _CHECKPOINT.search(path)
    # The document of a training is written after its checkpoints.
    return _LAUNCH.search(path) is not None or (checkpoint is not None and os.path.lexists(f"{checkpoint[1]}.json"))


def _check(path: object) -> None:
    """Raise FileNotFoundError for a file that is there but not to be seen yet."""
    if not isinstance(path, (str, os.PathLike)) or not _is_of_another_host(os.fspath(path)):
        return
    name = str(Path(path).absolute())
    _lstat(name)
    first_look = Path(os.environ["LATE_FOLDER"], hashlib.sha256(name.encode()).hexdigest())
    with suppress(FileExistsError):
        first_look.touch(exist_ok=False)
    if time.time() - first_look.stat().st_mtime < LATE_S:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


def _late(function: Callable) -> Callable:
    def call(path, *args, **kwargs):
        _check(path)
        return function(path, *args, **kwargs)

    return call


if "LATE_FOLDER" in os.environ:
    Path(os.environ["LATE_FOLDER"]).mkdir(parents=True, exist_ok=True)
    os.stat, os.lstat = _late(_stat), _late(_lstat)
    io.open = builtins.open = _late(_open)
