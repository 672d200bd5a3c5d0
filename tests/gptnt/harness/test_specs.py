import csv
import io
import json
import os
import subprocess
import sys
import time

import pytest
from gptnt.harness.workbench import DEFUSER, EXPERT, SOLO, WIRES, examine, manifest, refusal, solo_spec
from helpers import ROOT
from rowproof.errors import ConfigError
from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.bomb.published import multiple_module_n
from rowproof.gptnt.spec import Spec
from rowproof.gptnt.specs import INDEX_COLUMNS, load_specs, read_spec, specs_folder, suite_specs, unite, write_specs
from rowproof.gptnt.suite_lock import frozen_suite, load_lock
from rowproof.plain_data import read_model

NAME = "single-parametric-sync[rev1]_single_module_sync_Wires_1_(defuser=test-defuser+solo--expert=None)_attempt1"
PAIR = {
    "suite_name": "multi-self-sync",
    "mission_set": "multiple_module_n",
    "mission_spec": multiple_module_n()["mission_spec6"],
    "defuser_protocol": DEFUSER,
    "expert_protocol": EXPERT,
    "expert_name": "test-expert",
}


# ---- identity --------------------------------------------------------------------------------------------------


def test_published_fingerprints():
    assert solo_spec().fingerprint == "2e5b3a88e00ee698c8d7419206e359df"
    assert solo_spec(attempt=5, defuser_name="other").fingerprint == solo_spec().fingerprint
    assert solo_spec(**PAIR).fingerprint == "1723dbec9f7f4e70875db12c9df00401"
    assert solo_spec(**PAIR | {"expert_name": "x"}).fingerprint == solo_spec(**PAIR).fingerprint


@pytest.mark.parametrize(
    "change",
    [
        {"mission_spec": WIRES._replace(time_limit=301)},
        {"mission_spec": WIRES._replace(time_step_size=1000)},
        {"mission_set": "other"},
        {"suite_name": "other"},
        {"suite_revision": 2},
        {"defuser_protocol": SOLO.model_copy(update={"include_manual": True})},
        {"defuser_protocol": SOLO.model_copy(update={"allow_magic_actions": True})},
    ],
)
def test_what_is_measured_enters_the_fingerprint(change):
    assert solo_spec(**change).fingerprint != solo_spec().fingerprint


def test_published_name():
    assert solo_spec().attempt_name == NAME


def test_flags_and_modules_of_a_name():
    mission = Mission(7, 60, ("Wires", "Maze", "Wires"), 0)
    manual = solo_spec(mission_spec=mission, defuser_protocol=SOLO.model_copy(update={"include_manual": True}))
    assert "_sync_Maze-Wires_7_(defuser=test-defuser+solo+manual--expert=None)_attempt1" in manual.attempt_name
    assert "_(defuser=test-defuser--expert=test-expert)_attempt2" in solo_spec(**PAIR, attempt=2).attempt_name


def test_a_slug_is_safe_and_unique():
    specs = examine("quickstart").specs | examine(manifest({"test-defuser": 2}, attempts_per_mission=2)).specs
    slugs = {spec.slug for spec in specs.values()}
    assert len(slugs) == len(specs) == 460
    assert all(set(slug) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") for slug in slugs)
    assert solo_spec().slug.startswith("single-parametric-sync-r1.1.Wires.test-defuser.none.a1.")


def test_a_slug_of_long_names_is_a_file_name():
    long = {"defuser_name": "d" * 60, "expert_name": "e" * 60, "suite_name": "s" * 60, "mission_set": "m" * 60}
    first, second = (solo_spec(**PAIR | long, attempt=attempt) for attempt in (1, 2))
    assert len(first.slug) < 250 and first.slug != second.slug


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"expert_name": "test-expert"}, "together or not at all"),
        ({"expert_protocol": EXPERT}, "together or not at all"),
        ({"expert_name": "test-expert", "expert_protocol": EXPERT}, "alone must have no expert"),
        ({"defuser_protocol": EXPERT}, "roles defuser and expert"),
        ({"attempt": 0}, "attempt: "),
        ({"suite_revision": 0}, "suite_revision: "),
        ({"defuser_name": "a/b"}, "defuser_name: "),
        ({"defuser_name": "a\nb"}, "defuser_name: "),
        ({"suite_name": "../x"}, "suite_name: "),
        ({"mission_spec": {"seed": 1}}, "mission_spec: "),
        ({"mission_spec": {**WIRES.wire_data(), "colour": 1}}, "found ['colour']"),
        ({"colour": 1}, "colour: unknown key"),
    ],
)
def test_a_broken_spec_is_refused(changes, message):
    data = json.loads(solo_spec().file()) | changes
    del data["fingerprint"]
    with pytest.raises(ConfigError) as caught:
        read_model(
            {key: value.model_dump() if hasattr(value, "model_dump") else value for key, value in data.items()},
            Spec,
            "x.json",
        )
    assert str(caught.value).startswith("x.json: ") and message in str(caught.value)


