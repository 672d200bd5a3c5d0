import dataclasses
import itertools
import json
import math

import numpy as np
import pytest
import yaml
from helpers import ROOT, shared_data
from rowproof.chamber import handover
from rowproof.chamber.grid import specs
from rowproof.chamber.handover_cell import HandoverCell
from rowproof.chamber.handover_checks import RECORD_SCHEMA, _failure_modes, check_record
from rowproof.chamber.handover_drawn_presenter import DrawnPresenter
from rowproof.chamber.handover_egos import random, ref_script_handover_ego
from rowproof.chamber.handover_episodes import build_presenter
from rowproof.chamber.handover_moves import Observation, Placement, Presentation
from rowproof.chamber.handover_partners.handover_presenter import build
from rowproof.chamber.handover_task import resolve, target_xy_m
from rowproof.errors import ConfigError
from rowproof.partners import PartnerSet
from rowproof.records import decode_lines, encode_lines

CELL = {
    "condition": "handover_place_anchor_clr0.2_fast_takt1.5",
    "lateral_window_m": 1.0e-3,
    "angular_window_deg": 5.0,
    "seating_force_limit_n": 75.0,
    "translation_range_m": 0.10,
    "wrist_correction_deg": 25.0,
    "reacquire_range_deg": 170.0,
    "contact_stiffness_n_per_m": 3.75e4,
    "angular_stiffness_n_per_deg": 7.5,
    "regrasp_budget_s": 1.13,
    "regrasp_duration_s": 1.06,
}
ANCHOR = HandoverCell.model_validate(CELL)
ROSTER = PartnerSet.model_validate(
    yaml.safe_load((ROOT / "config/partners/handover-place-partners-v1.yaml").read_text(encoding="utf-8"))
)
# The private member: its parameter box is a single point.
MATCHED_PARAMS = {
    "grasp_pose_bias_deg": "0.0",
    "grasp_pose_sigma_deg": "2.0",
    "lateral_offset_x_m": "0.0",
    "lateral_offset_y_m": "0.0",
    "lateral_sigma_m": "0.0002",
    "timing_skew_bias_s": "0.0",
    "timing_skew_sigma_s": "0.05",
}
ROWS = {
    "ref-script-2026-07-06": "ref_script_handover_ego",
    "b-rnd-2026-07-06": "random",
    "b-stat-2026-07-06": "static",
}


def setup(**changes):
    return {
        "seeds": [0, 1, 2, 3, 4],
        "episodes_per_partner": 50,
        "root_seed": 0,
        "initial_state": "seed*1000+episode",
        "partner_set": ROSTER.label,
        "members": ROSTER.seats(["presenter_mismatch_30", "presenter_mismatch_45"]),
        "policy": "ref_script_handover_ego",
        "cell": CELL,
        **changes,
    }


# ---- the published board ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("row", ROWS)
def test_published_episodes_come_out_byte_for_byte(row, seed):
    path = shared_data("chamber-bundles/spikes/results/benchmark/handover-v1", row, f"episodes_seed{seed}.jsonl")
    one_seed = setup(policy=ROWS[row], seeds=[seed])
    assert encode_lines(handover.simulate(one_seed, specs(one_seed))) == path.read_bytes()


@pytest.mark.parametrize("row", ROWS)
def test_check_record_accepts_every_published_record(row):
    all_seeds = setup(policy=ROWS[row])
    records = []
    for seed in range(5):
        path = shared_data("chamber-bundles/spikes/results/benchmark/handover-v1", row, f"episodes_seed{seed}.jsonl")
        records += decode_lines(path.read_bytes(), RECORD_SCHEMA, path.name)
    grid = specs(all_seeds)
    assert len(records) == len(grid) == 500
    for spec, record in zip(grid, records, strict=True):
        assert check_record(all_seeds, spec, record) == []


