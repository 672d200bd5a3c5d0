"""Facts of published rows, read out of verifying bundles; :mod:`rowproof.evidence.facts` reads them again."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from rowproof.errors import RowproofError
from rowproof.evidence.facts import channel_summary, success_text
from rowproof.evidence.published.bundle import check_bundle_fields
from rowproof.evidence.published.catalogue import known_partner_sets
from rowproof.evidence.published.files import published_root
from rowproof.evidence.published.plans import closest_cell, load_plan, planned_cells
from rowproof.evidence.published.records import RECORD_SCHEMA
from rowproof.evidence.published.verify import verify_published
from rowproof.evidence.statistics import (
    BUNDLE_STREAM,
    LEADERBOARD_STREAM,
    clusters_of,
    per_partner,
    stress_summary,
    success_summary,
)
from rowproof.hashing import sha256_hex
from rowproof.records import decode, decode_lines

HEADER = """\
# Facts of the {task} rows published by the CONCERTO/CHAMBER project (CHAMBER-Bench v1.0, July 2026, Apache-2.0):
# read out of its result bundles, whose own digests were verified first. Generated; do not edit.
# success: per episode file and member, character i is the member's i-th episode, 1 for success.
# ci_bundle and ci_leaderboard: the same interval of the IQM under the two published random streams.
# channels: every metadata field that is a float in all records of the row, in the unit of the field.
"""


def _load(path: Path) -> tuple[dict[str, Any], dict[str, bytes], list[dict[str, Any]]]:
    table = verify_published(path)
    if not table.passed:
        raise RowproofError(f"{path} must verify before facts are taken from it, found {table.failures[0]}")
    meta = check_bundle_fields(decode((path / "bundle.json").read_bytes(), "bundle.json"))
    names = [f"episodes_seed{seed}.jsonl" for seed in meta["seed_schedule"]["seeds"]]
    files = {name: (path / name).read_bytes() for name in names}
    return meta, files, [r for name, data in files.items() for r in decode_lines(data, RECORD_SCHEMA, name)]


def extract_facts(bundles: Sequence[Path]) -> dict[str, Any]:
    """The facts of the rows that the bundles make up, pooled by row.

    Args:
        bundles: directories of verifying, preregistered bundles of one task, none of them a pilot.

    Returns:
        ``schema``, ``task`` and ``rows`` (row id in lower case to plain data), in the order of the bundles.

    Raises:
        RowproofError: a bundle does not verify, is no row of its plan, is of another task, or repeats an episode file.
    """
    rows: dict[str, dict[str, Any]] = {}
    pooled: dict[str, list[dict[str, Any]]] = {}
    task = None
    for path in bundles:
        meta, files, records = _load(path)
        plan = load_plan((path / "prereg.yaml").read_bytes(), "prereg.yaml")
        cell = closest_cell(planned_cells(plan, known_partner_sets()), meta)
        if cell.purpose != "leaderboard":
            raise RowproofError(f"{path} must be a row of its plan, found a run of purpose {cell.purpose}")
        if task not in (None, cell.task):
            raise RowproofError(f"{path} must be of task {task}, found {cell.task}")
        task = cell.task
        root = published_root(path)
        source = path.resolve().relative_to(root).as_posix() if root else path.name
        row_id = cell.row.lower()
        row = rows.setdefault(row_id, {"row": cell.row, "partner_set": meta["partner_set_id"], "bundles": []})
        pooled.setdefault(row_id, []).extend(records)
        stated = meta["summary"]
        summary = {key: stated[key] for key in ("n_episodes", "success_mean", "success_iqm")}
        summary["ci_bundle"] = [stated["success_ci_low"], stated["success_ci_high"]]
        row["bundles"].append({"source": source, "policy": meta["policy_id"], **summary})
        for name, data in files.items():
            if name in row.setdefault("episode_files", {}):
                raise RowproofError(f"bundles of one row must not share a seed, found {name} again in {path}")
            row["episode_files"][name] = sha256_hex(data)
            row.setdefault("success", {})[name] = success_text(decode_lines(data, RECORD_SCHEMA, name))
    for row_id, row in rows.items():
        row["pooled"] = _pooled_summary(pooled[row_id])
    return {"schema": "rowproof/published-facts/1", "task": task, "rows": rows}


def _pooled_summary(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    clusters = clusters_of(records)
    table = success_summary(clusters, stream=LEADERBOARD_STREAM)
    bundle = success_summary(clusters, stream=BUNDLE_STREAM)
    return {
        "n_episodes": table.n_episodes,
        "success_mean": table.success_mean,
        "success_iqm": table.success_iqm,
        "ci_bundle": [bundle.success_ci_low, bundle.success_ci_high],
        "ci_leaderboard": [table.success_ci_low, table.success_ci_high],
        "per_partner": per_partner(records),
        "force_peak_n": stress_summary(records, successes_only=False),
        "channels": channel_summary(records),
    }


def render_facts(facts: Mapping[str, Any]) -> bytes:
    """``facts`` of :func:`extract_facts` as YAML with a comment on top that says where they come from."""
    body = yaml.safe_dump(dict(facts), sort_keys=False, allow_unicode=True, width=10_000)
    return (HEADER.format(task=facts["task"]) + body).encode("utf-8")
