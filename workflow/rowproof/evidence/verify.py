"""Verification of rowproof bundles.

Nothing in a bundle is believed that can be derived: the plan says which records must exist, every number is computed
again from them, every hash and identity again from its material. What only git history can tell is looked up there,
and called unknown where the history is not at hand.
"""

import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from rowproof import git
from rowproof.audit import unwatched
from rowproof.boards import (
    Board,
    Plan,
    Read,
    board_setup,
    project_reader,
    row_setup,
    selection_setup,
    training_setup,
)
from rowproof.checkpoints import uri_of
from rowproof.closure import FolderSources, HashCache, closure
from rowproof.equivalence import Equivalences, how_many
from rowproof.errors import ConfigError, HistoryGap, RowproofError
from rowproof.evidence import bundle as writer
from rowproof.evidence.attested import chain_problems
from rowproof.evidence.checks import CheckTable
from rowproof.evidence.learning import selection_problems, training_problems
from rowproof.evidence.replay import replay_at
from rowproof.evidence.statistics import row_summary
from rowproof.evidence.weights import replay_validation, shared_weights
from rowproof.families import Engine, engines
from rowproof.hashing import sha256_hex
from rowproof.history import ForeignCommitError, committed_file, first_commit_with, require_ancestor
from rowproof.identities import identity, member_uri
from rowproof.layout import (
    BUNDLE_SCHEMA,
    FIXED_FILES,
    PROVENANCE,
    SUMS,
    TIMING,
    UNLISTED,
    bundle_files,
    episode_file,
    learned_files,
    read_sums,
    read_timing,
    render_sums,
)
from rowproof.partners import PartnerSet
from rowproof.plan_history import slice_digest
from rowproof.plan_lock import lock_path, pinned, read_lock
from rowproof.provenance import read_provenance
from rowproof.recipes import pins_of
from rowproof.records import (
    check_fields,
    decode,
    digest,
    encode_document,
    encode_line,
    split_lines,
)
from rowproof.restated import tree_at
from rowproof.stages import FORM, LEARNED_STAGES, SCRIPTS, STAGES, TIMED_STAGES
from rowproof.strict_yaml import parse, validate
from rowproof.versions import installed

PACKAGE_ROOT = Path(__file__).resolve().parents[3]
# The sources at hand, analysed once for all rows that this process verifies.
_SOURCES = HashCache(None)
# No bundle of ours comes near; a file beyond it is not read into memory.
MAX_FILE_BYTES = 1 << 30
# Nor does any plan; specs of one beyond it are not generated.
MAX_RECORDS = 1_000_000

BUNDLE_FIELDS = {
    "schema": (str,),
    "board": (str,),
    "row": (str,),
    "task": (str,),
    "engine": (str,),
    "tier": (str,),
    "row_key": (str,),
    "stage_keys": (dict,),
    "plan": (dict,),
    "policy": (dict,),
    "partners": (dict,),
    "seed_schedule": (dict,),
    "summary": (dict,),
    "manifest": (dict,),
}
PLAN_FIELDS = {"path": (str,), "blob": (str,)}
CODE_FIELDS = {"form": (int,), "key": (str,)}
_SET_UP = {"setup": (dict,)}
_CODE = {"code": (dict,), "data": (dict,), "pins": (dict,), "upstream": (dict,)}
RECIPE_FIELDS = {
    stage: {"stage": (str,), **own, **_CODE}
    for stage, own in {
        "train": _SET_UP,
        "select": _SET_UP,
        "specs": _SET_UP,
        "simulate": _SET_UP,
        "time": _SET_UP,
        "summary": {"statistics": (dict,), "partners": (list,)},
        "bundle": {"board": (str,), "row": (str,), "engine": (str,), "tier": (str,)},
    }.items()
}


def is_bundle(folder: Path) -> bool:
    """Whether ``folder`` looks like a rowproof bundle (and not like a published one)."""
    return (folder / "recipe.json").exists() or (folder / PROVENANCE).exists()


def verify_bundle(folder: Path, root: Path | None, allow_dirty: bool = False) -> CheckTable:
    """Check the bundle in ``folder``.

    Args:
        folder: the bundle.
        root: the project whose boards, partners and history it is held against; None when there is none.
        allow_dirty: let a bundle from a modified checkout pass its eligibility check (for work in progress).

    Raises:
        RowproofError: ``folder`` is not a folder.
    """
    if not folder.is_dir():
        raise RowproofError(f"{folder}: must be a bundle folder, found none: give the path of a row under results/")
    checker = _Checker(folder, root, allow_dirty)
    checker.run()
    return checker.table


@unwatched()
def require_verified(folder: Path, root: Path) -> None:
    """Raise unless the bundle verifies (a modified checkout is allowed, since the bundle says so itself).

    Raises:
        RowproofError: naming every failing check.
    """
    table = verify_bundle(folder, root, allow_dirty=True)
    if not table.passed:
        lines = [f"{check.id}: {check.found} [must hold: {check.must}]" for check in table.failures]
        raise RowproofError("the new bundle must verify, found:\n" + "\n".join(lines))