# ---- generation ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attempts", [1, 3])
def test_counts(attempts):
    solo = manifest(
        {"test-defuser": 2}, suites=["multi-self-sync", "single-solo-player-sync"], attempts_per_mission=attempts
    )
    assert len(examine(solo).specs) == 120 * attempts
    assert len(examine("quickstart").specs) == 440


def test_order_is_suites_then_missions_by_key_then_pairings_then_attempts():
    run = manifest({"test-expert": 2, "test-defuser": 2}, suites=["single-self-async", "single-pairwise-sync"])
    specs = list(examine(run.model_copy(update={"attempts_per_mission": 2})).specs.values())
    order = [(s.suite_name, s.mission_spec.key, s.defuser_name, s.expert_name, s.attempt) for s in specs]
    assert [suite for suite, *_ in order] == ["single-self-async"] * 440 + ["single-pairwise-sync"] * 880
    assert order[:440] == sorted(order[:440]) and order[440:] == sorted(order[440:])


def test_the_order_of_the_roster_does_not_matter_and_a_suite_counts_once():
    one = manifest({"test-expert": 2, "test-defuser": 2}, suites=["single-pairwise-sync"] * 2)
    other = manifest({"test-defuser": 2, "test-expert": 2}, suites=["single-pairwise-sync"])
    assert list(examine(one).specs.items()) == list(examine(other).specs.items())


def test_more_attempts_add_specs_and_change_none():
    one, three = (examine(manifest({"test-defuser": 2}, attempts_per_mission=attempts)).specs for attempts in (1, 3))
    assert one.items() < three.items()


def test_generation_reads_the_lock_and_not_the_live_files(project):
    expected = examine("quickstart").specs
    for path in (project / "config/suites").glob("*.yaml"):
        path.unlink()
    for path in (project / "config/missions/multiple_module_n").iterdir():
        path.unlink()
    assert examine("quickstart", project).specs == expected


def test_two_missions_may_not_share_a_name():
    twice = solo_spec(mission_spec=WIRES._replace(components=("Wires", "Wires")))
    assert twice.mission_spec.key != WIRES.key and twice.attempt_name == solo_spec().attempt_name
    assert NAME in refusal(unite, [solo_spec(), twice])
    assert len(unite([solo_spec(), solo_spec()])) == 1


# ---- files -----------------------------------------------------------------------------------------------------


def content(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_scenario_15_quickstart_is_written_byte_for_byte_the_same_in_seconds(tmp_path):
    """In two processes that differ in hash seed, locale, time zone and folder; processor time, for others run too."""
    code = (
        "import sys, time; from pathlib import Path; from gptnt.harness.workbench import examine\n"
        "from rowproof.gptnt.specs import write_specs\n"
        "start = time.process_time(); print(write_specs(Path(sys.argv[1]), examine('quickstart').specs).changed)\n"
        "print(time.process_time() - start)"
    )
    written = []
    for place, seed, locale, zone in (("a", "1", "C", "UTC"), ("b", "2", "C.UTF-8", "Asia/Tokyo")):
        environment = os.environ | {
            "PYTHONHASHSEED": seed,
            "LC_ALL": locale,
            "TZ": zone,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "workflow"), str(ROOT / "tests")]),
        }
        (tmp_path / place).mkdir()
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / place / "specs")],
            cwd=tmp_path / place,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        count, seconds = done.stdout.split()
        assert count == "440" and float(seconds) < 5
        written.append(content(tmp_path / place / "specs"))
    assert written[0] == written[1] and len(written[0]) == 440


def test_writing_and_reading_give_the_same_specs(tmp_path):
    specs = examine("quickstart").specs
    assert write_specs(tmp_path, specs) == (440, [])
    assert load_specs(tmp_path) == dict(sorted(specs.items(), key=lambda item: item[1].slug + ".json"))
    assert {spec.fingerprint for spec in load_specs(tmp_path).values()} == {s.fingerprint for s in specs.values()}


