"""Recipes: everything that determines a row, stage by stage, and what of it has changed.

A stage's recipe is plain data; the SHA-256 of its canonical JSON is the stage key, and each recipe holds the keys of
the stages before it. The key of the last stage is the row key. Products of a stage lie in a folder named by its key,
so products of different recipes never meet, and going back to an older recipe finds its products again.
"""

import importlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rowproof import git
from rowproof.checkpoints import SUFFIX, file_name, uri_of
from rowproof.closure import HashCache, closure
from rowproof.errors import ConfigError, RecordError, RowproofError
from rowproof.files import write_atomic, write_if_changed
from rowproof.hashing import sha256_hex
from rowproof.launches import read_launch_file
from rowproof.layout import (
    PROVENANCE,
    SUMS,
    TIMING,
    UNLISTED,
    bundle_files,
    document_digest,
    episode_file,
    learned_files,
    read_provenance,
    read_sums,
    read_timing,
)
from rowproof.records import decode, digest, encode_document, encode_lines, split_lines
from rowproof.signals import settle, signal

if TYPE_CHECKING:
    # Read by whoever computes recipes and not by jobs, which read a launch.
    from rowproof.boards import BoardSetup, Config

STAGES = ("specs", "simulate", "summary", "bundle")
# Learned rows come out of two stages more, rows whose runs are timed out of one.
LEARNED_STAGES = ("train", "select", *STAGES)
TIMED_STAGES = ("specs", "simulate", "time", "summary", "bundle")
EVERY_STAGE = ("train", "select", *TIMED_STAGES)
SCRIPTS = {
    "train": "workflow/scripts/train.py",
    "select": "workflow/scripts/select_checkpoint.py",
    "specs": "workflow/scripts/specs.py",
    "simulate": "workflow/scripts/simulate.py",
    "time": "workflow/scripts/time_runs.py",
    "summary": "workflow/scripts/summarise.py",
    "bundle": "workflow/scripts/assemble.py",
    "leaderboard": "workflow/scripts/leaderboard.py",
}
# Distributions whose version can change a number; the others only carry data around.
NUMERIC = ("mujoco", "numpy", "sapien", "scipy", "torch")
KEY_DIGITS = 16


def read_pins(root: Path) -> dict[str, str]:
    """Distribution -> version from ``requirements.lock``.

    Raises:
        ConfigError: the lock is missing or holds a line that is no exact pin.
    """
    path = root / "requirements.lock"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ConfigError(f"requirements.lock: must be a readable file: {error.strerror}") from None
    pins = {}
    for number, line in enumerate(lines, start=1):
        text = line.split("#")[0].strip()
        if not text:
            continue
        match = re.fullmatch(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.+!_-]+)", text)
        if match is None:
            raise ConfigError(f"requirements.lock:{number}: must be name==version, found {text!r}")
        pins[re.sub(r"[-_.]+", "-", match[1]).lower()] = match[2]
    return pins


def row_recipes(setup: "BoardSetup", row: str, root: Path, cache: HashCache, pins: dict[str, str]) -> dict[str, Any]:
    """The recipes of all stages of one row: stage -> recipe, in the order of the stages."""
    board, statistics = setup.board, setup.plan.statistics
    stages = STAGES
    if row in setup.trainings:
        stages = LEARNED_STAGES
    elif setup.engine.timing_module:
        stages = TIMED_STAGES
    recipes = _first_recipes(setup, row, stages, root, cache, pins)
    upstream = {"simulate": digest(recipes["simulate"])}
    if "time" in stages:
        recipes["time"] = _timing_recipe(setup, root, cache, pins)
        upstream = {"time": digest(recipes["time"])}
    summary: dict[str, Any] = {"statistics": statistics.model_dump(), "partners": setup.plan.partners_of(row)}
    if setup.engine.summary_module:
        summary["producer"] = setup.engine.summary_module
    recipes["summary"] = _recipe("summary", summary, upstream, root, cache, pins)
    last = {"board": board.board, "row": row, "engine": board.engine, "tier": board.tier}
    recipes["bundle"] = _recipe("bundle", last, {"summary": digest(recipes["summary"])}, root, cache, pins)
    return recipes


