"""The command on this machine, with real runs at a few steps."""

import json

import pytest
from helpers import ROOT
from rowproof.speedrun.referee.sandbox import available_mode, last_core
from speedrun.commands.workbench import call

pytestmark = pytest.mark.slow


def test_a_rung_of_the_ladder_runs_for_twenty_steps(tmp_path, capsys):
    pytest.importorskip("torch", reason="training needs the extra rowproof[training]")
    if available_mode("strict", last_core()) != "strict":
        pytest.skip("this machine lets nobody make namespaces, and the test needs the strict sandbox")
    patch = ROOT / "resources/speedrun/patches/R1.diff"
    assert call("score", patch, "--smoke", "--output", tmp_path / "out") == 0
    said = capsys.readouterr().out
    assert "nothing is scored" in said
    assert json.loads((tmp_path / "out/smoke.json").read_bytes())["outcome"] == "ok", said
    timing = json.loads((tmp_path / "out/timing.json").read_bytes())
    assert timing["sandbox"] == "strict" and timing["deterministic"]
    assert timing["peak_gflops_per_s"] > 1
    assert not (tmp_path / "out/row.json").exists()
