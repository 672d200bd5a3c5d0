"""A training that was ended at any moment goes on to the bits of an undisturbed one, or starts anew to them."""

import numpy as np
import pytest

pytest.importorskip("rowproof.chamber.learned.networks", reason="torch (extra training) is not installed")
from rowproof.chamber.learned.trainer import STATE_FILE
from rowproof.checkpoints import file_name


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def whole_folder(tmp_path_factory):
    """Where the undisturbed training lies."""
    return tmp_path_factory.mktemp("whole")


@pytest.fixture(scope="module")
def whole(train, whole_folder):
    """Document and files of the undisturbed training."""
    document = train(whole_folder)
    return document, files(whole_folder)


def interrupt(train, follower, folder, *stops, **changes):
    """Start a training once per entry of ``stops`` and end each start at that update; return the last watcher."""
    for stop in stops:
        watcher = follower(stop)
        with pytest.raises(follower.Ended):
            train(folder, watcher=watcher, **changes)
    return watcher


# Updates come every 160 frames, checkpoints every 400: the fifth update precedes the checkpoint of the same frame.
@pytest.mark.parametrize(
    ("stop", "resumed_at"), [(1, None), (2, None), (3, 400), (4, 400), (5, 400), (6, 800), (8, 1200), (10, 1200)]
)
def test_an_interrupted_training_goes_on_to_the_same_bits(train, follower, whole, tmp_path, stop, resumed_at):
    interrupt(train, follower, tmp_path / "cut", stop)
    watcher = follower()
    document = train(tmp_path / "cut", watcher=watcher)
    assert (document, files(tmp_path / "cut")) == whole
    assert watcher.resumed == ([] if resumed_at is None else [resumed_at])
    assert sum(units for units, _, _ in watcher.advances) == 1600 - (resumed_at or 0) // 160 * 160


def test_a_pair_goes_on_to_the_same_bits(train, follower, tmp_path):
    document = train(tmp_path / "whole", algorithm="mappo")
    interrupt(train, follower, tmp_path / "cut", 6, algorithm="mappo")
    assert train(tmp_path / "cut", algorithm="mappo") == document
    assert files(tmp_path / "cut") == files(tmp_path / "whole")


def test_it_may_be_interrupted_many_times(train, follower, whole, tmp_path):
    # Every start gets a little further than the last checkpoint.
    watcher = interrupt(train, follower, tmp_path / "cut", 1, 3, 1, 4, 2, 3)
    assert watcher.resumed == [800]
    assert (train(tmp_path / "cut"), files(tmp_path / "cut")) == whole


def test_an_interruption_within_an_update_is_as_good(train, follower, whole, tmp_path, monkeypatch):
    from rowproof.chamber.learned import trainer

    update, calls = trainer.Learners.update, []

    def broken(learners, rollout):
        calls.append(1)
        if len(calls) == 7:
            raise MemoryError
        return update(learners, rollout)

    monkeypatch.setattr(trainer.Learners, "update", broken)
    with pytest.raises(MemoryError):
        train(tmp_path / "cut")
    assert (train(tmp_path / "cut"), files(tmp_path / "cut")) == whole


def test_a_write_that_fails_leaves_the_state_before(train, follower, whole, tmp_path, monkeypatch):
    from rowproof.chamber.learned import trainer

    write, calls = trainer.write_atomic, []

    def full(path, data):
        calls.append(path.name)
        if len(calls) == 3:
            raise OSError(28, "No space left on device", str(path))
        write(path, data)

    monkeypatch.setattr(trainer, "write_atomic", full)
    with pytest.raises(OSError, match="No space left"):
        train(tmp_path / "cut")
    assert calls == [STATE_FILE] * 3
    watcher = follower()
    assert (train(tmp_path / "cut", watcher=watcher), files(tmp_path / "cut")) == whole
    assert watcher.resumed == [800]


def test_a_finished_training_that_is_asked_for_again_only_tells(train, follower, whole, whole_folder):
    watcher = follower()
    assert (train(whole_folder, watcher=watcher), files(whole_folder)) == whole
    assert watcher.resumed == [1600] and watcher.advances == []


# ---- states that cannot be trusted -----------------------------------------------------------------------------


def _flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGES = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "one byte short": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "cut within its digest": lambda path: path.write_bytes(path.read_bytes()[:40]),
    "empty": lambda path: path.write_bytes(b""),
    "one bit flipped": _flip,
    "not text in front": lambda path: path.write_bytes(b"\xff\xfe" + path.read_bytes()),
    "appended": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "zeros": lambda path: path.write_bytes(bytes(len(path.read_bytes()))),
    "missing": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_state_is_ignored(train, follower, whole, tmp_path, damage):
    folder = tmp_path / "cut"
    interrupt(train, follower, folder, 7)
    DAMAGES[damage](folder / STATE_FILE)
    watcher = follower()
    assert (train(folder, watcher=watcher), files(folder)) == whole
    assert watcher.resumed == [] and len(watcher.advances) == 10


def test_a_state_of_another_seed_is_ignored(train, follower, whole, tmp_path):
    interrupt(train, follower, tmp_path / "other", 7, seed=1)
    interrupt(train, follower, tmp_path / "cut", 7)
    for path in (tmp_path / "other").iterdir():
        (tmp_path / "cut" / path.name).write_bytes(path.read_bytes())
    watcher = follower()
    assert train(tmp_path / "cut", watcher=watcher) == whole[0]
    assert watcher.resumed == []


@pytest.mark.parametrize("index", [0, 1])
def test_a_state_whose_checkpoint_is_missing_is_ignored(train, follower, whole, tmp_path, index):
    folder = tmp_path / "cut"
    interrupt(train, follower, folder, 7)
    (folder / file_name(whole[0]["checkpoints"][index]["uri"])).unlink()
    watcher = follower()
    assert (train(folder, watcher=watcher), files(folder)) == whole
    assert watcher.resumed == []


# ---- these tests can fail --------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["buffer.states0", "buffer.rewards", "actor0.adam.0.exp_avg", "critic.value.weight"])
def test_every_part_of_the_state_is_needed(train, follower, whole, tmp_path, monkeypatch, part):
    from rowproof.chamber.learned import trainer

    folder, read = tmp_path / "cut", trainer._read_state
    # Frame 400 lies within a rollout.
    interrupt(train, follower, folder, 4)

    def without(path):
        position, state = read(path)
        assert np.any(state[part])
        return position, {**state, part: np.zeros_like(state[part])}

    monkeypatch.setattr(trainer, "_read_state", without)
    assert train(folder)["checkpoints"][1] != whole[0]["checkpoints"][1]


def test_what_a_scene_keeps_over_resets_matters(train, whole, tmp_path, toy, monkeypatch):
    fresh = toy.fresh

    def unrenewed(task, episode):
        heat = getattr(task, "_heat", 0.0)
        states = fresh(task, episode)
        task._heat = heat
        return states

    monkeypatch.setattr(toy, "fresh", unrenewed)
    found = train(tmp_path / "other")["checkpoints"]
    assert found[0] == whole[0]["checkpoints"][0] and found[1] != whole[0]["checkpoints"][1]
