"""Training on the real rig: what learners see and are rewarded for, and that nothing but the setup matters."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import yaml
from helpers import ROOT
from rowproof.boards import PAIR
from rowproof.chamber.cocarry.goals import GoalStream
from rowproof.chamber.cocarry.observation import BLIND_SLICE
from rowproof.chamber.cocarry.seats import build_ego
from rowproof.chamber.cocarry_cell import CocarryCell
from rowproof.chamber.grid import specs
from rowproof.chamber.training_config import TrainingConfig
from rowproof.checkpoints import CheckpointError, file_name, uri_of
from rowproof.errors import ConfigError

networks = pytest.importorskip("rowproof.chamber.learned.networks", reason="torch (extra training) is not installed")
from rowproof.chamber.cocarry import checks, engine, training, validation  # noqa: E402
from rowproof.chamber.learned.policy import Actor  # noqa: E402
from rowproof.chamber.learned.tensors import encode  # noqa: E402

pytestmark = pytest.mark.usefixtures("simulator")

SHORT = {"frames": 800, "checkpoint_frames": 200, "rollout_frames": 80, "epochs": 2, "hidden_units": [16, 16]}
SMALL_CELL = {"max_steps": 60}


class Silent:
    def resume(self, done):
        self.resumed = done

    def advance(self, units, work, note):
        pass


def training_data(name="cocarry-aht", **changes):
    text = (ROOT / f"config/training/{name}.yaml").read_text(encoding="utf-8")
    return {**yaml.safe_load(text), **changes}


@pytest.fixture
def task(setup):
    """A function that makes the task of a training, its first episode started."""

    def make(seed=0, cell=None, **changes):
        config = TrainingConfig.model_validate(training_data(**changes))
        made = training.CocarryTask(config, CocarryCell.model_validate(setup(cell=cell or {})["cell"]), seed)
        made.first = made.fresh(0)
        return made

    return make


@pytest.fixture
def train_setup(setup):
    """A function that makes the setup of a short training."""

    def make(**changes):
        return {"cell": setup(cell=SMALL_CELL)["cell"], "training": training_data(**{**SHORT, **changes})}

    return make


def actions_of(count, seats=1):
    rng = np.random.Generator(np.random.PCG64(5))
    return [list(rng.normal(0, 0.3, (seats, 8)).astype(np.float32)) for _ in range(count)]


# ---- what the ego sees -----------------------------------------------------------------------------------------


def test_the_mask_hides_partner_and_bar_from_the_ego_and_changes_nothing_else(task):
    seeing, blind = task(), task(blind=True)
    assert slice(18, 43) == BLIND_SLICE
    states = [(seeing.first, blind.first)]
    for action in actions_of(30):
        whole, masked = seeing.step(action), blind.step(action)
        # The partner and the rewards are those of the unmasked scene.
        assert whole[1:] == masked[1:]
        states.append((whole.states, masked.states))
    for (whole,), (masked,) in states:
        assert whole.shape == masked.shape == (46,) and whole.dtype == masked.dtype == np.float32
        assert not masked[18:43].any() and whole[18:43].any()
        assert (masked[:18] == whole[:18]).all() and (masked[43:] == whole[43:]).all()


def test_each_of_a_pair_sees_itself_first(task):
    pair = task(name="cocarry-joint")
    for action in actions_of(5, 2):
        ego, partner = pair.step(action).states
        assert (ego[:18] == partner[18:36]).all() and (ego[18:36] == partner[:18]).all()
        assert (ego[36:] == partner[36:]).all() and (ego[:18] != ego[18:36]).any()


def test_both_of_a_pair_act(task):
    pair, still = task(name="cocarry-joint"), [np.zeros(8, np.float32)] * 2
    base = pair.step(still).states[0]
    for seat in range(2):
        moved = [each.copy() for each in still]
        moved[seat][0] = 1.0
        pair.fresh(0)
        state = pair.step(moved).states[0]
        assert state[18 * seat] != base[18 * seat]


def test_goals_of_training_are_consecutive_draws(task):
    rig = task()
    found = [rig.first[0][43:], *(rig.reset()[0][43:] for _ in range(4))]
    published = [
        (-0.01457, 0.13244, 0.28590),
        (0.00561, 0.10985, 0.29543),
        (-0.01221, 0.12841, 0.28822),
        (-0.00123, 0.12267, 0.27151),
        (-0.00352, 0.13242, 0.29630),
    ]
    assert np.array(found) == pytest.approx(np.array(published), abs=1e-5)
    assert (rig.fresh(3)[0][43:] == found[3]).all() and (rig.reset()[0][43:] == found[4]).all()


def test_goals_depend_on_the_training_seed(task):
    assert (task(seed=4).first[0][43:] == GoalStream(4).next().astype(np.float32)).all()


def test_a_fresh_scene_has_no_memory_but_a_reset_one_has(task):
    used, new = task(), task()
    for action in actions_of(40):
        used.step(action)
    after = {}
    for name, first in (("new", new.fresh(1)), ("renewed", used.fresh(1))):
        rig = new if name == "new" else used
        after[name] = [first, *(rig.step(action).states for action in actions_of(20))]
    for one, other in zip(after["new"], after["renewed"], strict=True):
        assert one[0].tobytes() == other[0].tobytes()
    used.fresh(0)
    for action in actions_of(40):
        used.step(action)
    used.reset()
    assert used.step(actions_of(1)[0]).states[0].tobytes() != after["new"][1][0].tobytes()


# ---- what it is rewarded for -----------------------------------------------------------------------------------


class ScriptedJudge:
    """Says success at one step."""

    at = None

    def __init__(self, cell):
        pass

    def success(self, step, sample):
        return step == self.at


@pytest.fixture
def shaped(task, monkeypatch):
    """A function that plays some steps without rewards of the task and gives outcomes and distances in metres."""

    def play(steps, success_at=None, **changes):
        monkeypatch.setattr(training, "Judge", ScriptedJudge)
        monkeypatch.setattr(ScriptedJudge, "at", success_at)
        monkeypatch.setattr(training, "reward", lambda *_: 0.0)
        rig = task(**changes)
        distances_m, outcomes = [training.distance_m(rig._scene)], []
        for action in actions_of(steps):
            outcomes.append(rig.step(action))
            distances_m.append(training.distance_m(rig._scene))
        return outcomes, distances_m

    return play


def test_the_potential_is_the_distance_and_its_discount_that_of_training(shaped):
    outcomes, d = shaped(6)
    assert [o.reward for o in outcomes] == [d[i] - 0.9 * d[i + 1] for i in range(6)]
    assert min(d) > 0.001 and not any(o.succeeded or o.truncated for o in outcomes)
    outcomes, d = shaped(3, discount=0.5, shaping_weight=2.0)
    assert [o.reward for o in outcomes] == pytest.approx([2 * d[i] - 0.5 * 2 * d[i + 1] for i in range(3)], rel=1e-12)


def test_the_potential_after_success_is_zero(shaped):
    outcomes, d = shaped(4, success_at=4)
    assert (outcomes[-1].succeeded, outcomes[-1].truncated, outcomes[-1].reward) == (True, False, d[3])


def test_the_potential_at_the_end_of_time_is_live(shaped):
    outcomes, d = shaped(4, cell={"max_steps": 4, "settle_step": 1})
    assert (outcomes[-1].succeeded, outcomes[-1].truncated) == (False, True)
    assert outcomes[-1].reward == d[3] - 0.9 * d[4]


def test_success_at_the_end_of_time_counts_as_the_end_of_time(shaped):
    outcomes, d = shaped(4, success_at=4, cell={"max_steps": 4, "settle_step": 1})
    assert (outcomes[-1].succeeded, outcomes[-1].truncated) == (False, True)
    assert outcomes[-1].reward == d[3] - 0.9 * d[4]


def test_success_in_the_last_step_is_rewarded_all_the_same(task, monkeypatch):
    monkeypatch.setattr(training, "Judge", ScriptedJudge)
    monkeypatch.setattr(ScriptedJudge, "at", 2)
    rig = task(cell={"max_steps": 2, "settle_step": 1}, shaping_weight=0.0)
    rewards = [rig.step(action).reward for action in actions_of(2)]
    assert rewards[1] == 1.0 > 0.6 > rewards[0]


# ---- playing ---------------------------------------------------------------------------------------------------


def test_numpy_plays_real_states_as_torch_does(task):
    rig = task()
    states = [rig.first[0], *(rig.step(action).states[0] for action in actions_of(80))]
    networks.torch.manual_seed(0)
    trained = networks.Actor(46, 8, [256, 256], 0.3, 0.5, 1.0)
    actor = Actor(networks.tensors_of(trained))
    played = np.array([actor.mean_action(state) for state in states])
    batch = networks.torch.from_numpy(np.array(states))
    with networks.torch.no_grad():
        single = trained(batch).numpy()
        double = trained.double()(batch.double()).numpy()
    assert np.abs(played).max() > 0.1
    assert np.abs(played - single).max() < 1e-6 and np.abs(played - double).max() < 1e-6


# ---- whole trainings -------------------------------------------------------------------------------------------

TRAIN = """
import json, sys
from pathlib import Path
from rowproof.chamber.cocarry.training import train
class Silent:
    def resume(self, done): pass
    def advance(self, units, work, note): pass
