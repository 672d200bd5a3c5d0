"""The files that an attempt leaves in a folder of its own, written all at once when it is over."""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from rowproof.errors import ConfigError, RecordError
from rowproof.files import write_atomic
from rowproof.records import decode, digest, encode_document
from rowproof.speedrun.dialogue import Dialogue, Task, Turn, encode_transcript
from rowproof.speedrun.logs import harness_log, tail
from rowproof.speedrun.patching import apply_patch, canonical_diff
from rowproof.speedrun.policy import check_policy
from rowproof.speedrun.row import Provenance, build_row, stamped_timing

COMPLETION = "completion.json"
ROW = "row.json"

Data = dict[str, Any]


def attempt_id(task: Task, answers: list[str], **more: Any) -> str:
    """The name of an attempt, 16 hex digits: it says which answers were given to which task, and nothing of runs."""
    return digest(
        {
            "record": task.record.record_id,
            "base_sha256": task.record.code_sha256,
            "arguments": task.arguments.model_dump(mode="json"),
            "answers": answers,
            **more,
        }
    )[:16]


def check_folder(folder: Path, attempt: str | None) -> None:
    """Refuse a folder that holds anything but the attempt of this name, or anything at all with None.

    Raises:
        ConfigError: it does.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    try:
        found = decode((folder / COMPLETION).read_bytes(), COMPLETION)["attempt_id"]
    except (OSError, RecordError, LookupError, TypeError):
        found = "other files"
    if attempt is None or found != attempt:
        raise ConfigError(
            f"{folder}: must be an empty folder or hold this attempt, found {found}: name another one with --output"
        )


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Put a folder with these files (by relative path) in place of what is there; it is never seen half done."""
    parent = folder.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=parent) as name:
        made, old = Path(name, "made"), Path(name, "old")
        for path, data in files.items():
            write_atomic(made / path, data)
        if folder.exists():
            folder.rename(old)
        made.rename(folder)
        shutil.rmtree(old, ignore_errors=True)


def attempt_files(dialogue: Dialogue, transcript: Data, by: Provenance, source: Data) -> tuple[dict[str, bytes], Data]:
    """The files of an attempt by relative path, and the row that one of them (:data:`ROW`) holds.

    Args:
        dialogue: it is over.
        transcript: of it.
        by: who made the attempt, and with what.
        source: what is known of the proposer: model, sampling, files.
    """
    task = dialogue.task
    turn = _scored(dialogue, transcript)
    final = turn.final if turn else None
    evidence = final.evidence if final else {}
    files = {
        COMPLETION: encode_document(
            {
                "attempt_id": by.attempt_id,
                "prompt": transcript["prompt"],
                "messages": transcript["messages"],
                "proposer": source,
            }
        ),
        "dialogue.json": encode_transcript(transcript),
    }
    if turn is not None:
        files["extract.json"] = encode_document(
            {
                "steps": [[name, characters] for name, characters in turn.steps],
                "flags": list(turn.flags),
                "outcome": str(turn.outcome),
                "detail": turn.detail if final is None else final.detail,
            }
        )
    patched = None if turn is None else _patched(turn, task)
    if patched is not None:
        files["patched.py"] = patched.encode("utf-8")
        files["canonical.diff"] = canonical_diff(task.code, patched, task.record.script_name).encode("utf-8")
        report = check_policy(patched, task.code)
        kinds = (("hard", report.hard), ("soft", report.soft))
        files["policy.json"] = encode_document({kind: [found._asdict() for found in places] for kind, places in kinds})
    files |= _evidence_files(evidence)
    row = build_row(task, transcript, evidence, by)
    if evidence:
        files["timing.json"] = encode_document(stamped_timing(evidence, by.machine))
        files |= _log(evidence, row)
    files[ROW] = encode_document(row)
    return files, row


def _scored(dialogue: Dialogue, transcript: Data) -> Turn | None:
    number = transcript["scored_turn"]
    return None if number is None else dialogue.turns[number - 1]


def _patched(turn: Turn, task: Task) -> str | None:
    """The patched script, also of a turn whose script may not run."""
    if turn.patched is not None or not turn.diff:
        return turn.patched
    return apply_patch(turn.base, turn.diff, task.record.script_name).patched


def _evidence_files(evidence: Mapping[str, Any]) -> dict[str, bytes]:
    files = {}
    for folder in ("base", "verify"):
        for record in evidence.get(folder, []):
            place = f"{folder}/{record['seed']}"
            files[f"{place}/eval.json"] = encode_document(
                {key: value for key, value in record.items() if key != "usage"}
            )
            files[f"{place}/usage.json"] = encode_document(record["usage"])
    for seed, (stdout, stderr) in evidence.get("outputs", {}).items():
        files[f"verify/{seed}/stdout.tail"] = tail(stdout)
        files[f"verify/{seed}/stderr.tail"] = stderr.encode("utf-8")
    return files


def _log(evidence: Mapping[str, Any], row: Data) -> dict[str, bytes]:
    """The harness's own log; none without a loss.

    Steps are the reads of training data, which the harness counts itself. An attempt that was not timed gives the time
    of its verification runs.
    """
    losses = [record["val_loss"] for record in evidence["verify"] if record["val_loss"] is not None]
    if not losses:
        return {}
    runs = [record["usage"] for record in evidence["verify"]]
    time_ms = row["timed"]["wall_ms_patched_median"] or 1000 * median(run["t_wall_s"] for run in runs)
    text = harness_log(max(1, runs[0]["requests"]), sum(losses) / len(losses), time_ms)
    return {"harness.log": text.encode("ascii")}
