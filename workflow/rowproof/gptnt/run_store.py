"""A folder in place of a W&B project, for ``source: wandb``: one file per run, which is one player in one game.

The client of W&B itself is not supported; what is needed of its query surface is here.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rowproof.errors import ConfigError, RecordError
from rowproof.files import write_atomic
from rowproof.gptnt.models import Strict
from rowproof.gptnt.players.turns import DEFUSER
from rowproof.gptnt.recordings import Recording, read_folder
from rowproof.gptnt.spec import Spec
from rowproof.gptnt.specs import Content, Played, Progress, progress
from rowproof.plain_data import read_model
from rowproof.records import decode, encode_document

STORE_VARIABLE = "ROWPROOF_WANDB_FOLDER"
OLD = "old"
FINISHED, FAILED, RUNNING = "finished", "failed", "running"
# A session younger than this may lack runs that are still on their way.
UPLOAD_LIMIT_S = 600.0
# Players whose names begin so are there for tests; cleaning up leaves them alone unless asked.
DUMMY_PREFIX = "test-"
# Of the steps, what stays in the file of the record alone.
_LARGE = ("input_messages", "new_messages", "observation")
# The outcome of a Defuser's game; each must be there.
FLAGS = ("is_solved", "is_timed_out", "is_strike_out", "is_hard_crash")


class StoredRun(Strict):
    """One run.

    Attributes:
        id: name of its file.
        state: ``failed`` stands for a game that broke off.
        config: who played what.
        summary: how it ended, and the steps without messages and observations.
        tags: ``old`` takes it out of account.
        created_at: instant, ISO 8601 in UTC.
    """

    id: str
    state: Literal["running", "finished", "failed", "crashed"]
    config: dict[str, Any]
    summary: dict[str, Any]
    tags: list[str]
    created_at: str

    @property
    def attempt_name(self) -> str:
        """Of its spec."""
        return str(self.config.get("attempt_name"))

    @property
    def is_valid(self) -> bool:
        """Whether its part of the session counts: finished without a crash, a Defuser's with an outcome that counts."""
        if self.state != FINISHED or self.summary.get("is_hard_crash") is not False:
            return False
        return self.config.get("role") != DEFUSER or (
            all(type(self.summary.get(flag)) is bool for flag in FLAGS) and any(self.summary[flag] for flag in FLAGS)
        )


class RunStore:
    """The runs below a folder."""

    def __init__(self, folder: Path) -> None:
        """Look at ``folder``, which need not be there yet."""
        self.folder = folder
        self.problems: dict[Path, str] = {}

    def runs(
        self,
        states: Collection[str] | None = None,
        without_tags: Collection[str] = (),
        attempt_names: Collection[str] | None = None,
    ) -> list[StoredRun]:
        """The runs that fit, by time and id; those that cannot be read go to ``problems`` and hide no others.

        Args:
            states: any of these; None for all.
            without_tags: none of these.
            attempt_names: any of these; None for all.
        """
        found = []
        for path in sorted(self.folder.glob("*.json")):
            try:
                run = read_model(decode(path.read_bytes(), str(path)), StoredRun, str(path))
                _instant(run)
            except (OSError, RecordError, ConfigError, ValueError) as error:
                self.problems[path] = f"{path}: must be a run, found {error}"
                continue
            fits = states is None or run.state in states
            fits = fits and (attempt_names is None or run.attempt_name in attempt_names)
            if fits and not set(without_tags) & set(run.tags):
                found.append(run)
        return sorted(found, key=lambda run: (run.created_at, run.id))

    def add(self, run: StoredRun) -> None:
        """Keep a run in place of one with the same id."""
        write_atomic(self.folder / f"{run.id}.json", encode_document(run.model_dump()))

    def tag(self, run: StoredRun, tag: str) -> None:
        """Add a tag to a run."""
        self.add(run.model_copy(update={"tags": sorted({*run.tags, tag})}))

    def mirror(self, recording: Recording, now: datetime | None = None) -> StoredRun:
        """Keep what a record holds as a run, with its steps as far as they are small."""
        run = mirrored(recording, now or datetime.now(UTC))
        self.add(run)
        return run


def open_store(environment: Mapping[str, str]) -> RunStore:
    """The folder that the environment names.

    Raises:
        ConfigError: it names none.
    """
    folder = environment.get(STORE_VARIABLE)
    if not folder:
        raise ConfigError(
            f"source: wandb must have a folder in place of an account, found {STORE_VARIABLE} unset: "
            "set it, or set source: local"
        )
    return RunStore(Path(folder))


