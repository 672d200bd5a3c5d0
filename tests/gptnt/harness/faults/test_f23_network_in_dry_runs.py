"""A dry run of a static task downloaded a model and needed credentials."""

import os
import subprocess
import sys

import pytest
from helpers import ROOT

CODE = """
import socket, sys
from pathlib import Path
def refuse(*arguments, **names):
    raise AssertionError("a socket was opened")
socket.socket = socket.create_connection = socket.getaddrinfo = refuse
from gptnt.statics.workbench import Puppet, SMALL, run
from rowproof.gptnt.statics import run as statics_run
from rowproof.gptnt.statics.tasks import TASKS
statics_run.load_dataset = SMALL
def ask(instance):
    raise AssertionError("a player was asked")
for task in TASKS:
    if TASKS[task].dataset and "state" not in task:
        code, said = run(task, Puppet(ask), Path(sys.argv[1]), throw=False)
        assert code == 0 and said[-1] == "Nothing was asked. Use --throw to ask."
assert not list(Path(sys.argv[1]).iterdir())
heavy = {"torch", "transformers", "datasets", "huggingface_hub", "openai", "weave", "wandb", "matplotlib"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""


@pytest.mark.slow
def test_dry_runs_open_no_socket_need_no_key_and_write_nothing(tmp_path):
    keys = {name: value for name, value in os.environ.items() if not name.endswith(("_KEY", "_TOKEN"))}
    environment = keys | {"PYTHONPATH": os.pathsep.join(["workflow", "tests"])}
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path)], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
