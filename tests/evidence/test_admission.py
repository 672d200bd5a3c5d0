import json
import math

import pytest
import yaml
from helpers import ROOT, shared_data
from rowproof.errors import HistoryGap, RecordError, RowproofError
from rowproof.evidence.admission import decide_ceiling, decide_floor, limit_stress, render, report, verdict_of
from rowproof.hashing import sha256_hex
from rowproof.layout import episode_file
from rowproof.records import decode, encode_document, encode_lines

RULES = {
    "tau_solv": 0.95,
    "stress_limit_n": 130.0,
    "tau_infeasible": 0.05,
    "delta_min": 0.2,
    "a1": "a1-reference",
    "a2": "a2-single-arm",
    "a3": "a3-blind",
}
SEEDS = (7, 8)
EPISODES = 8

PASS, FAIL, OPEN = "PASS", "FAIL", "INDETERMINATE"


# --- Outcomes of single checks ---------------------------------------------------------------------------------------


def below(value):
    return math.nextafter(value, -math.inf)


def above(value):
    return math.nextafter(value, math.inf)


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (0.95, 1.0, PASS),
        (0.95, 0.95, PASS),
        (below(0.95), 1.0, OPEN),
        (below(0.95), 0.95, OPEN),
        (0.0, below(0.95), FAIL),
    ],
)
def test_a_floor_is_met_at_its_value(low, high, outcome):
    assert decide_floor(low, high, 0.95) == outcome


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (0.0, 0.05, PASS),
        (0.05, 0.05, PASS),
        (0.0, above(0.05), OPEN),
        (0.05, above(0.05), OPEN),
        (above(0.05), 1.0, FAIL),
    ],
)
def test_a_ceiling_is_met_at_its_value(low, high, outcome):
    assert decide_ceiling(low, high, 0.05) == outcome


@pytest.mark.parametrize(
    ("before", "stress_max_n", "limit_n", "after"),
    [
        (PASS, [130.0], 130.0, PASS),
        (PASS, [above(130.0)], 130.0, FAIL),
        (PASS, [10.0, 131.0], 130.0, FAIL),
        (PASS, [131.0], None, PASS),
        (PASS, [None], None, PASS),
        (FAIL, [10.0], 130.0, FAIL),
        (OPEN, [131.0], 130.0, OPEN),
        (FAIL, [None], 130.0, FAIL),
    ],
)
def test_a_stress_limit_only_takes_a_pass_away(before, stress_max_n, limit_n, after):
    assert limit_stress(before, stress_max_n, limit_n) == after


def test_a_limit_without_recorded_stress_is_refused():
    with pytest.raises(RecordError, match="needs recorded stress"):
        limit_stress(PASS, [None], 130.0)


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        ({"A1": PASS, "A2": PASS, "A3": PASS}, "ADMITTED"),
        ({"A1": PASS, "A2": PASS, "A3": PASS, "A4": PASS}, "ADMITTED"),
        ({"A1": PASS, "A2": PASS, "A3": PASS, "A4": FAIL}, "UNINSTRUMENTABLE"),
        ({"A1": FAIL}, "NOT_SOLVABLE"),
        ({"A1": FAIL, "A2": OPEN, "A3": FAIL}, "NOT_SOLVABLE"),
        ({"A1": PASS, "A2": FAIL, "A3": PASS}, "CONTROL"),
        ({"A1": PASS, "A2": PASS, "A3": FAIL}, "CONTROL"),
        ({"A1": OPEN, "A2": PASS, "A3": PASS}, OPEN),
        ({"A1": PASS, "A2": OPEN, "A3": PASS}, OPEN),
        ({"A1": PASS, "A2": PASS, "A3": OPEN}, OPEN),
    ],
)
def test_verdicts(outcomes, verdict):
    assert verdict_of(outcomes) == verdict


# --- The report of a board -------------------------------------------------------------------------------------------


