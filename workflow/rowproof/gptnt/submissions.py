"""Submissions to the leaderboard: bundles of results, and the checks that each must pass.

A bundle is a folder with ``submission.yaml`` and either a table of games or the scores of a static task. Nothing here
needs a network.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from pydantic import Field, field_validator, model_validator

from rowproof.errors import ConfigError, RecordError
from rowproof.files import write_atomic
from rowproof.gptnt.capabilities import Capabilities, Identity
from rowproof.gptnt.database import SUMMARY_COLUMNS, connect, runs, session_steps
from rowproof.gptnt.metrics import Run, counts, select
from rowproof.gptnt.models import Positive, Strict
from rowproof.gptnt.names import config_names
from rowproof.gptnt.player_config import PLAYERS
from rowproof.gptnt.players.turns import DEFUSER, EXPERT, Usage
from rowproof.gptnt.recordings import ARROW, Column, read_result
from rowproof.gptnt.room import Record
from rowproof.gptnt.suite_lock import LOCK, FrozenSuite, Lock, frozen_suite
from rowproof.gptnt.suites import LEADERBOARD
from rowproof.plain_data import read_model
from rowproof.records import decode, encode_line
from rowproof.strict_yaml import parse, validate

FOLDER = "output/submissions"
MANIFEST, GAMES, METRICS, META = "submission.yaml", "experiments.parquet", "metrics.json", "run_meta.json"
SCHEMA_VERSION = 1

GAME_COLUMNS = (
    *SUMMARY_COLUMNS,
    Column("final_bomb_state", "JSON"),
    Column("defuser_usage", "JSON"),
    Column("expert_usage", "JSON", null=True),
)
GAMES_SCHEMA = pa.schema([pa.field(one.name, ARROW[one.type], nullable=one.null) for one in GAME_COLUMNS])

# A version that an installer could have; releases before the first are no versions of an installed package.
_VERSION = r"\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9.]+)?"


# ---- manifest --------------------------------------------------------------------------------------------------


class MeasuredSuite(Strict):
    """Which frozen suite was played."""

    suite_name: str
    suite_revision: Positive
    suite_digest: str

    @property
    def target(self) -> tuple[str, str]:
        """Name and version of what was measured."""
        return self.suite_name, str(self.suite_revision)


class MeasuredStatic(Strict):
    """Which data set was answered."""

    task_name: str
    hf_repo_id: str
    dataset_split: str | None
    requested_revision: str | None
    resolved_revision: str | None

    @property
    def target(self) -> tuple[str, str]:
        """Name and version of what was measured."""
        return self.task_name, self.resolved_revision[:8] if self.resolved_revision else "unpinned"


class Submitter(Strict):
    """Who submits; blank until filled in."""

    name: str = ""
    contact: str = ""
    affiliation: str = ""


class SubmittedPlayer(Strict):
    """A player, with the fingerprint of its capabilities."""

    role: Literal["defuser", "expert"]
    capabilities: Capabilities
    identity: Identity
    fingerprint: str

    @model_validator(mode="after")
    def _untouched(self) -> "SubmittedPlayer":
        if self.fingerprint != self.capabilities.fingerprint:
            raise ValueError(
                f"fingerprint must be {self.capabilities.fingerprint}, that of the capabilities, "
                f"found {self.fingerprint}: build the bundle anew"
            )
        return self


class Origin(Strict):
    """What wrote the results."""

    gptnt_version: str
    git_sha: str | None


class Submission(Strict):
    """One ``submission.yaml``."""

    schema_version: Literal[1]
    submission_id: str
    measured: MeasuredSuite | MeasuredStatic
    submitter: Submitter
    players: list[SubmittedPlayer] = Field(min_length=1)
    provenance: Origin
    run_date: str

    @field_validator("players")
    @classmethod
    def _one_defuser(cls, players: list[SubmittedPlayer]) -> list[SubmittedPlayer]:
        if sum(player.role == DEFUSER for player in players) != 1:
            raise ValueError("there must be exactly one defuser")
        return sorted(players, key=lambda player: player.role != DEFUSER)

    @field_validator("run_date")
    @classmethod
    def _instant(cls, text: str) -> str:
        if datetime.fromisoformat(text).tzinfo is None:
            raise ValueError("must be an instant with its zone, as 2026-01-31T12:00:00+00:00")
        return text

    @property
    def defuser(self) -> SubmittedPlayer:
        """Whose results these are."""
        return self.players[0]

    @property
    def expert_fingerprints(self) -> set[str]:
        """Of all experts."""
        return {player.fingerprint for player in self.players if player.role == EXPERT}

    @property
    def derived_id(self) -> str:
        """The id that follows from the rest."""
        name, version = self.measured.target
        day = datetime.fromisoformat(self.run_date).astimezone(UTC).strftime("%Y-%m-%d")
        who = slug(self.defuser.capabilities.player_name)
        return f"{day}_{who}_{self.defuser.fingerprint[:8]}_{name}@{version}"

    @property
    def folder_name(self) -> str:
        """The name of its folder."""
        name, version = self.measured.target
        day = datetime.fromisoformat(self.run_date).astimezone(UTC).strftime("%Y%m%d")
        who = slug(self.defuser.identity.display_name)
        return f"{day}_{who}_{self.defuser.fingerprint[:8]}_{slug(name)}_{slug(version)}"

    def file(self) -> bytes:
        """The content of the file."""
        text = yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=120)
        return text.encode()


def slug(text: str) -> str:
    """Text in small letters a to z, digits and single dashes."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def read_submission(path: Path) -> Submission:
    """Read a ``submission.yaml``.

    Raises:
        ConfigError: it is missing, no YAML, or breaks the model.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: must be a readable file: {error.strerror}") from None
    document = parse(data, str(path))
    # Which of the two kinds is meant decides which messages help.
    measured = document.data.get("measured") if isinstance(document.data, dict) else None
    if not isinstance(measured, dict) or ("suite_name" in measured) == ("task_name" in measured):
        raise document.error(("measured",), "must be of one kind, with either suite_name or task_name")
    return validate(document, Submission)


# ---- building --------------------------------------------------------------------------------------------------


def build(
    root: Path,
    database: Path,
    output: Path,
    lock: Lock,
    *,
    suites: Sequence[str] = LEADERBOARD,
    models: Sequence[str] = (),
    submitter: Submitter | None = None,
    run_date: datetime | None = None,
) -> list[Path]:
    """Write a bundle per suite revision and setup of a defuser, and return their folders.

    A bundle holds attempt 1 of each mission and pairing, the newest valid session of it. A bundle that is built again
    keeps a submitter that was filled in.

    Args:
        root: project, whose player files tell who made a model.
        database: of games.
        output: where the folders go.
        lock: frozen suites.
        suites: names of suites to submit.
        models: names of defusers to submit; all if empty.
        submitter: who submits.
        run_date: of the games, for games in virtual time, which know no date.

    Raises:
        ConfigError: there is nothing to submit, a suite is not frozen, a player's file lacks its identity, games of
            one bundle are of several versions, or no date is known.
    """
    for name in suites:
        frozen_suite(lock, name)
    with connect(database) as connection:
        chosen = [
            run
            for run in select(runs(connection))
            if run["attempt"] == 1 and run["suite_name"] in suites and (not models or run["defuser_name"] in models)
        ]
        groups: dict[tuple[str, int, str], list[Run]] = {}
        for run in chosen:
            key = run["suite_name"], run["suite_revision"], run["defuser_capability_fingerprint"]
            groups.setdefault(key, []).append(run)
        if not groups:
            whom = f" by {', '.join(models)}" if models else ""
            raise ConfigError(
                f"{database}: must hold valid games of {', '.join(suites)}{whom} (attempt 1), found none: play them"
            )
        bundles = []
        for (name, revision, _), members in sorted(groups.items()):
            frozen = frozen_suite(lock, name, revision)
            submission = _describe(root, frozen, members, submitter or Submitter(), run_date)
            rows = [_game_row(connection, run) for run in members]
            bundles.append(_write(output / submission.folder_name, submission, {GAMES: _encode_games(rows)}))
    return bundles


def _describe(
    root: Path, frozen: FrozenSuite, members: Sequence[Run], submitter: Submitter, run_date: datetime | None
) -> Submission:
    where = f"suite {frozen.suite.name} revision {frozen.suite.revision}"
    versions = sorted({run["gptnt_version"] for run in members})
    if len(versions) != 1:
        raise ConfigError(f"{where}: games of a bundle must be of one version, found {versions}: play the older anew")
    commits = {run["git_sha"] for run in members}
    start_s = min(run["experiment_descriptor"]["start_time"] for run in members)
    if run_date is None and start_s == 0:
        raise ConfigError(
            f"{where}: the date of the games must be known, found games in virtual time: give it with --date"
        )
    instant = datetime.fromtimestamp(start_s, UTC) if run_date is None else run_date.astimezone(UTC)
    seats: dict[tuple[str, str], Any] = {}
    for run in members:
        for role in (DEFUSER, EXPERT):
            if run[f"{role}_capabilities"] is not None:
                seats[role, run[f"{role}_capability_fingerprint"]] = run[f"{role}_capabilities"]
    players = [_player(root, role, data) for (role, _), data in sorted(seats.items())]
    measured = MeasuredSuite(
        suite_name=frozen.suite.name, suite_revision=frozen.suite.revision, suite_digest=frozen.digest
    )
    # Where games are of several commits each row has its own.
    origin = Origin(gptnt_version=versions[0], git_sha=commits.pop() if len(commits) == 1 else None)
    return _with_id(measured, submitter, players, origin, instant)


def _with_id(
    measured: MeasuredSuite | MeasuredStatic,
    submitter: Submitter,
    players: list[SubmittedPlayer],
    origin: Origin,
    instant: datetime,
) -> Submission:
    submission = Submission(
        schema_version=SCHEMA_VERSION,
        submission_id="",
        measured=measured,
        submitter=submitter,
        players=players,
        provenance=origin,
        run_date=instant.isoformat(timespec="seconds"),
    )
    return submission.model_copy(update={"submission_id": submission.derived_id})


def _player(root: Path, role: str, data: Any) -> SubmittedPlayer:
    capabilities = read_model(data, Capabilities, f"capabilities of a {role}")
    return SubmittedPlayer(
        role="defuser" if role == DEFUSER else "expert",
        capabilities=capabilities,
        identity=_identity(root, capabilities.player_name),
        fingerprint=capabilities.fingerprint,
    )


def _identity(root: Path, player_name: str) -> Identity:
    for name in config_names(root / PLAYERS):
        where = f"{PLAYERS}/{name}.yaml"
        try:
            data = parse((root / where).read_bytes(), where).data
            found = data["capabilities"]["player_name"]
        except (ConfigError, OSError, TypeError, KeyError):
            # The file of another player may be broken.
            continue
        if found == player_name:
            return read_model(data.get("identity"), Identity, f"{where}: identity")
    raise ConfigError(
        f"{PLAYERS}: one file must have capabilities.player_name {player_name!r} and an identity, found none: write it"
    )


def _total_usage(steps: Iterable[Record]) -> Record:
    """Counts over all turns; the look back is left out."""
    total: Counter[str] = Counter()
    details: Counter[str] = Counter()
    for step in steps:
        if not step["is_reflection"]:
            total.update({key: count for key, count in step["usage"].items() if key != "details"})
            details.update(step["usage"]["details"])
    return {key: total[key] for key in Usage._fields if key != "details"} | {"details": dict(sorted(details.items()))}


def _game_row(connection: duckdb.DuckDBPyConnection, run: Run) -> Record:
    steps = session_steps(connection, run["session_id"])
    by_role = {role: [step for step in steps if step["role"] == role] for role in (DEFUSER, EXPERT)}
    state = [step["bomb_state"] for step in by_role[DEFUSER] if step["bomb_state"] is not None][-1]
    values = run | {
        "final_bomb_state": state,
        "defuser_usage": _total_usage(by_role[DEFUSER]),
        "expert_usage": _total_usage(by_role[EXPERT]) if run["expert_name"] is not None else None,
    }
    json_columns = {column.name for column in GAME_COLUMNS if column.type == "JSON"}
    return {
        column.name: encode_line(values[column.name])
        if column.name in json_columns and values[column.name] is not None
        else values[column.name]
        for column in GAME_COLUMNS
    }


def _encode_games(rows: Sequence[Record]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(list(rows), GAMES_SCHEMA), sink, compression="zstd", write_page_checksum=True)
    return sink.getvalue().to_pybytes()


def _write(folder: Path, submission: Submission, payload: Mapping[str, bytes]) -> Path:
    try:
        former = read_submission(folder / MANIFEST).submitter
    except ConfigError:
        former = Submitter()
    if submission.submitter == Submitter():
        submission = submission.model_copy(update={"submitter": former})
    for name, data in payload.items():
        write_atomic(folder / name, data)
    write_atomic(folder / MANIFEST, submission.file())
    return folder


def build_static(root: Path, run_folder: Path, output: Path, submitter: Submitter | None = None) -> Path:
    """Write the bundle of one run of a static task and return its folder.

    Args:
        root: project, whose player files tell who made a model.
        run_folder: with ``metrics.json`` and ``run_meta.json``.
        output: where the folder goes.
        submitter: who submits.

    Raises:
        ConfigError: a file is missing or lacks a field, or the player's file lacks its identity.
    """
    payload = {}
    for name in (METRICS, META):
        try:
            payload[name] = (run_folder / name).read_bytes()
        except OSError as error:
            raise ConfigError(f"{run_folder / name}: must be a readable file: {error.strerror}") from None
    where = str(run_folder / META)
    try:
        meta = decode(payload[META], where)
        keys = ("task_name", "hf_repo_id", "dataset_split", "requested_revision", "resolved_revision")
        measured = read_model({key: meta["statics"][key] for key in keys}, MeasuredStatic, where)
        instant = datetime.fromisoformat(meta["run_date"])
        origin = {"gptnt_version": meta["provenance"]["version"], "git_sha": meta["provenance"]["commit"]}
        player = _player(root, DEFUSER, meta["capabilities"])
    except (RecordError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{where}: must be the metadata of a finished run: {error!r}") from None
    submission = _with_id(measured, submitter or Submitter(), [player], Origin(**origin), instant)
    return _write(output / submission.folder_name, submission, payload)


# ---- checks ----------------------------------------------------------------------------------------------------

Verdict = Literal["pass", "warn", "fail"]


class Check(NamedTuple):
    """What one check of a bundle found.

    Attributes:
        bundle: name of the folder.
        name: of the check.
        verdict: whether it holds; a warning never fails a bundle.
        message: what must hold and what was found; empty if it passes.
    """

    bundle: str
    name: str
    verdict: Verdict
    message: str = ""


class _Checks:
    """Collects the checks of one bundle."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.found: list[Check] = []

    def add(self, name: str, problems: Sequence[str] | str | None, verdict: Verdict = "fail") -> bool:
        texts = [problems] if isinstance(problems, str) else list(problems or ())
        shown = "; ".join(texts[:5]) + (f"; and {len(texts) - 5} more" if len(texts) > 5 else "")
        self.found.append(Check(self.folder.name, name, verdict if texts else "pass", shown))
        return not texts


