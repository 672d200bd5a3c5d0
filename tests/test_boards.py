import json
import re
import shutil

import jsonschema
import pytest
import yaml
from helpers import ROOT
from pydantic import ValidationError
from rowproof.boards import MODELS, Config, json_schema, load_board, load_config, schema_file
from rowproof.errors import ConfigError
from rowproof.families import engines

BOARD = "config/boards/handover-v1.yaml"
PLAN = "config/plans/handover-v1.yaml"
PARTNERS = "config/partners/handover-place-partners-v1.yaml"
CONFIG = "config/config.yaml"
FOLDERS = {"board": "boards", "plan": "plans", "partner-set": "partners"}


@pytest.fixture
def project(tmp_path):
    shutil.copytree(ROOT / "config", tmp_path / "config")
    (tmp_path / CONFIG).write_text("schema: rowproof/config/1\nboards: [handover-v1]\nshard_by: seed\n")
    return tmp_path


def edit(project, file, old, new):
    path = project / file
    text = path.read_text()
    assert text.count(old) >= 1, f"{file} holds no {old!r}"
    path.write_text(text.replace(old, new, 1))


def refusal(project):
    with pytest.raises(ConfigError) as caught:
        load_config(project)
    return str(caught.value)


def test_the_shipped_configuration_loads():
    config, setups = load_config(ROOT)
    assert list(setups) == config.boards
    for name, setup in setups.items():
        assert setup.plan_bytes == (ROOT / setup.plan_path).read_bytes()
        for row in setup.board.rows:
            data = setup.row_setup(row)
            assert data["policy"] == setup.board.rows[row].policy, (name, row)
            assert [seat["name"] for seat in data["members"]] == setup.plan.partners_of(row)


def test_the_edited_copy_is_valid_to_begin_with(project):
    assert list(load_config(project)[1]) == ["handover-v1"]