def mirrored(recording: Recording, now: datetime) -> StoredRun:
    """The run of a record with its steps."""
    footer, spec, result = recording.footer, recording.spec, recording.result
    defuser, expert = recording.fingerprints
    outcome = {} if result is None else result._asdict() | _flags(result.outcome)
    return StoredRun(
        id=recording.sha256[:16],
        state=FAILED if footer.is_hard_crash else FINISHED,
        config={
            "session_id": recording.session_id,
            "execution": recording.execution,
            "player_uuid": recording.player_uuid,
            "game_uuid": footer.descriptor.game_uuid,
            "role": footer.role,
            "experiment_name": spec.experiment_name,
            "attempt_name": spec.attempt_name,
            "spec_fingerprint": spec.fingerprint,
            "defuser_capability_fingerprint": defuser,
            "expert_capability_fingerprint": expert,
            "experiment_spec": footer.descriptor.experiment_spec,
            "step_counts": footer.step_counts,
        },
        summary={
            **outcome,
            "is_hard_crash": footer.is_hard_crash,
            "duration_s": footer.duration_s,
            "steps": [{key: value for key, value in step.items() if key not in _LARGE} for step in recording.steps],
        },
        tags=[],
        created_at=now.astimezone(UTC).isoformat(timespec="seconds"),
    )


def _flags(outcome: str) -> dict[str, bool]:
    # Under the names of the database.
    kinds = {"is_solved": "solved", "is_strike_out": "strikeout", "is_timed_out": "timeout"}
    return {flag: outcome == kind for flag, kind in kinds.items()}


# ---- what is done ----------------------------------------------------------------------------------------------


class StoredSession(NamedTuple):
    """The runs of one game."""

    runs: list[StoredRun]

    @property
    def content(self) -> Content | None:
        """What was played; None if a run does not tell."""
        keys = ("attempt_name", "spec_fingerprint", "defuser_capability_fingerprint", "expert_capability_fingerprint")
        values = [self.runs[0].config.get(key) for key in keys]
        return Content(*values) if all(isinstance(value, str) for value in values) else None

    @property
    def is_whole(self) -> bool:
        """Whether there is one run for each player that took steps."""
        counts = self.runs[0].config.get("step_counts")
        wanted = sorted(role for role, count in counts.items() if count) if isinstance(counts, dict) else None
        return sorted(str(run.config.get("role")) for run in self.runs) == wanted

    @property
    def is_valid(self) -> bool:
        """Whether it counts."""
        return self.is_whole and all(run.is_valid for run in self.runs)

    @property
    def is_running(self) -> bool:
        """Whether a run of it is under way."""
        return any(run.state == RUNNING for run in self.runs)

    @property
    def created_at(self) -> str:
        """When its newest run was made."""
        return max(run.created_at for run in self.runs)


def sessions_of(runs: Iterable[StoredRun]) -> list[StoredSession]:
    """Runs by the games that they are of, in the order of their first runs."""
    groups: dict[tuple[str, str], list[StoredRun]] = {}
    for run in runs:
        key = str(run.config.get("session_id")), str(run.config.get("execution"))
        groups.setdefault(key, []).append(run)
    return [StoredSession(group) for group in groups.values()]


class StoreLedger(NamedTuple):
    """What a store says; for the same questions as :class:`rowproof.gptnt.ledger.Ledger`.

    Attributes:
        records: what each session played, and whether it counts.
        running: attempt names that are under way.
        problems: path to what is wrong with a run.
    """

    records: list[Played]
    running: list[str]
    problems: dict[Path, str]

    def progress(self, specs: Mapping[str, Spec], fingerprints: Mapping[str, str]) -> Progress:
        """How far specs are; see :func:`rowproof.gptnt.specs.progress`."""
        return progress(specs, fingerprints, self.records)


def read_store(store: RunStore) -> StoreLedger:
    """What a store says of all specs; nothing in it is changed."""
    sessions = sessions_of(store.runs(without_tags=(OLD,)))
    records = [
        Played(str(number), session.content, session.is_valid)
        for number, session in enumerate(sessions)
        if session.content is not None and not session.is_running
    ]
    running = [session.runs[0].attempt_name for session in sessions if session.is_running]
    return StoreLedger(records, running, dict(store.problems))


# ---- cleaning up -----------------------------------------------------------------------------------------------


