"""What of the configuration decides a row stands in its setup, and nothing that decides other rows alone."""

import shutil
import subprocess
import sys

import pytest
from helpers import ROOT
from rowproof.boards import load_board, load_config, project_reader
from rowproof.errors import ConfigError
from rowproof.families import engines
from rowproof.gptnt.grid import specs
from rowproof.gptnt.settings import pinned
from rowproof.gptnt.suite_lock import LOCK, load_lock, render_lock
from rowproof.records import digest, encode_document, encode_line

ENGINE = engines()["gptnt-v1"]
SETUPS = {
    f"{name}/{row}": board.row_setup(row)
    for name, board in load_config(ROOT)[1].items()
    if board.engine is ENGINE
    for row in board.board.rows
}
PAIRWISE = "gptnt-single-pairwise-sync/"


@pytest.fixture
def edited(project):
    """Setups of all rows after an edit of the project, as far as they differ."""

    def differing():
        read = project_reader(project)
        new = {
            path: {**old, "settings": ENGINE.settings(read, {k: v for k, v in old.items() if k != "settings"})}
            for path, old in SETUPS.items()
        }
        return {path: setup for path, setup in new.items() if digest(setup) != digest(SETUPS[path])}

    return differing


def rows_with(player):
    return {
        path
        for path, setup in SETUPS.items()
        if setup["policy"] == player or player in [(m["params"] or {}).get("player") for m in setup["members"]]
    }


def rows_of(suite):
    return {path for path in SETUPS if path.startswith(f"gptnt-{suite}/")}


def replace(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def test_nothing_edited_is_nothing_changed(edited):
    assert len(SETUPS) == 30 and edited() == {}


@pytest.mark.parametrize("player", ["scripted", "scripted-slow", "test-oracle"])
@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("script: {}", "script: test-defuser", lambda player: player["script"]),
        ("tokens_per_image: 200", "tokens_per_image: 201", lambda player: player["capabilities"]["tokens_per_image"]),
        ("input_tokens_limit: 200000", "input_tokens_limit: 1", lambda player: player["capabilities"]["usage_limits"]),
    ],
    ids=["script", "capability", "capability without fingerprint"],
)
def test_an_edited_player_changes_the_rows_in_which_it_plays(project, edited, player, old, new, what):
    replace(project / f"config/players/{player}.yaml", old.format(player), new)
    changed = edited()
    assert set(changed) == rows_with(player) and 0 < len(changed) < len(SETUPS)
    for path, setup in changed.items():
        before, after = (each["settings"]["players"] for each in (SETUPS[path], setup))
        assert what(before[player]) != what(after[player])
        assert {name for name in before if before[name] != after[name]} == {player}


def test_comments_and_names_of_a_player_change_nothing(project, edited):
    replace(project / "config/players/scripted.yaml", "display_name: scripted", "display_name: other # and more")
    assert edited() == {}


def relock(project, name, change):
    """Freeze something else under the name and revision of a suite, as if it had been frozen so."""
    lock = load_lock(project)
    frozen = change(lock[name, 1])
    lock[name, 1] = frozen._replace(digest=frozen.suite.digest(frozen.missions))
    (project / LOCK).write_bytes(render_lock(lock))


def test_a_changed_suite_changes_its_own_rows_and_is_refused(project, edited):
    protocol = {"communication_style": "sync"}

    def change(frozen):
        defuser = frozen.suite.defuser_protocol.model_copy(update=protocol)
        return frozen._replace(suite=frozen.suite.model_copy(update={"defuser_protocol": defuser}))

    relock(project, "single-self-async", change)
    changed = edited()
    assert set(changed) == rows_of("single-self-async")
    for setup in changed.values():
        with pytest.raises(ConfigError, match=r"suite single-self-async: suite_digest must be .* as the plan has it"):
            specs(setup)


def test_a_changed_mission_changes_the_rows_that_play_it_and_is_refused(project, edited):
    def change(frozen):
        missions = list(frozen.missions)
        # Another seed is another mission, so that suites with the old one keep it.
        missions[0] = missions[0]._replace(seed=10_000)
        return frozen._replace(missions=tuple(sorted(missions, key=lambda mission: mission.key)))

    relock(project, "multi-self-sync", change)
    changed = edited()
    assert set(changed) == rows_of("multi-self-sync")
    for setup in changed.values():
        with pytest.raises(ConfigError, match=r"suite_digest must be .* as the plan has it"):
            specs(setup)


