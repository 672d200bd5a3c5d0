"""What the tables must be, whoever wrote them down."""

import itertools

import pytest
from gptnt.bomb.workbench import edgework
from rowproof.gptnt.bomb.rules import (
    big_button,
    keypad,
    maze,
    memory,
    morse,
    needy_knob,
    password,
    simon,
    venn,
    whos_on_first,
    wire_sequence,
    wires,
)


@pytest.mark.parametrize("number", maze.MAZES)
def test_every_maze_is_a_spanning_tree(number):
    cells = list(itertools.product(range(maze.SIZE), repeat=2))
    passages = [(cell, step) for cell in cells for step in "RD" if maze.move(cell, step)]
    open_passages = [(cell, step) for cell, step in passages if maze.wall_on(number, cell, step) is None]
    assert (len(passages), len(open_passages)) == (60, 35)
    # Connected and one passage fewer than cells: a tree.
    assert all(maze.path(number, (0, 0), cell) or cell == (0, 0) for cell in cells)
    assert (len(maze.MAZES[number].right), len(maze.MAZES[number].below)) == (6, 5)


def test_a_wall_is_the_same_from_both_sides():
    back = {"R": "L", "D": "U"}
    for number in maze.MAZES:
        for cell in itertools.product(range(maze.SIZE), repeat=2):
            for step in "RD":
                there = maze.move(cell, step)
                if there is not None:
                    assert maze.wall_on(number, cell, step) == maze.wall_on(number, there, back[step])


def test_one_circle_tells_the_maze():
    circles = [circle for grid in maze.MAZES.values() for circle in grid.circles]
    assert len(set(circles)) == len(circles) == 18
    with pytest.raises(ValueError, match="a circle must be one of a maze"):
        maze.maze_of((5, 5))


def test_four_symbols_tell_the_column():
    assert all(len(set(column)) == 7 for column in keypad.COLUMNS.values())
    assert {symbol for column in keypad.COLUMNS.values() for symbol in column} == set(keypad.SYMBOLS)
    for one, other in itertools.combinations(keypad.COLUMNS.values(), 2):
        assert len(set(one) & set(other)) <= 3
    looks = [symbol.looks for symbol in keypad.SYMBOLS.values()]
    assert len(set(looks)) == len({s.glyph for s in keypad.SYMBOLS.values()}) == 27
    with pytest.raises(ValueError, match="four symbols must share a column"):
        keypad.column_of({"TL": "omega", "TR": "star", "BL": "kai", "BR": "ot"})


def test_every_preference_list_orders_its_group():
    assert set(whos_on_first.PREFERENCES) == {word for group in whos_on_first.GROUPS for word in group}
    for group in whos_on_first.GROUPS:
        assert len(set(group)) == 14
        for label in group:
            assert sorted(whos_on_first.PREFERENCES[label]) == sorted(group)
    assert len(whos_on_first.READ_AT) == 28 and "" in whos_on_first.READ_AT


def test_memory_refers_to_earlier_stages_only():
    for stage, displays in memory.INSTRUCTIONS.items():
        assert sorted(displays) == [1, 2, 3, 4]
        for kind, number in displays.values():
            assert number < stage if kind.endswith("_of") else number <= 4


def test_simon_answers_never_coincide():
    for rows in simon.BUTTON_FOR.values():
        assert len(rows) == 3
        for row in rows:
            assert sorted(row) == sorted(row.values()) == sorted(simon.BUTTONS)
    assert simon.button_for("red", True, 2) == simon.button_for("red", True, 4) == "green"


def test_morse_words_differ_in_sound_and_frequency():
    words = list(morse.FREQUENCIES_KHZ)
    assert len({morse.code(word) for word in words}) == len(set(morse.FREQUENCIES_KHZ.values())) == 16
    assert list(morse.FREQUENCIES_KHZ.values()) == sorted(morse.FREQUENCIES_KHZ.values())
    assert [morse.word_of(morse.code(word)) for word in words] == words
    units = [len(morse.signal(word)) for word in words]
    assert (min(units), max(units)) == (42, 64)
    with pytest.raises(ValueError, match="must be in the Morse alphabet"):
        morse.word_of("... ........")


def test_passwords_are_35_words():
    assert len(set(password.WORDS)) == 35 and {len(word) for word in password.WORDS} == {5}


def test_venn_judges_every_combination():
    assert sorted(venn.LETTERS) == list(itertools.product((0, 1), repeat=4))
    assert set(venn.LETTERS.values()) == set(venn.CUT_WHEN)
    plain = edgework("AB1CD3")
    rich = edgework("AB1CD2", batteries=["AA"], ports=[["Parallel"]])
    assert venn.letters_to_cut(plain) == {"C"} and venn.letters_to_cut(rich) == {"C", "S", "P", "B"}
    for colour in ("red", "blue", "white"):
        for led, star in itertools.product((False, True), repeat=2):
            white_too = f"{colour}, white" if colour != "white" else "white"
            assert venn.must_cut(colour, led, star, rich) == venn.must_cut(white_too, led, star, rich)


def test_wire_sequences_have_nine_occurrences_per_colour():
    assert all(len(letters) == 9 for letters in wire_sequence.LETTERS_TO_CUT.values())
    assert [wire_sequence.panel_of(terminal) for terminal in (1, 3, 4, 12)] == [1, 1, 2, 4]


def test_knob_patterns_differ_and_turn_with_the_label():
    assert len({(p.upper, p.lower) for p in needy_knob.PATTERNS}) == 8
    assert [needy_knob.direction_for("right", up) for up in needy_knob.DIRECTIONS] == ["right", "down", "left", "up"]
    with pytest.raises(ValueError, match="must be one of eight patterns"):
        needy_knob.position_for("XXXXXX", "XXXXXX")


def test_a_black_button_matches_only_rules_without_colour():
    rich = edgework(batteries=["AA", "D"], indicators=[("FRK", True), ("CAR", True)])
    assert big_button.matching_rule("black", "Detonate", rich) == (2, "tap")
    assert big_button.matching_rule("black", "Press", rich) == (4, "tap")
    assert big_button.matching_rule("black", "Hold", edgework(indicators=[("CAR", True)])) == (7, "hold")


@pytest.mark.parametrize("count", [0, 2, 7])
def test_wires_come_in_three_to_six(count):
    with pytest.raises(ValueError, match=f"three to six wires, found {count}"):
        wires.wire_to_cut(["red"] * count, True)
