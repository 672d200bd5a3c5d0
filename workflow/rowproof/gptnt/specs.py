"""Specs as files: generated from frozen suites, written, read, and matched with what was played."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from rowproof.errors import ConfigError, RecordError
from rowproof.files import write_if_changed
from rowproof.gptnt.spec import Spec
from rowproof.gptnt.suite_lock import FrozenSuite
from rowproof.gptnt.suites import pairings
from rowproof.plain_data import read_model
from rowproof.records import decode

FOLDER = "output/experiment_specs"
FOLDER_VARIABLE = "EXPERIMENT_SPECS_DIR"


def read_spec(data: bytes, where: str) -> Spec:
    """The spec of one file.

    Raises:
        ConfigError: no JSON, no spec, or its fingerprint is not that of its content.
    """
    try:
        raw = decode(data, where)
    except RecordError as error:
        raise ConfigError(str(error)) from None
    stated = raw.pop("fingerprint", None) if isinstance(raw, dict) else None
    spec = read_model(raw, Spec, where)
    if stated is not None and stated != spec.fingerprint:
        raise ConfigError(
            f"{where}: fingerprint must be {spec.fingerprint}, that of the content, found {stated!r}: "
            "remove the file and generate anew"
        )
    return spec


# ---- generation ------------------------------------------------------------------------------------------------


def suite_specs(
    frozen: FrozenSuite,
    players: Iterable[str],
    attempts: int = 1,
    best_expert: str | None = None,
    best_defuser: str | None = None,
) -> list[Spec]:
    """All specs of one suite: missions by key, in each the pairings, in each the attempts from 1.

    Args:
        frozen: the suite.
        players: names of the roster, in any order.
        attempts: games per mission and pairing.
        best_expert: name of the fixed expert, for suites that ask for one.
        best_defuser: name of the fixed defuser, for suites that ask for one.

    Raises:
        ConfigError: the suite needs an anchor that is not given.
    """
    suite = frozen.suite
    pairs = pairings(suite, sorted(players), best_expert, best_defuser)
    return [
        Spec.of(suite, mission, defuser, expert, attempt)
        for mission in frozen.missions
        for defuser, expert in pairs
        for attempt in range(1, attempts + 1)
    ]


def unite(specs: Iterable[Spec]) -> dict[str, Spec]:
    """Specs by attempt name, in order; the same spec twice counts once.

    Raises:
        ConfigError: two different specs have one name.
    """
    united: dict[str, Spec] = {}
    for spec in specs:
        name = spec.attempt_name
        if united.setdefault(name, spec).fingerprint != spec.fingerprint:
            raise ConfigError(
                f"attempt names must be unique, found two specs {name}: their missions share seed and kinds of "
                "modules, or one is of another state of the suite: remove one"
            )
    return united


# ---- files -----------------------------------------------------------------------------------------------------


def specs_folder(root: Path, manifest: Path, environment: Mapping[str, str]) -> Path:
    """Where the specs of a manifest are, for whoever writes or reads them.

    That is a folder with the manifest's name under ``output/experiment_specs``, or under ``EXPERIMENT_SPECS_DIR``.
    """
    base = environment.get(FOLDER_VARIABLE)
    return (Path(base) if base else root / FOLDER) / manifest.stem


def load_specs(folder: Path) -> dict[str, Spec]:
    """The specs of all files in a folder and below, by attempt name, in the order of the paths.

    Files may be taken away, to split work between machines.

    Raises:
        ConfigError: there are none, or a file is no spec.
    """
    paths = sorted(folder.rglob("*.json"))
    if not paths:
        raise ConfigError(f"{folder}: must hold specs (*.json), found none: run rowproof generate first")
    return unite(read_spec(_read(path), str(path)) for path in paths)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: must be a readable file: {error.strerror}") from None


class Written(NamedTuple):
    """What :func:`write_specs` did: files that changed, and file names of stale specs that it removed."""

    changed: int
    removed: list[str]


def write_specs(folder: Path, specs: Mapping[str, Spec]) -> Written:
    """Write one file per spec and remove specs that are not among them; files that are no specs stay.

    Beside the folder stands a table of all specs, ``<folder>.index.tsv``, with the columns ``INDEX_COLUMNS``.

    Raises:
        ConfigError: there are no specs, or two of them have one file name.
    """
    if not specs:
        raise ConfigError("there must be specs to write, found none: the suites give no pairing for this roster")
    files = {f"{spec.slug}.json": spec.file() for spec in specs.values()}
    if len(files) != len(specs):
        raise ConfigError(f"each spec must have a file name of its own, found {len(files)} for {len(specs)} specs")
    changed = sum(write_if_changed(folder / name, data, durable=False) for name, data in files.items())
    write_if_changed(folder.with_name(f"{folder.name}.index.tsv"), _index(specs), durable=False)
    removed = []
    for path in sorted(folder.rglob("*.json")):
        name = path.relative_to(folder).as_posix()
        if name in files:
            continue
        try:
            read_spec(path.read_bytes(), name)
        except (ConfigError, OSError):
            continue
        path.unlink()
        removed.append(name)
    return Written(changed, removed)


INDEX_COLUMNS = ("slug", "attempt_name", "fingerprint", "suite", "seed", "defuser", "expert", "attempt")


def _index(specs: Mapping[str, Spec]) -> bytes:
    rows = [INDEX_COLUMNS]
    for name, spec in specs.items():
        who = (spec.defuser_name, spec.expert_name or "")
        seed, attempt = str(spec.mission_spec.seed), str(spec.attempt)
        rows.append((spec.slug, name, spec.fingerprint, spec.suite_name, seed, *who, attempt))
    return "".join("\t".join(row) + "\n" for row in rows).encode()


# ---- resume ----------------------------------------------------------------------------------------------------


class Content(NamedTuple):
    """What a game consists of: its spec, and the capabilities of those who play it.

    Attributes:
        attempt_name: identity of the spec.
        spec_fingerprint: of what is measured.
        defuser_fingerprint: of the defuser's capabilities.
        expert_fingerprint: of the expert's, empty without one.
    """

    attempt_name: str
    spec_fingerprint: str
    defuser_fingerprint: str
    expert_fingerprint: str


def content_of(spec: Spec, fingerprints: Mapping[str, str]) -> Content:
    """The content of a spec; ``fingerprints`` has the capability fingerprint of each player name."""
    expert = fingerprints[spec.expert_name] if spec.expert_name is not None else ""
    return Content(spec.attempt_name, spec.fingerprint, fingerprints[spec.defuser_name], expert)


class Played(NamedTuple):
    """What one record says of its session; a session has a record for each player.

    Attributes:
        session_id: the same in all records of a session.
        content: what was played.
        is_valid: no crash, and the bomb was solved, or ran out of time or strikes.
    """

    session_id: str
    content: Content
    is_valid: bool


class Progress(NamedTuple):
    """How far a set of specs is, as attempt names in the order of the specs.

    Attributes:
        done: there is a valid session of this content.
        failed: there are sessions of this content, all of them invalid.
        not_attempted: there is no session of this content.
        outdated: those of ``failed`` and ``not_attempted`` that were played in full, but with other content.
    """

    done: list[str]
    failed: list[str]
    not_attempted: list[str]
    outdated: list[str]


def progress(specs: Mapping[str, Spec], fingerprints: Mapping[str, str], records: Iterable[Played]) -> Progress:
    """Which specs are done, told by content: a game of another suite state or of another setup of a player is none.

    A session is valid if all its records are. One crashed session does not undo a valid one.

    Args:
        specs: by attempt name.
        fingerprints: capability fingerprint of each player name in the specs.
        records: in any order.
    """
    sessions: dict[tuple[str, Content], bool] = {}
    for record in records:
        key = (record.session_id, record.content)
        sessions[key] = sessions.get(key, True) and record.is_valid
    valid = {content for (_, content), ok in sessions.items() if ok}
    attempted = {content for _, content in sessions}
    valid_names = {content.attempt_name for content in valid}
    found = Progress([], [], [], [])
    for name, spec in specs.items():
        content = content_of(spec, fingerprints)
        if content in valid:
            found.done.append(name)
            continue
        (found.failed if content in attempted else found.not_attempted).append(name)
        if name in valid_names:
            found.outdated.append(name)
    return found


def remaining(specs: Mapping[str, Spec], found: Progress) -> dict[str, Spec]:
    """The specs that are still to be played, in order."""
    done = set(found.done)
    return {name: spec for name, spec in specs.items() if name not in done}
