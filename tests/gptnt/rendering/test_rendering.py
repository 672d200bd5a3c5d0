"""Pictures: what shows can be told apart, what is hidden cannot, and marks stand on their elements."""

import copy
import itertools
import json
import struct

import numpy as np
import pytest
from gptnt.bomb.workbench import bench, edgework, press, run_stream, spare_wires, zoomed
from gptnt.rendering.workbench import close, distance, module, pixels, with_view
from rowproof.gptnt.bomb.bomb import Bomb, Slot
from rowproof.gptnt.bomb.components import MODULES
from rowproof.gptnt.bomb.edgework import (
    BATTERY_CELLS,
    INDICATOR_LABELS,
    PLATE_GROUPS,
    Battery,
    Edgework,
    Indicator,
    PortPlate,
    SerialNumber,
)
from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.bomb.modules.big_button import BigButton
from rowproof.gptnt.bomb.modules.maze import Maze
from rowproof.gptnt.bomb.modules.memory import Memory
from rowproof.gptnt.bomb.modules.morse import Morse
from rowproof.gptnt.bomb.modules.password import Password
from rowproof.gptnt.bomb.modules.simon import Simon
from rowproof.gptnt.bomb.modules.wire_sequence import Wire, WireSequence
from rowproof.gptnt.bomb.modules.wires import Wires
from rowproof.gptnt.bomb.observation import look, observe
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.bomb.rules import big_button, keypad, needy_knob, venn, whos_on_first
from rowproof.gptnt.rendering import (
    LETTERS,
    SCALE,
    Pen,
    Scene,
    choose_marks,
    draw_symbol,
    masks,
    render,
    render_frames,
    render_marks,
)

EDGE = edgework()
# A change that fewer pixels show cannot be seen by a person.
VISIBLE_PIXELS = 12


def sides():
    """A bomb, seen from each of its sides."""
    bomb = bench(module("Maze"), module("Simon"), module("NeedyKnob"))
    seen = {}
    for action in ("rotate_right", "rotate_right", "rotate_right", "roll_up", "roll_down", "roll_down", "zoom_out"):
        seen[bomb.side] = look(bomb, 1)
        bomb.act(action)
    assert set(seen) == {"front", "right", "back", "left", "bottom", "top"}
    return list(seen.values())


def nearest(observations):
    """Pixels in which the two most similar of all pictures differ, at half the usual size."""
    pictures = [pixels(render(seen, (320, 240))) for seen in observations]
    return min(int((np.abs(one - other).max(axis=2) > 40).sum()) for one, other in itertools.combinations(pictures, 2))


def innards(module):
    """All that a module holds, also what does not show."""
    names = sorted(name for kind in type(module).__mro__ for name in getattr(kind, "__slots__", ()))
    values = {name: getattr(module, name) for name in names}
    return repr({**values, "run": module.run.state, "edgework": module.edgework.widgets})


def on_top(*widgets):
    """The top of a bomb with these widgets there; the serial number is elsewhere."""
    edge = Edgework([SerialNumber("left", "AB1CD2"), *widgets])
    wires = spare_wires(edge)
    bomb = Bomb(Mission(1, 300, ("Wires",), 0), edge, Slot("front", 0), [wires], [Slot("front", 1)])
    bomb.act("roll_down")
    return look(bomb, 1)


# ---- bytes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(640, 480), (300, 500), (1024, 768)])
def test_a_picture_has_the_wanted_size_and_no_metadata(size):
    data = render(close("Venn"), size)
    assert struct.unpack(">II", data[16:24]) == size
    chunks, place = [], 8
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        chunks.append(data[place + 4 : place + 8])
        place += 12 + length
    assert set(chunks) == {b"IHDR", b"IDAT", b"IEND"}


@pytest.mark.parametrize("component", MODULES)
def test_bytes_depend_on_the_observation_alone(component):
    seen = close(component, game_ms=70_000)
    first = render(seen), render_marks(seen)
    render_marks(close("Password"))
    again = json.loads(json.dumps(seen))
    assert (render(again), render_marks(again)) == first
    assert seen == again, "drawing must not change an observation"


def test_every_side_looks_different():
    assert nearest(sides()) > VISIBLE_PIXELS


def test_the_number_of_the_turn_does_not_show():
    seen = close("Wires")
    assert render({**seen, "turn": 99}) == render(seen)


# ---- nothing hidden --------------------------------------------------------------------------------------------


def _password(goal, columns):
    return Password(EDGE, run_stream(), goal, columns)


