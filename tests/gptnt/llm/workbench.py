"""Players whose model is a function, and configurations put together by hand."""

import json

from gptnt.players.workbench import MANUAL
from rowproof.gptnt.capabilities import Capabilities, Identity, UsageLimits
from rowproof.gptnt.llm.player import LLMPlayer
from rowproof.gptnt.player_config import Player, PlayerModel, Provider, Settings
from rowproof.gptnt.players.turns import Setup, Turn, read_output
from rowproof.llm.calls import Reply, Usage

DO_NOTHING = '{"result": {"kind": "do_nothing", "data": {}}}'
FLIP = '{"result": {"kind": "interact_game", "data": {"action": "flip"}}}'
CLICK_A = '{"result": {"kind": "interact_game", "data": {"action": "click_release", "location": "A"}}}'
SAY = '{"result": {"kind": "send_message", "data": {"message": "Hi."}}}'
DATA = {text: json.loads(text) for text in (DO_NOTHING, FLIP, CLICK_A, SAY)}

OUT_LOUD = {"thinking_method": "thinking-out-loud", "structured_output_mode": None}
NATIVE = {"thinking_method": "inner-monologue", "structured_output_mode": "native"}


def tagged(action, thought="Hm."):
    return f"<thought>{thought}</thought><action>{action}</action>"


def capabilities(input_limit=None, **changes):
    given = {"player_name": "model", "player_type": "ai", "preserve_last_frame_for_n_turns": 1, **OUT_LOUD, **changes}
    return Capabilities(**given, usage_limits=UsageLimits(input_tokens_limit=input_limit))


def config(base_url="http://127.0.0.1:1/v1", settings=None, **changes):
    provider = Provider(base_url=base_url, api_key_variable="MODEL_KEY")
    identity = Identity(display_name="Model", organisation="nobody", is_os_model=True, url=None)
    model = PlayerModel(id="model-1", provider="here", settings=settings or Settings())
    return Player("model", capabilities(**changes), identity, model, provider)


def setup(role="defuser", alone=False, style="sync", manual=None, **changes):
    given = MANUAL if manual or (manual is None and (alone or role == "expert")) else None
    return Setup(role, alone, style, given, "workbench", 0, 0, **changes)


def seen(number=1, marks="AB"):
    """An observation: a face with a module per mark."""
    slots = [
        {
            "slot": index,
            "place": "upper left",
            "shows": "four square keys with strange symbols",
            "led": "off",
            "mark": m,
        }
        for index, m in enumerate(marks)
    ]
    return {
        **{"turn": number, "side": "front", "zoomed_in": False, "holding": False},
        "timer": {"display": "05:00", "strike_lights": 0, "strike_indicator": True},
        "slots": slots,
        "marks": dict.fromkeys(marks, "the module in the upper left"),
    }


def turn(number=1, *messages, role="defuser", alone=False, feedback=()):
    observation = seen(number) if role == "defuser" else None
    return Turn(number, 0 if observation else None, tuple(feedback), tuple(messages), alone, observation)


class Model:
    """Answers with texts, replies or errors in order; keeps the requests."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []

    def ask(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Reply(answer, usage=Usage(100, 10), seconds=1.25) if isinstance(answer, str) else answer


def player(*answers, set_up=None, sees="text", prices=None, pictures=None, **changes):
    """A configured player, and its model."""
    model = Model(*answers)
    made = LLMPlayer(config(**changes), lambda stream: model, sees=sees, prices=prices, pictures=pictures)
    made.configure(set_up or setup())
    return made, model


def reads(output, role="defuser", alone=False):
    """What the room makes of an output."""
    role = {"role": role, "is_playing_alone": alone, "allow_magic_actions": False, "allow_lottery_actions": False}
    return read_output(output, role)


def model_player(model, **changes):
    """A player that sees text, whoever its model is."""
    return LLMPlayer(config(**changes), lambda stream: model, sees="text")
