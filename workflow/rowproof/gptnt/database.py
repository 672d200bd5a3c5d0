"""The database of all games: one DuckDB file with a table of steps and a table of sessions, filled from record files.

It is built beside the old one and renamed onto it. Readers open it read-only and keep what they have open.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from rowproof.errors import ConfigError, RecordError
from rowproof.gptnt.players.turns import DEFUSER
from rowproof.gptnt.recordings import (
    ARROW,
    STEP_COLUMNS,
    Column,
    Recording,
    Session,
    decode_recording,
    encode_recording,
    is_valid,
    join,
    plain_step,
    read_folder,
    read_table,
    step_totals,
    unpack,
)
from rowproof.gptnt.room import FORMAT_VERSION, Record
from rowproof.records import decode, encode_line

DATABASE = "output/experiments.duckdb"
DATABASE_VARIABLE = "EXPERIMENTS_DB"
STEPS, SUMMARIES = "experiment_step", "experiment_summary"

SUMMARY_COLUMNS = (
    Column("outcome", "VARCHAR"),
    Column("seconds_remaining", "DOUBLE"),
    Column("strike_count", "INTEGER"),
    Column("num_modules_solved", "INTEGER"),
    Column("gptnt_version", "VARCHAR", null=True),
    Column("git_sha", "VARCHAR", null=True),
    Column("attempt_name", "VARCHAR"),
    Column("session_id", "UUID"),
    Column("mission_set", "VARCHAR"),
    Column("suite_name", "VARCHAR", null=True),
    Column("suite_revision", "INTEGER", null=True),
    Column("seed", "INTEGER"),
    Column("pairing", "VARCHAR"),
    Column("defuser_name", "VARCHAR"),
    Column("expert_name", "VARCHAR", null=True),
    Column("communication_style", "VARCHAR"),
    Column("attempt", "INTEGER"),
    Column("modules", "VARCHAR[]"),
    Column("is_hard_crash", "BOOLEAN"),
    Column("experiment_descriptor", "JSON"),
    Column("defuser_capabilities", "JSON"),
    Column("expert_capabilities", "JSON", null=True),
    Column("tags", "VARCHAR[]", null=True),
    Column("is_solved", "BOOLEAN"),
    Column("is_strike_out", "BOOLEAN"),
    Column("is_timed_out", "BOOLEAN"),
    Column("is_detonated", "BOOLEAN"),
    Column("defuser_capability_fingerprint", "VARCHAR"),
    Column("expert_capability_fingerprint", "VARCHAR"),
    Column("defuser_has_manual", "BOOLEAN"),
    Column("mission_key", "VARCHAR"),
    # Beyond the columns of the benchmark.
    Column("n_modules", "INTEGER"),
    Column("time_limit", "INTEGER"),
    Column("spec_fingerprint", "VARCHAR"),
    Column("duration_s", "DOUBLE"),
    Column("n_rounds", "INTEGER"),
    Column("assets_digest", "VARCHAR"),
    Column("step_counts", "JSON"),
)

_UNIQUE = {
    STEPS: "PRIMARY KEY (session_id, player_uuid, step)",
    SUMMARIES: "PRIMARY KEY (session_id)",
}
# Name of the old database while a new one is built.
_OLD = "old"
_COLUMNS = {STEPS: STEP_COLUMNS, SUMMARIES: SUMMARY_COLUMNS}

# Sessions whose steps are held in memory at a time.
_BATCH = 32
_LARGEST_INTEGER = 2**31 - 1
# Nothing may be fetched from the network.
_SETTINGS = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}


# ---- reading ---------------------------------------------------------------------------------------------------


@contextmanager
def connect(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The database, open for reading alone.

    Close it soon: a process that keeps it open goes on to see the state from before the next build.

    Raises:
        ConfigError: there is none, or it is no database with these tables.
    """
    if not path.is_file():
        raise ConfigError(f"{path}: must be a database of games, found none: run rowproof build-db first")
    try:
        connection = duckdb.connect(str(path), read_only=True, config=_SETTINGS)
    except duckdb.Error as error:
        raise ConfigError(f"{path}: must be a DuckDB database: {_first_line(error)}") from None
    try:
        for table in _COLUMNS:
            _check_columns(connection, table, str(path))
        yield connection
    finally:
        connection.close()


def _check_columns(connection: duckdb.DuckDBPyConnection, table: str, where: str, prefix: str = "") -> None:
    known = [(column.name, column.type) for column in _COLUMNS[table]]
    try:
        found = [row[:2] for row in connection.execute(f"DESCRIBE {prefix}{table}").fetchall()]
    except duckdb.Error:
        found = []
    if found != known:
        raise ConfigError(
            f"{where}: table {table} must have the columns of this version, found {[name for name, _ in found]}: "
            "build it anew with rowproof build-db --delete-existing-db"
        )


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def _rows(connection: duckdb.DuckDBPyConnection, columns: Iterable[Column], query: str, *values: Any) -> list[Record]:
    cursor = connection.execute(query, list(values))
    names = [name for name, *_ in cursor.description]
    uuids = {column.name for column in columns if column.type == "UUID"}
    rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return [{key: str(value) if key in uuids else value for key, value in row.items()} for row in rows]


