"""Facts of published rows, small enough to live in this repository, and the comparison of own episodes with them.

A fact row keeps the summary numbers, the hash of every episode file and the success of every episode. Success is
written per file and member as one text of ``0`` and ``1``, character i for the member's i-th episode; nothing is lost.

Stands apart from what verifies published bundles, so that a change there asks for no board again.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rowproof.errors import RecordError
from rowproof.evidence.statistics import linear_percentile, partner_of
from rowproof.hashing import sha256_hex
from rowproof.records import decode, split_lines
from rowproof.strict_yaml import parse

MEMBER_COUNTS = ("episodes", "agree", "only_here", "only_published", "successes_here", "successes_published")


def success_text(records: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Success of each member's episodes in record order, as ``0`` and ``1``; members in order of first appearance."""
    texts: dict[str, str] = {}
    for record in records:
        name = partner_of(record)
        texts[name] = texts.get(name, "") + ("1" if record["success"] else "0")
    return texts


def channel_summary(records: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """``p50``, ``p90`` (the published linear percentile) and ``mean`` of every measured quantity in the metadata.

    A channel is a metadata field that is a float in all of ``records``; the order is that of the first record, the
    unit that of the field. Nothing depends on the order of the records.

    Raises:
        RowproofError: a value is NaN or infinite.
    """
    channels: dict[str, dict[str, float]] = {}
    for name in records[0]["metadata"] if records else ():
        values = [record["metadata"].get(name) for record in records]
        if all(type(value) is float for value in values):
            percentiles = {f"p{q}": linear_percentile(values, float(q)) for q in (50, 90)}
            channels[name] = {**percentiles, "mean": math.fsum(values) / len(values)}
    return channels


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
        ``per_member``: name to ``episodes`` (published), ``agree``, ``only_here`` and ``only_published`` (episodes
        that succeed on one side alone), ``successes_here`` and ``successes_published``. Files and episodes that we
        lack count in ``episodes`` and in the totals, and in none of ``agree``, ``only_here``, ``only_published``.

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
            pairs = list(zip(mine, text, strict=False))
            count = members.setdefault(member, dict.fromkeys(MEMBER_COUNTS, 0))
            count["episodes"] += len(text)
            count["agree"] += sum(a == b for a, b in pairs)
            count["only_here"] += pairs.count(("1", "0"))
            count["only_published"] += pairs.count(("0", "1"))
            count["successes_here"] += mine.count("1")
            count["successes_published"] += text.count("1")
    digests = {name: sha256_hex(data) for name, data in episodes.items()}
    return {
        "files_identical": sum(digests.get(name) == stated for name, stated in facts_row["episode_files"].items()),
        "files_total": len(facts_row["episode_files"]),
        "episodes_agree": sum(count["agree"] for count in members.values()),
        "episodes_total": sum(count["episodes"] for count in members.values()),
        "per_member": members,
    }


def member_lines(per_member: Mapping[str, Mapping[str, int]]) -> list[list[str]]:
    """The per-member comparison as text: a header, one line per member, and a line for all if there are several.

    Args:
        per_member: of :func:`compare_with_facts`.
    """
    counts = dict(per_member)
    if len(counts) > 1:
        counts["all"] = {name: sum(count[name] for count in per_member.values()) for name in MEMBER_COUNTS}
    lines = [["Member", "Episodes", "Agreeing", "Only here", "Only published", "Rate here", "Rate published"]]
    for member, count in counts.items():
        played = count["agree"] + count["only_here"] + count["only_published"]
        rates = ((count["successes_here"], played), (count["successes_published"], count["episodes"]))
        lines.append(
            [
                member,
                *(str(count[name]) for name in ("episodes", "agree", "only_here", "only_published")),
                *(f"{won / n:.3f}" if n else "—" for won, n in rates),
            ]
        )
    return lines
