"""``config/suites/suites.lock``: frozen revisions of suites, from which alone suites and missions can be rebuilt.

The file is TOML and only grows. Games are generated from it and never from the live files.
"""

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field

from rowproof.errors import ConfigError
from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.models import ConfigName, Positive, Strict
from rowproof.gptnt.names import unknown_name
from rowproof.gptnt.suite import Suite
from rowproof.gptnt.suites import FOLDER, LIST_SUITES
from rowproof.plain_data import read_model

LOCK = f"{FOLDER}/suites.lock"
VERSION = 2
FREEZE = "rowproof suite freeze"


class Stamp(Strict):
    """Who froze an entry; takes no part in any comparison.

    Attributes:
        frozen_at: ISO 8601, UTC.
        gptnt_version: version of this package.
        git_sha: commit, empty if unknown.
        assets_digest: of prompts, manual and simulator at that time, empty if unknown.
    """

    frozen_at: str = Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)$")
    gptnt_version: str
    git_sha: str = ""
    assets_digest: str = ""


class _Entry(Stamp):
    name: ConfigName
    revision: Positive
    suite_digest: str
    mission_keys: list[str] = Field(min_length=1)
    config: dict[str, Any]


class _MissionEntry(Strict):
    mission_key: str
    spec: dict[str, Any]


class _File(Strict):
    version: int
    suite: list[_Entry] = Field(default_factory=list)
    mission: list[_MissionEntry] = Field(default_factory=list)


class FrozenSuite(NamedTuple):
    """One frozen revision of a suite.

    Attributes:
        suite: what is measured.
        missions: sorted by key.
        digest: the published content digest (``suite_digest``).
        stamp: who froze it.
    """

    suite: Suite
    missions: tuple[Mission, ...]
    digest: str
    stamp: Stamp


Lock = dict[tuple[str, int], FrozenSuite]


def parse_lock(data: bytes) -> Lock:
    """The frozen suites by name and revision, sorted.

    Raises:
        ConfigError: malformed, of another version, with unknown keys, duplicates or missing missions, or a digest or
            key that does not follow from what it stands beside.
    """
    try:
        raw = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{LOCK}: must be valid TOML: {error}") from None
    if raw.get("version") != VERSION:
        raise ConfigError(f"{LOCK}: version must be {VERSION}, found {raw.get('version')!r}")
    file = read_model(raw, _File, LOCK)
    missions: dict[str, Mission] = {}
    for entry in file.mission:
        where = f"{LOCK}: mission {entry.mission_key}"
        mission = Mission.from_data(entry.spec, where)
        if mission.key != entry.mission_key:
            raise ConfigError(f"{where}: mission_key must be that of its spec, {mission.key}")
        if mission.key in missions:
            raise ConfigError(f"{where}: mission_key must be unique, found it twice")
        missions[mission.key] = mission
    lock: Lock = {}
    for item in file.suite:
        where = f"{LOCK}: suite {item.name} revision {item.revision}"
        if (item.name, item.revision) in lock:
            raise ConfigError(f"{where}: name and revision must be unique, found them twice")
        absent = sorted(set(item.mission_keys) - set(missions))
        if absent:
            raise ConfigError(f"{where}: mission_keys must be in the mission table, found {absent} missing there")
        if item.mission_keys != sorted(set(item.mission_keys)):
            raise ConfigError(f"{where}: mission_keys must be sorted and unique")
        suite = read_model(item.config, Suite, where)
        if (suite.name, suite.revision) != (item.name, item.revision):
            raise ConfigError(f"{where}: config must have its name and revision, found {suite.name} {suite.revision}")
        own = tuple(missions[key] for key in item.mission_keys)
        if suite.digest(own) != item.suite_digest:
            raise ConfigError(f"{where}: suite_digest must be {suite.digest(own)}, found {item.suite_digest}")
        stamp = Stamp(**{key: getattr(item, key) for key in Stamp.model_fields})
        lock[suite.name, suite.revision] = FrozenSuite(suite, own, item.suite_digest, stamp)
    return dict(sorted(lock.items()))


def load_lock(root: Path) -> Lock:
    """The frozen suites of the project; none where there is no lock yet.

    Raises:
        ConfigError: as :func:`parse_lock`, or the file cannot be read.
    """
    try:
        data = (root / LOCK).read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{LOCK}: must be a readable file: {error.strerror}") from None
    return parse_lock(data)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    # Numbers, truth values and text without control characters are written alike in JSON and TOML.
    return json.dumps(value, ensure_ascii=False)


