"""The Expert's manual: pages in words of our own, and what can be looked up in them.

A page is a Markdown file. Its tables and drawings are what a reader sees and what the lookups read: there is no second
copy of the rules here.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from rowproof.errors import ConfigError
from rowproof.hashing import sha256_hex
from rowproof.records import digest

MANUAL_FOLDER = Path(__file__).resolve().parents[3] / "resources" / "gptnt" / "manual"
# What an Expert is given; the numbers are those of the game. Cover, contents and divider are left out.
PAGES = (3, *range(5, 17), 21, 22, 23)
# Written down for the sake of completeness. As in the benchmark no Expert has them: no published mission needs them.
NEEDY_PAGES = (17, 18, 19, 20)

Row = dict[str, str]
Cell = tuple[int, int]

_TITLE = re.compile(r"# (\d+)\. (.+)")
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4}
_VOWELS = frozenset("AEIOU")
# Line and character at which a drawing of a maze has its first cell, and the steps to the next one.
_TOP, _LEFT, _DOWN, _RIGHT = 2, 3, 2, 3
_STEPS = {"up": (-1, 0), "left": (0, -1), "right": (0, 1), "down": (1, 0)}


class Page(NamedTuple):
    """One page.

    Attributes:
        number: of the page.
        title: its heading.
        looks: what the module of the page looks like; None on pages about no module.
        text: the whole page as Markdown.
    """

    number: int
    title: str
    looks: str | None
    text: str


class Edges(NamedTuple):
    """What is known of the narrow sides of a bomb; None is what has not been looked at.

    Attributes:
        label: the serial number.
        batteries: cells of all holders.
        indicators: letters of those that are lit.
        ports: looks of all ports.
    """

    label: str | None = None
    batteries: int | None = None
    indicators: frozenset[str] | None = None
    ports: frozenset[str] | None = None


class EdgesNeeded(LookupError):
    """A rule asks for something on the narrow sides that is not known.

    Attributes:
        wanted: names of the fields of :class:`Edges`.
    """

    def __init__(self, wanted: Sequence[str]) -> None:
        """Tell what is wanted."""
        super().__init__(f"must be known: {', '.join(wanted)}")
        self.wanted = tuple(wanted)


def page_files() -> list[str]:
    """The names of the files of all pages, in order."""
    return [f"page-{number:02d}.md" for number in sorted((*PAGES, *NEEDY_PAGES))]


class Manual:
    """All pages. Every lookup raises ValueError if what it is given is not in the manual.

    Attributes:
        pages: those that an Expert is given, by number, in order; searches see these alone.
        needy_pages: those on needy modules, by number, in order.
        tables: of all pages, by heading; each row maps column headings to cells.
        drawings: by heading; the lines of each.
        digest: SHA-256 over all pages, independent of where they lie.
    """

    def __init__(self, pages: Iterable[Page]) -> None:
        """Take ``pages`` apart.

        Raises:
            ConfigError: two tables or drawings share a heading, or a row has another number of cells than its heading.
        """
        every = {page.number: page for page in pages}
        self.pages = {number: page for number, page in every.items() if number not in NEEDY_PAGES}
        self.needy_pages = {number: page for number, page in every.items() if number in NEEDY_PAGES}
        self.tables: dict[str, list[Row]] = {}
        self.drawings: dict[str, list[str]] = {}
        for page in every.values():
            self._take_apart(page)
        self.digest = digest({str(number): sha256_hex(page.text.encode()) for number, page in every.items()})

    @classmethod
    def read(cls, folder: Path = MANUAL_FOLDER) -> "Manual":
        """Read the pages of ``folder``; it must hold :data:`PAGES` and :data:`NEEDY_PAGES` and nothing else.

        Raises:
            ConfigError: a page is missing, unreadable, malformed, or not one of the manual's.
        """
        numbers, expected = sorted((*PAGES, *NEEDY_PAGES)), page_files()
        found = sorted(path.name for path in folder.glob("*")) if folder.is_dir() else []
        if found != expected:
            odd = sorted(set(found) ^ set(expected))
            raise ConfigError(f"{folder.name}: must hold the pages {numbers} alone, missing or superfluous: {odd}")
        return cls(_read_page(folder / name, number) for name, number in zip(expected, numbers, strict=True))

    def _take_apart(self, page: Page) -> None:
        for part in page.text.split("\n## ")[1:]:
            heading, _, body = part.partition("\n")
            place = f"page {page.number}: {heading}"
            if heading in self.tables or heading in self.drawings:
                raise ConfigError(f"{place}: a heading must be unique in the manual, found it twice")
            if "```" in body:
                self.drawings[heading] = body.split("```")[1].split("\n")[1:-1]
                continue
            lines = [[cell.strip() for cell in line[1:-1].split("|")] for line in body.split("\n") if line[:1] == "|"]
            if len(lines) < 3 or any(len(line) != len(lines[0]) for line in lines):
                raise ConfigError(f"{place}: must be a table with rows of equal length, or a drawing")
            self.tables[heading] = [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]

    # ---- pages -------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """The pages one after another, as the Expert of a language model reads them."""
        return "\n".join(page.text for page in self.pages.values())

    def search(self, words: str) -> list[Page]:
        """The pages that hold some of ``words``, those with the largest share of them first, then by number."""
        wanted = set(re.findall(r"\w+", words.lower()))
        shares = {number: len(wanted & held) for number, held in self._words.items()}
        return [self.pages[number] for number in sorted(shares, key=lambda n: (-shares[n], n)) if shares[number]]

    @cached_property
    def _words(self) -> dict[int, set[str]]:
        return {number: set(re.findall(r"\w+", page.text.lower())) for number, page in self.pages.items()}

    def page_for(self, looks: str) -> Page:
        """The page of the module that looks like ``looks``, in these words or most of them."""
        if looks in self._by_looks:
            return self._by_looks[looks]
        wanted = set(looks.split())
        shares = {
            known: len(wanted & set(known.split())) / len(wanted | set(known.split())) for known in self._by_looks
        }
        best = max(shares, key=shares.__getitem__)
        if 2 * shares[best] <= 1:
            raise ValueError(f"a module must look like one of the manual, found {looks!r}")
        return self._by_looks[best]

    @cached_property
    def _by_looks(self) -> dict[str, Page]:
        return {page.looks: page for page in self.pages.values() if page.looks is not None}

    # ---- lookups -----------------------------------------------------------------------------------------------

    def wire_to_cut(self, colours: Sequence[str], edges: Edges) -> int:
        """The number of the wire to cut, for the colours of all wires from the top.

        Raises:
            EdgesNeeded: the label must be known.
        """
        for when, cut in self._wires.get(len(colours), ()):
            if all(holds(colours, edges) for holds in when):
                which, _, colour = cut.partition(" ")
                if which in _ORDINALS:
                    return _ORDINALS[which]
                return len(colours) - list(colours)[::-1].index(colour) if colour else len(colours)
        raise ValueError(f"there must be three to six wires, found {len(colours)}")

    @cached_property
    def _wires(self) -> dict[int, list[tuple[list["_Condition"], str]]]:
        rows: dict[int, list[tuple[list[_Condition], str]]] = {}
        for row in self.tables["wires"]:
            rows.setdefault(int(row["wires"]), []).append((_conditions(row["when"]), row["cut"]))
        return rows

    def button_action(self, colour: str, word: str, edges: Edges) -> str:
        """``tap`` or ``hold``.

        Raises:
            EdgesNeeded: batteries and indicators must be known.
        """
        for row in self.tables["button"]:
            if row["colour"] not in ("", colour) or row["word"] not in ("", word):
                continue
            if row["batteries"] or row["lit indicator"]:
                if edges.batteries is None or edges.indicators is None:
                    raise EdgesNeeded(("batteries", "indicators"))
                if row["batteries"] and edges.batteries <= int(row["batteries"].removeprefix("more than ")):
                    continue
                if row["lit indicator"] and row["lit indicator"] not in edges.indicators:
                    continue
            return row["do"]
        raise ValueError(f"a button must fit a line of the manual, found {colour} {word}")

    def release_digit(self, strip: str) -> str:
        """The digit that the timer must show when a button with that strip is let go."""
        digits = {row["strip"]: row["let go when the timer shows"] for row in self.tables["strip"]}
        return digits.get(strip, digits["any other"])

    def key_order(self, symbols: Sequence[str]) -> list[int]:
        """The indices of the keys in the order of their presses; symbols are given as glyphs or by their looks."""
        glyphs = [self._glyphs.get(symbol, symbol) for symbol in symbols]
        for column in self._columns:
            if set(glyphs) <= set(column):
                return sorted(range(len(glyphs)), key=lambda key: column.index(glyphs[key]))
        raise ValueError(f"the symbols must share a column, found {list(symbols)}")

    @cached_property
    def _glyphs(self) -> dict[str, str]:
        return {row["looks like"]: row["symbol"] for row in self.tables["symbols"]}

    @cached_property
    def _columns(self) -> list[list[str]]:
        rows = self.tables["columns"]
        return [[row[column] for row in rows] for column in rows[0]]

    def simon_buttons(self, strikes: int, edges: Edges) -> dict[str, str]:
        """Flash to button at that many strikes.

        Raises:
            EdgesNeeded: the label must be known.
        """
        if edges.label is None:
            raise EdgesNeeded(("label",))
        vowel = "no" if _VOWELS.isdisjoint(edges.label) else "yes"
        for row in self.tables["simon"]:
            least = int(row["strikes"].removesuffix(" or more"))
            if row["vowel on the label"] == vowel and (
                strikes == least or (strikes > least and "or more" in row["strikes"])
            ):
                return {
                    flash.removesuffix(" flash"): button for flash, button in row.items() if flash.endswith(" flash")
                }
        raise ValueError(f"strikes must not be negative, found {strikes}")

    def word_to_press(self, display: str, words: Mapping[str, str]) -> str:
        """The word to press, for the display (empty if dark) and place to word of the six buttons."""
        places = {row["display"]: row["read the button at the"] for row in self.tables["first step"]}
        word = words.get(places.get(display or "(empty)", ""))
        preferred = next((row["press the first of"] for row in self.tables["second step"] if row["word"] == word), "")
        for candidate in preferred.split(", "):
            if candidate in words.values():
                return candidate
        raise ValueError(f"display and words must be in the manual, found {display!r} over {dict(words)}")

    def memory_position(self, display: str, digits: Sequence[str], pressed: Sequence[tuple[int, str]]) -> int:
        """The position to press, from 1.

        Args:
            display: the large digit.
            digits: of the buttons from the left.
            pressed: position and digit of the press in every stage so far.
        """
        instruction = next(
            (
                row.get(f"display {display}", "")
                for row in self.tables["memory"]
                if row["stage"] == str(len(pressed) + 1)
            ),
            "",
        )
        *what, number = instruction.split() or [""]
        if what == ["position"]:
            return int(number)
        if what == ["the", "position", "of", "stage"]:
            return pressed[int(number) - 1][0]
        digit = pressed[int(number) - 1][1] if what == ["the", "digit", "of", "stage"] else number
        if digit not in digits:
            raise ValueError(f"a button must show {digit!r}, found {list(digits)} in stage {len(pressed) + 1}")
        return list(digits).index(digit) + 1

    def frequency(self, signals: Iterable[str]) -> str:
        """The frequency in MHz for the signals of a word, one of dots and dashes per letter."""
        letters = {row["signal"].strip("`"): row["letter"] for row in self.tables["alphabet"]}
        word = "".join(letters.get(signal, "?") for signal in signals).lower()
        for row in self.tables["frequencies"]:
            if row["word"] == word:
                return row["MHz"]
        raise ValueError(f"the signals must spell a word of the manual, found {word!r}")

    def complicated_wires_to_cut(self, wires: Sequence[tuple[Collection[str], bool, bool]], edges: Edges) -> list[int]:
        """The numbers of the wires to cut, from the left; each wire is given as colours, lamp and star.

        Raises:
            EdgesNeeded: what the letters of these wires ask for must be known.
        """
        letters = [self._letters["red" in colours, "blue" in colours, star, lamp] for colours, lamp, star in wires]
        meanings = {row["letter"]: row["cut the wire"] for row in self.tables["letters"]}
        asked = {letter: _LETTER_MEANINGS[meanings[letter]] for letter in letters}
        wanted = sorted({field for field, _ in asked.values() if field and getattr(edges, field) is None})
        if wanted:
            raise EdgesNeeded(wanted)
        cut = {letter: holds(edges, self) for letter, (_, holds) in asked.items()}
        return [number for number, letter in enumerate(letters, start=1) if cut[letter]]

    @cached_property
    def _letters(self) -> dict[tuple[bool, ...], str]:
        keys = ("red", "blue", "star", "lamp on")
        return {tuple(row[key] == "yes" for key in keys): row["letter"] for row in self.tables["complicated wires"]}

    def port_looks(self, port: str) -> str:
        """What a port looks like."""
        return next(row["looks like"] for row in self.tables["ports"] if row["port"] == port)

    def sequence_wires_to_cut(self, wires: Iterable[tuple[str, str]]) -> list[bool]:
        """Whether to cut each of the wires seen so far, given as colour and letter in the order of the panels."""
        counts: dict[str, int] = {}
        cut = []
        for colour, letter in wires:
            counts[colour] = counts.get(colour, 0) + 1
            if counts[colour] > len(self.tables["wire sequences"]):
                raise ValueError(f"the manual must know that many {colour} wires, found {counts[colour]}")
            letters = self.tables["wire sequences"][counts[colour] - 1].get(colour)
            if letters is None:
                raise ValueError(f"a wire must have a colour of the manual, found {colour!r}")
            cut.append(letter in letters.split(", "))
        return cut

    def maze_way(self, circle: Cell, start: Cell, goal: Cell) -> list[str]:
        """The steps (up, left, right, down) through the maze with a circle there; cells are (row, column) from 1."""
        for lines in self._mazes:
            if _symbol(lines, circle) == "o":
                return _way(lines, start, goal)
        raise ValueError(f"a maze must have a circle at {circle}")

    @cached_property
    def _mazes(self) -> list[list[str]]:
        return [lines for heading, lines in self.drawings.items() if heading.startswith("maze ")]

    def words_possible(self, columns: Sequence[Collection[str] | None]) -> list[str]:
        """The passwords that can be set; a column is its capital letters, or None if they are not known."""
        return [
            word
            for row in self.tables["passwords"]
            for word in row.values()
            if all(column is None or letter in column for letter, column in zip(word.upper(), columns, strict=True))
        ]


def _read_page(path: Path, number: int) -> Page:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path.name}: must be a readable page in UTF-8: {error}") from None
    lines = text.split("\n")
    title = _TITLE.fullmatch(lines[0])
    if title is None or int(title[1]) != number:
        raise ConfigError(f"{path.name}: must begin with '# {number}. <title>', found {lines[0]!r}")
    looks = next((line.removeprefix("Looks: ") for line in lines if line.startswith("Looks: ")), None)
    return Page(number, title[2], looks, text)


# ---- conditions ------------------------------------------------------------------------------------------------

_Condition = Callable[[Sequence[str], Edges], bool]


def _last_digit(edges: Edges) -> int:
    if edges.label is None:
        raise EdgesNeeded(("label",))
    if not edges.label[-1:].isdecimal():
        raise ValueError(f"a label must end in a digit, found {edges.label!r}")
    return int(edges.label[-1])


# Phrase of the table "wires" to what it means; the first group is the colour.
_WIRE_PHRASES: dict[str, Callable[[str], _Condition]] = {
    r"no (\w+) wire": lambda colour: lambda wires, _: colour not in wires,
    r"exactly one (\w+) wire": lambda colour: lambda wires, _: wires.count(colour) == 1,
    r"more than one (\w+) wire": lambda colour: lambda wires, _: wires.count(colour) > 1,
    r"the last wire is (\w+)": lambda colour: lambda wires, _: wires[-1] == colour,
    r"(otherwise)": lambda _: lambda wires, edges: True,
    # Last, so that the label is asked for only where it matters.
    r"the label ends in an (odd) digit": lambda _: lambda wires, edges: _last_digit(edges) % 2 == 1,
}
# Phrase of the table "letters" to the field of Edges that it asks for, and what it means.
_LETTER_MEANINGS: dict[str, tuple[str, Callable[[Edges, Manual], bool]]] = {
    "always": ("", lambda edges, manual: True),
    "never": ("", lambda edges, manual: False),
    "if the label ends in an even digit": ("label", lambda edges, manual: _last_digit(edges) % 2 == 0),
    "if a port plate has a Parallel port": (
        "ports",
        lambda edges, manual: manual.port_looks("Parallel") in edges.ports,
    ),
    "if there are two or more batteries": ("batteries", lambda edges, manual: edges.batteries >= 2),
}


def _conditions(text: str) -> list[_Condition]:
    clauses = text.split(" and ")
    found = []
    for phrase, meaning in _WIRE_PHRASES.items():
        found += [meaning(match[1]) for clause in clauses if (match := re.fullmatch(phrase, clause))]
    if len(found) != len(clauses):
        raise ConfigError(f"page 5: wires: a condition must be made of {list(_WIRE_PHRASES)}, found {text!r}")
    return found


# ---- mazes -----------------------------------------------------------------------------------------------------


def _symbol(lines: Sequence[str], cell: Cell) -> str:
    line, character = _TOP + _DOWN * (cell[0] - 1), _LEFT + _RIGHT * (cell[1] - 1)
    inside = cell[0] > 0 < cell[1] and line < len(lines) and character < len(lines[line])
    return lines[line][character] if inside else ""


def _open(lines: Sequence[str], cell: Cell, step: str) -> bool:
    line, character = _TOP + _DOWN * (cell[0] - 1), _LEFT + _RIGHT * (cell[1] - 1)
    rows, columns = _STEPS[step]
    if rows:
        return lines[line + rows][character] == " "
    return lines[line][character - 1 if columns < 0 else character + _RIGHT - 1] == " "


def _way(lines: Sequence[str], start: Cell, goal: Cell) -> list[str]:
    if not _symbol(lines, start) or not _symbol(lines, goal):
        raise ValueError(f"square and triangle must lie in the maze, found {start} and {goal}")
    ways: dict[Cell, list[str]] = {start: []}
    queue = [start]
    for cell in queue:
        if cell == goal:
            break
        for step, (rows, columns) in _STEPS.items():
            there = cell[0] + rows, cell[1] + columns
            if there not in ways and _open(lines, cell, step):
                ways[there] = [*ways[cell], step]
                queue.append(there)
    return ways[goal]
