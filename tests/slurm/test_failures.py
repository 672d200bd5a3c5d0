"""What fails, is cancelled or is left alone on a cluster is told, and another start ends with the same files."""

import re

import pytest
from slurm_cluster import NAME, TARGET, job_ids, wait_for

pytestmark = [pytest.mark.slurm, pytest.mark.slow]


def test_a_failing_shard_is_tried_again_and_told(project, local):
    project.snakemake(TARGET, "--cores", "1", "--until", "specs").ok()
    in_the_way = project.product("simulate", "seed1.job.json")
    in_the_way.mkdir(parents=True)
    run = project.submit(TARGET)
    assert run.code == 1
    assert len(job_ids(run.output)) == 3, "seed0 once, seed1 twice"
    log = project.root / "logs/simulate" / NAME / in_the_way.parent.name.removeprefix("simulate-") / "seed1.log"
    assert "Is a directory" in log.read_text()
    assert run.output.count(f"log: {log.relative_to(project.root)}, {project.root}/.snakemake/slurm_logs/") == 2
    in_the_way.rmdir()
    run = project.submit(TARGET).ok()
    assert len(job_ids(run.output)) == 1
    assert project.files(NAME) == local.files(NAME)


def test_a_job_cancelled_from_outside_is_submitted_again(project, local):
    with project.submitting(TARGET) as head:
        wait_for(lambda: project.cluster.jobs("RUNNING"))
        cancelled = project.cluster.jobs("RUNNING")[0]
        project.cluster.call("scancel", cancelled)
        run = head.finish().ok()
    assert f"SLURM-job '{cancelled}' failed, SLURM status is: 'CANCELLED'" in run.output
    assert len(job_ids(run.output)) == 3
    assert project.files(NAME) == local.files(NAME)


def test_a_job_over_its_memory_limit_gets_more_at_the_second_attempt(project, local):
    run = project.submit(TARGET, "--set-resources", "simulate:mem_mb=100 * attempt**2").ok()
    submitted = job_ids(run.output)
    assert len(submitted) == 4
    for job in submitted[:2]:
        (log,) = (project.root / ".snakemake/slurm_logs").rglob(f"{job}.log")
        assert "exceeded memory limit" in log.read_text()
        assert re.search(f"SLURM-job '{job}' failed.*, {re.escape(str(log))} ", run.output, flags=re.DOTALL)
    assert project.files(NAME) == local.files(NAME)


@pytest.mark.parametrize("waits", [True, False], ids=["after its jobs", "while its jobs run"])
def test_another_start_after_the_head_was_killed(project, local, waits):
    with project.submitting(TARGET) as head:
        wait_for(lambda: len(project.cluster.jobs("RUNNING")) == 2)
        left = project.cluster.jobs("RUNNING")
        head.kill()
    if waits:
        wait_for(lambda: set(left) <= set(project.cluster.jobs("COMPLETED")))
    project.snakemake("--unlock").ok()
    run = project.submit(TARGET).ok()
    if waits:
        assert not job_ids(run.output), "what the jobs made must be taken over"
    assert project.files(NAME) == local.files(NAME)
    assert project.dry_run(TARGET).nothing
