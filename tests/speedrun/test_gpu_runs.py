"""The GPU track with a launcher that is none: it prints what a script would print, and nothing is measured."""

import hashlib
import json
import sys

import pytest
import yaml
from helpers import ROOT
from rowproof.errors import ConfigError
from rowproof.speedrun.gpu import RULES, GpuTrack, load_gpu_profile
from rowproof.speedrun.gpu_runs import score_on_gpus
from rowproof.speedrun.records_config import Record
from rowproof.strict_yaml import load

CODE = "steps = 900\nfail = False\n"
SHARD = b"tokens"
# Its last argument is the script; the variables show that it was given them.
LAUNCHER = f"""#!{sys.executable}
import os, pathlib, sys
names = {{}}
exec(pathlib.Path(sys.argv[-1]).read_text(), names)
if names["fail"]:
    sys.exit("no memory")
assert sys.argv[1:-1] == ["--standalone", "--nproc_per_node=1"], sys.argv
assert pathlib.Path(os.environ["NANOGPT_TRAIN_FILES"]).is_absolute()
assert os.environ["TORCHINDUCTOR_CACHE_DIR"].startswith(os.getcwd())
steps = names["steps"]
print(f"step:{{steps}}/{{steps}} val_loss:{{3.0 if steps > 100 else 3.5:.4f}} train_time:{{100 * steps}}ms")
"""


def patch(old, new):
    return f"--- a/train_gpt_temp.py\n+++ b/train_gpt_temp.py\n@@ ... @@\n-{old}\n+{new}\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    def write(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    record = {
        **{"track": "gpu", "record_id": "gpu/mine", "record_index": 21, "title": "Mine", "code_path": "mine.py"},
        **{"code_sha256": hashlib.sha256(CODE.encode()).hexdigest(), "script_name": "train_gpt_temp.py"},
        **{"wallclock_ms": 90_000.0, "hardware_class": "h100x1", "val_loss_threshold": 3.28, "val_tokens": 10_485_760},
        "data_manifest": "data/manifest.json",
    }
    shard = {"name": "fineweb_train_000001.bin", "bytes": len(SHARD), "sha256": hashlib.sha256(SHARD).hexdigest()}
    write("config/speedrun/records/gpu/mine.yaml", yaml.safe_dump(record))
    write("config/speedrun/gpu/node.yaml", "gpu_model: h100\nshards: data\n")
    write("mine.py", CODE)
    write("data/manifest.json", json.dumps({"shards": [shard]}))
    write("data/fineweb_train_000001.bin", SHARD)
    write("bin/torchrun", LAUNCHER).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return write


def score(tmp_path, project, text, arguments=""):
    project("patches/try.diff", text)
    project("patches/try.yaml", f"track: gpu\nrecord: mine\nnproc_per_node: 1\n{arguments}")
    lines = []
    return score_on_gpus(GpuTrack(tmp_path, "node"), "try", tmp_path / "patches/try.diff", lines.append)


def test_a_row_is_self_reported_and_compared_with_the_stored_time(tmp_path, project):
    row = score(tmp_path, project, patch("steps = 900", "steps = 450"), "num_training_runs_per_attempt: 3\n")
    assert (row["trust"], row["track"], row["hardware_class"]) == ("self-reported", "gpu", "h100x1")
    assert "trust: self-reported" in row["notes"]
    assert (row["outcome"], row["val_loss_mean"], row["train_time_ms_mean"]) == ("ok", 3.0, 45_000.0)
    assert (row["wall_ratio"], row["reward"]) == (2.0, pytest.approx(1.7))
    assert [run["arm"] for run in row["runs"]] == ["patched"] * 3


def test_a_baseline_is_measured_in_turns_after_a_pair_that_warms_up(tmp_path, project):
    row = score(tmp_path, project, patch("steps = 900", "steps = 300"), "recalc_wallclock: true\nn_pairs: 3\n")
    assert (row["wall_ratio"], row["ratio_of_means"]) == (3.0, 3.0)
    assert [run["warm_up"] for run in row["runs"]] == [True] * 2 + [False] * 6
    for first in range(0, 8, 2):
        assert {run["arm"] for run in row["runs"][first : first + 2]} == {"base", "patched"}


@pytest.mark.parametrize(
    ("text", "outcome", "n_runs"),
    [
        (patch("fail = False", "fail = True"), "crashed", 1),
        (patch("steps = 900", "steps = 90"), "threshold_missed", 3),
        (patch("steps = 1", "steps = 2"), "hunk_not_found", 0),
    ],
)
def test_failures_are_outcomes_without_reward(tmp_path, project, text, outcome, n_runs):
    row = score(tmp_path, project, text, "num_training_runs_per_attempt: 3\n")
    assert (row["outcome"], row["reward"], len(row["runs"])) == (outcome, 0.0, n_runs)


def test_a_log_without_its_last_line_is_a_crash(tmp_path, project):
    project("bin/torchrun", "#!/bin/sh\necho step:1/900 train_time:10ms\n").chmod(0o755)
    assert score(tmp_path, project, patch("steps = 900", "steps = 450"))["outcome"] == "crashed"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("data/fineweb_train_000001.bin", b"tokenz", "must be 6 bytes with SHA-256"),
        ("data/fineweb_train_000001.bin", b"tok", "found another size"),
        ("data/manifest.json", b"{}", "must list shards"),
        ("mine.py", b"steps = 1\n", "must be the digest of mine.py"),
        ("config/speedrun/gpu/node.yaml", b"gpu_model: h200\nshards: data\n", "set recalc_wallclock"),
    ],
)
def test_what_is_not_as_recorded_is_refused(tmp_path, project, name, content, said):
    project(name, content)
    with pytest.raises(ConfigError, match=said):
        score(tmp_path, project, patch("steps = 900", "steps = 450"))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("data/fineweb_train_000001.bin", "fineweb_train_000001.bin: must be a staged shard"),
        ("data/manifest.json", "must be the manifest of staged shards"),
        ("mine.py", "code_path: must name a readable file"),
        ("bin/torchrun", "torchrun must be a command of this machine"),
    ],
)
def test_what_is_missing_is_named(tmp_path, project, name, said):
    (tmp_path / name).unlink()
    with pytest.raises(ConfigError, match=said):
        score(tmp_path, project, patch("steps = 900", "steps = 450"))


def test_arguments_of_the_other_track_are_refused(tmp_path, project):
    project("patches/try.yaml", "track: cpu-mini\n")
    with pytest.raises(ConfigError, match="track must be gpu for this target, found cpu-mini"):
        GpuTrack(tmp_path, "node").plan("try")


def test_the_shipped_example_is_metadata_alone():
    record, _ = load(ROOT / "config/speedrun/records/gpu/example.yaml", Record, ROOT)
    assert record.code_sha256 == "0" * 64 and not (ROOT / record.code_path).exists()
    assert load_gpu_profile(ROOT, "example") is not None
    assert RULES == ("speedrun_gpu_score",)