def summaries(connection: duckdb.DuckDBPyConnection) -> list[Record]:
    """The rows of the sessions as plain data, by attempt name and session id; JSON is parsed."""
    rows = _rows(connection, SUMMARY_COLUMNS, f"FROM {SUMMARIES} ORDER BY attempt_name, session_id")
    texts = [column.name for column in SUMMARY_COLUMNS if column.type == "JSON"]
    for row in rows:
        row.update({name: decode(row[name].encode(), name) for name in texts if row[name] is not None})
    return rows


def session_steps(connection: duckdb.DuckDBPyConnection, session_id: str) -> list[Record]:
    """The steps of a session as plain data, the defuser's first, each player's in order; JSON and blobs are parsed.

    Raises:
        RecordError: a blob is damaged.
    """
    query = f"FROM {STEPS} WHERE session_id = ? ORDER BY role, step"
    rows = _rows(connection, STEP_COLUMNS, query, session_id)
    return [plain_step(row, f"session {session_id}") for row in rows]


def runs(connection: duckdb.DuckDBPyConnection) -> list[Record]:
    """The rows of :func:`summaries`, each with ``totals`` by role (:func:`rowproof.gptnt.recordings.step_totals`).

    Raises:
        RecordError: a blob is damaged.
    """
    query = f"SELECT session_id, role, is_reflection, output_kind, error_type, usage FROM {STEPS} ORDER BY ALL"
    by_session: dict[str, list[Record]] = {}
    for row in _rows(connection, STEP_COLUMNS, query):
        usage = unpack(row["usage"], f"session {row['session_id']}: usage")
        by_session.setdefault(row["session_id"], []).append(row | {"usage": usage})
    return [row | {"totals": step_totals(by_session[row["session_id"]])} for row in summaries(connection)]


# ---- summaries -------------------------------------------------------------------------------------------------


def summary_row(session: Session) -> Record:
    """The row of a session.

    Raises:
        RecordError: a number is larger than its column.
    """
    footer, spec, result = session.defuser.footer, session.defuser.spec, session.result
    descriptor, mission = footer.descriptor, spec.mission_spec
    defuser, expert = session.defuser.fingerprints
    row = {
        "outcome": result.outcome,
        "seconds_remaining": result.seconds_remaining,
        "strike_count": result.strike_count,
        "num_modules_solved": result.num_modules_solved,
        "gptnt_version": footer.gptnt_version,
        "git_sha": footer.git_sha,
        "attempt_name": spec.attempt_name,
        "session_id": session.session_id,
        "mission_set": spec.mission_set,
        "suite_name": spec.suite_name,
        "suite_revision": spec.suite_revision,
        "seed": mission.seed,
        "pairing": spec.experiment_name.partition("(")[2].removesuffix(")"),
        "defuser_name": spec.defuser_name,
        "expert_name": spec.expert_name,
        "communication_style": spec.defuser_protocol.communication_style,
        "attempt": spec.attempt,
        "modules": list(mission.components),
        "is_hard_crash": session.is_hard_crash,
        "experiment_descriptor": encode_line(descriptor.model_dump()),
        "defuser_capabilities": encode_line(descriptor.defuser_capabilities),
        "expert_capabilities": encode_line(descriptor.expert_capabilities) if descriptor.expert_capabilities else None,
        "tags": [],
        "is_solved": result.outcome == "solved",
        "is_strike_out": result.outcome == "strikeout",
        "is_timed_out": result.outcome == "timeout",
        "is_detonated": result.outcome in ("timeout", "strikeout", "detonated"),
        "defuser_capability_fingerprint": defuser,
        "expert_capability_fingerprint": expert,
        "defuser_has_manual": spec.defuser_protocol.include_manual,
        "mission_key": mission.key,
        "n_modules": result.n_modules,
        "time_limit": mission.time_limit,
        "spec_fingerprint": spec.fingerprint,
        "duration_s": footer.duration_s,
        "n_rounds": session.defuser.n_turns,
        "assets_digest": footer.assets_digest,
        "step_counts": encode_line(footer.step_counts),
    }
    for column in SUMMARY_COLUMNS:
        if column.type == "INTEGER" and row[column.name] > _LARGEST_INTEGER:
            raise RecordError(
                f"session {session.session_id}: {column.name} must be {_LARGEST_INTEGER} at most, "
                f"found {row[column.name]}"
            )
    return row


