"""A cluster, a small project that is built on it, and the ids of its jobs at the end of the output of pytest."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from bundles import lock
from checkouts import Checkout, clone, copy_working_tree, shrink
from slurm_cluster import (
    BOARD,
    LEARNED_ROW,
    PACKAGES,
    ROW,
    Cluster,
    ClusterCheckout,
    missing_programs,
    running_cluster,
    wait_for,
)


@pytest.fixture(scope="session")
def session_cluster() -> Iterator[Cluster]:
    missing = missing_programs()
    if missing:
        pytest.skip(f"SLURM is not here ({', '.join(missing)}): apt-get install {' '.join(PACKAGES)}")
    # Paths of sockets must be short.
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder, running_cluster(Path(folder)) as cluster:
        yield cluster


@pytest.fixture
def cluster(session_cluster, request) -> Iterator[Cluster]:
    """The cluster without a job; what ran on it during the test is kept for the summary."""
    before = set(session_cluster.call("squeue", "--noheader", "--states=all", "--format=%i").split())
    yield session_cluster
    left = session_cluster.jobs("PENDING", "RUNNING")
    if left:
        session_cluster.call("scancel", *left)
        wait_for(lambda: not session_cluster.jobs("PENDING", "RUNNING", "COMPLETING"))
    for line in session_cluster.call(
        "squeue", "--noheader", "--states=all", "--sort=i", "--format=%i %T %M %k"
    ).splitlines():
        if line.split()[0] not in before:
            request.node.user_properties.append(("slurm_job", line))


def pytest_terminal_summary(terminalreporter):
    """Show every job that SLURM ran, also when the tests ran in several processes."""
    lines = [
        f"{report.nodeid.rpartition('::')[2]}: job {line}"
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "teardown"
        for name, line in report.user_properties
        if name == "slurm_job"
    ]
    if lines:
        terminalreporter.section("SLURM jobs: id, state, run time, rule and wildcards")
        terminalreporter.write_line("\n".join(lines))


@pytest.fixture(scope="session")
def unbuilt(tmp_path_factory) -> Checkout:
    """A project of one board: a scripted and a learned row, two seeds, few episodes, short trainings. Clone it."""
    folder = tmp_path_factory.mktemp("slurm")
    small = copy_working_tree(folder / "small", folder / "home")
    # With its learned rows.
    small.git("checkout", "-q", "HEAD~1", "--", f"config/boards/{BOARD}.yaml")
    shrink(small, {BOARD: [ROW, LEARNED_ROW]}, seeds=[0, 1], episodes=4)
    training = "config/training/handover-aht.yaml"
    small.edit(training, "frames: 96000", "frames: 640")
    small.edit(training, "checkpoint_frames: 16000", "checkpoint_frames: 320")
    lock(small.root, [BOARD])
    small.commit()
    return small


@pytest.fixture(scope="session")
def local(unbuilt) -> Checkout:
    """The same, built on this machine alone."""
    checkout = clone(unbuilt, unbuilt.root.parent / "local")
    checkout.build(cores=2).ok()
    return checkout


@pytest.fixture
def project(unbuilt, cluster, tmp_path) -> ClusterCheckout:
    """A clone without results."""
    return ClusterCheckout(clone(unbuilt, tmp_path / "project").root, unbuilt.home, cluster)
