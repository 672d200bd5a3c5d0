"""A working directory whose jobs run one by one in this process, so that a fault can be put between any two steps."""

import contextlib
import ctypes
import hashlib
import io
import logging
import os
import runpy
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import pytest
from bundles import make_project
from rowproof import jobs, launches
from rowproof.layout import PROVENANCE, bundle_files
from rowproof.recipes import Launch, RowPlan, prepare, write_launch

BOARD, ROW = "push-v1", "push-v1/ref-script"
SCRIPTS = {
    "specs": "specs",
    "simulate": "simulate",
    "summary": "summarise",
    "bundle": "assemble",
    "publish": "publish",
}
# Every step that writes, moves or removes something, by the name under which Python tells of it.
STEPS = {"os.mkdir", "os.chmod", "os.rename", "os.remove", "os.rmdir", "os.utime", "tempfile.mkstemp"}


class Named(list):
    """Files or parameters of a job, by position and by name."""

    def __init__(self, *items: str, **named: object) -> None:
        # As snakemake has it: what one name stands for may be several files, and by position each is one.
        several = (value if isinstance(value, list) else [value] for value in named.values())
        super().__init__([*items, *chain.from_iterable(several)])
        self.__dict__.update(named)


@dataclass(frozen=True)
class Ended:
    """How a script ended: exit code, and what it said on standard error."""

    code: int
    message: str

    def ok(self) -> "Ended":
        assert self.code == 0, self.message
        return self


def _forget_handlers() -> None:
    """Leave the root logger as it is in a process that begins or ends."""
    for handler in logging.getLogger().handlers[:]:
        with contextlib.suppress(OSError):
            handler.close()
        logging.getLogger().removeHandler(handler)


class Workdir:
    """Products and results of one row, and its scripts, called as the rules of the workflow call them.

    What is missing is made, as snakemake decides it when every input is ancient. An exception that a script does not
    turn into a message passes through and fails the test.
    """

    def __init__(self, root: Path, folder: Path, name: str = ROW) -> None:
        self.root, self.folder, self.name = root, folder, name
        self.launched: Launch | None = None

    @property
    def row(self) -> RowPlan:
        assert self.launched is not None
        return self.launched.row(self.name)

    @property
    def results(self) -> Path:
        return self.folder / "results" / self.name

    def launch(self) -> RowPlan:
        """What happens at each start of snakemake."""
        self.launched = prepare(self.root, self.folder)
        os.environ[jobs.LAUNCH_VARIABLE] = str(write_launch(self.launched, self.folder))
        return self.row

    def steps(self) -> list[tuple[str, str | None, list[str]]]:
        """Stage, shard and products of every job, in order."""
        row = self.row
        shards = [("simulate", shard, [row.product("simulate", f"{shard}.jsonl")]) for shard in row.shards]
        return [
            ("specs", None, row.products("specs")),
            *shards,
            ("summary", None, row.products("summary")),
            ("bundle", None, [row.staged]),
            ("publish", None, row.bundle),
        ]

    def _call(self, stage: str, shard: str | None) -> SimpleNamespace:
        row, none = self.row, []
        recipe = row.recipe_path("bundle" if stage == "publish" else stage)
        (specs,), records = row.products("specs"), row.products("simulate")
        inputs: dict[str, dict] = {
            "specs": {},
            "simulate": {"specs": specs, "selections": none, "checkpoints": none},
            "summary": {"records": records},
            "bundle": {
                "recipes": [row.recipe_path(each) for each in row.keys],
                "specs": specs,
                **{"trainings": none, "evidence": none, "checkpoints": none},
                "records": records,
                "timings": none,
                "summary": row.products("summary")[0],
            },
            "publish": {"state": row.signal_path, "staged": row.staged},
        }
        outputs = {
            "specs": Named(specs=specs),
            "simulate": Named(records=row.product("simulate", f"{shard}.jsonl")),
            "summary": Named(summary=row.products("summary")[0]),
            "bundle": Named(row.staged),
            "publish": Named(*row.bundle),
        }
        own = row.shards.get(shard)
        seeds = list(own.seeds if own else row.seeds)
        return SimpleNamespace(
            input=Named(**inputs[stage], recipe=recipe),
            output=outputs[stage],
            params=Named(
                plan_path=row.plan_path, plan_blob=row.plan_blob, seeds=seeds, partner=own.partner if own else None
            ),
            wildcards=SimpleNamespace(shard=shard),
            log=[f"logs/{stage}-{shard}.log"],
            threads=1,
        )

    def run(self, stage: str, shard: str | None = None) -> Ended:
        """Run the script of one job."""
        return self.execute(SCRIPTS[stage], self._call(stage, shard))

    def execute(self, script: str, call: SimpleNamespace) -> Ended:
        """Run a script of the workflow as snakemake would call it."""
        said, code = io.StringIO(), 0
        _forget_handlers()
        try:
            with contextlib.redirect_stderr(said):
                runpy.run_path(str(self.root / f"workflow/scripts/{script}.py"), {"snakemake": call})
        except SystemExit as ended:
            code = ended.code
        finally:
            logging.raiseExceptions = True
            _forget_handlers()
        return Ended(code, said.getvalue())

    def build(self, until: str = "publish") -> Ended:
        """Start anew and run all that is missing; ends with the first job that fails."""
        self.launch()
        for stage, shard, products in self.steps():
            current = self.row.state == "current" if stage == "publish" else all(map(os.path.exists, products))
            if not current:
                for product in products:
                    # As snakemake does before a job.
                    Path(product).unlink(missing_ok=True)
                ended = self.run(stage, shard)
                if ended.code:
                    return ended
            if stage == until:
                break
        return Ended(0, "")

    def digests(self) -> dict[str, str]:
        """File name -> SHA-256 of the identity files in place."""
        files = sorted(self.results.iterdir()) if self.results.is_dir() else []
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files if path.name != PROVENANCE}

    def whole(self) -> bool:
        """Whether the bundle has its files and no others, and counts as current."""
        self.launch()
        present = sorted(path.name for path in self.results.iterdir())
        return self.row.state == "current" and present == bundle_files(self.row.seeds)

    def path(self, stage: str, file: str) -> Path:
        """A product, relative to the working directory."""
        return Path(self.row.product(stage, file))

    def unpublish(self) -> None:
        """Take back the last two jobs of the row."""
        shutil.rmtree(self.results)
        shutil.rmtree(Path(self.row.staged).parent)


