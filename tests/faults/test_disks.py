"""The disk is full, read-only or unreadable: one message names the file, nothing is lost, and more space is enough."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from faults.conftest import Workdir, enter, in_child, obey_permissions, small_disk
from rowproof.files import write_atomic
from rowproof.hashing import sha256_hex

PAGE = 4096


@contextmanager
def filled(folder: Path, pages: int) -> Iterator[None]:
    """Leave so many free pages on the disk of ``folder``."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as stream:
        try:
            while stream.write(bytes(PAGE)):
                pass
        except OSError as error:
            assert error.errno == errno.ENOSPC
    os.truncate(ballast, ballast.stat().st_size - pages * PAGE)
    try:
        yield
    finally:
        ballast.unlink()


@pytest.fixture
def on_small_disk(patched, project, undisturbed, tmp_path) -> Iterator[Workdir]:
    """A built working directory on a disk that can be filled."""
    folder = tmp_path / "disk"
    with small_disk(folder):
        shutil.copytree(undisturbed, folder / "w", symlinks=True)
        workdir = enter(patched, project, folder / "w")
        workdir.launch()
        yield workdir
        patched.chdir(tmp_path)


@pytest.mark.parametrize("stage", ["specs", "simulate", "summary", "bundle"])
def test_a_job_on_a_full_disk(on_small_disk, expected, stage):
    workdir = on_small_disk
    workdir.unpublish()
    shard = "seed0" if stage == "simulate" else None
    (product,) = next(products for s, name, products in workdir.steps() if (s, name) == (stage, shard))
    Path(product).unlink(missing_ok=True)
    with filled(workdir.folder, 0):
        ended = workdir.run(stage, shard)
    assert ended.code == 2
    *_, line = ended.message.splitlines()
    assert "Traceback" not in ended.message and "Logging error" not in ended.message
    assert line.startswith("error: No space left on device: work/rows/") and ".tmp" not in line
    assert not Path(product).exists()
    workdir.build().ok()
    assert workdir.digests() == expected
    assert workdir.whole()


@pytest.mark.slow
def test_a_publication_on_a_full_disk(on_small_disk, expected):
    workdir, ends = on_small_disk, []
    for pages in range(len(expected) + 4):
        shutil.rmtree(workdir.results)
        workdir.launch()
        with filled(workdir.folder, pages):
            ended = workdir.run("publish")
        ends.append(ended.code)
        if ended.code == 0:
            break
        (line,) = ended.message.splitlines()
        assert line.startswith("error: No space left on device: results/") and ".tmp" not in line
        assert expected.items() >= workdir.digests().items()
        workdir.build().ok()
        assert workdir.digests() == expected
        assert workdir.whole()
    assert len(ends) > 5 and ends[-1] == 0


@pytest.mark.slow
@pytest.mark.parametrize("state", ["nothing built", "half a bundle"])
def test_a_start_on_a_full_disk(on_small_disk, expected, state):
    workdir, codes = on_small_disk, []
    (workdir.results / "episodes_seed1.jsonl").unlink()
    if state == "nothing built":
        shutil.rmtree("results")
        shutil.rmtree("work")
        Path("work").mkdir()
    half = shutil.copytree("results", workdir.folder.parent / "half") if state == "half a bundle" else None
    before = shutil.copytree("work", workdir.folder.parent / "before")
    for pages in range(40):
        shutil.rmtree("work")
        shutil.copytree(before, "work")
        with filled(workdir.folder, pages):
            try:
                workdir.launch()
            except OSError as error:
                assert (error.errno, Path(str(error.filename)).is_absolute()) == (errno.ENOSPC, True)
                assert ".tmp" not in str(error.filename)
                codes.append(error.errno)
            else:
                break
        left = [path for path in Path("work").rglob("*") if path.is_file() and path.stat().st_size == 0]
        assert left == []
        if pages % 4 == 0:
            workdir.build().ok()
            assert workdir.digests() == expected
            shutil.rmtree("results")
            if half:
                shutil.copytree(half, "results")
    assert codes
    workdir.build().ok()
    assert workdir.digests() == expected


