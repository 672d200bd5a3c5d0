"""Figures of a row: how it ended, what it cost, and what its times say."""

import copy
import json
from itertools import permutations

import pytest
from rowproof.errors import RecordError
from rowproof.records import encode_document
from rowproof.speedrun.checks import check_timing
from rowproof.speedrun.figures import disturbed_runs, summarise, timed
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.verdicts import TWICE, floor_of, judge
from speedrun.board.workbench import SEEDS, board_setup, cell_of, records_of, timing_of

TIMES = {"r0": 60.0, "r2": 30.0, "r3": 10.0, "r4": 9.0, TWICE: 10.0}
BLOCKS = 7


def times(n_blocks=BLOCKS, **changes):
    """Seconds of every candidate by block: alike in all of them, or as given."""
    own = TIMES | changes
    return {name: [value] * n_blocks if type(value) is float else value for name, value in own.items()}


@pytest.fixture(scope="module")
def plan():
    """Task parameters; nobody changes them."""
    return cell_of(n_blocks=BLOCKS)


@pytest.fixture
def cell(plan):
    return copy.deepcopy(plan)


@pytest.fixture
def timing(cell):
    return timing_of(cell, times())


# --- How a row ended --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "outcome", "verdict"),
    [
        (1.3412, "ok", "pass"),
        (1.3413, "inconclusive", "inconclusive"),
        (1.35, "inconclusive", "inconclusive"),
        (1.3501, "threshold_missed", "miss"),
    ],
)
def test_losses_decide_when_all_runs_ended_well(cell, loss, outcome, verdict):
    found, test = judge(records_of("r3", cell, loss))
    assert (found, test.verdict) == (outcome, verdict)


def test_the_first_failure_decides(cell):
    records = records_of("r3", cell)
    records[1]["metadata"]["outcome"] = "timeout"
    records[2]["metadata"]["outcome"] = "crashed"
    assert judge(records) == (Outcome.TIMEOUT, None)
    assert judge(records[::2]) == (Outcome.CRASHED, None)


def test_a_failure_counts_before_equal_weights(cell):
    records = records_of("r3", cell, weights_sha256="0" * 64)
    assert judge(records) == (Outcome.POLICY_VIOLATION, None)
    records[2]["metadata"]["outcome"] = "audit_gap"
    assert judge(records) == (Outcome.AUDIT_GAP, None)


def test_sigma_is_that_of_the_plan(cell):
    assert judge(records_of("r3", cell, 1.34))[0] is Outcome.OK
    assert judge(records_of("r3", cell, 1.34, sigma=0.01))[0] is Outcome.INCONCLUSIVE


# --- What its records say ---------------------------------------------------------------------------------------------


def test_losses_and_costs_of_a_row(cell):
    found = summarise(records_of("r3", cell))
    assert found["outcome"] == "ok" and found["verdict"] == "pass"
    assert found["expected"] == {"outcome": "ok", "tokens": "same", "time": "same"}
    assert (found["base"], found["threshold"]) == ("r2", 1.35)
    assert found["val_loss"] == 1.33
    assert found["val_loss_by_seed"] == {"100": 1.329, "101": 1.33, "102": 1.331}
    # 0.02 * sqrt(3) / 0.005
    assert found["margin_z"] == 6.928
    assert (found["audit_gap"], found["seeds_met"]) == (0.003, 1.0)
    assert (found["train_tokens"], found["tokens_ratio"], found["flops_ratio"]) == (307_200, 6.0, 6.0)
    # 0.3 + 0.7 * 6
    assert found["reward_flops"] == 4.5
    assert (found["lines_added"], found["lines_removed"], found["flags"]) == (53, 5, ["low_tokens"])


