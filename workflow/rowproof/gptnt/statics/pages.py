"""Pages of the manual as pictures: text, tables whose cells wrap, drawings; symbols are drawn as on the keys."""

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from io import BytesIO
from typing import NamedTuple

from PIL import Image

from rowproof.gptnt.bomb.rules.keypad import SYMBOLS
from rowproof.gptnt.manual import Manual, Page
from rowproof.gptnt.rendering import INK, PAPER, SCALE, Pen, Scene, choose_marks, draw_symbol, font, paint_marks, png
from rowproof.llm.calls import Picture

# Width and height of a page in pixels; an upright sheet, as the Expert's pictures are.
SIZE = (960, 1280)
MARGIN = 40.0
# Sizes of text, the largest that fits the page is taken.
TEXT_SIZES = (18.0, 16.0, 15.0, 14.0, 13.0, 12.0, 11.0, 10.0, 9.0, 8.0)
LEADING = 1.35
COLUMN_GAP = 14.0
DRAWINGS_PER_ROW = 3
# A table of more lines stands in lanes beside each other, if it is narrow.
LANE_LINES, LANE_GAP = 18, 50.0

TABLE_LINE = "#8b8b86"
GLYPHS = frozenset(symbol.glyph for symbol in SYMBOLS.values())


class Line(NamedTuple):
    """A line of a table on the page.

    Attributes:
        table: its heading.
        number: of the line, from 1; the one with the headings of columns is not counted.
        region: index of its region on the canvas.
    """

    table: str
    number: int
    region: int


class Sheet(NamedTuple):
    """A page as it was drawn."""

    scene: Scene
    lines: tuple[Line, ...]


class _Overflow(Exception):
    """The page is too long for this size of text."""


@lru_cache(maxsize=32)
def render_page(page: Page) -> bytes:
    """A page as a PNG of :data:`SIZE`."""
    return png(draw_page(page).scene.image, SIZE)


def render_marked_page(page: Page, chosen: Sequence[tuple[str, int]]) -> tuple[bytes, dict[tuple[str, int], str]]:
    """A page with a mark at each chosen line (heading and number of a line), and the letter of each.

    Raises:
        ValueError: the page has no such line.
    """
    sheet = draw_page(page)
    scene = sheet.scene.copy()
    regions = {(line.table, line.number): line.region for line in sheet.lines}
    missing = [line for line in chosen if line not in regions]
    if missing:
        raise ValueError(f"lines must be on page {page.number}, found none for {missing}")
    ordered = sorted(chosen, key=regions.__getitem__)
    letters = choose_marks([1.0] * len(ordered))
    paint_marks(scene, {regions[ordered[index]]: letter for index, letter in letters.items()})
    return png(scene.image, SIZE), {ordered[index]: letter for index, letter in letters.items()}


@lru_cache(maxsize=32)
def picture_of_manual(width: int, height: int) -> Picture:
    """The first page of the manual as a picture of this size in pixels."""
    page = next(iter(Manual.read().pages.values()))
    with Image.open(BytesIO(render_page(page))) as drawn, BytesIO() as out:
        drawn.resize((width, height)).save(out, "PNG")
        return Picture(out.getvalue())


def draw_page(page: Page) -> Sheet:
    """Draw a page with the largest text that fits; what it returns is shared and must not be painted on.

    Raises:
        ValueError: the page does not fit even with the smallest text.
    """
    for text_size in TEXT_SIZES:
        try:
            return _Typesetter(text_size).set(page)
        except _Overflow:
            continue
    raise ValueError(f"page {page.number} must fit a sheet of {SIZE} pixels: shorten it")


