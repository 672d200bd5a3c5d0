"""Each test alters one thing of a rendered board and recomputes every digest of it; what it names must give it away."""

import os
import shutil

import pytest
from helpers import ROOT
from rowproof.boards import load_board
from rowproof.evidence.leaderboard import joined_by, render_again
from rowproof.evidence.planned import not_shown
from rowproof.evidence.rendered import board_key, verify_board
from rowproof.evidence.subjects import verify_path
from rowproof.hashing import sha256_hex
from rowproof.layout import document_digest
from rowproof.records import decode, encode_document

BOARD, ADMISSION = "push-v1", "admission/cocarry-v1"


def rendered(target, name):
    """A copy of a committed board as the code at hand renders it."""
    folder = shutil.copytree(ROOT / "results" / name, target / "results" / name)
    setup = load_board(ROOT, name)
    rules = setup.plan.admission.model_dump() if setup.plan.admission else None
    board, absent = setup.board.model_dump(by_alias=True), not_shown(setup.plan, setup.board)
    key = board_key(setup, ROOT)
    for file, data in render_again(board, folder, ROOT, key, rules, absent, joined_by(ROOT), {}).items():
        (folder / file).write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Two boards that nobody writes into; one of them with an admission report."""
    target = tmp_path_factory.mktemp("sound")
    shutil.copytree(ROOT / "results/cocarry-v1/b-aht", target / "results/cocarry-v1/b-aht")
    rendered(target, ADMISSION)
    return rendered(target, BOARD).parent


@pytest.fixture
def board(sound, tmp_path):
    return shutil.copytree(sound / BOARD, tmp_path / "results" / BOARD)


@pytest.fixture
def admission(sound, tmp_path):
    return shutil.copytree(sound, tmp_path / "with-admission" / "results") / ADMISSION


def reseal(folder, change=lambda document: None):
    """Recompute what leaderboard.json says of the files beside it, and its own digest."""
    path = folder / "leaderboard.json"
    document = decode(path.read_bytes(), path.name)
    change(document)
    document["files"] = {
        name: sha256_hex((folder / name).read_bytes()) for name in document["files"] if (folder / name).exists()
    }
    path.write_bytes(encode_document({**document, "digest": document_digest(document)}))


def replace(folder, name, old, new):
    data = (folder / name).read_bytes()
    assert old in data
    (folder / name).write_bytes(data.replace(old, new, 1))
    reseal(folder)


def failing(folder):
    return {check.id: check.found for check in verify_board(folder, ROOT).failures}


def test_boards_as_rendered_pass_and_resealing_changes_no_byte(board, admission):
    for folder in (board, admission):
        before = (folder / "leaderboard.json").read_bytes()
        reseal(folder)
        assert (folder / "leaderboard.json").read_bytes() == before
        assert failing(folder) == {}


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("leaderboard.md", b"0.392 [", b"0.992 ["),
        ("leaderboard.csv", b"0.392,", b"0.993,"),
        ("leaderboard.svg", b">0.392 [", b">0.999 ["),
        ("leaderboard.md", b"2026-", b"2025-"),
        ("leaderboard.json", b'"success_rate": 0.392', b'"success_rate": 0.993'),
        ("leaderboard.json", b'"key": "', b'"key": "0'),
    ],
)
def test_one_number_of_a_page_resealed(board, name, old, new):
    replace(board, name, old, new)
    assert list(failing(board)) == ["board:rendered"]
    assert f"{name} line " in failing(board)["board:rendered"]
    assert "snakemake results/push-v1" in failing(board)["board:rendered"]


def test_an_admission_verdict_resealed(admission):
    replace(admission, "admission_report.md", b": ", b": NOT ")
    assert "admission_report.md line 1" in failing(admission)["board:rendered"]


def test_a_deleted_admission_report_resealed(admission):
    for name in ("admission_report.md", "admission_report.json"):
        (admission / name).unlink()
    reseal(admission)
    found = failing(admission)["board:rendered"]
    assert "admission_report.json is missing" in found and "admission_report.md is missing" in found


def test_a_forged_page_without_its_table(board):
    replace(board, "leaderboard.md", b"0.392 [", b"0.992 [")
    (board / "leaderboard.json").unlink()
    tables = verify_path(board)
    assert not tables[0].passed and "leaderboard.json is missing" in failing(board)["board:rendered"]


@pytest.mark.parametrize("name", ["leaderboard.html", "notes.txt", ".hidden"])
def test_an_additional_file_is_named(board, name):
    (board / name).write_text("1.000")
    assert f"{name} is no file of this board" in failing(board)["board:rendered"]


def test_a_row_left_out_of_the_table_resealed(board):
    reseal(board, lambda document: document["rows"].pop())
    assert {"board:rows", "board:rendered"} <= set(failing(board))


def test_a_row_left_out_with_its_folder(board):
    shutil.rmtree(board / "b-stat")
    reseal(board, lambda document: document["rows"].pop())
    assert "b-stat" in failing(board)["board:rendered"]


def test_results_without_a_board(board):
    table = verify_path(board.parent, root=ROOT)[0]
    assert not table.passed and "no rendered board" in table.failures[0].found


def test_results_with_a_stray_folder(board):
    (board.parent / "best-v1").mkdir()
    assert "best-v1 is no board" in verify_path(board.parent, root=ROOT)[0].failures[0].found


def link_row(board):
    (board / "b-stat").rename(board.parent.parent / "elsewhere")
    (board / "b-stat").symlink_to(board.parent.parent / "elsewhere")
    return board / "b-stat", board


def link_board(board):
    board.rename(board.parent.parent / "elsewhere")
    board.symlink_to(board.parent.parent / "elsewhere")
    return board, board.parent


def link_results(board):
    results = board.parent
    results.rename(results.parent / "elsewhere")
    results.symlink_to(results.parent / "elsewhere")
    return results, board


def link_file(board):
    path = board / "leaderboard.md"
    path.rename(board.parent.parent / "page.md")
    path.symlink_to(board.parent.parent / "page.md")
    return path, board.parent


def hard_link(board):
    path = board / "b-stat" / "episodes_seed0.jsonl"
    os.link(path, board.parent.parent / "again")
    return path, board / "b-stat"


def pipe(board):
    os.mkfifo(board / "b-stat" / "pipe")
    return board / "b-stat" / "pipe", board


@pytest.mark.parametrize("change", [link_row, link_board, link_results, link_file, hard_link, pipe])
def test_links_pipes_and_their_kind_are_named(board, change):
    path, verified = change(board)
    failures = [check for table in verify_path(verified) for check in table.failures]
    assert any(check.id == "files:links" and str(path) in check.found for check in failures)