def check_bundle(folder: Path, lock: Lock) -> list[Check]:
    """All checks of one bundle, in order; those that earlier ones make meaningless are left out."""
    checks = _Checks(folder)
    try:
        submission = read_submission(folder / MANIFEST)
    except ConfigError as error:
        checks.add("manifest", str(error))
        return checks.found
    checks.add("manifest", None)
    played = isinstance(submission.measured, MeasuredSuite)
    own, other = (GAMES, METRICS) if played else (METRICS, GAMES)
    checks.add("layout", f"{other} must not lie beside {own}: remove it" if (folder / other).exists() else None)
    derived = submission.folder_name
    checks.add("directory", None if folder.name == derived else f"must be {derived}, found {folder.name}")
    derived, found = submission.derived_id, submission.submission_id
    checks.add("submission_id", None if found == derived else f"must be {derived}, found {found}")
    blank = [key for key in ("name", "contact") if not getattr(submission.submitter, key).strip()]
    checks.add("submitter", [f"submitter.{key} must be filled in, found it blank" for key in blank])
    _check_origin(checks, submission.provenance)
    if played:
        _check_games(checks, submission, lock)
    else:
        _check_static(checks, submission)
    return checks.found


def _check_origin(checks: _Checks, origin: Origin) -> None:
    version, commit = origin.gptnt_version, origin.git_sha
    known = re.fullmatch(_VERSION, version) and version != "0.0.0"
    checks.add("gptnt_version", None if known else f"must be a version of an installed package, found {version!r}")
    if not commit:
        checks.add("git_sha", "should be there, found none: play from a clean checkout", "warn")
    else:
        dirty = commit.endswith("-dirty")
        checks.add("git_sha", f"should be of a clean checkout, found {commit}" if dirty else None, "warn")


