"""Start one untrusted program in a sandbox and learn its end: namespaces, limits, and a self-test of both."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Literal

from rowproof.errors import RowproofError

Mode = Literal["strict", "basic"]

INSIDE = Path(__file__).parent / "inside"
"""Trusted programs that run in a sandbox; its folder ``/referee`` is this one."""

# Any number without rights; by custom the user "nobody".
_NOBODY = 65534
_START_LIMIT_S = 60.0
# Long enough for a small program on a busy machine; one of the self-test's is to be ended by it.
_PROBE_S = 4.0
_OUTPUT_BYTES = 1 << 20
_CODE_MB = 4096


class SandboxError(RowproofError):
    """The sandbox does not hold what it promises, or cannot be started on this machine."""


@dataclass(frozen=True)
class Limits:
    """What one program may use.

    Attributes:
        wall_s: from GO to the end of the last descendant, in seconds.
        cpu_s: CPU seconds of each process, start-up included.
        mem_mb: private writable memory of each process, MiB.
        scratch_mb: size of the writable folder and of any file, MiB.
        processes: processes and threads.
        open_files: descriptors of each process.
    """

    wall_s: float
    cpu_s: int
    mem_mb: int = 3000
    scratch_mb: int = 64
    processes: int = 32
    open_files: int = 64


@dataclass(frozen=True)
class Sandbox:
    """How programs are confined on this machine.

    Attributes:
        mode: ``strict`` has namespaces of its own: no network, no other process, and a file system that holds the
            interpreter, the system's libraries and what is bound. ``basic`` has the same limits, environment and
            forbidden system calls, and sees the files of the machine.
        core: number of the one CPU core that programs run on.
    """

    mode: Mode
    core: int


@dataclass
class End:
    """How a program ended.

    Attributes:
        exit_code: its exit code, or minus the number of the signal that ended it.
        stopped: whether the harness ended it, for lack of time.
        alive: whether a descendant outlived it.
        cpu_s: user and system CPU seconds of the program and all its descendants.
        max_rss_mb: largest resident memory of any of them, MiB.
        ended_s: reading of the monotonic clock when all of them were gone, seconds.
        result: content of the result file, ``None`` unless it is a plain file within the limit.
        result_error: why there is no ``result``.
        stdout: the last MiB of the standard output.
        stderr: the last MiB of the error output.
    """

    exit_code: int
    stopped: bool
    alive: bool
    cpu_s: float
    max_rss_mb: float
    ended_s: float
    result: bytes | None
    result_error: str
    stdout: bytes
    stderr: bytes


class _Tail(threading.Thread):
    """Drain a pipe for as long as it is open and keep the end of what came."""

    def __init__(self, pipe: BinaryIO) -> None:
        super().__init__(daemon=True)
        self.pipe = pipe
        self.data = bytearray()
        self.start()

    def run(self) -> None:
        while part := os.read(self.pipe.fileno(), 1 << 16):
            self.data += part
            if len(self.data) > 2 * _OUTPUT_BYTES:
                del self.data[:-_OUTPUT_BYTES]

    def tail(self) -> bytes:
        self.join()
        self.pipe.close()
        return bytes(self.data[-_OUTPUT_BYTES:])


@dataclass
class Program:
    """One program under way; use as a context manager, which leaves nothing running."""

    sandbox: Sandbox
    arguments: Sequence[str]
    limits: Limits
    environment: Mapping[str, str] = field(default_factory=dict)
    descriptors: Sequence[int] = ()
    files: Mapping[str, Path] = field(default_factory=dict)
    result: str | None = None
    result_limit_mb: float = 0.0

    def __enter__(self) -> "Program":
        """Start the program.

        Raises:
            SandboxError: this machine does not let it be confined.
        """
        self._folder = tempfile.TemporaryDirectory(prefix="speedrun-", ignore_cleanup_errors=True)
        folder = Path(self._folder.name)
        self._control, theirs = socket.socketpair()
        try:
            config = self._config(folder, theirs.fileno())
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(INSIDE / "launcher.py"), json.dumps(config)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(theirs.fileno(), *self.descriptors),
                env={"LC_ALL": "C.UTF-8"},
            )
            theirs.close()
            self._outputs = _Tail(self._process.stdout), _Tail(self._process.stderr)
            if self.sandbox.mode == "strict":
                self._map_users()
        except BaseException:
            self._control.close()
            self._folder.cleanup()
            raise
        return self

    def _config(self, folder: Path, control: int) -> dict:
        strict = self.sandbox.mode == "strict"
        root = folder / "root"
        root.mkdir()
        scratch = "/tmp" if strict else str(folder / "scratch")
        processes = self.limits.processes
        if not strict:
            self._prepare_basic(folder)
            # Without a user namespace the limit counts every process of this user.
            processes += 0 if os.geteuid() == 0 else _processes_of_user()
        binds = [[str(INSIDE), "/referee"], *([str(path.resolve()), name] for name, path in self.files.items())]
        names = {} if strict else {"/referee": str(INSIDE), **{name: str(path) for name, path in self.files.items()}}
        return {
            "control": control,
            "strict": strict,
            "core": self.sandbox.core,
            "uid": _NOBODY if os.geteuid() == 0 else None,
            "root": str(root),
            "binds": [*_system_binds(), *binds] if strict else [],
            "hidden": _hidden_folders(),
            "scratch": scratch,
            "scratch_mb": self.limits.scratch_mb,
            "limits": {
                "CPU": self.limits.cpu_s,
                "DATA": self.limits.mem_mb << 20,
                # Shared memory counts here alone, beside all the code that is mapped.
                "AS": (self.limits.mem_mb + _CODE_MB) << 20,
                "FSIZE": self.limits.scratch_mb << 20,
                "NOFILE": self.limits.open_files,
                "NPROC": processes,
                "CORE": 0,
            },
            "arguments": [sys.executable, "-s", "-B", *(_renamed(argument, names) for argument in self.arguments)],
            "environment": {**_ENVIRONMENT, "HOME": scratch, "TMPDIR": scratch, **self.environment},
            "descriptors": list(self.descriptors),
            "result": self.result,
        }

    def _prepare_basic(self, folder: Path) -> None:
        scratch = folder / "scratch"
        scratch.mkdir()
        if os.geteuid() == 0:
            folder.chmod(0o711)
            os.chown(scratch, _NOBODY, _NOBODY)

    def _map_users(self) -> None:
        # The program must not be root outside as well: the limit on processes spares root.
        user, group = os.geteuid(), os.getegid()
        lines = "0 0 1\n{0} {0} 1\n" if user == 0 else "{0} {1} 1\n"
        if self._control.recv(1) != b"U":
            raise SandboxError(f"the sandbox must start, found: {self._end_of_launcher()}")
        folder = Path("/proc", str(self._process.pid))
        try:
            if user != 0:
                (folder / "setgroups").write_text("deny")
            (folder / "uid_map").write_text(lines.format(_NOBODY, user))
            (folder / "gid_map").write_text(lines.format(_NOBODY, group))
        except OSError as error:
            raise SandboxError(f"the sandbox must have users of its own, found: {error}") from None
        self._control.send(b"M")

    def _end_of_launcher(self) -> str:
        self._process.wait()
        return self._outputs[1].tail().decode(errors="replace").strip() or f"exit {self._process.returncode}"

    def finish(self, deadline_s: float) -> End:
        """Wait for the program and every descendant, ending them at ``deadline_s`` (monotonic clock, seconds).

        Raises:
            SandboxError: the sandbox itself failed.
        """
        ready, _, _ = select.select([self._control], [], [], max(0.0, deadline_s - time.monotonic()))
        if not ready:
            self._control.send(b"K")
        try:
            message, descriptors, _, _ = socket.recv_fds(self._control, 1 << 16, 1)
        except ConnectionError:
            message, descriptors = b"", []
        ended_s = time.monotonic()
        if not message:
            raise SandboxError(f"the sandbox must tell how its program ended, found: {self._end_of_launcher()}")
        report = json.loads(message)
        result, error = self._read_result(report["result"], descriptors)
        self._process.wait()
        stdout, stderr = (output.tail() for output in self._outputs)
        return End(
            exit_code=report["exit"],
            stopped=report["stopped"],
            alive=report["alive"] > 0,
            cpu_s=report["cpu_s"],
            max_rss_mb=report["max_rss_kib"] / 1024,
            ended_s=ended_s,
            result=result,
            result_error=error,
            stdout=stdout,
            stderr=stderr,
        )

    def _read_result(self, kind: str, descriptors: list[int]) -> tuple[bytes | None, str]:
        if not descriptors:
            return None, kind
        with open(descriptors[0], "rb") as stream:  # noqa: PTH123  (a descriptor has no path)
            size = os.fstat(stream.fileno()).st_size
            limit = int(self.result_limit_mb * (1 << 20))
            if size > limit:
                return None, f"{size} bytes, above the limit of {limit}"
            return stream.read(limit), ""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End whatever still runs."""
        self._control.close()
        try:
            # The keeper ends everything at the end of the connection; this waits until that is done.
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        for output in self._outputs:
            output.join()
        self._folder.cleanup()


