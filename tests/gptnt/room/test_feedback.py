"""Errors in answers: what becomes of the turn, what is recorded, and what the player is told."""

import pytest
from gptnt.players.workbench import MANUAL, WIRES, Puppet, game, seat, spec
from rowproof.gptnt.players.turns import Answer, AnswerError, Usage, do_nothing, interact_game, send_message
from rowproof.gptnt.room import FEEDBACK, REPHRASE, Provenance, Rules, play

KINDS = [
    *("action_not_present", "action_parsing_failed", "multiple_actions_present", "invalid_som_location"),
    *("out_of_bounds_coordinate", "reasoning_absent", "reasoning_split_across_blocks"),
    *("reasoning_mixed_with_untagged_text", "action_placed_before_reasoning", "content_after_action_complete"),
    *("malformed_tag_structure", "max_output_tokens_exceeded", "server_error", "unknown"),
]


def step(played, index=0, role="defuser"):
    return played.records[role]["steps"][index]


def once(answer):
    """A player that gives ``answer`` in its first turn, or raises it, and then waits."""

    def choose(turn):
        if turn.number > 1:
            return None
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Puppet(choose)


def test_every_kind_of_error_has_a_sentence_of_its_own():
    assert sorted(FEEDBACK) == sorted(KINDS)
    assert len(set(FEEDBACK.values())) == len(KINDS) and all(FEEDBACK.values())


@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_turn_is_recorded_with_its_cost_and_told(kind):
    puppet = once(AnswerError(kind, raw_output="<action>{", usage=Usage(output_tokens=1000, requests=1)))
    played = game(defuser=puppet)
    lost = step(played)
    assert (lost["output"], lost["output_kind"], lost["error_type"]) == ({}, "do_nothing", [kind])
    assert (lost["raw_output"], lost["usage"]["output_tokens"]) == ("<action>{", 1000)
    told = f"<execution-feedback>{FEEDBACK[kind]}</execution-feedback>"
    assert puppet.turns[1].text == f"{told}\n<no_new_messages>" and puppet.turns[2].feedback == ()
    assert played.valid


def test_a_refused_answer_asks_the_partner_to_rephrase_and_is_not_commented():
    expert = Puppet()
    defuser = once(AnswerError("guardrail_violation"))
    played = game(defuser=defuser, expert=expert)
    assert step(played)["output"] == {"message": REPHRASE} and step(played)["error_type"] == ["guardrail_violation"]
    assert expert.turns[0].messages == (REPHRASE,) and defuser.turns[1].feedback == ()


def test_alone_a_refused_answer_is_a_lost_turn():
    played = game(defuser=once(AnswerError("guardrail_violation")), alone=True)
    assert step(played)["output_kind"] == "do_nothing"


def test_errors_of_parsing_and_of_dispatch_are_both_kept():
    puppet = once(Answer(interact_game("click_release", "K"), errors=("reasoning_absent",)))
    played = game(defuser=puppet)
    assert step(played)["error_type"] == ["reasoning_absent", "invalid_som_location"]
    told = " ".join(FEEDBACK[kind] for kind in ("reasoning_absent", "invalid_som_location"))
    assert puppet.turns[1].feedback == (f"<execution-feedback>{told}</execution-feedback>",)


def test_errors_of_an_acting_turn_are_kept_and_the_action_is_done():
    puppet = once(
        Answer(interact_game("flip"), thoughts="Back.", raw_output="raw", errors=("multiple_actions_present",))
    )
    played = game(defuser=puppet)
    assert step(played)["error_type"] == ["multiple_actions_present"]
    assert (step(played)["thoughts"], step(played)["raw_output"]) == ("Back.", "raw")
    assert step(played, 1)["bomb_state"]["bombSide"] == "back" and puppet.turns[1].feedback


def test_feedback_stands_before_messages_and_never_takes_their_place():
    puppet = once(Answer(do_nothing(), errors=("reasoning_absent",)))
    game(defuser=puppet, expert=Puppet(lambda turn: send_message("one") if turn.number < 3 else None))
    assert puppet.turns[0].text == "<no_new_messages>"
    feedback, message = puppet.turns[1].text.split("\n")
    assert feedback.startswith("<execution-feedback>") and message == "one"
    assert puppet.turns[2].text == "one" and puppet.turns[3].text == "<no_new_messages>"


@pytest.mark.parametrize("told", [False, True])
def test_who_plays_alone_is_told_of_errors_only_if_the_room_says_so(told):
    puppet = once(Answer(do_nothing(), errors=("reasoning_absent",)))
    game(defuser=puppet, alone=True, rules=Rules(feedback_to_solo=told))
    assert bool(puppet.turns[1].text) is told


def test_a_player_may_do_without_feedback():
    puppet = once(Answer(do_nothing(), errors=("reasoning_absent",)))
    quiet = seat("scripted", puppet, enable_nobf_generation=False)
    played = play(spec(WIRES), quiet, seat("scripted"), MANUAL, Provenance("1.0.0"))
    assert puppet.turns[1].feedback == () and step(played)["error_type"] == ["reasoning_absent"]