def _check_static(checks: _Checks, submission: Submission) -> None:
    assert isinstance(submission.measured, MeasuredStatic)
    try:
        decode((checks.folder / METRICS).read_bytes(), METRICS)
        problem = None
    except OSError as error:
        problem = f"{METRICS} must be a readable file: {error.strerror}"
    except RecordError as error:
        problem = str(error)
    checks.add("payload", problem)
    pinned = submission.measured.resolved_revision
    checks.add("dataset pin", None if pinned else "resolved_revision should be there, found none", "warn")
    try:
        statics = decode((checks.folder / META).read_bytes(), META)["statics"]
        whole = statics["n_instances"] == statics["n_dataset"] and statics["limit"] is None and not statics["n_failed"]
        problem = (
            None
            if whole
            else (
                f"all {statics['n_dataset']} instances must be scored, found {statics['n_instances']}, "
                f"{statics['n_failed']} of them failed: run the task in full"
            )
        )
    except (OSError, RecordError, KeyError, TypeError) as error:
        problem = f"{META} must tell how many instances were scored: {error!r}"
    checks.add("dataset coverage", problem)


def _read_games(path: Path) -> list[Record]:
    """The rows of a table of games.

    Raises:
        RecordError: it cannot be read, has other columns, or holds no rows.
    """
    try:
        file = pq.ParquetFile(pa.BufferReader(path.read_bytes()), page_checksum_verification=True)
        if not file.schema_arrow.equals(GAMES_SCHEMA):
            raise RecordError(f"{GAMES} must have the columns {GAMES_SCHEMA.names}, found {file.schema_arrow.names}")
        rows = file.read().to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
        cause = re.sub(r"\s+", " ", str(error))[:200]
        raise RecordError(f"{GAMES} must be a whole Parquet file: {cause}") from None
    if not rows:
        raise RecordError(f"{GAMES} must hold games, found none")
    return rows


