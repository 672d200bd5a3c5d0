"""Which code a row of a gptnt board reaches."""

import shutil
import subprocess
import sys

import pytest
from helpers import ROOT
from rowproof.boards import load_board
from rowproof.closure import FolderSources, HashCache, closure
from rowproof.families import engines
from rowproof.recipes import SCRIPTS

ENGINE = engines()["gptnt-v1"]
PACKAGE = "workflow/rowproof/gptnt"
SCRIPTED = {"scripted", "scripted_careless", "scripted_forgetful", "scripted_mishearing", "scripted_slow"}


def setup_of(path):
    board, _, row = path.rpartition("/")
    return load_board(ROOT, board).row_setup(row)


def reach(path, stage="simulate", root=ROOT):
    producer = {"specs": ENGINE.specs_module, "simulate": ENGINE.simulate_module}[stage]
    modules = [producer, *ENGINE.modules(stage, setup_of(path))]
    return closure(FolderSources(root, HashCache(None)), [SCRIPTS[stage]], modules).files


@pytest.mark.parametrize(
    ("path", "scripts"),
    [
        ("gptnt-single-self-async/scripted", {"scripted"}),
        ("gptnt-single-self-async/scripted-slow", {"scripted_slow"}),
        ("gptnt-single-pairwise-sync/scripted-careless", SCRIPTED),
        ("gptnt-single-pairwise-sync/test-defuser", {"test_defuser", "test_expert"}),
        ("gptnt-reference-oracle-sync/test-oracle", {"test_oracle"}),
    ],
)
def test_a_row_reaches_the_scripts_of_its_own_players(path, scripts):
    folder = f"{PACKAGE}/players/scripts/"
    found = {file.removeprefix(folder).removesuffix(".py") for file in reach(path) if file.startswith(folder)}
    assert found == {"__init__", *scripts}
    assert ENGINE.modules("specs", setup_of(path)) == ()
    talks = f"{PACKAGE}/players/scripted.py" in reach(path)
    assert talks == bool(scripts & SCRIPTED)


@pytest.mark.parametrize("stage", ["specs", "simulate"])
def test_no_reader_of_files_and_no_check_is_reached(stage):
    code = reach("gptnt-single-pairwise-sync/scripted", stage)
    assert "workflow/rowproof/strict_yaml.py" not in code
    own = {file.removeprefix(f"{PACKAGE}/").removesuffix(".py") for file in code if file.startswith(PACKAGE)}
    readers = {"player_config", "capabilities", "suites", "suite_lock", "mission_sets", "specs", "settings", "names"}
    after = {"checks", "figures", "page", "recordings", "doctor", "bomb/published"}
    assert own & (readers | after) == set()
    assert not any(name.startswith(("llm/", "statics/")) for name in own)
    assert all("rowproof/llm" not in file for file in code)
    if stage == "specs":
        assert own == {"bomb/mission", "cell", "grid", "models", "suite"}


def test_a_script_of_ones_own_is_known_and_reached_by_no_other_row(tmp_path):
    shutil.copytree(ROOT / "workflow", tmp_path / "workflow", ignore=shutil.ignore_patterns("__pycache__"))
    path = "gptnt-single-pairwise-sync/scripted"
    before = reach(path, root=tmp_path)
    (tmp_path / PACKAGE / "players/scripts/mine.py").write_text(
        "from rowproof.gptnt.players.scripted import Scripted\n\n\ndef player():\n    return Scripted()\n"
    )
    assert reach(path, root=tmp_path) == before == reach(path)
    code = "from rowproof.gptnt.family import ENGINES\nassert 'mine' in ENGINES[0].policies"
    code += "\nfrom rowproof.gptnt.players.scripts import player_for\nassert player_for('mine').turn"
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(tmp_path / "workflow")}, check=True)
