"""The static tasks: what a player is told and shown, what it should answer, and how the answer is scored."""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from PIL import Image

from rowproof.errors import ConfigError
from rowproof.gptnt.bomb.mission import SOLVABLE
from rowproof.gptnt.capabilities import Capabilities
from rowproof.gptnt.manual import Manual
from rowproof.gptnt.rendering import Size, png
from rowproof.gptnt.statics.datasets import LETTERS, PAGES_OF, Row
from rowproof.gptnt.statics.scoring import (
    MORE_NEEDED,
    NO_TARGET,
    NORMALISED_RANGE,
    TRICK_ANSWERS,
    Compare,
    Mask,
    Truth,
    coordinate_comparers,
    postprocess_ocr,
    text_comparers,
)
from rowproof.llm.calls import Picture

Part = str | Picture
Parts = tuple[Part, ...]
STATE_SPLITS = {"state-change": "test_state_change", "solved": "test_solved", "strikes": "test_strikes"}
HOW_DO_YOU = "how-do-you"

_REASONING = {
    "thinking-out-loud": "Think briefly first. Write your reasoning as <thought>...</thought> and then your answer as "
    "<action>...</action>.",
    "inner-monologue": "Think briefly before you answer. If you write your reasoning down, write it as "
    "<think>...</think> before the answer.",
}
_LETTER_ONLY = (
    "Read the question and choose the one right option. Answer with its letter alone, without any other word or sign."
)
_DEFUSER = "You see one or several pictures of a bomb with modules, each with a status light in its upper right corner."
_EXPERT = "You know the manual of a bomb with modules, which somebody else has in front of them."
_TRICKS = (
    f"If what you are asked for fits several elements, answer {MORE_NEEDED!r}; if it fits none, answer {NO_TARGET!r}. "
    "Leave the quotes away."
)


class Instance(NamedTuple):
    """One question, ready for a player.

    Attributes:
        index: number of the row, from 0.
        parts: the user's content.
        truth: what is right.
        categories: of the row.
        choices: answers that would be well formed; for players that guess.
    """

    index: int
    parts: Parts
    truth: Truth
    categories: tuple[str, ...]
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """A static task.

    Attributes:
        name: in folders and records.
        role: whose pictures' shape is used: ``defuser`` or ``expert``.
        dataset: its rows; None for questions that need none.
        split: of the data set; None for all.
        instruction: the system text without the one on reasoning.
        prepare: makes parts, truth and choices of a row whose pictures have the player's size already.
        comparers: see :mod:`rowproof.gptnt.statics.scoring`; empty for tasks that are not scored.
    """

    name: str
    role: Literal["defuser", "expert"]
    dataset: str | None
    split: str | None
    instruction: Callable[[Capabilities], str]
    prepare: Callable[[Row, Capabilities], tuple[Parts, Truth, tuple[str, ...]]]
    comparers: Callable[[Capabilities], Mapping[str, Compare]]

    def image_size(self, capabilities: Capabilities) -> Size:
        """Width and height in pixels: the Defuser's pictures lie, the Expert's stand."""
        sides = sorted((capabilities.image_dimensions.width, capabilities.image_dimensions.height))
        return (sides[0], sides[1]) if self.role == "expert" else (sides[1], sides[0])

    def full_instruction(self, capabilities: Capabilities, allow_thinking: bool) -> str:
        """The system text."""
        text = self.instruction(capabilities)
        return f"{_REASONING[capabilities.thinking_method]}\n\n{text}" if allow_thinking else text

    def instance(self, index: int, row: Row, capabilities: Capabilities) -> Instance:
        """A row with every picture and mask in the player's size, ready to be asked."""
        resized = resize_row(row, self.image_size(capabilities))
        parts, truth, choices = self.prepare(resized, capabilities)
        return Instance(index, parts, truth, tuple(row["categories"]), choices)


def resize_row(row: Row, size: Size) -> Row:
    """A row whose pictures and masks have ``size``; masks become arrays of shape (height, width)."""
    resized: Row = {}
    for key, value in row.items():
        if isinstance(value, bytes):
            resized[key] = _resize_picture(value, size)
        elif isinstance(value, list) and value and all(isinstance(item, bytes) for item in value):
            resized[key] = [_resize_picture(item, size) for item in value]
        elif isinstance(value, str) and len(value) > 1 and not set(value) - {"0", "1"} and "mask_size" in row:
            resized[key] = resize_mask(value, tuple(row["mask_size"]), size)
        else:
            resized[key] = value
    return resized


# The pages of the manual stand in many rows.
@lru_cache(maxsize=64)
def _resize_picture(data: bytes, size: Size) -> bytes:
    image = Image.open(io.BytesIO(data))
    return data if image.size == size else png(image.convert("RGB"), size)