def _check_games(checks: _Checks, submission: Submission, lock: Lock) -> None:
    measured = submission.measured
    assert isinstance(measured, MeasuredSuite)
    try:
        rows = _read_games(checks.folder / GAMES)
    except RecordError as error:
        checks.add("payload", str(error))
        return
    checks.add("payload", None)
    frozen = lock.get((measured.suite_name, measured.suite_revision))
    name = f"{measured.suite_name} revision {measured.suite_revision}"
    known = checks.add("suite", None if frozen else f"must be in {LOCK}, found {name}")
    if frozen is not None:
        same = frozen.digest == measured.suite_digest
        problem = None if same else f"must be {frozen.digest} as in the lock, found {measured.suite_digest}"
        known = checks.add("suite digest", problem)
    checks.add("outcomes", [problem for row in rows if (problem := _outcome_problem(row))])
    defusers = {row["defuser_capability_fingerprint"] for row in rows}
    own = {submission.defuser.fingerprint}
    checks.add("defuser", None if defusers == own else f"must be {sorted(own)}, found {sorted(defusers)}")
    experts = {row["expert_capability_fingerprint"] for row in rows} - {""}
    named = submission.expert_fingerprints
    checks.add("experts", None if experts == named else f"must be {sorted(named)}, found {sorted(experts)}")
    if not known or frozen is None:
        return
    wanted = (measured.suite_name, measured.suite_revision, frozen.suite.mission_set, 1)
    recorded = [(row["suite_name"], row["suite_revision"], row["mission_set"], row["attempt"]) for row in rows]
    problems = [
        f"{row['attempt_name']} must be of suite, revision, mission set and attempt {wanted}, found {found}"
        for row, found in zip(rows, recorded, strict=True)
        if found != wanted
    ]
    checks.add("experiments", problems)
    found = Counter((row["expert_capability_fingerprint"], row["mission_key"]) for row in rows)
    sides = sorted(named) or [""]
    expected = {(expert, mission.key) for mission in frozen.missions for expert in sides}
    checks.add("missing", [_pair(key) for key in sorted(expected - found.keys())])
    checks.add("duplicates", [f"{_pair(key)} {count} times" for key, count in sorted(found.items()) if count > 1])
    checks.add("unknown", [_pair(key) for key in sorted(found.keys() - expected)])


