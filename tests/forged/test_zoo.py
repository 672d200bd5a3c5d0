"""The zoo of forgeries, as a tool: its resealer is honest, its animals are refused, its score can be trusted."""

import os
import signal
import sys
from pathlib import Path

import pytest
from bundles import make_project, make_row
from forgeries.__main__ import HONEST, breed, judge, main, table
from forgeries.boards import BOARDS
from forgeries.rows import ROWS
from helpers import ROOT
from rowproof.evidence.verify import verify_bundle

BOARDS_BUILT = sorted({path.parent.parent for path in (ROOT / "results").glob("**/bundle.json")})


@pytest.mark.parametrize("board", BOARDS_BUILT, ids=lambda path: str(path.relative_to(ROOT / "results")))
def test_resealing_an_honest_row_of_each_board_changes_no_byte(board, tmp_path, monkeypatch):
    monkeypatch.setattr("forgeries.__main__.ROWS", {})
    row = next(path.parent for path in sorted(board.glob("*/bundle.json")))
    (honest,), _ = breed(row, tmp_path / "zoo")
    assert honest.kind == HONEST
    assert {p.name: p.read_bytes() for p in honest.folder.iterdir()} == {p.name: p.read_bytes() for p in row.iterdir()}


def test_resealing_an_honest_board_changes_no_byte(tmp_path, monkeypatch):
    monkeypatch.setattr("forgeries.__main__.BOARDS", {})
    board = ROOT / "results/push-v1"
    (honest,), _ = breed(board, tmp_path / "zoo")
    assert (honest.folder / "leaderboard.json").read_bytes() == (board / "leaderboard.json").read_bytes()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    root = make_project(tmp_path_factory.mktemp("zoo-project"), learned=True)
    built = tmp_path_factory.mktemp("zoo-rows")
    rows = {name: make_row(root, built, "handover-v1", name) for name in ("b-rnd", "b-aht")}
    animals = {}
    for name, row in rows.items():
        animals[name], _ = breed(row, tmp_path_factory.mktemp("zoo") / name)
    return root, animals


NAMES = [(kind, name) for kind, alterations in ROWS.items() for name in alterations]


@pytest.mark.parametrize(("kind", "name"), NAMES, ids=[name for _, name in NAMES])
def test_every_forgery_is_refused(kind, name, world):
    root, animals = world
    mine = [a for row in ("b-rnd", "b-aht") for a in animals[row] if a.name == name]
    assert mine, "neither row offers it a place"
    assert [a.about for a in mine if verify_bundle(a.folder, root).passed] == []


def test_the_honest_copies_are_accepted(world):
    root, animals = world
    assert all(verify_bundle(own[0].folder, root).passed for own in animals.values())


def test_every_kind_has_three_variants_or_more():
    assert {kind: len(own) for kind, own in {**ROWS, **BOARDS}.items() if len(own) < 3} == {}


def verifier(tmp_path: Path, text: str) -> str:
    path = tmp_path / "verifier.py"
    path.write_text(text)
    return f"{sys.executable} {path} {{}}"


def test_a_verifier_that_refuses_everything_has_no_score(tmp_path, capsys):
    command = verifier(tmp_path, "import sys; sys.exit(1)")
    assert main([str(ROOT / "results/push-v1/b-stat"), "--verifier", command]) == 2
    assert "must accept the honest copy" in capsys.readouterr().err


def test_a_verifier_that_accepts_everything_is_told_what_it_missed(tmp_path, capsys):
    command = verifier(tmp_path, "")
    assert main([str(ROOT / "results/push-v1/b-stat"), "--verifier", command]) == 1
    out = capsys.readouterr().out
    assert "| records | 8 | 0 | one_success_flipped (accepted)" in out


def test_a_verifier_that_hangs_or_dies_has_found_nothing(tmp_path, world):
    _, animals = world
    animal = animals["b-rnd"][0]
    waits = verifier(tmp_path, "import time; time.sleep(60)").split()
    assert judge(animal, waits, timeout_s=0.2) == "no verdict"
    dies = verifier(tmp_path, f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})").split()
    assert judge(animal, dies, timeout_s=30) == "no verdict"
    assert judge(animal, [os.fspath(tmp_path / "none"), "{}"], timeout_s=30) == "no verdict"


def test_what_is_no_evidence_is_refused_in_one_line(tmp_path, capsys):
    assert main([str(tmp_path), "--zoo", str(tmp_path / "zoo")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "zoo").exists()


def test_the_table_counts_by_kind(world):
    _, animals = world
    verdicts = {animal: "refused" for animal in animals["b-rnd"]}
    assert table(verdicts).splitlines()[2].startswith("| records | ")
