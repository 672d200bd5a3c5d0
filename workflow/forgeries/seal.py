"""A copy of a bundle under the hands of a forger, who recomputes all that needs no right to commit to the project."""

import hashlib
import json
import shutil
from collections.abc import Callable, Collection
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from rowproof.errors import RowproofError
from rowproof.evidence import bundle as writer
from rowproof.evidence.statistics import row_summary
from rowproof.families import engines
from rowproof.git import blob_id
from rowproof.identities import identity, member_uri
from rowproof.layout import PROVENANCE, SUMS, UNLISTED, document_digest, episode_file, learned_files, render_sums
from rowproof.records import digest, encode_document, encode_lines


def sha256(data: bytes) -> str:
    """SHA-256 (64 hex) of ``data``."""
    return hashlib.sha256(data).hexdigest()


class NotApplicableError(Exception):
    """This evidence offers nothing to which an alteration could be done."""


def registry(kinds: dict[str, dict[str, Callable[[Any], None]]]) -> Callable[[str], Callable[[Any], Any]]:
    """A decorator that takes a kind and enters an alteration under it and its own name: kind -> name -> alteration."""

    def forgery(kind: str) -> Callable[[Any], Any]:
        def register(alteration: Any) -> Any:
            kinds.setdefault(kind, {})[alteration.__name__] = alteration
            return alteration

        return register

    return forgery


