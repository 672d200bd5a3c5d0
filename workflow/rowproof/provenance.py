"""Who made a bundle, when, where and by which files: bound to the bundle and no part of its identity.

No stage is keyed by this module: what it writes is compared with nothing and reaches no other file.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from rowproof.errors import RecordError
from rowproof.hashing import sha256_hex
from rowproof.layout import PROVENANCE, document_digest
from rowproof.records import NULL, Kinds, check_fields, decode, encode_document
from rowproof.stages import SHOWN

SCHEMA = "rowproof/provenance/3"
FIELDS = {
    "schema": (str,),
    "row_digest": (str,),
    "dirty": (bool,),
    "totals": (dict,),
    "places": (dict,),
    "jobs": (list,),
    "digest": (str,),
}
# Of earlier bundles, whose recipes held the places of code themselves.
EARLIER_SCHEMA = "rowproof/provenance/2"
EARLIER_FIELDS = {key: kinds for key, kinds in FIELDS.items() if key != "places"}
JOB_FIELDS = {
    "stage": (str,),
    "shard": (str, NULL),
    "commit": (str,),
    "dirty": (bool,),
    "seconds": (float,),
    "platform": (str,),
    "cpu_model": (str,),
    "python": (str,),
    "versions": (dict,),
}
# What jobs of earlier versions do not tell.
RESOURCE_FIELDS = {"host": (str,), "threads": (int,), "peak_memory_mb": (float,), "slurm_job_id": (str, NULL)}
TIME_FIELDS = {"started": (str,), "ended": (str,)}
MAX_TEXT = 200
"""Characters of a text that a job tells of the machine."""
# Whole seconds of UTC.
TIME_FORMAT = "%Y-%m-%dT%H:%M:%S+00:00"


def totals_of(jobs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What the jobs of a row took together: their number, seconds by stage and in all, and the largest peak memory."""
    jobs = list(jobs)
    stages = dict.fromkeys(job["stage"] for job in jobs)
    peaks = [job["peak_memory_mb"] for job in jobs if "peak_memory_mb" in job]
    return {
        "jobs": len(jobs),
        "seconds": round(math.fsum(job["seconds"] for job in jobs), 3),
        "seconds_by_stage": {s: round(math.fsum(j["seconds"] for j in jobs if j["stage"] == s), 3) for s in stages},
        "peak_memory_mb": max(peaks, default=None),
    }


def job_fields(job: Any) -> dict[str, Kinds]:
    """The fields of a job's entry: those of today's jobs, or of earlier ones, which told less."""
    told = job if isinstance(job, dict) else {}
    return {**JOB_FIELDS, **(RESOURCE_FIELDS if "host" in told else {}), **(TIME_FIELDS if "started" in told else {})}


def build_provenance(bundle_json: bytes, jobs: list[dict[str, Any]], places: Mapping[str, Any]) -> bytes:
    """``provenance.json`` of a bundle.

    Args:
        bundle_json: the bundle's document, to whose digest it is bound.
        jobs: entries of all jobs.
        places: by stage, what is shown beside the recipe.
    """
    document = {
        "schema": SCHEMA,
        "row_digest": sha256_hex(bundle_json),
        "dirty": any(job["dirty"] for job in jobs),
        "totals": totals_of(jobs),
        "places": dict(places),
        "jobs": jobs,
    }
    return encode_document({**document, "digest": document_digest(document)})


def kept_provenance(path: Path, bundle_json: bytes, timed_by: list[dict[str, Any]]) -> bytes | None:
    """The provenance in ``path`` if it is that of this very bundle, which then is restored and not made anew.

    A damaged one counts as none, and so does one that does not tell of the jobs ``timed_by`` which timed the row.
    """
    if not path.is_file():
        return None
    data = path.read_bytes()
    try:
        document = read_provenance(data)
    except RecordError:
        return None
    same = document["row_digest"] == sha256_hex(bundle_json) and data == encode_document(document)
    return data if same and all(job in document["jobs"] for job in timed_by) else None


def read_provenance(data: bytes) -> dict[str, Any]:
    """A provenance document that is as it was written.

    Raises:
        RecordError: malformed, of another form, or edited.
    """
    document = decode(data, PROVENANCE)
    earlier = isinstance(document, dict) and document.get("schema") == EARLIER_SCHEMA
    check_fields(document, EARLIER_FIELDS if earlier else FIELDS, PROVENANCE)
    if document["schema"] not in (SCHEMA, EARLIER_SCHEMA):
        raise RecordError(f"{PROVENANCE}: schema must be {SCHEMA}, found {document['schema']!r}")
    for index, job in enumerate(document["jobs"]):
        _check_job(job, f"{PROVENANCE}: jobs[{index}]")
    for stage, places in document.get("places", {}).items():
        if not isinstance(places, dict) or not set(places) <= set(SHOWN):
            raise RecordError(f"{PROVENANCE}: places of {stage} must tell {', '.join(SHOWN)} alone")
    if document["digest"] != document_digest(document):
        raise RecordError(f"{PROVENANCE}: must be as it was written, found its digest does not fit")
    if document["totals"] != totals_of(document["jobs"]):
        raise RecordError(f"{PROVENANCE}: totals must be those of the jobs, found {document['totals']}")
    if document["dirty"] != any(job["dirty"] for job in document["jobs"]):
        raise RecordError(f"{PROVENANCE}: dirty must be true exactly when a job ran in a modified checkout")
    return document


def _check_job(job: Any, where: str) -> None:
    check_fields(job, job_fields(job), where)
    if re.fullmatch("[0-9a-f]{40}|unknown", job["commit"]) is None:
        raise RecordError(f"{where}: commit must be 40 hex or unknown, found {job['commit']!r}")
    # Jobs write and do not read; what this needs would make each of them start later.
    from rowproof.plain_text import plain_line

    for name, text in _texts(job, where):
        try:
            plain_line(text)
        except ValueError as error:
            raise RecordError(f"{where}: {name} {error}") from None
        if len(text) > MAX_TEXT:
            raise RecordError(f"{where}: {name} must have at most {MAX_TEXT} characters, found {len(text)}")
    if job["seconds"] < 0:
        raise RecordError(f"{where}: seconds must not be negative, found {job['seconds']}")
    if "started" in job:
        for name in TIME_FIELDS:
            if not _is_time(job[name]):
                raise RecordError(f"{where}: {name} must be a time of the form {TIME_FORMAT}, found {job[name]!r}")


def _texts(job: Mapping[str, Any], where: str) -> Iterator[tuple[str, str]]:
    """The texts of a job's entry, each with its name."""
    yield from ((name, value) for name, value in job.items() if isinstance(value, str))
    for name, value in job["versions"].items():
        if not isinstance(value, str):
            raise RecordError(f"{where}: versions must be texts, found {value!r} for {name!r}")
        yield "versions", name
        yield f"version of {name}", value


def _is_time(text: str) -> bool:
    try:
        # Reading alone would take fewer digits as well.
        return datetime.strptime(text, TIME_FORMAT).strftime(TIME_FORMAT) == text
    except ValueError:
        return False