def _first_recipes(
    setup: "BoardSetup", row: str, stages: Iterable[str], root: Path, cache: HashCache, pins: dict[str, str]
) -> dict[str, Any]:
    """The recipes of the stages up to the records."""
    data = setup.row_setup(row)
    plan = {"path": setup.plan_path, "blob": git.blob_id(setup.plan_bytes)}
    own: dict[str, dict[str, Any]] = {
        # Of everything that is preregistered, episodes come last: another plan, be it by a comment, asks for new ones.
        "specs": {"plan": plan, "producer": setup.engine.specs_module, "setup": data},
        "simulate": {"producer": setup.engine.simulate_module, "setup": data, **_programs(setup)},
    }
    if row in setup.trainings:
        own["train"] = {"producer": setup.engine.training_module, "setup": setup.training_setup(row)}
        own["select"] = {"producer": setup.engine.validation_module, "setup": setup.selection_setup(row)}
    recipes: dict[str, Any] = {}
    upstream: dict[str, str] = {}
    for stage in (stage for stage in stages if stage in own):
        recipes[stage] = _recipe(stage, own[stage], upstream, root, cache, pins)
        upstream = {stage: digest(recipes[stage])}
    return recipes


def _timing_recipe(setup: "BoardSetup", root: Path, cache: HashCache, pins: dict[str, str]) -> dict[str, Any]:
    """The recipe of what the clock shows, the same for all rows of a board: they are timed in turns."""
    board = setup.board.board
    if (root, board) not in cache.timings:
        upstream = {
            row: digest(_first_recipes(setup, row, TIMED_STAGES, root, cache, pins)["simulate"])
            for row in setup.board.rows
        }
        own = {"producer": setup.engine.timing_module, "setup": setup.board_setup(), **_programs(setup)}
        cache.timings[root, board] = _recipe("time", own, upstream, root, cache, pins)
    return cache.timings[root, board]


def _programs(setup: "BoardSetup") -> dict[str, list[str]]:
    return {"programs": list(setup.engine.programs)} if setup.engine.programs else {}


def _recipe(
    stage: str,
    own: Mapping[str, Any],
    upstream: Mapping[str, str],
    root: Path,
    cache: HashCache,
    pins: Mapping[str, str],
) -> dict[str, Any]:
    producer, scripts = own.get("producer"), (SCRIPTS[stage], *own.get("programs", ()))
    code = cache.closures.get((root, scripts, producer))
    if code is None:
        code = closure(root, scripts, [producer] if producer else [], cache)
        cache.closures[root, scripts, producer] = code
    return {
        "stage": stage,
        **own,
        "code": code.code,
        "pins": {name: pins.get(name, "unpinned") for name in NUMERIC if name in code.packages},
        "upstream": dict(upstream),
    }


def stage_keys(recipes: dict[str, Any]) -> dict[str, str]:
    """Stage -> key."""
    return {stage: digest(recipe) for stage, recipe in recipes.items()}


@dataclass(frozen=True)
class Shard:
    """A part of a row's episodes that one job runs: some seeds, with all partners or with one."""

    name: str
    seeds: tuple[int, ...]
    partner: str | None = None

    def holds(self, seed: int, partner: str) -> bool:
        """Whether an episode belongs to this shard."""
        return seed in self.seeds and self.partner in (None, partner)


def shards_of(seeds: Iterable[int], partners: Iterable[str], shard_by: str) -> list[Shard]:
    """How a row is cut into jobs; ``shard_by`` is that of config/config.yaml."""
    seeds = tuple(seeds)
    if shard_by == "row":
        return [Shard("all", seeds)]
    if shard_by == "seed":
        return [Shard(f"seed{seed}", (seed,)) for seed in seeds]
    return [Shard(f"seed{seed}-{partner}", (seed,), partner) for seed in seeds for partner in partners]


