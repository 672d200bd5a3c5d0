"""Clones of users whose git converts line endings to those of Windows."""

import subprocess
import sys
from pathlib import Path

import pytest
from checkouts import Checkout, environment
from helpers import ROOT
from rowproof.errors import RowproofError
from rowproof.line_ends import converted, require_unconverted


def clone_converting(source: Checkout, target: Path) -> Checkout:
    """A clone by a user who has ``core.autocrlf=true``."""
    command = ["git", "clone", "-q", "--config", "core.autocrlf=true", str(source.root), str(target)]
    subprocess.run(command, env=environment(source.home), check=True, capture_output=True)
    return Checkout(target, source.home)


def rowproof(checkout: Checkout, *args: str) -> subprocess.CompletedProcess:
    """The command, with the code of the checkout."""
    return subprocess.run(
        [sys.executable, "-m", "rowproof", *args],
        cwd=checkout.root,
        env=environment(checkout.home, {"PYTHONPATH": str(checkout.root / "workflow")}),
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_a_clone_that_converts_has_nothing_to_do_and_verifies(built, tmp_path):
    checkout = clone_converting(built, tmp_path / "clone")
    run = checkout.dry_run()
    assert run.nothing, run.output[-3000:]
    for row in ("handover-v1/b-stat", "push-v1/b-stat"):
        done = rowproof(checkout, "verify", "--quiet", f"results/{row}")
        assert done.returncode == 0, done.stdout + done.stderr


def test_no_file_of_a_clone_that_converts_differs(unbuilt, tmp_path):
    unbuilt.git("checkout", "-q", "HEAD~1")
    checkout = clone_converting(unbuilt, tmp_path / "clone")
    names = [name for name in unbuilt.git("ls-files", "-z").split("\0") if name]
    differing = [
        name
        for name in names
        if not (unbuilt.root / name).is_symlink()
        and (unbuilt.root / name).read_bytes() != (checkout.root / name).read_bytes()
    ]
    assert names and differing == []


@pytest.fixture
def older(source, tmp_path) -> Checkout:
    """A clone from before line endings were fixed, brought up to date afterwards."""
    checkout = Checkout(tmp_path / "older-source", source.home)
    subprocess.run(
        ["git", "clone", "-q", str(source.root), str(checkout.root)], env=environment(source.home), check=True
    )
    attributes = (checkout.root / ".gitattributes").read_text()
    (checkout.root / ".gitattributes").write_text("results/** -text\nconfig/plans/** -text\n")
    checkout.commit()
    old = clone_converting(checkout, tmp_path / "older")
    (checkout.root / ".gitattributes").write_text(attributes)
    checkout.commit()
    old.git("pull", "-q", "--ff-only")
    return old


@pytest.mark.slow
def test_an_older_clone_is_told_how_to_mend_it(older):
    found = converted(older.root)
    assert "resources/published/handover-v1.yaml" in found and "workflow/rowproof/cli.py" in found
    with pytest.raises(RowproofError) as caught:
        require_unconverted(older.root)
    said = str(caught.value)
    assert said.startswith(f"{older.root / found[0]} and {len(found) - 1} more: must have the line endings")
    run = older.dry_run()
    assert run.code == 1
    assert said in " ".join(run.output.split("\n"))
    assert rowproof(older, "why").stderr == f"rowproof: {said}\n"
    assert rowproof(older, "verify", "results/push-v1/b-stat").stderr == f"rowproof: {said}\n"
    commands = said.rpartition("then: ")[2].split(" && ")
    assert len(commands) == 2
    for command in commands:
        older.git(*command.split()[1:])
    assert converted(older.root) == []
    assert older.changed() == set()


def test_this_checkout_is_not_converted():
    require_unconverted(ROOT)


def test_without_git_nothing_is_said(tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.yaml").write_bytes(b"a: 1\r\n")
    require_unconverted(tmp_path)
