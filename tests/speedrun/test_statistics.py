import copy
import json
import math
import os
import subprocess
import sys
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as some
from rowproof.errors import RecordError, RowproofError
from rowproof.records import digest, encode_sorted
from rowproof.seeding import substream
from rowproof.speedrun import blocks, protocol
from rowproof.speedrun import statistics as stats
from rowproof.speedrun.blocks import Pair
from rowproof.speedrun.losses import known_sigma_test
from rowproof.speedrun.statistics import t_test, timed_part

PAIRS = [Pair(10.0, 5.0), Pair(12.0, 4.0), Pair(11.0, 6.0)]


# --- Loss -------------------------------------------------------------------------------------------------------------


def around(mean, *offsets):
    return {100 + i: round(mean + offset, 6) for i, offset in enumerate(offsets)}


@pytest.mark.parametrize(
    "mean, verdict, met",
    [
        # Three seeds must lie 0.01165 / sqrt(3) = 0.006726 below the threshold, and the guard band of 0.002 more.
        (1.3412, "pass", True),
        (1.3413, "inconclusive", True),
        (1.3433, "inconclusive", True),
        (1.35, "inconclusive", True),
        (1.350001, "miss", False),
    ],
)
def test_known_sigma_with_three_seeds(mean, verdict, met):
    found = known_sigma_test(around(mean, -0.001, 0.0, 0.001), 1.35)
    assert (found.mean, found.verdict, found.threshold_met) == (mean, verdict, met)


def test_known_sigma_needs_less_of_more_seeds():
    # 0.01165 / sqrt(9) + 0.002 = 0.005883
    assert known_sigma_test(around(1.3441, *[0.0] * 9), 1.35).verdict == "pass"
    assert known_sigma_test(around(1.3442, *[0.0] * 9), 1.35).verdict == "inconclusive"


def test_margin_in_standard_errors():
    # 0.01 * sqrt(4) / 0.005
    assert known_sigma_test(around(1.34, 0.0, 0.0, 0.0, 0.0), 1.35).margin_z == 4.0
    assert known_sigma_test(around(1.36, 0.0), 1.35).margin_z == -2.0


def test_a_mean_at_the_threshold_meets_it_whatever_floats_add_up_to():
    # In floating point the sum of these over 3 is above 0.3.
    losses = {1: 0.3, 2: 0.2, 3: 0.4}
    assert known_sigma_test(losses, 0.3).threshold_met
    assert known_sigma_test({1: 0.1, 2: 0.2}, 0.15).threshold_met


@pytest.mark.parametrize("losses", [{}, {1: math.nan}, {1: math.inf}, {1: 1}, {1: None}])
@pytest.mark.parametrize("rule", [known_sigma_test, t_test])
def test_losses_must_be_there_and_finite(rule, losses):
    with pytest.raises(RowproofError, match="needs a finite loss"):
        rule(losses, 1.35)


@pytest.mark.parametrize(
    "degrees, t",
    [(1, 31.820516), (2, 6.964557), (3, 4.540703), (4, 3.746947), (9, 2.821438), (10, 2.763769), (29, 2.462021)],
)
def test_t_tail_at_tabulated_one_percent_points(degrees, t):
    assert stats.t_upper_tail(t, degrees) == pytest.approx(0.01, abs=2e-8)
    assert stats.t_upper_tail(-t, degrees) == pytest.approx(0.99, abs=2e-8)


@given(some.integers(1, 40), some.floats(-20, 20))
def test_t_tail_is_a_probability_and_symmetric(degrees, t):
    upper = stats.t_upper_tail(t, degrees)
    assert -1e-12 <= upper <= 1 + 1e-12
    assert upper + stats.t_upper_tail(-t, degrees) == pytest.approx(1.0)


def test_t_needs_a_degree_of_freedom():
    with pytest.raises(ValueError, match="at least 1"):
        stats.t_upper_tail(1.0, 0)


def test_t_rule():
    # t = 0.01 / (0.001 / sqrt(3)) = 17.32, far above 6.96.
    found = t_test(around(3.27, -0.001, 0.0, 0.001), 3.28)
    assert (found.verdict, found.margin_z) == ("pass", 17.321)
    # t = 0.002 / (0.001 / sqrt(3)) = 3.46
    assert t_test(around(3.278, -0.001, 0.0, 0.001), 3.28).verdict == "inconclusive"
    assert t_test(around(3.2801, -0.001, 0.0, 0.001), 3.28).verdict == "miss"
    assert t_test(around(3.27, -0.001, 0.001), 3.28).verdict == "inconclusive", "two seeds are too few"
    assert t_test(around(3.27, 0.0), 3.28).verdict == "inconclusive"
    assert t_test(around(3.278, 0.0), 3.28, same_weights=True).verdict == "pass"
    assert t_test(around(3.29, 0.0), 3.28, same_weights=True).verdict == "miss"


