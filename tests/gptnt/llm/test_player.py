"""One turn of a model: what is sent, what is read, and what becomes of calls that fail."""

import io

import pytest
from gptnt.llm.workbench import CLICK_A, DATA, FLIP, NATIVE, SAY, config, player, reads, seen, setup, tagged, turn
from gptnt.players.workbench import MANUAL, WIRES
from PIL import Image
from rowproof.errors import ConfigError
from rowproof.gptnt import rendering
from rowproof.gptnt.bomb.bomb import build
from rowproof.gptnt.bomb.observation import look, text
from rowproof.gptnt.llm.player import NO_REFLECTION, REFLECTION_TOKENS, LLMPlayer, Spent
from rowproof.gptnt.player_config import Settings
from rowproof.gptnt.players.turns import Action, AnswerError, Usage, do_nothing, interact_game, send_message
from rowproof.llm import calls
from rowproof.llm.calls import CallError, Picture, Reply
from rowproof.llm.cassette import CassetteMiss
from rowproof.llm.cost import Prices
from rowproof.records import encode_line


def lost(asked, given=None):
    with pytest.raises(AnswerError) as caught:
        asked.turn(given or turn())
    return caught.value


def sent(request):
    """The conversation of a request as roles and texts, without the system text."""
    return [(message.role, message.text) for message in request.messages[1:]]


# ---- requests --------------------------------------------------------------------------------------------------


def test_a_turn_with_text_for_a_defuser():
    one, model = player(tagged(FLIP))
    answer = one.turn(turn(1, "Hello."))
    (request,) = model.requests
    assert request.model == "model-1"
    assert request.parameters == {"max_completion_tokens": 1000, "temperature": 0.6}
    assert [message.role for message in request.messages] == ["system", "user"]
    assert request.messages[1].parts == ("Hello.", text(seen(1)))
    assert answer.output == DATA[FLIP] and answer.thoughts == "Hm." and answer.raw_output == tagged(FLIP)
    assert answer.usage == Usage(100, 10, requests=1) and answer.latency_ms == 1250 and answer.errors == ()
    assert [entry["role"] for entry in answer.input_messages] == ["system"]
    assert answer.new_messages == [
        {"role": "user", "content": f"Hello.\n\n{text(seen(1))}"},
        {"role": "assistant", "content": tagged(FLIP)},
    ]


def test_the_conversation_goes_on():
    one, model = player(tagged(FLIP), tagged(CLICK_A), tagged(SAY))
    for number in (1, 2, 3):
        answer = one.turn(turn(number, f"Message {number}."))
    assert [role for role, _ in sent(model.requests[2])] == ["user", "assistant"] * 2 + ["user"]
    assert sent(model.requests[2])[:4] == [*sent(model.requests[1]), ("assistant", tagged(CLICK_A))]
    assert len(answer.input_messages) == 5


def test_a_new_game_is_a_new_conversation():
    one, model = player(tagged(FLIP), tagged(FLIP))
    one.turn(turn())
    one.configure(setup())
    one.turn(turn())
    assert model.requests[0] == model.requests[1]


def test_the_expert_reads_the_manual_first_and_sees_no_bomb():
    one, model = player(tagged(SAY), tagged(SAY), set_up=setup("expert"))
    for number in (1, 2):
        one.turn(turn(number, "Four keys.", role="expert"))
    # Without an answer between them manual and first message are one.
    (first, manual), second = model.requests[1].messages[0:2], model.requests[0].messages[1]
    assert first.role == "system" and manual == second
    assert manual.parts[1:17] == tuple(page.text for page in MANUAL.pages.values()) and manual.parts[17] == "Four keys."


def test_the_bomb_as_json():
    one, model = player(tagged(FLIP), sees="json")
    one.turn(turn())
    assert model.requests[0].messages[1].parts[1] == encode_line(seen(1))


def test_the_bomb_in_pictures():
    one, model = player(tagged(FLIP), tagged(FLIP), sees="images", pictures=lambda seen: [b"one", b"two"])
    answer = one.turn(turn())
    assert model.requests[0].messages[1].parts == ("<no_new_messages>", Picture(b"one"), Picture(b"two"))
    assert answer.new_messages[0]["content"][1:] == [{"image": Picture(data).sha256} for data in (b"one", b"two")]
    one.turn(turn(2))
    # Of the turn before, the last picture.
    assert model.requests[1].messages[1].parts == ("<no_new_messages>", Picture(b"two"))


def test_pictures_are_drawn_in_the_size_of_the_player():
    one, model = player(tagged(FLIP), sees="images", image_dimensions={"width": 320, "height": 200})
    one.turn(turn()._replace(observation=look(build(WIRES), 1)))
    (picture,) = model.requests[0].messages[1].pictures
    assert Image.open(io.BytesIO(picture.data)).size == (320, 200)
    assert picture.data == rendering.render_marks(look(build(WIRES), 1), (320, 200))


