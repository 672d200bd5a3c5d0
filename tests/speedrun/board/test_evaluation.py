"""Verification runs of a row: which there are, what a record says, and how near a rebuilt one must come."""

import copy
import json
import shutil

import pytest
from helpers import ROOT
from rowproof.errors import ConfigError
from rowproof.records import encode_line
from rowproof.speedrun import evaluation
from rowproof.speedrun.checks import MACHINE_FIELDS, METADATA_SCHEMA, check_record, difference
from rowproof.speedrun.evaluation import LADDER, read_entry, simulate, specs
from rowproof.speedrun.outcomes import Outcome
from speedrun.board.workbench import SEEDS, Runs, cell_of, record_of, records_of, row_setup, script_sha256


@pytest.fixture
def setup():
    return row_setup("r3", cell_of())


@pytest.fixture
def no_runs(monkeypatch):
    """A world in which nothing may run."""

    def refuse(*args):
        raise AssertionError("nothing may run")

    for name in ("prepare_referee", "idlest_core", "verify", "platform_class"):
        monkeypatch.setattr(evaluation, name, refuse)


@pytest.fixture
def runs(monkeypatch):
    return Runs(monkeypatch)


# --- Specs ------------------------------------------------------------------------------------------------------------


def test_a_row_has_one_run_per_seed_in_the_order_of_the_plan(setup):
    units = specs({**setup, "seeds": [102, 100, 101]})
    assert [unit["seed"] for unit in units] == [102, 100, 101]
    assert units[1] == {
        "seed": 100,
        "episode_idx": 0,
        "initial_state_seed": 100,
        "member": "nobody",
        "script_sha256": script_sha256("r3"),
    }
    assert list(units[0]) == ["seed", "episode_idx", "initial_state_seed", "member", "script_sha256"]


def another_script(setup):
    setup["cell"]["candidates"]["r3"]["script_sha256"] = "0" * 64


