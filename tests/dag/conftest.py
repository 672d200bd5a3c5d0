"""Built projects that all tests of the graph start from: made once per session, then cloned."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from checkouts import SMALL, Checkout, clone, copy_working_tree, locked, shrink


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory) -> Path:
    """A temporary folder that all processes of this test session see."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def once(shared_folder: Path, name: str, make: Callable[[Path, Path], Checkout]) -> Checkout:
    root, home, done = shared_folder / name, shared_folder / f"{name}-home", shared_folder / f"{name}.done"
    with locked(shared_folder / f"{name}.lock"):
        if not done.exists():
            assert not root.exists(), f"{name} failed to build in another test process"
            start_s = time.monotonic()
            make(root, home)
            done.write_text(f"{time.monotonic() - start_s}")
    return Checkout(root, home)


@pytest.fixture(scope="session")
def source(shared_folder) -> Checkout:
    """This repository as it is in the working tree, with the boards that build in seconds, committed. Clone it."""
    return once(shared_folder, "source", copy_working_tree)


@pytest.fixture(scope="session")
def built(source, shared_folder) -> Checkout:
    """The same with every row and board built and committed. Clone it."""

    def make(root: Path, home: Path) -> None:
        checkout = clone(source, root, home)
        # The committed results serve as they are, unless the code or configuration has moved on since.
        if not checkout.dry_run().nothing:
            checkout.build(cores=2).ok()
            checkout.commit()

    return once(shared_folder, "built", make)


@pytest.fixture(scope="session")
def small(source, shared_folder) -> Checkout:
    """A project of one row per board, two seeds and few episodes, built from nothing and committed. Clone it."""

    def make(root: Path, home: Path) -> None:
        checkout = clone(source, root, home)
        shrink(checkout, SMALL, seeds=[0, 1], episodes=4)
        checkout.build(cores=2).ok()
        checkout.commit()

    return once(shared_folder, "small", make)


@pytest.fixture(scope="session")
def small_build_s(small, shared_folder) -> float:
    """About the seconds that building the small project from nothing takes here."""
    return float((shared_folder / "small.done").read_text())


@pytest.fixture
def unbuilt(source, tmp_path) -> Checkout:
    """A fresh clone of the repository as it is."""
    return clone(source, tmp_path / "unbuilt")


@pytest.fixture
def fresh(built, tmp_path) -> Checkout:
    """A fresh clone of the built repository."""
    return clone(built, tmp_path / "fresh")


@pytest.fixture
def worked(small, tmp_path) -> Checkout:
    """A copy of the small built project with its intermediate files and snakemake's memory."""
    shutil.copytree(small.root, tmp_path / "worked", symlinks=True)
    return Checkout(tmp_path / "worked", small.home)


@pytest.fixture
def fresh_small(small, tmp_path) -> Checkout:
    """A fresh clone of the small built project."""
    return clone(small, tmp_path / "fresh")


@pytest.fixture
def empty_small(fresh_small) -> Checkout:
    """The small project without any result, committed."""
    shutil.rmtree(fresh_small.root / "results")
    fresh_small.commit()
    return fresh_small
