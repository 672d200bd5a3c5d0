"""Makes and checks attestations of equivalence: old and new code run on the same units and must make the same bytes.

Which units are compared follows from both codes, so nobody can choose them. Exact engines: all episodes. Others: as
many of each row as :func:`~rowproof.equivalence.how_many` says. Trainings: the first update of every seed, and one
whole training of a drawn seed. Selections: the checkpoints that the bundle holds. Where a unit takes minutes (whole
trainings, runs of a board of the tier ``statistical``) the records of the bundle stand for the old code if the new code
makes the same bytes. Times cannot be made again: the programs that were timed must be untouched, and the records that
say what they computed attested.
"""

import platform
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rowproof import git
from rowproof.equivalence import FOLDER, SCHEMA, Equivalences, draw_of, drawn_units, how_many, read_attestation
from rowproof.errors import RowproofError
from rowproof.files import write_atomic
from rowproof.hashing import sha256_hex
from rowproof.layout import document_digest, episode_file, learned_files
from rowproof.provenance import TIME_FORMAT
from rowproof.recipes import (
    Project,
    Recorded,
    board_statuses,
    keep_equivalent,
    keep_stage,
    record_recipes,
    stages_of,
    timing_recipe,
)
from rowproof.records import decode, digest, encode_document, encode_line, split_lines
from rowproof.stages import stage_key
from rowproof.units import Trees, run_units, unit_task
from rowproof.versions import installed

if TYPE_CHECKING:
    from rowproof.boards import BoardSetup

ATTESTED = ("train", "select", "specs", "simulate", "time")


@dataclass(frozen=True)
class Difference:
    """A stage of a row whose recorded code differs from that at hand, and nothing else of it."""

    row: str
    stage: str
    before: dict[str, Any]
    after: dict[str, Any]
    commit: str
    recorded: Recorded


def differences(setup: "BoardSetup", project: Project) -> list[Difference]:
    """What attestations could bridge: stages of a board's rows that differ by their code alone, bridged or not."""
    found = []
    statuses = board_statuses(setup, project)
    anything = _Anything()
    for row, status in statuses.items():
        if status.recorded.recipes is None or status.recorded.provenance is None:
            continue
        current = record_recipes(setup, row, project.tree)
        kept = keep_equivalent(setup, row, current, status.recorded, anything).recipes
        if "time" in stages_of(setup, row):
            keys = {
                name: stage_key((each.recorded.recipes or {}).get("simulate", each.recipes["simulate"]))
                for name, each in statuses.items()
            }
            current["time"] = timing_recipe(setup, setup.plan.rows[row].campaign, project.tree, keys)
            kept["time"] = keep_stage(setup, row, "time", current["time"], status.recorded, anything, {})
        for stage, was in kept.items():
            now = current[stage]
            if was["code"] != now["code"]:
                jobs = status.recorded.provenance["jobs"]
                commits = sorted({job["commit"] for job in jobs if job["stage"] == stage})
                found.append(Difference(row, stage, was, now, commits[0], status.recorded))
    return found


class _Anything(Equivalences):
    """Connects every code with every other: tells what else differs."""

    def chain(self, row: str, stage: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True)
class _Comparison:
    """What is compared for one stage of one row, by which tasks."""

    difference: Difference
    draw: str
    what: str
    of: int
    drawn: list[int] | None
    tasks: tuple[dict[str, Any], ...]


