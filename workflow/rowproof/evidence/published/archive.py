"""A published admission archive: its report, and the evidence files that it names."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rowproof.errors import HistoryGap, RecordError
from rowproof.evidence.published.files import plain_name
from rowproof.evidence.published.records import RECORD_SCHEMA
from rowproof.git import History
from rowproof.records import NULL, Kinds, check_fields, decode, decode_lines

REPORT = "admission_report.json"
REPORT_SCHEMA: Mapping[str, Kinds] = {
    "schema_version": (int,),
    "task_id": (str,),
    "task_version": (int,),
    "prereg_git_tag": (str,),
    "prereg_blob_sha": (str,),
    "git_sha": (str,),
    "dirty": (bool,),
    "date_stamp": (str,),
    "checks": (list,),
    "verdict": (str,),
    "seed_extension_used": (bool,),
    "binding_evidence": (dict,),
    "ego_robustness_profile": (dict, NULL),
    "notes": (str,),
}
CHECK_SCHEMA: Mapping[str, Kinds] = {
    "check": (str,),
    "outcome": (str,),
    "criterion": (str,),
    "statistics": (dict,),
    "bundles": (list,),
    "evidence": (dict,),
    "extended": (bool,),
    "notes": (str,),
}
OUTCOMES = ("PASS", "FAIL", "INDETERMINATE")
CHECK_ORDER = ("A1", "A2", "A3", "A4")


@dataclass
class Archive:
    """What has been read of an archive so far; later checks use what earlier ones could load."""

    path: Path
    root: Path | None
    history: History
    files: dict[str, bytes]
    others: dict[str, str]
    report: dict[str, Any] = field(default_factory=dict)
    plan: dict[str, Any] | None = None
    plan_bytes: bytes | None = None
    statistics: dict[str, dict[str, Any]] = field(default_factory=dict)
    profile: dict[str, dict[str, float]] | None = None

    @property
    def rules(self) -> dict[str, Any]:
        """The admission block of the plan; raises :class:`HistoryGap` when the plan is not here."""
        if self.plan is None:
            raise HistoryGap("the plan of this archive is not here: verify it inside the published tree")
        return self.plan["parameters"]["admission"]

    def entry(self, check: str) -> dict[str, Any]:
        """The plan's block of a check: a measured cell, or wrapped evidence."""
        return self.rules[check.lower()]

    def evidence_file(self, name: str, wrapped: bool) -> bytes:
        """Bytes of an evidence file by its recorded path, which must stay inside the archive or the published tree."""
        parts = name.split("/")
        if not all(plain_name(part) for part in parts):
            raise RecordError(f"evidence paths must be relative and plain, found {name!r}")
        if wrapped and self.root is None:
            raise HistoryGap(f"{name} is not found above the archive: verify it inside the published tree")
        base = self.root if wrapped else self.path
        target = base.joinpath(*parts)
        if target.resolve() != base.resolve().joinpath(*parts):
            raise RecordError(f"evidence must not be reached through links, found {name!r}")
        return target.read_bytes()


def check_report(document: Any) -> dict[str, Any]:
    """``admission_report.json`` when it has the published form; the profile may be absent.

    Raises:
        RecordError: naming the field.
    """
    where = REPORT
    schema = dict(REPORT_SCHEMA)
    if type(document) is dict and "ego_robustness_profile" not in document:
        del schema["ego_robustness_profile"]
    check_fields(document, schema, where)
    if document["schema_version"] != 1:
        raise RecordError(f"{where}: schema_version must be 1, found {document['schema_version']}")
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", document["date_stamp"]):
        raise RecordError(f"{where}: date_stamp must be YYYY-MM-DD, found {document['date_stamp']!r}")
    for key in ("prereg_blob_sha", "git_sha"):
        if not re.fullmatch(r"[0-9a-f]{40}", document[key]) and (key, document[key]) != ("git_sha", "unknown"):
            raise RecordError(f"{where}: {key} must be 40 lower-case hexadecimal digits, found {document[key]!r}")
    for check in document["checks"]:
        check_fields(check, CHECK_SCHEMA, f"{where}: checks")
        if check["outcome"] not in OUTCOMES:
            raise RecordError(f"{where}: outcome must be one of {OUTCOMES}, found {check['outcome']!r}")
        check_floats(check["statistics"], f"{where}: {check['check']}: statistics")
        if any(type(name) is not str or not plain_name(name) for name in check["bundles"]):
            raise RecordError(f"{where}: {check['check']}: bundles must be plain directory names")
        if any(not re.fullmatch(r"[0-9a-f]{64}", str(value)) for value in check["evidence"].values()):
            raise RecordError(f"{where}: {check['check']}: evidence must map paths to 64 hexadecimal digits")
    names = [check["check"] for check in document["checks"]]
    if names not in ([*CHECK_ORDER[:1]], [*CHECK_ORDER[:3]], [*CHECK_ORDER]):
        raise RecordError(f"{where}: checks must be A1, or A1 to A3, or A1 to A4, found {names}")
    check_floats(document["binding_evidence"], f"{where}: binding_evidence")
    for member, statistics in (document.get("ego_robustness_profile") or {}).items():
        if type(statistics) is not dict:
            raise RecordError(f"{where}: ego_robustness_profile must map members to objects, found {member!r}")
        check_floats(statistics, f"{where}: ego_robustness_profile: {member}")
    return document


def check_floats(values: Mapping[str, Any], where: str) -> None:
    """Raise :class:`RecordError` unless every value is a float."""
    for key, value in values.items():
        if type(value) is not float:
            raise RecordError(f"{where}: {key} must be float, found {type(value).__name__}")


def records_of(archive: Archive, directory: str, wrapped: bool) -> list[dict[str, Any]]:
    """All records of a bundle, in schedule order."""
    meta = decode(archive.evidence_file(f"{directory}/bundle.json", wrapped), f"{directory}/bundle.json")
    names = [f"{directory}/episodes_seed{seed}.jsonl" for seed in meta["seed_schedule"]["seeds"]]
    return [record for n in names for record in decode_lines(archive.evidence_file(n, wrapped), RECORD_SCHEMA, n)]
