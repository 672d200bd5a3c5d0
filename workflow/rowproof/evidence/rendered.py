"""Checks a rendered board: that every file of it is what the rows beside it render to, byte for byte."""

import re
import stat
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rowproof import git
from rowproof.boards import BoardSetup, load_board, rows_of_campaign
from rowproof.closure import HashCache
from rowproof.errors import HistoryGap, RowproofError
from rowproof.evidence import admission
from rowproof.evidence.checks import CheckTable
from rowproof.evidence.links import require_no_links
from rowproof.evidence.planned import check_rows, not_shown
from rowproof.hashing import sha256_hex
from rowproof.layout import TIMING, document_digest
from rowproof.records import decode, encode_document

# No page of ours comes near; a file beyond it is not read into memory.
MAX_FILE_BYTES = 1 << 26
FIGURES = ("leaderboard.svg", "training.svg")
PAGE_NAMES = ("leaderboard.", "admission_report.", "training.svg")


def verify_board(folder: Path, root: Path | None) -> CheckTable:
    """Check the rendered files in ``folder`` (``results/<board>``): each must be what the bundles here render to.

    The bundles themselves are checked on their own. ``root`` is the project whose board and plan say what is shown;
    None when there is none.
    """
    table = CheckTable(str(folder / "leaderboard.json"))
    must = "leaderboard.json is canonical and as it was written"
    document: dict[str, Any] = {}
    with table.guard("board:form", must):
        data = read_page(folder / "leaderboard.json")
        document = decode(data, "leaderboard.json")
        same = encode_document(document) == data and document["digest"] == document_digest(document)
        table.add("board:form", same, must, "as written" if same else "edited")
    must = "every rendered file has the hash that leaderboard.json lists"
    with table.guard("board:files", must):
        names = [name for name in document["files"] if re.fullmatch(r"[a-z_]+\.[a-z]+", name)]
        wrong = [n for n in names if sha256_hex(read_page(folder / n)) != document["files"][n]]
        wrong += sorted(set(document["files"]) - set(names))
        table.add("board:files", not wrong, must, f"{len(names)} files, differing {wrong}")
    must = "the table shows the bundles that lie here"
    with table.guard("board:rows", must):
        shown = {row["row"]: row["row_digest"] for row in document["rows"]}
        here = {p.parent.name: sha256_hex(read_page(p)) for p in sorted(folder.glob("*/bundle.json"))}
        wrong = sorted(name for name in {*shown, *here} if shown.get(name) != here.get(name))
        table.add("board:rows", not wrong, must, f"{len(here)} rows, differing {wrong}")
    must = "every file of the board is what the rows here render to, and no other file lies beside them"
    setup: BoardSetup | None = None
    with table.guard("board:rendered", must):
        if root is None:
            raise HistoryGap("no project at hand")
        setup = load_board(root, board_name(folder, root))
        problems, gaps = page_problems(folder, root, setup)
        way_out = f"restore it, or render it again: snakemake results/{setup.board.board}"
        found = "; ".join(problems[:5] + [f"and {len(problems) - 5} more"] * (len(problems) > 5))
        holds = False if problems else None if gaps else True
        table.add("board:rendered", holds, must, f"{found}: {way_out}" if problems else "; ".join(gaps) or "equal")
    if setup is not None:
        check_rows(table, setup)
        check_timings(table, setup, folder)
    if (folder / "admission_report.json").is_file():
        must = "the admission report follows from the records and the thresholds of the project's plan"
        with table.guard("board:admission", must):
            data = read_page(folder / "admission_report.json")
            stated = decode(data, "admission_report.json")
            if root is None:
                raise HistoryGap("no project at hand")
            # Not that of a row's bundle: what is asked of the task may be more than when the row joined.
            setup = setup or load_board(root, board_name(folder, root))
            rules = setup.plan.admission
            if rules is None:
                raise RowproofError("the plan of these rows has no admission section")
            fresh = admission.report(setup.board.board, rules.model_dump(), folder)
            same = encode_document(fresh) == data
            table.add("board:admission", same, must, f"{stated['verdict']}" if same else "differs from the records")
    return table


def check_timings(table: CheckTable, setup: BoardSetup, folder: Path) -> None:
    """Check that rows that were timed in turns hold the same times: each has a copy of what one job measured."""
    if setup.engine.timing_module is None:
        return
    must = f"all rows of a campaign hold the same {TIMING}"
    with table.guard("board:timing", must):
        problems = []
        for campaign in sorted({setup.plan.rows[row].campaign for row in setup.board.rows}):
            rows = [r for r in rows_of_campaign(setup.plan, setup.engine, campaign) if r in setup.board.rows]
            own = [row for row in rows if setup.plan.rows[row].campaign == campaign]
            digests = {row: sha256_hex(read_page(folder / row / TIMING)) for row in own}
            if len(set(digests.values())) > 1:
                problems.append(f"campaign {campaign}: {', '.join(f'{r} {d[:12]}' for r, d in digests.items())}")
        table.add("board:timing", not problems, must, "; ".join(problems) or "equal")


def board_name(folder: Path, root: Path) -> str:
    """The board of the project ``root`` whose place ``folder`` is, by its name alone.

    Raises:
        RowproofError: there is none.
    """
    boards = root / "config" / "boards"
    known = [path.relative_to(boards).with_suffix("").as_posix() for path in boards.rglob("*.yaml")]
    fitting = [name for name in known if f"/{folder.absolute().as_posix()}".endswith(f"/{name}")]
    if not fitting:
        raise RowproofError(f"must be the folder of a board of the project ({', '.join(sorted(known))}), found none")
    return max(fitting, key=len)