@dataclass(frozen=True)
class RowPlan:
    """What the workflow needs to know of one row; plain data, so that job processes can read it from a file."""

    board: str
    row: str
    keys: dict[str, str]
    seeds: tuple[int, ...]
    partners: tuple[str, ...]
    shard_by: str
    plan_path: str
    plan_blob: str
    state: str
    reasons: tuple[str, ...]
    dirty_stages: tuple[str, ...] = ()
    engine_files: tuple[str, ...] = ()
    runtime_min: int = 10

    @property
    def name(self) -> str:
        """``<board>/<row>``."""
        return f"{self.board}/{self.row}"

    @cached_property
    def shards(self) -> dict[str, Shard]:
        """The shards by name. Not stored, since a large plan has many and a job needs one."""
        return {shard.name: shard for shard in shards_of(self.seeds, self.partners, self.shard_by)}

    def recipe_path(self, stage: str) -> str:
        """Recipe file of a stage; never changes once written, since its name holds its digest."""
        return f"work/recipes/{self.name}/{stage}-{self.keys[stage][:KEY_DIGITS]}.json"

    @property
    def signal_path(self) -> str:
        """The file whose time stamp tells Snakemake whether the row is current."""
        return f"work/recipes/{self.name}/state.json"

    def product(self, stage: str, file: str) -> str:
        """Path of a product of a stage, in the folder of that stage's key.

        What a modified checkout makes lies apart, so that a clean build never takes it over.
        """
        suffix = "-dirty" if stage in self.dirty_stages else ""
        # What the rows of a board do in turns belongs to none of them.
        owner = f"{self.board}/_rows" if stage == "time" else self.name
        return f"work/rows/{owner}/{stage}-{self.keys[stage][:KEY_DIGITS]}{suffix}/{file}"

    def products(self, stage: str) -> list[str]:
        """All products of a stage before the last."""
        if stage == "train":
            return self.trainings
        if stage == "select":
            return [*self.selections(self.seeds), *self.checkpoints(self.seeds)]
        if stage == "simulate":
            return [self.product(stage, f"{shard}.jsonl") for shard in self.shards]
        if stage == "time":
            return self.timings
        return [self.product(stage, {"specs": "specs.jsonl", "summary": "summary.json"}[stage])]

    @property
    def learned(self) -> bool:
        """Whether the row's policy is trained."""
        return "train" in self.keys

    @property
    def timings(self) -> list[str]:
        """What a clock showed of the row's runs; none for rows that are not timed."""
        return [self.product("time", TIMING)] if "time" in self.keys else []

    @property
    def trainings(self) -> list[str]:
        """The documents of all trainings; none for policies that are not learned."""
        return [self.product("train", f"seed{seed}.json") for seed in self.seeds] if self.learned else []

    def selections(self, seeds: Iterable[int]) -> list[str]:
        """Why which checkpoint of these trainings is evaluated; none for policies that are not learned."""
        return [self.product("select", f"seed{seed}.json") for seed in seeds] if self.learned else []

    def checkpoints(self, seeds: Iterable[int]) -> list[str]:
        """The checkpoints that are evaluated."""
        return [str(Path(path).with_suffix(SUFFIX)) for path in self.selections(seeds)]

    @property
    def staged(self) -> str:
        """The digest list of the verified bundle before it is moved into place; the other files lie beside it.

        It is written last and stands for all of them, since the graph would double if each were named.
        """
        return self.product("bundle", f"staged/{SUMS}")

    @property
    def bundle(self) -> list[str]:
        """All files of the bundle, relative to the working directory."""
        return [f"results/{self.name}/{file}" for file in self.bundle_files]

    @property
    def bundle_files(self) -> list[str]:
        """The names of these files."""
        return bundle_files(self.seeds, self.learned, bool(self.timings))


@dataclass(frozen=True)
class BoardPlan:
    """What the workflow needs to know of one board."""

    board: str
    rows: tuple[str, ...]
    key: str
    state: str
    reason: str | None
    files: tuple[str, ...]
    # Rows of other boards, <board>/<row>, that an admission report rests on.
    foreign_rows: tuple[str, ...] = ()

    @property
    def recipe_path(self) -> str:
        """What determines the rendered board."""
        return f"work/recipes/{self.board}/leaderboard-{self.key[:KEY_DIGITS]}.json"

    @property
    def signal_path(self) -> str:
        """The file whose time stamp tells Snakemake whether the rendered board is current."""
        return f"work/recipes/{self.board}/leaderboard-state.json"


@dataclass(frozen=True)
class Launch:
    """One start of Snakemake: all rows and the state of the checkout, read once and handed to every job."""

    root: str
    commit: str
    dirty: bool
    rows: tuple[RowPlan, ...]
    boards: tuple[BoardPlan, ...]

    def row(self, name: str) -> RowPlan:
        """The row ``<board>/<row>``."""
        return next(row for row in self.rows if row.name == name)


@dataclass
class Recorded:
    """What a bundle on disk says of itself, as far as its own hashes vouch for it."""

    problems: list[str] = field(default_factory=list)
    recipes: dict[str, Any] | None = None
    good: set[str] = field(default_factory=set)
    # Files of the recorded bundle that the current recipe no longer makes: name -> SHA-256.
    superseded: dict[str, str] = field(default_factory=dict)
    provenance: dict[str, Any] | None = None

    @property
    def keys(self) -> dict[str, str]:
        """Stage keys of the recorded recipes (empty when unreadable)."""
        return stage_keys(self.recipes) if self.recipes else {}


