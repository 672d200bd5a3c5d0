"""Working copies of this repository in which the real snakemake is called, and what it plans in them."""

import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import yaml
from helpers import ROOT
from rowproof.boards import load_board
from rowproof.layout import PROVENANCE, SUMS, UNLISTED, render_sums
from rowproof.plan_lock import write_lock
from rowproof.recipes import LEARNED_BOARD_FILES, all_statuses
from rowproof.records import encode_document

BOARDS = {
    "handover-v1": ("ref-script", "b-rnd", "b-stat"),
    "push-v1": ("ref-script", "b-rnd", "b-stat"),
}
ROWS = tuple(f"{board}/{row}" for board, rows in BOARDS.items() for row in rows)
HANDOVER = tuple(name for name in ROWS if name.startswith("handover-v1/"))
PUSH = tuple(name for name in ROWS if name.startswith("push-v1/"))
SMALL = {"handover-v1": ("b-rnd",), "push-v1": ("ref-script",)}
SMALL_ROWS = ("handover-v1/b-rnd", "push-v1/ref-script")
NOTHING = "Nothing to be done"
# Stage -> the rule that runs it.
RULES = {"train": "train", "select": "select_checkpoint", "summary": "summarise", "bundle": "assemble"}
TIMEOUT_S = 300

# What the surroundings of the tests could add to the runs under test.
FOREIGN = ("SLURM_", "ROWPROOF_", "GIT_", "SNAKEMAKE_", "PYTHON", "PYTEST_", "OMP_", "LC_", "LANG", "TZ")


