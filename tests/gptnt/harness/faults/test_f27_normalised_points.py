"""Normalised points were scored as pixels, with a distance over the wrong size; one without y ended the scoring."""

import numpy as np
import pytest
from gptnt.statics.workbench import NORMALISED, Puppet, folders, read, run, small_data
from rowproof.gptnt.statics.scoring import Scored, coordinate_comparers, euclidean_distance, in_region, score

TASK = "defuser-grounding-coordinates"
MASK = np.zeros((480, 640), bool)
MASK[240, 320] = True


def test_normalised_points_are_scaled_by_width_and_height():
    assert in_region('{"x": 500, "y": 500}', MASK, "normalised") == 1.0
    assert in_region('{"x": 500, "y": 500}', MASK, "absolute") == 0.0
    assert in_region('{"x": 320, "y": 240}', MASK, "absolute") == 1.0


def test_the_distance_is_over_the_diagonal_of_the_picture():
    assert euclidean_distance('{"x": 0, "y": 500}', MASK, "normalised") == pytest.approx(320 / 800)
    assert euclidean_distance('{"x": 500, "y": 0}', MASK, "normalised") == pytest.approx(240 / 800)


@pytest.mark.parametrize("answer", ['{"x": 500}', '{"y": 500}', "{}", "[500, 500]"])
def test_half_a_point_is_an_invalid_format(answer, tmp_path, monkeypatch):
    scores = score([Scored(answer, MASK, ["module=maze"])], coordinate_comparers("normalised", (640, 480)))
    assert scores["module_coordinate_validator"]["total.invalid_format"] == 1.0
    assert scores["module"]["total"] == 0.0
    assert scores["module_normalized_euclidean_distance"]["total"] == 1.0
    small_data(monkeypatch)
    assert run(TASK, Puppet(answer, capabilities=NORMALISED), tmp_path, limit=3)[0] == 0
    assert read(folders(tmp_path, TASK)[0], "metrics.json")["module"]["total"] == 0.0
