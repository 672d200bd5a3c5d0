"""Spot re-simulation: units of a row, drawn by a beacon that its maker could not know, run again and compared.

For engines that are too slow to be replayed in full at every verification. What the draw proves is a bound: if a share
``p`` of a row's records were false, ``n`` drawn ones would all be honest with a probability of at most ``(1 - p)**n``.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import exp, fsum, lgamma, log, log1p
from pathlib import Path
from typing import Any

from rowproof import git
from rowproof.boards import BoardSetup, load_board
from rowproof.equivalence import DRAWN_RUNS, drawn_units
from rowproof.errors import HistoryGap, RowproofError
from rowproof.evidence.checks import CheckTable
from rowproof.evidence.verify import is_bundle
from rowproof.history import UNSHALLOW, head_of
from rowproof.jobs import cpu_model
from rowproof.layout import PROVENANCE, episode_file, learned_files
from rowproof.provenance import read_provenance
from rowproof.records import decode, digest, encode_document, split_lines
from rowproof.reproduce import field_difference, record_difference
from rowproof.units import run_units, unit_task
from rowproof.versions import installed

CONFIDENCE = 0.95
DEFAULT_COUNT = 40
"""Episodes of a row: seconds of co-carry, and a bound of 7.2 %."""
NAMED = 5
"""Differing records that a verdict names."""


@dataclass(frozen=True)
class Finding:
    """What came of a spot check.

    Attributes:
        holds: whether nothing differs; None where nothing is shown either way.
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
    # Logarithms: coefficients of a thousand draws are beyond any float.
    choose = [lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) for i in range(k + 1)]
    low, high = 0.0, 1.0
    for _ in range(60):
        p = (low + high) / 2
        tail = fsum(exp(c + i * log(p) + (n - i) * log1p(-p)) for i, c in enumerate(choose))
        low, high = (p, high) if tail > 1 - confidence else (low, p)
    return high


def merged_at(root: Path, path: str, data: bytes) -> str:
    """The commit by which a file came into the history of HEAD as it is, along first parents: the beacon by default.

    Whoever makes a row cannot know it before the row is merged; whoever merges it can choose it.

    Raises:
        HistoryGap: no such commit is in this clone, or git cannot tell.
    """
    way = "or name a beacon with --beacon TEXT"
    wanted = git.blob_id(data)
    commits = git.run(root, "log", "--first-parent", "--format=%H %P", "--end-of-options", "HEAD", "--", path)
    if commits is None:
        raise HistoryGap(f"no history at hand that could give a beacon: clone the project, {way}")
    for line in commits.decode("ascii").splitlines():
        commit, *parents = line.split()
        if git.blob_at(root, commit, path) != wanted:
            continue
        if not parents and git.run(root, "rev-parse", "--is-shallow-repository") != b"false\n":
            # Where a shallow clone begins, every file seems to come in.
            raise HistoryGap(f"what merged the row cannot be told: {UNSHALLOW}, {way}")
        return commit
    raise HistoryGap(f"{path} is not in this history as it is: merge it first, {way}")


def drawn(beacon: str, row: str, what: str, of: int, count: int) -> list[int]:
    """``count`` of the numbers below ``of``, in order: by beacon, row and kind of unit, never by what the row holds."""
    return drawn_units(digest({"beacon": beacon, "row": row, "units": what}), of, count)


