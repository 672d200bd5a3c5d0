"""Time stamps by an authority that these tests make with openssl: what holds, and one broken thing per test."""

import json
import shutil
import subprocess
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from bundles import commit_all, entered, make_project, make_row
from rowproof import cli, git
from rowproof.boards import Board
from rowproof.errors import RowproofError
from rowproof.evidence.checks import CheckTable
from rowproof.evidence.order import order_lines
from rowproof.evidence.subjects import verify_path
from rowproof.evidence.witness import add_witness_check, check_token, make_request, nonce_of, preimage, shown
from rowproof.hashing import sha256_hex
from rowproof.layout import PROVENANCE, document_digest
from rowproof.records import decode, encode_document

pytest.importorskip("rfc3161_client", reason="needs the extra witness")
pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")

ROW = "handover-v1/b-stat"
PLAN = "config/plans/handover-v1.yaml"
USAGE = "critical,timeStamping"
CONFIG = """
[tsa]
serial = {folder}/serial
signer_cert = {folder}/{signer}.pem
signer_key = {folder}/{signer}.key
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256,sha512
accuracy = secs:1
ess_cert_id_alg = sha256
"""


def openssl(*arguments):
    return subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True).stdout


class Authority:
    """A root and certificates for time stamps that it issued."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        (folder / "serial").write_text("01\n")
        openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3650"),
            *("-subj", "/CN=root", "-keyout", folder / "root.key", "-out", folder / "root.pem"),
            *("-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"),
        )

    @property
    def root(self):
        return (self.folder / "root.pem").read_bytes()

    def issue(self, name, usage=USAGE, expired=False):
        folder = self.folder
        (folder / "ext").write_text(
            "basicConstraints=CA:FALSE\n"
            + (f"extendedKeyUsage={usage}\n" if usage else "")
            + "authorityKeyIdentifier=keyid\nsubjectAltName=DNS:tsa.example\n"
        )
        openssl(
            *("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}"),
            *("-keyout", folder / f"{name}.key", "-out", folder / f"{name}.csr"),
        )
        days = ("-days", "-1") if expired else ("-days", "365")
        openssl(
            *("x509", "-req", "-in", folder / f"{name}.csr", "-CA", folder / "root.pem", "-CAkey", folder / "root.key"),
            *("-CAcreateserial", "-extfile", folder / "ext", "-out", folder / f"{name}.pem", *days),
        )
        return name

    def certificate(self, name):
        """In DER."""
        return openssl("x509", "-in", self.folder / f"{name}.pem", "-outform", "DER")

    def stamp(self, request, signer):
        (self.folder / "tsa.cnf").write_text(CONFIG.format(folder=self.folder, signer=signer))
        (self.folder / "q.tsq").write_bytes(request)
        out = self.folder / "r.tsr"
        openssl(
            *("ts", "-reply", "-config", self.folder / "tsa.cnf", "-section", "tsa"),
            *("-queryfile", self.folder / "q.tsq", "-out", out),
        )
        return out.read_bytes()


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    made = Authority(tmp_path_factory.mktemp("tsa") / "one")
    made.issue("good")
    return made


DATA = b"plan: example\n"


def test_what_is_stamped_is_the_sha256_object_id(tmp_path):
    (tmp_path / "plan").write_bytes(DATA)
    done = subprocess.run(["git", "init", "-q", "--object-format=sha256", tmp_path / "r"], capture_output=True)
    if done.returncode:
        pytest.skip("this git has no SHA-256 object format")
    told = subprocess.check_output(["git", "-C", tmp_path / "r", "hash-object", "--no-filters", tmp_path / "plan"])
    assert told.decode().strip() == sha256_hex(preimage(DATA))


def test_a_good_token_holds_and_answers_its_request(authority):
    request = make_request(DATA)
    stamp = check_token(authority.stamp(request, "good"), DATA, authority.root)
    assert abs(stamp.time - datetime.now(UTC)) < timedelta(minutes=5)
    assert stamp.latest == stamp.time + timedelta(seconds=1)
    assert stamp.nonce == nonce_of(request) and nonce_of(make_request(DATA)) != stamp.nonce


def refused(token, authority, plan=DATA, match="."):
    with pytest.raises(RowproofError, match=match):
        check_token(token, plan, authority.root)


def test_a_token_over_other_bytes_is_refused(authority):
    token = authority.stamp(make_request(DATA), "good")
    refused(token, authority, DATA + b"\n", "Mismatch")
    # The bytes themselves instead of the object, and the short id.
    for data in (DATA, git.blob_id(DATA).encode()):
        (authority.folder / "data").write_bytes(data)
        request = openssl("ts", "-query", "-data", authority.folder / "data", "-sha256", "-cert")
        refused(authority.stamp(request, "good"), authority, DATA, "Mismatch")


def test_a_token_over_another_algorithm_is_refused(authority):
    (authority.folder / "data").write_bytes(preimage(DATA))
    request = openssl("ts", "-query", "-data", authority.folder / "data", "-sha512", "-cert")
    refused(authority.stamp(request, "good"), authority, match="SHA-256")


@pytest.mark.parametrize("usage", ["critical,timeStamping,serverAuth", "timeStamping", "critical,codeSigning", None])
def test_a_certificate_for_more_or_other_things_is_refused(tmp_path, usage):
    """Openssl would not sign with such a certificate: so a good one of the same key and number is exchanged for it."""
    own = Authority(tmp_path / "tsa")
    own.issue("leaf", usage)
    odd = own.certificate("leaf")
    serial = openssl("x509", "-in", own.folder / "leaf.pem", "-noout", "-serial").decode().split("=")[1].strip()
    (own.folder / "ext").write_text(f"basicConstraints=CA:FALSE\nextendedKeyUsage={USAGE}\n")
    openssl(
        *("x509", "-req", "-in", own.folder / "leaf.csr", "-CA", own.folder / "root.pem", "-set_serial", f"0x{serial}"),
        *("-CAkey", own.folder / "root.key", "-extfile", own.folder / "ext", "-out", own.folder / "leaf.pem"),
    )
    token = own.stamp(make_request(DATA), "leaf")
    check_token(token, DATA, own.root)
    # Certificates are outside of what is signed.
    assert token.count(own.certificate("leaf")) == 1
    refused(_replaced(token, own.certificate("leaf"), odd), own, match="for time stamps")


def _replaced(data, old, new):
    """DER ``data`` with the element ``old`` exchanged for ``new`` and the lengths around it made to fit."""
    if data == old:
        return new
    tag, content = data[:1], data[_header(data) :]
    if old not in content or not data[0] & 0x20:
        return data
    parts, start = [], 0
    while start < len(content):
        end = start + _header(content[start:]) + _length(content[start:])
        parts.append(_replaced(content[start:end], old, new))
        start = end
    body = b"".join(parts)
    size = len(body)
    if size < 128:
        return tag + bytes([size]) + body
    digits = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return tag + bytes([128 | len(digits)]) + digits + body


def _header(data):
    return 2 + (data[1] & 127 if data[1] & 128 else 0)


def _length(data):
    return int.from_bytes(data[2 : _header(data)], "big") if data[1] & 128 else data[1]


def test_an_expired_certificate_is_refused(tmp_path):
    own = Authority(tmp_path / "tsa")
    own.issue("old", expired=True)
    refused(own.stamp(make_request(DATA), "old"), own, match="certificate")


def test_an_untrusted_root_is_refused(tmp_path, authority):
    other = Authority(tmp_path / "tsa")
    refused(authority.stamp(make_request(DATA), "good"), other, match="certificate")


def test_pinned_certificates_without_a_root_or_of_garbage_are_refused(authority):
    token = authority.stamp(make_request(DATA), "good")
    leaf = (authority.folder / "good.pem").read_bytes()
    for pinned in (leaf, b"", b"garbage", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"):
        with pytest.raises(RowproofError, match="pinned certificates"):
            check_token(token, DATA, pinned)


def test_no_edited_or_cut_token_holds(authority):
    token = authority.stamp(make_request(DATA), "good")
    whole = check_token(token, DATA, authority.root)
    for place in range(0, len(token), 11):
        edited = bytearray(token)
        edited[place] ^= 0x01
        try:
            stamp = check_token(bytes(edited), DATA, authority.root)
        except RowproofError:
            continue
        # What no signature covers (say, the form of the status) may differ; what is shown may not.
        assert stamp == whole
    for size in (0, 1, 10, len(token) // 2, len(token) - 1):
        refused(token[:size], authority)


@pytest.mark.parametrize("garbage", [b"", b"\x30\x80", b"\x30\x84\xff\xff\xff\xff", b"PK\x03\x04", b"\x00" * 5000])
def test_garbage_is_refused(authority, garbage):
    refused(garbage, authority)


# --- In a project ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory, authority):
    root = make_project(tmp_path_factory.mktemp("witness") / "p", seeds=[0], episodes_per_partner=2)
    (root / "Snakefile").write_text("")
    (root / "config/authorities").mkdir()
    (root / "config/authorities/local.pem").write_bytes(authority.root)
    commit_all(root)
    make_row(root, root / "results", *ROW.split("/"))
    return root


@pytest.fixture
def project(built, tmp_path, monkeypatch):
    return entered(built, tmp_path, monkeypatch)


def begun(root, when):
    """Let the row's jobs say that they were begun at ``when``."""
    path = root / "results" / ROW / PROVENANCE
    document = decode(path.read_bytes(), "")
    text = when.strftime("%Y-%m-%dT%H:%M:%S+00:00")
    for job in document["jobs"]:
        job |= {"started": text, "ended": text}
    path.write_bytes(encode_document({**document, "digest": document_digest(document)}))


