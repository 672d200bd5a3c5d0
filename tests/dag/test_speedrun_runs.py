"""Attempts of the speedrun family as a graph: what is planned, alone on the machine, and with GPUs or without."""

import pytest
import yaml
from helpers import ROOT

pytestmark = pytest.mark.slow

TARGET, GPU_TARGET = "output/speedrun/try/row.json", "output/speedrun-gpu/try/row.json"
GPU_ARGUMENTS = "track: gpu\nrecord: example\nnproc_per_node: {}\nrecalc_wallclock: true\n"


@pytest.fixture
def project(unbuilt):
    folder = unbuilt.root / "patches"
    folder.mkdir()
    (folder / "try.diff").write_bytes((unbuilt.root / "resources/speedrun/patches/R1.diff").read_bytes())
    return unbuilt


def test_an_attempt_takes_the_whole_machine(project):
    run = project.snakemake("-n", "--cores", "2", TARGET).ok()
    assert "rule speedrun_score:" in run.output
    assert "threads: 2" in run.output and "timing=1" in run.output


def test_arguments_beside_the_patch_are_an_input(project):
    (project.root / "patches/try.yaml").write_text("n_pairs: 1\n")
    assert "patches/try.yaml" in project.snakemake("-n", "--cores", "2", TARGET).ok().output


@pytest.mark.parametrize("profile", ["default", "slurm"])
def test_there_is_one_unit_of_timing_in_every_profile(profile):
    document = yaml.safe_load((ROOT / "profiles" / profile / "config.yaml").read_text())
    assert document["resources"] == ["timing=1"]


def test_jobs_that_measure_have_a_node_to_themselves_on_a_cluster():
    document = yaml.safe_load((ROOT / "profiles/slurm/config.yaml").read_text())
    for rule in ("speedrun_score", "time_runs"):
        assert "--exclusive" in document["set-resources"][rule]["slurm_extra"]


def test_an_attempt_that_failed_is_not_made_again_by_itself(project):
    """Snakemake reads the limits of the profile and keeps the rule's own retries."""
    (project.root / "patches/try.diff").write_bytes(b"\xff\xfe")
    run = project.snakemake("--cores", "2", "--retries", "3", TARGET)
    assert run.code != 0 and run.output.count("Error in rule speedrun_score:") == 1
    assert "Provided resources: timing=" in run.output
    assert "must be a patch in UTF-8" in run.output
    assert not (project.root / TARGET).exists()


def test_without_a_gpu_profile_there_is_no_gpu_rule(project):
    (project.root / "patches/try.yaml").write_text(GPU_ARGUMENTS.format(1))
    listed = project.snakemake("--list-rules").ok().output.split()
    assert "speedrun_score" in listed and not any("gpu" in name for name in listed)
    run = project.snakemake("-n", "--cores", "2", GPU_TARGET)
    assert run.code != 0 and "No rule to produce" in run.output


@pytest.mark.parametrize("nproc", [1, 8])
def test_with_a_gpu_profile_a_dry_run_prints_the_exact_launch(project, nproc):
    (project.root / "patches/try.yaml").write_text(GPU_ARGUMENTS.format(nproc))
    run = project.snakemake("-n", "-p", "--profile", "gpu", GPU_TARGET).ok()
    lines = run.output.splitlines()
    assert f"torchrun --standalone --nproc_per_node={nproc} train_gpt_temp.py" in lines
    assert any("trust: self-reported" in line for line in lines)
    assert f"# resource gpu: {nproc}" in lines
    assert "# resource slurm_extra: --exclusive --no-requeue" in lines


def test_bad_arguments_of_a_gpu_attempt_are_told(project):
    (project.root / "patches/try.yaml").write_text(GPU_ARGUMENTS.format(3))
    run = project.snakemake("-n", "--profile", "gpu", GPU_TARGET)
    assert run.code != 0 and "nproc_per_node must be 1, 2, 4 or 8" in run.output