def resize_mask(bits: str, size: Size, target: Size) -> Mask:
    """A mask of ``size`` (width and height), given line by line, in ``target`` size, by nearest neighbour.

    Raises:
        ConfigError: the mask has another number of pixels.
    """
    if len(bits) != size[0] * size[1]:
        raise ConfigError(f"a mask must have {size[0]} x {size[1]} pixels, found {len(bits)}")
    array = np.frombuffer(bits.encode("ascii"), np.uint8).reshape(size[1], size[0]) == ord("1")
    if size == target:
        return array
    image = Image.fromarray(np.where(array, np.uint8(255), np.uint8(0)))
    return np.asarray(image.resize(target, Image.Resampling.NEAREST)) > 0


# ---- rows to questions -----------------------------------------------------------------------------------------


def _pictures(row: Row, key: str) -> list[Picture]:
    return [Picture(data) for data in row[key]]


def _option_letters(row: Row) -> tuple[str, ...]:
    return tuple(LETTERS[: len(row["metadata"]["options"])])


def _vqa(row: Row, _: Capabilities) -> tuple[Parts, Truth, tuple[str, ...]]:
    pages = sorted(zip(row["page_number"], row["manual_texts"], row["images"], strict=True), key=lambda page: page[0])
    shown: list[Part] = [part for _, text, data in pages for part in (text, Picture(data))]
    return (*shown, row["model_input"]), row["ground_truth"], _option_letters(row)


def _vqa_without_manual(row: Row, _: Capabilities) -> tuple[Parts, Truth, tuple[str, ...]]:
    return (row["model_input"],), row["ground_truth"], _option_letters(row)


def _ocr(row: Row, _: Capabilities) -> tuple[Parts, Truth, tuple[str, ...]]:
    return (Picture(row["image"]), row["question"]), row["ground_truth"], ()


def _ocr_with_text(row: Row, capabilities: Capabilities) -> tuple[Parts, Truth, tuple[str, ...]]:
    pages = Manual.read().pages
    texts = "\n\n".join(pages[number].text for number in PAGES_OF[row["module"]])
    parts, truth, choices = _ocr(row, capabilities)
    return (texts, *parts), truth, choices


def _page_grounding(row: Row, _: Capabilities) -> tuple[Parts, Truth, tuple[str, ...]]:
    return (Picture(row["image"]), row["question"]), row["ground_truth"], tuple(LETTERS)


def _multiple_choice(row: Row, _: Capabilities) -> tuple[Parts, Truth, tuple[str, ...]]:
    options = row["options"]
    if row["ground_truth"] not in options:
        raise ConfigError(f"the truth must be one of the options {options}, found {row['ground_truth']!r}")
    letters = tuple(LETTERS[: len(options)])
    lines = "\n".join(f"{letter}. {option}" for letter, option in zip(letters, options, strict=True))
    question = f"{row['model_input']}\n\n{lines}"
    return (*_pictures(row, "input_images"), question), letters[options.index(row["ground_truth"])], letters


def _open_ended(row: Row, _: Capabilities) -> tuple[Parts, Truth, tuple[str, ...]]:
    return (*_pictures(row, "input_images"), row["model_input"]), row["ground_truth"], ()


def _click(row: Row) -> str:
    return f"click on the {row['model_input']}"


def _marks(row: Row, _: Capabilities) -> tuple[Parts, Truth, tuple[str, ...]]:
    return (Picture(row["som_image"]), _click(row)), row["ground_truth"], (*LETTERS, *TRICK_ANSWERS)


def _coordinates(row: Row, _: Capabilities) -> tuple[Parts, Truth, tuple[str, ...]]:
    return (Picture(row["frames"][-1]), _click(row)), row["ground_truth"], TRICK_ANSWERS


def _same(text: str) -> Callable[[Capabilities], str]:
    return lambda _: text


def _no_marks(capabilities: Capabilities) -> str:
    if capabilities.coordinate_mode == "normalised":
        extent = f"Both run from 0 to {NORMALISED_RANGE}, whatever the size of the picture"
    else:
        sides = sorted((capabilities.image_dimensions.width, capabilities.image_dimensions.height))
        extent = f"The picture is {sides[1]} pixels wide and {sides[0]} pixels high"
    return (
        f"{_DEFUSER} Find the element that you are asked to click on. Answer with one point inside it, as JSON with "
        f'two whole numbers and nothing else: {{"x": ..., "y": ...}}. {extent}; the origin is the upper left corner, '
        f"x runs to the right and y runs down. {_TRICKS}"
    )


def _coordinates_scorer(capabilities: Capabilities) -> Mapping[str, Compare]:
    sides = sorted((capabilities.image_dimensions.width, capabilities.image_dimensions.height))
    return coordinate_comparers(capabilities.coordinate_mode, (sides[1], sides[0]))


