"""Comparers and slices, on answers written by hand."""

import numpy as np
import pytest
from rowproof.gptnt.bomb.rules.keypad import SYMBOLS
from rowproof.gptnt.statics.scoring import (
    MORE_NEEDED,
    NO_TARGET,
    Point,
    Scored,
    absolute_distance,
    coordinate_comparers,
    coordinate_format,
    equal_texts,
    euclidean_distance,
    in_region,
    postprocess,
    postprocess_ocr,
    read_point,
    score,
    symbol_names,
    text_comparers,
)

# Six wide and four high: width and height cannot be taken for each other.
SIZE = (6, 4)
MASK = np.zeros((4, 6), bool)
MASK[1, 2:5] = True
DIAGONAL = float(np.hypot(4, 6))


# ---- texts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [("  A ", "a"), ("```json\nB\n```", "b"), ("```\nYes\n```", "yes"), ("More Information", "more information")],
)
def test_postprocessing(text, expected):
    assert postprocess(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("YES, OKAY,<br>WHAT?", "yes okay what?"),
        ("**3.505** MHz", "3.505 mhz"),
        ("1.5 and 3.5055", "15 and 35055"),
        ("* ★ *", "★"),
        ("a\n\n b\t c", "a b c"),
        ("Why? You're", "why youre"),
        ("more than 1", "more than 1"),
    ],
)
def test_postprocessing_of_page_texts(text, expected):
    assert postprocess_ocr(text) == expected


def test_any_of_several_truths_will_do():
    assert equal_texts("Blue", ("red", "BLUE")) == 1.0
    assert equal_texts("green", ("red", "BLUE")) == 0.0


def test_a_frequency_needs_no_unit():
    assert equal_texts("3.505", "3.505 MHz", "morse") == equal_texts("3.505 MHZ", "3.505", "morse") == 1.0
    assert equal_texts("3.505", "3.505 MHz", "wires") == 0.0


def test_a_symbol_may_be_described_where_the_task_allows_it():
    look = SYMBOLS["psi"].looks
    for answer in ("psi", "Trident", look, "Ψ"):
        assert equal_texts(answer, "psi", "keypad", names_of_symbols=True) == 1.0
    assert equal_texts("trident", "psi", "keypad") == 0.0
    assert equal_texts("trident", "omega", "keypad", names_of_symbols=True) == 0.0
    assert equal_texts("trident", "psi", "wires", names_of_symbols=True) == 0.0


def test_every_symbol_has_names_that_no_other_has():
    names = [postprocess(name) for symbol in SYMBOLS for name in symbol_names(symbol)]
    assert len(names) == len(set(names)) >= 3 * len(SYMBOLS)


@pytest.mark.parametrize("symbol", ["egyptian-kai", "thousand-sign", "big-yus", "zeta"])
def test_symbols_without_a_list_are_known_by_their_ids_alone(symbol):
    assert symbol_names(symbol) == ()
    assert equal_texts(symbol, symbol, "keypad", names_of_symbols=True) == 1.0


# ---- points ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ['{"x": 3, "y": 2}', "```json\n{'x': 3, 'y': 2,}\n```", "x=3 y=2", '{"x": "3", "y": "2"', '{"y": 2, "x": 3}'],
)
def test_a_point_is_read_through_damage(text):
    assert read_point(text, SIZE, "absolute") == Point(3, 2)


@pytest.mark.parametrize(
    "text",
    [
        *("", "A", '{"x": 3}', '{"y": 2}', '{"x": 3.5, "y": 2}', '{"x": null, "y": 2}', '{"x": 1e3, "y": 2}'),
        *('{"x": 3, "y": 2} or {"x": 4, "y": 2}', '{"x": 99999999999999, "y": 2}', "max 3, my 2"),
        '{"x": true, "y": 2}',
    ],
)
@pytest.mark.parametrize("mode", ["absolute", "normalised"])
def test_what_holds_no_whole_point_is_no_point(text, mode):
    assert read_point(text, SIZE, mode) is None
    assert coordinate_format(text, MASK, mode) == "invalid_format"
    assert in_region(text, MASK, mode) == 0.0
    assert euclidean_distance(text, MASK, mode) == 1.0
    assert absolute_distance(text, MASK, mode, SIZE) == 10.0


def test_normalised_points_are_truncated_to_pixels():
    assert read_point('{"x": 500, "y": 500}', (5, 3), "normalised") == Point(2, 1)
    assert read_point('{"x": 1000, "y": 0}', SIZE, "normalised") == Point(6, 0)


