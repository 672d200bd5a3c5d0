"""Attempts with the referee, whose runs are figures here."""

from dataclasses import replace

import numpy as np
import pytest
from rowproof.errors import RowproofError
from rowproof.hashing import sha256_hex
from rowproof.speedrun import attempts
from rowproof.speedrun.attempts import RefereeAttempt, phase_seeds
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.referee import runs
from rowproof.speedrun.referee.checkpoint import Checkpoint
from rowproof.speedrun.referee.evaluation import Evaluation
from rowproof.speedrun.referee.runs import Referee, Run, Verification
from rowproof.speedrun.referee.sandbox import Limits, Sandbox
from speedrun.dialogue.workbench import CODE, THRESHOLD, task

PATCHED = CODE.replace("900", "450")
NO_TOKENS = np.zeros(0, dtype=np.uint16)


def weights(source, seed):
    return Checkpoint(sha256_hex(f"{source}{seed}".encode()), 500_000, 2_000_000, {"w": (10, 10)})


class World:
    """What every run of a script gives; ``verified`` lists script, seed, audit gap and limits of each verification."""

    def __init__(self):
        self.verified = []
        self.losses = {CODE: 1.3, PATCHED: 1.28}
        self.seconds = {CODE: 100.0, PATCHED: 50.0}
        self.run_outcomes = {}
        self.timed_outcome = Outcome.OK
        self.drift = 0
        self.audited, self.audit_outcome = [], Outcome.OK

    def train(self, referee, source, seed, count_flops=False):
        outcome = self.run_outcomes.get(source, Outcome.OK) if count_flops else self.timed_outcome
        seconds = self.seconds[source]
        checkpoint = weights(source, seed if count_flops else seed + self.drift) if outcome is Outcome.OK else None
        return Run(
            *(outcome, "as told", seconds, seconds * 0.9, 100.0, 1000, 1000, 129, 10, 0, 0.1, 0.1, 0.0, False, None),
            checkpoint=checkpoint,
            stderr="cut off\nValueError: no",
        )

    def evaluate(self, sandbox, source, weights, val, audit, folder, root_seed, base_gap, limits):
        assert (source, base_gap) == (CODE, None)
        self.audited.append(audit.tolist())
        return Evaluation(self.audit_outcome, "", 1.3, 1.3 + 0.01)

    def verify(self, referee, source, seed, base_gap):
        self.verified.append((source, seed, base_gap, referee.limits, referee.checkpoint_limit_mb))
        run = self.train(referee, source, seed, count_flops=True)
        if run.outcome is not Outcome.OK:
            return Verification(seed, run, None)
        loss = self.losses[source]
        return Verification(seed, run, Evaluation(Outcome.OK, "", loss, loss + 0.01, 0.0, 0.0))


@pytest.fixture
def world(monkeypatch):
    made = World()
    monkeypatch.setattr(attempts, "verify", made.verify)
    monkeypatch.setattr(runs, "evaluate", made.evaluate)
    monkeypatch.setattr(runs, "train", made.train)
    return made


def attempt(**arguments):
    referee = Referee(Sandbox("strict", 0), NO_TOKENS, NO_TOKENS, b"salt", Limits(wall_s=999.0, cpu_s=999))
    referee = replace(referee, audit=lambda sha256, salt: [int(sha256, 16) % 1000])
    resolved = task(**arguments).arguments
    return RefereeAttempt(referee, CODE, THRESHOLD, resolved, phase_seeds(resolved.n_seeds))


def test_a_faster_script_is_verified_with_every_seed_and_timed_against_the_base(world):
    result = attempt(n_pairs=3)(PATCHED, "final")
    assert (result.outcome, result.verdict) == (Outcome.OK, "pass")
    assert result.val_loss == {100: 1.28, 101: 1.28, 102: 1.28}
    assert (result.wall_ratio, result.train_time_ms_median) == (2.0, 50_000.0)
    assert len(result.evidence["timing"]["runs"]) == 2 * (1 + 3)
    assert [seed for source, seed, *_ in world.verified if source == PATCHED] == [100, 101, 102]


