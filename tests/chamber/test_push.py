import json
import math
import subprocess
import sys
import warnings

import numpy as np
import pytest
import yaml
from helpers import ROOT
from rowproof.boards import load_board
from rowproof.chamber import push
from rowproof.chamber.grid import specs
from rowproof.chamber.push_cell import PushCell
from rowproof.chamber.push_checks import check_record
from rowproof.errors import ConfigError
from rowproof.evidence.statistics import row_summary
from rowproof.families import engines
from rowproof.partners import PartnerSet
from rowproof.records import encode_lines
from rowproof.seeding import substream

CELL = {"condition": "mpe_cooperative_push", "steps": 50, "dt_s": 0.1, "success_reward": -1.2}
STANDARD = PushCell.model_validate(CELL)
ROSTER = PartnerSet.model_validate(
    yaml.safe_load((ROOT / "config/partners/push-partners-v1.yaml").read_text(encoding="utf-8"))
)


def setup(**changes):
    return {
        "seeds": [0, 1],
        "episodes_per_partner": 5,
        "root_seed": 0,
        "initial_state": "episode",
        "partner_set": ROSTER.label,
        "members": ROSTER.seats(["scripted_heuristic"]),
        "policy": "random",
        "cell": CELL,
        **changes,
    }


def simulate(**changes):
    row = setup(**changes)
    return list(push.simulate(row, specs(row)))


# ---- known figures ---------------------------------------------------------------------------------------------

FINAL_REWARDS = {
    "random": "-1.694816 -1.402529 -0.242152 -0.565910 -1.632844 -0.670337 -1.105500 -1.634484 -0.886724 -0.879427",
    "static": "-1.617419 -1.402529 -0.483296 -0.565910 -2.000156 -0.670337 -1.105500 -1.634484 -1.095142 -0.847984",
}


@pytest.mark.parametrize("policy", FINAL_REWARDS)
def test_final_rewards_of_ten_episodes(policy):
    rewards = [record["metadata"]["final_reward"] for record in simulate(policy=policy)]
    assert " ".join(f"{reward:.6f}" for reward in rewards) == FINAL_REWARDS[policy]


# Policy, seeds, episodes, success, final reward mean and sd, p5, p50, p95, success per seed.
FIGURES = [
    ("random", 2, 5, "0.6000", "-1.0715", "0.4803", "-1.668 -0.996 -0.388", [0.4, 0.8]),
    ("random", 4, 20, "0.3250", "-1.3410", "0.4124", "-2.006 -1.373 -0.646", [0.35, 0.40, 0.30, 0.25]),
    ("random", 5, 50, "0.3840", "-1.3276", "0.4358", "-2.050 -1.318 -0.576", [0.44, 0.38, 0.40, 0.32, 0.38]),
    ("static", 2, 5, "0.6000", "-1.1423", "0.4849", "-1.836 -1.100 -0.520", [0.4, 0.8]),
    ("static", 4, 20, "0.3875", "-1.3235", "0.4091", "-2.000 -1.357 -0.622", [0.40, 0.45, 0.35, 0.35]),
    ("static", 5, 50, "0.3920", "-1.3416", "0.4335", "-2.046 -1.363 -0.611", [0.46, 0.36, 0.42, 0.32, 0.40]),
]


@pytest.mark.parametrize(("policy", "seeds", "episodes", "success", "mean", "sd", "percentiles", "per_seed"), FIGURES)
def test_row_figures(policy, seeds, episodes, success, mean, sd, percentiles, per_seed):
    records = simulate(policy=policy, seeds=list(range(seeds)), episodes_per_partner=episodes)
    rewards = [record["metadata"]["final_reward"] for record in records]
    rates = [np.mean([r["success"] for r in records if r["seed"] == seed]) for seed in range(seeds)]
    assert f"{np.mean([record['success'] for record in records]):.4f}" == success
    assert f"{np.mean(rewards):.4f}" == mean
    assert f"{np.std(rewards):.4f}" == sd
    assert " ".join(f"{np.percentile(rewards, q):.3f}" for q in (5, 50, 95)) == percentiles
    assert np.round(rates, 2).tolist() == per_seed


def test_scripted_pair_ends_in_the_centre():
    cell = {**CELL, "steps": 200}
    for record in simulate(policy="scripted_heuristic", cell=cell):
        start = push.Push(STANDARD, record["seed"])
        start.reset(record["initial_state_seed"])
        centred = -sum(math.hypot(*landmark) for landmark in start.landmarks)
        assert record["metadata"]["final_reward"] == pytest.approx(centred, abs=1e-6)


# ---- the task --------------------------------------------------------------------------------------------------