def read_recorded(folder: Path, expected: list[str], cache: HashCache) -> Recorded:
    """Compare the bundle in ``folder`` with its own hashes and with the file names that it must have."""
    found = Recorded()
    present = sorted(entry.name for entry in os.scandir(folder)) if folder.is_dir() else []
    for name in sorted(set(expected) - set(present)):
        found.problems.append(f"{name} is missing")
    for name in sorted(set(present) & set(expected)):
        path = folder / name
        if path.is_symlink() or not path.is_file():
            found.problems.append(f"{name} must be a plain file")
    if PROVENANCE in present:
        try:
            data = (folder / PROVENANCE).read_bytes()
            document = read_provenance(data)
            if data != encode_document(document):
                raise RecordError(f"{PROVENANCE} must be as it was written")
            found.provenance = document
            if found.provenance["row_digest"] != cache.sha256(folder / "bundle.json"):
                found.problems.append(f"{PROVENANCE} belongs to another bundle")
        except (OSError, RecordError):
            found.problems.append(f"{PROVENANCE} is damaged")
    if TIMING in present and TIMING in expected:
        try:
            read_timing((folder / TIMING).read_bytes())
            found.good.add(TIMING)
        except (OSError, RecordError):
            found.problems.append(f"{TIMING} is damaged")
    try:
        sums = read_sums((folder / SUMS).read_bytes())
    except (OSError, RecordError):
        found.problems.append(f"{SUMS} is missing or damaged")
        sums = {}
    for name in sorted(set(present) - set(expected)):
        path = folder / name
        if name in sums and path.is_file() and not path.is_symlink() and cache.sha256(path) == sums[name]:
            found.superseded[name] = sums[name]
        else:
            found.problems.append(f"{name} does not belong to the bundle: move it away")
    if not sums:
        return found
    for name in sorted(set(expected) & set(present) - {SUMS, *UNLISTED}):
        path = folder / name
        try:
            # A link would let content outside the bundle change unseen.
            same = not path.is_symlink() and cache.sha256(path) == sums.get(name)
        except OSError:
            same = False
        if same:
            found.good.add(name)
        else:
            found.problems.append(f"{name} differs from its hash in {SUMS}")
    if set(sums) != set(expected) - {SUMS, *UNLISTED}:
        found.problems.append(f"{SUMS} lists other files than the bundle must have")
    if "recipe.json" in found.good:
        try:
            recipes = decode((folder / "recipe.json").read_bytes(), "recipe.json")
            if tuple(recipes) not in (STAGES, LEARNED_STAGES, TIMED_STAGES) or not all(
                isinstance(recipe, dict) and isinstance(recipe.get("code"), dict) for recipe in recipes.values()
            ):
                raise ValueError
            stage_keys(recipes)
            found.recipes = recipes
        except (OSError, ValueError, TypeError, AttributeError, RecordError):
            found.problems.append("recipe.json is damaged")
    return found


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value and all(isinstance(item, dict) and "name" in item for item in value):
        for item in value:
            yield from _leaves(item, f"{path}[{item['name']}]")
    else:
        yield path, value


@dataclass(frozen=True)
class Change:
    """One item that differs between a recorded recipe and the current one."""

    kind: str
    item: str
    stage: str
    before: Any
    after: Any

    def describe(self) -> str:
        """One line for people."""
        if self.kind == "code":
            verb = "added" if self.before is None else "removed" if self.after is None else "changed"
            return f"{self.stage}: code {self.item} {verb}"
        return f"{self.stage}: {self.kind} {self.item}: {self.before!r} -> {self.after!r}"


def compare_recipes(before: dict[str, Any], after: dict[str, Any]) -> list[Change]:
    """The items that differ, each named once at the first stage that it enters."""
    changes: list[Change] = []
    named: set[tuple[str, str]] = set()
    for stage in EVERY_STAGE:
        old, new = dict(_leaves(before.get(stage, {}))), dict(_leaves(after.get(stage, {})))
        # Code paths hold dots, so they are compared as whole keys.
        old_code, new_code = before.get(stage, {}).get("code", {}), after.get(stage, {}).get("code", {})
        pairs = [("code", key, old_code.get(key), new_code.get(key)) for key in sorted({*old_code, *new_code})]
        for key in sorted({*old, *new}):
            top = key.split(".")[0]
            if top not in ("code", "upstream"):
                kind = "pin" if top == "pins" else "config"
                pairs.append((kind, key.removeprefix("pins."), old.get(key), new.get(key)))
        for kind, item, was, now in pairs:
            # The URI and identity of a seat follow from its parameters where it has any; those are named instead.
            seat, _, entry = item.rpartition(".")
            derived = entry in ("weights_uri", "identity") and any(
                k.startswith(f"{seat}.params.") for k in (*old, *new)
            )
            if was == now or (kind, item) in named or derived:
                continue
            named.add((kind, item))
            changes.append(Change(kind, item, stage, was, now))
    return changes