def listed(root, *witnesses, board="handover-v1"):
    path = root / f"config/boards/{board}.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"witnesses": list(witnesses)}, sort_keys=False))


def entry(root, tsa, plan=None, **changes):
    data = (root / PLAN).read_bytes()
    token = tsa.stamp(make_request(data if plan is None else plan), "good")
    stamp = check_token(token, data if plan is None else plan, tsa.root)
    path = root / "config/witnesses/handover-v1/one.tsr"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(token)
    return {
        "kind": "rfc3161",
        "blob": git.blob_id(data),
        "token": path.relative_to(root).as_posix(),
        "authority": "local",
        "time": shown(stamp.time),
    } | changes


def verdict(root):
    table = CheckTable("row")
    add_witness_check(table, root / "results" / ROW, root)
    (check,) = table.checks
    return check.verdict, check.found


LATER = datetime.now(UTC) + timedelta(days=1)


def test_without_a_witness_the_order_is_by_history(project):
    assert verdict(project) == ("pass", "order: by the project's history")


def test_a_witness_before_the_records_is_named(project, authority):
    begun(project, LATER)
    listed(project, entry(project, authority))
    found = verdict(project)
    assert found[0] == "pass" and found[1].startswith("order: the plan was seen by local at 20")


def test_a_witness_after_the_records_fails(project, authority):
    begun(project, datetime.now(UTC) - timedelta(hours=1))
    listed(project, entry(project, authority))
    assert verdict(project)[0] == "fail" and "before the first record" in verdict(project)[1]


