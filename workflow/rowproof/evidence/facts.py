"""Facts of published rows, small enough to live in this repository, and the comparison of own episodes with them.

A fact row keeps the summary numbers, the hash of every episode file and the success of every episode. Success is
written per file and member as one text of ``0`` and ``1``, character i for the member's i-th episode; nothing is lost.

Stands apart from what verifies published bundles, so that a change there asks for no board again.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rowproof.errors import RecordError
from rowproof.evidence.statistics import partner_of
from rowproof.hashing import sha256_hex
from rowproof.records import decode, split_lines
from rowproof.strict_yaml import parse


def success_text(records: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Success of each member's episodes in record order, as ``0`` and ``1``; members in order of first appearance."""
    texts: dict[str, str] = {}
    for record in records:
        name = partner_of(record)
        texts[name] = texts.get(name, "") + ("1" if record["success"] else "0")
    return texts


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