class _Checker:
    def __init__(self, folder: Path, root: Path | None, allow_dirty: bool) -> None:
        self.folder = folder
        self.root = root
        self.allow_dirty = allow_dirty
        self.table = CheckTable(str(folder))
        self.files: dict[str, bytes] = {}
        self.documents: dict[str, Any] = {}
        self.plan: Plan | None = None
        self.engine: Engine | None = None
        self.setup: dict[str, Any] | None = None
        # Of learned rows: seed -> the checkpoint that plays it, once its evidence was read.
        self.selected: dict[int, dict[str, Any]] = {}
        # Why the project's own versions of files cannot all be read; what differs from the others is then unknown.
        self.gap: str | None = None

    @property
    def learned(self) -> bool:
        """Whether the plan says that the row's policy is trained."""
        row = self.plan.rows.get(self.documents.get("bundle.json", {}).get("row")) if self.plan else None
        return row is not None and row.training is not None

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages that the row must have."""
        return LEARNED_STAGES if self.learned else TIMED_STAGES if self.timed else STAGES

    @property
    def timed(self) -> bool:
        """Whether the row's runs are also timed."""
        return self.engine is not None and self.engine.timing_module is not None

    def run(self) -> None:
        self._files()
        self._documents()
        self._commits_here()
        self._plan()
        self._sums()
        self._bundle()
        self._recipe()
        if self.learned:
            self._learning()
        self._partners()
        self._attested()
        self._records()
        self._provenance()
        self._history()

    # The groups below each add checks; a group that lacks its input fails by name and leaves the others to run.

    def _files(self) -> None:
        must = "every entry is a regular file of bounded size, no link, no folder"
        with self.table.guard("files:plain", must):
            odd = []
            for path in sorted(self.folder.iterdir()):
                status = path.lstat()
                if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1 or status.st_size > MAX_FILE_BYTES:
                    odd.append(path.name)
                else:
                    self.files[path.name] = path.read_bytes()
            self.table.add("files:plain", not odd, must, f"{len(self.files)} files, odd entries {odd}")

    def _documents(self) -> None:
        must = "UTF-8, no byte-order mark, canonical JSON with unique keys, exactly one final newline"
        learned = sorted(name for name in self.files if re.fullmatch(r"(training|selection)_seed\d+\.json", name))
        for name in ("bundle.json", "recipe.json", "identities.json", PROVENANCE, *learned):
            with self.table.guard(f"encoding:{name}", must):
                if name not in self.files:
                    raise RowproofError(f"{name} is missing")
                document = decode(self.files[name], name)
                same = encode_document(document) == self.files[name]
                self.table.add(f"encoding:{name}", same, must, "canonical" if same else "other bytes than canonical")
                if isinstance(document, dict):
                    self.documents[name] = document

    def _plan(self) -> None:
        must = "plan.yaml is a valid plan with the parameters of its engine"
        with self.table.guard("plan:model", must):
            document = parse(self.files["plan.yaml"], "plan.yaml")
            plan = validate(document, Plan)
            engine = engines().get(self.documents.get("bundle.json", {}).get("engine"))
            if engine is None:
                raise RowproofError(f"no engine is named {self.documents.get('bundle.json', {}).get('engine')!r}")
            for row in plan.rows:
                engine.cell_model.model_validate(plan.cell_of(row))
            self.plan, self.engine = plan, engine
            self.table.add("plan:model", True, must, f"plan {plan.plan} of board {plan.board}")
        must = "the names of the files are those that the plan's seeds demand"
        if self.plan is None:
            expected = [n for n in self.files if n not in FIXED_FILES and n.startswith("episodes_seed")]
            self.table.add("files:set", False, must, f"no readable plan; found {sorted(expected)}")
            return
        wanted = set(bundle_files(self.plan.grid.seeds, self.learned, self.timed))
        with self.table.guard("files:set", must):
            present = {path.name for path in self.folder.iterdir()}
            found = f"missing {sorted(wanted - present)}, unexpected {sorted(present - wanted)}"
            self.table.add("files:set", wanted == present, must, found)

    def _sums(self) -> None:
        covered = {name: data for name, data in self.files.items() if name not in (SUMS, *UNLISTED)}
        must = f"{SUMS} lists every file but itself, {' and '.join(UNLISTED)}, each once, sorted by name"
        with self.table.guard("sums:coverage", must):
            if SUMS not in self.files:
                raise RowproofError(f"{SUMS} is missing")
            sums = read_sums(self.files[SUMS])
            same = list(sums) == sorted(covered)
            self.table.add("sums:coverage", same, must, f"{len(sums)} entries for {len(covered)} files")
            for name in sorted(set(sums) & set(covered)):
                holds = sums[name] == sha256_hex(covered[name])
                self.table.add(f"sums:{name}", holds, "SHA-256 as listed", "as listed" if holds else "differs")
            same = render_sums(covered) == self.files[SUMS]
            self.table.add("sums:bytes", same, f"{SUMS} is written as sha256sum writes it", "yes" if same else "no")

    def _bundle(self) -> None:
        must = "bundle.json has the declared keys and types"
        with self.table.guard("bundle:schema", must):
            document = check_fields(self.documents.get("bundle.json"), BUNDLE_FIELDS, "bundle.json")
            if document["schema"] != BUNDLE_SCHEMA:
                raise RowproofError(f"schema must be {BUNDLE_SCHEMA}, found {document['schema']!r}")
            self.table.add("bundle:schema", True, must, BUNDLE_SCHEMA)
        document = self.documents.get("bundle.json", {})
        must = "the manifest lists every other identity file with its SHA-256"
        with self.table.guard("bundle:manifest", must):
            outside = ("bundle.json", SUMS, *UNLISTED)
            wanted = {n: sha256_hex(data) for n, data in sorted(self.files.items()) if n not in outside}
            stated = document.get("manifest", {})
            wrong = sorted({n for n in {*wanted, *stated} if wanted.get(n) != stated.get(n)})
            holds = not wrong and list(stated) == sorted(stated)
            self.table.add("bundle:manifest", holds, must, f"{len(stated)} entries, wrong or missing {wrong}")
        must = "REPRO.txt is the command that builds this row"
        command = f"snakemake results/{document.get('board')}/{document.get('row')}\n".encode()
        text = self.files.get("REPRO.txt", b"")
        self.table.add("repro:text", text == command, must, text.decode("utf-8", "replace").strip())
        # Not resolved: a linked folder is judged by the place that it claims.
        parts = self.folder.absolute().parts
        if "results" in parts[-4:-2]:
            must = "a bundle under results/ lies in the folder of its own board and row"
            place = "/".join(parts[len(parts) - parts[::-1].index("results") :])
            own = f"{document.get('board')}/{document.get('row')}"
            self.table.add("bundle:place", place == own, must, f"{own} in results/{place}")

    def _recipe(self) -> None:
        recipes, document = self.documents.get("recipe.json", {}), self.documents.get("bundle.json", {})
        must = "every recipe has the keys and types of its stage, and no others"
        with self.table.guard("recipe:schema", must):
            for stage in self.stages:
                check_fields(recipes[stage], RECIPE_FIELDS[stage], f"recipe.json: {stage}")
                check_fields(recipes[stage]["code"], CODE_FIELDS, f"recipe.json: {stage}: code")
            check_fields(document["plan"], PLAN_FIELDS, "bundle.json: plan")
            self.table.add("recipe:schema", True, must, f"{len(recipes)} stages")
        must = "recipe.json holds all stages in order, each with the keys of the one before it"
        with self.table.guard("recipe:chain", must):
            upstream: dict[str, str] = {}
            broken = [] if tuple(recipes) == self.stages else ["stages"]
            for stage in self.stages:
                found = recipes[stage]["upstream"]
                if stage == "time":
                    # All rows of the board are timed in turns, so it rests on the records of each.
                    found = {"simulate": found.get(document["row"])}
                if recipes[stage]["stage"] != stage or found != upstream:
                    broken.append(stage)
                upstream = {stage: digest(recipes[stage])}
            self.table.add("recipe:chain", not broken, must, f"broken at {broken}" if broken else "whole")
        must = "row key and stage keys are the digests of the recipes"
        with self.table.guard("recipe:keys", must):
            keys = {stage: digest(recipe) for stage, recipe in recipes.items()}
            holds = _same(keys, document.get("stage_keys")) and keys.get("bundle") == document.get("row_key")
            self.table.add("recipe:keys", holds, must, f"row key {str(keys.get('bundle'))[:16]}")
        must = "the plan lists this row with this policy, and its blob id is the recorded one"
        with self.table.guard("plan:row", must):
            if self.plan is None:
                raise RowproofError("no readable plan")
            last = recipes["bundle"]
            blob = git.blob_id(self.files["plan.yaml"])
            planned = self.plan.rows.get(document["row"])
            stated = {
                "board": (document["board"], self.plan.board, last["board"]),
                "row": (document["row"], last["row"]),
                "task": (document["task"], self.plan.task),
                "engine": (document["engine"], last["engine"]),
                "tier": (document["tier"], last["tier"]),
                "blob": (document["plan"].get("blob"), blob),
                "policy": (document["policy"].get("name"), planned.policy if planned else "(row not in plan)"),
            }
            differing = {key: values for key, values in stated.items() if any(v != values[0] for v in values)}
            self.table.add("plan:row", not differing, must, f"differing {differing}" if differing else f"blob {blob}")
        must = "each stage was run by the code that the engine names: that at hand, or code at the same place"
        with self.table.guard("recipe:places", must):
            wrong = [stage for stage in self.stages if not (self._same_code(stage) or self._same_places(stage))]
            self.table.add("recipe:places", not wrong, must, f"other places at {wrong}" if wrong else "as named")
        self._project_plan(document)
        self._project_board(document)

    def _bridge(self, stage: str) -> tuple[str, ...] | None:
        """The attestations that connect the recorded code of a stage with that at hand, none if both are the same.

        None where nothing connects them.
        """
        if self._same_code(stage):
            return ()
        document, recipe = self.documents["bundle.json"], self.documents["recipe.json"][stage]
        here = {"form": FORM, "key": _key_here(_roots(self._places(stage)))}
        known = _equivalences(self.root) if self.root is not None else Equivalences()
        return known.chain(f"{document['board']}/{document['row']}", stage, recipe["code"], here)

    def _attested(self) -> None:
        """What stands for the code at hand is attested as it must be."""
        must = "recorded code that stands for the code at hand is connected with it by sound attestations"
        with self.table.guard("code:attested", must):
            assert self.engine is not None
            document = self.documents["bundle.json"]
            bridges = {stage: self._bridge(stage) for stage in self.stages if stage not in ("summary", "bundle")}
            chains = {stage: chain for stage, chain in bridges.items() if chain}
            if not chains or self.root is None:
                return
            row, replays = f"{document['board']}/{document['row']}", self.engine.replays
            count = how_many(replays, document["tier"])
            problems = [
                f"{stage}: {each}"
                for stage, chain in chains.items()
                for each in chain_problems(chain, self.root, row, stage, count)
            ]
            told = "; ".join(f"{stage} by {', '.join(chain)}" for stage, chain in chains.items())
            # An exact engine is run again in full here, which is more than its attestation says.
            shown = replays and set(chains) <= {"specs", "simulate"}
            holds = False if problems else True if shown else None
            found = "; ".join(problems) or (
                told if shown else f"{told}; not run again here: rowproof attest --check does"
            )
            self.table.add("code:attested", holds, must, found)

    def _places(self, stage: str) -> dict[str, Any]:
        """Where the code of a stage lies today, as the row's engine names it."""
        assert self.engine is not None
        engine, recipe = self.engine, self.documents["recipe.json"][stage]
        producer = {
            "train": engine.training_module,
            "select": engine.validation_module,
            "specs": engine.specs_module,
            "simulate": engine.simulate_module,
            "time": engine.timing_module,
            "summary": engine.summary_module,
        }.get(stage)
        programs = list(engine.programs) if stage in ("simulate", "time") else []
        modules = list(engine.modules(stage, recipe["setup"])) if "setup" in recipe else []
        return {
            "script": SCRIPTS[stage],
            **({"producer": producer} if producer else {}),
            **({"programs": programs} if programs else {}),
            **({"modules": modules} if modules else {}),
        }

    def _stated_places(self, stage: str) -> dict[str, Any]:
        """Where the code of a stage lay when it ran, by the word of the provenance."""
        places = self.documents.get(PROVENANCE, {}).get("places", {})
        return places.get(stage, {}) if isinstance(places, dict) else {}

    def _same_places(self, stage: str) -> bool:
        stated, today = self._stated_places(stage), self._places(stage)
        # Older code may not have loaded by name what today's does.
        return all(stated.get(key) == today.get(key) for key in ("script", "producer", "programs")) and set(
            stated.get("modules", ())
        ) <= set(today.get("modules", ()))

    def _learning(self) -> None:
        """What only learned rows have: trainings, selections, checkpoints."""
        assert self.plan is not None
        recipes, document = self.documents.get("recipe.json", {}), self.documents.get("bundle.json", {})
        must = "trainings and selection are set up as the plan and the project's training configuration demand"
        with self.table.guard("training:plan", must):
            if self.engine is None or self.engine.training_model is None:
                raise RowproofError("no engine with learned policies")
            recorded, row = recipes["train"]["setup"], document["row"]
            name = self.plan.rows[row].training
            config, source = self._training_config(str(name), recorded["training"])
            demanded = training_setup(self.plan, row, config, self.engine)
            wrong = [] if _same(demanded, recorded) else ["setup of the training"]
            holds = False if wrong else (source is not None or None)
            found = f"differing {wrong}" if wrong else f"equals {source}" if source else "no project to compare with"
            self.table.add("training:plan", holds, must, found)
        for seed in self.plan.grid.seeds:
            self._learned_seed(seed, recipes)
        must = "every seed was trained by itself: no checkpoint, curve or weights of one are those of another"
        with self.table.guard("training:distinct", must):
            seeds = self.plan.grid.seeds
            weights = {seed: self.files[learned_files(seed)[2]] for seed in seeds}
            trainings = {seed: self.documents.get(learned_files(seed)[0]) for seed in seeds}
            if None in trainings.values():
                raise RowproofError("no readable training of every seed")
            problems = shared_weights(trainings, weights)
            found = "; ".join(problems[:5])
            way_out = "train each seed by itself: remove the row and build it again"
            self.table.add("training:distinct", not problems, must, f"{found}: {way_out}" if problems else "distinct")

    def _training_config(self, name: str, recorded: Mapping[str, Any]) -> tuple[BaseModel, str | None]:
        """The project's training configuration and where it was found: today's, or at a commit of the bundle.

        Without a project it is the recorded one, from nowhere.
        """
        assert self.engine is not None and self.engine.training_model is not None
        model, path = self.engine.training_model, f"config/training/{name}.yaml"
        if self.root is None:
            return _as_model(recorded, model, "recipe.json"), None
        first = None
        for where, data in self._versions(path):
            config = validate(parse(data, path), model)
            found = config, f"{path} {where}"
            if _same(config.model_dump(by_alias=True), recorded):
                return found
            first = first or found
        self._require_whole()
        if first is None:
            raise RowproofError(f"the project must have {path}, found none today or at the bundle's commits")
        return first

    def _learned_seed(self, seed: int, recipes: Mapping[str, Any]) -> None:
        """Training, selection and checkpoint of one training seed."""
        training_name, selection_name, checkpoint_name = learned_files(seed)
        must = "the training ran to its end and names a checkpoint at every step that the configuration demands"
        with self.table.guard(f"training:seed{seed}", must):
            problems = training_problems(self.documents.get(training_name), seed, recipes["train"]["setup"]["training"])
            self.table.add(f"training:seed{seed}", not problems, must, "; ".join(problems) or "whole")
        must = "every checkpoint was judged in the planned episodes, and the best of them, then the earliest, was taken"
        with self.table.guard(f"selection:seed{seed}", must):
            setup = recipes["select"]["setup"]
            candidates = self.documents[training_name]["checkpoints"]
            problems = selection_problems(self.documents.get(selection_name), seed, candidates, setup["limits"])
            if not problems:
                chosen = self.documents[selection_name]
                problems = [
                    f"step {each['step']}: {problem}"
                    for each in chosen["candidates"]
                    for problem in self._checks().check_episodes(setup, each["episodes"])
                ]
                self.selected[seed] = chosen["selected"]
            found = "; ".join(problems[:5]) or f"step {self.selected[seed]['step']}"
            self.table.add(f"selection:seed{seed}", not problems, must, found)
        must = "the checkpoint is the selected one, by its hash, and holds players of this task"
        with self.table.guard(f"checkpoint:seed{seed}", must):
            if seed not in self.selected:
                raise RowproofError("no readable selection")
            uri, data = self.selected[seed]["uri"], self.files[checkpoint_name]
            if uri_of(data) != uri:
                raise RowproofError(f"{checkpoint_name} is {uri_of(data)}, selected is {uri}")
            self._checks().check_checkpoint(recipes["select"]["setup"], uri, data)
            self.table.add(f"checkpoint:seed{seed}", True, must, uri)
        if self.engine is None or not self.engine.replays or self.engine.validation_module is None:
            return
        must = "running the selected checkpoint's validation again gives every episode again"
        with self.table.guard(f"validation:seed{seed}", must):
            if any(check.id == "plan:project" for check in self.table.failures):
                raise HistoryGap("not run: the plan is none of the project's")
            chosen, setup = self.documents[selection_name], recipes["select"]["setup"]
            problems = replay_validation(self.engine.validation_module, setup, chosen, self.files[checkpoint_name])
            self.table.add(f"validation:seed{seed}", not problems, must, "; ".join(problems) or "equal")

    def _project_plan(self, document: Mapping[str, Any]) -> None:
        must = (
            "what binds the row in the plan is what it is in the project's plan, and the project committed this version"
        )
        with self.table.guard("plan:project", must):
            if self.root is None:
                self.table.add("plan:project", None, must, "no project at hand")
                return
            assert self.engine is not None
            path, blob = str(document["plan"]["path"]), git.blob_id(self.files["plan.yaml"])
            expected = f"config/plans/{self.plan.plan if self.plan else '?'}.yaml"
            if path != expected:
                raise RowproofError(f"the plan's path must be {expected}, found {path}")
            data = (self.root / path).read_bytes() if (self.root / path).is_file() else None
            if data is None:
                raise RowproofError(f"the project must have {path}, found none")
            row = document["row"]
            own = slice_digest(self.files["plan.yaml"], row, self.engine)
            if own is None or slice_digest(data, row, self.engine) != own:
                raise RowproofError(
                    f"{path} says something else of {row} today: what has records stays, another plan is another board"
                )
            commit = first_commit_with(self.root, "HEAD", path, blob)
            what = f"equals {path}" if git.blob_id(data) == blob else "an earlier version"
            found = f"{what}, {commit}" if commit else f"no commit of this history has {path} as {blob}: commit it"
            self.table.add("plan:project", commit is not None, must, found)

    def _project_board(self, document: Mapping[str, Any]) -> None:
        must = "task, engine, tier, plan and policy are those of the project's board, today or at the bundle's commit"
        with self.table.guard("board:project", must):
            if self.root is None:
                self.table.add("board:project", None, must, "no project at hand")
                return
            if self.plan is None:
                raise RowproofError("no readable plan")
            keys = ("board", "task", "engine", "tier")
            stated = {key: document[key] for key in keys}
            stated |= {"plan": self.plan.plan, "policy": document["policy"]["name"]}
            path = f"config/boards/{self.plan.board}.yaml"
            first: dict[str, Any] | None = None
            for where, data in self._versions(path):
                board = validate(parse(data, path), Board)
                row = board.rows.get(document["row"])
                demanded = {key: getattr(board, key) for key in (*keys, "plan")}
                demanded["policy"] = row.policy if row else "(no such row)"
                if stated == demanded:
                    self.table.add("board:project", True, must, f"equal {where}")
                    return
                first = first or demanded
            self._require_whole()
            if first is None:
                raise RowproofError(f"the project must have {path}, found none today or at the bundle's commit")
            differing = {key: (value, first[key]) for key, value in stated.items() if value != first[key]}
            self.table.add("board:project", False, must, f"(found, demanded): {differing}")

    def _partners(self) -> None:
        recipes, seats = self.documents.get("recipe.json", {}), self.documents.get("identities.json", {})
        document = self.documents.get("bundle.json", {})
        must = "every identity follows from the material beside it, and recipe, identities and bundle agree"
        with self.table.guard("partners:identity", must):
            setup = recipes["simulate"]["setup"]
            problems = []
            if not _same(recipes["specs"]["setup"], setup):
                problems.append("specs and simulation differ in their setup")
            for member in setup["members"]:
                uri = member["weights_uri"]
                if member["checkpoint_step"] is None:
                    expected = member_uri(member["class"], member["params"]) if member["params"] else None
                    if uri != expected:
                        problems.append(f"{member['name']}: weights URI")
                if identity(member["class"], member["seed"], member["checkpoint_step"], uri) != member["identity"]:
                    problems.append(f"{member['name']}: identity")
            expected_seats = writer.identities(setup, self.selected)
            if not _same(seats, expected_seats):
                problems.append("identities.json")
            if not _same(document["partners"], {m["name"]: m["identity"] for m in setup["members"]}):
                problems.append("partners of bundle.json")
            policy = {"name": setup["policy"], "identity": expected_seats["policy"]["identity"]}
            if not _same(document["policy"], policy):
                problems.append("policy of bundle.json")
            self.table.add("partners:identity", not problems, must, ", ".join(problems) or f"{len(setup['members'])}")
        must = "the setup of the recipe is what the plan and the project's partner set demand"
        with self.table.guard("setup:plan", must):
            if self.plan is None or self.engine is None:
                raise RowproofError("no readable plan")
            recorded = recipes["simulate"]["setup"]
            partner_set = self._partner_set(recorded)
            if partner_set is None:
                partner_set, source = self._recorded_partners(recorded), None
            else:
                source = True
            demanded = self._demanded(recorded, partner_set)
            wrong = sorted(k for k in {*demanded, *recorded} if not _same(demanded.get(k), recorded.get(k)))
            if not wrong and list(demanded) != list(recorded):
                wrong.append("order of keys")
            self.setup = demanded
            if self.learned:
                recorded_selection = recipes["select"]["setup"]
                if not _same(selection_setup(self.plan, document["row"], partner_set, self.engine), recorded_selection):
                    wrong.append("setup of the selection")
                # What the records must name; no part of the recipe, since it is known only after training.
                self.setup["checkpoints"] = {seed: chosen["uri"] for seed, chosen in self.selected.items()}
            campaign = self.plan.rows[document["row"]].campaign
            if self.timed and not _same(board_setup(self.plan, self.engine, campaign), recipes["time"]["setup"]):
                wrong.append("setup of the timing")
            summary = recipes["summary"]
            if not _same(summary["statistics"], self.plan.statistics.model_dump()):
                wrong.append("statistics")
            if not _same(summary["partners"], self.plan.partners_of(document["row"])):
                wrong.append("partners of the summary")
            schedule = {
                "root_seed": self.plan.grid.root_seed,
                "seeds": self.plan.grid.seeds,
                "episodes_per_partner": self.plan.grid.episodes_per_partner,
            }
            if not _same(document["seed_schedule"], schedule):
                wrong.append("seed_schedule")
            found = f"differing {wrong}" if wrong else "equal"
            holds = False if wrong else source
            self.table.add("setup:plan", holds, must, found if source else found + "; no partner set to compare with")

    def _partner_set(self, recorded: Mapping[str, Any]) -> PartnerSet | None:
        """The project's partner set: that of today if it agrees with the record, else that of the record's commit."""
        if self.root is None or self.plan is None or self.engine is None:
            return None
        board_path = f"config/boards/{self.plan.board}.yaml"
        board = validate(parse(self._today(board_path), board_path), Board)
        path = f"config/partners/{board.partner_set}.yaml"
        today = validate(parse(self._today(path), path), PartnerSet)
        row = self.documents["bundle.json"]["row"]
        names = {member.name for member in today.members if member.split == "public"}
        known = names.issuperset(self.plan.partners_of(row))
        if self.plan.rows[row].pair:
            # Its only partner comes with the checkpoint, whatever the set holds.
            return today
        if known and today.seats(self.plan.partners_of(row)) == recorded["members"]:
            return today
        for commit in self._commits():
            data = committed_file(self.root, commit, path)
            if data is not None:
                return validate(parse(data, f"{commit}:{path}"), PartnerSet)
        self._require_whole()
        return today

    def _demanded(self, recorded: Mapping[str, Any], partner_set: PartnerSet) -> dict[str, Any]:
        """The setup of the row as plan, partners and the project's configuration demand it.

        Settings come from the files of today, or of a commit of the bundle, that fit. Without a project they are the
        recorded ones, which the engine holds against the digests of the plan.
        """
        assert self.plan is not None and self.engine is not None
        row, engine, root = self.documents["bundle.json"]["row"], self.engine, self.root
        if root is None or engine.settings is None:
            bare_engine = replace(engine, settings=None)
            demanded = row_setup(self.plan, row, partner_set, bare_engine, project_reader(PACKAGE_ROOT))
            return demanded if engine.settings is None else {**demanded, "settings": recorded.get("settings")}
        demanded = None
        for read in (self._today, *(_commit_reader(root, commit) for commit in self._commits())):
            try:
                found = row_setup(self.plan, row, partner_set, engine, read)
            except RowproofError:
                continue
            if _same(found["settings"], recorded.get("settings")):
                return found
            demanded = demanded or found
        self._require_whole()
        return demanded or row_setup(self.plan, row, partner_set, engine, self._today)

    def _recorded_partners(self, recorded: Mapping[str, Any]) -> PartnerSet:
        set_id, _, version = recorded["partner_set"].partition("@v")
        members = [
            {
                "name": m["name"],
                "class": m["class"],
                "split": "public",
                "seed": m["seed"],
                "checkpoint_step": m["checkpoint_step"],
                "weights_uri": None if m["params"] else m["weights_uri"],
                "role": "as recorded",
                "params": m["params"],
            }
            for m in recorded["members"]
        ]
        return PartnerSet.model_validate(
            {
                "schema": "rowproof/partner-set/1",
                "set_id": set_id,
                "version": int(version),
                "task": recorded["task"],
                "members": members,
            }
        )

    def _underived(self, must: str) -> None:
        """What is said of records where nothing tells which must be there."""
        (why,) = [check for check in self.table.checks if check.id == "setup:plan"] or [None]
        unknown = why is not None and why.verdict == "unknown"
        found = "what must be there cannot be derived"
        self.table.add("records:set", None if unknown else False, must, f"{found}: {why.found}" if unknown else found)
        if unknown and self.engine is not None and self.engine.replays:
            must = "running every spec again gives every record again, byte for byte"
            self.table.leave_unproven("records:replay", must, f"not run: {why.found}")

    def _records(self) -> None:
        must = "the records are exactly those that the plan's specs demand, in order, in canonical form"
        if self.setup is None or self.engine is None or self.plan is None:
            self._underived(must)
            return
        records: list[dict[str, Any]] = []
        specs: list[dict[str, Any]] = []
        pairs: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
        simulate = import_module(self.engine.simulate_module)
        with self.table.guard("records:set", must):
            grid = self.plan.grid
            demanded = len(grid.seeds) * len(self.setup["members"]) * grid.episodes_per_partner
            if demanded > MAX_RECORDS:
                raise RowproofError(f"a plan may demand {MAX_RECORDS} records, found {demanded}")
            specs = import_module(self.engine.specs_module).specs(self.setup)
            by_seed: dict[int, list[dict[str, Any]]] = {}
            for spec in specs:
                by_seed.setdefault(spec["seed"], []).append(spec)
            wrong: list[str] = []
            for seed, own in by_seed.items():
                name = episode_file(seed)
                lines = [line for _, line in split_lines(self.files[name], name)]
                if len(lines) != len(own):
                    wrong.append(f"{name}: {len(lines)} records for {len(own)} specs")
                for number, (line, spec) in enumerate(zip(lines, own, strict=False), start=1):
                    record = decode(line, f"{name}:{number}")
                    if encode_line(record).encode() != line:
                        wrong.append(f"{name}:{number}: not in canonical form")
                    pairs.append((f"{name}:{number}", spec, record))
                    records.append(record)
            self.table.add("records:set", not wrong, must, "; ".join(wrong[:5]) or f"{len(records)} records")
        must = "every record agrees with its spec and with itself (schema, units, derived values)"
        with self.table.guard("records:content", must):
            problems = [
                f"{place}: {problem}"
                for place, spec, record in pairs
                for problem in self._checks().check_record(self.setup, spec, record)
            ]
            found = "; ".join(problems[:5]) + (f"; {len(problems)} in all" if len(problems) > 5 else "")
            self.table.add("records:content", not problems, must, found or f"{len(pairs)} records")
        must = "running every spec again gives every record again, byte for byte"
        if self.engine.replays:
            with self.table.guard("records:replay", must):
                if any(check.id == "plan:project" for check in self.table.failures):
                    self.table.add("records:replay", None, must, "not run: the plan is none of the project's")
                else:
                    self._replay(must, simulate, specs, pairs)
        must = "the summary equals the one computed from the records, to the last bit"
        with self.table.guard("summary:exact", must):
            statistics = self.plan.statistics.model_dump()
            fresh = row_summary(records, partners=[m["name"] for m in self.setup["members"]], **statistics)
            if self.engine.summary_module:
                fresh["family"] = import_module(self.engine.summary_module).summarise(records)
            stated = self.documents["bundle.json"]["summary"]
            same = encode_document(fresh) == encode_document(stated)
            self.table.add("summary:exact", same, must, "equal" if same else _first_difference(stated, fresh))
        if self.timed:
            self._timing(records)

    def _replay(
        self, must: str, simulate: Any, specs: list[dict[str, Any]], pairs: list[tuple[str, dict[str, Any], Any]]
    ) -> None:
        """Runs every spec again: by the code at hand, else by that which the recipe names, if it is of this history."""
        stated = [encode_line(record) for _, _, record in pairs]

        def differing(fresh: list[str]) -> str | None:
            places = [place for (place, _, _), new, old in zip(pairs, fresh, stated, strict=False) if new != old]
            if places:
                return f"differing {places[:5]}"
            return None if len(fresh) == len(stated) == len(specs) else f"{len(stated)} of {len(fresh)} records"

        ours = self._bridge("simulate") is not None
        try:
            found = differing([encode_line(r) for r in simulate.simulate(self.setup, specs, *self._players())])
        except Exception as error:
            # The code at hand may be of another form than what other code recorded.
            if ours:
                raise
            found = f"an error ({type(error).__name__})"
        if found is None or ours:
            self.table.add("records:replay", found is None, must, found or f"{len(stated)} of {len(specs)} equal")
            return
        here = f"made by other simulation code than that at hand, which makes {found}"
        commits = sorted({job["commit"] for job in self._jobs() if job["stage"] == "simulate"})
        try:
            commit = self._runnable(commits)
            made = self._replayed_at(commit, sum(len(line.encode()) + 1 for line in stated))
        except RowproofError as gap:
            self.table.leave_unproven("records:replay", must, f"{here}; not run by its own: {gap}")
            return
        found = differing(made)
        by = f"by the code of commit {commit}"
        if found is not None and self._other_pins():
            more = f"{found}, with other versions than the recipe pins: {self._other_pins()}"
            self.table.leave_unproven("records:replay", must, f"{here}; {by} {more}")
            return
        text = f"{here}; {by} {found}" if found else f"{len(stated)} of {len(specs)} equal {by}"
        self.table.add("records:replay", found is None, must, text)

    def _runnable(self, commits: list[str]) -> str:
        """The first commit at which the simulation ran, whose code is the recorded one."""
        if self.root is None:
            raise HistoryGap("no project at hand: name one with --project")
        if not commits or "unknown" in commits:
            raise HistoryGap("no commit is recorded")
        for commit in commits:
            require_ancestor(self.root, commit)
        recorded = self.documents["recipe.json"]["simulate"]["code"]
        reached = tree_at(self.root, commits[0]).closure(*_roots(self._stated_places("simulate")))
        if recorded != {"form": FORM, "key": reached.key}:
            raise HistoryGap(f"the code of commit {commits[0]} is not the recorded one")
        return commits[0]

    def _replayed_at(self, commit: str, most_bytes: int) -> list[str]:
        assert self.engine is not None and self.root is not None
        engine, players = self.engine, self._players()
        setup = self.documents["recipe.json"]["simulate"]["setup"]
        producers = engine.specs_module, engine.simulate_module
        most_bytes += 1 << 20
        made = replay_at(self.root, commit, producers, setup, *(players or ({},)), engine.files, most_bytes)
        return made.decode("utf-8", "replace").split("\n")[:-1]

    def _other_pins(self) -> list[str]:
        """Distributions that are installed in another version than the recipe of the simulation pins."""
        pins = self.documents["recipe.json"]["simulate"]["pins"]
        return sorted(name for name, pin in pins.items() if name != "python" and installed(name) != pin)

    def _timing(self, records: list[dict[str, Any]]) -> None:
        must = f"{TIMING} is as it was written, holds every run in the order of the protocol, and its figures follow"
        with self.table.guard("timing:form", must):
            setup, data = self.documents["recipe.json"]["time"]["setup"], self.files[TIMING]
            problems = self._checks().check_timing(setup, records, read_timing(data))
            self.table.add("timing:form", not problems, must, "; ".join(problems[:5]) or sha256_hex(data))

    def _checks(self) -> Any:
        """The module in which the row's engine checks records after the fact."""
        if self.engine is None or self.engine.checks_module is None:
            raise RowproofError("no engine that checks its records")
        return import_module(self.engine.checks_module)

    def _players(self) -> tuple[dict[int, tuple[str, bytes]], ...]:
        """The further argument that a simulation with learned policies takes."""
        if not self.learned:
            return ()
        return ({seed: (each["uri"], self.files[learned_files(seed)[2]]) for seed, each in self.selected.items()},)

    def _same_code(self, stage: str) -> bool:
        """Whether the code that this process runs is the one that the recipe names for ``stage``."""
        here = {"form": FORM, "key": _key_here(_roots(self._places(stage)))}
        return here == self.documents["recipe.json"][stage]["code"]

    def _jobs(self) -> list[dict[str, Any]]:
        """The recorded jobs whose commit can be handed to git."""
        jobs = self.documents.get(PROVENANCE, {}).get("jobs", [])
        return [
            job
            for job in (jobs if isinstance(jobs, list) else [])
            if isinstance(job, dict) and re.fullmatch("[0-9a-f]{40}|unknown", str(job.get("commit")))
        ]

    def _commits(self) -> list[str]:
        """The commits at which the stages ran, as far as HEAD of the project descends from them."""
        return [commit for commit, gap in self._standing.items() if gap is None]

    @cached_property
    def _standing(self) -> dict[str, Exception | None]:
        """Every recorded commit, and what keeps it from being history of the project."""
        found: dict[str, Exception | None] = {}
        for commit in sorted({job["commit"] for job in self._jobs()} - {"unknown"}):
            try:
                require_ancestor(self.root, commit)
                found[commit] = None
            except RowproofError as error:
                found[commit] = error
        return found

    def _commits_here(self) -> None:
        """Every commit that the bundle names is one of the project's history."""
        must = "HEAD of the project descends from every commit at which the stages ran"
        standing = self._standing
        foreign = [str(error) for error in standing.values() if isinstance(error, ForeignCommitError)]
        gaps = [str(error) for error in standing.values() if error and not isinstance(error, ForeignCommitError)]
        if not standing:
            gaps = ["no commit is recorded"]
        self.gap = "; ".join(foreign or gaps) or None
        holds = False if foreign else None if gaps else True
        self.table.add("history:commits", holds, must, self.gap or f"{len(standing)} commits")

    def _today(self, path: str) -> bytes:
        """A file as the project has it: as committed, or as it lies there where work in progress may pass."""
        assert self.root is not None
        data = None
        if not self.allow_dirty:
            with suppress(HistoryGap):
                data = committed_file(self.root, "HEAD", path)
                if data is None:
                    raise ConfigError(f"{path}: must be committed in the project, found no such file")
        if data is None:
            data = project_reader(self.root)(path)
        return data

    def _versions(self, path: str) -> Iterator[tuple[str, bytes]]:
        """Where a file of the project was found, today or at a commit of the bundle, and its bytes."""
        with suppress(ConfigError, FileNotFoundError):
            yield "today", self._today(path)
        for commit in self._commits():
            data = committed_file(self.root, commit, path)
            if data is not None:
                yield f"at {commit}", data

    def _require_whole(self) -> None:
        """Raise where an earlier version of a file could not be read, for it may be the one that fits."""
        if self.gap is not None and not any(isinstance(e, ForeignCommitError) for e in self._standing.values()):
            raise HistoryGap(f"the files of today do not fit, and those of then cannot be read: {self.gap}")

    def _provenance(self) -> None:
        must = "provenance.json has the declared form, is unedited and belongs to this bundle"
        with self.table.guard("provenance:form", must):
            document = read_provenance(self.files[PROVENANCE])
            stages = {job["stage"] for job in document["jobs"]}
            problems = []
            if document["row_digest"] != sha256_hex(self.files["bundle.json"]):
                problems.append("belongs to another bundle")
            if stages != set(self.stages):
                problems.append(f"stages {sorted(stages)}")
            recipes = self.documents["recipe.json"]
            for job in document["jobs"]:
                pins = recipes[job["stage"]]["pins"]
                # Jobs of earlier versions told of numeric distributions alone; those of today tell when they ran.
                named = pins if "started" in job else {name: pins.get(name) for name in job["versions"]}
                if job["versions"] != named:
                    problems.append("a job ran with other versions than its recipe pins")
            if set(document.get("places", {})) != set(self.stages):
                problems.append("does not show where the code of each stage lay")
            self.table.add(
                "provenance:form", not problems, must, "; ".join(problems) or f"{len(document['jobs'])} jobs"
            )
        must = "made from a clean checkout at a known commit"
        dirty = self.documents.get(PROVENANCE, {}).get("dirty")
        unknown = any(job["commit"] == "unknown" for job in self._jobs())
        missing = [commit for commit, gap in self._standing.items() if gap is not None]
        if dirty is not False or unknown or not self._jobs():
            found = "from a modified or unknown checkout: commit, then build again"
            self.table.add("eligibility:clean", self.allow_dirty, must, found)
        elif missing:
            found = f"clean by its own word only, commits not in this clone or its history: {missing}"
            self.table.add("eligibility:clean", None, must, found)
        else:
            self.table.add("eligibility:clean", True, must, "clean")

    def _history(self) -> None:
        commits = sorted({job["commit"] for job in self._jobs()})
        root = self.root
        missing = [c for c in commits if c == "unknown" or self._standing[c] is not None]
        gap = (self.gap or f"commits {missing or 'not recorded'}") if missing or not commits else None
        must = "what binds the row in the plan was committed before the records were made, as it is"
        with self.table.guard("history:plan", must):
            if gap or root is None:
                self.table.add("history:plan", None, must, gap or "no project at hand")
            else:
                self._plan_history(root, must)
        if gap is None and any(job["dirty"] for job in self._jobs()):
            gap = "made from a modified checkout"
        must = "the code of each stage is that of the commit at which it ran"
        with self.table.guard("history:code", must):
            if gap or root is None:
                self.table.add("history:code", None, must, gap or "no project at hand")
            else:
                wrong = [w for stage, commit in self._ran() for w in self._code_problems(root, stage, commit)]
                self.table.add("history:code", not wrong, must, f"differing {wrong}" if wrong else "equal")
        must = "the recipe pins what the lock file pinned at the commit at which its stage ran"
        with self.table.guard("history:pins", must):
            if gap or root is None:
                self.table.add("history:pins", None, must, gap or "no project at hand")
            else:
                wrong = []
                for stage, commit in self._ran():
                    tree = tree_at(root, commit)
                    locked = pins_of(tree.closure(*_roots(self._stated_places(stage))), tree.pins)
                    stated = self.documents["recipe.json"][stage]["pins"]
                    if not _same(stated, locked):
                        wrong.append(f"{stage}: {stated}, locked {locked}")
                self.table.add("history:pins", not wrong, must, f"differing {wrong}" if wrong else "equal")
        self._lock(gap)

    def _ran(self) -> list[tuple[str, str]]:
        """Which stage ran at which commit."""
        return sorted({(job["stage"], job["commit"]) for job in self._jobs()})

    def _plan_history(self, root: Path, must: str) -> None:
        assert self.engine is not None
        document = self.documents["bundle.json"]
        row, path = document["row"], document["plan"]["path"]
        own = slice_digest(self.files["plan.yaml"], row, self.engine)
        # What a training is set up with is checked by itself; a plan may name it later.
        evaluated = {job["commit"] for job in self._jobs() if job["stage"] in TIMED_STAGES}
        commits = sorted(evaluated) or self._commits()
        wrong = []
        for commit in commits:
            data = committed_file(root, commit, path)
            if data is None or own is None or slice_digest(data, row, self.engine) != own:
                wrong.append(commit)
        first = first_commit_with(root, commits[0], path, git.blob_id(self.files["plan.yaml"]))
        if first is None and not wrong:
            wrong = [f"{commits[0]} (no such version of the file before it)"]
        self.table.add("history:plan", not wrong, must, f"not at {wrong}" if wrong else f"committed at {first}")

    def _code_problems(self, root: Path, stage: str, commit: str) -> list[str]:
        """How the code and the data files of a stage differ from those of a commit."""
        recipe, places = self.documents["recipe.json"][stage], self._stated_places(stage)
        if recipe["code"]["form"] != FORM:
            raise HistoryGap(
                f"keys of form {recipe['code']['form']} cannot be made again, those of form {FORM} can: "
                "build the row, which restates it"
            )
        tree = tree_at(root, commit)
        reached = tree.closure(*_roots(places))
        problems = []
        if reached.key != recipe["code"]["key"]:
            problems.append(f"{stage} at {commit[:12]}")
        if reached.files != places.get("files"):
            problems.append(f"files of {stage} at {commit[:12]}")
        assert self.engine is not None
        # What was there to be loaded by name, or to be read, must be told of, or a key could keep silent about it.
        ours = self._same_code(stage)
        named = {name for name in self._places(stage).get("modules", ()) if tree.has_module(name)}
        if not ours:
            problems += [f"{name} left out of {stage}" for name in sorted(named - set(places.get("modules", ())))]
        demanded = self.engine.data_files(stage, recipe["setup"]) if "setup" in recipe else ()
        unread = [path for path in demanded if path not in recipe["data"] and tree.read(path) is not None]
        if ours:
            problems += [f"{path} left out of {stage}" for path in unread]
        elif unread and not problems:
            raise HistoryGap(f"whether other code than that at hand read {', '.join(unread)} cannot be told")
        for path, stated in recipe["data"].items():
            data = tree.read(path)
            if data is None or self.engine.data_digest(path, data) != stated:
                problems.append(f"{path} at {commit[:12]}")
        return problems

    def _lock(self, gap: str | None) -> None:
        """What the row took from files beside the plan is what the plan's lock pins, then and now."""
        must = "partners, training and settings are those that the plan's lock pins, at the records' commits and today"
        with self.table.guard("plan:lock", must):
            recipes, document = self.documents["recipe.json"], self.documents["bundle.json"]
            training = recipes["train"]["setup"]["training"] if "train" in recipes else None
            selection = recipes["select"]["setup"] if "select" in recipes else None
            found = pinned(recipes["simulate"]["setup"], training, selection)
            if self.root is None:
                raise HistoryGap("no project at hand")
            path = lock_path(document["plan"]["path"])
            plan = path.removeprefix("config/plans/").removesuffix(".lock.json")
            locks: dict[str, bytes | None] = {"today": None}
            with suppress(ConfigError, FileNotFoundError):
                locks["today"] = self._today(path)
            if gap is None:
                head = {job["commit"] for job in self._jobs() if job["stage"] == "bundle"}
                locks |= {commit: committed_file(self.root, commit, path) for commit in sorted(head)}
            wrong = []
            for where, data in locks.items():
                digests = {} if data is None else read_lock(data, path, plan)
                wrong += [f"{name} {where[:12]}" for name, value in found.items() if digests.get(name) != value]
            holds = False if wrong else None if gap else True
            self.table.add(
                "plan:lock", holds, must, f"other or none: {wrong}" if wrong else gap or f"{len(found)} digests"
            )