class Before:
    """Files of the results as they were where HEAD and a commit part."""

    def __init__(self, root: Path, commit: str) -> None:
        """Look up where the history of the project ``root`` and ``commit`` (any name that git knows) part.

        Raises:
            RowproofError: there is no such commit, or it shares no history with HEAD.
        """
        try:
            head_of(root)
        except HistoryGap as gap:
            raise RowproofError(f"--added-since {commit}: must have a history to look into: {gap}") from None
        known = git.run(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
        base = None if known is None else git.run(root, "merge-base", known.decode("ascii").strip(), "HEAD")
        if base is None:
            raise RowproofError(
                f"--added-since {commit}: must be a commit that shares history with HEAD of {root}, "
                f"found {'no such commit' if known is None else 'none shared'}: git fetch it with its history"
            )
        self.commit = base.decode("ascii").strip()
        self._files = git.files_at(root, self.commit)

    def has(self, folder: Path, row: str, names: Sequence[str]) -> bool:
        """Whether these files of the row were there already, with the content that they have in ``folder``."""
        return all(
            self._files.get(f"results/{row}/{name}") == git.blob_id((folder / name).read_bytes()) for name in names
        )


def read_options(
    root: Path | None, count: int | None, retrain: bool, beacon: str | None, since: str | None
) -> Before | None:
    """What there was before, if it matters; refuses options that would do nothing, or not what they seem to.

    Raises:
        RowproofError: a beacon is empty, nothing is asked for that an option could apply to, or ``since`` names no
            commit (see :class:`Before`).
    """
    if beacon is not None and not beacon.strip():
        raise RowproofError("--beacon must be a text that the maker of the row could not know, found an empty one")
    for option, value in (("--beacon", beacon), ("--added-since", since)):
        if value is not None and count is None and not retrain:
            raise RowproofError(f"{option} must come with --spot or --retrain-one, found neither: add one")
    if since is None:
        return None
    if root is None:
        raise RowproofError(
            f"--added-since {since}: must have a project to look into, found none: name one with --project"
        )
    return Before(root, since)


class Spot:
    """Spot checks of one bundle by the code and the boards of a project."""

    def __init__(self, folder: Path, root: Path, beacon: str | None, cores: int, before: Before | None = None) -> None:
        """Check the bundle in ``folder``, named by its own words, against the project ``root``.

        Args:
            folder: the bundle; its files must have been verified before.
            root: the project, whose code runs.
            beacon: a text that the maker of the row could not know; None for the commit that merged the row.
            cores: processes at once.
            before: what was there already is not looked at.

        Raises:
            RowproofError: the project has no such row.
        """
        document = decode((folder / "bundle.json").read_bytes(), "bundle.json")
        self.folder, self.root, self.cores, self.before = folder, root, cores, before
        self.setup: BoardSetup = load_board(root, str(document["board"]))
        self.row = str(document["row"])
        if self.row not in self.setup.plan.rows:
            raise RowproofError(f"{self.row} must be a row of {self.setup.board.board}, found no such row")
        self.name = f"{self.setup.board.board}/{self.row}"
        # Runs of this tier are trainings of minutes.
        self.of_runs = self.setup.board.tier == "statistical"
        self._beacon = beacon

    @property
    def beacon(self) -> str:
        """The text by which units are drawn.

        Raises:
            HistoryGap: no beacon was named, and the history gives none.
        """
        if self._beacon is None:
            data = (self.folder / "bundle.json").read_bytes()
            self._beacon = merged_at(self.root, f"results/{self.name}/bundle.json", data)
        return self._beacon

    def episodes(self, count: int) -> Finding:
        """Run ``count`` drawn records again, or one where a record is a training.

        Raises:
            RowproofError: the code at hand cannot run them, or no beacon is known.
        """
        setup = self.setup
        if setup.engine.replays:
            return Finding(True, "every record is run again anyway")
        names = [episode_file(seed) for seed in setup.plan.grid.seeds]
        if self._is_old(names):
            return Finding(True, f"no record is new since {self.before.commit}")
        files = {name: (self.folder / name).read_bytes() for name in names}
        recorded = [
            (f"{name}: record {number}", line) for name in names for number, line in split_lines(files[name], name)
        ]
        self._require_pins("simulate")
        units = drawn(self.beacon, self.name, "records", len(recorded), DRAWN_RUNS if self.of_runs else count)
        task = unit_task(setup, self.row, "simulate", setup.engine.simulate_module, self.folder)
        # One task for each process.
        parts = [part for part in (units[index :: self.cores] for index in range(self.cores)) if part]
        made = b"".join(self._run([{**task, "units": part} for part in parts])).splitlines()
        if len(made) != len(units):
            raise RowproofError(f"{len(units)} records must be made again, found {len(made)}")
        fresh = dict(zip((unit for part in parts for unit in part), made, strict=True))
        pairs = {recorded[unit][0]: (recorded[unit][1], fresh[unit]) for unit in units}
        finding = compare(pairs, len(recorded), setup.board.tier, setup.engine.name)
        return Finding(finding.holds, f"{finding.found} (beacon {self.beacon})")

    def training(self) -> Finding:
        """Train one drawn seed again, whole; where a record is a training, run one drawn record again.

        Raises:
            RowproofError: the code at hand cannot train it, or no beacon is known.
        """
        setup = self.setup
        if self.of_runs:
            return self.episodes(DRAWN_RUNS)
        if self.row not in setup.trainings:
            return Finding(True, "the policy of the row is not trained")
        seeds = list(setup.plan.grid.seeds)
        if self._is_old([name for seed in seeds for name in learned_files(seed)]):
            return Finding(True, f"no training is new since {self.before.commit}")
        self._require_pins("train")
        (index,) = drawn(self.beacon, self.name, "trainings", len(seeds), 1)
        seed = seeds[index]
        task = unit_task(setup, self.row, "train", setup.engine.training_module, self.folder)
        (made,) = self._run([{**task, "whole": [seed]}])
        name = learned_files(seed)[0]
        # The document names every checkpoint by its content.
        old, new = decode((self.folder / name).read_bytes(), name), decode(made.strip(), name)
        found = f"training again with seed {seed}, drawn of {len(seeds)} (beacon {self.beacon}), gives "
        if encode_document(old) == encode_document(new):
            return Finding(True, found + "the same curve and checkpoints")
        found += f"another one: {name}: {field_difference(old, new)}"
        elsewhere = self._elsewhere(seed)
        if elsewhere is None:
            return Finding(False, found)
        return Finding(
            None, f"{found}; that shows nothing, since digits of trainings depend on the processor: {elsewhere}"
        )

    def _is_old(self, names: Sequence[str]) -> bool:
        # Old records under another recipe claim what nobody has looked at.
        return self.before is not None and self.before.has(self.folder, self.name, ["recipe.json", *names])

    def _require_pins(self, stage: str) -> None:
        pins = decode((self.folder / "recipe.json").read_bytes(), "recipe.json")[stage]["pins"]
        other = [f"{n} {installed(n)} for {pin}" for n, pin in pins.items() if n != "python" and installed(n) != pin]
        if other:
            raise RowproofError(f"what the recipe pins must be installed, found {', '.join(other)}: make .venv")

    def _elsewhere(self, seed: int) -> str | None:
        """On which other processor a seed was trained by what the row says; None for this one."""
        jobs = read_provenance((self.folder / PROVENANCE).read_bytes())["jobs"]
        models = {job["cpu_model"] for job in jobs if (job["stage"], job["shard"]) == ("train", f"seed{seed}")}
        if models <= {cpu_model()}:
            return None
        return f"that of the row is {', '.join(sorted(models))}, this one is {cpu_model()}: look there"

    def _run(self, tasks: Sequence[Mapping[str, Any]]) -> list[bytes]:
        with (
            tempfile.TemporaryDirectory(prefix="rowproof-spot-") as scratch,
            ThreadPoolExecutor(max(1, self.cores)) as pool,
        ):
            places = [Path(scratch) / str(number) for number in range(len(tasks))]
            return list(pool.map(lambda task, place: run_units(self.root, task, place), tasks, places))


def compare(pairs: Mapping[str, tuple[bytes, bytes]], of: int, tier: str, engine: str = "") -> Finding:
    """The verdict about re-simulated records: place -> (recorded line, line made again).

    What counts is what the tier promises elsewhere (:func:`rowproof.reproduce.record_difference`): every byte in the
    tier ``exact``, each success in ``outcome``, what the engine says in ``statistical``.

    Args:
        pairs: of ``of`` records, by the place of each.
        of: how many records the row has.
        tier: of the row's board.
        engine: of the row's board.

    Raises:
        RowproofError: the tier or the engine has no rule for comparisons.
    """
    difference = record_difference(tier, engine)
    differing: dict[str, str] = {}
    for place, (old, new) in pairs.items():
        found = None if old == new else difference(decode(old, place), decode(new, place))
        if found is None and old != new and tier == "exact":
            found = "written differently"
        if found is not None:
            differing[place] = found
    n, k = len(pairs), len(differing)
    units = "runs" if tier == "statistical" else "episodes"
    what = {"exact": "in bytes", "outcome": "in success"}.get(tier, "by more than the tier allows")
    text = f"{n} of {of:,} {units} re-simulated, {k} differ {what}"
    if n == 0:
        return Finding(None, f"{text}: nothing is shown")
    if 0 < n < of and k < n:
        bound = 100 * upper_bound(n, k)
        text += f": with {100 * CONFIDENCE:.0f} % confidence fewer than {bound:.1f} % are false (Clopper-Pearson)"
    if tier != "exact":
        text += f"; {sum(old != new for old, new in pairs.values())} differ in bytes"
    if differing:
        named = [f"{place}, {found}" for place, found in list(differing.items())[:NAMED]]
        text += "; " + "; ".join([*named, *([f"and {k - NAMED} more"] if k > NAMED else [])])
    return Finding(not differing, text)


def add_spot_checks(
    tables: Sequence[CheckTable],
    root: Path | None,
    count: int | None,
    retrain: bool,
    beacon: str | None,
    cores: int,
    before: Before | None = None,
) -> None:
    """Add ``records:spot`` and ``training:spot`` to the tables of bundles.

    What was asked for and did not run is not proven, so that no row passes by it.

    Args:
        tables: of bundles and of anything else, which is left as it is.
        root: the project whose code runs; None when there is none.
        count: records of a row to run again; None for none.
        retrain: whether to train one seed of each learned row again.
        beacon: see :class:`Spot`.
        cores: processes at once.
        before: look only at records and trainings that were not there; None for all.
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
            look = _same_run if count is not None else Spot.training
            wanted.append(("training:spot", must, look))
        verified = table.passed
        for check_id, must, look in wanted:
            with table.guard(check_id, must):
                try:
                    if root is None:
                        raise HistoryGap("no project at hand whose code could run")
                    if not verified:
                        raise HistoryGap("the row does not verify")
                    finding = look(Spot(folder, root, beacon, cores, before))
                except RowproofError as error:
                    # Says nothing of the evidence: what was verified before is sound.
                    table.leave_unproven(check_id, must, f"not run: {'; '.join(str(error).splitlines())}")
                    continue
                if finding.holds is None:
                    table.leave_unproven(check_id, must, finding.found)
                else:
                    table.add(check_id, finding.holds, must, finding.found)


def _same_run(spot: Spot) -> Finding:
    """The check of a training where records are checked as well."""
    return Finding(True, "a run is a training: see records:spot") if spot.of_runs else spot.training()
