"""Pictures of the bomb, drawn from an observation and from nothing else, with or without marks.

A scene is drawn on a canvas of its own size. Marks are painted there, and only then is it brought to the size that a
player wants, so that letters stay legible. Masks of elements are brought to that size by nearest neighbour and stay
masks. The same observation gives the same bytes, whatever was drawn before.
"""

import io
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from rowproof.gptnt.bomb.components import MODULES
from rowproof.gptnt.bomb.modules.base import SAMPLES
from rowproof.gptnt.bomb.observation import COVER, PORT_LOOKS, TIMER
from rowproof.gptnt.bomb.rules.keypad import SYMBOLS

Size = tuple[int, int]
Observation = Mapping[str, Any]
Point = tuple[float, float]

# Width and height in pixels, unless a player wants another size.
SIZE = (640, 480)
# Scenes are laid out in SIZE and drawn this many times larger.
SCALE = 2
# A mark is one letter, so that an answer can be one letter.
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

INK, PAPER = "#15171a", "#f4f3ee"
TABLE, CASING, PANEL, GROOVE = "#4a4038", "#6f7680", "#b7b2a6", "#2b2d31"
GREY, DARK, LIT = "#8f8f8c", "#33363a", "#fff3a6"
COLOURS = {
    "red": "#d8232a",
    "blue": "#1f55d8",
    "yellow": "#f4c60f",
    "white": "#fbfbf8",
    "black": "#101010",
    "green": "#1fa545",
    "grey": GREY,
}
LIGHTS = {"off": DARK, "green": "#35ff62", "red": "#ff2b2b"}


def render(observation: Observation, size: Size = SIZE) -> bytes:
    """The view of an observation as a PNG without marks; blinking lamps as they are at its last sample.

    Args:
        observation: of :func:`rowproof.gptnt.bomb.observation.look`, with symbols of any rendering.
        size: width and height in pixels.
    """
    return png(_draw(observation).image, size)


def render_marks(observation: Observation, size: Size = SIZE) -> bytes:
    """:func:`render` with the letter of each element painted on it.

    Raises:
        ValueError: the marks of the observation are not those of the elements in view.
    """
    return png(_marked(observation), size)


def render_frames(observation: Observation, count: int, size: Size = SIZE, marks: bool = True) -> list[bytes]:
    """What a Defuser is sent: one picture per sample of a blinking lamp, oldest first, or one of all other views.

    Frames are 250 ms apart. The timer reads the same in all of them: only its present display is known.

    Args:
        observation: see :func:`render`.
        count: of frames at most, from 1.
        size: width and height in pixels.
        marks: paint marks on the last frame.
    """
    module = observation.get("module", {})
    samples = next((key for key in ("lamp", "flashes") if key in module), None)
    frames = []
    for end in range(SAMPLES - min(count, SAMPLES) + 1, SAMPLES) if samples else ():
        frames.append(render({**observation, "module": {**module, samples: module[samples][:end]}}, size))
    return [*frames, render_marks(observation, size) if marks else render(observation, size)]


def masks(observation: Observation, size: Size = SIZE) -> dict[str, NDArray[np.bool_]]:
    """Mark to the pixels of its element, as an array of shape (height, width).

    Raises:
        ValueError: see :func:`render_marks`.
    """
    scene = _draw(observation)
    letters = _letters(observation, scene)
    return {
        letter: np.asarray(_mask(scene.regions[index], scene.image.size).resize(size, Image.Resampling.NEAREST)) > 0
        for index, letter in letters.items()
    }


def choose_marks(areas: Sequence[float], limit: int = len(LETTERS)) -> dict[int, str]:
    """Index of an element to its letter: in order, and of more than ``limit`` elements only the largest ones.

    Args:
        areas: of the elements in reading order; of equal ones the first is the larger.
        limit: of marks; there are no more letters than that.
    """
    kept = sorted(sorted(range(len(areas)), key=lambda index: (-areas[index], index))[:limit])
    return dict(zip(kept, LETTERS, strict=False))


# ---- canvas ----------------------------------------------------------------------------------------------------


class Region(NamedTuple):
    """An element on the canvas.

    Attributes:
        kind: ``rectangle`` or ``ellipse`` (two corners), ``polygon`` or ``line`` (points).
        points: in pixels of the canvas.
        width: of a line.
        mark: where its mark goes.
    """

    kind: str
    points: tuple[Point, ...]
    width: int
    mark: Point


def _mask(region: Region, size: Size) -> Image.Image:
    mask = Image.new("L", size)
    draw = ImageDraw.Draw(mask)
    if region.kind == "line":
        draw.line(region.points, 255, region.width, joint="curve")
    else:
        getattr(draw, region.kind)(region.points, 255)
    return mask


@lru_cache(maxsize=256)
def font(size: int, face: str = "Sans-Bold") -> ImageFont.FreeTypeFont:
    """A DejaVu font of a size in pixels.

    Raises:
        ModuleNotFoundError: matplotlib, which ships it, is not installed.
    """
    # Importing matplotlib would take longer than all pictures of a game.
    spec = find_spec("matplotlib")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("matplotlib must be installed: its fonts are used")
    path = Path(spec.origin).parent / "mpl-data" / "fonts" / "ttf" / f"DejaVu{face}.ttf"
    # The basic layout is the same everywhere; the other one depends on what else is installed.
    return ImageFont.truetype(str(path), size, layout_engine=ImageFont.Layout.BASIC)


class Scene:
    """A canvas and the elements on it.

    Attributes:
        image: the canvas; :data:`SCALE` times as large as its layout.
        draw: draws on it.
        regions: the elements, in the order of their marks.
    """

    def __init__(self, size: Size = SIZE, background: str = TABLE) -> None:
        """Make a canvas for a layout of ``size`` (width and height)."""
        self.image = Image.new("RGB", (size[0] * SCALE, size[1] * SCALE), background)
        self.draw = ImageDraw.Draw(self.image)
        self.regions: list[Region] = []

    def copy(self) -> "Scene":
        """A scene of its own that looks the same."""
        scene = Scene()
        scene.image = self.image.copy()
        scene.draw = ImageDraw.Draw(scene.image)
        scene.regions = list(self.regions)
        return scene


