import math

import pytest
from rowproof.evidence.intervals import binomial_bound, bounds, page_flags, seed_bound, with_bound
from rowproof.evidence.statistics import row_summary


def records(outcomes, partners=1):
    """One record for each outcome of each seed."""
    return [
        {"seed": seed, "initial_state_seed": i, "success": won, "force_peak": None, "metadata": {"member": "p"}}
        for seed, own in enumerate(outcomes)
        for i, won in enumerate(own)
    ]


def test_bounds_of_all_of_n_are_the_closed_form():
    for n in (1, 3, 60, 350, 1750):
        exact = 0.05 ** (1 / n)
        assert 0 <= exact - binomial_bound(n, n) < 1e-4 and 0 <= exact - seed_bound([1.0] * n) < 1e-4


def test_the_bound_of_k_of_n_has_a_tail_of_five_percent():
    p = binomial_bound(45, 50)
    tails = [sum(math.comb(50, i) * q**i * (1 - q) ** (50 - i) for i in range(45, 51)) for q in (p, p + 1e-4)]
    assert tails[0] <= 0.05 < tails[1]


def test_all_won_is_no_certainty_by_episodes_nor_by_seeds():
    summary = row_summary(records([[True] * 70] * 5), 50)
    found = bounds(summary, with_iqm=True)
    text = with_bound(1.0, [1.0, 1.0], found["success_rate"])
    assert text == "1.000 (≥ 0.549 by 5 seeds, ≥ 0.991 by 350 episodes)"
    assert page_flags(summary, found) == ["degenerate-iqm", "degenerate-rate", "saturated"]


def test_none_won_is_bounded_from_above():
    found = bounds(row_summary(records([[False] * 70] * 5), 50), with_iqm=False)
    assert found["success_rate"]["side"] == "at most"
    assert found["success_rate"]["by_episodes"]["value"] == pytest.approx(0.0086, abs=1e-4)


def test_an_iqm_without_width_is_flagged_by_itself():
    summary = row_summary(records([[True] * 65 + [False] * 5] * 5), 200)
    found = bounds(summary, with_iqm=True)
    assert list(found) == ["success_iqm"] and page_flags(summary, found) == ["degenerate-iqm"]


def test_one_seed_is_flagged():
    summary = row_summary(records([[True, False] * 10]), 50)
    assert "single-seed" in page_flags(summary, bounds(summary, True))
