import re
from typing import get_args

import pytest
from gptnt.harness.workbench import DEFUSER, EXPERT, SOLO, edit, refusal
from helpers import ROOT
from rowproof.errors import ConfigError
from rowproof.gptnt.capabilities import Capabilities
from rowproof.gptnt.fingerprint import FINGERPRINT_V1
from rowproof.gptnt.names import config_names
from rowproof.gptnt.player_config import (
    PLAYERS,
    PROVIDERS,
    Script,
    list_players,
    load_player,
    load_provider,
    new_file,
    with_tokens_per_image,
)
from rowproof.gptnt.players.scripts import known_scripts
from rowproof.plain_data import read_model

FINGERPRINTS = {
    "test-defuser": "dfb958a577f7341d5b2b38415f124bc3",
    "test-expert": "26fb0ac8d9785c72d45889b631e2abed",
    "test-oracle": "8aad540a421a92a2d16eb33b0b632f17",
    "test-random": "bf0eb4706d8a2a44b37eb254d513b6d2",
    "claude-sonnet-4-6": "2242866b8007328febe93c57fd61fea7",
    "gpt-5-2": "071851eafa22ce49d0807912b26beaf8",
    "internvl3-5-38b": "b9f497f843daec7c2817db93eb5c0414",
    "qwen3-5-27b": "11ef55468b57a7384963d0997f30d2e4",
}
PLAYER = f"{PLAYERS}/claude-sonnet-4-6.yaml"
PROVIDER = f"{PROVIDERS}/vllm_box1.yaml"
SECRET = "sk-not-a-real-one"
USER = f"me:{SECRET}"


# ---- fingerprints ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "fingerprint"), FINGERPRINTS.items())
def test_shipped_players_have_the_published_fingerprints(name, fingerprint):
    assert load_player(ROOT, name).fingerprint == fingerprint


def test_the_fingerprint_of_all_defaults_is_the_published_one():
    assert Capabilities(player_name="p", player_type="ai").fingerprint == "4aab42474fc185818bc957262c841c94"


def test_usage_limits_and_providers_enter_no_fingerprint():
    player = load_player(ROOT, "qwen3-5-27b", "vllm_box3")
    assert player.fingerprint == FINGERPRINTS["qwen3-5-27b"] and player.model.provider == "vllm_box3"
    limits = player.capabilities.usage_limits.model_copy(update={"input_tokens_limit": 1})
    assert player.capabilities.model_copy(update={"usage_limits": limits}).fingerprint == player.fingerprint


CHANGES = {
    "player_name": "q",
    "player_type": "human",
    "thinking_method": "thinking-out-loud",
    "structured_output_mode": "tool",
    "include_schema_in_instructions": False,
    "max_observations_per_request": 15,
    "image_dimensions": {"width": 641, "height": 480},
    "tokens_per_image": 1,
    "interaction_location_method": "coordinates",
    "coordinate_mode": "normalised",
    "preserve_last_frame_for_n_turns": 1,
    "enable_nobf_generation": False,
}
BASE = {"player_name": "p", "player_type": "ai", "structured_output_mode": None}


@pytest.mark.parametrize(("field", "value"), CHANGES.items())
def test_every_other_field_enters_the_fingerprint(field, value):
    base = read_model(BASE, Capabilities, "x")
    assert read_model({**BASE, field: value}, Capabilities, "x").fingerprint != base.fingerprint