def record(seed, index, success, force_n=100.0):
    return {
        "seed": seed,
        "episode_idx": index,
        "initial_state_seed": seed * 1000 + index,
        "success": success,
        "constraint_violation_peak": 0.0,
        "fallback_fired": 0,
        "force_peak": force_n,
        "metadata": {"member": "m"},
    }


def row(folder, name, records_by_seed):
    """The parts of a bundle that a report reads."""
    (folder / name).mkdir(parents=True)
    document = {
        "task": "cocarry@v1",
        "seed_schedule": {"seeds": list(records_by_seed)},
        "summary": {"n_resamples": 2000, "root_seed": 0},
    }
    (folder / name / "bundle.json").write_bytes(encode_document(document))
    for seed, records in records_by_seed.items():
        (folder / name / episode_file(seed)).write_bytes(encode_lines(records))


@pytest.fixture
def board(tmp_path):
    """Writes three rows that pass in every check, but for what a test says of their episodes; returns the report."""

    def make(a1=lambda r: None, a2=lambda r: None, a3=lambda r: None, **rules):
        for key, success, change in (("a1", True, a1), ("a2", False, a2), ("a3", False, a3)):
            records = {seed: [record(seed, index, success) for index in range(EPISODES)] for seed in SEEDS}
            for records_of_seed in records.values():
                for one in records_of_seed:
                    change(one)
            row(tmp_path, RULES[key], records)
        return report("admission/cocarry-v1", {**RULES, **rules}, tmp_path)

    return make


def outcomes(found):
    return {check["check"]: check["outcome"] for check in found["checks"]}


def test_a_board_that_passes_everywhere_is_admitted(board, tmp_path):
    found = board()
    assert found["verdict"] == "ADMITTED"
    assert outcomes(found) == {"A1": PASS, "A2": PASS, "A3": PASS}
    assert found["thresholds"] == RULES
    assert found["row_digests"] == {
        name: sha256_hex((tmp_path / name / "bundle.json").read_bytes())
        for name in ("a1-reference", "a2-single-arm", "a3-blind")
    }


def test_a_reference_that_fails_ends_the_report(board):
    found = board(a1=lambda r: r.update(success=False), a2=lambda r: r.update(success=True))
    assert found["verdict"] == "NOT_SOLVABLE"
    assert outcomes(found) == {"A1": FAIL}


def test_one_stressed_success_ends_the_report(board):
    def stress(one):
        if (one["seed"], one["episode_idx"]) == (8, 5):
            one["force_peak"] = 130.5

    found = board(a1=stress)
    assert (found["verdict"], outcomes(found)) == ("NOT_SOLVABLE", {"A1": FAIL})
    assert found["checks"][0]["statistics"]["stress_max_n"] == 130.5


def test_the_stress_of_failures_does_not_count(board):
    def fail(one):
        if (one["seed"], one["episode_idx"]) == (7, 0):
            one.update(success=False, force_peak=500.0)

    found = board(a1=fail)
    # The interquartile mean trims one failure away.
    assert outcomes(found)["A1"] == PASS
    assert found["checks"][0]["statistics"]["stress_n"] == 15


# --- The instrument --------------------------------------------------------------------------------------------------

A4 = {"board": "cocarry-v1", "row": "b-aht", "c_min": 0.75}


@pytest.fixture
def instrumented(tmp_path, board):
    """Writes a board's rows and those of an instrument with two partners; returns the report with A4."""

    def make(change=lambda one: None):
        records = {
            seed: [
                record(seed, index, True) | {"metadata": {"member": ("m", "n")[index % 2]}} for index in range(EPISODES)
            ]
            for seed in SEEDS
        }
        for records_of_seed in records.values():
            for one in records_of_seed:
                change(one)
        row(tmp_path / "results", "cocarry-v1/b-aht", records)
        path = tmp_path / "results/cocarry-v1/b-aht/bundle.json"
        path.write_bytes(encode_document({**json.loads(path.read_bytes()), "partners": {"m": "1", "n": "2"}}))
        folder = tmp_path / "results/admission/cocarry-v1"
        board()
        folder.mkdir(parents=True)
        for key in ("a1", "a2", "a3"):
            (tmp_path / RULES[key]).rename(folder / RULES[key])
        return report("admission/cocarry-v1", {**RULES, "a4": A4}, folder)

    return make


