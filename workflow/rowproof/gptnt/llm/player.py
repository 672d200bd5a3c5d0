"""A player that is a language model."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rowproof.errors import ConfigError
from rowproof.gptnt.bomb.observation import text as as_text
from rowproof.gptnt.llm.conversation import Conversation, Exchange, joined
from rowproof.gptnt.llm.parsing import Parsed, parse_monologue, parse_tagged
from rowproof.gptnt.llm.prompts import OUT_LOUD, Sees, instructions, piece, refusals
from rowproof.gptnt.llm.schema import NORMALISED_MAX, output_schema, pointing, protocol
from rowproof.gptnt.player_config import Player as Config
from rowproof.gptnt.player_config import Settings
from rowproof.gptnt.players.turns import (
    GUARDRAIL,
    UNKNOWN,
    Answer,
    AnswerError,
    Setup,
    Turn,
    Usage,
    do_nothing,
    output_data,
    send_message,
)
from rowproof.llm import calls
from rowproof.llm.calls import Asker, CallError, Message, Picture, Reply, Request
from rowproof.llm.cost import Prices, cost
from rowproof.records import encode_line

SERVER_ERROR, CUT_OFF, OUT_OF_BOUNDS = "server_error", "max_output_tokens_exceeded", "out_of_bounds_coordinate"
UNREADABLE = "action_parsing_failed"

# A look back is as long as it needs to be, which the limit of a turn does not allow.
REFLECTION_TOKENS = 5000
NO_REFLECTION = "There is no look back: the model gave no answer."

_TOOL = "answer"
# An account without credit says so in an error that is no rate limit.
_EXHAUSTED = ("quota", "exhausted")

Observation = Mapping[str, Any]
Pictures = Callable[[Observation], Sequence[bytes]]


class Spent(NamedTuple):
    """What a game cost a player.

    Attributes:
        cost: of the calls whose tokens and prices are known, in the currency of the prices; None without any prices.
        unknown: number of calls of which that is not known.
    """

    cost: float | None
    unknown: int


class LLMPlayer:
    """Asks a model for every turn.

    A call that fails, or an answer that cannot be read, costs a turn and no more. Only what shows that the model is not
    there at all breaks the game off: a key that is refused, or a request that a cassette does not hold. What a failed
    call cost is kept.
    """

    def __init__(
        self,
        config: Config,
        begin: Callable[[str], Asker],
        *,
        sees: Sees = "images",
        pictures: Pictures | None = None,
        prices: Prices | None = None,
    ) -> None:
        """Get ready to play.

        Args:
            config: of a player with a model.
            begin: called with the name of each game's stream of this player; gives who answers its requests.
            sees: how the bomb is shown.
            pictures: PNGs of an observation, the one with the marks last; None for those of
                :mod:`rowproof.gptnt.rendering`.
            prices: of the model's tokens.

        Raises:
            ConfigError: the player follows a script, or points into pictures that it is not shown.
        """
        self._capabilities = config.capabilities
        self._pointing = pointing(config.capabilities)
        if config.model.id is None:
            raise ConfigError(f"player {config.config}: must have a model, found the script {config.model.script}")
        if self._pointing != "marks" and sees != "images":
            raise ConfigError(
                f"player {config.config}: must be shown images to point at coordinates, found {sees}: "
                "set interaction_location_method to set-of-marks"
            )
        self._model, self._settings = config.model.id, config.model.settings
        self._begin, self._sees, self._prices = begin, sees, prices
        self._pictures = pictures or self._drawn

    @property
    def spent(self) -> Spent:
        """What the present game has cost."""
        known = [value for value in self._costs if value is not None]
        return Spent(None if self._prices is None else sum(known, 0.0), len(self._costs) - len(known))

    def configure(self, setup: Setup) -> None:
        """Begin a new conversation, with the manual in front if the role has it."""
        self._setup = setup
        self._asker = self._begin(setup.stream)
        self._system = Message("system", (instructions(setup, self._capabilities, self._sees),))
        self._conversation = Conversation(self._capabilities)
        self._costs: list[float | None] = []
        if setup.manual is not None:
            pages = (page.text for page in setup.manual.pages.values())
            self._conversation.add(Exchange((Message("user", (piece("manual"), *pages)),), pinned=True))

    def turn(self, turn: Turn) -> Answer:
        """Send what is new, and read the answer.

        Raises:
            AnswerError: there is no answer that could be used.
            CallError: the key was refused.
            CassetteMiss: there is no recording of the request.
        """
        user = Message("user", self._parts(turn))
        request, known = self._request(user, self._parameters())
        try:
            reply = self._asker.ask(request)
        except CallError as error:
            error_kind, known = self._failed(error, known)
            if error_kind != GUARDRAIL:
                self._conversation.add(Exchange((user,)))
            raise AnswerError(error_kind, answer=known) from None
        answer, known = self._answered(reply, user, known)
        exchange = Exchange((user, answer), input_tokens=reply.usage.input_tokens if reply.usage else 0)
        if reply.finish_reason == "length":
            self._conversation.add(exchange)
            raise AnswerError(CUT_OFF, answer=known)
        parsed = self._read(answer.text, reply, protocol(self._setup))
        known = known._replace(thoughts=parsed.thoughts)
        if parsed.output is None and _declines(answer.text):
            raise AnswerError(GUARDRAIL, answer=known)
        self._conversation.add(exchange)
        if parsed.output is None:
            # Where the server itself is to keep the form, there is no more to say about it.
            structured = self._capabilities.structured_output_mode is not None
            raise AnswerError(*((UNKNOWN,) if structured else parsed.errors), answer=known)
        output, error = parsed.output, None
        if self._pointing != "marks" and turn.observation is not None:
            output, error = self._located(output, turn.observation)
        if error is not None:
            raise AnswerError(*parsed.errors, error, answer=known)
        return known._replace(output=output, errors=parsed.errors)

    def reflect(self, task: str) -> Answer:
        """Look back in plain text; what cannot be read is kept as it is.

        Raises:
            CallError: the key was refused.
            CassetteMiss: there is no recording of the request.
        """
        user = Message("user", (task, piece("reflection")))
        request, known = self._request(user, sampling(self._settings, REFLECTION_TOKENS))
        try:
            reply = self._asker.ask(request)
        except CallError as error:
            error_kind, known = self._failed(error, known)
            return known._replace(output=send_message(NO_REFLECTION), errors=(error_kind,))
        answer, known = self._answered(reply, user, known)
        parsed = self._read(answer.text, reply, protocol(self._setup) | {"is_playing_alone": False})
        message = _message(parsed.output) or answer.text.strip() or NO_REFLECTION
        errors = (CUT_OFF,) if reply.finish_reason == "length" else parsed.errors
        return known._replace(output=send_message(message), thoughts=parsed.thoughts, errors=errors)

    # ---- requests ----------------------------------------------------------------------------------------------

    def _parts(self, turn: Turn) -> tuple[str | Picture, ...]:
        parts: list[str | Picture] = [] if turn.text is None else [turn.text]
        if turn.observation is not None:
            if self._sees == "images":
                parts += [Picture(data) for data in self._pictures(turn.observation)]
            else:
                parts.append(as_text(turn.observation) if self._sees == "text" else encode_line(turn.observation))
        return tuple(parts)

    def _drawn(self, observation: Observation) -> list[bytes]:
        # Players that see no pictures need no library that draws them.
        from rowproof.gptnt.rendering import render_frames

        frames = self._capabilities.max_observations_per_request
        return render_frames(observation, frames, self._size, marks=self._pointing == "marks")

    @property
    def _size(self) -> tuple[int, int]:
        size = self._capabilities.image_dimensions
        return size.width, size.height

    def _request(self, user: Message, parameters: Mapping[str, Any]) -> tuple[Request, Answer]:
        """A request, and what is known of its answer before it is there."""
        rendered = self._conversation.render()
        sent = (self._system, *rendered.messages)
        known = Answer(
            do_nothing(),
            input_messages=[message.to_data() for message in sent],
            new_messages=[user.to_data()],
            num_prompt_truncations=rendered.dropped,
        )
        return Request(self._model, joined([*sent, user]), parameters), known

    def _parameters(self) -> dict[str, Any]:
        chosen = sampling(self._settings, self._settings.max_tokens)
        mode = self._capabilities.structured_output_mode
        if mode not in ("native", "tool"):
            return chosen
        schema = output_schema(self._setup, self._capabilities)
        if mode == "native":
            form = {"name": _TOOL, "strict": True, "schema": schema}
            return chosen | {"response_format": {"type": "json_schema", "json_schema": form}}
        function = {"name": _TOOL, "description": "Give your command.", "strict": True, "parameters": schema}
        return chosen | {
            "tools": [{"type": "function", "function": function}],
            "tool_choice": {"type": "function", "function": {"name": _TOOL}},
        }

    # ---- answers -----------------------------------------------------------------------------------------------

    def _answered(self, reply: Reply, user: Message, known: Answer) -> tuple[Message, Answer]:
        """The answer as a message, and what is known of it; a call of a tool is the text that it was called with."""
        self._costs.append(cost(reply.usage, self._prices))
        text = reply.tool_arguments[0] if reply.tool_arguments else reply.text
        message = Message("assistant", (text,))
        return message, known._replace(
            raw_output=text if text.strip() else reply.raw,
            usage=_usage(reply.usage, reply.retries),
            latency_ms=_milliseconds(reply.seconds),
            new_messages=[user.to_data(), message.to_data()],
        )

    def _failed(self, error: CallError, known: Answer) -> tuple[str, Answer]:
        """The kind of a failed call, and what is known of it."""
        if error.kind == "authentication":
            # Nobody was asked: a game of such turns must not count as one that the model lost.
            raise error
        self._costs.append(cost(error.usage, self._prices))
        said = f"{error} {error.raw or ''}"
        kind = SERVER_ERROR
        if error.kind == "content_filter" or (error.kind == "bad_request" and _declines(said)):
            kind = GUARDRAIL
        elif error.kind == "bad_request" and not any(word in said.lower() for word in _EXHAUSTED):
            kind = UNKNOWN
        return kind, known._replace(
            raw_output=error.raw,
            usage=_usage(error.usage, error.retries),
            latency_ms=_milliseconds(error.seconds),
        )

    def _read(self, text: str, reply: Reply, role: Mapping[str, Any]) -> Parsed:
        if self._capabilities.thinking_method == OUT_LOUD:
            return parse_tagged(text, role)
        return parse_monologue(text, reply.reasoning, role)

    def _located(self, output: Mapping[str, Any], observation: Observation) -> tuple[Mapping[str, Any], str | None]:
        """The output with the mark of the element at its coordinates, and what is wrong with these."""
        data = output_data(output)
        if data is None or "location" not in data:
            return output, None
        point = _point(data["location"])
        if point is None:
            return output, UNREADABLE
        if self._pointing == "normalised":
            if not all(0 <= value <= NORMALISED_MAX for value in point):
                return output, OUT_OF_BOUNDS
            pairs = zip(point, self._size, strict=True)
            point = tuple(min(value * size / NORMALISED_MAX, size - 1) for value, size in pairs)
        if not all(0 <= value < size for value, size in zip(point, self._size, strict=True)):
            return output, OUT_OF_BOUNDS
        from rowproof.gptnt.rendering import masks

        x, y = (int(value) for value in point)
        mark = next((mark for mark, mask in masks(observation, self._size).items() if mask[y, x]), None)
        # A click beside everything does nothing in the game either.
        return (do_nothing() if mark is None else {"data": {**data, "location": mark}}), None


def sampling(settings: Settings, max_tokens: int) -> dict[str, Any]:
    """The parameters of a request with the sampling that a player file asks for."""
    chosen: dict[str, Any] = {"max_completion_tokens": max_tokens, "temperature": settings.temperature}
    if settings.reasoning_effort is not None:
        chosen["reasoning_effort"] = settings.reasoning_effort
    if settings.extra_body:
        chosen["extra_body"] = settings.extra_body
    return chosen


def _point(location: Any) -> tuple[float, ...] | None:
    """Both coordinates; None if it is not a pair of numbers."""
    if isinstance(location, Mapping):
        location = next(([location[x], location[y]] for x, y in _AXES if {x, y} <= location.keys()), None)
    if not isinstance(location, list) or len(location) != 2:
        return None
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in location):
        return None
    return tuple(location)


_AXES = (("x_pos", "y_pos"), ("x", "y"))


def _message(output: Mapping[str, Any] | None) -> str | None:
    message = (output_data(output) or {}).get("message")
    return message if isinstance(message, str) else None


def _declines(text: str) -> bool:
    text = text.lower()
    return any(phrase in text for phrase in refusals())


def _usage(usage: calls.Usage | None, retries: Mapping[str, int]) -> Usage:
    usage = usage or calls.Usage()
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        requests=1 + sum(retries.values()),
        cache_read_tokens=usage.cached_tokens,
        details=(("reasoning_tokens", usage.reasoning_tokens),) if usage.reasoning_tokens else (),
    )


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