def test_a_patch_that_changes_nothing_has_no_figures(cell):
    found = summarise(records_of("n7", cell))
    assert (found["outcome"], found["reward_flops"], found["seeds_met"]) == ("noop_patch", 0.0, 0.0)
    nothing = ("verdict", "margin_z", "val_loss", "audit_gap", "train_tokens", "tokens_ratio", "train_flops")
    assert all(found[name] is None for name in (*nothing, "flops_ratio", "n_params", "checkpoint_bytes"))
    assert found["val_loss_by_seed"] == dict.fromkeys(map(str, SEEDS))


def test_a_missed_target_earns_nothing(cell):
    found = summarise(records_of("n1", cell, 1.3504))
    assert (found["outcome"], found["verdict"], found["reward_flops"]) == ("threshold_missed", "miss", 0.0)
    assert found["margin_z"] < 0 and found["val_loss"] == 1.35 and found["seeds_met"] == pytest.approx(0.333)


def test_figures_do_not_depend_on_the_order_of_records(cell):
    records = records_of("r3", cell)
    records[0]["metadata"]["flags"] = ["precision_changed"]
    expected = encode_document(summarise(records))
    for order in permutations(records):
        assert encode_document(summarise(order)) == expected


@pytest.mark.parametrize(
    ("changes", "flags"),
    [
        ({"sandbox": "basic"}, ["basic_sandbox"]),
        ({"train_tokens": 368_639}, ["low_tokens"]),
        ({"train_tokens": 368_640}, []),
        ({"flags": ["precision_changed"]}, ["precision_changed"]),
    ],
)
def test_flags_of_a_row(cell, changes, flags):
    assert summarise(records_of("r2", cell, **changes))["flags"] == flags


def test_costs_that_differ_between_seeds_are_not_shown(cell):
    records = records_of("r3", cell)
    records[2]["metadata"]["train_tokens"] += 1
    found = summarise(records)
    assert found["train_tokens"] is found["tokens_ratio"] is None and found["flops_ratio"] == 6.0


# --- What its times say -----------------------------------------------------------------------------------------------


def test_rewards_follow_the_formula(cell, timing):
    found = timed(records_of("r3", cell), timing)
    assert found["timed"] and (found["n_pairs"], found["sign_wins"]) == (7, 7)
    assert (found["wall_ratio"], found["ratio_ci95"]) == (6.0, [6.0, 6.0])
    assert found["reward"] == found["reward_strict"] == 4.5, "0.3 + 0.7 * 60 / 10"
    assert (found["reward_ci95"], found["reward_code_variant"]) == ([4.5, 4.5], 6.3)
    assert (found["wall_ms_base_median"], found["wall_ms_patched_median"]) == (60_000.0, 10_000.0)
    assert found["cpu_ratio"] == 6.0


def test_the_baseline_is_that(cell, timing):
    found = timed(records_of("r0", cell), timing)
    assert (found["wall_ratio"], found["reward"], found["says"]) == (1.0, 1.0, ["baseline"])
    assert found["step"] is None and found["fsr"] is None


def test_a_baseline_run_on_both_sides_counts_with_its_geometric_mean(cell):
    ends = {0: 50.0, len(TIMES): 72.0}

    def change(run):
        if run["arm"] == "r0" and run["pair"] >= 0:
            run["t_wall_s"], run["cpu_s"] = ends[run["order"]], 50.0

    # The square root of 50 * 72 is 60.
    assert timed(records_of("r3", cell), timing_of(cell, times(), change))["wall_ratio"] == 6.0


def disturb(run):
    if run["arm"] == "r3" and run["pair"] == 2:
        run["steal"] = 0.06


def differ(run):
    if run["arm"] == "r3" and run["pair"] == 2:
        run |= {"weights_sha256": "0" * 64, "weights_match": False}


