"""Rebuild rows in a fresh place and compare them with the committed bundles, as strictly as their tier says."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from rowproof.errors import RecordError, RowproofError
from rowproof.families import engines
from rowproof.layout import UNLISTED
from rowproof.recipes import adopt_costly, prepare
from rowproof.records import decode, encode_line, split_lines


@dataclass(frozen=True)
class Comparison:
    """How a rebuilt row compares with the committed one."""

    row: str
    tier: str
    match: bool
    detail: str


def rebuild(root: Path, targets: list[str], workdir: Path, cores: int, write: Callable[[str], Any]) -> None:
    """Build ``targets`` from scratch in the empty folder ``workdir`` with the project's own workflow.

    Raises:
        RowproofError: the workflow failed; its last lines are in the message.
    """
    command = [
        *(sys.executable, "-m", "snakemake", "--snakefile", str(root / "Snakefile")),
        *("--directory", str(workdir), "--workflow-profile", str(root / "profiles" / "default")),
        *("--cores", str(cores), "--nocolor", *targets),
    ]
    tail: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", errors="replace"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            tail = [*tail[-40:], line.rstrip()]
            if " steps (" in line:
                write(line.strip())
    if process.returncode != 0:
        raise RowproofError("the rebuild must succeed, found an error:\n" + "\n".join(tail))


def first_difference(name: str, committed: bytes, rebuilt: bytes) -> str:
    """Where two versions of a file differ: record and field for JSON lines, field for JSON, else the byte."""
    try:
        if name.endswith(".jsonl"):
            old, new = ([line for _, line in split_lines(data, name)] for data in (committed, rebuilt))
            for number, (a, b) in enumerate(zip(old, new, strict=False), start=1):
                if a != b:
                    return f"{name}: record {number}, {field_difference(decode(a, name), decode(b, name))}"
            return f"{name}: {len(old)} records committed, {len(new)} rebuilt"
        if name.endswith(".json"):
            return f"{name}: {field_difference(decode(committed, name), decode(rebuilt, name))}"
    except RecordError:
        pass  # A damaged file has no fields.
    for index, (a, b) in enumerate(zip(committed, rebuilt, strict=False)):
        if a != b:
            return f"{name}: byte {index}"
    return f"{name}: {len(committed)} bytes committed, {len(rebuilt)} rebuilt"


def field_difference(old: Any, new: Any, path: str = "") -> str:
    """The first field, in the order of writing, in which two values differ, with both of its values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *new]:
            if key not in old or key not in new or encode_line(old[key]) != encode_line(new[key]):
                return field_difference(old.get(key), new.get(key), f"{path}.{key}" if path else str(key))
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (a, b) in enumerate(zip(old, new, strict=True)):
            if encode_line(a) != encode_line(b):
                return field_difference(a, b, f"{path}[{index}]")
    if encode_line(old) == encode_line(new):
        return "written differently"
    return f"field {path}: committed {encode_line(old)[:120]}, rebuilt {encode_line(new)[:120]}"


def _object(data: bytes, where: str) -> dict[str, Any]:
    value = decode(data, where)
    if not isinstance(value, dict):
        raise RecordError(f"{where}: must be an object, found {type(value).__name__}")
    return value


def _without_stress(bundle: dict[str, Any]) -> Any:
    summary = bundle.get("summary")
    return {**summary, "stress": None} if isinstance(summary, dict) else summary