def test_the_accuracy_of_the_stamp_counts_against_it(project, authority):
    own = entry(project, authority)
    begun(project, datetime.strptime(own["time"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC) + timedelta(seconds=1))
    listed(project, own)
    assert verdict(project)[0] == "fail"


def test_when_the_records_were_begun_must_be_told(project, authority):
    listed(project, entry(project, authority))
    assert verdict(project)[0] == "unknown"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"time": "2020-01-01T00:00:00Z"}, "time must be"),
        ({"authority": "nobody"}, "readable file"),
        ({"token": "config/witnesses/none.tsr"}, "readable file"),
    ],
)
def test_what_the_board_says_of_a_token_is_held_against_it(project, authority, changes, said):
    begun(project, LATER)
    listed(project, entry(project, authority, **changes))
    assert verdict(project)[0] == "fail" and said in verdict(project)[1]


def test_a_token_of_another_boards_plan_fails(project, authority):
    begun(project, LATER)
    listed(project, entry(project, authority, plan=(project / "config/plans/push-v1.yaml").read_bytes()))
    assert verdict(project)[0] == "fail" and "Mismatch" in verdict(project)[1]


def test_a_huge_token_and_one_behind_a_link_are_not_read(project, authority):
    begun(project, LATER)
    listed(project, entry(project, authority))
    path = project / "config/witnesses/handover-v1/one.tsr"
    shutil.move(path, path.with_suffix(".kept"))
    path.symlink_to(path.with_suffix(".kept"))
    assert verdict(project)[0] == "fail" and "regular file" in verdict(project)[1]
    path.unlink()
    with path.open("wb") as stream:
        stream.truncate(1 << 33)
    assert verdict(project)[0] == "fail" and "regular file" in verdict(project)[1]


def test_a_witness_of_another_version_says_nothing_of_this_row(project, authority):
    listed(project, entry(project, authority, blob="0" * 40))
    assert verdict(project) == (
        "pass",
        "order: by the project's history; 1 witnesses are of other versions of the plan",
    )
    assert cli.main(["witness", "check", "handover-v1"]) == 1