TWINS = {
    "letters behind those that show": (
        lambda: _password("about", ("ABCDEF", "BCDEFG", "OCDEFG", "UCDEFG", "XTDEFG")),
        lambda: _password("after", ("AXYZQW", "BFYZQW", "OTYZQW", "UEYZQW", "XRYZQW")),
    ),
    "word that was not sent yet": (
        lambda: Morse(EDGE, run_stream(), "shell"),
        lambda: Morse(EDGE, run_stream(), "halls"),
    ),
    "later flashes": (
        lambda: Simon(EDGE, run_stream(), ("red", "blue", "green")),
        lambda: Simon(EDGE, run_stream(), ("red", "yellow", "red", "red", "red")),
    ),
    "wires of later panels": (
        lambda: WireSequence(EDGE, run_stream(), [Wire(1, "red", "A"), Wire(4, "blue", "C")]),
        lambda: WireSequence(EDGE, run_stream(), [Wire(1, "red", "A"), Wire(5, "black", "B"), Wire(9, "red", "A")]),
    ),
    "draws of later stages": (lambda: _memory("1"), lambda: _memory("2")),
    "colour of the next hold": (
        lambda: BigButton(EDGE, Stream("1", "run"), "red", "Hold"),
        lambda: BigButton(EDGE, Stream("3", "run"), "red", "Hold"),
    ),
    "edgework on the sides": (
        lambda: Wires(edgework("AB1CD2"), run_stream(), (0, 1, 2), ("red", "blue", "red")),
        lambda: Wires(edgework("XE9ZZ9", ("AA",)), run_stream(), (0, 1, 2), ("red", "blue", "red")),
    ),
}


def _memory(key):
    memory = Memory(EDGE, Stream(key, "run"))
    memory.display, memory.labels = 3, [2, 1, 4, 3]
    return memory


@pytest.mark.parametrize("name", TWINS)
def test_what_is_hidden_changes_no_picture(name):
    one, other = (zoomed(make(), spare_wires(EDGE)) for make in TWINS[name])
    assert innards(one.modules[0]) != innards(other.modules[0])
    seen, twin = look(one, 1), look(other, 1)
    assert render(seen) == render(twin)
    assert render_marks(seen) == render_marks(twin)


@pytest.mark.parametrize("component", MODULES)
def test_from_afar_no_instance_shows(component):
    one, other = bench(module(component, 1)), bench(module(component, 2))
    assert render_marks(look(one, 1)) == render_marks(look(other, 1))


def test_all_kinds_can_be_told_apart_from_afar():
    assert nearest(look(bench(module(component)), 1) for component in MODULES) > VISIBLE_PIXELS


# ---- what shows ------------------------------------------------------------------------------------------------


def _wire(**changes):
    wire = {"row": 1, "colour": "red", "cut": False} | changes
    return with_view(close("Wires"), wires=[wire])


def _venn_wire(**changes):
    wire = {"column": 1, "colours": ["red"], "lamp": "off", "star": False, "cut": False} | changes
    return with_view(close("Venn"), wires=[wire])


def _sequence_wire(**changes):
    wire = {"from": 1, "to": "A", "colour": "red", "cut": False} | changes
    return with_view(close("WireSequence"), wires=[wire])


def _key(**changes):
    seen = close("Keypad")
    keys = copy.deepcopy(seen["module"]["keys"])
    keys[0] |= changes
    return with_view(seen, keys=keys)


def _label(text):
    bomb = bench(spare_wires(edgework(text)))
    bomb.act("roll_down")
    return look(bomb, 1)


