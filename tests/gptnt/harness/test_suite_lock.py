import tomllib

import pytest
from gptnt.harness.test_suites import PUBLISHED
from gptnt.harness.workbench import edit, refusal
from helpers import ROOT
from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.names import config_names
from rowproof.gptnt.suite_lock import LOCK, Stamp, freeze, frozen_suite, load_lock, parse_lock, render_lock
from rowproof.gptnt.suites import FOLDER, load_suite

STAMP = Stamp(frozen_at="2030-01-01T00:00:00Z", gptnt_version="9", git_sha="abc")
SUITE = f"{FOLDER}/multi-self-sync.yaml"


def live(root):
    for name in config_names(root / FOLDER):
        suite, missions = load_suite(root, name)
        yield suite, missions.values()


def refreeze(root):
    return freeze(load_lock(root), live(root), STAMP)


def test_the_shipped_lock_is_up_to_date():
    frozen = refreeze(ROOT)
    assert set(frozen.outcomes.values()) == {"unchanged"} and frozen.failures(check=True) == {}
    assert set(frozen.outcomes) == set(config_names(ROOT / FOLDER))


@pytest.mark.parametrize(("name", "expected"), PUBLISHED.items())
def test_the_lock_alone_gives_the_published_digests(tmp_path, name, expected):
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / LOCK).write_bytes((ROOT / LOCK).read_bytes())
    frozen = frozen_suite(load_lock(tmp_path), name)
    assert frozen.digest == expected[2] == frozen.suite.digest(frozen.missions)
    assert (frozen.suite, {*frozen.missions}) == (load_suite(ROOT, name)[0], {*load_suite(ROOT, name)[1].values()})
    assert [mission.key for mission in frozen.missions] == sorted(mission.key for mission in frozen.missions)


def test_writing_gives_the_file_that_was_read():
    data = (ROOT / LOCK).read_bytes()
    assert render_lock(parse_lock(data)) == data
    keys = [entry["mission_key"] for entry in tomllib.loads(data.decode())["mission"]]
    assert keys == sorted(set(keys)) and len(keys) == 120, "missions of several suites are there once"


def test_freezing_from_nothing_gives_the_same_content(project):
    (project / LOCK).unlink()
    frozen = refreeze(project)
    assert set(frozen.outcomes.values()) == {"append"} and frozen.failures(check=False) == {}
    assert set(frozen.failures(check=True)) == set(frozen.outcomes)
    shipped = load_lock(ROOT)
    assert {key: entry.digest for key, entry in frozen.lock.items()} == {k: e.digest for k, e in shipped.items()}
    assert parse_lock(render_lock(frozen.lock)) == frozen.lock


def test_a_new_revision_is_added_and_the_old_one_stays(project):
    edit(project, SUITE, "revision: 1", "revision: 2")
    edit(project, SUITE, "include_manual: false", "include_manual: true")
    before, frozen = load_lock(project), refreeze(project)
    assert frozen.outcomes["multi-self-sync"] == "append" and list(frozen.failures(check=True)) == ["multi-self-sync"]
    assert frozen.failures(check=False) == {}
    added = frozen.lock.items() - before.items()
    assert before.items() <= frozen.lock.items() and [key for key, _ in added] == [("multi-self-sync", 2)]
    assert frozen_suite(frozen.lock, "multi-self-sync").suite.revision == 2
    assert frozen_suite(frozen.lock, "multi-self-sync", 1) == before["multi-self-sync", 1]
    assert frozen_suite(frozen.lock, "multi-self-sync").stamp == STAMP


def mission(project, number, old, new):
    edit(project, f"config/missions/multiple_module_n/mission_spec{number}.json", old, new)


def test_scenario_15_a_changed_mission_needs_a_new_revision(project):
    mission(project, 0, '"timeLimit": 300', '"timeLimit": 299')
    frozen = refreeze(project)
    assert frozen.failures(check=True) == frozen.failures(check=False)
    assert set(frozen.failures(check=True)) == {"multi-self-async", "multi-self-sync"}
    assert "raise revision" in frozen.failures(check=True)["multi-self-sync"]
    assert frozen.lock == load_lock(project)


def test_the_order_of_components_is_content(project):
    mission(project, 0, '"Keypad",\n    "Wires"', '"Wires",\n    "Keypad"')
    assert refreeze(project).outcomes["multi-self-sync"] == "digest mismatch"


def test_two_missions_of_one_key_are_refused(project):
    path = project / "config/missions/multiple_module_n"
    text = (path / "mission_spec0.json").read_text()
    (path / "copy.json").write_text(text.replace("300", "200"))
    assert refreeze(project).outcomes["multi-self-sync"] == "duplicate keys"