@pytest.mark.parametrize(
    ("point", "kind", "hit", "steps"),
    [
        ((2, 1), "valid_format", 1.0, 0),
        ((1, 2), "valid_format", 0.0, 2),
        ((5, 3), "valid_format", 0.0, 3),
        ((6, 4), "valid_format", 0.0, 5),
        ((7, 1), "out_of_bounds", 0.0, None),
        ((2, 5), "out_of_bounds", 0.0, None),
        ((-1, 1), "out_of_bounds", 0.0, None),
    ],
)
def test_points_against_a_region(point, kind, hit, steps):
    text = f'{{"x": {point[0]}, "y": {point[1]}}}'
    assert coordinate_format(text, MASK, "absolute") == kind
    assert in_region(text, MASK, "absolute") == hit
    assert absolute_distance(text, MASK, "absolute", SIZE) == (10 if steps is None else steps)
    nearest = min(np.hypot(x - point[0], 1 - point[1]) for x in (2, 3, 4))
    assert euclidean_distance(text, MASK, "absolute") == pytest.approx(1.0 if steps is None else nearest / DIAGONAL)


def test_the_far_edge_counts_as_the_last_pixel():
    mask = np.zeros((4, 6), bool)
    mask[3, 5] = True
    assert in_region('{"x": 6, "y": 4}', mask, "absolute") == 1.0


@pytest.mark.parametrize("truth", [MORE_NEEDED, NO_TARGET])
def test_trick_answers(truth):
    other = NO_TARGET if truth == MORE_NEEDED else MORE_NEEDED
    assert in_region(truth.upper(), truth, "absolute") == 1.0
    assert in_region(other, truth, "absolute") == 0.0
    assert euclidean_distance(truth, truth, "absolute") == 0.0
    assert euclidean_distance(other, truth, "absolute") == 1.0
    assert absolute_distance(truth, truth, "absolute", SIZE) == 0.0
    assert absolute_distance(other, truth, "absolute", SIZE) == 10.0
    assert coordinate_format(other, truth, "absolute") == "valid_format"
    assert coordinate_format('{"x": 1, "y": 1}', truth, "absolute") == "invalid_format"


def test_a_region_without_pixels_is_refused():
    with pytest.raises(ValueError, match="must hold a pixel"):
        euclidean_distance('{"x": 1, "y": 1}', np.zeros((4, 6), bool), "absolute")


# ---- slices ----------------------------------------------------------------------------------------------------

ROWS = [
    Scored("A", "A", ["module=wires", "question_type=count", "detect=element"]),
    Scored("B", "A", ["module=wires", "question_type=colour"]),
    Scored("B", "B", ["module=maze", "question_type=colour"]),
    Scored("None", "None", ["module=maze", "detect=element", "hallucination_type=type_b"]),
    Scored("A", "None", ["module=wires", "detect=element", "hallucination_type=type_b"]),
    Scored("C", "C", ["module=wires", "hallucination_type=other"]),
]


def test_trick_questions_count_in_their_own_slice_alone():
    assert score(ROWS, text_comparers()) == {
        "detect": {"element.module.wires": 1.0, "element.total": 1.0},
        "hallucination_type": {
            **{"other.module.wires": 1.0, "other.total": 1.0},
            **{"type_b.module.maze": 1.0, "type_b.module.wires": 0.0, "type_b.total": 0.5},
        },
        "module": {"maze": 1.0, "total": 0.75, "wires": pytest.approx(2 / 3)},
        "question_type": {
            **{"colour.module.maze": 1.0, "colour.module.wires": 0.0, "colour.total": 0.5},
            **{"count.module.wires": 1.0, "count.total": 1.0},
        },
    }


def test_scores_do_not_depend_on_the_order_of_rows():
    assert score(ROWS[::-1], text_comparers()) == score(ROWS, text_comparers())


def test_a_row_without_a_module_is_refused():
    with pytest.raises(ValueError, match="module=<name>"):
        score([Scored("A", "A", ["detect=element"])], text_comparers())


def test_no_rows_have_no_scores():
    assert score([], text_comparers()) == {}


def test_the_coordinate_scorers_have_names_of_their_own():
    row = Scored('{"x": 1, "y": 1}', MASK, ["module=wires"])
    assert score([row], coordinate_comparers("absolute", SIZE)) == {
        "module": {"total": 0.0, "wires": 0.0},
        "module_absolute_distance": {"total": 1.0, "wires": 1.0},
        "module_coordinate_validator": {"total.valid_format": 1.0, "wires.valid_format": 1.0},
        "module_normalized_euclidean_distance": {
            "total": pytest.approx(1 / DIAGONAL),
            "wires": pytest.approx(1 / DIAGONAL),
        },
    }
