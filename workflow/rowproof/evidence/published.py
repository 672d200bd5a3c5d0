"""Verification of published CHAMBER bundles (schema version 3): a directory against itself, its plan and its tag.

The table has two blocks. The *reference* block holds the rows of the published verifier under their own names, so both
can be compared line by line (:func:`reference_rows`); healthy bundles give the same rows. The *strict* block
(``strict:...``) closes what that verifier lets pass. What needs git history that is not here is ``unknown``.

Nothing in a bundle is trusted, including its file system entries: no link is followed, no name leaves the directory,
and every exception inside a check becomes a failing row.
"""

import json
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rowproof.errors import RecordError, RowproofError
from rowproof.evidence.checks import Check, CheckTable
from rowproof.evidence.history import History, HistoryGap, blob_id
from rowproof.evidence.published_plans import (
    ADHOC,
    DEFAULT_RESAMPLES,
    DEFAULT_ROOT_SEED,
    Cell,
    Command,
    closest_cell,
    known_classes,
    known_partner_sets,
    known_tags,
    load_plan,
    members_run,
    number,
    parse_command,
    planned_cells,
    seeds_agree,
)
from rowproof.evidence.statistics import BUNDLE_STREAM, MAX_RESAMPLES, Summary, clusters_of, success_summary
from rowproof.hashing import sha256_hex
from rowproof.identities import identity, parameter_digest
from rowproof.records import NULL, Kinds, check_fields, decode, decode_lines, encode_document

STRICT = "strict:"
SUMS = "SHA256SUMS.txt"
TOLERANCE = 1e-9
"""Relative tolerance of the reference's summary rows; the strict block compares bit for bit."""

MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_TEXT = 400
MAX_DRAWS = 10**9
"""Limit of bootstrap draws for one bundle, a minute's work; published bundles need at most 3.5 million."""

BUNDLE_SCHEMA: Mapping[str, Kinds] = {
    "schema_version": (int,),
    "task_id": (str,),
    "task_version": (int,),
    "policy_id": (str,),
    "partner_set_id": (str,),
    "partner_hashes": (dict,),
    "git_sha": (str,),
    "dirty": (bool,),
    "package_version": (str,),
    "seed_schedule": (dict,),
    "repro_command": (str,),
    "platform": (dict,),
    "manifest": (dict,),
    "summary": (dict,),
    "prereg_git_tag": (str, NULL),
    "prereg_blob_sha": (str, NULL),
}
SCHEDULE_SCHEMA: Mapping[str, Kinds] = {
    "root_seed": (int,),
    "seeds": (list,),
    "episodes_per_seed": (int,),
    "substream_labels": (list,),
}
PLATFORM_SCHEMA: Mapping[str, Kinds] = {
    "os": (str,),
    "python": (str,),
    "numpy": (str,),
    "torch": (str, NULL),
    "device": (str,),
}
STATISTICS = ("success_mean", "success_iqm", "success_ci_low", "success_ci_high")
SUMMARY_SCHEMA: Mapping[str, Kinds] = {
    "n_episodes": (int,),
    **dict.fromkeys(STATISTICS, (float,)),
    "n_resamples": (int,),
    "bootstrap_root_seed": (int,),
}
RECORD_SCHEMA: Mapping[str, Kinds] = {
    "seed": (int,),
    "episode_idx": (int,),
    "initial_state_seed": (int,),
    "success": (bool,),
    "constraint_violation_peak": (float,),
    "fallback_fired": (int,),
    "force_peak": (float, NULL),
    "metadata": (dict,),
}
SEAT_SCHEMA: Mapping[str, Kinds] = {
    "checkpoint_step": (int, NULL),
    "class_name": (str,),
    "extra": (dict,),
    "name": (str,),
    "seed": (int,),
    "weights_uri": (str, NULL),
}

_CARRY = {"max_tilt_deg": (float,), "centroid_to_goal": (float,)}
_HANDOVER = {"residual_lateral_m": (float,), "residual_angular_deg": (float,), "failure_mode": (str,)}
_SET = dict.fromkeys(("condition", "policy", "member", "partner_set"), (str,))
_PUSH_TASK = "mpe_cooperative_push"
METADATA_SCHEMAS: Mapping[tuple[str, str], Mapping[str, Kinds]] = {
    ("cocarry", "set"): {**_SET, **_CARRY, "n_steps": (float,)},
    ("cocarry", "seeded set"): {**_SET, **_CARRY, "n_steps": (float,), "seed_policy": (str,)},
    ("cocarry", "single"): {**dict.fromkeys(("condition", "policy", "partner"), (str,)), **_CARRY, "n_steps": (float,)},
    ("cocarry", "cell"): {**dict.fromkeys(("condition", "ego", "partner"), (str,)), **_CARRY},
    ("handover_place", "set"): {**_SET, **_HANDOVER},
    ("handover_place", "cell"): {
        "condition": (str,),
        "residual_lateral_m": (float,),
        "residual_angular_deg": (float,),
        "binding_conjunct": (str,),
        "failure_mode": (str,),
    },
    ("stage1_pickplace_as", "cell"): dict.fromkeys(("condition", "variant", "partner", "end_phase"), (str,)),
    (_PUSH_TASK, "set"): {**dict.fromkeys(("condition", "member", "partner_set"), (str,)), "final_reward": (float,)},
    (_PUSH_TASK, "single"): {"condition": (str,), "final_reward": (float,)},
}
"""Keys of ``metadata`` in their order, by task and kind of run."""

FAILURE_MODES = ("none", "budget_mediated", "intrinsic")
EPISODES_PER_SEED_OF_STARTS = 1000
PAIRED_STARTS = ("cocarry", "handover_place")
"""Tasks whose start states are numbered seed * 1000 + episode; elsewhere the number is the episode's."""

CARRY_STRESS_LIMIT_N = 130.0
CARRY_TILT_LIMIT_DEG = 15.0
CARRY_GOAL_RADIUS_M = 0.10000000149011612
"""The single-precision 0.10 that the published environment compares with."""
CARRY_HORIZON_TICKS = 320

_EPISODE_FILE = re.compile(r"episodes_seed(.*)\.jsonl", re.DOTALL)
_HEX = {length: re.compile(rf"[0-9a-f]{{{length}}}") for length in (16, 40, 64)}
_HEX_DIGEST = _HEX[64]


@contextmanager
def guarded(table: CheckTable, check_id: str, must: str) -> Iterator[None]:
    """:meth:`CheckTable.guard`, and a row that is ``unknown`` when git history is missing.

    Also turns a stack that runs out on deeply nested input into a failing row.
    """
    with table.guard(check_id, must):
        try:
            yield
        except HistoryGap as gap:
            table.add(check_id, None, must, str(gap))
        except (RecursionError, MemoryError, AttributeError) as error:
            raise RecordError(f"could not be examined ({type(error).__name__})") from error


