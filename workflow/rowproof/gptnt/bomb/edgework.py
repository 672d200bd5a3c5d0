"""What the four narrow sides of a bomb carry: serial number, batteries, indicators, port plates."""

from collections.abc import Sequence
from typing import NamedTuple

from rowproof.gptnt.bomb.prng import Stream

EDGES = ("top", "bottom", "left", "right")
WIDGETS_PER_EDGE = 3

# Never an O or a Y; E has two places, so it is drawn twice as often.
SERIAL_LETTERS = "ABCDEFGHIJKLMNEPQRSTUVWXZ"
SERIAL_CHARACTERS = SERIAL_LETTERS + "0123456789"
VOWELS = frozenset("AEIOU")

# Cells of a holder.
BATTERY_CELLS = {"D": 1, "AA": 2}
INDICATOR_LABELS = ("SND", "CLR", "CAR", "IND", "FRQ", "SIG", "NSA", "MSA", "TRN", "BOB", "FRK")
# An indicator is lit with probability 6/10, a port of the plate's group there with 1/2.
LIT_CHANCE = (6, 10)
PORT_CHANCE = (1, 2)
PLATE_GROUPS = (("Serial", "Parallel"), ("DVI-D", "PS/2", "RJ-45", "Stereo RCA"))


class SerialNumber(NamedTuple):
    """The label with six characters."""

    edge: str
    text: str


class Battery(NamedTuple):
    """A holder of one D cell or two AA cells."""

    edge: str
    type: str

    @property
    def cells(self) -> int:
        """How many cells it holds."""
        return BATTERY_CELLS[self.type]


class Indicator(NamedTuple):
    """A label of three letters with a lamp."""

    edge: str
    label: str
    lit: bool


class PortPlate(NamedTuple):
    """A plate with ports of one group; it may be empty."""

    edge: str
    ports: tuple[str, ...]


Widget = SerialNumber | Battery | Indicator | PortPlate


class Edgework:
    """All widgets of a bomb and what the rules ask about them; nothing of it ever changes.

    Attributes:
        widgets: in the order in which they were drawn.
        serial: the six characters of the serial number.
        last_digit_odd: whether the serial number ends in an odd digit.
        has_vowel: whether it holds a vowel.
        batteries: cells, not holders.
        has_parallel: whether some plate has a parallel port.
    """

    __slots__ = ("_lit", "batteries", "has_parallel", "has_vowel", "last_digit_odd", "serial", "widgets")

    def __init__(self, widgets: Sequence[Widget]) -> None:
        """Put up ``widgets``; exactly one of them is the serial number."""
        self.widgets = tuple(widgets)
        (self.serial,) = (w.text for w in widgets if isinstance(w, SerialNumber))
        self.last_digit_odd = int(self.serial[-1]) % 2 == 1
        self.has_vowel = not VOWELS.isdisjoint(self.serial)
        self.batteries = sum(w.cells for w in widgets if isinstance(w, Battery))
        self.has_parallel = any("Parallel" in w.ports for w in widgets if isinstance(w, PortPlate))
        self._lit = frozenset(w.label for w in widgets if isinstance(w, Indicator) and w.lit)

    def is_lit(self, label: str) -> bool:
        """Whether there is an indicator ``label`` and its lamp is on."""
        return label in self._lit


def generate(mission_key: str, optional_widgets: int) -> Edgework:
    """Draw the edgework of a mission: a serial number and ``optional_widgets`` others, at most three per side."""
    serial = Stream(mission_key, "serial")
    text = serial.pick(SERIAL_CHARACTERS) + serial.pick(SERIAL_CHARACTERS) + str(serial.below(10))
    text += serial.pick(SERIAL_LETTERS) + serial.pick(SERIAL_LETTERS) + str(serial.below(10))

    draws = Stream(mission_key, "widgets")
    room = dict.fromkeys(EDGES, WIDGETS_PER_EDGE)

    def choose_edge() -> str:
        edge = draws.pick([edge for edge in EDGES if room[edge]])
        room[edge] -= 1
        return edge

    widgets: list[Widget] = [SerialNumber(choose_edge(), text)]
    labels = list(INDICATOR_LABELS)
    for _ in range(optional_widgets):
        kind = draws.pick((Battery, Indicator, PortPlate))
        if kind is Battery:
            battery_type = draws.pick(("D", "AA"))
            widgets.append(Battery(choose_edge(), battery_type))
        elif kind is Indicator:
            label = draws.pick(labels)
            labels.remove(label)
            lit = draws.chance(*LIT_CHANCE)
            widgets.append(Indicator(choose_edge(), label, lit))
        else:
            group = draws.pick(PLATE_GROUPS)
            ports = tuple(port for port in group if draws.chance(*PORT_CHANCE))
            widgets.append(PortPlate(choose_edge(), ports))
    return Edgework(widgets)