@pytest.mark.parametrize("sd, target", [(0.0074, 1.35), (0.0075, 1.36), (0.0, 1.33)])
def test_calibrated_target(sd, target):
    assert stats.calibrated_target([1.3277 - sd, 1.3277, 1.3277 + sd]) == target


def test_a_calibrated_target_is_not_raised_by_rounding():
    assert stats.calibrated_target([1.35, 1.35, 1.35]) == 1.35
    with pytest.raises(RowproofError, match="two seeds or more"):
        stats.calibrated_target([1.35])


# --- Time -------------------------------------------------------------------------------------------------------------


def test_ratios_by_hand():
    # Ratios 2, 3 and 1.8333; pairwise geometric means 1.8333, 1.9149, 2, 2.3452, 2.4495, 3.
    assert blocks.ratio_of_medians(PAIRS) == 11 / 5
    assert stats.ratio_of_means(PAIRS) == 33 / 15
    assert stats.hodges_lehmann_ratio(PAIRS) == pytest.approx(math.sqrt(2 * math.sqrt(5.5)))
    assert stats.sign_wins(PAIRS) == 3
    assert stats.hodges_lehmann_ratio([Pair(8.0, 2.0), Pair(2.0, 2.0)]) == 2.0


@given(
    some.lists(some.tuples(some.floats(0.1, 10), some.floats(0.1, 10)).map(lambda t: Pair(*t)), min_size=1, max_size=9)
)
def test_hodges_lehmann_is_what_its_definition_says(pairs):
    logs = [math.log(pair.base_s / pair.patched_s) for pair in pairs]
    walsh = [(logs[i] + logs[j]) / 2 for i in range(len(logs)) for j in range(i, len(logs))]
    assert stats.hodges_lehmann_ratio(pairs) == pytest.approx(math.exp(median(walsh)))


def test_bootstrap_interval_by_plain_loops():
    # Times without any repeated ratio, so that neighbouring order statistics differ.
    pairs = [Pair(10 + (i * 37 % 101) / 100, 9.5 + (i * 53 % 89) / 90) for i in range(40)]
    picks = substream("speedrun.pair_bootstrap", 20240520).integers(40, size=(10000, 40)).tolist()
    ratios = sorted(median(pairs[i].base_s for i in row) / median(pairs[i].patched_s for i in row) for row in picks)
    assert blocks.bootstrap_interval(pairs) == (ratios[250], ratios[9749])
    assert ratios[240] < ratios[250] < ratios[260] < ratios[9740] < ratios[9749] < ratios[9760]


def test_equal_pairs_have_no_interval():
    assert blocks.bootstrap_interval([Pair(3.0, 2.0)] * 5) == (1.5, 1.5)
    assert blocks.aa_floor([Pair(3.0, 2.0)] * 5) == 0.0


def test_floor_is_half_the_interval():
    low, high = blocks.bootstrap_interval(PAIRS)
    assert blocks.aa_floor(PAIRS) == round((high - low) / 2, 6) > 0


@pytest.mark.parametrize("n, p", [(3, 0.125), (4, 0.0625), (5, 0.03125), (6, 0.015625), (7, 0.0078125)])
def test_smallest_sign_p(n, p):
    assert stats.sign_test(n, n) == p
    assert stats.sign_test(0, n) == 1.0


def test_sign_test_counts_what_is_at_least_as_extreme():
    assert stats.sign_test(4, 5) == (5 + 1) / 32
    assert stats.sign_wins([Pair(1.0, 1.0), Pair(2.0, 1.0)]) == 1, "a tie is no win"


def test_holm_by_hand():
    assert stats.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert stats.holm([0.5, 0.9]) == [1.0, 1.0]
    assert stats.holm([]) == []


@pytest.mark.parametrize(
    "function",
    [
        blocks.ratio_of_medians,
        stats.ratio_of_means,
        stats.hodges_lehmann_ratio,
        blocks.bootstrap_interval,
        blocks.aa_floor,
    ],
)
def test_a_ratio_needs_pairs(function):
    with pytest.raises(RowproofError, match="at least one pair"):
        function([])


