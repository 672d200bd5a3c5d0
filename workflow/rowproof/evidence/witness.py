"""Time stamps (RFC 3161) of plans: what is stamped, and what a token must show.

What is stamped is git's object id of the plan in the SHA-256 object format: SHA-256 over ``blob <length>``, a zero byte
and the raw bytes. It has the preimage of the usual blob id, so it names the same object; the usual id alone, which is
SHA-1, would not do, since two plans of one id can be made by whoever may choose both. Anyone can compute it::

    (printf 'blob %d\\0' "$(wc -c <plan.yaml)"; cat plan.yaml) | sha256sum

A token shows that the plan existed at a time. That no record existed before, no token can show: when records were made
is told by the row's provenance, which is the word of who made it.
"""

import stat
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rowproof import git, history
from rowproof.boards import Board, DepositWitness, TimestampWitness
from rowproof.errors import HistoryGap, RowproofError
from rowproof.evidence.checks import CheckTable
from rowproof.layout import PROVENANCE
from rowproof.provenance import TIME_FORMAT, read_provenance
from rowproof.records import decode
from rowproof.strict_yaml import load

INSTALL = "pip install -e '.[witness]' -c requirements.lock"
SHA256_OID = "2.16.840.1.101.3.4.2.1"
TIMESTAMPING_OID = "1.3.6.1.5.5.7.3.8"
# A response with its whole chain has some 8 kB, a bundle of certificates some 20.
MAX_TOKEN_BYTES = 1 << 16
MAX_AUTHORITY_BYTES = 1 << 18
# Provenance of the largest rows has some 3 MB.
MAX_EVIDENCE_BYTES = 1 << 27
MUST = "each witness that the board lists of this row's plan holds, and saw the plan before the records were begun"
BY_HISTORY = "order: by the project's history"
# The stages whose jobs make records.
RECORDING = ("simulate", "time")


def preimage(plan: bytes) -> bytes:
    """The bytes whose SHA-256 is stamped."""
    return b"blob %d\0" % len(plan) + plan


@dataclass(frozen=True)
class Stamp:
    """What a good token shows.

    Attributes:
        time: the stamped time, in UTC.
        latest: with the stated accuracy added.
        nonce: that of the request, if the token has one.
    """

    time: datetime
    latest: datetime
    nonce: int | None


def read_bounded(path: Path, limit: int) -> bytes:
    """The bytes of a regular file of at most ``limit`` bytes, which is no link.

    Raises:
        RowproofError: it is none.
    """
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            raise RowproofError(f"{path}: must be a regular file of at most {limit} bytes, found another one")
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
    except OSError as error:
        raise RowproofError(f"{path}: must be a readable file: {error.strerror}") from None
    if len(data) > limit:
        raise RowproofError(f"{path}: must be a regular file of at most {limit} bytes, found more")
    return data


def _library() -> Any:
    try:
        import rfc3161_client
    except ImportError:
        raise HistoryGap(f"checking a token needs rfc3161-client, found none: {INSTALL}") from None
    return rfc3161_client


def make_request(plan: bytes) -> bytes:
    """A request (DER) for a stamp of the plan, with a nonce, that asks for the authority's certificates.

    Raises:
        HistoryGap: the library is not installed.
    """
    library = _library()
    builder = library.TimestampRequestBuilder().data(preimage(plan)).hash_algorithm(library.HashAlgorithm.SHA256)
    return builder.nonce(nonce=True).cert_request(cert_request=True).build().as_bytes()


def nonce_of(request: bytes) -> int | None:
    """The nonce of a request (DER).

    Raises:
        RowproofError: it is no request.
        HistoryGap: the library is not installed.
    """
    try:
        return _library()._rust.parse_timestamp_request(request).nonce
    except ValueError as error:
        raise RowproofError(f"the request must be one for a time stamp, found: {_reason(error)}") from None