_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "USER": "speedrun",
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    # A precompiled header alone would fill the scratch folder.
    "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
}


def _renamed(argument: str, names: Mapping[str, str]) -> str:
    for name, path in names.items():
        if argument == name or argument.startswith(f"{name}/"):
            return path + argument.removeprefix(name)
    return argument


def _system_binds() -> list[list[str]]:
    """What every strict sandbox sees of the machine, as pairs of a path outside and the same path inside."""
    candidates = [
        *("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/alternatives"),
        *("/dev/null", "/dev/zero", "/dev/urandom", "/proc/cpuinfo", "/sys/devices/system/cpu"),
        *(str(Path(sys.base_prefix).resolve()), sys.base_prefix, sys.prefix),
    ]
    found: list[str] = []
    for path in candidates:
        if Path(path).exists() and not any(path == other or path.startswith(f"{other}/") for other in found):
            found.append(path)
    return [[path, path] for path in found]


def _hidden_folders() -> list[str]:
    """This package, where it is installed among the interpreter's: it can generate the validation text."""
    package = Path(__file__).resolve().parents[2]
    return [str(package)] if package.is_relative_to(Path(sys.prefix).resolve()) else []


def _processes_of_user() -> int:
    count = 0
    for status in Path("/proc").glob("[0-9]*/task/[0-9]*"):
        try:
            count += status.stat().st_uid == os.getuid()
        except OSError:
            continue
    return count


