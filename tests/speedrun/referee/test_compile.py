"""Compiling is allowed, happens inside the clock, and needs a compiler and room in the sandbox."""

import shutil

import pytest
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.referee.runs import train
from rowproof.speedrun.steps import with_steps


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++", path="/usr/bin:/bin") is None, reason="compiling needs g++")
def test_compiling_works_in_the_sandbox_and_counts(referee, smoke):
    source = with_steps(smoke("N6"), 2)
    run = train(referee, source, 100)
    assert run.outcome is Outcome.OK, run.detail
    assert run.cpu_s > 2 * train(referee, with_steps(smoke("R7"), 2), 100).cpu_s