def check_token(token: bytes, plan: bytes, authority: bytes) -> Stamp:
    """What a token shows, once it was found to be good.

    Args:
        token: the authority's response (DER).
        plan: raw bytes of the plan that it must be of.
        authority: certificates (PEM): those that are their own issuer are trusted, others may lie between.

    Raises:
        RowproofError: not a response, not granted, over another digest, not signed by a certificate for time stamps
            alone, which was valid then and leads to one that is trusted.
        HistoryGap: the library is not installed.
    """
    library = _library()
    from cryptography import x509

    try:
        certificates = x509.load_pem_x509_certificates(authority)
    except ValueError as error:
        raise RowproofError(f"the pinned certificates must be PEM, found others: {error}") from None
    roots = [each for each in certificates if each.issuer == each.subject]
    if not roots:
        raise RowproofError("the pinned certificates must hold a root (its own issuer), found none")
    try:
        response = library.decode_timestamp_response(token)
        if response.status != 0:
            raise RowproofError(f"the stamp must be granted, found status {response.status} {response.status_string}")
        info = response.tst_info
        imprint = info.message_imprint
        if imprint.hash_algorithm.dotted_string != SHA256_OID:
            raise RowproofError(f"the stamp must be of a SHA-256, found {imprint.hash_algorithm.dotted_string}")
        if len(response.signed_data.signer_infos) != 1:
            raise RowproofError("the token must have one signer, found several or none")
        _check_leaf(response, x509)
        builder = library.VerifierBuilder(
            roots=roots, intermediates=[each for each in certificates if each not in roots]
        )
        builder.build().verify_message(response, preimage(plan))
        accuracy = info.accuracy
        slack = timedelta(0)
        if accuracy is not None:
            slack = timedelta(
                seconds=accuracy.seconds or 0,
                milliseconds=accuracy.millis or 0,
                microseconds=accuracy.micros or 0,
            )
        time = info.gen_time.astimezone(UTC) if info.gen_time.tzinfo else info.gen_time.replace(tzinfo=UTC)
        return Stamp(time, time + slack, info.nonce)
    except RowproofError:
        raise
    except Exception as error:
        raise RowproofError(f"the token must be good, found: {_reason(error)}") from None
    except BaseException as error:
        # How the library's Rust code reports what it did not foresee.
        if type(error).__name__ != "PanicException":
            raise
        raise RowproofError("the token must be readable, found that its reader gave up") from None


