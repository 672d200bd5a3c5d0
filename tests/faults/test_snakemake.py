"""The same kinds of faults under the real snakemake: processes killed, two at once, a checkout that moves on."""

import base64
import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkouts import Checkout, clone, copy_working_tree, environment, shrink
from faults.conftest import ROW, small_disk
from rowproof.layout import PROVENANCE, bundle_files
from rowproof.provenance import read_provenance
from rowproof.recipes import all_statuses

pytestmark = pytest.mark.slow

TARGET, PLAN = f"results/{ROW}", "config/plans/push-v1.yaml"
DEADLINE_S = 600

# Stands in the tested project only. FAULT=<file>:<command> runs a command after a file of that name was written.
INJECTION = """

_plain = atomic_path


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    with _plain(path) as temporary:
        yield temporary
    name, _, command = os.environ.get("FAULT", "").partition(":")
    if name == path.name:
        import subprocess

        subprocess.run(command, shell=True, check=True)
"""
KILL = "kill -KILL $PPID"
HOLD = "touch work/reached; until [ -e work/go ]; do sleep 0.05; done"


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Checkout:
    """A project of one row, built without a fault; copy it."""
    folder = tmp_path_factory.mktemp("built")
    source = copy_working_tree(folder / "source", folder / "home")
    checkout = clone(source, folder / "project", folder / "home")
    shrink(checkout, {"push-v1": ("ref-script",)}, seeds=[0, 1], episodes=2)
    # This module is part of no key, so the row stays what it is.
    with (checkout.root / "workflow/rowproof/files.py").open("a") as stream:
        stream.write(INJECTION)
    checkout.commit()
    checkout.build(TARGET, cores=2).ok()
    checkout.commit()
    return checkout


@pytest.fixture
def checkout(built, tmp_path) -> Checkout:
    """A copy in which the specs and the records of one seed are there, and nothing else of the row."""
    shutil.copytree(built.root, tmp_path / "project", symlinks=True)
    copy = Checkout(tmp_path / "project", built.home)
    products = copy.root / "work/rows" / ROW
    for path in [*products.glob("summary-*"), *products.glob("bundle-*"), copy.root / TARGET]:
        shutil.rmtree(path)
    product(copy, "seed1.jsonl").unlink()
    return copy


def product(checkout: Checkout, name: str) -> Path:
    """The product of that name."""
    (found,) = (checkout.root / "work/rows" / ROW).rglob(name)
    return found


def check_mended(checkout: Checkout, built: Checkout) -> None:
    """Another start ends with the bytes of the undisturbed build and finds nothing more to do."""
    checkout.build(TARGET).ok()
    assert checkout.files(ROW) == built.files(ROW)
    assert {status.state for status in all_statuses(checkout.root, checkout.root)} == {"current"}
    assert sorted(path.name for path in (checkout.root / TARGET).iterdir()) == bundle_files([0, 1])


def wait_for(path: Path, process: subprocess.Popen) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while not path.exists():
        assert process.poll() is None, "the build ended before it should have been held"
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