class _Typesetter:
    """Sets one page from the top down."""

    def __init__(self, text_size: float) -> None:
        self.size = text_size
        self.leading = text_size * LEADING
        self.scene = Scene(SIZE, PAPER)
        self.pen = Pen(self.scene, 0, 0, SCALE)
        self.lines: list[Line] = []
        self.y = MARGIN

    def set(self, page: Page) -> Sheet:
        head, *sections = page.text.split("\n## ")
        title, _, body = head.partition("\n")
        self._text(title.removeprefix("# "), self.size * 1.5)
        self._paragraphs(body)
        drawings: list[tuple[str, list[str]]] = []
        for section in sections:
            heading, _, body = section.partition("\n")
            if "```" in body:
                drawings.append((heading, body.split("```")[1].split("\n")[1:-1]))
                continue
            self._text(heading, self.size * 1.15)
            rows = [line for line in body.split("\n") if line.startswith("|")]
            self._table(heading, [[cell.strip() for cell in row[1:-1].split("|")] for row in rows])
            self._paragraphs("\n".join(line for line in body.split("\n") if not line.startswith("|")))
        for start in range(0, len(drawings), DRAWINGS_PER_ROW):
            self._drawings(drawings[start : start + DRAWINGS_PER_ROW])
        return Sheet(self.scene, tuple(self.lines))

    def _advance(self, height: float) -> None:
        self.y += height
        if self.y > SIZE[1] - MARGIN:
            raise _Overflow

    def _text(self, text: str, size: float) -> None:
        self.pen.text((MARGIN, self.y), text, size, anchor="la")
        self._advance(size * LEADING + 4)

    def _paragraphs(self, body: str) -> None:
        for paragraph in re.split(r"\n\s*\n", body.strip()):
            if not paragraph:
                continue
            for line in self._wrapped(" ".join(paragraph.split()).replace("`", ""), SIZE[0] - 2 * MARGIN):
                self.pen.text((MARGIN, self.y), line, self.size, anchor="la", face="Sans")
                self._advance(self.leading)
            self._advance(self.leading * 0.4)

    def _width(self, text: str, face: str = "Sans") -> float:
        return font(round(self.size * SCALE), face).getlength(text) / SCALE

    def _wrapped(self, text: str, room: float) -> list[str]:
        lines = [""]
        for word in text.split():
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and self._width(longer) > room:
                lines.append(word)
            else:
                lines[-1] = longer
        return lines

    def _table(self, heading: str, rows: list[list[str]]) -> None:
        # The second row of a Markdown table is its rule.
        head, body = rows[0], rows[2:]
        # Headings are bold, and so wider than any other text.
        widths = [max(self._width(row[column], "Sans-Bold") for row in rows) + 4 for column in range(len(head))]
        room = SIZE[0] - 2 * MARGIN - COLUMN_GAP * len(widths)
        if sum(widths) > room:
            # The widest column wraps.
            widest = widths.index(max(widths))
            widths[widest] = room - (sum(widths) - widths[widest])
            if widths[widest] < 8 * self.size:
                raise _Overflow
        step = sum(widths) + COLUMN_GAP * len(widths) + LANE_GAP
        # Long narrow tables stand in several lanes.
        lanes = min(int((room + LANE_GAP) // step), math.ceil(len(body) / LANE_LINES)) or 1
        height = math.ceil(len(body) / lanes)
        top, lowest = self.y, self.y
        for lane in range(lanes):
            self.y = top
            self._lane(
                heading, head, body, range(lane * height, min((lane + 1) * height, len(body))), widths, lane * step
            )
            lowest = max(lowest, self.y)
        self.y = lowest
        self._advance(self.leading * 0.6)

    def _lane(
        self, heading: str, head: list[str], body: list[list[str]], numbers: range, widths: list[float], shift: float
    ) -> None:
        left, right = MARGIN + shift, MARGIN + shift + sum(widths) + COLUMN_GAP * len(widths)
        for number in (-1, *numbers):
            row = head if number < 0 else body[number]
            wrapped = [self._wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
            height = self.leading * max(map(len, wrapped)) + 4
            top, x = self.y, left + COLUMN_GAP / 2
            self._advance(height)
            for cell, lines, width in zip(row, wrapped, widths, strict=True):
                self._cell(cell, lines, x, top, height, "Sans-Bold" if number < 0 else "Sans")
                x += width + COLUMN_GAP
            self.pen.line([(left, self.y), (right, self.y)], TABLE_LINE, 2 if number < 0 else 1)
            if number >= 0:
                self.pen.element("rectangle", [(left, top), (right, self.y)], (left - 16, top + height / 2))
                self.lines.append(Line(heading, number + 1, len(self.scene.regions) - 1))

    def _cell(self, cell: str, lines: list[str], x: float, top: float, height: float, face: str) -> None:
        if cell in GLYPHS:
            unit = 0.0092 * self.leading
            draw_symbol(self.pen.at(x, top + (height - 100 * unit) / 2, unit), cell)
            return
        for index, line in enumerate(lines):
            signal = line.startswith("`")
            place = (x, top + 2 + self.leading * index)
            face = "SansMono-Bold" if signal else face
            self.pen.text(place, line.replace("`", ""), self.size, anchor="la", face=face)

    def _drawings(self, drawings: list[tuple[str, list[str]]]) -> None:
        step = (SIZE[0] - 2 * MARGIN) / DRAWINGS_PER_ROW
        columns = max(len(line) for _, lines in drawings for line in lines)
        # A monospaced character is about 0.6 of its size wide.
        size = min(self.size, step * 0.92 / columns / 0.602)
        height = size * 1.18
        for index, (heading, lines) in enumerate(drawings):
            x = MARGIN + step * index
            self.pen.text((x, self.y), heading, self.size, anchor="la")
            for number, line in enumerate(lines):
                place = (x, self.y + self.leading * 1.2 + height * number)
                self.pen.text(place, line, size, INK, anchor="la", face="SansMono-Bold")
        self._advance(self.leading * 1.8 + height * max(len(lines) for _, lines in drawings))
