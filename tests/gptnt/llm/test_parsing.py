"""Reading answers: the table of what models write, and worse."""

import json

import pytest
from gptnt.llm.workbench import CLICK_A, DATA, DO_NOTHING, FLIP, SAY, reads, tagged
from hypothesis import given
from hypothesis import strategies as st
from rowproof.gptnt.llm.parsing import ERRORS, parse_command, parse_monologue, parse_tagged
from rowproof.gptnt.room import FEEDBACK

DEFUSER = {
    **{"role": "defuser", "is_playing_alone": False},
    **{"allow_magic_actions": False, "allow_lottery_actions": False},
}
EXPERT = DEFUSER | {"role": "expert"}
T, A1, A2 = "<thought>Think.</thought>", f"<action>{FLIP}</action>", f"<action>{SAY}</action>"

MIXED, ABSENT = "reasoning_mixed_with_untagged_text", "reasoning_absent"
NONE, SEVERAL, SPLIT = "action_not_present", "multiple_actions_present", "reasoning_split_across_blocks"
EARLY, AFTER = "action_placed_before_reasoning", "content_after_action_complete"
MALFORMED, FAILED = "malformed_tag_structure", "action_parsing_failed"


@pytest.mark.parametrize(
    ("answer", "thoughts", "action", "errors"),
    [
        # The published table.
        (f"{T}{A1}", "Think.", FLIP, []),
        (f"Well. {T}{A1}", "Well.\nThink.", FLIP, [MIXED]),
        (T, "Think.", None, [NONE]),
        (FLIP, None, FLIP, [ABSENT]),
        (f"{T}{A1}{A2}", "Think.", FLIP, [SEVERAL]),
        (f"<thought>Think.{A1}</thought>", "Think.", FLIP, [MALFORMED]),
        (f"{T}{A1} So.", "Think.", FLIP, [AFTER, MIXED]),
        (f"{A1}{T}", "Think.", FLIP, [EARLY, AFTER]),
        (f"<thought>{{thought}}</thought>{A1}", None, FLIP, [ABSENT, MALFORMED]),
        # Beyond it.
        (f"{T}\n\n{A1}\n", "Think.", FLIP, []),
        (f"<THOUGHT>Think.</Thought><ACTION>{FLIP}</action>", "Think.", FLIP, []),
        (f"<think>Think.</think>{A1}", "Think.", FLIP, []),
        ("", None, None, [ABSENT, NONE]),
        ("I do not know.", "I do not know.", None, [NONE]),
        (f"{T}<action></action>", "Think.", None, [NONE]),
        (f"{T}<action> </action>{A1}", "Think.", FLIP, []),
        (A1, None, FLIP, [ABSENT]),
        (f"Well. {A1}", "Well.", FLIP, [MIXED]),
        (f"{A1} So.", None, FLIP, [ABSENT, AFTER, MIXED]),
        (f"{T}{FLIP}", "Think.", FLIP, [MIXED]),
        (f"{T}{A1}<thought>More.</thought>{A2}", "Think.", FLIP, [AFTER, SEVERAL, SPLIT]),
        (f"{T}<thought>More.</thought>{A1}", "Think.\nMore.", FLIP, [SPLIT]),
        (f"<thought>Think. {A1} More.</thought>", "Think.", FLIP, [MALFORMED]),
        (f"<thought>Think.{A1}", "Think.", FLIP, [MALFORMED]),
        (f"{T}<action>{FLIP}", "Think.", FLIP, [MALFORMED]),
        (f"Think.</thought>{A1}", "Think.", FLIP, [MALFORMED]),
        (f"{T}{FLIP}</action>", "Think.", FLIP, [MALFORMED]),
        (f"<thought Think.</thought{A1}", "Think.", FLIP, [MALFORMED]),
        (f"{T}<action{FLIP}</action", "Think.", FLIP, [MALFORMED]),
        (f"<thought>{{Think.}}</thought>{A1}", "Think.", FLIP, [MALFORMED]),
        (f"<thought>{{{{your reasoning here}}}}</thought>{A1}", None, FLIP, [ABSENT, MALFORMED]),
        (f"{T}<action>```json\n{FLIP}\n```</action>", "Think.", FLIP, []),
        (f"{T}<action>{FLIP[:-2]}</action>", "Think.", FLIP, []),
        (f"{T}<action>{{action: 'flip'}}</action>", "Think.", FLIP, []),
        (f'{T}<action>{{"kind": "interact_game", "data": {{"action": "flip"}}}}</action>', "Think.", FLIP, []),
        (f'{T}<action>{{"action": "flip"}}</action>', "Think.", FLIP, []),
        (f"{T}<action>{{}}</action>", "Think.", DO_NOTHING, []),
        (f"{T}<action>flip</action>", "Think.", None, [FAILED]),
        (f'{T}<action>{{"action": "fly"}}</action>', "Think.", None, [FAILED]),
        (f'{T}<action>{{"action": "magic"}}</action>', "Think.", None, [FAILED]),
        (f'{T}<action>{{"action": "hold"}}</action>', "Think.", None, [FAILED]),
        (f"{T}<action>{'[' * 50_000}</action>", "Think.", None, [FAILED]),
        (f"{T}<action>{'{' * 5_000}</action>", "Think.", None, [FAILED]),
        ("I see {maybe} a wire", "I see {maybe} a wire", None, [NONE]),
    ],
)
def test_what_models_write(answer, thoughts, action, errors):
    parsed = parse_tagged(answer, DEFUSER)
    assert (parsed.thoughts, list(parsed.errors)) == (thoughts, errors)
    if action is None:
        assert parsed.output is None
    else:
        assert reads(parsed.output) == reads(DATA[action])