def test_a_new_field_asks_for_a_new_version_of_the_recipe():
    assert set(CHANGES) == FINGERPRINT_V1 == set(Capabilities.model_fields) - {"usage_limits"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"structured_output_mode": "prompted", "include_schema_in_instructions": False}, "prompted must come with"),
        ({"structured_output_mode": "native", "thinking_method": "thinking-out-loud"}, "must come with structured"),
        ({"structured_output_mode": "prompted", "thinking_method": "thinking-out-loud"}, "must come with structured"),
        ({"player_type": "robot"}, "player_type: "),
        ({"player_name": "a b"}, "player_name: "),
        ({"player_name": "a/b"}, "player_name: "),
        ({"player_name": ""}, "player_name: "),
        ({"max_observations_per_request": 0}, "max_observations_per_request: "),
        ({"max_observations_per_request": 17}, "max_observations_per_request: "),
        ({"tokens_per_image": -1}, "tokens_per_image: "),
        ({"tokens_per_image": 1.0}, "tokens_per_image: "),
        ({"image_dimensions": {"width": 0, "height": 1}}, "image_dimensions.width: "),
        ({"usage_limits": {"tokens": 1}}, "usage_limits.tokens: unknown key"),
        ({"colour": "red"}, "colour: unknown key"),
    ],
)
def test_broken_capabilities_are_refused(changes, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        read_model({**BASE, **changes}, Capabilities, "x")


# ---- files -----------------------------------------------------------------------------------------------------


# Model id, thinking, output, image size, tokens per image, input and output limit, coordinates.
TABLE = {
    "claude-sonnet-4-6": ("claude-sonnet-4-6", (640, 480), 424, 200000, 64000, "absolute"),
    "gemini-3-flash-preview": ("gemini-3-flash-preview", (640, 480), 541, 1048576, 65536, "normalised"),
    "gpt-5-2": ("gpt-5.2", (640, 480), 383, 400000, 128000, "absolute"),
    "internvl3-5-38b": ("internvl35", (448, 448), 267, 39959, 1001, "normalised"),
    "qwen3-5-27b": ("qwen35", (504, 504), 266, 126999, 1001, "normalised"),
}


@pytest.mark.parametrize(("name", "row"), TABLE.items())
def test_shipped_models_are_as_published(name, row):
    player = load_player(ROOT, name)
    has = player.capabilities
    size = (has.image_dimensions.width, has.image_dimensions.height)
    limits = (has.usage_limits.input_tokens_limit, has.usage_limits.output_tokens_limit)
    assert (player.model.id, size, has.tokens_per_image, *limits, has.coordinate_mode) == row
    assert (has.thinking_method, has.structured_output_mode) == ("thinking-out-loud", None)
    assert (player.model.settings.max_tokens, player.model.settings.temperature) == (1000, 0.6)


@pytest.mark.parametrize("name", config_names(ROOT / PLAYERS))
def test_names_of_players_are_those_of_their_files(name):
    player = load_player(ROOT, name)
    assert player.name == player.config == name
    assert player.capabilities.preserve_last_frame_for_n_turns == 1


# Old text, new text, key of the message, what it says.
REFUSALS = [
    ("  player_name: claude-sonnet-4-6\n", "", "capabilities.player_name", "required key is missing"),
    ("  thinking_method: thinking-out-loud\n", "", "capabilities.thinking_method", "required key is missing"),
    ("  structured_output_mode: null\n", "", "capabilities.structured_output_mode", "required key is missing"),
    ("  interaction_location_method: set-of-marks\n", "", "capabilities.interaction_location_method", "required key"),
    ("input_tokens_limit: 200000, ", "", "capabilities.usage_limits.input_tokens_limit", "required key is missing"),
    (", output_tokens_limit: 64000", "", "capabilities.usage_limits.output_tokens_limit", "required key is missing"),
    ("  organisation: Anthropic\n", "", "identity.organisation", "required key is missing"),
    ("  url: https://www.anthropic.com\n", "", "identity.url", "required key is missing"),
    ("  is_os_model: false", "  is_os_model: no", "identity.is_os_model", "valid boolean, found 'no'"),
    ("  id: claude-sonnet-4-6\n", "", "model", "id and provider, or script"),
    ("  provider: anthropic\n", "", "model", "id and provider, or script"),
    ("  id: claude-sonnet-4-6\n", "  script: test-oracle\n", "model", "a script must stand alone"),
    ("  provider: anthropic", "  provider: antropic", "model.provider", "did you mean 'anthropic'"),
    ("  provider: anthropic", "  script: rm", "model.script", "'test-oracle'"),
    ("temperature: 0.6", "temperature: -1.0", "model.settings.temperature", "greater than or equal to 0"),
    ("temperature: 0.6", "_target_: os.system", "model.settings._target_", "unknown key"),
    ("temperature: 0.6", "api_key: " + SECRET, "model.settings.api_key", "unknown key"),
]


@pytest.mark.parametrize(("old", "new", "key", "message"), REFUSALS)
def test_a_broken_player_file_is_refused_with_file_line_and_key(project, old, new, key, message):
    edit(project, PLAYER, old, new)
    text = refusal(load_player, project, "claude-sonnet-4-6")
    assert re.match(re.escape(PLAYER) + r":\d+: " + re.escape(key) + ": ", text) and message in text
    assert SECRET not in text


def test_an_empty_player_file_is_refused(project):
    (project / PLAYER).write_text("")
    assert "must hold a mapping" in refusal(load_player, project, "claude-sonnet-4-6")


@pytest.mark.parametrize("text", ["- a\n", "text\n"])
def test_a_player_file_that_is_no_mapping_is_refused(project, text):
    (project / PLAYER).write_text(text)
    assert "valid dictionary" in refusal(load_player, project, "claude-sonnet-4-6")


def test_unknown_names_come_with_the_nearest_one():
    assert "did you mean 'gpt-5-2'" in refusal(load_player, ROOT, "gpt-5.2")
    assert "did you mean 'openai'" in refusal(load_player, ROOT, "gpt-5-2", "opnai")
    for text in (refusal(load_player, ROOT, "nobody"), refusal(load_provider, ROOT, "nobody")):
        assert "rowproof list players" in text
    assert "found '../anchors'" in refusal(load_player, ROOT, "../anchors")


# ---- providers -------------------------------------------------------------------------------------------------


def test_a_short_model_is_the_same_as_a_long_one_but_cannot_be_overridden(project):
    long = load_player(project, "claude-sonnet-4-6")
    text = (project / PLAYER).read_text()
    (project / PLAYER).write_text(text[: text.index("\nmodel:")] + "\nmodel: anthropic:claude-sonnet-4-6\n")
    assert load_player(project, "claude-sonnet-4-6") == long
    text = refusal(load_player, project, "claude-sonnet-4-6", "openai")
    assert f"{PLAYER}:" in text and "model: must have id and provider apart" in text
    (project / PLAYER).write_text((project / PLAYER).read_text().replace("anthropic:claude-sonnet-4-6", "claude"))
    assert "must be a mapping or <provider>:<id>" in refusal(load_player, project, "claude-sonnet-4-6")


def test_a_script_takes_no_provider():
    assert "the script test-oracle, no model" in refusal(load_player, ROOT, "test-oracle", "openai")
    assert load_player(ROOT, "test-oracle").missing_variables({}) == []


def test_the_missing_variables_are_named():
    player = load_player(ROOT, "claude-sonnet-4-6")
    assert player.missing_variables({}) == player.missing_variables({"ANTHROPIC_API_KEY": ""}) == ["ANTHROPIC_API_KEY"]
    assert player.missing_variables({"ANTHROPIC_API_KEY": SECRET}) == []
    own = load_player(ROOT, "qwen3-5-27b")
    # The key of a server of one's own has a default, the address and the access headers have none.
    assert own.missing_variables({}) == ["VLLM_BOX1_BASE_URL", "CF_ACCESS_CLIENT_ID", "CF_ACCESS_CLIENT_SECRET"]


def test_no_value_of_the_environment_is_kept(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    player = load_player(ROOT, "claude-sonnet-4-6")
    assert SECRET not in repr(player) and "ANTHROPIC_API_KEY" in repr(player)


@pytest.mark.parametrize(
    ("old", "new", "key", "message"),
    [
        ("api_key_variable: VLLM_API_KEY", f"api_key: {SECRET}", "api_key", "unknown key"),
        ("api_key_variable: VLLM_API_KEY\n", "", "api_key_variable", "required key is missing"),
        ("api_key_variable: VLLM_API_KEY", f"api_key_variable: {SECRET}", "api_key_variable", "name of an env"),
        ("CF_ACCESS_CLIENT_ID", SECRET, "header_variables.CF-Access-Client-Id", "name of an environment variable"),
        ("api_key_default: EMPTY", f"api_key_default: {SECRET}", "api_key_default", "never a key"),
        ("base_url_variable: VLLM_BOX1_BASE_URL\n", "", "(document)", "either base_url or base_url_variable"),
        ("base_url_variable: VLLM_BOX1_BASE_URL", "base_url: ftp://x", "base_url", "match pattern"),
        ("base_url_variable: VLLM_BOX1_BASE_URL", f"base_url: https://{USER}@x/v1", "base_url", "nor password"),
        ("api_key_default", "base_url: https://x\napi_key_default", "(document)", "either base_url or"),
        ("CF_ACCESS_CLIENT_ID", "{a: b}", "header_variables.CF-Access-Client-Id", "valid string"),
    ],
)
def test_a_broken_provider_is_refused(project, old, new, key, message):
    edit(project, PROVIDER, old, new)
    text = refusal(load_provider, project, "vllm_box1")
    assert re.search("^" + re.escape(PROVIDER) + r":\d+: " + re.escape(key) + ": .*" + message, text, re.MULTILINE)
    assert SECRET not in text


# ---- scripts ---------------------------------------------------------------------------------------------------


def test_every_script_has_a_player_of_its_name():
    scripts = known_scripts()
    assert get_args(Script) == scripts
    assert {name: load_player(ROOT, name).model.script for name in scripts} == {name: name for name in scripts}


@pytest.mark.parametrize(
    ("name", "legal"),
    [
        ("test-defuser", {"defuser", "solo", "solo with manual", "magic", "lottery"}),
        ("test-expert", {"defuser", "expert"}),
        ("test-oracle", {"magic"}),
        ("test-random", {"lottery"}),
        ("scripted", {"defuser", "expert", "solo with manual"}),
        ("scripted-slow", {"defuser", "expert", "solo with manual"}),
        ("gpt-5-2", {"defuser", "expert", "solo", "solo with manual", "magic", "lottery"}),
    ],
)
def test_where_a_script_can_act(name, legal):
    seats = {
        "defuser": ("defuser", DEFUSER),
        "expert": ("expert", EXPERT),
        "solo": ("defuser", SOLO),
        "solo with manual": ("defuser", SOLO.model_copy(update={"include_manual": True})),
        "magic": ("defuser", SOLO.model_copy(update={"allow_magic_actions": True})),
        "lottery": ("defuser", SOLO.model_copy(update={"allow_lottery_actions": True})),
    }
    player = load_player(ROOT, name)
    assert {seat for seat, place in seats.items() if player.can_act(*place)} == legal


# ---- list, new, measured value ---------------------------------------------------------------------------------


def test_the_list_shows_players_and_providers_and_what_is_wrong_with_one(project):
    listed = list_players(project)
    assert [row["config"] for row in listed["players"]] == config_names(ROOT / PLAYERS)
    assert [row["provider"] for row in listed["providers"]] == config_names(ROOT / PROVIDERS)
    edit(project, PLAYER, "player_name", "name")
    edit(project, PROVIDER, "api_key_variable", "key")
    listed = list_players(project)
    broken = [row for rows in listed.values() for row in rows if "error" in row]
    # The player that is reached by the broken provider is broken as well.
    assert [row.get("config") or row["provider"] for row in broken] == ["claude-sonnet-4-6", "qwen3-5-27b", "vllm_box1"]


@pytest.mark.parametrize("folder", [PLAYERS, PROVIDERS])
def test_a_new_file_is_valid_and_replaces_none(project, folder):
    path = new_file(project, folder, "mine_2")
    assert load_player(project, "mine_2").name == "mine_2" if folder == PLAYERS else load_provider(project, "mine_2")
    path.write_text("kept")
    assert "must not be there yet" in refusal(new_file, project, folder, "mine_2")
    assert path.read_text() == "kept"


@pytest.mark.parametrize("name", ["", "../x", "a b", "a.b", "_a", "a/b"])
def test_a_new_file_has_a_plain_name(project, name):
    before = sorted(project.rglob("*"))
    assert "name: " in refusal(new_file, project, PLAYERS, name)
    assert sorted(project.rglob("*")) == before


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("capabilities:\n  player_name: a\n  tokens_per_image: 0  # no\n", "{}  tokens_per_image: 7  # no\n"),
        ("capabilities: # c\n  player_name: a\n  x: 1\n", "{}  tokens_per_image: 7\n  x: 1\n"),
        ("capabilities:\n    x: 1\n", "capabilities:\n    tokens_per_image: 7\n    x: 1\n"),
        ("a: 1\ncapabilities:\nb: 2\n", "a: 1\ncapabilities:\n  tokens_per_image: 7\nb: 2\n"),
    ],
)
def test_the_measured_value_changes_one_line(text, expected):
    head = "".join(text.splitlines(keepends=True)[:2])
    assert with_tokens_per_image(text, 7, "x") == expected.format(head)


@pytest.mark.parametrize("name", config_names(ROOT / PLAYERS))
def test_the_measured_value_can_be_written_to_every_shipped_player(project, name):
    path = project / PLAYERS / f"{name}.yaml"
    before = path.read_text()
    path.write_text(with_tokens_per_image(before, 12345, "x"))
    assert load_player(project, name).capabilities.tokens_per_image == 12345
    changed = [line for line in path.read_text().splitlines() if line not in before.splitlines()]
    assert changed == ["  tokens_per_image: 12345"]


def test_a_deeper_key_of_that_name_is_left_alone():
    text = "capabilities:\n  player_name: a\n  deep:\n    tokens_per_image: 1\nmodel:\n  tokens_per_image: 2\n"
    changed = with_tokens_per_image(text, 7, "x")
    assert changed == text.replace("a\n", "a\n  tokens_per_image: 7\n", 1)


@pytest.mark.parametrize(("text", "tokens"), [("capabilities:\n", 0), ("capabilities:\n", -3), ("model:\n", 7)])
def test_no_value_is_written_where_there_is_none_or_no_place(text, tokens):
    assert refusal(with_tokens_per_image, text, tokens, "x").startswith("x: ")
