"""The training loop on a cheap task: what it collects, learns from, saves and tells."""

import numpy as np
import pytest
from pydantic import ValidationError
from rowproof.checkpoints import file_name, read_bytes
from rowproof.seeding import substream

pytest.importorskip("rowproof.chamber.learned.networks", reason="torch (extra training) is not installed")
from rowproof.chamber.learned import trainer
from rowproof.chamber.learned.policy import Actor
from rowproof.chamber.learned.tensors import decode

ROLLOUT, CUT = 160, 400


class Recorded:
    """A training of which every outcome, first state and rollout is kept."""

    def __init__(self, monkeypatch, toy, config, folder, follower, seed=0, **changes):
        chosen = config(**changes)
        task = toy(seed, 2 if chosen.algorithm == "mappo" else 1)
        self.outcomes, self.firsts, self.rollouts, self.values = [], {}, [], []
        step, reset, update = task.step, task.reset, trainer.Learners.update

        def kept_step(actions):
            self.outcomes.append(step(actions))
            return self.outcomes[-1]

        def kept_reset():
            self.firsts[len(self.outcomes)] = reset()
            return self.firsts[len(self.outcomes)]

        def kept_update(learners, rollout):
            self.rollouts.append(
                trainer.Rollout(
                    [each.copy() for each in rollout.states],
                    [each.copy() for each in rollout.actions],
                    *(each.copy() for each in (rollout.rewards, rollout.succeeded, rollout.truncated)),
                    rollout.following.copy(),
                )
            )
            self.policies.append(([trainer.tensors_of(actor) for actor in learners.actors], learners.stds()))
            self.values.append(update(learners, rollout))
            return self.values[-1]

        self.policies = []
        task.step, task.reset = kept_step, kept_reset
        monkeypatch.setattr(trainer.Learners, "update", kept_update)
        self.follower = follower()
        self.document = trainer.Training(chosen, task, seed, folder).run(self.follower)

    def joined(self, name):
        return np.concatenate([getattr(rollout, name) for rollout in self.rollouts])


@pytest.fixture
def record(monkeypatch, toy, config, follower, tmp_path):
    """A function that runs a recorded training."""

    def run(**changes):
        return Recorded(monkeypatch, toy, config, tmp_path, follower, **changes)

    return run


# ---- what is saved and told ------------------------------------------------------------------------------------