class Pen:
    """Draws on a canvas in units of its own: ``unit`` pixels each, counted from an origin."""

    def __init__(self, scene: Scene, x: float, y: float, unit: float, regions: list[Region] | None = None) -> None:
        """Put the origin at ``x``, ``y`` (pixels of the canvas); elements go to ``regions``, or to the scene's."""
        self._scene = scene
        self._x, self._y, self._unit = x, y, unit
        self._regions = scene.regions if regions is None else regions

    def at(self, x: float, y: float, unit: float) -> "Pen":
        """A pen whose origin is at ``x``, ``y`` and whose unit is ``unit`` of this one's."""
        return Pen(self._scene, *self._place((x, y)), self._unit * unit, self._regions)

    def without_elements(self) -> "Pen":
        """A pen at the same place whose elements are forgotten."""
        return Pen(self._scene, self._x, self._y, self._unit, [])

    def _place(self, point: Point) -> Point:
        return round(self._x + self._unit * point[0]), round(self._y + self._unit * point[1])

    def _places(self, points: Sequence[Point]) -> list[Point]:
        return [self._place(point) for point in points]

    def _width(self, width: float) -> int:
        return max(1, round(self._unit * width))

    def box(
        self,
        corner: Point,
        opposite: Point,
        fill: str | None,
        outline: str | None = INK,
        width: float = 0.6,
        radius: float = 0.0,
    ) -> None:
        """A rectangle between two corners."""
        corners = self._places((corner, opposite))
        self._scene.draw.rounded_rectangle(
            corners, radius * self._unit, fill, outline, self._width(width) if outline else 0
        )

    def disc(
        self, centre: Point, radius: float, fill: str | None, outline: str | None = INK, width: float = 0.6
    ) -> None:
        """A circle."""
        (x, y), r = self._place(centre), self._unit * radius
        self._scene.draw.ellipse((x - r, y - r, x + r, y + r), fill, outline, self._width(width) if outline else 0)

    def polygon(self, points: Sequence[Point], fill: str | None, outline: str | None = INK, width: float = 0.6) -> None:
        """A filled outline."""
        self._scene.draw.polygon(self._places(points), fill)
        if outline:
            self.line([*points, points[0]], outline, width)

    def line(self, points: Sequence[Point], colour: str, width: float, flat: bool = False) -> None:
        """A line through all points with round joints; its ends are round as well unless ``flat``."""
        places, thick = self._places(points), self._width(width)
        self._scene.draw.line(places, colour, thick, joint="curve")
        r = (thick - 1) / 2
        for x, y in (places[0], places[-1]) if thick > 2 and not flat else ():
            self._scene.draw.ellipse((x - r, y - r, x + r, y + r), colour)

    def text(
        self,
        place: Point,
        text: str,
        size: float,
        colour: str = INK,
        anchor: str = "mm",
        room: float | None = None,
        face: str = "Sans-Bold",
    ) -> None:
        """One line of text, made smaller until it fits into ``room``."""
        pixels = self._width(size)
        while room is not None and pixels > 4 and font(pixels, face).getlength(text) > room * self._unit:
            pixels -= 1
        self._scene.draw.text(self._place(place), text, colour, font(pixels, face), anchor)

    def element(self, kind: str, points: Sequence[Point], mark: Point, width: float = 0.0) -> None:
        """Make a shape the next element; see :class:`Region`."""
        self._regions.append(Region(kind, tuple(self._places(points)), self._width(width), self._place(mark)))


def _area(region: Region) -> float:
    (x0, y0), *_, (x1, y1) = region.points
    if region.kind == "polygon":
        shifted = region.points[1:] + region.points[:1]
        return abs(sum(a * d - b * c for (a, b), (c, d) in zip(region.points, shifted, strict=True))) / 2
    if region.kind == "line":
        return region.width * sum(math.dist(a, b) for a, b in zip(region.points, region.points[1:], strict=False))
    return abs(x1 - x0) * abs(y1 - y0) * (math.pi / 4 if region.kind == "ellipse" else 1)


def _letters(observation: Observation, scene: Scene) -> dict[int, str]:
    letters = choose_marks([_area(region) for region in scene.regions])
    if list(letters.values()) != list(observation["marks"]):
        raise ValueError(
            f"marks must be those of the elements in view {list(letters.values())}, found {list(observation['marks'])}"
        )
    return letters


def _marked(observation: Observation) -> Image.Image:
    scene = _draw(observation)
    paint_marks(scene, _letters(observation, scene))
    return scene.image


def paint_marks(scene: Scene, letters: Mapping[int, str]) -> None:
    """Paint the letter of each element (index to letter) on the canvas, before any resizing."""
    pen, half = Pen(scene, 0, 0, SCALE), 12
    for index, letter in letters.items():
        x, y = (value / SCALE for value in scene.regions[index].mark)
        pen.box((x - half, y - half), (x + half, y + half), "#000000", "#ffffff", 1.5, radius=3)
        pen.text((x, y), letter, 19, "#ffffff")


def png(image: Image.Image, size: Size) -> bytes:
    """The PNG of an image, brought to ``size`` (width and height in pixels)."""
    if image.size != size:
        image = image.resize(size, Image.Resampling.HAMMING)
    stream = io.BytesIO()
    image.save(stream, "PNG", compress_level=6)
    return stream.getvalue()


# ---- views -----------------------------------------------------------------------------------------------------


def _draw(observation: Observation) -> Scene:
    scene = Scene()
    pen = Pen(scene, 0, 0, SCALE)
    if observation["zoomed_in"]:
        _closely(pen, observation)
    elif "slots" in observation:
        _face(pen, observation)
    else:
        _edge(pen, observation)
    return scene


def _closely(pen: Pen, seen: Observation) -> None:
    pen.box((4, 4), (636, 476), CASING, GROOVE, 3, radius=12)
    if seen["timer"] is not None:
        _timer(pen.at(14, 40, 1.5), seen["timer"])
    pen.text((89, 455), seen["side"].upper(), 14, GROOVE)
    _module(pen.at(176, 14, 4.52), seen["module"], seen["module"], seen["holding"])


def _face(pen: Pen, seen: Observation) -> None:
    pen.box((14, 8), (626, 472), CASING, GROOVE, 4, radius=16)
    for slot in seen["slots"]:
        row, column = divmod(slot["slot"], 3)
        x, y = 32 + 197 * column, 22 + 217 * row
        if slot["shows"] == TIMER:
            pen.box((x, y), (x + 182, y + 202), GROOVE, INK, 2, radius=6)
            _timer(pen.at(x + 16, y + 40, 1.5), seen["timer"])
            continue
        pane = pen.at(x, y + 10, 1.82)
        if slot["shows"] == COVER:
            pane.box((0, 0), (100, 100), "#a8713f", GROOVE, 1, radius=3)
            for rib in range(12, 100, 11):
                pane.line([(8, rib), (92, rib)], "#7c5029", 2.2)
            continue
        _module(pane.without_elements(), slot, _FROM_AFAR[slot["shows"]], holding=False)
        if "mark" in slot:
            pane.element("rectangle", [(0, 0), (100, 100)], (6.5, 93.5))
    pen.text((320, 461), seen["side"].upper(), 14, GROOVE)


