import shutil

import pytest
from helpers import ROOT
from rowproof.errors import ConfigError
from rowproof.speedrun.extraction import extract
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.patching import apply_patch, canonical_diff
from rowproof.speedrun.policy import check_policy
from rowproof.speedrun.referee.ladder import SCRIPT_NAME, chain_files, chain_of, read_patch, read_script
from rowproof.speedrun.steps import read_ladder, set_steps, with_steps

RESOURCES = ROOT / "resources/speedrun"
LADDER = read_ladder(RESOURCES)
UNCHANGED = "N7"
PATCHED = [name for name, base in LADDER.items() if base is not None]


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(RESOURCES, tmp_path / "speedrun")
    return tmp_path / "speedrun"


def test_every_patch_is_a_rung():
    assert {path.stem for path in (RESOURCES / "patches").glob("*.diff")} == set(PATCHED)
    assert {name[0] for name in LADDER} == {"R", "N"}


@pytest.mark.parametrize("name", PATCHED)
def test_every_patch_applies_exactly_and_is_in_canonical_form(name):
    base = read_script(RESOURCES, LADDER[name])
    applied = apply_patch(base, read_patch(RESOURCES, name), SCRIPT_NAME)
    if name == UNCHANGED:
        assert applied.failure is Outcome.NOOP_PATCH
        return
    assert applied.failure is None, applied.detail
    assert not applied.flags
    assert read_patch(RESOURCES, name) == canonical_diff(base, applied.patched, SCRIPT_NAME)


@pytest.mark.parametrize("name", PATCHED)
def test_no_patch_breaks_the_policy_or_touches_data_and_seed(name):
    patched, base = read_script(RESOURCES, name), read_script(RESOURCES, LADDER[name])
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
        if LADDER[name] in followers and "+    num_iterations" not in read_patch(folder, name):
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


def test_rungs_stand_in_the_order_of_the_ladder(folder):
    shutil.copy(folder / "patches/R8.diff", folder / "patches/R10.diff")
    names = list(read_ladder(folder))
    assert names[:10] == [f"R{number}" for number in (*range(9), 10)]
    assert names[10:] == [f"N{number}" for number in range(1, 9)]


def test_a_rung_rests_on_its_own_chain_alone(folder):
    assert chain_of(folder, "R0") == ("R0",) and chain_files(folder, "R0") == ["train_gpt.py"]
    assert chain_of(folder, "N1") == ("R0", "R1", "R2", "R3", "N1")
    own = chain_files(folder, "N1")
    assert own == ["train_gpt.py", *(f"patches/{name}.diff" for name in ("R1", "R2", "R3", "N1"))]
    script = read_script(folder, "N1")
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        if path.relative_to(folder).as_posix() not in own:
            path.unlink()
    assert read_script(folder, "N1") == script


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("Base: R99", r"R99 must be a rung of the ladder, found no file patches/R99\.diff"),
        ("Base: R3", r"patches/R2\.diff:1: must not rest on itself, found the base R3"),
        ("Base: R2", r"patches/R2\.diff:1: must not rest on itself, found the base R2"),
        ("Base: ../R1", "'../R1' must be a rung of the ladder, with a name such as R1"),
        ("Base: r1", "'r1' must be a rung"),
        ("Base:", r"patches/R2\.diff:1: must name the rung that it patches, as in 'Base: R1', found 'Base:'"),
        ("--- a/train_gpt.py", r"patches/R2\.diff:1: must name the rung that it patches"),
    ],
)
def test_a_broken_ladder_is_refused(folder, base, message):
    path = folder / "patches/R2.diff"
    path.write_text(path.read_text().replace("Base: R1", base, 1))
    for read in (read_ladder, lambda folder: read_script(folder, "R3")):
        with pytest.raises(ConfigError, match=message):
            read(folder)
    assert read_script(folder, "R1") == read_script(RESOURCES, "R1")


def test_a_patch_that_is_no_text_is_named(folder):
    (folder / "patches/R2.diff").write_bytes(b"Base: R1\n\xff")
    with pytest.raises(ConfigError, match=r"patches/R2\.diff: must be text in UTF-8"):
        read_script(folder, "R2")


@pytest.mark.parametrize("name", PATCHED)
def test_a_patch_is_an_answer_as_it_lies_there(name):
    found = extract([{"role": "assistant", "content": (RESOURCES / f"patches/{name}.diff").read_text()}])
    assert found.patch == read_patch(RESOURCES, name)


def test_a_patch_that_does_not_apply_is_named(folder):
    path = folder / "patches/R2.diff"
    path.write_text(path.read_text().replace("-    learning_rate = 2e-3", "-    learning_rate = 2e-9"))
    with pytest.raises(ConfigError, match=r"R2\.diff"):
        read_script(folder, "R3")
