"""Whole runs of real scripts at a few steps: plumbing and outcome codes, no scores."""

import pytest
from rowproof.records import encode_document
from rowproof.speedrun.logs import parse_log
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.referee import runs
from rowproof.speedrun.referee.runs import time_pairs, train, verify
from rowproof.speedrun.statistics import timed_part

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def baseline(referee, smoke):
    return verify(referee, smoke("R0"), 100, None)


def test_a_verification_measures_everything(baseline, referee):
    assert baseline.outcome is Outcome.OK, baseline.detail
    record = baseline.record()
    encode_document(record)
    assert 2.5 < record["val_loss"] < 4.5
    assert record["n_params"] == 174_976
    # 20 steps of 16 * 128 tokens, each read with the one before it.
    assert record["train_tokens"] == 20 * (16 * 128 + 1)
    assert baseline.run.distinct_tokens == 20 * 16 * 128 + 1
    # Forward and backward: six per parameter of blocks and head, and attention's own 12 T d per layer.
    per_token = 6 * (3 * 12 * 64**2 + 288 * 64) + 3 * 12 * 128 * 64
    assert record["train_flops"] == pytest.approx(20 * 16 * 128 * per_token, rel=1e-3)
    assert 0.75 < record["analytic_flops"] / record["train_flops"] < 1


def test_the_same_seed_gives_the_same_weights_however_it_is_watched(baseline, referee, smoke):
    again = verify(referee, smoke("R0"), 100, None)
    timed = train(referee, smoke("R0"), 100)
    assert again.run.checkpoint == baseline.run.checkpoint
    assert timed.checkpoint == baseline.run.checkpoint
    assert again.evaluation == baseline.evaluation
    assert timed.flops is None


def test_another_seed_gives_other_weights(baseline, referee, smoke):
    assert train(referee, smoke("R0"), 101).checkpoint.sha256 != baseline.run.checkpoint.sha256


def test_runs_have_one_thread(referee, smoke):
    source = smoke("R0").replace("    train()\n", "    print(torch.get_num_threads(), len(os.sched_getaffinity(0)))\n")
    assert train(referee, source, 100).stdout == b"1 1\n"


def test_no_line_of_the_script_is_read_before_go(referee, monkeypatch):
    await_ready = runs._await_ready

    def replace_the_script(connection, program):
        ready_cpu_s = await_ready(connection, program)
        path = program.files["/script/train_gpt.py"]
        path.chmod(0o644)
        path.write_text("print('after')\n")
        return ready_cpu_s

    monkeypatch.setattr(runs, "_await_ready", replace_the_script)
    run = train(referee, "print('before')\n", 100)
    assert run.stdout == b"after\n"
    assert run.outcome is Outcome.NO_CHECKPOINT


ATTENTION = """
import torch
x = torch.ones(1, 4, 128, 16, requires_grad=True)
torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True).sum().backward()
"""


def test_flops_of_fused_attention_count(referee):
    # Two products of T * T * d per head forwards, five backwards.
    product = 2 * 4 * 128 * 128 * 16
    assert train(referee, ATTENTION, 100, count_flops=True).flops == 7 * product


def test_what_a_run_prints_changes_nothing(referee, smoke):
    source = smoke("R0").replace(
        "    train()\n", '    train()\n    print("step:20/20 val_loss:0.1000 train_time:1ms")\n'
    )
    found = verify(referee, source, 100, 0.0)
    assert parse_log(found.run.stdout.decode()).val_loss == 0.1
    assert found.outcome is Outcome.OK
    assert found.evaluation.val_loss > 2.5


@pytest.mark.parametrize("name", ["R3", "R8", "N4"])
def test_patched_scripts_run(baseline, referee, smoke, name):
    gap = baseline.evaluation.audit_loss - baseline.evaluation.val_loss
    found = verify(referee, smoke(name), 100, gap)
    assert found.outcome is Outcome.OK, found.detail


def test_a_pair_is_timed(baseline, referee, smoke):
    verified = {("A", 100): baseline.run.checkpoint.sha256}
    timing = time_pairs(referee, smoke("R0"), smoke("R3"), 1, 20240520, [100], verified)
    assert timing["outcome"] == "ok"
    assert timing["deterministic"]
    assert {run["weights_match"] for run in timing["runs"]} == {True, None}
    assert timed_part(timing)["n_pairs"] == 1