def reference_rows(table: CheckTable) -> list[Check]:
    """The rows that the published verifier prints too, in its order."""
    return [check for check in table.checks if not check.id.startswith(STRICT)]


def printable(text: str) -> str:
    """``text`` shortened and without characters that a terminal or an encoder could choke on."""
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text[: 2 * MAX_TEXT])
    return safe if len(safe) <= MAX_TEXT else safe[:MAX_TEXT] + " ..."


def finished(table: CheckTable) -> CheckTable:
    """``table`` with all its texts made :func:`printable`."""
    table.checks = [replace(c, id=printable(c.id), found=printable(c.found)) for c in table.checks]
    return table


def report(table: CheckTable, check_id: str, must: str, problems: Sequence[str], fine: str) -> bool:
    """Add a check that passes when there are no problems."""
    found = "; ".join(problems[:3]) + (f"; and {len(problems) - 3} more" if len(problems) > 3 else "")
    return table.add(check_id, not problems, must, found or fine)


def read_directory(path: Path) -> tuple[dict[str, bytes], dict[str, str]]:
    """Bytes of the regular files directly in ``path``, and what every other entry is; both sorted by name.

    Raises:
        RowproofError: ``path`` is not a directory that can be listed.
    """
    files, others = {}, {}
    try:
        entries = sorted(os.scandir(path), key=lambda entry: entry.name)
    except OSError as error:
        raise RowproofError(
            f"{path} must be a directory that can be read, found: {error.strerror}; name a bundle's directory"
        ) from error
    for entry in entries:
        try:
            info = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(info.st_mode) and info.st_size <= MAX_FILE_BYTES:
                files[entry.name] = Path(entry.path).read_bytes()
            else:
                others[entry.name] = _kind_of_entry(info)
        except OSError as error:
            others[entry.name] = f"unreadable ({error.strerror})"
    return files, others


def _kind_of_entry(info: os.stat_result) -> str:
    if stat.S_ISREG(info.st_mode):
        return f"a file of {info.st_size} bytes (limit {MAX_FILE_BYTES})"
    return "a link" if stat.S_ISLNK(info.st_mode) else "a directory" if stat.S_ISDIR(info.st_mode) else "a special file"


def plain_name(name: str) -> bool:
    """Whether ``name`` can only mean a file in the bundle's own directory."""
    return name not in ("", ".", "..") and "/" not in name and "\\" not in name and name.isprintable()


def published_root(path: Path) -> Path | None:
    """The nearest directory above ``path`` that holds ``spikes``, to which published paths are relative."""
    return next((parent for parent in path.resolve().parents if (parent / "spikes").is_dir()), None)


def check_bundle_fields(meta: Any) -> dict[str, Any]:
    """``bundle.json`` when it has every field of schema version 3 in its type and pattern; any version from 3 on.

    Raises:
        RecordError: naming the field.
    """
    where = "bundle.json"
    version = meta.get("schema_version") if type(meta) is dict else None
    if type(version) is int and version in (1, 2):
        raise RecordError(f"{where}: schema version {version} is historical: readable, not verifiable")
    check_fields(meta, BUNDLE_SCHEMA, where)
    if version < 3:
        raise RecordError(f"{where}: schema_version must be 3, found {version}")
    schedule = check_fields(meta["seed_schedule"], SCHEDULE_SCHEMA, f"{where}: seed_schedule")
    check_fields(meta["platform"], PLATFORM_SCHEMA, f"{where}: platform")
    check_fields(meta["summary"], SUMMARY_SCHEMA, f"{where}: summary")
    for values, kind, name in (
        (schedule["seeds"], int, "seeds"),
        (schedule["substream_labels"], str, "substream_labels"),
        (meta["partner_hashes"].values(), str, "partner_hashes"),
        (meta["manifest"].values(), str, "manifest"),
    ):
        if any(type(value) is not kind for value in values):
            raise RecordError(f"{where}: {name} must hold {kind.__name__} values only")
    if schedule["episodes_per_seed"] < 1 or any(seed < 0 for seed in schedule["seeds"]):
        raise RecordError(f"{where}: episodes_per_seed must be at least 1 and no seed negative")
    patterns = [(16, value) for value in meta["partner_hashes"].values()]
    patterns += [(64, value) for value in meta["manifest"].values()]
    patterns += [(40, meta["git_sha"])] if meta["git_sha"] != "unknown" else []
    patterns += [(40, meta["prereg_blob_sha"])] if meta["prereg_blob_sha"] is not None else []
    for length, value in patterns:
        if not _HEX[length].fullmatch(value):
            raise RecordError(f"{where}: expected {length} lower-case hexadecimal digits, found {value!r}")
    if "" in (meta["task_id"], meta["policy_id"], meta["partner_set_id"], meta["prereg_git_tag"]):
        raise RecordError(f"{where}: ids and tags must not be empty")
    return meta


def read_seats(data: bytes) -> list[dict[str, Any]]:
    """The entries of ``partners.json``.

    Raises:
        RecordError: not a list of well-formed entries.
    """
    seats = decode(data, "partners.json")
    if type(seats) is not list:
        raise RecordError(f"partners.json: must be a list, found {type(seats).__name__}")
    for number_, seat in enumerate(seats):
        check_fields(seat, SEAT_SCHEMA, f"partners.json: entry {number_}")
        if any(type(value) is not str for value in seat["extra"].values()):
            raise RecordError(f"partners.json: entry {number_}: extra must hold text only")
    return seats


@dataclass
class _Bundle:
    """What has been read of a bundle so far; later checks use what earlier ones could load."""

    path: Path
    files: dict[str, bytes]
    others: dict[str, str]
    catalogue: Mapping[str, Any]
    history: History
    meta: dict[str, Any] = field(default_factory=dict)
    records: dict[int, list[dict[str, Any]]] | None = None
    fresh: Summary | None = None
    seats: list[dict[str, Any]] | None = None
    command: Command | None = None
    members: list[dict[str, Any]] = field(default_factory=list)
    plan: dict[str, Any] | None = None
    cell: Cell | None = None

    def need(self, name: str) -> bytes:
        if name not in self.files:
            kind = self.others.get(name, "nothing")
            raise RecordError(f"{name} must be a regular file of the bundle, found {kind}")
        return self.files[name]

    @property
    def seeds(self) -> list[int]:
        return self.meta["seed_schedule"]["seeds"]

    @property
    def pooled(self) -> list[dict[str, Any]]:
        return [record for seed in self.seeds for record in self.records[seed]]

    @property
    def kind(self) -> str:
        if not self.meta["partner_set_id"].startswith(ADHOC):
            return "seeded set" if "_manifest:" in self.meta["policy_id"] else "set"
        return "cell" if self.meta["repro_command"].startswith("chamber-eval admission") else "single"


