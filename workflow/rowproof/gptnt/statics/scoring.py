"""How answers are compared with the truth, and how the scores are gathered by category."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rowproof.gptnt.bomb.rules.keypad import SYMBOLS

Mask = NDArray[np.bool_]
Score = float | str
# A text, texts of which any will do, or the pixels that will do.
Truth = str | tuple[str, ...] | Mask
CoordinateMode = Literal["absolute", "normalised"]

# Answers to a question without one target: there are several, or none.
MORE_NEEDED, NO_TARGET = "More information needed", "None"
TRICK_ANSWERS = (MORE_NEEDED, NO_TARGET)
TRICK_TYPES = ("type_a", "type_b")
VALID, INVALID, OUT_OF_BOUNDS = "valid_format", "invalid_format", "out_of_bounds"
NORMALISED_RANGE = 1000

# Beside its id and its look, what a symbol may be called.
_OTHER_NAMES: dict[str, tuple[str, ...]] = {
    "copyright": ("copyright sign", "copyright symbol", "c in a circle", "circled c"),
    "star": ("filled star", "solid star", "black star", "full star"),
    "hollow-star": ("outlined star", "empty star", "white star", "star outline"),
    "pashto-teh": ("smiley with a ring below", "smile with two dots above and a ring below"),
    "zh": ("two k back to back", "zhe", "zhe with a tail"),
    "omega": ("ohm", "horseshoe", "ohm sign"),
    "ligature-iotated-e": ("iotated big yus", "bar joined to a three-legged triangle"),
    "ot": ("omega with titlo", "rounded w with an arc above"),
    "kai": ("kai symbol", "curly x", "curly k"),
    "lunate-sampi": ("6", "six", "be", "lower-case be"),
    "qoppa": ("lightning bolt", "lightning", "zigzag"),
    "little-yus": ("a with three legs", "small yus", "three-legged a"),
    "ha-with-descender": ("komi dzje", "3 with a tail", "three with a tail"),
    "ae": ("ash", "a and e joined"),
    "e-with-diaeresis": ("backwards e with two dots", "reversed e with two dots"),
    "short-i": ("backwards n with a bowl", "mirrored n with a bowl above", "short i with a tail"),
    "ksi": ("3 with horns", "three with horns", "xi"),
    "inverted-question": ("inverted question mark", "upside-down question mark"),
    "pilcrow": ("paragraph", "paragraph sign", "paragraph mark"),
    "lunate-epsilon": ("c with a dot", "c with a dot inside"),
    "reversed-lunate-epsilon": ("backwards c with a dot", "reversed c with a dot"),
    "psi": ("trident", "pitchfork"),
    "qa": ("abkhasian ha", "spiral", "loop"),
    "titlo": ("thousands sign", "railway track", "stroke with two bars"),
    "archaic-koppa": ("koppa", "ring with a stem", "lollipop"),
    "lambda-bar": ("lambda with a stroke", "barred lambda"),
    "yat": ("b with a crossbar", "crossed b"),
}


# ---- texts -----------------------------------------------------------------------------------------------------


def postprocess(text: str) -> str:
    """Lower case, without code fences and outer white space."""
    return re.sub(r"```[a-z]*", "", text.lower()).strip()


def postprocess_ocr(text: str) -> str:
    """:func:`postprocess`, with single spaces, and only what a page's text is compared by.

    That is: letters, digits, numbers of the form d.ddd, stars, and the question mark of "what?".
    """
    text = re.sub(r"\s+", " ", re.sub(r"<br\s*/?>", " ", postprocess(text)))
    kept = re.findall(r"what\?|[0-9]\.[0-9]{3}(?![0-9])|[★a-z0-9\s]", text)
    return re.sub(r" +", " ", "".join(kept)).strip()


def equal_texts(
    output: str,
    truth: Truth,
    module: str = "",
    clean: Callable[[str], str] = postprocess,
    names_of_symbols: bool = False,
) -> float:
    """1 if an answer equals the truth, or any text of it; 0 otherwise.

    Args:
        output: the answer.
        truth: one or several texts.
        module: that the question is about; frequencies are compared without their unit.
        clean: applied to both sides.
        names_of_symbols: of the keypad, any description of the right symbol will do.
    """
    accepted = list(truth) if isinstance(truth, tuple) else [truth]
    if module == "keypad" and names_of_symbols:
        accepted += [name for symbol in accepted for name in symbol_names(symbol)]
    if module == "morse":
        output = output.lower().replace("mhz", "")
        accepted = [text.lower().replace("mhz", "") for text in accepted]
    return float(clean(output) in {clean(text) for text in accepted})


def symbol_names(symbol: str) -> tuple[str, ...]:
    """What a keypad symbol may be called beside its id; nothing if it is not one of the keypad's."""
    if symbol not in SYMBOLS:
        return ()
    known = SYMBOLS[symbol]
    names = (known.glyph, known.looks, re.sub(r"^an? ", "", known.looks), *_OTHER_NAMES[symbol])
    return tuple(dict.fromkeys(names))