def _comparison(setup: "BoardSetup", found: Difference, results: Path) -> _Comparison:
    row, stage = found.row, found.stage
    name = f"{setup.board.board}/{row}"
    draw = draw_of(stage, name, found.before["code"], found.after["code"])
    seeds = list(setup.plan.grid.seeds)
    task = unit_task(setup, row, stage, found.after.get("producer"), results / name)
    if stage == "specs":
        return _Comparison(found, draw, "specs", 0, None, (task,))
    if stage == "select":
        return _Comparison(found, draw, "selected checkpoints", len(seeds), None, (task,))
    if stage == "train":
        (index,) = drawn_units(draw, len(seeds), 1)
        tasks = ({**task, "first_update_of": seeds}, {**task, "whole": [seeds[index]]})
        what = "trainings: the first update of each, and the drawn one whole"
        return _Comparison(found, draw, what, len(seeds), [index], tasks)
    grid = setup.plan.grid
    of = len(seeds) * len(setup.plan.partners_of(row)) * grid.episodes_per_partner
    count = how_many(setup.engine.replays, setup.board.tier)
    units = list(range(of)) if count is None else drawn_units(draw, of, count)
    drawn = None if len(units) == of else units
    return _Comparison(found, draw, "episodes", of, drawn, ({**task, "units": units},))


def clean_commit(root: Path) -> str:
    """The commit of a checkout that is not modified.

    Raises:
        RowproofError: it is.
    """
    state = git.tree_state(root)
    if state.dirty:
        raise RowproofError(
            f"an attestation speaks of commits: the checkout must be clean, found {', '.join(state.changed)} modified: "
            "commit first"
        )
    return state.commit


def attest(
    setup: "BoardSetup",
    project: Project,
    rows: Sequence[str],
    stages: Sequence[str],
    commit: str,
    cores: int,
    write: Callable[[str], Any],
) -> tuple[list[Path], bool]:
    """Compare old and new code of the named rows and stages, and write what holds as attestations.

    Stages that differ are said and left out: their rows are stale.

    Args:
        setup: the board.
        project: what its statuses rest on.
        rows: of the board.
        stages: some of :data:`ATTESTED`.
        commit: that of the checkout (:func:`clean_commit`).
        cores: processes at once.
        write: takes a line for each comparison.

    Returns:
        The files written, and whether everything that was compared is equal.

    Raises:
        RowproofError: a commit cannot be run.
    """
    # What a clock showed rests on attested records.
    wanted = [f for f in differences(setup, project) if f.row in rows and f.stage in stages]
    bridged = project.equivalences
    board = setup.board.board
    wanted = [
        f for f in wanted if bridged.chain(f"{board}/{f.row}", f.stage, f.before["code"], f.after["code"]) is None
    ]
    started = datetime.now(UTC)
    made: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="rowproof-attest-") as temporary:
        trees = Trees(project.root, Path(temporary) / "trees", setup.engine.files)
        for each in sorted({commit, *(found.commit for found in wanted)}):
            trees.at(each)
        plain = [found for found in wanted if found.stage != "time"]
        comparisons = [_comparison(setup, found, project.results) for found in plain]
        with ThreadPoolExecutor(cores) as pool:

            def run(index: int, number: int, commit: str) -> bytes:
                c = comparisons[index]
                folder = Path(temporary) / f"{index}-{number}-{commit[:12]}"
                return run_units(trees.at(commit), _as_of(c.tasks[number], c, commit), folder)

            new = {
                (index, number): pool.submit(run, index, number, commit)
                for index, c in enumerate(comparisons)
                for number in range(len(c.tasks))
            }
            old = {
                (index, number): pool.submit(
                    _recorded_or,
                    new[index, number],
                    c,
                    number,
                    project.results / board / c.difference.row,
                    setup,
                    partial(run, index, number, c.difference.commit),
                )
                for index, c in enumerate(comparisons)
                for number in range(len(c.tasks))
            }
            for index, c in enumerate(comparisons):
                tasks = range(len(c.tasks))
                made_old = [old[index, number].result() for number in tasks]
                made_new = b"".join(new[index, number].result() for number in tasks)
                by = sorted({how for _, how in made_old})
                _judge(setup, c, b"".join(data for data, _ in made_old), made_new, by, commit, made, write)
    for found in wanted:
        if found.stage == "time":
            _judge_timing(setup, found, commit, made, project, write)
    whole = sum(len(rows) for rows in made.values()) == len(wanted)
    return _write(setup, made, started, commit, project.root), whole


