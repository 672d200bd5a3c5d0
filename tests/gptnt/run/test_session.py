"""A run: which games are played when, by whom, and what happens when something goes wrong."""

import io
import re
import threading

import pytest
from gptnt.harness.workbench import manifest, solo_spec
from helpers import ROOT
from rowproof.gptnt import session
from rowproof.gptnt.doctor import check_players, check_run_plan, load_anchor_players
from rowproof.gptnt.player_config import load_player
from rowproof.gptnt.players.scripts import player_for
from rowproof.gptnt.recordings import recording_paths
from rowproof.gptnt.room import Provenance, Seat
from rowproof.gptnt.runs import load_anchors
from rowproof.gptnt.seating import Cassettes, Limiters, seat_makers
from rowproof.gptnt.session import Runner
from rowproof.gptnt.specs import unite
from rowproof.gptnt.suite_lock import load_lock

OURS = Provenance("1.0.0")


def planned(run, count=None):
    """The first specs of a run."""
    rows = check_players(ROOT, run.players, {})
    anchors = load_anchors(ROOT, run)
    plan = check_run_plan(run, rows, load_lock(ROOT), anchors, load_anchor_players(ROOT, anchors, rows))
    return dict(list(plan.specs.items())[:count])


def makers(**counts):
    """Seats of players by the names of their files, with ``_`` for ``-``."""
    names = {name.replace("_", "-"): count for name, count in counts.items()}
    none = Cassettes(None, "off")
    return {name: seat_makers(load_player(ROOT, name), n, none, Limiters(), {}) for name, n in names.items()}


@pytest.fixture
def run_specs(tmp_path):
    def play(specs, seats, rooms=2, screen=None):
        runner = Runner(rooms, seats, tmp_path / "recordings", OURS)
        totals = runner.run(specs, tmp_path / "run.log", screen or io.StringIO())
        return totals, (tmp_path / "run.log").read_text(), sorted((tmp_path / "recordings").glob("*"))

    return play


def test_a_run_plays_every_spec_and_ends_by_itself(run_specs):
    specs = planned(manifest({"scripted": 2}, suites=["multi-self-sync"]))
    totals, log, files = run_specs(specs, makers(scripted=2))
    assert totals.complete and totals.outcomes == {"solved": 10} and totals.left == 0
    assert len(files) == 20, "one recording per player"
    assert all(f"started\t{name}" in log and f"solved\t{name}" in log for name in specs)


def test_the_display_of_each_room_stands_in_the_log(tmp_path):
    run = manifest({"scripted": 4}, rooms=2, displays=[7])
    for display_of, found in ((run.display_of, ["0\tdisplay\t:7", "1\tdisplay\t:7"]), (lambda room: None, [])):
        runner = Runner(2, makers(scripted=4), tmp_path / "recordings", OURS, display_of=display_of)
        log = tmp_path / f"{len(found)}.log"
        runner.run(planned(run, 1), log, io.StringIO())
        assert re.findall("room (.*display.*)", log.read_text()) == found


def test_specs_start_in_their_order(run_specs):
    specs = planned(manifest({"scripted": 4}, rooms=2))
    _, log, _ = run_specs(specs, makers(scripted=4))
    assert re.findall("started\t(.*)", log) == list(specs)


def test_no_player_sits_in_two_rooms_and_no_room_has_two_games(run_specs, monkeypatch):
    free = {"rooms": 2, "players": 3}
    busy, most, lock = {"rooms": 0}, {"rooms": 0}, threading.Lock()
    seated, gate = set(), threading.Event()
    real = session.play

    def play(spec, defuser, expert, *rest):
        with lock:
            assert id(defuser.player) not in seated and id(expert.player) not in seated
            seated.update((id(defuser.player), id(expert.player)))
            busy["rooms"] += 1
            most["rooms"] = max(most["rooms"], busy["rooms"])
        gate.wait(0.02)
        game = real(spec, defuser, expert, *rest)
        with lock:
            seated.difference_update((id(defuser.player), id(expert.player)))
            busy["rooms"] -= 1
        return game

    monkeypatch.setattr(session, "play", play)
    specs = planned(manifest({"scripted": 3}, rooms=2))
    # Three players make one pair: the second room stays empty.
    assert run_specs(specs, makers(scripted=free["players"]), rooms=2)[0].complete and most["rooms"] == 1
    most["rooms"] = 0
    assert run_specs(specs, makers(scripted=4), rooms=2)[0].complete and most["rooms"] == 2


