"""The folder in place of a W&B project: what it says is done, and that cleaning up takes nothing that counts."""

import json
import os
from datetime import UTC, datetime, timedelta

import pytest
from gptnt.harness.workbench import refusal
from gptnt.players.workbench import Puppet
from gptnt.recordings.workbench import crash, played, without_expert_steps
from rowproof.gptnt.ledger import read_ledger, status_for
from rowproof.gptnt.recordings import read_recording, write_game
from rowproof.gptnt.run_store import (
    OLD,
    RunStore,
    StoredRun,
    open_store,
    plan_reconciliation,
    read_store,
    run_reconcile,
    sessions_of,
)
from rowproof.gptnt.specs import read_spec
from rowproof.records import encode_line

THEN = datetime(2026, 1, 31, 12, tzinfo=UTC)
NOW = THEN + timedelta(hours=1)
GAME, CRASHED = played(), played(expert=Puppet(crash))
LOST = played(attempt=2, defuser=Puppet())


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "store")


@pytest.fixture
def put(store, tmp_path):
    """Records a game and mirrors it: its runs."""

    def put(game, folder="records", after_s=0):
        paths = write_game(game, tmp_path / folder)
        for path in paths:
            os.utime(path, (THEN.timestamp(), THEN.timestamp()))
        return [store.mirror(read_recording(path), THEN + timedelta(seconds=after_s)) for path in paths]

    return put


def spec_of(game):
    return read_spec(encode_line(game.records["defuser"]["footer"]["descriptor"]["experiment_spec"]).encode(), "spec")


SPECS = {spec.attempt_name: spec for spec in map(spec_of, (GAME, LOST))}
ONE, TWO = SPECS


def statuses(store, **changes):
    known = {run.config.get("defuser_capability_fingerprint", "") for run in store.runs()}
    ledger = read_store(store)
    return status_for(SPECS, {"scripted": max(known, default="")} | changes, ledger, ledger.running)


def change(store, run, **changes):
    store.add(run.model_copy(update=changes))


def planned(store, tmp_path, **settings):
    plan = plan_reconciliation(store, tmp_path / "records", NOW, **settings)
    return {run.id: reason for run, reason in plan.tags}, [path for path, _ in plan.files]


# ---- what is kept ----------------------------------------------------------------------------------------------


def test_a_run_holds_who_played_what_and_how_it_ended(store, put):
    defuser, expert = put(GAME)
    assert defuser.state == "finished" and defuser.created_at == "2026-01-31T12:00:00+00:00" and defuser.tags == []
    assert defuser.config["attempt_name"] == ONE and defuser.config["experiment_name"] == ONE.removesuffix("_attempt1")
    outcome = {"is_solved": True, "is_strike_out": False, "is_timed_out": False, "is_hard_crash": False}
    assert defuser.summary.items() >= (outcome | {"outcome": "solved", "strike_count": 0}).items()
    assert "outcome" not in expert.summary and expert.summary["is_hard_crash"] is False
    steps = GAME.records["defuser"]["steps"]
    assert [step["output"] for step in defuser.summary["steps"]] == [step["output"] for step in steps]
    assert not {"new_messages", "input_messages", "observation"} & set(defuser.summary["steps"][0])
    assert store.runs() == sorted((defuser, expert), key=lambda run: run.id)


def test_queries_by_state_tag_and_name(store, put):
    good = put(GAME)
    broken = put(CRASHED, "crashed")
    put(LOST)
    assert {run.state for run in broken} == {"failed"}
    assert len(store.runs()) == 6 and len(store.runs(states=("finished",))) == 4
    assert len(store.runs(attempt_names=(TWO,))) == 2
    store.tag(good[0], OLD)
    store.tag(good[0], OLD)
    assert len(store.runs(without_tags=(OLD,))) == 5 and len(store.runs()) == 6


def test_the_same_game_once_more_is_the_same_runs(store, put):
    put(GAME)
    put(GAME, "again")
    assert len(store.runs()) == 2


def test_the_folder_is_named_by_the_environment(tmp_path):
    assert open_store({"ROWPROOF_WANDB_FOLDER": str(tmp_path)}).folder == tmp_path
    assert "set it, or set source: local" in refusal(open_store, {})


# ---- what is done ----------------------------------------------------------------------------------------------


def test_done_failed_running_and_not_attempted(store, put):
    assert set(statuses(store).values()) == {"not_attempted"}
    (defuser, _) = put(LOST)
    assert statuses(store) == {TWO: "done", ONE: "not_attempted"}
    put(CRASHED)
    assert statuses(store)[ONE] == "failed"
    put(GAME, after_s=1)
    assert statuses(store) == {ONE: "done", TWO: "done"}
    change(store, defuser, state="running")
    assert statuses(store)[TWO] == "running"


def test_store_and_records_agree(store, put, tmp_path):
    put(CRASHED, "records/crashed")
    put(GAME)
    put(LOST)
    fingerprints = {"scripted": store.runs()[0].config["defuser_capability_fingerprint"]}
    local = status_for(SPECS, fingerprints, read_ledger(tmp_path / "records"))
    assert local == statuses(store)
    assert statuses(store, scripted="other") == dict.fromkeys(SPECS, "not_attempted")


