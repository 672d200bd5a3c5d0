"""Which runs are under way, and that nothing else is ever told to end."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from helpers import ROOT
from rowproof.errors import RecordError
from rowproof.gptnt.running import FOLDER, registered, run_kill, running_runs

OURS = {"host": socket.gethostname(), "pid": os.getpid()}


def files(root):
    return sorted(path.name for path in (root / FOLDER).iterdir())


def lines_of(root, run=None):
    lines = []
    code = run_kill(root, run, lines.append)
    return code, lines


@pytest.fixture
def killed(monkeypatch):
    """Signals that were sent, none of which arrives."""
    sent = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    return sent


def test_a_run_is_known_as_long_as_it_lasts(tmp_path):
    assert running_runs(tmp_path) == []
    with registered(tmp_path, "small"), registered(tmp_path, "small"):
        assert [entry.model_dump() for entry in running_runs(tmp_path)] == [{"run": "small"} | OURS] * 2
        assert len(files(tmp_path)) == 2
    assert running_runs(tmp_path) == [] and files(tmp_path) == []


def test_a_run_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="no"), registered(tmp_path, "small"):
        raise ValueError("no")
    assert files(tmp_path) == []


def test_only_the_runs_that_are_meant_are_told(tmp_path, killed):
    with registered(tmp_path, "small"), registered(tmp_path, "large"):
        code, lines = lines_of(tmp_path, "large")
        assert code == 0 and killed == [(os.getpid(), signal.SIGTERM)] and lines[0].startswith("large: process")
        assert len(lines_of(tmp_path)[1]) == 2 and len(killed) == 3
    assert lines_of(tmp_path) == (0, ["no run of this project is under way"])
    assert lines_of(tmp_path, "small") == (0, ["no run small is under way"]) and len(killed) == 3


def test_the_id_of_a_process_that_is_gone_is_told_nothing(tmp_path, killed):
    path = tmp_path / FOLDER / "small-1.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"run": "small"} | OURS))
    assert lines_of(tmp_path) == (0, ["no run of this project is under way"])
    assert killed == [] and not path.exists()


def test_a_run_on_another_machine_is_named_and_not_touched(tmp_path, killed, monkeypatch):
    with registered(tmp_path, "small"):
        monkeypatch.setattr(socket, "gethostname", lambda: "another")
        code, lines = lines_of(tmp_path)
    assert code == 1 and killed == [] and f"runs on {OURS['host']} (process {os.getpid()})" in lines[0]


def test_a_file_with_another_content_is_refused(tmp_path, killed):
    with registered(tmp_path, "small"):
        (path,) = (tmp_path / FOLDER).iterdir()
        path.write_text("7")
        with pytest.raises(RecordError, match="must be the file of a run"):
            run_kill(tmp_path, None)
    assert killed == []


RUN = """
import sys, time
from pathlib import Path
from rowproof import cli
from rowproof.gptnt import session
root = Path(sys.argv.pop(1))
cli.project_root = lambda: root
real = session.play
def play(*args):
    time.sleep(0.2)
    return real(*args)
session.play = play
sys.exit(cli.main(sys.argv[1:]))
"""


def test_a_run_that_is_killed_ends_with_its_games_recorded(command, project):
    (project / "config/runs/small.yaml").write_text(
        "spec_version: 2\nsuites: [multi-self-sync]\nrooms: 1\nplayers:\n  - {player: scripted, count: 2}\n"
    )
    arguments = [sys.executable, "-c", RUN, str(project), "run", str(project / "config/runs/small.yaml")]
    process = subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        for _ in range(300):
            if running_runs(project):
                break
            time.sleep(0.1)
        code, out, _ = command("kill", "runs/small.yaml")
        assert code == 0 and out.startswith(f"small: process {process.pid} was told to end")
        told, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 1 and " left" in told and "; 0 left" not in told
    records = len(list((project / "output").rglob("experiment-*.parquet")))
    assert records < 20 and records % 2 == 0
    assert command("kill")[1] == "no run of this project is under way\n"
