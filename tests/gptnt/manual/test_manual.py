"""The manual says what the rules of the bomb say: every table and every lookup is held against them."""

import itertools
import re
import shutil
import subprocess
import sys
from collections import Counter

import pytest
from gptnt.bomb.workbench import edgework
from helpers import ROOT
from rowproof.errors import ConfigError
from rowproof.gptnt.bomb import edgework as edge
from rowproof.gptnt.bomb.components import MODULES
from rowproof.gptnt.bomb.mission import NEEDY, SOLVABLE
from rowproof.gptnt.bomb.modules import needy
from rowproof.gptnt.bomb.modules.base import PLACES
from rowproof.gptnt.bomb.observation import PORT_LOOKS
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.bomb.rules import (
    big_button,
    keypad,
    maze,
    memory,
    morse,
    needy_capacitor,
    needy_knob,
    needy_vent_gas,
    password,
    simon,
    venn,
    whos_on_first,
    wire_sequence,
    wires,
)
from rowproof.gptnt.manual import MANUAL_FOLDER, PAGES, Edges, EdgesNeeded, Manual, _open, _symbol

MANUAL = Manual.read()
ODD, EVEN = "JR2ZR5", "893ZP6"
# Page of every module, as in the published prompt.
MODULE_PAGES = {
    **{"Wires": 5, "BigButton": 6, "Keypad": 7, "Simon": 8, "WhosOnFirst": 9, "Memory": 11, "Morse": 12, "Venn": 13},
    **{"WireSequence": 14, "Maze": 15, "Password": 16},
}


@pytest.fixture
def folder(tmp_path):
    """A copy of the manual to break."""
    return shutil.copytree(MANUAL_FOLDER, tmp_path / "manual")


def rewrite(folder, page, old, new):
    path = folder / f"page-{page:02d}.md"
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


# ---- pages -----------------------------------------------------------------------------------------------------


def test_the_pages_are_those_of_the_published_prompt():
    assert list(MANUAL.pages) == list(PAGES) == [3, *range(5, 17), 21, 22, 23]
    assert MANUAL.text().count("\n# ") == len(PAGES) - 1


NEEDY_TITLES = {"NeedyVentGas": (18, "Venting Gas"), "NeedyCapacitor": (19, "Capacitor Discharge")}
NEEDY_TITLES |= {"NeedyKnob": (20, "Knobs")}


def test_needy_modules_have_pages_that_no_expert_is_given():
    assert sorted(NEEDY_TITLES) == sorted(NEEDY) and list(MANUAL.needy_pages) == [17, 18, 19, 20]
    for component, (number, title) in NEEDY_TITLES.items():
        page = MANUAL.needy_pages[number]
        assert (page.title, page.looks) == (title, MODULES[component].shows)
        assert page not in MANUAL.search(page.text) and page.text not in MANUAL.text()
        with pytest.raises(ValueError, match="must look like one of the manual"):
            MANUAL.page_for(page.looks)
    assert MANUAL.needy_pages[17].looks is None


def test_every_module_has_a_page_that_is_found_by_its_looks():
    assert sorted(MODULE_PAGES) == sorted(SOLVABLE)
    for component, number in MODULE_PAGES.items():
        assert MANUAL.page_for(MODULES[component].shows).number == number
        assert MANUAL.pages[number].looks == MODULES[component].shows
    assert sum(page.looks is not None for page in MANUAL.pages.values()) == len(MODULE_PAGES)


@pytest.mark.parametrize("component", MODULE_PAGES)
def test_looks_are_found_with_a_word_missing(component):
    words = MODULES[component].shows.split()
    for missing in range(len(words)):
        looks = " ".join(words[:missing] + words[missing + 1 :])
        assert MANUAL.page_for(looks).number == MODULE_PAGES[component]


def test_unknown_looks_are_refused():
    with pytest.raises(ValueError, match="must look like one of the manual, found 'a purple folder'"):
        MANUAL.page_for("a purple folder")


def test_search_finds_pages_by_their_words():
    assert MANUAL.search("two green circles")[0].number == 15
    assert MANUAL.search("frequency lamp dot dash")[0].number == 12
    assert MANUAL.search("Parallel")[0].number == 13
    assert MANUAL.search("xylophone") == []


def test_the_index_names_every_other_page():
    named = [int(n) for row in MANUAL.tables["pages"] for n in row["page"].split(", ")]
    assert named == [number for number in PAGES if number != 3]


def test_no_page_names_a_symbol_as_the_code_does():
    for name in keypad.SYMBOLS:
        # The others are short words that occur anyway.
        if "-" in name:
            assert name not in MANUAL.text()


