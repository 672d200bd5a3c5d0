"""Records of games as Parquet files: one per player, one row per step.

Who played what stands in the footer of a file and never in its name.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgpack
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from rowproof.errors import ConfigError, RecordError
from rowproof.files import write_atomic
from rowproof.gptnt.bomb.mission import NEEDY
from rowproof.gptnt.capabilities import Capabilities
from rowproof.gptnt.models import Strict
from rowproof.gptnt.players.turns import (
    DEFUSER,
    DO_NOTHING,
    EXPERT,
    GAME_ACTION,
    GUARDRAIL,
    REFLECTION,
    SEND_MESSAGE,
    UNKNOWN,
    Usage,
)
from rowproof.gptnt.room import FORMAT_VERSION, VALID_OUTCOMES, Game, Record
from rowproof.gptnt.spec import Spec
from rowproof.gptnt.specs import Content, read_spec
from rowproof.hashing import sha256_hex
from rowproof.plain_data import read_model
from rowproof.records import decode, digest, encode_line

FOLDER = "output/experiment_recorder_outputs"
PATTERN = "experiment-*.parquet"

BLOCKING = (
    *("action_not_present", "action_parsing_failed", "multiple_actions_present", "invalid_som_location"),
    "out_of_bounds_coordinate",
)
ERROR_KINDS = (
    *BLOCKING,
    *("reasoning_absent", "reasoning_split_across_blocks", "reasoning_mixed_with_untagged_text"),
    *("action_placed_before_reasoning", "content_after_action_complete", "malformed_tag_structure"),
    *("max_output_tokens_exceeded", "server_error", "guardrail_violation", "unknown"),
)
# With one of these errors there was no action.
_LOSING = {*BLOCKING, "max_output_tokens_exceeded", "server_error", UNKNOWN}
ACTION_COUNTS = {GAME_ACTION: "game_actions", SEND_MESSAGE: "messages", DO_NOTHING: "do_nothings"}
_TOKENS = ("input_tokens", "cache_read_tokens", "output_tokens")
OUTPUT_KINDS = (DO_NOTHING, SEND_MESSAGE, GAME_ACTION, REFLECTION)

ROW_GROUP = 64
ZSTD_LEVEL = 19
# File systems take names of 255 bytes, and a temporary sibling needs 14 of them.
_NAME_LENGTH = 240
_HASH_LENGTH = 8


# ---- columns ---------------------------------------------------------------------------------------------------


class Column(NamedTuple):
    """A column of the steps.

    Attributes:
        name: of the column.
        type: in DuckDB; that in Parquet follows from it.
        null: whether a row may lack it.
    """

    name: str
    type: str
    null: bool = False

    @property
    def sql(self) -> str:
        """The column in a table definition."""
        return f"{self.name} {self.type}{'' if self.null else ' NOT NULL'}"


STEP_COLUMNS = (
    Column("step", "INTEGER"),
    Column("timestamp", "DOUBLE"),
    Column("role", "VARCHAR"),
    Column("session_id", "UUID"),
    Column("player_uuid", "UUID"),
    Column("player_name", "VARCHAR"),
    Column("output", "JSON"),
    Column("raw_output", "VARCHAR", null=True),
    Column("thoughts", "VARCHAR", null=True),
    Column("input_messages", "BLOB", null=True),
    Column("new_messages", "BLOB", null=True),
    Column("bomb_state", "JSON", null=True),
    Column("observation", "BLOB", null=True),
    Column("usage", "BLOB"),
    Column("num_prompt_truncations", "INTEGER"),
    Column("error_type", "VARCHAR[]", null=True),
    Column("is_reflection", "BOOLEAN", null=True),
    # Beyond the columns of the benchmark.
    Column("output_kind", "VARCHAR"),
    Column("requested_at", "DOUBLE", null=True),
    Column("responded_at", "DOUBLE", null=True),
    Column("observation_at", "DOUBLE", null=True),
)

# Blobs of one row group may exceed what 32-bit offsets address.
ARROW = {
    "INTEGER": pa.int32(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "VARCHAR": pa.large_string(),
    "UUID": pa.large_string(),
    "JSON": pa.large_string(),
    "BLOB": pa.large_binary(),
    "VARCHAR[]": pa.list_(pa.field("element", pa.large_string())),
}
SCHEMA = pa.schema([pa.field(column.name, ARROW[column.type], nullable=column.null) for column in STEP_COLUMNS])


def pack(value: Any) -> bytes:
    """Plain data as a blob: MessagePack, compressed with zstd.

    Raises:
        RecordError: the value is no plain data.
    """
    try:
        return zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(msgpack.packb(value, use_bin_type=True))
    except (TypeError, ValueError, OverflowError) as error:
        raise RecordError(f"a blob must hold plain data: {error}") from None


def unpack(blob: bytes, where: str) -> Any:
    """The plain data of a blob.

    Raises:
        RecordError: the blob is damaged.
    """
    try:
        return msgpack.unpackb(zstandard.ZstdDecompressor().decompress(blob), raw=False)
    except (zstandard.ZstdError, msgpack.exceptions.UnpackException, ValueError, TypeError) as error:
        raise RecordError(f"{where}: must be MessagePack compressed with zstd: {error}") from None


def _cell(column: Column, value: Any) -> Any:
    if value is None or column.type not in ("JSON", "BLOB"):
        return value
    return encode_line(value) if column.type == "JSON" else pack(value)


def _plain(column: Column, cell: Any, where: str) -> Any:
    if cell is None or column.type not in ("JSON", "BLOB"):
        return cell
    if column.type == "BLOB":
        return unpack(cell, where)
    value = decode(cell.encode(), where)
    # Half a surrogate pair passes as JSON and is no text; only an escape can hide one.
    if re.search(r"\\u[dD][89a-fA-F]", cell):
        try:
            encode_line(value)
        except RecordError as error:
            raise RecordError(f"{where}: {error}") from None
    return value


# ---- footers ---------------------------------------------------------------------------------------------------


def _known_version(version: str) -> str:
    # What readers refuse must never be written.
    if version.strip() in ("", "0.0.0"):
        raise ValueError("must be the version of an installed package, neither blank nor 0.0.0")
    return version


Uuid = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
Version = Annotated[str, AfterValidator(_known_version)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
Plain = dict[str, Any]


class Descriptor(Strict):
    """Who played what; the same in all records of a session."""

    experiment_spec: Plain
    session_id: Uuid
    expert_uuid: Uuid | None
    defuser_uuid: Uuid
    game_uuid: Uuid
    defuser_capabilities: Plain
    expert_capabilities: Plain | None
    start_time: Seconds


class Footer(Strict):
    """What a file tells beside its rows; assets, counts and duration are beyond the benchmark's footer.

    Attributes:
        gptnt_version: of the package that played the game.
        git_sha: commit of its sources.
        assets_digest: of prompts, manual and simulator; empty if it is not known.
        descriptor: who played what.
        final_bomb_state: None in the record of an expert.
        role: of the player whose steps these are.
        is_hard_crash: the game broke off.
        step_counts: number of steps of each player by role; one without steps has no record.
        duration_s: game time at the end of the game.
    """

    gptnt_version: Version
    git_sha: str | None
    assets_digest: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{64})?$")]
    descriptor: Descriptor
    final_bomb_state: Plain | None
    role: str
    is_hard_crash: bool
    step_counts: dict[str, Count]
    duration_s: Seconds


class _Excerpt(BaseModel):
    """Plain data of which only some keys are read."""

    model_config = ConfigDict(strict=True, frozen=True)


class _Timer(_Excerpt):
    secondsRemaining: float = Field(allow_inf_nan=False)


class _Module(_Excerpt):
    name: str
    isSolved: bool


class _BombState(_Excerpt):
    isSolved: bool
    isDetonated: bool
    strikes: list[str]
    maxStrikes: int
    timerModule: _Timer
    modules: list[_Module]


class Result(NamedTuple):
    """How a game ended.

    Attributes:
        outcome: ``solved``, ``timeout``, ``strikeout``, ``detonated`` or ``incomplete``; the first that fits.
        seconds_remaining: on the timer, not negative.
        strike_count: number of strikes.
        num_modules_solved: number of solved modules.
        n_modules: number of modules, with those that cannot be solved.
    """

    outcome: str
    seconds_remaining: float
    strike_count: int
    num_modules_solved: int
    n_modules: int


def read_result(state: Any, where: str) -> Result:
    """How a game ended, from the final state of its bomb.

    Raises:
        RecordError: the state lacks a field.
    """
    try:
        bomb = read_model(state, _BombState, where)
    except ConfigError as error:
        raise RecordError(str(error)) from None
    solvable = [module.isSolved for module in bomb.modules if module.name not in NEEDY]
    seconds = max(bomb.timerModule.secondsRemaining, 0.0)
    if bomb.isSolved or (solvable and all(solvable)):
        outcome = "solved"
    elif not bomb.isDetonated:
        outcome = "incomplete"
    elif seconds == 0:
        outcome = "timeout"
    else:
        outcome = "strikeout" if len(bomb.strikes) >= bomb.maxStrikes else "detonated"
    solved = sum(module.isSolved for module in bomb.modules)
    return Result(outcome, seconds, len(bomb.strikes), solved, len(bomb.modules))


def is_valid(outcome: str, is_hard_crash: bool) -> bool:
    """Whether a game counts: no crash, and the bomb was solved, or ran out of time or strikes."""
    return not is_hard_crash and outcome in VALID_OUTCOMES


# ---- records ---------------------------------------------------------------------------------------------------


class Recording(NamedTuple):
    """The record of one player, checked.

    Attributes:
        footer: as it stands in the file.
        spec: what was asked for.
        capabilities: by role.
        result: how the game ended; None in the record of an expert.
        n_turns: steps without the look back.
        steps: plain values, as in :func:`rowproof.gptnt.room.play`.
        sha256: of the file; empty if there is none yet.
        path: of the file; None if there is none.
        data: the file, where it has no path.
    """

    footer: Footer
    spec: Spec
    capabilities: dict[str, Capabilities]
    result: Result | None
    n_turns: int
    steps: list[Record]
    sha256: str = ""
    path: Path | None = None
    data: bytes = b""

    @property
    def session_id(self) -> str:
        """The session."""
        return self.footer.descriptor.session_id

    @property
    def player_uuid(self) -> str:
        """The player."""
        descriptor = self.footer.descriptor
        uuid = descriptor.defuser_uuid if self.footer.role == DEFUSER else descriptor.expert_uuid
        assert uuid is not None
        return uuid

    @property
    def record(self) -> Record:
        """The record as :func:`rowproof.gptnt.room.play` leaves it."""
        return {
            "format_version": FORMAT_VERSION,
            "session_id": self.session_id,
            "player_uuid": self.player_uuid,
            "footer": self.footer.model_dump(),
            "steps": self.steps,
        }

    @property
    def execution(self) -> str:
        """The same for all records of one game: digest of what they must have in common."""
        return digest(self.footer.model_dump(exclude={"final_bomb_state", "is_hard_crash", "role"}))

    @property
    def folder(self) -> Path | None:
        """Where the file lies."""
        return None if self.path is None else self.path.parent

    @property
    def fingerprints(self) -> tuple[str, str]:
        """Capability fingerprints of defuser and expert; the latter is empty without one."""
        expert = self.capabilities.get(EXPERT)
        return self.capabilities[DEFUSER].fingerprint, "" if expert is None else expert.fingerprint


def _check(record: Record, where: str) -> Recording:
    """The one rule for what is written and what is read."""
    try:
        footer = read_model(record["footer"], Footer, f"{where}: footer")
        descriptor = footer.descriptor
        spec = read_spec(encode_line(descriptor.experiment_spec).encode(), f"{where}: experiment_spec")
        given = {DEFUSER: descriptor.defuser_capabilities, EXPERT: descriptor.expert_capabilities}
        capabilities = {
            role: read_model(data, Capabilities, f"{where}: {role}_capabilities")
            for role, data in given.items()
            if data is not None
        }
    except ConfigError as error:
        raise RecordError(str(error)) from None
    if footer.role not in (DEFUSER, EXPERT):
        raise RecordError(f"{where}: role must be {DEFUSER} or {EXPERT}, found {footer.role!r}")
    if len({spec.expert_name is None, descriptor.expert_uuid is None, EXPERT not in capabilities}) != 1:
        raise RecordError(f"{where}: name, uuid and capabilities of the expert must be there together or not at all")
    names = {DEFUSER: spec.defuser_name, EXPERT: spec.expert_name}
    for role, one in capabilities.items():
        if one.player_name != names[role]:
            raise RecordError(
                f"{where}: {role}_capabilities must be of {names[role]!r} as the spec has it, found {one.player_name!r}"
            )
    uuid = descriptor.defuser_uuid if footer.role == DEFUSER else descriptor.expert_uuid
    for key, known in (("session_id", descriptor.session_id), ("player_uuid", uuid)):
        if record[key] != known or known is None:
            raise RecordError(f"{where}: {key} must be {known} as the descriptor has it, found {record[key]!r}")
    if (footer.final_bomb_state is None) != (footer.role == EXPERT):
        raise RecordError(f"{where}: final_bomb_state must be there for the defuser and null for the expert")
    state = footer.final_bomb_state
    result = None if state is None else read_result(state, f"{where}: final_bomb_state")
    constants = {
        "role": footer.role,
        "session_id": descriptor.session_id,
        "player_uuid": uuid,
        "player_name": names[footer.role],
    }
    steps = record["steps"]
    if not steps:
        raise RecordError(f"{where}: must hold at least one step, found none: a player without steps has no record")
    known = {role: footer.step_counts.get(role) for role in capabilities} | {footer.role: len(steps)}
    if footer.step_counts != known:
        raise RecordError(
            f"{where}: step_counts must be of {sorted(capabilities)}, {len(steps)} for the {footer.role}, found "
            f"{footer.step_counts}"
        )
    for number, step in enumerate(steps, start=1):
        _check_step(step, constants | {"step": number}, f"{where}: step {number}")
    turns = [step for step in steps if not step["is_reflection"]]
    if footer.role == DEFUSER and (not turns or turns[-1]["bomb_state"] != state):
        raise RecordError(f"{where}: the last turn of the defuser must show final_bomb_state, found another bomb_state")
    return Recording(footer, spec, capabilities, result, len(turns), steps)


def _check_step(step: Record, constants: Record, where: str) -> None:
    if list(step) != SCHEMA.names:
        raise RecordError(f"{where}: must have the columns {SCHEMA.names}, found {list(step)}")
    for key, known in constants.items():
        if step[key] != known:
            raise RecordError(f"{where}: {key} must be {known!r}, found {step[key]!r}")
    for column in STEP_COLUMNS:
        value = step[column.name]
        if value is None and not column.null:
            raise RecordError(f"{where}: {column.name} must be there, found null")
        if column.type == "DOUBLE" and value is not None and not (type(value) is float and math.isfinite(value)):
            raise RecordError(f"{where}: {column.name} must be a finite number of seconds, found {value!r}")
    if step["output_kind"] not in OUTPUT_KINDS:
        raise RecordError(f"{where}: output_kind must be one of {list(OUTPUT_KINDS)}, found {step['output_kind']!r}")
    if bool(step["is_reflection"]) != (step["output_kind"] == REFLECTION):
        raise RecordError(f"{where}: is_reflection must be true for output_kind {REFLECTION} and for no other")
    unknown = sorted(set(step["error_type"] or ()) - set(ERROR_KINDS))
    if unknown:
        raise RecordError(f"{where}: error_type must hold kinds out of {list(ERROR_KINDS)}, found {unknown}")
    usage = step["usage"]
    if not isinstance(usage, dict) or set(usage) != set(Usage._fields):
        raise RecordError(f"{where}: usage must have the counts {list(Usage._fields)}, found {usage!r}")
    details = usage["details"] if isinstance(usage["details"], dict) else {"details": None}
    for name, count in (usage | details).items():
        if name != "details" and (type(count) is not int or count < 0):
            raise RecordError(f"{where}: usage: {name} must be a count, found {count!r}")
    if not isinstance(usage["details"], dict):
        raise RecordError(f"{where}: usage: details must be an object, found {usage['details']!r}")


# ---- totals ----------------------------------------------------------------------------------------------------


def _empty() -> Record:
    return {
        "turns": 0,
        **dict.fromkeys(ACTION_COUNTS.values(), 0),
        "lost_turns": 0,
        "errors": {},
        **dict.fromkeys(_TOKENS, 0),
        "reflection": {"turns": 0, "errors": {}} | dict.fromkeys(_TOKENS, 0),
    }


def step_totals(steps: Iterable[Record]) -> dict[str, Record]:
    """Sums over the steps of a session by role; the look back has sums of its own under ``reflection``.

    A turn is lost if an error made nothing of it. Steps need ``role``, ``is_reflection``, ``output_kind``,
    ``error_type`` and ``usage``.
    """
    totals: dict[str, Record] = {}
    for step in steps:
        total = totals.setdefault(step["role"], _empty())
        errors = step["error_type"] or []
        if step["is_reflection"]:
            total = total["reflection"]
        else:
            total[ACTION_COUNTS[step["output_kind"]]] += 1
            nothing_left = step["output_kind"] == DO_NOTHING and bool(_LOSING & set(errors))
            total["lost_turns"] += nothing_left or GUARDRAIL in errors
        total["turns"] += 1
        total["errors"] = dict(sorted((Counter(total["errors"]) + Counter(errors)).items()))
        for key in _TOKENS:
            total[key] += step["usage"][key]
    return totals


# ---- files -----------------------------------------------------------------------------------------------------


def file_name(attempt_name: str, player_uuid: str) -> str:
    """The name of a record's file; long attempt names are cut and closed with a part of their digest."""
    room = _NAME_LENGTH - len(f"experiment--{player_uuid}.parquet")
    if len(attempt_name) > room:
        mark = sha256_hex(attempt_name.encode())[:_HASH_LENGTH]
        attempt_name = f"{attempt_name[: room - _HASH_LENGTH - 1]}-{mark}"
    return f"experiment-{attempt_name}-{player_uuid}.parquet"


