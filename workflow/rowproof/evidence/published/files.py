"""The files of a published bundle: reading a directory, digests, names and encodings."""

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rowproof.errors import RowproofError
from rowproof.evidence.checks import CheckTable
from rowproof.evidence.published.bundle import HEX, Bundle
from rowproof.evidence.published.records import RECORD_SCHEMA
from rowproof.evidence.published.tables import STRICT, repeated, report
from rowproof.hashing import sha256_hex
from rowproof.records import decode, decode_lines, encode_document

SUMS = "SHA256SUMS.txt"
MAX_FILE_BYTES = 64 * 1024 * 1024


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


def _digest_problem(bundle: Bundle, name: str, stated: str) -> str:
    """Why the file does not have the stated SHA-256; empty when it has. Reads nothing outside the bundle."""
    if name not in bundle.files:
        kind = bundle.others.get(name, "no such file" if plain_name(name) else "a name outside the bundle")
        return f"must be a regular file of the bundle, found {kind}"
    found = sha256_hex(bundle.files[name])
    return "" if found == stated else f"stated {stated[:16]}..., file has {found[:16]}..."


def manifest_rows(table: CheckTable, bundle: Bundle) -> None:
    """Reference rows: the manifest against the directory."""
    manifest = bundle.meta["manifest"]
    for name in sorted(manifest):
        problem = _digest_problem(bundle, name, manifest[name])
        table.add(f"manifest:{name}", not problem, "the file has the SHA-256 of the manifest", problem or "equal")
    extra = sorted({*bundle.files, *bundle.others} - {*manifest, "bundle.json", SUMS})
    must = "nothing lies in the directory but the manifest's files, bundle.json and the digest list"
    report(table, "manifest:membership", must, [f"stray {name!r}" for name in extra], f"{len(manifest)} files")


def sums_rows(table: CheckTable, bundle: Bundle) -> None:
    """Reference rows: the digest list against the directory."""
    must = "the listed SHA-256 is that of the named file"
    with table.guard("sha256sums", "the digest list exists and is UTF-8"):
        for line in bundle.need(SUMS).decode("utf-8").removesuffix("\n").split("\n"):
            stated, gap, name = line.partition("  ")
            if not line:
                continue
            problem = _digest_problem(bundle, name, stated) if gap else "no double space between digest and name"
            table.add(f"sha256sums:{name or line}", not problem, must, problem or "equal")


def form_rows(table: CheckTable, bundle: Bundle) -> None:
    """Strict rows: plain entries, complete digest list, canonical encodings (records that loaded have theirs)."""
    version = bundle.meta["schema_version"]
    table.add(f"{STRICT}bundle:version", version == 3, "schema_version is exactly 3", f"{version}")
    names = {*bundle.files, *bundle.others, *bundle.meta["manifest"]}
    problems = [f"{name!r} is {kind}" for name, kind in bundle.others.items()]
    problems += [f"{name!r} is no plain file name" for name in sorted(names) if not plain_name(name)]
    must = "all entries are regular files with plain names; no links, no directories"
    report(table, f"{STRICT}files:plain", must, problems, f"{len(bundle.files)} files")
    must = "the digest list names every other file of the directory, each once, and nothing else"
    with table.guard(f"{STRICT}sha256sums:coverage", must):
        lines = bundle.need(SUMS).decode("utf-8").removesuffix("\n").split("\n")
        listed = [line.partition("  ")[2] for line in lines if line]
        expected = {*bundle.files, *bundle.others} - {SUMS}
        problems = [f"{name!r} is not listed" for name in sorted(expected - set(listed))]
        problems += [f"{name!r} is listed without such a file" for name in sorted(set(listed) - expected)]
        problems += [f"{name!r} is listed twice" for name in sorted(repeated(listed))]
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
        if any(not HEX[64].fullmatch(digest) or not plain_name(named) for digest, named in pairs):
            return "holds a line that is not 64 hexadecimal digits, two spaces and a name"
        if [named for _, named in pairs] != sorted(named for _, named in pairs):
            return "is not sorted by name"
    if name.endswith(".jsonl") and not canonical:
        decode_lines(data, RECORD_SCHEMA, name)
    return ""
