import os
import shutil
import subprocess
from array import array
from pathlib import Path

import pytest
from helpers import ROOT
from rowproof.errors import RecordError
from rowproof.hashing import sha256_hex
from rowproof.speedrun import corpus
from rowproof.speedrun.corpus import SHARDS, audit_stream, decode_shard, encode_shard, overlap, stream, stream_seed

AUDIT_SHA256 = "7d64c75c2f7bad535052cceeb7a792b915bc8a174d96cfee322dfd98f1dd922c"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    corpus.write_corpus(folder)
    return folder


@pytest.fixture
def folder(written, tmp_path):
    return shutil.copytree(written, tmp_path / "corpus")


@pytest.fixture(scope="module")
def train(written):
    return corpus.read_split(written, "train")


@pytest.fixture(scope="module")
def val(written):
    return corpus.read_split(written, "val")


@pytest.fixture(scope="module")
def audit():
    return audit_stream("ab" * 32, b"salt")


def test_what_is_written_verifies(written):
    assert corpus.verify_corpus(written) == corpus.manifest()
    assert sorted(path.name for path in written.iterdir()) == sorted([corpus.MANIFEST, *(s.name for s in SHARDS)])
    assert sha256_hex((written / corpus.MANIFEST).read_bytes()) == corpus.manifest_sha256()


def test_sizes(train, val, audit):
    assert (len(train), len(val), len(audit)) == (4_000_000, 131_073, 131_073)
    assert train[0] == val[0] == audit[0] == corpus.DOCUMENT_START
    assert len(set(train)) == 56 and max(train) == corpus.DOCUMENT_START < corpus.VOCABULARY


def test_the_splits_share_no_64_bytes(train, val, audit):
    assert overlap(val, train) == 0
    assert overlap(audit, train) == 0
    assert overlap(audit, val) == 0


def test_overlap_is_seen():
    tokens = stream(stream_seed("test"), 300)
    assert overlap(tokens[100:200], tokens) == 37
    assert overlap(tokens[:63], tokens) == 0


def test_the_audit_text_depends_on_patch_and_salt(audit):
    assert sha256_hex(encode_shard(audit)) == AUDIT_SHA256
    assert audit_stream("ab" * 32, b"salt") == audit
    assert audit_stream("ac" * 32, b"salt") != audit
    assert audit_stream("ab" * 32, b"Salt") != audit


def test_a_longer_stream_begins_like_a_shorter_one():
    assert stream(1, 5000)[:777] == stream(1, 777)


def test_sums_are_right():
    text = "".join(next_text for next_text, _ in zip(corpus.documents(3), range(200), strict=False))
    sums = [s for s in text.replace("\n", " ").split(". ") if " adds " in s]
    assert len(sums) > 100
    for sentence in sums:
        words = sentence.rstrip(".").split(" ")
        assert int(words[2]) + int(words[4]) == int(words[-1]) <= 118


def test_a_shard_reads_back():
    tokens = array("H", [256, 0, 65535])
    data = encode_shard(tokens)
    assert data[:12] == (20240520).to_bytes(4, "little") + b"\x01\0\0\0\x03\0\0\0"
    assert data[1024:] == b"\0\1\0\0\xff\xff"
    assert decode_shard(data, "x") == tokens


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:1000],
        lambda data: data[:-1],
        lambda data: data + b"\0\0",
        lambda data: b"\0" + data[1:],
        lambda data: data[:4] + b"\2" + data[5:],
        lambda data: data[:8] + b"\xff\xff\xff\xff" + data[12:],
        lambda data: data[:1020] + b"\1" + data[1021:],
    ],
)
def test_a_damaged_shard_is_refused(damage):
    with pytest.raises(RecordError, match=r"shard\.bin: must"):
        decode_shard(damage(encode_shard(array("H", [1, 2, 3]))), "shard.bin")


@pytest.mark.parametrize("name", [shard.name for shard in SHARDS])
def test_a_changed_byte_is_refused(folder, name):
    data = bytearray((folder / name).read_bytes())
    data[-1] ^= 1
    (folder / name).write_bytes(data)
    with pytest.raises(RecordError, match=f"{name}: must be .* write the corpus again"):
        corpus.verify_corpus(folder)


def test_a_changed_byte_is_refused_by_the_reader(folder):
    path = folder / SHARDS[1].name
    path.write_bytes(path.read_bytes()[:-2] + b"\0\0")
    with pytest.raises(RecordError, match=r"gen_val_000000.bin: must be"):
        corpus.read_split(folder, "val")


@pytest.mark.parametrize("name", [corpus.MANIFEST, *(shard.name for shard in SHARDS)])
def test_a_missing_file_is_refused(folder, name):
    (folder / name).unlink()
    with pytest.raises(RecordError, match=f"{name}: must be a readable file"):
        corpus.verify_corpus(folder)


def test_a_manifest_that_fits_other_shards_is_refused(folder):
    path = folder / corpus.MANIFEST
    path.write_text(path.read_text().replace("4000000", "4000001"))
    with pytest.raises(RecordError, match="must be the manifest of gen-v1"):
        corpus.verify_corpus(folder)


def test_another_generator_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "_PARTNERS", 5)
    corpus._world.cache_clear()
    try:
        with pytest.raises(RecordError, match=r"gen_train_000001\.bin: must be"):
            corpus.write_corpus(tmp_path / "new")
        assert not (tmp_path / "new").exists()
    finally:
        corpus._world.cache_clear()


def interpreter(version):
    """An interpreter that runs: from the path, or installed beside it by pyenv, whose commands may be switched off."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for python in (f"python{version}", *map(str, sorted(root.glob(f"versions/{version}.*/bin/python{version}")))):
        try:
            subprocess.run([python, "-c", ""], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return python
    return pytest.skip(f"Python {version} is not installed")


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13"])
def test_every_python_makes_the_same_bytes(version, tmp_path):
    code = (
        "import sys; from pathlib import Path\n"
        "from rowproof.speedrun import corpus as c; from rowproof.hashing import sha256_hex\n"
        "c.write_corpus(Path(sys.argv[1])); c.verify_corpus(Path(sys.argv[1]))\n"
        "print(sha256_hex(c.encode_shard(c.audit_stream('ab' * 32, b'salt'))))"
    )
    done = subprocess.run(
        [interpreter(version), "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "workflow"), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert (done.returncode, done.stdout.strip()) == (0, AUDIT_SHA256), done.stderr
