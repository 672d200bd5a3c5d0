import shutil

import pytest
from helpers import ROOT
from rowproof.errors import ConfigError
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.patching import apply_patch, canonical_diff
from rowproof.speedrun.policy import check_policy
from rowproof.speedrun.referee.ladder import (
    SCRIPT_NAME,
    read_ladder,
    read_patch,
    read_script,
    set_steps,
    with_steps,
)

RESOURCES = ROOT / "resources/speedrun"
LADDER = read_ladder(RESOURCES)
UNCHANGED = "N7"
PATCHED = [name for name, rung in LADDER.items() if rung.base is not None]


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(RESOURCES, tmp_path / "speedrun")
    return tmp_path / "speedrun"


def test_every_patch_is_a_rung():
    assert {path.stem for path in (RESOURCES / "patches").glob("*.diff")} == set(PATCHED)
    assert {name[0] for name in LADDER} == {"R", "N"}


@pytest.mark.parametrize("name", PATCHED)
def test_every_patch_applies_exactly_and_is_in_canonical_form(name):
    base = read_script(RESOURCES, LADDER[name].base)
    applied = apply_patch(base, read_patch(RESOURCES, name), SCRIPT_NAME)
    if name == UNCHANGED:
        assert applied.failure is Outcome.NOOP_PATCH
        return
    assert applied.failure is None, applied.detail
    assert not applied.flags
    assert read_patch(RESOURCES, name) == canonical_diff(base, applied.patched, SCRIPT_NAME)


@pytest.mark.parametrize("name", PATCHED)
def test_no_patch_breaks_the_policy_or_touches_data_and_seed(name):
    patched, base = read_script(RESOURCES, name), read_script(RESOURCES, LADDER[name].base)
    report = check_policy(patched, base)
    assert not report.hard
    assert {finding.rule for finding in report.soft} <= {"precision_changed"}
    assert patched.count("tokens.read(") == 1
    assert patched.count('torch.manual_seed(int(os.environ["SPEEDRUN_SEED"]))') == 1


def test_with_steps_changes_one_line():
    base = read_script(RESOURCES, "R0")
    short = with_steps(base, 20)
    assert [line for line in short.splitlines() if line not in base.splitlines()] == ["    num_iterations = 20"]


@pytest.mark.parametrize("source", ["", "    num_iterations = 1\n    num_iterations = 2\n", "num_iterations = n\n"])
def test_with_steps_needs_one_line(source):
    with pytest.raises(ConfigError, match="one line"):
        with_steps(source, 20)


@pytest.mark.slow
def test_set_steps_changes_steps_and_nothing_else(folder):
    # Patches that set no number have that of their base.
    before = {name: read_script(folder, name) for name in LADDER}
    followers = {"R3"}
    for name in PATCHED:
        if LADDER[name].base in followers and "+    num_iterations" not in read_patch(folder, name):
            followers.add(name)
    assert followers >= {"R3", "N1", "N2", "N3", "N4"}
    set_steps(folder, {"R1": 333, "R3": 99})
    for name, source in before.items():
        own = {"R1": 333, **dict.fromkeys(followers, 99)}.get(name)
        assert read_script(folder, name) == (source if own is None else with_steps(source, own)), name


@pytest.mark.slow
def test_set_steps_with_the_same_numbers_changes_no_byte(folder):
    set_steps(folder, {})
    for name in PATCHED:
        assert read_patch(folder, name) == read_patch(RESOURCES, name)


@pytest.mark.parametrize("name", ["R0", "N7", "R99"])
def test_set_steps_refuses_what_has_none(folder, name):
    with pytest.raises(ConfigError, match=name):
        set_steps(folder, {name: 10})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: R2", "name: R1", "twice"),
        ("base: R7", "base: R9", "R9"),
        ("base: null", "base: R1", "R0"),
        ("title: Compile the model", "hint: Compile the model", "hint"),
    ],
)
def test_a_broken_ladder_is_refused(folder, old, new, message):
    path = folder / "ladder.yaml"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(ConfigError, match=message):
        read_ladder(folder)


def test_a_patch_that_does_not_apply_is_named(folder):
    path = folder / "patches/R2.diff"
    path.write_text(path.read_text().replace("-    learning_rate = 2e-3", "-    learning_rate = 2e-9"))
    with pytest.raises(ConfigError, match=r"R2\.diff"):
        read_script(folder, "R3")
