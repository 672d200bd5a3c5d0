import itertools
import json
import math

import numpy as np
import pytest
import yaml
from helpers import ROOT
from pydantic import ValidationError
from rowproof.chamber import handover
from rowproof.chamber.grid import specs
from rowproof.chamber.handover_cell import HandoverCell
from rowproof.chamber.handover_checks import check_checkpoint, check_episodes, check_record
from rowproof.chamber.handover_egos import ref_script_handover_ego
from rowproof.chamber.handover_episodes import build_ego, build_presenter, is_learned, run_episode
from rowproof.chamber.handover_learned import ACTION_SIZE, STATE_SIZE, placement_of, state_of
from rowproof.chamber.handover_learned_ego import LearnedEgo
from rowproof.chamber.handover_moves import Observation, Placement, Presentation
from rowproof.chamber.handover_task import observe, resolve
from rowproof.chamber.handover_training import INITIAL_STATE_SEEDS, HandoverTask, draw_presenter, train
from rowproof.chamber.handover_training_config import HandoverTrainingConfig
from rowproof.chamber.handover_validation import validate
from rowproof.chamber.learned.policy import Actor, LayerNorm
from rowproof.chamber.learned.tensors import encode
from rowproof.checkpoints import CheckpointError, file_name, uri_of
from rowproof.errors import ConfigError
from rowproof.families import engines
from rowproof.partners import PartnerSet
from rowproof.records import encode_lines
from rowproof.seeding import substream


def read(path):
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


PLAN = read("config/plans/handover-v1.yaml")
CELL = HandoverCell.model_validate(PLAN["cell"])
ROSTER = PartnerSet.model_validate(read("config/partners/handover-place-partners-v1.yaml"))
AHT, BLIND = (read(f"config/training/handover-{name}.yaml") for name in ("aht", "blind"))
VALIDATION = {
    "policy": "happo",
    "cell": PLAN["cell"],
    "member": ROSTER.seats([PLAN["selection"]["partner"]])[0],
    "seeds": [9000, 9001],
    "episodes_per_seed": 20,
}

LEARNED_POLICIES = ("happo", "happo_blind")