def _defuser_choice(name: str, dataset: str, split: str) -> Task:
    instruction = _same(f"{_DEFUSER} {_LETTER_ONLY}")
    return Task(name, "defuser", dataset, split, instruction, _multiple_choice, lambda _: text_comparers())


_OCR_INSTRUCTION = (
    "You see a page of a manual. Answer with the text that you are asked for, unformatted and without comment."
)
_TASKS = (
    Task(
        "expert-vqa",
        "expert",
        "local/expert-vqa",
        None,
        _same(f"{_EXPERT} Pages of it are given below. {_LETTER_ONLY}"),
        _vqa,
        lambda _: text_comparers(),
    ),
    Task(
        "expert-vqa-no-manual",
        "expert",
        "local/expert-vqa",
        None,
        _same(f"{_EXPERT} It is not given here: use what you know. {_LETTER_ONLY}"),
        _vqa_without_manual,
        lambda _: text_comparers(),
    ),
    Task(
        "expert-ocr",
        "expert",
        "local/expert-element-ocr",
        None,
        _same(_OCR_INSTRUCTION),
        _ocr,
        lambda _: text_comparers(postprocess_ocr),
    ),
    Task(
        "expert-ocr-with-text",
        "expert",
        "local/expert-element-ocr",
        None,
        _same(f"{_OCR_INSTRUCTION} The text of the pages is given as well."),
        _ocr_with_text,
        lambda _: text_comparers(postprocess_ocr),
    ),
    Task(
        "expert-element-grounding",
        "expert",
        "local/expert-element-grounding",
        None,
        _same("You see a page of a manual with letters on black squares. Answer with the one right letter alone."),
        _page_grounding,
        lambda _: text_comparers(),
    ),
    _defuser_choice("defuser-vqa-mcq", "local/defuser-vqa-mc", "test"),
    *(
        _defuser_choice(f"defuser-state-recognition-vqa-mcq-{name}", "local/defuser-state-recognition-vqa-mc", split)
        for name, split in STATE_SPLITS.items()
    ),
    Task(
        "defuser-vqa-oe",
        "defuser",
        "local/defuser-vqa-oe",
        "test",
        _same(f"{_DEFUSER} Answer the question with a letter, a word, a short phrase or a number, and nothing else."),
        _open_ended,
        lambda _: text_comparers(names_of_symbols=True),
    ),
    Task(
        "defuser-grounding-som",
        "defuser",
        "local/defuser-grounding",
        "test_som",
        _same(
            f"{_DEFUSER} Every element that can be clicked on carries a letter on a black square. Answer with the "
            f"letter of the element that you are asked to click on, and nothing else. {_TRICKS}"
        ),
        _marks,
        lambda _: text_comparers(),
    ),
    Task(
        "defuser-grounding-coordinates",
        "defuser",
        "local/defuser-grounding",
        "test_coordinates",
        _no_marks,
        _coordinates,
        _coordinates_scorer,
    ),
    Task(
        HOW_DO_YOU,
        "defuser",
        None,
        None,
        _same("You know the game Keep Talking and Nobody Explodes. Answer in a few sentences."),
        lambda row, _: ((row["model_input"],), "", ()),
        lambda _: {},
    ),
)
TASKS = {task.name: task for task in _TASKS}
STATE_TASK = "defuser-state-recognition-vqa-mcq"


def task_named(name: str, state_split: str = "state-change") -> Task:
    """A task by the name that users give it.

    Args:
        name: one of the published names.
        state_split: of ``defuser-state-recognition-vqa-mcq``; ignored by all others.

    Raises:
        ConfigError: there is no such task or split.
    """
    if name == STATE_TASK:
        if state_split not in STATE_SPLITS:
            raise ConfigError(f"the state split must be one of {sorted(STATE_SPLITS)}, found {state_split!r}")
        name = f"{STATE_TASK}-{state_split}"
    if name not in TASKS:
        known = [known for known in TASKS if not known.startswith(STATE_TASK)]
        raise ConfigError(f"a static task must be one of {sorted([*known, STATE_TASK])}, found {name!r}")
    return TASKS[name]


def how_do_you_rows(attempts: int) -> tuple[Row, ...]:
    """One question per module on how it is solved, ``attempts`` times; further attempts come after those before."""
    return tuple(
        {
            "component": component,
            "attempt": attempt,
            "model_input": f"How do you solve the module {_TITLES[component]}?",
            "categories": [f"module={component.lower()}"],
        }
        for attempt in range(1, attempts + 1)
        for component in SOLVABLE
    )


_TITLES = {
    "Wires": "Wires",
    "BigButton": "The Button",
    "Keypad": "Keypads",
    "Simon": "Simon Says",
    "WhosOnFirst": "Who's on First",
    "Memory": "Memory",
    "Morse": "Morse Code",
    "Venn": "Complicated Wires",
    "WireSequence": "Wire Sequences",
    "Maze": "Mazes",
    "Password": "Passwords",
}