_SUMMARY_SCHEMA = pa.schema([pa.field(column.name, ARROW[column.type]) for column in SUMMARY_COLUMNS])


# ---- building --------------------------------------------------------------------------------------------------


class Report(NamedTuple):
    """What a build did.

    Attributes:
        sessions: in the database now.
        ingested: session ids that were read from the folder.
        partial: session ids out of these for which the record of a player that took steps is missing.
        problems: what was left out, and why.
    """

    sessions: int
    ingested: list[str]
    partial: list[str]
    problems: list[str]


def build_db(folder: Path, database: Path, workers: int = 1, delete_existing: bool = False) -> Report:
    """Ingest all records below a folder; each session replaces what the database held of it.

    A session whose records come in several goes is whole after the last. Where one was played more than once, valid
    ones come before invalid ones, then whole ones, then the newest. Tags of sessions are kept. What cannot be read is
    told and left out. The database is written beside the old one and renamed onto it.

    Args:
        folder: searched at any depth.
        database: the file.
        workers: threads that read.
        delete_existing: forget what the database held.

    Raises:
        ConfigError: there is no such folder, what stands in the place of the database is none, or the new one cannot
            be written.
    """
    found = read_folder(folder, workers)
    problems = list(found.damaged.values())
    database.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{database.name}.", suffix=".tmp", dir=database.parent) as scratch:
        target = Path(scratch) / "new.duckdb"
        connection = duckdb.connect(str(target), config=_SETTINGS | {"threads": str(workers)})
        try:
            _create(connection)
            if not delete_existing and database.exists():
                _attach(connection, database, Path(scratch) / "old.duckdb")
            chosen = _choose(connection, found.recordings, problems)
            rows = _insert_steps(connection, chosen, problems)
            _insert(connection, SUMMARIES, pa.Table.from_pylist(rows, _SUMMARY_SCHEMA))
            _keep_others(connection)
            count = connection.execute(f"SELECT count(*) FROM {SUMMARIES}").fetchone()[0]
            connection.execute(f"DETACH {_OLD}")
            connection.execute("CHECKPOINT")
        except duckdb.Error as error:
            raise ConfigError(f"{database}: must be writable: {_first_line(error)}") from None
        finally:
            connection.close()
        target.replace(database)
        # What a log of changes held was read with the old database, and it fits no other.
        Path(f"{database}.wal").unlink(missing_ok=True)
    ingested = [row["session_id"] for row in rows]
    partial = [one.session_id for one in chosen if not one.is_whole and one.session_id in ingested]
    return Report(count, ingested, partial, problems)


def _create(connection: duckdb.DuckDBPyConnection) -> None:
    for table, columns in _COLUMNS.items():
        parts = [*(column.sql for column in columns), _UNIQUE[table]]
        connection.execute(f"CREATE TABLE {table} ({', '.join(parts)})")
    # In place of an old database: one without rows.
    connection.execute(f"ATTACH ':memory:' AS {_OLD}")
    for table in _COLUMNS:
        connection.execute(f"CREATE TABLE {_OLD}.{table} AS FROM {table} LIMIT 0")


def _attach(connection: duckdb.DuckDBPyConnection, database: Path, copy: Path) -> None:
    """Attach a copy, which neither waits for readers nor makes them wait."""
    remedy = "move it away, or run rowproof build-db --delete-existing-db"
    try:
        shutil.copyfile(database, copy)
        log = Path(f"{database}.wal")
        if log.exists():
            shutil.copyfile(log, f"{copy}.wal")
        connection.execute(f"DETACH {_OLD}")
        connection.execute(f"ATTACH {_quoted(str(copy))} AS {_OLD}")
    except OSError as error:
        raise ConfigError(f"{database}: must be a readable file: {error.strerror}: {remedy}") from None
    except duckdb.Error as error:
        raise ConfigError(f"{database}: must be a DuckDB database: {_first_line(error)}: {remedy}") from None
    for table in _COLUMNS:
        _check_columns(connection, table, str(database), f"{_OLD}.")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _choose(
    connection: duckdb.DuckDBPyConnection, recordings: Iterable[Recording], problems: list[str]
) -> list[Session]:
    """The session that each id stands for, out of what was read and what the old database holds."""
    query = f"SELECT session_id::VARCHAR, outcome, is_hard_crash FROM {_OLD}.{SUMMARIES}"
    valid = {
        session_id: is_valid(outcome, crash) for session_id, outcome, crash in connection.execute(query).fetchall()
    }
    by_id: dict[str, list[Recording]] = {}
    for one in recordings:
        by_id.setdefault(one.session_id, []).append(one)
    chosen = []
    for session_id, new in sorted(by_id.items()):
        sessions, _ = join(new)
        best = max(sessions, key=lambda session: session.rank, default=None)
        known = session_id in valid
        if known and (best is None or not best.is_whole or (valid[session_id] and not best.is_valid)):
            best = _rejoin(new, _stored(connection, session_id))
        if best is None:
            names = ", ".join(sorted(str(one.path) for one in new))
            problems.append(f"{names}: must come with the record of the defuser (session {session_id}), found none")
        else:
            chosen.append(best)
    return chosen