def verify_published(
    path: Path,
    plans: Path | None = None,
    repo: Path | None = None,
    allow_dirty: bool = False,
    partner_sets: Mapping[str, Any] | None = None,
) -> CheckTable:
    """Verify one published bundle directory.

    Args:
        path: the bundle.
        plans: a directory of plans; the one that names the bundle's tag must be the bundle's copy byte for byte.
        repo: a directory of a git clone that may hold the tag and the launch commit.
        allow_dirty: let a bundle from a dirty tree pass ``bundle:eligibility`` (local work, never ranking).
        partner_sets: known sets and seats instead of ``resources/published/partner-sets.yaml``.

    Returns:
        The check table. Where git history is missing, rows are ``unknown``.

    Raises:
        RowproofError: ``path`` is not a readable directory.
    """
    files, others = read_directory(path)
    catalogue = known_partner_sets() if partner_sets is None else partner_sets
    bundle = _Bundle(path, files, others, catalogue, History(repo))
    table = CheckTable(path.as_posix())
    if _reference_block(table, bundle, allow_dirty):
        _strict_block(table, bundle, plans)
    return finished(table)


# --- The reference block -----------------------------------------------------------------------------------------


def _reference_block(table: CheckTable, bundle: _Bundle, allow_dirty: bool) -> bool:
    """Fill in the rows of the published verifier; return whether ``bundle.json`` could be read."""
    if "bundle.json" not in bundle.files and "bundle.json" not in bundle.others:
        table.add("bundle", False, "a bundle holds bundle.json", "none: this is not a bundle")
        return False
    must = "bundle.json has every field of schema version 3, typed, and no other"
    with guarded(table, "bundle:schema", must):
        bundle.meta = check_bundle_fields(decode(bundle.need("bundle.json"), "bundle.json"))
        table.add("bundle:schema", True, must, f"schema version {bundle.meta['schema_version']}")
    if not bundle.meta:
        return False
    meta = bundle.meta
    # A tree whose commit could not be read was never shown to be clean.
    clean = not meta["dirty"] and meta["git_sha"] != "unknown"
    found = "clean" if clean else "dirty, or its commit unknown"
    table.add("bundle:eligibility", clean or allow_dirty, "the run's tree was clean at a known commit", found)
    _manifest_rows(table, bundle)
    _sums_rows(table, bundle)
    _summary_rows(table, bundle)
    _partner_rows(table, bundle)
    _prereg_rows(table, bundle)
    return True


def _digest_problem(bundle: _Bundle, name: str, stated: str) -> str:
    """Why the file does not have the stated SHA-256; empty when it has. Reads nothing outside the bundle."""
    if name not in bundle.files:
        kind = bundle.others.get(name, "no such file" if plain_name(name) else "a name outside the bundle")
        return f"must be a regular file of the bundle, found {kind}"
    found = sha256_hex(bundle.files[name])
    return "" if found == stated else f"stated {stated[:16]}..., file has {found[:16]}..."


def _manifest_rows(table: CheckTable, bundle: _Bundle) -> None:
    manifest = bundle.meta["manifest"]
    for name in sorted(manifest):
        problem = _digest_problem(bundle, name, manifest[name])
        table.add(f"manifest:{name}", not problem, "the file has the SHA-256 of the manifest", problem or "equal")
    extra = sorted({*bundle.files, *bundle.others} - {*manifest, "bundle.json", SUMS})
    must = "nothing lies in the directory but the manifest's files, bundle.json and the digest list"
    report(table, "manifest:membership", must, [f"stray {name!r}" for name in extra], f"{len(manifest)} files")


def _sums_rows(table: CheckTable, bundle: _Bundle) -> None:
    must = "the listed SHA-256 is that of the named file"
    with guarded(table, "sha256sums", "the digest list exists and is UTF-8"):
        for line in bundle.need(SUMS).decode("utf-8").removesuffix("\n").split("\n"):
            stated, gap, name = line.partition("  ")
            if not line:
                continue
            problem = _digest_problem(bundle, name, stated) if gap else "no double space between digest and name"
            table.add(f"sha256sums:{name or line}", not problem, must, problem or "equal")


def _load_records(bundle: _Bundle) -> None:
    loaded = {}
    for seed in bundle.seeds:
        name = f"episodes_seed{seed}.jsonl"
        records = decode_lines(bundle.need(name), RECORD_SCHEMA, name)
        loaded[seed] = records
    bundle.records = loaded


def _summary_rows(table: CheckTable, bundle: _Bundle) -> None:
    stated, schedule = bundle.meta["summary"], bundle.meta["seed_schedule"]
    with guarded(table, "summary:recompute", "every scheduled record loads and the statistics can be computed"):
        if not 1 <= stated["n_resamples"] <= MAX_RESAMPLES or stated["bootstrap_root_seed"] < 0:
            raise RecordError(
                f"n_resamples must lie in 1..{MAX_RESAMPLES} and bootstrap_root_seed must not be negative, found "
                f"{stated['n_resamples']} and {stated['bootstrap_root_seed']}"
            )
        _load_records(bundle)
        if stated["n_resamples"] * sum(map(len, bundle.records.values())) > MAX_DRAWS:
            raise RecordError(f"n_resamples x records must not exceed {MAX_DRAWS}, found more")
        clusters = clusters_of(bundle.pooled)
        if not clusters:
            raise RecordError("at least one record must be scheduled, found none")
        fresh = success_summary(clusters, stated["n_resamples"], stated["bootstrap_root_seed"], BUNDLE_STREAM)
        planned = schedule["episodes_per_seed"] * len(bundle.seeds)
        table.add(
            "summary:n_episodes",
            fresh.n_episodes == stated["n_episodes"] == planned,
            "records = summary = episodes_per_seed x seeds",
            f"{fresh.n_episodes} records, {stated['n_episodes']} stated, {planned} scheduled",
        )
        bundle.fresh = fresh
        for name in STATISTICS:
            found = getattr(fresh, name)
            near = abs(found - stated[name]) <= TOLERANCE * max(1.0, abs(stated[name]))
            must = f"the stated number is that of the records within {TOLERANCE:g}"
            table.add(f"summary:{name}", near, must, f"stated {stated[name]!r}, recomputed {found!r}")


