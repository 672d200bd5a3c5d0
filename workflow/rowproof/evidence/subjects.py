"""Finds what there is to verify below a path, and picks the verifier for it."""

from pathlib import Path

from rowproof.errors import RowproofError
from rowproof.evidence.checks import CheckTable
from rowproof.evidence.published import verify_admission, verify_published
from rowproof.evidence.rendered import is_board, verify_board
from rowproof.evidence.verify import is_bundle, verify_bundle
from rowproof.layout import PROVENANCE


def find_root(start: Path) -> Path | None:
    """The project that ``start`` lies in: the nearest folder upwards with a Snakefile and config/config.yaml."""
    for folder in (start, *start.parents):
        if (folder / "Snakefile").is_file() and (folder / "config" / "config.yaml").is_file():
            return folder
    return None


def verify_path(
    path: Path, plans: Path | None = None, repo: Path | None = None, allow_dirty: bool = False
) -> list[CheckTable]:
    """Check tables of everything verifiable at or below ``path``, in the order of the paths.

    Args:
        path: a bundle (ours or published), an admission archive, or a folder that holds such.
        plans: folder of published plans.
        repo: git repository that holds the tags of published plans.
        allow_dirty: let bundles from a modified checkout pass.

    Raises:
        RowproofError: ``path`` is no folder, or holds nothing to verify.
    """
    if not path.is_dir():
        raise RowproofError(f"{path}: must be a folder with a bundle or archive, found none: check the path")
    # A folder that calls itself a bundle is one even when its record is gone: that is for the verifier to say.
    root = find_root(path.resolve()) or find_root(Path.cwd())
    if is_bundle(path):
        return [verify_bundle(path, root, allow_dirty)]
    board = is_board(path)
    if (path / "admission_report.json").is_file() and not board:
        return [verify_admission(path, plans=plans, repo=repo, allow_dirty=allow_dirty)]
    if (path / "bundle.json").exists() or (path / "SHA256SUMS.txt").exists():
        return [verify_published(path, plans=plans, repo=repo, allow_dirty=allow_dirty)]
    tables = [verify_board(path, root)] if board else []
    for child in sorted(path.iterdir()):
        if child.is_dir() and not child.is_symlink() and _holds_evidence(child):
            tables += verify_path(child, plans, repo, allow_dirty)
    if not tables:
        raise RowproofError(f"{path}: must hold a bundle or archive, found none below it: check the path")
    return tables


def _holds_evidence(folder: Path) -> bool:
    names = ("bundle.json", "recipe.json", PROVENANCE, "admission_report.json", "SHA256SUMS.txt")
    return any(True for name in names for _ in folder.rglob(name))
