import json
import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from evidence import plain_stream
from evidence.plain_stream import PlainStream
from helpers import shared_data
from hypothesis import given, settings
from hypothesis import strategies as some
from rowproof.errors import RowproofError
from rowproof.evidence import statistics as stats
from rowproof.evidence.statistics import BUNDLE_STREAM, LEADERBOARD_STREAM, PAIRED_STREAM
from rowproof.records import decode, encode_document
from rowproof.seeding import spawn_key, substream

# --- Random streams ---------------------------------------------------------------------------------------------------

STREAM_GOLDENS = [
    # label, root seed, spawn key, first raw output, five integers below 5, then six below 50
    (
        BUNDLE_STREAM,
        0,
        (14242569796102993934, 11154339483185974052),
        0x357C08692169531B,
        [0, 1, 3, 1, 0],
        [4, 16, 37, 9, 36, 16],
    ),
    (
        BUNDLE_STREAM,
        7,
        (14242569796102993934, 11154339483185974052),
        0x5F887823216688A2,
        [0, 1, 4, 3, 4],
        [3, 31, 0, 31, 45, 21],
    ),
    (
        LEADERBOARD_STREAM,
        0,
        (4596861581345402941, 1729918315485428212),
        0x60E7B7475C27569D,
        [1, 1, 1, 4, 3],
        [38, 32, 28, 18, 42, 15],
    ),
    (
        PAIRED_STREAM,
        0,
        (4638055615550391262, 18163598631469359728),
        0x0040E487A5627FFC,
        [3, 0, 4, 1, 1],
        [36, 14, 45, 4, 6, 23],
    ),
    (
        "benchmarks.cocarry_eval.ego_random.0",
        0,
        (18263471079795887375, 17626533388673557500),
        0x204FC9A5EF2EE723,
        [4, 0, 1, 1, 2],
        [18, 4, 26, 9, 10, 32],
    ),
    (
        "benchmarks.handover_eval.ego_random.0",
        0,
        (4317956419193339325, 1915321417904283884),
        0xFE0465DE0E08CFCB,
        [0, 4, 0, 0, 4],
        [26, 48, 46, 34, 30, 40],
    ),
    (
        "benchmarks.bundle_runner.ego_random.0.0",
        0,
        (16923900504205112328, 14704532125875055330),
        0x80595291A0563255,
        [3, 2, 1, 0, 1],
        [5, 27, 26, 41, 27, 18],
    ),
]


@pytest.mark.parametrize("golden", STREAM_GOLDENS, ids=lambda golden: f"{golden[0]}-{golden[1]}")
@pytest.mark.parametrize("library", ["plain", "numpy"])
def test_stream_goldens(golden, library):
    label, root_seed, key, raw, below_5, below_50 = golden
    if library == "plain":
        assert plain_stream.spawn_key(label) == key
        assert PlainStream(label, root_seed).raw() == raw
        stream = PlainStream(label, root_seed)
        assert [stream.integers(5, 5), stream.integers(50, 6)] == [below_5, below_50]
    else:
        assert spawn_key(label) == key
        assert substream(label, root_seed).bit_generator.random_raw() == raw
        rng = substream(label, root_seed)
        assert [rng.integers(0, 5, size=5).tolist(), rng.integers(0, 50, size=6).tolist()] == [below_5, below_50]


@given(
    some.text(some.characters(exclude_categories=["Cs"]), max_size=8),
    some.integers(0, 2**140),
    some.lists(some.tuples(some.integers(1, 2**32 - 1), some.integers(0, 9)), max_size=9),
)
@settings(max_examples=60, deadline=None)
def test_plain_stream_equals_numpy(label, root_seed, calls):
    plain, rng = PlainStream(label, root_seed), substream(label, root_seed)
    for bound, size in calls:
        assert plain.integers(bound, size) == rng.integers(0, bound, size=size).tolist()


def test_plain_stream_equals_numpy_where_draws_are_rejected():
    bound = 3_000_000_000
    plain, rng = PlainStream("rejection", 0), substream("rejection", 0)
    assert plain.integers(bound, 50) == rng.integers(0, bound, size=50).tolist()
    assert plain.n_rejected > 0


# --- Published definitions: synthetic vectors -------------------------------------------------------------------------

W1 = [1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1]
W2 = [0, 1, 0, 0, 1, 1, 0, 1]
W3 = [1, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0]
W4 = [1, 1, 1, 1, 0, 1, 1, 1, 1, 1]
REAL = [[0.125, 0.5, 0.375, 0.875, 0.25], [1.0, 0.25, 0.625, 0.5], [0.0, 0.75, 0.375, 0.625, 0.5, 0.875]]
DELTAS = [[1, 0, 1, 1, 0, 0, 1, 0], [0, 1, 1, -1, 0, 0, 0, 1], [1, 1, 0, 1, 1, 0, 1, -1]]
ALL = 0.7083333333333334, 0.6086956521739131