def _partner_rows(table: CheckTable, bundle: _Bundle) -> None:
    stated = bundle.meta["partner_hashes"]
    with guarded(table, "partners", "partners.json is a list of well-formed seats"):
        bundle.seats = read_seats(bundle.need("partners.json"))
    if bundle.seats is None:
        return
    classes = known_classes(bundle.catalogue)
    for seat in bundle.seats:
        known = seat["class_name"] in classes
        table.add(f"partner:{seat['name']}:registered", known, "the class is a known one", seat["class_name"])
    must = "seat names and recomputed identities equal partner_hashes"
    with guarded(table, "partner:hashes", must):
        found = {seat["name"]: seat_identity(seat) for seat in bundle.seats}
        wrong = sorted(name for name in found.keys() | stated.keys() if found.get(name) != stated.get(name))
        report(table, "partner:hashes", must, [f"{name!r} differs" for name in wrong], f"{len(found)} seats")


def seat_identity(seat: Mapping[str, Any]) -> str:
    """The identity of an entry of ``partners.json``."""
    return identity(seat["class_name"], seat["seed"], seat["checkpoint_step"], seat["weights_uri"])


def _prereg_rows(table: CheckTable, bundle: _Bundle) -> None:
    tag, stated = bundle.meta["prereg_git_tag"], bundle.meta["prereg_blob_sha"]
    if tag is None:
        table.add("prereg", True, "a run without a plan says so", "not preregistered: never ranked")
        return
    if "prereg.yaml" not in bundle.files:
        table.add("prereg:copy", False, "the bundle holds the plan it was gated on", "no regular file prereg.yaml")
    must = "the tag exists in the repository"
    with guarded(table, "prereg:tag", must):
        commit = bundle.history.tag_commit(tag)
        table.add("prereg:tag", True, must, f"{tag} stands for {commit}")
    must = "the plan's git blob id, taken over its raw bytes, is the recorded one"
    with guarded(table, "prereg:blob", must):
        found = blob_id(bundle.need("prereg.yaml"))
        table.add("prereg:blob", found == stated, must, f"recorded {stated}, copy has {found}")


# --- The strict block --------------------------------------------------------------------------------------------


def _strict_block(table: CheckTable, bundle: _Bundle, plans: Path | None) -> None:
    _form_rows(table, bundle)
    _command_row(table, bundle)
    _plan_rows(table, bundle, plans)
    _exact_row(table, bundle)
    _schedule_rows(table, bundle)
    _record_rows(table, bundle)
    _seat_rows(table, bundle)
    _selection_row(table, bundle)


def _repeated(values: Sequence[Any]) -> set[Any]:
    return {value for value, count in Counter(values).items() if count > 1}


def _form_rows(table: CheckTable, bundle: _Bundle) -> None:
    version = bundle.meta["schema_version"]
    table.add(f"{STRICT}bundle:version", version == 3, "schema_version is exactly 3", f"{version}")
    names = {*bundle.files, *bundle.others, *bundle.meta["manifest"]}
    problems = [f"{name!r} is {kind}" for name, kind in bundle.others.items()]
    problems += [f"{name!r} is no plain file name" for name in sorted(names) if not plain_name(name)]
    must = "all entries are regular files with plain names; no links, no directories"
    report(table, f"{STRICT}files:plain", must, problems, f"{len(bundle.files)} files")
    must = "the digest list names every other file of the directory, each once, and nothing else"
    with guarded(table, f"{STRICT}sha256sums:coverage", must):
        lines = bundle.need(SUMS).decode("utf-8").removesuffix("\n").split("\n")
        listed = [line.partition("  ")[2] for line in lines if line]
        expected = {*bundle.files, *bundle.others} - {SUMS}
        problems = [f"{name!r} is not listed" for name in sorted(expected - set(listed))]
        problems += [f"{name!r} is listed without such a file" for name in sorted(set(listed) - expected)]
        problems += [f"{name!r} is listed twice" for name in sorted(_repeated(listed))]
        report(table, f"{STRICT}sha256sums:coverage", must, problems, f"{len(listed)} names")
    problems = []
    loaded = {f"episodes_seed{seed}.jsonl" for seed in bundle.records or {}}
    for name in sorted(bundle.files):
        try:
            problem = encoding_problem(name, bundle.files[name], bundle.meta, name in loaded)
        except (RowproofError, ValueError, TypeError, RecursionError) as error:
            problem = str(error) or type(error).__name__
        problems += [f"{name}: {problem}"] if problem else []
    must = "every file is UTF-8 with LF and one final newline, and JSON is byte for byte what its values encode to"
    report(table, f"{STRICT}encoding", must, problems, f"{len(bundle.files)} files")
    must = "no plan lies in a bundle that names no tag"
    orphan = bundle.meta["prereg_git_tag"] is None and (
        "prereg.yaml" in bundle.files or bundle.meta["prereg_blob_sha"] is not None
    )
    table.add(f"{STRICT}prereg:orphan", not orphan, must, "a plan without a tag" if orphan else "none")


def sorted_json(value: Any) -> bytes:
    """The published encoding of ``partners.json`` and selection artefacts: sorted keys, two spaces, ASCII."""
    return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=True, allow_nan=False) + "\n").encode("ascii")


def encoding_problem(name: str, data: bytes, meta: Mapping[str, Any], canonical: bool = False) -> str:
    """Why a file of a bundle is not in its published encoding; empty when it is.

    ``meta`` is the content of ``bundle.json``; ``canonical`` says that the file was compared with the encoding of its
    values before.
    """
    if data.startswith(b"\xef\xbb\xbf"):
        return "starts with a byte-order mark"
    data.decode("utf-8")
    if b"\r" in data:
        return "holds a carriage return"
    if not data.endswith(b"\n") or data.endswith(b"\n\n") or data == b"\n":
        return "does not end in exactly one newline"
    if name == "bundle.json" and encode_document(meta) != data:
        return "is not the encoding of its values"
    if name == "partners.json" and sorted_json(decode(data, name)) != data:
        return "is not the encoding of its values"
    if name == SUMS:
        lines = data.decode("utf-8").removesuffix("\n").split("\n")
        pairs = [line.partition("  ")[::2] for line in lines]
        if any(not _HEX_DIGEST.fullmatch(digest) or not plain_name(named) for digest, named in pairs):
            return "holds a line that is not 64 hexadecimal digits, two spaces and a name"
        if [named for _, named in pairs] != sorted(named for _, named in pairs):
            return "is not sorted by name"
    if name.endswith(".jsonl") and not canonical:
        decode_lines(data, RECORD_SCHEMA, name)
    return ""