# File, old text, new text, dotted key of the message, what the message says is allowed or found.
REFUSALS = [
    # The board.
    (BOARD, "tier: exact", "teir: exact", "teir", "unknown key"),
    (BOARD, "tier: exact", "", "tier", "required key is missing"),
    (BOARD, "tier: exact", "tier: close", "tier", "'exact', 'outcome' or 'statistical'"),
    (BOARD, "tier: exact", "tier: exact\ntier: exact", "tier", "already given on line"),
    (BOARD, "schema: rowproof/board/1", "schema: rowproof/board/2", "schema", "'rowproof/board/1'"),
    (BOARD, "board: handover-v1", "board: push-v1", "board", "must equal the file name 'handover-v1'"),
    (BOARD, "board: handover-v1", "board: ../x", "board", "match pattern"),
    (BOARD, "board: handover-v1", "board: A", "board", "match pattern"),
    (BOARD, "board: handover-v1", "board: a_b", "board", "match pattern"),
    (BOARD, "board: handover-v1", "board: a--b", "board", "match pattern"),
    (BOARD, "board: handover-v1", 'board: "a\\n"', "board", "match pattern"),
    (BOARD, "board: handover-v1", "board: " + "a" * 61, "board", "at most 60"),
    (BOARD, "board: handover-v1", "board: yes", "board", "must equal the file name"),
    (BOARD, "board: handover-v1", "board: 5", "board", "valid string, found 5"),
    (BOARD, "title: Handover and place", "title: [a]", "title", "valid string"),
    (BOARD, "task: handover_place@v1", "task: handover_place", "task", "match pattern"),
    (BOARD, "task: handover_place@v1", "task: handover_place@v2", "task", "must be 'handover_place@v2'"),
    (BOARD, "engine: handover-v1", "engine: warp", "engine", "must be one of handover-v1"),
    (BOARD, "plan: handover-v1", "plan: ../boards/handover-v1", "plan", "match pattern"),
    (BOARD, "plan: handover-v1", "plan: absent", "plan", "must name a file in config/plans/"),
    (BOARD, "plan: handover-v1", "plan: push-v1", "board", "found 'push-v1'"),
    (BOARD, "partner_set: handover-place-partners-v1", "partner_set: absent", "partner_set", "in config/partners/"),
    (BOARD, "partner_set: handover-place-partners-v1", "partner_set: push-partners-v1", "task", "found 'mpe_"),
    (BOARD, "  b-stat:\n    policy: static", "  B-stat:\n    policy: static", "rows.B-stat", "match pattern"),
    (BOARD, "  b-stat:\n    policy: static", "  ../b:\n    policy: static", "rows.../b", "match pattern"),
    (BOARD, "  b-stat:\n    policy: static", "  b-new:\n    policy: static", "rows.b-new", "must be listed in " + PLAN),
    (BOARD, "policy: static", "polcy: static", "rows.b-stat.polcy", "unknown key"),
    (BOARD, "policy: static", "policy: random", "rows.b-stat.policy", "must be 'static' as planned"),
    # The plan.
    (PLAN, "plan: handover-v1", "plan: other", "plan", "must be 'handover-v1'"),
    (PLAN, "board: handover-v1", "board: other", "board", "must be 'handover-v1'"),
    (PLAN, "task: handover_place@v1", "task: handover_place@v2", "task", "must be 'handover_place@v1'"),
    (PLAN, "seeds: [0, 1, 2, 3, 4]", "seeds: [0, 1, 1]", "grid.seeds", "distinct"),
    (PLAN, "seeds: [0, 1, 2, 3, 4]", "seeds: []", "grid.seeds", "at least 1"),
    (PLAN, "seeds: [0, 1, 2, 3, 4]", "seeds: [-1]", "grid.seeds.0", "greater than or equal to 0, found -1"),
    (PLAN, "seeds: [0, 1, 2, 3, 4]", f"seeds: [0, {2**63}]", "grid.seeds.1", "less than"),
    (PLAN, "seeds: [0, 1, 2, 3, 4]", "seeds: [1.0]", "grid.seeds.0", "valid integer"),
    (PLAN, "seeds: [0, 1, 2, 3, 4]", "seeds: [true]", "grid.seeds.0", "valid integer"),
    (PLAN, "seeds: [0, 1, 2, 3, 4]", "seeds: ['1']", "grid.seeds.0", "valid integer"),
    (PLAN, "seeds: [0, 1, 2, 3, 4]", "seeds: [010]", "grid.seeds.0", "valid integer, found '010'"),
    (PLAN, "seeds: [0, 1, 2, 3, 4]", "seeds: [1:30]", "grid.seeds.0", "valid integer, found '1:30'"),
    (PLAN, "  root_seed: 0", "  root_seed: .inf", "grid.root_seed", "valid integer, found '.inf'"),
    (PLAN, "episodes_per_partner: 50", "episodes_per_partner: 0", "grid.episodes_per_partner", "or equal to 1"),
    (PLAN, "episodes_per_partner: 50", "episodes_per_partner: 1e2", "grid.episodes_per_partner", "valid integer"),
    (PLAN, "initial_state: seed*1000+episode", "initial_state: start", "grid.initial_state", "'episode'"),
    (PLAN, "presenter_mismatch_30", "presenter_mismatch_31", "grid.partners.0", "must be a public member of"),
    (PLAN, "presenter_mismatch_30", "presenter_matched", "grid.partners.0", "must be a public member of"),
    (PLAN, "presenter_mismatch_30", "presenter_mismatch_45", "grid.partners", "distinct"),
    (
        PLAN,
        "[presenter_mismatch_30, presenter_mismatch_45]",
        "[presenter_mismatch_45, presenter_mismatch_30]",
        "grid.partners",
        "must be in roster order ['presenter_mismatch_30', 'presenter_mismatch_45']",
    ),
    (PLAN, "n_resamples: 2000", "n_resamples: 0", "statistics.n_resamples", "greater than or equal to 1"),
    (PLAN, "n_resamples: 2000", "n_resamples: 100001", "statistics.n_resamples", "less than or equal to 100000"),
    (PLAN, "b-stat: {policy: static}", "b-stat: {policy: warp}", "rows.b-stat.policy", "must be a policy of engine"),
    (PLAN, "  lateral_window_m: 0.001\n", "", "cell.lateral_window_m", "required key is missing"),
    (PLAN, "lateral_window_m: 0.001", "lateral_window_mm: 1.0", "cell.lateral_window_mm", "unknown key"),
    (PLAN, "lateral_window_m: 0.001", "lateral_window_m: 0.0", "cell.lateral_window_m", "greater than 0"),
    (PLAN, "lateral_window_m: 0.001", "lateral_window_m: .nan", "cell.lateral_window_m", "valid number"),
    (PLAN, "lateral_window_m: 0.001", "lateral_window_m: 1e999", "cell.lateral_window_m", "fits a double"),
    (PLAN, "lateral_window_m: 0.001", "lateral_window_m: 1" + "0" * 400, "cell.lateral_window_m", None),
    (PLAN, "decision_rules: >-", "decision: >-", "decision", "unknown key"),
    # The partner set.
    (PARTNERS, "name: presenter_mismatch_15", "name: presenter_mismatch_30", "(document)", "unique"),
    (PARTNERS, 'grasp_pose_bias_deg: "15.0"', "grasp_pose_bias_deg: 15.0", "params.grasp_pose_bias_deg", "string"),
    (PARTNERS, "split: public", "split: open", "members.1.split", "'public' or 'private'"),
    (PARTNERS, "identity: dd261cfdde60ca43", "identity: 0000000000000000", "members.0", "identity must be dd26"),
    # The list of boards.
    (CONFIG, "boards: [handover-v1]", "boards: []", "boards", "at least 1"),
    (
        CONFIG,
        "boards: [handover-v1]",
        "boards: [handover-v1, absent]",
        "boards.1",
        "must name a file in config/boards/",
    ),
    (CONFIG, "boards: [handover-v1]", "boards: [handover-v1, handover-v1]", "boards", "distinct"),
    (CONFIG, "boards: [handover-v1]", "boards: ['../x']", "boards.0", "match pattern"),
    (CONFIG, "shard_by: seed", "shard_by: episode", "shard_by", "'row', 'seed' or 'partner'"),
    (CONFIG, "shard_by: seed", "shard_by: seed\nquick_rows: [handover-v1/x]", "quick_rows.0", "must be <board>/<row>"),
    (CONFIG, "shard_by: seed", "shard_by: seed\nquick_rows: [handover-v1]", "quick_rows.0", "must be <board>/<row>"),
]


