"""The scripts of the stages train and select, as Snakemake runs them, on a small handover training."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from importlib import import_module
from types import SimpleNamespace

import pytest
from bundles import make_project, recipes_of
from rowproof import git
from rowproof.boards import load_board
from rowproof.records import decode, encode_document

pytest.importorskip("rowproof.chamber.learned.networks", reason="torch (extra training) is not installed")

BOARD, ROW, SEED = "handover-v1", "b-aht", 1

RUN = """
import json, runpy, sys
from types import SimpleNamespace
class Part(SimpleNamespace):
    def __iter__(self):
        return iter(vars(self).values())
call = json.loads(sys.argv[1])
snakemake = Part(log=call["log"], threads=1, **{name: Part(**call[name]) for name in ("input", "output", "params")})
runpy.run_path(call["script"], {"snakemake": snakemake})
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project whose training takes a few seconds, with checkpoints early on."""
    long = {"frames": 6400, "checkpoint_frames": 800, "rollout_frames": 160, "epochs": 1, "hidden_units": [8]}
    return make_project(tmp_path_factory.mktemp("project") / "p", learned=True, training=long)


class Stage:
    """One script of a project, with its recipe and the places of its products."""

    def __init__(self, root, folder, stage):
        setup = load_board(root, BOARD)
        self.recipe = recipes_of(root, BOARD, ROW)[stage]
        self.root, self.folder, self.stage = root, folder, stage
        self.document = folder / "train" / f"seed{SEED}.json"
        self.selected = folder / "select" / f"seed{SEED}.json"
        self.log = folder / f"{stage}.log"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{stage}-recipe.json"
        path.write_bytes(encode_document(self.recipe))
        checkpoint = str(self.selected.with_suffix(".safetensors"))
        calls = {
            "train": {"input": {}, "output": {"document": str(self.document)}},
            "select": {
                "input": {"training": str(self.document)},
                "output": {"evidence": str(self.selected), "checkpoint": checkpoint},
            },
        }
        call = calls[stage]
        call["input"]["recipe"] = str(path)
        call["params"] = {"seed": SEED, "plan_path": setup.plan_path, "plan_blob": git.blob_id(setup.plan_bytes)}
        call["log"] = [str(self.log)]
        script = {"train": "train.py", "select": "select_checkpoint.py"}[stage]
        self.call = {**call, "script": str(root / "workflow/scripts" / script)}

    def start(self):
        environment = {name: value for name, value in os.environ.items() if name != "ROWPROOF_LAUNCH"}
        return subprocess.Popen(
            [sys.executable, "-c", RUN, json.dumps(self.call)],
            env={**environment, "PYTHONPATH": str(self.root / "workflow"), "ROWPROOF_LATENCY_S": "0"},
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self):
        """Exit code and the lines on stderr."""
        process = self.start()
        _, errors = process.communicate(timeout=300)
        return process.returncode, errors.splitlines()


def products(folder):
    """Names of finished products, without what lies beside them."""
    return sorted(path.name for path in folder.rglob("seed*") if path.is_file())


@pytest.mark.slow
def test_sigterm_ends_a_training_with_one_message_and_the_next_start_goes_on(project, tmp_path):
    stage = Stage(project, tmp_path, "train")
    state = stage.document.parent / f"seed{SEED}" / "resume.state"
    process = stage.start()
    deadline_s = time.monotonic() + 300
    while not state.exists() and process.poll() is None and time.monotonic() < deadline_s:
        time.sleep(0.005)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 143, errors
    (line,) = errors.splitlines()
    assert line.startswith("error: the job must run to its end, found SIGTERM after ")
    assert line.endswith(" of 6400 frames: start it again")
    assert products(tmp_path) == [] and state.exists()
    code, lines = stage.run()
    assert code == 0 and any("of 6400 frames were done before" in line for line in lines)
    assert lines[-1] == f"training {SEED}: 8 checkpoints"
    assert products(tmp_path) == [f"seed{SEED}.job.json", f"seed{SEED}.json"] and not state.exists()
    training = import_module(stage.recipe["producer"])
    watcher = SimpleNamespace(resume=lambda done: None, advance=lambda units, work, note: None)
    whole = training.train(stage.recipe["setup"], SEED, tmp_path / "whole", watcher)
    assert stage.document.read_bytes() == encode_document(whole)


def test_no_training_begins_before_its_plan_is_committed(project, tmp_path):
    root = shutil.copytree(project, tmp_path / "p")
    plan = root / "config/plans/handover-v1.yaml"
    plan.write_text("# another plan\n" + plan.read_text())
    stage = Stage(root, tmp_path / "w", "train")
    code, lines = stage.run()
    assert code != 0 and len(lines) == 1 and "must be as committed" in lines[0]
    assert not stage.document.parent.exists()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A project with a small training, and a folder in which it has run."""
    root = make_project(tmp_path_factory.mktemp("small") / "p", learned=True)
    folder = tmp_path_factory.mktemp("trained")
    code, lines = Stage(root, folder, "train").run()
    assert code == 0, lines
    return root, folder


@pytest.fixture
def selecting(trained, tmp_path):
    root, folder = trained
    shutil.copytree(folder, tmp_path / "w")
    return Stage(root, tmp_path / "w", "select")


@pytest.mark.slow
def test_selection_leaves_evidence_and_the_checkpoint_it_names(selecting):
    code, lines = selecting.run()
    assert code == 0 and lines[-1].startswith("selected step ")
    evidence = decode(selecting.selected.read_bytes(), "evidence")
    saved = decode(selecting.document.read_bytes(), "training")["checkpoints"]
    assert [{"step": c["step"], "uri": c["uri"]} for c in evidence["candidates"]] == saved
    source = selecting.document.parent / f"seed{SEED}" / f"{evidence['selected']['uri'][7:]}.safetensors"
    assert selecting.selected.with_suffix(".safetensors").read_bytes() == source.read_bytes()


@pytest.mark.parametrize("damage", ["truncate", "swap", "remove"])
def test_a_damaged_candidate_is_refused_by_name_and_nothing_is_selected(selecting, damage):
    first, second = (
        selecting.document.parent / f"seed{SEED}" / f"{saved['uri'][7:]}.safetensors"
        for saved in decode(selecting.document.read_bytes(), "training")["checkpoints"]
    )
    if damage == "truncate":
        second.write_bytes(second.read_bytes()[:-1])
    elif damage == "swap":
        second.write_bytes(first.read_bytes())
    else:
        second.unlink()
    code, lines = selecting.run()
    assert code not in (0, 1) and len(lines) == 1
    assert lines[0].startswith("error: ") and second.name in lines[0] and f"sha256:{second.stem}" in lines[0]
    assert not selecting.selected.parent.exists()


def test_an_edited_training_document_is_refused(selecting):
    document = decode(selecting.document.read_bytes(), "training")
    document["checkpoints"].pop()
    selecting.document.write_bytes(encode_document(document))
    code, lines = selecting.run()
    assert code not in (0, 1) and "must be as its job wrote it" in lines[-1] and len(lines) == 1
    assert not selecting.selected.parent.exists()
