"""A damaged file of a bundle is noticed, its row alone is planned, and a run restores the committed bytes."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from checkouts import SMALL_ROWS, Checkout
from rowproof.layout import bundle_files
from rowproof.recipes import all_statuses

ROW = "push-v1/ref-script"
FILES = tuple(bundle_files([0, 1]))


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def delete(path: Path) -> None:
    path.unlink()


def symlink(path: Path) -> None:
    twin = path.parents[3] / "work" / path.name
    twin.parent.mkdir(exist_ok=True)
    path.rename(twin)
    path.symlink_to(twin)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES = (flip, append, truncate, empty, delete, symlink)


def bundle(checkout: Checkout) -> Path:
    return checkout.root / "results" / ROW


def states(checkout: Checkout) -> dict[str, str]:
    return {status.name: status.state for status in all_statuses(checkout.root, checkout.root)}


EXPECTED = {name: "damaged" if name == ROW else "current" for name in SMALL_ROWS}


EVERY_FILE = [
    pytest.param(damage, id=damage.__name__, marks=() if damage is flip else pytest.mark.slow)
    for damage in (*DAMAGES, folder)
]


@pytest.mark.parametrize("damage", EVERY_FILE)
def test_every_file_counts(fresh_small, tmp_path, damage):
    intact = tmp_path / "intact"
    shutil.copytree(bundle(fresh_small), intact)
    for name in FILES:
        damage(bundle(fresh_small) / name)
        assert states(fresh_small) == EXPECTED, name
        shutil.rmtree(bundle(fresh_small))
        shutil.copytree(intact, bundle(fresh_small))
        assert set(states(fresh_small).values()) == {"current"}, name


# What must run again besides the row rule follows from what still vouches for the rest.
FAST = [
    (flip, "episodes_seed1.jsonl", {"specs": 0, "simulate": 1}),
]
SLOW = [
    (append, "bundle.json", {"specs": 0, "simulate": 0}),
    (delete, "provenance.json", {"specs": 1, "simulate": 2}),
]
TOLD = [row[:2] for row in (*FAST, *SLOW)]
SLOW += [(damage, name, None) for damage in DAMAGES for name in FILES if (damage, name) not in TOLD]


def cases(table: list, *marks) -> list:
    return [pytest.param(*case, id=f"{case[0].__name__}-{case[1]}", marks=marks) for case in table]


@pytest.mark.parametrize(("damage", "name", "jobs"), [*cases(FAST), *cases(SLOW, pytest.mark.slow)])
def test_a_run_restores_the_bytes(fresh_small, damage: Callable[[Path], None], name, jobs):
    damage(bundle(fresh_small) / name)
    rows = [f"results/{row}" for row in SMALL_ROWS]
    run = fresh_small.build(*rows).ok()
    planned = run.jobs()
    assert set(planned) == {ROW}
    if jobs is not None:
        assert {rule: planned[ROW][rule] for rule in jobs} == jobs
    # A provenance that is lost cannot come back: it tells of another run now.
    allowed = {f"results/{ROW}/provenance.json"} if name == "provenance.json" else set()
    assert fresh_small.changed() <= allowed
    assert fresh_small.dry_run(*rows).nothing


@pytest.mark.slow
def test_a_damaged_staged_bundle_is_assembled_anew(worked):
    (staged,) = (worked.root / "work/rows" / ROW).glob("bundle-*/staged")
    append(staged / "bundle.json")
    shutil.rmtree(bundle(worked))
    run = worked.build(f"results/{ROW}").ok()
    assert run.jobs() == {ROW: {"assemble": 1, "row": 1}}
    # Another assembly is told of in the provenance; the evidence is the same.
    assert worked.changed() <= {f"results/{ROW}/provenance.json"}


@pytest.mark.slow
def test_a_stray_file_is_named_and_never_deleted(fresh_small):
    stray = bundle(fresh_small) / "notes.txt"
    stray.write_text("mine\n")
    message = "notes.txt does not belong to the bundle: move it away"
    run = fresh_small.build(f"results/{ROW}").ok()
    assert message in run.output
    assert set(run.jobs()) == {ROW}
    assert stray.read_text() == "mine\n"
    assert message in fresh_small.dry_run(f"results/{ROW}").output
    stray.unlink()
    assert fresh_small.dry_run(f"results/{ROW}").nothing
    assert fresh_small.changed() == set()
