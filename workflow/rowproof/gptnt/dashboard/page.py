"""One HTML file out of plain data: it holds styles, scripts and data, works from the disk and asks no network."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any

from rowproof.records import encode_line

SCRIPTS = ("base.js", "tables.js", "plots.js", "bomb.js", "viewer.js", "app.js")
STYLE = "style.css"
TEMPLATE = "page.html"

# Nothing is loaded, and no code runs but the one script of the page, whatever the records hold.
_POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src {style}; script-src {script}"
)


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _source(text: str) -> str:
    """The source expression of a content security policy that allows just this inline text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def render_page(page: Mapping[str, Any], dialogues: Sequence[str]) -> bytes:
    """The HTML file.

    Args:
        page: what the scripts need at once; see :func:`rowproof.gptnt.dashboard.data.read_page`.
        dialogues: packed games (:func:`rowproof.gptnt.dashboard.dialogues.pack_dialogue`), to which the page's
            games point by their index.
    """
    script = '"use strict";\n(() => {\n' + "\n".join(map(_text, SCRIPTS)) + "})();\n"
    style = _text(STYLE)
    games = (f'<script type="text/plain" id="game-{i}">{packed}</script>' for i, packed in enumerate(dialogues))
    # JSON holds < in strings alone, so no text of a record can end the element.
    data = encode_line(page).replace("<", "\\u003c")
    return (
        Template(_text(TEMPLATE))
        .substitute(
            policy=_POLICY.format(style=_source(style), script=_source(script)),
            style=style,
            script=script,
            data=data,
            games="\n".join(games),
        )
        .encode()
    )
