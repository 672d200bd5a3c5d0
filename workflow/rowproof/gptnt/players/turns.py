"""What a player is given and what it gives back, whoever it is."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from rowproof.gptnt.bomb.bomb import ACTIONS, MARK_ACTIONS
from rowproof.gptnt.manual import Manual

DEFUSER, EXPERT = "defuser", "expert"
SYNC, ASYNC = "sync", "async"
NO_NEW_MESSAGES = "<no_new_messages>"

# The kinds of an answer in the records.
DO_NOTHING, SEND_MESSAGE, GAME_ACTION, REFLECTION = "do_nothing", "send_message", "game_action", "reflection"
MAGIC, LOTTERY = "magic", "lottery"

# Errors that are set here; a model's client and its parser know more.
UNKNOWN, INVALID_LOCATION, GUARDRAIL = "unknown", "invalid_som_location", "guardrail_violation"

_NAMES = {wire: name for name, wire in ACTIONS.items()} | {name: name for name in ACTIONS}


class Setup(NamedTuple):
    """What a player learns before a game.

    Attributes:
        role: ``defuser`` or ``expert``.
        alone: there is no partner.
        style: ``sync`` (an answer costs one step of game time) or ``async`` (game time runs while a player thinks).
        manual: the manual, if the role has it.
        stream: root of the names of this player's random streams; no other player and no other game has it.
        seed: root seed of these streams.
        latency_ms: what an answer takes in asynchronous play unless it says otherwise; 0 in synchronous play.
        step_ms: game time of one turn of the Defuser in synchronous play.
        magic: the Defuser may let the room do what is right.
        lottery: the Defuser may let the room do something random.
    """

    role: str
    alone: bool
    style: str
    manual: Manual | None
    stream: str
    seed: int
    latency_ms: int
    step_ms: int = 3000
    magic: bool = False
    lottery: bool = False


class Turn(NamedTuple):
    """What a player is given in one turn.

    Attributes:
        number: of the player's turns, from 1.
        elapsed_ms: game time since the start, as the Defuser can count it; None for the Expert, who has no clock.
        feedback: lines about errors in the last answer.
        messages: of the partner since the last turn, in the order of their arrival.
        alone: there is no partner.
        observation: what the Defuser sees (:func:`rowproof.gptnt.bomb.observation.look`); None for the Expert.
    """

    number: int
    elapsed_ms: int | None
    feedback: tuple[str, ...]
    messages: tuple[str, ...]
    alone: bool
    observation: dict[str, Any] | None

    @property
    def text(self) -> str | None:
        """Feedback, messages, or a mark that there are none, line by line; None if a lone player has no feedback."""
        lines = [*self.feedback, *self.messages]
        if not self.alone and not self.messages:
            lines.append(NO_NEW_MESSAGES)
        return "\n".join(lines) or None


class Usage(NamedTuple):
    """Tokens and requests that an answer cost; the other counts of the records are sub-counts or zero."""

    input_tokens: int = 0
    output_tokens: int = 0
    requests: int = 0
    cache_write_tokens: int = 0
    cache_read_tokens: int = 0
    input_audio_tokens: int = 0
    cache_audio_read_tokens: int = 0
    output_audio_tokens: int = 0
    tool_calls: int = 0
    details: tuple[tuple[str, int], ...] = ()


# What a scripted player reports, always: it must not look like a model that was called.
SCRIPTED_USAGE = Usage(input_tokens=1, output_tokens=1, requests=1)


class Answer(NamedTuple):
    """What a player gives back.

    Attributes:
        output: ``{"result": {"kind": ..., "data": ...}}``, or the data alone.
        thoughts: kept apart from the output.
        raw_output: the text that the output was read from.
        errors: kinds of errors that did not cost the turn.
        usage: what the answer cost.
        latency_ms: how long it took, in asynchronous play; None for what is usual in the room.
        input_messages: the conversation before this turn as a model was sent it, plain data; None if there is none.
        new_messages: what this turn adds to it, plain data; None for the text of the turn.
        num_prompt_truncations: exchanges that were dropped from the conversation for this turn.
    """

    output: Mapping[str, Any]
    thoughts: str | None = None
    raw_output: str | None = None
    errors: tuple[str, ...] = ()
    usage: Usage = SCRIPTED_USAGE
    latency_ms: int | None = None
    input_messages: Sequence[Any] | None = None
    new_messages: Sequence[Any] | None = None
    num_prompt_truncations: int = 0


_TEXT = (str, type(None))
_ANSWER_KINDS: dict[str, tuple[type, ...]] = {
    "thoughts": _TEXT,
    "raw_output": _TEXT,
    "errors": (tuple, list),
    "usage": (Usage,),
    "latency_ms": (int, type(None)),
    "input_messages": (tuple, list, type(None)),
    "new_messages": (tuple, list, type(None)),
    "num_prompt_truncations": (int,),
}


def answer_fault(answer: Any) -> str:
    """What makes ``answer`` something that no game can go on with; empty if nothing does.

    Its output is not minded: one that cannot be read costs the turn alone (:func:`read_output`).
    """
    if not isinstance(answer, Answer):
        return f"a player must return an Answer, found {type(answer).__name__}"
    for name, kinds in _ANSWER_KINDS.items():
        if not isinstance(value := getattr(answer, name), kinds):
            return f"{name} of an Answer must be {' or '.join(kind.__name__ for kind in kinds)}, found {value!r:.80}"
    if answer.latency_ms is not None and answer.latency_ms < 0:
        return f"latency_ms of an Answer must not be negative, found {answer.latency_ms}"
    return ""


class AnswerError(Exception):
    """A player has no answer, for reasons that a game survives: the turn is lost.

    Attributes:
        errors: kinds of errors, at least one.
        answer: what is known of it all the same: the text that came instead, what was spent. Its output is not minded.
    """

    def __init__(
        self,
        *errors: str,
        raw_output: str | None = None,
        usage: Usage = SCRIPTED_USAGE,
        answer: Answer | None = None,
    ) -> None:
        """Tell the kinds of errors, and either ``answer`` or the two of its fields that most have."""
        super().__init__(", ".join(errors))
        self.errors = errors or (UNKNOWN,)
        self.answer = Answer({}, raw_output=raw_output, usage=usage) if answer is None else answer


class Player(Protocol):
    """A player of either role; it serves one game after another."""

    def configure(self, setup: Setup) -> None:
        """Forget the last game and make ready for the next."""

    def turn(self, turn: Turn) -> Answer:
        """Answer one turn.

        Raises:
            AnswerError: there is no answer; the game goes on.
        """

    def reflect(self, task: str) -> Answer:
        """Look back at the game, as a message to nobody; ``task`` tells the outcome and what to write about."""


# ---- outputs ---------------------------------------------------------------------------------------------------


def do_nothing() -> dict[str, Any]:
    """The output that lets time pass."""
    return {"result": {"kind": DO_NOTHING, "data": {}}}


def send_message(message: str) -> dict[str, Any]:
    """The output that sends ``message`` to the partner."""
    return {"result": {"kind": SEND_MESSAGE, "data": {"message": message}}}


def interact_game(action: str, location: str | None = None) -> dict[str, Any]:
    """The output that does a game action, at a mark if it needs one."""
    data = {"action": action} if location is None else {"action": action, "location": location}
    return {"result": {"kind": "interact_game", "data": data}}


class Action(NamedTuple):
    """An output that was read.

    Attributes:
        kind: ``do_nothing``, ``send_message`` or ``game_action``.
        message: to the partner.
        action: a name out of :data:`rowproof.gptnt.bomb.bomb.ACTIONS`, ``magic`` or ``lottery``.
        location: the mark of an action that needs one.
    """

    kind: str
    message: str = ""
    action: str = ""
    location: str | None = None

    def data(self) -> dict[str, Any]:
        """The action as it was sent, in the wire's spelling; a location is a mark."""
        if self.kind == SEND_MESSAGE:
            return {"message": self.message}
        if self.kind == GAME_ACTION:
            return {"action": ACTIONS.get(self.action, self.action), "location": self.location}
        return {}