@dataclass(frozen=True)
class RowStatus:
    """A row's current recipes against what its bundle records.

    Attributes:
        state: ``current``, ``missing`` (no bundle), ``stale`` (made by another recipe), ``damaged``, or
            ``provisional`` (made from a modified checkout that is clean by now).
    """

    name: str
    recipes: dict[str, Any]
    state: str
    recorded: Recorded

    @property
    def changes(self) -> list[Change]:
        """What makes a stale row stale."""
        return compare_recipes(self.recorded.recipes or {}, self.recipes) if self.state == "stale" else []

    @property
    def reasons(self) -> list[str]:
        """Why the row is not current, one line per cause."""
        if self.state == "missing":
            return ["there is no bundle yet"]
        if self.state == "damaged":
            return self.recorded.problems
        if self.state == "provisional":
            return ["it was made from a modified checkout, which is clean now"]
        return [change.describe() for change in self.changes]


def row_status(
    setup: "BoardSetup", row: str, root: Path, workdir: Path, cache: HashCache, pins: dict[str, str], dirty: bool
) -> RowStatus:
    """Compute the recipes of a row and compare them with the bundle below ``workdir/results``.

    ``dirty`` tells whether the checkout is modified now.
    """
    name = f"{setup.board.board}/{row}"
    recipes = row_recipes(setup, row, root, cache, pins)
    folder = workdir / "results" / name
    if not folder.is_dir() or not any(folder.iterdir()):
        return RowStatus(name, recipes, "missing", Recorded())
    expected = bundle_files(setup.plan.grid.seeds, row in setup.trainings, bool(setup.engine.timing_module))
    recorded = read_recorded(folder, expected, cache)
    if recorded.recipes is not None and recorded.keys != stage_keys(recipes):
        return RowStatus(name, recipes, "stale", recorded)
    if recorded.problems:
        return RowStatus(name, recipes, "damaged", recorded)
    provisional = not dirty and recorded.provenance is not None and recorded.provenance["dirty"]
    return RowStatus(name, recipes, "provisional" if provisional else "current", recorded)


def all_statuses(root: Path, workdir: Path) -> list[RowStatus]:
    """The status of every row of every configured board; only looks."""
    from rowproof.boards import load_config

    _, setups = load_config(root)
    pins, cache, dirty = read_pins(root), HashCache(None), git.tree_state(root).dirty
    return [
        row_status(setup, row, root, workdir, cache, pins, dirty)
        for setup in setups.values()
        for row in setup.board.rows
    ]


