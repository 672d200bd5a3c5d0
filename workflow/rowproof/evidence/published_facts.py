"""Facts of published rows, small enough to live in this repository, and the comparison of own episodes with them.

A fact row keeps the summary numbers, the hash of every episode file and the success of every episode. Success is
written per file and member as one text of ``0`` and ``1``, character i for the member's i-th episode; nothing is lost.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from rowproof.errors import RecordError, RowproofError
from rowproof.evidence.published import RECORD_SCHEMA, check_bundle_fields, published_root, verify_published
from rowproof.evidence.published_plans import closest_cell, known_partner_sets, load_plan, planned_cells
from rowproof.evidence.statistics import (
    BUNDLE_STREAM,
    LEADERBOARD_STREAM,
    clusters_of,
    partner_of,
    per_partner,
    stress_summary,
    success_summary,
)
from rowproof.hashing import sha256_hex
from rowproof.records import decode, decode_lines, split_lines
from rowproof.strict_yaml import parse

HEADER = """\
# Facts of the {task} rows published by the CONCERTO/CHAMBER project (CHAMBER-Bench v1.0, July 2026, Apache-2.0):
# read out of its result bundles, whose own digests were verified first. Generated; do not edit.
# success: per episode file and member, character i is the member's i-th episode, 1 for success.
# ci_bundle and ci_leaderboard: the same interval of the IQM under the two published random streams.
"""


def _load(path: Path) -> tuple[dict[str, Any], dict[str, bytes], list[dict[str, Any]]]:
    table = verify_published(path)
    if not table.passed:
        raise RowproofError(f"{path} must verify before facts are taken from it, found {table.failures[0]}")
    meta = check_bundle_fields(decode((path / "bundle.json").read_bytes(), "bundle.json"))
    names = [f"episodes_seed{seed}.jsonl" for seed in meta["seed_schedule"]["seeds"]]
    files = {name: (path / name).read_bytes() for name in names}
    return meta, files, [r for name, data in files.items() for r in decode_lines(data, RECORD_SCHEMA, name)]


def success_text(records: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Success of each member's episodes in record order, as ``0`` and ``1``; members in order of first appearance."""
    texts: dict[str, str] = {}
    for record in records:
        name = partner_of(record)
        texts[name] = texts.get(name, "") + ("1" if record["success"] else "0")
    return texts


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
    }


def render_facts(facts: Mapping[str, Any]) -> bytes:
    """``facts`` of :func:`extract_facts` as YAML with a comment on top that says where they come from."""
    body = yaml.safe_dump(dict(facts), sort_keys=False, allow_unicode=True, width=10_000)
    return (HEADER.format(task=facts["task"]) + body).encode("utf-8")


def load_facts(board: str, root: Path) -> Mapping[str, Any]:
    """The shipped facts of a board's published rows, row -> facts; empty when the project ships none.

    Raises:
        ConfigError: the file is no plain YAML.
    """
    name = f"resources/published/{board}.yaml"
    if not (root / name).is_file():
        return {}
    return parse((root / name).read_bytes(), name).data["rows"]


def compare_with_facts(facts_row: Mapping[str, Any], episodes: Mapping[str, bytes]) -> dict[str, Any]:
    """Compare own episode files with one row of :func:`extract_facts`.

    Args:
        facts_row: the row.
        episodes: our files by name; each a JSONL of records with ``success`` and ``metadata`` at least.

    Returns:
        ``files_identical`` and ``files_total``; ``episodes_agree`` and ``episodes_total`` (success alone is compared);
        ``per_member``: name to ``agree``, ``total``, ``successes`` (ours) and ``published_successes``. Files and
        episodes that we lack count in the totals and do not agree.

    Raises:
        RecordError: a file or an episode that the published row does not have, or a malformed file.
    """
    surplus = sorted(set(episodes) - set(facts_row["success"]))
    if surplus:
        raise RecordError(f"episode files must be among those of the published row, found {surplus}")
    members: dict[str, dict[str, int]] = {}
    for name, published in facts_row["success"].items():
        ours: dict[str, str] = {}
        if name in episodes:
            ours = success_text([decode(line, name) for _, line in split_lines(episodes[name], name)])
        for member, text in ours.items():
            if len(text) > len(published.get(member, "")):
                raise RecordError(f"{name}: {member!r} must have no more episodes than published, found {len(text)}")
        for member, text in published.items():
            mine = ours.get(member, "")
            count = members.setdefault(member, dict.fromkeys(("agree", "total", "successes", "published_successes"), 0))
            count["agree"] += sum(a == b for a, b in zip(mine, text, strict=False))
            count["total"] += len(text)
            count["successes"] += mine.count("1")
            count["published_successes"] += text.count("1")
    digests = {name: sha256_hex(data) for name, data in episodes.items()}
    return {
        "files_identical": sum(digests.get(name) == stated for name, stated in facts_row["episode_files"].items()),
        "files_total": len(facts_row["episode_files"]),
        "episodes_agree": sum(count["agree"] for count in members.values()),
        "episodes_total": sum(count["total"] for count in members.values()),
        "per_member": members,
    }