def _table(header: str, data: Mapping[str, Any]) -> list[str]:
    return [header, *(f"{key} = {_value(value)}" for key, value in data.items()), ""]


def _without_null(value: Any) -> Any:
    # TOML has no null; a missing key reads as one.
    if isinstance(value, dict):
        return {key: _without_null(item) for key, item in value.items() if item is not None}
    return value


def render_lock(lock: Lock) -> bytes:
    """The file that :func:`parse_lock` reads as ``lock``; suites by name and revision, missions by key, each once."""
    lines = [f"# Written by {FREEZE}; entries are added and never changed.", f"version = {VERSION}", ""]
    missions: dict[str, Mission] = {}
    for (name, revision), frozen in sorted(lock.items()):
        missions.update((mission.key, mission) for mission in frozen.missions)
        entry = {"name": name, "revision": revision, "suite_digest": frozen.digest}
        keys = [mission.key for mission in frozen.missions]
        lines += _table("[[suite]]", entry | frozen.stamp.model_dump() | {"mission_keys": keys})
        lines += _table("[suite.config]", _without_null(frozen.suite.model_dump(mode="json")))
    for key in sorted(missions):
        lines += _table("[[mission]]", {"mission_key": key})
        lines += _table("[mission.spec]", missions[key].wire_data())
    return "\n".join([*lines[:-1], ""]).encode()


def frozen_suite(lock: Lock, name: str, revision: int | None = None) -> FrozenSuite:
    """A frozen suite, at its newest revision unless one is named.

    Raises:
        ConfigError: the suite, or this revision of it, is not frozen.
    """
    revisions = [number for known, number in lock if known == name]
    if not revisions:
        error = unknown_name("a frozen suite", name, {known for known, _ in lock}, LIST_SUITES)
        raise ConfigError(f"{error}; a suite of {FOLDER} that is not frozen yet: run {FREEZE}")
    if revision is not None and revision not in revisions:
        raise ConfigError(f"suite {name}: revision must be one of the frozen {revisions}, found {revision}")
    return lock[name, max(revisions) if revision is None else revision]


Outcome = Literal["unchanged", "append", "digest mismatch", "duplicate keys", "key of another mission"]


class Freeze(NamedTuple):
    """What freezing came to.

    Attributes:
        lock: the lock with what could be added.
        outcomes: suite name to outcome.
    """

    lock: Lock
    outcomes: dict[str, Outcome]

    def failures(self, check: bool) -> dict[str, str]:
        """Suite name to what must be done; with ``check`` a suite that is not frozen yet fails as well.

        Nothing may be written unless this is empty.
        """
        remedy = {
            "digest mismatch": "differs from its frozen revision: raise revision, or undo the change",
            "duplicate keys": "has two missions with the same seed and components: change one",
            "key of another mission": "has a mission whose seed and components the lock holds with another body: "
            "change its seed",
        }
        if check:
            remedy["append"] = f"is not frozen at this revision: run {FREEZE}"
        return {name: remedy[outcome] for name, outcome in self.outcomes.items() if outcome in remedy}


def freeze(lock: Lock, live: Iterable[tuple[Suite, Iterable[Mission]]], stamp: Stamp) -> Freeze:
    """Add the live suites to a lock where they are new; existing entries stay as they are."""
    added = dict(lock)
    bodies = {mission.key: mission for frozen in lock.values() for mission in frozen.missions}
    outcomes: dict[str, Outcome] = {}
    for suite, unsorted in live:
        missions = tuple(sorted(unsorted, key=lambda mission: mission.key))
        frozen = lock.get((suite.name, suite.revision))
        if len({mission.key for mission in missions}) != len(missions):
            outcomes[suite.name] = "duplicate keys"
        elif frozen is not None:
            same = frozen.digest == suite.digest(missions)
            outcomes[suite.name] = "unchanged" if same else "digest mismatch"
        elif any(bodies.setdefault(mission.key, mission) != mission for mission in missions):
            outcomes[suite.name] = "key of another mission"
        else:
            outcomes[suite.name] = "append"
            added[suite.name, suite.revision] = FrozenSuite(suite, missions, suite.digest(missions), stamp)
    return Freeze(dict(sorted(added.items())), outcomes)
