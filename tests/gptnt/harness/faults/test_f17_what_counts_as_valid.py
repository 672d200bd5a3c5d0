"""Runs that ended by a crash looked good in one place and bad in another."""

import pytest
from gptnt.players.workbench import Puppet
from gptnt.recordings.workbench import LOCK, crash, played
from helpers import ROOT
from rowproof.errors import ConfigError
from rowproof.gptnt.database import build_db, connect, runs
from rowproof.gptnt.ledger import read_ledger
from rowproof.gptnt.metrics import results
from rowproof.gptnt.recordings import write_game
from rowproof.gptnt.submissions import build


def crash_of(game):
    """The same game, as if it had crashed after it was won."""
    for record in game.records.values():
        record["footer"]["is_hard_crash"] = True
    return game


GAMES = {
    "solved": (played(), True),
    "timeout": (played(defuser=Puppet()), True),
    "crashed": (played(expert=Puppet(crash)), False),
    "crashed after it was won": (crash_of(played()), False),
}


@pytest.mark.parametrize(("game", "valid"), GAMES.values(), ids=GAMES)
def test_all_places_agree(tmp_path, game, valid):
    write_game(game, tmp_path / "records")
    (session,) = read_ledger(tmp_path / "records").sessions
    build_db(tmp_path / "records", tmp_path / "games.duckdb")
    with connect(tmp_path / "games.duckdb") as connection:
        found = results(runs(connection), {})
    assert session.is_valid is bool(found["runs"]) is not bool(found["invalid"])
    assert session.is_valid is valid
    if not valid:
        with pytest.raises(ConfigError, match="must hold valid games of workbench"):
            build(ROOT, tmp_path / "games.duckdb", tmp_path / "out", LOCK, suites=["workbench"])
