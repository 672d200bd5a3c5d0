"""Spot re-simulation: units of a row, drawn by a beacon that its maker could not know, run again and compared.

For engines that are too slow to be replayed in full at every verification. What the draw proves is a bound: if a share
``p`` of a row's records were false, ``n`` drawn ones would all be honest with a probability of at most ``(1 - p)**n``.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import comb
from pathlib import Path
from typing import Any

from rowproof import git
from rowproof.boards import BoardSetup, load_board
from rowproof.equivalence import drawn_units
from rowproof.errors import HistoryGap, RowproofError
from rowproof.evidence.checks import CheckTable
from rowproof.evidence.verify import is_bundle
from rowproof.layout import episode_file, learned_files
from rowproof.records import decode, digest, encode_document, encode_line, split_lines
from rowproof.units import run_units, unit_task

CONFIDENCE = 0.95
DEFAULT_COUNT = 40
"""Episodes of a row: seconds of co-carry, and a bound of 7.2 %."""


@dataclass(frozen=True)
class Finding:
    """What came of a spot check.

    Attributes:
        holds: whether nothing differs; None where nothing was run.
        found: the verdict in words, with the bound that follows.
    """

    holds: bool | None
    found: str


def upper_bound(n: int, k: int, confidence: float = CONFIDENCE) -> float:
    """One-sided upper bound of Clopper and Pearson on a share of which ``k`` of ``n`` independent draws were hit.

    Draws without replacement find more than independent ones, so the bound holds for them too. With ``k = 0`` it is
    ``1 - (1 - confidence)**(1 / n)``.

    Raises:
        ValueError: not ``0 <= k <= n`` or ``n`` is 0.
    """
    if not 0 <= k <= n or n == 0:
        raise ValueError(f"a bound needs 0 <= k <= n and n > 0, found k = {k}, n = {n}")
    if k == n:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        p = (low + high) / 2
        tail = sum(comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))
        low, high = (p, high) if tail > 1 - confidence else (low, p)
    return high


def merged_at(root: Path, path: str, data: bytes) -> str:
    """The commit by which a file came into the history of HEAD as it is, along first parents: the beacon by default.

    Whoever makes a row cannot know it before the row is merged.

    Raises:
        HistoryGap: no such commit is in this clone, or git cannot tell.
    """
    wanted = git.blob_id(data)
    commits = git.run(root, "log", "--first-parent", "--format=%H", "--end-of-options", "HEAD", "--", path)
    if commits is None:
        raise HistoryGap("no history at hand that could give a beacon: name one with --beacon TEXT")
    for commit in commits.decode("ascii").split():
        if git.blob_at(root, commit, path) == wanted:
            return commit
    raise HistoryGap(f"{path} is not in this history as it is: merge it first, or name a beacon with --beacon TEXT")


def drawn(beacon: str, row: str, what: str, of: int, count: int) -> list[int]:
    """``count`` of the numbers below ``of``, in order: by beacon, row and kind of unit, never by what the row holds."""
    return drawn_units(digest({"beacon": beacon, "row": row, "units": what}), of, count)


class Spot:
    """Spot checks of one bundle by the code and the boards of a project."""

    def __init__(self, folder: Path, root: Path, beacon: str | None, cores: int) -> None:
        """Check the bundle in ``folder``, named by its own words, against the project ``root``.

        Args:
            folder: the bundle; its files must have been verified before.
            root: the project, whose code runs.
            beacon: a text that the maker of the row could not know; None for the commit that merged the row.
            cores: processes at once.

        Raises:
            RowproofError: the project has no such row.
            HistoryGap: no beacon was named, and the history gives none.
        """
        data = (folder / "bundle.json").read_bytes()
        document = decode(data, "bundle.json")
        self.folder, self.root, self.cores = folder, root, cores
        self.setup: BoardSetup = load_board(root, str(document["board"]))
        self.row = str(document["row"])
        if self.row not in self.setup.plan.rows:
            raise RowproofError(f"{self.row} must be a row of {self.setup.board.board}, found no such row")
        self.name = f"{self.setup.board.board}/{self.row}"
        self.beacon = beacon or merged_at(root, f"results/{self.name}/bundle.json", data)

    def episodes(self, count: int) -> Finding:
        """Run ``count`` drawn records again.

        Raises:
            RowproofError: the code at hand cannot run them.
        """
        setup = self.setup
        if setup.engine.replays:
            return Finding(True, "every record is run again anyway")
        recorded = [
            line
            for seed in setup.plan.grid.seeds
            for _, line in split_lines((self.folder / episode_file(seed)).read_bytes(), episode_file(seed))
        ]
        units = drawn(self.beacon, self.name, "records", len(recorded), count)
        task = unit_task(setup, self.row, "simulate", setup.engine.simulate_module, self.folder)
        # As many tasks as processes, of neighbouring records each.
        parts = [part for part in (units[index :: self.cores] for index in range(self.cores)) if part]
        made = b"".join(self._run([{**task, "units": part} for part in parts])).splitlines()
        order = [unit for part in parts for unit in part]
        fresh = dict(zip(order, made, strict=True))
        return compare({unit: (recorded[unit], fresh[unit]) for unit in units}, len(recorded), setup.board.tier)

    def training(self) -> Finding:
        """Train one drawn seed again, whole.

        Raises:
            RowproofError: the code at hand cannot train it.
        """
        setup = self.setup
        if self.row not in setup.trainings:
            return Finding(True, "the policy of the row is not trained")
        seeds = list(setup.plan.grid.seeds)
        (index,) = drawn(self.beacon, self.name, "trainings", len(seeds), 1)
        seed = seeds[index]
        task = unit_task(setup, self.row, "train", setup.engine.training_module, self.folder)
        (made,) = self._run([{**task, "whole": [seed]}])
        name = learned_files(seed)[0]
        # The document names every checkpoint by its content.
        same = encode_document(decode(made.strip(), name)) == (self.folder / name).read_bytes()
        verdict = "gives the same curve and checkpoints" if same else "gives another curve or other checkpoints"
        return Finding(same, f"training again with seed {seed}, drawn of {len(seeds)}, {verdict}")

    def _run(self, tasks: Sequence[Mapping[str, Any]]) -> list[bytes]:
        with (
            tempfile.TemporaryDirectory(prefix="rowproof-spot-") as scratch,
            ThreadPoolExecutor(max(1, self.cores)) as pool,
        ):
            places = [Path(scratch) / str(number) for number in range(len(tasks))]
            return list(pool.map(lambda task, place: run_units(self.root, task, place), tasks, places))


def compare(pairs: Mapping[int, tuple[bytes, bytes]], of: int, tier: str) -> Finding:
    """The verdict about re-simulated records: number -> (recorded line, line made again).

    In the tier ``exact`` every byte counts. In the others what a board promises elsewhere counts: each success.
    """
    other_bytes = [unit for unit, (old, new) in pairs.items() if old != new]
    other_success = [unit for unit, (old, new) in pairs.items() if _success(old) != _success(new)]
    differing = other_bytes if tier == "exact" else other_success
    n, k = len(pairs), len(differing)
    what = "in their bytes" if tier == "exact" else "in success"
    found = f"{n} of {of:,} records re-simulated, {k} differ {what}"
    if tier != "exact":
        found += f" and {len(other_bytes)} in bytes"
    if n == 0:
        return Finding(None, found + ": nothing is shown")
    if n == of and k == 0:
        return Finding(True, found + ": all of them hold")
    found += f": with {CONFIDENCE:.0%} confidence fewer than {upper_bound(n, k):.1%} are false"
    if differing:
        first = differing[0]
        old, new = (encode_line(decode(line, "record"))[:200] for line in pairs[first])
        found += f"; first record {first}: recorded {old}, made again {new}"
    return Finding(not differing, found)


def _success(line: bytes) -> Any:
    return decode(line, "record").get("success")


def add_spot_checks(
    tables: Sequence[CheckTable], root: Path | None, count: int | None, retrain: bool, beacon: str | None, cores: int
) -> None:
    """Add ``records:spot`` and ``training:spot`` to the tables of bundles.

    Args:
        tables: of bundles and of anything else, which is left as it is.
        root: the project whose code runs; None when there is none.
        count: records of a row to run again; None for none.
        retrain: whether to train one seed of each learned row again.
        beacon: see :class:`Spot`.
        cores: processes at once.
    """
    for table in tables:
        folder = Path(table.subject)
        if not is_bundle(folder):
            continue
        wanted: list[tuple[str, str, Callable[[Spot], Finding]]] = []
        if count is not None:
            must = "records drawn by the beacon come out again as they are"
            wanted.append(("records:spot", must, lambda spot: spot.episodes(count)))
        if retrain:
            must = "the training drawn by the beacon comes out again as it is"
            wanted.append(("training:spot", must, Spot.training))
        verified = table.passed
        for check_id, must, look in wanted:
            with table.guard(check_id, must):
                if root is None:
                    raise HistoryGap("no project at hand whose code could run")
                if not verified:
                    raise HistoryGap("not run: the row does not verify")
                spot = Spot(folder, root, beacon, cores)
                finding = look(spot)
                table.add(check_id, finding.holds, must, f"{finding.found} (beacon {spot.beacon})")