def _module(pen: Pen, outside: Mapping[str, Any], view: Mapping[str, Any], holding: bool) -> None:
    pen.box((0, 0), (100, 100), PANEL, GROOVE, 1, radius=3)
    if "led" in outside:
        _lamp(pen, (93.5, 6.5), 3.6, LIGHTS[outside["led"]], outside["led"] != "off")
    else:
        # Needy modules have a countdown and no status light.
        seconds = view["seconds"]
        pen.box((39, 2), (61, 15), INK, GROOVE, radius=1)
        _segments(pen.at(42, 3.5, 0.1), "  " if seconds is None else f"{seconds:02d}", "#ff4a3d")
    _MODULES[outside["shows"]](pen, view, holding)


def _lamp(pen: Pen, centre: Point, radius: float, colour: str, lit: bool) -> None:
    if lit:
        pen.disc(centre, radius * 1.35, "#ffffff", None)
    pen.disc(centre, radius, colour, INK)
    if not lit:
        pen.disc((centre[0] - radius / 3, centre[1] - radius / 3), radius / 4, GREY, None)


# Segments of a digit: top, upper left, upper right, middle, lower left, lower right, bottom.
_DIGITS = dict(
    zip(
        " 0123456789",
        *([("", "012456", "25", "02346", "02356", "1235", "01356", "013456", "025", "0123456", "012356")]),
        strict=True,
    )
)
_SEGMENTS = (
    ((12, 6), (58, 6)),
    ((8, 10), (8, 46)),
    ((62, 10), (62, 46)),
    ((12, 50), (58, 50)),
    ((8, 54), (8, 90)),
    ((62, 54), (62, 90)),
    ((12, 94), (58, 94)),
)


def _segments(pen: Pen, text: str, colour: str) -> None:
    """Digits of a seven-segment display, each 70 by 100 units, 20 apart; colon and dot are 30 wide."""
    x = 0.0
    for character in text:
        if character == ":":
            for y in (32, 68):
                pen.box((x + 2, y - 7), (x + 16, y + 7), colour, None)
        elif character == ".":
            pen.box((x + 2, 84), (x + 16, 98), colour, None)
        else:
            for index, segment in enumerate(_SEGMENTS):
                lit = str(index) in _DIGITS[character]
                pen.line([(x + px, py) for px, py in segment], colour if lit else "#2a1414", 11)
        x += 38 if character in ":." else 88


def _timer(pen: Pen, timer: Mapping[str, Any]) -> None:
    """A display of 100 by 40 units, above it the strikes."""
    if timer["strike_indicator"]:
        pen.box((15, 0), (85, 24), INK, "#54585f", 1, radius=2)
        for strike in range(max(2, timer["strike_lights"])):
            x = 38 + 24 * strike if timer["strike_lights"] <= 2 else 25 + 17 * strike
            colour = "#ff2b2b" if strike < timer["strike_lights"] else "#3a2020"
            for sign in (-1, 1):
                pen.line([(x - 6, 12 - 6 * sign), (x + 6, 12 + 6 * sign)], colour, 3.2)
    pen.box((0, 30), (100, 74), INK, "#54585f", 1, radius=2)
    _segments(pen.at(7, 39, 0.235), timer["display"], "#ff4a3d")


# ---- narrow sides ----------------------------------------------------------------------------------------------


def _edge(pen: Pen, seen: Observation) -> None:
    items = seen["edge"]
    rows = max(1, math.ceil(len(items) / 3))
    height = 150 * min(rows, 2.6) + 90
    top = 240 - height / 2
    pen.box((14, top), (626, top + height), CASING, GROOVE, 4, radius=14)
    for x in (30, 610):
        for y in (top + 16, top + height - 16):
            pen.disc((x, y), 6, "#9aa0a8", GROOVE, 1.5)
            pen.line([(x - 4, y - 3), (x + 4, y + 3)], GROOVE, 1.5)
    unit = min(1.0, 390 / (150 * rows))
    for index, item in enumerate(items):
        row, column = divmod(index, 3)
        _EDGE_ITEMS[item["item"]](pen.at(44 + 190 * column, top + 45 + 150 * row * unit, 1.7 * unit), item)
    pen.text((320, top + height - 15), seen["side"].upper(), 14, GROOVE)


def _label(pen: Pen, item: Mapping[str, Any]) -> None:
    pen.box((0, 16), (100, 74), PAPER, INK, 1, radius=3)
    pen.box((0, 16), (100, 36), COLOURS["red"], INK, 1, radius=3)
    pen.text((50, 26.5), "SERIAL", 12, PAPER)
    pen.text((50, 55), item["text"], 24, INK, room=92, face="SansMono-Bold")


def _batteries(pen: Pen, item: Mapping[str, Any]) -> None:
    pen.box((2, 8), (98, 82), GROOVE, INK, 1, radius=3)
    height = 66 / max(2, item["cells"])
    for cell in range(item["cells"]):
        half = height / 2 - 3 if item["cells"] > 1 else 26
        y = 45 if item["cells"] == 1 else 12 + height * (cell + 0.5)
        pen.box((84, y - half / 2), (91, y + half / 2), "#d9d9d9", INK, 0.8)
        pen.box((10, y - half), (84, y + half), "#c8892b", INK, 0.8, radius=2)
        pen.box((10, y - half), (34, y + half), "#1d1d1d", INK, 0.8, radius=2)
        pen.text((22, y), "−", 13, PAPER)
        pen.text((60, y), f"{item['look']}  +", 13, INK)


def _indicator(pen: Pen, item: Mapping[str, Any]) -> None:
    lit = item["lamp"] == "lit"
    pen.box((0, 24), (100, 66), "#7b1f1f", INK, 1, radius=4)
    if lit:
        for turn in range(12):
            x, y = math.cos(turn * math.pi / 6), math.sin(turn * math.pi / 6)
            pen.line([(20 + 12 * x, 45 + 12 * y), (20 + 16 * x, 45 + 16 * y)], "#ffd83d", 1.6)
    pen.disc((20, 45), 10, LIT if lit else "#241a1a", INK, 1.2)
    pen.text((68, 45), item["text"], 24, PAPER, room=54)


