"""Bundles held every attempt and every crashed session, so that validation failed as soon as there were any."""

from datetime import UTC, datetime

import pyarrow.parquet as pq
from gptnt.players.workbench import Puppet
from gptnt.recordings.workbench import LOCK, MISSIONS, WHO, crash, played
from helpers import ROOT
from rowproof.gptnt.database import build_db
from rowproof.gptnt.recordings import write_game
from rowproof.gptnt.submissions import GAMES, build, run_validate


def test_attempt_one_and_the_valid_session_alone(tmp_path):
    for mission in MISSIONS:
        for attempt in (1, 2, 3):
            write_game(played(mission, attempt=attempt), tmp_path / "records")
        # An earlier go at attempt 1 that broke off, with a later start than the good one.
        broken = played(mission, expert=Puppet(crash))
        for record in broken.records.values():
            record["footer"]["descriptor"]["start_time"] = 5.0
        write_game(broken, tmp_path / "crashed")
    database = tmp_path / "games.duckdb"
    build_db(tmp_path, database)
    date = datetime(2026, 1, 31, tzinfo=UTC)
    (bundle,) = build(ROOT, database, tmp_path / "out", LOCK, suites=["workbench"], submitter=WHO, run_date=date)
    rows = pq.read_table(bundle / GAMES).to_pylist()
    assert sorted((row["mission_key"], row["attempt"], row["is_hard_crash"]) for row in rows) == [
        (mission.key, 1, False) for mission in sorted(MISSIONS, key=lambda mission: mission.key)
    ]
    assert run_validate(bundle, LOCK, show=lambda text: None) == 0
