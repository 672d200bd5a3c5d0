"""A committed bundle is replaced whole or stays as it is, whatever ends the publication and whatever clocks say."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from checkouts import Checkout, clone, copy_working_tree, shrink
from faults.conftest import ROW, small_disk
from faults.test_snakemake import INJECTION, KILL, PLAN, TARGET
from rowproof.recipes import all_statuses, prepare

pytestmark = pytest.mark.slow

DAY_S = 86400
KILL_SNAKEMAKE = "kill -KILL $(ps -o ppid= -p $PPID)"
# Makes the clock of every Python process wrong by a fixed time; the file system keeps its own.
CLOCK = """
import os, time
shift_s = int(os.environ["CLOCK_SHIFT_S"])
seconds, nanoseconds = time.time, time.time_ns
time.time = lambda: seconds() + shift_s
time.time_ns = lambda: nanoseconds() + shift_s * 10**9
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Checkout:
    """A project of one row, built, committed, and then with another plan: its bundle is whole and stale. Copy it."""
    folder = tmp_path_factory.mktemp("built")
    checkout = clone(copy_working_tree(folder / "source", folder / "home"), folder / "project", folder / "home")
    shrink(checkout, {"push-v1": ("ref-script",)}, seeds=[0, 1], episodes=2)
    with (checkout.root / "workflow/rowproof/files.py").open("a") as stream:
        stream.write(INJECTION)
    checkout.commit()
    checkout.build(TARGET, cores=2).ok()
    checkout.commit()
    checkout.edit(PLAN, "n_resamples: 100", "n_resamples: 101")
    checkout.commit()
    return checkout


@pytest.fixture(scope="module")
def renewed(built, tmp_path_factory) -> dict[str, str]:
    """The files of the bundle that takes its place."""
    root = tmp_path_factory.mktemp("renewed") / "project"
    shutil.copytree(built.root, root, symlinks=True)
    checkout = Checkout(root, built.home)
    checkout.build(TARGET).ok()
    assert checkout.files(ROW) != built.files(ROW)
    return checkout.files(ROW)


@pytest.fixture
def checkout(built, tmp_path) -> Checkout:
    shutil.copytree(built.root, tmp_path / "project", symlinks=True)
    return Checkout(tmp_path / "project", built.home)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def shifted(tmp_path: Path, shift_s: int) -> dict[str, str]:
    """Environment of processes whose clock is ahead by ``shift_s``."""
    folder = tmp_path / "clock"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(CLOCK)
    return {"PYTHONPATH": str(folder), "CLOCK_SHIFT_S": str(shift_s)}


def check_renewed(checkout: Checkout, renewed: dict[str, str]) -> None:
    """Another start, with right clocks, ends with the new bundle and finds nothing more to do."""
    checkout.build(TARGET).ok()
    assert checkout.files(ROW) == renewed
    assert checkout.dry_run(TARGET).nothing
    assert {status.state for status in all_statuses(checkout.root, checkout.root)} == {"current"}


@pytest.mark.parametrize("shift_s", [30, -30, DAY_S, -DAY_S])
def test_a_clock_that_is_wrong(checkout, renewed, tmp_path, shift_s):
    environment = shifted(tmp_path, shift_s)
    checkout.build(TARGET, env=environment).ok()
    assert checkout.files(ROW) == renewed
    assert checkout.snakemake(TARGET, "--dry-run", env=environment).nothing
    check_renewed(checkout, renewed)


@pytest.mark.parametrize("shift_s", [0, 30, -DAY_S])
@pytest.mark.parametrize("command", ["false", KILL], ids=["error", "killed"])
def test_a_publication_that_fails_leaves_the_bundle_as_it_is(checkout, renewed, tmp_path, command, shift_s):
    before = content(checkout.root / TARGET)
    checkout.snakemake(TARGET, "--cores", "1", "--until", "assemble_push_v1__ref_script").ok()
    environment = {**shifted(tmp_path, shift_s), "FAULT": f"plan.yaml:{command}"}
    # Files are written in the order of their names: most of the new bundle is in place by then.
    run = checkout.build(TARGET, env=environment)
    assert run.code != 0
    assert f"Error in rule {TARGET}" in run.output
    assert content(checkout.root / TARGET) == before
    assert checkout.changed() == set()
    check_renewed(checkout, renewed)


def test_a_publication_that_is_killed_with_snakemake_loses_no_file(checkout, renewed):
    before = content(checkout.root / TARGET)
    checkout.snakemake(TARGET, "--cores", "1", "--until", "assemble_push_v1__ref_script").ok()
    after = content((checkout.root / prepare(checkout.root, checkout.root, touch=False).row(ROW).staged).parent)
    run = checkout.build(TARGET, env={"FAULT": f"plan.yaml:{KILL_SNAKEMAKE}"})
    assert run.code != 0
    found = content(checkout.root / TARGET)
    assert set(found) == set(before)
    assert all(data in (before[name], after[name]) for name, data in found.items())
    checkout.snakemake("--unlock").ok()
    check_renewed(checkout, renewed)


def test_a_stamp_of_the_future_loses_nothing(checkout, renewed):
    """What a clock that is set back while the job runs looks like."""
    state = f"work/recipes/{ROW}/state.json"
    run = checkout.build(TARGET, env={"FAULT": f"plan.yaml:touch -d 'next year' {state}"})
    assert run.code == 0, run.output[-3000:]
    assert checkout.files(ROW) == renewed
    check_renewed(checkout, renewed)


def test_full_results_leave_the_bundle_as_it_is(checkout, renewed, tmp_path):
    results = checkout.root / "results"
    kept = shutil.copytree(results, tmp_path / "kept")
    before = content(checkout.root / TARGET)
    checkout.snakemake(TARGET, "--cores", "1", "--until", "assemble_push_v1__ref_script").ok()
    shutil.rmtree(results)
    with small_disk(results):
        shutil.copytree(kept, results, dirs_exist_ok=True)
        used = sum(path.stat().st_blocks * 512 for path in results.rglob("*") if path.is_file())
        subprocess.run(["mount", "-o", f"remount,size={used}", str(results)], check=True)
        run = checkout.build(TARGET)
        assert run.code == 1
        assert f"error: No space left on device: {TARGET}/" in run.output
        assert content(checkout.root / TARGET) == before
        subprocess.run(["mount", "-o", "remount,size=4m", str(results)], check=True)
        check_renewed(checkout, renewed)


def test_a_full_disk_of_snakemake_leaves_the_bundle_as_it_is(checkout, renewed):
    before = content(checkout.root / TARGET)
    checkout.snakemake(TARGET, "--cores", "1", "--until", "assemble_push_v1__ref_script").ok()
    with small_disk(checkout.root / ".snakemake/backups", "4k"):
        run = checkout.build(TARGET)
        assert run.code != 0
        assert "No space left on device" in run.output
        assert content(checkout.root / TARGET) == before
    check_renewed(checkout, renewed)


def test_the_trap_is_still_there(tmp_path):
    """Without the mark snakemake removes what a job makes before it runs; once this fails, the mark may go."""
    (tmp_path / "state").touch()
    (tmp_path / "kept").write_text("before")
    os.utime(tmp_path / "kept", (1, 1))
    (tmp_path / "Snakefile").write_text(
        'rule r:\n    input: "state"\n    output: "kept"\n    shell: "test -e {output}"\n'
    )
    run = Checkout(tmp_path, tmp_path / "home").snakemake("--cores", "1", "--rerun-triggers", "mtime")
    assert run.code != 0
    assert not (tmp_path / "kept").exists()