def test_a_key_never_gets_another_body(project):
    mission(project, 0, '"timeLimit": 300', '"timeLimit": 299')
    for name in ("multi-self-sync", "multi-self-async"):
        edit(project, f"{FOLDER}/{name}.yaml", "revision: 1", "revision: 2")
    frozen = refreeze(project)
    assert frozen.outcomes["multi-self-sync"] == "key of another mission" and frozen.failures(check=False)
    assert ("multi-self-sync", 2) not in frozen.lock
    mission(project, 0, '"seed": 110', '"seed": 111')
    assert refreeze(project).outcomes["multi-self-sync"] == "append"


def test_two_new_suites_must_agree_on_a_mission():
    suite, missions = load_suite(ROOT, "multi-self-sync")
    other = suite.model_copy(update={"name": "other"})
    changed = [m._replace(time_limit=99) for m in missions.values()]
    frozen = freeze({}, [(suite, missions.values()), (other, changed)], STAMP)
    assert frozen.outcomes == {"multi-self-sync": "append", "other": "key of another mission"}


def test_what_is_not_frozen_is_refused():
    lock = load_lock(ROOT)
    assert "found 3" in refusal(frozen_suite, lock, "multi-self-sync", 3)
    text = refusal(frozen_suite, lock, "multi-self-asinc")
    assert "did you mean 'multi-self-async'" in text and "rowproof suite freeze" in text
    assert "rowproof suite freeze" in refusal(frozen_suite, {}, "multi-self-async")


def test_no_lock_is_an_empty_one(tmp_path):
    assert load_lock(tmp_path) == {} == parse_lock(render_lock({}))


# Old text, new text, what the message says.
TAMPERED = [
    ("version = 2", "version = 1", "version must be 2, found 1"),
    ("version = 2", "", "version must be 2, found None"),
    ("version = 2", "version = 2\nversion = 2", "must be valid TOML"),
    ("version = 2", "version = 2\nowner = 1", "owner: unknown key"),
    ('git_sha = ""', 'git_sha = ""\nnote = ""', "suite.0.note: unknown key"),
    ("revision = 1\n", "revision = 2\n", "config must have its name and revision"),
    ('suite_digest = "a02', 'suite_digest = "b02', "suite_digest must be a02"),
    ('pairing_type = "with_self"', 'pairing_type = "pairwise"', "suite_digest must be"),
    ("include_manual = false", "include_manual = true", "suite_digest must be"),
    ("include_manual = false", "include_manual = 0", "defuser_protocol.include_manual"),
    ('"110|Keypad,Maze,Wires", ', "", "suite_digest must be"),
    ('"110|Keypad,Maze,Wires", ', '"110|Keypad", ', "found ['110|Keypad'] missing there"),
    ('"110|Keypad,Maze,Wires", ', '"110|Keypad,Maze,Wires", "110|Keypad,Maze,Wires", ', "sorted and unique"),
    ("seed = 110", "seed = 111", "mission_key must be that of its spec"),
    ("timeLimit = 300", "timeLimit = 301", "suite_digest must be"),
    ("timeLimit = 300", "timeLimit = -1", "timeLimit: must be 1 or more"),
    ("[mission.spec]", "[mission.spec]\ncolour = 1", "found ['colour']"),
    ("frozen_at = ", 'frozen_at = "yesterday" #', "frozen_at"),
]


@pytest.mark.parametrize(("old", "new", "message"), TAMPERED)
def test_a_tampered_lock_is_refused(project, old, new, message):
    edit(project, LOCK, old, new)
    text = refusal(load_lock, project)
    assert text.startswith(LOCK) and message in text


@pytest.mark.parametrize(("header", "message"), [("[[suite]]", "found them twice"), ("[[mission]]", "found it twice")])
def test_duplicate_entries_are_refused(project, header, message):
    text = (project / LOCK).read_text()
    parts = text.split(header)
    # Behind the last entry of its kind, so that the file stays valid TOML.
    (project / LOCK).write_text(text + header + parts[-1].split("[[mission]]")[0])
    assert message in refusal(load_lock, project)


def test_the_stamp_takes_no_part_in_comparison():
    suite, missions = load_suite(ROOT, "multi-self-sync")
    first = freeze({}, [(suite, missions.values())], STAMP).lock
    again = freeze(first, [(suite, missions.values())], STAMP.model_copy(update={"git_sha": "def"}))
    assert again.outcomes == {"multi-self-sync": "unchanged"} and again.lock == first


def test_any_mission_survives_the_file():
    odd = Mission(3, 61, ("Wires", "Wires"), 0, 1, 7, True, 0.1, 1)
    suite, _ = load_suite(ROOT, "multi-self-sync")
    lock = freeze({}, [(suite, [odd])], STAMP).lock
    assert parse_lock(render_lock(lock)) == lock
