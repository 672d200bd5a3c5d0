"""Losses and audits on models that need no training."""

import math
from dataclasses import replace

import numpy as np
import pytest
from rowproof.speedrun.corpus import VOCABULARY
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.referee.evaluation import WINDOW, evaluate, log_probabilities, windows_of
from rowproof.speedrun.referee.sandbox import Limits

pytestmark = pytest.mark.slow

# A model that gives every token the logits of a table, in the manner of ``load_model``.
MODEL = """
import numpy as np

def load_model(path):
    table = np.load(path)["table"]
    return lambda windows: table[windows]
"""
LIMITS = Limits(wall_s=60.0, cpu_s=60)


def bigram(stream):
    counts = np.ones((VOCABULARY, VOCABULARY))
    np.add.at(counts, (stream[:-1], stream[1:]), 100.0)
    return np.log(counts / counts.sum(axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def streams():
    draws = np.random.default_rng(1)
    # Validation text that repeats itself, and fresh text that does not.
    return np.tile(np.arange(65), 127)[: 64 * WINDOW + 1], draws.integers(0, 65, size=64 * WINDOW + 1)


@pytest.fixture
def judged(referee, streams, tmp_path):
    def judge(model=MODEL, table=None, audit=None, base_gap=0.0, limits=LIMITS):
        val = streams[0]
        np.savez(tmp_path / "weights.npz", table=bigram(val) if table is None else table)
        folder = tmp_path / "evaluation"
        folder.mkdir(mode=0o755)
        return evaluate(
            *(referee.sandbox, model, (tmp_path / "weights.npz").read_bytes(), val),
            *(val if audit is None else audit, folder, 7, base_gap, limits),
        )

    return judge


def test_windows_cover_the_stream_once():
    inputs, targets = windows_of(np.arange(2 * WINDOW + 1))
    assert inputs.ravel().tolist() == list(range(2 * WINDOW))
    assert targets.ravel().tolist() == list(range(1, 2 * WINDOW + 1))


def test_log_probabilities_are_normalised_whatever_the_logits():
    scores = log_probabilities(np.array([[1e30, -1e30, 0.0], [5.0, 5.0, 5.0]], dtype=np.float32))
    assert np.exp(scores).sum(axis=-1) == pytest.approx([1.0, 1.0])
    assert scores[1] == pytest.approx([-math.log(3)] * 3)


def test_the_loss_is_that_of_the_table(judged, streams):
    found = judged()
    val, table = streams[0], log_probabilities(bigram(streams[0]))
    assert found.outcome is Outcome.OK
    assert found.val_loss == pytest.approx(-table[val[:-1], val[1:]].mean(), abs=1e-6)
    assert found.audit_loss == found.val_loss
    assert (found.causality_error, found.state_error) == (0.0, 0.0)


def test_text_that_is_known_by_heart_shows_on_fresh_text(judged, streams):
    found = judged(audit=streams[1])
    assert found.outcome is Outcome.AUDIT_GAP
    assert found.audit_loss - found.val_loss > 1


def test_the_gap_of_the_baseline_is_allowed_for(judged, streams):
    assert judged(audit=streams[1], base_gap=10.0).outcome is Outcome.OK


def test_the_baseline_itself_has_no_gap_to_meet(judged, streams):
    assert judged(audit=streams[1], base_gap=None).outcome is Outcome.OK


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ("(table[windows] * (1 + windows[:, -1:, None] / 1e4)).astype('float32')", Outcome.NONCAUSAL),
        ("table[np.roll(windows, 1, axis=0)]", Outcome.STATEFUL_EVAL),
        ("table[windows] * np.float32('inf')", Outcome.BAD_LOGITS),
        ("table[windows].astype('float64')", Outcome.BAD_LOGITS),
        ("table[windows][..., :257]", Outcome.BAD_LOGITS),
        ("np.array([{}], dtype=object)", Outcome.BAD_LOGITS),
        ("1 / 0", Outcome.CRASHED),
        ("__import__('os')._exit(0)", Outcome.CRASHED),
        ("__import__('time').sleep(100)", Outcome.TIMEOUT),
        ("__import__('socket').socket()", Outcome.SANDBOX_VIOLATION),
        ("np.ones(1 << 33)", Outcome.OOM),
        ("[__import__('os').write(int(__import__('sys').argv[3]), b'x' * 64), table[windows]][1]", Outcome.BAD_LOGITS),
    ],
)
def test_other_models_end_with_their_code(judged, answer, outcome):
    model = MODEL.replace("table[windows]", answer, 1)
    limits = replace(LIMITS, wall_s=1.0) if outcome is Outcome.TIMEOUT else LIMITS
    found = judged(model, limits=limits)
    assert found.outcome is outcome, found.detail


def test_a_script_without_load_model_crashes(judged):
    assert judged("import numpy").outcome is Outcome.CRASHED