GOLDENS = {
    # clusters, stream, root seed, resamples, IQM, mean, low, high
    "G1": ([W1, W2, W3, W4], BUNDLE_STREAM, 0, 2000, *ALL, 0.25, 1.0),
    "G2": ([W4, W3, W2, W1], BUNDLE_STREAM, 0, 2000, *ALL, 0.23076923076923078, 1.0),
    "G3": ([W1, W2, W3, W4], LEADERBOARD_STREAM, 0, 2000, *ALL, 0.2692307692307692, 1.0),
    "G4": ([W1, W2, W3, W4], BUNDLE_STREAM, 7, 2000, *ALL, 0.25, 1.0),
    "G5": ([W1, W2, W3, W4], BUNDLE_STREAM, 0, 500, *ALL, 0.2520454545454546, 1.0),
    "G6": ([W3], BUNDLE_STREAM, 0, 2000, 0.25, 0.375, 0.0, 0.75),
    "G7": ([[1], [0], [1]], BUNDLE_STREAM, 0, 2000, 0.6666666666666666, 0.6666666666666666, 0.0, 1.0),
    "G8": ([W2, [], W3], BUNDLE_STREAM, 0, 2000, 0.3333333333333333, 0.4166666666666667, 0.0, 0.9083333333333314),
    "G9": (REAL, BUNDLE_STREAM, 0, 2000, 0.5, 0.5083333333333333, 0.32142857142857145, 0.6944444444444444),
    "G10": (DELTAS, PAIRED_STREAM, 0, 2000, 0.5, 0.4166666666666667, 0.08333333333333333, 0.9166666666666666),
}


@pytest.mark.parametrize("name", GOLDENS)
def test_golden_vectors(name):
    clusters, stream, root_seed, n_resamples, iqm, mean, low, high = GOLDENS[name]
    n_episodes = sum(map(len, clusters))
    expected = stats.Summary(n_episodes, mean, iqm, low, high)
    assert stats.success_summary(clusters, n_resamples, root_seed, stream) == expected


@pytest.mark.parametrize("name", GOLDENS)
def test_golden_vectors_by_the_plain_oracle(name):
    clusters, stream, root_seed, n_resamples, _, _, low, high = GOLDENS[name]
    assert plain_stream.interval(clusters, n_resamples, root_seed, stream) == (low, high)


SCORES = some.one_of(some.sampled_from([0.0, 1.0]), some.integers(-8, 8).map(lambda eighths: eighths / 8))
CLUSTERS = some.lists(some.lists(SCORES, max_size=12), min_size=1, max_size=5).filter(any)


@given(CLUSTERS, some.integers(1, 30), some.integers(0, 2**70))
@settings(max_examples=60, deadline=None)
def test_bootstrap_equals_the_plain_oracle(clusters, n_resamples, root_seed):
    expected = plain_stream.interval(clusters, n_resamples, root_seed, BUNDLE_STREAM)
    # Where every resample drew empty clusters only, both ends are NaN.
    np.testing.assert_array_equal(stats.cluster_bootstrap(clusters, n_resamples, root_seed, BUNDLE_STREAM), expected)


@given(some.integers(1, 5), some.integers(1, 9), some.integers(1, 30), some.integers(1, 200), some.data())
@settings(max_examples=60, deadline=None)
def test_equal_clusters_equal_the_plain_oracle_for_any_number_of_draws_at_once(k, n, n_resamples, at_once, data):
    clusters = data.draw(some.lists(some.lists(SCORES, min_size=n, max_size=n), min_size=k, max_size=k))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stats, "DRAWS_AT_ONCE", at_once)
        found = stats.cluster_bootstrap(clusters, n_resamples, 5, BUNDLE_STREAM)
    assert found == plain_stream.interval(clusters, n_resamples, 5, BUNDLE_STREAM)