def test_checkpoints_are_taken_every_so_many_frames(train, tmp_path):
    document = train(tmp_path)
    assert [saved["step"] for saved in document["checkpoints"]] == [400, 800, 1200, 1600]
    uris = [saved["uri"] for saved in document["checkpoints"]]
    assert len(set(uris)) == 4
    assert {path.name for path in tmp_path.iterdir()} == {*map(file_name, uris), trainer.STATE_FILE}
    trainer.discard_state(tmp_path)
    trainer.discard_state(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {file_name(uri) for uri in uris}


@pytest.mark.parametrize(("algorithm", "seats"), [("happo", ("ego",)), ("mappo", ("ego", "partner"))])
def test_a_checkpoint_holds_the_actors_as_they_are(record, tmp_path, algorithm, seats):
    run = record(algorithm=algorithm)
    for saved in run.document["checkpoints"]:
        actors = decode(read_bytes(tmp_path / file_name(saved["uri"]), saved["uri"]), saved["uri"], seats)
        if saved["step"] == run.document["frames"]:
            continue
        # The policies with which the rollout under way is collected are those of the last update before.
        policies, _ = run.policies[saved["step"] // ROLLOUT]
        for seat, tensors in zip(seats, policies, strict=True):
            assert actors[seat].keys() == tensors.keys()
            assert all((actors[seat][name] == tensor).all() for name, tensor in tensors.items())


def test_document(train, tmp_path):
    document = train(tmp_path, seed=3)
    del document["checkpoints"], document["curve"]
    assert document == {
        "schema": "rowproof/training-run/1",
        "training": "toy",
        "training_seed": 3,
        "frames": 1600,
    }


def test_curve(record):
    run = record(frames=3600)
    curve = run.document["curve"]
    assert curve["columns"] == ["frames", "reward_mean", "episodes", "successes", "value_mean", "action_std"]
    assert len(curve["points"]) == 2
    ended = {i + 1 for i, outcome in enumerate(run.outcomes) if outcome.succeeded or outcome.truncated}
    ended |= set(range(CUT, 3601, CUT))
    for index, point in enumerate(curve["points"]):
        frames = range(1600 * index + 1, 1600 * (index + 1) + 1)
        outcomes = [run.outcomes[frame - 1] for frame in frames]
        successes = sum(outcome.succeeded for outcome in outcomes)
        # The first update after a point starts from the deviations that the point tells.
        _, stds = run.policies[10 * (index + 1)]
        assert point[0] == frames[-1]
        assert point[1] == pytest.approx(np.mean([outcome.reward for outcome in outcomes]), abs=2e-6)
        assert point[2:4] == [len(ended & set(frames)), successes]
        assert point[4] == pytest.approx(np.mean(run.values[10 * index : 10 * index + 10]), abs=1e-6)
        assert point[5] == pytest.approx(stds[0].mean(), abs=1e-6)
    assert sum(point[3] for point in curve["points"]) > 0


def test_the_watcher_hears_of_every_update(record):
    run = record(frames=2000)
    assert run.follower.resumed == []
    assert [each[:2] for each in run.follower.advances] == [(ROLLOUT, ROLLOUT)] * 12
    episodes, successes = run.document["curve"]["points"][0][2:4]
    notes = [note for _, _, note in run.follower.advances]
    assert notes == ["success unknown"] * 9 + [f"success {successes} of {episodes}"] * 3


def test_frames_must_fit_checkpoints(config):
    with pytest.raises(ValidationError, match="frames must be a multiple of checkpoint_frames, found 1500"):
        config(frames=1500)


# ---- what is learned from --------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["happo", "mappo"])
def test_rollouts_hold_consecutive_steps(record, algorithm):
    run = record(algorithm=algorithm)
    assert len(run.rollouts) == 10 and {len(rollout.rewards) for rollout in run.rollouts} == {ROLLOUT}
    for seat in range(2 if algorithm == "mappo" else 1):
        states = np.concatenate([rollout.states[seat] for rollout in run.rollouts])
        for frame, state in enumerate(states):
            before = run.firsts[frame] if frame in run.firsts else run.outcomes[frame - 1].states
            assert (state == before[seat]).all(), frame
    assert (run.joined("rewards") == np.array([o.reward for o in run.outcomes], np.float32)).all()
    assert (run.joined("succeeded") == [o.succeeded for o in run.outcomes]).all()


@pytest.mark.parametrize("algorithm", ["happo", "mappo"])
def test_following_is_the_last_state_of_an_ended_episode(record, algorithm):
    run = record(algorithm=algorithm)
    following = run.joined("following")
    for frame, outcome in enumerate(run.outcomes):
        assert (following[frame] == outcome.states[0]).all()
    starts = [frame for frame in run.firsts if 0 < frame < 1600]
    assert len(starts) > 20
    assert all((following[frame - 1] != run.firsts[frame][0]).any() for frame in starts)


def test_a_checkpoint_ends_the_episode_for_lack_of_time(record):
    run = record()
    truncated = run.joined("truncated")
    expected = [outcome.truncated for outcome in run.outcomes]
    cuts = [frame - 1 for frame in range(CUT, 1601, CUT)]
    under_way = [i for i in cuts if not (run.outcomes[i].succeeded or run.outcomes[i].truncated)]
    assert under_way
    for index in under_way:
        expected[index] = True
    assert (truncated == expected).all()
    assert not (truncated & run.joined("succeeded")).any()


def test_every_checkpoint_is_followed_by_a_fresh_scene(monkeypatch, toy, train, tmp_path):
    calls = []
    fresh = toy.fresh
    monkeypatch.setattr(toy, "fresh", lambda task, episode: calls.append(episode) or fresh(task, episode))
    document = train(tmp_path)
    assert len(calls) == 5 and calls[0] == 0 and calls == sorted(set(calls))
    # One curve point spans all frames; the episode that the last checkpoint would start is never played.
    assert calls[-1] == document["curve"]["points"][0][2]


@pytest.mark.parametrize(("algorithm", "prefix"), [("happo", "training.ego_ppo"), ("mappo", "training.joint_mappo")])
def test_actions_are_the_mean_and_noise_of_a_named_stream(record, algorithm, prefix):
    seats = 2 if algorithm == "mappo" else 1
    run = record(algorithm=algorithm, seed=2)
    for number, rollout in enumerate(run.rollouts[:3]):
        noise = substream(f"{prefix}.noise.{number}", 2).standard_normal((ROLLOUT, seats, 2), np.float32)
        tensors, stds = run.policies[number]
        for seat in range(seats):
            actor = Actor(tensors[seat])
            means = np.array([actor.mean_action(state) for state in rollout.states[seat]])
            assert (rollout.actions[seat] == means + stds[seat] * noise[:, seat]).all()
            # The log-probability is that of the sample, whatever the environment clips.
            assert np.abs(rollout.actions[seat]).max() > 1


def test_updates_come_in_the_middle_of_episodes(record):
    run = record()
    ends = run.joined("succeeded") | run.joined("truncated")
    assert not ends[ROLLOUT - 1 :: ROLLOUT].all()


TORCH_SEEDS = {
    "happo": (140323428, 2136522470, 1936260172, 139554716, 499019462),
    "mappo": (1846697086, 376771151, 734464773, 588201184, 1071750791),
}


@pytest.mark.parametrize("algorithm", TORCH_SEEDS)
def test_torch_seeds_are_the_published_ones(config, algorithm):
    found = [trainer._torch_seed(config(algorithm=algorithm), seed) for seed in range(5)]
    assert tuple(found) == TORCH_SEEDS[algorithm]


def test_seeds_and_settings_change_the_result(train, tmp_path):
    def uris(name, **changes):
        return [saved["uri"] for saved in train(tmp_path / name, **changes)["checkpoints"]]

    base = uris("a", frames=400)
    assert uris("b", frames=400) == base
    assert uris("c", frames=400, seed=1) != base
    assert uris("d", frames=400, clip=0.2, epochs=4) != base