def _command_row(table: CheckTable, bundle: _Bundle) -> None:
    must = "REPRO.txt is the recorded command, and its options agree with bundle.json"
    with guarded(table, f"{STRICT}repro:text", must):
        text, meta = bundle.meta["repro_command"], bundle.meta
        problems = []
        if bundle.need("REPRO.txt") != (text + "\n").encode("utf-8"):
            problems.append("REPRO.txt is not repro_command and one newline")
        command = parse_command(text)
        if (command.one("--prereg") is None) != (meta["prereg_git_tag"] is None):
            problems.append("--prereg and prereg_git_tag must both be there or both be absent")
        if command.one("--out") is None:
            problems.append("--out is missing")
        if command.kind == "run":
            problems += _run_problems(bundle, command)
        elif not meta["partner_set_id"].startswith(ADHOC):
            problems.append("an admission cell must have a single partner")
        bundle.command = command
        report(table, f"{STRICT}repro:text", must, problems, f"{command.kind} command agrees")


def _run_problems(bundle: _Bundle, command: Command) -> list[str]:
    meta, summary, schedule = bundle.meta, bundle.meta["summary"], bundle.meta["seed_schedule"]
    problems = []
    task = command.one("--task", "")
    if task not in (meta["task_id"], f"{meta['task_id']}@v{meta['task_version']}"):
        problems.append(f"--task {task!r}, bundle {meta['task_id']}@v{meta['task_version']}")
    if command.one("--policy") != meta["policy_id"]:
        problems.append(f"--policy {command.one('--policy')!r}, bundle {meta['policy_id']!r}")
    partner = command.one("--partner")
    if (partner is None) == (command.one("--partner-set") is None):
        problems.append("exactly one of --partner and --partner-set must be given")
    elif partner is None:
        if command.one("--partner-set") != meta["partner_set_id"]:
            problems.append(f"--partner-set {command.one('--partner-set')!r}, bundle {meta['partner_set_id']!r}")
        if command.one("--partner-weights") is not None:
            problems.append("--partner-weights must come with --partner")
        bundle.members = members_run(command, bundle.catalogue)
        if bundle.catalogue["sets"][meta["partner_set_id"]]["task"] != f"{meta['task_id']}@v{meta['task_version']}":
            problems.append(f"{meta['partner_set_id']} is not a set of task {meta['task_id']}@v{meta['task_version']}")
    else:
        if ADHOC + partner != meta["partner_set_id"]:
            problems.append(f"--partner {partner!r}, bundle {meta['partner_set_id']!r}")
        checkpoint = meta["policy_id"].partition(":")[2]
        if command.one("--partner-weights", "") != checkpoint:
            problems.append(f"the pair must play one checkpoint, found {checkpoint!r} for the ego alone")
        if "--exclude-member" in command.values or "--include-private" in command.switches:
            problems.append("--exclude-member and --include-private need --partner-set")
    if not seeds_agree(command.one("--seeds", ""), schedule["seeds"]):
        problems.append(f"--seeds {command.one('--seeds')!r}, bundle {schedule['seeds']}")
    for flag, default, factor, stated in (
        ("--episodes", "", len(bundle.members) or 1, schedule["episodes_per_seed"]),
        ("--root-seed", str(DEFAULT_ROOT_SEED), 1, schedule["root_seed"]),
        ("--root-seed", str(DEFAULT_ROOT_SEED), 1, summary["bootstrap_root_seed"]),
        ("--n-resamples", str(DEFAULT_RESAMPLES), 1, summary["n_resamples"]),
    ):
        given = command.one(flag, default)
        if not re.fullmatch(r"[0-9]{1,9}", given) or int(given) * factor != stated:
            problems.append(f"{flag} {given!r} (x {factor}), bundle {stated}")
    return problems


def _plan_rows(table: CheckTable, bundle: _Bundle, plans: Path | None) -> None:
    meta = bundle.meta
    tag = meta["prereg_git_tag"]
    summary = meta["summary"]
    if tag is not None:
        must = "the plan is in document form and names the bundle's tag and task"
        with guarded(table, f"{STRICT}prereg:plan", must):
            plan = load_plan(bundle.need("prereg.yaml"), "prereg.yaml")
            pairs = [("git_tag", tag), ("task_id", meta["task_id"])]
            problems = [f"{key} {plan[key]!r}, bundle {stated!r}" for key, stated in pairs if plan[key] != stated]
            if report(table, f"{STRICT}prereg:plan", must, problems, f"{tag}"):
                bundle.plan = plan
        plan_provenance_rows(table, STRICT, meta, bundle.files.get("prereg.yaml"), bundle.history)
        if plans is not None:
            _plan_file_row(table, bundle, plans)
        must = "policy, partners, seeds, counts and root seed are those of a run that the plan lists"
        with guarded(table, f"{STRICT}prereg:cell", must):
            if bundle.plan is None:
                raise RecordError("no readable plan of this bundle")
            cell = closest_cell(planned_cells(bundle.plan, bundle.catalogue), meta)
            problems = cell.differences(meta)
            names = tuple(member["name"] for member in bundle.members)
            if names != cell.members:
                problems.append(f"members {list(names)}, plan {list(cell.members)}")
            bundle.cell = cell
            report(table, f"{STRICT}prereg:cell", must, problems, f"{cell.row} ({cell.purpose})")
    planned = (
        (bundle.cell.n_resamples, bundle.cell.root_seed) if bundle.cell else (DEFAULT_RESAMPLES, DEFAULT_ROOT_SEED)
    )
    stated = (summary["n_resamples"], summary["bootstrap_root_seed"])
    must = f"n_resamples and bootstrap_root_seed are the plan's, here {planned[0]} and {planned[1]}"
    table.add(f"{STRICT}summary:params", stated == planned, must, f"{stated[0]} and {stated[1]}")


