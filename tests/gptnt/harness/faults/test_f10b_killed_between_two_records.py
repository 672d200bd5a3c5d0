"""A run that was killed between the two records of a game must not leave a session that counts without its expert."""

import pytest
from gptnt.recordings.workbench import played
from rowproof.gptnt import recordings
from rowproof.gptnt.ledger import read_ledger
from rowproof.gptnt.recordings import recording_paths, write_game


def test_half_a_game_is_not_done(tmp_path, monkeypatch):
    real, game = recordings.write_atomic, played()

    def full(path, data):
        if recording_paths(tmp_path):
            raise OSError(28, "No space left on device", str(path))
        real(path, data)

    monkeypatch.setattr(recordings, "write_atomic", full)
    with pytest.raises(OSError, match="No space left"):
        write_game(game, tmp_path)
    ledger = read_ledger(tmp_path)
    assert len(recording_paths(tmp_path)) == 1 and ledger.sessions == [] and len(ledger.problems) == 1
    monkeypatch.undo()
    assert [path.name for path in write_game(game, tmp_path)] != [] and read_ledger(tmp_path).problems == {}
    (session,) = read_ledger(tmp_path).sessions
    assert session.is_valid and session.is_whole