def test_a_deposit_is_shown_and_not_looked_up(project):
    blob = git.blob_id((project / PLAN).read_bytes())
    listed(project, {"kind": "deposit", "blob": blob, "id": "doi:10.5281/zenodo.123"})
    assert verdict(project)[1] == (
        "order: by the project's history; deposited as doi:10.5281/zenodo.123, not looked up"
    )
    listed(project, {"kind": "deposit", "blob": blob, "id": f"swh:1:cnt:{blob}"})
    assert verdict(project)[0] == "pass"
    listed(project, {"kind": "deposit", "blob": blob, "id": "swh:1:cnt:" + "0" * 40})
    assert verdict(project)[0] == "fail"


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "deposit", "id": "https://example.org/1"},
        {"kind": "deposit", "id": "doi:10.1/x"},
        {"kind": "deposit", "id": "doi:10.5281/x\n| raw |"},
        {"kind": "deposit", "id": "swh:1:cnt:xyz"},
        {"kind": "rfc3161", "token": "/etc/passwd", "authority": "local", "time": "2020-01-01T00:00:00Z"},
        {"kind": "rfc3161", "token": "config/witnesses/../x.tsr", "authority": "local", "time": "2020-01-01T00:00:00Z"},
        {"kind": "rfc3161", "token": "config/witnesses/x.tsr", "authority": "../x", "time": "2020-01-01T00:00:00Z"},
    ],
)
def test_malformed_entries_are_refused(project, changes):
    listed(project, {"blob": "0" * 40} | changes)
    assert verdict(project)[0] == "fail"


def test_request_attach_and_check_work_together(project, authority, capsys):
    assert cli.main(["witness", "request", "handover-v1"]) == 0
    request = project / "work/witness/handover-v1.tsq"
    (project / "answer.tsr").write_bytes(authority.stamp(request.read_bytes(), "good"))
    attach = ["witness", "attach", "handover-v1", "answer.tsr", "--authority", "local"]
    capsys.readouterr()
    assert cli.main(attach) == 0
    told = capsys.readouterr().out
    listed(project, *yaml.safe_load(told[told.index("witnesses:") :])["witnesses"])
    assert cli.main(["witness", "check", "handover-v1"]) == 0
    assert "seen by local at" in capsys.readouterr().out
    begun(project, LATER)
    (table,) = verify_path(project / "results" / ROW, root=project)
    assert table.passed and [c.verdict for c in table.checks if c.id == "witness:plan"] == ["pass"]


def test_attach_stores_nothing_that_is_not_good(project, authority):
    assert cli.main(["witness", "request", "handover-v1"]) == 0
    plan = (project / PLAN).read_bytes()
    attach = ["witness", "attach", "handover-v1", "answer.tsr", "--authority", "local"]
    # Of the same plan, yet not the answer to this request; of other bytes; of nobody whom the project pins.
    for token in (authority.stamp(make_request(plan), "good"), authority.stamp(make_request(DATA), "good"), b"no"):
        (project / "answer.tsr").write_bytes(token)
        assert cli.main(attach) == 2
    assert not (project / "config/witnesses").exists()
    assert cli.main([*attach[:-1], "../../x"]) == 2


def test_only_a_committed_plan_is_stamped(project):
    (project / PLAN).write_bytes((project / PLAN).read_bytes() + b"# more\n")
    assert cli.main(["witness", "request", "handover-v1"]) == 2


def test_the_page_says_on_whose_word_the_order_rests():
    rows = [{"row": "a", "plan": {"blob": "0" * 40}}, {"row": "b", "plan": {"blob": "1" * 40}}]
    assert order_lines({"witnesses": []}, rows) == ["Order: by the project's history.\n"]
    stamp = {"kind": "rfc3161", "blob": "0" * 40, "token": "config/witnesses/x.tsr", "authority": "local"}
    text = "".join(order_lines({"witnesses": [stamp | {"time": "2026-01-01T00:00:00Z"}]}, rows))
    assert "- a: the plan was stamped at 2026-01-01T00:00:00Z by local" in text
    assert "- b: by the project's history" in text
    deposit = {"kind": "deposit", "blob": "0" * 40, "id": "doi:10.5281/zenodo.1"}
    assert "- a: by the project's history; deposited as" in "".join(order_lines({"witnesses": [deposit]}, rows))
    assert json.dumps(Board.model_json_schema()["properties"]["witnesses"])