print(json.dumps(train(json.loads(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), Silent())))
"""


def start(setup, seed, folder, cwd=None, **environment):
    """The training in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", TRAIN, json.dumps(setup), str(seed), str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "workflow"), **environment},
        cwd=cwd,
        stdout=subprocess.PIPE,
        text=True,
    )


def names(folder):
    return {path.name for path in folder.iterdir()}


@pytest.mark.slow
def test_a_training_is_the_same_in_every_process(train_setup, tmp_path):
    setup = train_setup()
    here = training.train(setup, 0, tmp_path / "here", Silent())
    (tmp_path / "deep" / "é").mkdir(parents=True)
    both = [
        start(setup, 0, tmp_path / "a", PYTHONHASHSEED="1", LC_ALL="C", TZ="Asia/Tokyo", OMP_NUM_THREADS="2"),
        start(setup, 0, "b", cwd=tmp_path / "deep" / "é", PYTHONHASHSEED="77", LC_ALL="C.UTF-8", TZ="UTC"),
    ]
    for process, folder in zip(both, (tmp_path / "a", tmp_path / "deep" / "é" / "b"), strict=True):
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0 and json.loads(output) == here
        assert names(folder) == names(tmp_path / "here")
    assert [saved["step"] for saved in here["checkpoints"]] == [200, 400, 600, 800]
    assert training.train(setup, 1, tmp_path / "other", Silent())["checkpoints"] != here["checkpoints"]


