"""The head of a published bundle (``bundle.json``, schema version 3), and what a verification has read so far."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rowproof.errors import RecordError
from rowproof.evidence.published.catalogue import ADHOC
from rowproof.evidence.published.commands import Command
from rowproof.evidence.published.plans import Cell
from rowproof.evidence.statistics import Summary
from rowproof.git import History
from rowproof.records import NULL, Kinds, check_fields

BUNDLE_SCHEMA: Mapping[str, Kinds] = {
    "schema_version": (int,),
    "task_id": (str,),
    "task_version": (int,),
    "policy_id": (str,),
    "partner_set_id": (str,),
    "partner_hashes": (dict,),
    "git_sha": (str,),
    "dirty": (bool,),
    "package_version": (str,),
    "seed_schedule": (dict,),
    "repro_command": (str,),
    "platform": (dict,),
    "manifest": (dict,),
    "summary": (dict,),
    "prereg_git_tag": (str, NULL),
    "prereg_blob_sha": (str, NULL),
}
SCHEDULE_SCHEMA: Mapping[str, Kinds] = {
    "root_seed": (int,),
    "seeds": (list,),
    "episodes_per_seed": (int,),
    "substream_labels": (list,),
}
PLATFORM_SCHEMA: Mapping[str, Kinds] = {
    "os": (str,),
    "python": (str,),
    "numpy": (str,),
    "torch": (str, NULL),
    "device": (str,),
}
STATISTICS = ("success_mean", "success_iqm", "success_ci_low", "success_ci_high")
SUMMARY_SCHEMA: Mapping[str, Kinds] = {
    "n_episodes": (int,),
    **dict.fromkeys(STATISTICS, (float,)),
    "n_resamples": (int,),
    "bootstrap_root_seed": (int,),
}
HEX = {length: re.compile(rf"[0-9a-f]{{{length}}}") for length in (16, 40, 64)}


def check_bundle_fields(meta: Any) -> dict[str, Any]:
    """``bundle.json`` when it has every field of schema version 3 in its type and pattern; any version from 3 on.

    Raises:
        RecordError: naming the field.
    """
    where = "bundle.json"
    version = meta.get("schema_version") if type(meta) is dict else None
    if type(version) is int and version in (1, 2):
        raise RecordError(f"{where}: schema version {version} is historical: readable, not verifiable")
    check_fields(meta, BUNDLE_SCHEMA, where)
    if version < 3:
        raise RecordError(f"{where}: schema_version must be 3, found {version}")
    schedule = check_fields(meta["seed_schedule"], SCHEDULE_SCHEMA, f"{where}: seed_schedule")
    check_fields(meta["platform"], PLATFORM_SCHEMA, f"{where}: platform")
    check_fields(meta["summary"], SUMMARY_SCHEMA, f"{where}: summary")
    for values, kind, name in (
        (schedule["seeds"], int, "seeds"),
        (schedule["substream_labels"], str, "substream_labels"),
        (meta["partner_hashes"].values(), str, "partner_hashes"),
        (meta["manifest"].values(), str, "manifest"),
    ):
        if any(type(value) is not kind for value in values):
            raise RecordError(f"{where}: {name} must hold {kind.__name__} values only")
    if schedule["episodes_per_seed"] < 1 or any(seed < 0 for seed in schedule["seeds"]):
        raise RecordError(f"{where}: episodes_per_seed must be at least 1 and no seed negative")
    patterns = [(16, value) for value in meta["partner_hashes"].values()]
    patterns += [(64, value) for value in meta["manifest"].values()]
    patterns += [(40, meta["git_sha"])] if meta["git_sha"] != "unknown" else []
    patterns += [(40, meta["prereg_blob_sha"])] if meta["prereg_blob_sha"] is not None else []
    for length, value in patterns:
        if not HEX[length].fullmatch(value):
            raise RecordError(f"{where}: expected {length} lower-case hexadecimal digits, found {value!r}")
    if "" in (meta["task_id"], meta["policy_id"], meta["partner_set_id"], meta["prereg_git_tag"]):
        raise RecordError(f"{where}: ids and tags must not be empty")
    return meta


@dataclass
class Bundle:
    """What has been read of a bundle so far; later checks use what earlier ones could load."""

    path: Path
    files: dict[str, bytes]
    others: dict[str, str]
    catalogue: Mapping[str, Any]
    history: History
    meta: dict[str, Any] = field(default_factory=dict)
    records: dict[int, list[dict[str, Any]]] | None = None
    fresh: Summary | None = None
    seats: list[dict[str, Any]] | None = None
    command: Command | None = None
    members: list[dict[str, Any]] = field(default_factory=list)
    plan: dict[str, Any] | None = None
    cell: Cell | None = None

    def need(self, name: str) -> bytes:
        """The bytes of a file; raises :class:`RecordError` when it is no regular file of the bundle."""
        if name not in self.files:
            kind = self.others.get(name, "nothing")
            raise RecordError(f"{name} must be a regular file of the bundle, found {kind}")
        return self.files[name]

    @property
    def seeds(self) -> list[int]:
        """The scheduled seeds."""
        return self.meta["seed_schedule"]["seeds"]

    @property
    def pooled(self) -> list[dict[str, Any]]:
        """The loaded records of all seeds, in schedule order."""
        return [record for seed in self.seeds for record in self.records[seed]]

    @property
    def kind(self) -> str:
        """How partners were chosen: ``set``, ``seeded set``, ``single`` or ``cell`` (of an admission)."""
        if not self.meta["partner_set_id"].startswith(ADHOC):
            return "seeded set" if "_manifest:" in self.meta["policy_id"] else "set"
        return "cell" if self.meta["repro_command"].startswith("chamber-eval admission") else "single"