def test_a_game_whose_player_is_busy_lets_others_go_first(run_specs):
    pair = planned(manifest({"scripted": 2}), 2)
    alone = {name: spec for name, spec in unite([solo_spec()]).items()}
    totals, _, _ = run_specs({**pair, **alone}, makers(scripted=2, test_defuser=1))
    assert sum(totals.outcomes.values()) == 3 and totals.left == 0


def test_what_can_never_be_played_is_left_and_told(run_specs):
    specs = planned(manifest({"scripted": 2}), 3)
    totals, _, files = run_specs(specs, makers(scripted=1))
    assert (totals.left, totals.outcomes, files) == (3, {}, []) and not totals.complete


class Broken:
    """A player that fails in its third game."""

    def __init__(self):
        self.games = 0
        self.player = player_for("scripted")

    def configure(self, setup):
        self.games += setup.role == "defuser"
        if self.games == 2:
            raise SystemError("no such thing")
        self.player.configure(setup)

    def turn(self, turn):
        return self.player.turn(turn)

    def reflect(self, task):
        return self.player.reflect(task)


def test_a_player_that_fails_costs_its_game_and_no_other(run_specs):
    capabilities = load_player(ROOT, "scripted").capabilities.model_dump(mode="json")
    seats = {"scripted": [lambda: Seat("scripted", Broken(), capabilities), makers(scripted=1)["scripted"][0]]}
    specs = planned(manifest({"scripted": 2}), 5)
    totals, log, _ = run_specs(specs, seats, rooms=1)
    assert sum(totals.outcomes.values()) == 5 and totals.outcomes["crashed"] == 1 and not totals.complete
    assert "no such thing" in log


def test_an_unknown_exception_costs_its_game_and_no_other(run_specs, monkeypatch):
    real, calls = session.play, []

    def play(*args):
        calls.append(args)
        if len(calls) == 2:
            raise RuntimeError("the room fell in")
        return real(*args)

    monkeypatch.setattr(session, "play", play)
    totals, log, files = run_specs(planned(manifest({"scripted": 2}), 4), makers(scripted=2), rooms=1)
    assert totals.outcomes == {"crashed": 1, "solved": 3} and len(files) == 6
    assert "RuntimeError: the room fell in" in log


def test_a_stopped_run_finishes_what_is_under_way(run_specs, tmp_path, monkeypatch):
    runner = Runner(1, makers(scripted=2), tmp_path / "recordings", OURS)
    real = session.play

    def play(*args):
        runner.stop()
        return real(*args)

    monkeypatch.setattr(session, "play", play)
    totals = runner.run(planned(manifest({"scripted": 2}), 4), tmp_path / "run.log", io.StringIO())
    assert totals.outcomes == {"solved": 1} and totals.left == 3 and not totals.complete
    assert len(recording_paths(tmp_path / "recordings")) == 2


def test_records_do_not_depend_on_rooms(tmp_path):
    specs = planned(manifest({"scripted": 6}, suites=["multi-self-async"], rooms=3))
    found = []
    for rooms, seats in ((1, 2), (3, 6)):
        folder = tmp_path / str(rooms)
        Runner(rooms, makers(scripted=seats), folder, OURS).run(specs, folder / "run.log", io.StringIO())
        found.append({path.name: path.read_bytes() for path in recording_paths(folder)})
    assert found[0] == found[1] and len(found[0]) == 20


def test_progress_is_shown_with_what_is_left(run_specs, monkeypatch):
    monkeypatch.setattr(session, "LINE_S", 0.0)
    screen = io.StringIO()
    run_specs(planned(manifest({"scripted": 2})), makers(scripted=2), screen=screen)
    lines = screen.getvalue().splitlines()
    assert lines[-1] == "10/10 games, 0 queued, 0 running, 10 solved"
    assert any(" s left" in line for line in lines)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_has_one_line(run_specs):
    screen = Terminal()
    run_specs(planned(manifest({"scripted": 2})), makers(scripted=2), screen=screen)
    assert screen.getvalue().count("\n") == 1 and screen.getvalue().startswith("\r")
