"""Calibration of target, sigma and steps, with losses by a formula in place of runs."""

import json
import math
import shutil

import pytest
from helpers import ROOT
from rowproof.errors import RowproofError
from rowproof.records import decode
from rowproof.speedrun import calibration
from rowproof.speedrun.calibration import (
    MAX_STEPS,
    SEEDS,
    Losses,
    calibrate,
    mean_and_sd,
    pooled_sigma,
)
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.referee.evaluation import Evaluation
from rowproof.speedrun.referee.ladder import read_script
from rowproof.speedrun.steps import steps_of, with_steps
from speedrun.board.workbench import Runs

RESOURCES = ROOT / "resources/speedrun"
RUNGS = ["R0", "R1", "R2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The first rungs of the ladder, and a control."""
    folder = tmp_path_factory.mktemp("ladder")
    (folder / "patches").mkdir()
    for name in ("train_gpt.py", "patches/R1.diff", "patches/R2.diff", "patches/N7.diff"):
        shutil.copy(RESOURCES / name, folder / name)
    return folder


class Formula:
    """Losses of the ladder: that of a rung falls with its steps and meets the bound at a number of its own."""

    def __init__(self, folder, spread=0.002, **needed):
        """Take the steps at which rungs reach the bound, and how far the losses of their seeds lie apart."""
        scripts = {name: read_script(folder, name) for name in RUNGS}
        self.needed = {name: steps_of(script) for name, script in scripts.items()} | needed
        self.spread, self.asked = spread, []
        self._rungs = {with_steps(script, 1): name for name, script in scripts.items()}

    def of(self, script, seeds, audited=False):
        name, steps = self._rungs[with_steps(script, 1)], steps_of(script)
        self.asked.append((name, steps, tuple(seeds), audited))
        # A target of 1.35 follows from the baseline; at sigma 0.005 and three seeds the bound is 0.0101 below.
        middle = 1.34 if name == "R0" else 1.33991 - 0.0001 * (steps - self.needed[name])
        found = []
        for k in range(-2, 3):
            loss = middle + k * self.spread
            found.append({"val_loss": loss, "cpu_s": steps / 10} | ({"audit_loss": loss + 0.007} if audited else {}))
        return found


@pytest.fixture
def calibrated(folder):
    """What calibration makes of a formula, and the formula."""

    def call(n_final=3, **formula):
        losses = Formula(folder, **formula)
        return calibrate(folder, losses, n_final, lambda line: None), losses

    return call


def test_target_sigma_and_gap_follow_from_the_losses(calibrated):
    found, losses = calibrated()
    # 1.34 + 3 * 0.002 * sqrt(2.5) = 1.3495
    assert (found["target"], found["sigma"], found["margin"]) == (1.35, 0.005, 0.010089)
    assert (found["base_gap"], found["base_gap_sd"]) == (0.007, 0.0)
    assert found["seeds"] == list(SEEDS) and all(seeds == SEEDS for _, _, seeds, _ in losses.asked)
    assert {name for name, _, _, audited in losses.asked if audited} == {"R0"}
    assert list(found["rungs"]) == RUNGS
    assert list(found["rungs"]["R0"]["tried"]) == [str(found["rungs"]["R0"]["steps"])] == ["900"]


@pytest.mark.parametrize("needed", [1, 10, 20, 280, 281, 290, 295, 370, 1990, MAX_STEPS])
def test_steps_are_the_smallest_multiple_of_ten_that_reaches_the_bound(calibrated, needed):
    rung = calibrated(R2=needed)[0]["rungs"]["R2"]
    steps = math.ceil(needed / 10) * 10
    assert rung["steps"] == steps
    # It was tried, and so was the one below, which fails.
    assert str(steps) in rung["tried"] and (steps == 10 or str(steps - 10) in rung["tried"])
    assert all(int(tried) % 10 == 0 for tried in rung["tried"])
    assert list(rung["tried"]) == sorted(rung["tried"], key=int)
    assert len(rung["tried"]) < 20, "the search halves"


def test_the_bound_is_met_by_the_mean_over_seeds(calibrated):
    found, _ = calibrated()
    bound = found["target"] - found["margin"]
    for name in RUNGS[1:]:
        steps, tried = found["rungs"][name]["steps"], found["rungs"][name]["tried"]
        assert tried[str(steps)]["mean"] <= bound < tried[str(steps - 10)]["mean"]


def test_wider_losses_demand_a_wider_margin(calibrated):
    # A deviation of 0.004 * sqrt(2.5) = 0.00632 is rounded up to 0.007, and 1.34 + 3 * 0.00632 to 1.36.
    found, _ = calibrated(spread=0.004)
    assert (found["target"], found["sigma"]) == (1.36, 0.007)
    assert found["margin"] == pytest.approx(1.5 * 2.33 * 0.007 / math.sqrt(3), abs=1e-6)


def test_more_final_seeds_demand_a_smaller_margin(calibrated):
    assert calibrated(n_final=12)[0]["margin"] == pytest.approx(0.010089 / 2, abs=1e-6)


def test_a_rung_that_never_reaches_the_bound_is_named(calibrated):
    with pytest.raises(RowproofError, match=f"R1 must reach the target within {MAX_STEPS} steps"):
        calibrated(R1=MAX_STEPS + 1)


@pytest.mark.parametrize(
    ("sds", "sigma"),
    [
        ([0.001, 0.002], 0.005),
        ([0.005, 0.005], 0.005),
        ([0.0051], 0.006),
        # The square root of (0.003**2 + 0.009**2) / 2 is 0.00671; the mean would be 0.006.
        ([0.003, 0.009], 0.007),
        ([0.012, 0.012, 0.012], 0.012),
    ],
)
def test_sigma_is_pooled_rounded_up_and_never_too_small(sds, sigma):
    assert pooled_sigma(sds) == sigma


def test_mean_and_sample_deviation():
    assert mean_and_sd([1.0, 2.0, 3.0, 4.0]) == (2.5, math.sqrt(5 / 3))


# --- Losses are kept -------------------------------------------------------------------------------------------------


@pytest.fixture
def runs(monkeypatch):
    runs = Runs(monkeypatch)
    monkeypatch.setattr(calibration, "train", runs.train)
    monkeypatch.setattr(calibration, "evaluate_weights", runs.evaluate)
    return runs


@pytest.fixture
def script():
    return read_script(RESOURCES, "R3")


def test_a_loss_is_measured_once_and_kept(runs, script, tmp_path):
    path, lines = tmp_path / "losses.json", []
    losses = Losses(path, [runs.referee], lines.append)
    found = losses.of(script, [100, 101])
    assert [each["val_loss"] for each in found] == [1.329, 1.33]
    assert [sorted(each) for each in found] == [["cpu_s", "val_loss"]] * 2
    assert runs.trained == [("r3", 100), ("r3", 101)] and len(lines) == 2
    assert losses.of(script, [101, 100]) == found[::-1]
    assert Losses(path, [runs.referee], lines.append).of(script, [100, 101, 102])[:2] == found
    assert runs.trained == [("r3", seed) for seed in (100, 101, 102)]
    assert len(decode(path.read_bytes(), path.name)) == 3


def test_an_audited_loss_is_another_measurement(runs, script, tmp_path):
    losses = Losses(tmp_path / "losses.json", [runs.referee], print)
    losses.of(script, [100])
    found = losses.of(script, [100], audited=True)
    assert found[0]["audit_loss"] == 1.332 and len(runs.trained) == 2


def test_the_file_does_not_depend_on_the_order_of_measuring(runs, script, tmp_path):
    for name, seeds in (("one", [100, 101, 102]), ("other", [102, 101, 100])):
        losses = Losses(tmp_path / name, [runs.referee], print)
        for seed in seeds:
            losses.of(script, [seed])
    kept = [json.loads((tmp_path / name).read_bytes()) for name in ("one", "other")]
    assert list(kept[0]) == list(kept[1]) == sorted(kept[0])
    assert [each["val_loss"] for each in kept[0].values()] == [each["val_loss"] for each in kept[1].values()]


def test_every_seed_has_an_audit_text_of_its_own(runs, script, tmp_path, monkeypatch):
    salts = []

    def evaluate(referee, *others):
        salts.append(referee.salt)
        return runs.evaluate(referee, *others)

    monkeypatch.setattr(calibration, "evaluate_weights", evaluate)
    Losses(tmp_path / "losses.json", [runs.referee], print).of(script, [100, 101], audited=True)
    assert len(set(salts)) == 2 and runs.referee.salt not in salts


def test_a_run_that_fails_is_told_and_leaves_no_file(runs, script, tmp_path):
    runs.outcomes["r3"] = Outcome.CRASHED
    path = tmp_path / "losses.json"
    losses = Losses(path, [runs.referee], print)
    with pytest.raises(RowproofError, match="must end well, found crashed, seed 100: as the test has it"):
        losses.of(script, [100])
    assert not path.exists()
    # The core is free again.
    runs.outcomes.clear()
    assert losses.of(script, [100])[0]["val_loss"] == 1.329


def test_a_run_that_fails_its_audits_is_told(runs, script, tmp_path, monkeypatch):
    monkeypatch.setattr(calibration, "evaluate_weights", lambda *_: Evaluation(Outcome.NONCAUSAL, "looks ahead"))
    with pytest.raises(RowproofError, match="must pass its audits, found noncausal: looks ahead"):
        Losses(tmp_path / "losses.json", [runs.referee], print).of(script, [100])