@pytest.mark.parametrize(
    ("file", "old", "new", "key", "says"),
    REFUSALS,
    ids=[f"{r[0].split('/')[1]}:{r[2][:30].strip()!r}".replace("::", ":") for r in REFUSALS],
)
def test_refusals_name_file_line_key_and_what_is_allowed(project, file, old, new, key, says):
    edit(project, file, old, new)
    message = refusal(project)
    first = message.splitlines()[0]
    assert re.match(r"config/[a-z0-9/-]+\.yaml:[0-9]+: ", first), message
    assert f"{key}: " in message
    if says is not None:
        assert says in message


def test_the_line_is_that_of_the_key(project):
    edit(project, PLAN, "  lateral_window_m: 0.001", "  lateral_window_m: -0.001")
    lines = (project / PLAN).read_text().splitlines()
    line = 1 + next(i for i, text in enumerate(lines) if "lateral_window_m" in text)
    assert refusal(project).startswith(f"{PLAN}:{line}: cell.lateral_window_m: ")


# --- Rows with partners and parameters of their own, and admission ---------------------------------------------------

ADMISSION_PLAN = "config/plans/admission/cocarry-v1.yaml"
ADMISSION_BOARD = "config/boards/admission/cocarry-v1.yaml"
OWN_PARTNERS = "partners: [partner_ablated_zero]"
OWN_CELL = "cell: {condition: cocarry_single_arm_positive_control}"


@pytest.fixture
def admission(project):
    """A project with the admission board alone."""
    edit(project, CONFIG, "boards: [handover-v1]", "boards: [admission/cocarry-v1]")
    return project


def test_what_a_row_says_replaces_what_the_plan_says_for_all(admission):
    (setup,) = load_config(admission)[1].values()
    assert setup.plan_path == ADMISSION_PLAN
    rows = {row: setup.row_setup(row) for row in setup.board.rows}
    assert {row: [seat["name"] for seat in data["members"]] for row, data in rows.items()} == {
        "a1-reference": ["cocarry_impedance"],
        "a2-single-arm": ["partner_ablated_zero"],
        "a3-blind": ["cocarry_impedance"],
    }
    cells = {row: data["cell"] for row, data in rows.items()}
    assert cells["a1-reference"] == cells["a3-blind"] == setup.plan.cell
    assert cells["a2-single-arm"] == {**setup.plan.cell, "condition": "cocarry_single_arm_positive_control"}