# Success mean, force mean, p50, p90, max (N), counts of none / budget_mediated / intrinsic.
BOARD = {
    "ref_script_handover_ego": ("0.338", "92.5", "79.6", "211.5", "325.3", (169, 331, 0)),
    "random": ("0.000", "2795.7", "2986.1", "3858.1", "4048.2", (0, 0, 500)),
    "static": ("0.274", "111.5", "100.7", "225.6", "339.6", (137, 363, 0)),
}


@pytest.mark.parametrize("policy", BOARD)
def test_published_row_figures(policy):
    row = setup(policy=policy)
    records = list(handover.simulate(row, specs(row)))
    force_n = [record["force_peak"] for record in records]
    modes = [record["metadata"]["failure_mode"] for record in records]
    assert (
        f"{np.mean([record['success'] for record in records]):.3f}",
        f"{np.mean(force_n):.1f}",
        *(f"{np.percentile(force_n, q):.1f}" for q in (50, 90, 100)),
        tuple(modes.count(mode) for mode in ("none", "budget_mediated", "intrinsic")),
    ) == BOARD[policy]


# Success at the anchor, success with a free re-grasp, force mean, p50, p90, max (N), mean |action|, sd of action.
FINGERPRINTS = {
    "presenter_matched": ("1.00", "1.00", "0.00", "0.00", "0.00", "0.00", "0.2960", "0.5045"),
    "presenter_mismatch_15": ("1.00", "1.00", "0.72", "0.00", "0.00", "14.35", "3.2859", "5.5826"),
    "presenter_mismatch_30": ("0.65", "1.00", "32.97", "2.52", "103.50", "126.85", "6.8289", "11.7026"),
    "presenter_mismatch_45": ("0.25", "1.00", "115.00", "112.70", "216.00", "239.35", "10.5789", "18.1976"),
    "presenter_offgrid_a": ("1.00", "1.00", "2.84", "0.00", "7.20", "34.42", "3.5308", "5.9611"),
    "presenter_offgrid_b": ("0.95", "1.00", "7.26", "0.00", "29.01", "56.95", "3.9855", "6.8027"),
}


@pytest.mark.parametrize("name", FINGERPRINTS)
def test_published_fingerprints(name):
    (seat,) = ROSTER.seats([name])
    if seat["params"] is None:
        seat["params"] = MATCHED_PARAMS
    probe = setup(seeds=[7000, 7001, 7002, 7003], episodes_per_partner=5, members=[seat])
    records = list(handover.simulate(probe, specs(probe)))
    unhurried = {**probe, "cell": {**CELL, "regrasp_budget_s": 1e9}}
    free = list(handover.simulate(unhurried, specs(probe)))
    force_n = [record["force_peak"] for record in records]
    presenter = build_presenter(seat)
    actions = [presenter.present(spec["initial_state_seed"]) for spec in specs(probe)]
    assert (
        f"{np.mean([record['success'] for record in records]):.2f}",
        f"{np.mean([record['success'] for record in free]):.2f}",
        f"{np.mean(force_n):.2f}",
        *(f"{np.percentile(force_n, q):.2f}" for q in (50, 90, 100)),
        f"{np.mean(np.abs(actions)):.4f}",
        f"{np.mean(np.std(actions, axis=1)):.4f}",
    ) == FINGERPRINTS[name]


# ---- draws -----------------------------------------------------------------------------------------------------

STANDARD_NORMALS = {
    0: (-1.713256, -0.074815, 0.835250, -0.056035),
    1: (0.647537, 1.346223, 0.263494, 1.744461),
    2: (-0.054532, -0.078182, 0.536646, -1.344326),
}


@pytest.mark.parametrize("initial_state_seed", STANDARD_NORMALS)
def test_presenter_draws_in_order(initial_state_seed):
    presenter = DrawnPresenter(0.0, 0.0, 1.0, 100.0, 1.0, 100.0, 1.0)
    drawn = presenter.present(initial_state_seed)
    normals = (drawn[0], drawn[1], drawn[2] - 100.0, drawn[3] - 100.0)
    assert tuple(round(value, 6) for value in normals) == STANDARD_NORMALS[initial_state_seed]


