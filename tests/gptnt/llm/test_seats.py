"""From a configuration to whoever plays."""

import pytest
from helpers import ROOT
from rowproof.closure import FolderSources, HashCache, closure
from rowproof.errors import ConfigError
from rowproof.gptnt.llm.player import LLMPlayer
from rowproof.gptnt.llm.seats import cassette_name, seat_for
from rowproof.gptnt.names import config_names
from rowproof.gptnt.player_config import PLAYERS, load_player
from rowproof.gptnt.players.scripted import Scripted


def test_a_script_takes_a_seat_and_is_never_recorded(tmp_path):
    player = load_player(ROOT, "scripted")
    seat = seat_for(player, {}, mode="record", folder=tmp_path)
    assert seat.name == "scripted" and isinstance(seat.player, Scripted)
    assert seat.capabilities == player.capabilities.model_dump(mode="json")
    assert list(tmp_path.iterdir()) == []


def test_a_model_needs_its_variables_unless_it_is_replayed(tmp_path):
    player = load_player(ROOT, "gpt-5-2")
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        seat_for(player, {})
    for environment in ({}, {"OPENAI_API_KEY": "sk-a-key-for-nothing"}):
        seat = seat_for(player, environment, mode="replay" if not environment else "off", folder=tmp_path)
        assert isinstance(seat.player, LLMPlayer) and seat.name == "gpt-5-2"


@pytest.mark.parametrize(
    ("mode", "folder", "message"),
    [
        ("replay", None, "there must be a folder of cassettes to replay"),
        ("replay", "no-such-folder", "there must be a folder of cassettes to replay"),
        ("record", None, "mode record must have a folder"),
    ],
)
def test_cassettes_need_a_place(tmp_path, mode, folder, message):
    player, environment = load_player(ROOT, "gpt-5-2"), {"OPENAI_API_KEY": "sk-a-key-for-nothing"}
    with pytest.raises(ConfigError, match=message):
        seat_for(player, environment, mode=mode, folder=None if folder is None else tmp_path / folder)


def test_a_cassette_is_named_after_the_game_and_the_role():
    assert cassette_name("gptnt/0123abcd/defuser") == "gptnt-0123abcd-defuser.jsonl"


def test_rows_of_boards_do_not_depend_on_the_client_of_models():
    found = closure(FolderSources(ROOT, HashCache(None)), [], ["rowproof.gptnt.evaluation"])
    # A player file may name prices and limits; how a model is asked plays no part.
    known = {f"workflow/rowproof/llm/{name}.py" for name in ("__init__", "calls", "cost", "limits")}
    assert {path for path in found.files if "/llm/" in path} <= known and "openai" not in found.packages


@pytest.mark.parametrize("name", config_names(ROOT / PLAYERS))
def test_every_shipped_player_can_be_seated(name):
    player = load_player(ROOT, name)
    needed = player.missing_variables({})
    environment = {key: "https://model.example/v1" if "URL" in key else f"a-secret-of-{key}" for key in needed}
    assert seat_for(player, environment).name == player.name
