"""What every workflow script does around its work: log, check that the recipe still holds, and say who did it."""

import logging
import os
import platform
import re
import resource
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from rowproof import git
from rowproof.audit import Audit, unwatched
from rowproof.checkpoints import file_name
from rowproof.closure import FolderSources, HashCache, closure
from rowproof.errors import GateError, RecordError, RowproofError, StaleInputError
from rowproof.files import write_atomic
from rowproof.hashing import sha256_hex
from rowproof.launches import LAUNCH_VARIABLE, read_launch_file, wait_for
from rowproof.layout import encode_timing
from rowproof.provenance import TIME_FORMAT, job_fields
from rowproof.records import check_fields, decode, encode_document
from rowproof.signals import settle_inputs
from rowproof.stages import bare, shown, stage_key
from rowproof.versions import installed

log = logging.getLogger("rowproof")

# What stands in the file beside a product.
NOTE_FIELDS = {"sha256": (str,), "jobs": (list,)}
ROOT = Path(__file__).resolve().parents[2]


def cpu_model() -> str:
    """The processor by the name that its maker gave it, or ``unknown``."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _peak_memory_mb() -> float:
    """Largest resident memory of this process so far, in MiB."""
    try:
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return round(int(line.split()[1]) / 1024, 1)
    except OSError:
        pass
    # On Linux this would be at least what the parent process held when it started this one.
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


@dataclass
class Job:
    """One running script: its recipe, and the entry that it adds to the row's provenance."""

    root: Path
    commit: str
    dirty: bool
    recipe: dict[str, Any]
    key: str
    threads: int = 1
    started: float = field(default_factory=time.monotonic)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def entry(self, shard: str | None = None) -> dict[str, Any]:
        """Provenance of this job so far."""
        return {
            "stage": self.recipe["stage"],
            "shard": shard,
            "commit": self.commit,
            "dirty": self.dirty,
            "seconds": round(time.monotonic() - self.started, 3),
            "platform": platform.platform(),
            "cpu_model": cpu_model(),
            "python": platform.python_version(),
            "versions": {name: installed(name) for name in self.recipe["pins"]},
            "host": platform.node(),
            "threads": self.threads,
            "peak_memory_mb": _peak_memory_mb(),
            "slurm_job_id": os.environ.get("SLURM_JOB_ID"),
            "started": self.started_at.strftime(TIME_FORMAT),
            "ended": datetime.now(UTC).strftime(TIME_FORMAT),
        }

    def check_unchanged(self) -> None:
        """Refuse to go on when code, data files or installed packages are not those of the recipe.

        Raises:
            StaleInputError: a file of the code closure or a data file differs, or a pinned distribution has another
                version.
        """
        recipe = self.recipe
        differing = [path for path, raw in recipe["raw"].items() if _raw(self.root / path) != raw]
        if differing and self._matters(differing):
            raise StaleInputError(
                f"the code must stay as it was when the build started, found a change in {', '.join(differing)}: "
                "start snakemake again"
            )
        for name, pinned in recipe["pins"].items():
            if installed(name) != pinned:
                raise StaleInputError(
                    f"{name} must have the pinned version {pinned} (requirements.lock), found {installed(name)}: "
                    "install the lock file again"
                )

    def _matters(self, differing: list[str]) -> bool:
        """Whether files whose bytes differ change the key: a comment does not."""
        recipe = self.recipe
        if set(differing) & set(recipe["data"]):
            return True
        producer = [recipe["producer"]] if "producer" in recipe else []
        scripts = (recipe["script"], *recipe.get("programs", ()))
        modules = (*producer, *recipe.get("modules", ()))
        return closure(FolderSources(self.root, HashCache(None)), scripts, modules).key != recipe["code"]["key"]


def _raw(path: Path) -> str | None:
    try:
        return sha256_hex(path.read_bytes())
    except OSError:
        return None


@unwatched()
def check_gate(root: Path, plan_path: str, plan_blob: str) -> None:
    """The preregistration gate: nothing runs before the plan is committed exactly as it is.

    Args:
        root: the checkout.
        plan_path: the plan; the lock file of what it pins lies beside it.
        plan_blob: the version of the plan that binds the row, which the history of HEAD must hold.

    Raises:
        GateError: the checkout is no git repository, or the committed plan or its lock is absent or differs.
    """
    head = git.run(root, "rev-parse", "HEAD")
    if head is None:
        raise GateError(f"the plan {plan_path} must be committed, found no git commit here: commit it first")
    commit = head.decode().strip()
    for path in (plan_path, plan_path.removesuffix(".yaml") + ".lock.json"):
        committed = git.blob_at(root, commit, path)
        if committed is None:
            raise GateError(f"the plan {path} must be committed, found it untracked: commit it before any run")
        file = root / path
        on_disk = git.blob_id(file.read_bytes()) if file.is_file() else "none"
        if committed != on_disk:
            raise GateError(
                f"the plan {path} must be as committed (blob {committed}), found blob {on_disk} on disk: "
                "commit the change, or restore the file"
            )
    if git.blob_at(root, commit, plan_path) != plan_blob and not git.first_commit_with(
        root, commit, plan_path, plan_blob
    ):
        raise GateError(
            f"the plan {plan_path} must have been committed as blob {plan_blob} when the build started, found no such "
            "version: start snakemake again"
        )


def binding_plan(root: Path, plan_path: str, plan_blob: str) -> tuple[str, str, bytes]:
    """Path, object id and bytes of the version of a plan that binds a row, once it passed :func:`check_gate`.

    Raises:
        GateError: see there.
    """
    check_gate(root, plan_path, plan_blob)
    data = git.blob(root, plan_blob)
    if data is None:
        raise GateError(f"blob {plan_blob} of the plan {plan_path} must be in this clone: fetch the full history")
    return plan_path, plan_blob, data