def test_initial_state():
    state = push.Push(STANDARD, 0)
    state.reset(0)
    assert np.round(state.landmarks, 6).tolist() == [[0.537527, 0.942471], [-0.198451, -0.576320]]
    assert np.round(state.positions, 6).tolist() == [[-0.447039, 0.746840], [0.030630, 0.825440]]
    assert state.velocities == [[0.0, 0.0], [0.0, 0.0]]


def test_unnumbered_resets_continue_one_stream():
    rng = substream("env.mpe_cooperative_push", 7)
    state = push.Push(STANDARD, 7)
    for _ in range(2):
        state.reset(None)
        assert state.landmarks == rng.uniform(-1, 1, (2, 2)).tolist()
        assert state.positions == [rng.uniform(-1, 1, 2).tolist(), rng.uniform(-1, 1, 2).tolist()]


def test_step_moves_clips_and_rewards():
    state = push.Push(STANDARD, 0)
    state.reset(0)
    state.positions = [[0.0, 0.95], [-0.5, 0.0]]
    state.landmarks = [[0.05, 1.0], [-0.5, 0.3]]
    reward = state.step(np.array([0.5, 3.0], np.float32), np.array([0.0, -1.0], np.float32))
    assert state.velocities == [[0.5, 1.0], [0.0, -1.0]]
    assert state.positions == [[0.05, 1.0], [-0.5, -0.1]]
    assert reward == -math.sqrt(0.4 * 0.4)
    assert not state.truncated


def test_observation_layout():
    state = push.Push(STANDARD, 0)
    state.reset(0)
    state.step(np.array([0.25, -0.5], np.float32), np.array([1.0, 0.0], np.float32))
    own, other = np.array(state.positions[1]), np.array(state.positions[0])
    expected = [own, [1.0, 0.0], *(np.array(state.landmarks) - own), other - own]
    seen = state.observation(push.PARTNER)
    assert seen.dtype == np.float32
    assert seen.tolist() == np.concatenate(expected).astype(np.float32).tolist()


def test_actions_are_single_precision():
    state = push.Push(STANDARD, 0)
    state.reset(0)
    state.step(np.array([0.1, 0.0]), np.zeros(2))
    assert state.velocities[0][0] == float(np.float32(0.1)) != 0.1


@pytest.mark.parametrize("action", [[0.0], [0.0, 0.0, 0.0], 0.0, [math.nan, 0.0], [math.inf, 0.0]])
def test_step_refuses_actions(action):
    state = push.Push(STANDARD, 0)
    state.reset(0)
    before = json.dumps(state.positions)
    with pytest.raises(ValueError, match="2 finite numbers"):
        state.step(np.zeros(2), action)
    assert json.dumps(state.positions) == before


# ---- records ---------------------------------------------------------------------------------------------------


def test_record_layout():
    line = encode_lines(simulate()[:1]).decode()
    reward = simulate()[0]["metadata"]["final_reward"]
    assert line == (
        '{"seed":0,"episode_idx":0,"initial_state_seed":0,"success":false,"constraint_violation_peak":0.0,'
        '"fallback_fired":0,"force_peak":null,"metadata":{"condition":"mpe_cooperative_push",'
        f'"member":"scripted_heuristic","partner_set":"push_partners@v1","final_reward":{reward!r}}}}}\n'
    )


def test_second_member_shares_starts_but_not_the_random_stream():
    (seat,) = ROSTER.seats(["scripted_heuristic"])
    seats = [seat, {**seat, "name": "twin"}]
    alone = simulate(policy="static")
    for policy, same in (("static", True), ("random", False)):
        records = simulate(policy=policy, members=seats)
        first, twin = (
            [record["metadata"]["final_reward"] for record in records if record["metadata"]["member"] == s["name"]]
            for s in seats
        )
        assert (first == twin) == same
    assert first == [record["metadata"]["final_reward"] for record in simulate()] != alone


def test_any_shard_in_any_order_gives_the_same_records():
    row = setup()
    grid = specs(row)
    whole = list(push.simulate(row, grid))
    assert list(push.simulate(row, grid[::-1])) == whole[::-1]
    assert [record for spec in grid for record in push.simulate(row, [spec])] == whole


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policy": "ref_script_handover_ego"}, "policy"),
        ({"cell": {**CELL, "steps": 0}}, "steps"),
        ({"members": [{"name": "x", "class": "other", "params": {}}]}, "class must be"),
        ({"members": [{"name": "x", "class": "scripted_heuristic", "params": {"gain": "1.0"}}]}, "no parameters"),
        ({"members": [{"name": "x", "class": "scripted_heuristic", "params": None}]}, "no parameters"),
    ],
)
def test_simulate_refuses(change, message):
    with pytest.raises(ConfigError, match=message):
        simulate(**change)


