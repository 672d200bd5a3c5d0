"""Marks were painted after resizing, width and height of arrays were swapped, and masks were blended."""

import numpy as np
import pytest
from gptnt.rendering.workbench import close, pixels
from rowproof.gptnt.bomb.components import MODULES
from rowproof.gptnt.rendering import SIZE, masks, render_marks
from rowproof.gptnt.statics.tasks import resize_mask


@pytest.mark.parametrize("size", [(320, 240), (160, 120)])
def test_a_small_picture_is_the_large_one_made_small(size):
    seen = close("Password")
    factor = SIZE[0] // size[0]
    large = pixels(render_marks(seen)).astype(float)
    shrunk = large.reshape(size[1], factor, size[0], factor, 3).mean(axis=(1, 3))
    # Marks painted afterwards would be two to four times as large as these.
    assert np.abs(shrunk - pixels(render_marks(seen, size))).mean() < 3


@pytest.mark.parametrize("component", MODULES)
def test_masks_are_arrays_of_height_by_width_of_zero_and_one(component):
    for mask in masks(close(component), (500, 300)).values():
        assert mask.shape == (300, 500) and mask.dtype == bool


def test_nearest_neighbour_keeps_a_mask_and_its_direction():
    # One column at the left of a picture three wide and two high.
    mask = resize_mask("100100", (3, 2), (6, 8))
    assert mask.shape == (8, 6)
    assert mask.tolist() == [[True, True, False, False, False, False]] * 8


def test_masks_are_those_of_the_resized_picture():
    seen = close("Maze")
    for mark, mask in masks(seen).items():
        bits = "".join("1" if bit else "0" for bit in mask.ravel())
        small = resize_mask(bits, SIZE, (320, 240))
        assert (small != masks(seen, (320, 240))[mark]).mean() < 0.002