def page_problems(folder: Path, root: Path, setup: BoardSetup, key: str | None = None) -> tuple[list[str], list[str]]:
    """How the files of a rendered board differ from what its rows render to, and what could not be compared.

    Args:
        folder: ``results/<board>``.
        root: the project.
        setup: the board.
        key: of its recipe, computed where it is not given.
    """
    # Rendering verifies rows and so needs all of this package, which asks for this module.
    from rowproof.evidence.leaderboard import joined_by, render_again

    require_no_links(folder)
    here = _entries(folder, setup)
    problems, gaps = list(here.problems), []
    rules = setup.plan.admission.model_dump() if setup.plan.admission else None
    joined = joined_by(root)
    stated = _stated_joined(here.files.get("leaderboard.json"))

    def joined_or_stated(row: str, plan: Mapping[str, Any]) -> dict[str, Any]:
        told = None if _is_cut_off(root) else joined(row, plan)
        if (told is None or told["commit"] is None) and row in stated:
            gaps.append(f"when {row} joined cannot be told without the full history: fetch it")
            return stated[row]
        return told or {"commit": None, "day": None}

    if key is None:
        key = board_key(setup, root)
    taken: dict[str, bytes] = {}
    if not _has_pinned_plotter(root):
        gaps.append("figures were not drawn: matplotlib is not the pinned one (requirements.lock)")
        taken = {name: here.files[name] for name in FIGURES if name in here.files}
    board = setup.board.model_dump(by_alias=True)
    try:
        fresh = render_again(
            board, folder, root, key, rules, not_shown(setup.plan, setup.board), joined_or_stated, taken
        )
    except HistoryGap as gap:
        return problems, [*gaps, str(gap)]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        # Rows that nobody verified may hold anything; their own checks say what is wrong with them.
        return [*problems, f"the rows cannot be rendered ({type(error).__name__}: {error})"], gaps
    except RowproofError as error:
        return [*problems, "; ".join(str(error).splitlines())], gaps
    problems += [f"{name} is missing" for name in sorted(set(fresh) - set(here.files))]
    problems += [f"{name} is no file of this board" for name in sorted(set(here.files) - set(fresh))]
    for name in sorted(set(fresh) & set(here.files), key=lambda name: (name == "leaderboard.json", name)):
        if fresh[name] != here.files[name]:
            problems.append(_difference(name, here.files[name], fresh[name]))
    return problems, sorted(set(gaps))


def board_key(setup: BoardSetup, root: Path) -> str:
    """The key of a board's recipe, by the definition and the code at hand."""
    from rowproof.recipes import CodeTree, board_recipe, read_pins
    from rowproof.stages import known_key

    return known_key(board_recipe(setup, root, CodeTree.of_checkout(root, _SOURCES, read_pins(root))))


# The sources at hand, analysed once for all boards that this process verifies.
_SOURCES = HashCache(None)


class _entries:
    """What lies in the folder of a board: its plain files, and what should not be there."""

    def __init__(self, folder: Path, setup: BoardSetup) -> None:
        self.files: dict[str, bytes] = {}
        self.problems: list[str] = []
        for path in sorted(folder.iterdir()):
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode):
                if path.name not in setup.board.rows:
                    self.problems.append(f"{path.name} is no row that the board lists")
                continue
            try:
                self.files[path.name] = read_page(path)
            except (OSError, RowproofError) as error:
                self.problems.append(str(error))


def read_page(path: Path) -> bytes:
    """The bytes of a plain file of bounded size.

    Raises:
        OSError: there is none.
        RowproofError: it is a link, no regular file, or too large.
    """
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        raise RowproofError(f"{path.name} must be a plain file, found a link or device: put the file itself there")
    if found.st_size > MAX_FILE_BYTES:
        raise RowproofError(f"{path.name} must have at most {MAX_FILE_BYTES} bytes, found {found.st_size}")
    return path.read_bytes()


def _stated_joined(data: bytes | None) -> dict[str, dict[str, Any]]:
    """Row -> commit and day of joining as the page has it, where these are well formed."""
    try:
        rows = decode(data or b"", "leaderboard.json")["rows"]
        own = {row["row"]: {"commit": row["joined"]["commit"], "day": row["joined"]["day"]} for row in rows}
        return {
            row: told
            for row, told in own.items()
            if re.fullmatch("[0-9a-f]{40}", told["commit"]) and re.fullmatch(r"\d{4}-\d\d-\d\d", told["day"])
        }
    except (RowproofError, KeyError, TypeError, AttributeError):
        return {}


def _is_cut_off(root: Path) -> bool:
    """Whether the history of HEAD is not here, or not all of it."""
    return git.run(root, "rev-parse", "--is-shallow-repository") != b"false\n"


def _has_pinned_plotter(root: Path) -> bool:
    from rowproof.recipes import read_pins

    try:
        return read_pins(root).get("matplotlib") == version("matplotlib")
    except PackageNotFoundError:
        return False


def _difference(name: str, here: bytes, fresh: bytes) -> str:
    ours, theirs = here.split(b"\n"), fresh.split(b"\n")
    number = next((i for i, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), None)
    if number is None:
        return f"{name} has {len(ours) - 1} lines where the rows give {len(theirs) - 1}"
    shown = [line[number].decode("utf-8", "replace").strip()[:160] for line in (ours, theirs)]
    return f"{name} line {number + 1} is {shown[0]!r} where the rows give {shown[1]!r}"


def is_board(folder: Path) -> bool:
    """Whether a rendered board of ours lies in ``folder``, or what somebody left of one."""
    try:
        return str(decode(read_page(folder / "leaderboard.json"), "").get("schema")).startswith("rowproof/")
    except (OSError, AttributeError, RowproofError):
        return any(path.name.startswith("leaderboard.") for path in folder.iterdir())
