"""Detached signatures of row digests, made and checked by OpenSSH alone.

What is signed is the line that ``sha256sum results/<board>/<row>/bundle.json`` prints at the root of the project: the
row digest, and whose it is. A signature is a file of its own, outside of the bundle that it vouches for:
``signatures/<board>/<row>/<name>.sig``.
"""

import os
import re
import subprocess
import tempfile
from pathlib import Path

from rowproof.errors import HistoryGap, RowproofError
from rowproof.evidence.checks import CheckTable
from rowproof.evidence.witness import MAX_EVIDENCE_BYTES, read_bounded
from rowproof.files import write_atomic
from rowproof.hashing import sha256_hex
from rowproof.records import decode

NAMESPACE = "rowproof"
FOLDER = "signatures"
TIMEOUT_S = 30
MAX_SIGNATURE_BYTES = 1 << 14
MAX_SIGNERS_BYTES = 1 << 20
MAX_SIGNATURES = 100
ROW = re.compile(r"(admission/)?[a-z0-9]+(-[a-z0-9]+)*/[a-z0-9]+(-[a-z0-9]+)*")
NAME = re.compile(r"[a-z0-9]+([._-][a-z0-9]+)*")


def row_of(bundle_json: bytes) -> str:
    """``<board>/<row>`` as the bundle names itself.

    Raises:
        RowproofError: not a document that names both, in the form that boards and rows have.
    """
    bundle = decode(bundle_json, "bundle.json")
    names = [bundle.get("board"), bundle.get("row")] if isinstance(bundle, dict) else []
    row = "/".join(name for name in names if isinstance(name, str))
    if not names or not all(isinstance(name, str) for name in names) or not ROW.fullmatch(row):
        raise RowproofError(f"bundle.json must name its board and row, found {str(names)[:200]}")
    return row


def statement(row: str, bundle_json: bytes) -> bytes:
    """The bytes that are signed for the row ``<board>/<row>``."""
    return f"{sha256_hex(bundle_json)}  results/{row}/bundle.json\n".encode()


def _keygen(*arguments: str, given: bytes | None = None, agent: bool = False) -> tuple[int, str]:
    """Exit code and output of ``ssh-keygen``; ``given=None`` leaves it the terminal, to ask for a passphrase.

    Raises:
        HistoryGap: it is missing or does not answer in time.
    """
    kept = ("PATH", "TERM", *(("SSH_AUTH_SOCK", "HOME", "DISPLAY", "SSH_ASKPASS") if agent else ()))
    environment = {name: os.environ[name] for name in kept if name in os.environ} | {"LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["ssh-keygen", *arguments],
            input=given,
            capture_output=True,
            timeout=TIMEOUT_S if given is not None else None,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise HistoryGap(f"ssh-keygen did not answer within {TIMEOUT_S} s") from None
    except OSError as error:
        raise HistoryGap(f"ssh-keygen (OpenSSH) must be installed: {error.strerror}") from None
    return done.returncode, " ".join((done.stdout + done.stderr).decode("utf-8", "replace").split())


def add_signature_checks(table: CheckTable, folder: Path, root: Path | None, signers: Path) -> None:
    """Add a line for each signature of the bundle in ``folder``: who vouches for it, by the file of ``signers``.

    A signature that is not of this row fails. One of a key that ``signers`` does not name says nothing, and neither
    does a row without any: both are unknown.

    Args:
        table: that of the bundle.
        folder: the bundle.
        root: the project whose folder ``signatures`` is looked into.
        signers: a file in the form of ``allowed_signers`` of ssh-keygen(1).
    """
    must = "somebody whom the file of signers names vouches for this row"
    with table.guard("signature", must):
        if root is None:
            raise HistoryGap("no project at hand")
        allowed = read_bounded(signers, MAX_SIGNERS_BYTES)
        data = read_bounded(folder / "bundle.json", MAX_EVIDENCE_BYTES)
        row = row_of(data)
        place = root / FOLDER / row
        files = _signature_files(root, row)
        if not files:
            raise HistoryGap(f"no signature in {place.relative_to(root)}")
        for path in files:
            with table.guard(f"signature:{path.name}", must):
                found = _vouches(read_bounded(path, MAX_SIGNATURE_BYTES), allowed, statement(row, data))
                table.add(f"signature:{path.name}", True, must, found)


def _signature_files(root: Path, row: str) -> list[Path]:
    place = root
    for part in (FOLDER, *row.split("/")):
        place = place / part
        if place.is_symlink():
            raise RowproofError(f"{place}: must be a folder, found a link")
    if not place.exists():
        return []
    files = sorted(place.iterdir())
    odd = [path.name for path in files if path.suffix != ".sig" or not NAME.fullmatch(path.stem)]
    if odd or len(files) > MAX_SIGNATURES:
        raise RowproofError(
            f"{place.relative_to(root)} must hold at most {MAX_SIGNATURES} files <name>.sig alone, "
            f"found {len(files)}, among them {odd[:5]}"
        )
    return files


def _vouches(signature: bytes, allowed: bytes, message: bytes) -> str:
    """Who vouches, and with which key."""
    with tempfile.TemporaryDirectory() as name:
        # ssh-keygen opens files by name; it gets copies that nobody exchanges between the reading and the checking.
        own, signers = Path(name) / "row.sig", Path(name) / "signers"
        own.write_bytes(signature)
        signers.write_bytes(allowed)
        code, said = _keygen("-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(own), given=message)
        if code:
            raise RowproofError(f"the signature must be of this row, in the namespace {NAMESPACE}, found: {said[:300]}")
        key = said.rpartition(" key ")[2] or "?"
        code, said = _keygen("-Y", "find-principals", "-s", str(own), "-f", str(signers), given=b"")
        principals = said.split() if code == 0 else []
        if not principals:
            raise HistoryGap(f"signed with the key {key}, whom the file of signers does not name")
        code, said = _keygen(
            *("-Y", "verify", "-n", NAMESPACE, "-I", principals[0], "-s", str(own), "-f", str(signers)), given=message
        )
        if code:
            raise RowproofError(f"the signature of {principals[0]} must hold, found: {said[:300]}")
        return f"{principals[0]} vouches with the key {key}"


def sign(root: Path, row: str, key: Path, name: str) -> Path:
    """Sign the row ``<board>/<row>`` of the project with the private ``key``; return the file of the signature.

    Raises:
        RowproofError: no such row, a name that is none, a signature of that name exists, or ssh-keygen refuses.
    """
    if not ROW.fullmatch(row):
        raise RowproofError(f"{row}: must be <board>/<row>")
    if not NAME.fullmatch(name):
        raise RowproofError(f"--name must be of small letters, digits and single . _ -, found {name!r}")
    data = read_bounded(root / "results" / row / "bundle.json", MAX_EVIDENCE_BYTES)
    target = root / FOLDER / row / f"{name}.sig"
    if target.exists() or target.is_symlink():
        raise RowproofError(f"{target.relative_to(root)} must not exist: remove it, or sign under another --name")
    if not key.is_file():
        raise RowproofError(f"{key}: must be a private key (or a public one whose agent has the private one)")
    with tempfile.TemporaryDirectory() as folder:
        message = Path(folder) / "row"
        message.write_bytes(statement(row, data))
        # By name, so that ssh-keygen is free to ask for a passphrase.
        code, said = _keygen("-Y", "sign", "-n", NAMESPACE, "-f", str(key), str(message), agent=True)
        if code:
            raise RowproofError(f"ssh-keygen must sign, found: {said[:300]}")
        signature = (Path(folder) / "row.sig").read_bytes()
    write_atomic(target, signature)
    return target