def _tree_state() -> tuple[str, bool]:
    """Commit and dirtiness as they were when the build was launched."""
    stored = os.environ.get(LAUNCH_VARIABLE)
    if stored:
        launch = read_launch_file(Path(stored))
        return launch["commit"], launch["dirty"]
    tree = git.tree_state(ROOT)
    return tree.commit, tree.dirty


@contextmanager
def logged(snakemake: Any) -> Iterator[None]:
    """Run the body of one workflow script with its log file open (``None``: without one).

    An error that the user can mend ends the script with its message and without a traceback.
    """
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    # On a full disk the log cannot be written either, which must not bury the message.
    logging.raiseExceptions = False
    try:
        if snakemake is not None:
            Path(snakemake.log[0]).parent.mkdir(parents=True, exist_ok=True)
            handlers.append(logging.FileHandler(snakemake.log[0], mode="w"))
        logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=handlers, force=True)
        yield
        if snakemake is not None:
            settle_inputs(snakemake.input, snakemake.output)
    except RowproofError as error:
        log.error("error: %s", error)
        sys.exit(error.exit_code)
    except OSError as error:
        log.error("error: %s: %s", error.strerror or error, error.filename or "")
        sys.exit(2)


def _read_recipe(path: str) -> tuple[dict[str, Any], str]:
    """A recipe and its key.

    Raises:
        StaleInputError: it is no recipe, or not the one whose key its name ends with.
    """
    try:
        recipe = decode(Path(path).read_bytes(), path)
        if not isinstance(recipe, dict):
            raise RecordError(f"{path} must hold a recipe, found a {type(recipe).__name__}")
        key = stage_key(recipe)
    except RecordError as error:
        raise StaleInputError(f"{error}: delete it and start snakemake again") from None
    named = re.fullmatch("[a-z]+-([0-9a-f]{16})", Path(path).stem)
    if named and not key.startswith(named[1]):
        raise StaleInputError(
            f"{path} must be the recipe that its name tells, found that of {key[:16]}: "
            "delete it and start snakemake again"
        )
    return recipe, key


def read_recipes(paths: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """By stage, the recipes in these files, and what is shown beside each of them."""
    recipes = [_read_recipe(path)[0] for path in paths]
    return {r["stage"]: bare(r) for r in recipes}, {r["stage"]: shown(r) for r in recipes}


@contextmanager
def job(snakemake: Any, script: str) -> Iterator[Job]:
    """Run the body of one stage's script, logged; code and pins are compared with the recipe before and after.

    Raises:
        StaleInputError: they differ (as an exit of the script).
    """
    with logged(snakemake):
        recipe, key = _read_recipe(snakemake.input.recipe)
        if recipe.get("script") != script:
            raise StaleInputError(f"{script} must be the script of the recipe, found {recipe.get('script')}")
        current = Job(ROOT, *_tree_state(), recipe, key, snakemake.threads)
        current.check_unchanged()
        _fetch_files(recipe)
        if hasattr(snakemake.input, "training"):
            _wait_for_checkpoints(Path(snakemake.input.training))
        with Audit(ROOT, recipe):
            yield current
        current.check_unchanged()


def _fetch_files(recipe: dict[str, Any]) -> None:
    """Make the files be here that the engine of a stage reads and fetches."""
    if "fetched_by" in recipe and import_module(recipe["fetched_by"]).ensure():
        log.info("fetched %d files that stage %s reads", len(recipe["fetched"]), recipe["stage"])


def write_product(path: str, data: bytes, entries: list[dict[str, Any]] | None = None) -> None:
    """Write a product, and beside it who made it (``*.job.json``) when ``entries`` are given."""
    target = Path(path)
    if entries is not None:
        document = {"sha256": sha256_hex(data), "jobs": entries}
        write_atomic(target.with_suffix(".job.json"), encode_document(document))
    write_atomic(target, data)


def write_timing(path: str, timing: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    """Write what a clock showed as a product; see :func:`write_product`."""
    # Here and not in the script, so that a change of the layout asks for no new times.
    write_product(path, encode_timing(timing), entries)


def read_product(path: str) -> tuple[bytes, list[dict[str, Any]]]:
    """A product and who made it.

    Raises:
        StaleInputError: the product is not the one that its job wrote, or nothing tells which one that was.
    """
    target = Path(path)
    data = target.read_bytes()
    beside = target.with_suffix(".job.json")
    try:
        wait_for(beside, target.stat().st_mtime)
        document = check_fields(decode(beside.read_bytes(), str(beside)), NOTE_FIELDS, str(beside))
        for entry in document["jobs"]:
            check_fields(entry, job_fields(entry), str(beside))
    except FileNotFoundError:
        raise StaleInputError(
            f"{target} must have {beside.name} beside it, found none: delete it and start snakemake again"
        ) from None
    except RecordError as error:
        raise StaleInputError(f"{error}: delete {path} and start snakemake again") from None
    if document["sha256"] != sha256_hex(data):
        raise StaleInputError(
            f"{path} must be as its job wrote it, found other content: delete it and start snakemake again"
        )
    return data, document["jobs"]


def _wait_for_checkpoints(training: Path) -> None:
    """Wait for the checkpoints that the document of a training names; they lie beside it and are no rule's output."""
    try:
        saved = decode(training.read_bytes(), training.name)["checkpoints"]
        files = [training.with_suffix("") / file_name(each["uri"]) for each in saved]
    except (OSError, RowproofError, KeyError, TypeError):
        # The script that reads it says what is wrong with it.
        return
    written_s = training.stat().st_mtime
    for file in files:
        wait_for(file, written_s)
