"""Whole stories that the harness must get right, from the game to the files and the database."""

import io
import json
import os
import signal

import pytest
from gptnt.players.workbench import WIRES, Puppet, seat, spec
from gptnt.recordings.workbench import content, played
from rowproof.gptnt import room, session
from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.database import build_db
from rowproof.gptnt.ledger import read_ledger
from rowproof.gptnt.players.scripts import player_for
from rowproof.gptnt.players.turns import MAGIC, interact_game
from rowproof.gptnt.recordings import read_recording, recording_paths, write_game
from rowproof.gptnt.room import Provenance
from rowproof.gptnt.session import Runner
from rowproof.gptnt.specs import read_spec
from rowproof.records import encode_line

TWO = Mission(851, 300, ("Wires", "Keypad"), 5, force_modules_to_front=True)
RUN = "spec_version: 2\nsuites: [multi-self-sync]\nrooms: 1\nplayers: [{player: scripted, count: 2}]\n"


@pytest.fixture
def bombs(monkeypatch):
    """The bombs of the games of a test, for puppets that reach for them."""
    built, build = [], room.build
    monkeypatch.setattr(room, "build", lambda mission: built.append(build(mission)) or built[-1])
    return built


@pytest.fixture
def call(command, project):
    """The command line of a project with a small run."""
    (project / "config/runs/small.yaml").write_text(RUN)
    return command


def through_files(game, folder):
    """The session of a game as the files tell it, and its row and steps in a database."""
    write_game(game, folder / "records")
    (found,) = read_ledger(folder / "records").sessions
    build_db(folder / "records", folder / "games.duckdb")
    ((row, steps),) = content(folder / "games.duckdb")
    return found, row, steps


def test_scenario_01_two_players_solve_a_bomb(tmp_path):
    found, row, steps = through_files(played(), tmp_path)
    assert [one.footer.role for one in found.recordings] == ["defuser", "expert"] and found.is_valid
    assert found.expert.footer.final_bomb_state is None and found.defuser.footer.final_bomb_state["isSolved"]
    assert (row["outcome"], row["is_solved"], row["is_hard_crash"]) == ("solved", True, False)
    assert any(step["role"] == "defuser" and step["output_kind"] == "game_action" for step in steps)


def strike(bomb):
    bomb.strikes += ["Wires"] * bomb.mission.num_strikes_allowed


def out_of_time(bomb):
    bomb.advance(bomb.clock.ms_to_zero)


ENDS = {
    "detonated": (lambda bomb: bomb.detonate(), "detonated", False),
    "time is up": (out_of_time, "timeout", True),
    "strikes": (lambda bomb: (strike(bomb), bomb.detonate()), "strikeout", True),
    "both": (lambda bomb: (strike(bomb), out_of_time(bomb)), "timeout", True),
}


@pytest.mark.parametrize("name", ENDS)
def test_scenario_02_how_a_bomb_explodes(tmp_path, bombs, name):
    end, outcome, valid = ENDS[name]
    defuser = Puppet(lambda turn: end(bombs[-1]) if turn.number == 2 else None)
    found, row, _ = through_files(played(defuser=defuser), tmp_path)
    assert (found.result.outcome, found.is_valid, found.is_hard_crash) == (outcome, valid, False)
    assert row["outcome"] == outcome and not row["is_solved"] and not row["is_hard_crash"]
    assert (row["is_timed_out"], row["is_strike_out"]) == (outcome == "timeout", outcome == "strikeout")


def test_scenario_03_one_of_two_modules_is_solved_before_the_explosion(tmp_path, bombs):
    # The oracle does the work until the first module is solved; then time runs out.
    defuser = Puppet(lambda turn: interact_game(MAGIC) if not bombs[-1].modules_solved else None)
    found, row, _ = through_files(played(TWO, defuser=defuser, allow_magic_actions=True), tmp_path)
    assert (row["outcome"], row["num_modules_solved"], row["n_modules"]) == ("timeout", 1, 2)
    assert found.result.num_modules_solved == 1 and row["strike_count"] == 0


def test_scenario_04_who_plays_alone_has_no_expert_anywhere(tmp_path):
    found, row, steps = through_files(played(alone=True), tmp_path)
    assert found.expert is None and found.is_whole and len(recording_paths(tmp_path)) == 1
    assert row["expert_name"] is row["expert_capabilities"] is None and row["expert_capability_fingerprint"] == ""
    assert {step["role"] for step in steps} == {"defuser"}


def test_scenario_05_an_asynchronous_game_ends_with_its_bomb(tmp_path):
    defuser, expert = Puppet(), Puppet()
    _, row, steps = through_files(played(defuser=defuser, expert=expert, style="async"), tmp_path)
    assert (row["communication_style"], row["outcome"]) == ("async", "timeout")
    turns = [step for step in steps if not step["is_reflection"]]
    assert max(step["requested_at"] for step in turns) < WIRES.time_limit
    # An answer that is on its way at the end is waited for and lengthens nothing.
    assert row["duration_s"] == WIRES.time_limit
    assert len(turns) == len(defuser.turns) + len(expert.turns)


