"""The database: its tables, what a build replaces and keeps, and that readers are never in the way."""

import random
import shutil

import duckdb
import pytest
from gptnt.players.workbench import Puppet
from gptnt.recordings.workbench import content, crash, played, without_expert_steps
from rowproof.errors import ConfigError
from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.database import SUMMARIES, build_db, connect, run, session_steps, summaries
from rowproof.gptnt.players.turns import Answer, do_nothing
from rowproof.gptnt.recordings import encode_recording, write_game
from rowproof.gptnt.room import Provenance

GAME = played()
GAMES = [
    GAME,
    played(alone=True),
    played(style="async"),
    played(attempt=2),
    played(alone=True, attempt=3, defuser=Puppet(crash)),
]

STEPS_SQL = """
step INTEGER, timestamp DOUBLE, role VARCHAR, session_id UUID, player_uuid UUID, player_name VARCHAR, output
JSON, raw_output VARCHAR null, thoughts VARCHAR null, input_messages BLOB null, new_messages BLOB null,
bomb_state JSON null, observation BLOB null, usage BLOB, num_prompt_truncations INTEGER, error_type VARCHAR[]
null, is_reflection BOOLEAN null, output_kind VARCHAR, requested_at DOUBLE null, responded_at DOUBLE null,
observation_at DOUBLE null
"""
SUMMARY_SQL = """
outcome VARCHAR, seconds_remaining DOUBLE, strike_count INTEGER, num_modules_solved INTEGER, gptnt_version
VARCHAR null, git_sha VARCHAR null, attempt_name VARCHAR, session_id UUID, mission_set VARCHAR, suite_name
VARCHAR null, suite_revision INTEGER null, seed INTEGER, pairing VARCHAR, defuser_name VARCHAR, expert_name
VARCHAR null, communication_style VARCHAR, attempt INTEGER, modules VARCHAR[], is_hard_crash BOOLEAN,
experiment_descriptor JSON, defuser_capabilities JSON, expert_capabilities JSON null, tags VARCHAR[] null,
is_solved BOOLEAN, is_strike_out BOOLEAN, is_timed_out BOOLEAN, is_detonated BOOLEAN,
defuser_capability_fingerprint VARCHAR, expert_capability_fingerprint VARCHAR, defuser_has_manual BOOLEAN,
mission_key VARCHAR, n_modules INTEGER, time_limit INTEGER, spec_fingerprint VARCHAR, duration_s DOUBLE,
n_rounds INTEGER, assets_digest VARCHAR, step_counts JSON
"""


@pytest.fixture
def database(tmp_path):
    return tmp_path / "out" / "experiments.duckdb"


@pytest.fixture
def folder(tmp_path):
    """Records of some games, each in a folder of its own."""
    for number, game in enumerate(GAMES):
        write_game(game, tmp_path / "records" / str(number))
    return tmp_path / "records"


def described(text):
    columns = [entry.split() for entry in text.replace("\n", " ").split(",")]
    return [(name, kind, "YES" if null else "NO") for name, kind, *null in columns]


def test_tables_and_keys(folder, database):
    build_db(folder, database)
    with connect(database) as connection:
        found = {
            table: [row[:3] for row in connection.execute(f"DESCRIBE {table}").fetchall()]
            for table in ("experiment_step", "experiment_summary")
        }
        query = (
            "SELECT table_name, constraint_column_names FROM duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY'"
        )
        keys = dict(connection.execute(query).fetchall())
    assert found == {"experiment_step": described(STEPS_SQL), "experiment_summary": described(SUMMARY_SQL)}
    assert keys == {"experiment_step": ["session_id", "player_uuid", "step"], "experiment_summary": ["session_id"]}


def test_every_step_comes_back(folder, database):
    report = build_db(folder, database)
    assert (report.sessions, len(report.ingested), report.partial, report.problems) == (5, 5, [], [])
    by_session = {row["session_id"]: steps for row, steps in content(database)}
    for game in GAMES:
        steps = [step for record in game.records.values() for step in record["steps"]]
        assert by_session[game.records["defuser"]["session_id"]] == steps