def test_the_digest_tells_a_changed_word(folder):
    assert Manual.read(folder).digest == MANUAL.digest
    rewrite(folder, 22, "Batteries sit", "The batteries sit")
    assert Manual.read(folder).digest != MANUAL.digest


def test_reading_the_manual_loads_nothing_of_the_bomb():
    code = "import sys, rowproof.gptnt.manual; print([m for m in sys.modules if m.startswith('rowproof.gptnt.bomb')])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "workflow", capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


# ---- tables against rules --------------------------------------------------------------------------------------


def test_needy_pages_say_what_the_rules_say():
    rows = MANUAL.tables["attention"]
    assert {int(row["page"]): row["topic"] for row in rows} == dict(NEEDY_TITLES.values())
    seconds = {int(row["page"]): int(row["seconds"]) for row in rows}
    for component, (number, _) in NEEDY_TITLES.items():
        assert 1000 * seconds[number] == MODULES[component].duration_ms
    rest = f"rests for {needy.MIN_REST_S} to {needy.MIN_REST_S + needy.REST_VALUES_S - 1} seconds"
    assert rest in MANUAL.needy_pages[17].text
    assert {row["question"]: row["press"] for row in MANUAL.tables["gas"]} == needy_vent_gas.KEY_FOR
    text = MANUAL.needy_pages[19].text
    assert f"{needy_capacitor.CAPACITY_MS // 1000} seconds after" in text
    assert f"takes off what {needy_capacitor.DISCHARGE_FACTOR} seconds" in text
    knobs = [
        (row["point the knob"], *(row[f"{end} row"].strip("`") for end in ("upper", "lower")))
        for row in MANUAL.tables["knobs"]
    ]
    assert knobs == list(needy_knob.PATTERNS)


def test_wires_agree_for_all_wires_there_can_be():
    for count in range(3, 7):
        for colours in itertools.product(wires.COLOURS, repeat=count):
            answers = [wires.wire_to_cut(colours, odd) for odd in (True, False)]
            assert MANUAL.wire_to_cut(colours, Edges(label=ODD)) == answers[0], colours
            assert MANUAL.wire_to_cut(colours, Edges(label=EVEN)) == answers[1], colours
            try:
                assert {MANUAL.wire_to_cut(colours, Edges())} == set(answers), colours
            except EdgesNeeded as needed:
                # The label may be asked for where it happens not to matter, never the other way round.
                assert needed.wanted == ("label",)


def test_the_button_agrees_for_all_buttons_and_edges():
    batteries = ((), ("D",), ("AA",), ("AA", "D"))
    for colour, word in itertools.product((*big_button.COLOURS, "black"), big_button.LABELS):
        for cells, car, frk in itertools.product(batteries, (None, False, True), (None, False, True)):
            lamps = [(label, lit) for label, lit in (("CAR", car), ("FRK", frk)) if lit is not None]
            there = edgework(batteries=cells, indicators=lamps)
            edges = Edges(batteries=there.batteries, indicators=frozenset(label for label, lit in lamps if lit))
            assert MANUAL.button_action(colour, word, edges) == big_button.matching_rule(colour, word, there)[1]


def test_the_strip_agrees():
    for colour in (*big_button.STRIP_COLOURS, "green"):
        assert MANUAL.release_digit(colour) == big_button.release_digit(colour)


def test_keypads_agree_for_all_keys_there_can_be():
    for column in keypad.COLUMNS.values():
        for symbols in itertools.permutations(column, 4):
            order = keypad.press_order(dict(zip(keypad.POSITIONS, symbols, strict=True)))
            expected = [keypad.POSITIONS.index(position) for position in order]
            assert MANUAL.key_order([keypad.SYMBOLS[name].looks for name in symbols]) == expected
    assert MANUAL.key_order([keypad.SYMBOLS[name].glyph for name in symbols]) == expected
    assert {(row["symbol"], row["looks like"]) for row in MANUAL.tables["symbols"]} == set(keypad.SYMBOLS.values())


def test_simon_says_agrees():
    for label, vowel in (("AB1CD2", True), ("JR2ZR5", False)):
        for strikes in range(5):
            buttons = MANUAL.simon_buttons(strikes, Edges(label=label))
            assert buttons == {flash: simon.button_for(flash, vowel, strikes) for flash in simon.COLOURS}