@pytest.mark.parametrize("policy", engines()["push-v1"].policies)
def test_check_record_accepts_what_simulate_makes(policy):
    row = setup(policy=policy)
    grid = specs(row)
    for spec, record in zip(grid, push.simulate(row, grid), strict=True):
        assert check_record(row, spec, record) == []


def _put(*path_and_value):
    *path, value = path_and_value

    def change(record):
        target = record
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = value

    return change


def _reorder(record):
    record["seed"] = record.pop("seed")


def _forge_success(record):
    record["success"] = True
    record["metadata"]["final_reward"] = 0.1


ALTERATIONS = {
    "seed": _put("seed", 1),
    "episode index": _put("episode_idx", 1),
    "initial state": _put("initial_state_seed", 1),
    "success given": _put("success", True),
    "success with an impossible reward": _forge_success,
    "violation": _put("constraint_violation_peak", 0.5),
    "violation as integer": _put("constraint_violation_peak", 0),
    "fallback": _put("fallback_fired", 1),
    "force": _put("force_peak", 1.0),
    "condition": _put("metadata", "condition", "push"),
    "member": _put("metadata", "member", "twin"),
    "partner set": _put("metadata", "partner_set", "push_partners@v2"),
    "reward across the threshold": _put("metadata", "final_reward", -1.0),
    "reward NaN": _put("metadata", "final_reward", math.nan),
    "reward infinite": _put("metadata", "final_reward", -math.inf),
    "reward too low": _put("metadata", "final_reward", -5.7),
    "reward as integer": _put("metadata", "final_reward", -2),
    "policy in metadata": _put("metadata", "policy", "random"),
    "unknown key": _put("note", "x"),
    "metadata no object": _put("metadata", None),
    "key order": _reorder,
    "missing key": lambda record: record.pop("force_peak", None) or record.pop("success"),
    "missing metadata key": lambda record: record["metadata"].pop("member"),
}


@pytest.mark.parametrize("name", ALTERATIONS)
def test_check_record_catches(name):
    row = setup()
    spec = specs(row)[0]
    (record,) = push.simulate(row, [spec])
    assert check_record(row, spec, record) == []
    ALTERATIONS[name](record)
    problems = check_record(row, spec, record)
    assert problems
    assert all(problem.startswith("seed 0 episode 0: ") for problem in problems)


# ---- the Gymnasium environment ---------------------------------------------------------------------------------


@pytest.fixture
def push_env():
    pytest.importorskip("gymnasium")
    from rowproof.chamber import push_env

    return push_env


def test_environment_passes_the_checker_without_warnings(push_env):
    import gymnasium
    from gymnasium.utils.env_checker import check_env

    push_env.register()
    push_env.register()
    env = gymnasium.make(push_env.ENV_ID)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


def test_environment_gives_the_final_rewards_of_simulate(push_env):
    import gymnasium

    push_env.register()
    rewards = []
    for seed in (0, 1):
        env = gymnasium.make(push_env.ENV_ID, root_seed=seed)
        for episode in range(5):
            rng = substream(f"benchmarks.bundle_runner.ego_random.{seed}.{episode}", 0)
            env.reset(seed=episode)
            truncated, steps = False, 0
            while not truncated:
                action = rng.uniform(-1, 1, 2).astype(np.float32)
                _, reward, terminated, truncated, info = env.step(action)
                assert (terminated, info) == (False, {})
                steps += 1
            assert steps == 50
            rewards.append(reward)
    assert rewards == [record["metadata"]["final_reward"] for record in simulate()]


def test_environment_needs_a_reset(push_env):
    import gymnasium

    env = push_env.PushEnv(cell=STANDARD.model_copy(update={"steps": 1}))
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(2, np.float32))
    env.reset(seed=0)
    assert env.step(np.zeros(2, np.float32))[3]
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(2, np.float32))


def test_environment_refuses_negative_seeds(push_env):
    with pytest.raises(ValueError, match="negative"):
        push_env.PushEnv().reset(seed=-1)


def test_engines_import_without_gymnasium_and_yaml():
    code = (
        "import sys; sys.modules.update(gymnasium=None, yaml=None, matplotlib=None, snakemake=None)\n"
        "import rowproof.chamber.handover_checks, rowproof.chamber.push_checks, rowproof.partners"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(ROOT / "workflow")})


def test_ten_random_episodes_give_the_published_summary():
    setup = load_board(ROOT, "push-v1").row_setup("b-rnd") | {"seeds": [0, 1], "episodes_per_partner": 5}
    published = row_summary(list(push.simulate(setup, specs(setup))))["published"]
    assert f"{published['success_iqm']:.3f}" == "0.667"
    assert published["success_iqm_ci_bundle_stream"] == [0.0, 1.0]