def _reason(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def _check_leaf(response: Any, x509: Any) -> None:
    """Raise unless the signer's certificate is there once and for time stamps alone, as RFC 3161, 2.3 demands.

    What the library leaves open: it takes a certificate that may be used for other things as well.
    """
    (signer,) = response.signed_data.signer_infos
    held = [x509.load_der_x509_certificate(each) for each in response.signed_data.certificates]
    leaves = [c for c in held if c.issuer == signer.issuer and c.serial_number == signer.serial_number]
    if len(leaves) != 1:
        raise RowproofError("the token must hold its signer's certificate once: ask for certificates in the request")
    try:
        usage = leaves[0].extensions.get_extension_for_class(x509.ExtendedKeyUsage)
    except x509.ExtensionNotFound:
        raise RowproofError("the signer's certificate must be for time stamps, found no extended key usage") from None
    if not usage.critical or [each.dotted_string for each in usage.value] != [TIMESTAMPING_OID]:
        raise RowproofError("the signer's certificate must be for time stamps alone, by a critical extended key usage")


def listed_stamp(root: Path, witness: TimestampWitness, plan: bytes) -> Stamp:
    """The stamp of a token that a board lists, held against what the board says of it.

    Raises:
        RowproofError: it is not good; see :func:`check_token`.
        HistoryGap: the library is not installed.
    """
    token = read_bounded(root / witness.token, MAX_TOKEN_BYTES)
    pinned = read_bounded(root / "config" / "authorities" / f"{witness.authority}.pem", MAX_AUTHORITY_BYTES)
    try:
        stamp = check_token(token, plan, pinned)
    except HistoryGap:
        raise
    except RowproofError as error:
        raise RowproofError(f"{witness.token}: {error}") from None
    if shown(stamp.time) != witness.time:
        raise RowproofError(f"{witness.token}: time must be {shown(stamp.time)} as in the token, found {witness.time}")
    return stamp


def shown(time: datetime) -> str:
    """A time in whole seconds of UTC, as boards state it."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def check_deposit(witness: DepositWitness) -> str:
    """What to say of a deposit.

    Raises:
        RowproofError: a SWHID of a content that is another file: its digits are git's object id.
    """
    if witness.id.startswith("swh:1:cnt:") and witness.id.removeprefix("swh:1:cnt:") != witness.blob:
        raise RowproofError(f"{witness.id}: must be the content {witness.blob}, found another")
    return f"deposited as {witness.id}, not looked up"


def add_witness_check(table: CheckTable, folder: Path, root: Path | None) -> None:
    """Add ``witness:plan`` to the table of the bundle in ``folder``: on whose word plan and records are in order.

    No witness is no fault: the check then passes and says that the order is by the project's history.
    """
    with table.guard("witness:plan", MUST):
        if root is None:
            raise HistoryGap("no project at hand")
        plan = read_bounded(folder / "plan.yaml", MAX_EVIDENCE_BYTES)
        bundle = decode(read_bounded(folder / "bundle.json", MAX_EVIDENCE_BYTES), "bundle.json")
        name = str(bundle.get("board") if isinstance(bundle, dict) else None)
        # A name that a bundle gives leads nowhere but into the folder of boards.
        path = {_name(root, each): each for each in _board_files(root)}.get(name)
        if path is None:
            raise RowproofError(f"the project must have the board {name!r}, found none")
        board, _ = load(path, Board, root)
        blob = git.blob_id(plan)
        own = [each for each in board.witnesses if each.blob == blob]
        if not own:
            others = f"; {len(board.witnesses)} witnesses are of other versions of the plan" if board.witnesses else ""
            table.add("witness:plan", True, MUST, f"{BY_HISTORY}{others}")
            return
        told = [check_deposit(each) for each in own if isinstance(each, DepositWitness)]
        stamps = [(each, listed_stamp(root, each, plan)) for each in own if isinstance(each, TimestampWitness)]
        if not stamps:
            table.add("witness:plan", True, MUST, "; ".join([BY_HISTORY, *told]))
            return
        begun = _first_record(read_bounded(folder / PROVENANCE, MAX_EVIDENCE_BYTES))
        late = [f"{each.token} ({shown(stamp.latest)})" for each, stamp in stamps if stamp.latest >= begun]
        if late:
            raise RowproofError(
                f"the plan must be stamped before the first record was begun ({shown(begun)}), "
                f"found {', '.join(late)}: such a stamp witnesses no order, list none of it"
            )
        witness, stamp = min(stamps, key=lambda pair: pair[1].time)
        first = f"order: the plan was seen by {witness.authority} at {shown(stamp.time)}"
        table.add("witness:plan", True, MUST, "; ".join([f"{first}, the first record was begun {shown(begun)}", *told]))


def check_board(root: Path, board: Board) -> CheckTable:
    """A table with a line for each witness that the board lists, whichever version of the plan it is of.

    Whether a stamp is early enough is asked of each row, by :func:`add_witness_check`.
    """
    table = CheckTable(f"witnesses of {board.board}")
    path = f"config/plans/{board.plan}.yaml"
    if not board.witnesses:
        table.add("witness:plan", True, "witnesses that are listed hold", BY_HISTORY)
    for number, witness in enumerate(board.witnesses, start=1):
        must = f"is of a committed version of {path} and holds"
        with table.guard(f"witness:{number}", must):
            commit = history.first_commit_with(root, "HEAD", path, witness.blob)
            plan = None if commit is None else history.committed_file(root, commit, path)
            if plan is None:
                raise RowproofError(f"no version of {path} in this history is the blob {witness.blob}")
            if isinstance(witness, DepositWitness):
                found = check_deposit(witness)
            else:
                found = f"seen by {witness.authority} at {shown(listed_stamp(root, witness, plan).time)}"
            table.add(f"witness:{number}", True, must, found)
    return table


def _board_files(root: Path) -> Sequence[Path]:
    return sorted((root / "config" / "boards").rglob("*.yaml"))


def _name(root: Path, board_file: Path) -> str:
    return board_file.relative_to(root / "config" / "boards").with_suffix("").as_posix()


def _first_record(provenance: bytes) -> datetime:
    """When the first of the jobs that made records was begun, by the row's provenance.

    Raises:
        RowproofError: the provenance is not as it was written.
        HistoryGap: it is of an earlier form, which does not tell.
    """
    jobs = [job for job in read_provenance(provenance)["jobs"] if job["stage"] in RECORDING]
    if not jobs or any("started" not in job for job in jobs):
        raise HistoryGap("when the records were begun is not told by this provenance: its jobs are of an earlier form")
    return min(datetime.strptime(job["started"], TIME_FORMAT).replace(tzinfo=UTC) for job in jobs)
