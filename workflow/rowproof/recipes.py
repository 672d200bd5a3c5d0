"""Recipes: everything that determines a row, stage by stage, and what of it has changed.

A stage's recipe is plain data; the SHA-256 of its canonical JSON is the stage key, and each recipe holds the keys of
the stages before it. The key of the last stage is the row key. Products of a stage lie in a folder named by its key,
so products of different recipes never meet, and going back to an older recipe finds its products again.

Names and places of code are shown beside a recipe and are not in its key, so a pure move makes nothing stale.
"""

import importlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rowproof import git
from rowproof.checkpoints import SUFFIX, file_name, uri_of
from rowproof.closure import OBSERVERS, Closure, CommitSources, FolderSources, HashCache, Sources, closure
from rowproof.equivalence import Equivalences
from rowproof.errors import ConfigError, RecordError, RowproofError
from rowproof.files import write_atomic, write_if_changed
from rowproof.hashing import sha256_hex
from rowproof.history import committed_file
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
    read_sums,
    read_timing,
)
from rowproof.memo import Memo
from rowproof.provenance import read_provenance
from rowproof.records import decode, digest, encode_document, encode_lines, split_lines
from rowproof.signals import settle, signal
from rowproof.stages import (
    EVERY_STAGE,
    FORM,
    LEARNED_STAGES,
    SCRIPTS,
    SHOWN,
    STAGES,
    TIMED_STAGES,
    bare,
    forget_keys,
    known_key,
    known_keys,
)

if TYPE_CHECKING:
    # Read by whoever computes recipes and not by jobs, which read a launch.
    from rowproof.boards import BoardSetup, Config
    from rowproof.families import Engine

# Import names whose distribution is called otherwise.
DISTRIBUTIONS = {"yaml": "pyyaml", "PIL": "pillow", "cv2": "opencv-python", "sklearn": "scikit-learn"}
KEY_DIGITS = 16


def read_pins(root: Path) -> dict[str, str]:
    """Distribution -> version from ``requirements.lock``.

    Raises:
        ConfigError: the lock is missing or holds a line that is no exact pin.
    """
    path = root / "requirements.lock"
    try:
        return parse_pins(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"requirements.lock: must be a readable file: {error.strerror}") from None


def parse_pins(text: str) -> dict[str, str]:
    """Distribution -> version from the text of a lock file.

    Raises:
        ConfigError: a line is no exact pin.
    """
    pins = {}
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        match = re.fullmatch(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.+!_-]+)", line)
        if match is None:
            raise ConfigError(f"requirements.lock:{number}: must be name==version, found {line!r}")
        pins[re.sub(r"[-_.]+", "-", match[1]).lower()] = match[2]
    return pins