def test_both_phases_share_no_seed():
    seeds = phase_seeds(100)
    assert not set(seeds["feedback"]) & set(seeds["final"])
    assert (seeds["feedback"][0], seeds["final"][0]) == (200, 100)


def test_the_base_is_verified_once_and_timed_every_time(world):
    made = attempt(n_pairs=1)
    for _ in range(2):
        timing = made(PATCHED, "feedback").evidence["timing"]
        assert [run["arm"] for run in timing["runs"]].count("A") == 2
    assert [seed for source, seed, *_ in world.verified if source == CODE] == [200, 201, 202]


def test_the_audit_gap_and_the_limits_are_the_baselines(world):
    attempt(n_pairs=1)(PATCHED, "final")
    _, _, gap, limits, checkpoint_mb = world.verified[-1]
    assert gap == pytest.approx(0.01)
    assert (limits.wall_s, limits.cpu_s) == (300.0, 270 + attempts.START_CPU_S)
    assert checkpoint_mb == pytest.approx(4 * 2_000_000 / (1 << 20))


def test_the_gap_of_the_base_is_that_on_the_audit_text_of_the_patch(world):
    attempt(n_pairs=1)(PATCHED, "final")
    assert world.audited == [[int(sha256_hex(PATCHED.encode()), 16) % 1000]] * 3


def test_a_base_that_fails_its_audits_is_a_failure_of_the_harness(world):
    world.audit_outcome = Outcome.BAD_LOGITS
    with pytest.raises(RowproofError, match="must pass its audits, found bad_logits"):
        attempt(n_pairs=1)(PATCHED, "final")


def test_a_short_baseline_leaves_the_least_limits(world):
    world.seconds[CODE] = 2.0
    attempt(n_pairs=1)(PATCHED, "final")
    assert world.verified[-1][3].wall_s == 120


def test_arguments_replace_the_limits(world):
    attempt(n_pairs=1, run_timeout_s=7, cpu_limit_s=8, checkpoint_limit_mb=9)(PATCHED, "final")
    _, _, _, limits, checkpoint_mb = world.verified[-1]
    assert (limits.wall_s, limits.cpu_s, checkpoint_mb) == (7, 8, 9)


def test_a_missed_target_is_not_timed(world):
    world.losses[PATCHED] = 1.36
    result = attempt()(PATCHED, "final")
    assert (result.outcome, result.wall_ratio) == (Outcome.THRESHOLD_MISSED, None)
    assert "timing" not in result.evidence


def test_a_narrow_margin_is_inconclusive(world):
    world.losses[PATCHED] = 1.349
    assert attempt(n_pairs=1)(PATCHED, "final").outcome is Outcome.INCONCLUSIVE


def test_a_failed_run_ends_the_attempt_at_its_first_seed(world):
    world.run_outcomes[PATCHED] = Outcome.CRASHED
    result = attempt()(PATCHED, "final")
    assert (result.outcome, result.val_loss) == (Outcome.CRASHED, {})
    assert result.stderr == "cut off\nValueError: no"
    assert [seed for source, seed, *_ in world.verified if source == PATCHED] == [100]


def test_a_script_that_fails_only_when_timed_fails(world):
    world.timed_outcome = Outcome.TIMEOUT
    assert attempt(n_pairs=1)(PATCHED, "final").outcome is Outcome.TIMEOUT


def test_a_timed_run_with_other_weights_is_nondeterministic(world):
    world.drift = 7
    assert attempt(n_pairs=1)(PATCHED, "final").outcome is Outcome.NONDETERMINISTIC


def test_a_base_that_fails_is_a_failure_of_the_harness(world):
    world.run_outcomes[CODE] = Outcome.TIMEOUT
    with pytest.raises(RowproofError, match="the record's own script must run"):
        attempt()(PATCHED, "final")


def test_a_cut_error_output_begins_with_a_whole_line(world, monkeypatch):
    def verify(referee, source, seed, base_gap):
        found = world.verify(referee, source, seed, base_gap)
        return replace(found, run=replace(found.run, stderr=f"ome/someone/x.py\n{'y' * 5000}"))

    world.run_outcomes[PATCHED] = Outcome.CRASHED
    monkeypatch.setattr(attempts, "verify", verify)
    assert attempt()(PATCHED, "final").stderr == "y" * 5000
