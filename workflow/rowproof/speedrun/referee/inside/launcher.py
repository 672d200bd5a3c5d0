"""Confine one program: namespaces, a root of its own, limits; report what it used when all of it is gone.

Runs as a script with one argument, a JSON object (see ``Sandbox`` in ``rowproof.speedrun.referee.sandbox``), and needs
the standard library alone. Three processes follow each other: the launcher, which enters new namespaces; the keeper,
which is process 1 in them, builds the root and reaps everything; the program.
"""

import ctypes
import json
import os
import platform
import resource
import select
import signal
import socket
import stat
import struct
import sys
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)

_NEW_NAMESPACES = 0x00020000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
"""Mount, UTS, IPC, user, PID and network namespaces (linux/sched.h)."""

_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_SYS_MOUNT_SETATTR = 442
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_ATTR_RDONLY, _MOUNT_ATTR_NOSUID = 1, 2

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 36, 38

# Per machine: its code in audit records, and the numbers of the system calls that are refused.
_MACHINES = {
    "x86_64": (
        0xC000003E,
        {
            **{"socket": 41, "ptrace": 101, "mount": 165, "umount2": 166, "pivot_root": 155, "sched_setaffinity": 203},
            **{"add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298, "setns": 308},
            **{"process_vm_readv": 310, "process_vm_writev": 311, "bpf": 321, "userfaultfd": 323},
        },
    ),
    "aarch64": (
        0xC00000B7,
        {
            **{"socket": 198, "ptrace": 117, "mount": 40, "umount2": 39, "pivot_root": 41, "sched_setaffinity": 122},
            **{"add_key": 217, "request_key": 218, "keyctl": 219, "unshare": 97, "perf_event_open": 241, "setns": 268},
            **{"process_vm_readv": 270, "process_vm_writev": 271, "bpf": 280, "userfaultfd": 282},
        },
    ),
}
# One number on all machines.
_IO_URING_SETUP = 425
_AF_UNIX = 1


def _call(name: str, *args: object) -> None:
    if getattr(_LIBC, name)(*args) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def _machine() -> tuple[int, dict[str, int]]:
    machine = platform.machine()
    if machine not in _MACHINES:
        raise OSError(0, f"the sandbox knows the system calls of {', '.join(_MACHINES)} alone, found {machine}")
    return _MACHINES[machine]


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    _call("mount", source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode() or None)


def _make_read_only(target: str, recursive: bool) -> None:
    attributes = struct.pack("=QQQQ", _MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID, 0, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    number = ctypes.c_long(_SYS_MOUNT_SETATTR)
    _call("syscall", number, _AT_FDCWD, target.encode(), flags, attributes, ctypes.c_size_t(len(attributes)))


def _build_root(config: dict) -> None:
    """Make a root directory of the bound files and folders, read-only, and of a scratch folder in memory."""
    root, scratch = config["root"], config["scratch"]
    _mount("none", "/", "", _MS_REC | _MS_PRIVATE)
    _mount("tmpfs", root, "tmpfs", _MS_NOSUID | _MS_NODEV, "size=1m,mode=0755")
    for source, target in config["binds"]:
        place = Path(root + target)
        place.parent.mkdir(parents=True, exist_ok=True)
        if Path(source).is_symlink():
            place.symlink_to(Path(source).readlink())
            continue
        if Path(source).is_dir():
            place.mkdir(exist_ok=True)
        else:
            place.touch()
        _mount(source, str(place), "", _MS_BIND | _MS_REC)
        _make_read_only(str(place), recursive=True)
    for folder in config["hidden"]:
        _mount("tmpfs", root + folder, "tmpfs", _MS_NOSUID | _MS_NODEV, "size=4k,mode=0755")
        _make_read_only(root + folder, recursive=False)
    place = Path(root + scratch)
    place.mkdir(parents=True, exist_ok=True)
    _mount("tmpfs", str(place), "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={config['scratch_mb']}m,mode=0777")
    os.chdir(root)
    # The new root lies over the old one, which then comes off.
    number = ctypes.c_long(_machine()[1]["pivot_root"])
    _call("syscall", number, b".", b".")
    _call("umount2", b".", _MNT_DETACH)
    os.chdir("/")
    _make_read_only("/", recursive=False)


def _filter_system_calls() -> None:
    """End this program and its children at system calls that training never needs (seccomp)."""
    audit, numbers = _machine()
    load, jump_equal, jump_at_least, answer = 0x20, 0x15, 0x35, 0x06
    allow, refuse, kill = 0x7FFF0000, 0x00050000 | 13, 0x80000000
    code = [
        (load, 0, 0, 4),
        (jump_equal, 1, 0, audit),
        (answer, 0, 0, kill),
        (load, 0, 0, 0),
    ]
    if platform.machine() == "x86_64":
        # The second table of the same machine (x32) would go around the first.
        code += [(jump_at_least, 0, 1, 0x40000000), (answer, 0, 0, kill)]
    # Libraries of linear algebra try their affinity when they load, and cope.
    code += [(jump_equal, 0, 1, numbers["sched_setaffinity"]), (answer, 0, 0, refuse)]
    # A lookup of a user name may try a local socket, and copes without; any other socket ends the program.
    code += [
        (jump_equal, 0, 4, numbers["socket"]),
        (load, 0, 0, 16),
        (jump_equal, 0, 1, _AF_UNIX),
        (answer, 0, 0, refuse),
        (answer, 0, 0, kill),
    ]
    special = {"socket", "sched_setaffinity"}
    for number in (*(number for name, number in sorted(numbers.items()) if name not in special), _IO_URING_SETUP):
        code += [(jump_equal, 0, 1, number), (answer, 0, 0, kill)]
    code.append((answer, 0, 0, allow))
    program = b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
    buffer = ctypes.create_string_buffer(program)
    header = struct.pack("@HP", len(code), ctypes.addressof(buffer))
    _call("prctl", _PR_SET_SECCOMP, ctypes.c_ulong(2), header, 0, 0)


def _limit(limits: dict[str, int]) -> None:
    for name, value in limits.items():
        # At the soft limit of CPU time comes a signal of its own, at the hard one an unspecific kill.
        hard = value + 1 if name == "CPU" else value
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, hard))


