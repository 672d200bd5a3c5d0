"""What all modules share: how they are operated, what that does, and how they look."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

from rowproof.gptnt.bomb.edgework import Edgework
from rowproof.gptnt.bomb.prng import Stream

# A window of lamp samples: the last one is the present.
SAMPLES = 16
SAMPLE_MS = 250

PLACES = {
    **{"TL": "top left", "TR": "top right"},
    **{"ML": "middle left", "MR": "middle right"},
    **{"BL": "bottom left", "BR": "bottom right"},
}


class Moment(NamedTuple):
    """What a module may learn from the bomb when it is operated.

    Attributes:
        game_ms: game time in milliseconds.
        strikes: of the whole bomb.
        display: of the bomb's timer.
    """

    game_ms: int
    strikes: int
    display: str


class Effect(NamedTuple):
    """What an operation did to its module; ``refused`` tells why it did nothing at all, and is empty otherwise."""

    strike: bool = False
    solved: bool = False
    refused: str = ""


CHANGED = Effect()
STRIKE = Effect(strike=True)
SOLVED = Effect(solved=True)


def refuse(reason: str) -> Effect:
    """The effect of an operation that nothing comes of."""
    return Effect(refused=reason)


class Module:
    """One module as a state machine. Subclasses draw an instance, take presses, and tell what can be seen.

    Attributes:
        component: the id in missions.
        shows: what it looks like, without its name.
        needy: it never counts as solved and acts on its own.
        holdable: its one element can be held down.
        needs_frames: it has a lamp that must be watched for some time.
        edgework: of the bomb.
        run: the stream of draws made during play.
        solved: whether it is.
        struck: it caused a strike since the last look; its LED is red.
    """

    component: ClassVar[str]
    shows: ClassVar[str]
    needy: ClassVar[bool] = False
    holdable: ClassVar[bool] = False
    needs_frames: ClassVar[bool] = False
    __slots__ = ("edgework", "run", "solved", "struck")

    def __init__(self, edgework: Edgework, run: Stream) -> None:
        """Make a module that is not solved; subclasses take the instance as further arguments."""
        self.edgework = edgework
        self.run = run
        self.solved = False
        self.struck = False

    @classmethod
    def generate(cls, static: Stream, run: Stream, edgework: Edgework) -> Self:
        """Draw an instance from ``static``; what is drawn anew during play comes from ``run``."""
        raise NotImplementedError

    def elements(self) -> Sequence[str]:
        """A neutral description of everything that can be operated, in reading order; what is used up stays."""
        raise NotImplementedError

    def apply(self, operation: str, element: int, moment: Moment) -> Effect:
        """Operate an element.

        Args:
            operation: ``press``, ``hold`` (a press, unless the element is holdable) or ``release``.
            element: its index in :meth:`elements`; ``release`` does not mind it.
            moment: the present.
        """
        if self.solved:
            return refuse("the module is solved")
        if operation == "release":
            effect = self._release(moment)
        elif not 0 <= element < len(self.elements()):
            return refuse(f"the module has {len(self.elements())} elements, found index {element}")
        elif operation == "hold" and self.holdable:
            effect = self._hold(moment)
        else:
            effect = self._press(element, moment)
        if effect.solved:
            self.solved = True
        elif effect.strike:
            self.struck = True
        return effect

    def _press(self, element: int, moment: Moment) -> Effect:
        raise NotImplementedError

    def _hold(self, moment: Moment) -> Effect:
        raise NotImplementedError

    def _release(self, moment: Moment) -> Effect:
        return refuse("nothing is held down")

    def focus(self, game_ms: int) -> None:
        """Take note that the player zooms in."""

    def calm(self) -> None:
        """Put out the red lights of the last strike: they have been seen."""
        self.struck = False

    def view(self, game_ms: int, symbols: str) -> dict[str, Any]:
        """What can be seen from close by, as plain data; ``symbols`` tells how symbols are named."""
        raise NotImplementedError

    @staticmethod
    def describe(view: Mapping[str, Any], marks: Sequence[str]) -> list[str]:
        """:meth:`view` as text: the first entry ends a line, the others are lines.

        Args:
            view: what :meth:`view` gave.
            marks: the mark of each element.
        """
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """The full state in the fields of the benchmark's own log; never for a player."""
        raise NotImplementedError


def inline(marks: Sequence[str], elements: Sequence[str]) -> str:
    """Elements with their marks on one line."""
    return " ".join(f"[{mark}] {element}" for mark, element in zip(marks, elements, strict=True))
