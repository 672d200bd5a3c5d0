"""Attestations that other code makes the same records: ``config/equivalences/*.json``.

An attestation says of rows of a board that one stage, run by the code of two commits on the same units, made the same
bytes. A row whose recorded code is connected by attestations with the code at hand is current; its bundle keeps the
code that made it. What else a recipe holds is never bridged.
"""

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rowproof import git
from rowproof.errors import ConfigError, RecordError
from rowproof.layout import document_digest
from rowproof.records import NULL, check_fields, decode, digest, encode_document
from rowproof.seeding import substream
from rowproof.stages import EVERY_STAGE

FOLDER = "config/equivalences"
SCHEMA = "rowproof/equivalence/1"
DRAWN = 300
"""Episodes of a row that are compared where an engine is not exact."""
DRAWN_RUNS = 1
"""Runs of a row that are compared where each trains for minutes."""
DOCUMENT_FIELDS = {
    "schema": (str,),
    "board": (str,),
    "stage": (str,),
    "rows": (dict,),
    "made": (dict,),
    "digest": (str,),
}
ROW_FIELDS = {"before": (dict,), "after": (dict,), "draw": (str,), "units": (dict,)}
SIDE_FIELDS = {"commit": (str,), "code": (dict,), "places": (dict,)}
UNITS_FIELDS = {"what": (str,), "of": (int,), "drawn": (list, NULL), "old": (list,), "compared_sha256": (str,)}
MADE_FIELDS = {"started": (str,), "ended": (str,), "seconds": (float,), "platform": (str,), "versions": (dict,)}


def draw_of(stage: str, row: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """The digest from which the compared units are drawn: of both codes, of the stage and of the row."""
    return digest({"stage": stage, "row": row, "before": before["key"], "after": after["key"]})


def drawn_units(draw: str, of: int, count: int) -> list[int]:
    """``count`` of the numbers below ``of`` (all, if there are not so many), in order."""
    if of <= count:
        return list(range(of))
    rng = substream(f"attest.units.{draw}", 0)
    return sorted(int(index) for index in rng.permutation(of)[:count])


def how_many(replays: bool, tier: str) -> int | None:
    """How many records of a row are compared; None for all, which an exact engine makes in no time."""
    if replays:
        return None
    return DRAWN_RUNS if tier == "statistical" else DRAWN


def read_attestation(data: bytes, where: str) -> dict[str, Any]:
    """An attestation that is as it was written.

    Raises:
        RecordError: malformed, of another form, or edited.
    """
    document = check_fields(decode(data, where), DOCUMENT_FIELDS, where)
    if document["schema"] != SCHEMA:
        raise RecordError(f"{where}: schema must be {SCHEMA}, found {document['schema']!r}")
    if document["stage"] not in EVERY_STAGE:
        raise RecordError(f"{where}: stage must be one of {', '.join(EVERY_STAGE)}, found {document['stage']!r}")
    for row, entry in document["rows"].items():
        place = f"{where}: {row}"
        check_fields(entry, ROW_FIELDS, place)
        for side in ("before", "after"):
            check_fields(entry[side], SIDE_FIELDS, f"{place}: {side}")
            check_fields(entry[side]["code"], {"form": (int,), "key": (str,)}, f"{place}: {side}: code")
        check_fields(entry["units"], UNITS_FIELDS, f"{place}: units")
    check_fields(document["made"], MADE_FIELDS, f"{where}: made")
    if document["digest"] != document_digest(document) or encode_document(document) != data:
        raise RecordError(f"{where}: must be as it was written, found its digest does not fit")
    return document


def _code(code: Mapping[str, Any]) -> str:
    return json.dumps(dict(code), sort_keys=True)


@dataclass
class Equivalences:
    """The attestations of a checkout that count: those that are committed as they are.

    Attributes:
        edges: (row, stage) -> (code, code, file), the codes as canonical text.
    """

    edges: dict[tuple[str, str], list[tuple[str, str, str]]] = field(default_factory=dict)

    @classmethod
    def read(cls, root: Path) -> "Equivalences":
        """The committed attestations of the checkout ``root``; one that is not committed as it is counts for nothing.

        Raises:
            ConfigError: one is malformed or edited.
        """
        found = cls()
        folder = root / FOLDER
        paths = sorted(folder.glob("*.json")) if folder.is_dir() else []
        if not paths:
            return found
        listed = git.run(root, "ls-tree", "-z", "HEAD", "--", f"{FOLDER}/")
        entries = [entry.split("\t", 1) for entry in (listed or b"").decode("utf-8", "replace").split("\0") if entry]
        committed = {Path(path).name: meta.split()[2] for meta, path in entries}
        for path in paths:
            data = path.read_bytes()
            try:
                document = read_attestation(data, f"{FOLDER}/{path.name}")
            except RecordError as error:
                raise ConfigError(f"{error}: make it again with rowproof attest, or remove it") from None
            if committed.get(path.name) == git.blob_id(data):
                found.add(document, path.name)
        return found

    def add(self, document: Mapping[str, Any], name: str) -> None:
        """Take in one attestation, called by the name of its file."""
        for row, entry in document["rows"].items():
            key = (f"{document['board']}/{row}", document["stage"])
            edge = (_code(entry["before"]["code"]), _code(entry["after"]["code"]), name)
            self.edges.setdefault(key, []).append(edge)

    def chain(self, row: str, stage: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...] | None:
        """The attestations that connect two codes of a stage of the row ``<board>/<row>``; None if none do.

        Equal codes need none. The shortest chain is given, by name among equals.
        """
        start, goal = _code(was), _code(now)
        if start == goal:
            return ()
        steps: dict[str, list[tuple[str, str]]] = {}
        for one, other, name in self.edges.get((row, stage), ()):
            steps.setdefault(one, []).append((other, name))
            steps.setdefault(other, []).append((one, name))
        seen, queue = {start}, deque([(start, ())])
        while queue:
            code, chain = queue.popleft()
            for target, name in sorted(steps.get(code, ()), key=lambda step: step[1]):
                if target == goal:
                    return (*chain, name)
                if target not in seen:
                    seen.add(target)
                    queue.append((target, (*chain, name)))
        return None