def test_presenter_never_hurries():
    presenter = DrawnPresenter(0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0)
    assert presenter.present(0).timing_skew_s == 0.0
    assert presenter.present(1).timing_skew_s > 0.0


def test_unbiased_presenter_has_a_stream_of_its_own():
    biased = DrawnPresenter(0.0, 0.0, 1.0, 5.0, 1.0, 0.0, 1.0)
    unbiased = dataclasses.replace(biased, grasp_pose_bias_deg=0.0)
    assert biased.present(0).lateral_x_m != unbiased.present(0).lateral_x_m
    assert biased.present(0)[:2] == dataclasses.replace(biased, grasp_pose_bias_deg=45.0).present(0)[:2]


@pytest.mark.parametrize(
    ("initial_state_seed", "expected"), [(0, (-0.00072426, -0.00001274)), (1, (0.00110758, 0.00474186))]
)
def test_target_jitter(initial_state_seed, expected):
    assert tuple(round(value, 8) for value in target_xy_m(initial_state_seed)) == expected


@pytest.mark.parametrize(
    ("initial_state_seed", "expected"),
    [
        (0, (0.09845092, -0.09459002, 1.88358212, 1.0)),
        (1, (0.05160320, 0.00881322, -6.01782789, 1.0)),
        (2, (0.02161012, 0.09211067, -3.86933044, 1.0)),
    ],
)
def test_random_placements(initial_state_seed, expected):
    seen = Observation(0.0, 0.0, 0.0, 0.0, 0.0)
    placed = random.place(ANCHOR, seen, initial_state_seed, 0)
    assert tuple(round(value, 8) for value in placed) == expected


# ---- egos and resolver -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error_deg", "turn_deg", "regrasp"),
    [(10.0, -10.0, 0.0), (-10.0, 10.0, 0.0), (29.9, -25.0, 0.0), (30.0, -25.0, 1.0), (-40.0, 25.0, 1.0)],
)
def test_ref_script_turns_and_asks(error_deg, turn_deg, regrasp):
    placed = ref_script_handover_ego.place(ANCHOR, Observation(0.0, 0.0, 2e-4, -1e-4, error_deg), 0, 0)
    assert placed == Placement(-2e-4, 1e-4, turn_deg, regrasp)


def test_ref_script_translates_within_its_range():
    placed = ref_script_handover_ego.place(ANCHOR, Observation(0.0, 0.0, 0.3, 0.4, 0.0), 0, 0)
    assert placed[:2] == pytest.approx((-0.06, -0.08), rel=1e-15)


STILL = Placement(0.0, 0.0, 0.0, 0.0)
ASK = Placement(0.0, 0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("presented", "placed", "binding", "mode"),
    [
        (Presentation(0.0, 0.0, 29.0, 0.0), STILL, (), "none"),
        (Presentation(0.0, 0.0, 30.0, 0.0), STILL, ("angular",), "budget_mediated"),
        (Presentation(0.0, 0.0, -30.0, 0.0), STILL, ("angular",), "budget_mediated"),
        (Presentation(0.0, 0.0, 45.0, 0.06), ASK, (), "none"),
        (Presentation(0.0, 0.0, 45.0, 0.08), ASK, ("angular", "force"), "budget_mediated"),
        (Presentation(0.0, 0.0, 45.0, -1.0), ASK, (), "none"),
        (Presentation(0.0, 0.0, 45.0, 0.0), Placement(0.0, 0.0, 0.0, 0.5), ("angular", "force"), "budget_mediated"),
        (Presentation(0.0, 0.0, 45.0, 0.0), Placement(0.0, 0.0, -25.0, 0.0), ("angular", "force"), "budget_mediated"),
        (Presentation(0.0, 0.0, 176.0, 0.0), ASK, ("angular",), "intrinsic"),
        (Presentation(1e-3, 0.0, 0.0, 0.0), STILL, ("lateral",), "intrinsic"),
        (Presentation(1e-3, 0.0, 45.0, 0.0), STILL, ("lateral", "angular", "force"), "intrinsic"),
        (Presentation(9e-4, 0.0, 29.9, 0.0), STILL, (), "none"),
    ],
)
def test_resolver_conditions(presented, placed, binding, mode):
    outcome = resolve(ANCHOR, presented, placed)
    assert (outcome.binding, outcome.failure_mode, outcome.success) == (binding, mode, not binding)


