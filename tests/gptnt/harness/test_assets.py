"""What is shown and played with beside the bomb is known by a digest, which decides nothing."""

import shutil

import pytest
from gptnt.harness.workbench import edit, refusal
from gptnt.players.workbench import MANUAL
from helpers import ROOT
from rowproof.gptnt.assets import PROMPTS, assets_digest
from rowproof.gptnt.bomb.prng import SIMULATOR
from rowproof.gptnt.commands import provenance
from rowproof.gptnt.llm.prompts import FOLDER as PIECES
from rowproof.gptnt.manual import MANUAL_FOLDER, Manual
from rowproof.gptnt.recordings import read_recording, recording_paths
from rowproof.gptnt.suite_lock import load_lock

HERE = assets_digest()


@pytest.fixture
def prompts(tmp_path):
    return shutil.copytree(PROMPTS, tmp_path / "prompts")


def test_the_digest_is_that_of_the_content_wherever_it_lies(prompts, tmp_path):
    assert PROMPTS == PIECES and len(HERE) == 64
    manual = Manual.read(shutil.copytree(MANUAL_FOLDER, tmp_path / "manual"))
    assert assets_digest(manual, prompts, SIMULATOR) == HERE


def test_each_part_enters(prompts, tmp_path):
    folder = shutil.copytree(MANUAL_FOLDER, tmp_path / "manual")
    edit(folder, "page-19.md", "Once the module", "When the module")
    found = {HERE, assets_digest(Manual.read(folder)), assets_digest(MANUAL, simulator="gptnt-bomb/2")}
    (prompts / "role-expert.md").write_text("You are new here.\n")
    found.add(assets_digest(MANUAL, prompts))
    (prompts / "refusals.yaml").unlink()
    assert len(found | {assets_digest(MANUAL, prompts)}) == 5


def test_missing_prompts_are_told(tmp_path):
    assert "must be a folder of readable prompts" in refusal(assets_digest, MANUAL, tmp_path / "none")


def test_records_of_a_run_and_new_entries_of_the_lock_have_it(project, command):
    assert provenance(ROOT).assets_digest == HERE
    (project / "config/runs/small.yaml").write_text(
        "spec_version: 2\nsuites: [reference-oracle-sync]\nrooms: 1\nplayers:\n  - {player: test-oracle, count: 1}\n"
    )
    edit(project, "config/suites/reference-oracle-sync.yaml", "revision: 1", "revision: 2")
    before = load_lock(project)
    assert command("suite", "freeze")[0] == 0
    after = load_lock(project)
    new = after["reference-oracle-sync", 2]
    assert new.stamp.assets_digest == HERE and new.digest == before["reference-oracle-sync", 1].digest
    assert {key: after[key] for key in before} == before
    assert command("run", "runs/small.yaml")[0] == 0
    footers = [read_recording(path).footer for path in recording_paths(project / "output")]
    assert footers and {footer.assets_digest for footer in footers} == {HERE}