def test_an_instrument_that_copes_with_all_partners_passes(instrumented, tmp_path):
    found = instrumented()
    assert (found["verdict"], outcomes(found)["A4"]) == ("ADMITTED", PASS)
    digest = sha256_hex((tmp_path / "results/cocarry-v1/b-aht/bundle.json").read_bytes())
    assert found["row_digests"]["cocarry-v1/b-aht"] == digest


def test_one_partner_too_many_fails_the_instrument(instrumented):
    found = instrumented(lambda one: one.update(success=one["metadata"]["member"] == "m"))
    assert (found["verdict"], outcomes(found)["A4"]) == ("UNINSTRUMENTABLE", FAIL)
    assert found["checks"][-1]["statistics"]["success_ci_low_n"] == 0.0


def test_an_instrument_on_its_threshold_fails_since_its_episodes_cannot_be_extended(instrumented):
    found = instrumented(lambda one: one.update(success=one["seed"] == 7 or one["metadata"]["member"] == "m"))
    low = found["checks"][-1]["statistics"]["success_ci_low_n"]
    assert low < A4["c_min"]
    assert outcomes(found)["A4"] == FAIL


def test_one_stressed_success_fails_the_instrument(instrumented):
    def stress(one):
        if (one["seed"], one["episode_idx"]) == (8, 5):
            one["force_peak"] = 130.5

    assert outcomes(instrumented(stress))["A4"] == FAIL


def test_a_missing_instrument_leaves_the_report_open(board, tmp_path):
    board()
    with pytest.raises(HistoryGap, match="rests on cocarry-v1/b-aht"):
        report("cocarry-admission", {**RULES, "a4": A4}, tmp_path)


def test_a4_gives_the_published_figure_for_the_published_episodes(tmp_path, instrumented):
    published = shared_data("chamber-bundles", "spikes", "results", "benchmark", "cocarry-v1", "b-aht-2026-07-06")
    instrumented()
    bundle = tmp_path / "results/cocarry-v1/b-aht"
    records = {
        seed: [json.loads(line) for line in (published / f"episodes_seed{seed}.jsonl").read_text().splitlines()]
        for seed in range(5)
    }
    names = dict.fromkeys(one["metadata"]["member"] for one in records[0])
    for path in bundle.iterdir():
        path.unlink()
    bundle.rmdir()
    row(bundle.parent, "b-aht", records)
    document = json.loads((bundle / "bundle.json").read_bytes())
    (bundle / "bundle.json").write_bytes(encode_document({**document, "partners": dict.fromkeys(names, "x")}))
    rules = {**RULES, "stress_limit_n": 130.56970529556276, "a4": A4}
    found = report("admission/cocarry-v1", rules, tmp_path / "results/admission/cocarry-v1")["checks"][-1]
    assert found["outcome"] == PASS
    assert found["statistics"]["success_ci_low_weakest"] == found["statistics"]["success_ci_low_imp_blend_c"]
    assert round(found["statistics"]["success_ci_low_weakest"], 3) == 0.833


def test_without_a_limit_any_stress_passes(board):
    found = board(a1=lambda r: r.update(force_peak=1e6), stress_limit_n=None)
    assert outcomes(found)["A1"] == PASS
    assert "stressed" not in found["checks"][0]["criterion"]


def test_a_task_that_one_arm_solves_is_a_control(board):
    found = board(a2=lambda r: r.update(success=True))
    assert (found["verdict"], outcomes(found)) == ("CONTROL", {"A1": PASS, "A2": FAIL, "A3": PASS})


def test_a_task_that_a_blind_ego_solves_is_a_control(board):
    found = board(a3=lambda r: r.update(success=True))
    assert (found["verdict"], outcomes(found)) == ("CONTROL", {"A1": PASS, "A2": PASS, "A3": FAIL})
    assert found["checks"][2]["statistics"]["delta_mean"] == 0.0


