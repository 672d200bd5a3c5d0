"""Byte code of an older source with the same size and time stamp is never run."""

import importlib.util
import os
import py_compile
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import ROOT

OLD, NEW = 'VALUE = "old"\n', 'VALUE = "new"\n'
SHOW = "import rowproof.added; print(rowproof.added.VALUE)"
DEEP = "import rowproof.chamber.added; print(rowproof.chamber.added.VALUE)"


@pytest.fixture
def package(tmp_path) -> Path:
    return shutil.copytree(ROOT / "workflow", tmp_path / "workflow", ignore=shutil.ignore_patterns("__pycache__"))


def run(package: Path, *args: str, **extra: str) -> str:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment = {**kept, "PYTHONPATH": str(package), **extra}
    done = subprocess.run(
        [sys.executable, *args], env=environment, capture_output=True, text=True, timeout=60, cwd=package
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def stale(path: Path, mode: py_compile.PycInvalidationMode) -> Path:
    """Leave byte code of the old source beside the new one, which has the same size and time stamp."""
    path.write_text(OLD)
    stamp = path.stat().st_mtime_ns
    py_compile.compile(str(path), doraise=True, invalidation_mode=mode)
    path.write_text(NEW)
    os.utime(path, ns=(stamp, stamp))
    return Path(importlib.util.cache_from_source(str(path)))


def test_the_trap_is_still_there(tmp_path):
    """Once this fails, Python looks at contents itself."""
    stale(tmp_path / "added.py", py_compile.PycInvalidationMode.TIMESTAMP)
    assert run(tmp_path, "-c", "import added; print(added.VALUE)") == "old"


@pytest.mark.parametrize("mode", py_compile.PycInvalidationMode)
@pytest.mark.parametrize(("name", "code"), [("added.py", SHOW), ("chamber/added.py", DEEP)])
def test_the_source_is_what_runs(package, name, code, mode):
    cached = stale(package / "rowproof" / name, mode)
    before = cached.read_bytes()
    assert run(package, "-c", code, PYTHONDONTWRITEBYTECODE="1") == "new"
    assert cached.read_bytes() == before
    assert run(package, "-c", code) == "new"
    # The byte code that is kept is that of the source from now on, for whoever reads it.
    assert cached.read_bytes() != before
    assert run(package, "-c", code) == "new"


def test_a_checkout_that_cannot_be_written(package):
    path = package / "rowproof/added.py"
    cached = stale(path, py_compile.PycInvalidationMode.TIMESTAMP)
    before = cached.read_bytes()
    # A folder in its place: no byte code can be written, not even by root.
    cached.unlink()
    cached.mkdir()
    assert run(package, "-c", SHOW) == "new"
    cached.rmdir()
    cached.write_bytes(before)
    assert run(package, "-c", SHOW, PYTHONDONTWRITEBYTECODE="1") == "new"


def test_an_error_in_a_source_is_told_as_ever(package):
    (package / "rowproof/added.py").write_text("def\n")
    code = "try:\n import rowproof.added\nexcept SyntaxError as error:\n print(error.filename)"
    assert run(package, "-c", code) == str(package / "rowproof/added.py")


def test_many_processes_at_once(package):
    path = package / "rowproof/added.py"
    stale(path, py_compile.PycInvalidationMode.TIMESTAMP)
    environment = {**os.environ, "PYTHONPATH": str(package)}
    command = [sys.executable, "-c", SHOW]
    running = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    assert [process.communicate(timeout=60)[0].strip() for process in running] == ["new"] * 6


def test_modules_of_others_are_left_alone(package):
    code = "import rowproof.cli, yaml, sys; print(type(yaml.__spec__.loader).__name__, sys.pycache_prefix)"
    assert run(package, "-c", code) == "SourceFileLoader None"


def test_the_command_runs_its_source(package):
    """As any command, ``rowproof verify`` imports its modules through the package."""
    path = package / "rowproof/errors.py"
    text = path.read_text()
    stamp = path.stat().st_mtime_ns
    path.write_text(text.replace("exit_code = 2", "exit_code = 9"))
    os.utime(path, ns=(stamp, stamp))
    py_compile.compile(str(path), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
    path.write_text(text)
    os.utime(path, ns=(stamp, stamp))
    command = [sys.executable, "-m", "rowproof", "verify", str(package / "nothing")]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(package)}, capture_output=True, cwd=package)
    assert done.returncode == 2