# Each of these must fail inside; a program that ends with 0 has done what it must not be able to do.
_PROBES = {
    "reach the network": "import socket; socket.create_connection(('1.1.1.1', 53), timeout=1)",
    "write outside its scratch folder": (
        "import os, sys, pathlib\n"
        "for folder in ('/', '/usr', '/referee', *sys.path[1:], *map(os.path.dirname, sys.argv[2:])):\n"
        "    try:\n"
        "        (pathlib.Path(folder) / 'speedrun-probe').write_text('x')\n"
        "        break\n"
        "    except OSError: continue\n"
        "else: sys.exit(1)"
    ),
    "read the validation data": "import sys; [open(path, 'rb').read(1) for path in sys.argv[2:]] or sys.exit(1)",
    "start processes without end": (
        "import os, sys, time\nfor _ in range(int(sys.argv[-1])):\n    if os.fork() == 0: time.sleep(60); os._exit(0)"
    ),
    "run on past its time": "import time; time.sleep(60)",
    "use another core": "import os; os.sched_setaffinity(0, range(os.cpu_count()))",
}
_STRICT_ALONE = {"write outside its scratch folder", "read the validation data"}


def self_test(sandbox: Sandbox, hidden: Sequence[Path]) -> None:
    """Try what the sandbox must prevent, before anything depends on it.

    Args:
        sandbox: the sandbox of the job.
        hidden: files that no program may read, the validation data among them.

    Raises:
        SandboxError: an attempt succeeded, or a harmless program cannot run.
    """
    limits = Limits(wall_s=_PROBE_S, cpu_s=5, mem_mb=512, scratch_mb=1)
    if _probe(sandbox, limits, "pass", []) != 0:
        raise SandboxError(f"the {sandbox.mode} sandbox must run a harmless program, found that it does not")
    paths = [str(path.resolve()) for path in hidden]
    for name, code in _PROBES.items():
        if sandbox.mode == "basic" and name in _STRICT_ALONE:
            continue
        if _probe(sandbox, limits, code, [str(limits.processes), *paths]) == 0:
            raise SandboxError(
                f"no program in the {sandbox.mode} sandbox may {name}, found that one can: run nothing untrusted here"
            )


def _probe(sandbox: Sandbox, limits: Limits, code: str, arguments: list[str]) -> int:
    with Program(sandbox, ["-c", code, *arguments], limits) as program:
        return program.finish(time.monotonic() + limits.wall_s).exit_code


def available_mode(wanted: Mode, core: int) -> Mode:
    """``wanted`` if this machine allows it, otherwise ``basic``; what a row says is the answer."""
    if wanted == "strict":
        try:
            with Program(Sandbox("strict", core), ["-c", "pass"], Limits(wall_s=_START_LIMIT_S, cpu_s=5)) as program:
                if program.finish(time.monotonic() + _START_LIMIT_S).exit_code == 0:
                    return "strict"
        except SandboxError:
            pass
    return "basic"


def last_core() -> int:
    """Number of the last core that this process may run on; runs are pinned to it."""
    return max(os.sched_getaffinity(0))


@contextmanager
def off_core(core: int) -> Iterator[None]:
    """Keep this thread, and threads and processes that it starts, off ``core`` if there is another one."""
    before = os.sched_getaffinity(0)
    others = before - {core}
    if others:
        os.sched_setaffinity(0, others)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