def _plate(pen: Pen, item: Mapping[str, Any]) -> None:
    pen.box((0, 2), (100, 88), "#c9ccd1", INK, 1, radius=3)
    for x in (5, 95):
        pen.disc((x, 45), 2.2, GREY, INK, 0.5)
    ports = item["ports"]
    # Up to two stand one above the other. Of more, the wide one stands above the others.
    if len(ports) > 2:
        wide = [port for port in ports if port == PORT_LOOKS["DVI-D"]]
        rows = [row for row in (wide, [port for port in ports if port not in wide]) if row]
    else:
        rows = [[port] for port in ports]
    for row, names in enumerate(rows):
        y = 45 + (row - (len(rows) - 1) / 2) * 42
        for column, port in enumerate(names):
            x = 50 + (column - (len(names) - 1) / 2) * 31
            _PORTS[port](pen.at(x, y, 0.86 if len(names) == 1 else 0.72))


def _holes(pen: Pen, rows: Sequence[int], step: float, gap: float, radius: float) -> None:
    for row, count in enumerate(rows):
        y = (row - (len(rows) - 1) / 2) * gap
        for index in range(count):
            pen.disc(((index - (count - 1) / 2) * step, y), radius, INK, None)


def _dvi(pen: Pen) -> None:
    pen.box((-44, -16), (44, 16), PAPER, INK, 1.2, radius=3)
    for row in (-8, 0, 8):
        for column in range(8):
            x = -38 + 6.4 * column
            pen.box((x - 1.7, row - 1.7), (x + 1.7, row + 1.7), INK, None)
    pen.box((20, -1.6), (38, 1.6), INK, None)


def _d_shell(pen: Pen, half: float, colour: str, pins: Sequence[int], step: float) -> None:
    pen.polygon([(-half, -12), (half, -12), (half - 5, 12), (-half + 5, 12)], colour, INK, 1.2)
    _holes(pen, pins, step, 10, 1.5)


def _ps2(pen: Pen) -> None:
    pen.disc((0, 0), 17, "#8e7cc3", INK, 1.2)
    pen.disc((0, 0), 13, PAPER, INK, 0.8)
    for turn in range(6):
        x, y = math.cos(0.6 + turn * math.pi / 3), math.sin(0.6 + turn * math.pi / 3)
        pen.disc((8 * x, 8 * y), 1.8, INK, None)
    pen.box((-2, -4), (2, 4), INK, None)


def _rj45(pen: Pen) -> None:
    pen.box((-19, -18), (19, 18), PAPER, INK, 1.2, radius=2)
    pen.polygon([(-14, -12), (14, -12), (14, 8), (6, 8), (6, 14), (-6, 14), (-6, 8), (-14, 8)], INK, None)
    for x in range(-10, 11, 3):
        pen.line([(x, -11), (x, -5)], "#e0b83a", 1)


def _rca(pen: Pen) -> None:
    for y, colour in ((-11, COLOURS["red"]), (11, COLOURS["white"])):
        pen.disc((0, y), 9.5, colour, INK, 1)
        pen.disc((0, y), 5, "#b5b5b5", INK, 0.8)
        pen.disc((0, y), 1.8, INK, None)


_PORTS: dict[str, Callable[[Pen], None]] = {
    PORT_LOOKS["DVI-D"]: _dvi,
    PORT_LOOKS["Parallel"]: lambda pen: _d_shell(pen, 48, "#d98bb3", (13, 12), 6.4),
    PORT_LOOKS["PS/2"]: _ps2,
    PORT_LOOKS["RJ-45"]: _rj45,
    PORT_LOOKS["Serial"]: lambda pen: _d_shell(pen, 24, "#6fa8a3", (5, 4), 7),
    PORT_LOOKS["Stereo RCA"]: _rca,
}
_EDGE_ITEMS: dict[str, Callable[[Pen, Mapping[str, Any]], None]] = {
    "label": _label,
    "batteries": _batteries,
    "indicator": _indicator,
    "port plate": _plate,
}


# ---- modules: panels of 100 by 100 units -----------------------------------------------------------------------


