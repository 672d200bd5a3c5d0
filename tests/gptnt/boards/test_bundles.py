"""What a verifier makes of the settings that a bundle records."""

import shutil

import pytest
from bundles import commit_all, make_project, make_row
from rowproof.evidence.verify import verify_bundle
from rowproof.records import decode, encode_document

BOARD, ROW = "gptnt-multi-self-sync", "scripted"
CHECKS = ("setup:plan", "records:set", "records:content", "records:replay")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A project and a bundle of it."""
    root = make_project(tmp_path_factory.mktemp("project"), boards=[BOARD], seeds=[1], episodes_per_partner=10)
    return root, make_row(root, tmp_path_factory.mktemp("results"), BOARD, ROW)


@pytest.fixture
def copies(made, tmp_path):
    """Copies of both, to be edited."""
    root = shutil.copytree(made[0], tmp_path / "project", symlinks=True)
    return root, shutil.copytree(made[1], tmp_path / "results" / BOARD / ROW)


def verdicts(folder, root):
    found = {check.id: check for check in verify_bundle(folder, root).checks}
    return {name: found[name].verdict if name in found else None for name in CHECKS}, found["setup:plan"].found


def edit_settings(folder, change):
    recipes = decode((folder / "recipe.json").read_bytes(), "recipe.json")
    for stage in ("specs", "simulate"):
        change(recipes[stage]["setup"])
    (folder / "recipe.json").write_bytes(encode_document(recipes))


def edit_player(root):
    path = root / "config/players/scripted.yaml"
    path.write_text(path.read_text().replace("script: scripted", "script: test-defuser"))


def test_settings_are_those_of_the_project(made):
    found, _ = verdicts(made[1], made[0])
    assert found == dict.fromkeys(CHECKS, "pass")


def test_settings_may_be_those_of_the_commit_that_made_the_row(copies):
    root, folder = copies
    edit_player(root)
    commit_all(root)
    found, _ = verdicts(folder, root)
    assert found["setup:plan"] == found["records:replay"] == "pass"


def test_without_a_project_the_recorded_ones_are_held_against_the_plan(copies):
    _, folder = copies
    found, _ = verdicts(folder, None)
    assert found["setup:plan"] == "unknown" and found["records:content"] == "pass"
    edit_settings(folder, lambda setup: setup["settings"]["missions"][0].update(numStrikes=1))
    assert verdicts(folder, None)[0]["records:set"] == "fail"


@pytest.mark.parametrize(
    "change",
    [
        lambda setup: setup["settings"]["players"]["scripted"].update(script="scripted-slow"),
        lambda setup: setup["settings"]["players"]["scripted"]["capabilities"]["usage_limits"].update(request_limit=1),
        lambda setup: setup["settings"]["missions"][0].update(numStrikes=1),
        lambda setup: setup["settings"]["suite"].update(revision=2),
        lambda setup: setup.pop("settings"),
    ],
)
def test_other_settings_than_any_of_the_project_are_seen(copies, change):
    root, folder = copies
    edit_settings(folder, change)
    found, text = verdicts(folder, root)
    assert found["setup:plan"] == "fail" and "settings" in text
