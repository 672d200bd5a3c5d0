import json

import pytest
import yaml
from rowproof.errors import ConfigError
from rowproof.hashing import sha256_hex
from rowproof.speedrun.records_config import (
    Arguments,
    load_arguments,
    load_record,
    read_arguments,
)

CODE = "a = 1\n"


def write(path, data):
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    return path


# --- Records ----------------------------------------------------------------------------------------------------------


def record(**changes):
    data = {
        "track": "cpu-mini",
        "record_id": "cpu-mini/R0",
        "record_index": 0,
        "title": "Baseline",
        "code_path": "resources/train_gpt.py",
        "code_sha256": sha256_hex(CODE.encode()),
        "script_name": "train_gpt.py",
        "val_loss_threshold": 1.35,
        "data_manifest": "resources/manifest.json",
        "val_tokens": 131072,
        "prereg_sha256": "ab" * 32,
        **changes,
    }
    return {key: value for key, value in data.items() if value != "missing"}


@pytest.fixture
def project(tmp_path):
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources/train_gpt.py").write_text(CODE)
    return tmp_path


def test_a_record_and_its_script(project):
    found, code = load_record(project, write(project / "r.yaml", record()))
    assert (found.record_id, found.wallclock_ms, code) == ("cpu-mini/R0", None, CODE)


def test_a_record_of_the_gpu_track_has_a_stored_time(project):
    stored = {"track": "gpu", "record_id": "gpu/12", "wallclock_ms": 179000, "hardware_class": "8xH100"}
    found, _ = load_record(project, write(project / "r.yaml", record(**stored)))
    assert found.wallclock_ms == 179000.0


def test_a_record_may_be_written_as_json(project):
    (project / "r.json").write_text(json.dumps(record()))
    assert load_record(project, project / "r.json")[0].title == "Baseline"


@pytest.mark.parametrize(
    "change, message",
    [
        ({"track": "tpu"}, "track: Input should be 'cpu-mini' or 'gpu'"),
        ({"record_id": "gpu/R0"}, "must begin with cpu-mini/"),
        ({"record_id": "R0"}, "record_id: "),
        ({"record_index": -1}, "record_index: "),
        ({"title": ""}, "title: "),
        ({"code_path": "../train_gpt.py"}, "must be a path below the project"),
        ({"code_path": "/train_gpt.py"}, "must be a path below the project"),
        ({"code_path": "resources/no.py"}, "must name a readable file"),
        ({"code_sha256": "00" * 32}, "code_sha256: must be the digest of resources/train_gpt.py"),
        ({"code_sha256": "xyz"}, "code_sha256: "),
        ({"script_name": "a/b.py"}, "script_name: "),
        ({"script_name": "-rf.py"}, "script_name: "),
        ({"val_loss_threshold": 0}, "val_loss_threshold: "),
        ({"val_loss_threshold": "1.35"}, "val_loss_threshold: "),
        ({"val_tokens": 0}, "val_tokens: "),
        ({"val_tokens": "missing"}, "val_tokens: required key is missing"),
        ({"wallclock_ms": 5.0}, "must be given together"),
        ({"hardware_class": "x"}, "must be given together"),
        ({"track": "gpu", "record_id": "gpu/1"}, "must be given on the track gpu"),
        ({"color": "red"}, "color: unknown key"),
    ],
)
def test_a_broken_record_is_refused(project, change, message):
    with pytest.raises(ConfigError) as caught:
        load_record(project, write(project / "r.yaml", record(**change)))
    assert message in str(caught.value) and str(caught.value).startswith("r.yaml:")


@pytest.mark.parametrize("code", [b"a = 1\r\n", b"a = 1", b"a = \n", b"a = '\xff'\n", b"a = 1\0\n"])
def test_a_script_must_be_python_with_lf(project, code):
    (project / "resources/train_gpt.py").write_bytes(code)
    with pytest.raises(ConfigError, match=r"must name a .*script"):
        load_record(project, write(project / "r.yaml", record(code_sha256=sha256_hex(code))))


# --- Arguments --------------------------------------------------------------------------------------------------------