def _recorded_or(
    new: Future[bytes], c: _Comparison, number: int, folder: Path, setup: "BoardSetup", run: Callable[[], bytes]
) -> tuple[bytes, str]:
    """What the old code made of a task, and how that is known.

    Whole trainings take minutes. If the new code made what the bundle in ``folder`` records, another run of the old
    code adds nothing; where they differ, it shows whether the host is the cause.
    """
    recorded = _recorded(c.difference.stage, c.tasks[number], folder, setup)
    if recorded is not None and new.result() == recorded:
        return recorded, "recorded"
    return run(), "run"


def _recorded(stage: str, task: Mapping[str, Any], folder: Path, setup: "BoardSetup") -> bytes | None:
    """The canonical lines of a task that trains for minutes, as a bundle records them; None for other tasks."""
    if stage == "simulate" and setup.board.tier == "statistical":
        lines = [
            line + b"\n"
            for seed in setup.plan.grid.seeds
            for _, line in split_lines((folder / episode_file(seed)).read_bytes(), episode_file(seed))
        ]
        return b"".join(lines[index] for index in task["units"])
    if stage == "train" and task["whole"]:
        documents = (decode((folder / learned_files(seed)[0]).read_bytes(), "training") for seed in task["whole"])
        return "".join(f"{encode_line(each)}\n" for each in documents).encode()
    return None


def check(
    setup: "BoardSetup",
    root: Path,
    results: Path,
    rows: Sequence[str],
    stages: Sequence[str],
    cores: int,
    write: Callable[[str], Any],
) -> bool:
    """Run committed attestations again, both codes on the stated units; returns whether all come out as stated.

    What was compared by the records of a bundle alone is run by the new code and by the old.

    Raises:
        RowproofError: an attestation is malformed, or a commit cannot be run.
    """
    folder = root / FOLDER
    good = True
    with tempfile.TemporaryDirectory(prefix="rowproof-attest-") as temporary, ThreadPoolExecutor(cores) as pool:
        trees = Trees(root, Path(temporary) / "trees", setup.engine.files)
        for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
            document = read_attestation(path.read_bytes(), f"{FOLDER}/{path.name}")
            if document["board"] != setup.board.board or document["stage"] not in stages:
                continue
            for row in (row for row in document["rows"] if row in rows):
                found = _check_entry(setup, document, row, trees, Path(temporary), results, pool)
                good = good and found is None
                verdict = "as stated" if found is None else f"DIFFERS ({found})"
                write(f"{verdict} {setup.board.board}/{row} {document['stage']}: {path.name}")
    return good


def _check_entry(
    setup: "BoardSetup",
    document: Mapping[str, Any],
    row: str,
    trees: Trees,
    folder: Path,
    results: Path,
    pool: ThreadPoolExecutor,
) -> str | None:
    """How one entry of an attestation comes out otherwise; None if it does not."""
    stage, entry = document["stage"], document["rows"][row]
    if stage == "time":
        return None
    sides = {side: {**entry[side]["places"], "code": entry[side]["code"]} for side in ("before", "after")}
    difference = Difference(row, stage, sides["before"], sides["after"], entry["before"]["commit"], Recorded())
    c = _comparison(setup, difference, results)
    if c.draw != entry["draw"] or c.drawn != entry["units"]["drawn"]:
        return "other units follow from both codes"
    for side in ("before", "after"):
        commit = entry[side]["commit"]
        tasks = [{**task, "producer": entry[side]["places"].get("producer")} for task in c.tasks]
        tree = trees.at(commit)
        made = pool.map(
            lambda pair, tree=tree, side=side: run_units(tree, pair[1], folder / f"{stage}-{row}-{side}-{pair[0]}"),
            enumerate(tasks),
        )
        if sha256_hex(b"".join(made)) != entry["units"]["compared_sha256"]:
            return f"the code of {commit[:12]} makes other bytes here"
    return None