@contextlib.contextmanager
def held(checkout: Checkout, name: str) -> Iterator[subprocess.Popen]:
    """A build that waits after it wrote the file ``name``."""
    process = subprocess.Popen(
        checkout.command(TARGET, "--cores", "1", "--nocolor"),
        cwd=checkout.root,
        env=environment(checkout.home, {"FAULT": f"{name}:{HOLD}"}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_for(checkout.root / "work/reached", process)
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_a_killed_script_is_told_and_run_again(checkout, built):
    run = checkout.build(TARGET, env={"FAULT": f"seed1.job.json:{KILL}"})
    assert run.code == 1
    assert "SIGKILL" in run.output and "seed1.jsonl" in run.output
    assert not (checkout.root / TARGET / "bundle.json").exists()
    check_mended(checkout, built)


def test_a_second_snakemake_is_refused_and_harms_nothing(checkout, built):
    with held(checkout, "summary.json") as first:
        second = checkout.build(TARGET)
        assert second.code == 1
        assert "LockException" in second.output and "cannot be locked" in second.output
        (checkout.root / "work/go").touch()
        assert first.wait(DEADLINE_S) == 0
    assert checkout.files(ROW) == built.files(ROW)
    assert {status.state for status in all_statuses(checkout.root, checkout.root)} == {"current"}


@pytest.mark.parametrize("name", ["seed1.job.json", "summary.json", "bundle.json", "SHA256SUMS.txt"])
def test_snakemake_is_killed_with_all_its_jobs(checkout, built, name):
    with held(checkout, name) as process:
        os.killpg(process.pid, signal.SIGKILL)
    (checkout.root / "work/reached").unlink()
    run = checkout.build(TARGET)
    assert run.code == 1 and "--unlock" in run.output
    checkout.snakemake("--unlock").ok()
    check_mended(checkout, built)


def test_a_commit_during_a_build_is_not_what_the_row_claims(checkout, built):
    launched = checkout.git("rev-parse", "HEAD").strip()
    checkout.build(TARGET, env={"FAULT": "summary.json:git commit -q --allow-empty -m moved"}).ok()
    assert checkout.git("rev-parse", "HEAD").strip() != launched
    document = read_provenance((checkout.root / TARGET / PROVENANCE).read_bytes())
    # The jobs that ran before were those of the commit before; none is of the one that came under way.
    assert {job["commit"] for job in document["jobs"]} <= {launched, checkout.git("rev-parse", f"{launched}~1").strip()}
    assert checkout.files(ROW) == built.files(ROW)
    assert {status.state for status in all_statuses(checkout.root, checkout.root)} == {"current"}


def test_a_plan_edited_during_a_build_publishes_nothing(checkout, built):
    run = checkout.build(TARGET, env={"FAULT": f"summary.json:echo '# a remark' >> {PLAN}"})
    assert run.code == 1
    assert f"error: the plan {PLAN} must be as committed" in run.output
    assert "Traceback" not in checkout.log("assemble")
    assert not (checkout.root / TARGET / "bundle.json").exists()
    checkout.git("checkout", "-q", "--", PLAN)
    check_mended(checkout, built)


def test_a_checkout_that_loses_its_plan_during_a_build_publishes_nothing(checkout, built):
    command = f"git rm -q --cached {PLAN} && git commit -q -m without"
    run = checkout.build(TARGET, env={"FAULT": f"summary.json:{command}"})
    assert run.code == 1
    assert f"error: the plan {PLAN} must be committed, found it untracked" in run.output
    checkout.git("reset", "-q", "HEAD~1")
    check_mended(checkout, built)


def test_records_edited_during_a_build_are_refused(checkout, built):
    edited = product(checkout, "seed0.jsonl").relative_to(checkout.root)
    run = checkout.build(TARGET, env={"FAULT": f"summary.json:echo >> {edited}"})
    assert run.code == 1
    assert f"error: {edited} must be as its job wrote it, found other content: delete it" in run.output
    (checkout.root / edited).unlink()
    check_mended(checkout, built)


YEAR_S = 365 * 86400.0


def shift(checkout: Checkout, shift_s: float) -> None:
    """All that was made before comes from another year, as the clock of now has it."""
    time_s = max(0.0, round(time.time() + shift_s, 3))
    for path in checkout.root.rglob("*"):
        if ".git" not in path.parts and path.is_file() and not path.is_symlink():
            os.utime(path, (time_s, time_s))


def test_a_clock_that_was_set_forward(checkout, built):
    shift(checkout, -YEAR_S)
    check_mended(checkout, built)


def test_a_clock_that_was_set_back_between_two_jobs(checkout, built):
    shift(checkout, YEAR_S)
    check_mended(checkout, built)


def test_a_clock_that_was_set_back_before_a_bundle_is_replaced(built, tmp_path):
    shutil.copytree(built.root, tmp_path / "project", symlinks=True)
    checkout = Checkout(tmp_path / "project", built.home)
    (checkout.root / TARGET / "bundle.json").write_text("{}\n")
    shift(checkout, YEAR_S)
    check_mended(checkout, built)


def test_a_damaged_bundle_without_time_stamps(built, tmp_path):
    """Some archives and images leave every file at time 0."""
    shutil.copytree(built.root, tmp_path / "project", symlinks=True)
    checkout = Checkout(tmp_path / "project", built.home)
    (checkout.root / TARGET / "bundle.json").write_text("{}\n")
    shift(checkout, -2 * time.time())
    check_mended(checkout, built)


def test_a_clock_that_is_set_back_while_a_job_runs_fails_no_job(checkout, built):
    specs = product(checkout, "specs.jsonl")
    checkout.build(TARGET, env={"FAULT": f"seed1.job.json:touch -d 'next year' {specs}"}).ok()
    check_mended(checkout, built)


def test_scripts_are_told_how_late_files_may_be_seen(checkout):
    command = "echo $ROWPROOF_LATENCY_S > work/told"
    checkout.snakemake(TARGET, "--cores", "1", "--latency-wait", "17", env={"FAULT": f"summary.json:{command}"}).ok()
    assert (checkout.root / "work/told").read_text() == "17\n"


def test_a_launch_that_cannot_be_written_is_told(checkout, built):
    launch = checkout.root / "work/launch"
    shutil.rmtree(launch)
    launch.write_text("")
    run = checkout.dry_run(TARGET)
    assert run.code == 1
    assert f"{launch}/" in run.output
    assert "must be a file that can be read and written, found: Not a directory." in run.output
    assert "Traceback" not in run.output
    launch.unlink()
    check_mended(checkout, built)


def test_a_start_on_a_full_disk_is_told(checkout, built, tmp_path):
    work = checkout.root / "work"
    kept = shutil.copytree(work, tmp_path / "work")
    shutil.rmtree(work)
    with small_disk(work, "8k"):
        run = checkout.build(TARGET)
        assert run.code == 1
        assert "No space left on device" in run.output and f"{work}/" in run.output
        subprocess.run(["mount", "-o", "remount,size=4m", str(work)], check=True)
        shutil.copytree(kept, work, dirs_exist_ok=True)
        check_mended(checkout, built)


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_is_no_folder_in_place_of_a_staged_bundle_makes_way(checkout, built, kind):
    checkout.dry_run(TARGET)
    (recipe,) = (checkout.root / "work/recipes" / ROW).glob("bundle-*.json")
    staged = checkout.root / "work/rows" / ROW / recipe.stem / "staged"
    staged.parent.mkdir()
    staged.write_text("") if kind == "file" else staged.symlink_to(checkout.root / "elsewhere")
    check_mended(checkout, built)


def test_a_current_row_needs_no_staged_bundle(built, tmp_path):
    shutil.copytree(built.root, tmp_path / "project", symlinks=True)
    checkout = Checkout(tmp_path / "project", built.home)
    staged = product(checkout, "SHA256SUMS.txt").parent
    shutil.rmtree(staged)
    staged.write_text("")
    assert checkout.dry_run(TARGET).nothing


def test_full_results_are_told(checkout, built):
    results = checkout.root / "results"
    shutil.rmtree(results)
    with small_disk(results, "16k"):
        run = checkout.build(TARGET)
        assert run.code == 1
        assert f"error: No space left on device: {TARGET}/" in run.output
        subprocess.run(["mount", "-o", "remount,size=4m", str(results)], check=True)
        check_mended(checkout, built)


def test_read_only_results_are_told(built, tmp_path):
    shutil.copytree(built.root, tmp_path / "project", symlinks=True)
    checkout = Checkout(tmp_path / "project", built.home)
    folder = checkout.root / TARGET
    (folder / "bundle.json").write_text("{}\n")
    before = checkout.files(ROW)
    bound = subprocess.run(["mount", "--bind", str(folder), str(folder)], capture_output=True, text=True)
    if bound.returncode != 0:
        pytest.skip(f"NO READ-ONLY RESULTS WERE TESTED, since mounting needs root: {bound.stderr.strip()}")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)
        run = checkout.build(TARGET)
        assert run.code == 1
        assert "Write-protected output files" in run.output and f"{TARGET}/bundle.json" in run.output
        assert checkout.files(ROW) == before
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
    check_mended(checkout, built)


def test_unfinished_marks_and_links_of_products(checkout, built):
    """A product that is marked unfinished and is a link: what it leads to is never written."""
    path = product(checkout, "seed0.jsonl")
    target = checkout.root.parent / "mine.jsonl"
    path.rename(target)
    path.symlink_to(target)
    before = target.read_bytes()
    marks = checkout.root / ".snakemake/incomplete"
    marks.mkdir(exist_ok=True)
    (marks / base64.b64encode(path.relative_to(checkout.root).as_posix().encode()).decode()).touch()
    check_mended(checkout, built)
    assert target.read_bytes() == before
