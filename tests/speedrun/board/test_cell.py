"""Task parameters of a board of the CPU track."""

import pytest
from pydantic import ValidationError
from rowproof.speedrun.cell import SpeedrunCell
from rowproof.speedrun.plan_cell import PlanCell
from speedrun.board.workbench import cell_of


def test_a_valid_cell_is_read_as_it_is_written():
    cell = cell_of()
    read = PlanCell.model_validate(cell).model_dump()
    assert read == cell and list(read) == list(cell)


def test_a_row_has_its_own_candidate_alone_and_a_plan_all():
    own = cell_of(("r4",))
    assert SpeedrunCell.model_validate(own).model_dump() == own
    with pytest.raises(ValidationError, match="candidates"):
        PlanCell.model_validate(own)
    with pytest.raises(ValidationError, match="candidates"):
        SpeedrunCell.model_validate(cell_of(()))


def expectation(cell):
    return cell["candidates"]["r3"]["expected"]


# What is broken, and what the message must name.
BROKEN = {
    "an unknown key": (lambda c: c.update(speed=1), "speed"),
    "a missing key": (lambda c: c.pop("base_gap"), "base_gap"),
    "no track": (lambda c: c.update(track=""), "track"),
    "another corpus": (lambda c: c.update(corpus="gen-v2"), "corpus"),
    "a digest that is none": (lambda c: c.update(data_manifest_sha256="F" * 64), "data_manifest_sha256"),
    "a target of zero": (lambda c: c.update(target=0.0), "target"),
    "a target that is text": (lambda c: c.update(target="1.35"), "target"),
    "a target that is true": (lambda c: c.update(target=True), "target"),
    "less sigma than was measured": (lambda c: c.update(sigma=0.0049), "sigma"),
    "another guard band": (lambda c: c.update(guard_band=0.001), "guard_band must be 0.002"),
    "no windows": (lambda c: c.update(val_windows=0), "val_windows"),
    "half a window": (lambda c: c.update(window_tokens=64.5), "window_tokens"),
    "no salt": (lambda c: c.update(audit_salt=""), "audit_salt"),
    "a baseline that is no candidate": (lambda c: c.update(baseline="r1"), "baseline must be a candidate, found r1"),
    "a baseline of another form": (lambda c: c.update(baseline="R0"), "baseline"),
    "no tokens": (lambda c: c.update(baseline_tokens=0), "baseline_tokens"),
    "operations below zero": (lambda c: c.update(baseline_flops=-1), "baseline_flops"),
    "one candidate alone": (lambda c: c.update(candidates={"r0": c["candidates"]["r0"]}), "candidates"),
    "a candidate of another form": (lambda c: c["candidates"].update(x1=c["candidates"]["r0"]), "candidates"),
    "a candidate without script": (lambda c: c["candidates"]["r3"].pop("script_sha256"), "script_sha256"),
    "an outcome that nobody expects": (lambda c: expectation(c).update(outcome="crashed"), "outcome"),
    "an unknown direction": (lambda c: expectation(c).update(tokens="less"), "tokens"),
    "tokens of no direction": (lambda c: expectation(c).update(tokens=None), "tokens"),
    "no feedback seeds": (lambda c: c.update(feedback_seeds=[]), "feedback_seeds"),
    "one calibration seed": (lambda c: c.update(calibration_seeds=[300]), "calibration_seeds"),
    "a seed below zero": (lambda c: c.update(feedback_seeds=[-1]), "feedback_seeds"),
    "a seed twice": (lambda c: c.update(calibration_seeds=[300, 300]), "share no seed and repeat none"),
    "a seed in both sets": (lambda c: c.update(feedback_seeds=[300]), "share no seed and repeat none"),
    "no blocks": (lambda c: c.update(n_blocks=0), "n_blocks"),
    "an order seed below zero": (lambda c: c.update(order_seed=-1), "order_seed"),
    "a stranger twice": (lambda c: c.update(twice="r8"), "twice must be a candidate, found r8"),
    "another estimator": (lambda c: c.update(estimator="mean-ratio"), "estimator"),
    "another interval": (lambda c: c.update(interval="t-95"), "interval"),
    "fewer resamples": (lambda c: c.update(resamples=1000), "resamples must be 10000"),
    "another bootstrap": (lambda c: c.update(bootstrap_seed=1), "bootstrap_seed must be 20240520"),
    "a milder exclusion": (lambda c: c["exclusion"].update(min_occupancy=0.5), "exclusion must be {'min_occupancy'"),
    "more steal": (lambda c: c["exclusion"].update(max_steal=0.5), "exclusion must be {'min_occupancy'"),
    "no time": (lambda c: c["limits"].update(wall_s=0), "wall_s"),
    "limits that are missing": (lambda c: c["limits"].pop("mem_mb"), "mem_mb"),
    "an unknown limit": (lambda c: c["limits"].update(cores=2), "cores"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_cell_is_refused(what):
    alter, named = BROKEN[what]
    cell = cell_of()
    alter(cell)
    with pytest.raises(ValidationError) as caught:
        PlanCell.model_validate(cell)
    assert named in str(caught.value)