def _variants():
    button, simon, words, memory = close("BigButton"), close("Simon"), close("WhosOnFirst"), close("Memory")
    morse, maze, letters, sequence = close("Morse"), close("Maze"), close("Password"), close("WireSequence")
    gas, capacitor, knob = (close(f"Needy{name}", game_ms=70_000) for name in ("VentGas", "Capacitor", "Knob"))
    wires = close("Wires")
    cells = [[row, column] for row in range(1, 7) for column in range(1, 7)]
    return {
        "wire rows": [_wire(row=row) for row in range(1, 7)],
        "wire colours": [_wire(colour=colour) for colour in ("black", "blue", "red", "white", "yellow")],
        "wire cut": [_wire(cut=cut) for cut in (False, True)],
        "button colour": [with_view(button, button_colour=colour) for colour in (*big_button.COLOURS, "black")],
        "button text": [with_view(button, button_text=label) for label in big_button.LABELS],
        "strip": [with_view(button, strip=colour) for colour in ("dark", *big_button.STRIP_COLOURS)],
        "symbols": [_key(symbol=symbol.looks) for symbol in keypad.SYMBOLS.values()],
        "key light": [_key(light=light) for light in ("off", "green", "red")],
        "flash": [with_view(simon, flashes="." * 15 + flash) for flash in "RBGY."],
        "display word": [with_view(words, display=word) for word in whos_on_first.READ_AT],
        "button words": [
            with_view(words, buttons=[word] * 6) for word in {*whos_on_first.GROUPS[0], *whos_on_first.GROUPS[1]}
        ],
        "three stage lights": [with_view(words, lights=lights) for lights in range(4)],
        "digit": [with_view(memory, display=digit) for digit in range(1, 5)],
        "digits": [with_view(memory, buttons=list(digits)) for digits in itertools.permutations((1, 2, 3, 4))],
        "five stage lights": [with_view(memory, lights=lights) for lights in range(6)],
        "lamp": [with_view(morse, lamp="." * 15 + lamp) for lamp in "#."],
        "frequency": [with_view(morse, frequency=frequency) for frequency in ("3.505", "3.515", "3.555", "3.600")],
        "venn columns": [_venn_wire(column=column) for column in range(1, 7)],
        "venn colours": [_venn_wire(colours=colours.split(", ")) for colours in venn.COLOURS],
        "venn lamp, star and cut": [
            _venn_wire(lamp=lamp, star=star, cut=cut) for lamp in ("on", "off") for star in (0, 1) for cut in (0, 1)
        ],
        "sequence ends": [_sequence_wire(**{"from": n, "to": to}) for n in (1, 2, 3) for to in "ABC"],
        "sequence colours": [_sequence_wire(colour=colour) for colour in ("red", "blue", "black")],
        "sequence cut": [_sequence_wire(cut=cut) for cut in (False, True)],
        "panels": [with_view(sequence, panel=panel, wires=[], lights=panel - 1) for panel in range(1, 6)],
        "white square": [with_view(maze, white_square=cell) for cell in cells],
        "red triangle": [with_view(maze, red_triangle=cell) for cell in cells],
        "circles": [with_view(maze, circles=[cell, [1, 1]]) for cell in cells[1:]],
        "red walls": [with_view(maze, red_walls=[[3, 3, side]] * n) for n in (0, 1) for side in ("right", "below")][1:],
        "letters": [with_view(letters, letters="ABCD" + letter) for letter in LETTERS],
        "question": [with_view(gas, screen=text) for text in ("", "VENT GAS?", "DETONATE?", "GAS MUST BE VENTED")],
        "countdown": [with_view(gas, seconds=seconds) for seconds in (None, *range(0, 46, 5), 44)],
        "bar": [with_view(capacitor, bar_percent=percent) for percent in range(0, 101, 5)],
        "lever": [{**capacitor, "holding": holding} for holding in (False, True)],
        "pointer": [with_view(knob, knob_points=direction) for direction in needy_knob.DIRECTIONS],
        "word UP": [with_view(knob, up_label_points=direction) for direction in needy_knob.DIRECTIONS],
        "lamps": [with_view(knob, lamps=[p.upper, p.lower]) for p in needy_knob.PATTERNS],
        "status light": [with_view(wires, led=led) for led in ("off", "green", "red")],
        "timer": [
            {**wires, "timer": {"display": display, "strike_lights": 0, "strike_indicator": True}}
            for display in ("05:00", "04:59", "59.99", "00.00", "12:34", "56.78")
        ],
        "strikes": [
            {**wires, "timer": {"display": "01:00", "strike_lights": lights, "strike_indicator": True}}
            for lights in range(5)
        ],
        "no timer and no strike indicator": [
            {**wires, "timer": timer}
            for timer in (None, *({"display": "01:00", "strike_lights": 0, "strike_indicator": i} for i in (0, 1)))
        ],
        "serial number": [_label(text) for text in ("AB1CD2", "AB1CD3", "8B1CD2")],
        "batteries": [on_top(*[Battery("top", kind)] * n) for kind in BATTERY_CELLS for n in (1, 2, 3)],
        "indicators": [on_top(Indicator("top", label, lit)) for label in INDICATOR_LABELS for lit in (True, False)],
        "ports": [
            on_top(PortPlate("top", ports))
            for ports in ((), *((port,) for group in PLATE_GROUPS for port in group), *PLATE_GROUPS)
        ],
    }


VARIANTS = _variants()


@pytest.mark.parametrize("name", VARIANTS)
def test_what_shows_can_be_told_apart(name):
    assert nearest(VARIANTS[name]) > VISIBLE_PIXELS


