"""What a row of the CPU track rests on: its own script and task parameters, and no code of later judgements."""

import shutil

import pytest
import yaml
from helpers import ROOT
from rowproof.closure import FolderSources, HashCache, closure
from rowproof.errors import ConfigError
from rowproof.families import engines
from rowproof.recipes import SCRIPTS
from rowproof.speedrun.evaluation import specs
from rowproof.speedrun.family import data_files
from rowproof.speedrun.plan_cell import PlanCell, own_cell
from speedrun.board.workbench import cell_of, row_setup

ENGINE = engines()["nanogpt-speedrun-cpu-v1"]
SPEEDRUN = "workflow/rowproof/speedrun"
STAGES = {
    "specs": (ENGINE.specs_module, ()),
    "simulate": (ENGINE.simulate_module, ENGINE.programs),
    "time": (ENGINE.timing_module, ENGINE.programs),
    "summary": (ENGINE.summary_module, ()),
}
CELL = yaml.safe_load((ROOT / "config/plans/nanogpt-speedrun-cpu-v1.yaml").read_text())["cell"]
POLICIES = tuple(CELL["candidates"])


def reach(stage, root=ROOT):
    """Path -> digest of the code of a stage."""
    producer, programs = STAGES[stage]
    return closure(FolderSources(root, HashCache(None)), [SCRIPTS[stage], *programs], [producer]).files


def own(names):
    return {f"{SPEEDRUN}/{name}.py" for name in names.split()}


NOT_OF_RUNS = own("checks campaigns figures page scoring statistics plan_cell steps calibration row")


@pytest.mark.parametrize(
    ("stage", "others"),
    [
        ("specs", NOT_OF_RUNS | own("blocks losses verdicts timing platforms")),
        ("simulate", NOT_OF_RUNS | own("blocks losses verdicts timing platforms")),
        ("time", NOT_OF_RUNS),
        ("summary", own("checks campaigns page plan_cell evaluation timing cell referee/ladder")),
    ],
)
def test_a_stage_reaches_no_later_judgement(stage, others):
    found = set(reach(stage))
    assert all((ROOT / path).is_file() for path in others)
    assert not found & others
    if stage != "summary":
        # Nor what reads configuration files.
        assert "workflow/rowproof/strict_yaml.py" not in found
        assert f"{SPEEDRUN}/referee/ladder.py" in found


@pytest.fixture
def project(tmp_path):
    """A copy of all that the stages of a row reach."""
    for folder in ("workflow", "resources/speedrun"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def row(policy):
    """The setup of a row as its plan binds it."""
    return row_setup(policy, own_cell(CELL, policy, ["nobody"]))


def rests_on(root):
    """Everything that binds the rows of today."""
    return {
        policy: (
            {stage: reach(stage, root) for stage in ("specs", "simulate")},
            {stage: data_files(stage, row(policy), root=root) for stage in ("specs", "simulate")},
            own_cell(CELL, policy, ["nobody"]),
            specs(row(policy), root=root),
        )
        for policy in ("r0", "r3", "r8", "n1", "n7")
    }


def test_a_new_rung_leaves_all_others_alone(project, monkeypatch):
    before = rests_on(project)
    shutil.copy(project / "resources/speedrun/patches/N5.diff", project / "resources/speedrun/patches/R9.diff")
    grown = {**CELL, "candidates": {**CELL["candidates"], "r9": CELL["candidates"]["n5"]}}
    monkeypatch.setitem(globals(), "CELL", grown)
    assert rests_on(project) == before
    assert ENGINE.settings is None
    assert data_files("simulate", row("r9"), root=project)[-1] == "resources/speedrun/patches/R9.diff"
    assert specs(row("r9"), root=project)[0]["script_sha256"] == CELL["candidates"]["n5"]["script_sha256"]


def test_a_change_in_a_patch_is_one_of_the_rows_above_it(project):
    digests = {policy: specs(row(policy), root=project) for policy in ("r2", "n1", "r5")}
    (project / "resources/speedrun/patches/R4.diff").unlink()
    for policy in ("r2", "n1"):
        assert specs(row(policy), root=project) == digests[policy]
        assert "resources/speedrun/patches/R4.diff" not in data_files("specs", row(policy), root=project)
    assert "resources/speedrun/patches/R4.diff" in data_files("specs", row("r5"))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_row_needs_its_own_files_and_no_others(policy, tmp_path):
    files = ENGINE.data_files("simulate", row(policy))
    assert files == ENGINE.data_files("specs", row(policy)) and ENGINE.data_files("summary", row(policy)) == ()
    assert len(set(files)) == len(files)
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    assert specs(row(policy), root=tmp_path) == specs(row(policy))
    for name in files:
        hidden = (tmp_path / name).rename(tmp_path / "hidden")
        with pytest.raises(ConfigError, match="found no file"):
            specs(row(policy), root=tmp_path)
        hidden.rename(tmp_path / name)


def test_what_is_timed_needs_the_files_of_all_its_rows():
    setup = {"policies": {"a": "r0", "b": "n1", "c": "r4"}}
    names = ("R1", "R2", "R3", "N1", "R4")
    assert ENGINE.data_files("time", setup) == (
        "resources/speedrun/train_gpt.py",
        *(f"resources/speedrun/patches/{name}.diff" for name in names),
    )


def test_of_the_candidates_a_row_has_its_own():
    cell = cell_of()
    found = ENGINE.own_cell(cell, "r4", ["nobody"])
    assert found == {**cell, "candidates": {"r4": cell["candidates"]["r4"]}} and list(found) == list(cell)
    assert len(cell["candidates"]) > 1, "the plan's stays as it is"
    assert PlanCell.model_validate(cell).model_dump() == cell