@pytest.mark.parametrize(
    ("own", "says"),
    [
        ({}, ["valid", "faster", "record"]),
        # The noise floor is half of 6 / 5 - 6 / 6.67.
        ({"r3": 58.0, TWICE: [50.0, 58.0, 66.0, 58.0, 50.0, 66.0, 58.0]}, ["valid", "no difference shown"]),
        ({"r3": 60.0, TWICE: 60.0}, ["valid", "no difference shown"]),
        ({"r3": 70.0, TWICE: 70.0}, ["valid"]),
        # One block of seven is lost.
        ({"r3": [10.0] * 6 + [61.0], TWICE: [10.0] * 6 + [61.0]}, ["valid", "faster"]),
    ],
)
def test_what_a_row_may_say(cell, own, says):
    assert timed(records_of("r3", cell), timing_of(cell, times(**own)))["says"] == says


def test_three_blocks_are_no_record(cell):
    cell["n_blocks"] = 3
    assert timed(records_of("r3", cell), timing_of(cell, times(3)))["says"] == ["valid", "faster"]


def test_two_blocks_show_nothing(cell):
    cell["n_blocks"] = 2
    assert timed(records_of("r3", cell), timing_of(cell, times(2)))["says"] == ["valid"]


def test_only_the_strict_sandbox_makes_a_record(cell, timing):
    assert timed(records_of("r3", cell), timing | {"sandbox": "basic"})["says"] == ["valid", "faster"]


def test_a_disturbed_block_is_kept_and_no_record(cell):
    timing = timing_of(cell, times(), disturb)
    found = timed(records_of("r3", cell), timing)
    assert (found["says"], found["flags"], found["n_pairs"]) == (["valid", "faster"], ["contended"], 7)
    assert disturbed_runs(timing) == 1
    assert timed(records_of("r4", cell), timing)["flags"] == []


def test_a_record_needs_operations_that_point_the_same_way(cell):
    more_flops = 2_500_000_000_000
    found = timed(records_of("r3", cell, train_flops=more_flops), timing_of(cell, times(r3=50.0, twice=50.0)))
    assert found["says"] == ["valid", "faster"]


def test_other_weights_than_in_the_verification_run_are_told_and_claim_nothing(cell):
    timing = timing_of(cell, times(), differ)
    found = timed(records_of("r3", cell), timing)
    assert (found["outcome"], found["deterministic"], found["says"]) == ("nondeterministic", False, [])
    assert found["flags"] == ["nondeterministic"] and found["reward"] == 4.5
    assert timed(records_of("r4", cell), timing)["deterministic"]


def test_an_inconclusive_loss_earns_the_plain_reward_alone(cell, timing):
    found = timed(records_of("r3", cell, 1.345), timing)
    assert (found["outcome"], found["reward"], found["reward_strict"]) == ("inconclusive", 4.5, 0.0)
    assert found["says"] == []


@pytest.mark.parametrize(("peak_gflops", "outcome"), [(33.7, "ok"), (33.6, "implausible")])
def test_less_cpu_time_than_the_operations_need_is_implausible(cell, timing, peak_gflops, outcome):
    # 320 GFLOP in 9.5 CPU seconds are 33.684 GFLOP/s.
    found = timed(records_of("r3", cell), timing | {"peak_gflops": peak_gflops})
    assert found["outcome"] == outcome
    earned = (4.5, 4.5, ["valid", "faster", "record"]) if outcome == "ok" else (0.0, 0.0, [])
    assert (found["reward"], found["reward_strict"], found["says"]) == earned


@pytest.mark.parametrize(("seconds", "flags"), [(10.0, []), (20.1, ["explain"]), (4.9, ["explain"])])
def test_times_far_from_operations_ask_for_an_explanation(cell, seconds, flags):
    timing = timing_of(cell, times(r3=seconds, twice=seconds))
    assert timed(records_of("r3", cell), timing)["flags"] == flags


def test_estimators_that_differ_ask_for_an_explanation(cell):
    # Most blocks are slow, and the base is slow in others.
    own = {"r0": [60.0, 60.0, 60.0, 60.0, 90.0, 90.0, 90.0], "r3": [15.0, 15.0, 15.0, 15.0, 10.0, 10.0, 10.0]}
    timing = timing_of(cell, times(**own, twice=own["r3"]))
    assert "explain" in timed(records_of("r3", cell), timing)["flags"]


