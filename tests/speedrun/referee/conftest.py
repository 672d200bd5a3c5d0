"""A referee at the size of tests: little data, few steps, the sandbox of the machine."""

import numpy as np
import pytest
from helpers import ROOT
from rowproof.speedrun.corpus import audit_seed, stream, stream_seed
from rowproof.speedrun.referee.evaluation import WINDOW
from rowproof.speedrun.referee.ladder import read_script
from rowproof.speedrun.referee.runs import Referee
from rowproof.speedrun.referee.sandbox import Limits, Sandbox, available_mode, last_core
from rowproof.speedrun.steps import SMOKE_STEPS, with_steps

RESOURCES = ROOT / "resources/speedrun"
WINDOWS = 64


def little_audit(patched_sha256, salt):
    return stream(audit_seed(patched_sha256, salt), WINDOWS * WINDOW + 1)


@pytest.fixture(scope="session")
def sandbox():
    core = last_core()
    if available_mode("strict", core) != "strict":
        pytest.skip("this machine lets nobody make namespaces, and the tests of the strict sandbox need them")
    return Sandbox("strict", core)


@pytest.fixture(scope="session")
def referee(sandbox):
    pytest.importorskip("torch", reason="training needs the extra rowproof[training]")
    return Referee(
        sandbox=sandbox,
        train=np.array(stream(stream_seed("train"), 200_000), dtype=np.uint16),
        val=np.array(stream(stream_seed("val"), WINDOWS * WINDOW + 1), dtype=np.uint16),
        salt=b"a salt for tests",
        limits=Limits(wall_s=240.0, cpu_s=60),
        evaluation_limits=Limits(wall_s=60.0, cpu_s=60),
        audit=little_audit,
    )


@pytest.fixture(scope="session")
def smoke():
    """The script of a rung at the length of tests."""
    return lambda name: with_steps(read_script(RESOURCES, name), SMOKE_STEPS)