def test_what_a_role_may_not_do_was_not_read():
    assert parse_tagged(tagged(FLIP), EXPERT).errors == (FAILED,)
    assert parse_tagged(tagged(SAY), EXPERT).output == DATA[SAY]
    assert parse_tagged(tagged(SAY), DEFUSER | {"is_playing_alone": True}).errors == (FAILED,)


def test_quotes_inside_of_a_message_are_mended():
    parsed = parse_tagged(tagged('{"message": "it says "YES" on it"}'), DEFUSER)
    assert parsed.output == {"message": 'it says "YES" on it'}


def test_half_a_character_in_a_command_does_not_get_through():
    parsed = parse_tagged(tagged('{"message": "a \\ud83d b"}'), DEFUSER)
    assert parsed.output == {"message": "a � b"}


def test_every_error_has_a_sentence_for_the_player():
    assert set(ERRORS) <= set(FEEDBACK)


@pytest.mark.parametrize("text", ["", "none", "[]", "7", '"x"', "null", "<a>", "]}", "\x00"])
def test_no_object_is_no_command(text):
    assert parse_command(text) is None


@pytest.mark.parametrize(
    ("answer", "reasoning", "thoughts", "action", "errors"),
    [
        (FLIP, "Apart.", "Apart.", FLIP, []),
        (FLIP, None, None, FLIP, []),
        (f"<think>In a tag.</think>{FLIP}", None, "In a tag.", FLIP, []),
        (f"The tag was in the prompt.</think>{FLIP}", None, "The tag was in the prompt.", FLIP, []),
        (f"```json\n{CLICK_A}\n```", "Apart.", "Apart.", CLICK_A, []),
        (tagged(FLIP), None, "Hm.", FLIP, []),
        ("No.", "Apart.", "Apart.", None, [NONE]),
    ],
)
def test_reasoning_that_stands_apart(answer, reasoning, thoughts, action, errors):
    parsed = parse_monologue(answer, reasoning, DEFUSER)
    assert (parsed.thoughts, list(parsed.errors)) == (thoughts, errors)
    assert (parsed.output is None) if action is None else reads(parsed.output) == reads(DATA[action])


PARTS = st.sampled_from(
    [
        "<thought>",
        "</thought>",
        "<action>",
        "</action>",
        "<think",
        "</action",
        "{",
        "}",
        "{thought}",
        FLIP,
        "a",
        " ",
        "```",
    ]
)


@given(st.one_of(st.text(), st.lists(PARTS, max_size=8).map("".join)))
def test_whatever_comes_is_read_without_breaking(answer):
    parsed = parse_tagged(answer, DEFUSER)
    assert set(parsed.errors) <= set(ERRORS) and len(set(parsed.errors)) == len(parsed.errors)
    assert (parsed.output is None) == bool({NONE, FAILED} & set(parsed.errors))
    assert parsed.output is None or json.dumps(parsed.output)
