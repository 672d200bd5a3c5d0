import io
import zipfile

import numpy as np
import pytest
from rowproof.speedrun.referee.checkpoint import CheckpointError, read_checkpoint
from rowproof.speedrun.referee.cost import analytic_flops, matrix_parameters

LIMIT = 1 << 20


def saved(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def arrays():
    return {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.zeros(4, dtype=np.float32)}


def test_a_checkpoint_is_described():
    found = read_checkpoint(saved(**arrays()), LIMIT)
    assert found.n_params == 10
    assert found.shapes == {"a.npy": (2, 3), "b.npy": (4,)}
    assert found.size_bytes == len(saved(**arrays()))


def test_the_digest_is_that_of_the_weights_and_not_of_the_file():
    stream = io.BytesIO()
    np.savez_compressed(stream, **dict(reversed(arrays().items())))
    assert read_checkpoint(stream.getvalue(), LIMIT).sha256 == read_checkpoint(saved(**arrays()), LIMIT).sha256


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found["a"].__setitem__((0, 0), 1.0),
        lambda found: found.update(a=found["a"].T.copy()),
        lambda found: found.update(c=found.pop("b")),
    ],
    ids=["value", "shape", "name"],
)
def test_other_weights_have_another_digest(change):
    other = arrays()
    change(other)
    assert read_checkpoint(saved(**other), LIMIT).sha256 != read_checkpoint(saved(**arrays()), LIMIT).sha256


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK\3\4 but no archive",
        saved(),
        saved(a=np.zeros(3)),
        saved(a=np.zeros(3, dtype=">f4")),
        saved(a=np.array([{}], dtype=object)),
        saved(a=np.asfortranarray(np.ones((2, 3), dtype=np.float32))),
        saved(a=np.ones(3, dtype=np.float32))[:-40],
    ],
    ids=["empty", "broken", "no arrays", "float64", "big-endian", "objects", "column order", "cut off"],
)
def test_anything_else_is_refused(data):
    with pytest.raises(CheckpointError):
        read_checkpoint(data, LIMIT)


def archive(*members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as found:
        for name, content in members:
            found.writestr(name, content)
    return stream.getvalue()


def header(text):
    line = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line


@pytest.mark.parametrize("shape", ["(10**9,)", "(3,)", "(-1,)", "(1000000000000, 1000000000000)"])
def test_a_header_that_lies_about_its_array_is_refused(shape):
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    with pytest.raises(CheckpointError):
        read_checkpoint(archive(("a.npy", header(text) + bytes(16))), LIMIT)


def test_the_header_of_these_tests_is_one_that_is_read():
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }"
    assert read_checkpoint(archive(("a.npy", header(text) + bytes(16))), LIMIT).n_params == 4


def test_a_small_file_cannot_unpack_to_a_huge_one():
    data = archive(("a.npy", bytes(64 << 20)))
    assert len(data) < LIMIT
    with pytest.raises(CheckpointError, match="unpack"):
        read_checkpoint(data, LIMIT)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_arrays_of_one_name_are_refused():
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }"
    member = ("a.npy", header(text) + bytes(16))
    with pytest.raises(CheckpointError, match="twice"):
        read_checkpoint(archive(member, member), LIMIT)


def test_flops_of_the_baseline():
    block = {"qkv": (192, 64), "proj": (64, 64), "fc": (256, 64), "back": (64, 256), "norm": (64,)}
    shapes = {f"{layer}.{name}": shape for layer in range(3) for name, shape in block.items()}
    shapes["embed"] = (288, 64)
    # 12 d^2 per layer and the head.
    assert matrix_parameters(shapes) == 3 * 12 * 64**2 + 288 * 64
    assert analytic_flops(shapes, 10) == 60 * (3 * 12 * 64**2 + 288 * 64)
    # A head of its own makes the embedding a table.
    assert matrix_parameters({**shapes, "head": (288, 64)}) == matrix_parameters(shapes)
