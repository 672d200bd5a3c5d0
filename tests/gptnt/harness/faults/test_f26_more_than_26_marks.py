"""More than 26 marks got two letters, which no answer may hold; marks were kept from the picture before."""

import pytest
from gptnt.bomb.workbench import bench, edgework, spare_wires
from gptnt.rendering.workbench import close, module
from rowproof.gptnt.bomb.observation import look
from rowproof.gptnt.rendering import LETTERS, choose_marks, masks, render_frames, render_marks


def test_the_largest_elements_have_the_marks():
    areas = [float(index % 7 + 1) for index in range(60)]
    letters = choose_marks(areas)
    assert list(letters.values()) == list(LETTERS) and list(letters) == sorted(letters)
    left_out = set(range(60)) - set(letters)
    assert max(areas[index] for index in left_out) <= min(areas[index] for index in letters)
    assert choose_marks(areas) == letters


def test_of_equal_elements_the_first_have_the_marks():
    assert list(choose_marks([1.0] * 30)) == list(range(26))
    assert choose_marks([1.0, 2.0, 2.0], limit=1) == {1: "A"}


def test_marks_are_those_of_the_present_picture_alone():
    many, one = close("Password"), close("BigButton")
    alone = render_marks(one)
    render_marks(many)
    assert len(masks(many)) == 11 and list(masks(one)) == ["A"] and render_marks(one) == alone


def test_hidden_faces_have_no_marks():
    bomb = bench(module("Maze"), spare_wires(edgework()))
    assert len(masks(look(bomb, 1))) == 2
    bomb.act("flip")
    assert masks(look(bomb, 1)) == {}


@pytest.mark.parametrize("component", ["Morse", "Maze"])
def test_who_points_by_coordinates_sees_no_marks(component):
    seen = close(component)
    with_marks, without = render_frames(seen, 4), render_frames(seen, 4, marks=False)
    assert with_marks[:-1] == without[:-1] and with_marks[-1] != without[-1]
