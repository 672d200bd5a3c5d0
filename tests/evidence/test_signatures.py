"""Signatures by real keys: who vouches, and one broken thing per test."""

import shutil
import subprocess

import pytest
from bundles import entered, make_project, make_row
from rowproof import cli
from rowproof.evidence import signatures
from rowproof.evidence.checks import CheckTable
from rowproof.evidence.signatures import add_signature_checks, statement

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen (OpenSSH) is not installed")

ROW, OTHER = "handover-v1/b-stat", "handover-v1/b-rnd"


def keygen(*arguments, **more):
    return subprocess.run(["ssh-keygen", *map(str, arguments)], check=True, capture_output=True, **more).stdout


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    for name in ("alice", "mallory"):
        keygen("-q", "-t", "ed25519", "-N", "", "-C", name, "-f", folder / name)
    public = (folder / "alice.pub").read_text()
    (folder / "signers").write_text(f'alice@example.org namespaces="rowproof" {public}')
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    root = make_project(tmp_path_factory.mktemp("signed") / "p", seeds=[0], episodes_per_partner=2)
    (root / "Snakefile").write_text("")
    for row in (ROW, OTHER):
        make_row(root, root / "results", *row.split("/"))
    return root


@pytest.fixture
def project(built, tmp_path, monkeypatch):
    return entered(built, tmp_path, monkeypatch)


def checks(root, signers, row=ROW):
    table = CheckTable("row")
    add_signature_checks(table, root / "results" / row, root, signers)
    assert table.crashed == []
    return {check.id: (check.verdict, check.found) for check in table.checks}


def sign(root, key, row=ROW, name=None):
    assert cli.main(["sign", row, "--key", str(key), *(["--name", name] if name else [])]) == 0
    return root / "signatures" / row / f"{name or key.name}.sig"


def test_a_signature_of_a_known_signer_vouches(project, keys):
    path = sign(project, keys / "alice")
    verdict, found = checks(project, keys / "signers")["signature:alice.sig"]
    assert verdict == "pass" and found.startswith("alice@example.org vouches with the key SHA256:")
    # What was signed can be made without this program.
    line = subprocess.check_output(["sha256sum", f"results/{ROW}/bundle.json"], cwd=project)
    keygen("-Y", "check-novalidate", "-n", "rowproof", "-s", path, input=line)


def test_the_command_shows_who_vouches_and_the_bundle_still_verifies(project, keys, capsys):
    sign(project, keys / "alice")
    assert cli.main(["verify", f"results/{ROW}", "--signers", str(keys / "signers")]) == 0
    assert "alice@example.org vouches" in capsys.readouterr().out
    assert cli.main(["verify", "--strict", f"results/{OTHER}", "--signers", str(keys / "signers")]) == 1


def test_no_signature_and_an_unknown_signer_are_unknown(project, keys):
    assert checks(project, keys / "signers")["signature"][0] == "unknown"
    sign(project, keys / "mallory")
    verdict, found = checks(project, keys / "signers")["signature:mallory.sig"]
    assert verdict == "unknown" and "does not name" in found and "SHA256:" in found


def test_a_signature_of_another_row_fails(project, keys):
    path = sign(project, keys / "alice", OTHER)
    (project / "signatures" / ROW).mkdir()
    shutil.copy(path, project / "signatures" / ROW)
    assert checks(project, keys / "signers")["signature:alice.sig"][0] == "fail"


def test_a_signature_of_an_earlier_state_fails(project, keys):
    sign(project, keys / "alice")
    path = project / "results" / ROW / "bundle.json"
    path.write_bytes(path.read_bytes() + b"\n")
    assert set(checks(project, keys / "signers").values()).pop()[0] in ("fail",)


def test_a_signature_in_another_namespace_fails(project, keys):
    data = (project / "results" / ROW / "bundle.json").read_bytes()
    (project / "line").write_bytes(statement(ROW, data))
    keygen("-Y", "sign", "-n", "git", "-f", keys / "alice", project / "line")
    place = project / "signatures" / ROW
    place.mkdir(parents=True)
    shutil.move(project / "line.sig", place / "alice.sig")
    assert checks(project, keys / "signers")["signature:alice.sig"][0] == "fail"


@pytest.mark.parametrize("options", ['namespaces="git"', 'valid-before="20200101"', 'valid-after="29990101"'])
def test_a_signer_who_may_not_sign_rows_now_does_not_vouch(project, keys, options):
    sign(project, keys / "alice")
    public = (keys / "alice.pub").read_text()
    (project / "signers").write_text(f"alice@example.org {options} {public}")
    assert checks(project, project / "signers")["signature:alice.sig"][0] != "pass"


@pytest.mark.parametrize(
    "content", [b"", b"garbage\n", b"-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"]
)
def test_garbage_fails(project, keys, content):
    sign(project, keys / "alice").write_bytes(content)
    assert checks(project, keys / "signers")["signature:alice.sig"][0] == "fail"


def test_a_huge_file_a_link_and_a_stray_are_not_read(project, keys):
    path = sign(project, keys / "alice")
    with path.open("wb") as stream:
        stream.truncate(1 << 33)
    assert checks(project, keys / "signers")["signature:alice.sig"][0] == "fail"
    path.unlink()
    path.symlink_to(keys / "alice")
    assert checks(project, keys / "signers")["signature:alice.sig"][0] == "fail"
    (path.parent / "readme").write_text("")
    assert checks(project, keys / "signers")["signature"][0] == "fail"
    shutil.rmtree(project / "signatures" / "handover-v1")
    (project / "signatures" / "handover-v1").symlink_to(keys)
    assert checks(project, keys / "signers")["signature"][0] == "fail"


def test_a_file_of_signers_that_is_none_vouches_for_nobody(project, keys):
    sign(project, keys / "alice")
    (project / "signers").write_text("nothing of this form\n")
    assert checks(project, project / "signers")["signature:alice.sig"][0] == "unknown"
    assert checks(project, project / "absent")["signature"][0] == "fail"


def test_without_ssh_keygen_nothing_is_decided(project, keys, monkeypatch):
    sign(project, keys / "alice")
    monkeypatch.setenv("PATH", str(project))
    assert checks(project, keys / "signers")["signature:alice.sig"][0] == "unknown"


def test_an_ssh_keygen_that_hangs_is_ended(project, keys, monkeypatch):
    sign(project, keys / "alice")
    program = project / "bin" / "ssh-keygen"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setattr(signatures, "TIMEOUT_S", 0.2)
    verdict, found = checks(project, keys / "signers")["signature:alice.sig"]
    assert verdict == "unknown" and "did not answer" in found


def test_sign_refuses_what_it_cannot_sign(project, keys):
    path = sign(project, keys / "alice")
    before = path.read_bytes()
    for arguments in (
        [ROW, "--key", str(keys / "alice")],
        ["handover-v1/none", "--key", str(keys / "alice")],
        ["../x/y", "--key", str(keys / "alice")],
        [ROW, "--key", str(keys / "absent")],
        [ROW, "--key", str(keys / "signers"), "--name", "x"],
        [ROW, "--key", str(keys / "alice"), "--name", "../x"],
    ):
        assert cli.main(["sign", *arguments]) == 2
    assert path.read_bytes() == before and [p.name for p in path.parent.iterdir()] == ["alice.sig"]