def plan_provenance_rows(
    table: CheckTable, prefix: str, meta: Mapping[str, Any], plan: bytes | None, history: History
) -> None:
    """Rows that tie a plan to its tag: the known published tag, the tagged tree, the order of commits.

    Args:
        table: gains ``<prefix>prereg:known``, ``...:at_tag`` and ``...:order``.
        prefix: start of the check ids.
        meta: ``prereg_git_tag`` (not None), ``prereg_blob_sha``, ``git_sha`` and ``repro_command`` if there is one.
        plan: raw bytes of the plan, None when it is not here.
        history: where tags and commits are looked up.
    """
    tag, blob = meta["prereg_git_tag"], meta["prereg_blob_sha"]
    must = "the plan is byte for byte the one published under this tag"
    known = known_tags().get(tag)
    if known is None:
        table.add(f"{prefix}prereg:known", None, must, f"{tag!r} is not among the known published tags")
    else:
        copies = {blob} if plan is None else {blob, blob_id(plan)}
        problems = [f"blob {copy}, published {known['blob']}" for copy in copies - {known["blob"]}]
        try:
            named = parse_command(meta["repro_command"]).one("--prereg") if "repro_command" in meta else None
        except RecordError:
            named = None
        problems += (
            [f"command names {named!r}, published {known['plan']!r}"] if named not in (None, known["plan"]) else []
        )
        report(table, f"{prefix}prereg:known", must, sorted(problems), f"blob {known['blob']}")
    must = "the tagged tree holds exactly this plan"
    with guarded(table, f"{prefix}prereg:at_tag", must):
        paths = history.paths_of_blob(history.tag_commit(tag), blob or "")
        found = (
            f"at {paths[0]}"
            if paths
            else f"blob {blob} is not in the tagged tree: the plan was edited, or the tag moved"
        )
        table.add(f"{prefix}prereg:at_tag", bool(paths), must, found)
    must = "the tagged commit is the launch commit or an ancestor of it"
    with guarded(table, f"{prefix}prereg:order", must):
        tagged = history.tag_commit(tag)
        before = history.is_ancestor(tagged, meta["git_sha"])
        found = f"{tagged} {'precedes' if before else 'does not precede'} {meta['git_sha']}"
        table.add(f"{prefix}prereg:order", before, must, found)


def _plan_file_row(table: CheckTable, bundle: _Bundle, plans: Path) -> None:
    must = "the plan in the given directory that names this tag is the bundle's copy, byte for byte"
    check_id = f"{STRICT}prereg:plans"
    with guarded(table, check_id, must):
        tag, copy = bundle.meta["prereg_git_tag"], bundle.need("prereg.yaml")
        for candidate in sorted(plans.rglob("*.yaml")):
            data = candidate.read_bytes()
            if data == copy or (tag.encode() in data and load_plan(data, candidate.name)["git_tag"] == tag):
                table.add(check_id, data == copy, must, candidate.name)
                return
        table.add(check_id, None, must, f"no plan in {plans.as_posix()} names {tag}")


def _exact_row(table: CheckTable, bundle: _Bundle) -> None:
    if bundle.fresh is None:
        return
    unequal = []
    for name in STATISTICS:
        found, stated = getattr(bundle.fresh, name), bundle.meta["summary"][name]
        # repr tells the sign of a zero, which == does not.
        unequal += [f"{name} stated {stated!r}, recomputed {found!r}"] if repr(found) != repr(stated) else []
    must = "recomputed numbers equal the stated ones bit for bit"
    report(table, f"{STRICT}summary:exact", must, unequal, f"{len(STATISTICS)} numbers equal")


