import json
import os
import signal

import pytest
from helpers import shared_data
from rowproof.chamber.cocarry import engine, runner
from rowproof.chamber.cocarry.checks import RECORD_SCHEMA, check_record
from rowproof.chamber.cocarry.seats import is_learned
from rowproof.chamber.cocarry_cell import PUBLISHED_CELL
from rowproof.chamber.grid import specs
from rowproof.chamber.progress import Progress, Stopped
from rowproof.errors import ConfigError
from rowproof.families import engines
from rowproof.records import decode_lines, encode_line, encode_lines

ROWS = {"ref-script": "ref_script_cocarry_impedance", "b-stat": "static", "b-rnd": "random"}


def _published(row, seed):
    parts = ("chamber-bundles/spikes/results/benchmark/cocarry-v1", f"{row}-2026-07-05", f"episodes_seed{seed}.jsonl")
    path = shared_data(*parts)
    return decode_lines(path.read_bytes(), RECORD_SCHEMA, path.name)


# ---- registration ----------------------------------------------------------------------------------------------


def test_published_limits(setup):
    assert setup()["cell"] == PUBLISHED_CELL.model_dump()


def test_engine_is_registered():
    registered = engines()["cocarry-v1"]
    learned = ("happo", "happo_blind", "joint_ego")
    assert tuple(policy for policy in registered.policies if is_learned(policy)) == learned
    assert tuple(registered.learned_policies) == learned
    assert not registered.replays


# ---- check_record ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ROWS)
def test_check_record_accepts_every_published_record(row, setup):
    whole = setup(policy=ROWS[row])
    records = [record for seed in range(5) for record in _published(row, seed)]
    grid = specs(whole)
    assert len(records) == len(grid) == 1750
    for spec, record in zip(grid, records, strict=True):
        assert check_record(whole, spec, record) == []


def _record(spec, success):
    return {
        "seed": spec["seed"],
        "episode_idx": spec["episode_idx"],
        "initial_state_seed": spec["initial_state_seed"],
        "success": success,
        "constraint_violation_peak": 0.0,
        "fallback_fired": 0,
        "force_peak": 96.5,
        "metadata": {
            "condition": "cocarry_matched_panda_pair",
            "policy": "ref_script_cocarry_impedance",
            "member": spec["member"],
            "partner_set": "cocarry_partners@v1",
            "max_tilt_deg": 4.25,
            "centroid_to_goal": 0.09375,
            "n_steps": 23.0 if success else 320.0,
        },
    }


def _put(*path_and_value):
    *path, value = path_and_value

    def change(record):
        for key in path[:-1]:
            record = record[key]
        record[path[-1]] = value

    return change


def _drop(*path):
    def change(record):
        for key in path[:-1]:
            record = record[key]
        del record[path[-1]]

    return change


def _reorder(record):
    record["seed"] = record.pop("seed")


M = "metadata"
# Name: whether the valid record is a success, what is broken in it.
ALTERATIONS = {
    "seed": (True, _put("seed", 1)),
    "episode": (True, _put("episode_idx", 8)),
    "initial state": (True, _put("initial_state_seed", 8)),
    "violation": (True, _put("constraint_violation_peak", 1.0)),
    "fallback": (True, _put("fallback_fired", 1)),
    "condition": (True, _put(M, "condition", "cocarry_contact_free_pair")),
    "policy": (True, _put(M, "policy", "static")),
    "member": (True, _put(M, "member", "imp_nominal")),
    "set": (True, _put(M, "partner_set", "cocarry_partners@v2")),
    "force at the limit": (True, _put("force_peak", 130.0)),
    "tilt at the limit": (True, _put(M, "max_tilt_deg", 15.0)),
    "distance above the radius": (True, _put(M, "centroid_to_goal", 0.10000000894069672)),
    "success before the settle step": (True, _put(M, "n_steps", 14.0)),
    "half a step": (True, _put(M, "n_steps", 23.5)),
    "too many steps": (True, _put(M, "n_steps", 321.0)),
    "no steps": (True, _put(M, "n_steps", 0.0)),
    "failure that ends early": (False, _put(M, "n_steps", 319.0)),
    "success turned failure": (True, _put("success", False)),
    "double precision force": (True, _put("force_peak", 96.51)),
    "double precision tilt": (True, _put(M, "max_tilt_deg", 4.1)),
    "double precision distance": (True, _put(M, "centroid_to_goal", 0.09)),
    "negative force": (False, _put("force_peak", -1.0)),
    "negative zero distance": (True, _put(M, "centroid_to_goal", -0.0)),
    "force beyond single precision": (False, _put("force_peak", 1e300)),
    "tilt beyond a right angle": (False, _put(M, "max_tilt_deg", 90.5)),
    "infinite force": (False, _put("force_peak", float("inf"))),
    "steps not finite": (False, _put(M, "n_steps", float("nan"))),
    "force null": (True, _put("force_peak", None)),
    "force whole": (True, _put("force_peak", 96)),
    "success as a number": (True, _put("success", 1)),
    "steps as an integer": (True, _put(M, "n_steps", 23)),
    "unknown key": (True, _put("note", "x")),
    "unknown metadata key": (True, _put(M, "note", "x")),
    "missing key": (True, _drop("fallback_fired")),
    "missing metadata key": (True, _drop(M, "n_steps")),
    "metadata no object": (True, _put(M, [])),
    "key order": (True, _reorder),
}


@pytest.mark.parametrize("name", ALTERATIONS)
def test_check_record_catches(name, setup):
    row = setup()
    spec = specs(row)[7]
    success, alter = ALTERATIONS[name]
    record = _record(spec, success)
    assert check_record(row, spec, record) == []
    alter(record)
    problems = check_record(row, spec, record)
    assert problems
    assert all(problem.startswith("seed 0 episode 7: ") for problem in problems)