# ---- coordinates -----------------------------------------------------------------------------------------------


class Point(NamedTuple):
    """A point of a picture in pixels, from its upper left corner."""

    x: int
    y: int


def read_point(output: str, size: tuple[int, int], mode: CoordinateMode) -> Point | None:
    """The point of an answer such as ``{"x": 12, "y": 34}``; None if there is none.

    Quotes and braces may be damaged or missing; both numbers must be there once, and whole.

    Args:
        output: the answer.
        size: width and height of the picture in pixels.
        mode: what the numbers count; normalised ones run from 0 to 1000 in each direction and are truncated to pixels.
    """
    found = {}
    for axis in "xy":
        numbers = re.findall(rf"(?<![a-z0-9_]){axis}[\"']?\s*[:=]\s*[\"']?(-?[0-9]+(?![0-9.eE])|\S*)", output.lower())
        if len(numbers) != 1 or not re.fullmatch(r"-?[0-9]{1,9}", numbers[0]):
            return None
        found[axis] = int(numbers[0])
    if mode == "normalised":
        return Point(*(int(found[axis] * extent / NORMALISED_RANGE) for axis, extent in zip("xy", size, strict=True)))
    return Point(found["x"], found["y"])


def _inside(point: Point, truth: Mask) -> bool:
    height, width = truth.shape
    return 0 <= point.x <= width and 0 <= point.y <= height


def _trick_score(output: str, truth: Truth, hit: float, miss: float) -> float:
    return hit if equal_texts(output, truth) else miss


def _point_in_bounds(output: str, truth: Mask, mode: CoordinateMode) -> Point | None:
    point = read_point(output, truth.shape[::-1], mode)
    return point if point is not None and _inside(point, truth) else None


def coordinate_format(output: str, truth: Truth, mode: CoordinateMode) -> str:
    """``valid_format``, ``invalid_format`` or ``out_of_bounds``; a text must be one of the two fixed answers."""
    if not isinstance(truth, np.ndarray):
        return VALID if equal_texts(output, TRICK_ANSWERS) else INVALID
    point = read_point(output, truth.shape[::-1], mode)
    if point is None:
        return INVALID
    return VALID if _inside(point, truth) else OUT_OF_BOUNDS


def in_region(output: str, truth: Truth, mode: CoordinateMode) -> float:
    """1 if the point lies in the region of the truth, or the texts are equal; 0 otherwise."""
    if not isinstance(truth, np.ndarray):
        return _trick_score(output, truth, 1.0, 0.0)
    point = _point_in_bounds(output, truth, mode)
    if point is None:
        return 0.0
    height, width = truth.shape
    return float(truth[min(point.y, height - 1), min(point.x, width - 1)])


def _offsets(point: Point, truth: Mask) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    rows, columns = np.nonzero(truth)
    if not len(rows):
        raise ValueError("the mask of a truth must hold a pixel, found none")
    return columns - point.x, rows - point.y


def euclidean_distance(output: str, truth: Truth, mode: CoordinateMode) -> float:
    """Distance to the region over the diagonal of the picture; 1 if there is no such point or the texts differ."""
    if not isinstance(truth, np.ndarray):
        return _trick_score(output, truth, 0.0, 1.0)
    point = _point_in_bounds(output, truth, mode)
    if point is None:
        return 1.0
    return float(np.min(np.hypot(*_offsets(point, truth))) / np.hypot(*truth.shape))


