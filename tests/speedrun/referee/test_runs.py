"""The order of timed runs, what is kept of them, and how verifications are judged; without training."""

from dataclasses import replace

import numpy as np
import pytest
from rowproof.records import encode_document
from rowproof.speedrun.blocks import block_pairs
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.protocol import block_order, pair_orders
from rowproof.speedrun.referee import runs as module
from rowproof.speedrun.referee.checkpoint import Checkpoint
from rowproof.speedrun.referee.evaluation import Evaluation
from rowproof.speedrun.referee.machine import read_machine
from rowproof.speedrun.referee.runs import Referee, Run, Verification, judge_seeds, time_blocks, time_pairs
from rowproof.speedrun.referee.sandbox import Limits, Sandbox
from rowproof.speedrun.statistics import timed_part

TOKENS = np.zeros(10, dtype=np.uint16)
REFEREE = Referee(Sandbox("strict", 0), TOKENS, TOKENS, b"salt", Limits(wall_s=1.0, cpu_s=1))
SEEDS = (100, 101, 102)


def weights(digest):
    return Checkpoint(sha256=digest, n_params=1, size_bytes=1, shapes={})


GOOD = Run(
    **{"outcome": Outcome.OK, "detail": "", "wall_s": 10.0, "cpu_s": 9.9, "max_rss_mb": 1.0, "exit_code": 0},
    **{"tokens": 1, "distinct_tokens": 1, "largest_window": 1, "requests": 1},
    **{"load_before": 0.0, "load_after": 0.0, "steal": 0.0, "slept": False, "core_mhz": None},
    checkpoint=weights("a"),
)


@pytest.fixture
def machine(monkeypatch):
    """Runs that end as told: by default well, B in half the time; ``script`` maps the number of a run to its end."""
    script = {}
    calls = []

    def train(referee, source, seed, count_flops=False):
        calls.append((source, seed))
        run = script.get(len(calls) - 1, GOOD)
        return replace(run, wall_s=run.wall_s / 2, cpu_s=run.cpu_s / 2) if source == "patched" else run

    monkeypatch.setattr(module, "train", train)
    return script, calls


def timed(n_pairs=3, verified=None):
    return time_pairs(REFEREE, "base", "patched", n_pairs, 7, SEEDS, verified or {})


def test_pairs_follow_the_coin_and_the_seeds(machine):
    timing = timed()
    arms = [arm for pair in pair_orders(7, 3)[:4] for arm in pair]
    assert [run["arm"] for run in timing["runs"]] == arms
    assert [source for source, _ in machine[1]] == [{"A": "base", "B": "patched"}[arm] for arm in arms]
    assert [run["seed"] for run in timing["runs"]] == [100, 100, 100, 100, 101, 101, 102, 102]
    assert [run["pair"] for run in timing["runs"]] == [-1, -1, 0, 0, 1, 1, 2, 2]


def test_the_statistics_read_the_timing(machine):
    timing = timed()
    encode_document(timing)
    assert timed_part(timing)["wall_ratio"] == 2.0


@pytest.mark.parametrize("change", [{"cpu_s": 7.9}, {"steal": 0.06}, {"slept": True}])
def test_a_disturbed_pair_is_kept_and_measured_again(machine, change):
    machine[0][3] = replace(GOOD, **change)
    timing = timed()
    assert [(run["pair"], run["try"]) for run in timing["runs"][::2]] == [(-1, 0), (0, 0), (0, 1), (1, 0), (2, 0)]
    assert timed_part(timing)["wall_ratio"] == 2.0


def test_repeats_run_out(machine):
    machine[0].update({number: replace(GOOD, cpu_s=1.0) for number in range(100)})
    timing = timed()
    assert len(timing["runs"]) == 2 * (1 + 3 + 3)
    timed_part(timing)


def test_the_warm_up_is_never_repeated(machine):
    machine[0][0] = replace(GOOD, cpu_s=1.0)
    assert len(timed()["runs"]) == 8


def test_a_failed_run_ends_the_measurement(machine):
    machine[0][4] = replace(GOOD, outcome=Outcome.CRASHED, checkpoint=None)
    timing = timed()
    assert timing["outcome"] == "crashed"
    assert timing["failed_arm"] == timing["runs"][4]["arm"]
    assert len(timing["runs"]) == 5


def test_other_weights_than_verified_are_noticed(machine):
    verified = {(arm, seed): "a" for arm in "AB" for seed in SEEDS}
    assert timed(verified=verified)["deterministic"]
    machine[0][7 + 5] = replace(GOOD, checkpoint=weights("b"))
    timing = timed(n_pairs=6, verified=verified)
    assert not timing["deterministic"]
    assert [run["weights_match"] for run in timing["runs"]].count(False) == 1


def test_blocks_begin_and_end_with_the_reference(machine):
    sources = {"R0": "base", "R1": "patched", "R2": "other"}
    timing = time_blocks(REFEREE, sources, "R0", 2, 7, SEEDS, {})
    assert [run["arm"] for run in timing["runs"]] == [
        *("R0", *block_order(7, 0, ["R1", "R2"], "R0"), *block_order(7, 1, ["R1", "R2"], "R0"))
    ]
    pairs, contended = block_pairs(timing, "R1", "R0")
    assert [(pair.base_s, pair.patched_s) for pair in pairs] == [(10.0, 5.0)] * 2
    assert not contended


def verification(seed, digest, outcome=Outcome.OK):
    return Verification(seed, replace(GOOD, checkpoint=weights(digest)), Evaluation(outcome, "found", 1.0, 1.0))


def test_seeds_are_judged_together():
    assert judge_seeds([verification(1, "a"), verification(2, "b")]) == (Outcome.OK, "")
    assert judge_seeds([verification(1, "a"), verification(2, "b", Outcome.NONCAUSAL)])[0] is Outcome.NONCAUSAL


def test_a_script_that_ignores_its_seed_breaks_its_contract():
    outcome, detail = judge_seeds([verification(1, "a"), verification(2, "b"), verification(3, "a")])
    assert outcome is Outcome.POLICY_VIOLATION
    assert "1 and 3" in detail


def test_a_verification_without_checkpoint_has_no_figures():
    run = replace(GOOD, outcome=Outcome.TIMEOUT, detail="late", checkpoint=None)
    record = Verification(100, run, None).record()
    assert (record["outcome"], record["detail"], record["val_loss"]) == ("timeout", "late", None)
    assert record["analytic_flops"] is None
    encode_document(record)


def test_the_machine_can_be_read():
    reading = read_machine(0)
    assert reading.total_ticks > 0
    assert reading.load >= 0