class Copy:
    """A copy of a folder of evidence."""

    def __init__(self, source: Path, target: Path) -> None:
        """Copy ``source`` to ``target``, which must not exist."""
        shutil.copytree(source, target)
        self.path = target

    def read(self, name: str) -> bytes:
        """The bytes of a file."""
        return (self.path / name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        """Replace a file or make one."""
        (self.path / name).write_bytes(data)

    def load(self, name: str) -> Any:
        """A JSON document."""
        return json.loads(self.read(name))

    def edit(self, name: str, change: Callable[[Any], Any]) -> None:
        """Change a JSON document in place."""
        document = self.load(name)
        change(document)
        self.write(name, encode_document(document))

    @property
    def meta(self) -> dict[str, Any]:
        """What ``bundle.json`` says."""
        return self.load("bundle.json")

    def edit_meta(self, change: Callable[[dict[str, Any]], Any]) -> None:
        """Change ``bundle.json``."""
        self.edit("bundle.json", change)

    def records(self, seed: int) -> list[dict[str, Any]]:
        """The records of a seed."""
        return [json.loads(line) for line in self.read(episode_file(seed)).decode().split("\n") if line]

    def write_records(self, seed: int, records: list[dict[str, Any]]) -> None:
        """Replace the records of a seed."""
        self.write(episode_file(seed), encode_lines(records))

    def edit_records(self, seed: int, change: Callable[[list[dict[str, Any]]], Any]) -> None:
        """Change the records of a seed in place."""
        records = self.records(seed)
        change(records)
        self.write_records(seed, records)

    def replace_bytes(self, name: str, old: bytes, new: bytes, count: int = -1) -> None:
        """Replace bytes that must occur in a file."""
        data = self.read(name)
        assert old in data
        self.write(name, data.replace(old, new, count))


class Row(Copy):
    """A copy of a rowproof bundle."""

    @property
    def seeds(self) -> list[int]:
        """The cluster seeds of the row, of those whose records lie here."""
        return [seed for seed in self.meta["seed_schedule"]["seeds"] if (self.path / episode_file(seed)).is_file()]

    @property
    def learned(self) -> bool:
        """Whether the row's policy was trained."""
        return "train" in self.load("recipe.json")

    def edit_recipes(self, change: Callable[[dict[str, Any]], Any]) -> None:
        """Change ``recipe.json``."""
        self.edit("recipe.json", change)

    def edit_setup(self, change: Callable[[dict[str, Any]], Any]) -> None:
        """Change the setup of specs and simulation alike."""

        def both(recipes: dict[str, Any]) -> None:
            for stage in ("specs", "simulate"):
                change(recipes[stage]["setup"])

        self.edit("recipe.json", both)

    def edit_plan(self, old: str, new: str) -> None:
        """Replace the first occurrence of a text of the plan."""
        self.replace_bytes("plan.yaml", old.encode(), new.encode(), 1)

    def edit_jobs(self, change: Callable[[dict[str, Any]], Any], stage: str | None = None) -> None:
        """Change what the provenance tells of the jobs, of one stage or of all."""

        def each(document: dict[str, Any]) -> None:
            for job in document["jobs"]:
                if stage in (None, job["stage"]):
                    change(job)

        self.edit(PROVENANCE, each)

    def reseal(self, keep: Collection[str] = ()) -> None:
        """Recompute all that depends on other files, except the layers in ``keep``."""
        recipes, meta = self.load("recipe.json"), self.meta
        setup = recipes["simulate"]["setup"]
        if "identities" not in keep:
            self._identify(recipes, meta)
        if "blob" not in keep:
            meta["plan"]["blob"] = blob_id(self.read("plan.yaml"))
        if "chain" not in keep:
            upstream: dict[str, str] = {}
            for stage, recipe in recipes.items():
                # All rows of a timed board are timed in turns, so that stage rests on the records of each.
                own = {recipes["bundle"]["row"]: upstream["simulate"]} if stage == "time" else upstream
                recipe["upstream"] = {**recipe["upstream"], **own} if stage == "time" else own
                upstream = {stage: digest(recipe)}
        self.write("recipe.json", encode_document(recipes))
        if "recipe" not in keep:
            last = recipes["bundle"]
            meta["row_key"] = digest(last)
            meta["stage_keys"] = {stage: digest(recipe) for stage, recipe in recipes.items()}
            meta |= {key: last[key] for key in ("board", "row", "engine", "tier")}
            meta["task"] = setup["task"]
            self.write("REPRO.txt", f"snakemake results/{meta['board']}/{meta['row']}\n".encode())
        if "schedule" not in keep:
            meta["seed_schedule"] = {key: setup[key] for key in ("root_seed", "seeds", "episodes_per_partner")}
        if "summary" not in keep:
            # Where no summary follows from what was done to the records, the forger leaves the old one.
            with suppress(RowproofError, ValueError, KeyError, OSError):
                meta["summary"] = self._summary(recipes, setup["seeds"])
        self.write("bundle.json", encode_document(meta))
        self.sign()

    def _identify(self, recipes: dict[str, Any], meta: dict[str, Any]) -> None:
        setup = recipes["simulate"]["setup"]
        for stage in ("specs", "simulate"):
            for member in recipes[stage]["setup"]["members"]:
                if member["params"]:
                    member["weights_uri"] = member_uri(member["class"], member["params"])
                fields = (member["class"], member["seed"], member["checkpoint_step"], member["weights_uri"])
                member["identity"] = identity(*fields)
        selected = {
            seed: self.load(learned_files(seed)[1])["selected"]
            for seed in (setup["seeds"] if "train" in recipes else [])
            if (self.path / learned_files(seed)[1]).is_file()
        }
        seats = writer.identities(setup, selected)
        self.write("identities.json", encode_document(seats))
        meta["policy"] = {"name": setup["policy"], "identity": seats["policy"]["identity"]}
        meta["partners"] = {member["name"]: member["identity"] for member in setup["members"]}

    def _summary(self, recipes: dict[str, Any], seeds: list[int]) -> dict[str, Any]:
        files = dict.fromkeys(episode_file(seed) for seed in seeds)
        lines = [line for name in files for line in self.read(name).split(b"\n") if line.strip()]
        records = [json.loads(line) for line in lines]
        own = recipes["summary"]
        summary = row_summary(records, partners=own["partners"], **own["statistics"])
        engine = engines().get(recipes["bundle"]["engine"])
        if engine is not None and engine.summary_module:
            summary["family"] = import_module(engine.summary_module).summarise(records)
        return summary

    def sign(self, manifest: bool = True) -> None:
        """Recompute manifest, digest list and the binding of the provenance over whatever lies in the folder."""
        names = sorted(path.name for path in self.path.iterdir() if path.is_file())
        if manifest:
            inner = [name for name in names if name not in ("bundle.json", SUMS, *UNLISTED)]
            self.edit("bundle.json", lambda meta: meta.update(manifest={n: sha256(self.read(n)) for n in inner}))
        self.write(SUMS, render_sums({n: self.read(n) for n in names if n not in (SUMS, *UNLISTED)}))
        self.bind()

    def bind(self) -> None:
        """Recompute the digests in the provenance."""

        def change(document: dict[str, Any]) -> None:
            document["row_digest"] = sha256(self.read("bundle.json"))
            document["dirty"] = any(job["dirty"] is not False for job in document["jobs"])
            document["digest"] = document_digest(document)

        self.edit(PROVENANCE, change)