def encode_recording(record: Record, where: str = "record") -> bytes:
    """The Parquet file of a record; the same record always gives the same bytes.

    Raises:
        RecordError: the record is not one that :func:`read_recording` would take.
    """
    _check(record, where)
    rows = [{column.name: _cell(column, step[column.name]) for column in STEP_COLUMNS} for step in record["steps"]]
    footer = {
        "footer": encode_line(record["footer"]),
        "format_version": str(record["format_version"]),
        "session_id": record["session_id"],
        "player_uuid": record["player_uuid"],
    }
    sink = pa.BufferOutputStream()
    try:
        table = pa.Table.from_pylist(rows, SCHEMA.with_metadata(footer))
        pq.write_table(table, sink, row_group_size=ROW_GROUP, compression="zstd", write_page_checksum=True)
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise RecordError(f"{where}: must fit the columns of a record: {error}") from None
    return sink.getvalue().to_pybytes()


def write_game(game: Game, folder: Path) -> list[Path]:
    """Write the records of a game, one file per player with steps, and return their paths.

    Raises:
        RecordError: a record is not one that :func:`read_recording` would take; nothing is written.
    """
    files = {}
    for role, record in game.records.items():
        data = encode_recording(record, f"record of the {role}")
        spec = record["footer"]["descriptor"]["experiment_spec"]
        name = read_spec(encode_line(spec).encode(), "experiment_spec").attempt_name
        files[folder / file_name(name, record["player_uuid"])] = data
    # The record of the defuser makes a session: written last, it never stands for a game whose other record is missing.
    for path, data in reversed(files.items()):
        write_atomic(path, data)
    return list(files)


