"""Forgeries of a rendered board: pages that say what the rows beside them do not."""

import os
import re
import shutil
from collections.abc import Callable

from rowproof.layout import document_digest

from forgeries.seal import Copy, NotApplicableError, registry, sha256

Alteration = Callable[["Board"], None]
# kind -> name -> alteration
BOARDS: dict[str, dict[str, Alteration]] = {}
INDEX, REPORT = "leaderboard.json", "admission_report.json"


class Board(Copy):
    """A copy of the folder of a rendered board, with its rows."""

    def reseal(self) -> None:
        """Recompute the digests that the page's own document holds."""

        def change(document: dict) -> None:
            document["files"] = {name: sha256(self.read(name)) for name in document["files"]}
            document["digest"] = document_digest(document)

        self.edit(INDEX, change)

    @property
    def row(self) -> str:
        """The first row of the page."""
        return self.load(INDEX)["rows"][0]["row"]


forgery = registry(BOARDS)


def _other_digit(data: bytes) -> bytes:
    """The first rate of a text, with another last digit."""
    found = re.search(rb"\b[01]\.\d{3}\b", data)
    if found is None:
        raise NotApplicableError("the page shows no rate")
    digit = b"1" if found[0][-1:] != b"1" else b"2"
    return data[: found.end() - 1] + digit + data[found.end() :]


def _page(name: str) -> Alteration:
    def alteration(board: Board) -> None:
        board.write(name, _other_digit(board.read(name)))
        board.reseal()

    alteration.__name__ = f"a_digit_of_{name.replace('.', '_')}"
    alteration.__doc__ = "One rate on the page is another."
    return alteration


for _name in ("leaderboard.md", "leaderboard.csv", "leaderboard.svg"):
    forgery("pages")(_page(_name))


@forgery("pages")
def a_rate_of_the_document(board: Board) -> None:
    """The page's own document says what no record says."""
    board.edit(INDEX, lambda document: document["rows"][0]["summary"].update(success_rate=0.999))
    board.reseal()


@forgery("pages")
def a_sentence_more(board: Board) -> None:
    """Praise."""
    board.write("leaderboard.md", board.read("leaderboard.md") + b"\nAll rows were reviewed.\n")
    board.reseal()


@forgery("pages")
def no_document_beside_a_forged_page(board: Board) -> None:
    """What is not there cannot differ."""
    board.write("leaderboard.md", _other_digit(board.read("leaderboard.md")))
    (board.path / INDEX).unlink()


@forgery("rows of a page")
def a_row_withdrawn_without_a_word(board: Board) -> None:
    """Folder and line are gone, and the plan still has it."""
    row = board.row
    shutil.rmtree(board.path / row)
    board.edit(INDEX, lambda document: document.update(rows=[r for r in document["rows"] if r["row"] != row]))
    text = board.read("leaderboard.md").decode()
    board.write("leaderboard.md", "".join(line for line in text.splitlines(True) if f"`{row}`" not in line).encode())
    board.reseal()


@forgery("rows of a page")
def a_row_behind_a_link(board: Board) -> None:
    """Counted by the page, seen by nobody."""
    moved = board.path.parent / f"{board.path.name}-moved"
    (board.path / board.row).rename(moved)
    (board.path / board.row).symlink_to(moved)


@forgery("rows of a page")
def a_row_twice(board: Board) -> None:
    """The same evidence under a second name."""
    shutil.copytree(board.path / board.row, board.path / f"{board.row}-again")


@forgery("rows of a page")
def a_row_that_leads_out(board: Board) -> None:
    """The page names a folder of the reader's."""
    board.edit(INDEX, lambda document: document["rows"][0].update(row="../../../etc"))
    board.reseal()


@forgery("rows of a page")
def a_pipe_in_the_place_of_the_document(board: Board) -> None:
    """Reading it waits for ever."""
    (board.path / INDEX).unlink()
    os.mkfifo(board.path / INDEX)


def _edit_report(board: Board, change: Callable[[dict], object]) -> None:
    """Change the admission report and seal it again."""
    if not (board.path / REPORT).is_file():
        raise NotApplicableError("the board has no admission report")

    def whole(document: dict) -> None:
        change(document)
        if "digest" in document:
            document["digest"] = document_digest(document)

    board.edit(REPORT, whole)
    board.reseal()


@forgery("admission")
def a_verdict_of_admission(board: Board) -> None:
    """Another verdict, with the digests that follow."""
    _edit_report(board, lambda document: document.update(verdict="ADMITTED"))


@forgery("admission")
def no_report_of_admission(board: Board) -> None:
    """The report is gone."""
    if not (board.path / REPORT).is_file():
        raise NotApplicableError("the board has no admission report")
    (board.path / REPORT).unlink()
    board.edit(INDEX, lambda document: document["files"].pop(REPORT, None))
    board.reseal()


@forgery("admission")
def a_threshold_of_admission(board: Board) -> None:
    """The bar is lower than the plan has it."""
    _edit_report(board, lambda document: document["thresholds"].update(tau_solv=0.5))