def tensors(seed=0, states=STATE_SIZE, actions=ACTION_SIZE, units=8, seat="ego"):
    """An untrained actor with large random weights, as the tensors of a checkpoint."""
    rng = np.random.default_rng(seed)
    shapes = {
        "input_norm.weight": (states,),
        "input_norm.bias": (states,),
        "hidden.0.weight": (units, states),
        "hidden.0.bias": (units,),
        "norms.0.weight": (units,),
        "norms.0.bias": (units,),
        "mean.weight": (actions, units),
        "mean.bias": (actions,),
        "std_parameter": (actions,),
    }
    return {f"{seat}.{name}": rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def checkpoint(**changes):
    data = encode(tensors(**changes))
    return uri_of(data), data


def ego(blind=False, seed=0):
    own = {name.removeprefix("ego."): value for name, value in tensors(seed).items()}
    return LearnedEgo(Actor(own), blind)


def config(**changes):
    return HandoverTrainingConfig.model_validate({**AHT, **changes})


def drawn(count, label="test"):
    """Presentations of as many presenters of training, with their initial states, from streams of the tests' own."""
    for index in range(count):
        rng = substream(f"{label}.{index}", 1)
        presenter = draw_presenter(rng)
        initial_state_seed = int(rng.integers(*INITIAL_STATE_SEEDS))
        yield presenter.present(initial_state_seed), initial_state_seed


# ---- what the ego sees and does --------------------------------------------------------------------------------


def test_a_module_says_whether_it_is_learned():
    engine = engines()["handover-v1"]
    assert tuple(policy for policy in engine.policies if is_learned(policy)) == LEARNED_POLICIES
    assert tuple(engine.learned_policies) == LEARNED_POLICIES


def test_state_has_its_units():
    state = state_of(CELL, Observation(5e-3, -5e-3, 2e-4, -4e-4, 15.0), blind=False)
    assert (state.shape, state.dtype) == ((STATE_SIZE,), np.float32)
    assert state == pytest.approx([1, -1, 1, -2, 0.5, 1, -1])


def test_state_is_of_order_one():
    states = np.array([state_of(CELL, observe(*case), blind=False) for case in drawn(500)])
    sizes = np.sqrt(np.mean(states**2, axis=0))
    assert sizes.min() > 0.5 and sizes.max() < 2.0


def test_the_layer_norm_loses_nothing():
    norm = LayerNorm(np.ones(STATE_SIZE), np.zeros(STATE_SIZE))
    for case in drawn(50):
        state = state_of(CELL, observe(*case), blind=False).astype(np.float64)
        normed = norm(state)
        high, low = normed[5:]
        assert (normed[:5] - (high + low) / 2) / ((high - low) / 2) == pytest.approx(state[:5], abs=1e-9)


def test_blind_state_keeps_target_and_constants_alone():
    seen = Observation(1e-3, 2e-3, 3e-4, 4e-4, 50.0)
    full, blind = (state_of(CELL, seen, blind=hidden) for hidden in (False, True))
    assert blind.tolist() == [*full[:2], 0.0, 0.0, 0.0, *full[5:]]


@pytest.mark.parametrize(
    ("action", "placement"),
    [
        ((0.0, 0.0, 0.0, 0.0), Placement(0.0, 0.0, 0.0, 0.5)),
        ((0.5, -0.25, 0.125, 1.0), Placement(5e-4, -2.5e-4, 3.125, 1.0)),
        ((7.0, -7.0, 7.0, -7.0), Placement(1e-3, -1e-3, 25.0, 0.0)),
    ],
)
def test_placements(action, placement):
    placed = placement_of(CELL, np.array(action, np.float32))
    assert placed == placement
    assert all(type(value) is float for value in placed)


@pytest.mark.parametrize(("flag", "asks"), [(-1e-3, False), (0.0, False), (1e-3, True)])
def test_positive_flags_ask_for_a_regrasp(flag, asks):
    placed = placement_of(CELL, np.array([0.0, 0.0, 0.0, flag], np.float32))
    outcome = resolve(CELL, Presentation(0.0, 0.0, 100.0, 0.0), placed)
    assert outcome.success == asks


SEEN = Observation(1e-3, -2e-3, 1e-4, -1e-4, 20.0)


@pytest.mark.parametrize(
    "change", [{"lateral_x_m": 9e-4}, {"lateral_y_m": 9e-4}, {"grasp_error_deg": 60.0}, {"grasp_error_deg": -20.0}]
)
def test_only_the_blind_ego_acts_the_same_whatever_was_brought(change):
    other = SEEN._replace(**change)
    assert ego(blind=True)(CELL, SEEN, 0, 0) == ego(blind=True)(CELL, other, 0, 0)
    assert ego()(CELL, SEEN, 0, 0) != ego()(CELL, other, 0, 0)


def test_the_blind_ego_sees_the_target():
    other = SEEN._replace(target_x_m=-4e-3)
    assert ego(blind=True)(CELL, SEEN, 0, 0) != ego(blind=True)(CELL, other, 0, 0)


def test_the_ego_plays_the_mean_whatever_the_seeds():
    data = tensors()
    deviating = {**data, "ego.std_parameter": data["ego.std_parameter"] + 1}
    first, second = (build_ego("happo", (uri_of(encode(each)), encode(each))) for each in (data, deviating))
    assert first(CELL, SEEN, 0, 0) == second(CELL, SEEN, 7, 3) == ego()(CELL, SEEN, 0, 0)


def _foreign():
    return checkpoint(states=46, actions=8)


REFUSED = {
    "another name": (lambda: (checkpoint(seed=1)[0], checkpoint()[1]), "the checkpoint must be sha256:"),
    "no safetensors": (lambda: (uri_of(b"x"), b"x"), "must be a safetensors file"),
    "another task": (_foreign, "ego must take 7 values and give 4, found 46 and 8"),
    "other actions": (lambda: checkpoint(actions=3), "found 7 and 3"),
    "a partner": (lambda: checkpoint(seat="partner"), "tensors of ego, found partner"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_checkpoints_that_are_refused(name):
    make, message = REFUSED[name]
    with pytest.raises(CheckpointError, match=message):
        build_ego("happo", make())
    with pytest.raises(CheckpointError, match=message):
        check_checkpoint({"policy": "happo"}, *make())


def test_a_checkpoint_of_this_task_is_accepted():
    check_checkpoint({"policy": "happo_blind"}, *checkpoint())


# ---- the task of training --------------------------------------------------------------------------------------


def states_and_outcome(task, action):
    (state,) = task.reset()
    return state, task.step([np.array(action, np.float32)])


ASK = (0.0, 0.0, 0.0, 1.0)
STILL = (0.0, 0.0, 0.0, -1.0)


@pytest.mark.parametrize("weight", [0.0, 1.0, 2.5])
def test_reward_is_success_and_the_force_taken_off(weight):
    task = HandoverTask(config(shaping_weight=weight), CELL, 0)
    task.fresh(0)
    seen = set()
    for _ in range(200):
        task.reset()
        presented = task._presented
        outcome = task.step([np.array(ASK, np.float32)])
        before, after = (resolve(CELL, presented, Placement(0.0, 0.0, 0.0, flag)) for flag in (0.0, 1.0))
        assert outcome.reward == pytest.approx(after.success + weight * (before.force_n - after.force_n) / 75.0)
        assert (outcome.succeeded, outcome.truncated) == (after.success, not after.success)
        seen.add((before.success, after.success))
    assert seen == {(False, False), (False, True), (True, True)}


def test_doing_nothing_earns_success_alone():
    task = HandoverTask(config(), CELL, 0)
    task.fresh(0)
    outcomes = [states_and_outcome(task, STILL)[1] for _ in range(50)]
    assert {outcome.reward for outcome in outcomes} == {0.0, 1.0}
    assert all(outcome.reward == outcome.succeeded for outcome in outcomes)


def test_shaping_asks_for_nothing_else_than_success():
    """The placement of the most reward, whatever the presentation, is one of the most success."""
    rng = np.random.default_rng(0)
    for presented, _ in drawn(300):
        best = resolve(CELL, presented, Placement(-presented.lateral_x_m, -presented.lateral_y_m, 0.0, 1.0))
        for _ in range(10):
            other = resolve(CELL, presented, placement_of(CELL, rng.uniform(-1, 1, ACTION_SIZE)))
            assert other.force_n >= best.force_n and other.success <= best.success


def test_no_ego_wins_what_the_reference_loses():
    rng = np.random.default_rng(1)
    won = 0
    for presented, initial_state_seed in drawn(500):
        placed = ref_script_handover_ego.place(CELL, observe(presented, initial_state_seed), 0, 0)
        reference = resolve(CELL, presented, placed).success
        others = [resolve(CELL, presented, placement_of(CELL, rng.uniform(-1, 1, ACTION_SIZE))) for _ in range(10)]
        assert all(other.success <= reference for other in others)
        won += any(other.success for other in others)
    assert 100 < won < 500


def test_the_last_state_is_that_of_the_decision():
    task = HandoverTask(config(), CELL, 0)
    task.fresh(0)
    state, outcome = states_and_outcome(task, ASK)
    assert len(outcome.states) == 1 and np.array_equal(outcome.states[0], state)


def test_an_episode_depends_on_its_number_and_the_seed_alone():
    one, other = HandoverTask(config(), CELL, 0), HandoverTask(config(), CELL, 0)
    states = [one.fresh(0), *(one.reset() for _ in range(5))]
    assert np.array_equal(other.fresh(5), states[5])
    assert not np.array_equal(states[4], states[5])
    assert not np.array_equal(HandoverTask(config(), CELL, 1).fresh(5), states[5])


def test_the_task_hides_from_the_blind_ego_what_was_brought():
    (state,) = HandoverTask(config(blind=True), CELL, 0).fresh(0)
    (full,) = HandoverTask(config(), CELL, 0).fresh(0)
    assert state.tolist() == [*full[:2], 0.0, 0.0, 0.0, *full[5:]]


def test_presenters_of_training_fill_the_box_and_are_no_members():
    members = [build_presenter(seat) for seat in ROSTER.seats([m.name for m in ROSTER.members if m.split == "public"])]
    found = [draw_presenter(substream(f"training.episode.{index}", 0)) for index in range(400)]
    assert not set(found) & set(members)
    for name, low, high in (
        ("lateral_sigma_m", 1e-4, 3e-4),
        ("grasp_pose_bias_deg", 15.0, 45.0),
        ("grasp_pose_sigma_deg", 8.0, 12.0),
        ("timing_skew_bias_s", 0.1, 0.3),
        ("timing_skew_sigma_s", 0.05, 0.15),
    ):
        values = [getattr(presenter, name) for presenter in found]
        margin = 0.05 * (high - low)
        assert low <= min(values) < low + margin and high - margin < max(values) <= high
    assert {(presenter.lateral_offset_x_m, presenter.lateral_offset_y_m) for presenter in found} == {(0.0, 0.0)}


def test_initial_states_of_training_lie_beyond_those_of_the_plan():
    seeds = [*PLAN["grid"]["seeds"], *PLAN["selection"]["seeds"]]
    assert 1000 * (max(seeds) + 1) < INITIAL_STATE_SEEDS[0]


# ---- training --------------------------------------------------------------------------------------------------


class Watcher:
    """Raises in the update number ``stop_at``, if any."""

    def __init__(self, stop_at=None):
        self.updates, self.stop_at, self.resumed = 0, stop_at, None

    def resume(self, done):
        self.resumed = done

    def advance(self, units, work, note):
        self.updates += 1
        if self.updates == self.stop_at:
            raise InterruptedError


SHORT = {"frames": 1600, "checkpoint_frames": 400, "rollout_frames": 160, "hidden_units": [16]}


def run(folder, seed=0, watcher=None, **changes):
    return train({"cell": PLAN["cell"], "training": {**AHT, **SHORT, **changes}}, seed, folder, watcher or Watcher())


def test_trained_in_seconds_the_ego_leaves_less_force(tmp_path):
    document = run(tmp_path, frames=8000, checkpoint_frames=160, hidden_units=[32, 32])
    first, last = (document["checkpoints"][index]["uri"] for index in (0, -1))
    cases = list(drawn(300))

    def mean_force_n(uri):
        player = build_ego("happo", (uri, (tmp_path / file_name(uri)).read_bytes()))
        return np.mean(
            [resolve(CELL, presented, player(CELL, observe(presented, s), s, 0)).force_n for presented, s in cases]
        )

    untrained_n, trained_n = mean_force_n(first), mean_force_n(last)
    still_n = np.mean([resolve(CELL, presented, Placement(0.0, 0.0, 0.0, 0.0)).force_n for presented, _ in cases])
    assert trained_n < untrained_n - 2.0
    assert trained_n < still_n - 5.0


def test_document_of_a_training(tmp_path):
    document = run(tmp_path)
    assert [saved["step"] for saved in document["checkpoints"]] == [400, 800, 1200, 1600]
    assert (document["training"], document["training_seed"], document["frames"]) == ("handover-aht", 0, 1600)
    ((frames, _, episodes, successes, *_),) = document["curve"]["points"]
    # Every frame is an episode.
    assert frames == episodes == 1600 and 400 < successes < 1600
    assert len({saved["uri"] for saved in document["checkpoints"]}) == 4
    for saved in document["checkpoints"]:
        check_checkpoint({"policy": "happo"}, saved["uri"], (tmp_path / file_name(saved["uri"])).read_bytes())


def test_same_seed_same_training_and_no_other(tmp_path):
    document = run(tmp_path / "a")
    assert run(tmp_path / "b") == document
    assert run(tmp_path / "c", seed=1)["checkpoints"] != document["checkpoints"]
    assert run(tmp_path / "d", blind=True)["checkpoints"] != document["checkpoints"]


@pytest.mark.parametrize("stop_at", [1, 3, 6, 10])
def test_a_killed_training_goes_on_to_the_same_checkpoints(stop_at, tmp_path):
    whole = run(tmp_path / "whole")
    with pytest.raises(InterruptedError):
        run(tmp_path / "killed", watcher=Watcher(stop_at))
    second = Watcher()
    assert run(tmp_path / "killed", watcher=second) == whole
    # The last checkpoint before the update number stop_at.
    done = (160 * stop_at - 1) // 400 * 400
    assert second.resumed == (done or None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"algorithm": "mappo"}, "algorithm"),
        ({"discount": 0.9}, "discount"),
        ({"frames": 1500}, "multiple"),
        ({"takt": 1}, "takt"),
    ],
)
def test_train_refuses(change, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        run(tmp_path / "none", **change)
    assert not (tmp_path / "none").exists()


def test_configurations_differ_by_what_the_ego_sees():
    for found in (AHT, BLIND):
        HandoverTrainingConfig.model_validate(found)
    assert {key for key in AHT if AHT[key] != BLIND[key]} == {"training", "blind"}
    assert (AHT["blind"], BLIND["blind"]) == (False, True)
    with pytest.raises(ValidationError, match="discount"):
        config(discount=0.5)


# ---- records ---------------------------------------------------------------------------------------------------

CHECKPOINTS = {seed: checkpoint(seed=seed) for seed in (0, 1)}


def setup(**changes):
    return {
        "seeds": [0, 1],
        "episodes_per_partner": 4,
        "root_seed": 0,
        "initial_state": "seed*1000+episode",
        "partner_set": ROSTER.label,
        "members": ROSTER.seats(["presenter_mismatch_15", "presenter_offgrid_a"]),
        "policy": "happo",
        "cell": PLAN["cell"],
        "checkpoints": {seed: uri for seed, (uri, _) in CHECKPOINTS.items()},
        **changes,
    }


@pytest.mark.parametrize("policy", LEARNED_POLICIES)
def test_records_name_the_checkpoint_that_played(policy):
    row = setup(policy=policy)
    records = list(handover.simulate(row, specs(row), CHECKPOINTS))
    for spec, record in zip(specs(row), records, strict=True):
        assert list(record["metadata"]) == [
            "condition",
            "policy",
            "seed_policy",
            "member",
            "partner_set",
            "residual_lateral_m",
            "residual_angular_deg",
            "failure_mode",
        ]
        assert record["metadata"]["seed_policy"] == CHECKPOINTS[spec["seed"]][0]
        assert check_record(row, spec, record) == []


def test_each_seed_is_played_by_its_own_checkpoint():
    row = setup()
    for spec, record in zip(specs(row), handover.simulate(row, specs(row), CHECKPOINTS), strict=True):
        (member,) = (seat for seat in row["members"] if seat["name"] == spec["member"])
        outcome = run_episode(CELL, build_presenter(member), ego(seed=spec["seed"]), spec["initial_state_seed"], 0)
        assert record["force_peak"] == outcome.force_n


def test_the_blind_policy_plays_blind():
    row = setup()
    sighted, blind = (
        [record["force_peak"] for record in handover.simulate(setup(policy=policy), specs(row), CHECKPOINTS)]
        for policy in LEARNED_POLICIES
    )
    assert sighted != blind


def test_any_shard_in_any_order_gives_the_same_records():
    row = setup()
    grid = specs(row)
    whole = encode_lines(handover.simulate(row, grid, CHECKPOINTS))
    backwards = list(handover.simulate(row, grid[::-1], CHECKPOINTS))
    assert encode_lines(backwards[::-1]) == whole
    single = [record for spec in grid for record in handover.simulate(row, [spec], CHECKPOINTS)]
    assert encode_lines(single) == whole


@pytest.mark.parametrize("policy", ["ref_script_handover_ego", "random", "static"])
def test_scripted_records_name_no_checkpoint(policy):
    row = setup(policy=policy)
    spec = specs(row)[0]
    (record,) = handover.simulate(row, [spec])
    assert "seed_policy" not in record["metadata"]
    assert check_record(row, spec, record) == []
    metadata = {**record["metadata"], "seed_policy": CHECKPOINTS[0][0]}
    assert check_record(row, spec, {**record, "metadata": metadata})


def _rename(value):
    def change(metadata):
        metadata["seed_policy"] = value

    return change


def _last(metadata):
    metadata["seed_policy"] = metadata.pop("seed_policy")


ALTERATIONS = {
    "another seed's": _rename(CHECKPOINTS[1][0]),
    "unknown": _rename("sha256:" + "0" * 64),
    "null": _rename(None),
    "number": _rename(5),
    "missing": lambda metadata: metadata.pop("seed_policy"),
    "order of keys": _last,
    "policy": lambda metadata: metadata.update(policy="happo_blind"),
}


@pytest.mark.parametrize("name", ALTERATIONS)
def test_check_record_catches(name):
    row = setup()
    spec = specs(row)[0]
    (record,) = handover.simulate(row, [spec], CHECKPOINTS)
    record = json.loads(json.dumps(record))
    assert check_record(row, spec, record) == []
    ALTERATIONS[name](record["metadata"])
    assert check_record(row, spec, record)


@pytest.mark.parametrize("found", [None, {}, {1: CHECKPOINTS[1]}])
def test_simulate_needs_a_checkpoint_for_every_seed(found):
    row = setup()
    with pytest.raises(ConfigError, match="must have a checkpoint for seed 0, found none"):
        list(handover.simulate(row, specs(row), found))


@pytest.mark.parametrize(
    "found", [_foreign(), (CHECKPOINTS[1][0], CHECKPOINTS[0][1]), (CHECKPOINTS[0][0], CHECKPOINTS[0][1][:-1])]
)
def test_simulate_refuses_a_foreign_checkpoint(found):
    row = setup()
    with pytest.raises(CheckpointError):
        list(handover.simulate(row, specs(row), {**CHECKPOINTS, 0: found}))


# ---- validation ------------------------------------------------------------------------------------------------


def test_validation_episodes():
    episodes = validate(VALIDATION, *CHECKPOINTS[0])
    assert [e["initial_state_seed"] for e in episodes] == [*range(9_000_000, 9_000_020), *range(9_001_000, 9_001_020)]
    assert {tuple(episode) for episode in episodes} == {("initial_state_seed", "success", "force_peak")}
    assert {episode["success"] for episode in episodes} == {True, False}
    assert check_episodes(VALIDATION, episodes) == []
    presenter = build_presenter(VALIDATION["member"])
    assert [episode["force_peak"] for episode in episodes] == [
        run_episode(CELL, presenter, ego(), e["initial_state_seed"], 0).force_n for e in episodes
    ]


def test_the_validation_presenter_tells_asking_from_not_asking():
    selection = PLAN["selection"]
    states = [1000 * seed + i for seed in selection["seeds"] for i in range(selection["episodes_per_seed"])]

    def gain(name):
        presenter = build_presenter(ROSTER.seats([name])[0])
        reference, still = (
            sum(run_episode(CELL, presenter, build_ego(policy), state, 0).success for state in states)
            for policy in ("ref_script_handover_ego", "static")
        )
        return reference - still

    # The figures of the plan's comment.
    gains = [gain(name) for name in ("presenter_offgrid_b", "presenter_offgrid_a", "presenter_mismatch_15")]
    assert (selection["partner"], gains) == ("presenter_offgrid_b", [10, 3, 2])


def _put(key, value):
    def change(episode):
        episode[key] = value

    return change


BAD_EPISODES = {
    "state": _put("initial_state_seed", 8_999_999),
    "state as text": _put("initial_state_seed", "9000000"),
    "success turned": lambda episode: episode.update(success=not episode["success"]),
    "success as integer": _put("success", 1),
    "force NaN": _put("force_peak", math.nan),
    "force infinite": _put("force_peak", math.inf),
    "force negative": _put("force_peak", -1.0),
    "force negative zero": _put("force_peak", -0.0),
    "force as integer": _put("force_peak", 5),
    "force missing": lambda episode: episode.pop("force_peak"),
    "unknown key": _put("note", "x"),
}


@pytest.mark.parametrize(("name", "success"), [*itertools.product(BAD_EPISODES, [True, False])])
def test_check_episodes_catches(name, success):
    episodes = validate(VALIDATION, *CHECKPOINTS[0])
    # The lightest success and the heaviest failure.
    index = max(
        (i for i, episode in enumerate(episodes) if episode["success"] == success),
        key=lambda i: episodes[i]["force_peak"] * (-1 if success else 1),
    )
    BAD_EPISODES[name](episodes[index])
    (problem,) = check_episodes(VALIDATION, episodes)
    assert f"episode {index}" in problem


@pytest.mark.parametrize("episodes", [None, [], {}, [{}] * 39])
def test_check_episodes_catches_other_shapes(episodes):
    assert check_episodes(VALIDATION, episodes) == ["must be 40 episodes"]
