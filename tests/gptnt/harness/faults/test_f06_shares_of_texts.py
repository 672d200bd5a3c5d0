"""Text-valued scores of static tasks were always 1: the sum of a category grew together with its count."""

import numpy as np
import pytest
from rowproof.gptnt.statics.scoring import Scored, coordinate_comparers, score

MASK = np.ones((4, 6), bool)
ANSWERS = ('{"x": 1, "y": 1}', '{"x": 2, "y": 2}', "A", '{"x": 9, "y": 1}')


def test_shares_are_over_all_rows_and_sum_to_one():
    rows = [Scored(answer, MASK, ["module=wires", "detect=element"]) for answer in ANSWERS]
    scores = score(rows, coordinate_comparers("absolute", (6, 4)))
    assert scores["module_coordinate_validator"] == {
        f"{path}.{kind}": share
        for path in ("total", "wires")
        for kind, share in (("valid_format", 0.5), ("invalid_format", 0.25), ("out_of_bounds", 0.25))
    }
    for scorer in ("module_coordinate_validator", "detect_coordinate_validator"):
        totals = [share for path, share in scores[scorer].items() if "total" in path]
        assert sum(totals) == pytest.approx(1.0)