@pytest.mark.parametrize("success", [True, False])
def test_alterations_start_from_valid_records(success, setup):
    row = setup()
    spec = specs(row)[7]
    assert check_record(row, spec, json.loads(encode_line(_record(spec, success)))) == []


@pytest.mark.parametrize("record", [None, [], "x", 1.0, {}])
def test_check_record_refuses_other_shapes(record, setup):
    row = setup()
    assert check_record(row, specs(row)[0], record)


# ---- setups ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"policy": "oracle"},
        {"cell": {"condition": "cocarry_xarm6_partner"}},
        {"cell": {"goal_radius_m": 0.0}},
        {"cell": {"settle_step": 15.0}},
        {"cell": {"note": 1}},
        {"members": [{"name": "m", "class": "cocarry_impedance", "params": None}]},
    ],
)
def test_faulty_setups_are_refused_before_anything_is_simulated(changes, setup, monkeypatch):
    monkeypatch.setattr(engine, "Runner", None)
    row = setup(**changes)
    with pytest.raises(ConfigError):
        next(engine.simulate(row, specs(row)))


# ---- episodes --------------------------------------------------------------------------------------------------


def _few(setup, **changes):
    row = setup(seeds=[0], episodes_per_partner=2, **changes)
    return row, [spec for spec in specs(row) if spec["member"] in ("imp_stiff_low", "imp_lag_bounded")]


def test_records_are_valid_and_depend_on_their_own_spec_alone(simulator, setup):
    row, few = _few(setup)
    records = list(engine.simulate(row, few))
    assert [check_record(row, spec, record) for spec, record in zip(few, records, strict=True)] == [[]] * 4
    backwards = list(engine.simulate(row, few[::-1]))
    assert encode_lines(backwards[::-1]) == encode_lines(records)
    assert list(engine.simulate(row, few[2:3])) == records[2:3]


def test_reference_pair_succeeds_as_published(simulator, setup):
    row, few = _few(setup)
    for record in engine.simulate(row, few):
        assert record["success"]
        assert 40 < record["force_peak"] < 130
        assert record["metadata"]["n_steps"] < 120


@pytest.mark.parametrize(
    ("policy", "condition", "member"),
    [
        ("ref_script_cocarry_impedance", "cocarry_single_arm_positive_control", "partner_ablated_zero"),
        ("cocarry_blind_impedance", "cocarry_matched_panda_pair", "cocarry_impedance"),
    ],
)
def test_admission_controls_fail(simulator, setup, policy, condition, member):
    members = [{"name": member, "class": member, "params": {}}]
    row = setup(policy=policy, members=members, seeds=[90000], episodes_per_partner=1, cell={"condition": condition})
    (record,) = engine.simulate(row, specs(row))
    assert not record["success"]
    # Published: tilts of 59 to 90 degrees on a single arm, of 30 to 40 degrees with a blind ego.
    assert record["metadata"]["max_tilt_deg"] > 25


@pytest.mark.slow
def test_stationary_outcomes_agree_with_published_ones(simulator, setup):
    row = setup(policy="static", seeds=[0])
    sample = [(spec, record) for spec, record in zip(specs(row), _published("b-stat", 0), strict=True)][::10]
    found = list(engine.simulate(row, [spec for spec, _ in sample]))
    differ = sum(a["success"] != b["success"] for a, (_, b) in zip(found, sample, strict=True))
    # 1.4 % differ between machines; three of 35 is far beyond chance.
    assert differ <= 2


# ---- progress and stopping -------------------------------------------------------------------------------------


def test_progress_is_logged_every_few_seconds(caplog):
    now_s = [0.0]
    with caplog.at_level("INFO"), Progress(100, "episodes", "control steps", clock=lambda: now_s[0]) as progress:
        for _ in range(12):
            now_s[0] += 1.0
            progress.advance(1, 30)
    assert caplog.messages == [
        "5 of 100 episodes, 30 control steps/s, about 95 s left",
        "10 of 100 episodes, 30 control steps/s, about 90 s left",
    ]


def test_progress_counts_what_an_earlier_process_left_but_not_its_speed(caplog):
    now_s = [0.0]
    with caplog.at_level("INFO"), Progress(100, "frames", "frames", clock=lambda: now_s[0]) as progress:
        now_s[0] = 50.0
        progress.resume(40)
        now_s[0] = 55.0
        progress.advance(10, 10, "success 1 of 2")
    assert caplog.messages == [
        "40 of 100 frames were done before",
        "50 of 100 frames, 2 frames/s, about 25 s left; success 1 of 2",
    ]


def test_sigterm_waits_for_the_episode_under_way():
    before = signal.getsignal(signal.SIGTERM)
    with Progress(3, "episodes", "control steps") as progress:
        progress.advance(1, 20)
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Stopped, match="after 2 of 3 episodes") as caught:
            progress.advance(1, 20)
    assert caught.value.exit_code == 143
    assert signal.getsignal(signal.SIGTERM) is before


def test_sigterm_ends_a_shard(setup, monkeypatch):
    episode = runner.Episode(True, 20, 90.0, 4.0, 0.09375)

    class Interrupted:
        def __init__(self, cell):
            self.runs = 0

        def run(self, ego, partner, initial_state_seed):
            self.runs += 1
            if self.runs == 3:
                os.kill(os.getpid(), signal.SIGTERM)
            return episode

    monkeypatch.setattr(engine, "Runner", Interrupted)
    row = setup()
    records = []
    with pytest.raises(Stopped, match="after 3 of 1750 episodes"):
        for record in engine.simulate(row, specs(row)):
            records.append(record)
    assert len(records) == 3
