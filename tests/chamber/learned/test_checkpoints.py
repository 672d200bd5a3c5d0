"""Checkpoints: named by content, compared before they are parsed, and nothing but the tensors of actors inside."""

import io
import json
import pickle
import struct

import numpy as np
import pytest
from rowproof import checkpoints
from rowproof.chamber.cocarry.egos import happo, happo_blind, joint_ego
from rowproof.chamber.cocarry.partners import trained_pair
from rowproof.chamber.learned import tensors as codec
from rowproof.chamber.learned.tensors import decode, encode
from rowproof.checkpoints import CheckpointError, file_name, read_bytes, store, uri_of
from safetensors.numpy import save


def named(tensors, seat="ego"):
    return {f"{seat}.{name}": tensor for name, tensor in tensors.items()}


@pytest.fixture
def ego(actor_tensors):
    """The tensors of a whole checkpoint of one ego."""
    return named(actor_tensors("ego"))


@pytest.fixture
def stored(ego, tmp_path):
    """A checkpoint file and its URI."""
    uri = store(tmp_path, encode(ego))
    return tmp_path / file_name(uri), uri


@pytest.fixture
def unparsed(monkeypatch):
    """Parsing anything fails the test."""

    def parsed(data):
        raise AssertionError("parsed although the hash differs")

    monkeypatch.setattr(codec, "load", parsed)


def refusal(call, *args):
    with pytest.raises(CheckpointError) as caught:
        call(*args)
    return str(caught.value)


# ---- names -----------------------------------------------------------------------------------------------------


def test_a_checkpoint_is_named_by_its_content(stored, ego):
    path, uri = stored
    assert uri == uri_of(encode(ego)) and path.name == uri.removeprefix("sha256:") + ".safetensors"
    assert read_bytes(path, uri) == path.read_bytes()


def test_round_trip(ego):
    data = encode(ego)
    (actor,) = decode(data, uri_of(data), ("ego",)).values()
    assert named(actor).keys() == ego.keys()
    assert all((actor[name.removeprefix("ego.")] == tensor).all() for name, tensor in ego.items())


def test_equal_tensors_give_equal_bytes(ego):
    turned = {name: np.asfortranarray(tensor) for name, tensor in reversed(ego.items())}
    assert encode(turned) == encode(ego)


@pytest.mark.parametrize(
    "uri",
    [
        *("", "sha256:", "sha256:" + "0" * 63, "sha256:" + "A" * 64, "sha256:" + "0" * 64 + "\n"),
        *("sha256:../" + "0" * 61, "file:" + "0" * 64, "0" * 64),
    ],
)
def test_other_names_are_refused(uri, stored):
    assert "must be named sha256:<64 hex>, found" in refusal(file_name, uri)
    assert "must be named sha256:<64 hex>, found" in refusal(read_bytes, stored[0], uri)


# ---- other content under the right name ------------------------------------------------------------------------


class Payload:
    """Leaves a file when it is unpickled."""

    def __init__(self, path):
        self._path = path

    def __reduce__(self):
        return (open, (str(self._path), "w"))


def _torch_zip(payload):
    torch = pytest.importorskip("rowproof.chamber.learned.networks", reason="torch is not installed").torch
    buffer = io.BytesIO()
    torch.save({"weight": torch.zeros(3), "payload": payload}, buffer)
    return buffer.getvalue()