def recording_paths(folder: Path) -> list[Path]:
    """All record files below a folder, sorted.

    Raises:
        ConfigError: there is no such folder.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder}: must be a folder with records ({PATTERN}), found none: play games first")
    return sorted(path for path in folder.rglob(PATTERN) if path.is_file())


def read_recording(path: Path) -> Recording:
    """Read the record of one player.

    Raises:
        RecordError: the file cannot be read, is no whole Parquet file, is of another format version, or holds
            anything that does not fit together.
    """
    where = str(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RecordError(f"{where}: must be a readable file: {error.strerror}") from None
    return decode_recording(data, where)._replace(path=path, data=b"")


def decode_recording(data: bytes, where: str) -> Recording:
    """The record in the bytes of a file; see :func:`read_recording`."""
    table, metadata = _open(data, where)
    try:
        rows = table.to_pylist()
    except UnicodeDecodeError as error:
        raise RecordError(f"{where}: texts must be UTF-8: {error}") from None
    record = {
        "format_version": FORMAT_VERSION,
        "session_id": metadata["session_id"].decode(errors="replace"),
        "player_uuid": metadata["player_uuid"].decode(errors="replace"),
        "footer": decode(metadata["footer"], f"{where}: footer"),
        "steps": [plain_step(row, f"{where}: step {number}") for number, row in enumerate(rows, start=1)],
    }
    return _check(record, where)._replace(sha256=sha256_hex(data), data=data)


def read_table(recording: Recording) -> pa.Table:
    """The rows of a recording's file as they are stored, in the columns of ``SCHEMA``.

    Raises:
        RecordError: the file is gone or is no longer the one that was read.
    """
    where = str(recording.path)
    try:
        data = recording.data if recording.path is None else recording.path.read_bytes()
    except OSError as error:
        raise RecordError(f"{where}: must be a readable file: {error.strerror}") from None
    if sha256_hex(data) != recording.sha256:
        raise RecordError(f"{where}: must not change while it is read, found another content: try again")
    return _open(data, where)[0]


def plain_step(row: Record, where: str) -> Record:
    """The plain values of a stored row, whose columns may be those of a file or of the database.

    Raises:
        RecordError: a cell is no JSON, or a damaged blob.
    """
    return {c.name: _plain(c, row[c.name], f"{where}: {c.name}") for c in STEP_COLUMNS}


def _open(data: bytes, where: str) -> tuple[pa.Table, dict[str, bytes]]:
    try:
        file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
        metadata = {key.decode(): value for key, value in (file.metadata.metadata or {}).items()}
        version = metadata.get("format_version", b"")
        if version != str(FORMAT_VERSION).encode():
            raise RecordError(f"{where}: format_version must be {FORMAT_VERSION}, found {version.decode()!r}")
        missing = [key for key in ("footer", "session_id", "player_uuid") if key not in metadata]
        if missing:
            raise RecordError(f"{where}: the footer must hold {', '.join(missing)}, found {sorted(metadata)}")
        if not file.schema_arrow.equals(SCHEMA):
            raise RecordError(f"{where}: must have the columns of a record, found {_difference(file.schema_arrow)}")
        return file.read().replace_schema_metadata(None), metadata
    except (pa.ArrowException, OSError, ValueError) as error:
        # Messages of the library may hold line breaks and bytes of the file.
        cause = re.sub(r"\s+", " ", str(error))[:200]
        raise RecordError(f"{where}: must be a whole Parquet file: {cause}") from None


def _difference(found: pa.Schema) -> str:
    ours = {field.name: f"{field.name} {field.type}{'' if field.nullable else ' not null'}" for field in SCHEMA}
    theirs = {field.name: f"{field.name} {field.type}{'' if field.nullable else ' not null'}" for field in found}
    missing = [text for text in ours.values() if text not in theirs.values()]
    other = [text for text in theirs.values() if text not in ours.values()]
    return f"these missing: {missing}, these instead: {other}" if missing or other else f"the order {found.names}"


# ---- sessions --------------------------------------------------------------------------------------------------


class Session(NamedTuple):
    """One game that was played, with the records that are left of it.

    Attributes:
        defuser: record of the defuser.
        expert: record of the expert, if there is one.
    """

    defuser: Recording
    expert: Recording | None

    @property
    def recordings(self) -> list[Recording]:
        """The records, the defuser's first."""
        return [self.defuser] if self.expert is None else [self.defuser, self.expert]

    @property
    def session_id(self) -> str:
        """Its id."""
        return self.defuser.session_id

    @property
    def result(self) -> Result:
        """How it ended."""
        assert self.defuser.result is not None
        return self.defuser.result

    @property
    def is_hard_crash(self) -> bool:
        """Whether any of its players says that it crashed."""
        return any(recording.footer.is_hard_crash for recording in self.recordings)

    @property
    def is_valid(self) -> bool:
        """Whether it counts."""
        return is_valid(self.result.outcome, self.is_hard_crash)

    @property
    def is_whole(self) -> bool:
        """Whether each player that took steps has a record."""
        return len(self.recordings) == sum(map(bool, self.defuser.footer.step_counts.values()))

    @property
    def content(self) -> Content:
        """What was played."""
        spec, (defuser, expert) = self.defuser.spec, self.defuser.fingerprints
        return Content(spec.attempt_name, spec.fingerprint, defuser, expert)

    @property
    def rank(self) -> tuple[bool, bool, float, tuple[str, ...]]:
        """Key by which the session that stands for others is the largest: valid, whole, newest, then by content."""
        hashes = tuple(recording.sha256 for recording in self.recordings)
        return self.is_valid, self.is_whole, self.defuser.footer.descriptor.start_time, hashes