def test_defaults_of_both_tracks():
    cpu, gpu = read_arguments({}, "args"), read_arguments({"track": "gpu"}, "args")
    assert (cpu.recalc_wallclock, cpu.nproc_per_node, cpu.think_mode) == (True, 1, "strip")
    assert (gpu.recalc_wallclock, gpu.nproc_per_node, gpu.num_training_runs_per_attempt) == (False, 8, 1)
    assert (cpu.max_turns, cpu.use_think, cpu.dataset_split) == (1, True, "train")
    assert (cpu.record, cpu.fence_mode, cpu.apply_mode, cpu.on_failed_turn, cpu.score_turn) == (
        *("R0", "strip", "exact", "keep", "last"),
    )
    assert (cpu.n_seeds, cpu.n_pairs, cpu.order_seed, cpu.threads, cpu.pin_core) == (3, 5, 20240520, 1, "auto")
    assert (cpu.mem_limit_mb, cpu.scratch_mb, cpu.sandbox, cpu.nondeterminism, cpu.publish_salt) == (
        *(3000, 64, "strict", "flag", True),
    )
    assert cpu.system_prompt is cpu.run_timeout_s is cpu.cpu_limit_s is cpu.checkpoint_limit_mb is None


@pytest.mark.parametrize("value", [True, "true", "True", "TRUE", "yes", "1", 1])
def test_forms_of_true(value):
    assert read_arguments({"track": "gpu", "recalc_wallclock": value}, "args").recalc_wallclock is True


@pytest.mark.parametrize("value", [False, "false", "False", "FALSE", "no", "0", 0])
def test_forms_of_false(value):
    assert read_arguments({"track": "gpu", "recalc_wallclock": value}, "args").recalc_wallclock is False


@pytest.mark.parametrize("value", ["", "maybe", "on", 2, 1.0, [], {}, " true"])
def test_other_forms_of_a_boolean_are_refused(value):
    with pytest.raises(ConfigError, match=r"recalc_wallclock: .*must be true or false, 1 or 0, yes or no"):
        read_arguments({"track": "gpu", "recalc_wallclock": value}, "args")


def test_the_number_of_runs_sets_pairs_and_seeds():
    few, many = (read_arguments({"num_training_runs_per_attempt": n}, "args") for n in (2, 7))
    assert (few.n_pairs, few.n_seeds) == (2, 3)
    assert (many.n_pairs, many.n_seeds) == (7, 7)


def test_without_use_think_nothing_is_removed():
    assert read_arguments({"use_think": "false"}, "args").think_mode == "off"
    assert read_arguments({"use_think": False, "think_mode": "off"}, "args").think_mode == "off"
    assert read_arguments({"think_mode": "require"}, "args").think_mode == "require"


@pytest.mark.parametrize(
    "data, message",
    [
        ({"recalc_wallclock": "false"}, "recalc_wallclock must be true on the track cpu-mini"),
        ({"nproc_per_node": 8}, "nproc_per_node must be 1 on the track cpu-mini"),
        ({"threads": 2}, "threads must be 1 on the track cpu-mini"),
        ({"track": "gpu", "nproc_per_node": 3}, "nproc_per_node must be 1, 2, 4 or 8"),
        ({"use_think": False, "think_mode": "strip"}, "think_mode must be off"),
        ({"max_turns": 0}, "max_turns"),
        ({"max_turns": "1"}, "max_turns"),
        ({"n_pairs": 0}, "n_pairs"),
        ({"n_pairs": 5.0}, "n_pairs"),
        ({"order_seed": -1}, "order_seed"),
        ({"pin_core": "any"}, "pin_core"),
        ({"pin_core": True}, "pin_core"),
        ({"sandbox": "none"}, "sandbox"),
        ({"apply_mode": "git"}, "apply_mode"),
        ({"score_turn": "first"}, "score_turn"),
        ({"num_training_runs_per_attempt": 0}, "num_training_runs_per_attempt"),
        ({"colour": 1}, "colour: unknown argument"),
        ([], "(arguments)"),
    ],
)
def test_broken_arguments_are_refused(data, message):
    with pytest.raises(ConfigError) as caught:
        read_arguments(data, "args")
    assert message in str(caught.value) and str(caught.value).startswith("args: ")


def test_arguments_from_a_file(tmp_path):
    found = load_arguments(tmp_path, write(tmp_path / "a.yaml", {"max_turns": 4, "pin_core": 1}))
    assert (found.max_turns, found.pin_core, found.recalc_wallclock) == (4, 1, True)
    with pytest.raises(ConfigError, match=r"a.yaml:1: max_turn: unknown key"):
        load_arguments(tmp_path, write(tmp_path / "a.yaml", {"max_turn": 4}))


def test_every_argument_is_explained():
    for name in Arguments.model_fields:
        assert f"    {name}: " in Arguments.__doc__, name
