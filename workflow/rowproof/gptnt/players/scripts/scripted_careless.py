"""``scripted-careless``: the scripted player that slips."""

from collections.abc import Mapping

from rowproof.gptnt.players.scripted import Scripted
from rowproof.gptnt.players.turns import Answer, Player, Turn, interact_game, send_message
from rowproof.gptnt.players.weakness import Weak


class Careless(Weak):
    """Takes hold of the wrong element, or says a wrong word."""

    weakness = "careless"

    def turn(self, turn: Turn) -> Answer:
        """The answer with a slip now and then."""
        answer = self._player.turn(turn)
        result = answer.output.get("result", {})
        data = result.get("data", {}) if isinstance(result, Mapping) else {}
        if "message" in data and self._lapses():
            return answer._replace(output=send_message(self._misheard(data["message"])))
        if "location" in data and turn.observation is not None:
            others = [mark for mark in turn.observation["marks"] if mark != data["location"]]
            if others and self._lapses():
                return answer._replace(output=interact_game(data["action"], self._pick(others)))
        return answer


def player() -> Player:
    """A new player."""
    return Careless(Scripted())