def join(recordings: Iterable[Recording]) -> tuple[list[Session], list[Recording]]:
    """Sessions out of records, sorted by id, and the records that lack that of their defuser.

    Records of one session may lie in several folders. The same session may have been played more than once, since ids
    follow from what is played: where folders hold different records of one player, each folder is a session.
    """
    groups: dict[tuple[str, str], list[Recording]] = {}
    for one in recordings:
        groups.setdefault((one.session_id, one.execution), []).append(one)
    sessions, left = [], []
    for _, group in sorted(groups.items()):
        contents = {(one.footer.role, one.sha256) for one in group}
        replayed = len(contents) > len({role for role, _ in contents})
        parts: dict[Path | None, list[Recording]] = {}
        for one in group:
            parts.setdefault(one.folder if replayed else None, []).append(one)
        for part in parts.values():
            roles = {one.footer.role: one for one in sorted(part, key=lambda one: one.sha256)}
            if DEFUSER in roles:
                sessions.append(Session(roles[DEFUSER], roles.get(EXPERT)))
            else:
                left += part
    return sorted(sessions, key=lambda session: (session.session_id, session.rank)), left


class Found(NamedTuple):
    """What a folder holds.

    Attributes:
        recordings: without their steps.
        damaged: path to what is wrong with it.
    """

    recordings: list[Recording]
    damaged: dict[Path, str]


def read_folder(folder: Path, workers: int = 1) -> Found:
    """Read and check all records below a folder; damaged ones are told and hinder none of the others.

    Raises:
        ConfigError: there is no such folder, or fewer than one worker is asked for.
    """
    if workers < 1:
        raise ConfigError(f"workers must be 1 or more, found {workers}")

    def read(path: Path) -> Recording | RecordError:
        try:
            return read_recording(path)._replace(steps=[])
        except RecordError as error:
            return error

    found = Found([], {})
    paths = recording_paths(folder)
    with ThreadPoolExecutor(workers) as pool:
        for path, one in zip(paths, pool.map(read, paths), strict=True):
            if isinstance(one, RecordError):
                found.damaged[path] = str(one)
            else:
                found.recordings.append(one)
    return found