def test_a_live_suite_may_move_on(project, edited):
    replace(project / "config/suites/single-self-async.yaml", "revision: 1", "revision: 2")
    (project / "config/missions/multiple_module_n/mission_spec0.json").unlink()
    assert edited() == {}


@pytest.mark.parametrize(
    ("file", "named"),
    [("config/players/scripted.yaml", "config/players/scripted.yaml: must be a readable file"), (LOCK, LOCK)],
)
def test_a_missing_file_is_named(project, edited, file, named):
    (project / file).unlink()
    with pytest.raises(ConfigError, match=named):
        edited()


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"policy": "gpt-5-2"}, "must follow a script to play for a board, found a model"),
        ({"policy": "../players/scripted"}, "must be the name of a file in config/players"),
        ({"policy": "nobody-knows"}, "config/players/nobody-knows.yaml: must be a readable file"),
        ({"cell": {"suite": "no-such-suite", "revision": 1}}, "a frozen suite must be one of"),
        ({"cell": {"suite": "single-self-async", "revision": 2}}, "revision must be one of the frozen"),
    ],
)
def test_what_no_row_can_have_is_refused(changes, named):
    with pytest.raises(ConfigError, match=named):
        ENGINE.settings(project_reader(ROOT), {**SETUPS[PAIRWISE + "scripted"], **changes})


def test_settings_of_a_commit_are_read_like_those_of_today(tmp_path):
    shutil.copytree(ROOT / "config", tmp_path / "config")
    board = load_board(ROOT, "gptnt-multi-self-async")
    replace(tmp_path / "config/players/scripted.yaml", "script: scripted", "script: scripted-slow")
    assert board.row_setup("scripted") != board.row_setup("scripted", project_reader(tmp_path))
    assert board.row_setup("scripted-slow") == board.row_setup("scripted-slow", project_reader(tmp_path))


def test_each_player_and_the_suite_can_be_pinned(project):
    pins = {path: pinned(setup["settings"]) for path, setup in SETUPS.items()}
    assert set(pins["gptnt-multi-self-sync/scripted"]) == {"suites/multi-self-sync", "players/scripted"}
    assert all(len(pin) == 64 for own in pins.values() for pin in own.values())
    # One name stands for one content, whatever row it is taken from.
    pairs = {pair for own in pins.values() for pair in own.items()}
    assert len(pairs) == len(dict(pairs)) == 8 + 9
    replace(project / "config/players/scripted.yaml", "script: scripted", "script: scripted-slow")
    other = pinned(ENGINE.settings(project_reader(project), SETUPS["gptnt-multi-self-sync/scripted"]))
    assert {name for name, pin in other.items() if pins["gptnt-multi-self-sync/scripted"][name] != pin} == {
        "players/scripted"
    }


def test_setups_are_plain_and_small():
    for setup in SETUPS.values():
        # Specs and simulation hold one each.
        assert len(encode_document(setup)) < 50_000


# What is opened while games are played, beside code.
WATCHED = """
import json, os, sys
opened, root = [], os.environ["PROJECT"]
def watch(event, arguments):
    if event in ("open", "os.listdir", "os.scandir") and isinstance(arguments[0], (str, bytes)):
        opened.append(os.path.abspath(os.fsdecode(arguments[0])))
setup = json.loads(sys.stdin.read())
sys.addaudithook(watch)
from rowproof.gptnt.evaluation import simulate
from rowproof.gptnt.grid import specs
units = specs(setup)
assert list(simulate(setup, units[:2]))
own = (os.path.relpath(path, root) for path in opened if path.startswith(root + os.sep))
print(json.dumps(sorted({path for path in own if not path.startswith(("workflow", ".venv"))})))
"""


@pytest.mark.parametrize("path", [PAIRWISE + "scripted-careless", "gptnt-reference-lottery-sync/test-random"])
def test_games_open_the_manual_and_no_other_file_of_the_project(path):
    setup = SETUPS[path]
    run = subprocess.run(
        [sys.executable, "-c", WATCHED],
        input=encode_line(setup),
        env={"PYTHONPATH": str(ROOT / "workflow"), "PROJECT": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    pages = ENGINE.data_files("simulate", setup)
    assert len(pages) == 20 and all((ROOT / page).is_file() for page in pages)
    assert run.stdout.strip() == encode_line(["resources/gptnt/manual", *sorted(pages)]).replace(",", ", ")
    assert ENGINE.data_files("specs", setup) == ()
