import shutil

import pytest
from helpers import ROOT
from rowproof.evidence.rendered import verify_board
from rowproof.evidence.subjects import verify_path
from rowproof.layout import document_digest
from rowproof.records import decode, encode_document

ADMISSION = "admission/cocarry-v1"


@pytest.fixture
def board(tmp_path):
    """A copy of a committed board with an admission report, and of the row of another board that it rests on."""
    instrument = "results/cocarry-v1/b-aht"
    shutil.copytree(ROOT / instrument, tmp_path / instrument)
    return shutil.copytree(ROOT / "results" / ADMISSION, tmp_path / "results" / ADMISSION)


def failing(folder):
    return [check.id for check in verify_board(folder, ROOT).failures]


def reseal(path, document):
    path.write_bytes(encode_document({**document, "digest": document_digest(document)}))


def test_committed_boards_hold():
    boards = sorted(path.parent for path in (ROOT / "results").rglob("leaderboard.json"))
    assert boards and all(failing(folder) == [] for folder in boards)


def test_a_folder_scan_takes_board_and_rows(board):
    subjects = [table.subject for table in verify_path(board.parent, allow_dirty=True, root=ROOT)]
    assert len(subjects) == 4 and subjects[0].endswith("leaderboard.json")


def test_an_edited_number_in_the_json_is_seen(board):
    path = board / "leaderboard.json"
    path.write_bytes(path.read_bytes().replace(b'"n_episodes": 60', b'"n_episodes": 61', 1))
    assert failing(board) == ["board:form", "board:rendered"]


@pytest.mark.parametrize("name", ["leaderboard.md", "leaderboard.csv", "leaderboard.svg", "admission_report.md"])
def test_an_edited_page_is_seen(board, name):
    (board / name).write_bytes((board / name).read_bytes() + b" ")
    assert failing(board) == ["board:files", "board:rendered"]


def test_a_missing_page_is_seen(board):
    (board / "leaderboard.md").unlink()
    assert failing(board) == ["board:files", "board:rendered"]


def test_a_bundle_that_is_not_shown_is_seen(board):
    shutil.copytree(board / "a3-blind", board / "a4-more")
    assert failing(board) == ["board:rows", "board:rendered"]


def test_another_bundle_than_shown_is_seen(board):
    path = board / "a3-blind" / "bundle.json"
    path.write_bytes(path.read_bytes() + b" ")
    assert "board:rows" in failing(board)


def test_a_threshold_other_than_planned_is_seen_though_all_hashes_fit(board):
    report, table = board / "admission_report.json", board / "leaderboard.json"
    report.write_bytes(report.read_bytes().replace(b'"tau_solv": 0.95', b'"tau_solv": 0.5'))
    from rowproof.hashing import sha256_hex

    document = decode(table.read_bytes(), "leaderboard.json")
    document["files"]["admission_report.json"] = sha256_hex(report.read_bytes())
    reseal(table, document)
    assert failing(board) == ["board:rendered", "board:admission"]


def test_without_the_row_of_the_other_board_the_report_is_undecided(board):
    shutil.rmtree(board.parents[1] / "cocarry-v1")
    table = verify_board(board, ROOT)
    assert table.failures == []
    assert [check.verdict for check in table.checks if check.id == "board:admission"] == ["unknown"]


@pytest.mark.parametrize("data", [b"", b"{}", b"[]\n", b'{"schema": 1}\n'])
def test_hostile_tables_fail_and_do_not_raise(board, data):
    (board / "leaderboard.json").write_bytes(data)
    assert failing(board)


def test_without_a_project_nobody_knows_what_was_asked_of_the_task(board):
    table = verify_board(board, None)
    assert table.failures == []
    assert [check.verdict for check in table.checks if check.id == "board:admission"] == ["unknown"]