def test_clusters_that_disagree_leave_a_check_open(board):
    found = board(a2=lambda r: r.update(success=r["seed"] == 7))
    statistics = found["checks"][1]["statistics"]
    assert statistics["success_ci_low"] <= 0.05 < statistics["success_ci_high"]
    assert (found["verdict"], outcomes(found)["A2"]) == (OPEN, OPEN)


def test_pairs_need_the_same_starts(board):
    with pytest.raises(RowproofError, match="must share at least one"):
        board(a3=lambda r: r.update(initial_state_seed=r["initial_state_seed"] + 1))


def test_thresholds_come_from_the_rules(board):
    found = board(a3=lambda r: r.update(success=True), delta_min=0.0)
    assert outcomes(found)["A3"] == PASS
    assert found["checks"][2]["criterion"] == "lower bound of the paired gap at least 0.0"


# --- Files -----------------------------------------------------------------------------------------------------------


def test_equal_reports_are_equal_bytes_and_say_everything(board):
    found = board()
    files = render(found)
    assert render(json.loads(json.dumps(found))) == files
    assert decode(files["admission_report.json"], "x") == found
    page = files["admission_report.md"].decode()
    assert page.startswith("# Admission of cocarry@v1: ADMITTED\n")
    for check in found["checks"]:
        assert f"| {check['check']} | {check['question']} | **PASS** | {check['criterion']} |" in page
        for name, value in check["statistics"].items():
            assert f"| {name} | {value:.6g} |\n" in page
    for name, digest in found["row_digests"].items():
        assert f"`{name}` `{digest[:12]}`" in page


def test_a_missing_figure_is_a_dash(board):
    page = render(board(a1=lambda r: r.update(success=False)))["admission_report.md"].decode()
    assert "| stress_max_n | — |\n" in page
    assert "## A2" not in page


def test_the_order_of_the_records_does_not_enter(board, tmp_path):
    before = render(board())
    for path in sorted(tmp_path.glob("*/episodes_*")):
        path.write_bytes(b"".join(reversed(path.read_bytes().splitlines(keepends=True))))
    assert render(report("admission/cocarry-v1", RULES, tmp_path)) == before


# --- The published records -------------------------------------------------------------------------------------------


def test_the_published_records_give_the_published_report(tmp_path):
    source = shared_data("chamber-bundles/spikes/results/admission/cocarry-2026-07-05")
    plan = yaml.safe_load((ROOT / "config/plans/admission/cocarry-v1.yaml").read_text(encoding="utf-8"))
    published = json.loads((source / "admission_report.json").read_bytes())
    # A4 was asked in another report, a week later.
    rules = plan["admission"] | {"a4": None}
    for key, cell in (("a1", "a1_reference"), ("a2", "a2_single_arm"), ("a3", "a3_blind")):
        stated = json.loads((source / cell / "bundle.json").read_bytes())
        assert plan["grid"]["seeds"] == stated["seed_schedule"]["seeds"]
        assert plan["statistics"]["n_resamples"] == stated["summary"]["n_resamples"]
        names = [episode_file(seed) for seed in plan["grid"]["seeds"]]
        files = {
            seed: (source / cell / name).read_bytes() for seed, name in zip(plan["grid"]["seeds"], names, strict=True)
        }
        row(tmp_path, rules[key], {s: [decode(x, cell) for x in data.splitlines()] for s, data in files.items()})
    found = report("admission/cocarry-v1", rules, tmp_path)
    assert found["verdict"] == published["verdict"] == "ADMITTED"
    compared = 0
    for ours, theirs in zip(found["checks"], published["checks"], strict=True):
        assert (ours["check"], ours["outcome"]) == (theirs["check"], theirs["outcome"])
        for name, value in theirs["statistics"].items():
            # The report here leaves out the success of the blind row, which its own summary holds.
            if not name.startswith("blind_"):
                own = name + "_n" if name.startswith("stress_") and name != "stress_n" else name
                assert ours["statistics"][own] == value, (ours["check"], name)
                compared += 1
    assert compared == 25