def test_whos_on_first_agrees():
    draws = Stream("manual", "words")
    places = [PLACES[position] for position in whos_on_first.POSITIONS]
    for display in whos_on_first.READ_AT:
        for group in whos_on_first.GROUPS:
            for _ in range(20):
                labels = draws.sample(group, 6)
                words = dict(zip(places, labels, strict=True))
                assert MANUAL.word_to_press(display, words) == whos_on_first.label_to_press(display, labels)
    second = {row["word"]: tuple(row["press the first of"].split(", ")) for row in MANUAL.tables["second step"]}
    assert second == {word: tuple(order) for word, order in whos_on_first.PREFERENCES.items()}


def test_memory_agrees():
    draws = Stream("manual", "memory")
    for _ in range(300):
        pressed = []
        for _ in range(memory.STAGES):
            display, labels = 1 + draws.below(4), draws.shuffle((1, 2, 3, 4))
            expected = memory.position_to_press(display, labels, pressed)
            history = [(position, str(label)) for position, label in pressed]
            assert MANUAL.memory_position(str(display), list(map(str, labels)), history) == expected
            pressed.append((expected, labels[expected - 1]))
    asked = Counter(cell for row in MANUAL.tables["memory"] for head, cell in row.items() if head != "stage")
    assert sum(asked.values()) == 20


def test_morse_code_agrees():
    for word, khz in morse.FREQUENCIES_KHZ.items():
        assert MANUAL.frequency(morse.code(word).split()) == f"{khz / 1000:.3f}"
    assert {row["letter"]: row["signal"].strip("`") for row in MANUAL.tables["alphabet"]} == morse.ALPHABET
    assert [row["word"] for row in MANUAL.tables["frequencies"]] == list(morse.FREQUENCIES_KHZ)


def test_complicated_wires_agree():
    looks = MANUAL.port_looks("Parallel")
    for label, cells, parallel in itertools.product((ODD, EVEN), ((), ("D",), ("AA",)), (True, False)):
        there = edgework(label, cells, ports=[["Parallel"]] if parallel else [["Serial"]])
        edges = Edges(label, there.batteries, frozenset(), frozenset([looks] if parallel else [PORT_LOOKS["Serial"]]))
        for colour, lamp, star in itertools.product(venn.COLOURS, (True, False), (True, False)):
            cut = MANUAL.complicated_wires_to_cut([(colour.split(", "), lamp, star)], edges)
            assert cut == venn.wires_to_cut([(colour, lamp, star)], there)


def test_wire_sequences_agree():
    draws = Stream("manual", "sequences")
    for colour in wire_sequence.COLOURS:
        for letter in wire_sequence.LETTERS:
            seen = [(number, colour, letter) for number in range(1, 10)]
            cut = wire_sequence.terminals_to_cut(seen)
            assert MANUAL.sequence_wires_to_cut([w[1:] for w in seen]) == [number in cut for number, *_ in seen]
    for _ in range(100):
        seen = [(n, draws.pick(wire_sequence.COLOURS), draws.pick(wire_sequence.LETTERS)) for n in range(1, 10)]
        cut = wire_sequence.terminals_to_cut(seen)
        assert MANUAL.sequence_wires_to_cut([w[1:] for w in seen]) == [number in cut for number, *_ in seen]


@pytest.mark.parametrize("number", maze.MAZES)
def test_mazes_are_drawn_as_they_are(number):
    lines = MANUAL.drawings[f"maze {number}"]
    steps = {"U": "up", "L": "left", "R": "right", "D": "down"}
    for row, column in itertools.product(range(maze.SIZE), repeat=2):
        circle = (row, column) in maze.MAZES[number].circles
        assert _symbol(lines, (row + 1, column + 1)) == ("o" if circle else ".")
        for letter, step in steps.items():
            free = maze.move((row, column), letter) and maze.wall_on(number, (row, column), letter) is None
            assert _open(lines, (row + 1, column + 1), step) is bool(free)
    draws = Stream("manual", f"maze {number}")
    for circle in maze.MAZES[number].circles:
        start, goal = divmod(draws.below(36), 6), divmod(draws.below(36), 6)
        one_based = [(row + 1, column + 1) for row, column in (circle, start, goal)]
        assert MANUAL.maze_way(*one_based) == [steps[letter] for letter in maze.path(number, start, goal)]
    assert [line.rstrip() for line in lines] == lines and len(lines) == 14


def test_passwords_agree():
    assert MANUAL.words_possible([None] * 5) == list(password.WORDS)
    columns = ["PCXQZJ", "CLXQZJ", "VAXQZJ", "NXQZJK", "KTXQZJ"]
    assert MANUAL.words_possible(columns) == password.words_possible(columns) == ["plant"]
    assert MANUAL.words_possible(["P", None, None, None, None]) == ["place", "plant", "point"]