def _pair(key: tuple[str, str]) -> str:
    expert, mission = key
    return f"mission {mission}" + (f" with expert {expert[:8]}" if expert else "")


def _outcome_problem(row: Record) -> str | None:
    name = row["attempt_name"]
    if not counts(row):
        crash = " (crashed)" if row["is_hard_crash"] else ""
        return f"{name} must be a valid run, found {row['outcome']}{crash}"
    try:
        result = read_result(decode(row["final_bomb_state"].encode(), name), name)
    except RecordError as error:
        return str(error)
    stated = {key: row[key] for key in result._fields}
    return None if stated == result._asdict() else f"{name} must be as its final state shows, {result}, found {stated}"


# ---- validate --------------------------------------------------------------------------------------------------


def bundles_below(path: Path) -> list[Path]:
    """The folders of bundles at or below a path, sorted; one that lost its manifest is among them.

    Raises:
        ConfigError: there is no manifest at all.
    """
    if not any(path.rglob(MANIFEST)):
        raise ConfigError(
            f"{path}: must be a bundle or hold some ({MANIFEST}), found none: run rowproof submission new"
        )
    return sorted({file.parent for name in (MANIFEST, GAMES, METRICS) for file in path.rglob(name)})


def render(checks: Sequence[Check], form: Literal["rich", "json", "github"]) -> str:
    """Checks as text for a terminal, as JSON, or as annotations for GitHub Actions."""
    summary = {verdict: sum(check.verdict == verdict for check in checks) for verdict in ("pass", "warn", "fail")}
    if form == "json":
        return json.dumps({"summary": summary, "checks": [check._asdict() for check in checks]}, indent=2)
    if form == "github":
        level = {"fail": "error", "warn": "warning"}
        return "\n".join(
            f"::{level[check.verdict]} file={_escape(f'{check.bundle}/{MANIFEST}', True)},"
            f"title={_escape(check.name, True)}::{_escape(check.message)}"
            for check in checks
            if check.verdict != "pass"
        )
    lines = []
    for bundle in dict.fromkeys(check.bundle for check in checks):
        lines.append(bundle)
        lines += [f"  {c.verdict:<4}  {c.name:<16}  {c.message}".rstrip() for c in checks if c.bundle == bundle]
    return "\n".join([*lines, ", ".join(f"{count} {verdict}" for verdict, count in summary.items())])