def compare(row: str, committed: Path, rebuilt: Path) -> Comparison:
    """Compare two bundles of one row by the tier that the committed one states.

    ``exact``: every identity file byte for byte. ``outcome``: the success of every episode, and the summary apart
    from the stress figures, which carry the digits of a physics engine. ``statistical``: every record as near to the
    committed one as the row's engine demands. What a clock showed is compared by no tier.

    Raises:
        RowproofError: there is no committed bundle, or its tier has no rule here.
        RecordError: a file that must be read is damaged.
    """
    if not (committed / "bundle.json").is_file():
        raise RowproofError(f"{row}: must have a committed bundle to compare with, found none in {committed}")
    document = _object((committed / "bundle.json").read_bytes(), f"{row}/bundle.json")
    tier = document.get("tier")
    names = sorted({path.name for folder in (committed, rebuilt) for path in folder.iterdir()} - {*UNLISTED})
    if tier == "exact":
        # The manifest follows from the other files, so it is compared last.
        for name in sorted(names, key=lambda n: (n in ("bundle.json", "SHA256SUMS.txt"), n)):
            old, new = committed / name, rebuilt / name
            if not (old.is_file() and new.is_file()):
                return Comparison(row, tier, False, f"{name}: only {'committed' if old.is_file() else 'rebuilt'}")
            if old.read_bytes() != new.read_bytes():
                return Comparison(row, tier, False, first_difference(name, old.read_bytes(), new.read_bytes()))
        return Comparison(row, tier, True, f"{len(names)} of {len(names)} identity files identical")
    if tier == "outcome":
        fresh = _object((rebuilt / "bundle.json").read_bytes(), f"{row}/bundle.json")
        total, found = _compare_records(names, committed, rebuilt, record_difference(tier, document.get("engine", "")))
        if found:
            return Comparison(row, tier, False, found)
        old_summary, new_summary = (_without_stress(d) for d in (document, fresh))
        if encode_line(old_summary) != encode_line(new_summary):
            return Comparison(row, tier, False, f"bundle.json: summary, {field_difference(old_summary, new_summary)}")
        return Comparison(row, tier, True, f"{total} of {total} episodes agree in success; summary equal")
    if tier == "statistical":
        total, found = _compare_records(names, committed, rebuilt, record_difference(tier, document.get("engine", "")))
        if found:
            return Comparison(row, tier, False, found)
        return Comparison(row, tier, True, f"{total} of {total} records as near as the tier demands")
    raise RowproofError(f"{row}: no comparison is defined for tier {tier!r}")


def record_difference(tier: str, engine: str) -> Callable[[Any, Any], str | None]:
    """A function of two records: how the second differs from the first by more than the tier allows, or None.

    Raises:
        RowproofError: the tier has no rule, or the engine none for the tier ``statistical``.
    """
    if tier == "exact":
        return lambda old, new: None if encode_line(old) == encode_line(new) else field_difference(old, new)
    if tier == "outcome":
        return _same_success
    if tier != "statistical":
        raise RowproofError(f"records must be of a tier that can be compared, found {tier!r}")
    known = engines().get(engine)
    checks = None if known is None else import_module(known.checks_module or known.simulate_module)
    difference: Callable[[Any, Any], str | None] | None = getattr(checks, "difference", None)
    if difference is None:
        raise RowproofError(f"engine {engine!r} must say how near a record must come, found none")
    return difference


