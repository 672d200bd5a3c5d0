"""What a board's page says of plan-before-records: on whose word it rests."""

from collections.abc import Mapping, Sequence
from typing import Any


def order_lines(board: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """One paragraph on the order of plan and records, for ``leaderboard.md``.

    Tokens are not read here, so that rendering needs no library for them: ``rowproof verify`` holds the time and the
    authority that the board states against the token, and fails where they differ.

    Args:
        board: a ``boards.Board`` dumped by alias.
        rows: entries of the table; ``plan.blob`` is the version of the plan that bound a row.
    """
    witnesses = {blob: [w for w in board.get("witnesses", ()) if w["blob"] == blob] for blob in _blobs(rows)}
    if not any(witnesses.values()):
        return ["Order: by the project's history.\n"]
    lines = []
    for blob, own in witnesses.items():
        names = ", ".join(row["row"] for row in rows if row["plan"]["blob"] == blob)
        stamps = sorted((w for w in own if w["kind"] == "rfc3161"), key=lambda w: w["time"])
        told = [f"the plan was stamped at {w['time']} by {w['authority']} (`{w['token']}`)" for w in stamps]
        told += [f"deposited as {w['id']} (not looked up)" for w in own if w["kind"] == "deposit"]
        # A deposit that nobody looked up leaves the order where it was.
        base = "" if stamps else "by the project's history; "
        lines.append(f"- {names}: {base}{'; '.join(told)}\n" if told else f"- {names}: by the project's history\n")
    return [
        "Order, by whose word; `rowproof verify` checks the stamps without a network:\n",
        "".join(lines),
    ]


def _blobs(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["plan"]["blob"] for row in rows))
