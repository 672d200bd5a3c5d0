"""Launch plans of the GPU track."""

import pytest
from rowproof.errors import ConfigError
from rowproof.speedrun.gpu import (
    RULES,
    GpuProfile,
    describe_plan,
    gpu_rules,
    hardware_class,
    load_gpu_profile,
    plan_launch,
)
from rowproof.speedrun.records_config import Record, read_arguments

RECORD = Record(
    track="gpu",
    record_id="gpu/record-21",
    record_index=21,
    title="Record 21",
    code_path="resources/train_gpt.py",
    code_sha256="0" * 64,
    script_name="train_gpt_temp.py",
    wallclock_ms=180_000.0,
    val_loss_threshold=3.28,
    data_manifest="work/fineweb/manifest.json",
    val_tokens=10_485_760,
    hardware_class="h100x8",
)
PROFILE = GpuProfile(gpu_model="h100", shards="work/fineweb", slurm_gpu_model="h100")


def plan(record=RECORD, profile=PROFILE, **arguments):
    return plan_launch(record, read_arguments({"track": "gpu", **arguments}, "arguments"), profile)


@pytest.mark.parametrize("nproc", [1, 2, 4, 8])
def test_a_dry_run_prints_the_exact_launch_command(nproc):
    text = describe_plan(plan(nproc_per_node=nproc, recalc_wallclock=True))
    assert text.splitlines()[-1] == f"torchrun --standalone --nproc_per_node={nproc} train_gpt_temp.py"
    assert text.startswith("# Not run: no figure here was measured.\n")
    assert "# trust: self-reported\n" in text


def test_a_dry_run_prints_an_environment_that_a_shell_understands():
    text = describe_plan(plan())
    assert "export NANOGPT_TRAIN_FILES='work/fineweb/fineweb_train_*.bin'\n" in text
    assert 'export TORCHINDUCTOR_CACHE_DIR="$scratch"/inductor\n' in text
    assert "export NANOGPT_VAL_TOKENS=10485760\n" in text


@pytest.mark.parametrize("nproc", [0, 3, 16])
def test_other_counts_of_gpus_are_refused(nproc):
    with pytest.raises(ConfigError, match="nproc_per_node"):
        plan(nproc_per_node=nproc)


def test_runs_by_default_are_as_published():
    assert plan().runs == ("patched",)
    assert plan(num_training_runs_per_attempt=3).runs == ("patched",) * 3


def test_a_baseline_that_is_measured_again_runs_in_pairs_after_a_warm_up():
    runs = plan(recalc_wallclock="true", n_pairs=2).runs
    assert runs == ("warm-up", "warm-up", "base", "patched", "base", "patched")


def test_resources_are_those_of_one_exclusive_node():
    resources = plan().resources
    assert resources == {
        "timing": 1,
        "nodes": 1,
        "gpu": 8,
        "tasks_per_gpu": 0,
        "cpus_per_gpu": 12,
        "mem_mb": 120_000,
        # 1 run of 3 minutes, half as much again, and the compiler.
        "runtime": 5 + 20,
        "slurm_extra": "--exclusive --no-requeue",
        "gpu_model": "h100",
    }


def test_fewer_gpus_get_more_time():
    resources = plan(nproc_per_node=1, recalc_wallclock=True, n_pairs=1).resources
    assert resources["runtime"] == 4 * 36 + 20
    assert (resources["mem_mb"], resources["gpu"]) == (15_000, 1)


def test_the_name_of_the_model_is_left_out_off_a_cluster():
    assert "gpu_model" not in plan(profile=GpuProfile(gpu_model="h100", shards="work/fineweb")).resources


@pytest.mark.parametrize(
    ("model", "nproc", "found"),
    [("h100", 8, "h100x8"), ("h200", 8, "h200x8"), ("h100", 2, "other"), ("h200", 4, "other"), ("other", 8, "other")],
)
def test_hardware_classes(model, nproc, found):
    assert hardware_class(model, nproc) == found


@pytest.mark.parametrize("profile", [GpuProfile(gpu_model=model, shards="s") for model in ("h200", "other")])
def test_a_stored_time_of_another_class_is_refused(profile):
    with pytest.raises(ConfigError, match="hardware class of this machine, found h100x8"):
        plan(profile=profile)
    assert plan(profile=profile, recalc_wallclock=True).hardware_class in ("h200x8", "other")


def test_stored_times_of_other_machines_are_not_alike():
    other = RECORD.model_copy(update={"hardware_class": "other"})
    with pytest.raises(ConfigError, match="set recalc_wallclock"):
        plan(other, GpuProfile(gpu_model="other", shards="s"))


def test_an_old_record_on_one_gpu_is_noted():
    old = RECORD.model_copy(update={"record_index": 3})
    assert "records before 20 take hours on one GPU" in plan(old, nproc_per_node=1, recalc_wallclock=True).notes
    assert plan(nproc_per_node=1, recalc_wallclock=True).notes == ("trust: self-reported",)


def test_a_record_of_the_cpu_track_is_refused():
    with pytest.raises(ConfigError, match="needs the track gpu"):
        plan(RECORD.model_copy(update={"track": "cpu-mini"}))


def test_without_a_profile_there_are_no_rules(tmp_path):
    assert load_gpu_profile(tmp_path, None) is None
    assert gpu_rules(None) == ()
    assert gpu_rules(PROFILE) == RULES


def test_a_profile_is_read_from_its_file(tmp_path):
    path = tmp_path / "config/speedrun/gpu/node.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("gpu_model: h200\nshards: work/fineweb\n")
    assert load_gpu_profile(tmp_path, "node") == GpuProfile(gpu_model="h200", shards="work/fineweb")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("../node", "", "plain name"),
        ("node", None, "must be a readable file"),
        ("node", "gpu_model: v100\nshards: s\n", "gpu_model"),
        ("node", "gpu_model: h100\nshards: /data\n", "shards"),
        ("node", "gpu_model: h100\nshards: s\nspeed: 9\n", "speed"),
    ],
)
def test_a_bad_profile_is_refused(tmp_path, name, content, said):
    path = tmp_path / "config/speedrun/gpu/node.yaml"
    path.parent.mkdir(parents=True)
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=said):
        load_gpu_profile(tmp_path, name)
