"""Rows that are handed in: an honest one is taken as it is, everything else leaves nothing behind."""

import io
import os
import shutil
import struct
import subprocess
import zipfile

import pytest
from bundles import commit_all, make_project, make_row
from rowproof import cli, intake
from rowproof.layout import PROVENANCE, document_digest
from rowproof.records import decode, encode_document

ROW = "handover-v1/b-stat"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The maintainer's project, and beside it what somebody hands in."""
    base = tmp_path_factory.mktemp("intake")
    root = make_project(base / "p", seeds=[0], episodes_per_partner=2)
    (root / "Snakefile").write_text("")
    commit_all(root)
    for row in (ROW, "handover-v1/b-rnd"):
        make_row(root, base / "in" / "results", *row.split("/"))
    (root / "results").mkdir()
    return base


@pytest.fixture
def place(built, tmp_path, monkeypatch):
    base = shutil.copytree(built, tmp_path / "b", symlinks=True)
    monkeypatch.chdir(base / "p")
    monkeypatch.setattr(cli, "PACKAGE_ROOT", base / "p")
    return base


@pytest.fixture
def bundle(place):
    return place / "in" / "results" / ROW


@pytest.fixture
def call(place, capsys):
    def run(path, *arguments):
        code = cli.main(["intake", str(path), "--accept", *arguments])
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return run