class Gone:
    """A scripted player whose connection breaks in the third turn of its first game."""

    def __init__(self):
        self.games, self.player = 0, player_for("scripted")

    def configure(self, setup):
        self.games += 1
        self.player.configure(setup)

    def turn(self, turn):
        if self.games == 1 and turn.number == 3:
            raise ConnectionResetError("gone")
        return self.player.turn(turn)

    def reflect(self, task):
        return self.player.reflect(task)


def test_scenario_06_a_player_that_goes_leaves_a_record_and_the_next_game_is_played(tmp_path):
    specs = [read_spec(encode_line(spec() | {"attempt": number}).encode(), "spec") for number in (1, 2)]
    seats = [lambda: seat("scripted", Gone(), player_type="ai"), lambda: seat("scripted", player_type="ai")]
    runner = Runner(1, {"scripted": seats}, tmp_path / "records", Provenance("1.0.0"))
    totals = runner.run({one.attempt_name: one for one in specs}, tmp_path / "run.log", io.StringIO())
    assert totals.outcomes == {"crashed": 1, "solved": 1}
    by_attempt = {one.content.attempt_name: one for one in read_ledger(tmp_path / "records").sessions}
    crashed, good = (by_attempt[one.attempt_name] for one in specs)
    assert crashed.is_hard_crash and not crashed.is_valid and crashed.is_whole and good.is_valid
    assert len(read_recording(crashed.defuser.path).steps) == 2, "the turns before are kept"


def test_scenario_08_what_is_done_what_broke_off_and_what_cannot_be_read(call, project):
    assert call("run", "runs/small.yaml")[0] == 0
    before = sorted(project.rglob("*"))
    assert call("run", "runs/small.yaml")[0] == 0
    assert sorted(project.rglob("*")) == before, "nothing is started"
    defusers = [path for path in recording_paths(project / "output") if read_recording(path).footer.role == "defuser"]
    # A crashed go at the first game beside the good one; the second game cannot be read.
    record = read_recording(defusers[0]).record
    record["footer"]["is_hard_crash"] = True
    write_game(room.Game({}, {"defuser": record}), project / "output/recordings/crashed")
    defusers[1].write_bytes(defusers[1].read_bytes()[:-200])
    code, out, err = call("run", "runs/small.yaml")
    assert code == 0 and "games    1 to play, 9 done before" in out
    assert f"not counted: {defusers[1]}" in err


def test_scenario_09_nothing_is_checked_without_specs_and_nothing_starts_after_a_failure(call, project, monkeypatch):
    (project / "output/experiment_specs/small").mkdir(parents=True)
    code, out, err = call("run", "--force", "runs/small.yaml")
    assert (code, out) == (2, "") and "rowproof generate" in err and "Players" not in err
    (project / "output/experiment_specs/small").rmdir()
    (project / "config/runs/small.yaml").write_text(RUN.replace("rooms: 1", "rooms: 2"))
    assert call("run", "runs/small.yaml")[0] == 2
    assert not recording_paths(project) and not (project / "output/logs").exists()
    assert call("run", "--force", "runs/small.yaml")[0] == 0 and len(recording_paths(project)) == 20


def test_scenario_10_a_seat_that_cannot_be_taken_starts_nothing(call, project):
    text = RUN.replace("scripted, count", "gpt-5-2, count")
    (project / "config/runs/small.yaml").write_text(text)
    code, _, err = call("run", "--force", "runs/small.yaml")
    assert code == 2 and "OPENAI_API_KEY" in err
    assert not recording_paths(project) and not (project / "output/logs").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 1), (signal.SIGINT, 130)])
def test_scenario_11_a_run_that_is_told_to_end_keeps_the_game_under_way(call, project, monkeypatch, number, code):
    real, calls = session.play, []

    def play(*args):
        calls.append(args)
        if len(calls) == 2:
            os.kill(os.getpid(), number)
        return real(*args)

    monkeypatch.setattr(session, "play", play)
    handlers = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    assert call("run", "runs/small.yaml")[0] == code
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == handlers
    ledger = read_ledger(project / "output")
    assert len(calls) == len(ledger.sessions) < 10 and not ledger.problems
    assert all(one.is_valid and one.is_whole for one in ledger.sessions)
    code, out, _ = call("run", "runs/small.yaml")
    assert code == 0 and f"{10 - len(ledger.sessions)} to play, {len(ledger.sessions)} done before" in out


def test_scenario_12_twice_is_once_and_results_show_what_was_solved(call, project):
    assert call("run", "runs/small.yaml")[0] == 0 and call("build-db")[0] == 0
    first = content(project / "output/experiments.duckdb")
    assert call("build-db")[0] == 0 and content(project / "output/experiments.duckdb") == first
    found = json.loads(call("results", "--json")[1])
    assert len(found["runs"]) == 10 and {row["outcome"] for row, _ in first} == {"solved"}