NOTHING = Action(DO_NOTHING)


def output_data(output: Any) -> Mapping[str, Any] | None:
    """The data of an output, with or without its wrapping; None if it has none."""
    data = output
    if isinstance(data, Mapping) and isinstance(data.get("result"), Mapping):
        data = data["result"].get("data")
    elif isinstance(data, Mapping) and "data" in data:
        data = data["data"]
    return data if isinstance(data, Mapping) else None


def read_output(output: Any, protocol: Mapping[str, Any]) -> tuple[Action, tuple[str, ...]]:
    """The action of an output and the kinds of errors in it; what a protocol does not allow becomes nothing.

    The kind that an output states is not minded: what counts are its data. Superfluous keys are ignored.

    Args:
        output: see :class:`Answer`.
        protocol: of the role in a spec.
    """
    failed = NOTHING, (UNKNOWN,)
    data = output_data(output)
    if data is None:
        return failed
    if "message" in data:
        allowed = not protocol["is_playing_alone"] and isinstance(data["message"], str)
        return (Action(SEND_MESSAGE, message=data["message"]), ()) if allowed else failed
    if "action" not in data:
        return failed if data else (NOTHING, ())
    action = data["action"]
    if action in (MAGIC, LOTTERY):
        allowed = protocol[f"allow_{action}_actions"]
        return (Action(GAME_ACTION, action=action), ()) if allowed else failed
    if protocol["role"] != DEFUSER or not isinstance(action, str) or action not in _NAMES:
        return failed
    action, location = _NAMES[action], data.get("location")
    if action not in MARK_ACTIONS:
        return Action(GAME_ACTION, action=action), ()
    if isinstance(location, Mapping | list | tuple):
        # Coordinates: there is no picture that they could point into.
        return NOTHING, (INVALID_LOCATION,)
    if not isinstance(location, str) or len(location) != 1 or not location.isalpha():
        return failed
    return Action(GAME_ACTION, action=action, location=location.upper()), ()