def test_force_can_bind_alone():
    cell = ANCHOR.model_copy(update={"seating_force_limit_n": 60.0})
    outcome = resolve(cell, Presentation(9e-4, 0.0, 29.9, 0.0), STILL)
    assert outcome.binding == ("force",)
    assert outcome.force_n == 3.75e4 * 9e-4 + 7.5 * (29.9 - 25.0)


def test_limits_are_exclusive_and_the_budget_inclusive():
    # Powers of two, so that the values meet their limits exactly.
    cell = ANCHOR.model_copy(update={"contact_stiffness_n_per_m": 2.0**15, "seating_force_limit_n": 8.0})
    assert resolve(cell, Presentation(2.0**-12, 0.0, 0.0, 0.0), STILL).binding == ("force",)
    cell = ANCHOR.model_copy(update={"regrasp_budget_s": 1.5, "regrasp_duration_s": 1.0})
    assert resolve(cell, Presentation(0.0, 0.0, 45.0, 0.5), ASK).success
    assert not resolve(cell, Presentation(0.0, 0.0, 45.0, 0.5 + 2.0**-40), ASK).success


def test_translation_is_cut_to_its_range():
    outcome = resolve(ANCHOR, Presentation(0.35, 0.0, 0.0, 0.0), Placement(-0.35, 0.0, 0.0, 0.0))
    assert outcome.lateral_m == pytest.approx(0.25, rel=1e-15)


def test_actions_have_four_numbers():
    with pytest.raises(TypeError):
        Presentation(0.0, 0.0, 0.0)
    with pytest.raises(TypeError):
        Placement(0.0, 0.0, 0.0, 0.0, 0.0)


def test_ablated_presenter_makes_the_task_infeasible():
    member = {
        "name": "ablated",
        "class": "handover_presenter_ablated",
        "seed": 0,
        "checkpoint_step": None,
        "weights_uri": None,
        "params": {},
    }
    ablated = setup(episodes_per_partner=20, members=[member])
    grid = specs(ablated)
    records = list(handover.simulate(ablated, grid))
    assert len(records) == 100
    assert not any(record["success"] for record in records)
    assert {record["metadata"]["residual_lateral_m"] for record in records} == {0.35 - 0.10}
    assert all(check_record(ablated, spec, r) == [] for spec, r in zip(grid, records, strict=True))


# ---- records ---------------------------------------------------------------------------------------------------


def test_any_shard_in_any_order_gives_the_same_records():
    row = setup(seeds=[0, 1], episodes_per_partner=5, policy="random")
    grid = specs(row)
    whole = list(handover.simulate(row, grid))
    assert list(handover.simulate(row, grid[::-1])) == whole[::-1]
    assert [record for spec in grid for record in handover.simulate(row, [spec])] == whole


def test_records_differ_between_roots_only_for_the_random_ego():
    for policy in BOARD:
        row = setup(seeds=[0], episodes_per_partner=5, policy=policy)
        other = {**row, "root_seed": 1}
        same = list(handover.simulate(row, specs(row))) == list(handover.simulate(other, specs(row)))
        assert same == (policy != "random")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policy": "scripted"}, "policy"),
        ({"cell": {**CELL, "takt_s": 1.5}}, "takt_s"),
        ({"members": ROSTER.seats(["presenter_matched"])}, "withheld"),
        ({"members": [{"name": "x", "class": "other", "params": {}}]}, "class must be"),
        ({"members": [{"name": "x", "class": "handover_presenter", "params": {}}]}, "parameters must be"),
    ],
)
def test_simulate_refuses(change, message):
    row = setup(**change)
    with pytest.raises(ConfigError, match=message):
        list(handover.simulate(row, specs(row)))