def test_settings_are_sent():
    settings = Settings(max_tokens=7, temperature=0.0, reasoning_effort="low", extra_body={"top_k": 3})
    one, model = player(tagged(FLIP), settings=settings)
    one.turn(turn())
    assert model.requests[0].parameters == {
        **{"max_completion_tokens": 7, "temperature": 0.0},
        **{"reasoning_effort": "low", "extra_body": {"top_k": 3}},
    }


def test_a_schema_for_the_server():
    one, model = player(FLIP, **NATIVE)
    assert one.turn(turn()).output == DATA[FLIP]
    form = model.requests[0].parameters["response_format"]
    assert form["type"] == "json_schema" and form["json_schema"]["strict"] is True


def test_a_call_of_a_tool_becomes_plain_text():
    reply = Reply("", tool_arguments=(FLIP,), reasoning="Back.", usage=calls.Usage(1, 1))
    one, model = player(reply, FLIP, **NATIVE | {"structured_output_mode": "tool"})
    answer = one.turn(turn())
    assert (answer.output, answer.thoughts, answer.errors) == (DATA[FLIP], "Back.", ())
    one.turn(turn(2))
    assert sent(model.requests[1])[1] == ("assistant", FLIP)
    assert model.requests[0].parameters["tool_choice"]["function"]["name"] == "answer"


def test_exchanges_are_dropped_when_there_is_no_room():
    replies = [Reply(tagged(FLIP), usage=calls.Usage(tokens, 10)) for tokens in (400, 800, 1000, 10)]
    one, model = player(*replies, input_limit=1000)
    dropped = [one.turn(turn(number)).num_prompt_truncations for number in (1, 2, 3, 4)]
    assert dropped[:3] == [0, 0, 0] and dropped[3] >= 1
    assert len(model.requests[3].messages) == len(model.requests[2].messages) + 2 - 2 * dropped[3]


# ---- answers that cost a turn ----------------------------------------------------------------------------------


def test_an_answer_that_was_cut_off_is_lost_even_if_it_can_be_read():
    one, model = player(Reply(tagged(FLIP), finish_reason="length", usage=calls.Usage(100, 1000)), tagged(FLIP))
    error = lost(one)
    assert error.errors == ("max_output_tokens_exceeded",)
    assert error.answer.usage.output_tokens == 1000 and error.answer.raw_output == tagged(FLIP)
    one.turn(turn(2))
    assert sent(model.requests[1])[1] == ("assistant", tagged(FLIP))


def test_what_cannot_be_read_is_kept_with_its_thoughts():
    one, model = player("<thought>Hm.</thought>", tagged(FLIP))
    error = lost(one)
    assert error.errors == ("action_not_present",)
    assert (error.answer.thoughts, error.answer.raw_output) == ("Hm.", "<thought>Hm.</thought>")
    one.turn(turn(2))
    assert sent(model.requests[1])[1] == ("assistant", "<thought>Hm.</thought>")


def test_errors_that_cost_nothing_come_with_the_action():
    one, _ = player(FLIP)
    answer = one.turn(turn())
    assert answer.output == DATA[FLIP] and answer.errors == ("reasoning_absent",)


def test_where_the_server_keeps_the_form_the_error_is_unknown():
    one, _ = player("no JSON", **NATIVE)
    assert lost(one).errors == ("unknown",)


REFUSED = Reply("I'm sorry, but I can't assist with that.", usage=calls.Usage(50, 9))


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (CallError("content_filter", "x", usage=calls.Usage(7, 3)), "guardrail_violation"),
        (CallError("bad_request", "x", raw="See our Usage Policies."), "guardrail_violation"),
        (REFUSED, "guardrail_violation"),
        (CallError("bad_request", "x", raw="You exceeded your quota."), "server_error"),
        (CallError("bad_request", "x", raw="RESOURCE_EXHAUSTED"), "server_error"),
        (CallError("rate_limited", "x", retries={"rate_limited": 4}), "server_error"),
        (CallError("timed_out", "x"), "server_error"),
        (CallError("server_error", "x", status=500), "server_error"),
        (CallError("bad_request", "x", status=400, raw="what?"), "unknown"),
    ],
)
def test_calls_that_fail_cost_a_turn(answer, kind):
    one, model = player(answer, tagged(FLIP))
    error = lost(one, turn(1, "first"))
    assert error.errors == (kind,)
    one.turn(turn(2, "second"))
    conversation = sent(model.requests[1])
    # What was refused is not sent again; no answer is ever made up.
    assert [role for role, _ in conversation] == ["user"]
    assert ("first" in conversation[0][1]) == (kind != "guardrail_violation")


