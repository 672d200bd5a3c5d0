import pytest
from rowproof.chamber.cells import parse_cell
from rowproof.chamber.grid import specs
from rowproof.chamber.handover_cell import HandoverCell
from rowproof.chamber.push_cell import PushCell
from rowproof.chamber.record_checks import differences
from rowproof.errors import ConfigError


def setup(**changes):
    return {
        "seeds": [3, 1],
        "episodes_per_partner": 2,
        "initial_state": "seed*1000+episode",
        "members": [{"name": "b"}, {"name": "a"}],
        **changes,
    }


def test_specs_order_and_indices():
    found = specs(setup())
    assert [tuple(spec.values()) for spec in found] == [
        (3, 0, 3000, "b"),
        (3, 1, 3001, "b"),
        (3, 2, 3000, "a"),
        (3, 3, 3001, "a"),
        (1, 0, 1000, "b"),
        (1, 1, 1001, "b"),
        (1, 2, 1000, "a"),
        (1, 3, 1001, "a"),
    ]
    assert list(found[0]) == ["seed", "episode_idx", "initial_state_seed", "member"]


def test_episode_rule_ignores_the_seed():
    assert [spec["initial_state_seed"] for spec in specs(setup(initial_state="episode"))] == [0, 1] * 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seeds": []}, "seeds"),
        ({"seeds": [0, 0]}, "seeds"),
        ({"seeds": [-1]}, "seeds"),
        ({"seeds": [True]}, "seeds"),
        ({"seeds": ["0"]}, "seeds"),
        ({"members": []}, "members"),
        ({"members": [{"name": "a"}, {"name": "a"}]}, "members"),
        ({"episodes_per_partner": 0}, "at least 1"),
        ({"episodes_per_partner": 2.0}, "at least 1"),
        ({"episodes_per_partner": 1001}, "at most 1000"),
        ({"initial_state": "seed"}, "initial_state"),
    ],
)
def test_specs_refuses(change, message):
    with pytest.raises(ConfigError, match=message):
        specs(setup(**change))


def test_differences_sees_sign_and_type():
    assert differences({"a": 0.0, "b": 1}, {"a": 0.0, "b": 1}) == []
    assert len(differences({"a": 0.0, "b": 1}, {"a": -0.0, "b": 1.0})) == 2


HANDOVER = {
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
PUSH = {"condition": "mpe_cooperative_push", "steps": 50, "dt_s": 0.1, "success_reward": -1.2}


@pytest.mark.parametrize("key", [key for key in HANDOVER if key != "condition"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("nan"), "1.0", True, None])
def test_handover_cell_refuses(key, value):
    parse_cell(HandoverCell, HANDOVER)
    with pytest.raises(ConfigError, match=key):
        parse_cell(HandoverCell, {**HANDOVER, key: value})


@pytest.mark.parametrize(
    ("key", "value"),
    [("steps", 0), ("steps", 50.0), ("dt_s", 0.0), ("success_reward", 0.1), ("success_reward", float("-inf"))],
)
def test_push_cell_refuses(key, value):
    parse_cell(PushCell, PUSH)
    with pytest.raises(ConfigError, match=key):
        parse_cell(PushCell, {**PUSH, key: value})


@pytest.mark.parametrize(("model", "valid"), [(HandoverCell, HANDOVER), (PushCell, PUSH)])
def test_cells_refuse_unknown_and_missing_keys(model, valid):
    with pytest.raises(ConfigError, match="takt_s"):
        parse_cell(model, {**valid, "takt_s": 1.5})
    with pytest.raises(ConfigError, match="condition"):
        parse_cell(model, {key: value for key, value in valid.items() if key != "condition"})
    with pytest.raises(ConfigError, match="condition"):
        parse_cell(model, {**valid, "condition": ""})
    with pytest.raises(ConfigError, match="valid"):
        parse_cell(model, None)