@dataclass
class CodeTree:
    """Where code, data files and pins of recipes are read: a checkout, or a commit of it.

    Attributes:
        sources: the Python files.
        pins: distribution -> version, of the lock file.
        read: the bytes of a data file by its path; None where there is none.
        observers: the modules through which imports are not followed.
        closures: what was found before, by roots.
        timings: likewise recipes of what rows do in turns.
    """

    sources: Sources
    pins: Mapping[str, str]
    read: Callable[[str], bytes | None]
    observers: frozenset[str] = OBSERVERS
    closures: dict[tuple, Closure] = field(default_factory=dict)
    timings: dict[tuple, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def of_checkout(cls, root: Path, cache: HashCache, pins: Mapping[str, str]) -> "CodeTree":
        """The checkout at ``root``."""
        held: dict[str, bytes | None] = {}

        def read(path: str) -> bytes | None:
            # Rows of a board share their files.
            if path not in held:
                held[path] = (root / path).read_bytes() if (root / path).is_file() else None
            return held[path]

        return cls(FolderSources(root, cache), pins, read)

    @classmethod
    def of_commit(cls, root: Path, commit: str, pins: Mapping[str, str], observers: frozenset[str]) -> "CodeTree":
        """A commit in the repository of ``root``."""
        return cls(CommitSources(root, commit), pins, lambda path: committed_file(root, commit, path), observers)

    def raw(self, paths: Iterable[str]) -> dict[str, str]:
        """SHA-256 of these files as they are, by path."""
        return {path: sha256_hex(self.read(path) or b"") for path in sorted(set(paths))}

    def has_module(self, name: str) -> bool:
        """Whether there is such a module."""
        base = f"workflow/{name.replace('.', '/')}"
        return any(self.sources.analysis(path) is not None for path in (f"{base}.py", f"{base}/__init__.py"))

    def closure(self, scripts: tuple[str, ...], modules: tuple[str, ...]) -> Closure:
        """The code that these roots reach."""
        if (scripts, modules) not in self.closures:
            self.closures[scripts, modules] = closure(self.sources, scripts, modules, self.observers)
        return self.closures[scripts, modules]


def stages_of(setup: "BoardSetup", row: str) -> tuple[str, ...]:
    """The stages of a row, in order."""
    if row in setup.trainings:
        return LEARNED_STAGES
    return TIMED_STAGES if setup.engine.timing_module else STAGES


def row_recipes(setup: "BoardSetup", row: str, tree: CodeTree) -> dict[str, Any]:
    """The recipes of all stages of one row: stage -> recipe, in the order of the stages.

    Raises:
        ConfigError: a stage imports what no pin of the lock file fixes, or opens a data file that is missing.
    """
    recipes = record_recipes(setup, row, tree)
    if "time" in stages_of(setup, row):
        recipes["time"] = timing_recipe(setup, setup.plan.rows[row].campaign, tree)
    return recipes | late_recipes(setup, row, tree, recipes)


def record_recipes(setup: "BoardSetup", row: str, tree: CodeTree) -> dict[str, Any]:
    """The recipes of the stages up to the records."""
    data, engine = setup.row_setup(row), setup.engine
    programs = {"programs": list(engine.programs)} if engine.programs else {}
    own: dict[str, dict[str, Any]] = {
        "specs": {"producer": engine.specs_module, "setup": data},
        "simulate": {"producer": engine.simulate_module, **programs, "setup": data},
    }
    if row in setup.trainings:
        own["train"] = {"producer": engine.training_module, "setup": setup.training_setup(row)}
        own["select"] = {"producer": engine.validation_module, "setup": setup.selection_setup(row)}
    recipes: dict[str, Any] = {}
    upstream: dict[str, str] = {}
    for stage in (stage for stage in stages_of(setup, row) if stage in own):
        recipes[stage] = make_recipe(setup, stage, own[stage], upstream, tree)
        upstream = {stage: known_key(recipes[stage])}
    return recipes


def timing_recipe(
    setup: "BoardSetup", campaign: int, tree: CodeTree, records: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The recipe of what the clock shows in a campaign, the same for all of its rows: they are timed in turns.

    ``records`` gives the key of each row's records where it is not the one that its recipe has here.
    """
    from rowproof.boards import rows_of_campaign

    rows = [row for row in rows_of_campaign(setup.plan, setup.engine, campaign) if row in setup.board.rows]
    known = records or {}
    upstream = {row: known.get(row) or known_key(record_recipes(setup, row, tree)["simulate"]) for row in rows}
    key = (setup.board.board, campaign, tuple(upstream.items()))
    if key not in tree.timings:
        programs = {"programs": list(setup.engine.programs)} if setup.engine.programs else {}
        own = {"producer": setup.engine.timing_module, **programs, "setup": setup.board_setup(campaign)}
        tree.timings[key] = make_recipe(setup, "time", own, upstream, tree)
    return tree.timings[key]


def late_recipes(setup: "BoardSetup", row: str, tree: CodeTree, before: Mapping[str, Any]) -> dict[str, Any]:
    """The recipes of the stages after the records, which rest on the last of those ``before``."""
    board, plan = setup.board, setup.plan
    last = "time" if "time" in before else "simulate"
    summary: dict[str, Any] = {"statistics": plan.statistics.model_dump(), "partners": plan.partners_of(row)}
    if setup.engine.summary_module:
        summary = {"producer": setup.engine.summary_module, **summary}
    made = {"summary": make_recipe(setup, "summary", summary, {last: known_key(before[last])}, tree)}
    own = {"board": board.board, "row": row, "engine": board.engine, "tier": board.tier}
    made["bundle"] = make_recipe(setup, "bundle", own, {"summary": known_key(made["summary"])}, tree)
    return made


def make_recipe(
    setup: "BoardSetup",
    stage: str,
    own: Mapping[str, Any],
    upstream: Mapping[str, str],
    tree: CodeTree,
    script: str | None = None,
) -> dict[str, Any]:
    """One recipe, with what is shown beside it; ``script`` is that of the tree where it is not today's.

    Raises:
        ConfigError: see :func:`row_recipes`.
    """
    by_name = tuple(setup.engine.modules(stage, own["setup"])) if "setup" in own else ()
    data_files = tuple(setup.engine.data_files(stage, own["setup"])) if "setup" in own else ()
    at_commit = script is not None
    by_name = tuple(name for name in by_name if not at_commit or tree.has_module(name))
    script = script or SCRIPTS[stage]
    scripts = (script, *own.get("programs", ()))
    modules = (*([own["producer"]] if "producer" in own else []), *by_name)
    code = tree.closure(scripts, modules)
    data = {path: tree.read(path) for path in sorted(data_files)}
    missing = [path for path, found in data.items() if found is None]
    if missing:
        raise ConfigError(
            f"{', '.join(missing)}: stage {stage} of board {setup.board.board} reads it, found no such file"
        )
    return {
        "stage": stage,
        "script": script,
        **own,
        **({"modules": list(by_name)} if by_name else {}),
        "code": {"form": FORM, "key": code.key},
        "data": {path: setup.engine.data_digest(path, found) for path, found in data.items()},
        "pins": pins_of(code, tree.pins),
        "upstream": dict(upstream),
        "files": code.files,
        **({} if at_commit else {"raw": tree.raw((*code.files, *data))}),
        **(_fetched(setup.engine) if stage in ("train", "select", "simulate") else {}),
    }


def _fetched(engine: "Engine") -> dict[str, Any]:
    """What is shown of the files that a stage reads and fetches; their hashes stand in its code."""
    return {"fetched": list(engine.files), "fetched_by": engine.files_module} if engine.files else {}


def pins_of(code: Closure, pins: Mapping[str, str]) -> dict[str, str]:
    """Distribution -> pinned version, for everything foreign that the code imports.

    Raises:
        ConfigError: an import is of no distribution that the lock file pins.
    """
    found = {}
    for name, place in sorted(code.packages.items()):
        known = _pinned([DISTRIBUTIONS.get(name, name)], pins) or _pinned(_distributions().get(name, ()), pins)
        if not known:
            raise ConfigError(
                f"{place}: import {name}: what decides a record must be code of the project or of a distribution that "
                "requirements.lock pins, found neither: pin it there, or move the code into the package"
            )
        found[known[0]] = pins[known[0]]
    return dict(sorted(found.items()))


def _pinned(names: Iterable[str], pins: Mapping[str, str]) -> list[str]:
    """Those of these distributions that are pinned, as the lock file spells them."""
    return [name for name in (re.sub(r"[-_.]+", "-", each).lower() for each in names) if name in pins]


@cache
def _distributions() -> Mapping[str, list[str]]:
    """Import name -> distributions, of what is installed here."""
    return packages_distributions()


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
    runtime_min: int = 10
    campaign: int = 1
    # Attestations by which recorded code stands for that at hand, a line for each such stage.
    bridged: tuple[str, ...] = ()

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
    # Of timed boards, the rows that are timed together, by the number of the campaign.
    campaigns: dict[str, tuple[str, ...]] = field(default_factory=dict)

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
    # Whether its recipes were written in an earlier form and are restated here.
    earlier: bool = False

    @property
    def keys(self) -> dict[str, str]:
        """Stage keys of the recorded recipes (empty when unreadable)."""
        return known_keys(self.recipes) if self.recipes else {}


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
            found.recipes = _recorded_recipes((folder / "recipe.json").read_bytes(), found.provenance)
            found.earlier = any(recipe["code"].get("form") != FORM for recipe in found.recipes.values())
        except (OSError, ValueError, TypeError, AttributeError, RecordError):
            found.problems.append("recipe.json is damaged")
    return found


def _recorded_recipes(data: bytes, provenance: Mapping[str, Any] | None) -> dict[str, Any]:
    """The recipes of a bundle, with what its provenance shows beside them."""
    recipes = decode(data, "recipe.json")
    if tuple(recipes) not in (STAGES, LEARNED_STAGES, TIMED_STAGES) or not all(
        isinstance(recipe, dict) and isinstance(recipe.get("code"), dict) for recipe in recipes.values()
    ):
        raise ValueError
    places = (provenance or {}).get("places", {})
    for stage, recipe in recipes.items():
        # An earlier form holds them itself.
        beside = places.get(stage, {}) if "form" in recipe["code"] else {"files": recipe["code"]}
        recipes[stage] = {**recipe, **{key: value for key, value in beside.items() if key in SHOWN}}
    known_keys(recipes)
    return recipes


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
        if self.kind in ("code", "data"):
            verb = "added" if self.before is None else "removed" if self.after is None else "changed"
            return f"{self.stage}: {self.kind} {self.item} {verb}"
        return f"{self.stage}: {self.kind} {self.item}: {self.before!r} -> {self.after!r}"


def compare_recipes(before: dict[str, Any], after: dict[str, Any]) -> list[Change]:
    """The items that differ, each named once at the first stage that it enters."""
    changes: list[Change] = []
    named: set[tuple[str, str]] = set()
    for stage in EVERY_STAGE:
        was_recipe, now_recipe = before.get(stage, {}), after.get(stage, {})
        old, new = dict(_leaves(bare(was_recipe))), dict(_leaves(bare(now_recipe)))
        pairs = [("code", *change) for change in _code_changes(was_recipe, now_recipe)]
        # Paths hold dots, so data files are compared as whole keys.
        old_data, new_data = was_recipe.get("data", {}), now_recipe.get("data", {})
        pairs += [("data", key, old_data.get(key), new_data.get(key)) for key in sorted({*old_data, *new_data})]
        for key in sorted({*old, *new}):
            top = key.split(".")[0]
            if top not in ("code", "data", "upstream"):
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


def _code_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """The files by which the code of two recipes of a stage differs; a file that only moved is none of them."""
    if before.get("code") == after.get("code"):
        return []
    old, new = before.get("files", {}), after.get("files", {})
    moved = {*old.values()} & {*new.values()}
    changes = [
        (path, old.get(path), new.get(path))
        for path in sorted({*old, *new})
        if old.get(path) != new.get(path) and not {old.get(path, ""), new.get(path, "")} & moved
    ]
    script = str(after.get("script") or before.get("script"))
    return changes or [(f"{script} (what it reaches, or in which order)", before.get("code"), after.get("code"))]


@dataclass(frozen=True)
class RowStatus:
    """A row's current recipes against what its bundle records.

    Attributes:
        recipes: what holds for the row now. A stage whose recorded code is attested to be equivalent to that at hand
            keeps its recorded recipe.
        state: ``current``, ``missing`` (no bundle), ``stale`` (made by another recipe), ``damaged``, or
            ``provisional`` (made from a modified checkout that is clean by now).
        plan_path: the row's plan.
        bridges: of stages that keep their recorded code, the attestations that connect it with the code at hand.
    """

    name: str
    recipes: dict[str, Any]
    state: str
    recorded: Recorded
    plan_path: str
    bridges: dict[str, tuple[str, ...]] = field(default_factory=dict)

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


@dataclass
class Project:
    """What the statuses of all rows rest on, read once.

    Attributes:
        root: the checkout.
        results: the folder of the bundles.
        tree: its code, data files and pins.
        cache: hashes of files.
        memo: what follows from content alone.
        equivalences: the committed attestations.
        dirty: whether the checkout is modified.
    """

    root: Path
    results: Path
    tree: CodeTree
    cache: HashCache
    memo: Memo
    equivalences: Equivalences
    dirty: bool

    @classmethod
    def read(cls, root: Path, results: Path, work: Path | None) -> "Project":
        """Of the checkout ``root``; ``work`` is where results of earlier looks are kept, None for nowhere.

        Raises:
            ConfigError: the lock file or an attestation is malformed.
        """
        forget_keys()
        cache = HashCache(None if work is None else work / "cache" / "hashes.json")
        memo = Memo(None if work is None else work / "cache" / "memo.json")
        tree = CodeTree.of_checkout(root, cache, read_pins(root))
        return cls(root, results, tree, cache, memo, Equivalences.read(root), git.tree_state(root).dirty)

    def save(self) -> None:
        """Keep what was found for the next look."""
        self.cache.save()
        self.memo.save()


def board_statuses(setup: "BoardSetup", project: Project) -> dict[str, RowStatus]:
    """The status of every row of a board: its recipes compared with the bundle in the folder of results."""
    rows = list(setup.board.rows)
    recorded = {row: _recorded_row(setup, row, project) for row in rows}
    if any(each is not None and each.earlier for each in recorded.values()):
        from rowproof.restated import restate_board

        restate_board(setup, recorded, project)
    ours = {row: record_recipes(setup, row, project.tree) for row in rows}
    kept = {row: keep_equivalent(setup, row, ours[row], recorded[row], project.equivalences) for row in rows}
    keys = {row: known_key(kept[row].recipes["simulate"]) for row in rows}
    found = {}
    for row in rows:
        recipes, bridges = kept[row].recipes, kept[row].bridges
        if "time" in stages_of(setup, row):
            timing = timing_recipe(setup, setup.plan.rows[row].campaign, project.tree, keys)
            recipes["time"] = keep_stage(setup, row, "time", timing, recorded[row], project.equivalences, bridges)
        recipes |= late_recipes(setup, row, project.tree, recipes)
        found[row] = _status(setup, row, recipes, bridges, recorded[row], project)
    return found


def _recorded_row(setup: "BoardSetup", row: str, project: Project) -> Recorded | None:
    folder = project.results / setup.board.board / row
    linked = [path for path in (project.results, folder.parent, folder) if path.is_symlink()]
    if linked:
        return Recorded([f"{linked[0]} must be a folder, found a symbolic link: put the folder itself there"])
    if not folder.is_dir() or not any(folder.iterdir()):
        return None
    expected = bundle_files(setup.plan.grid.seeds, row in setup.trainings, bool(setup.engine.timing_module))
    return read_recorded(folder, expected, project.cache)


def _status(
    setup: "BoardSetup",
    row: str,
    recipes: dict[str, Any],
    bridges: dict[str, tuple[str, ...]],
    recorded: Recorded | None,
    project: Project,
) -> RowStatus:
    name = f"{setup.board.board}/{row}"
    if recorded is None:
        return RowStatus(name, recipes, "missing", Recorded(), setup.plan_path)
    provisional = not project.dirty and recorded.provenance is not None and recorded.provenance["dirty"]
    if recorded.recipes is not None and (recorded.keys != known_keys(recipes) or recorded.earlier):
        state = "stale"
    elif recorded.problems:
        state = "damaged"
    else:
        state = "provisional" if provisional else "current"
    return RowStatus(name, recipes, state, recorded, setup.plan_path, bridges)


@dataclass
class Kept:
    """The recipes of a row up to its records, recorded ones where they may stand for those at hand."""

    recipes: dict[str, Any]
    bridges: dict[str, tuple[str, ...]]


def keep_equivalent(
    setup: "BoardSetup",
    row: str,
    current: Mapping[str, Any],
    recorded: Recorded | None,
    equivalences: Equivalences,
) -> Kept:
    """Current recipes, in which a stage keeps its recorded recipe if the code of both is attested to be equivalent.

    Everything but the code must be equal, the stages before it must be kept or equal as well, and the bundle must hold
    the stage's products whole: what is made anew is made by the code at hand.
    """
    kept = Kept({}, {})
    for stage, recipe in current.items():
        upstream = {name: known_key(kept.recipes[name]) for name in recipe["upstream"]}
        now = recipe if upstream == recipe["upstream"] else {**recipe, "upstream": upstream}
        kept.recipes[stage] = keep_stage(setup, row, stage, now, recorded, equivalences, kept.bridges)
    return kept


def keep_stage(
    setup: "BoardSetup",
    row: str,
    stage: str,
    now: dict[str, Any],
    recorded: Recorded | None,
    equivalences: Equivalences,
    bridges: dict[str, tuple[str, ...]],
) -> dict[str, Any]:
    """The recorded recipe of one stage, if it may stand for the recipe ``now``; else that one.

    What connects them is added to ``bridges``.
    """
    was = (recorded.recipes or {}).get(stage) if recorded is not None else None
    if was is None or known_key(was) == known_key(now) or not _holds_products(setup, row, stage, recorded):
        return now
    if any(was.get(key) != now[key] for key in bare(now) if key not in ("code", "pins")):
        return now
    pins = {**was["pins"], **now["pins"]}
    if set(bare(was)) != set(bare(now)) or any(
        now["pins"].get(n, v) != v or was["pins"].get(n, v) != v for n, v in pins.items()
    ):
        return now
    chain = equivalences.chain(f"{setup.board.board}/{row}", stage, was["code"], now["code"])
    if chain is None:
        return now
    bridges[stage] = chain
    return was


def _holds_products(setup: "BoardSetup", row: str, stage: str, recorded: Recorded) -> bool:
    """Whether a bundle holds everything that a stage made, undamaged and from a clean checkout."""
    seeds = setup.plan.grid.seeds
    files = {
        "train": [name for seed in seeds for name in learned_files(seed)],
        "select": [name for seed in seeds for name in learned_files(seed)],
        "simulate": [episode_file(seed) for seed in seeds],
        "specs": [episode_file(seed) for seed in seeds],
        "time": [TIMING],
    }
    clean = recorded.provenance is not None and not recorded.provenance["dirty"]
    return clean and recorded.good.issuperset(files[stage])


def all_statuses(root: Path, workdir: Path) -> list[RowStatus]:
    """The status of every row of every configured board; only looks."""
    statuses: dict[str, RowStatus] = {}
    prepare(root, workdir, touch=False, statuses=statuses)
    return list(statuses.values())


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
    project = Project.read(root, results, None)
    statuses: dict[str, dict[str, RowStatus]] = {}
    for plan in (launch.row(name) for name in names):
        if plan.board not in statuses:
            statuses[plan.board] = board_statuses(setups[plan.board], project)
        status = statuses[plan.board][plan.row]
        # In an empty folder nothing is kept yet; what is taken decides what the rows there are built by.
        plan = replace(plan, keys=known_keys(status.recipes))
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


def prepare(root: Path, workdir: Path, touch: bool = True, statuses: dict[str, RowStatus] | None = None) -> Launch:
    """Compute all recipes and, with ``touch``, write the recipe files that the rules depend on.

    Args:
        root: the project (code and configuration).
        workdir: the folder that holds ``work/`` and ``results/``; usually the project as well.
        touch: False only looks.
        statuses: takes the status of each row by its name, where they are wanted.

    Raises:
        ConfigError: any configuration file is wrong.
    """
    from rowproof.boards import load_config
    from rowproof.plan_history import bindings, check_unchanged
    from rowproof.plan_lock import check_lock

    config, setups = load_config(root)
    project = Project.read(root, workdir / "results", workdir / "work" if touch else None)
    if not touch:
        # Only looked into, never saved.
        project.memo = Memo(workdir / "work" / "cache" / "memo.json")
    tree_state = git.tree_state(root)
    committed = _committed_plans(root, setups, workdir)
    rows, boards = [], []
    for setup in setups.values():
        check_lock(setup)
        check_unchanged(setup, committed.get(setup.board.board, {}))
        if touch:
            for row in setup.board.rows:
                settle(_files(workdir / "results" / f"{setup.board.board}/{row}"))
        bound = bindings(setup, project.memo)
        for row, status in board_statuses(setup, project).items():
            if statuses is not None:
                statuses[status.name] = status
            rows.append(_prepare_row(config, setup, row, status, bound[row].blob, workdir, project, touch))
    for setup in setups.values():
        boards.append(_prepare_board(setup, rows, root, workdir, project, touch))
    if touch:
        project.save()
    return Launch(str(root), tree_state.commit, tree_state.dirty, tuple(rows), tuple(boards))


def _committed_plans(root: Path, setups: Mapping[str, "BoardSetup"], workdir: Path) -> dict[str, dict[str, bytes]]:
    """Board -> row -> the plan in its bundle, for bundles that are committed in this checkout."""
    if workdir.resolve() != root.resolve():
        return {}
    listed = git.run(root, "ls-tree", "-r", "-z", "--name-only", "HEAD", "--", "results")
    names = set((listed or b"").decode("utf-8", "surrogateescape").split("\0"))
    found: dict[str, dict[str, bytes]] = {}
    for board, setup in setups.items():
        for row in setup.board.rows:
            path = f"results/{board}/{row}/plan.yaml"
            data = git.file_at(root, "HEAD", path) if path in names else None
            if data is not None:
                found.setdefault(board, {})[row] = data
    return found


def _prepare_row(
    config: "Config",
    setup: "BoardSetup",
    row: str,
    status: RowStatus,
    plan_blob: str,
    workdir: Path,
    project: Project,
    touch: bool,
) -> RowPlan:
    grid, cache = setup.plan.grid, project.cache
    folder = workdir / "results" / f"{setup.board.board}/{row}"
    plan = RowPlan(
        board=setup.board.board,
        row=row,
        keys=known_keys(status.recipes),
        seeds=tuple(grid.seeds),
        partners=tuple(setup.plan.partners_of(row)),
        shard_by=config.shard_by,
        plan_path=setup.plan_path,
        plan_blob=plan_blob,
        state=status.state,
        reasons=tuple(status.reasons),
        campaign=setup.plan.rows[row].campaign,
        bridged=tuple(f"{stage}: {' then '.join(chain)}" for stage, chain in status.bridges.items()),
        runtime_min=setup.engine.runtime_min,
    )
    if project.dirty:
        apart = (s for s in [*plan.keys][:-1] if not all((workdir / path).exists() for path in plan.products(s)))
        plan = replace(plan, dirty_stages=(*apart, "bundle"))
    if touch:
        recipe_paths = {stage: workdir / plan.recipe_path(stage) for stage in plan.keys}
        for stage, path in recipe_paths.items():
            write_if_changed(path, encode_document(status.recipes[stage]), durable=False)
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


# What was found of pages by this process, by all that they are made of.
_PAGES: dict[str, list[str]] = {}


def _page_reason(setup: "BoardSetup", folder: Path, root: Path, key: str, project: Project) -> str | None:
    """How a page differs from what its rows render to, whatever it says of itself; None when it does not."""
    from rowproof.evidence.rendered import page_problems

    # All that the page is made of: the bundle lists every other file of its row, but for what a clock showed.
    results = folder.parents[setup.board.board.count("/")]
    files = [path for name in ("bundle.json", TIMING) for path in folder.glob(f"*/{name}")]
    files += [results / name / "bundle.json" for name in _foreign(setup)]
    files += [path for path in folder.iterdir() if path.is_file()]
    read = sorted((path.relative_to(results).as_posix(), project.cache.sha256(path)) for path in files)
    head = (git.run(root, "rev-parse", "HEAD") or b"").decode().strip()
    name = f"page:{key}:{digest(read)}:{head}"
    if name not in _PAGES:
        _PAGES[name] = project.memo.get(name, lambda: page_problems(folder, root, setup, key)[0])
    problems = _PAGES[name]
    return f"a rendered file is not what the rows render to: {problems[0]}" if problems else None


def _foreign(setup: "BoardSetup") -> list[str]:
    return setup.plan.admission.foreign_rows if setup.plan.admission else []


def _campaigns(setup: "BoardSetup") -> dict[str, tuple[str, ...]]:
    from rowproof.boards import rows_of_campaign

    if not setup.engine.timing_module:
        return {}
    numbers = sorted({setup.plan.rows[row].campaign for row in setup.board.rows})
    found = {str(number): rows_of_campaign(setup.plan, setup.engine, number) for number in numbers}
    return {number: tuple(row for row in rows if row in setup.board.rows) for number, rows in found.items()}


ADMISSION_FILES = ("admission_report.json", "admission_report.md")
LEARNED_BOARD_FILES = ("training.svg",)
BOARD_FILES = ("leaderboard.csv", "leaderboard.json", "leaderboard.md", "leaderboard.svg")


def board_recipe(setup: "BoardSetup", root: Path, tree: CodeTree) -> dict[str, Any]:
    """The recipe of a board's page; what its rows hold is no part of it.

    Raises:
        ConfigError: see :func:`row_recipes`.
    """
    board = setup.board
    facts = f"resources/published/{board.board}.yaml"
    page = setup.engine.page_module
    # Of timed rows it computes what follows from the times.
    figures = (setup.engine.summary_module,) if setup.engine.timing_module and setup.engine.summary_module else ()
    code = tree.closure((SCRIPTS["leaderboard"],), (*((page,) if page else ()), *figures))
    return {
        "stage": "leaderboard",
        "script": SCRIPTS["leaderboard"],
        "board": board.model_dump(by_alias=True),
        **({"producer": page} if page else {}),
        **({"modules": list(figures)} if figures else {}),
        "code": {"form": FORM, "key": code.key},
        "data": {facts: sha256_hex((root / facts).read_bytes())} if (root / facts).is_file() else {},
        "pins": pins_of(code, tree.pins),
        "admission": setup.plan.admission.model_dump() if setup.plan.admission else None,
        "not_shown": {n: row.withdrawn for n, row in setup.plan.rows.items() if n not in board.rows},
        "files": code.files,
        "raw": tree.raw(code.files),
    }


def _prepare_board(
    setup: "BoardSetup",
    all_rows: list[RowPlan],
    root: Path,
    workdir: Path,
    project: Project,
    touch: bool,
) -> BoardPlan:
    board, cache, tree = setup.board, project.cache, project.tree
    rows = [row for row in all_rows if row.board == board.board]
    named = setup.plan.admission.foreign_rows if setup.plan.admission else []
    foreign = [row for row in all_rows if row.name in named]
    if len(foreign) != len(named):
        raise ConfigError(f"{setup.plan_path}: admission: a4 must name a row of a configured board, found {named}")
    folder = workdir / "results" / board.board
    recipe = board_recipe(setup, root, tree)
    key = known_key(recipe)
    files = BOARD_FILES + (ADMISSION_FILES if setup.plan.admission else ())
    files += LEARNED_BOARD_FILES if any(row.learned for row in rows) else ()
    reason = _board_reason(folder, key, rows, foreign, cache) or _page_reason(setup, folder, root, key, project)
    current = reason is None
    plan = BoardPlan(
        board.board,
        tuple(row.row for row in rows),
        key,
        "current" if current else "stale",
        reason,
        files,
        tuple(row.name for row in foreign),
        _campaigns(setup),
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
                **{key: tuple(row[key]) for key in ("seeds", "partners", "reasons", "dirty_stages", "bridged")},
            }
        )
        for row in data["rows"]
    )
    boards = tuple(
        BoardPlan(**{**board, **{key: tuple(board[key]) for key in ("rows", "files", "foreign_rows")}})
        for board in data["boards"]
    )
    return Launch(data["root"], data["commit"], data["dirty"], rows, boards)