def test_overrides_reach_the_row_that_has_them_alone(admission):
    before = {row: load_board(admission, "admission/cocarry-v1").row_setup(row) for row in ("a1-reference", "a3-blind")}
    edit(admission, ADMISSION_PLAN, f"    {OWN_PARTNERS}\n    {OWN_CELL}\n", "")
    setup = load_board(admission, "admission/cocarry-v1")
    assert {row: setup.row_setup(row) for row in before} == before
    assert setup.row_setup("a2-single-arm") == before["a1-reference"]


def test_own_partners_of_several_stand_in_roster_order(admission):
    edit(admission, ADMISSION_PLAN, OWN_PARTNERS, "partners: [cocarry_impedance, partner_ablated_zero]")
    setup = load_board(admission, "admission/cocarry-v1")
    assert setup.plan.partners_of("a2-single-arm") == ["cocarry_impedance", "partner_ablated_zero"]
    assert [seat["name"] for seat in setup.row_setup("a2-single-arm")["members"]] == setup.plan.partners_of(
        "a2-single-arm"
    )


ADMISSION_REFUSALS = [
    (ADMISSION_PLAN, OWN_PARTNERS, "partners: [nobody]", "rows.a2-single-arm.partners.0", "must be a public member of"),
    (ADMISSION_PLAN, OWN_PARTNERS, "partners: []", "rows.a2-single-arm.partners", "at least 1"),
    (
        ADMISSION_PLAN,
        OWN_PARTNERS,
        "partners: [partner_ablated_zero, cocarry_impedance]",
        "rows.a2-single-arm.partners",
        "must be in roster order ['cocarry_impedance', 'partner_ablated_zero']",
    ),
    (
        ADMISSION_PLAN,
        OWN_PARTNERS,
        "partners: [partner_ablated_zero, partner_ablated_zero]",
        "rows.a2-single-arm.partners",
        "entries must be distinct",
    ),
    (ADMISSION_PLAN, OWN_CELL, "cell: {condition: other}", "rows.a2-single-arm.cell.condition", "Input should be"),
    (ADMISSION_PLAN, OWN_CELL, "cell: {goal_radius_m: 0.0}", "rows.a2-single-arm.cell.goal_radius_m", "greater than 0"),
    (ADMISSION_PLAN, OWN_CELL, "cell: {goal_radius_mm: 1.0}", "rows.a2-single-arm.cell.goal_radius_mm", None),
    (ADMISSION_PLAN, "  a1: a1-reference", "  a1: absent", "admission.a1", "must be a row of this plan (a1-reference"),
    (ADMISSION_PLAN, "  a3: a3-blind", "  a3: a4-none", "admission.a3", "must be a row of this plan (a1-reference"),
    (ADMISSION_PLAN, "  a3: a3-blind\n", "", "admission.a3", "required key is missing"),
    (ADMISSION_PLAN, "tau_solv: 0.95", "tau_solv: 1.5", "admission.tau_solv", "less than or equal to 1"),
    (ADMISSION_PLAN, "stress_limit_n: 130.56970529556276", "stress_limit_n: 0.0", "admission.stress_limit_n", None),
    (ADMISSION_PLAN, "  delta_min: 0.2", "  delta_min: 0.2\n  c_min: 0.7", "admission.c_min", "unknown key"),
    (
        ADMISSION_BOARD,
        "board: admission/cocarry-v1",
        "board: cocarry-v1",
        "board",
        "must equal the file name",
    ),
    (ADMISSION_BOARD, "board: admission/cocarry-v1", "board: admission/", "board", "match pattern"),
    (ADMISSION_BOARD, "board: admission/cocarry-v1", "board: other/cocarry-v1", "board", "match pattern"),
    (ADMISSION_BOARD, "board: admission/cocarry-v1", "board: admission/x/y", "board", "match pattern"),
    (ADMISSION_BOARD, "plan: admission/cocarry-v1", "plan: cocarry-v1", "board", "must be 'admission/cocarry-v1'"),
    (
        ADMISSION_BOARD,
        "plan: admission/cocarry-v1",
        "plan: admission/absent",
        "plan",
        "must name a file in config/plans/",
    ),
    (CONFIG, "admission/cocarry-v1", "admission/absent", "boards.0", "must name a file in config/boards/"),
]


