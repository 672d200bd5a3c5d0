"""Checks a rendered board: that it is as it was written, and of the rows that lie beside it."""

from pathlib import Path

from rowproof.boards import load_board
from rowproof.errors import HistoryGap, RowproofError
from rowproof.evidence import admission
from rowproof.evidence.checks import CheckTable
from rowproof.hashing import sha256_hex
from rowproof.layout import document_digest
from rowproof.records import decode, encode_document


def verify_board(folder: Path, root: Path | None) -> CheckTable:
    """Check the rendered files in ``folder`` (``results/<board>``) against themselves and against its bundles.

    The bundles themselves are checked on their own. ``root`` is the project whose plan has the rules of admission; None
    when there is none.
    """
    table = CheckTable(str(folder / "leaderboard.json"))
    must = "leaderboard.json is canonical and as it was written"
    with table.guard("board:form", must):
        data = (folder / "leaderboard.json").read_bytes()
        document = decode(data, "leaderboard.json")
        same = encode_document(document) == data and document["digest"] == document_digest(document)
        table.add("board:form", same, must, "as written" if same else "edited")
    must = "every rendered file has the hash that leaderboard.json lists"
    with table.guard("board:files", must):
        wrong = [n for n, sha in document["files"].items() if sha256_hex((folder / n).read_bytes()) != sha]
        table.add("board:files", not wrong, must, f"{len(document['files'])} files, differing {wrong}")
    must = "the table shows the bundles that lie here"
    with table.guard("board:rows", must):
        shown = {row["row"]: row["row_digest"] for row in document["rows"]}
        here = {p.parent.name: sha256_hex(p.read_bytes()) for p in sorted(folder.glob("*/bundle.json"))}
        wrong = sorted(name for name in {*shown, *here} if shown.get(name) != here.get(name))
        table.add("board:rows", not wrong, must, f"{len(here)} rows, differing {wrong}")
    if (folder / "admission_report.json").is_file():
        must = "the admission report follows from the records and the thresholds of the project's plan"
        with table.guard("board:admission", must):
            data = (folder / "admission_report.json").read_bytes()
            stated = decode(data, "admission_report.json")
            if root is None:
                raise HistoryGap("no project at hand")
            # Not that of a row's bundle: what is asked of the task may be more than when the row joined.
            rules = load_board(root, stated["board"]).plan.admission
            if rules is None:
                raise RowproofError("the plan of these rows has no admission section")
            fresh = admission.report(stated["board"], rules.model_dump(), folder)
            same = encode_document(fresh) == data
            table.add("board:admission", same, must, f"{stated['verdict']}" if same else "differs from the records")
    return table


def is_board(folder: Path) -> bool:
    """Whether a rendered board of ours lies in ``folder``."""
    try:
        return str(decode((folder / "leaderboard.json").read_bytes(), "").get("schema")).startswith("rowproof/")
    except (OSError, AttributeError, RowproofError):
        return (folder / "leaderboard.json").exists()