def _become_program(config: dict) -> None:
    """Give up every right, then replace this process by the program."""
    os.setsid()
    os.sched_setaffinity(0, {config["core"]})
    if config["uid"] is not None:
        os.setgroups([])
        os.setresgid(config["uid"], config["uid"], config["uid"])
        os.setresuid(config["uid"], config["uid"], config["uid"])
    # A change of user takes this back, so it comes after.
    _call("prctl", _PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
    os.chdir(config["scratch"])
    os.umask(0o077)
    _limit(config["limits"])
    _call("prctl", _PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), 0, 0, 0)
    _filter_system_calls()
    os.execve(config["arguments"][0], config["arguments"], config["environment"])


def _children() -> list[int]:
    """Process numbers of the direct children, dead ones that nobody has reaped included."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == os.getpid():
            found.append(int(status.parent.name))
    return found


class _Keeper:
    """Wait for the program and every descendant, and add up what they used."""

    def __init__(self, is_process_one: bool) -> None:
        self.is_process_one = is_process_one
        self.cpu_s = 0.0
        self.max_rss_kib = 0

    def add(self, usage: resource.struct_rusage) -> None:
        self.cpu_s += usage.ru_utime + usage.ru_stime
        self.max_rss_kib = max(self.max_rss_kib, usage.ru_maxrss)

    def wait(self, program: int, control: socket.socket) -> tuple[int, int, bool]:
        """Exit status of ``program``, the number of descendants that outlived it, whether the harness ended it."""
        handle = os.pidfd_open(program)
        stopped = False
        while True:
            ready, _, _ = select.select([handle, control], [], [])
            if handle in ready:
                break
            # A word from the harness, or its end.
            stopped = True
            os.kill(program, signal.SIGKILL)
            break
        _, status, usage = os.wait4(program, 0)
        self.add(usage)
        return status, self._end_others(), stopped

    def _end_others(self) -> int:
        alive = 0
        while True:
            try:
                number, _, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return alive
            if number:
                self.add(usage)
                continue
            # Whoever is left runs on after the end of the program.
            alive += 1
            if self.is_process_one:
                os.kill(-1, signal.SIGKILL)
            else:
                for child in _children():
                    os.kill(child, signal.SIGKILL)
            _, _, usage = os.wait4(-1, 0)
            self.add(usage)


def _open_result(path: str) -> tuple[str, int | None]:
    """What stands at ``path``, and its descriptor if that is a plain file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return "absent", None
    except OSError as error:
        return f"unreadable: {error.strerror}", None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return "no plain file", None
    return "file", descriptor


def _keep(config: dict, control: socket.socket) -> None:
    """Run the program and report its end to the harness."""
    _call("prctl", _PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
    _call("prctl", _PR_SET_DUMPABLE, ctypes.c_ulong(0), 0, 0, 0)
    if config["strict"]:
        _build_root(config)
    else:
        _call("prctl", _PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), 0, 0, 0)
    program = os.fork()
    if program == 0:
        try:
            _become_program(config)
        except BaseException as error:
            os.write(2, f"sandbox: {error}\n".encode())
        os._exit(126)
    for number in config["descriptors"]:
        os.close(number)
    keeper = _Keeper(is_process_one=config["strict"])
    status, alive, stopped = keeper.wait(program, control)
    kind, descriptor = _open_result(str(Path(config["scratch"], config["result"]))) if config["result"] else ("", None)
    report = {
        "exit": os.waitstatus_to_exitcode(status),
        "alive": alive,
        "stopped": stopped,
        "cpu_s": keeper.cpu_s,
        "max_rss_kib": keeper.max_rss_kib,
        "result": kind,
    }
    socket.send_fds(control, [json.dumps(report).encode() + b"\n"], [] if descriptor is None else [descriptor])


def main() -> None:
    """Enter the namespaces, then keep the program; in ``basic`` mode there are none to enter."""
    config = json.loads(sys.argv[1])
    control = socket.socket(fileno=config["control"])
    control.set_inheritable(False)
    _call("prctl", _PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
    try:
        if not config["strict"]:
            _keep(config, control)
            return
        _call("unshare", _NEW_NAMESPACES)
        # The harness, outside, now says who is who in here.
        control.send(b"U")
        if control.recv(1) != b"M":
            return
        keeper = os.fork()
        if keeper == 0:
            try:
                _keep(config, control)
            except Exception as error:
                os.write(2, f"sandbox: {error}\n".encode())
                os._exit(125)
            os._exit(0)
        control.close()
        for number in config["descriptors"]:
            os.close(number)
        os.waitpid(keeper, 0)
    except OSError as error:
        sys.exit(f"sandbox: {error}")


main()