def _rejoin(new: list[Recording], stored: list[Recording]) -> Session | None:
    """The session of records that were read and stored ones, of which those of players that were read are outdated."""
    read = {(one.execution, one.footer.role) for one in new}
    kept = [one for one in stored if (one.execution, one.footer.role) not in read]
    fresh, _ = join([*new, *kept])
    whole, _ = join(stored)
    # An old session that is as good gives way.
    best = max(fresh, key=lambda session: session.rank, default=None)
    former = max(whole, key=lambda session: session.rank, default=None)
    if best is None or former is None:
        return best or former
    return best if best.rank[:2] >= former.rank[:2] else former


def _stored(connection: duckdb.DuckDBPyConnection, session_id: str) -> list[Recording]:
    """The records that the old database holds of a session, with their steps."""
    query = f"SELECT * FROM {_OLD}.{SUMMARIES} WHERE session_id = ?"
    (summary,) = _rows(connection, SUMMARY_COLUMNS, query, session_id)
    where = f"session {session_id} of the database"
    descriptor = decode(summary["experiment_descriptor"].encode(), where)
    query = f"SELECT * FROM {_OLD}.{STEPS} WHERE session_id = ? ORDER BY role, step"
    by_role: dict[str, list[Record]] = {}
    for row in _rows(connection, STEP_COLUMNS, query, session_id):
        by_role.setdefault(row["role"], []).append(plain_step(row, where))
    recordings = []
    for role, steps in by_role.items():
        states = [step["bomb_state"] for step in steps if step["bomb_state"] is not None]
        record = {
            "format_version": FORMAT_VERSION,
            "session_id": session_id,
            "player_uuid": steps[0]["player_uuid"],
            "footer": {
                "gptnt_version": summary["gptnt_version"],
                "git_sha": summary["git_sha"],
                "assets_digest": summary["assets_digest"],
                "descriptor": descriptor,
                "final_bomb_state": states[-1] if role == DEFUSER else None,
                "role": role,
                "is_hard_crash": summary["is_hard_crash"],
                "step_counts": decode(summary["step_counts"].encode(), where),
                "duration_s": summary["duration_s"],
            },
            "steps": steps,
        }
        recordings.append(decode_recording(encode_recording(record, where), where))
    return recordings


def _insert(connection: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    connection.register("batch", rows)
    connection.execute(f"INSERT INTO {table} BY NAME FROM batch")
    connection.unregister("batch")


def _insert_steps(
    connection: duckdb.DuckDBPyConnection, sessions: Iterable[Session], problems: list[str]
) -> list[Record]:
    """Insert the steps and return the rows of the sessions for which that went well."""
    rows: list[Record] = []
    batch: list[pa.Table] = []
    for session in sessions:
        try:
            row = summary_row(session)
            tables = [read_table(one) for one in session.recordings]
        except RecordError as error:
            problems.append(str(error))
            continue
        rows.append(row)
        batch += tables
        if len(batch) >= _BATCH:
            _insert(connection, STEPS, pa.concat_tables(batch))
            batch.clear()
    if batch:
        _insert(connection, STEPS, pa.concat_tables(batch))
    return rows


def _keep_others(connection: duckdb.DuckDBPyConnection) -> None:
    """Take over sessions of the old database that were not replaced, and the tags of those that were."""
    connection.execute(
        f"UPDATE {SUMMARIES} s SET tags = o.tags FROM {_OLD}.{SUMMARIES} o WHERE o.session_id = s.session_id"
    )
    connection.execute(f"CREATE TEMP TABLE replaced AS SELECT session_id FROM {SUMMARIES}")
    for table in _COLUMNS:
        others = f"FROM {_OLD}.{table} WHERE session_id NOT IN (FROM replaced)"
        connection.execute(f"INSERT INTO {table} BY NAME {others}")


def run(
    folder: Path,
    database: Path,
    workers: int = 1,
    delete_existing: bool = False,
    show: Callable[[str], object] = print,
) -> int:
    """Build the database and tell what was done; 1 if anything had to be left out.

    Raises:
        ConfigError: see :func:`build_db`.
    """
    report = build_db(folder, database, workers, delete_existing)
    for problem in report.problems:
        show(f"left out: {problem}")
    for session_id in report.partial:
        show(f"session {session_id} has no record of its expert")
    show(f"{database}: {report.sessions} sessions, {len(report.ingested)} of them read from {folder}")
    return 1 if report.problems else 0