def in_child(work: Callable[[], int]) -> int:
    """Exit code of ``work`` in a forked process; minus the number of the signal that ended it."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            code = work()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_before(number: int, work: Callable[[], int], is_step: Callable[[str, tuple], bool] | None = None) -> bool:
    """Run ``work`` in a process that is killed before its step ``number`` (from 0); False if it has fewer.

    A step is whatever writes, moves or removes something, or what ``is_step`` takes for one of the events that Python
    tells its audit hooks.
    """

    def on_files(event: str, arguments: tuple) -> bool:
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        return event in STEPS or bool(writes)

    def doomed() -> int:
        left = number

        def count(event: str, arguments: tuple) -> None:
            nonlocal left
            if (is_step or on_files)(event, arguments):
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        return work()

    code = in_child(doomed)
    assert code in (0, -signal.SIGKILL)
    return code != 0


def obey_permissions() -> None:
    """Give up root's right to pass over the permissions of files, for the rest of this process."""
    if os.geteuid() != 0:
        return
    status = Path("/proc/self/status").read_text()
    effective = int(status.partition("CapEff:")[2].split()[0], 16) & ~0b110
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    word = (effective & 0xFFFFFFFF, effective >> 32)
    data = (ctypes.c_uint32 * 6)(word[0], word[0], 0, word[1], word[1], 0)
    if ctypes.CDLL(None, use_errno=True).capset(header, data) != 0:
        raise OSError(ctypes.get_errno(), "capset")


@pytest.fixture(scope="session")
def project(tmp_path_factory) -> Path:
    """The project that all tests read and none changes."""
    return make_project(tmp_path_factory.mktemp("faults") / "project", boards=(BOARD,), episodes_per_partner=2)


@pytest.fixture
def patched(monkeypatch, tmp_path) -> pytest.MonkeyPatch:
    """What makes scripts of any project run in this process; the caller names the project."""
    monkeypatch.setenv(jobs.LAUNCH_VARIABLE, "")
    # Code that changes under way is told elsewhere; here it costs most of the time.
    monkeypatch.setattr(jobs.Job, "check_unchanged", lambda self: None)
    monkeypatch.setattr(launches, "LATENCY_S", 0.0)
    return monkeypatch


def enter(patched: pytest.MonkeyPatch, root: Path, folder: Path) -> Workdir:
    """The working directory ``folder`` of the project ``root``, made this process's own."""
    folder.mkdir(exist_ok=True)
    patched.setattr(jobs, "ROOT", root)
    patched.chdir(folder)
    return Workdir(root, folder)


@pytest.fixture(scope="session")
def undisturbed(project, tmp_path_factory) -> Path:
    """A working directory in which the row was built without a fault; copy it."""
    folder = tmp_path_factory.mktemp("undisturbed") / "w"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(jobs.LAUNCH_VARIABLE, "")
        workdir = enter(patch, project, folder)
        workdir.build().ok()
        assert workdir.whole()
    return folder


@pytest.fixture
def expected(project, undisturbed) -> dict[str, str]:
    """The digests that every build must end with."""
    return Workdir(project, undisturbed).digests()


@pytest.fixture
def empty(patched, project, tmp_path) -> Workdir:
    """A working directory in which nothing was built."""
    workdir = enter(patched, project, tmp_path / "w")
    workdir.launch()
    return workdir


@pytest.fixture
def worked(patched, project, undisturbed, tmp_path) -> Workdir:
    """A working directory in which the row was built."""
    shutil.copytree(undisturbed, tmp_path / "w", symlinks=True)
    workdir = enter(patched, project, tmp_path / "w")
    workdir.launch()
    return workdir


@pytest.fixture
def unpublished(worked) -> Workdir:
    """The same with all jobs done but the last two."""
    worked.unpublish()
    worked.launch()
    return worked


@contextlib.contextmanager
def small_disk(folder: Path, size: str = "2m") -> Iterator[None]:
    """A file system of ``size`` mounted on ``folder``; the test is skipped without the right to mount."""
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"NO FULL DISK WAS TESTED, since mounting one needs root: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True, capture_output=True)