def _wire(pen: Pen, points: Sequence[Point], colours: Sequence[str], cut: bool, width: float = 3.4) -> None:
    """A wire along a line of points; a cut one has a gap at its middle, where the copper shows."""
    count = len(points)
    parts = [points[: count // 2 - 2], points[count // 2 + 3 :]] if cut else [points]
    for part in parts:
        pen.line(part, "#e8e8e8" if colours == ["black"] else INK, width + 1)
        pen.line(part, COLOURS[colours[0]], width)
        for stripe in range(0, len(part) - 1, 4) if len(colours) > 1 else ():
            pen.line(part[stripe : stripe + 3], COLOURS[colours[1]], width, flat=True)
    for end, towards in ((parts[0][-1], 1), (parts[1][0], -1)) if cut else ():
        (x0, y0), (x1, y1) = points[0], points[-1]
        length = math.dist(points[0], points[-1])
        step = towards * 2.2 / length
        pen.line([end, (end[0] + (x1 - x0) * step, end[1] + (y1 - y0) * step)], "#e08a3c", width * 0.5)


def _between(start: Point, end: Point, sag: Point = (0, 0), steps: int = 25) -> list[Point]:
    points = []
    for step in range(steps):
        t = step / (steps - 1)
        bow = 4 * t * (1 - t)
        points.append(
            (start[0] + (end[0] - start[0]) * t + sag[0] * bow, start[1] + (end[1] - start[1]) * t + sag[1] * bow)
        )
    return points


def _wires(pen: Pen, view: Mapping[str, Any], holding: bool) -> None:
    for x in (7, 81):
        pen.box((x, 12), (x + 9, 95), GROOVE, INK, 1, radius=1)
    for row in range(6):
        for x in (11.5, 85.5):
            pen.disc((x, 20 + 13.4 * row), 2.6, GREY, INK, 0.5)
    for wire in view["wires"]:
        y = 20 + 13.4 * (wire["row"] - 1)
        points = _between((12, y), (85, y), (0, 2.5))
        _wire(pen, points, [wire["colour"]], wire["cut"])
        pen.element("line", points, points[5], 6)


def _button(pen: Pen, view: Mapping[str, Any], holding: bool) -> None:
    # The cover stands open behind the button.
    pen.box((8, 8), (74, 20), "#d8dadd", GROOVE, 0.8, radius=2)
    pen.disc((41, 57), 36, GROOVE, INK, 1)
    colour = view["button_colour"]
    radius = 31 if holding else 34
    pen.disc((41, 57), radius, COLOURS[colour], INK, 1.2)
    pen.text((41, 57), view["button_text"].upper(), 11, PAPER if colour in ("red", "blue", "black") else INK, room=56)
    pen.box((83, 22), (95, 94), INK, GROOVE, 1, radius=2)
    lit = view["strip"] != "dark"
    pen.box((85, 24), (93, 92), COLOURS[view["strip"]] if lit else "#25272a", "#ffffff" if lit else GROOVE, 0.8)
    pen.element("ellipse", [(41 - radius, 57 - radius), (41 + radius, 57 + radius)], (41, 32))


def _keypad(pen: Pen, view: Mapping[str, Any], holding: bool) -> None:
    for index, key in enumerate(view["keys"]):
        row, column = divmod(index, 2)
        x, y = 8 + 42 * column, 14 + 43 * row
        down = key["light"] == "green"
        pen.box((x, y), (x + 37, y + 40), "#d9d2ba" if down else "#efe9d4", INK, 1.4 if down else 0.8, radius=2)
        lit = key["light"] != "off"
        pen.box((x + 9, y + 2.5), (x + 28, y + 7), LIGHTS[key["light"]], PAPER if lit else INK, 0.6, radius=1)
        if key["symbol"]:
            draw_symbol(pen.at(x + 5.5, y + 10, 0.26), key["symbol"])
        pen.element("rectangle", [(x, y), (x + 37, y + 40)], (x + 4.5, y + 35.5))


_SIMON_PLACES = {"top": (46, 32), "left": (24, 54), "right": (68, 54), "bottom": (46, 76)}
_SIMON_DIM = {"red": "#7d1a1d", "blue": "#16306f", "yellow": "#8d7414", "green": "#145c2a"}
_SIMON_LIT = {"red": "#ff5a4f", "blue": "#59a0ff", "yellow": "#fff04a", "green": "#4dff74"}


def _simon(pen: Pen, view: Mapping[str, Any], holding: bool) -> None:
    pen.polygon([(46, 11), (89, 54), (46, 97), (3, 54)], GROOVE)
    for place, (x, y) in _SIMON_PLACES.items():
        colour = view["buttons"][place]
        lit = view["flashes"][-1:] == colour[0].upper()
        points = [(x, y - 19), (x + 19, y), (x, y + 19), (x - 19, y)]
        pen.polygon(points, _SIMON_LIT[colour] if lit else _SIMON_DIM[colour], PAPER if lit else INK, 2 if lit else 1)
        pen.text((x, y + 11), colour[0].upper(), 7, INK if lit else "#cfcfcf")
        pen.element("polygon", points, (x, y - 4))


def _stage_lights(pen: Pen, lit: int, count: int) -> None:
    for index in range(count):
        y = 92 - 11 * index
        on = index < lit
        pen.box((87, y - 3.6), (96, y + 3.6), LIGHTS["green"] if on else DARK, PAPER if on else INK, 0.7, radius=1)


def _whos_on_first(pen: Pen, view: Mapping[str, Any], holding: bool) -> None:
    pen.box((12, 6), (76, 24), "#10231a", INK, 1, radius=2)
    pen.text((44, 15), view["display"], 11, "#9dffb8", room=60)
    for index, word in enumerate(view["buttons"]):
        row, column = divmod(index, 2)
        x, y = 5 + 40 * column, 31 + 22.5 * row
        pen.box((x, y), (x + 37, y + 19), "#efe9d4", INK, 0.8, radius=2)
        pen.text((x + 21, y + 9.5), word, 8, room=28)
        pen.element("rectangle", [(x, y), (x + 37, y + 19)], (x + 3.4, y + 9.5))
    _stage_lights(pen, view["lights"], 3)


def _memory(pen: Pen, view: Mapping[str, Any], holding: bool) -> None:
    pen.box((12, 8), (74, 56), "#10231a", INK, 1, radius=2)
    pen.text((43, 32.5), str(view["display"]), 42, "#9dffb8", face="SansMono-Bold")
    for index, digit in enumerate(view["buttons"]):
        x = 5 + 19.5 * index
        pen.box((x, 62), (x + 17, 95), "#efe9d4", INK, 0.8, radius=2)
        pen.text((x + 8.5, 73), str(digit), 19)
        pen.element("rectangle", [(x, 62), (x + 17, 95)], (x + 8.5, 89.5))
    _stage_lights(pen, view["lights"], 5)


def _morse(pen: Pen, view: Mapping[str, Any], holding: bool) -> None:
    lit = view["lamp"][-1:] == "#"
    pen.box((10, 8), (60, 34), GROOVE, INK, 1, radius=3)
    if lit:
        pen.disc((35, 21), 12.5, "#ffffff", None)
    pen.disc((35, 21), 10, "#ffc21f" if lit else "#4d3b16", INK, 1)
    pen.box((25, 44), (75, 62), "#10231a", INK, 1, radius=2)
    frequency = f"{view['frequency']} MHz" if view["frequency"] else ""
    pen.text((50, 53), frequency, 10, "#ffb347", room=46, face="SansMono-Bold")
    for x, sign in ((16, -1), (84, 1)):
        points = [(x - 7 * sign, 43), (x + 8 * sign, 53), (x - 7 * sign, 63)]
        pen.polygon(points, "#efe9d4", INK, 1)
        pen.element("polygon", points, (x - 2.6 * sign, 53))
    pen.box((33, 72), (67, 92), "#efe9d4", INK, 1, radius=2)
    pen.text((52, 82), "TX", 11)
    pen.element("rectangle", [(33, 72), (67, 92)], (37.5, 82))


def _star(centre: Point, radius: float) -> list[Point]:
    points = []
    for turn in range(10):
        r = radius if turn % 2 == 0 else radius * 0.4
        angle = math.pi * (turn / 5 - 0.5)
        points.append((centre[0] + r * math.cos(angle), centre[1] + r * math.sin(angle)))
    return points


def _venn(pen: Pen, view: Mapping[str, Any], holding: bool) -> None:
    pen.box((6, 5), (86, 24), GROOVE, INK, 1, radius=1)
    pen.box((6, 74), (86, 96), GROOVE, INK, 1, radius=1)
    for column in range(6):
        x = 13 + 13.2 * column
        for y in (29, 69):
            pen.disc((x, y), 2.6, GREY, INK, 0.5)
        pen.disc((x, 14.5), 4, "#1b1d20", "#54585f", 0.5)
        pen.box((x - 5, 79), (x + 5, 91), "#e6e0cc", INK, 0.6)
    for wire in view["wires"]:
        x = 13 + 13.2 * (wire["column"] - 1)
        lit = wire["lamp"] == "on"
        _lamp(pen, (x, 14.5), 4, LIT if lit else DARK, lit)
        if wire["star"]:
            pen.polygon(_star((x, 85.2), 5), INK, None)
        points = _between((x, 29), (x, 69))
        _wire(pen, points, wire["colours"], wire["cut"], 3.8)
        pen.element("line", points, (x, 63), 7)


def _wire_sequence(pen: Pen, view: Mapping[str, Any], holding: bool) -> None:
    places = {letter: 27 + 23 * index for index, letter in enumerate("ABC")}
    bars = {"up": (3, 14), "down": (86, 97)}
    first = 3 * (view["panel"] - 1) + 1

    def bar(name: str) -> None:
        top, bottom = bars[name]
        pen.box((20, top), (70, bottom), "#efe9d4", INK, 0.8, radius=2)
        middle, tip = (top + bottom) / 2, 3.2 if name == "down" else -3.2
        pen.polygon([(41, middle - tip), (49, middle - tip), (45, middle + tip)], INK, None)
        pen.element("rectangle", [(20, top), (70, bottom)], (24.5, middle))

    bar("up")
    pen.box((4, 17), (17, 83), GROOVE, INK, 1, radius=1)
    pen.box((71, 17), (84, 83), GROOVE, INK, 1, radius=1)
    # Beyond the last panel there is nothing to see.
    for index, letter in enumerate("ABC") if view["panel"] <= 4 else ():
        y = places[letter]
        pen.text((9, y), str(first + index), 8, PAPER)
        pen.text((79, y), letter, 8, PAPER)
        for x in (15.5, 72.5):
            pen.disc((x, y), 2.4, GREY, INK, 0.5)
    for wire in view["wires"]:
        start = (15.5, places["ABC"[wire["from"] - first]])
        points = _between(start, (72.5, places[wire["to"]]))
        _wire(pen, points, [wire["colour"]], wire["cut"])
        pen.element("line", points, points[4], 6)
    bar("down")
    _stage_lights(pen, view["lights"], 4)


def _maze(pen: Pen, view: Mapping[str, Any], holding: bool) -> None:
    def centre(cell: Sequence[Any]) -> Point:
        return 22 + 11.2 * (cell[1] - 1), 22 + 11.2 * (cell[0] - 1)

    pen.box((15, 15), (85, 85), "#0c1626", INK, 1, radius=2)
    for row in range(1, 7):
        for column in range(1, 7):
            x, y = centre((row, column))
            pen.box((x - 1.5, y - 1.5), (x + 1.5, y + 1.5), "#4d6a94", None)
    for circle in view["circles"]:
        pen.disc(centre(circle), 4.6, None, "#37e06a", 1.3)
    for *cell, side in view["red_walls"]:
        x, y = centre(cell)
        ends = [(x + 5.6, y - 5.6), (x + 5.6, y + 5.6)] if side == "right" else [(x - 5.6, y + 5.6), (x + 5.6, y + 5.6)]
        pen.line(ends, "#ff2b2b", 1.4)
    if view["red_triangle"]:
        x, y = centre(view["red_triangle"])
        pen.polygon([(x, y - 3.4), (x + 3.4, y + 2.6), (x - 3.4, y + 2.6)], "#ff2b2b", None)
    if view["white_square"]:
        x, y = centre(view["white_square"])
        pen.box((x - 2.6, y - 2.6), (x + 2.6, y + 2.6), "#ffffff", None)
    for x, y, dx, dy in ((50, 8, 0, -1), (8, 50, -1, 0), (92, 50, 1, 0), (50, 92, 0, 1)):
        tip, side = (x + 5.5 * dx, y + 5.5 * dy), (8 * dy, 8 * dx)
        base = x - 5 * dx, y - 5 * dy
        points = [tip, (base[0] + side[0], base[1] + side[1]), (base[0] - side[0], base[1] - side[1])]
        pen.polygon(points, "#efe9d4", INK, 1)
        pen.element("polygon", points, (x - 2 * dx, y - 2 * dy))


def _password(pen: Pen, view: Mapping[str, Any], holding: bool) -> None:
    pen.box((5, 31), (84, 61), "#2f6b2f", INK, 1, radius=2)
    arrows = []
    for column, letter in enumerate(view["letters"]):
        x = 13 + 15.7 * column
        pen.box((x - 6.4, 34), (x + 6.4, 58), "#a6d96a", INK, 0.7)
        pen.text((x, 46), letter, 15, face="SansMono-Bold")
        arrows.append([(x - 6, 27), (x + 6, 27), (x, 14)])
    arrows += [[(x - 6, 65), (x + 6, 65), (x, 78)] for x in (13 + 15.7 * column for column in range(5))]
    for points in arrows:
        pen.polygon(points, "#efe9d4", INK, 1)
        pen.element("polygon", points, (points[2][0], points[0][1] + (points[2][1] - points[0][1]) * 0.2))
    pen.box((22, 84), (68, 97), "#efe9d4", INK, 1, radius=2)
    pen.text((47.5, 90.5), "SUBMIT", 7.5)
    pen.element("rectangle", [(22, 84), (68, 97)], (26.5, 90.5))


def _vent_gas(pen: Pen, view: Mapping[str, Any], holding: bool) -> None:
    pen.box((10, 22), (90, 54), "#10231a", INK, 1, radius=2)
    pen.text((50, 38), view["screen"], 10, "#9dffb8", room=74)
    for x, key in ((14, "Y"), (56, "N")):
        pen.box((x, 64), (x + 30, 92), "#efe9d4", INK, 1, radius=2)
        pen.text((x + 17, 78), key, 17)
        pen.element("rectangle", [(x, 64), (x + 30, 92)], (x + 4.5, 87.5))


def _capacitor(pen: Pen, view: Mapping[str, Any], holding: bool) -> None:
    pen.box((10, 22), (26, 94), GROOVE, INK, 1, radius=2)
    pen.line([(18, 30), (18, 86)], INK, 3)
    y = 78 if holding else 36
    handle = [(8, y - 7), (44, y + 7)]
    pen.box(*handle, COLOURS["red"], INK, 1, radius=3)
    pen.text((37, y), "↓", 9, PAPER)
    pen.box((58, 22), (82, 94), INK, GROOVE, 1)
    filled = 92 - 68 * view["bar_percent"] / 100
    for stripe in range(17):
        bottom = 92 - 4 * stripe
        top = max(bottom - 3.2, filled)
        if top < bottom:
            pen.box((60, top), (80, bottom), "#ffb020" if stripe < 11 else "#ff3b30", None)
    for tenth in range(0, 11, 2):
        tick = 92 - 6.8 * tenth
        pen.line([(83, tick), (86, tick)], INK, 0.6)
        pen.text((87, tick), f"{10 * tenth}", 5, anchor="lm")
    pen.element("rectangle", handle, (14, y))


_KNOB_TURNS = {"up": (0, -1), "right": (1, 0), "down": (0, 1), "left": (-1, 0)}


def _knob(pen: Pen, view: Mapping[str, Any], holding: bool) -> None:
    for lamps, y in zip(view["lamps"], (21.5, 92.5), strict=True):
        pen.box((14, y - 4.5), (86, y + 4.5), GROOVE, INK, 0.8, radius=2)
        for index, lamp in enumerate(lamps):
            pen.disc(
                (20 + 12 * index, y),
                3.4,
                LIGHTS["green"] if lamp == "X" else "#1b1d20",
                PAPER if lamp == "X" else "#54585f",
                0.6,
            )
    x, y = 50, 56.5
    dx, dy = _KNOB_TURNS[view["up_label_points"]]
    pen.text((x + 31 * dx, y + 26.5 * dy), "UP", 8.5, COLOURS["red"])
    pen.disc((x, y), 21, GROOVE, INK, 1)
    pen.disc((x, y), 15, "#5c6068", INK, 1)
    dx, dy = _KNOB_TURNS[view["knob_points"]]
    pen.polygon(
        [
            (x + 20 * dx, y + 20 * dy),
            (x + 6 * dx + 5 * dy, y + 6 * dy - 5 * dx),
            (x + 6 * dx - 5 * dy, y + 6 * dy + 5 * dx),
        ],
        PAPER,
    )
    pen.element("ellipse", [(x - 21, y - 21), (x + 21, y + 21)], (x - 3 * dx, y - 3 * dy))


_MODULES: dict[str, Callable[[Pen, Mapping[str, Any], bool], None]] = {
    MODULES[component].shows: draw
    for component, draw in {
        "BigButton": _button,
        "Keypad": _keypad,
        "Maze": _maze,
        "Memory": _memory,
        "Morse": _morse,
        "NeedyCapacitor": _capacitor,
        "NeedyKnob": _knob,
        "NeedyVentGas": _vent_gas,
        "Password": _password,
        "Simon": _simon,
        "Venn": _venn,
        "WhosOnFirst": _whos_on_first,
        "WireSequence": _wire_sequence,
        "Wires": _wires,
    }.items()
}

# From afar a module is drawn as its kind. Nothing of its instance shows, as in the observation.
_PLACEHOLDERS: dict[str, dict[str, Any]] = {
    "BigButton": {"button_colour": "grey", "button_text": "", "strip": "dark"},
    "Keypad": {"keys": [{"symbol": "", "light": "off"}] * 4},
    "Maze": {"circles": [[3, 3], [4, 4]], "white_square": None, "red_triangle": None, "red_walls": []},
    "Memory": {"display": "", "buttons": [""] * 4, "lights": 0},
    "Morse": {"lamp": "", "frequency": ""},
    "NeedyCapacitor": {"seconds": None, "bar_percent": 0},
    "NeedyKnob": {"seconds": None, "up_label_points": "up", "knob_points": "up", "lamps": ["......"] * 2},
    "NeedyVentGas": {"seconds": None, "screen": ""},
    "Password": {"letters": "     "},
    "Simon": {"buttons": {"top": "blue", "left": "red", "right": "yellow", "bottom": "green"}, "flashes": ""},
    "Venn": {
        "wires": [{"column": c, "colours": ["grey"], "lamp": "off", "star": False, "cut": False} for c in range(1, 7)]
    },
    "WhosOnFirst": {"display": "", "buttons": [""] * 6, "lights": 0},
    "WireSequence": {
        "panel": 1,
        "wires": [{"from": n, "to": "ABC"[n - 1], "colour": "grey", "cut": False} for n in (1, 2, 3)],
        "lights": 0,
    },
    "Wires": {"wires": [{"row": row, "colour": "grey", "cut": False} for row in range(1, 7)]},
}
_FROM_AFAR = {MODULES[component].shows: view for component, view in _PLACEHOLDERS.items()}


# ---- symbols ---------------------------------------------------------------------------------------------------

# A stroke: points of a line, or of a cubic Bezier curve behind "C" (1 + 3n points); "D" is a filled disc (centre and
# radius), "O" an ellipse (centre and two radii), "F" a filled polygon. Symbols fill a square of 100 by 100 units.
_Stroke = tuple[Any, ...]


def _arc(x: float, y: float, rx: float, ry: float, start: float, end: float) -> _Stroke:
    """A stroke along an ellipse, in degrees clockwise from the right."""
    steps = 24
    angles = [math.radians(start + (end - start) * step / steps) for step in range(steps + 1)]
    return tuple((x + rx * math.cos(angle), y + ry * math.sin(angle)) for angle in angles)


_STAR = tuple(_star((50, 54), 48))
_STROKES: dict[str, tuple[_Stroke, ...]] = {
    "archaic-koppa": (("O", 50, 36, 28, 28), ((50, 64), (50, 98))),
    "little-yus": (
        ((8, 94), (50, 6), (92, 94)),
        ((27, 56), (73, 56)),
        ((50, 56), (50, 94)),
    ),
    "lambda-bar": (
        ("C", (22, 8), (36, 4), (40, 22), (46, 38), (54, 60), (62, 92), (74, 92), (80, 92), (84, 88), (86, 82)),
        ((46, 40), (18, 94)),
        ((20, 34), (58, 18)),
    ),
    "qoppa": (("C", (78, 26), (84, 10), (74, 2), (66, 8)), ((66, 8), (28, 52), (70, 46), (34, 98))),
    "ligature-iotated-e": (
        ((8, 6), (8, 94)),
        ((8, 52), (66, 52)),
        ((36, 8), (96, 8), (66, 52), (36, 8)),
        ((36, 94), (66, 52), (96, 94)),
        ((66, 52), (66, 94)),
    ),
    "kai": (
        ("C", (12, 30), (16, 16), (32, 16), (32, 34), (32, 50), (28, 62), (24, 74)),
        ("C", (84, 26), (76, 14), (60, 22), (52, 34), (46, 44), (38, 48), (30, 50)),
        ("C", (38, 48), (56, 46), (54, 70), (68, 72), (88, 74), (84, 98), (52, 96)),
    ),
    "reversed-lunate-epsilon": (_arc(44, 50, 40, 42, -130, 130), ("D", 44, 50, 8)),
    "e-with-diaeresis": (
        _arc(44, 62, 36, 34, -140, 140),
        ((44, 62), (78, 62)),
        ("D", 30, 10, 7),
        ("D", 60, 10, 7),
    ),
    "qa": (
        ("C", (26, 8), (10, 16), (14, 34), (30, 26), (60, 8), (92, 24), (92, 54), (92, 80), (72, 94), (50, 94)),
        ("C", (50, 94), (22, 94), (10, 72), (18, 52), (26, 34), (56, 32), (64, 50), (70, 66), (58, 78), (46, 72)),
        ("C", (46, 72), (36, 66), (40, 50), (52, 50)),
    ),
    "hollow-star": ((*_STAR, _STAR[0]),),
    "inverted-question": (
        ("D", 52, 10, 8),
        ("C", (52, 30), (52, 52), (24, 52), (24, 74), (24, 96), (72, 102), (78, 74)),
    ),
    "copyright": (("O", 50, 50, 45, 45), _arc(52, 50, 21, 23, 45, 315)),
    "ot": (
        ("C", (16, 36), (-4, 70), (8, 98), (28, 96), (44, 94), (50, 76), (50, 58)),
        ("C", (84, 36), (104, 70), (92, 98), (72, 96), (56, 94), (50, 76), (50, 58)),
        _arc(50, 26, 28, 20, 190, 350),
        ("D", 50, 28, 6),
        ((53, 30), (46, 42)),
    ),
    "zh": (
        ((50, 8), (50, 86)),
        ((10, 8), (50, 47), (10, 86)),
        ((86, 8), (50, 47), (84, 86), (94, 86), (94, 99)),
    ),
    "ha-with-descender": (
        ("C", (20, 22), (26, 2), (66, 0), (66, 26), (66, 42), (54, 48), (38, 48)),
        ("C", (38, 48), (64, 48), (74, 56), (74, 72)),
        ((74, 72), (74, 90), (86, 90), (86, 99)),
    ),
    "lunate-sampi": (
        ("O", 50, 67, 30, 28),
        ("C", (20, 66), (18, 30), (30, 20), (52, 18), (68, 17), (78, 16), (82, 4)),
    ),
    "pilcrow": (
        ("F", *_arc(44, 30, 30, 24, 90, 270), (62, 6), (62, 54)),
        ((44, 6), (90, 6)),
        ((60, 6), (60, 98)),
        ((80, 6), (80, 98)),
    ),
    "yat": (
        ((34, 4), (34, 94)),
        ((10, 26), (66, 26)),
        ("C", (34, 52), (100, 42), (100, 94), (34, 94)),
    ),
    "pashto-teh": (
        ("C", (8, 36), (6, 74), (94, 74), (92, 36)),
        ("D", 38, 22, 7),
        ("D", 62, 22, 7),
        ("O", 50, 86, 9, 9),
    ),
    "psi": (
        ((50, 4), (50, 96)),
        ("C", (12, 8), (16, 30), (6, 66), (50, 66), (94, 66), (84, 30), (88, 8)),
        ((38, 96), (62, 96)),
    ),
    "lunate-epsilon": (_arc(56, 50, 40, 42, 50, 310), ("D", 56, 50, 8)),
    "ksi": (
        ((36, 16), (26, 2)),
        ((60, 16), (70, 2)),
        ("C", (22, 28), (30, 10), (72, 10), (72, 30), (72, 46), (58, 48), (42, 48)),
        ("C", (42, 48), (64, 48), (78, 54), (78, 68), (78, 88), (40, 80), (26, 88), (14, 98), (40, 104), (52, 96)),
    ),
    "star": (("F", *_STAR),),
    "titlo": (((16, 96), (84, 4)), ((20, 34), (60, 64)), ((42, 18), (82, 48))),
    "ae": (
        ("C", (12, 38), (20, 24), (48, 24), (50, 46)),
        ("O", 29, 68, 21, 17),
        ((50, 46), (50, 72)),
        _arc(71, 56, 22, 29, 50, 360),
        ((50, 56), (93, 56)),
    ),
    "short-i": (
        ((16, 30), (16, 90), (76, 30), (76, 90), (88, 90), (84, 100)),
        ("C", (28, 4), (30, 24), (62, 24), (64, 4)),
    ),
    "omega": (
        ((8, 92), (36, 92)),
        ((92, 92), (64, 92)),
        ("C", (36, 92), (36, 80), (12, 72), (12, 44), (12, -6), (88, -6), (88, 44), (88, 72), (64, 80), (64, 92)),
    ),
}
_NAMES = {shown: name for name, symbol in SYMBOLS.items() for shown in (name, symbol.glyph, symbol.looks)}


def draw_symbol(pen: Pen, symbol: str, colour: str = INK, width: float = 9.0) -> None:
    """Draw a keypad symbol into a square of 100 by 100 units.

    Raises:
        KeyError: ``symbol`` is no look, glyph or name of one.
    """
    for first, *rest in _STROKES[_NAMES[symbol]]:
        if first == "D":
            x, y, radius = rest
            pen.disc((x, y), radius, colour, None)
        elif first == "O":
            x, y, rx, ry = rest
            pen.line(_arc(x, y, rx, ry, 0, 360), colour, width)
        elif first == "F":
            pen.polygon(rest, colour, colour, width / 3)
        elif first == "C":
            pen.line(_bezier(rest), colour, width)
        else:
            pen.line([first, *rest], colour, width)


def _bezier(points: Sequence[Point], steps: int = 16) -> list[Point]:
    curve = [points[0]]
    for start in range(0, len(points) - 1, 3):
        a, b, c, d = points[start : start + 4]
        for step in range(1, steps + 1):
            t = step / steps
            u = 1 - t
            weights = (u**3, 3 * u * u * t, 3 * u * t * t, t**3)
            curve.append(
                (
                    sum(weight * point[0] for weight, point in zip(weights, (a, b, c, d), strict=True)),
                    sum(weight * point[1] for weight, point in zip(weights, (a, b, c, d), strict=True)),
                )
            )
    return curve
