"""A cluster of one node on loopback, and working copies of this repository whose jobs go to it.

The daemons are the real ones, run as plain processes, with everything of theirs in one folder.
"""

import os
import pwd
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from checkouts import TIMEOUT_S, Checkout, Run, environment

BOARD, ROW, LEARNED_ROW = "handover-v1", "b-rnd", "b-aht"
# The row that most tests build alone.
NAME = f"{BOARD}/{ROW}"
TARGET = f"results/{NAME}"
# The default interval between two looks at the queue is made for jobs of many minutes.
SUBMIT = ("--profile", "slurm", "--nocolor", "--slurm-init-seconds-before-status-checks", "1")

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "srun", "scancel", "scontrol", "sinfo")
PACKAGES = ("munge", "slurmctld", "slurmd", "slurm-client")
START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 10

# More jobs than cores: most of them sleep or wait for the disk. Memory is what the jobs may ask for, not what is there.
CPUS = 8
MEMORY_MB = 16000

CONFIGURATION = """\
ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
PlugStackConfig={folder}/plugstack.conf
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
EnforcePartLimits=ALL
MinJobAge=300
KillWait=2
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 Port={node_port} CPUs={cpus} RealMemory={memory_mb} State=UNKNOWN
PartitionName=loopback Nodes={host} Default=YES MaxTime=60 State=UP
"""


def missing_programs() -> list[str]:
    """Programs of SLURM that are not installed."""
    return [name for name in PROGRAMS if shutil.which(name, path=search_path()) is None]


def search_path() -> str:
    """The search path with the folders of daemons."""
    return os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"])


@dataclass(frozen=True)
class Cluster:
    """A running cluster."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to find the cluster.

        Programs of SLURM inside a job lose SLURM_CONF; a wrapper of ``srun`` in the first folder of PATH gives it back.
        """
        path = os.pathsep.join([str(self.folder / "bin"), search_path()])
        return {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": path}

    def call(self, *command: str) -> str:
        """Output of a program of SLURM."""
        done = subprocess.run(command, env={**os.environ, **self.environment}, capture_output=True, timeout=30)
        assert done.returncode == 0, f"{command}: {done.stderr.decode()}"
        return done.stdout.decode().strip()

    def jobs(self, *states: str) -> list[str]:
        """Ids of the jobs in these states."""
        return self.call("squeue", "--noheader", "--format=%i", f"--states={','.join(states)}").split()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _write_configuration(folder: Path) -> None:
    host = socket.gethostname().split(".")[0]
    controller_port, node_port = _free_ports(2)
    for name in ("state", "spool", "bin"):
        (folder / name).mkdir()
    (folder / "plugstack.conf").touch()
    (folder / "slurm.conf").write_text(
        CONFIGURATION.format(
            host=host,
            controller_port=controller_port,
            node_port=node_port,
            user=pwd.getpwuid(os.getuid()).pw_name,
            folder=folder,
            cpus=CPUS,
            memory_mb=MEMORY_MB,
        )
    )
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o600)
    srun = folder / "bin" / "srun"
    real = shutil.which("srun", path=search_path())
    srun.write_text(f'#!/bin/sh\nSLURM_CONF={shlex.quote(str(folder / "slurm.conf"))} exec {real} "$@"\n')
    srun.chmod(0o755)


@contextmanager
def running_cluster(folder: Path) -> Iterator[Cluster]:
    """Run a cluster whose every file lies in ``folder``.

    Raises:
        RuntimeError: a daemon ended or the node is not ready in time; the message holds the end of their logs.
    """
    _write_configuration(folder)
    cluster = Cluster(folder)
    environment = {**os.environ, **cluster.environment}
    processes: list[subprocess.Popen] = []

    def start(name: str, *flags: str) -> None:
        with (folder / f"{name}.log").open("wb") as log:
            processes.append(
                subprocess.Popen(
                    [shutil.which(name, path=search_path()), *flags],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )

    try:
        munge = {"socket": "munge.socket", "key-file": "munge.key", "pid-file": "munged.pid", "seed-file": "munge.seed"}
        # Forced, as it would refuse a folder that only its owner can enter.
        start("munged", "--foreground", "--force", *(f"--{flag}={folder / file}" for flag, file in munge.items()))
        _wait(lambda: (folder / "munge.socket").exists(), folder, processes)
        start("slurmctld", "-D", "-f", str(folder / "slurm.conf"))
        start("slurmd", "-D", "-f", str(folder / "slurm.conf"))
        _wait(lambda: _node_state(environment) == "idle", folder, processes)
        yield cluster
    finally:
        _stop(processes, environment)


def _node_state(environment: Mapping[str, str]) -> str:
    done = subprocess.run(["sinfo", "--noheader", "--format=%T"], env=environment, capture_output=True, timeout=30)
    return done.stdout.decode().strip()


def _wait(ready: Callable[[], object], folder: Path, processes: list[subprocess.Popen]) -> None:
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while not ready():
        if time.monotonic() > deadline_s or any(process.poll() is not None for process in processes):
            logs = "\n".join(f"{path.name}:\n{path.read_text()[-2000:]}" for path in sorted(folder.glob("*.log")))
            raise RuntimeError(f"the cluster must be ready within {START_TIMEOUT_S} s, found\n{logs}")
        time.sleep(0.2)


def _stop(processes: list[subprocess.Popen], environment: Mapping[str, str]) -> None:
    if len(processes) == 3:
        user = pwd.getpwuid(os.getuid()).pw_name
        subprocess.run(["scancel", "--user", user], env=environment, capture_output=True, timeout=STOP_TIMEOUT_S)
    for process in reversed(processes):
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Head:
    """A snakemake in the background that submits jobs."""

    def __init__(self, process: subprocess.Popen, log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def output(self) -> str:
        return self._log.read_text("utf-8", "replace")

    def finish(self) -> Run:
        """Wait for its end."""
        return Run(self._process.wait(TIMEOUT_S), self.output)

    def kill(self) -> None:
        """Kill it with all processes that it started here; jobs of the cluster know nothing of it."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class ClusterCheckout(Checkout):
    """A working copy whose jobs go to a cluster."""

    def __init__(self, root: Path, home: Path, cluster: Cluster) -> None:
        super().__init__(root, home)
        self.cluster = cluster

    def submit(self, *args: str, env: Mapping[str, str] | None = None) -> Run:
        """Build on the cluster."""
        return self.snakemake(*SUBMIT, *args, env={**self.cluster.environment, **(env or {})})

    @contextmanager
    def submitting(self, *args: str) -> Iterator[Head]:
        """The same in the background; killed at the end of the block."""
        log = self.root.parent / "head.log"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                self.command(*SUBMIT, *args),
                cwd=self.root,
                env=environment(self.home, self.cluster.environment),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        head = Head(process, log)
        try:
            yield head
        finally:
            head.kill()

    def product(self, stage: str, name: str) -> Path:
        """A product of the row ``NAME``, made or planned."""
        (recipe,) = (self.root / "work/recipes" / NAME).glob(f"{stage}-*.json")
        return self.root / "work/rows" / NAME / recipe.stem / name


def job_ids(output: str) -> list[str]:
    """SLURM's ids of the jobs that a snakemake says it has submitted."""
    return re.findall(r"submitted with SLURM jobid (\d+)", output)


def wait_for(ready: Callable[[], object], timeout_s: float = 120) -> None:
    """Wait until ``ready`` returns something true."""
    deadline_s = time.monotonic() + timeout_s
    while not ready():
        assert time.monotonic() < deadline_s, f"not so within {timeout_s} s"
        time.sleep(0.2)
