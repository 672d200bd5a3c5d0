"""A job that hangs ends at its time limit."""

import os

import pytest
from slurm_cluster import NAME, TARGET, job_ids

pytestmark = [pytest.mark.slurm, pytest.mark.slow]


def test_a_job_over_its_time_limit_is_told(project, local):
    project.snakemake(TARGET, "--cores", "1", "--until", "specs").ok()
    note = project.product("specs", "specs.job.json")
    good = note.read_bytes()
    # Opening it never returns.
    note.unlink()
    os.mkfifo(note)
    # SLURM ends it within 90 s. The looks at the queue, each 10 s later than the one before, come then at 46 and 102 s.
    looks = ("--slurm-init-seconds-before-status-checks", "46")
    run = project.submit(TARGET, "--set-resources", "simulate:runtime=1", "--retries", "0", *looks)
    assert run.code == 1
    submitted = job_ids(run.output)
    assert len(submitted) == 2
    for job in submitted:
        assert f"SLURM-job '{job}' failed, SLURM status is: 'TIMEOUT'" in run.output
    note.unlink()
    note.write_bytes(good)
    project.submit(TARGET).ok()
    assert project.files(NAME) == local.files(NAME)
