"""One unreadable or half-written record made the whole scan raise, and everything was played again."""

from gptnt.recordings.workbench import content, played
from rowproof.gptnt.database import build_db
from rowproof.gptnt.ledger import read_ledger
from rowproof.gptnt.recordings import write_game


def test_others_are_ingested_and_the_bad_one_is_told(tmp_path):
    folder, database = tmp_path / "records", tmp_path / "games.duckdb"
    bad, _ = write_game(played(), folder)
    write_game(played(alone=True), folder)
    bad.write_bytes(bad.read_bytes()[:-100])
    report = build_db(folder, database)
    assert [row["expert_name"] for row, _ in content(database)] == [None]
    assert str(bad) in report.problems[0] and "must be a whole Parquet file" in report.problems[0]


def test_the_ledger_still_knows_the_others(tmp_path):
    bad, _ = write_game(played(), tmp_path)
    write_game(played(alone=True), tmp_path)
    bad.write_bytes(bad.read_bytes()[:-100])
    ledger = read_ledger(tmp_path)
    assert [session.content.attempt_name for session in ledger.sessions if session.is_valid] == [
        "workbench[rev1]_workbench_sync_Wires_234_(defuser=scripted+solo+manual--expert=None)_attempt1"
    ]
    assert "must be a whole Parquet file" in ledger.problems[bad] and len(ledger.problems) == 2
