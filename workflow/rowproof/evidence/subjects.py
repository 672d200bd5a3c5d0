"""Finds what there is to verify below a path, and picks the verifier for it."""

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.context import BaseContext
from pathlib import Path

from rowproof.determinism import PINNED_ENVIRONMENT
from rowproof.errors import RowproofError
from rowproof.evidence.checks import CheckTable
from rowproof.evidence.links import link_table
from rowproof.evidence.planned import check_boards
from rowproof.evidence.published import verify_admission, verify_published
from rowproof.evidence.rendered import is_board, verify_board
from rowproof.evidence.signatures import add_signature_checks
from rowproof.evidence.verify import is_bundle, verify_bundle
from rowproof.evidence.weights import check_distinct
from rowproof.evidence.witness import add_witness_check
from rowproof.layout import PROVENANCE


def find_root(start: Path) -> Path | None:
    """The project that ``start`` lies in: the nearest folder upwards with a Snakefile and config/config.yaml."""
    for folder in (start, *start.parents):
        if (folder / "Snakefile").is_file() and (folder / "config" / "config.yaml").is_file():
            return folder
    return None


@dataclass(frozen=True)
class Subject:
    """Something that is verified by itself.

    Attributes:
        kind: ``bundle``, ``board``, ``published``, ``admission``, ``results`` (which boards there are), or ``links``
            (nothing but what is no plain file or folder).
        folder: where it lies.
        root: the project that it is held against; None when there is none.
        plans: folder of published plans.
        repo: git repository that holds the tags of published plans.
        allow_dirty: let a bundle from a modified checkout pass.
        signers: a file of allowed signers; with it, signatures of the row are checked.
    """

    kind: str
    folder: Path
    root: Path | None
    plans: Path | None
    repo: Path | None
    allow_dirty: bool
    signers: Path | None = None

    def verify(self) -> CheckTable:
        """The check table of the subject."""
        if self.kind == "bundle":
            table = verify_bundle(self.folder, self.root, self.allow_dirty)
            add_witness_check(table, self.folder, self.root)
            if self.signers is not None:
                add_signature_checks(table, self.folder, self.root, self.signers)
            return table
        if self.kind == "links" and (table := link_table(self.folder)) is not None:
            return table
        if self.kind == "results" and self.root is not None:
            table = check_boards(self.folder, self.root)
            check_distinct(table, self.folder)
            return table
        if self.kind == "board":
            return verify_board(self.folder, self.root)
        verifier = verify_admission if self.kind == "admission" else verify_published
        return verifier(self.folder, plans=self.plans, repo=self.repo, allow_dirty=self.allow_dirty)


def find_subjects(
    path: Path,
    plans: Path | None = None,
    repo: Path | None = None,
    allow_dirty: bool = False,
    *,
    root: Path | None = None,
) -> list[Subject]:
    """Everything verifiable at or below ``path``, in the order of the paths.

    Args:
        path: a bundle (ours or published), an admission archive, or a folder that holds such.
        plans: folder of published plans.
        repo: git repository that holds the tags of published plans.
        allow_dirty: let bundles from a modified checkout pass.
        root: the project that judges. Never the one that ``path`` lies in, which came with what is to be judged.

    Raises:
        RowproofError: ``path`` is no folder, or holds nothing to verify.
    """
    if not path.is_dir():
        raise RowproofError(f"{path}: must be a folder with a bundle or archive, found none: check the path")
    if link_table(path) is not None:
        # Nothing behind a link is looked at.
        return [Subject("links", path, None, plans, repo, allow_dirty)]
    # Elsewhere single rows may be looked at; where boards are shown, none may be missing.
    whole = find_root(path.resolve()) is not None or any(path.rglob("leaderboard.*"))
    is_results = root is not None and path.absolute().name == "results" and whole
    above = [Subject("results", path, root, plans, repo, allow_dirty)] if is_results else []
    return above + _subjects_below(path, root, plans, repo, allow_dirty)


def _subjects_below(
    path: Path, root: Path | None, plans: Path | None, repo: Path | None, allow_dirty: bool
) -> list[Subject]:
    def subject(kind: str) -> Subject:
        return Subject(kind, path, root, plans, repo, allow_dirty)

    # A folder that calls itself a bundle is one even when its record is gone: that is for the verifier to say.
    if is_bundle(path):
        return [subject("bundle")]
    board = is_board(path)
    if (path / "admission_report.json").is_file() and not board:
        return [subject("admission")]
    if (path / "bundle.json").exists() or (path / "SHA256SUMS.txt").exists():
        return [subject("published")]
    found = [subject("board")] if board else []
    for child in sorted(path.iterdir()):
        if child.is_dir() and not child.is_symlink() and _holds_evidence(child):
            found += _subjects_below(child, root, plans, repo, allow_dirty)
    if not found:
        raise RowproofError(f"{path}: must hold a bundle or archive, found none below it: check the path")
    return found


def verify_path(
    path: Path,
    plans: Path | None = None,
    repo: Path | None = None,
    allow_dirty: bool = False,
    *,
    root: Path | None = None,
) -> list[CheckTable]:
    """Check tables of everything at or below ``path``; see :func:`find_subjects`."""
    return [subject.verify() for subject in find_subjects(path, plans, repo, allow_dirty, root=root)]


def verify_all(subjects: Sequence[Subject], cores: int) -> Iterator[CheckTable]:
    """The check tables of ``subjects`` in their order, made by ``cores`` processes at once.

    A process that dies leaves a table with a check that could not be made, and the others go on.
    """
    if cores < 2 or len(subjects) < 2:
        for subject in subjects:
            yield subject.verify()
        return
    os.environ.update(PINNED_ENVIRONMENT)
    # Forked processes would share locks and threads that numeric libraries hold.
    context = multiprocessing.get_context("spawn")
    left = list(subjects)
    while left:
        with ProcessPoolExecutor(min(cores, len(left)), mp_context=context) as pool:
            try:
                running = [pool.submit(subject.verify) for subject in left]
                for future in running:
                    yield future.result()
                    left.pop(0)
            except BrokenProcessPool:
                # Whose process died cannot be told; so the first without a table is made in a process of its own.
                yield _verify_alone(left.pop(0), context)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _verify_alone(subject: Subject, context: BaseContext) -> CheckTable:
    table = CheckTable(str(subject.folder))
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        made = pool.submit(subject.verify)
        with table.guard("verifier:process", "the process that verifies ends by itself"):
            # Not what the evidence did: such a check is among those that could not be made.
            return made.result()
    return table


def _holds_evidence(folder: Path) -> bool:
    names = ("bundle.json", "recipe.json", PROVENANCE, "admission_report.json", "SHA256SUMS.txt")
    return any(True for name in names for _ in folder.rglob(name))