@pytest.mark.parametrize("flag", ["is_solved", "is_timed_out", "is_strike_out", "is_hard_crash"])
def test_all_flags_of_a_defuser_are_required(store, put, flag):
    defuser, _ = put(GAME)
    change(store, defuser, summary={key: value for key, value in defuser.summary.items() if key != flag})
    assert statuses(store)[ONE] == "failed"


@pytest.mark.parametrize(
    "changes",
    [{"state": "crashed"}, {"summary": {"is_hard_crash": True}}, {"tags": [OLD]}, {"config": {"role": "expert"}}],
)
def test_an_expert_that_does_not_count_takes_the_session_with_it(store, put, changes):
    _, expert = put(GAME)
    change(store, expert, **changes)
    assert statuses(store)[ONE] == "failed"


def test_an_expert_without_steps_has_no_run(store, put):
    (run,) = put(without_expert_steps())
    assert sessions_of([run])[0].is_whole and sessions_of([run])[0].is_valid


@pytest.mark.parametrize("content", ["", "[]", '{"id": 1}', None])
def test_what_is_no_run_is_told_and_hides_no_other(store, put, content):
    run, _ = put(GAME)
    path = store.folder / "broken.json"
    path.write_text(json.dumps(run.model_dump() | {"created_at": "yesterday"}) if content is None else content)
    assert statuses(store)[ONE] == "done"
    assert list(read_store(store).problems) == [path]


def test_reading_changes_nothing(store, put):
    put(CRASHED)
    before = {path: path.read_bytes() for path in store.folder.iterdir()}
    statuses(store)
    assert {path: path.read_bytes() for path in store.folder.iterdir()} == before


# ---- cleaning up -----------------------------------------------------------------------------------------------


def test_what_counts_stays(store, put, tmp_path):
    put(GAME)
    put(LOST)
    assert planned(store, tmp_path) == ({}, [])


def test_a_session_that_lacks_a_run_becomes_old_and_its_records_go(store, put, tmp_path):
    defuser, expert = put(GAME)
    (store.folder / f"{expert.id}.json").unlink()
    tags, files = planned(store, tmp_path)
    assert tags == {defuser.id: "its session lacks a run"} and len(files) == 2


def test_a_young_session_is_left_alone(store, put, tmp_path):
    defuser, expert = put(GAME, after_s=3600 - 599)
    (store.folder / f"{expert.id}.json").unlink()
    assert planned(store, tmp_path)[0] == {}
    change(store, defuser, created_at="2026-01-31T12:00:00+00:00", state="running")
    assert planned(store, tmp_path)[0] == {}


@pytest.mark.parametrize("crash_after_s", [-5, 5])
def test_of_two_sessions_the_valid_one_stays_whichever_is_newer(store, put, tmp_path, crash_after_s):
    good = put(GAME)
    broken = put(CRASHED, "records/crashed", after_s=crash_after_s)
    tags, files = planned(store, tmp_path)
    assert tags == {run.id: "there is a newer session" for run in broken} and not set(tags) & {r.id for r in good}
    assert files == [], "both goes have the same ids, and a valid run has them"


def test_a_game_without_a_decision_becomes_old(store, put, tmp_path):
    defuser, _ = put(GAME)
    change(store, defuser, summary=defuser.summary | {"is_solved": False})
    tags, files = planned(store, tmp_path)
    assert set(tags.values()) == {"its game ended without a decision"} and len(tags) == 2 == len(files)


def test_runs_whose_record_is_not_here(store, put, tmp_path):
    put(GAME, "elsewhere")
    put(LOST)
    tags, files = planned(store, tmp_path)
    assert set(tags.values()) == {"its record is not here"} and len(tags) == 2 and files == []
    assert planned(store, tmp_path, mark_missing=False) == ({}, [])


def test_records_without_a_run_go_unless_they_are_new(store, put, tmp_path):
    put(LOST)
    paths = write_game(GAME, tmp_path / "records")
    for path in paths:
        os.utime(path, (NOW.timestamp() - 599, NOW.timestamp() - 599))
    assert planned(store, tmp_path) == ({}, [])
    for path in paths:
        os.utime(path, (THEN.timestamp(), THEN.timestamp()))
    assert planned(store, tmp_path)[1] == sorted(paths)


def test_players_for_tests_are_left_alone_unless_asked(store, put, tmp_path):
    defuser, expert = put(played(expert_name="test-expert", expert=Puppet()))
    (store.folder / f"{expert.id}.json").unlink()
    assert planned(store, tmp_path) == ({}, [])
    tags, files = planned(store, tmp_path, include_dummies=True)
    assert list(tags) == [defuser.id] and len(files) == 2


def test_nothing_is_done_unless_it_is_executed(store, put, tmp_path):
    defuser, expert = put(GAME)
    (store.folder / f"{expert.id}.json").unlink()
    (store.folder / "broken.json").write_text("")
    for execute in (False, True):
        lines = []
        before = sorted(tmp_path.rglob("*"))
        assert run_reconcile(store, tmp_path / "records", execute, show=lines.append) == 0
        assert lines[0] == f"old: {defuser.id} ({ONE}): its session lacks a run" and "left alone: " in lines[3]
        assert lines[-1].startswith("1 runs tagged old, 2 records removed") and execute is not ("add" in lines[-1])
        assert (sorted(tmp_path.rglob("*")) == before) is not execute
        assert [run.tags for run in store.runs()] == ([[OLD]] if execute else [[]])
    assert isinstance(store.runs()[0], StoredRun)