FOREIGN = {
    "truncated": lambda data, other, payload: data[:-1],
    "cut in the header": lambda data, other, payload: data[:20],
    "appended": lambda data, other, payload: data + b"\0",
    "one bit flipped": lambda data, other, payload: data[:-7] + bytes([data[-7] ^ 1]) + data[-6:],
    "empty": lambda data, other, payload: b"",
    "of another seed": lambda data, other, payload: other,
    "raw pickle": lambda data, other, payload: pickle.dumps(payload),
    "torch.save": lambda data, other, payload: _torch_zip(payload),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_other_content_is_refused_by_name_and_hash_before_it_is_parsed(kind, stored, actor_tensors, unparsed, tmp_path):
    path, uri = stored
    mark = tmp_path / "executed"
    data = FOREIGN[kind](path.read_bytes(), encode(named(actor_tensors("another seed"))), Payload(mark))
    path.write_bytes(data)
    assert refusal(read_bytes, path, uri) == (
        f"{path}: must be the checkpoint {uri}, found {uri_of(data)}: restore it, or train again"
    )
    assert refusal(decode, data, uri, ("ego",)) == f"the checkpoint must be {uri}, found {uri_of(data)}"
    assert uri in refusal(happo.build, uri, data)
    assert not mark.exists()


def test_an_oversized_file_is_not_even_read(stored, unparsed):
    path, uri = stored
    with path.open("r+b") as stream:
        stream.truncate(checkpoints.MAX_BYTES + 1)
    found = refusal(read_bytes, path, uri)
    assert found == f"{path}: a checkpoint must have at most {64 << 20} bytes, found {(64 << 20) + 1}"


def test_a_missing_file_is_named(stored):
    path, uri = stored
    path.unlink()
    assert refusal(read_bytes, path, uri) == f"{path}: must be the checkpoint {uri}, found No such file or directory"
    path.mkdir()
    assert refusal(read_bytes, path, uri) == f"{path}: must be the checkpoint {uri}, found Is a directory"


# ---- right hash, wrong content ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["raw pickle", "torch.save"])
def test_a_pickle_with_the_right_hash_is_no_safetensors_file(kind, tmp_path):
    mark = tmp_path / "executed"
    data = FOREIGN[kind](b"", b"", Payload(mark))
    assert "must be a safetensors file, found" in refusal(decode, data, uri_of(data), ("ego",))
    assert not mark.exists()
    # The payload does work.
    pickle.loads(pickle.dumps(Payload(mark))).close()
    assert mark.exists()


def raw(header, body=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


UNREADABLE = {
    "empty": b"",
    "seven bytes": b"\x01" * 7,
    "no header": struct.pack("<Q", 0),
    "header longer than the file": struct.pack("<Q", 1 << 40) + b"{}",
    "header no JSON": raw(b"{nothing}"),
    "header no object": raw([1]),
    "offsets beyond the end": raw({"ego.w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}, bytes(8)),
    "offsets that overlap": raw(
        {name: {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} for name in ("ego.a", "ego.b")}, bytes(8)
    ),
    "shape that does not fit": raw({"ego.w": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}, bytes(8)),
    "unknown dtype": raw({"ego.w": {"dtype": "F31", "shape": [2], "data_offsets": [0, 8]}}, bytes(8)),
    "bytes that nothing names": raw({}, bytes(8)),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_what_is_no_safetensors_file_is_refused(kind):
    data = UNREADABLE[kind]
    found = refusal(decode, data, uri_of(data), ("ego",))
    assert found.startswith(f"checkpoint {uri_of(data)}: must be a safetensors file, found ")


OTHER_FORMATS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2"), 1),
    **dict.fromkeys(("I16", "U16", "F16", "BF16"), 2),
    **dict.fromkeys(("I32", "U32"), 4),
    **dict.fromkeys(("I64", "U64", "F64"), 8),
}


@pytest.mark.parametrize(("dtype", "size"), OTHER_FORMATS.items())
def test_every_other_number_format_is_refused(dtype, size):
    data = raw({"ego.mean.bias": {"dtype": dtype, "shape": [8], "data_offsets": [0, 8 * size]}}, bytes(8 * size))
    assert uri_of(data) in refusal(decode, data, uri_of(data), ("ego",))


def _without(name):
    return lambda ego: {other: tensor for other, tensor in ego.items() if other != name}


def _put(name, value):
    def change(ego):
        tensor = ego[name].copy()
        tensor.flat[3] = value
        return {**ego, name: tensor}

    return change


TENSORS = (
    *("input_norm.weight", "input_norm.bias", "hidden.0.weight", "hidden.0.bias", "norms.1.weight", "norms.1.bias"),
    *("mean.weight", "mean.bias", "std_parameter"),
)
WRONG = {
    "nothing": lambda ego: {},
    **{f"no {name}": _without(f"ego.{name}") for name in TENSORS},
    "a tensor more": lambda ego: {**ego, "ego.extra": np.zeros(3, np.float32)},
    "a norm more": lambda ego: {**ego, "ego.norms.2.weight": np.ones(16, np.float32)},
    "a layer more": lambda ego: {**ego, "ego.hidden.2.weight": np.ones((16, 16), np.float32)},
    "a tensor of nobody": lambda ego: {**ego, "critic.value.bias": np.zeros(1, np.float32)},
    "a name without seat": lambda ego: {**ego, "weight": np.zeros(1, np.float32)},
    "another seat": lambda ego: {name.replace("ego.", "partner."): tensor for name, tensor in ego.items()},
    "another seat as well": lambda ego: ego | {n.replace("ego.", "partner."): t for n, t in ego.items()},
    "not a number": _put("ego.hidden.1.weight", np.nan),
    "infinite": _put("ego.mean.weight", -np.inf),
    "double precision": lambda ego: {**ego, "ego.mean.bias": ego["ego.mean.bias"].astype(np.float64)},
    "half precision": lambda ego: {**ego, "ego.mean.bias": ego["ego.mean.bias"].astype(np.float16)},
    "all in double precision": lambda ego: {name: tensor.astype(np.float64) for name, tensor in ego.items()},
    "turned layer": lambda ego: {**ego, "ego.hidden.0.weight": ego["ego.hidden.0.weight"].T.copy()},
    "layer cut short": lambda ego: {**ego, "ego.hidden.1.weight": ego["ego.hidden.1.weight"][:, 1:].copy()},
    "scalar in place of a layer": lambda ego: {**ego, "ego.mean.bias": np.array(1.0, np.float32)},
    "scalar in place of a norm": lambda ego: {**ego, "ego.input_norm.weight": np.array(1.0, np.float32)},
    "hand-scripted": lambda ego: {"gains.kp": np.ones(1, np.float32), "gains.ki": np.zeros(1, np.float32)},
}


@pytest.mark.parametrize("kind", WRONG)
def test_other_tensors_than_those_of_an_actor_are_refused(kind, ego):
    data = save({name: np.ascontiguousarray(tensor) for name, tensor in WRONG[kind](ego).items()})
    assert refusal(decode, data, uri_of(data), ("ego",)).startswith(f"checkpoint {uri_of(data)}: ")


@pytest.mark.parametrize("kind", ["a tensor more", "no std_parameter", "not a number", "double precision"])
def test_refusals_name_the_tensor(kind, ego):
    data = save(WRONG[kind](ego))
    name = {
        "a tensor more": "extra",
        "no std_parameter": "std_parameter",
        "not a number": "ego.hidden.1.weight",
        "double precision": "ego.mean.bias (float64)",
    }
    assert name[kind] in refusal(decode, data, uri_of(data), ("ego",))


# ---- players of this task --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("state_size", "action_size"), [(45, 8), (46, 7), (7, 4)])
def test_actors_of_another_task_are_refused(actor_tensors, state_size, action_size):
    data = encode(named(actor_tensors("foreign", state_size=state_size, action_size=action_size)))
    found = refusal(happo.build, uri_of(data), data)
    assert found.endswith(f"ego must take 46 values and give 8, found {state_size} and {action_size}")


def test_a_pair_needs_both_seats_and_an_ego_only_one(actor_tensors, ego):
    pair = encode(ego | named(actor_tensors("partner"), "partner"))
    single = encode(ego)
    assert joint_ego.build(uri_of(pair), pair) is not None
    assert trained_pair.build(uri_of(pair), pair) is not None
    assert happo.build(uri_of(single), single) is not None
    assert "partner: must hold the layers" in refusal(joint_ego.build, uri_of(single), single)
    assert "found partner." in refusal(happo.build, uri_of(pair), pair)


class Seen:
    """A view that gives one state."""

    def __init__(self, state):
        self._state = state

    def state(self):
        return self._state


def test_a_blind_ego_plays_what_the_mask_leaves(ego):
    data = encode(ego)
    blind, seeing = happo_blind.build(uri_of(data), data), happo.build(uri_of(data), data)
    state = np.linspace(-2, 4, 46, dtype=np.float32)
    masked, other = state.copy(), state.copy()
    masked[18:43], other[18:43] = 0, 9
    assert (blind.act(Seen(state)) == seeing.act(Seen(masked))).all()
    assert (blind.act(Seen(other)) == blind.act(Seen(state))).all()
    assert (seeing.act(Seen(other)) != seeing.act(Seen(state))).any()
    assert state[18] != 0


def test_the_seats_of_a_pair_play_their_own_tensors(actor_tensors, ego):
    partner = named(actor_tensors("partner"), "partner")
    data = encode(ego | partner)
    players = joint_ego.build(uri_of(data), data), trained_pair.build(uri_of(data), data)
    alone = [encode(ego), encode({name.replace("partner.", "ego."): tensor for name, tensor in partner.items()})]
    state = np.linspace(-2, 4, 46, dtype=np.float32)
    for player, single in zip(players, alone, strict=True):
        assert (player.act(Seen(state)) == happo.build(uri_of(single), single).act(Seen(state))).all()
