"""Specs and games put together by hand."""

from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.manual import Manual
from rowproof.gptnt.players.scripts import player_for
from rowproof.gptnt.players.turns import Answer, Setup, Turn, do_nothing, send_message
from rowproof.gptnt.room import Provenance, Rules, Seat, play

MANUAL = Manual.read()
WIRES = Mission(234, 81, ("Wires",), 2, force_modules_to_front=True)


def protocol(role="defuser", style="sync", alone=False, manual=None, **flags):
    """A protocol as plain data; by default the Expert has the manual, and whoever is alone."""
    return {
        "role": role,
        "communication_style": style,
        "is_playing_alone": alone,
        "include_manual": (alone or role == "expert") if manual is None else manual,
        "receive_feedback_after_action": False,
        "allow_magic_actions": False,
        "allow_lottery_actions": False,
        "allow_message_output": not alone,
    } | flags


def spec(mission=WIRES, style="sync", alone=False, defuser="scripted", expert="scripted", manual=None, **flags):
    return {
        "mission_spec": mission.wire_data(),
        "mission_set": "workbench",
        "attempt": 1,
        "suite_name": "workbench",
        "suite_revision": 1,
        "defuser_protocol": protocol("defuser", style, alone, manual, **flags),
        "defuser_name": defuser,
        "expert_protocol": None if alone else protocol("expert", style),
        "expert_name": None if alone else expert,
    }


def seat(name, player=None, **capabilities):
    return Seat(name, player or player_for(name), {"player_name": name} | capabilities)


def game(mission=WIRES, *, defuser=None, expert=None, rules=None, names=("scripted", "scripted"), **settings):
    """Play one game; players are given or built by their names."""
    request = spec(mission, defuser=names[0], expert=names[1], **settings)
    return play(
        request,
        seat(names[0], defuser),
        None if request["expert_name"] is None else seat(names[1], expert),
        MANUAL,
        Provenance("1.0.0"),
        rules or Rules(),
    )


def setup(role="defuser", alone=False, style="sync", manual=MANUAL, latency_ms=0, stream="workbench"):
    return Setup(role, alone, style, manual, stream, 0, latency_ms)


def heard(*messages, number=1):
    """A turn of the Expert."""
    return Turn(number, None, (), messages, False, None)


class Puppet:
    """Says and does what a function of the turn returns: an output, an answer, or None for nothing."""

    def __init__(self, choose=lambda turn: None, reflect=lambda task: Answer(send_message("So be it."))):
        self.choose = choose
        self.look_back = reflect
        self.turns = []
        self.tasks = []
        self.setup = None

    def configure(self, setup):
        self.setup = setup

    def turn(self, turn):
        self.turns.append(turn)
        chosen = self.choose(turn)
        return chosen if isinstance(chosen, Answer) else Answer(chosen if chosen is not None else do_nothing())

    def reflect(self, task):
        self.tasks.append(task)
        return self.look_back(task)