def test_a_log_that_cannot_be_written_does_not_bury_the_message(on_small_disk):
    workdir = on_small_disk
    log = Path("logs/bundle-None.log")
    log.unlink(missing_ok=True)
    product = workdir.path("simulate", "seed0.jsonl")
    product.write_bytes(product.read_bytes() + b"\n")
    with filled(workdir.folder, 0):
        ended = workdir.run("bundle")
    assert log.read_bytes() == b""
    assert ended.code == 2
    (line,) = ended.message.splitlines()
    assert line.startswith(f"error: {product} must be as its job wrote it")


@pytest.fixture
def locked_away(worked) -> Iterator[Workdir]:
    """A working directory whose files have their permissions back at the end."""
    yield worked
    for path in [worked.folder, *worked.folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def said_without_rights(workdir: Workdir, stage: str, shard: str | None = None) -> str:
    """What a script says that has no right to pass over permissions, and how it ends."""
    report = workdir.folder.parent / "said"
    report.touch(mode=0o666)

    def work() -> int:
        with report.open("w") as stream:
            obey_permissions()
            ended = workdir.run(stage, shard)
            stream.write(ended.message)
        return ended.code

    assert in_child(work) == 2
    return report.read_text()


def test_read_only_results_are_named_and_stay(locked_away, expected):
    workdir = locked_away
    before = {path.name: sha256_hex(path.read_bytes()) for path in workdir.results.iterdir()}
    workdir.results.chmod(0o555)
    said = said_without_rights(workdir, "publish")
    assert said == f"error: Permission denied: results/{workdir.name}/REPRO.txt\n"
    assert {path.name: sha256_hex(path.read_bytes()) for path in workdir.results.iterdir()} == before
    workdir.results.chmod(0o755)
    (workdir.results / "REPRO.txt").unlink()
    workdir.build().ok()
    assert workdir.digests() == expected
    assert workdir.whole()


@pytest.mark.parametrize("what", ["product", "note", "recipe", "log", "folder"])
def test_what_may_not_be_read_or_written_is_named(locked_away, expected, what):
    workdir = locked_away
    product = workdir.path("simulate", "seed0.jsonl")
    Path("logs/summary-None.log").touch()
    path = {
        "product": product,
        "note": product.with_suffix(".job.json"),
        "recipe": Path(workdir.row.recipe_path("summary")),
        "log": Path("logs/summary-None.log"),
        "folder": product.parent,
    }[what]
    path.chmod(0)
    (line,) = said_without_rights(workdir, "summary").splitlines()
    assert line.startswith("error: Permission denied: ") and str(path) in line
    path.chmod(0o755 if path.is_dir() else 0o644)
    workdir.unpublish()
    workdir.build().ok()
    assert workdir.digests() == expected


@pytest.mark.parametrize("folder", ["w/work/recipes", "w/work/launch", "w/results/push-v1/ref-script"])
def test_a_start_without_rights_changes_nothing(locked_away, expected, folder):
    workdir = locked_away
    (workdir.results / "episodes_seed1.jsonl").unlink()
    target = workdir.folder.parent / folder
    before = {path: path.read_bytes() for path in target.rglob("*") if path.is_file()}
    for path in [target, *target.rglob("*")]:
        path.chmod(0o500 if path.is_dir() else 0)
    target.chmod(0)

    def work() -> int:
        obey_permissions()
        try:
            workdir.launch()
        except OSError as error:
            return 7 if str(target) in str(error.filename) and ".tmp" not in str(error.filename) else 8
        return 0

    assert in_child(work) == 7
    for path in [target, *target.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    for path in target.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert {path: path.read_bytes() for path in target.rglob("*") if path.is_file()} == before
    workdir.build().ok()
    assert workdir.digests() == expected


def test_an_atomic_write_names_its_target(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        write_atomic(tmp_path / "folder", b"data")
    assert caught.value.filename == str(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
