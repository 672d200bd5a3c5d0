"""The commands, from a run's manifest to the page that shows it."""

import json
import os
import subprocess
import sys

import pytest
from gptnt.harness.workbench import edit
from helpers import ROOT
from rowproof.gptnt.recordings import read_recording, recording_paths

RUN = """
spec_version: 2
suites: [multi-self-sync]
rooms: 2
players:
  - {player: scripted, count: 4}
"""


@pytest.fixture
def call(command, project):
    """The command line of a project with a small run."""
    (project / "config/runs/small.yaml").write_text(RUN)
    return command


@pytest.fixture
def played(call, project):
    assert call("run", "runs/small.yaml")[0] == 0
    return project / "output"


def test_a_run_writes_its_specs_plays_them_and_tells_where(call, project):
    code, out, err = call("run", "runs/small.yaml")
    assert code == 0 and "games    10 to play, 0 done before" in out and "10 solved; 0 left" in out
    assert "10/10 games" in err
    assert len(list((project / "output/experiment_specs/small").glob("*.json"))) == 10
    assert len(recording_paths(project / "output")) == 20


def test_what_is_done_is_not_played_again(call, played):
    assert call("run", "runs/small.yaml") == (0, "all 10 games of small.yaml are done\n", "")
    assert "10 done" in call("status", "runs/small.yaml")[1]


def test_only_what_is_missing_is_played(call, played):
    next(path for path in recording_paths(played) if read_recording(path).footer.role == "defuser").unlink()
    code, out, _ = call("run", "runs/small.yaml")
    assert code == 0 and "games    1 to play, 9 done before" in out


def test_an_emptied_folder_of_specs_is_told_before_anything(call, project):
    (project / "output/experiment_specs/small").mkdir(parents=True)
    code, out, err = call("run", "runs/small.yaml")
    assert code == 2 and out == "" and "rowproof generate" in err


def test_specs_that_were_taken_away_stay_away(call, project):
    assert call("generate", "runs/small.yaml")[0] == 0
    for path in sorted((project / "output/experiment_specs/small").glob("*.json"))[3:]:
        path.unlink()
    assert "games    3 to play" in call("run", "runs/small.yaml")[1]


def test_two_generations_are_the_same_files(call, project):
    call("generate", "runs/small.yaml")
    folder = project / "output/experiment_specs/small"
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    assert call("generate", "runs/small.yaml")[1].startswith("10 specs in")
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before


def test_a_failed_check_stops_a_run_unless_it_is_forced(call, project):
    edit(project, "config/runs/small.yaml", "rooms: 2", "rooms: 3")
    code, _, err = call("run", "runs/small.yaml")
    assert code == 2 and "Capacity" in err and not (project / "output/logs").exists()
    assert call("run", "--force", "runs/small.yaml")[0] == 0


def test_what_can_never_be_played_cannot_be_forced(call, project):
    edit(project, "config/runs/small.yaml", "count: 4", "count: 1")
    for force in ([], ["--force"]):
        code, _, err = call("run", *force, "runs/small.yaml")
        assert code == 2 and "Satisfiable" in err


def test_a_suite_without_its_player_cannot_be_forced(call, project):
    call("generate", "runs/small.yaml")
    edit(project, "config/runs/small.yaml", "player: scripted,", "player: scripted-slow,")
    code, _, err = call("run", "--force", "runs/small.yaml")
    assert code == 2 and "no roster entry is it" in err


def test_wandb_is_refused_with_what_to_do(call, project):
    edit(project, "config/runs/small.yaml", "rooms: 2", "rooms: 2\nsource: wandb")
    code, _, err = call("run", "runs/small.yaml")
    assert code == 2 and "ROWPROOF_WANDB_FOLDER unset" in err and "source: local" in err
    code, out, _ = call("doctor", "runs/small.yaml")
    assert code == 1 and "FAIL Resume: source: wandb must have a folder in place of an account" in out
    assert not (project / "output").exists()


def test_a_folder_stands_in_for_wandb(call, project, monkeypatch):
    monkeypatch.setenv("ROWPROOF_WANDB_FOLDER", str(project / "store"))
    assert call("run", "runs/small.yaml")[0] == 0 and not (project / "store").exists()
    edit(project, "config/runs/small.yaml", "rooms: 2", "rooms: 2\nsource: wandb")
    assert "10 not attempted, 0 done" in call("status", "runs/small.yaml")[1], "local records are no runs there"
    assert "10 to play" in call("run", "runs/small.yaml")[1]
    assert len(list((project / "store").iterdir())) == 20 == len(recording_paths(project / "output")) // 2
    assert call("run", "runs/small.yaml") == (0, "all 10 games of small.yaml are done\n", "")
    assert "10 of 10 done according to wandb" in call("doctor", "runs/small.yaml")[1]
    code, out, _ = call("reconcile-wandb", "--execute")
    assert code == 0 and out == "0 runs tagged old, 0 records removed\n"


