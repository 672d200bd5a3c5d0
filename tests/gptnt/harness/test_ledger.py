"""What counts as done, told by files of records."""

import os

import pytest
from gptnt.players.workbench import MANUAL, Puppet, seat
from gptnt.recordings.workbench import PROVENANCE, crash, played, without_expert_steps
from rowproof.gptnt.ledger import plan_cleanup, read_ledger, run_cleanup, run_status, status_for
from rowproof.gptnt.recordings import encode_recording, write_game
from rowproof.gptnt.room import play
from rowproof.gptnt.specs import read_spec
from rowproof.records import encode_line

GAME = played()


def spec_of(game):
    return read_spec(encode_line(game.records["defuser"]["footer"]["descriptor"]["experiment_spec"]).encode(), "spec")


def specs_of(*games):
    return {spec.attempt_name: spec for spec in map(spec_of, games)}


SPECS = specs_of(GAME, played(attempt=2), played(attempt=3), played(attempt=4))
NAMES = list(SPECS)


@pytest.fixture(scope="module")
def setup(tmp_path_factory):
    """The capability fingerprints of the players."""
    folder = tmp_path_factory.mktemp("setup")
    write_game(GAME, folder)
    return {"scripted": read_ledger(folder).sessions[0].content.defuser_fingerprint}


def test_nothing_was_played(tmp_path, setup):
    for folder in (tmp_path, tmp_path / "none"):
        assert status_for(SPECS, setup, read_ledger(folder)) == dict.fromkeys(NAMES, "not_attempted")


def test_the_status_of_each_spec(tmp_path, setup):
    write_game(GAME, tmp_path)
    write_game(played(attempt=2, expert=Puppet(crash)), tmp_path)
    found = status_for(SPECS, setup, read_ledger(tmp_path), running=[NAMES[3], "another run"])
    assert list(found.items()) == [
        (NAMES[2], "not_attempted"),
        (NAMES[0], "done"),
        (NAMES[1], "failed"),
        (NAMES[3], "running"),
    ]


def test_a_lost_game_is_done_and_one_without_a_decision_is_not(tmp_path, setup):
    timeout = played(defuser=Puppet())
    assert timeout.summary["outcome"] == "timeout"
    write_game(timeout, tmp_path)
    assert status_for(specs_of(GAME), setup, read_ledger(tmp_path)) == {NAMES[0]: "done"}


@pytest.mark.parametrize("order", [1, -1])
def test_a_crashed_and_a_good_session_of_one_attempt(tmp_path, setup, order):
    for name, game in [("a", GAME), ("b", played(expert=Puppet(crash)))]:
        write_game(game, tmp_path / f"run{'ab'[::order].index(name)}")
    ledger = read_ledger(tmp_path)
    assert [session.is_valid for session in ledger.sessions] == [False, True]
    assert status_for(specs_of(GAME), setup, ledger) == {NAMES[0]: "done"}
    assert ledger.newest()[NAMES[0]].is_valid


def test_the_newest_valid_session(tmp_path):
    for start, folder in ((5.0, "b"), (9.0, "a"), (1.0, "c")):
        game = played()
        for record in game.records.values():
            record["footer"]["descriptor"]["start_time"] = start
        write_game(game, tmp_path / folder)
    newest = read_ledger(tmp_path).newest()
    assert newest[NAMES[0]].defuser.footer.descriptor.start_time == 9.0


def test_another_setup_of_a_player_is_another_content(tmp_path, setup):
    write_game(GAME, tmp_path)
    ledger = read_ledger(tmp_path)
    assert status_for(specs_of(GAME), {"scripted": "other"}, ledger) == {NAMES[0]: "not_attempted"}
    assert ledger.progress(specs_of(GAME), {"scripted": "other"}).outdated == NAMES[:1]


def test_another_state_of_the_mission_is_another_content(tmp_path, setup):
    write_game(GAME, tmp_path)
    spec = SPECS[NAMES[0]]
    changed = spec.model_copy(update={"mission_spec": spec.mission_spec._replace(time_limit=90)})
    assert status_for({NAMES[0]: changed}, setup, read_ledger(tmp_path)) == {NAMES[0]: "not_attempted"}


def test_records_of_an_expert_alone_do_not_count(tmp_path, setup):
    defuser, expert = write_game(GAME, tmp_path)
    defuser.unlink()
    ledger = read_ledger(tmp_path)
    assert list(ledger.problems) == [expert] and status_for(specs_of(GAME), setup, ledger)[NAMES[0]] == "not_attempted"


