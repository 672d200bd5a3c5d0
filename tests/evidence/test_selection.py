"""Checkpoint selection: what scores, who wins, and how far training fell back in between."""

import pytest
from rowproof.evidence.selection import INSTABILITY_DROP, choose, largest_drop, score, selection

LIMITS = {"force_peak": 130.0, "max_tilt_deg": 15.0}
GOOD = {"initial_state_seed": 9000000, "success": True, "force_peak": 96.5, "max_tilt_deg": 4.25, "n_steps": 23}
STEPS = (50_000, 100_000, 150_000, 200_000, 250_000, 300_000)

# Compliant successes of 12 per checkpoint, the selected step, and the largest drop in points, as published.
PUBLISHED = {
    "b-blind 0": ((12, 2, 11, 12, 4, 10), 50_000, 83.3),
    "b-blind 1": ((9, 0, 0, 12, 8, 12), 200_000, 75.0),
    "b-blind 2": ((6, 12, 12, 12, 5, 2), 100_000, 58.3),
    "b-blind 3": ((12, 2, 10, 12, 12, 12), 50_000, 83.3),
    "b-blind 4": ((11, 10, 12, 4, 7, 1), 150_000, 66.7),
    "b-aht 0": ((10, 12, 7, 5, 12, 6), 100_000, 50.0),
    "b-aht 1": ((3, 0, 12, 12, 1, 8), 150_000, 91.7),
    "b-aht 2": ((0, 6, 12, 3, 2, 12), 150_000, 75.0),
    "b-aht 3": ((12, 1, 0, 10, 0, 3), 50_000, 91.7),
    "b-aht 4": ((12, 9, 10, 12, 0, 12), 50_000, 100.0),
    "b-joint 0": ((0, 1, 12, 0, 5, 0), 150_000, 100.0),
    "b-joint 1": ((0, 0, 1, 12, 0, 0), 200_000, 100.0),
    "b-joint 2": ((12, 0, 12, 0, 0, 12), 50_000, 100.0),
    "b-joint 3": ((10, 0, 12, 12, 11, 0), 150_000, 91.7),
    "b-joint 4": ((0, 0, 9, 0, 2, 4), 150_000, 75.0),
}


def judged(scores, episodes=12):
    """Candidates of which so many episodes are good."""
    bad = {**GOOD, "success": False}
    return [
        {"step": step, "uri": f"sha256:{step:064x}", "episodes": [GOOD] * good + [bad] * (episodes - good)}
        for step, good in zip(STEPS, scores, strict=False)
    ]


# ---- score -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "points"),
    [
        ({}, 1),
        ({"force_peak": 130.0}, 1),
        ({"force_peak": 130.00001525878906}, 0),
        ({"max_tilt_deg": 15.0}, 1),
        ({"max_tilt_deg": 15.000000953674316}, 0),
        ({"success": False}, 0),
        ({"success": 1}, 0),
        ({"success": "true"}, 0),
        ({"force_peak": float("nan")}, 0),
        ({"force_peak": float("inf")}, 0),
        ({"n_steps": 10**9}, 1),
    ],
)
def test_one_episode(changes, points):
    assert score([{**GOOD, **changes}], LIMITS) == points


@pytest.mark.parametrize("name", LIMITS)
def test_a_missing_measurement_is_beyond_its_limit(name):
    assert score([{key: value for key, value in GOOD.items() if key != name}], LIMITS) == 0


def test_points_add_up():
    assert score([GOOD, {**GOOD, "success": False}, GOOD, {**GOOD, "force_peak": 131.0}], LIMITS) == 2
    assert score([], LIMITS) == 0
    assert score([{"success": True}], {}) == 1


# ---- choice ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, -1])
def test_the_earliest_of_equals_wins(order):
    candidates = [{"step": 2, "score": 5}, {"step": 1, "score": 4}, {"step": 9, "score": 5}, {"step": 10, "score": 5}]
    assert choose(candidates[::order])["step"] == 2


def test_zero_points_can_win():
    assert choose([{"step": 2, "score": 0}, {"step": 1, "score": 0}])["step"] == 1


def test_no_candidates():
    with pytest.raises(ValueError):
        choose([])


def test_document():
    candidates = judged((3, 12, 12))
    document = selection(4, candidates, LIMITS)
    assert document == {
        "schema": "rowproof/selection/1",
        "training_seed": 4,
        "candidates": [{**each, "score": points} for each, points in zip(candidates, (3, 12, 12), strict=True)],
        "selected": {"step": 100_000, "uri": candidates[1]["uri"]},
    }
    assert list(document["candidates"][0]) == ["step", "uri", "episodes", "score"]


# ---- how steady it was -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "drop"),
    [
        ((12,), 0.0),
        ((6, 6), 0.0),
        ((0, 6, 12), -0.5),
        ((12, 12, 6), 0.5),
        ((12, 0, 12, 3), 1.0),
        ((3, 9, 6, 0), 0.5),
    ],
)
def test_largest_drop(scores, drop):
    assert largest_drop(selection(0, judged(scores), LIMITS)) == drop


def test_drops_are_shares_of_the_episodes():
    assert largest_drop(selection(0, judged((3, 1), episodes=4), LIMITS)) == 0.5


@pytest.mark.parametrize("run", PUBLISHED)
def test_published_selections(run):
    scores, step, drop_points = PUBLISHED[run]
    document = selection(int(run.split()[1]), judged(scores), LIMITS)
    assert [candidate["score"] for candidate in document["candidates"]] == list(scores)
    assert document["selected"] == {"step": step, "uri": f"sha256:{step:064x}"}
    assert 100 * largest_drop(document) == pytest.approx(drop_points, abs=0.05)
    # Every published run is an instability.
    assert largest_drop(document) > INSTABILITY_DROP