def _escape(text: str, is_property: bool = False) -> str:
    # In this order: the mark of an escape comes first.
    signs = ["%", "\r", "\n", *([":", ","] if is_property else [])]
    for sign in signs:
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text


def _table(checks: Sequence[Check]) -> str:
    """A summary in Markdown."""
    lines = ["| bundle | check | verdict | message |", "| --- | --- | --- | --- |"]
    for check in checks:
        cells = [cell.replace("|", "\\|").replace("\n", " ") for cell in check]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def run_validate(
    path: Path,
    lock: Lock,
    form: Literal["rich", "json", "github"] = "rich",
    environment: Mapping[str, str] | None = None,
    show: Callable[[str], object] = print,
) -> int:
    """Check the bundles at or below a path; 1 if any check fails.

    Raises:
        ConfigError: there is no bundle.
    """
    checks = [check for folder in bundles_below(path) for check in check_bundle(folder, lock)]
    text = render(checks, form)
    if text:
        show(text)
    page = (environment or {}).get("GITHUB_STEP_SUMMARY")
    if form == "github" and page:
        with Path(page).open("a", encoding="utf-8") as stream:
            stream.write(_table(checks))
    return 1 if any(check.verdict == "fail" for check in checks) else 0


def run_new(
    root: Path,
    database: Path,
    output: Path,
    lock: Lock,
    *,
    suites: Sequence[str] = LEADERBOARD,
    models: Sequence[str] = (),
    statics: Sequence[Path] = (),
    submitter: Submitter | None = None,
    date: str = "",
    show: Callable[[str], object] = print,
) -> int:
    """Build the bundles of suites and of runs of static tasks; a static run that cannot be read is told and left out.

    Args:
        root: see :func:`build`, as all arguments that are not named here.
        database: of games.
        output: where the folders go.
        lock: frozen suites.
        suites: names of suites to submit; none are built if empty.
        models: names of defusers.
        statics: folders of runs of static tasks.
        submitter: who submits.
        date: of the games, as 2026-01-31 or with a time; without a zone it is in UTC. Empty for that of the records.
        show: where lines go.

    Raises:
        ConfigError: the date is none, or see :func:`build`.
    """
    run_date = _read_date(date) if date else None
    folders = []
    if suites:
        folders += build(
            root, database, output, lock, suites=suites, models=models, submitter=submitter, run_date=run_date
        )
    for run_folder in statics:
        try:
            folders.append(build_static(root, run_folder, output, submitter))
        except ConfigError as error:
            show(f"left out: {error}")
    for folder in folders:
        show(f"{folder}")
    return 0


def _read_date(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"the date must be as 2026-01-31 or 2026-01-31T12:00:00+00:00, found {text!r}") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
