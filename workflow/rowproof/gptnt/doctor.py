"""Checks of a run before anything starts: its players and its plan. They read files and play nothing."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rowproof.errors import ConfigError, RowproofError
from rowproof.gptnt.arguments import INSTALL
from rowproof.gptnt.names import config_names
from rowproof.gptnt.player_config import LIST_PLAYERS, PLAYERS, Player, load_player
from rowproof.gptnt.runs import Anchors, RosterEntry, RunManifest
from rowproof.gptnt.spec import Spec
from rowproof.gptnt.specs import Progress, suite_specs, unite
from rowproof.gptnt.suite_lock import Lock, frozen_suite

Status = Literal["pass", "fail", "warn", "skip"]
# What asking a model and reading its answer take.
_MODEL_PACKAGES = ("openai", "json_repair")
_SEVERITY: tuple[Status, ...] = ("fail", "warn", "pass", "skip")
_DETAIL_LENGTH = 200


class Check(NamedTuple):
    """One check.

    Attributes:
        name: what was checked.
        status: only ``fail`` stops anything.
        detail: what was found, on one line of at most 200 characters.
        hint: what to do.
    """

    name: str
    status: Status
    detail: str = ""
    hint: str = ""


def check(name: str, status: Status, detail: str = "", hint: str = "") -> Check:
    """A check with its detail made one short line."""
    line = " ".join(detail.split())
    return Check(name, status, line if len(line) <= _DETAIL_LENGTH else line[: _DETAIL_LENGTH - 1] + "…", hint)


class Section(NamedTuple):
    """Checks under one heading."""

    name: str
    checks: list[Check]

    @property
    def status(self) -> Status:
        """The worst status in it."""
        return min((item.status for item in self.checks), key=_SEVERITY.index, default="skip")


_NOT_ASKED = Check("Live", "skip", "not asked for")


class PlayerRow(NamedTuple):
    """What is known of one player.

    Attributes:
        label: ``config``, or ``config@provider``.
        config: name of the file.
        exists: the files are there and fit together.
        ready: a client for it can be built; its credentials are there.
        player: None if the files do not fit.
        live: its provider answered for its model.
    """

    label: str
    config: str
    exists: Check
    ready: Check
    player: Player | None
    live: Check = _NOT_ASKED


class Report(NamedTuple):
    """What the doctor found."""

    players: list[PlayerRow]
    sections: list[Section]

    @property
    def failed(self) -> bool:
        """Whether anything failed, or there are no players."""
        boxes = [box for row in self.players for box in (row.exists, row.ready, row.live)]
        checks = boxes + [item for section in self.sections for item in section.checks]
        return not self.players or any(item.status == "fail" for item in checks)

    def to_data(self) -> dict[str, Any]:
        """The report as plain data."""
        rows = []
        for row in self.players:
            own = None
            if row.player is not None:
                has = row.player.capabilities
                own = {
                    "player_name": has.player_name,
                    "model": row.player.model_label,
                    "thinking_method": has.thinking_method,
                    "structured_output_mode": has.structured_output_mode,
                    "interaction_location_method": has.interaction_location_method,
                    "fingerprint": row.player.fingerprint,
                }
            boxes = {"exists": row.exists._asdict(), "ready": row.ready._asdict(), "live": row.live._asdict()}
            rows.append({"label": row.label, **boxes, "has": own})
        sections = [
            {"name": section.name, "status": section.status, "checks": [item._asdict() for item in section.checks]}
            for section in self.sections
        ]
        return {"failed": self.failed, "players": rows, "sections": sections}


def guarded(name: str, run: Callable[[], list[Check]]) -> list[Check]:
    """The checks of ``run``; an error of it is one failed check, so that the report goes on."""
    try:
        return run()
    except RowproofError as error:
        return [check(name, "fail", str(error))]
    except Exception as error:
        return [check(name, "fail", f"the check itself failed: {type(error).__name__}: {error}", "report this")]


def missing_packages(names: Iterable[str]) -> list[str]:
    """Those of the packages that cannot be imported."""
    return [name for name in names if find_spec(name) is None]


# ---- players ---------------------------------------------------------------------------------------------------


def check_players(
    root: Path,
    entries: Iterable[RosterEntry] | None,
    environment: Mapping[str, str],
    missing_key: Literal["fail", "warn"] = "fail",
) -> list[PlayerRow]:
    """Whether players can be built.

    Args:
        root: the project.
        entries: the roster; None for all players that there are.
        environment: where credentials are looked up; their values are not shown.
        missing_key: what an unset credential or a package that is not installed means; generating specs needs none.
    """
    if entries is None:
        entries = [RosterEntry(player=name) for name in config_names(root / PLAYERS)]
    return [_check_player(root, entry, environment, missing_key) for entry in entries]


def _check_player(
    root: Path, entry: RosterEntry, environment: Mapping[str, str], missing_key: Literal["fail", "warn"]
) -> PlayerRow:
    try:
        player = load_player(root, entry.player, entry.provider)
    except ConfigError as error:
        failed = check("Exists", "fail", str(error), f"see {LIST_PLAYERS}")
        return PlayerRow(entry.label, entry.player, failed, check("Inst.", "skip", "its files do not fit"), None)
    ready = check("Inst.", "pass")
    unset = player.missing_variables(environment)
    absent = missing_packages(_MODEL_PACKAGES) if player.provider is not None else []
    if absent:
        ready = check("Inst.", missing_key, f"not installed: {', '.join(absent)}", INSTALL)
    elif unset:
        ready = check("Inst.", missing_key, f"unset in the environment: {', '.join(unset)}", "set it before the run")
    return PlayerRow(entry.label, entry.player, check("Exists", "pass"), ready, player)


# One short try: whoever waits here wants to know how things stand now.
_LIVE_REQUEST_S = 60.0
_LIVE_HINTS: dict[str, str] = {
    "authentication": "look at the key of the provider",
    "bad_request": "look at the model's id and settings",
    "rate_limited": "try again later",
}


def check_live(rows: Iterable[PlayerRow], environment: Mapping[str, str]) -> list[PlayerRow]:
    """The rows with the answer to one short request for each player that is ready, with its own settings."""
    return [row._replace(live=_check_live(row, environment)) for row in rows]


def _check_live(row: PlayerRow, environment: Mapping[str, str]) -> Check:
    if row.player is None or row.ready.status != "pass":
        return check("Live", "skip", "an earlier check failed")
    player = row.player
    if player.provider is None or player.model.id is None:
        return check("Live", "skip", "a script needs no provider")
    # Asking a model needs what other checks do without.
    from rowproof.gptnt.llm.player import sampling
    from rowproof.llm.calls import CallError, Message, Request
    from rowproof.llm.client import Client, Policy

    settings = player.model.settings
    question = Message("user", ("Answer with one word: ready.",))
    request = Request(player.model.id, (question,), sampling(settings, settings.max_tokens))
    try:
        reply = Client(player.provider, environment, policy=Policy(tries=1, request_s=_LIVE_REQUEST_S)).ask(request)
    except CallError as error:
        return check(
            "Live", "fail", str(error), _LIVE_HINTS.get(error.kind, "is the provider up, and its address right?")
        )
    except ConfigError as error:
        return check("Live", "fail", str(error))
    served = f" as {reply.served_model}" if reply.served_model not in (None, player.model.id) else ""
    return check("Live", "pass", f"{player.model.id} answered{served} in {reply.seconds:.1f} s")


def check_image_tokens(rows: Iterable[PlayerRow]) -> Section:
    """Whether it was measured how many tokens an image costs each player."""
    checks = []
    for row in rows:
        if row.player is None:
            continue
        tokens = row.player.capabilities.tokens_per_image
        if tokens > 0:
            checks.append(check(row.label, "pass", f"{tokens} tokens per image"))
        else:
            hint = f"run rowproof measure-tokens-per-image {row.config}"
            checks.append(check(row.label, "fail", "tokens_per_image is 0: not measured", hint))
    return Section("Image tokens", checks)


# ---- run plan --------------------------------------------------------------------------------------------------


class Plan(NamedTuple):
    """The specs of a run and the checks of how they fit its roster.

    Attributes:
        section: the checks.
        specs: by attempt name; those given, or generated. Empty if the roster does not resolve.
        missing: names of players that specs need and the roster does not have.
    """

    section: Section
    specs: dict[str, Spec]
    missing: list[str]

    @property
    def is_playable(self) -> bool:
        """Whether every spec can be played some time. Without that a run would wait for ever: nobody may force it."""
        return not any(item.name == "Satisfiable" and item.status == "fail" for item in self.section.checks)


def check_run_plan(
    manifest: RunManifest,
    rows: Sequence[PlayerRow],
    lock: Lock,
    anchors: Anchors,
    anchor_players: Mapping[str, Player | None],
    specs: Mapping[str, Spec] | None = None,
) -> Plan:
    """Whether a run can be played to its end.

    Args:
        manifest: the run.
        rows: its players, from :func:`check_players` with the manifest's entries.
        lock: frozen suites.
        anchors: file names of the anchors, from :func:`~rowproof.gptnt.runs.load_anchors`.
        anchor_players: by file name, see :func:`load_anchor_players`.
        specs: those on disk; None generates all of the manifest.
    """
    checks: list[Check] = []
    counts: Counter[str] = Counter()
    configs: dict[str, list[str]] = {}
    for entry, row in zip(manifest.players, rows, strict=True):
        if row.player is None:
            checks.append(check(f"Roster: {entry.label}", "fail", "does not resolve to a player", "see Players"))
            continue
        counts[row.player.name] += entry.count
        configs.setdefault(row.player.name, []).append(entry.label)
    for name, labels in configs.items():
        if len(labels) > 1:
            detail = f"{len(labels)} entries are this player: {', '.join(labels)}"
            checks.append(check(f"Roster: {name}", "fail", detail, "keep one entry and raise its count"))
    if not configs:
        return Plan(Section("Run plan", checks), {}, [])

    anchor_names, anchor_checks, used = _anchors(manifest, lock, anchors, anchor_players)
    checks += anchor_checks
    if specs is None:
        generated: list[Spec] = []
        for suite in dict.fromkeys(manifest.suites):
            checks += guarded(
                f"Generate: {suite}",
                lambda suite=suite: _generate(generated, suite, lock, sorted(configs), anchor_names, manifest),
            )
        try:
            specs = unite(generated)
        except ConfigError as error:
            checks.append(check("Generate", "fail", str(error)))
            specs = {}
    specs = dict(specs)

    needed = Counter(name for spec in specs.values() for name in dict.fromkeys(spec.players))
    missing = sorted(name for name in needed if name not in configs)
    for name in missing:
        keys = [key for key in used if anchor_names[key] == name]
        hint = f"add it to players: it is the anchor {', '.join(keys)}" if keys else "add it to players"
        checks.append(check(f"Player {name}", "fail", f"{needed[name]} specs need it, no roster entry is it", hint))
    for name, labels in configs.items():
        if specs and name not in needed:
            checks.append(check(f"Player {labels[0]}", "warn", "no selected spec uses it", "remove it or add a suite"))
    checks += _legal_actions(specs, rows)
    checks += _satisfiable(specs, counts)
    checks += _capacity(manifest, specs)
    if not any(item.status == "fail" for item in checks):
        attempts = f", {manifest.attempts_per_mission} attempts" if manifest.attempts_per_mission > 1 else ""
        declared = ", ".join(f"{name} x{counts[name]}" for name in sorted(needed))
        checks.append(
            check("Roster coverage", "pass", f"{len(needed)} players, {len(specs)} specs{attempts}: {declared}")
        )
    return Plan(Section("Run plan", checks), specs, missing)


def load_anchor_players(root: Path, anchors: Anchors, rows: Iterable[PlayerRow]) -> dict[str, Player | None]:
    """The players of the anchors by file name, from the roster where they are in it; None if one cannot be used."""
    known = {row.config: row.player for row in rows}
    players: dict[str, Player | None] = {}
    for config in (anchors.best_expert, anchors.best_defuser):
        if config is None or config in players:
            continue
        if config in known:
            players[config] = known[config]
            continue
        try:
            players[config] = load_player(root, config)
        except ConfigError:
            players[config] = None
    return players


def _anchors(
    manifest: RunManifest, lock: Lock, anchors: Anchors, players: Mapping[str, Player | None]
) -> tuple[dict[str, str | None], list[Check], list[str]]:
    """Player names of the anchors by key, checks, and the keys that some suite of the run reads."""
    frozen = {name for name, _ in lock}
    rules = {
        frozen_suite(lock, name).suite.matchup.pairing_type.removeprefix("with_")
        for name in manifest.suites
        if name in frozen
    }
    names: dict[str, str | None] = {}
    checks, used = [], []
    for key in ("best_expert", "best_defuser"):
        config = getattr(anchors, key)
        player = players.get(config) if config is not None else None
        names[key] = player.name if player else None
        if key in rules:
            used.append(key)
        if config is not None and player is None and (key in rules or getattr(manifest.anchors, key)):
            checks.append(check(f"Anchor {key}", "fail", f"{config} cannot be used", f"see {LIST_PLAYERS}"))
        elif getattr(manifest.anchors, key) and key not in rules:
            detail = f"{config} is not used: no selected suite pairs with_{key}"
            checks.append(check(f"Anchor {key}", "warn", detail, "remove it from anchors"))
    return names, checks, used


def _generate(
    into: list[Spec],
    suite: str,
    lock: Lock,
    players: Sequence[str],
    anchors: Mapping[str, str | None],
    manifest: RunManifest,
) -> list[Check]:
    into += suite_specs(frozen_suite(lock, suite), players, manifest.attempts_per_mission, **anchors)
    return []


def _legal_actions(specs: Mapping[str, Spec], rows: Iterable[PlayerRow]) -> list[Check]:
    checks = []
    for row in rows:
        if row.player is None or row.player.model.script is None:
            continue
        roles = [("defuser", s.defuser_protocol) for s in specs.values() if s.defuser_name == row.player.name]
        roles += [
            ("expert", s.expert_protocol)
            for s in specs.values()
            if s.expert_protocol is not None and s.expert_name == row.player.name
        ]
        if roles and not any(row.player.can_act(role, protocol) for role, protocol in roles):
            detail = f"{row.label} can only do nothing: no selected suite allows the action of its script"
            checks.append(check("Legal actions", "warn", detail, "choose another suite for it"))
    return checks


def _satisfiable(specs: Mapping[str, Spec], counts: Mapping[str, int]) -> list[Check]:
    lacking: dict[str, int] = {}
    affected = 0
    for spec in specs.values():
        short = {name: n - counts.get(name, 0) for name, n in Counter(spec.players).items() if n > counts.get(name, 0)}
        affected += bool(short)
        for name, number in short.items():
            lacking[name] = max(number, lacking.get(name, 0))
    if not lacking:
        return []
    missing = ", ".join(f"{number} more of {name}" for name, number in sorted(lacking.items()))
    detail = f"{affected} of {len(specs)} specs can never be played: they need {missing}"
    return [check("Satisfiable", "fail", detail, "raise count; a player that plays with itself needs 2")]


def _capacity(manifest: RunManifest, specs: Mapping[str, Spec]) -> list[Check]:
    per_room = max((len(spec.players) for spec in specs.values()), default=0)
    need, have = per_room * manifest.rooms, manifest.instances
    if have >= need:
        return []
    rooms = have // per_room
    fix = f"raise counts by {need - have}" + (f", or set rooms to {rooms}" if rooms else "")
    detail = f"{manifest.rooms} rooms need {need} players, the counts sum up to {have}"
    return [check("Capacity", "fail", detail, fix)]


def check_resume(specs: Mapping[str, Spec], found: Progress | None, source: str) -> Check:
    """How much of a run is done already; ``found`` is None where that could not be determined."""
    if not specs:
        return check("Resume", "skip", "no specs")
    if found is None:
        return check("Resume", "warn", f"{source} could not tell what is done: all {len(specs)} specs would run")
    todo = len(specs) - len(found.done)
    detail = f"{len(found.done)} of {len(specs)} done according to {source}, {todo} would run"
    if found.outdated:
        detail += f"; {len(found.outdated)} of these were played with another suite state or setup of a player"
    return check("Resume", "pass", detail)


def check_stale_specs(on_disk: Mapping[str, Spec], generated: Mapping[str, Spec]) -> Check:
    """Whether the specs on disk are those that the manifest asks for."""
    strange = [name for name, spec in on_disk.items() if generated.get(name) != spec]
    lacking = [name for name in generated if name not in on_disk]
    if not strange and not lacking:
        return check("Stale specs", "pass", f"{len(on_disk)} specs on disk, all of them of this manifest")
    detail = f"{len(strange)} specs on disk are not of this manifest, {len(lacking)} of it are not on disk"
    return check("Stale specs", "warn", detail, "run rowproof generate, unless files were taken away on purpose")
