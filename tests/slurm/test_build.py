"""A build on a cluster makes the same files as one machine, and each shard tells which job made it."""

import json
from pathlib import Path

import pytest
from slurm_cluster import BOARD, LEARNED_ROW, NAME, ROW, TARGET, ClusterCheckout, job_ids

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

LATE = Path(__file__).parent / "late"


def recorded_jobs(project: ClusterCheckout, row: str) -> dict[tuple[str, str], str]:
    """Stage and shard of each job that ran on the cluster -> its id there, by the row's provenance."""
    jobs = json.loads((project.root / "results" / BOARD / row / "provenance.json").read_bytes())["jobs"]
    return {(job["stage"], job["shard"]): job["slurm_job_id"] for job in jobs if job["slurm_job_id"] is not None}


def test_a_board_comes_out_as_on_one_machine(project, local):
    run = project.submit().ok()
    assert project.files() == local.files()
    assert project.dry_run().nothing
    scripted, learned = recorded_jobs(project, ROW), recorded_jobs(project, LEARNED_ROW)
    seeds = ("seed0", "seed1")
    assert scripted.keys() == {("simulate", seed) for seed in seeds}
    assert learned.keys() == {(stage, seed) for stage in ("train", "select", "simulate") for seed in seeds}
    recorded = [*scripted.values(), *learned.values()]
    assert sorted(recorded) == sorted(job_ids(run.output)), run.output
    assert set(recorded) <= set(project.cluster.jobs("COMPLETED"))


def test_files_that_are_seen_late(project, local, tmp_path):
    """Outside of jobs no product and no note beside one is there until some time after the first look at it."""
    late = {"PYTHONPATH": str(LATE), "LATE_FOLDER": str(tmp_path / "late")}
    run = project.submit(TARGET, env=late).ok()
    assert "Waiting at most 60 seconds for missing files" in run.output
    assert "waiting for work/rows" in project.log("summarise")
    assert project.files(NAME) == local.files(NAME)
