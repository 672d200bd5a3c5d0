"""Text that people wrote and pages show: one type for what it may hold, and one escape for each place it is shown in.

What a title, a note or a record says must stay text wherever it is shown: no new line of a table, no markup, no
formula of a spreadsheet, no order to a terminal.
"""

import re
import unicodedata
from typing import Annotated, Any

from pydantic import AfterValidator

MAX_LINE, MAX_TEXT = 1000, 4000
# Letters and marks by category that show nothing: combining grapheme joiner, Hangul fillers, Khmer inherent vowels,
# Mongolian and other variation selectors, braille blank.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def is_plain(character: str) -> bool:
    """Whether a character shows as itself: no control, format, private, unassigned or separating one, but the space."""
    return character.isprintable() and not _INVISIBLE.match(character)


def plain_line(text: str) -> str:
    """``text`` without the final newline that YAML's blocks have, if it is one line of plain text.

    Raises:
        ValueError: it holds another character than :func:`is_plain` allows, is not in the normal form NFC or has more
            than ``MAX_LINE`` characters.
    """
    return _checked(text.removesuffix("\n"), MAX_LINE, "one line of plain text")


def plain_text(text: str) -> str:
    """As :func:`plain_line` for paragraphs, which may hold newlines; they are shown on no page.

    Raises:
        ValueError: see there; up to ``MAX_TEXT`` characters are allowed.
    """
    for line in text.split("\n"):
        _checked(line, MAX_TEXT, "plain text")
    return _checked(text.replace("\n", " "), MAX_TEXT, "plain text") and text


def _checked(text: str, limit: int, what: str) -> str:
    if len(text) > limit:
        raise ValueError(f"must be {what} of at most {limit} characters, found {len(text)}")
    odd = next((c for c in text if not is_plain(c)), None)
    if odd is not None:
        raise ValueError(f"must be {what}, found the character U+{ord(odd):04X} at {text.index(odd)}: remove it")
    if not unicodedata.is_normalized("NFC", text):
        raise ValueError(f"must be {what} in the normal form NFC, found another: write the composed characters")
    return text


PlainLine = Annotated[str, AfterValidator(plain_line)]
PlainText = Annotated[str, AfterValidator(plain_text)]


def visible(text: str) -> str:
    """``text`` on one line, what does not show written as an escape: for terminals, figures and error messages."""
    return "".join(c if is_plain(c) else c.encode("unicode_escape").decode() for c in text)


def terminal(text: str) -> str:
    """Lines of ``text`` for a terminal, each as :func:`visible`."""
    return "\n".join(visible(line) for line in text.split("\n"))


def markdown(text: str) -> str:
    """``text`` as plain words in Markdown, in a paragraph as in a cell: no markup, no HTML, no link, no list."""
    # An underscore inside a word marks nothing.
    escaped = re.sub(r"([\\`*\[\]<>|~#&$@]|(?<![^\W_])_|_(?![^\W_]))", r"\\\1", visible(text))
    # Bare addresses become links in the Markdown of code hosts.
    escaped = re.sub(r"(?i)(https?|ftp)://", r"\1\\://", escaped)
    escaped = re.sub(r"(?i)\bwww\.", r"www\\.", escaped)
    # At the start of a paragraph these begin a list, a rule or a heading.
    return re.sub(r"^(\s*\d*)([-+=.)])", r"\1\\\2", escaped)


def markdown_cell(cell: str) -> str:
    """A cell that may hold our own Markdown, kept from leaving its cell whatever text stands in it."""
    return re.sub(r"(?<!\\)((?:\\\\)*)([|<])", r"\1\\\2", visible(cell))


def csv_value(value: Any) -> Any:
    """A value of a CSV file: text that a spreadsheet would compute is marked as text by an apostrophe."""
    if not isinstance(value, str):
        return value
    return f"'{visible(value)}" if value.lstrip(" ").startswith(_FORMULA) else visible(value)
