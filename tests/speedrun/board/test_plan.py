"""The committed plan of the board, its ladder and the calibration that it rests on."""

import json

import pytest
import yaml
from helpers import ROOT
from rowproof.hashing import sha256_hex
from rowproof.speedrun.corpus import manifest_sha256
from rowproof.speedrun.family import CONTROLS, RUNGS
from rowproof.speedrun.referee.ladder import read_script
from rowproof.speedrun.steps import steps_of

LADDER = ROOT / "resources/speedrun"
PLAN = yaml.safe_load((ROOT / "config/plans/nanogpt-speedrun-cpu-v1.yaml").read_text())
CELL = PLAN["cell"]
CALIBRATION = json.loads((LADDER / "calibration.json").read_bytes())


@pytest.mark.parametrize("name", [*RUNGS, *CONTROLS])
def test_the_plan_names_the_scripts_of_the_ladder(name):
    script = read_script(LADDER, name.upper())
    assert CELL["candidates"][name]["script_sha256"] == sha256_hex(script.encode())


def test_every_candidate_is_a_row():
    assert [row["policy"] for row in PLAN["rows"].values()] == list(CELL["candidates"]) == [*RUNGS, *CONTROLS]


def test_the_plan_says_what_calibration_found():
    assert CELL["data_manifest_sha256"] == manifest_sha256()
    for name in ("target", "sigma", "base_gap"):
        assert CELL[name] == CALIBRATION[name]
    assert CELL["calibration_seeds"] == CALIBRATION["seeds"]


@pytest.mark.parametrize("name", RUNGS)
def test_rungs_have_the_steps_that_calibration_found(name):
    found = CALIBRATION["rungs"][name.upper()]
    assert steps_of(read_script(LADDER, name.upper())) == found["steps"]
    bound = CALIBRATION["target"] - CALIBRATION["margin"]
    assert found["tried"][str(found["steps"])]["mean"] <= bound
    if name != "r0":
        assert found["tried"][str(found["steps"] - 10)]["mean"] > bound
