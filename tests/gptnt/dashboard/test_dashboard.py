"""The dashboard as a file: whole, alone, the same each time, and safe to open whatever the records hold."""

import re

import pytest
from gptnt.dashboard.workbench import HOSTILE, LONG, Page, database, games, talker
from gptnt.players.workbench import Puppet
from gptnt.recordings.workbench import content, played
from rowproof.errors import ConfigError
from rowproof.gptnt.dashboard import write_dashboard
from rowproof.gptnt.dashboard.dialogues import TEXT_LENGTH, fair_order
from rowproof.gptnt.database import connect, runs
from rowproof.gptnt.metrics import results


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A database and the bytes of its page."""
    folder = tmp_path_factory.mktemp("dashboard")
    path = database(folder, games())
    write_dashboard(path, folder / "page.html")
    return path, (folder / "page.html").read_bytes()


def write(folder, *some, **settings):
    write_dashboard(database(folder, some), folder / "page.html", **settings)
    return Page((folder / "page.html").read_bytes())


def test_the_page_needs_no_other_file_and_no_network(built):
    page = Page(built[1])
    assert [tag for tag, _ in page.elements if tag in ("img", "iframe", "object", "embed", "base", "form")] == []
    links = [attributes["href"] for tag, attributes in page.elements if "href" in attributes]
    assert set(links) == {"data:,", "#"}
    assert not any("src" in attributes for _, attributes in page.elements)
    # The one address in it is the name space of SVG.
    assert set(re.findall(rb"https?://[^\s\"'<]+", built[1])) == {b"http://www.w3.org/2000/svg"}
    assert b"url(" not in built[1] and b"@import" not in built[1]


def test_only_the_one_script_of_the_page_may_run(built):
    page = Page(built[1])
    (policy,) = [a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy
    kinds = [attributes.get("type") for tag, attributes in page.elements if tag == "script"]
    assert kinds.count(None) == 1 and set(kinds) == {None, "application/json", "text/plain"}
    assert not any(name.startswith("on") or name == "style" for _, attributes in page.elements for name in attributes)


def test_the_page_shows_every_game_of_the_database(built):
    page, stored = Page(built[1]), content(built[0])
    shown = {game["id"]: game for game in page.data["games"]}
    assert list(shown) == [summary["session_id"] for summary, _ in stored]
    for summary, steps in stored:
        game = shown[summary["session_id"]]
        assert (game["outcome"], game["strikes"]) == (summary["outcome"], summary["strike_count"])
        assert (game["defuser"], game["expert"]) == (summary["defuser_name"], summary["expert_name"])
        turns = [step for step in steps if not step["is_reflection"]]
        assert game["defuser_turns"] == summary["n_rounds"]
        assert game["tokens"] == sum(s["usage"]["input_tokens"] + s["usage"]["output_tokens"] for s in turns)
        assert len(page.dialogue(game["dialogue"])) == len(steps)
    assert {game["crashed"] for game in shown.values()} == {True, False}
    assert {game["style"] for game in shown.values()} == {"sync", "async"}


def test_the_tables_hold_what_the_metrics_say(built, tmp_path):
    with connect(built[0]) as connection:
        found = runs(connection)
    missions = {("workbench", 1): [*sorted({run["mission_key"] for run in found}), "9|Maze"]}
    write_dashboard(built[0], tmp_path / "page.html", missions)
    tables = Page((tmp_path / "page.html").read_bytes()).data["tables"]
    groups = results(found, missions)["groups"]
    assert len(groups) == len(tables["pairings"]) == 2
    errors = 0
    for row, group in zip(tables["pairings"], groups, strict=True):
        assert (row["defuser"], row["expert"] or "") == (group["defuser"], group["expert"])
        for key in ("runs", "defuse_rate", "pass@1", "strikes", "rounds", "modules_solved_share"):
            assert row[key] == group[key]
        assert (row["missions_played"], row["missions"]) == (group["coverage"]["missions_played"], 4)
        assert row["invalid"] == sum(group["invalid"].values())
        assert row["defuser_turns_per_run"] == group["roles"]["defuser"]["turns_per_run"]
        own = [one for one in tables["modules"] if (one["expert"] or "") == group["expert"]]
        assert {one["module"]: one["defuse_rate"] for one in own} == group["modules"]
        for role, means in group["roles"].items():
            rates = (means or {"errors_per_100_turns": {}})["errors_per_100_turns"]
            shown = [one for one in tables["errors"] if (one["expert"] or "", one["role"]) == (group["expert"], role)]
            assert {one["kind"]: one["per_100_turns"] for one in shown} == rates
            assert all(one["per_100_turns"] == 100 * one["errors"] / one["turns"] for one in shown)
            errors += len(shown)
    assert errors and any(group["modules"] for group in groups)


def test_the_dialogue_is_in_the_order_in_which_steps_took_effect(built):
    page = Page(built[1])
    for game in page.data["games"]:
        steps = page.dialogue(game["dialogue"])
        looks_back = [step["kind"] == "reflection" for step in steps]
        assert looks_back == sorted(looks_back)
        times = [step["timestamp"] for step in steps]
        assert times == sorted(times)
        for role in ("defuser", "expert"):
            numbers = [step["step"] for step in steps if step["role"] == role]
            assert numbers == list(range(1, len(numbers) + 1))


def test_the_same_database_gives_the_same_bytes(built, tmp_path):
    write_dashboard(built[0], tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == built[1]


def test_hostile_text_neither_ends_an_element_nor_adds_one(tmp_path):
    tame = write(tmp_path / "tame", played(defuser=talker("hello")))
    hostile = write(tmp_path / "hostile", played(defuser=talker(HOSTILE)))
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in tame.elements]
    assert b"window.hacked" not in (tmp_path / "hostile/page.html").read_bytes()
    first = next(step for step in hostile.dialogue(0) if step["role"] == "defuser")
    assert (first["output"]["message"], first["thoughts"], first["raw"]) == (HOSTILE, HOSTILE, HOSTILE)


def test_page_data_hold_no_markup(built):
    start = built[1].index(b'id="page-data">') + len(b'id="page-data">')
    data = built[1][start : built[1].index(b"</script>", start)]
    assert b"<" not in data


def test_long_texts_are_cut_with_a_note(tmp_path):
    page = write(tmp_path, played(defuser=talker(LONG), expert=Puppet()))
    assert (tmp_path / "page.html").stat().st_size < 400_000
    first = next(step for step in page.dialogue(0) if step["role"] == "defuser")
    for text in (first["output"]["message"], first["thoughts"], first["raw"]):
        assert text == f"{'a' * TEXT_LENGTH} … [{1_000_000 - TEXT_LENGTH:,} more characters are in the record]"


def test_errors_and_usage_stand_at_their_steps(tmp_path):
    page = write(tmp_path, played(defuser=talker("hello")))
    first, second = [step for step in page.dialogue(0) if step["role"] == "defuser"][:2]
    assert (first["errors"], first["usage"]["input_tokens"], first["usage"]["cache_read_tokens"]) == ([], 1000, 900)
    assert (second["errors"], second["usage"]["output_tokens"]) == (["action_parsing_failed"], 7)


def test_dialogues_that_do_not_fit_are_left_out_and_counted(built, tmp_path):
    whole = Page(built[1])
    size = len(whole.texts["game-0"]) + len(whole.texts["game-1"])
    write_dashboard(built[0], tmp_path / "page.html", dialogues_bytes=size)
    page = Page((tmp_path / "page.html").read_bytes())
    total = len(whole.data["games"])
    assert sorted(g["dialogue"] for g in page.data["games"] if g["dialogue"] is not None) == [0, 1]
    (note,) = page.data["notes"]
    assert f"The dialogues of {total - 2} of {total} games are left out" in note
    assert whole.data["notes"] == []
    # What the overview says does not depend on it.
    without = [[{**game, "dialogue": None} for game in one.data["games"]] for one in (page, whole)]
    assert without[0] == without[1] and page.data["tables"] == whole.data["tables"]


def test_every_pairing_and_outcome_comes_before_a_second_game_of_one():
    keys = ("suite", "revision", "defuser", "expert", "style", "outcome")
    some = [dict.fromkeys(keys, 0) | {"outcome": outcome, "id": i} for i, outcome in enumerate("aaabba")]
    assert [game["id"] for game in fair_order(some)] == [0, 3, 1, 4, 2, 5]


def test_a_database_without_games_gives_a_page_that_says_so(tmp_path):
    page = write(tmp_path)
    assert page.data["games"] == [] and page.data["notes"] == ["The database holds no games yet."]


def test_a_missing_database_is_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(ConfigError, match="must be a database of games, found none: run rowproof build-db first"):
        write_dashboard(tmp_path / "none.duckdb", tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


def test_the_database_is_neither_changed_nor_kept_open(built, tmp_path):
    before = built[0].read_bytes()
    write_dashboard(built[0], tmp_path / "page.html")
    assert built[0].read_bytes() == before
    assert sorted(path.name for path in built[0].parent.iterdir() if path.name.startswith("games")) == ["games.duckdb"]
