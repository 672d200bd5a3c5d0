"""What a Defuser does at each kind of module: watch, describe, and follow instructions, without knowing any rule."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

from rowproof.gptnt.players.phrases import Sentence

View = Mapping[str, Any]
Orders = Mapping[str, Sequence[str]]

SAMPLE_MS = 250
_KEY_PLACES = ("top left", "top right", "bottom left", "bottom right")
_BUTTON_PLACES = ("top", "left", "right", "bottom")
_COLUMN_NUMBERS = ("1", "2", "3", "4", "5")
_ARROWS = ("up", "left", "right", "down")
_COLOURS = {"R": "red", "B": "blue", "G": "green", "Y": "yellow"}
# A letter gap is three samples dark and a word gap seven.
_MORSE_WORD_GAP, _MORSE_LETTER_GAP = "." * 5, "." * 3
# Lamps that stay dark for this many samples have ended their sequence.
_FLASH_GAP = 2
# Half-entered answers are forgotten after five seconds.
_SIMON_PATIENCE_MS = 5000
# After watching in vain for this many turns, what shows is believed whatever its length.
_SIMON_WAITS = 6


class Situation(NamedTuple):
    """What matters beside the module itself.

    Attributes:
        elapsed_ms: game time since the start.
        strikes: on the bomb, as far as the Defuser knows.
    """

    elapsed_ms: int
    strikes: int


class Hands:
    """One module at work. The Defuser looks with :meth:`look`, then asks :meth:`follow` or :meth:`describe`.

    Attributes:
        shows: what the kind of module looks like.
    """

    shows: ClassVar[str]

    def look(self, view: View, now: Situation) -> None:
        """Take note of what shows."""
        self.view = view
        self.now = now

    def forget(self) -> None:
        """Start over after a strike."""

    def describe(self) -> list[Sentence] | None:
        """What to tell the Expert; None to watch for longer or to do :meth:`explore` first."""
        raise NotImplementedError

    def explore(self) -> int | None:
        """The element to press in order to see more, without being told to."""
        return None

    def follow(self, orders: Orders) -> int | str | None:
        """The next element to press, ``hold``, ``release``, ``wait``; None if the orders leave nothing to do.

        Raises:
            LookupError, ValueError: the orders do not fit what shows.
        """
        raise NotImplementedError


def _first_whole(orders: Orders, wires: Sequence[View]) -> int | None:
    """The first wire that is ordered to be cut and is not."""
    numbers = [int(number) for number in orders["Cut"]]
    return next((number - 1 for number in numbers if not wires[number - 1]["cut"]), None)


class _Once(Hands):
    """A module whose view changes with every right press: orders hold for one press."""

    def __init__(self) -> None:
        self._done: Orders | None = None

    def follow(self, orders: Orders) -> int | str | None:
        if orders is self._done:
            return None
        self._done = orders
        return self._element(orders)

    def _element(self, orders: Orders) -> int:
        raise NotImplementedError


class _Wires(Hands):
    shows = "horizontal wires between two strips"

    def describe(self) -> list[Sentence] | None:
        return [("Wires from the top", [wire["colour"] for wire in self.view["wires"]])]

    def follow(self, orders: Orders) -> int | str | None:
        return _first_whole(orders, self.view["wires"])


class _Button(Hands):
    shows = "big round button under a cover, strip at its right"

    def __init__(self) -> None:
        self._tapped: Orders | None = None

    def describe(self) -> list[Sentence] | None:
        return [("Button", [self.view["button_colour"], self.view["button_text"]]), ("Strip", [self.view["strip"]])]

    def follow(self, orders: Orders) -> int | str | None:
        if self.view["strip"] != "dark":
            if "Let go at" not in orders:
                # Ordered before the strip was lit: its colour has to be told first.
                return None
            (_,) = orders["Let go at"]
            return "release"
        (what,) = orders["Button"]
        if what == "hold":
            return "hold"
        if what != "tap":
            raise ValueError(f"the button must be tapped or held, found {what!r}")
        if orders is self._tapped:
            return None
        self._tapped = orders
        return 0


class _Keypad(Hands):
    shows = "four square keys with strange symbols"

    def describe(self) -> list[Sentence] | None:
        return [("Keys", [key["symbol"] for key in self.view["keys"]])]

    def follow(self, orders: Orders) -> int | str | None:
        keys = [_KEY_PLACES.index(place) for place in orders["Press"]]
        return next((key for key in keys if self.view["keys"][key]["light"] != "green"), None)


class _Lamp(Hands):
    """A lamp that must be watched: samples by quarter seconds since the start of the game, without holes."""

    sample_key: ClassVar[str]

    def __init__(self) -> None:
        self._samples = ""
        self._end = 0

    def look(self, view: View, now: Situation) -> None:
        super().look(view, now)
        end = now.elapsed_ms // SAMPLE_MS + 1
        fresh = end - self._end
        seen = view[self.sample_key]
        if fresh > len(seen):
            self._samples = seen
        elif fresh:
            self._samples += seen[-fresh:]
        self._end = end

    def _restart(self) -> None:
        self._samples = ""


class _Simon(_Lamp):
    shows = "four coloured buttons in a diamond"
    sample_key = "flashes"

    def __init__(self) -> None:
        super().__init__()
        # The sequence grows by one flash at a time; what is shorter was cut off by a press.
        self._length = 1
        self._grown = False
        self._waited = 0
        self._restart()

    def _restart(self) -> None:
        super()._restart()
        self._sequence: list[str] = []
        self._answered = 0
        self._pressed_ms = 0

    def forget(self) -> None:
        # The last press of a sequence was the wrong one: it will not grow.
        self._length -= self._grown
        self._grown = False
        self._restart()

    def describe(self) -> list[Sentence] | None:
        return [("Strikes", [str(self.now.strikes)])]

    def _seen(self) -> list[str]:
        """The newest sequence of flashes whose beginning and end were seen."""
        runs = [(sample, len(list(run))) for sample, run in groupby(self._samples)]
        gaps = [i for i, (sample, length) in enumerate(runs) if sample == "." and length >= _FLASH_GAP]
        return [_COLOURS[sample] for sample, _ in runs[gaps[-2] : gaps[-1]] if sample != "."] if gaps[1:] else []

    def _watch(self) -> None:
        seen = self._seen()
        self._waited += 1
        if self._waited > _SIMON_WAITS and seen:
            self._length = len(seen)
        if len(seen) == self._length:
            self._sequence, self._waited = seen, 0

    def follow(self, orders: Orders) -> int | str | None:
        if orders["Strikes"] != [str(self.now.strikes)]:
            return None
        if self._answered and self.now.elapsed_ms - self._pressed_ms >= _SIMON_PATIENCE_MS:
            self._answered = 0
        if not self._sequence:
            self._watch()
            if not self._sequence:
                return "wait"
        answers = dict(answer.split(" by ") for answer in orders["Answer"])
        places = {colour: place for place, colour in self.view["buttons"].items()}
        element = _BUTTON_PLACES.index(places[answers[self._sequence[self._answered]]])
        self._answered += 1
        self._pressed_ms = self.now.elapsed_ms
        self._grown = self._answered == len(self._sequence)
        if self._grown:
            self._length += 1
            self._restart()
        return element


class _WhosOnFirst(_Once):
    shows = "word display above six word buttons"

    def describe(self) -> list[Sentence] | None:
        return [("Display", [self.view["display"]]), ("Buttons", self.view["buttons"])]

    def _element(self, orders: Orders) -> int:
        (word,) = orders["Press"]
        return self.view["buttons"].index(word)


class _Memory(_Once):
    shows = "digit display above four digit buttons"

    def __init__(self) -> None:
        super().__init__()
        self._pressed: list[str] = []

    def describe(self) -> list[Sentence] | None:
        return [
            ("Display", [str(self.view["display"])]),
            ("Buttons", [str(digit) for digit in self.view["buttons"]]),
            ("Pressed", self._pressed),
        ]

    def look(self, view: View, now: Situation) -> None:
        super().look(view, now)
        # The lights tell which presses count.
        del self._pressed[view["lights"] :]

    def _element(self, orders: Orders) -> int:
        position = int(orders["Press"][0])
        self._pressed.append(f"position {position} digit {self.view['buttons'][position - 1]}")
        return position - 1


class _Morse(_Lamp):
    shows = "blinking lamp above a frequency read-out"
    sample_key = "lamp"

    def __init__(self) -> None:
        super().__init__()
        self._sent: Orders | None = None

    def forget(self) -> None:
        self._restart()

    def describe(self) -> list[Sentence] | None:
        _, gap, after = self._samples.partition(_MORSE_WORD_GAP)
        word, end, _ = after.lstrip(".").partition(_MORSE_WORD_GAP)
        if not gap or not end:
            return None
        letters = word.split(_MORSE_LETTER_GAP)
        return [("Signals", ["".join(".-"[len(light) > 1] for light in letter.split(".")) for letter in letters])]

    def follow(self, orders: Orders) -> int | str | None:
        if orders is self._sent:
            return None
        target, present = float(orders["Send at"][0]), float(self.view["frequency"])
        if target == present:
            self._sent = orders
            return 2
        return 1 if target > present else 0


class _ComplicatedWires(Hands):
    shows = "vertical wires with lamps above and fields below"

    def describe(self) -> list[Sentence] | None:
        wires = [
            f"{' and '.join(wire['colours'])}, lamp {wire['lamp']}, {'star' if wire['star'] else 'no star'}"
            for wire in self.view["wires"]
        ]
        return [("Wires from the left", wires)]

    def follow(self, orders: Orders) -> int | str | None:
        return _first_whole(orders, self.view["wires"])


class _WireSequence(Hands):
    shows = "panel of wires from numbers to letters"

    def __init__(self) -> None:
        self._panels: dict[int, list[View]] = {}
        self._told = 0

    def describe(self) -> list[Sentence] | None:
        self._panels[self.view["panel"]] = self.view["wires"]
        self._told = self.view["panel"]
        wires = [wire for _, panel in sorted(self._panels.items()) for wire in panel]
        return [("Wires so far", [f"{wire['from']} to {wire['to']}, {wire['colour']}" for wire in wires])]

    def follow(self, orders: Orders) -> int | str | None:
        if self.view["panel"] != self._told:
            return None
        cut = {int(number) for number in orders["Cut"]}
        for element, wire in enumerate(self.view["wires"], start=1):
            if wire["from"] in cut and not wire["cut"]:
                return element
        return len(self.view["wires"]) + 1


class _Maze(Hands):
    shows = "dark grid with two green circles"

    def __init__(self) -> None:
        self._orders: Orders | None = None
        self._steps = 0

    def describe(self) -> list[Sentence] | None:
        def cell(place: Sequence[int]) -> str:
            return f"row {place[0]} column {place[1]}"

        return [
            ("Circles", [cell(circle) for circle in self.view["circles"]]),
            ("White square", [cell(self.view["white_square"])]),
            ("Red triangle", [cell(self.view["red_triangle"])]),
        ]

    def follow(self, orders: Orders) -> int | str | None:
        if orders is not self._orders:
            self._orders, self._steps = orders, 0
        if self._steps == len(orders["Go"]):
            return None
        self._steps += 1
        return _ARROWS.index(orders["Go"][self._steps - 1])


class _Password(Hands):
    shows = "five letters with arrows above and below"

    def __init__(self) -> None:
        # Per column the letters that showed, in the order of the lower arrow.
        self._columns: list[list[str]] = [[] for _ in range(5)]
        self._whole = [False] * 5
        self._turning: int | None = 0
        self._sent: Orders | None = None

    def forget(self) -> None:
        self.__init__()

    def look(self, view: View, now: Situation) -> None:
        super().look(view, now)
        if self._turning is not None:
            letters, letter = self._columns[self._turning], view["letters"][self._turning]
            if letter not in letters:
                letters.append(letter)
            elif len(letters) > 1 and letter == letters[0]:
                self._whole[self._turning] = True
                self._turning = None

    def describe(self) -> list[Sentence] | None:
        if self._turning is not None:
            return None
        whole = enumerate(zip(self._columns, self._whole, strict=True), start=1)
        return [(f"Column {number}", letters) for number, (letters, known) in whole if known]

    def explore(self) -> int | None:
        return None if self._turning is None else 5 + self._turning

    def follow(self, orders: Orders) -> int | str | None:
        if "Turn column" in orders:
            column = _COLUMN_NUMBERS.index(orders["Turn column"][0])
            if self._whole[column]:
                return None
            if self._turning is None:
                self._turning = column
                self._columns[column] = [self.view["letters"][column]]
            return self.explore()
        if orders is self._sent:
            return None
        (word,) = orders["Spell"]
        for column, (letter, shown) in enumerate(zip(word.upper(), self.view["letters"], strict=True)):
            if letter != shown:
                letters = self._columns[column]
                if not self._whole[column]:
                    return 5 + column
                down = (letters.index(letter) - letters.index(shown)) % len(letters)
                return (5 if 2 * down <= len(letters) else 0) + column
        self._sent = orders
        return 10


HANDS: dict[str, type[Hands]] = {
    hands.shows: hands
    for hands in (
        *(_Wires, _Button, _Keypad, _Simon, _WhosOnFirst, _Memory),
        *(_Morse, _ComplicatedWires, _WireSequence, _Maze, _Password),
    )
}