def _schedule_rows(table: CheckTable, bundle: _Bundle) -> None:
    seeds = bundle.seeds
    problems = ["no seed is scheduled"] if not seeds else []
    problems += [f"seed {seed} is scheduled twice" for seed in sorted(_repeated(seeds))]
    present = {name for name in {*bundle.files, *bundle.others} if _EPISODE_FILE.fullmatch(name)}
    scheduled = {f"episodes_seed{seed}.jsonl" for seed in seeds}
    problems += [f"{name} is not scheduled" for name in sorted(present - scheduled)]
    problems += [f"{name} is missing" for name in sorted(scheduled - present)]
    must = "seeds are distinct, at least one, and the episode files are exactly those of the schedule"
    report(table, f"{STRICT}schedule:seeds", must, problems, f"{len(seeds)} seeds")
    must = "every file holds its seed's complete grid: members in order, episodes 0 to n-1, the same start states"
    with guarded(table, f"{STRICT}schedule:records", must):
        if bundle.records is None:
            raise RecordError("the records could not be loaded")
        per_seed = bundle.meta["seed_schedule"]["episodes_per_seed"]
        n_groups = len(bundle.members) or 1
        if per_seed % n_groups:
            raise RecordError(f"episodes_per_seed must be a multiple of the {n_groups} members, found {per_seed}")
        problems = []
        for seed, records in bundle.records.items():
            problems += _grid_problems(seed, records, per_seed, per_seed // n_groups, bundle.meta["task_id"])
        report(table, f"{STRICT}schedule:records", must, problems, f"{len(seeds)} x {per_seed} records")


def _grid_problems(seed: int, records: Sequence[Mapping[str, Any]], count: int, episodes: int, task: str) -> list[str]:
    where = f"episodes_seed{seed}.jsonl"
    problems = [] if len(records) == count else [f"{where}: {len(records)} records, scheduled {count}"]
    first_start = seed * EPISODES_PER_SEED_OF_STARTS if task in PAIRED_STARTS else 0
    for index, record in enumerate(records):
        expected = (seed, index, first_start + index % episodes)
        found = (record["seed"], record["episode_idx"], record["initial_state_seed"])
        if found != expected:
            problems.append(f"{where}:{index + 1}: seed, index and start must be {expected}, found {found}")
    return problems


def _record_rows(table: CheckTable, bundle: _Bundle) -> None:
    if bundle.records is None:
        return
    must = "metadata has the keys of its producer and agrees with policy, partners and condition of the run"
    with guarded(table, f"{STRICT}records:metadata", must):
        problems = _metadata_problems(bundle)
        report(table, f"{STRICT}records:metadata", must, problems, f"{len(bundle.pooled)} records")
    must = "numbers are finite and in range, and success agrees with the measurements recorded beside it"
    with guarded(table, f"{STRICT}records:values", must):
        problems = []
        limits = _handover_limits(bundle)
        for record in bundle.pooled:
            problem = _value_problem(record, bundle.meta["task_id"], limits)
            problems += [f"seed {record['seed']} episode {record['episode_idx']}: {problem}"] if problem else []
        report(table, f"{STRICT}records:values", must, problems, f"{len(bundle.pooled)} records")
    must = "no episode is a copy of another: different starts or members give different measurements"
    with guarded(table, f"{STRICT}records:distinct", must):
        report(table, f"{STRICT}records:distinct", must, repeated_episodes(bundle.pooled), "no copies")


def _metadata_problems(bundle: _Bundle) -> list[str]:
    meta, kind = bundle.meta, bundle.kind
    schema = METADATA_SCHEMAS.get((meta["task_id"], kind))
    if schema is None:
        raise RecordError(f"no known producer writes records of task {meta['task_id']!r} in a {kind} run")
    names = [member["name"] for member in bundle.members]
    partner = meta["partner_set_id"].removeprefix(ADHOC)
    expected: dict[str, Any] = {"policy": meta["policy_id"], "partner_set": meta["partner_set_id"], "partner": partner}
    if bundle.cell is not None:
        expected["condition"] = bundle.cell.condition
        expected["ego"] = bundle.catalogue["cell_egos"].get(bundle.cell.ego, {}).get("class")
    problems = []
    first = bundle.pooled[0]["metadata"]
    seed_policies: dict[int, str] = {}
    for seed, records in bundle.records.items():
        for index, record in enumerate(records):
            metadata = check_fields(record["metadata"], schema, f"episodes_seed{seed}.jsonl:{index + 1}: metadata")
            wanted = {key: value for key, value in expected.items() if key in schema and value is not None}
            wanted.setdefault("condition", first["condition"])
            if "member" in schema:
                wanted["member"] = names[index * len(names) // len(records)] if names else None
            if "seed_policy" in schema:
                wanted["seed_policy"] = seed_policies.setdefault(seed, metadata["seed_policy"])
            problems += [
                f"episodes_seed{seed}.jsonl:{index + 1}: {key} must be {value!r}, found {metadata[key]!r}"
                for key, value in wanted.items()
                if metadata[key] != value
            ]
    prefix = seeded_prefix(meta["policy_id"])
    problems += [
        f"seed {seed}: seed_policy must start with {prefix!r}, found {policy!r}"
        for seed, policy in seed_policies.items()
        if not policy.startswith(prefix)
    ]
    return problems


def seeded_prefix(policy_id: str) -> str:
    """Prefix of the per-seed policies that a manifest policy stands for: ``happo_manifest:...`` gives ``happo:``."""
    return policy_id.partition("_manifest:")[0] + ":"


def _handover_limits(bundle: _Bundle) -> dict[str, float] | None:
    """Windows and stiffnesses of the handover cell in the plan, when the plan has them."""
    if bundle.plan is None or "env_cell" not in bundle.plan["parameters"]:
        return None
    cell = bundle.plan["parameters"]["env_cell"]
    return {key: number(value, f"prereg.yaml: env_cell: {key}") for key, value in cell.items()}


def _value_problem(record: Mapping[str, Any], task: str, limits: Mapping[str, float] | None) -> str:
    """What is impossible about the numbers of a record; empty when nothing is."""
    metadata, force_n = record["metadata"], record["force_peak"]
    if record["constraint_violation_peak"] < 0 or record["fallback_fired"] < 0 or (force_n is not None and force_n < 0):
        return "peaks and counts must not be negative"
    signed = ("final_reward",)
    if any(type(value) is float and value < 0 and key not in signed for key, value in metadata.items()):
        return "measurements must not be negative"
    success = record["success"]
    if task == "cocarry":
        if force_n is None:
            return "force_peak must be recorded"
        ticks = metadata.get("n_steps", float(CARRY_HORIZON_TICKS))
        if not ticks.is_integer() or not 1 <= ticks <= CARRY_HORIZON_TICKS:
            return f"n_steps must be a whole number in 1..{CARRY_HORIZON_TICKS}, found {ticks!r}"
        within = force_n < CARRY_STRESS_LIMIT_N and metadata["max_tilt_deg"] < CARRY_TILT_LIMIT_DEG
        if success and not (within and metadata["centroid_to_goal"] <= CARRY_GOAL_RADIUS_M):
            return "a success must stay below the stress and tilt limits and end at the goal"
        if not success and ticks != CARRY_HORIZON_TICKS:
            return "an episode ends early by success alone"
    if task == "handover_place":
        if metadata["failure_mode"] not in FAILURE_MODES or (metadata["failure_mode"] == "none") != success:
            return f"failure_mode must be one of {FAILURE_MODES}, and 'none' for a success alone"
        if limits is not None:
            lateral_m, angular_deg = metadata["residual_lateral_m"], metadata["residual_angular_deg"]
            stiff = limits["contact_stiffness_n_per_m"] * lateral_m
            stiff += limits["angular_stiffness_n_per_deg"] * angular_deg
            if force_n != stiff:
                return f"force_peak must be that of the residuals, {stiff!r} N, found {force_n!r}"
            seated = (
                lateral_m < limits["lateral_window_m"]
                and angular_deg < limits["angular_window_deg"]
                and force_n < limits["seating_force_limit_n"]
            )
            if seated != success:
                return f"success must be {seated} by the residuals and the force"
    return ""


def repeated_episodes(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Episodes that are copies of others by their measurements, one text each.

    Measurements that hold at least one non-integral double do not agree by chance between different start states. At
    equal starts single episodes may agree (two partners that differ in one respect), a member's whole block may not.
    """
    seen: dict[tuple[Any, ...], tuple[int, str]] = {}
    blocks: dict[str, list[Any]] = {}
    problems = []
    for record in records:
        metadata = record["metadata"]
        name = metadata.get("member", metadata.get("partner", ""))
        measured = (record["force_peak"], *(v for v in metadata.values() if type(v) is float))
        blocks.setdefault(name, []).append((record["initial_state_seed"], measured))
        if all(value is None or value.is_integer() for value in measured):
            continue
        here = (record["initial_state_seed"], f"seed {record['seed']} episode {record['episode_idx']}")
        first = seen.setdefault(measured, here)
        if first[0] != here[0]:
            problems.append(f"{here[1]} repeats {first[1]}")
    names = list(blocks)
    for index, name in enumerate(names):
        for other in names[:index]:
            if blocks[name] == blocks[other]:
                problems.append(f"all episodes of {name!r} repeat those of {other!r}")
    return problems


def _seat_rows(table: CheckTable, bundle: _Bundle) -> None:
    if bundle.seats is None:
        return
    n_partners = sum(not seat["name"].startswith("ego:") for seat in bundle.seats)
    must = "at least one partner seat is listed"
    table.add(f"{STRICT}partners:nonempty", n_partners > 0, must, f"{n_partners} partner seats")
    must = "the parameters in extra have the digest of the member's URI"
    with guarded(table, f"{STRICT}partners:digest", must):
        problems, n_members = [], 0
        for seat in bundle.seats:
            if (seat["weights_uri"] or "").startswith("member://"):
                n_members += 1
                problems += _member_digest_problems(seat, bundle.catalogue)
        report(table, f"{STRICT}partners:digest", must, problems, f"{n_members} members")
    must = "seats are those that the command, the records and the registered set give, in order of first use"
    with guarded(table, f"{STRICT}partners:roster", must):
        expected = _expected_seats(bundle)
        found = bundle.seats
        problems = []
        if [seat["name"] for seat in found] != [seat["name"] for seat in expected]:
            problems.append(f"seats {[s['name'] for s in found]}, expected {[s['name'] for s in expected]}")
        if list(bundle.meta["partner_hashes"]) != [seat["name"] for seat in expected]:
            problems.append("partner_hashes does not list the seats in their order")
        for seat, wanted in zip(found, expected, strict=False):
            problems += _seat_problems(seat, wanted)
        report(table, f"{STRICT}partners:roster", must, problems, f"{len(found)} seats")


def _member_digest_problems(seat: Mapping[str, Any], catalogue: Mapping[str, Any]) -> list[str]:
    extra = seat["extra"]
    if "withheld_params_sha256" in extra:
        digest = extra["withheld_params_sha256"]
    else:
        geometry = {key for chosen in catalogue["sets"].values() for key in chosen["seat"]}
        digest = parameter_digest({key: value for key, value in extra.items() if key not in geometry})
    expected = f"member://{seat['class_name']}/{digest}"
    return [] if seat["weights_uri"] == expected else [f"{seat['name']!r}: extra gives {expected}"]


def _expected_seats(bundle: _Bundle) -> list[dict[str, Any]]:
    """Seats in order of first use; ``identity`` stands for the fields of a set member, which only a hash tells."""
    meta, catalogue = bundle.meta, bundle.catalogue
    if bundle.kind == "cell":
        if bundle.cell is None:
            raise RecordError("an admission cell must have a plan that lists it")
        ego = catalogue["cell_egos"][bundle.cell.ego]
        partner = meta["partner_set_id"].removeprefix(ADHOC)
        return [
            _seat(f"ego:{ego['class']}", ego["class"], None, ego["seat"]),
            _seat(f"partner:{partner}", partner, None, catalogue["cell_partners"][partner]["seat"]),
        ]
    if bundle.command is None:
        raise RecordError("the command could not be read")
    if bundle.kind == "single":
        partner = meta["partner_set_id"].removeprefix(ADHOC)
        _ego_seat(meta["policy_id"], catalogue)
        weights = bundle.command.one("--partner-weights")
        return [_seat(partner, partner, weights, catalogue["pairs"][partner]["seat"])]
    if bundle.records is None:
        raise RecordError("the records could not be loaded")
    geometry = catalogue["sets"][meta["partner_set_id"]]["seat"]
    seats: dict[str, dict[str, Any]] = {}
    for seed in bundle.seeds:
        policy = meta["policy_id"]
        if bundle.kind == "seeded set":
            policy = bundle.records[seed][0]["metadata"]["seed_policy"]
        ego = _ego_seat(policy, catalogue)
        if ego is not None:
            seats.setdefault(ego["name"], ego)
        for member in bundle.members:
            seat = {"name": member["name"], "identity": member["identity"], "seat": member.get("seat", geometry)}
            seats.setdefault(member["name"], {**seat, "class_name": member["class"]})
    return list(seats.values())


def _seat(name: str, class_name: str, uri: str | None, geometry: Mapping[str, str]) -> dict[str, Any]:
    return {
        "checkpoint_step": None,
        "class_name": class_name,
        "extra": dict(geometry),
        "name": name,
        "seed": 0,
        "weights_uri": uri,
    }


def _ego_seat(policy: str, catalogue: Mapping[str, Any]) -> dict[str, Any] | None:
    """The seat that a policy leaves in ``partners.json``; None when it leaves none."""
    prefix, colon, uri = policy.partition(":")
    key = prefix + colon
    if key not in catalogue["egos"] or (colon and not uri):
        raise RecordError(f"the policy must be a known one, found {policy!r}")
    ego = catalogue["egos"][key]
    return None if ego is None else _seat(f"ego:{policy}", ego["class"], uri or None, ego["seat"])


def _seat_problems(seat: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    name = wanted["name"]
    if "identity" not in wanted:
        return [f"{name!r}: {key} differs from the known seat" for key in wanted if seat.get(key) != wanted[key]]
    problems = []
    if seat["class_name"] != wanted["class_name"] or seat_identity(seat) != wanted["identity"]:
        problems.append(f"{name!r}: not the registered identity {wanted['identity']}")
    if "withheld_params_sha256" not in seat["extra"]:
        geometry = {key: value for key, value in seat["extra"].items() if key in wanted["seat"]}
        if geometry != wanted["seat"]:
            problems.append(f"{name!r}: seat geometry {geometry}, expected {wanted['seat']}")
    return problems


def _selection_row(table: CheckTable, bundle: _Bundle) -> None:
    """Learned rows: the checkpoints that played are the ones selected, by the rule, and committed before the run."""
    cell, meta = bundle.cell, bundle.meta
    if cell is None or cell.manifest is None or bundle.records is None:
        return
    must = "the committed selection manifest names the checkpoint that played each seed, and the rule selects them"
    check_id = f"{STRICT}selection:manifest"
    with guarded(table, check_id, must):
        named = meta["policy_id"].partition("_manifest:")[2]
        if named and named != cell.manifest:
            raise RecordError(f"the policy must read {cell.manifest}, found {named!r}")
        root = published_root(bundle.path)
        if root is None or not (root / cell.manifest).is_file():
            raise HistoryGap(f"{cell.manifest} is not found above the bundle: verify it inside the published tree")
        data = (root / cell.manifest).read_bytes()
        manifest = decode(data, cell.manifest)
        problems = [] if sorted_json(manifest) == data else [f"{cell.manifest} is not the encoding of its values"]
        for seed in bundle.seeds:
            policy = meta["policy_id"]
            if named:
                policy = bundle.records[seed][0]["metadata"]["seed_policy"]
            played = policy.partition(":")[2]
            chosen = _selected(root / cell.manifest, cell.row.lower(), seed)
            if not played == manifest.get(str(seed)) == chosen:
                problems.append(f"seed {seed}: played {played}, manifest {manifest.get(str(seed))}, rule {chosen}")
        report(table, check_id, must, problems, cell.manifest)
        must_commit = "the launch commit holds this selection manifest"
        with guarded(table, f"{STRICT}selection:committed", must_commit):
            committed = bundle.history.file_at(meta["git_sha"], cell.manifest)
            table.add(f"{STRICT}selection:committed", committed == data, must_commit, cell.manifest)


def _selected(manifest: Path, row: str, seed: int) -> str:
    """URI that the selection rule gives for one seed: most compliant successes, then the earliest step."""
    name = f"{row}-seed{seed}.json"
    artefact = decode((manifest.parent / name).read_bytes(), name)
    best = min(artefact["scores"], key=lambda score: (-score["compliant_successes"], score["step"]))
    if (best["step"], best["uri"]) != (artefact["selected_step"], artefact["selected_uri"]):
        raise RecordError(f"{name}: the rule selects step {best['step']}, found {artefact['selected_step']}")
    return best["uri"]