def test_writing_again_touches_no_file(tmp_path):
    specs = examine(manifest()).specs
    write_specs(tmp_path, specs)
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    time.sleep(0.01)
    assert write_specs(tmp_path, specs) == (0, [])
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == stamps


def test_stale_specs_are_removed_and_nothing_else(tmp_path):
    three = examine(manifest(attempts_per_mission=3)).specs
    one = examine(manifest()).specs
    write_specs(tmp_path, three)
    others = {"notes.txt": b"mine", "other.json": b'{"a": 1}', "broken.json": b"{"}
    for name, data in others.items():
        (tmp_path / name).write_bytes(data)
    changed, removed = write_specs(tmp_path, one)
    assert changed == 0 and len(removed) == 20
    assert content(tmp_path) == others | {f"{spec.slug}.json": spec.file() for spec in one.values()}


def test_no_specs_are_an_error_and_leave_the_folder_alone(tmp_path):
    write_specs(tmp_path, examine(manifest()).specs)
    before = content(tmp_path)
    assert "found none" in refusal(write_specs, tmp_path, {})
    assert content(tmp_path) == before


def test_files_may_be_taken_away(tmp_path):
    specs = examine(manifest()).specs
    write_specs(tmp_path, specs)
    for path in sorted(tmp_path.iterdir())[:4]:
        path.unlink()
    (tmp_path / "part").mkdir()
    moved = sorted(tmp_path.glob("*.json"))[0]
    moved.rename(tmp_path / "part" / moved.name)
    assert len(load_specs(tmp_path)) == 6 and load_specs(tmp_path).items() <= specs.items()


def test_scenario_9_no_specs_on_disk_name_the_remedy(tmp_path):
    assert "run rowproof generate first" in refusal(load_specs, tmp_path)
    assert "run rowproof generate first" in refusal(load_specs, tmp_path / "absent")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"fingerprint": "', b'"fingerprint": "0', "fingerprint must be 2e5b3a88e00ee698c8d7419206e359df"),
        (b'"timeLimit": 300', b'"timeLimit": 301', "fingerprint must be"),
        (b'"suite_revision": 1', b'"suite_revision": 2', "fingerprint must be"),
        (b'"allow_message_output": false', b'"allow_message_output": true', "opposite of is_playing_alone"),
        (b'"attempt": 1', b'"attempt": "1"', "attempt: "),
        (b'"attempt": 1', b'"attempt": 1, "attempt": 2', "'attempt' twice"),
        (b'"attempt": 1', b'"attempt": NaN', "finite"),
        (b'"attempt": 1', b'"attempt": ', "valid JSON"),
    ],
)
def test_a_tampered_file_is_refused_by_name(tmp_path, old, new, message):
    data = solo_spec().file()
    assert data.count(old) == 1
    (tmp_path / "a.json").write_bytes(data.replace(old, new))
    text = refusal(load_specs, tmp_path)
    assert str(tmp_path / "a.json") in text and message in text


@pytest.mark.parametrize("data", [b"[]", b"null", b"{}", b"5"])
def test_what_is_no_spec_is_refused(data):
    assert refusal(read_spec, data, "a.json").startswith("a.json: ")


def test_who_plays_and_which_attempt_may_be_edited():
    data = solo_spec().file().replace(b'"attempt": 1', b'"attempt": 2')
    assert read_spec(data, "a.json") == solo_spec(attempt=2)


def test_the_index_lists_every_spec(tmp_path):
    specs = examine(manifest()).specs
    write_specs(tmp_path / "a.b", specs)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a.b.index.tsv").read_text()), delimiter="\t"))
    assert tuple(rows[0]) == INDEX_COLUMNS and [row["attempt_name"] for row in rows] == list(specs)
    assert rows[0]["slug"] == next(iter(specs.values())).slug and {row["expert"] for row in rows} == {"test-defuser"}


def test_the_frozen_missions_are_those_that_are_played():
    frozen = frozen_suite(load_lock(ROOT), "single-solo-player-sync")
    specs = suite_specs(frozen, ["b", "a"])
    assert [spec.mission_spec for spec in specs[::2]] == list(frozen.missions)
    assert {spec.defuser_name for spec in specs} == {"a", "b"} and {spec.expert_name for spec in specs} == {None}


def test_the_folder_has_the_name_of_the_manifest(tmp_path):
    run = ROOT / "config/runs/quickstart.yaml"
    assert specs_folder(tmp_path, run, {}) == tmp_path / "output/experiment_specs/quickstart"