def test_appendices_agree():
    assert tuple(row["letters"] for row in MANUAL.tables["indicators"]) == edge.INDICATOR_LABELS
    assert {row["port"]: row["looks like"] for row in MANUAL.tables["ports"]} == PORT_LOOKS
    cells = {re.search(r"\((\w+)\)", row["holder"])[1]: int(row["cells"]) for row in MANUAL.tables["batteries"]}
    assert cells == edge.BATTERY_CELLS


# ---- what is not known -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "wanted"),
    [
        (lambda edges: MANUAL.wire_to_cut(["red", "red", "blue", "blue"], edges), ("label",)),
        (lambda edges: MANUAL.button_action("red", "Detonate", edges), ("batteries", "indicators")),
        (lambda edges: MANUAL.simon_buttons(0, edges), ("label",)),
        (
            lambda edges: MANUAL.complicated_wires_to_cut([(["red"], False, False), (["red"], True, True)], edges),
            ("batteries", "label"),
        ),
        (lambda edges: MANUAL.complicated_wires_to_cut([(["blue"], True, True)], edges), ("ports",)),
    ],
)
def test_a_rule_asks_for_what_it_needs_of_the_edges(ask, wanted):
    with pytest.raises(EdgesNeeded) as needed:
        ask(Edges())
    assert needed.value.wanted == wanted
    ask(Edges(EVEN, 2, frozenset(), frozenset()))


@pytest.mark.parametrize(
    "ask",
    [
        lambda: MANUAL.wire_to_cut(["red"] * 7, Edges()),
        lambda: MANUAL.wire_to_cut(["red", "red", "red", "blue", "black"], Edges(label="AB1CDE")),
        lambda: MANUAL.key_order(["a trident", "a dog", "a cat", "a bird"]),
        lambda: MANUAL.simon_buttons(-1, Edges(label=ODD)),
        lambda: MANUAL.word_to_press("YOU", {"top left": "YES"}),
        lambda: MANUAL.word_to_press("HELLO", {"top left": "YES"}),
        lambda: MANUAL.memory_position("5", list("1234"), []),
        lambda: MANUAL.memory_position("1", list("1111"), [(1, "1")]),
        lambda: MANUAL.memory_position("1", list("1234"), [(1, "1")] * 5),
        lambda: MANUAL.frequency(["...", "---"]),
        lambda: MANUAL.sequence_wires_to_cut([("green", "A")]),
        lambda: MANUAL.sequence_wires_to_cut([("red", "A")] * 10),
        lambda: MANUAL.maze_way((1, 2), (1, 1), (7, 1)),
        lambda: MANUAL.maze_way((6, 6), (1, 1), (2, 2)),
    ],
)
def test_what_the_manual_does_not_know_is_refused(ask):
    with pytest.raises(ValueError):
        ask()


# ---- broken manuals --------------------------------------------------------------------------------------------


def test_a_rule_that_drifts_is_noticed(folder):
    rewrite(folder, 16, "plant", "plane")
    assert Manual.read(folder).words_possible([None] * 5) != list(password.WORDS)
    rewrite(folder, 5, "| 5     | no black wire ", "| 5     | no white wire ")
    drifted = Manual.read(folder)
    assert drifted.wire_to_cut(["blue"] * 4 + ["white"], Edges(label=EVEN)) != wires.wire_to_cut(
        ["blue"] * 4 + ["white"], False
    )


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "page-08.md").unlink(), "must hold the pages"),
        (lambda f: (f / "page-04.md").write_text("# 4. Modules\n"), "must hold the pages"),
        (lambda f: shutil.rmtree(f), "must hold the pages"),
        (lambda f: (f / "page-22.md").write_bytes(b"# 22. \xff"), "page-22.md: must be a readable page in UTF-8"),
        (lambda f: rewrite(f, 22, "# 22.", "# 21."), "must begin with '# 22. <title>'"),
        (lambda f: rewrite(f, 22, "## batteries", "## indicators"), "a heading must be unique"),
        (lambda f: rewrite(f, 6, "| any other | ", "| any other | 2 | "), "rows of equal length"),
        (lambda f: rewrite(f, 21, "## indicators", "## lamps\n\nnone\n\n## indicators"), "rows of equal length"),
    ],
)
def test_a_broken_manual_is_refused(folder, damage, message):
    damage(folder)
    with pytest.raises(ConfigError, match=re.escape(message)):
        Manual.read(folder)


def test_a_condition_in_other_words_is_refused(folder):
    rewrite(folder, 5, "the last wire is white", "white comes last")
    with pytest.raises(ConfigError, match="a condition must be made of"):
        Manual.read(folder).wire_to_cut(["red"] * 3, Edges())