@pytest.mark.parametrize(
    ("file", "old", "new", "key", "says"),
    ADMISSION_REFUSALS,
    ids=[f"{r[3]}:{r[2].strip()}" for r in ADMISSION_REFUSALS],
)
def test_refusals_of_own_partners_cells_and_admission(admission, file, old, new, key, says):
    edit(admission, file, old, new)
    message = refusal(admission)
    assert re.match(r"config/[a-z0-9/-]+\.yaml:[0-9]+: ", message.splitlines()[0]), message
    assert f"{key}: " in message
    if says is not None:
        assert says in message


def test_no_stress_limit_is_a_choice(admission):
    edit(admission, ADMISSION_PLAN, "stress_limit_n: 130.56970529556276", "stress_limit_n: null")
    assert load_board(admission, "admission/cocarry-v1").plan.admission.stress_limit_n is None


# --- Learned rows ----------------------------------------------------------------------------------------------------

COCARRY_PLAN = "config/plans/cocarry-v1.yaml"
AHT, JOINT = "config/training/cocarry-aht.yaml", "config/training/cocarry-joint.yaml"
AHT_ROW = "b-aht: {policy: happo, training: cocarry-aht}"
JOINT_ROW = "b-joint: {policy: joint_ego, training: cocarry-joint, pair: true}"
SELECTION = """selection:
  partner: imp_nominal
  seeds: [9000, 9001, 9002, 9003]
  episodes_per_seed: 3
  limits: {force_peak: 130.0, max_tilt_deg: 15.0}
"""


@pytest.fixture
def learned(project):
    """A project with the co-carry board alone."""
    edit(project, CONFIG, "boards: [handover-v1]", "boards: [cocarry-v1]")
    return project


def test_what_determines_trainings_and_selections(learned):
    (setup,) = load_config(learned)[1].values()
    assert list(setup.trainings) == ["b-blind", "b-aht", "b-joint"]
    for row, training in setup.trainings.items():
        data = setup.training_setup(row)
        assert list(data) == ["task", "cell", "training"]
        assert data["training"] == yaml.safe_load((learned / f"config/training/{training.training}.yaml").read_text())
        assert data["cell"] == setup.plan.cell
        chosen = setup.selection_setup(row)
        assert chosen["policy"] == setup.plan.rows[row].policy and chosen["seeds"] == [9000, 9001, 9002, 9003]
        assert chosen["member"]["name"] == ("own_partner" if row == "b-joint" else "imp_nominal")


def test_a_pair_is_its_own_only_partner(learned):
    (setup,) = load_config(learned)[1].values()
    assert setup.plan.partners_of("b-joint") == ["own_partner"]
    (seat,) = setup.row_setup("b-joint")["members"]
    assert (seat["name"], seat["class"]) == ("own_partner", "trained_pair")
    assert [seat["name"] for seat in setup.row_setup("b-aht")["members"]] == setup.plan.grid.partners