# --- timing.json ------------------------------------------------------------------------------------------------------


def measure(pairs, order_seed=7, disturbed=(), **more):
    """What a job leaves when its successive pairs (without the warm-up) take these times."""
    n_pairs = len(pairs) - min(len(disturbed), 3)
    runs, pair, attempt, repeats = [], -1, 0, 0
    for index, times in enumerate([Pair(99.0, 1.0), *pairs]):
        arms = protocol.pair_orders(order_seed, n_pairs)[index]
        for order, arm in enumerate(arms):
            wall_s = times.base_s if arm == "A" else times.patched_s
            cpu_s = wall_s * (0.5 if index - 1 in disturbed else 0.99)
            place = {"pair": pair, "try": attempt, "order": order, "arm": arm}
            runs.append({**place, "t_wall_s": wall_s, "cpu_s": cpu_s, "steal": 0.0, "slept": False, "tokens": 5})
        if index - 1 in disturbed and repeats < 3:
            repeats, attempt = repeats + 1, attempt + 1
        else:
            pair, attempt = pair + 1, 0
    return {"order_seed": order_seed, "n_pairs": n_pairs, "runs": runs, **more}


FIVE = [*PAIRS, Pair(10.5, 5.5), Pair(10.0, 5.2)]


def test_timed_part_by_hand():
    timing = measure(PAIRS, aa_floor=0.05, machine={"cores": 2}, date="2026-01-02")
    low, high = blocks.bootstrap_interval(PAIRS)
    assert timed_part(timing) == {
        "n_pairs": 3,
        "wall_ms_base_median": 11000.0,
        "wall_ms_patched_median": 5000.0,
        "wall_ratio": 2.2,
        "ratio_ci95": [round(low, 6), round(high, 6)],
        "hl_ratio": 2.165737,
        "ratio_of_means": 2.2,
        "sign_wins": 3,
        "cpu_ratio": 2.2,
        "cpu_ratio_ci95": [round(low, 6), round(high, 6)],
        "aa_floor": 0.05,
        "machine": {"cores": 2},
        "date": "2026-01-02",
        "timing_sha256": digest(timing),
        "timing_flags": [],
    }


def test_estimators_that_disagree_ask_for_an_explanation():
    assert timed_part(measure([Pair(1.0, 1.0), Pair(1.0, 1.0), Pair(4.0, 1.0)]))["timing_flags"] == ["explain"]


def test_a_disturbed_pair_is_replaced_by_its_repeat():
    timing = measure([Pair(50.0, 1.0), *FIVE], disturbed=(0,))
    found = timed_part(timing)
    assert found["wall_ratio"] == timed_part(measure(FIVE))["wall_ratio"]
    assert (found["n_pairs"], found["timing_flags"]) == (5, [])


def test_the_fourth_disturbed_pair_is_kept_and_flagged():
    bad = Pair(50.0, 1.0)
    found = timed_part(measure([bad, bad, bad, bad, *PAIRS], disturbed=(0, 1, 2, 3)))
    assert (found["n_pairs"], found["timing_flags"][0]) == (4, "contended")
    assert found["wall_ms_base_median"] == 11500.0


@pytest.mark.parametrize(
    "key, value, disturbed",
    [
        ("cpu_s", 0.79, True),
        ("cpu_s", 0.8, False),
        ("steal", 0.051, True),
        ("steal", 0.05, False),
        ("slept", True, True),
    ],
)
def test_what_disturbs_a_run(key, value, disturbed):
    run = {"t_wall_s": 1.0, "cpu_s": 1.0, "steal": 0.0, "slept": False}
    assert protocol.is_disturbed({**run, key: value}) is disturbed


def swap(timing, i, j):
    timing["runs"][i], timing["runs"][j] = timing["runs"][j], timing["runs"][i]


def redo(timing):
    """A pair measured a second time although nothing disturbed it."""
    again = copy.deepcopy(timing["runs"][2:4])
    timing["runs"][4:4] = [{**run, "try": 1} for run in again]


def rerun(timing, key, value, index=2):
    timing["runs"][index][key] = value