class Reconciliation(NamedTuple):
    """What would be done, with reasons.

    Attributes:
        tags: runs that become old.
        files: records that are removed.
    """

    tags: list[tuple[StoredRun, str]]
    files: list[tuple[Path, str]]


def plan_reconciliation(
    store: RunStore,
    folder: Path,
    now: datetime | None = None,
    include_dummies: bool = False,
    mark_missing: bool = True,
) -> Reconciliation:
    """How store and records below a folder are brought together; nothing is changed.

    Runs become old in sessions that lack a run or ended without a decision, in all but the newest valid session of what
    was played, and where no file holds the record. Records without a valid run are removed. What is younger than
    :data:`UPLOAD_LIMIT_S` stays, and so does what cannot be read.

    Args:
        store: the runs.
        folder: the records.
        now: the present instant; that of the clock by default.
        include_dummies: players of tests as well.
        mark_missing: a run whose record is not here becomes old.

    Raises:
        ConfigError: there is no such folder.
    """
    now = now or datetime.now(UTC)
    found = [one for one in read_folder(folder).recordings if one.path is not None]
    local = {(one.spec.attempt_name, one.player_uuid) for one in found}
    runs = store.runs(without_tags=(OLD,))
    reasons: dict[str, str] = {}
    newest: dict[Content, StoredSession] = {}
    sessions = [one for one in sessions_of(runs) if not _is_young(one, now) and (include_dummies or not _is_dummy(one))]
    for session in sorted(sessions, key=lambda one: (one.is_valid, one.created_at)):
        if session.content is not None:
            newest[session.content] = session
    for session in sessions:
        reason = ""
        if not session.is_whole:
            reason = "its session lacks a run"
        elif any(run.config.get("role") == DEFUSER and _is_undecided(run) for run in session.runs):
            reason = "its game ended without a decision"
        elif session.content is not None and newest[session.content] is not session:
            reason = "there is a newer session"
        for run in session.runs:
            missing = mark_missing and (run.attempt_name, run.config.get("player_uuid")) not in local
            if own := reason or ("its record is not here" if missing else ""):
                reasons[run.id] = own
    kept = {(run.attempt_name, run.config.get("player_uuid")) for run in runs if run.is_valid and run.id not in reasons}
    files = [
        (one.path, "it has no valid run")
        for one in found
        if one.path is not None
        and (one.spec.attempt_name, one.player_uuid) not in kept
        and now.timestamp() - one.path.stat().st_mtime > UPLOAD_LIMIT_S
        and (include_dummies or not any(name.startswith(DUMMY_PREFIX) for name in one.spec.players))
    ]
    return Reconciliation([(run, reasons[run.id]) for run in runs if run.id in reasons], files)


def _instant(run: StoredRun) -> datetime:
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", run.created_at):
        raise ValueError(f"created_at {run.created_at!r}, which is no instant as 2026-01-31T12:00:00+00:00")
    return datetime.fromisoformat(run.created_at)


def _is_young(session: StoredSession, now: datetime) -> bool:
    return session.is_running or any((now - _instant(run)).total_seconds() < UPLOAD_LIMIT_S for run in session.runs)


def _is_dummy(session: StoredSession) -> bool:
    spec = session.runs[0].config.get("experiment_spec")
    names = [spec.get("defuser_name"), spec.get("expert_name")] if isinstance(spec, dict) else []
    return any(isinstance(name, str) and name.startswith(DUMMY_PREFIX) for name in names)


def _is_undecided(run: StoredRun) -> bool:
    return run.state == FINISHED and not any(run.summary.get(flag) for flag in FLAGS)


def run_reconcile(
    store: RunStore,
    folder: Path,
    execute: bool = False,
    include_dummies: bool = False,
    mark_missing: bool = True,
    show: Any = print,
) -> int:
    """Show what :func:`plan_reconciliation` found, and with ``execute`` do it."""
    plan = plan_reconciliation(store, folder, None, include_dummies, mark_missing)
    for run, reason in plan.tags:
        show(f"old: {run.id} ({run.attempt_name}): {reason}")
        if execute:
            store.tag(run, OLD)
    for path, reason in plan.files:
        show(f"remove: {path}: {reason}")
        if execute:
            path.unlink(missing_ok=True)
    for problem in store.problems.values():
        show(f"left alone: {problem}")
    done = "" if execute else " would be: add --execute"
    show(f"{len(plan.tags)} runs tagged {OLD}, {len(plan.files)} records removed{done}")
    return 0