def _same_success(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    if old.get("success") is new.get("success"):
        return None
    return field_difference({"success": old.get("success")}, {"success": new.get("success")})


def _compare_records(
    names: list[str], committed: Path, rebuilt: Path, difference: Callable[[Any, Any], str | None]
) -> tuple[int, str | None]:
    """The number of records compared, and the first that differs."""
    total = 0
    for name in (n for n in names if n.endswith(".jsonl")):
        if not ((committed / name).is_file() and (rebuilt / name).is_file()):
            return total, f"{name}: only {'committed' if (committed / name).is_file() else 'rebuilt'}"
        old, new = (
            [_object(line, name) for _, line in split_lines((folder / name).read_bytes(), name)]
            for folder in (committed, rebuilt)
        )
        for number, (a, b) in enumerate(zip(old, new, strict=False), start=1):
            total += 1
            found = difference(a, b)
            if found:
                return total, f"{name}: record {number}, {found}"
        if len(old) != len(new):
            return total, f"{name}: {len(old)} records committed, {len(new)} rebuilt"
    return total, None


def published_agreement(root: Path, row: str, rebuilt: Path, tier: str) -> list[str]:
    """How the rebuilt records compare with the published facts of this row, as lines; empty when none are shipped.

    Below one line for the row stands a table by member, unless the tier is ``exact``. What cannot be compared is said
    in the line: how near a row must come to the published one is the plan's business and decides nothing here.
    """
    from rowproof.evidence.facts import compare_with_facts, load_facts, member_lines

    board, _, name = row.rpartition("/")
    facts = load_facts(board, root).get(name)
    if facts is None:
        return []
    if any(rebuilt.glob("checkpoint_seed*")):
        return ["published row: of other trainings, so episodes do not compare; rates do, on the board's page"]
    episodes = {path.name: path.read_bytes() for path in sorted(rebuilt.glob("episodes_seed*.jsonl"))}
    try:
        found = compare_with_facts(facts, episodes)
    except RecordError as error:
        return [f"published row: cannot be compared: {error}"]
    line = (
        f"published row: {found['files_identical']} of {found['files_total']} record files byte-identical, "
        f"{found['episodes_agree']} of {found['episodes_total']} episodes agree in success"
    )
    return [line] if tier == "exact" else [line, *_aligned(member_lines(found["per_member"]))]


def _aligned(lines: list[list[str]]) -> list[str]:
    """Cells as columns: the first to the left, numbers to the right."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return [
        "  ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))])
        for line in lines
    ]


def _refuse_unasked(root: Path, workdir: Path, learned: set[str], timed: set[str]) -> None:
    """Refuse to begin where a row would be trained or timed again, though nobody asked for it.

    Raises:
        RowproofError: naming these rows and the option that asks for it.
    """
    launch = prepare(root, workdir, touch=False)
    for names, stages, option, what in (
        (learned, ("train", "select"), "--retrain", "trainings and selections"),
        (timed, ("time",), "--retime", "times"),
    ):
        plans = [launch.row(name) for name in sorted(names)]
        files = {plan.name: [file for stage in stages for file in plan.products(stage)] for plan in plans}
        again = [name for name, own in files.items() if not all((workdir / file).exists() for file in own)]
        if again:
            raise RowproofError(
                f"{', '.join(again)}: must have {what} of today's recipe and undamaged in the bundle, found others "
                f"(rowproof why tells which): restore or rebuild the bundle, or make them again with {option}"
            )


def reproduce(
    root: Path,
    results: Path,
    rows: list[str],
    cores: int,
    keep: Path | None,
    write: Callable[[str], Any],
    retrain: bool = False,
    retime: bool = False,
) -> bool:
    """Rebuild ``rows`` and report on each; returns whether all match the committed bundles.

    Args:
        root: the project.
        results: the folder of the committed bundles.
        rows: ``<board>/<row>`` names.
        cores: how many jobs run at once.
        keep: where to leave the rebuilt rows; None throws them away.
        write: receives the lines of the report.
        retrain: train learned rows again, instead of evaluating the checkpoints that their bundles carry.
        retime: time timed rows again, with all others of their board, instead of taking the times of their bundles.
    """
    with tempfile.TemporaryDirectory(prefix="rowproof-") as temporary:
        workdir = keep or Path(temporary)
        if keep is not None and keep.exists() and any(keep.iterdir()):
            raise RowproofError(f"{keep}: must be empty, so that nothing old is compared: choose another folder")
        missing = [row for row in rows if not (results / row / "bundle.json").is_file()]
        if missing:
            raise RowproofError(f"{', '.join(missing)}: must have a committed bundle to compare with, found none")
        workdir.mkdir(parents=True, exist_ok=True)
        plans = [plan for plan in prepare(root, workdir, touch=False).rows if plan.name in rows]
        learned = {plan.name for plan in plans if plan.learned and not retrain}
        timed = {plan.name for plan in plans if plan.timings and not retime}
        if learned | timed:
            adopt_costly(root, results, workdir, sorted(learned | timed), checkpoints=not retrain, times=not retime)
        _refuse_unasked(root, workdir, learned, timed)
        rebuild(root, [f"results/{row}" for row in rows], workdir, cores, write)
        good = True
        for row in rows:
            try:
                comparison = compare(row, results / row, workdir / "results" / row)
            except RecordError as error:
                comparison = Comparison(row, "unreadable", False, str(error))
            good = good and comparison.match
            verdict = "match" if comparison.match else "DIFFERS"
            write(f"{verdict} {row} (tier {comparison.tier}): {comparison.detail}")
            for line in published_agreement(root, row, workdir / "results" / row, comparison.tier):
                write(f"      {line}")
        return good