BREAKS = {
    "a run missing": lambda t: t["runs"].pop(),
    "a pair missing": lambda t: t["runs"].__delitem__(slice(4, 6)),
    "no warm-up": lambda t: t["runs"].__delitem__(slice(0, 2)),
    "a pair too many": lambda t: t["runs"].extend(copy.deepcopy(t["runs"][-2:])),
    "arms swapped": lambda t: swap(t, 2, 3),
    "pairs swapped": lambda t: (swap(t, 2, 4), swap(t, 3, 5)),
    "a pair repeated without cause": redo,
    "a disturbed pair not repeated": lambda t: rerun(t, "cpu_s", 0.1),
    "another order seed": lambda t: t.update(order_seed=8),
    "fewer pairs demanded": lambda t: t.update(n_pairs=4),
    "a pair demanded that is not there": lambda t: t.update(n_pairs=6),
    "no pairs": lambda t: t.update(n_pairs=0),
    "too many pairs": lambda t: t.update(n_pairs=10**9),
    "a negative seed": lambda t: t.update(order_seed=-1),
    "no runs": lambda t: t.pop("runs"),
    "a failed run": lambda t: t.update(outcome="crashed"),
    "a floor beyond all": lambda t: t.update(aa_floor=1.0),
    "a time of zero": lambda t: rerun(t, "t_wall_s", 0.0),
    "a negative time": lambda t: rerun(t, "cpu_s", -1.0),
    "a time that is no number": lambda t: rerun(t, "t_wall_s", math.nan),
    "an infinite time": lambda t: rerun(t, "t_wall_s", math.inf),
    "a time in whole seconds": lambda t: rerun(t, "t_wall_s", 3),
    "a text": lambda t: rerun(t, "t_wall_s", "3.0"),
    "a boolean for a number": lambda t: rerun(t, "pair", False),
    "a key missing": lambda t: t["runs"][2].pop("steal"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_timing_is_refused(name):
    timing = measure(FIVE)
    timed_part(timing)
    BREAKS[name](timing)
    with pytest.raises(RecordError, match=r"^timing: "):
        timed_part(timing)


@pytest.mark.parametrize("timing", [None, [], "x", {}, {"design": "blocks"}])
def test_what_is_no_timing_is_refused(timing):
    with pytest.raises(RecordError, match=r"^timing: "):
        timed_part(timing)


def test_orders_are_tossed_for_each_pair():
    orders = protocol.pair_orders(20240520, 60)
    assert len(orders) == 64 and {("A", "B"), ("B", "A")} == set(orders)
    assert 16 < orders.count(("A", "B")) < 48
    assert orders != protocol.pair_orders(20240521, 60)


# --- Blocks -----------------------------------------------------------------------------------------------------------

TIMES_S = {"R0": (9.0, 4.0), "R1": (3.0,), "R2": (1.5,)}


def measure_blocks(n_blocks=3):
    runs = []
    for block in range(n_blocks):
        left = {name: list(times) for name, times in TIMES_S.items()}
        for order, arm in enumerate(protocol.block_order(7, block, ["R2", "R1"], "R0")):
            wall_s = left[arm].pop(0) * (1 + block)
            place = {"pair": block, "try": 0, "order": order, "arm": arm}
            runs.append({**place, "t_wall_s": wall_s, "cpu_s": wall_s, "steal": 0.0, "slept": False})
    return {"design": "blocks", "order_seed": 7, "n_pairs": n_blocks, "runs": runs}


def test_the_partner_in_a_block_is_the_geometric_mean_of_the_reference():
    pairs, contended = blocks.block_pairs(measure_blocks(), "R1", "R0")
    assert (pairs, contended) == ([Pair(6.0, 3.0), Pair(12.0, 6.0), Pair(18.0, 9.0)], False)
    assert timed_part(measure_blocks(), "R2", "R0")["wall_ratio"] == 4.0
    assert timed_part(measure_blocks(), "R2", "R1")["wall_ratio"] == 2.0


def test_only_the_arms_of_a_comparison_contend():
    timing = measure_blocks()
    next(run for run in timing["runs"] if run["arm"] == "R1")["slept"] = True
    assert timed_part(timing, "R1", "R0")["timing_flags"] == ["contended"]
    assert timed_part(timing, "R2", "R0")["timing_flags"] == []


def test_the_order_in_blocks_does_not_depend_on_the_order_of_names():
    orders = [protocol.block_order(7, block, ["R1", "R2", "R3"], "R0") for block in range(20)]
    assert orders == [protocol.block_order(7, block, ["R3", "R1", "R2"], "R0") for block in range(20)]
    assert all(order[0] == order[-1] == "R0" for order in orders) and len(set(orders)) > 3


@pytest.mark.parametrize(
    "damage",
    [
        lambda t: t["runs"].pop(),
        lambda t: swap(t, 1, 2),
        lambda t: t.update(n_pairs=2),
        lambda t: t.update(n_pairs=4),
        lambda t: rerun(t, "try", 1),
        lambda t: [run.update({"try": 1}) for run in t["runs"]],
        lambda t: rerun(t, "arm", "R9"),
        lambda t: t["runs"].append({**t["runs"][-1], "pair": 7}),
    ],
)
def test_broken_blocks_are_refused(damage):
    timing = measure_blocks()
    damage(timing)
    with pytest.raises(RecordError, match=r"^timing: "):
        timed_part(timing, "R1", "R0")


# --- Same bytes -------------------------------------------------------------------------------------------------------


def test_the_same_bytes_everywhere():
    timing = measure(
        [Pair(50.0, 1.0), *FIVE], disturbed=(0,), aa_floor=0.05, machine={"b": 1, "a": 2}, date="2026-01-02"
    )
    code = (
        "import json, sys; from rowproof.records import encode_sorted; from rowproof.speedrun.statistics import *\n"
        "sys.stdout.buffer.write(encode_sorted(timed_part(json.load(sys.stdin))))"
    )
    expected = encode_sorted(timed_part(timing))
    for seed, locale, zone in [("0", "C", "UTC"), ("1", "de_DE.UTF-8", "Asia/Tokyo"), ("99", "tr_TR.UTF-8", "")]:
        done = subprocess.run(
            [sys.executable, "-c", code],
            input=json.dumps(timing).encode(),
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": locale, "TZ": zone},
        )
        assert done.stdout == expected


def test_the_order_of_keys_does_not_matter():
    timing = measure(FIVE)
    turned = {key: timing[key] for key in reversed(timing)}
    turned["runs"] = [dict(reversed(run.items())) for run in timing["runs"]]
    assert encode_sorted(timed_part(turned)) == encode_sorted(timed_part(timing))


def test_known_intervals():
    assert timed_part(measure(FIVE))["ratio_ci95"] == [1.833333, 3.0]
    seven = [Pair(10 + i * 0.37 % 1, 9.5 + i * 0.73 % 1) for i in range(7)]
    assert timed_part(measure(seven))["ratio_ci95"] == [1.013685, 1.078313]


# --- Statements -------------------------------------------------------------------------------------------------------

TIMED = {"aa_floor": 0.05, "n_pairs": 7, "ratio_ci95": [1.06, 1.3], "sign_wins": 7, "timing_flags": []}


def say(verdict="pass", audits=True, strict=True, deterministic=True, backed=True, **timed):
    return stats.statements({**TIMED, **timed}, verdict, audits, strict, deterministic, backed)


def test_a_record_may_say_all():
    assert say() == ["valid", "faster", "record"]


@pytest.mark.parametrize(
    "change",
    [
        {"n_pairs": 6, "sign_wins": 6},
        {"sign_wins": 6},
        {"timing_flags": ["contended"]},
        {"strict": False},
        {"deterministic": False},
        {"backed": False},
    ],
)
def test_a_record_needs_everything(change):
    assert say(**change) == ["valid", "faster"]


@pytest.mark.parametrize("change", [{"verdict": "inconclusive"}, {"verdict": "miss"}, {"audits": False}])
def test_nothing_is_said_of_what_is_not_valid(change):
    assert say(**change) == []


@pytest.mark.parametrize(
    "interval, said",
    [
        ([1.05, 1.3], ["valid", "no difference shown"]),
        ([0.9, 1.2], ["valid", "no difference shown"]),
        ([0.5, 0.95], ["valid", "no difference shown"]),
        ([0.5, 0.94], ["valid"]),
    ],
)
def test_without_a_clear_interval_nothing_is_faster(interval, said):
    assert say(ratio_ci95=interval) == said


@pytest.mark.parametrize("change", [{"aa_floor": None}, {"n_pairs": 2, "sign_wins": 2}])
def test_without_floor_or_pairs_only_valid_is_said(change):
    assert say(**change) == ["valid"]


def test_a_script_against_itself_shows_no_difference():
    noise = [Pair(1.0, 1.03), Pair(1.05, 1.0), Pair(0.98, 1.0), Pair(1.0, 0.97), Pair(1.02, 1.04)]
    timed = timed_part(measure(noise, aa_floor=blocks.aa_floor(noise)))
    assert stats.statements(timed, "pass", True, True, True, True) == ["valid", "no difference shown"]