def test_a_killed_training_goes_on_to_the_same_hashes(train_setup, tmp_path):
    setup = train_setup()
    whole = training.train(setup, 3, tmp_path / "whole", Silent())
    process = start(setup, 3, tmp_path / "cut")
    state = tmp_path / "cut" / "resume.state"
    deadline_s = time.monotonic() + 300
    while not state.exists() and process.poll() is None and time.monotonic() < deadline_s:
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    output, _ = process.communicate()
    assert (process.returncode, output) == (-signal.SIGKILL, ""), "it must be killed in the middle"
    watcher = Silent()
    assert training.train(setup, 3, tmp_path / "cut", watcher) == whole
    assert 200 <= watcher.resumed < 800
    assert {n for n in names(tmp_path / "cut") if not n.endswith(".tmp")} == names(tmp_path / "whole")


@pytest.mark.parametrize("name", ["cocarry-blind", "cocarry-joint"])
def test_the_other_trainings_go_on_as_well(train_setup, tmp_path, name):
    setup = train_setup(name=name, frames=400)

    class Ending(Silent):
        def advance(self, units, work, note):
            if (tmp_path / "cut" / "resume.state").exists():
                raise InterruptedError

    whole = training.train(setup, 0, tmp_path / "whole", Silent())
    with pytest.raises(InterruptedError):
        training.train(setup, 0, tmp_path / "cut", Ending())
    assert training.train(setup, 0, tmp_path / "cut", Silent()) == whole


@pytest.mark.parametrize(
    "changes", [{"algorithm": "sac"}, {"frames": 300}, {"clip": 0.0}, {"discount": 1.5}, {"hidden_units": []}, {"x": 1}]
)
def test_faulty_configurations_are_refused(train_setup, tmp_path, changes):
    with pytest.raises(ConfigError):
        training.train(train_setup(**changes), 0, tmp_path, Silent())
    assert not any(tmp_path.iterdir())


# ---- evaluation ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def checkpoints():
    """By policy, one checkpoint of networks as they are initialised: ``(uri, bytes)``."""
    networks.torch.manual_seed(0)
    actors = [networks.tensors_of(networks.Actor(46, 8, [16], 1.0, 0.5, 1.0)) for _ in range(2)]
    ego, partner = (
        {f"{seat}.{name}": tensor for name, tensor in actor.items()}
        for seat, actor in zip(("ego", "partner"), actors, strict=True)
    )
    found = {"happo": encode(ego), "happo_blind": encode(ego), "joint_ego": encode(ego | partner)}
    return {policy: (uri_of(data), data) for policy, data in found.items()}


@pytest.fixture
def validation_setup(setup, roster):
    """A function that makes the setup of a selection."""

    def make(policy):
        return {
            "policy": policy,
            "cell": setup(cell={"max_steps": 40})["cell"],
            "member": PAIR if policy == "joint_ego" else roster.seats(["imp_nominal"])[0],
            "seeds": [9000, 9001],
            "episodes_per_seed": 2,
            "limits": {"force_peak": 130.0, "max_tilt_deg": 15.0},
        }

    return make


