"""Files of another host are seen late, as on a shared file system; jobs wait for those that no rule declares."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import ROOT
from rowproof.checkpoints import file_name, store
from rowproof.launches import LATENCY_VARIABLE, LAUNCH_VARIABLE
from rowproof.records import encode_document

LATE = ROOT / "tests/slurm/late"

# What a job does before its own work.
LAUNCHED = """
import os
from pathlib import Path
from rowproof.launches import LAUNCH_VARIABLE
from rowproof.recipes import read_launch
print(len(read_launch(Path(os.environ[LAUNCH_VARIABLE])).rows))
"""
SELECTING = """
import sys
from pathlib import Path
from types import SimpleNamespace
from rowproof import jobs
jobs.Job.check_unchanged = lambda self: None
recipe, training, *checkpoints = sys.argv[1:]
files = SimpleNamespace(recipe=recipe, training=training)
call = SimpleNamespace(input=files, output=[], log=["logs/late.log"], threads=1)
with jobs.job(call, "workflow/scripts/specs.py"):
    print(sum(Path(path).stat().st_size for path in checkpoints))
"""


def run(code: str, folder: Path, latency_s: float, *arguments: str) -> subprocess.CompletedProcess:
    """A process of a job on another host than the one that wrote the files: it sees each a second after it looked."""
    search = os.pathsep.join([str(LATE), str(ROOT / "workflow")])
    late = {"PYTHONPATH": search, "LATE_FOLDER": str(folder / "late"), "LATE_S": "1", "SLURM_JOB_ID": "1"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env={**os.environ, **late, LATENCY_VARIABLE: str(latency_s)},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_launch_that_is_seen_late(worked):
    assert Path(os.environ[LAUNCH_VARIABLE]).parent.name == "launch"
    done = run(LAUNCHED, worked.folder, 30)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(worked.launched.rows)


@pytest.fixture
def training(worked) -> list[str]:
    """The document of a training and its checkpoints, relative to the working directory."""
    document = worked.folder / "work/rows/board/row/train-0123456789abcdef/seed1.json"
    uris = [store(document.with_suffix(""), data) for data in (b"first", b"second")]
    document.write_bytes(encode_document({"checkpoints": [{"step": 1, "uri": uri} for uri in uris]}))
    files = [document, *(document.with_suffix("") / file_name(uri) for uri in uris)]
    return [str(path.relative_to(worked.folder)) for path in files]


def test_checkpoints_that_are_seen_late(worked, training):
    done = run(SELECTING, worked.folder, 30, worked.row.recipe_path("specs"), *training)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(b"first" + b"second")
    for path in training[1:]:
        assert f"waiting for {path}, at most " in done.stderr


def test_checkpoints_that_are_lost_are_not_waited_for_without_end(worked, training):
    for path in training[1:]:
        (worked.folder / path).unlink()
    # Made long enough ago for every host to see them.
    os.utime(worked.folder / training[0], (1, 1))
    done = run(SELECTING, worked.folder, 3600, worked.row.recipe_path("specs"), *training)
    assert done.returncode == 2
    *_, line = done.stderr.splitlines()
    assert line.startswith("error: No such file or directory: ") and line.endswith(training[1])
    assert "waiting for work/rows" not in done.stderr
