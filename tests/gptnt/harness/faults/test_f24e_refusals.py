"""Providers refused over a word, in ever new wordings; the refused exchange stayed, and was refused again."""

import re

import pytest
from gptnt.llm.workbench import FLIP, config, model_player, setup, tagged
from gptnt.players.workbench import Puppet, game
from rowproof.gptnt.llm.prompts import instructions, refusals
from rowproof.gptnt.players.turns import send_message
from rowproof.gptnt.room import REPHRASE
from rowproof.llm.calls import CallError, Reply

BAD = "the word that nobody may say"


class Touchy:
    """Refuses every request that holds the word, in one of the known wordings."""

    def __init__(self, phrase):
        self.phrase = phrase

    def ask(self, request):
        if any(BAD in message.text for message in request.messages):
            raise CallError("bad_request", "HTTP 400", status=400, raw=f"Sorry: {self.phrase.upper()}, really.")
        return Reply(tagged(FLIP))


@pytest.mark.parametrize("phrase", refusals())
def test_a_refused_exchange_is_left_out_and_the_partner_is_asked_to_rephrase(phrase):
    partner = Puppet(lambda turn: send_message(BAD) if turn.number == 1 else None)
    played = game(defuser=model_player(Touchy(phrase)), expert=partner)
    first, second, *later = played.records["defuser"]["steps"]
    assert first["error_type"] == [] and second["error_type"] == ["guardrail_violation"]
    assert second["output"] == {"message": REPHRASE} and partner.turns[1].messages == (REPHRASE,)
    assert all(step["error_type"] == [] for step in later)
    # What was refused can still be looked up.
    assert BAD in second["new_messages"][0]["content"]


def test_alone_there_is_nobody_to_ask():
    class Refusing:
        def ask(self, request):
            raise CallError("content_filter", "refused")

    played = game(defuser=model_player(Refusing()), alone=True)
    assert {step["output_kind"] for step in played.records["defuser"]["steps"][:-1]} == {"do_nothing"}


@pytest.mark.parametrize("role", ["defuser", "expert"])
def test_the_instructions_call_the_bomb_a_toy(role):
    text = instructions(setup(role), config().capabilities, "text")
    assert "toy device" in text and not re.search(r"explod|explosi|detonat|weapon|kill|blast", text)
