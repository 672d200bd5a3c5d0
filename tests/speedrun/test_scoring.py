import pytest
from rowproof.errors import RowproofError
from rowproof.speedrun import scoring
from rowproof.speedrun.losses import LossTest, decide
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.scoring import fsr, fsr_column, reward, reward_code_variant, reward_columns

TIMED = {"wall_ratio": 2.0, "ratio_ci95": [1.5, 2.5]}
PASS = LossTest(1.33, True, "pass", 6.0)
CLOSE = LossTest(1.349, True, "inconclusive", 0.3)
MISS = LossTest(1.36, False, "miss", -3.0)


@pytest.mark.parametrize(
    "baseline_ms, patched_ms, readme, code",
    [
        (1000, 1000, 1.00, 1.30),
        (1000, 900, 1.078, 1.411),
        (1000, 500, 1.70, 2.30),
        (1000, 2000, 0.65, 0.80),
    ],
)
def test_both_published_formulas(baseline_ms, patched_ms, readme, code):
    assert round(reward(baseline_ms / patched_ms), 3) == readme
    assert round(reward_code_variant(baseline_ms / patched_ms), 3) == code


def test_columns_of_a_valid_attempt():
    assert reward_columns(Outcome.OK, "pass", TIMED) == {
        "reward": 1.7,
        "reward_ci95": [1.35, 2.05],
        "reward_strict": 1.7,
        "reward_code_variant": 2.3,
    }


def test_an_inconclusive_attempt_earns_by_the_readme_but_not_strictly():
    found = reward_columns(Outcome.INCONCLUSIVE, "inconclusive", TIMED)
    assert (found["reward"], found["reward_strict"]) == (1.7, 0.0)


def test_a_nondeterministic_attempt_earns_unless_it_is_rejected():
    assert reward_columns(Outcome.NONDETERMINISTIC, "pass", TIMED)["reward"] == 1.7
    assert reward_columns(Outcome.NONDETERMINISTIC, "pass", TIMED, "reject")["reward"] == 0.0
    assert reward_columns(Outcome.OK, "pass", TIMED, "reject")["reward"] == 1.7


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if not outcome.earns_reward])
def test_all_others_earn_nothing(outcome):
    for timed in (None, TIMED):
        found = reward_columns(outcome, "pass", timed)
        assert found == {"reward": 0.0, "reward_ci95": [0.0, 0.0], "reward_strict": 0.0, "reward_code_variant": 0.0}


def test_a_reward_needs_times():
    with pytest.raises(RowproofError, match="must be timed"):
        reward_columns(Outcome.OK, "pass", None)


def test_a_stored_time_gives_no_interval():
    assert reward_columns(Outcome.OK, "pass", {"wall_ratio": 2.0, "ratio_ci95": None})["reward_ci95"] is None


@pytest.mark.parametrize(
    "found, loss, outcome",
    [
        (None, PASS, Outcome.OK),
        (None, CLOSE, Outcome.INCONCLUSIVE),
        (Outcome.OK, PASS, Outcome.OK),
        (Outcome.OK, MISS, Outcome.THRESHOLD_MISSED),
        (None, MISS, Outcome.THRESHOLD_MISSED),
        (Outcome.NONDETERMINISTIC, PASS, Outcome.NONDETERMINISTIC),
        (Outcome.NONDETERMINISTIC, MISS, Outcome.THRESHOLD_MISSED),
        (Outcome.CRASHED, None, Outcome.CRASHED),
        (Outcome.NONCAUSAL, PASS, Outcome.NONCAUSAL),
    ],
)
def test_what_decides_the_outcome(found, loss, outcome):
    assert decide(found, loss) is outcome


@pytest.mark.parametrize("found", [None, Outcome.OK, Outcome.NONDETERMINISTIC])
def test_without_loss_and_failure_there_is_no_outcome(found):
    with pytest.raises(RowproofError, match="found neither"):
        decide(found, None)


def test_stored_ratio():
    assert scoring.stored_ratio(6000.0, "h100-8", [2.0, 4.0], "h100-8") == 2.0
    with pytest.raises(RowproofError, match="set recalc_wallclock to true"):
        scoring.stored_ratio(6000.0, "h100-8", [2.0], "h200-8")
    with pytest.raises(RowproofError, match="at least one patched run"):
        scoring.stored_ratio(6000.0, "h100-8", [], "h100-8")


@pytest.mark.parametrize("attempt_s, share", [(60.0, 1.0), (80.0, 0.5), (50.0, 1.25), (110.0, -0.25), (None, 0.0)])
def test_fraction_of_speedup_recovered(attempt_s, share):
    assert fsr(100.0, 60.0, attempt_s) == share


def test_fraction_is_zero_without_a_positive_gap_and_empty_without_a_shown_one():
    assert fsr(100.0, 100.0, 90.0) == fsr(100.0, 120.0, 90.0) == 0.0
    assert fsr_column(100.0, 60.0, 90.0, True) == 0.25
    assert fsr_column(100.0, 60.0, 90.0, False) is None
    assert fsr_column(100.0, None, 90.0, True) is None


def test_operations():
    assert scoring.reward_flops(Outcome.OK, 400, 200) == 1.7
    assert scoring.reward_flops(Outcome.THRESHOLD_MISSED, 400, 200) == 0.0
    # 2.4 TFLOP at 82 GFLOP/s take 29.27 s.
    assert scoring.is_implausible(29.2, 2_400_000_000_000, 82.0)
    assert not scoring.is_implausible(29.3, 2_400_000_000_000, 82.0)
    assert scoring.needs_explanation(2.1, 1.0) and scoring.needs_explanation(1.0, 2.1)
    assert not scoring.needs_explanation(2.0, 1.0)


def test_fast_p_wants_the_whole_interval_above():
    intervals = [(1.0, 3.0), (1.2, 1.3), (1.6, 1.7), None]
    assert [scoring.fast_p(intervals, level) for level in (1.0, 1.1, 1.5, 2.0)] == [0.5, 0.5, 0.25, 0.0]
    with pytest.raises(RowproofError, match="at least one attempt"):
        scoring.fast_p([], 1.0)


def test_pass_at_k():
    assert scoring.pass_at_k(4, 1, 1) == 0.25
    assert scoring.pass_at_k(4, 1, 2) == 0.5
    assert scoring.pass_at_k(4, 0, 4) == 0.0
    assert scoring.pass_at_k(4, 3, 2) == 1.0


@pytest.mark.parametrize("numbers", [(0, 0, 1), (4, 5, 1), (4, -1, 1), (4, 1, 0), (4, 1, 5)])
def test_impossible_counts_are_refused(numbers):
    with pytest.raises(RowproofError, match="pass@k needs"):
        scoring.pass_at_k(*numbers)


def test_summary():
    rows = [(1.7, True, (1.6, 2.5)), (0.0, False, None), (1.0, True, (0.9, 1.1)), (0.0, False, None)]
    assert scoring.summary(rows, k=2) == {
        "n_attempts": 4,
        "mean_reward": 0.675,
        "best_reward": 1.7,
        "pass_at_k": 0.833333,
        "fast_p": {"1.0": 0.25, "1.1": 0.25, "1.5": 0.25, "2.0": 0.0},
    }
    with pytest.raises(RowproofError, match="at least one attempt"):
        scoring.summary([])
