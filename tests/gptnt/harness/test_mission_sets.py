import pytest
from gptnt.harness.workbench import refusal
from helpers import ROOT
from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.mission_sets import FOLDER, PUBLISHED, load_mission_set, mission_files
from rowproof.gptnt.suite import missions_digest

DIGESTS = {
    "multiple_module_n": "2685266a5bb1680feae7ff0ce86a83dc",
    "single_module": "a3f09ca77f2348f210efd43896fdee46",
}


def test_the_files_are_those_of_the_published_sets():
    files = (path for path in (ROOT / FOLDER).rglob("*") if path.is_file() and path.parent.name != "recipes")
    here = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in files}
    assert here == mission_files()
    assert len(here) == 120


@pytest.mark.parametrize(("name", "digest"), DIGESTS.items())
def test_the_files_have_the_published_digest(name, digest):
    missions = load_mission_set(ROOT, name)
    assert missions_digest(missions.values()) == digest
    assert missions == PUBLISHED[name]()
    assert list(missions) == sorted(missions)


def test_the_digest_minds_the_order_of_components_and_not_that_of_missions():
    first, second = Mission(1, 60, ("Wires", "Maze"), 1), Mission(2, 60, ("Wires",), 1)
    swapped = first._replace(components=("Maze", "Wires"))
    assert missions_digest([first, second]) == missions_digest([second, first])
    assert missions_digest([first, second]) != missions_digest([swapped, second])
    assert first.key == swapped.key


FILE = f"{FOLDER}/multiple_module_n/mission_spec0.json"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must be valid JSON"),
        (b"\xff", "must be UTF-8"),
        (b"[]", "a mission must be an object"),
        (b'{"seed": 1, "seed": 2}', "'seed' twice"),
        (b'{"seed": 1, "timeLimit": 81, "components": ["Wires"], "optWidgets": 2, "colour": 1}', "found ['colour']"),
        (b'{"seed": -1, "timeLimit": 81, "components": ["Wires"], "optWidgets": 2}', "seed: must be 0 or more"),
    ],
)
def test_a_broken_file_is_named(project, content, message):
    (project / FILE).write_bytes(content)
    text = refusal(load_mission_set, project, "multiple_module_n")
    assert text.startswith(FILE) and message in text


@pytest.mark.parametrize("name", ["empty", "absent"])
def test_a_set_without_missions_is_refused(project, name):
    (project / FOLDER / "empty").mkdir()
    text = refusal(load_mission_set, project, name)
    assert f"{FOLDER}/{name}" in text and "single_module" in text