def environment(home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Environment variables of a run: no settings of the user, of a cluster or of an enclosing snakemake."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
    home.mkdir(parents=True, exist_ok=True)
    own = {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    for role in ("AUTHOR", "COMMITTER"):
        own |= {f"GIT_{role}_NAME": "test", f"GIT_{role}_EMAIL": "test@example.org"}
    return {**kept, **own, **(extra or {})}


@dataclass(frozen=True)
class Run:
    """A finished call of snakemake."""

    code: int
    output: str

    @property
    def nothing(self) -> bool:
        """Whether it found everything up to date."""
        return self.code == 0 and NOTHING in self.output

    def ok(self) -> "Run":
        """Itself, if it succeeded."""
        assert self.code == 0, self.output[-6000:]
        return self

    def jobs(self) -> dict[str, Counter]:
        """Row -> planned jobs of each stage rule (``row`` is the rule that moves the bundle into place).

        A rendered board stands under its own name, with the rule ``leaderboard``, and a rule that belongs to no row
        under the rule's name. The sums are compared with the job
        table that snakemake prints, so no job can be overlooked.
        """
        planned: dict[str, Counter] = {}
        listed: Counter = Counter()
        for block in re.split(r"^(?:local)?rule ", self.output.partition("\nJob stats:")[2], flags=re.M)[1:]:
            rule = block.partition(":\n")[0]
            if rule in listed and rule == "all":
                continue
            listed[rule] += 1
            if rule == "all" or rule.endswith("/"):
                continue
            if rule.startswith("leaderboard_"):
                board = rule.removeprefix("leaderboard_").replace("__", "/").replace("_", "-")
                planned.setdefault(board, Counter())["leaderboard"] += 1
            elif rule.startswith("assemble_"):
                row = rule.removeprefix("assemble_").replace("__", "/").replace("_", "-")
                planned.setdefault(row, Counter())["assemble"] += 1
            elif rule.startswith("results/"):
                name = rule.removeprefix("results/")
                planned.setdefault(name, Counter())["row" if "/" in name else "board"] += 1
            else:
                row = re.search(r"wildcards: board=([^,]+), row=([^,]+),", block)
                planned.setdefault(f"{row[1]}/{row[2]}" if row else rule, Counter())[rule] += 1
        table = self.output.partition("\nJob stats:\n")[2].split("\n\n")[0].splitlines()[2:]
        stated = Counter({line.split()[0]: int(line.split()[1]) for line in table if not line.startswith("total")})
        assert listed == stated, f"{listed} listed, {stated} in the table\n{self.output[-4000:]}"
        return planned


class Checkout:
    """A git working copy of the project below a temporary folder."""

    def __init__(self, root: Path, home: Path) -> None:
        self.root = root
        self.home = home

    def command(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "snakemake", *args]

    def snakemake(self, *args: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Run:
        """Call snakemake to the end; targets come first in ``args``."""
        process = subprocess.Popen(
            self.command(*args),
            cwd=cwd or self.root,
            env=environment(self.home, env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=TIMEOUT_S)
        except BaseException:
            # Its jobs are processes of their own and would work on after the end of the test.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        return Run(process.returncode, output.decode("utf-8", "replace"))

    def dry_run(self, *targets: str) -> Run:
        """What snakemake would do."""
        return self.snakemake(*targets, "--dry-run", "--nocolor")

    def build(self, *targets: str, cores: int = 1, env: Mapping[str, str] | None = None) -> Run:
        """Really do it."""
        return self.snakemake(*targets, "--cores", str(cores), "--nocolor", env=env)

    def plan(self, *targets: str) -> dict[str, Counter]:
        """Planned jobs; empty when there is nothing to be done."""
        run = self.dry_run(*targets).ok()
        return {} if run.nothing else run.jobs()

    def row_plan(self, *targets: str) -> dict[str, Counter]:
        """Planned jobs of rows, without rendered boards."""
        return {name: jobs for name, jobs in self.plan(*targets).items() if "/" in name}

    def rowproof(self, *args: str) -> Run:
        """Call the command ``rowproof`` of this checkout."""
        done = subprocess.run(
            [sys.executable, "-m", "rowproof", *args],
            cwd=self.root,
            env=environment(self.home, {"PYTHONPATH": str(self.root / "workflow")}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT_S,
        )
        return Run(done.returncode, done.stdout.decode("utf-8", "replace"))

    def agreed_plan(self) -> dict[str, Counter]:
        """:meth:`plan` of the default target, once ``rowproof why`` says the same of rows, stages and boards."""
        told = self.rowproof("why", "--json")
        planned = self.plan()
        assert told.code == (1 if planned else 0), told.output[-4000:]
        report = json.loads(told.output)
        rows = {entry["row"]: entry for entry in report if "row" in entry}
        assert set(rows) == {name for name in planned if "/" in name}, told.output[-4000:]
        assert {entry["board"] for entry in report if "board" in entry} == {n for n in planned if "/" not in n}
        for name, entry in rows.items():
            assert entry["reasons"] or entry["changes"], f"{name}: no reason is told"
            stages = {RULES.get(stage, stage) for stage in entry["rebuild_stages"]}
            # Bundles do not hold the specs, so a clone makes them again for whatever needs them.
            assert stages <= set(planned[name]) - {"row"} <= stages | {"specs"}, name
        return planned

    def refusal(self) -> str:
        """What snakemake says before it plans anything, once ``rowproof why`` says the same."""
        run, told = self.dry_run(), self.rowproof("why")
        assert run.code == 1 and "Job stats" not in run.output, run.output[-4000:]
        assert "Traceback" not in run.output + told.output
        assert told.code == 2, told.output[-4000:]
        message = told.output.removeprefix("rowproof: ").strip()
        assert message in run.output, f"{message}\n{run.output[-4000:]}"
        return message

    def unrecord(self) -> None:
        """Take the rows out of the history but not out of the folder: their plans may change again."""
        self.git("rm", "-r", "-q", "--cached", "results")
        self.git("commit", "-q", "-m", "without results")

    def lock(self, *boards: str) -> None:
        """Pin in the locks of these boards' plans what is not pinned yet."""
        for board in boards:
            write_lock(load_board(self.root, board))

    def interrupt(self, signal_number: int, delay_s: float, *args: str) -> bool:
        """Start snakemake, signal its whole process group after ``delay_s`` and wait; whether it still ran by then."""
        process = subprocess.Popen(
            self.command(*args),
            cwd=self.root,
            env=environment(self.home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            # A shell starts its background jobs with SIGINT ignored, and all that they start inherits it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        try:
            process.wait(delay_s)
            return False
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal_number)
            try:
                process.wait(60)
            finally:
                # Whatever is left of the group must not write into the next run.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            return True

    def git(self, *args: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.root), *args], env=environment(self.home), capture_output=True, timeout=60
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def commit(self) -> str:
        """Commit everything; return the commit."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "state")
        return self.git("rev-parse", "HEAD").strip()

    def changed(self) -> set[str]:
        """Paths that differ from the commit or are untracked."""
        return {line[3:] for line in self.git("status", "--porcelain", "--untracked-files=all").splitlines()}

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace the first ``old`` in a file; a test whose edit does nothing must fail."""
        file = self.root / path
        text = file.read_text(encoding="utf-8")
        assert old in text, f"{path} no longer holds {old!r}: adapt the test"
        file.write_text(text.replace(old, new, 1), encoding="utf-8")

    def files(self, *names: str) -> dict[str, str]:
        """Path -> SHA-256 of the identity files of rows and of rendered boards (of all, or of rows ``names``)."""
        results = self.root / "results"
        chosen = [results / name for name in names] or [results]
        return {
            path.relative_to(results).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for folder in chosen
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name != PROVENANCE
        }

    def log(self, rule: str) -> str:
        """All log files of a rule, joined."""
        return "".join(path.read_text() for path in sorted((self.root / "logs" / rule).rglob("*.log")))


def copy_whole_tree(target: Path, home: Path) -> Checkout:
    """A clone of this repository (with its history) plus one commit of what the working tree holds now."""
    quiet = environment(home)
    subprocess.run(["git", "clone", "-q", str(ROOT), str(target)], env=quiet, check=True, capture_output=True)
    checkout = Checkout(target, home)
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        env=quiet,
        check=True,
        capture_output=True,
    ).stdout
    checkout.git("rm", "-q", "-r", "--cached", ".")
    for path in [*target.iterdir()]:
        if path.name != ".git":
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for name in filter(None, listed.decode().split("\0")):
        source = ROOT / name
        # The tests themselves play no part in a build.
        if name.startswith("tests/") or not (source.is_symlink() or source.is_file()):
            continue
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target / name, follow_symlinks=False)
    checkout.commit()
    return checkout


def copy_working_tree(target: Path, home: Path) -> Checkout:
    """The same with a second commit that leaves no boards and rows but ``BOARDS``.

    The others take minutes, need torch or files from the network.
    """
    checkout = copy_whole_tree(target, home)
    config_path = target / "config/config.yaml"
    config = yaml.safe_load(config_path.read_text())
    config |= {"boards": list(BOARDS), "quick_rows": [row for row in config["quick_rows"] if row in ROWS]}
    config_path.write_text(yaml.safe_dump(config, sort_keys=False, default_flow_style=None))
    for board, rows in BOARDS.items():
        path = target / f"config/boards/{board}.yaml"
        for row in sorted(set(yaml.safe_load(path.read_text())["rows"]) - set(rows)):
            # The plan keeps its bytes and its lock.
            path.write_text(re.sub(rf"^  {row}:\n(    .*\n)+", "", path.read_text(), flags=re.M))
            shutil.rmtree(target / "results" / board / row, ignore_errors=True)
        assert tuple(yaml.safe_load(path.read_text())["rows"]) == rows
        for name in LEARNED_BOARD_FILES:
            (target / "results" / board / name).unlink(missing_ok=True)
    checkout.commit()
    return checkout


def make_current(checkout: Checkout) -> None:
    """Let every bundle record today's recipes, and commit: rows count as current though nothing was run.

    Enough for what is planned and only for that: such bundles do not verify.
    """
    for status in all_statuses(checkout.root, checkout.root):
        folder = checkout.root / "results" / status.name
        (folder / "recipe.json").write_bytes(encode_document(status.recipes))
        listed = (path for path in sorted(folder.iterdir()) if path.name not in (SUMS, *UNLISTED))
        (folder / SUMS).write_bytes(render_sums({path.name: path.read_bytes() for path in listed}))
    checkout.commit()
    states = {status.name: status.state for status in all_statuses(checkout.root, checkout.root)}
    assert set(states.values()) == {"current"}, states


def shrink(checkout: Checkout, rows: Mapping[str, Iterable[str]], seeds: Iterable[int], episodes: int) -> None:
    """Cut boards, plans and resamples down, drop all results, and commit."""
    config_path = checkout.root / "config/config.yaml"
    config = yaml.safe_load(config_path.read_text())
    config_path.write_text(
        yaml.safe_dump({**config, "boards": list(rows), "quick_rows": []}, sort_keys=False, default_flow_style=None)
    )
    for name, kept in rows.items():
        board_path = checkout.root / f"config/boards/{name}.yaml"
        board = yaml.safe_load(board_path.read_text())
        board["rows"] = {row: board["rows"][row] for row in kept}
        board_path.write_text(yaml.safe_dump(board, sort_keys=False))
        plan_path = checkout.root / f"config/plans/{board['plan']}.yaml"
        plan = yaml.safe_load(plan_path.read_text())
        plan["grid"] |= {"seeds": list(seeds), "episodes_per_partner": episodes}
        plan["statistics"]["n_resamples"] = 100
        plan_path.write_text(yaml.safe_dump(plan, sort_keys=False))
    shutil.rmtree(checkout.root / "results", ignore_errors=True)
    checkout.commit()


def clone(source: Checkout, target: Path, home: Path | None = None) -> Checkout:
    """A fresh clone: time stamps of the check-out, nothing ignored by git, no memory of earlier runs."""
    subprocess.run(
        ["git", "clone", "-q", str(source.root), str(target)],
        env=environment(source.home),
        check=True,
        capture_output=True,
    )
    return Checkout(target, home or source.home)


@contextmanager
def locked(path: Path):
    """Hold a lock file, shared by all test processes of a session."""
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
