"""A product, or what stands beside it, is damaged between two jobs: the next job refuses it by name."""

import json
import os
import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from rowproof import jobs
from rowproof.layout import bundle_files


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty_out(path: Path) -> None:
    path.write_bytes(b"")


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


def no_text(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00")


DAMAGES = (flip, truncate, empty_out, append)
# Stage and file, and the job that reads it next.
PRODUCTS = (
    ("specs", "specs.jsonl", ("simulate", "seed1")),
    ("simulate", "seed1.jsonl", ("summary", None)),
    ("summary", "summary.json", ("bundle", None)),
)
by_name = {"ids": lambda value: getattr(value, "__name__", None)}


def check_repaired(workdir, expected, *delete: Path) -> None:
    """What the message asks for is enough."""
    for path in delete:
        path.unlink()
    workdir.build().ok()
    assert workdir.digests() == expected
    assert workdir.whole()


@pytest.mark.parametrize("damage", DAMAGES, **by_name)
@pytest.mark.parametrize(("stage", "file", "reader"), PRODUCTS, ids=[product[1] for product in PRODUCTS])
def test_a_damaged_product_is_refused(unpublished, expected, stage, file, reader, damage):
    product = unpublished.path(stage, file)
    damage(product)
    ended = unpublished.run(*reader)
    assert ended.code == 2
    advice = "found other content: delete it and start snakemake again"
    assert ended.message == f"error: {product} must be as its job wrote it, {advice}\n"
    # Another start refuses it as well, since all that comes before the bundle is read again.
    assert unpublished.build().message == ended.message
    assert unpublished.digests() == {}
    check_repaired(unpublished, expected, product)


@pytest.mark.parametrize(("stage", "file", "reader"), PRODUCTS, ids=[product[1] for product in PRODUCTS])
def test_a_lost_product_is_made_again(unpublished, expected, stage, file, reader):
    check_repaired(unpublished, expected, unpublished.path(stage, file))


def without_jobs(path: Path) -> None:
    path.write_bytes(b'{"sha256":"' + b"0" * 64 + b'"}\n')


def a_list(path: Path) -> None:
    path.write_bytes(b"[]\n")


def misspelt_job(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"stage"', b'"stagf"'))


def unpacked_job(path: Path) -> None:
    document = json.loads(path.read_bytes())
    path.write_text(json.dumps({**document, "jobs": ["simulate"]}))


NOTE_DAMAGES = (truncate, empty_out, no_text, without_jobs, a_list, misspelt_job, unpacked_job)


@pytest.mark.parametrize("damage", NOTE_DAMAGES, **by_name)
def test_a_damaged_note_of_who_made_a_product_is_refused(unpublished, expected, damage):
    product = unpublished.path("simulate", "seed0.jsonl")
    note = product.with_suffix(".job.json")
    damage(note)
    ended = unpublished.run("bundle")
    assert ended.code == 2
    assert ended.message.startswith(f"error: {note}: ") and len(ended.message.splitlines()) == 1
    assert ended.message.endswith(f": delete {product} and start snakemake again\n")
    check_repaired(unpublished, expected, product)


@pytest.mark.parametrize("made_s", [0.0, 365 * 86400.0], ids=["now", "in the future"])
def test_a_lost_note_is_not_waited_for_without_end(unpublished, expected, made_s, monkeypatch):
    product = unpublished.path("simulate", "seed0.jsonl")
    product.with_suffix(".job.json").unlink()
    os.utime(product, (time.time() + made_s,) * 2)
    waited_s = []

    def sleep(duration_s: float) -> None:
        waited_s.append(duration_s)
        assert sum(waited_s) < 10

    clock = SimpleNamespace(time=time.time, monotonic=time.monotonic, sleep=sleep)
    monkeypatch.setattr(jobs, "time", clock)
    ended = unpublished.run("bundle")
    assert ended.code == 2
    found = f"error: {product} must have seed0.job.json beside it, found none: delete it and start snakemake again\n"
    assert ended.message.endswith(found)
    check_repaired(unpublished, expected, product)


def other_value(path: Path) -> None:
    data = path.read_bytes().replace(b"-1.2", b"-1.3", 1)
    assert data != path.read_bytes()
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [truncate, empty_out, no_text, a_list, other_value], **by_name)
def test_a_damaged_recipe_is_refused(unpublished, expected, damage):
    unpublished.path("simulate", "seed0.jsonl").unlink()
    recipe = Path(unpublished.row.recipe_path("simulate"))
    damage(recipe)
    ended = unpublished.run("simulate", "seed0")
    assert ended.code == 2
    assert ended.message.startswith(f"error: {recipe}") and len(ended.message.splitlines()) == 1
    assert ended.message.endswith(": delete it and start snakemake again\n")
    assert not unpublished.path("simulate", "seed0.jsonl").exists()
    check_repaired(unpublished, expected, recipe)


@pytest.mark.parametrize("damage", [truncate, empty_out, no_text, a_list, Path.unlink], **by_name)
def test_a_damaged_launch_file_is_told_and_written_anew(unpublished, expected, damage):
    launch = Path(os.environ[jobs.LAUNCH_VARIABLE])
    damage(launch)
    ended = unpublished.run("bundle")
    assert ended.code == 2
    found = "must tell how this build was launched, found it missing or damaged: start snakemake again"
    assert ended.message == f"error: {launch} {found}\n"
    check_repaired(unpublished, expected)


@pytest.mark.parametrize("damage", [*DAMAGES, no_text, Path.unlink], **by_name)
@pytest.mark.parametrize("name", ["state.json", "hashes.json"])
def test_state_and_cache_are_written_anew(unpublished, expected, name, damage):
    unpublished.path("specs", "specs.jsonl").unlink()
    path = {"state.json": Path(unpublished.row.signal_path), "hashes.json": Path("work/cache/hashes.json")}[name]
    damage(path)
    check_repaired(unpublished, expected)


@pytest.mark.parametrize("damage", [flip, truncate, empty_out, Path.unlink], **by_name)
def test_a_damaged_staged_bundle_never_reaches_the_results(worked, expected, damage):
    shutil.rmtree(worked.results)
    staged = Path(worked.row.staged).parent
    for name in sorted(set(bundle_files(worked.row.seeds)) - {"provenance.json"}):
        worked.build("bundle").ok()
        damage(staged / name)
        ended = worked.run("publish")
        assert ended.code == 2, name
        assert f"{staged}/" in ended.message or f"error: {name}:" in ended.message
        assert len(ended.message.splitlines()) == 1
        assert worked.digests() == {}
    check_repaired(worked, expected)


def test_a_damaged_staged_provenance_is_noticed_by_the_next_start(worked, expected):
    shutil.rmtree(worked.results)
    worked.launch()
    flip(Path(worked.row.staged).with_name("provenance.json"))
    worked.run("publish").ok()
    assert worked.launch().reasons == ("provenance.json is damaged",)
    check_repaired(worked, expected)


@pytest.mark.parametrize("damage", [empty_out, no_text, a_list], **by_name)
def test_a_damaged_provenance_of_before_is_not_kept(unpublished, expected, damage):
    kept = Path(unpublished.row.staged).parent.with_name("provenance.json")
    kept.touch()
    damage(kept)
    unpublished.build().ok()
    assert unpublished.digests() == expected


def elsewhere(path: Path) -> Path:
    target = path.absolute().parents[5] / "elsewhere" / path.name
    target.parent.mkdir()
    return target


def test_a_product_that_became_a_link_is_read_through_it(unpublished, expected):
    product = unpublished.path("simulate", "seed0.jsonl")
    target = elsewhere(product)
    product.rename(target)
    product.symlink_to(target)
    unpublished.build().ok()
    assert unpublished.digests() == expected


@pytest.mark.parametrize("kind", ["dangling", "circular", "to other content"])
def test_what_a_link_in_place_of_a_product_leads_to_is_never_written(unpublished, expected, kind):
    product = unpublished.path("simulate", "seed0.jsonl")
    target = elsewhere(product)
    product.unlink()
    product.symlink_to(product.absolute() if kind == "circular" else target)
    if kind == "to other content":
        target.write_text("mine\n")
        assert f"{product} must be as its job wrote it" in unpublished.build().message
        check_repaired(unpublished, expected, product)
        assert target.read_text() == "mine\n"
    else:
        check_repaired(unpublished, expected)
        assert not target.exists() and not product.is_symlink()


def test_a_bundle_file_that_became_a_link_is_replaced_and_its_target_kept(worked, expected):
    target = worked.folder.parent / "mine.json"
    (worked.results / "bundle.json").rename(target)
    (worked.results / "bundle.json").symlink_to(target)
    before = target.read_bytes()
    assert worked.launch().state == "damaged"
    target.write_bytes(before + b"\n")
    check_repaired(worked, expected)
    assert target.read_bytes() == before + b"\n"


def test_a_folder_in_place_of_a_product_is_named(unpublished, expected):
    product = unpublished.path("simulate", "seed0.jsonl")
    product.unlink()
    product.mkdir()
    ended = unpublished.build()
    assert ended.code == 2
    assert ended.message == f"error: Is a directory: {product}\n"
    product.rmdir()
    check_repaired(unpublished, expected)