def test_the_row_of_a_session(database, tmp_path):
    write_game(GAME, tmp_path / "records")
    build_db(tmp_path / "records", database)
    ((row, _),) = content(database)
    footer = GAME.records["defuser"]["footer"]
    summary = {key: value for key, value in GAME.summary.items() if key in row}
    assert summary.keys() == GAME.summary.keys()
    assert row == summary | {
        "gptnt_version": "1.0.0",
        "git_sha": "c0ffee",
        "attempt_name": "workbench[rev1]_workbench_sync_Wires_234_(defuser=scripted--expert=scripted)_attempt1",
        "session_id": GAME.records["defuser"]["session_id"],
        "mission_set": "workbench",
        "suite_name": "workbench",
        "suite_revision": 1,
        "seed": 234,
        "pairing": "defuser=scripted--expert=scripted",
        "defuser_name": "scripted",
        "expert_name": "scripted",
        "communication_style": "sync",
        "attempt": 1,
        "modules": ["Wires"],
        "experiment_descriptor": footer["descriptor"],
        "defuser_capabilities": footer["descriptor"]["defuser_capabilities"],
        "expert_capabilities": footer["descriptor"]["expert_capabilities"],
        "tags": [],
        "is_solved": True,
        "is_strike_out": False,
        "is_timed_out": False,
        "is_detonated": False,
        "defuser_capability_fingerprint": row["expert_capability_fingerprint"],
        "defuser_has_manual": False,
        "expert_capability_fingerprint": row["defuser_capability_fingerprint"],
        "mission_key": "234|Wires",
        "spec_fingerprint": row["spec_fingerprint"],
        "assets_digest": "a5" * 32,
        "step_counts": {role: len(record["steps"]) for role, record in GAME.records.items()},
    }
    assert len(row["spec_fingerprint"]) == len(row["defuser_capability_fingerprint"]) == 32


def test_a_solo_session_has_no_expert(database, tmp_path):
    write_game(played(alone=True), tmp_path / "records")
    build_db(tmp_path / "records", database)
    ((row, steps),) = content(database)
    assert (row["expert_name"], row["expert_capabilities"], row["expert_capability_fingerprint"]) == (None, None, "")
    assert row["pairing"] == "defuser=scripted+solo+manual--expert=None" and row["defuser_has_manual"]
    assert {step["role"] for step in steps} == {"defuser"}


def test_the_duration_is_that_of_the_game_and_not_of_its_last_answer(database, tmp_path):
    game = played(style="async", expert=Puppet(lambda turn: Answer(do_nothing(), latency_ms=70_000)))
    write_game(game, tmp_path / "records")
    build_db(tmp_path / "records", database)
    ((row, steps),) = content(database)
    assert row["duration_s"] == game.summary["duration_s"] < max(step["responded_at"] for step in steps)


def test_an_expert_without_steps_is_not_missing(database, tmp_path):
    write_game(without_expert_steps(), tmp_path / "records")
    report = build_db(tmp_path / "records", database)
    assert (report.sessions, report.partial) == (1, [])


def test_outcomes_as_flags(database, tmp_path):
    write_game(played(defuser=Puppet()), tmp_path / "records")
    write_game(played(alone=True, defuser=Puppet(crash)), tmp_path / "records")
    build_db(tmp_path / "records", database)
    flags = {
        row["outcome"]: [row[f"is_{name}"] for name in ("solved", "strike_out", "timed_out", "detonated", "hard_crash")]
        for row, _ in content(database)
    }
    assert flags == {"timeout": [False, False, True, True, False], "incomplete": [False, False, False, False, True]}


# ---- again and again -------------------------------------------------------------------------------------------


def test_twice_is_once(folder, database):
    build_db(folder, database)
    before = content(database)
    report = build_db(folder, database)
    assert content(database) == before and report.sessions == 5


def test_neither_order_nor_workers_matter(folder, database, tmp_path):
    build_db(folder, database)
    parts = sorted(folder.iterdir())
    random.Random(4).shuffle(parts)
    for number, part in enumerate(parts):
        build_db(part, tmp_path / "other.duckdb", workers=1 + number % 3)
    assert content(tmp_path / "other.duckdb") == content(database)
    shutil.move(folder, tmp_path / "elsewhere")
    build_db(tmp_path / "elsewhere", tmp_path / "third.duckdb", workers=4)
    assert content(tmp_path / "third.duckdb") == content(database)


def test_what_is_not_in_the_folder_stays_unless_told_otherwise(folder, database):
    build_db(folder, database)
    build_db(folder / "1", database)
    assert len(content(database)) == 5
    build_db(folder / "1", database, delete_existing=True)
    assert len(content(database)) == 1


def test_a_session_that_was_played_again_replaces_the_old(database, tmp_path):
    folder = tmp_path / "records"
    write_game(played(expert=Puppet(crash)), folder)
    build_db(folder, database)
    assert content(database)[0][0]["is_hard_crash"]
    write_game(GAME, folder)
    build_db(folder, database)
    ((row, steps),) = content(database)
    assert not row["is_hard_crash"] and len(steps) == sum(len(record["steps"]) for record in GAME.records.values())


@pytest.mark.parametrize("order", [1, -1])
def test_a_crashed_session_does_not_replace_a_valid_one(database, tmp_path, order):
    for name, game in [("good", GAME), ("crashed", played(expert=Puppet(crash)))][::order]:
        write_game(game, tmp_path / name)
        build_db(tmp_path / name, database)
    alone = content(database)
    build_db(tmp_path, tmp_path / "both.duckdb")
    assert content(tmp_path / "both.duckdb") == alone and alone[0][0]["is_solved"]