def absolute_distance(output: str, truth: Truth, mode: CoordinateMode, size: tuple[int, int]) -> float:
    """Steps to the region along the axes, in pixels; height plus width if there is no such point or texts differ."""
    if not isinstance(truth, np.ndarray):
        return _trick_score(output, truth, 0.0, float(sum(size)))
    point = _point_in_bounds(output, truth, mode)
    if point is None:
        return float(sum(truth.shape))
    return float(np.min(sum(np.abs(offset) for offset in _offsets(point, truth))))


# ---- slices ----------------------------------------------------------------------------------------------------

Compare = Callable[[str, Truth, str], Score]


class Scored(NamedTuple):
    """One answer.

    Attributes:
        output: the answer.
        truth: what it is compared with.
        categories: texts of the form ``key=value``.
    """

    output: str
    truth: Truth
    categories: Sequence[str]

    def tag(self, key: str) -> str | None:
        """The value of a category, or None."""
        return next((c.partition("=")[2] for c in self.categories if c.startswith(f"{key}=")), None)

    @property
    def is_trick(self) -> bool:
        """Whether the question has no single target."""
        return self.tag("hallucination_type") in TRICK_TYPES


def text_comparers(clean: Callable[[str], str] = postprocess, names_of_symbols: bool = False) -> dict[str, Compare]:
    """Suffix of a scorer's name to its comparer, for tasks answered in text."""

    def compare(output: str, truth: Truth, module: str) -> Score:
        return equal_texts(output, truth, module, clean, names_of_symbols)

    return {"": compare}


def coordinate_comparers(mode: CoordinateMode, size: tuple[int, int]) -> dict[str, Compare]:
    """Suffix of a scorer's name to its comparer, for tasks answered by a point in a picture of that size."""
    functions: dict[str, Callable[..., Score]] = {
        "": in_region,
        "_coordinate_validator": coordinate_format,
        "_normalized_euclidean_distance": euclidean_distance,
        "_absolute_distance": partial(absolute_distance, size=size),
    }
    return {
        suffix: lambda output, truth, module, function=function: function(output, truth, mode)
        for suffix, function in functions.items()
    }


def score(rows: Iterable[Scored], comparers: Mapping[str, Compare]) -> dict[str, dict[str, float]]:
    """Name of a scorer to path to value: the mean of numbers, and of texts the share of each among all rows there.

    Every comparer is gathered four times: by module, and by the tags ``detect``, ``hallucination_type`` and
    ``question_type``. Trick questions count under ``hallucination_type`` alone.
    """
    rows = list(rows)
    result: dict[str, dict[str, float]] = {}
    for suffix, compare in comparers.items():
        gathered: dict[str, dict[str, list[Score]]] = {}
        for row in rows:
            module = row.tag("module")
            if module is None:
                raise ValueError(f"every row must have a category module=<name>, found {list(row.categories)}")
            value = compare(row.output, row.truth, module)
            for name, paths in _places(row, module).items():
                for path in paths:
                    gathered.setdefault(name + suffix, {}).setdefault(path, []).append(value)
        for name, paths_of in gathered.items():
            result[name] = {
                path: number for place, values in sorted(paths_of.items()) for path, number in _mean(place, values)
            }
    return dict(sorted(result.items()))


def _places(row: Scored, module: str) -> dict[str, list[str]]:
    places: dict[str, list[str]] = {} if row.is_trick else {"module": ["total", module]}
    for key in ("detect", "hallucination_type", "question_type"):
        value = row.tag(key)
        if value is not None and (key == "hallucination_type" or not row.is_trick):
            places[key] = [f"{value}.total", f"{value}.module.{module}"]
    return places


def _mean(place: str, values: Sequence[Any]) -> list[tuple[str, float]]:
    if isinstance(values[0], str):
        return [(f"{place}.{text}", values.count(text) / len(values)) for text in sorted(set(values))]
    return [(place, sum(values) / len(values))]