def _as_of(task: Mapping[str, Any], c: _Comparison, commit: str) -> dict[str, Any]:
    """The task as the code of a commit is called."""
    places = c.difference.before if commit == c.difference.commit else c.difference.after
    return {**task, "producer": places.get("producer")}


def _judge(
    setup: "BoardSetup",
    c: _Comparison,
    old: bytes,
    new: bytes,
    by: list[str],
    commit: str,
    made: dict[str, dict[str, Any]],
    write: Callable[[str], Any],
) -> None:
    found, name = c.difference, f"{setup.board.board}/{c.difference.row}"
    lines = old.count(b"\n")
    if old != new:
        pairs = zip(old.splitlines(), new.splitlines(), strict=False)
        differing = sum(a != b for a, b in pairs)
        write(f"DIFFERS {name} {found.stage}: {differing} of {lines} {c.what}: the row is stale")
        return
    entry = {
        "before": _side(found.before, found.commit),
        "after": _side(found.after, commit),
        "draw": c.draw,
        "units": {"what": c.what, "of": c.of or lines, "drawn": c.drawn, "old": by, "compared_sha256": sha256_hex(old)},
    }
    made.setdefault(found.stage, {})[found.row] = entry
    write(f"equal   {name} {found.stage}: {lines} {c.what} compared")


def _side(recipe: Mapping[str, Any], commit: str) -> dict[str, Any]:
    places = {key: recipe[key] for key in ("script", "producer", "programs", "modules") if key in recipe}
    return {"commit": commit, "code": recipe["code"], "places": places}


def _judge_timing(
    setup: "BoardSetup",
    found: Difference,
    commit: str,
    made: dict[str, dict[str, Any]],
    project: Project,
    write: Callable[[str], Any],
) -> None:
    """Times hold where the programs that were timed are untouched and what they computed is attested."""
    name, board = f"{setup.board.board}/{found.row}", setup.board.board
    programs = set(found.after.get("programs", ()))
    old, new = (
        {path: recipe["files"].get(path) for path in sorted(programs)} for recipe in (found.before, found.after)
    )
    untouched = old == new and None not in new.values()
    now = record_recipes(setup, found.row, project.tree)["simulate"]
    was = (found.recorded.recipes or {})["simulate"]
    same = was["code"] == now["code"] or found.row in made.get("simulate", {})
    same = same or project.equivalences.chain(f"{board}/{found.row}", "simulate", was["code"], now["code"]) is not None
    if not (untouched and same):
        why = "the programs that were timed changed" if not untouched else "its records are not attested"
        write(f"DIFFERS {name} time: {why}: the row is stale")
        return
    entry = {
        "before": _side(found.before, found.commit),
        "after": _side(found.after, commit),
        "draw": draw_of("time", name, found.before["code"], found.after["code"]),
        "units": {
            "what": "programs",
            "of": len(new),
            "drawn": None,
            "old": ["recorded"],
            "compared_sha256": digest(new),
        },
    }
    made.setdefault("time", {})[found.row] = entry
    write(f"equal   {name} time: {len(new)} programs untouched, records attested")


def _write(
    setup: "BoardSetup", made: Mapping[str, Mapping[str, Any]], started: datetime, commit: str, root: Path
) -> list[Path]:
    paths = []
    ended = datetime.now(UTC)
    for stage, rows in made.items():
        document = {
            "schema": SCHEMA,
            "board": setup.board.board,
            "stage": stage,
            "rows": dict(sorted(rows.items())),
            "made": {
                "started": started.strftime(TIME_FORMAT),
                "ended": ended.strftime(TIME_FORMAT),
                "seconds": round((ended - started).total_seconds(), 3),
                "platform": platform.platform(),
                "versions": {name: installed(name) for name in ("numpy", "sapien", "torch")},
            },
        }
        data = encode_document({**document, "digest": document_digest(document)})
        path = root / FOLDER / f"{setup.board.board.replace('/', '-')}-{stage}-{commit[:12]}.json"
        write_atomic(path, data)
        paths.append(path)
    return paths