@given(some.lists(some.lists(some.booleans(), max_size=12), max_size=5), some.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_counting_equals_sorting(clusters, root_seed):
    # Doubling is exact, and scores of 0 and 2 are sorted instead of counted.
    halves = stats.cluster_bootstrap(clusters, 40, root_seed, BUNDLE_STREAM)
    doubled = stats.cluster_bootstrap([[2.0 * v for v in c] for c in clusters], 40, root_seed, BUNDLE_STREAM)
    np.testing.assert_array_equal(doubled, [2.0 * end for end in halves])


@given(some.lists(some.booleans(), min_size=1, max_size=50))
def test_counted_iqm_equals_sorted_iqm(wins):
    assert stats._binary_iqm(np.array(wins)) == stats.interquartile_mean(wins) == plain_stream.iqm(wins)


@pytest.mark.parametrize(
    ("n", "kept"), [(1, 1), (3, 3), (4, 2), (50, 26), (60, 30), (250, 126), (350, 176), (500, 250), (1750, 876)]
)
def test_iqm_keeps_a_partial_quarter_whole(n, kept):
    # As many zeros as are trimmed vanish; the next one counts with weight 1 / kept.
    trim = (n - kept) // 2
    values = [0.0] * trim + [1.0] * (n - trim)
    assert stats.interquartile_mean(values) == 1.0
    values = [0.0] * (trim + 1) + [1.0] * (n - trim - 1)
    assert stats.interquartile_mean(values) == (kept - 1) / kept


@given(some.lists(some.floats(-1e6, 1e6), min_size=1, max_size=60), some.sampled_from([0, 2.5, 50, 90, 97.5, 99, 100]))
def test_percentile_equals_numpy_linear(values, q):
    assert stats.linear_percentile(values, q) == np.percentile(values, q)


def test_without_values_everything_is_nan():
    assert math.isnan(stats.interquartile_mean([]))
    assert math.isnan(stats.linear_percentile([], 50.0))
    for clusters in ([], [[]], [[], []]):
        summary = stats.success_summary(clusters)
        assert summary.n_episodes == 0
        assert all(math.isnan(value) for value in list(vars(summary).values())[1:])


@pytest.mark.parametrize("n_resamples", [0, -1, 100_001, 2000.0, True])
def test_resamples_out_of_range_are_refused(n_resamples):
    with pytest.raises(RowproofError, match="n_resamples must be"):
        stats.cluster_bootstrap([W1], n_resamples, 0, BUNDLE_STREAM)


@pytest.mark.parametrize("root_seed", [-1, 0.0, None])
def test_root_seeds_out_of_range_are_refused(root_seed):
    with pytest.raises(RowproofError, match="root_seed must be"):
        stats.cluster_bootstrap([W1], 10, root_seed, BUNDLE_STREAM)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_non_finite_values_are_refused(value):
    for compute in (
        lambda: stats.interquartile_mean([0.0, value]),
        lambda: stats.linear_percentile([0.0, value], 50.0),
        lambda: stats.cluster_bootstrap([[0.0, value]], 10, 0, BUNDLE_STREAM),
    ):
        with pytest.raises(RowproofError, match="finite"):
            compute()


@pytest.mark.parametrize("q", [-0.1, 100.1, math.nan])
def test_percentages_out_of_range_are_refused(q):
    with pytest.raises(RowproofError, match="q must be"):
        stats.linear_percentile([0.0], q)


# --- Published definitions: records -----------------------------------------------------------------------------------


def record(seed, state, partner, success, episode_idx=0, force_n=None, **metadata):
    return {
        "seed": seed,
        "episode_idx": episode_idx,
        "initial_state_seed": state,
        "success": success,
        "force_peak": force_n,
        "metadata": {"member": partner, **metadata},
    }


def grid(n_seeds=3, partners=("ann", "bob"), n_states=8, wins=lambda seed, state, partner: (seed + state) % 3 > 0):
    """A complete grid, each record with a force of its own; seeds start at 10, states are nested in seeds."""
    return [
        record(
            10 + seed,
            100 * seed + state,
            partner,
            wins(seed, state, partner),
            episode_idx=n_states * column + state,
            force_n=50.0 + seed + state / 64 + column / 1024,
        )
        for seed in range(n_seeds)
        for column, partner in enumerate(partners)
        for state in range(n_states)
    ]


def shuffled(records, root_seed):
    return [records[index] for index in substream("tests.shuffle", root_seed).permutation(len(records))]


def test_clusters_follow_first_appearance_or_the_schedule():
    records = [record(7, 0, "a", True), record(3, 0, "a", False), record(7, 1, "a", False)]
    assert stats.clusters_of(records) == [[1.0, 0.0], [0.0]]
    assert stats.clusters_of(records, [3, 5, 7]) == [[0.0], [1.0, 0.0]]


@pytest.mark.parametrize(("seeds", "message"), [([3, 3, 7], "differ"), ([3], r"scheduled \[3\], found \[7\]")])
def test_schedules_that_do_not_fit_the_records_are_refused(seeds, message):
    with pytest.raises(RowproofError, match=message):
        stats.clusters_of([record(7, 0, "a", True), record(3, 0, "a", False)], seeds)


def sides():
    """Reference and other records whose pairs are the deltas of G10."""
    pairs = [(seed, index, delta) for seed, deltas in enumerate(DELTAS) for index, delta in enumerate(deltas)]
    reference = [record(seed, index, "a", delta >= 0, index) for seed, index, delta in pairs]
    other = [record(seed, index, "a", delta <= 0, index) for seed, index, delta in pairs]
    return reference, other


PAIRED_GOLDEN = {
    "n_pairs": 24,
    "delta_iqm": 0.5,
    "delta_mean": 0.4166666666666667,
    "delta_ci_low": 0.08333333333333333,
    "delta_ci_high": 0.9166666666666666,
}


def test_paired_delta_golden():
    assert stats.paired_delta(*sides(), 2000, 0) == PAIRED_GOLDEN


def test_paired_delta_follows_the_other_side_and_drops_what_is_unmatched():
    reference, other = sides()
    lonely = record(9, 0, "a", True)
    assert stats.paired_delta(reference[::-1], [lonely, *other], 2000, 0) == PAIRED_GOLDEN
    forwards, backwards = (stats.paired_delta(reference, side, 25, 0) for side in (other, other[::-1]))
    assert forwards["delta_iqm"] == backwards["delta_iqm"]
    assert forwards != backwards


def test_paired_delta_needs_pairs():
    reference, other = sides()
    with pytest.raises(RowproofError, match="at least one"):
        stats.paired_delta(reference, [dict(r, initial_state_seed=99) for r in other], 10, 0)


@pytest.mark.parametrize("side", [0, 1])
def test_paired_delta_refuses_repeated_keys(side):
    both = sides()
    both[side].append(both[side][0])
    with pytest.raises(RowproofError, match="found \\(0, 0, 0\\) twice"):
        stats.paired_delta(*both, 10, 0)


def test_stress_counts_records_that_hold_a_force():
    records = [record(0, i, "a", i != 3, force_n=f) for i, f in enumerate([1.0, 2.0, 4.0, 50.0, None])]
    assert stats.stress_summary(records, successes_only=True) == {
        "n": 3,
        "p50": 2.0,
        "p90": 3.6,
        "p99": 3.96,
        "max": 4.0,
    }
    assert stats.stress_summary(records, successes_only=False)["max"] == 50.0
    empty = {"n": 0, "p50": None, "p90": None, "p99": None, "max": None}
    assert stats.stress_summary(records[4:], successes_only=False) == empty


def test_partner_names_and_the_tie_rule():
    records = [record(0, 0, "zoe", True), record(0, 0, "amy", True), record(0, 1, "zoe", True)]
    rates = stats.per_partner(records)
    assert list(rates.items()) == [("zoe", 1.0), ("amy", 1.0)]
    assert stats.partner_range(rates) == (("zoe", 1.0), ("zoe", 1.0))
    assert stats.partner_of({"metadata": {"partner": "solo"}}) == "solo"
    assert stats.partner_of({"metadata": {}}) == stats.partner_of({}) == ""
    with pytest.raises(RowproofError, match="at least one partner"):
        stats.partner_range({})


# --- Published data ---------------------------------------------------------------------------------------------------

BUNDLES = {
    name: f"results/{folder}/{name}"
    for folder, names in {
        "benchmark/cocarry-v1": [
            "ref-script-2026-07-05",
            "b-rnd-2026-07-05",
            "b-stat-2026-07-05",
            "b-blind-2026-07-06",
            "b-aht-2026-07-06",
            *(f"b-joint-seed{seed}-2026-07-06" for seed in range(5)),
            "power-pilot-b-rnd-2026-07-05",
            "power-pilot-ref-script-2026-07-05",
        ],
        "benchmark/handover-v1": ["ref-script-2026-07-06", "b-rnd-2026-07-06", "b-stat-2026-07-06"],
        "admission/cocarry-2026-07-05": ["a1_reference", "a2_single_arm", "a3_blind"],
    }.items()
    for name in names
}


def bundle_folder(name) -> Path:
    return shared_data("chamber-bundles", "spikes", *BUNDLES[name].split("/"))


@cache
def read_bundle(folder: Path):
    document = json.loads((folder / "bundle.json").read_bytes())
    records = [
        json.loads(line)
        for seed in document["seed_schedule"]["seeds"]
        for line in (folder / f"episodes_seed{seed}.jsonl").read_bytes().split(b"\n")
        if line
    ]
    return document, records


def published_records(*names):
    return [record for name in names for record in read_bundle(bundle_folder(name))[1]]


@pytest.mark.parametrize("name", BUNDLES)
def test_published_summaries(name):
    document, records = read_bundle(bundle_folder(name))
    published = document["summary"]
    clusters = stats.clusters_of(records, document["seed_schedule"]["seeds"])
    assert clusters == stats.clusters_of(records)
    ours = stats.success_summary(clusters, published["n_resamples"], published["bootstrap_root_seed"])
    assert vars(ours) == {key: published[key] for key in vars(ours)}


def test_no_published_bundle_is_left_out():
    root = shared_data("chamber-bundles", "spikes", "results")
    assert sorted(path.parent for path in root.rglob("bundle.json")) == sorted(map(bundle_folder, BUNDLES))


A4_PROFILE = {
    "imp_blend_b": (250, 0.992, 1.0, 1.0, 1.0),
    "imp_blend_c": (250, 0.888, 1.0, 0.8331349206349207, 1.0),
    "imp_damp_high": (250, 0.984, 1.0, 1.0, 1.0),
    "imp_damp_low": (250, 1.0, 1.0, 1.0, 1.0),
    "imp_lag_bounded": (250, 0.884, 1.0, 0.9365079365079365, 1.0),
    "imp_stiff_high": (250, 0.976, 1.0, 1.0, 1.0),
    "imp_stiff_low": (250, 1.0, 1.0, 1.0, 1.0),
}


def admission_report(folder):
    path = shared_data("chamber-bundles", "spikes", "results", "admission", folder, "admission_report.json")
    return json.loads(path.read_bytes())


def profile(records, successes_only=True):
    summary = vars(stats.success_summary(stats.clusters_of(records)))
    stress = stats.stress_summary(records, successes_only)
    return {**summary, **{f"stress_{key}": value for key, value in stress.items()}}


@pytest.mark.parametrize("member", A4_PROFILE)
def test_published_profile_of_each_partner(member):
    records = [r for r in published_records("b-aht-2026-07-06") if stats.partner_of(r) == member]
    ours = profile(records)
    assert tuple(ours.values())[:5] == A4_PROFILE[member]
    assert ours == admission_report("cocarry-a4-rev2-2026-07-15")["ego_robustness_profile"][member]


def test_published_admission_figures():
    checks = {check["check"]: check["statistics"] for check in admission_report("cocarry-2026-07-05")["checks"]}
    reference, blind = published_records("a1_reference"), published_records("a3_blind")
    gap = {"n_pairs": 60, "delta_iqm": 1.0, "delta_mean": 1.0, "delta_ci_low": 1.0, "delta_ci_high": 1.0}
    assert stats.paired_delta(reference, blind, 2000, 0) == gap
    assert gap.items() <= checks["A3"].items()
    assert stats.stress_summary(reference, successes_only=True) == {
        "n": 60,
        "p50": 88.59993743896484,
        "p90": 104.0792839050293,
        "p99": 106.42241874694824,
        "max": 107.91167449951172,
    }
    assert stats.stress_summary(published_records("a2_single_arm"), successes_only=False) == {
        "n": 60,
        "p50": 8.16704511642456,
        "p90": 9.45764741897583,
        "p99": 15.180480775833114,
        "max": 17.996543884277344,
    }


JOINT = [f"b-joint-seed{seed}-2026-07-06" for seed in range(5)]
ROWS = {
    # bundles, IQM, low, high, mean, stress p90 (N), worst partner, best partner (rates in two decimals)
    "cocarry REF-SCRIPT": (
        ["ref-script-2026-07-05"],
        *(1.0, 1.0, 1.0, 1.0, 101.95455780029297),
        *("1.00 imp_stiff_low", "1.00 imp_stiff_low"),
    ),
    "cocarry B-RND": (
        ["b-rnd-2026-07-05"],
        *(0.0, 0.0, 0.0, 0.0005714285714285715, 277.7627990722658),
        *("0.00 imp_stiff_low", "0.00 imp_blend_b"),
    ),
    "cocarry B-STAT": (
        ["b-stat-2026-07-05"],
        *(0.4920091324200913, 0.39609018264840185, 0.5913527397260272, 0.496, 101.35244140625001),
        *("0.16 imp_lag_bounded", "0.66 imp_blend_b"),
    ),
    "cocarry B-BLIND": (
        ["b-blind-2026-07-06"],
        *(1.0, 1.0, 1.0, 0.9674285714285714, 107.63633422851564),
        *("0.86 imp_lag_bounded", "1.00 imp_stiff_low"),
    ),
    "cocarry B-AHT": (
        ["b-aht-2026-07-06"],
        *(1.0, 1.0, 1.0, 0.9605714285714285, 108.38698043823243),
        *("0.88 imp_lag_bounded", "1.00 imp_stiff_low"),
    ),
    "cocarry B-JOINT": (
        JOINT,
        *(1.0, 1.0, 1.0, 0.944, 41.19453201293945),
        *("0.94 frozen_cocarry_joint", "0.94 frozen_cocarry_joint"),
    ),
    "handover REF-SCRIPT": (
        ["ref-script-2026-07-06"],
        *(0.176, 0.072, 0.2840999999999994, 0.338, 211.52369909251345),
        *("0.13 presenter_mismatch_45", "0.55 presenter_mismatch_30"),
    ),
    "handover B-RND": (
        ["b-rnd-2026-07-06"],
        *(0.0, 0.0, 0.0, 0.0, 3858.0694754410492),
        *("0.00 presenter_mismatch_30", "0.00 presenter_mismatch_30"),
    ),
    "handover B-STAT": (
        ["b-stat-2026-07-06"],
        *(0.048, 0.0, 0.14, 0.274, 225.56523008117895),
        *("0.05 presenter_mismatch_45", "0.50 presenter_mismatch_30"),
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_published_table_rows(row):
    names, iqm, low, high, mean, p90_n, worst, best = ROWS[row]
    records = published_records(*names)
    summary = stats.success_summary(stats.clusters_of(records), stream=LEADERBOARD_STREAM)
    assert summary == stats.Summary(len(records), mean, iqm, low, high)
    assert stats.stress_summary(records, successes_only=False)["p90"] == p90_n
    shown = [f"{rate:.2f} {name}" for name, rate in stats.partner_range(stats.per_partner(records))]
    assert shown == [worst, best]


# --- Near misses: each slip changes a published number ----------------------------------------------------------------


def pooled_resamples(clusters, rng, within=True):
    """All resamples of the two-stage bootstrap, written anew; ``within=False`` leaves out the second stage."""
    arrays = [np.array(cluster) for cluster in clusters]
    resamples = []
    for _ in range(2000):
        drawn = [arrays[index] for index in rng.integers(0, len(arrays), size=len(arrays))]
        if within:
            drawn = [array[rng.integers(0, array.size, size=array.size)] for array in drawn]
        resamples.append(np.concatenate(drawn))
    return resamples


def iqm(values):
    return plain_stream.iqm(values.tolist())


def fractional_iqm(values):
    """The textbook IQM of 0/1 values: exactly a quarter of the weight is cut at each end."""
    cut = len(values) / 4
    return min(max(float(np.sum(values)) - cut, 0.0), 2 * cut) / (2 * cut)


def ends(values):
    return tuple(np.percentile(values, [2.5, 97.5]).tolist())


def nearest_rank_ends(values):
    ascending = sorted(values)
    return ascending[math.ceil(0.025 * 2000) - 1], ascending[math.ceil(0.975 * 2000) - 1]


def slip(kind, clusters):
    """(point, low, high) of a bootstrap with one slip; ``none`` is the right one."""
    everything = np.concatenate([np.array(cluster) for cluster in clusters])
    rng = substream(LEADERBOARD_STREAM if kind == "leaderboard label" else BUNDLE_STREAM, 0)
    if kind == "plain default_rng":
        rng = np.random.default_rng(0)
    if kind == "one stage":
        clusters = [everything]
    statistic = {"mean": np.mean, "fractional trimming": fractional_iqm}.get(kind, iqm)
    values = [float(statistic(v)) for v in pooled_resamples(clusters, rng, within=kind != "clusters only")]
    point = float(statistic(everything))
    if kind == "mean of cluster IQMs":
        point = math.fsum(map(plain_stream.iqm, clusters)) / len(clusters)
    elif kind == "mean of resampled IQMs":
        point = math.fsum(values) / len(values)
    return (point, *(nearest_rank_ends if kind == "nearest rank" else ends)(values))


CARRY, HANDOVER, SEED_4 = "b-stat-2026-07-05", "ref-script-2026-07-06", "b-joint-seed4-2026-07-06"
NEAR_MISSES = {
    # (slip, bundle): what it gives instead, to the printed digits; None where it changes nothing
    ("fractional trimming", CARRY): (0.492, 0.39829, 0.59146),
    ("fractional trimming", HANDOVER): (None, None, None),
    ("fractional trimming", SEED_4): (0.94, 0.70, None),
    ("clusters only", CARRY): (None, 0.41204, 0.58447),
    ("clusters only", HANDOVER): (None, 0.112, 0.244),
    ("clusters only", SEED_4): (None, 0.9230769230769231, 0.9230769230769231),
    ("one stage", CARRY): (None, 0.44406, 0.53881),
    ("one stage", HANDOVER): (None, 0.096, 0.26),
    ("one stage", SEED_4): (None, None, None),
    ("mean", CARRY): (0.496, 0.44914, 0.54573),
    ("mean", HANDOVER): (0.338, 0.286, 0.392),
    ("mean", SEED_4): (0.72, 0.60, 0.84),
    ("leaderboard label", CARRY): (None, 0.39609, None),
    ("leaderboard label", HANDOVER): (None, None, 0.2840999999999994),
    ("leaderboard label", SEED_4): (None, None, None),
    ("plain default_rng", CARRY): (None, 0.39498, 0.59706),
    ("plain default_rng", HANDOVER): (None, 0.068, 0.28),
    ("plain default_rng", SEED_4): (None, None, None),
    ("nearest rank", CARRY): (None, None, 0.591324),
    ("nearest rank", HANDOVER): (None, None, None),
    ("nearest rank", SEED_4): (None, None, None),
    ("mean of cluster IQMs", CARRY): (0.49204545, None, None),
    ("mean of cluster IQMs", HANDOVER): (None, None, None),
    ("mean of cluster IQMs", SEED_4): (None, None, None),
    ("mean of resampled IQMs", CARRY): (0.49247489, None, None),
    ("mean of resampled IQMs", HANDOVER): (0.17588, None, None),
    ("mean of resampled IQMs", SEED_4): (0.90525, None, None),
}


def digits_of(number):
    return len(repr(number).split(".")[1])


@pytest.mark.parametrize(("kind", "name"), NEAR_MISSES)
def test_near_misses_differ_from_the_published_numbers(kind, name):
    document, records = read_bundle(bundle_folder(name))
    right = [document["summary"][key] for key in ("success_iqm", "success_ci_low", "success_ci_high")]
    wrong = slip(kind, stats.clusters_of(records))
    for ours, theirs, printed in zip(wrong, right, NEAR_MISSES[kind, name], strict=True):
        if printed is None:
            assert ours == theirs
        else:
            assert ours != theirs
            assert round(ours, digits_of(printed)) == printed


@pytest.mark.parametrize("name", [CARRY, HANDOVER, SEED_4])
def test_without_a_slip_the_published_numbers_come_out(name):
    document, records = read_bundle(bundle_folder(name))
    right = [document["summary"][key] for key in ("success_iqm", "success_ci_low", "success_ci_high")]
    assert list(slip("none", stats.clusters_of(records))) == right


# --- Our definitions --------------------------------------------------------------------------------------------------


def test_matrix_of_a_grid():
    matrix = stats.success_matrix(grid(n_seeds=2, n_states=4), partners=["bob", "ann", "eve"])
    assert matrix == {
        "seeds": [10, 11],
        "partners": ["bob", "ann", "eve"],
        "successes": [[2, 2, 0], [3, 3, 0]],
        "episodes": [[4, 4, 0], [4, 4, 0]],
        "rates": [[0.5, 0.5, None], [0.75, 0.75, None]],
    }
    assert stats.mean_cell_rate(matrix) == 0.625


def test_cells_weigh_the_same_whatever_they_hold():
    records = [record(0, state, "ann", True) for state in range(9)] + [record(0, 0, "bob", False)]
    assert stats.mean_cell_rate(stats.success_matrix(records)) == 0.5


@pytest.mark.parametrize(("partners", "message"), [(["ann"], r"found \['bob'\]"), (["ann", "bob", "ann"], "differ")])
def test_rosters_that_do_not_fit_are_refused(partners, message):
    with pytest.raises(RowproofError, match=message):
        stats.success_matrix(grid(), partners)


@pytest.mark.parametrize("compute", [stats.success_matrix, stats.hierarchical_interval, stats.flags, stats.row_summary])
def test_a_row_without_records_is_refused(compute):
    with pytest.raises(RowproofError, match="at least one episode record"):
        compute([])


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_levels_out_of_range_are_refused(level):
    with pytest.raises(RowproofError, match="level must lie"):
        stats.hierarchical_interval(grid(), level=level)


def oracle_interval(records, n_resamples):
    """:func:`hierarchical_interval` at 95 % with plain loops and the plain stream."""
    stream = PlainStream("evaluation.hierarchical_bootstrap", 0)
    seeds = sorted({r["seed"] for r in records})
    states = {seed: sorted({r["initial_state_seed"] for r in records if r["seed"] == seed}) for seed in seeds}
    partners = sorted({stats.partner_of(r) for r in records})
    slots = [stream.integers(len(seeds), len(seeds)) for _ in range(n_resamples)]
    rates = [[[] for _ in seeds] for _ in slots]
    for index, seed in enumerate(seeds):
        for resample, drawn in enumerate(slots):
            for slot in (slot for slot, choice in enumerate(drawn) if choice == index):
                picked = [states[seed][pick] for pick in stream.integers(len(states[seed]), len(states[seed]))]
                for partner in partners:
                    wins = [
                        r["success"]
                        for state in picked
                        for r in records
                        if (r["seed"], r["initial_state_seed"], stats.partner_of(r)) == (seed, state, partner)
                    ]
                    if wins:
                        rates[resample][slot].append(sum(wins) / len(wins))
    means = []
    for resample in rates:
        cells = [rate for slot in resample for rate in slot]
        means.append(math.fsum(cells) / len(cells))
    return tuple(plain_stream.percentile(sorted(means), fraction) for fraction in (0.025, 0.975))


@pytest.mark.parametrize("n_dropped", [0, 7])
def test_interval_equals_the_plain_oracle(n_dropped):
    # Dropping records leaves seeds with different numbers of states and cells that some resamples leave empty.
    records = shuffled(grid(n_seeds=3, n_states=3, partners=("ann", "bob", "")), 1)[n_dropped:]
    assert stats.hierarchical_interval(records, 60) == oracle_interval(records, 60)


@pytest.mark.parametrize("root_seed", range(5))
def test_interval_matrix_and_flags_ignore_the_order_of_records(root_seed):
    records = grid()
    mixed = shuffled(records, root_seed)
    assert mixed != records
    # With few resamples another assignment of draws to starts can hardly give the same ends.
    assert stats.hierarchical_interval(mixed, 25) == stats.hierarchical_interval(records, 25)
    assert stats.success_matrix(mixed) == stats.success_matrix(records)
    assert stats.flags(mixed) == stats.flags(records)


def uneven(seed, state, partner):
    return (3 * seed + 5 * state + len(partner)) % 7 > 2


def test_interval_ignores_names_of_partners_and_numbers_in_the_same_order():
    # Sevenths are inexact, so a sum that rounds at every step would depend on the order of the columns.
    records = grid(partners=("a", "bb", "ccc"), n_states=7, wins=uneven)
    names = {"a": "zed", "bb": "", "ccc": "mid"}
    renamed = [dict(r, metadata={"partner": names[stats.partner_of(r)]}) for r in records]
    renumbered = [dict(r, seed=r["seed"] ** 2, initial_state_seed=7 * r["initial_state_seed"]) for r in records]
    for root_seed in range(20):
        expected = stats.hierarchical_interval(records, 25, root_seed)
        assert stats.hierarchical_interval(renamed, 25, root_seed) == expected
        assert stats.hierarchical_interval(renumbered, 25, root_seed) == expected


def test_records_without_metadata_form_one_partner():
    records = [{key: value for key, value in r.items() if key != "metadata"} for r in grid(partners=("only",))]
    assert stats.success_matrix(records)["partners"] == [""]
    assert stats.hierarchical_interval(records) == stats.hierarchical_interval(grid(partners=("only",)))
    assert stats.flags(records) == []


def test_interval_mirrors_when_success_and_failure_swap():
    records = grid(wins=uneven)
    low, high = stats.hierarchical_interval(records)
    swapped = stats.hierarchical_interval([dict(r, success=not r["success"]) for r in records])
    assert swapped == pytest.approx((1 - high, 1 - low), rel=1e-12)
    assert 0.0 <= low < stats.mean_cell_rate(stats.success_matrix(records)) < high <= 1.0


def test_more_partners_on_the_same_starts_do_not_narrow_the_interval():
    # Identical outcomes on the same starts are no new evidence; a bootstrap over single episodes would think so.
    one = grid(partners=("a",), wins=lambda seed, state, partner: uneven(seed, state, ""))
    four = grid(partners=("a", "b", "c", "d"), wins=lambda seed, state, partner: uneven(seed, state, ""))
    assert stats.hierarchical_interval(four) == stats.hierarchical_interval(one)


def test_interval_narrows_with_the_level():
    wide, narrow = (stats.hierarchical_interval(grid(wins=uneven), level=level) for level in (0.99, 0.5))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_interval_has_the_spread_that_theory_gives():
    # One seed, one partner: resampling n starts with replacement gives a binomial count with the observed rate.
    records = grid(n_seeds=1, partners=("a",), n_states=400, wins=lambda seed, state, partner: state < 120)
    low, high = stats.hierarchical_interval(records, 20_000)
    half_width = 1.96 * math.sqrt(0.3 * 0.7 / 400)
    assert (low, high) == pytest.approx((0.3 - half_width, 0.3 + half_width), abs=0.003)


def test_a_sound_row_has_no_flags():
    assert stats.flags(grid()) == []


@pytest.mark.parametrize("success", [True, False])
def test_flag_saturated(success):
    records = grid(wins=lambda *_: success)
    assert stats.flags(records) == ["degenerate", "saturated"]
    records[0]["success"] = not success
    assert "saturated" not in stats.flags(records)


def test_flag_degenerate_without_saturation():
    records = grid(wins=lambda seed, state, partner: partner == "ann")
    assert stats.hierarchical_interval(records) == (0.5, 0.5)
    assert stats.flags(records) == ["degenerate"]


def test_flags_use_the_interval_that_they_are_given():
    assert stats.flags(grid(), interval=(0.25, 0.25)) == ["degenerate"]


@pytest.mark.parametrize(("n_lost", "expected"), [(5, []), (6, ["bad-seed"])])
def test_flag_bad_seed_beyond_a_quarter_below_the_median(n_lost, expected):
    # 5 of 20 lost is exactly the gap, which is allowed.
    records = grid(n_seeds=5, n_states=20, wins=lambda seed, state, partner: seed != 2 or state >= n_lost)
    assert stats.flags(records) == expected


def copy_of(records, source, target):
    """``records`` with the measurements of one record copied to another start."""
    result = [dict(r) for r in records]
    for key in ("success", "force_peak"):
        result[target][key] = records[source][key]
    return result


def test_flag_repeated_records():
    records = grid()
    assert stats.partner_of(records[0]) == stats.partner_of(records[3])
    assert stats.flags(copy_of(records, 1, 3)) == ["repeated-records"]
    assert stats.flags(shuffled(copy_of(records, 1, 3), 0)) == ["repeated-records"]


def test_equal_measurements_with_another_partner_or_from_an_equal_start_are_no_repetition():
    records = grid()
    assert stats.flags(copy_of(records, 1, 11)) == []
    same_start = copy_of(records, 1, 3)
    same_start[3]["initial_state_seed"] = records[1]["initial_state_seed"]
    assert stats.flags(same_start) == []


def test_one_differing_measurement_is_no_repetition():
    records = copy_of(grid(), 1, 3)
    for index, r in enumerate(records):
        r["metadata"] = {**r["metadata"], "tilt_deg": 1.5 + index / 64}
    assert stats.flags(records) == []


def test_whole_numbers_may_repeat():
    records = [dict(r, force_peak=None, metadata={**r["metadata"], "n_steps": 320.0}) for r in grid()]
    assert stats.flags(records) == []


def test_row_summary_is_plain_json_in_a_fixed_order():
    summary = stats.row_summary(grid(), 100, 3)
    assert decode(encode_document(summary), "summary") == summary
    assert list(summary) == [
        "n_resamples",
        "root_seed",
        "published",
        "success_rate",
        "success_rate_ci",
        "matrix",
        "flags",
        "stress",
        "per_partner",
    ]
    assert (summary["n_resamples"], summary["root_seed"]) == (100, 3)


def test_row_summary_holds_what_the_functions_give():
    records = grid(wins=uneven)
    clusters = stats.clusters_of(records)
    summary = stats.row_summary(records, 100, 3, partners=["bob", "ann"])
    bundle = stats.success_summary(clusters, 100, 3)
    assert summary["published"] == {
        "n_episodes": 48,
        "success_mean": bundle.success_mean,
        "success_iqm": bundle.success_iqm,
        "success_iqm_ci_bundle_stream": [bundle.success_ci_low, bundle.success_ci_high],
        "success_iqm_ci_leaderboard_stream": list(stats.cluster_bootstrap(clusters, 100, 3, LEADERBOARD_STREAM)),
    }
    assert summary["matrix"] == stats.success_matrix(records, ["bob", "ann"])
    assert summary["success_rate"] == stats.mean_cell_rate(summary["matrix"])
    assert summary["success_rate_ci"] == list(stats.hierarchical_interval(records, 100, 3))
    assert summary["flags"] == stats.flags(records)
    assert summary["stress"] == stats.stress_summary(records, successes_only=False)
    assert summary["per_partner"] == stats.per_partner(records)


def test_row_summary_without_stress_or_cells_uses_null():
    records = [dict(r, force_peak=None) for r in grid()]
    summary = stats.row_summary(records, 10, partners=["ann", "bob", "eve"])
    assert summary["stress"] is None
    assert [row[2] for row in summary["matrix"]["rates"]] == [None, None, None]
    encode_document(summary)


EXPECTED_FLAGS = {
    **{name: [] for name in BUNDLES},
    **{
        name: ["degenerate", "saturated"]
        for name in (
            "ref-script-2026-07-05",
            "b-joint-seed0-2026-07-06",
            "b-joint-seed1-2026-07-06",
            "b-joint-seed2-2026-07-06",
            "b-joint-seed3-2026-07-06",
            "power-pilot-b-rnd-2026-07-05",
            "power-pilot-ref-script-2026-07-05",
            "b-rnd-2026-07-06",
            "a1_reference",
            "a2_single_arm",
            "a3_blind",
        )
    },
}


@pytest.mark.parametrize("name", BUNDLES)
def test_flags_of_published_bundles(name):
    assert stats.flags(published_records(name)) == EXPECTED_FLAGS[name]


def test_the_pooled_joint_row_shows_its_bad_seed():
    records = published_records(*JOINT)
    assert stats.flags(records) == ["bad-seed"]
    assert stats.success_matrix(records)["rates"] == [[1.0], [1.0], [1.0], [1.0], [0.72]]
