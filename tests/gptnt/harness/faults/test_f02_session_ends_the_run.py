"""An exception that nobody knew ended the matchmaking, and the queue was never served again."""

import io

import pytest
from gptnt.players.workbench import seat, spec
from rowproof.gptnt import session
from rowproof.gptnt.recordings import recording_paths
from rowproof.gptnt.room import Provenance
from rowproof.gptnt.session import Runner
from rowproof.gptnt.specs import read_spec
from rowproof.records import encode_line


def specs(count):
    read = [read_spec(encode_line(spec() | {"attempt": n}).encode(), "spec") for n in range(1, count + 1)]
    return {one.attempt_name: one for one in read}


@pytest.mark.parametrize("error", [RuntimeError("no such state"), SystemExit(3), GeneratorExit(), MemoryError()])
@pytest.mark.parametrize("place", ["play", "write_game"])
def test_the_queue_is_served_to_its_end(tmp_path, monkeypatch, place, error):
    real, calls = getattr(session, place), []

    def broken(*args):
        calls.append(args)
        if len(calls) == 1:
            raise error
        return real(*args)

    monkeypatch.setattr(session, place, broken)
    runner = Runner(1, {"scripted": [lambda: seat("scripted", player_type="ai")] * 2}, tmp_path, Provenance("1.0.0"))
    totals = runner.run(specs(3), tmp_path / "run.log", io.StringIO())
    assert totals.outcomes == {"crashed": 1, "solved": 2} and totals.left == 0 and not totals.complete
    assert type(error).__name__ in (tmp_path / "run.log").read_text() and len(recording_paths(tmp_path)) == 4