def test_a_step_is_measured_against_the_script_that_is_patched(cell, timing):
    step = timed(records_of("r4", cell), timing)["step"]
    assert step == {
        "base": "r3",
        "wall_ratio": 1.111111,
        "ratio_ci95": [1.111111, 1.111111],
        "wins": 7,
        "n_pairs": 7,
        "p_value": 1 / 128,
    }
    without = timing_of(cell, {name: own for name, own in times().items() if name != "r2"})
    assert timed(records_of("r3", cell), without)["step"] is None


@pytest.mark.parametrize(
    ("own", "fsr"),
    [
        ({"n1": 9.5}, 0.5),
        ({"n1": 8.5}, 1.5),
        ({"n1": 11.0}, -1.0),
        # No gap between the rungs is shown, or it is none.
        ({"n1": 9.5, "r4": 10.0}, None),
        ({"n1": 9.5, "r4": 11.0}, None),
    ],
)
def test_the_share_of_the_step_that_a_control_recovers(cell, own, fsr):
    assert timed(records_of("n1", cell), timing_of(cell, times(**own)))["fsr"] == fsr


def test_rungs_and_what_has_no_next_rung_recover_no_share(cell, timing):
    assert timed(records_of("r3", cell), timing)["fsr"] is None
    without = timing_of(cell, {name: own for name, own in times(n1=9.5).items() if name != "r4"})
    assert timed(records_of("n1", cell), without)["fsr"] is None


def test_a_candidate_against_itself_shows_no_difference(cell):
    noisy = [10.0, 10.2, 9.8, 10.1, 9.9, 10.0, 10.3]
    timing = timing_of(cell, times(r3=noisy, twice=noisy[::-1]))
    found = timed(records_of("r4", cell), timing)["twice"]
    low, high = found["ratio_ci95"]
    assert found["candidate"] == "r3" and low < 1 < high
    assert found["says"] == ["valid", "no difference shown"]
    assert timing["aa_floor"] == pytest.approx((high - low) / 2, abs=1e-6)


@pytest.mark.parametrize(("name", "loss"), [("n1", 1.38), ("n7", None)])
def test_what_earns_nothing_is_not_timed(cell, timing, name, loss):
    assert timed(records_of(name, cell, loss), timing) == {
        "timed": False,
        "reward": 0.0,
        "reward_ci95": [0.0, 0.0],
        "reward_strict": 0.0,
        "reward_code_variant": 0.0,
        "says": [],
        "flags": [],
    }


def test_what_met_the_target_must_be_timed(cell, timing):
    with pytest.raises(RecordError, match="n1 met the target and must be timed"):
        timed(records_of("n1", cell), timing)


def test_figures_of_times_are_the_same_bytes_wherever_they_are_computed(cell):
    noisy = {name: [seconds * (1 + 0.01 * (k * 37 % 11)) for k in range(BLOCKS)] for name, seconds in TIMES.items()}
    timing, records = timing_of(cell, noisy), records_of("r3", cell)
    expected = encode_document(timed(records, timing))
    read = json.loads(encode_document(timing))
    assert encode_document(timed(json.loads(json.dumps(records))[::-1], read)) == expected
    assert encode_document(timed(records, dict(reversed(read.items())))) == expected


# --- What is wrong with times -----------------------------------------------------------------------------------------


def problems_of(cell, timing, policy="r3", **metadata):
    return check_timing(board_setup(cell), records_of(policy, cell, **metadata), timing)