def test_the_doctor_tells_and_its_exit_code_agrees(call, project):
    code, out, _ = call("doctor", "runs/small.yaml")
    assert code == 0 and out.endswith("nothing is in the way\n") and "0 of 10 done" in out
    report = json.loads(call("doctor", "--json", "runs/small.yaml")[1])
    assert report["failed"] is False
    edit(project, "config/runs/small.yaml", "rooms: 2", "rooms: 9")
    code, out, _ = call("doctor", "runs/small.yaml")
    assert code == 1 and "FAIL Capacity" in out


def test_all_players_are_checked_without_a_manifest(call):
    code, out, _ = call("doctor")
    assert code == 1 and "OPENAI_API_KEY" in out, "keys of models are not set here"


def test_unknown_manifests_are_named(call):
    code, _, err = call("run", "runs/nowhere.yaml")
    assert code == 2 and "quickstart.yaml" in err


def test_from_recordings_to_database_results_and_page(call, played, project):
    assert call("build-db")[0] == 0
    code, out, _ = call("results")
    assert code == 0 and "defuse rate" in out and "1.000" in out
    found = json.loads(call("results", "--json")[1])
    assert len(found["runs"]) == 10 and not found["invalid"]
    assert call("analyse")[0] == 0
    page = (project / "output/analysis.html").read_text()
    assert page.startswith("<!doctype html>") or page.startswith("<!DOCTYPE html>")
    code, out, _ = call(
        "submission", "build", "--suite", "multi-self-sync", "--submitter.name", "Ann", "--date", "2026-01-31"
    )
    assert code == 0 and out.strip()
    code, out, _ = call("submission", "validate")
    assert code == 1 and "contact" in out, "a bundle without contact must not pass"


def test_a_missing_database_is_told_with_what_to_do(call):
    code, _, err = call("results")
    assert code == 2 and "build-db" in err


def test_static_tasks_tell_first_and_ask_on_request(call, project):
    code, out, _ = call("statics", "expert-vqa", "--player", "oracle", "--limit-instances", "3")
    assert code == 0 and "expert-vqa" in out and not (project / "output/statics").exists()
    assert call("statics", "expert-vqa", "--model", "oracle", "--limit-instances", "3", "--throw")[0] == 0
    (metrics,) = (project / "output/statics").rglob("metrics.json")
    assert json.loads(metrics.read_text())


def test_a_model_without_its_key_is_refused_before_anything(call):
    code, _, err = call("statics", "expert-vqa", "--player", "gpt-5-2", "--throw")
    assert code == 2 and "OPENAI_API_KEY" in err


def test_new_files_and_lists(call, project):
    assert call("new", "player", "mine")[0] == 0 and (project / "config/players/mine.yaml").is_file()
    code, _, err = call("new", "player", "mine")
    assert code == 2 and "must not be there yet" in err
    assert "multi-self-sync" in call("list", "suites")[1] and "openai" in call("list", "players")[1]


def test_suites_are_frozen_as_they_are(call, project):
    assert call("suite", "freeze", "--check")[0] == 0
    mission = next((project / "config/missions/single_module").glob("Wires-*.json"))
    text = mission.read_text()
    mission.write_text(text.replace('"timeLimit": ', '"timeLimit": 9', 1))
    code, out, _ = call("suite", "freeze", "--check")
    assert code == 1 and "raise revision" in out


def test_cleaning_up_shows_first(call, played):
    assert "0 files would be removed" in call("cleanup-outputs")[1]


def test_record_and_replay_exclude_each_other(call):
    code, _, err = call("run", "--record", "a", "--replay", "b", "runs/small.yaml")
    assert code == 2 and "choose one" in err


def test_a_command_without_its_extra_says_how_to_install_it(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.delitem(sys.modules, "rowproof.gptnt.database", raising=False)
    code, _, err = call("build-db")
    assert code == 2 and "duckdb" in err and "[play]" in err


PACKAGES = ("duckdb", "json_repair", "msgpack", "openai", "pyarrow", "zstandard", "PIL")


def test_the_doctor_of_a_base_install_checks_what_can_be_checked():
    code = f"import sys; sys.modules.update(dict.fromkeys({PACKAGES})); from rowproof.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "doctor", "config/runs/quickstart.yaml"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")
    assert "FAIL Packages: not installed: msgpack, pyarrow, zstandard, duckdb, json_repair, openai, PIL" in done.stdout
    assert "pip install -e '.[play]'" in done.stdout and "ok   Roster coverage" in done.stdout
    assert "warn Resume: local could not tell what is done" in done.stdout and "Disk space" in done.stdout


def test_a_model_without_its_client_is_not_ready(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    code, out, _ = call("doctor")
    assert code == 1 and "gpt-5-2: ok FAIL skip" in out and "not installed: openai" in out
    assert "scripted: ok ok skip" in out and "warn Packages: not installed: openai" in out


@pytest.mark.parametrize("what", ["generate", "doctor"])
def test_what_plays_nothing_needs_no_extra(what, tmp_path):
    absent = ("httpx2", "json_repair", "openai") + (() if what == "doctor" else ("duckdb", "msgpack", "pyarrow"))
    code = f"import sys; sys.modules.update(dict.fromkeys({absent})); from rowproof.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, what, "config/runs/quickstart.yaml"]
    environment = {**os.environ, "EXPERIMENT_SPECS_DIR": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