@pytest.mark.parametrize(
    ("name", "text"), [("lateral_sigma_m", "-0.1"), ("grasp_pose_bias_deg", "nan"), ("timing_skew_bias_s", "soon")]
)
def test_presenter_refuses_parameters(name, text):
    build(MATCHED_PARAMS, "partner x")
    with pytest.raises(ConfigError, match="partner x"):
        build({**MATCHED_PARAMS, name: text}, "partner x")


def pick(row, mode):
    """The first spec and record of ``row`` with this failure mode and a positive angle."""
    for spec in specs(row):
        (record,) = handover.simulate(row, [spec])
        if record["metadata"]["failure_mode"] == mode and record["metadata"]["residual_angular_deg"] > 0:
            return spec, record
    raise LookupError(mode)


STATIC = setup(policy="static")
CASES = {
    "success": (STATIC, *pick(STATIC, "none")),
    "failure": (STATIC, *pick(STATIC, "budget_mediated")),
    "intrinsic": (setup(policy="random"), *pick(setup(policy="random"), "intrinsic")),
}


def _forge_failure_to_success(record):
    record["success"] = True
    record["metadata"]["failure_mode"] = "none"


def _forge_light_force(record):
    record["success"] = True
    record["force_peak"] = 10.0
    record["metadata"]["failure_mode"] = "none"


def _reorder(record):
    record["seed"] = record.pop("seed")


def _reorder_metadata(record):
    record["metadata"]["condition"] = record["metadata"].pop("condition")


def _negative_angle(record):
    angular_deg = -record["metadata"]["residual_angular_deg"]
    record["metadata"]["residual_angular_deg"] = angular_deg
    record["force_peak"] = 3.75e4 * record["metadata"]["residual_lateral_m"] + 7.5 * angular_deg


def _negative_zero(record):
    record["metadata"]["residual_lateral_m"] = -0.0
    record["force_peak"] = 7.5 * record["metadata"]["residual_angular_deg"]


def _huge_angle(record):
    record["metadata"]["residual_angular_deg"] = 179.0
    record["force_peak"] = 3.75e4 * record["metadata"]["residual_lateral_m"] + 7.5 * 179.0


def _put(*path_and_value):
    *path, value = path_and_value

    def change(record):
        target = record
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = value

    return change


def _drop(*path):
    def change(record):
        target = record
        for key in path[:-1]:
            target = target[key]
        del target[path[-1]]

    return change