def test_times_by_the_protocol_are_right_for_every_row(cell, timing):
    for name in ("r0", "r2", "r3", "r4"):
        assert problems_of(cell, timing, name) == []
    assert problems_of(cell, timing, "n1", loss=1.38) == problems_of(cell, timing, "n7") == []
    assert problems_of(cell, timing_of(cell, times(), differ)) == [], "other weights are told, and no mistake"
    assert problems_of(cell, timing_of(cell, times(), disturb)) == []


def run(timing, arm, block=1):
    return next(run for run in timing["runs"] if (run["arm"], run["pair"]) == (arm, block))


def swap_two_runs(timing):
    one, other = run(timing, "r2"), run(timing, "r4")
    one["order"], other["order"] = other["order"], one["order"]
    timing["runs"].sort(key=lambda each: (each["pair"], each["order"]))


def measure_less(timing):
    timing["runs"] = [each for each in timing["runs"] if each["pair"] < BLOCKS - 1]
    timing["n_pairs"] = BLOCKS - 1
    timing["aa_floor"] = floor_of(timing)


def leave_out(arm):
    def alter(timing):
        timing["runs"] = [each for each in timing["runs"] if each["arm"] != arm]

    return alter


# What is broken, and what must be said of it.
BROKEN = {
    "runs in another order": (swap_two_runs, "must follow the protocol"),
    "an order seed that does not fit": (lambda t: t.update(order_seed=1), "must follow the protocol"),
    "fewer blocks than planned": (measure_less, "n_pairs must be 7, found 6"),
    "another design": (lambda t: t.update(design="pairs"), "must follow the protocol"),
    "another script": (lambda t: t["scripts_sha256"].update(r4="0" * 64), "scripts_sha256 must be"),
    "another script that runs twice": (lambda t: t["scripts_sha256"].update(twice="0" * 64), "scripts_sha256 must be"),
    "a script that nobody planned": (lambda t: t["scripts_sha256"].update(r8="0" * 64), "form of a timing"),
    "a row that was not timed": (lambda t: t["scripts_sha256"].pop("r3"), "r3 met the target and must be timed"),
    "another candidate twice": (lambda t: t.update(twice="r4"), "twice must be r3, found r4"),
    "a smaller floor": (lambda t: t.update(aa_floor=0.001), "aa_floor must be 0.0, found 0.001"),
    "a floor that is no fraction": (lambda t: t.update(aa_floor=1.5), "aa_floor must be a fraction"),
    "a block that is missing": (
        lambda t: t.update(runs=[each for each in t["runs"] if each["pair"] != 3]),
        "block 3 must hold",
    ),
    "a run that is missing": (lambda t: t["runs"].remove(run(t, "r4")), "must follow the protocol"),
    "a candidate that is missing": (leave_out("r4"), "must follow the protocol"),
    "an extra block": (lambda t: t["runs"].append({**t["runs"][-1], "pair": BLOCKS}), "blocks 0 to 6 alone"),
    "no warm-up": (lambda t: t["runs"].pop(0), "one warm-up of r0"),
    "a second warm-up": (lambda t: t["runs"].insert(0, t["runs"][0]), "one warm-up of r0"),
    "a warm-up of another": (lambda t: t["runs"][0].update(arm="r3"), "one warm-up of r0"),
    "blocks in another order": (lambda t: t["runs"].reverse() or t["runs"].sort(key=lambda r: r["order"]), "warm-up"),
    "another seed": (lambda t: run(t, "r2").update(seed=100), "seed must go round through [100, 101, 102], found 100"),
    "other tokens": (lambda t: run(t, "r3").update(tokens=5), "tokens must be 307200, found 5"),
    "weights that match and differ": (
        lambda t: run(t, "r3").update(weights_sha256="0" * 64),
        "weights_match must be False, found True",
    ),
    "equal weights that do not match": (
        lambda t: run(t, "r3").update(weights_match=False),
        "weights_match must be True, found False",
    ),
    "a match that nobody looked at": (
        lambda t: run(t, "r3").update(weights_match=None),
        "weights_match must be True, found None",
    ),
    "a measurement that failed": (lambda t: t.update(outcome="crashed"), "must have ended well, found crashed"),
    "a run that failed": (lambda t: run(t, "r2").update(outcome="oom"), "must have ended well, found oom"),
    "a time that is text": (lambda t: run(t, "r3").update(t_wall_s="10.0"), "t_wall_s must be float"),
    "a time that is whole": (lambda t: run(t, "r3").update(t_wall_s=10), "t_wall_s must be float"),
    "a time of zero": (lambda t: run(t, "r3").update(t_wall_s=0.0), "times must be positive"),
    "a time without end": (lambda t: run(t, "r3").update(cpu_s=float("inf")), "times must be positive"),
    "times beyond all numbers": (
        lambda t: [each.update(t_wall_s=1e308, cpu_s=1e308) for each in t["runs"] if each["arm"] == "r0"],
        "finite numbers only",
    ),
    "a run that is none": (lambda t: t["runs"].insert(3, None), "must be an object"),
    "runs that are no list": (lambda t: t.update(runs={}), "runs must be list"),
    "no runs": (lambda t: t["runs"].clear(), "block 0 must hold"),
    "no blocks": (lambda t: t.update(n_pairs=0), "n_pairs must be from 1"),
    "no scripts": (lambda t: t.pop("scripts_sha256"), "form of a timing, found KeyError"),
    "scripts that are a number": (lambda t: t.update(scripts_sha256=3), "form of a timing, found TypeError"),
    "no sandbox": (lambda t: t.pop("sandbox"), "form of a timing, found KeyError"),
    "a run without weights": (lambda t: run(t, "r3").pop("weights_sha256"), "form of a timing, found KeyError"),
    "no platform": (lambda t: t.pop("platform"), "form of a timing, found KeyError"),
    "no peak": (lambda t: t.pop("peak_gflops"), "form of a timing, found KeyError"),
    "a peak of zero": (lambda t: t.update(peak_gflops=0.0), "peak_gflops must be positive"),
    "a peak that is text": (lambda t: t.update(peak_gflops="fast"), "peak_gflops must be positive"),
    "a peak that is whole": (lambda t: t.update(peak_gflops=100), "peak_gflops must be positive"),
    "no machine": (lambda t: t.update(machine=None), "form of a timing, found TypeError"),
    "a machine without cores": (lambda t: t.update(machine={"cpu": "a model"}), "form of a timing, found KeyError"),
    "a machine of two lines": (lambda t: t.update(machine={"cores": 2, "cpu": "a\n# b"}), "must tell its cores"),
    "no date": (lambda t: t.update(date=None), "form of a timing, found TypeError"),
    "another date": (lambda t: t.update(date="today"), "date must be a day"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_times_that_are_wrong_are_told(cell, timing, what):
    alter, said = BROKEN[what]
    timing = copy.deepcopy(timing)
    assert problems_of(cell, timing) == []
    alter(timing)
    found = problems_of(cell, timing)
    assert any(said in problem for problem in found), found


@pytest.mark.parametrize("timing", [None, [], 3, "timing", {}])
def test_what_is_no_timing_is_told(cell, timing):
    assert any("must have the form of a timing" in problem for problem in problems_of(cell, timing))


def test_records_that_were_made_again_elsewhere_say_nothing_of_the_weights(cell, timing):
    records = records_of("r3", cell, platform="another")
    for record in records:
        record["metadata"]["weights_sha256"] = f"{record['seed']:064x}"
    assert check_timing(board_setup(cell), records, timing) == []
    records[1]["metadata"]["platform"] = timing["platform"]
    assert any("weights_match must be False" in problem for problem in check_timing(board_setup(cell), records, timing))


def test_another_order_seed_than_the_plan_has_is_told(cell):
    timing = timing_of({**cell, "order_seed": 7}, times())
    assert problems_of(cell, timing) == [f"order_seed must be {cell['order_seed']}, found 7"]