def contents(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def taken(place):
    return contents(place / "p" / "results")


def refused(place, call, path, said, *arguments):
    """Nothing is verified, so nothing can be taken; the message is one line."""
    code, output = call(path, *arguments)
    assert code == 2 and said in output and output.count("\n") == 1, output
    assert taken(place) == {} and list((place / "p" / "results").rglob("*")) == []


def zipped(bundle, path, prefix=f"{ROW}/", add=(), leave=()):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(bundle.iterdir()):
            if file.name not in leave:
                archive.write(file, prefix + file.name)
        for info, data in add:
            archive.writestr(info, data)
    return path


def test_an_honest_row_is_taken_as_it_is(place, bundle, call):
    code, output = call(bundle)
    assert code == 0, output
    assert "replayed in full" in output and "remains unproven: " in output
    assert {f"{ROW}/{name}": data for name, data in contents(bundle).items()} == taken(place)
    assert [p.name for p in (place / "p/results/handover-v1").iterdir()] == ["b-stat"]
    # Once more changes nothing.
    assert call(bundle)[0] == 0
    assert {f"{ROW}/{name}": data for name, data in contents(bundle).items()} == taken(place)


def test_without_accept_nothing_is_written(place, bundle):
    assert cli.main(["intake", str(bundle)]) == 0
    assert taken(place) == {}


def test_several_rows_and_an_archive_are_taken_together(place, call, bundle):
    assert call(place / "in")[0] == 0
    assert {name.rpartition("/")[0] for name in taken(place)} == {ROW, "handover-v1/b-rnd"}
    shutil.rmtree(place / "p/results")
    (place / "p/results").mkdir()
    for prefix in (f"results/{ROW}/", f"{ROW}/", "b-stat/", ""):
        assert call(zipped(bundle, place / "row.zip", prefix))[0] == 0
    assert {f"{ROW}/{name}": data for name, data in contents(bundle).items()} == taken(place)


def test_one_bad_row_keeps_the_other_out(place, call):
    path = place / "in/results/handover-v1/b-rnd/REPRO.txt"
    path.write_bytes(path.read_bytes() + b"\n")
    code, output = call(place / "in")
    assert code == 1 and "not taken" in output and taken(place) == {}


def test_another_row_in_its_place_is_not_replaced(place, bundle, call):
    target = place / "p" / "results" / ROW
    target.mkdir(parents=True)
    (target / "bundle.json").write_text("{}\n")
    code, output = call(bundle)
    assert code == 1 and "another bundle is there" in output
    assert taken(place) == {f"{ROW}/bundle.json": b"{}\n"}


def test_a_forged_row_is_refused(place, bundle, call):
    path = bundle / "episodes_seed0.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"success": false', b'"success": true').replace(b"false", b"true"))
    code, output = call(bundle)
    assert code == 1 and "FAIL" in output and taken(place) == {}


def reseal(bundle, **changes):
    path = bundle / PROVENANCE
    document = decode(path.read_bytes(), "")
    for job in document["jobs"]:
        job |= changes
    path.write_bytes(encode_document({**document, "digest": document_digest(document)}))


def test_code_of_another_branch_or_of_nowhere_is_refused(place, bundle, call):
    root = place / "p"
    side = commit_all(root)
    subprocess.run(["git", "-C", root, "reset", "-q", "--hard", "HEAD~1"], check=True)
    reseal(bundle, commit=side)
    code, output = call(bundle)
    assert code == 1 and f"must descend from commit {side}" in output and taken(place) == {}
    reseal(bundle, commit="0" * 40)
    assert call(bundle)[0] in (1, 3) and taken(place) == {}


def test_a_row_that_is_not_replayed_needs_a_beacon(place, bundle, call, monkeypatch):
    """The engine is made to look like one that is not replayed in full."""
    drawn = []

    def verify(subject):
        table = whole(subject)
        table.checks = [check for check in table.checks if check.id != "records:replay"]
        return table

    def spot(tables, root, count, retrain, beacon, cores):
        drawn.append((count, beacon))
        tables[0].add("records:spot", holds, "must", "found")

    whole, holds = intake.Subject.verify, False
    monkeypatch.setattr(intake.Subject, "verify", verify)
    monkeypatch.setattr(intake, "add_spot_checks", spot)
    code, output = call(bundle)
    assert code == 3 and "not spot-checked: give --beacon" in output and drawn == [] and taken(place) == {}
    assert call(bundle, "--beacon", "dice")[0] == 1 and taken(place) == {}
    holds = None
    assert call(bundle, "--beacon", "dice")[0] == 3 and taken(place) == {}
    holds = True
    assert call(bundle, "--beacon", "dice")[0] == 0 and taken(place)
    assert drawn == [(intake.DEFAULT_COUNT, "dice")] * 3


# --- Folders ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["link", "hard link", "fifo", "folder link"])
def test_links_and_special_files_in_a_folder_are_refused(place, bundle, call, kind):
    target = bundle / "REPRO.txt"
    if kind == "folder link":
        bundle.rename(place / "away")
        bundle.symlink_to(place / "away")
        path = place / "in"
    else:
        path = bundle
        kept = place / "kept"
        target.rename(kept)
        {"link": target.symlink_to, "hard link": target.hardlink_to, "fifo": lambda _: os.mkfifo(target)}[kind](kept)
    refused(place, call, path, "link or a special file" if kind != "folder link" else "link")


@pytest.mark.parametrize(
    "name", ["notes.md", "inner.zip", ".hidden", "Bundle.json", "é.json", "a\nb", "episodes_seed0.jsonl "]
)
def test_other_names_in_a_folder_are_refused(place, bundle, call, name):
    (bundle / name).write_text("x")
    refused(place, call, bundle, "must be a file of a bundle")


def test_a_repository_that_is_brought_along_is_refused(place, bundle, call):
    (bundle / ".git").mkdir()
    (bundle / ".git" / "config").write_text("[core]\n")
    refused(place, call, bundle, "must be a file of a bundle")


def test_other_places_are_refused(place, bundle, call):
    (bundle / "empty").mkdir()
    refused(place, call, bundle, "empty")
    (bundle / "empty").rmdir()
    bundle.rename(bundle.with_name("b-other"))
    refused(place, call, place / "in/results/handover-v1", "must be named by board and row")
    (place / "void").mkdir()
    refused(place, call, place / "void", "empty one")
    refused(place, call, place / "nowhere", "must be a folder or a zip archive")
    os.mkfifo(place / "pipe")
    refused(place, call, place / "pipe", "must be a folder or a zip archive")


def test_a_sparse_giant_is_not_read(place, bundle, call):
    with (bundle / "timing.json").open("wb") as stream:
        stream.truncate(1 << 40)
    refused(place, call, bundle, "bytes")


def test_the_limits_on_number_and_sum_hold(place, bundle, call, monkeypatch):
    monkeypatch.setattr(intake, "MAX_ENTRIES", 5)
    refused(place, call, bundle, "at most 5 entries")
    refused(place, call, zipped(bundle, place / "row.zip"), "at most 5 entries")
    monkeypatch.setattr(intake, "MAX_ENTRIES", 50)
    monkeypatch.setattr(intake, "MAX_TOTAL_BYTES", 5000)
    refused(place, call, bundle, "all files together")
    refused(place, call, zipped(bundle, place / "row.zip"), "all files together")


def test_a_bundle_that_names_another_place_is_refused(place, bundle, call):
    document = decode((bundle / "bundle.json").read_bytes(), "")
    for board in ("..", "../../x", "/etc", "handover-v1\n", 7, None):
        (bundle / "bundle.json").write_bytes(encode_document(document | {"board": board}))
        refused(place, call, bundle, "must name its board and row")
    (bundle / "bundle.json").write_bytes(b"[" * 100_000)
    refused(place, call, bundle, "bundle.json")


# --- Archives --------------------------------------------------------------------------------------------------------


def info(name, mode=0):
    made = zipfile.ZipInfo(name)
    made.external_attr = mode << 16
    made.compress_type = zipfile.ZIP_DEFLATED
    return made


@pytest.mark.parametrize(
    "name",
    [
        *("../REPRO.txt", "/REPRO.txt", f"{ROW}/../../../REPRO.txt", f"{ROW}\\REPRO.txt", "C:/REPRO.txt"),
        *(f"{ROW}//REPRO.txt", f"./{ROW}/REPRO.txt", f"{ROW}/inner.zip", f"{ROW}/.git/config", "a/b/c/d/e/REPRO.txt"),
    ],
)
def test_names_that_lead_elsewhere_are_refused(place, bundle, call, name):
    path = zipped(bundle, place / "row.zip", add=[(info(name), b"x")])
    refused(place, call, path, "must be a file of a bundle")
    assert not (place / "REPRO.txt").exists()


@pytest.mark.parametrize("mode", [0o120777, 0o010644, 0o060644, 0o040755])
def test_links_and_special_files_in_an_archive_are_refused(place, bundle, call, mode):
    path = zipped(bundle, place / "row.zip", add=[(info(f"{ROW}/timing.json", mode), b"/etc/passwd")])
    refused(place, call, path, "link or a special file")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_that_are_there_twice_are_refused(place, bundle, call):
    path = zipped(bundle, place / "row.zip", add=[(info(f"{ROW}/REPRO.txt"), b"x")])
    refused(place, call, path, "must be there once")
    path = zipped(bundle, place / "row.zip", prefix="", add=[(info("repro.txt"), b"x")])
    refused(place, call, path, "must be")


def test_one_row_that_is_there_twice_is_refused(place, bundle, call):
    files = [(info(f"results/{ROW}/{file.name}"), file.read_bytes()) for file in bundle.iterdir()]
    refused(place, call, zipped(bundle, place / "row.zip", add=files), "must be handed in once")


def test_bombs_are_refused(place, bundle, call):
    bomb = (info(f"{ROW}/timing.json"), bytes(20 << 20))
    refused(place, call, zipped(bundle, place / "row.zip", add=[bomb]), "shrink at most")
    many = [(info(f"{ROW}/episodes_seed{seed}.jsonl"), b"") for seed in range(1, 2100)]
    refused(place, call, zipped(bundle, place / "row.zip", add=many), "entries")


def test_a_size_that_is_a_lie_is_seen(place, bundle, call):
    path = zipped(bundle, place / "row.zip", leave=["REPRO.txt"], add=[(info(f"{ROW}/REPRO.txt"), bytes(1 << 20))])
    data = bytearray(path.read_bytes())
    # The last entry of the central directory and its local header state ten bytes.
    central = data.rindex(b"PK\x01\x02")
    local = struct.unpack_from("<I", data, central + 42)[0]
    struct.pack_into("<I", data, central + 24, 10)
    struct.pack_into("<I", data, local + 22, 10)
    path.write_bytes(data)
    refused(place, call, path, "REPRO.txt")


def test_damaged_archives_are_refused(place, bundle, call):
    whole = zipped(bundle, place / "row.zip").read_bytes()
    path = place / "bad.zip"
    for data in (b"", b"PK", whole[: len(whole) // 2], b"\x00" * 100, whole[:60] + b"\xff" * 40 + whole[100:]):
        path.write_bytes(data)
        code, output = call(path)
        assert code == 2 and output.count("\n") == 1 and taken(place) == {}


def test_an_encrypted_entry_and_another_compression_are_refused(place, bundle, call):
    for kind in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        made = info(f"{ROW}/timing.json")
        made.compress_type = kind
        refused(place, call, zipped(bundle, place / "row.zip", add=[(made, b"x")]), "stored or deflated")
    path = zipped(bundle, place / "row.zip")
    data = bytearray(path.read_bytes())
    central = data.index(b"PK\x01\x02")
    data[central + 8] |= 1
    path.write_bytes(data)
    refused(place, call, path, "not encrypted")


def test_a_giant_archive_is_not_opened(place, call):
    with (place / "row.zip").open("wb") as stream:
        stream.truncate(1 << 40)
    refused(place, call, place / "row.zip", "bytes")


def test_a_copy_that_cannot_be_finished_leaves_nothing(place, call, monkeypatch):
    real = os.rename
    renamed = []

    def rename(self, target):
        if "intake-" in self.name and self.name.startswith("."):
            renamed.append(target)
            if len(renamed) == 2:
                raise OSError(28, "No space left on device", str(target))
        real(self, target)
        return target

    monkeypatch.setattr(intake.Path, "rename", rename)
    assert call(place / "in")[0] == 2
    assert len(renamed) == 2 and taken(place) == {}
    assert list((place / "p/results/handover-v1").iterdir()) == []


def test_the_archive_of_the_tests_is_a_good_one(bundle):
    """Or refusals above could have another reason."""
    data = io.BytesIO()
    zipped(bundle, data)
    assert zipfile.ZipFile(data).testzip() is None
