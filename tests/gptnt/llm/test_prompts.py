"""What players are told: which pieces, in which order, with which values."""

import json
import re

import pytest
from gptnt.llm.workbench import NATIVE, capabilities, setup
from gptnt.players.workbench import MANUAL
from rowproof.errors import ConfigError
from rowproof.gptnt.bomb.components import MODULES
from rowproof.gptnt.llm.prompts import FOLDER, instructions, piece, pieces, refusals
from rowproof.gptnt.llm.schema import output_schema

COORDINATES = {"interaction_location_method": "coordinates"}
SETUPS = {
    "expert": setup("expert"),
    "defuser": setup("defuser"),
    "async": setup("defuser", style="async"),
    "solo": setup("defuser", alone=True),
    "solo-unread": setup("defuser", alone=True, manual=False),
}


def chosen(name, sees="images", **changes):
    return pieces(SETUPS[name], capabilities(**changes), sees)


def test_an_expert():
    assert chosen("expert") == [
        *("scenario-cooperative", "role-expert", "reasoning-out-loud", "mechanics-expert"),
        *("commands", "command-nothing", "command-message"),
        *("requirements", "requirements-communication-expert", "requirements-completion-expert"),
        "requirements-format-tagged",
    ]


def test_a_defuser():
    assert chosen("defuser") == [
        *("scenario-cooperative", "role-defuser", "reasoning-out-loud"),
        *("mechanics-defuser-sync", "mechanics-images", "location-marks"),
        *("commands", "command-nothing", "command-message", "command-game", "command-game-marks"),
        *("requirements", "requirements-actions", "requirements-actions-marks", "requirements-observation-images"),
        *("requirements-communication-defuser", "requirements-completion-defuser", "requirements-format-tagged"),
    ]


@pytest.mark.parametrize(
    ("name", "settings", "added", "removed"),
    [
        ("async", {}, {"mechanics-defuser-async", "requirements-real-time"}, {"mechanics-defuser-sync"}),
        (
            "solo",
            {},
            {"scenario-solo", "role-solo-with-manual"},
            {"scenario-cooperative", "role-defuser", "command-message", "requirements-communication-defuser"},
        ),
        (
            "solo-unread",
            {},
            {"scenario-solo", "role-solo-without-manual"},
            {"scenario-cooperative", "role-defuser", "command-message", "requirements-communication-defuser"},
        ),
        (
            "defuser",
            {"sees": "text"},
            {"mechanics-text", "requirements-observation-text"},
            {"mechanics-images", "requirements-observation-images"},
        ),
        (
            "defuser",
            NATIVE,
            {"reasoning-inner-monologue", "requirements-format-structured"},
            {"reasoning-out-loud", "requirements-format-tagged"},
        ),
        (
            "defuser",
            COORDINATES,
            {"location-absolute", "command-game-coordinates", "requirements-actions-coordinates"},
            {"location-marks", "command-game-marks", "requirements-actions-marks"},
        ),
        (
            "defuser",
            COORDINATES | {"coordinate_mode": "normalised"},
            {"location-normalised", "command-game-coordinates", "requirements-actions-coordinates"},
            {"location-marks", "command-game-marks", "requirements-actions-marks"},
        ),
    ],
)
def test_what_changes(name, settings, added, removed):
    usual, found = set(chosen("defuser")), set(chosen(name, **settings))
    assert (found - usual, usual - found) == (added, removed)


@pytest.mark.parametrize("sees", ["images", "text", "json"])
@pytest.mark.parametrize("changes", [{}, NATIVE, COORDINATES, COORDINATES | {"coordinate_mode": "normalised"}])
@pytest.mark.parametrize("name", SETUPS)
def test_every_text_can_be_put_together_and_no_place_is_left_open(name, changes, sees):
    text = instructions(SETUPS[name], capabilities(include_schema_in_instructions=False, **changes), sees)
    assert not re.search(r"\{[a-z_]+\}", text)
    for command in re.findall(r"^\{.*\}$", text, re.MULTILINE):
        assert set(json.loads(command)["result"]) == {"kind", "data"}


def test_values_are_filled_in():
    size = {"image_dimensions": {"width": 504, "height": 400}}
    text = instructions(setup(step_ms=4500), capabilities(**COORDINATES, **size), "images")
    assert "takes 4.5 seconds" in text and "504 pixels wide and 400 pixels\nhigh" in text and "0 to 399" in text


@pytest.mark.parametrize("name", ["defuser", "async", "solo", "solo-unread"])
def test_the_defuser_is_told_no_rules_and_no_names(name):
    text = instructions(SETUPS[name], capabilities(), "text").lower()
    names = {page.title.lower() for page in MANUAL.pages.values() if page.looks}
    words = {re.sub(r"(?<!^)(?=[A-Z])", " ", module).lower() for module in MODULES}
    # A word of everyday language that is a name as well.
    assert not [word for word in (names | words) - {"the button", "big button", "wires", "memory"} if word in text]


def test_no_piece_is_superfluous():
    used = {"schema", "manual", "reflection"}
    for name in SETUPS:
        for changes in ({}, NATIVE, COORDINATES, COORDINATES | {"coordinate_mode": "normalised"}):
            for sees in ("images", "text"):
                used |= set(chosen(name, sees, **changes))
    assert used == {path.stem for path in FOLDER.glob("*.md")}


def test_a_missing_piece_is_named():
    with pytest.raises(ConfigError, match=r"prompts/no-such-piece\.md: must be a readable piece"):
        piece("no-such-piece")


def test_refusals_are_in_lower_case():
    assert refusals() and all(phrase == phrase.lower() and phrase.strip() for phrase in refusals())


# ---- schema ----------------------------------------------------------------------------------------------------


def test_the_schema_follows_if_it_is_to_be_shown():
    shown = instructions(SETUPS["defuser"], capabilities(), "text")
    hidden = instructions(SETUPS["defuser"], capabilities(include_schema_in_instructions=False), "text")
    assert shown.startswith(hidden)
    assert json.loads(shown.splitlines()[-1]) == output_schema(SETUPS["defuser"], capabilities())


def kinds(set_up, **changes):
    options = output_schema(set_up, capabilities(**changes))["properties"]["result"]["anyOf"]
    return [option["properties"]["kind"]["enum"][0] for option in options], options


def test_what_is_allowed_follows_the_role():
    assert kinds(SETUPS["expert"])[0] == ["do_nothing", "send_message"]
    assert kinds(SETUPS["solo"])[0] == ["do_nothing", "interact_game", "interact_game"]
    allowed = kinds(setup(magic=True, lottery=True))[0]
    assert allowed[4:] == ["perform_magic", "perform_lottery"]


def test_locations_follow_the_way_of_pointing():
    def location(**changes):
        return kinds(SETUPS["defuser"], **changes)[1][-1]["properties"]["data"]["properties"]["location"]

    assert location()["enum"][::25] == ["A", "Z"]
    assert location(**COORDINATES)["properties"]["y_pos"]["maximum"] == 479
    assert location(**COORDINATES, coordinate_mode="normalised")["properties"]["y_pos"]["maximum"] == 1000


def test_every_object_of_the_schema_is_closed():
    def check(value):
        if isinstance(value, dict):
            if value.get("type") == "object":
                assert value["additionalProperties"] is False and value["required"] == list(value["properties"])
            for item in value.values():
                check(item)
        elif isinstance(value, list):
            for item in value:
                check(item)

    check(output_schema(setup(magic=True, lottery=True), capabilities(**COORDINATES)))