@lru_cache(maxsize=16)
def _equivalences(root: Path) -> Equivalences:
    return Equivalences.read(root)


def _commit_reader(root: Path, commit: str) -> Read:
    def read(path: str) -> bytes:
        data = committed_file(root, commit, path)
        if data is None:
            raise ConfigError(f"{path}: must be in {commit}, found no such file")
        return data

    return read


def _roots(places: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Scripts and modules from which the code of a stage is reached."""
    producer = [places["producer"]] if "producer" in places else []
    return (places["script"], *places.get("programs", ())), (*producer, *places.get("modules", ()))


@lru_cache(maxsize=1024)
def _key_here(roots: tuple[tuple[str, ...], tuple[str, ...]]) -> str:
    """The key of the code that this process runs, by its roots."""
    return closure(FolderSources(PACKAGE_ROOT, _SOURCES), *roots).key


def _as_model(recorded: Mapping[str, Any], model: type[BaseModel], where: str) -> BaseModel:
    """A recorded configuration as its model.

    Raises:
        RowproofError: it is none.
    """
    try:
        return model.model_validate(recorded)
    except ValidationError as error:
        raise RowproofError(f"{where}: must be a valid {model.__name__}, found {error.error_count()} errors") from None


def _same(one: Any, other: Any) -> bool:
    """Whether two values have one canonical text: the order of keys and the type of numbers count."""
    return encode_line(one) == encode_line(other)


def _first_difference(stated: Any, fresh: Any, path: str = "summary") -> str:
    if isinstance(stated, dict) and isinstance(fresh, dict):
        for key in [*fresh, *stated]:
            if key not in stated or key not in fresh:
                return f"{path}.{key} is only on one side"
            if encode_document(stated[key]) != encode_document(fresh[key]):
                return _first_difference(stated[key], fresh[key], f"{path}.{key}")
        return f"{path}: order of keys"
    return f"{path}: stated {encode_line(stated)[:200]}, computed {encode_line(fresh)[:200]}"