def test_the_red_lights_of_a_strike_are_seen_once():
    bomb = zoomed(Wires(edgework("893ZP6"), run_stream(), (0, 3, 4), ("red", "red", "white")), spare_wires(EDGE))
    press(bomb, 0)
    struck, calm = render(observe(bomb, 1)), render(observe(bomb, 2))
    assert distance(struck, calm) > VISIBLE_PIXELS


@pytest.mark.parametrize("rendering", ["looks", "glyph", "name"])
def test_symbols_are_drawn_whatever_they_are_called(rendering):
    bomb = zoomed(module("Keypad"), spare_wires(EDGE))
    assert render(look(bomb, 1, symbols=rendering)) == render(look(bomb, 1))


@pytest.mark.parametrize("symbol", keypad.SYMBOLS)
def test_a_symbol_fills_its_square_and_stays_inside(symbol):
    scene = Scene((120, 120), "#ffffff")
    draw_symbol(Pen(scene, 10 * SCALE, 10 * SCALE, SCALE), symbol, "#000000")
    dark = np.argwhere(np.asarray(scene.image.convert("L")) < 128) / SCALE
    low, high = dark.min(axis=0), dark.max(axis=0)
    assert (low >= 4).all() and (high <= 116).all()
    assert (high - low).max() >= 80


# ---- marks -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("component", MODULES)
@pytest.mark.parametrize("size", [(640, 480), (350, 600)])
def test_every_mark_stands_on_its_element_alone(component, size):
    seen = close(component)
    found = masks(seen, size)
    assert list(found) == list(seen["marks"])
    plain, marked = pixels(render(seen, size)), pixels(render_marks(seen, size))
    changed = np.abs(plain - marked).max(axis=2) > 60
    for letter, mask in found.items():
        assert mask.shape == size[::-1] and mask.any()
        assert (changed & mask).any(), f"no mark on element {letter}"


def test_marks_of_crossing_wires_are_those_of_their_left_ends():
    wires = [Wire(1, "red", "C"), Wire(2, "blue", "B"), Wire(3, "black", "A")]
    seen = look(zoomed(WireSequence(EDGE, run_stream(), wires), spare_wires(EDGE)), 1)
    found = masks(seen)
    assert list(seen["marks"].values()) == ["up", "wire from 1", "wire from 2", "wire from 3", "down"]
    left = [np.argwhere(found[mark][:, :300]).mean(axis=0)[0] for mark in "ABCDE"]
    assert left == sorted(left)


def test_the_mask_of_an_element_lies_where_its_mark_says():
    found = masks(look(zoomed(Maze(EDGE, run_stream(), 1, (0, 0), (5, 5)), spare_wires(EDGE)), 1))
    up, left, right, down = (np.argwhere(found[mark]).mean(axis=0) for mark in "ABCD")
    assert up[0] < left[0] < down[0] and left[1] < up[1] < right[1]
    assert not sum(mask.astype(int) for mask in found.values()).max() > 1


def test_a_narrow_side_has_no_marks():
    seen = on_top(Battery("top", "AA"))
    assert masks(seen) == {} and render_marks(seen) == render(seen)


@pytest.mark.parametrize("marks", [{}, {"B": "button"}, {"A": "button", "B": "ghost"}])
def test_marks_that_are_not_those_in_view_are_refused(marks):
    with pytest.raises(ValueError, match=r"marks must be those of the elements in view \['A'\]"):
        render_marks({**close("BigButton"), "marks": marks})


@pytest.mark.parametrize("count", range(0, 30, 7))
def test_marks_are_letters_in_order(count):
    assert choose_marks([5.0] * count) == dict(enumerate(LETTERS[:count]))


# ---- frames ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("component", "game_ms"), [("Morse", 4000), ("Simon", 2000)])
def test_a_blinking_module_has_a_frame_per_sample(component, game_ms):
    seen = close(component, game_ms=game_ms)
    frames = render_frames(seen, 16)
    samples = seen["module"]["lamp" if component == "Morse" else "flashes"]
    assert len(frames) == 16 and frames[-1] == render_marks(seen)
    for one, other in itertools.pairwise(range(15)):
        assert (frames[one] == frames[other]) == (samples[one] == samples[other])
    assert render_frames(seen, 4) == frames[-4:]
    assert render_frames(seen, 1, marks=False) == [render(seen)]


def test_other_views_have_one_frame():
    seen = close("Wires")
    assert render_frames(seen, 16, (320, 240)) == [render_marks(seen, (320, 240))]