REFUSED = {
    "another partner": (lambda s: s["members"][0].update(name="somebody"), "the partner nobody"),
    "a second partner": (lambda s: s["members"].append({**s["members"][0], "name": "other"}), "the partner nobody"),
    "no partner": (lambda s: s["members"].clear(), "the partner nobody"),
    "more runs per seed": (lambda s: s.update(episodes_per_partner=2), "one run per seed"),
    "a seed of feedback": (lambda s: s["seeds"].append(200), r"nothing else, found \[200\]"),
    "a seed of calibration": (lambda s: s["seeds"].append(301), r"nothing else, found \[301\]"),
    "another script": (another_script, "r3: its script must have the digest 0000"),
    "another corpus": (lambda s: s["cell"].update(data_manifest_sha256="0" * 64), "written for the corpus"),
    "other windows": (lambda s: s["cell"].update(window_tokens=64), "in windows of 64:"),
    "an unknown key": (lambda s: s["cell"].update(speed=1), "cell: speed: unknown key"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_specs_refuse(setup, what):
    alter, message = REFUSED[what]
    alter(setup)
    with pytest.raises(ConfigError, match=message):
        specs(setup)


def test_a_patch_that_was_edited_after_the_plan_is_refused(setup, tmp_path):
    shutil.copytree(ROOT / LADDER, tmp_path / LADDER)
    assert specs(setup, root=tmp_path) == specs(setup)
    path = tmp_path / LADDER / "train_gpt.py"
    path.write_text(path.read_text() + "# another line\n")
    with pytest.raises(ConfigError, match="restore the patches"):
        specs(setup, root=tmp_path)
    with pytest.raises(ConfigError, match="restore the patches"):
        next(simulate(setup, specs(setup), root=tmp_path))


# --- Simulation -------------------------------------------------------------------------------------------------------


def test_a_patch_that_changes_nothing_ends_without_any_run(no_runs):
    setup = row_setup("n7", cell_of())
    units = specs(setup)
    records = list(simulate(setup, units))
    assert [record["seed"] for record in records] == list(SEEDS)
    for unit, record in zip(units, records, strict=True):
        told = record["metadata"]
        assert not record["success"] and told["outcome"] == "noop_patch"
        assert told["val_loss"] is told["weights_sha256"] is told["train_tokens"] is told["sandbox"] is None
        assert told["diff_sha256"] is None and told["base"] == "r0"
        assert told["base_sha256"] == told["script_sha256"] == script_sha256("r0")
        assert check_record(setup, unit, record) == []


def test_records_hold_what_the_runs_gave_and_are_complete(setup, runs):
    units = specs(setup)
    records = list(simulate(setup, units))
    assert runs.trained == [("r3", seed) for seed in SEEDS]
    assert [record["metadata"]["val_loss"] for record in records] == [1.329, 1.33, 1.331]
    for unit, record in zip(units, records, strict=True):
        assert record["success"] and tuple(record["metadata"]) == tuple(METADATA_SCHEMA)
        assert check_record(setup, unit, json.loads(encode_line(record))) == []
    told = records[0]["metadata"]
    assert told["base"] == "r2" and told["base_sha256"] == script_sha256("r2")
    assert told["lines_added"] > 0 and len(told["diff_sha256"]) == 64


def test_the_baseline_has_no_base_and_no_diff(runs):
    setup = row_setup("r0", cell_of(), seeds=[100])
    told = next(simulate(setup, specs(setup)))["metadata"]
    assert told["base"] is told["diff_sha256"] is None
    assert told["lines_added"] == told["lines_removed"] == 0
    assert told["base_sha256"] == told["script_sha256"]


@pytest.mark.parametrize(("policy", "gap"), [("r0", None), ("r3", 0.004)])
def test_audits_compare_with_the_gap_of_the_baseline(runs, monkeypatch, policy, gap):
    gaps, verify = [], evaluation.verify

    def watched(referee, script, seed, base_gap):
        gaps.append(base_gap)
        return verify(referee, script, seed, base_gap)

    monkeypatch.setattr(evaluation, "verify", watched)
    setup = row_setup(policy, cell_of())
    list(simulate(setup, specs(setup)))
    assert gaps == [gap] * 3


def test_a_record_depends_on_no_other_candidate(setup, runs):
    alone = row_setup("r3", cell_of(("r3",)))
    assert specs(alone) == specs(setup)
    records = list(simulate(alone, specs(alone)))
    assert records == list(simulate(setup, specs(setup)))
    assert check_record(alone, specs(alone)[0], records[0]) == []
    with pytest.raises(ConfigError, match="candidates must have r3, found r4"):
        specs(row_setup("r3", cell_of(("r4",))))


def test_a_record_depends_on_its_own_seed_alone(setup, runs):
    units = specs(setup)
    records = list(simulate(setup, units))
    assert list(simulate(setup, units[::-1])) == records[::-1]


def test_a_run_that_fails_is_a_record(setup, runs):
    runs.outcomes["r3"] = Outcome.TIMEOUT
    units = specs(setup)
    record = next(simulate(setup, units))
    assert not record["success"] and record["metadata"]["outcome"] == "timeout"
    assert record["metadata"]["detail"] == "as the test has it"
    assert record["metadata"]["val_loss"] is record["metadata"]["weights_sha256"] is None
    assert check_record(setup, units[0], record) == []


def test_a_loss_above_the_target_is_no_success(setup, runs):
    runs.losses["r3"] = 1.3505
    units = specs(setup)
    records = list(simulate(setup, units))
    assert [record["success"] for record in records] == [True, False, False]
    assert {record["metadata"]["outcome"] for record in records} == {"ok"}, "the loss rule judges rows, not runs"
    assert all(check_record(setup, unit, record) == [] for unit, record in zip(units, records, strict=True))


def test_the_ladder_below_a_patch_is_read_up_to_it():
    entry = read_entry("r2")
    assert (entry.name, entry.base) == ("r2", "r1") and entry.applied.patched == entry.script
    with pytest.raises(ConfigError, match="R99"):
        read_entry("r99")


# --- Records ----------------------------------------------------------------------------------------------------------


def told(**changes):
    return lambda record: record["metadata"].update(changes)


WRONG = {
    "another policy": told(policy="r4"),
    "another partner": told(member="somebody"),
    "another partner set": told(partner_set="other@v1"),
    "another track": told(track="cpu-mini/other"),
    "an easier target": told(target=1.4),
    "another sigma": told(sigma=0.004),
    "another baseline": told(baseline="r2"),
    "more tokens of the baseline": told(baseline_tokens=10**9),
    "more operations of the baseline": told(baseline_flops=10**15),
    "another expectation": told(expected={"outcome": "threshold_missed", "tokens": "same", "time": "same"}),
    "another script": told(script_sha256="0" * 64),
    "another corpus": told(data_manifest_sha256="0" * 64),
    "another salt": told(audit_salt_sha256="0" * 64),
    "an unknown outcome": told(outcome="fine"),
    "a failure that counts as success": told(outcome="crashed"),
    "a loss above the target that counts": told(val_loss=1.3501),
    "a success that is none": lambda record: record.update(success=False),
    "no loss": told(val_loss=None),
    "no audit": told(audit_loss=None),
    "no tokens": told(train_tokens=None),
    "no weights": told(weights_sha256=None),
    "no sandbox": told(sandbox=None),
    "a negative loss": told(audit_loss=-0.5),
    "tokens below zero": told(train_tokens=-1),
    "no parameters": told(n_params=0),
    "a loss that is text": told(val_loss="1.33"),
    "a count that is true": told(n_params=True),
    "a missing key": lambda record: record["metadata"].pop("flags"),
    "an unknown key": told(speed=1),
    "another seed": lambda record: record.update(seed=101),
    "a second run of a seed": lambda record: record.update(episode_idx=1),
    "another start": lambda record: record.update(initial_state_seed=101),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_record_that_is_wrong_is_named(setup, what):
    unit, record = specs(setup)[0], record_of("r3", setup["cell"])
    assert check_record(setup, unit, record) == []
    WRONG[what](record)
    assert check_record(setup, unit, record) != []


@pytest.mark.parametrize("record", [None, [], {}, {"metadata": None}, "record"])
def test_what_is_no_record_is_named(setup, record):
    assert check_record(setup, specs(setup)[0], record) != []


@pytest.mark.parametrize("policy", ["r0", "r2", "r4", "n1", "n7"])
def test_the_records_of_these_tests_are_valid(policy):
    setup = row_setup(policy, cell_of())
    loss = 1.38 if policy == "n1" else 1.33
    for unit, record in zip(specs(setup), records_of(policy, setup["cell"], loss), strict=True):
        assert check_record(setup, unit, record) == []


# --- Differences ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["val_loss", "audit_loss"])
@pytest.mark.parametrize(("change", "same"), [(0.0019, True), (-0.0019, True), (0.0021, False), (-0.0021, False)])
def test_losses_may_differ_by_two_thousandths(name, change, same):
    committed = record_of("r3", cell_of())
    rebuilt = copy.deepcopy(committed)
    rebuilt["metadata"][name] += change
    found = difference(committed, rebuilt)
    assert (found is None) is same
    assert same or found.startswith(f"field metadata.{name}: committed {committed['metadata'][name]!r}, rebuilt ")


@pytest.mark.parametrize(("name", "value"), [(name, "another") for name in MACHINE_FIELDS] + [("sandbox", None)])
def test_another_machine_may_say_otherwise_of_itself(name, value):
    committed = record_of("r3", cell_of())
    assert difference(committed, record_of("r3", cell_of(), **{name: value})) is None


@pytest.mark.parametrize("name", sorted({*METADATA_SCHEMA} - {*MACHINE_FIELDS, "val_loss", "audit_loss"}))
def test_all_else_must_be_equal(name):
    committed, rebuilt = record_of("r3", cell_of()), record_of("r3", cell_of())
    rebuilt["metadata"][name] = "another"
    assert difference(committed, rebuilt).startswith(f"field metadata.{name}: ")
    del rebuilt["metadata"][name]
    assert difference(committed, rebuilt).startswith(f"field metadata.{name}: ")


@pytest.mark.parametrize("name", ["seed", "episode_idx", "initial_state_seed", "success"])
def test_numbers_and_success_must_be_equal(name):
    committed = record_of("r3", cell_of())
    assert difference(committed, {**committed, name: 7}).startswith(f"field {name}: committed ")


def test_a_loss_that_is_gone_is_a_difference():
    committed = record_of("r3", cell_of())
    rebuilt = copy.deepcopy(committed)
    rebuilt["metadata"]["audit_loss"] = None
    assert "audit_loss" in difference(committed, rebuilt)
    assert difference(rebuilt, copy.deepcopy(rebuilt)) is None
