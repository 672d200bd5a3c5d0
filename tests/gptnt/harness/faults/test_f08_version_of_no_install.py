"""An install without metadata wrote version 0.0.0, which readers refused: finished games could not be read."""

import pytest
from gptnt.recordings.workbench import played
from rowproof.errors import ConfigError, RecordError
from rowproof.gptnt.recordings import write_game
from rowproof.gptnt.room import Provenance


@pytest.mark.parametrize("version", ["", "0.0.0"])
def test_the_game_is_not_even_begun(version):
    with pytest.raises(ConfigError, match="the version of the package must be known"):
        played(provenance=Provenance(version))


@pytest.mark.parametrize("version", ["", " ", "0.0.0"])
def test_what_readers_refuse_is_not_written(tmp_path, version):
    game = played()
    game.records["defuser"]["footer"]["gptnt_version"] = version
    with pytest.raises(RecordError, match=r"neither blank nor 0.0.0"):
        write_game(game, tmp_path)
    assert list(tmp_path.iterdir()) == []