LEARNED_REFUSALS = [
    (COCARRY_PLAN, AHT_ROW, "b-aht: {policy: happo}", "rows.b-aht", "must name a training, found policy 'happo'"),
    (
        COCARRY_PLAN,
        "b-stat: {policy: static}",
        "b-stat: {policy: static, training: cocarry-aht}",
        "rows.b-stat",
        "must have no training, found policy 'static'",
    ),
    (
        COCARRY_PLAN,
        "training: cocarry-aht",
        "training: absent",
        "rows.b-aht.training",
        "must name a file in config/training/, found no absent.yaml there",
    ),
    (COCARRY_PLAN, "training: cocarry-aht", "training: ../x", "rows.b-aht.training", "match pattern"),
    (AHT, "training: cocarry-aht", "training: other", "training", "must equal the file name 'cocarry-aht'"),
    (
        COCARRY_PLAN,
        JOINT_ROW,
        JOINT_ROW.replace("pair: true", "pair: true, partners: [imp_stiff_low]"),
        "rows.b-joint",
        "must be a trained pair without other partners",
    ),
    (
        COCARRY_PLAN,
        "b-stat: {policy: static}",
        "b-stat: {policy: static, pair: true}",
        "rows.b-stat",
        "must be a trained pair",
    ),
    (COCARRY_PLAN, "pair: true", "pair: 1", "rows.b-joint.pair", "valid boolean"),
    (COCARRY_PLAN, SELECTION, "", "rows.b-blind", "must have its checkpoints selected, found no key selection"),
    (
        COCARRY_PLAN,
        "partner: imp_nominal",
        "partner: imp_blend_b",
        "selection",
        "must share neither partner nor seeds with the evaluation",
    ),
    (
        COCARRY_PLAN,
        AHT_ROW,
        AHT_ROW.replace("}", ", partners: [imp_nominal]}"),
        "selection",
        "must share neither partner nor seeds with the evaluation",
    ),
    (
        COCARRY_PLAN,
        "seeds: [9000, 9001, 9002, 9003]",
        "seeds: [9000, 4]",
        "selection",
        "must share neither partner nor seeds with the evaluation",
    ),
    (COCARRY_PLAN, "seeds: [9000, 9001, 9002, 9003]", "seeds: [9000, 9000]", "selection.seeds", "distinct"),
    (COCARRY_PLAN, "seeds: [9000, 9001, 9002, 9003]", "seeds: []", "selection.seeds", "at least 1"),
    (COCARRY_PLAN, "episodes_per_seed: 3", "episodes_per_seed: 0", "selection.episodes_per_seed", "or equal to 1"),
    (
        COCARRY_PLAN,
        "episodes_per_seed: 3",
        "episodes_per_seed: 1001",
        "selection.episodes_per_seed",
        "or equal to 1000",
    ),
    (COCARRY_PLAN, "  limits: {force_peak: 130.0, max_tilt_deg: 15.0}\n", "", "selection.limits", "is missing"),
    (COCARRY_PLAN, "force_peak: 130.0", "force_peak: high", "selection.limits.force_peak", "valid number"),
    (COCARRY_PLAN, "partner: imp_nominal", "partner: imp_nominal\n  rule: best", "selection.rule", "unknown key"),
    (AHT, "algorithm: happo", "algorithm: sac", "algorithm", "'happo' or 'mappo'"),
    (AHT, "blind: false", "blind: 0", "blind", "valid boolean"),
    (AHT, "frames: 300000", "frames: 310000", "(document)", "frames must be a multiple of checkpoint_frames"),
    (AHT, "frames: 300000", "frames: 3e5", "frames", "valid integer"),
    (AHT, "epochs: 4", "epochs: 0", "epochs", "or equal to 1"),
    (AHT, "hidden_units: [256, 256]", "hidden_units: []", "hidden_units", "at least 1"),
    (AHT, "hidden_units: [256, 256]", "hidden_units: [256, 0]", "hidden_units.1", "or equal to 1"),
    (AHT, "learning_rate: 1.5e-4", "learning_rate: 0.0", "learning_rate", "greater than 0"),
    (AHT, "learning_rate: 1.5e-4", "learning_rate: .nan", "learning_rate", "valid number"),
    (AHT, "discount: 0.9", "discount: 1.1", "discount", "less than or equal to 1"),
    (AHT, "clip: 0.1", "clip: 0.1\nclip: 0.2", "clip", "already given on line"),
    (AHT, "clip: 0.1", "clip: 0.1\ntarget_kl: 0.2", "target_kl", "unknown key"),
    (AHT, "clip: 0.1\n", "", "clip", "required key is missing"),
]


@pytest.mark.parametrize(
    ("file", "old", "new", "key", "says"),
    LEARNED_REFUSALS,
    ids=[f"{r[0].split('/')[1]}:{r[3]}:{r[2][:40].strip()!r}".replace("::", ":") for r in LEARNED_REFUSALS],
)
def test_refusals_of_learned_rows(learned, file, old, new, key, says):
    edit(learned, file, old, new)
    message = refusal(learned)
    (line,) = message.splitlines()
    assert re.match(rf"{re.escape(file)}:[0-9]+: ", line), message
    assert f": {key}: " in line and says in line


@pytest.mark.parametrize("name", ["nobody", "imp_slow"])
def test_the_selection_partner_must_be_a_public_member(learned, name):
    edit(learned, COCARRY_PLAN, "partner: imp_nominal", f"partner: {name}")
    message = refusal(learned)
    assert re.match(rf"{COCARRY_PLAN}:[0-9]+: selection\.partner", message) and "\n" not in message
    assert "must be a public member of cocarry_partners@v1 (imp_nominal, " in message
    assert message.endswith(f"found {name!r}")


