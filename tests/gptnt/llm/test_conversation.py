"""The conversation: order, what is pinned, what is dropped, and which pictures stay."""

import pytest
from gptnt.llm.workbench import capabilities
from rowproof.gptnt.llm.conversation import GONE, Conversation, Exchange, joined
from rowproof.llm.calls import Message, Picture


def exchange(name, tokens=0, pictures=0, pinned=False):
    parts = (f"{name}?", *(Picture(f"{name}{i}".encode()) for i in range(pictures)))
    return Exchange((Message("user", parts), Message("assistant", (f"{name}!",))), pinned, tokens)


def conversation(*exchanges, **changes):
    made = Conversation(capabilities(**changes))
    for one in exchanges:
        made.add(one)
    return made


def texts(rendered):
    return [message.text for message in rendered.messages if message.role == "user"]


def pictures(rendered):
    return [picture.data.decode() for message in rendered.messages for picture in message.pictures]


# 400 tokens of text each; with four characters per token.
LONG = "x" * 1600


def long(name, tokens=0, **changes):
    return Exchange((Message("user", (name + LONG[len(name) :],)),), input_tokens=tokens, **changes)


def test_the_budget():
    # 0.9 of the limit, less one picture more than a request may hold.
    made = conversation(input_limit=10_000, tokens_per_image=100, max_observations_per_request=16)
    assert made.budget == 9000 - 17 * 100
    assert conversation(tokens_per_image=100).budget is None


def test_nothing_is_dropped_without_a_limit_or_with_room():
    for made in (
        conversation(exchange("a", 10**9)),
        conversation(exchange("a"), exchange("b", 900), input_limit=1000),
    ):
        assert made.render().dropped == 0


def test_the_oldest_are_dropped_until_the_rest_fits():
    # Budget 900, counted 1700: two exchanges of 400 make it 900.
    made = conversation(long("a"), long("b"), long("c"), long("d", 1700), input_limit=1000)
    rendered = made.render()
    assert rendered.dropped == 2 and rendered.messages[0].text[0] == "c" and len(made.exchanges) == 4


@pytest.mark.parametrize(("counted", "dropped"), [(900, 0), (901, 1), (1300, 1), (1301, 2)])
def test_the_edges_of_the_budget(counted, dropped):
    made = conversation(long("a"), long("b"), long("c", counted), input_limit=1000)
    assert made.render().dropped == dropped


def test_what_was_dropped_stays_out_and_is_counted_once():
    made = conversation(long("a"), long("b"), long("c", 1300), input_limit=1000)
    assert made.render().dropped == 1
    # The next count no longer holds what was dropped.
    made.add(exchange("d", 905))
    again = made.render()
    assert again.dropped == 1 and "a" not in "".join(message.text[0] for message in again.messages)
    made.add(exchange("e", 600))
    assert made.render().dropped == 0 and len(made.render().messages) == 4


def test_pinned_exchanges_and_the_newest_are_never_dropped():
    made = conversation(long("a", pinned=True), long("b"), long("c", 10**6), input_limit=1000)
    rendered = made.render()
    assert rendered.dropped == 1
    assert [text[0] for text in rendered.messages[0].parts] == ["a", "c"]


def test_a_turn_that_was_not_counted_is_estimated():
    made = conversation(long("a"), long("b", 800), long("c"), input_limit=1000)
    assert made.render().dropped == 1
    assert conversation(long("a"), long("b"), long("c"), input_limit=1000).render().dropped == 1


def test_sizes_count_the_pictures_that_are_shown():
    made = conversation(
        exchange("a", pictures=3, pinned=True),
        exchange("b", pictures=3),
        exchange("c", pictures=3),
        tokens_per_image=100,
        preserve_last_frame_for_n_turns=1,
    )
    # Four characters of text each.
    assert [made.size(index) for index in range(3)] == [1 + 300, 1, 1 + 100]


@pytest.mark.parametrize(("window", "kept"), [(0, []), (1, ["c1"]), (2, ["b1", "c1"]), (9, ["a1", "b1", "c1"])])
def test_the_last_picture_of_the_last_turns_is_kept(window, kept):
    made = conversation(*(exchange(n, pictures=2) for n in "abc"), preserve_last_frame_for_n_turns=window)
    assert pictures(made.render()) == kept
    assert texts(made.render()) == ["a?", "b?", "c?"]


def test_pictures_that_are_pinned_are_all_kept():
    made = conversation(exchange("a", pictures=2, pinned=True), exchange("b", pictures=2))
    assert pictures(made.render()) == ["a0", "a1", "b1"]


def test_the_bytes_of_old_pictures_are_let_go_and_rendering_changes_nothing():
    made = conversation(exchange("a", pictures=2), exchange("b", pictures=2))
    held = [picture for one in made.exchanges for message in one.messages for picture in message.pictures]
    assert [picture.data for picture in held] == [b"b0", b"b1"]
    before = list(made.exchanges)
    made.render()
    assert made.exchanges == before


def test_a_message_of_pictures_alone_keeps_its_place():
    picture = Message("user", (Picture(b"x"),))
    made = conversation(*[Exchange((picture, Message("assistant", ("ok",))))] * 2)
    assert [message.parts for message in made.render().messages] == [
        (GONE,),
        ("ok",),
        (Picture(b"x"),),
        ("ok",),
    ]


def test_neighbours_of_one_role_are_joined_and_empty_ones_left_out():
    messages = [
        *(Message("user", ("a",)), Message("assistant", ("",)), Message("user", ("b", Picture(b"x")))),
        *(Message("assistant", ("c", " ")), Message("user", ())),
    ]
    assert joined(messages) == (Message("user", ("a", "b", Picture(b"x"))), Message("assistant", ("c",)))