def _files(folder: Path) -> list[Path]:
    """What lies in a folder that may be missing, without its folders."""
    try:
        with os.scandir(folder) as entries:
            return [Path(entry) for entry in entries if not entry.is_dir(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _still_superseded(signal: Path, folder: Path, expected: Iterable[str], cache: HashCache) -> dict[str, str]:
    """What an earlier launch found superseded and did not come to remove: name -> SHA-256.

    A run that ends while it replaces a bundle takes the digest list along that vouched for those files.
    """
    try:
        earlier = decode(signal.read_bytes(), signal.name).get("superseded", {})
    except (OSError, RecordError, AttributeError):
        return {}
    left = [name for name in earlier if name not in expected]
    plain = (name for name in left if (folder / name).is_file() and not (folder / name).is_symlink())
    return {name: earlier[name] for name in plain if cache.sha256(folder / name) == earlier[name]}


@dataclass(frozen=True)
class _Taker:
    """Writes what a bundle holds as products of the jobs that its provenance names."""

    jobs: list[dict[str, Any]]

    def __call__(self, path: Path, data: bytes, stage: str, shard: str | None) -> None:
        own = [job for job in self.jobs if job["stage"] == stage]
        # Rows that were cut into other shards cannot say which job made which record, so all are named.
        own = [job for job in own if job["shard"] == shard] or own
        document = {"sha256": sha256_hex(data), "jobs": own}
        write_atomic(path.with_suffix(".job.json"), encode_document(document))
        write_atomic(path, data)


def _adopt(plan: RowPlan, folder: Path, status: RowStatus, workdir: Path) -> None:
    """Take records and summary of a bundle whose recipes are the current ones, as far as its hashes vouch for them.

    So a change in a later stage asks for no new episodes, and a damaged file for its own episodes alone, even in a
    fresh clone without intermediate files.
    """
    recorded = status.recorded
    if recorded.provenance is None or recorded.provenance["dirty"]:
        return
    take = _Taker(recorded.provenance["jobs"])
    # A restored bundle keeps its provenance, if it comes out as the same bundle and its runs are not timed again.
    if not plan.timings or TIMING in recorded.good:
        write_atomic(workdir / plan.product("bundle", PROVENANCE), (folder / PROVENANCE).read_bytes())
    same_players = set(plan.seeds)
    if plan.learned:
        if recorded.keys.get("select") != plan.keys["select"]:
            return
        same_players = {seed for seed in plan.seeds if _adopt_learned(plan, seed, folder, recorded, workdir, take)}
    if recorded.keys.get("simulate") != plan.keys["simulate"]:
        return
    # Specs are a pure function of their recipe; without this file every shard would count as outdated.
    specs_path = workdir / plan.product("specs", "specs.jsonl")
    if not specs_path.exists():
        recipe = status.recipes["specs"]
        specs = importlib.import_module(recipe["producer"]).specs(recipe["setup"])
        take(specs_path, encode_lines(specs), "specs", None)
    _adopt_timing(plan, folder, recorded, workdir, take)
    summary_path = workdir / plan.product("summary", "summary.json")
    same = recorded.keys["summary"] == plan.keys["summary"]
    if same and "bundle.json" in recorded.good and not summary_path.exists():
        document = decode((folder / "bundle.json").read_bytes(), "bundle.json")
        take(summary_path, encode_document(document["summary"]), "summary", None)
    for shard in plan.shards.values():
        path = workdir / plan.product("simulate", f"{shard.name}.jsonl")
        if path.exists() or not all(
            episode_file(seed) in recorded.good and seed in same_players for seed in shard.seeds
        ):
            continue
        lines = []
        for seed in shard.seeds:
            name = episode_file(seed)
            for number, line in split_lines((folder / name).read_bytes(), name):
                record = decode(line, f"{name}:{number}")
                if shard.holds(record["seed"], record["metadata"].get("member", "")):
                    lines.append(line + b"\n")
        take(path, b"".join(lines), "simulate", shard.name)


def _adopt_timing(plan: RowPlan, folder: Path, recorded: Recorded, workdir: Path, take: _Taker) -> None:
    """Take what a clock showed of a timed row, if it is what the current recipe asks for."""
    for timing in plan.timings:
        same = recorded.keys.get("time") == plan.keys["time"] and TIMING in recorded.good
        if same and not (workdir / timing).exists():
            take(workdir / timing, (folder / TIMING).read_bytes(), "time", None)


def _adopt_learned(
    plan: RowPlan,
    seed: int,
    folder: Path,
    recorded: Recorded,
    workdir: Path,
    take: _Taker,
) -> bool:
    """Take training, selection and checkpoint of one seed; returns whether those under work/ are the bundle's.

    Training gives other bits on other hosts. What was trained here is kept, and never mixed with what was not.
    """
    names = learned_files(seed)
    if not recorded.good.issuperset(names):
        return False
    training, selection, checkpoint = ((folder / name).read_bytes() for name in names)
    training_path = workdir / plan.product("train", f"seed{seed}.json")
    selection_path = workdir / plan.product("select", f"seed{seed}.json")
    # Also when one of them was lost, say with a job that failed: a training is not run again for its document alone.
    for path, data in ((training_path, training), (selection_path, selection)):
        if path.exists() and path.read_bytes() != data:
            return False
    if not all(path.exists() for path in (training_path, selection_path, selection_path.with_suffix(SUFFIX))):
        write_atomic(selection_path.with_suffix(SUFFIX), checkpoint)
        take(training_path, training, "train", f"seed{seed}")
        take(selection_path, selection, "select", f"seed{seed}")
    return True


def adopt_costly(
    root: Path, results: Path, workdir: Path, names: Iterable[str], checkpoints: bool = True, times: bool = True
) -> None:
    """Prepare ``workdir`` so that rows are built from the ``checkpoints`` and ``times`` that their bundles carry.

    Of bundles that are damaged, or whose trainings, selections or timings have another recipe by now, nothing is taken.
    """
    from rowproof.boards import load_config

    launch = prepare(root, workdir, touch=False)
    _, setups = load_config(root)
    cache, pins = HashCache(None), read_pins(root)
    for plan in (launch.row(name) for name in names):
        status = row_status(setups[plan.board], plan.row, root, results.parent, cache, pins, launch.dirty)
        recorded, folder = status.recorded, results / plan.name
        if recorded.provenance is None or recorded.provenance["dirty"]:
            continue
        take = _Taker(recorded.provenance["jobs"])
        if checkpoints and plan.learned and recorded.keys.get("select") == plan.keys["select"]:
            for seed in plan.seeds:
                _adopt_learned(plan, seed, folder, recorded, workdir, take)
        if times:
            _adopt_timing(plan, folder, recorded, workdir, take)


def _drop_unselectable(plan: RowPlan, workdir: Path) -> None:
    """Remove documents of trainings that are yet to be selected from and whose checkpoints are gone.

    Bundles carry the selected checkpoints only; another selection needs the others, so these are trained again.
    """
    for training, selection in zip(plan.trainings, plan.selections(plan.seeds), strict=True):
        path = workdir / training
        if (workdir / selection).exists() or not path.exists():
            continue
        try:
            saved = decode(path.read_bytes(), path.name)["checkpoints"]
            files = {each["uri"]: path.with_suffix("") / file_name(each["uri"]) for each in saved}
        except (RowproofError, KeyError, TypeError):
            # The job that reads it says what is wrong with it.
            continue
        if not all(file.is_file() and uri_of(file.read_bytes()) == uri for uri, file in files.items()):
            path.unlink()


def _drop_damaged(staged: Path, plan: RowPlan, cache: HashCache) -> None:
    """Remove a staged bundle that is not as it was verified, so that it is assembled anew."""
    if staged.is_symlink() or (staged.exists() and not staged.is_dir()):
        # No folder could take its place.
        staged.unlink()
    elif staged.is_dir() and read_recorded(staged, plan.bundle_files, cache).problems:
        shutil.rmtree(staged)


def prepare(root: Path, workdir: Path, touch: bool = True) -> Launch:
    """Compute all recipes and, with ``touch``, write the recipe files that the rules depend on.

    Args:
        root: the project (code and configuration).
        workdir: the folder that holds ``work/`` and ``results/``; usually the project as well.
        touch: False only looks.

    Raises:
        ConfigError: any configuration file is wrong.
    """
    from rowproof.boards import load_config

    config, setups = load_config(root)
    pins = read_pins(root)
    cache = HashCache(workdir / "work" / "cache" / "hashes.json" if touch else None)
    tree = git.tree_state(root)
    rows, boards = [], []
    for setup in setups.values():
        own = [
            _prepare_row(config, setup, row, root, workdir, cache, pins, tree.dirty, touch) for row in setup.board.rows
        ]
        rows += own
    for setup in setups.values():
        boards.append(_prepare_board(setup, rows, root, workdir, cache, pins, touch))
    if touch:
        settle({root / path for plan in rows for path in plan.engine_files})
        cache.save()
    return Launch(str(root), tree.commit, tree.dirty, tuple(rows), tuple(boards))


def _prepare_row(
    config: "Config",
    setup: "BoardSetup",
    row: str,
    root: Path,
    workdir: Path,
    cache: HashCache,
    pins: dict[str, str],
    dirty: bool,
    touch: bool,
) -> RowPlan:
    grid = setup.plan.grid
    folder = workdir / "results" / f"{setup.board.board}/{row}"
    if touch:
        settle(_files(folder))
    status = row_status(setup, row, root, workdir, cache, pins, dirty)
    plan = RowPlan(
        board=setup.board.board,
        row=row,
        keys=stage_keys(status.recipes),
        seeds=tuple(grid.seeds),
        partners=tuple(setup.plan.partners_of(row)),
        shard_by=config.shard_by,
        plan_path=setup.plan_path,
        plan_blob=git.blob_id(setup.plan_bytes),
        state=status.state,
        reasons=tuple(status.reasons),
        engine_files=setup.engine.files,
        runtime_min=setup.engine.runtime_min,
    )
    if dirty:
        apart = (s for s in [*plan.keys][:-1] if not all((workdir / path).exists() for path in plan.products(s)))
        plan = replace(plan, dirty_stages=(*apart, "bundle"))
    if touch:
        recipe_paths = {stage: workdir / plan.recipe_path(stage) for stage in plan.keys}
        for stage, path in recipe_paths.items():
            if not path.exists():
                write_atomic(path, encode_document(status.recipes[stage]), durable=False)
        settle(recipe_paths.values())
        outputs = (workdir / file for file in plan.bundle)
        signal_path = workdir / plan.signal_path
        superseded = _still_superseded(signal_path, folder, plan.bundle_files, cache) | status.recorded.superseded
        signal(signal_path, plan.keys["bundle"], plan.state, outputs, plan.reasons, superseded)
        if plan.state != "current":
            staged = workdir / plan.product("bundle", "staged")
            _drop_damaged(staged, plan, cache)
            for each in (*(workdir / plan.product(stage, "") for stage in plan.keys), staged):
                settle(_files(each))
            _adopt(plan, folder, status, workdir)
            _drop_unselectable(plan, workdir)
        elif plan.timings and status.recorded.provenance is not None:
            # Another row of the board may have lost its copy of what was measured for all.
            _adopt_timing(plan, folder, status.recorded, workdir, _Taker(status.recorded.provenance["jobs"]))
    return plan


def _board_reason(folder: Path, key: str, rows: list[RowPlan], foreign: list[RowPlan], cache: HashCache) -> str | None:
    """Why a rendered board is not current; None when it is."""
    waiting = [row.row for row in rows if row.state != "current"]
    waiting += [row.name for row in foreign if row.state != "current"]
    if waiting:
        return f"rows {', '.join(waiting)} are not current"
    try:
        recorded = json.loads((folder / "leaderboard.json").read_bytes())
        if recorded["digest"] != document_digest(recorded) or any(
            cache.sha256(folder / name) != sha for name, sha in recorded["files"].items()
        ):
            return "a rendered file is damaged"
        if recorded["key"] != key:
            return "its definition or the code that renders it changed"
        # What the rows hold is not part of the key, since it is unknown until they are built.
        rendered = {row["row"]: row["row_digest"] for row in recorded["rows"]}
        changed = [row.row for row in rows if rendered.get(row.row) != cache.sha256(folder / row.row / "bundle.json")]
        measured = {row["row"]: row["timing_sha256"] for row in recorded["rows"] if "timing_sha256" in row}
        changed += [
            row.row for row in rows if row.timings and measured.get(row.row) != cache.sha256(folder / row.row / TIMING)
        ]
        if foreign:
            shown = decode((folder / ADMISSION_FILES[0]).read_bytes(), ADMISSION_FILES[0])["row_digests"]
            results = folder.parents[rows[0].board.count("/")]
            changed += [r.name for r in foreign if shown.get(r.name) != cache.sha256(results / r.name / "bundle.json")]
        return f"rows {', '.join(changed)} changed" if changed else None
    except FileNotFoundError:
        return "it is not rendered yet"
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecordError):
        return "a rendered file is damaged"


ADMISSION_FILES = ("admission_report.json", "admission_report.md")
LEARNED_BOARD_FILES = ("training.svg",)
BOARD_FILES = ("leaderboard.csv", "leaderboard.json", "leaderboard.md", "leaderboard.svg")


def _prepare_board(
    setup: "BoardSetup",
    all_rows: list[RowPlan],
    root: Path,
    workdir: Path,
    cache: HashCache,
    pins: dict[str, str],
    touch: bool,
) -> BoardPlan:
    board = setup.board
    rows = [row for row in all_rows if row.board == board.board]
    named = setup.plan.admission.foreign_rows if setup.plan.admission else []
    foreign = [row for row in all_rows if row.name in named]
    if len(foreign) != len(named):
        raise ConfigError(f"{setup.plan_path}: admission: a4 must name a row of a configured board, found {named}")
    folder = workdir / "results" / board.board
    facts = root / "resources" / "published" / f"{board.board}.yaml"
    page = setup.engine.page_module
    recipe = {
        "stage": "leaderboard",
        "board": board.model_dump(by_alias=True),
        **({"producer": page} if page else {}),
        "code": closure(root, [SCRIPTS["leaderboard"]], [page] if page else [], cache).code,
        "pins": {"matplotlib": pins.get("matplotlib", "unpinned"), "numpy": pins.get("numpy", "unpinned")},
        "admission": setup.plan.admission.model_dump() if setup.plan.admission else None,
        "published": cache.sha256(facts) if facts.is_file() else None,
    }
    key = digest(recipe)
    files = BOARD_FILES + (ADMISSION_FILES if setup.plan.admission else ())
    files += LEARNED_BOARD_FILES if any(row.learned for row in rows) else ()
    reason = _board_reason(folder, key, rows, foreign, cache)
    current = reason is None
    plan = BoardPlan(
        board.board,
        tuple(row.row for row in rows),
        key,
        "current" if current else "stale",
        reason,
        files,
        tuple(row.name for row in foreign),
    )
    if touch:
        write_if_changed(workdir / plan.recipe_path, encode_document(recipe), durable=False)
        outputs = [folder / name for name in files]
        settle([workdir / plan.recipe_path, *outputs])
        signal(workdir / plan.signal_path, key, plan.state, outputs, [reason] if reason else [], {})
    return plan


def write_launch(launch: Launch, workdir: Path) -> Path:
    """Store a launch for its job processes; equal launches share a file."""
    data = json.dumps(asdict(launch), sort_keys=True).encode()
    path = workdir / "work" / "launch" / f"{digest(json.loads(data))[:KEY_DIGITS]}.json"
    write_if_changed(path, data)
    return path


def read_launch(path: Path) -> Launch:
    """Read what :func:`write_launch` stored.

    Raises:
        StaleInputError: the file is missing or damaged.
    """
    data = read_launch_file(path)
    rows = tuple(
        RowPlan(
            **{
                **row,
                **{key: tuple(row[key]) for key in ("seeds", "partners", "reasons", "dirty_stages", "engine_files")},
            }
        )
        for row in data["rows"]
    )
    boards = tuple(
        BoardPlan(**{**board, **{key: tuple(board[key]) for key in ("rows", "files", "foreign_rows")}})
        for board in data["boards"]
    )
    return Launch(data["root"], data["commit"], data["dirty"], rows, boards)
