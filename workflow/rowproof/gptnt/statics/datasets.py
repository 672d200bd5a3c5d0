"""Data sets of the static tasks, made from the simulator and the manual, with the fields of the published ones.

They are made anew whenever they are needed and are the same on every machine. Their names say ``local``: scores on them
cannot be compared with scores on the published data.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from rowproof.errors import ConfigError
from rowproof.gptnt.bomb.bomb import MARKS, Bomb, build
from rowproof.gptnt.bomb.mission import SOLVABLE, Mission
from rowproof.gptnt.bomb.modules.keypad import RENDERINGS
from rowproof.gptnt.bomb.observation import look
from rowproof.gptnt.bomb.oracle import next_in_module
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.manual import Manual
from rowproof.gptnt.rendering import SIZE, masks, render, render_marks
from rowproof.gptnt.statics.pages import GLYPHS, render_marked_page, render_page
from rowproof.gptnt.statics.questions import NOTHING, VISIBLE, Question, change_question, rule_question, targets
from rowproof.gptnt.statics.scoring import MORE_NEEDED, NO_TARGET
from rowproof.hashing import sha256_hex
from rowproof.records import digest

Row = dict[str, Any]
Observation = dict[str, Any]

# Questions per module in each split.
ROWS_PER_MODULE = 6
OPTIONS = 4
LETTERS = "ABCDEFGH"
TIME_LIMIT_S = 300
PAGES_OF = {
    "Wires": (5,),
    "BigButton": (6,),
    "Keypad": (7,),
    "Simon": (8,),
    "WhosOnFirst": (9, 10),
    "Memory": (11,),
    "Morse": (12,),
    "Venn": (13,),
    "WireSequence": (14,),
    "Maze": (15,),
    "Password": (16,),
}
# Simon's first flash is lit from one second on; a strike is seen at once.
LIT_AFTER_MS = 1250


class Dataset(NamedTuple):
    """Rows of one or several splits.

    Attributes:
        name: with the owner ``local``.
        split: of the rows; None for all.
        rows: by the fields of the published data set; pictures are PNGs, masks are strings of 0 and 1 by lines.
        revision: digest of all rows.
    """

    name: str
    split: str | None
    rows: tuple[Row, ...]
    revision: str


def load_dataset(
    name: str, split: str | None, revision: str | None = None, rows_per_module: int = ROWS_PER_MODULE
) -> Dataset:
    """Make a data set.

    Args:
        name: as in :data:`DATASETS`.
        split: one of its splits; None for all, one after another.
        revision: that it must have, or at least seven digits of it; None for any.
        rows_per_module: in each split.

    Raises:
        ConfigError: there is no such data set or split, or it has another revision.
    """
    if name not in DATASETS:
        raise ConfigError(f"a data set must be one of {sorted(DATASETS)}, found {name!r}")
    splits = DATASETS[name]
    if split is not None and split not in splits:
        raise ConfigError(f"a split of {name} must be one of {sorted(splits)}, found {split!r}")
    made = _make(name, split, rows_per_module)
    if revision is not None and not (len(revision) >= 7 and made.revision.startswith(revision)):
        raise ConfigError(
            f"{name} must have the revision {revision!r}, found {made.revision}: use the version that made it"
        )
    return made


@cache
def _make(name: str, split: str | None, count: int) -> Dataset:
    splits = DATASETS[name]
    rows = tuple(row for key in ([split] if split else list(splits)) for row in splits[key](count))
    return Dataset(name, split, rows, digest([_fingerprint(row) for row in rows]))


def _fingerprint(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"sha256": sha256_hex(value)}
    if isinstance(value, Mapping):
        return {key: _fingerprint(item) for key, item in value.items()}
    return [_fingerprint(item) for item in value] if isinstance(value, list | tuple) else value


# ---- bombs -----------------------------------------------------------------------------------------------------


def _bomb(component: str, seed: int) -> tuple[Bomb, int]:
    """A bomb whose player is close to its module ``component``, and the rank of that; another one keeps it going."""
    other = "Maze" if component == "Wires" else "Wires"
    bomb = build(Mission(seed, TIME_LIMIT_S, (component, other), 4, force_modules_to_front=True))
    rank = next(rank for rank, module in enumerate(bomb.modules) if module.component == component)
    bomb.act("click_release", MARKS[bomb.facing().index(rank)])
    return bomb, rank


def _step(bomb: Bomb, rank: int) -> None:
    """Do the next right thing in a module, or let a second pass if it is too early for that."""
    step = next_in_module(bomb, rank)
    if step is None:
        bomb.advance(1000)
    else:
        bomb.act(*step)


def _played(component: str, seed: int, draws: Stream) -> tuple[Bomb, int]:
    """A bomb some way into its module, which is not solved."""
    bomb, rank = _bomb(component, seed)
    for _ in range(draws.below(4)):
        _step(bomb, rank)
    return _bomb(component, seed) if bomb.modules[rank].solved else (bomb, rank)


def _look(bomb: Bomb) -> Observation:
    return look(bomb, 1, symbols=RENDERINGS[0])


def _each(dataset: str, count: int) -> Iterator[tuple[str, int, Stream]]:
    """Component, seed and stream of each row, ``count`` per module."""
    for component in SOLVABLE:
        for seed in range(count):
            yield component, seed, Stream(f"{seed}|{component}", f"statics/{dataset}")


def _module_tag(component: str) -> str:
    return f"module={component.lower()}"


def _options(question: Question, draws: Stream) -> list[str]:
    others = draws.sample(question.others, min(len(question.others), OPTIONS - 1))
    return draws.shuffle([question.answer, *others])


def _lettered(options: Sequence[str]) -> str:
    return "\n".join(f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=False))


# ---- Expert ----------------------------------------------------------------------------------------------------


@cache
def _manual() -> Manual:
    return Manual.read()


def _expert_vqa(count: int) -> Iterator[Row]:
    manual = _manual()
    for component, seed, draws in _each("expert-vqa", count):
        bomb, rank = _played(component, seed, draws)
        question = rule_question(bomb.modules[rank], bomb, draws)
        options = _options(question, draws)
        numbers = PAGES_OF[component]
        yield {
            "page_number": list(numbers),
            "images": [render_page(manual.pages[number]) for number in numbers],
            "manual_texts": [manual.pages[number].text for number in numbers],
            "model_input": f"{question.text}\n\n{_lettered(options)}",
            "metadata": {"seed": seed, "component": component, "options": options},
            "ground_truth": LETTERS[options.index(question.answer)],
            "categories": [_module_tag(component), f"question_type={question.kind}"],
        }


def _lines(number: int) -> list[tuple[str, int, dict[str, str]]]:
    """(heading of the table, number of the line, cells) of each line of the tables of a page."""
    manual = _manual()
    headings = [part.partition("\n")[0] for part in manual.pages[number].text.split("\n## ")[1:]]
    return [
        (heading, line, cells)
        for heading in headings
        if heading in manual.tables
        for line, cells in enumerate(manual.tables[heading], start=1)
    ]


def _expert_ocr(count: int) -> Iterator[Row]:
    for component, _, draws in _each("expert-element-ocr", count):
        number = draws.pick(PAGES_OF[component])
        cells = [
            (heading, line, column, cell)
            for heading, line, row in _lines(number)
            for column, cell in row.items()
            if cell and cell not in GLYPHS and not cell.startswith("`")
        ]
        if cells:
            heading, line, column, cell = draws.pick(cells)
            question = f'In the table "{heading}", what does line {line} below the headings say under "{column}"?'
        else:
            # The page of the mazes has no table.
            cell = _manual().pages[number].title
            question = "What is the title of the page, without its number?"
        yield {
            "image": render_page(_manual().pages[number]),
            "question": question,
            "module": component,
            "ground_truth": cell,
            "categories": [_module_tag(component), "question_type=ocr"],
        }


def _element_grounding(count: int) -> Iterator[Row]:
    for component, _, draws in _each("expert-element-grounding", count):
        number = draws.pick(PAGES_OF[component])
        lines = _lines(number)
        if not lines:
            continue
        # A line that is there twice could not be told from its double.
        unique = [line for line in lines if sum(line[2] == other[2] for other in lines) == 1]
        chosen = draws.sample(unique, min(len(unique), 8))
        heading, line, cells = draws.pick(chosen)
        picture, letters = render_marked_page(_manual().pages[number], [(table, place) for table, place, _ in chosen])
        said = ", ".join(f"{column}: {cell or '(empty)'}" for column, cell in cells.items()).replace("`", "")
        yield {
            "image": picture,
            "question": f'Which mark stands beside the line of the table "{heading}" that says: {said}?',
            "ground_truth": letters[heading, line],
            "categories": [_module_tag(component), "question_type=grounding"],
        }


# ---- Defuser ---------------------------------------------------------------------------------------------------


def _visible(dataset: str, count: int) -> Iterator[tuple[str, Observation, Question, Stream]]:
    for component, seed, draws in _each(dataset, count):
        bomb, _ = _played(component, seed, draws)
        bomb.advance(LIT_AFTER_MS)
        seen = _look(bomb)
        # First the kind, so that the many questions of one kind do not push out the others.
        questions = VISIBLE[component](seen["module"])
        kind = draws.pick(sorted({question.kind for question in questions}))
        yield component, seen, draws.pick([question for question in questions if question.kind == kind]), draws


def _choice(component: str, question: Question, pictures: Sequence[bytes], draws: Stream) -> Row:
    return {
        "model_input": question.text,
        "options": _options(question, draws),
        "input_images": list(pictures),
        "ground_truth": question.answer,
        "categories": [_module_tag(component), f"question_type={question.kind}"],
    }


def _defuser_choice(count: int) -> Iterator[Row]:
    for component, seen, question, draws in _visible("defuser-vqa-mc", count):
        yield _choice(component, question, [render(seen)], draws)


def _defuser_open(count: int) -> Iterator[Row]:
    for component, seen, question, _ in _visible("defuser-vqa-oe", count):
        yield {
            "model_input": question.text,
            "input_images": [render(seen)],
            "ground_truth": question.open_answer or question.answer,
            "categories": [_module_tag(component), f"question_type={question.kind}"],
        }


def _state_change(count: int) -> Iterator[Row]:
    for component, seed, draws in _each("state-change", count):
        bomb, rank = _bomb(component, seed)
        before = after = _look(bomb)
        question = change_question(before["module"], after["module"])
        for _ in range(0 if draws.chance(1, 5) else 20):
            if bomb.modules[rank].solved or len(bomb.strikes) > 1:
                break
            right = next_in_module(bomb, rank)
            wrong = right is None or draws.chance(1, 3)
            before = _look(bomb)
            bomb.act(
                *(("click_release", draws.pick(MARKS[: bomb.mark_count()])) if wrong and not bomb.holding else right)
            )
            after = _look(bomb)
            question = change_question(before["module"], after["module"])
            if question is not None and question.answer != NOTHING:
                break
        if question is None:
            after, question = before, change_question(before["module"], before["module"])
        yield _choice(component, question, [render(before), render(after)], draws)


def _solved(count: int) -> Iterator[Row]:
    text = "Is the module in the picture done? Its status light tells."
    for component, seed, draws in _each("solved", count):
        bomb, rank = _played(component, seed, draws)
        if draws.chance(1, 2):
            while not bomb.modules[rank].solved:
                _step(bomb, rank)
        seen = _look(bomb)
        answer, other = ("yes", "no") if seen["module"]["led"] == "green" else ("no", "yes")
        yield _choice(component, Question(text, answer, (other,), "solved"), [render(seen)], draws)


def _strikes(count: int) -> Iterator[Row]:
    text = "How many strikes does the indicator above the timer show?"
    for component, seed, draws in _each("strikes", count):
        bomb, rank = _bomb(component, seed)
        wanted = draws.below(3)
        while len(bomb.strikes) < wanted and not bomb.modules[rank].solved:
            bomb.act("click_release", draws.pick(MARKS[: bomb.mark_count()]))
        seen = _look(bomb)
        answer = str(seen["timer"]["strike_lights"])
        others = tuple(digit for digit in "0123" if digit != answer)
        yield _choice(component, Question(text, answer, others, "strikes"), [render(seen)], draws)


def _grounding(count: int, marks: bool) -> Iterator[Row]:
    """Both splits hold the same questions, so that they differ in the way of pointing alone."""
    for component, seed, draws in _each("defuser-grounding", count):
        bomb, _ = _played(component, seed, draws)
        if seed == 0:
            # One row per module from afar.
            bomb.act("zoom_out")
            seen = _look(bomb)
            slots = [slot for slot in seen["slots"] if "mark" in slot]
            index = next(i for i, slot in enumerate(slots) if bomb.modules[bomb.facing()[i]].component == component)
            text, trick, detect = f"module that looks like this: {slots[index]['shows']}", "", "module"
        else:
            seen = _look(bomb)
            kinds = ("", "", "type_a", "type_b")
            found = targets(component, seen["module"])
            kind = draws.pick([kind for kind in kinds if any(target.trick == kind for target in found)])
            text, index, trick = draws.pick([target for target in found if target.trick == kind])
            detect = "element"
        categories = [_module_tag(component), f"detect={detect}", *([f"hallucination_type={trick}"] if trick else [])]
        mask = None if index is None else masks(seen)[list(seen["marks"])[index]]
        bits = None if mask is None else "".join("1" if bit else "0" for bit in mask.ravel().tolist())
        letter = None if index is None else list(seen["marks"])[index]
        trick_answer = NO_TARGET if trick == "type_b" else MORE_NEEDED
        yield {
            "frames": [render(seen)],
            "som_image": render_marks(seen) if marks else None,
            "segmentation_mask": bits,
            "mask_size": list(SIZE),
            "model_input": text,
            "ground_truth": (letter if marks else bits) or trick_answer,
            "hallucination": trick or None,
            "categories": categories,
        }


# Name to split to what makes its rows.
DATASETS: dict[str, dict[str, Callable[[int], Iterator[Row]]]] = {
    "local/expert-vqa": {"test": _expert_vqa},
    "local/expert-element-ocr": {"test": _expert_ocr},
    "local/expert-element-grounding": {"test": _element_grounding},
    "local/defuser-vqa-mc": {"test": _defuser_choice},
    "local/defuser-state-recognition-vqa-mc": {
        "test_state_change": _state_change,
        "test_solved": _solved,
        "test_strikes": _strikes,
    },
    "local/defuser-vqa-oe": {"test": _defuser_open},
    "local/defuser-grounding": {
        "test_som": partial(_grounding, marks=True),
        "test_coordinates": partial(_grounding, marks=False),
    },
}
