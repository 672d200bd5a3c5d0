"""A session whose defuser was ingested before its expert never got the expert's steps."""

import pytest
from gptnt.recordings.workbench import content, played
from rowproof.gptnt.database import build_db
from rowproof.gptnt.recordings import write_game

GAME = played()


@pytest.fixture
def whole(tmp_path):
    write_game(GAME, tmp_path / "whole")
    build_db(tmp_path / "whole", tmp_path / "whole.duckdb")
    return content(tmp_path / "whole.duckdb")


@pytest.mark.parametrize("order", [1, -1])
def test_one_half_and_then_the_folder_with_both(tmp_path, whole, order):
    folder, database = tmp_path / "records", tmp_path / "games.duckdb"
    first, second = write_game(GAME, folder)[::order]
    held_back = second.read_bytes()
    second.unlink()
    report = build_db(folder, database)
    assert (report.sessions, len(report.partial), len(report.problems)) == ((1, 1, 0) if order == 1 else (0, 0, 1))
    second.write_bytes(held_back)
    assert first.exists() and build_db(folder, database).partial == []
    assert content(database) == whole


def test_the_defuser_in_one_folder_and_then_the_expert_in_another(tmp_path, whole):
    database = tmp_path / "games.duckdb"
    _, expert = write_game(GAME, tmp_path / "a")
    (tmp_path / "b").mkdir()
    expert.rename(tmp_path / "b" / expert.name)
    assert len(build_db(tmp_path / "a", database).partial) == 1
    report = build_db(tmp_path / "b", database)
    assert (report.sessions, report.partial, report.problems) == (1, [], [])
    assert content(database) == whole
    # The defuser once more changes nothing.
    build_db(tmp_path / "a", database)
    assert content(database) == whole