def test_the_selection_partner_has_no_index(learned):
    edit(learned, COCARRY_PLAN, "partner: imp_nominal", "partner: nobody")
    assert ": selection.partner: " in refusal(learned)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Its checkpoints hold two seats, which is found after hours of training.
        ("training: cocarry-aht", "training: cocarry-joint"),
        ("training: cocarry-joint", "training: cocarry-aht"),
        # It would learn with the mask and play without, or the other way round; nothing would ever tell.
        ("training: cocarry-aht", "training: cocarry-blind"),
        ("training: cocarry-blind", "training: cocarry-aht"),
        # Its records would name partners of the grid, but its own partner would play.
        (", pair: true", ""),
        (AHT_ROW, AHT_ROW.replace("}", ", pair: true}")),
    ],
)
def test_a_policy_must_be_trained_as_it_plays(learned, old, new):
    edit(learned, COCARRY_PLAN, old, new)
    assert f"{COCARRY_PLAN}:" in refusal(learned)


def test_limits_name_measurements(learned):
    edit(learned, COCARRY_PLAN, "limits: {force_peak: 130.0", "limits: {force_peek: 130.0")
    assert "selection.limits" in refusal(learned)


def test_a_private_member_is_no_partner_of_a_row(project):
    edit(project, CONFIG, "boards: [handover-v1]", "boards: [cocarry-v1]")
    edit(project, "config/plans/cocarry-v1.yaml", "    - imp_blend_b\n", "    - imp_blend_a\n    - imp_blend_b\n")
    message = refusal(project)
    assert "grid.partners.5: must be a public member of cocarry_partners@v1" in message and "'imp_blend_a'" in message


def test_an_unknown_board_is_answered_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"must be one of admission/cocarry-v1, .*handover-v1.*push-v1"):
        load_board(ROOT, "absent")


def test_a_missing_configuration_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"config/config\.yaml: must be a readable file"):
        load_config(tmp_path)


def test_schemas_are_current():
    found = {path.name: path.read_bytes() for path in (ROOT / "config/schemas").glob("*.json")}
    expected = {f"{kind}.schema.json": json_schema(kind) for kind in MODELS}
    models = {name: engine.training_model for name, engine in engines().items()}
    expected |= {f"training-{name}.schema.json": schema_file(model) for name, model in models.items() if model}
    assert len(expected) >= 6 and found == expected, "run rowproof generate"


def shipped():
    yield "config", ROOT / CONFIG
    for kind, folder in FOLDERS.items():
        for path in sorted((ROOT / "config" / folder).rglob("*.yaml")):
            yield kind, path
    for path in sorted((ROOT / "config/training").glob("*.yaml")):
        # A training's name begins with that of its engine.
        yield f"training-{path.name.partition('-')[0]}-v1", path


@pytest.mark.parametrize(("kind", "path"), list(shipped()), ids=lambda value: getattr(value, "name", value))
def test_shipped_files_validate_against_their_schema(kind, path):
    schema = json.loads((ROOT / f"config/schemas/{kind}.schema.json").read_bytes())
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    data = yaml.safe_load(path.read_text())
    validator(schema).validate(data)
    with pytest.raises(jsonschema.ValidationError):
        validator(schema).validate({**data, "unknown": 1})


def test_models_are_frozen():
    config, _ = load_config(ROOT)
    with pytest.raises(ValidationError, match="frozen"):
        config.shard_by = "row"
    assert isinstance(config, Config)


def test_baseline_and_a_a_candidate_belong_to_the_first_campaign(tmp_path):
    shutil.copytree(ROOT / "config", tmp_path / "config")
    path = tmp_path / "config" / "plans" / "nanogpt-speedrun-cpu-v1.yaml"
    text = path.read_text()
    path.write_text(text.replace("  r3-muon: {policy: r3}", "  r3-muon: {policy: r3, campaign: 2}"))
    with pytest.raises(ConfigError, match=r"r3 is timed in every campaign: .* campaign 1, found \[2\]"):
        load_board(tmp_path, "nanogpt-speedrun-cpu-v1")
    path.write_text(text)
    path = tmp_path / "config" / "plans" / "push-v1.yaml"
    path.write_text(path.read_text().replace("{policy: static}", "{policy: static, campaign: 2}"))
    with pytest.raises(ConfigError, match="must be left out of a board whose rows are not timed"):
        load_board(tmp_path, "push-v1")
