"""The generated blocks of README.md, each between two marker lines; nothing outside them is touched."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rowproof.boards import Board, Config, load_board
from rowproof.errors import RowproofError
from rowproof.evidence.leaderboard import DIGEST_DIGITS, SCHEMA, main_table
from rowproof.evidence.rendered import page_problems
from rowproof.layout import document_digest
from rowproof.records import decode
from rowproof.strict_yaml import load

_MARKER = re.compile(r"<!-- rowproof:(begin|end) ([a-z0-9-]+) -->")


def update(text: str, blocks: Mapping[str, str]) -> str:
    """``text`` with the content of the named blocks replaced.

    Args:
        text: a Markdown text. Markers are ``<!-- rowproof:begin NAME -->`` and ``<!-- rowproof:end NAME -->``, each
            alone on its line. Blocks that ``blocks`` does not name keep their content.
        blocks: name -> new content; a final newline is added where it is missing.

    Raises:
        RowproofError: a named block has no markers, or markers anywhere in ``text`` are doubled, unpaired, nested or
            out of order, or a new content holds a marker line itself.
    """
    lines = text.splitlines(keepends=True)
    spans = _spans(lines)
    for name, content in blocks.items():
        if name not in spans:
            raise RowproofError(
                f"block {name} must have its markers, found none: add the lines <!-- rowproof:begin {name} --> and "
                f"<!-- rowproof:end {name} --> where it belongs"
            )
        if any(_MARKER.fullmatch(line.strip()) for line in content.splitlines()):
            raise RowproofError(f"the content of block {name} must hold no marker line, found one")
    out, done = [], 0
    for name, (begin, end) in spans.items():
        if name in blocks:
            content = blocks[name]
            out += [*lines[done : begin + 1], content if content.endswith("\n") or not content else content + "\n"]
            done = end
    return "".join([*out, *lines[done:]])


def _spans(lines: list[str]) -> dict[str, tuple[int, int]]:
    """Block name -> indices of its marker lines, in the order of the text."""
    spans: dict[str, tuple[int, int]] = {}
    opened: tuple[str, int] | None = None
    for index, line in enumerate(lines):
        match = _MARKER.fullmatch(line.strip())
        if match is None:
            continue
        place, (kind, name) = f"line {index + 1}", match.groups()
        if name in spans:
            raise RowproofError(f"{place}: block {name} must occur once, found a second {kind} marker: remove it")
        if kind == "begin" and opened is not None:
            raise RowproofError(f"{place}: block {opened[0]} must end before {name} begins, found no end marker")
        if kind == "end" and (opened is None or opened[0] != name):
            raise RowproofError(f"{place}: the end of block {name} must follow its own begin marker, found none open")
        if kind == "begin":
            opened = (name, index)
        else:
            assert opened is not None
            spans[name] = (opened[1], index)
            opened = None
    if opened is not None:
        raise RowproofError(f"block {opened[0]} (line {opened[1] + 1}) must have an end marker, found none: add it")
    return spans


def boards_block(root: Path) -> str:
    """The block ``boards``: a heading and the main table of every board of ``config/config.yaml``, in its order.

    The tables come from ``results/<board>/leaderboard.json``; a board that is not rendered says so.

    Raises:
        RowproofError: a configuration file is wrong, or a ``leaderboard.json`` is damaged or of another board.
    """
    config, _ = load(root / "config" / "config.yaml", Config, root)
    parts = []
    for name in config.boards:
        board, _ = load(root / "config" / "boards" / f"{name}.yaml", Board, root)
        parts.append(f"### {board.title} (`{name}`)\n")
        path = root / "results" / name / "leaderboard.json"
        if not path.is_file():
            parts.append(f"Not rendered yet: `snakemake results/{name}` builds its rows and renders it.\n")
            continue
        document = _read_rendered(path.read_bytes(), name)
        problems, _ = page_problems(path.parent, root, load_board(root, name))
        if problems:
            raise RowproofError(
                f"results/{name} must be what its rows render to, found {'; '.join(problems[:3])}: snakemake "
                f"results/{name}"
            )
        page = f"[Matrix of seeds and partners, plot and footnotes](results/{name}/leaderboard.md)"
        parts += [
            main_table(document["rows"]),
            f"{page}; board digest `{document['board_digest'][:DIGEST_DIGITS]}`.\n",
        ]
    return "\n".join(parts)


def _read_rendered(data: bytes, board: str) -> dict[str, Any]:
    where = f"results/{board}/leaderboard.json"
    document = decode(data, where)
    if not isinstance(document, dict) or document.get("schema") != SCHEMA or document.get("board") != board:
        raise RowproofError(
            f"{where}: must be a {SCHEMA} document of this board, found another: snakemake results/{board}"
        )
    if document.get("digest") != document_digest(document):
        raise RowproofError(f"{where}: must be as it was rendered, found it edited: snakemake results/{board}")
    return document