def test_a_session_of_other_code_replaces_the_old(database, tmp_path):
    for commit in ("a", "b", "a"):
        write_game(played(provenance=Provenance("1.0.0", commit)), tmp_path / commit)
        build_db(tmp_path / commit, database)
        ((row, _),) = content(database)
        assert row["git_sha"] == commit


def test_tags_stay(folder, database):
    build_db(folder, database)
    session_id = content(database)[0][0]["session_id"]
    with duckdb.connect(str(database)) as connection:
        connection.execute(f"UPDATE {SUMMARIES} SET tags = ['odd'] WHERE session_id = ?", [session_id])
    build_db(folder, database)
    assert [row["tags"] for row, _ in content(database)] == [["odd"], [], [], [], []]


# ---- what cannot be taken --------------------------------------------------------------------------------------


def test_numbers_beyond_their_columns_are_told(database, tmp_path):
    write_game(GAME, tmp_path / "records")
    write_game(played(Mission(2**31, 81, ("Wires",), 2)), tmp_path / "records")
    report = build_db(tmp_path / "records", database)
    (problem,) = report.problems
    assert "seed must be 2147483647 at most, found 2147483648" in problem and report.sessions == 1


def test_an_expert_alone_is_told(database, tmp_path):
    (tmp_path / "records").mkdir()
    write_game(GAME, tmp_path / "records")[0].unlink()
    report = build_db(tmp_path / "records", database)
    (problem,) = report.problems
    assert "must come with the record of the defuser" in problem and report.sessions == 0 and content(database) == []


def test_an_empty_folder_gives_an_empty_database(database, tmp_path):
    (tmp_path / "records").mkdir()
    assert build_db(tmp_path / "records", database).sessions == 0 and content(database) == []


def test_no_folder_no_database(database, tmp_path):
    with pytest.raises(ConfigError, match="must be a folder with records"):
        build_db(tmp_path / "none", database)
    with pytest.raises(ConfigError, match="must be a database of games, found none: run rowproof build-db"):
        content(database)


def test_what_is_no_database_is_not_overwritten(folder, database):
    database.parent.mkdir()
    database.write_text("notes")
    with pytest.raises(ConfigError, match="must be a DuckDB database"):
        build_db(folder, database)
    with pytest.raises(ConfigError, match="must be a DuckDB database"):
        content(database)
    assert database.read_text() == "notes" and [path.name for path in database.parent.iterdir()] == [database.name]
    build_db(folder, database, delete_existing=True)
    assert len(content(database)) == 5


def test_a_database_with_other_columns_is_refused(folder, database):
    build_db(folder, database)
    with duckdb.connect(str(database)) as connection:
        connection.execute(f"ALTER TABLE {SUMMARIES} DROP COLUMN tags")
    for call in (content, lambda path: build_db(folder, path)):
        with pytest.raises(ConfigError, match=r"must have the columns of this version.*--delete-existing-db"):
            call(database)


# ---- readers ---------------------------------------------------------------------------------------------------


def test_readers_and_builders_do_not_wait_for_each_other(folder, database):
    build_db(folder / "0", database)
    with connect(database) as connection:
        before = summaries(connection)
        assert build_db(folder, database).sessions == 5
        assert summaries(connection) == before
        assert len(session_steps(connection, before[0]["session_id"])) == 7
    assert len(content(database)) == 5


def test_readers_cannot_write(folder, database):
    build_db(folder, database)
    with connect(database) as connection, pytest.raises(duckdb.InvalidInputException):
        connection.execute(f"DELETE FROM {SUMMARIES}")


def test_nothing_else_is_left_beside(folder, database):
    build_db(folder, database)
    build_db(folder, database)
    assert [path.name for path in database.parent.iterdir()] == [database.name]


def test_the_command_tells_what_was_left_out(folder, database):
    lines = []
    assert run(folder, database, show=lines.append) == 0
    assert lines == [f"{database}: 5 sessions, 5 of them read from {folder}"]
    next((folder / "0").iterdir()).write_bytes(b"")
    lines.clear()
    assert run(folder, database, show=lines.append) == 1
    assert "left out:" in lines[0] and "must be a whole Parquet file" in lines[0]


def test_the_bytes_of_a_record_survive_the_database(folder, database):
    build_db(folder, database)
    by_id = dict(((row["session_id"], "defuser"), (row, steps)) for row, steps in content(database))
    for game in GAMES:
        record = game.records["defuser"]
        _, steps = by_id[record["session_id"], "defuser"]
        again = record | {"steps": [step for step in steps if step["role"] == "defuser"]}
        assert encode_recording(again) == encode_recording(record)