ALTERATIONS = {
    "seed": ("success", _put("seed", 4)),
    "seed type": ("success", _put("seed", False)),
    "episode index": ("success", _put("episode_idx", 99)),
    "negative episode index": ("success", _put("episode_idx", -1)),
    "initial state": ("success", _put("initial_state_seed", 77)),
    "success taken": ("success", _put("success", False)),
    "success given": ("failure", _put("success", True)),
    "success given with its mode": ("failure", _forge_failure_to_success),
    "success given with a light force": ("failure", _forge_light_force),
    "success as integer": ("success", _put("success", 1)),
    "violation": ("success", _put("constraint_violation_peak", 1.0)),
    "violation of negative zero": ("success", _put("constraint_violation_peak", -0.0)),
    "violation as integer": ("success", _put("constraint_violation_peak", 0)),
    "fallback": ("success", _put("fallback_fired", 1)),
    "force missing": ("success", _put("force_peak", None)),
    "force NaN": ("success", _put("force_peak", math.nan)),
    "force infinite": ("failure", _put("force_peak", math.inf)),
    "force negative": ("success", _put("force_peak", -1.0)),
    "force edited": ("success", _put("force_peak", 12.5)),
    "condition": ("success", _put("metadata", "condition", "handover_place_anchor")),
    "policy": ("success", _put("metadata", "policy", "random")),
    "member": ("success", _put("metadata", "member", "presenter_mismatch_45")),
    "partner set": ("success", _put("metadata", "partner_set", "handover_place_partners@v2")),
    "lateral": ("success", _put("metadata", "residual_lateral_m", 2e-4)),
    "lateral NaN": ("success", _put("metadata", "residual_lateral_m", math.nan)),
    "lateral as integer": ("success", _put("metadata", "residual_lateral_m", 0)),
    "angular": ("success", _put("metadata", "residual_angular_deg", 1.0)),
    "angular infinite": ("failure", _put("metadata", "residual_angular_deg", math.inf)),
    "angular negative with its force": ("success", _negative_angle),
    "angular beyond the presenter": ("failure", _huge_angle),
    "lateral negative zero": ("success", _negative_zero),
    "mode of a success": ("success", _put("metadata", "failure_mode", "intrinsic")),
    "mode none of a failure": ("failure", _put("metadata", "failure_mode", "none")),
    "mode intrinsic for budget": ("failure", _put("metadata", "failure_mode", "intrinsic")),
    "mode budget for intrinsic": ("intrinsic", _put("metadata", "failure_mode", "budget_mediated")),
    "mode unknown": ("failure", _put("metadata", "failure_mode", "unlucky")),
    "unknown key": ("success", _put("note", "x")),
    "unknown metadata key": ("success", _put("metadata", "note", "x")),
    "missing key": ("success", _drop("fallback_fired")),
    "missing metadata key": ("success", _drop("metadata", "policy")),
    "metadata no object": ("success", _put("metadata", [])),
    "key order": ("success", _reorder),
    "metadata key order": ("success", _reorder_metadata),
    "text with a lone surrogate": ("success", _put("metadata", "member", "\ud800")),
}


@pytest.mark.parametrize("name", ALTERATIONS)
def test_check_record_catches(name):
    row, spec, record = CASES[ALTERATIONS[name][0]]
    record = json.loads(json.dumps(record))
    assert check_record(row, spec, record) == []
    ALTERATIONS[name][1](record)
    problems = check_record(row, spec, record)
    assert problems
    assert all(problem.startswith(f"seed {spec['seed']} episode {spec['episode_idx']}") for problem in problems)


@pytest.mark.parametrize("record", [None, [], "x", 1.0, {}])
def test_check_record_refuses_other_shapes(record):
    row, spec, _ = CASES["success"]
    assert check_record(row, spec, record)


def test_check_record_of_a_withheld_member():
    (seat,) = ROSTER.seats(["presenter_matched"])
    known = setup(members=[{**seat, "params": MATCHED_PARAMS}])
    withheld = setup(members=[seat])
    spec = specs(known)[0]
    (record,) = handover.simulate(known, [spec])
    assert check_record(withheld, spec, record) == []
    record["success"] = not record["success"]
    assert check_record(withheld, spec, record)


def test_failure_modes_hold_for_every_outcome():
    """No outcome that the resolver can give is refused, in cells where every branch is reached."""
    rng = np.random.default_rng(0)
    cells = [
        ANCHOR.model_copy(update={"wrist_correction_deg": wrist_deg, "reacquire_range_deg": reach_deg})
        for wrist_deg, reach_deg in itertools.product((1.0, 25.0, 60.0), (10.0, 50.0, 170.0))
    ]
    modes = set()
    for cell in cells:
        for _ in range(300):
            presented = Presentation(rng.uniform(0, 2e-3), 0.0, rng.uniform(-180, 180), rng.uniform(0, 0.14))
            outcome = resolve(cell, presented, Placement(0.0, 0.0, 0.0, float(rng.integers(0, 2))))
            allowed = _failure_modes(cell, outcome.lateral_m, outcome.angular_deg, 180.0)
            assert outcome.failure_mode in allowed
            modes.add(outcome.failure_mode)
    assert modes == {"none", "budget_mediated", "intrinsic"}