@pytest.mark.parametrize("damage", [None, b"", b"PAR1"])
def test_a_game_whose_expert_record_is_lost_or_damaged_is_not_done(tmp_path, setup, damage):
    defuser, expert = write_game(GAME, tmp_path)
    whole = expert.read_bytes()
    expert.unlink() if damage is None else expert.write_bytes(damage)
    ledger = read_ledger(tmp_path)
    assert status_for(specs_of(GAME), setup, ledger) == {NAMES[0]: "failed"}
    assert "must come with the record of the expert" in ledger.problems[defuser]
    assert (expert in ledger.problems) is (damage is not None)
    # Cleaning up leaves it: the other record may still turn up.
    assert plan_cleanup(tmp_path) == ([], [])
    write_game(GAME, tmp_path / "again")
    assert status_for(specs_of(GAME), setup, read_ledger(tmp_path)) == {NAMES[0]: "done"}
    (tmp_path / "again" / expert.name).unlink()
    expert.write_bytes(whole)
    assert status_for(specs_of(GAME), setup, read_ledger(tmp_path)) == {NAMES[0]: "done"}


def test_an_expert_that_took_no_steps_is_rightly_absent(tmp_path, setup):
    game = without_expert_steps()
    write_game(game, tmp_path)
    ledger = read_ledger(tmp_path)
    assert status_for(specs_of(game), setup, ledger) == {NAMES[0]: "done"} and ledger.problems == {}


def test_usage_limits_are_no_other_setup(tmp_path, setup):
    request = GAME.records["defuser"]["footer"]["descriptor"]["experiment_spec"]
    limited = seat("scripted", player_type="ai", usage_limits={"request_limit": 3})
    write_game(play(request, limited, limited, MANUAL, PROVENANCE), tmp_path)
    assert status_for(specs_of(GAME), setup, read_ledger(tmp_path)) == {NAMES[0]: "done"}


def test_the_command(tmp_path, setup):
    write_game(GAME, tmp_path)
    (tmp_path / "experiment-x.parquet").write_bytes(b"")
    lines = []
    assert run_status(SPECS, setup, read_ledger(tmp_path), show=lines.append) == 0
    assert lines[:4] == [f"not_attempted  {name}" for name in NAMES[1:]] + [f"done           {NAMES[0]}"]
    assert lines[4] == "3 not attempted, 1 done, 0 failed, 0 running"
    assert lines[5].startswith("not counted: ") and len(lines) == 6
    lines.clear()
    run_status(SPECS, {"scripted": "other"}, read_ledger(tmp_path), show=lines.append)
    assert "1 were played in full with another state" in lines[5]


# ---- cleaning up -----------------------------------------------------------------------------------------------


@pytest.fixture
def littered(tmp_path):
    """Records of a good and a crashed game, a damaged one, and temporary files of long ago and of now."""
    write_game(GAME, tmp_path / "good")
    write_game(played(attempt=2, expert=Puppet(crash)), tmp_path / "crashed")
    (tmp_path / "experiment-damaged.parquet").write_bytes(b"x")
    for name in (".experiment-a.parquet.k2j3.tmp", "experiment-b.parquet.tmp", ".experiment-new.parquet.x.tmp"):
        (tmp_path / name).write_bytes(b"x")
        if "new" not in name:
            os.utime(tmp_path / name, (0, 0))
    return tmp_path


def test_a_preview_removes_nothing(littered):
    before = sorted(littered.rglob("*"))
    plan = plan_cleanup(littered)
    assert plan.invalid == sorted((littered / "crashed").iterdir()) and len(plan.invalid) == 2
    assert [path.name for path in plan.orphans] == [".experiment-a.parquet.k2j3.tmp", "experiment-b.parquet.tmp"]
    lines = []
    assert run_cleanup(littered, show=lines.append) == 0
    assert sorted(littered.rglob("*")) == before and lines[-1] == "4 files would be removed: add --execute"


def test_only_what_was_shown_is_removed(littered):
    lines = []
    assert run_cleanup(littered, execute=True, show=lines.append) == 0
    left = sorted(path.name for path in littered.rglob("*") if path.is_file())
    kept = sorted(path.name for path in (littered / "good").iterdir())
    assert left == sorted([".experiment-new.parquet.x.tmp", "experiment-damaged.parquet", *kept])
    assert lines[-1] == "4 files removed" and plan_cleanup(littered) == ([], [])


def test_encoded_records_do_not_depend_on_the_folder(tmp_path):
    paths = write_game(GAME, tmp_path / "a" / "b")
    assert paths[0].read_bytes() == encode_recording(GAME.records["defuser"], "elsewhere")
