"""What ``rowproof reproduce`` says of rows whose digits may differ; the rebuild itself is tested with the graph."""

import json
import shutil
from pathlib import Path

import pytest
import yaml
from bundles import commit_all, make_project, make_row
from rowproof import reproduce as module
from rowproof.evidence.facts import success_text
from rowproof.hashing import sha256_hex
from rowproof.recipes import Launch
from rowproof.records import decode, encode_document, encode_lines, split_lines
from rowproof.reproduce import reproduce

BOARD, NAME = "handover-v1", "ref-script"
ROW = f"{BOARD}/{NAME}"
MEMBERS = ("presenter_mismatch_30", "presenter_mismatch_45")


def read(path: Path) -> list[dict]:
    return [decode(line, path.name) for _, line in split_lines(path.read_bytes(), path.name)]


def change_records(folder: Path, change) -> None:
    path = folder / "episodes_seed0.jsonl"
    records = read(path)
    change(records)
    path.write_bytes(encode_lines(records))


def give_facts(root: Path, change=lambda success: None) -> None:
    """Published facts that agree with the committed row, but for what ``change`` does to the success texts."""
    files = {path.name: path for path in sorted((root / "results" / ROW).glob("episodes_*"))}
    facts = {
        "episode_files": {name: sha256_hex(path.read_bytes()) for name, path in files.items()},
        "success": {name: success_text(read(path)) for name, path in files.items()},
    }
    change(facts["success"])
    path = root / "resources/published" / f"{BOARD}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump({"rows": {NAME: facts}}, sort_keys=False))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A project of tier ``outcome`` with one committed row."""
    root = make_project(tmp_path_factory.mktemp("reproduce") / "p")
    path = root / f"config/boards/{BOARD}.yaml"
    path.write_text(path.read_text().replace("tier: exact", "tier: outcome"))
    commit_all(root)
    make_row(root, root / "results", BOARD, NAME)
    return root


@pytest.fixture
def project(built, tmp_path):
    """A copy of it, for this test to change."""
    return shutil.copytree(built, tmp_path / "p")


@pytest.fixture
def run(project, monkeypatch):
    """Reproduces the row, the rebuilt one being the committed one changed by ``change``; match and lines."""

    def call(change=lambda folder: None):
        def rebuild(root, targets, workdir, cores, write):
            shutil.copytree(project / "results" / ROW, workdir / "results" / ROW)
            change(workdir / "results" / ROW)

        monkeypatch.setattr(module, "rebuild", rebuild)
        # No row of these is trained or timed.
        monkeypatch.setattr(module, "prepare", lambda root, workdir, touch: Launch("", "", False, (), ()))
        lines: list[str] = []
        return reproduce(project, project / "results", [ROW], 1, None, lines.append), lines

    return call


def cells(line: str) -> list[str]:
    return line.split()


def counts(lines: list[str]) -> list[str]:
    """Episodes, agreeing, only here and only published of every line of the table."""
    return [" ".join(cells(line)[1:5]) for line in lines[3:]]


def test_an_equal_row_matches_and_shows_every_member(project, run):
    give_facts(project)
    match, lines = run()
    assert match
    assert lines[0] == f"match {ROW} (tier outcome): 16 of 16 episodes agree in success; summary equal"
    assert lines[1] == ("      published row: 2 of 2 record files byte-identical, 16 of 16 episodes agree in success")
    assert [cells(line)[0] for line in lines[2:]] == ["Member", *MEMBERS, "all"]
    assert [cells(line)[1:5] for line in lines[3:]] == [
        ["8", "8", "0", "0"],
        ["8", "8", "0", "0"],
        ["16", "16", "0", "0"],
    ]


def test_the_table_is_aligned(project, run):
    give_facts(project)
    _, lines = run()
    assert len({len(line) for line in lines[2:]}) == 1
    assert all(line.startswith("      ") for line in lines[1:])
    column = lines[2].index("Rate here") + len("Rate here")
    assert all(line[column - 5 : column].strip().count(".") == 1 for line in lines[3:])


def test_other_digits_match(project, run):
    give_facts(project)

    def shake(folder):
        change_records(folder, lambda records: [r.update(force_peak=r["force_peak"] + 0.5) for r in records])
        document = json.loads((folder / "bundle.json").read_bytes())
        document["summary"]["stress"]["p50"] += 0.5
        (folder / "bundle.json").write_bytes(encode_document(document))

    match, lines = run(shake)
    assert match
    assert "1 of 2 record files byte-identical, 16 of 16 episodes agree" in lines[1]


def test_another_success_differs_and_is_counted_by_member(project, run):
    give_facts(project)
    path = project / "results" / ROW / "episodes_seed0.jsonl"
    number = next(i for i, r in enumerate(read(path)) if r["success"] and r["metadata"]["member"] == MEMBERS[0])
    match, lines = run(lambda folder: change_records(folder, lambda records: records[number].update(success=False)))
    assert not match
    assert lines[0] == (
        f"DIFFERS {ROW} (tier outcome): episodes_seed0.jsonl: record {number + 1}, field success: "
        "committed true, rebuilt false"
    )
    assert [cells(line)[1:5] for line in lines[3:]] == [
        ["8", "7", "0", "1"],
        ["8", "8", "0", "0"],
        ["16", "15", "0", "1"],
    ]


def test_another_summary_differs(project, run):
    def change(folder):
        document = json.loads((folder / "bundle.json").read_bytes())
        document["summary"]["success_rate"] += 1e-12
        (folder / "bundle.json").write_bytes(encode_document(document))

    match, lines = run(change)
    assert not match
    assert "bundle.json: summary, field success_rate: committed" in lines[0]


def test_the_published_row_decides_nothing(project, run):
    def flip(success):
        for texts in success.values():
            for member in texts:
                texts[member] = texts[member].translate(str.maketrans("01", "10"))

    give_facts(project, flip)
    match, lines = run()
    assert match
    assert "0 of 16 episodes agree in success" in lines[1]
    assert cells(lines[-1])[:3] == ["all", "16", "0"]


def test_a_published_row_of_another_grid_is_said_and_decides_nothing(project, run):
    give_facts(project, lambda success: success.pop("episodes_seed1.jsonl"))
    match, lines = run()
    assert match
    assert lines[1:] == [
        "      published row: cannot be compared: episode files must be among those of the published row, found "
        "['episodes_seed1.jsonl']"
    ]


def test_without_published_facts_nothing_is_said_of_them(run):
    match, lines = run()
    assert match and len(lines) == 1


def test_exact_rows_have_no_table(project, run):
    give_facts(project)
    path = project / "results" / ROW / "bundle.json"
    path.write_bytes(encode_document(json.loads(path.read_bytes()) | {"tier": "exact"}))
    match, lines = run()
    assert match and len(lines) == 2