@pytest.mark.parametrize("policy", ["happo", "happo_blind", "joint_ego"])
def test_validation_plays_its_own_start_states(validation_setup, checkpoints, policy):
    setup = validation_setup(policy)
    episodes = validation.validate(setup, *checkpoints[policy])
    assert [episode["initial_state_seed"] for episode in episodes] == [9000000, 9000001, 9001000, 9001001]
    assert episodes == validation.validate(setup, *checkpoints[policy])
    assert {"success", "force_peak", "max_tilt_deg", "n_steps"} <= episodes[0].keys()


def test_the_mask_and_the_own_partner_change_what_is_played(validation_setup, checkpoints):
    found = {policy: validation.validate(validation_setup(policy), *checkpoints[policy]) for policy in checkpoints}
    assert found["happo"] != found["happo_blind"]
    assert found["happo"] != found["joint_ego"]


def test_only_the_member_of_a_pair_is_in_the_checkpoint(validation_setup, checkpoints, roster):
    setup = validation_setup("joint_ego")
    other = {**setup, "member": roster.seats(["imp_lag_bounded"])[0]}
    assert validation.validate(setup, *checkpoints["joint_ego"]) != validation.validate(
        other, *checkpoints["joint_ego"]
    )
    with pytest.raises(CheckpointError, match="partner: must hold the layers"):
        validation.validate({**validation_setup("happo"), "member": PAIR}, *checkpoints["happo"])


def test_a_checkpoint_of_another_policy_is_refused(validation_setup, checkpoints):
    for policy, other in (("happo", "joint_ego"), ("joint_ego", "happo")):
        with pytest.raises(CheckpointError):
            checks.check_checkpoint(validation_setup(policy), *checkpoints[other])
    checks.check_checkpoint(validation_setup("happo"), *checkpoints["happo_blind"])


def few(setup, policy):
    row = setup(policy=policy, seeds=[0, 1], episodes_per_partner=1, cell={"max_steps": 40})
    if policy == "joint_ego":
        row["members"] = [PAIR]
    return row, [spec for spec in specs(row) if spec["member"] in ("imp_damp_low", PAIR["name"])]


@pytest.mark.parametrize("policy", ["happo", "happo_blind", "joint_ego"])
def test_records_name_the_checkpoint_that_played(setup, checkpoints, policy):
    row, chosen = few(setup, policy)
    uri = checkpoints[policy][0]
    records = list(engine.simulate(row, chosen, {0: checkpoints[policy], 1: checkpoints[policy]}))
    row["checkpoints"] = {0: uri, 1: uri}
    for spec, record in zip(chosen, records, strict=True):
        assert list(record["metadata"])[:3] == ["condition", "policy", "seed_policy"]
        assert record["metadata"]["seed_policy"] == uri
        assert checks.check_record(row, spec, record) == []
        other = {**row, "checkpoints": {0: "sha256:" + "0" * 64, 1: "sha256:" + "0" * 64}}
        (problem,) = checks.check_record(other, spec, record)
        assert "seed_policy" in problem


def test_records_depend_on_their_own_spec_alone(setup, checkpoints):
    row, chosen = few(setup, "happo")
    both = {0: checkpoints["happo"], 1: checkpoints["happo_blind"]}
    records = list(engine.simulate(row, chosen, both))
    assert list(engine.simulate(row, chosen[::-1], both))[::-1] == records
    assert list(engine.simulate(row, chosen[1:], {1: both[1]})) == records[1:]


def test_a_seed_without_checkpoint_is_refused_before_anything_is_simulated(setup, checkpoints, monkeypatch):
    monkeypatch.setattr(engine, "Runner", None)
    row, chosen = few(setup, "happo")
    with pytest.raises(ConfigError, match="must have a checkpoint for seed 1, found none"):
        next(engine.simulate(row, chosen, {0: checkpoints["happo"]}))
    with pytest.raises(CheckpointError):
        next(engine.simulate(row, chosen, {0: checkpoints["happo"], 1: (checkpoints["happo"][0], b"")}))


def test_a_trained_checkpoint_plays(train_setup, tmp_path):
    setup = train_setup(frames=200)
    (saved,) = training.train(setup, 0, tmp_path, Silent())["checkpoints"]
    ego = build_ego("happo", 0, (saved["uri"], (tmp_path / file_name(saved["uri"])).read_bytes()))
    ego.reset(0)