def test_an_action_in_words_of_a_refusal_is_an_action():
    message = '{"message": "I cannot help with that wire yet."}'
    one, _ = player(tagged(message))
    assert one.turn(turn()).output == {"message": "I cannot help with that wire yet."}


@pytest.mark.parametrize("error", [CallError("authentication", "no"), CassetteMiss("no"), RuntimeError("no")])
def test_what_nobody_can_recover_from_is_passed_on(error):
    one, _ = player(error)
    with pytest.raises(type(error)):
        one.turn(turn())


# ---- coordinates -----------------------------------------------------------------------------------------------

BOMB = look(build(WIRES), 1)
SIZE = (320, 200)


def centre(mark):
    rows, columns = rendering.masks(BOMB, SIZE)[mark].nonzero()
    return int(columns.mean()), int(rows.mean())


@pytest.mark.parametrize("mode", ["absolute", "normalised"])
@pytest.mark.parametrize(
    ("point", "output", "error"),
    [
        ("centre", {"data": interact_game("hold", "A")["result"]["data"]}, None),
        ("corner", do_nothing(), None),
        ("outside", None, "out_of_bounds_coordinate"),
        ("negative", None, "out_of_bounds_coordinate"),
        ("half", None, "action_parsing_failed"),
        ("letter", None, "action_parsing_failed"),
    ],
)
def test_coordinates_become_marks(mode, point, output, error):
    x, y = centre("A")
    if mode == "normalised":
        x, y = round(x * 1000 / SIZE[0]), round(y * 1000 / SIZE[1])
    points = {
        "centre": {"x_pos": x, "y_pos": y},
        "corner": [0, 0],
        "outside": {"x": 320 if mode == "absolute" else 1001, "y": 0},
        "negative": [-1, 5],
        "half": {"x_pos": 5},
        "letter": "A",
    }
    command = encode_line({"action": "hold", "location": points[point]})
    one, _ = player(
        *(tagged(command),),
        sees="images",
        pictures=lambda seen: [b"x"],
        image_dimensions={"width": SIZE[0], "height": SIZE[1]},
        interaction_location_method="coordinates",
        coordinate_mode=mode,
    )
    given = turn()._replace(observation=BOMB)
    if error is None:
        assert one.turn(given).output == output
        assert point != "centre" or reads(output)[0] == Action("game_action", action="hold", location="A")
    else:
        assert lost(one, given).errors == (error,)


def test_who_points_into_pictures_must_see_them():
    with pytest.raises(ConfigError, match="must be shown images to point at coordinates, found text"):
        player(sees="text", interaction_location_method="coordinates")


# ---- look back -------------------------------------------------------------------------------------------------


def test_a_look_back_has_a_limit_of_its_own_and_no_schema():
    one, model = player(SAY, **NATIVE)
    answer = one.reflect("The bomb was defused. Look back.")
    assert answer.output == send_message("Hi.") and answer.errors == ()
    assert model.requests[0].parameters == {"max_completion_tokens": REFLECTION_TOKENS, "temperature": 0.6}
    assert model.requests[0].messages[-1].text.startswith("The bomb was defused. Look back.")


@pytest.mark.parametrize(
    ("answer", "message", "errors"),
    [
        (tagged('{"message": "It went well."}'), "It went well.", ()),
        ("It went well.", "It went well.", ("action_not_present",)),
        (Reply("It went", finish_reason="length"), "It went", ("max_output_tokens_exceeded",)),
        (Reply("", raw="{}"), NO_REFLECTION, ("reasoning_absent", "action_not_present")),
        (CallError("timed_out", "x"), NO_REFLECTION, ("server_error",)),
    ],
)
def test_a_look_back_is_kept_whatever_it_is(answer, message, errors):
    one, _ = player(answer, set_up=setup(alone=True))
    found = one.reflect("Look back.")
    assert (found.output, found.errors) == (send_message(message), errors)


# ---- costs -----------------------------------------------------------------------------------------------------


def test_costs_of_a_game_are_counted_as_far_as_they_are_known():
    prices = Prices(input_per_million=10.0, output_per_million=100.0)
    failed = CallError("content_filter", "x", usage=calls.Usage(1000, 0))
    one, _ = player(tagged(FLIP), failed, CallError("timed_out", "x"), prices=prices)
    one.turn(turn())
    for number in (2, 3):
        lost(one, turn(number))
    assert one.spent == Spent(pytest.approx(0.002 + 0.01), 1)
    one.configure(setup())
    assert one.spent == Spent(0.0, 0)
    unpriced, _ = player(tagged(FLIP))
    unpriced.turn(turn())
    assert unpriced.spent == Spent(None, 1)


def test_a_script_is_no_model():
    scripted = config()
    object.__setattr__(scripted, "model", type(scripted.model)(script="scripted"))
    with pytest.raises(ConfigError, match="must have a model, found the script scripted"):
        LLMPlayer(scripted, lambda stream: None)
