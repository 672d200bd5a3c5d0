"""One request to a language model and what comes of it, as plain values that a recording can hold."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from rowproof.errors import RecordError, RowproofError
from rowproof.hashing import sha256_hex
from rowproof.records import NULL, Kinds, check_fields

Data = dict[str, Any]

ErrorKind = Literal["server_error", "rate_limited", "timed_out", "content_filter", "bad_request", "authentication"]
ERROR_KINDS = ("server_error", "rate_limited", "timed_out", "content_filter", "bad_request", "authentication")
# Why a try was repeated.
CAUSES = ("rate_limited", "server_error", "timed_out", "connection")


def well_formed(text: str) -> str:
    """The text with every lone surrogate replaced: JSON can spell one, UTF-8 cannot."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@dataclass(frozen=True)
class Picture:
    """A PNG; its bytes stand in no repr, so that an error message stays short."""

    data: bytes = field(repr=False)

    @property
    def sha256(self) -> str:
        """By this a record names the picture."""
        return sha256_hex(self.data)


class Message(NamedTuple):
    """One message of a conversation.

    Attributes:
        role: ``system``, ``user`` or ``assistant``.
        parts: texts and pictures in order.
    """

    role: str
    parts: tuple[str | Picture, ...]

    @property
    def text(self) -> str:
        """All texts, a blank line between them."""
        return "\n\n".join(part for part in self.parts if isinstance(part, str))

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """The pictures in order."""
        return tuple(part for part in self.parts if isinstance(part, Picture))

    def to_data(self) -> Data:
        """Plain data: a message of texts alone has one text, pictures are given by their digests."""
        if not self.pictures:
            return {"role": self.role, "content": self.text}
        content = [{"image": part.sha256} if isinstance(part, Picture) else {"text": part} for part in self.parts]
        return {"role": self.role, "content": content}


class Request(NamedTuple):
    """All that determines an answer as far as a client can tell; there is no address, header or key in it.

    Attributes:
        model: as the provider calls it.
        messages: the conversation.
        parameters: further fields of the protocol by their names, such as ``temperature``; ``extra_body`` holds those
            of a single provider.
    """

    model: str
    messages: tuple[Message, ...]
    parameters: Mapping[str, Any]


class Usage(NamedTuple):
    """Tokens as the provider counted them; cached ones are part of the input, reasoning ones part of the output."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0


class Reply(NamedTuple):
    """An answer.

    Attributes:
        text: may be empty.
        reasoning: if the provider gives it apart.
        tool_arguments: of each tool that the model called, as it wrote them.
        finish_reason: ``stop``, ``length``, ...; None if the provider gives none.
        usage: None if the provider counted nothing.
        seconds: how long the try took that brought the answer; waiting for another try is not in it.
        retries: cause to number of failed tries before.
        served_model: the model as it names itself.
        raw: the whole body if it held no text.
    """

    text: str
    reasoning: str | None = None
    tool_arguments: tuple[str, ...] = ()
    finish_reason: str | None = None
    usage: Usage | None = None
    seconds: float = 0.0
    retries: Mapping[str, int] = {}
    served_model: str | None = None
    raw: str | None = None

    def to_data(self) -> Data:
        """Plain data for :meth:`from_data`."""
        return self._asdict() | {
            "tool_arguments": list(self.tool_arguments),
            "usage": _usage_data(self.usage),
            "retries": dict(self.retries),
        }

    @classmethod
    def from_data(cls, data: Any, where: str) -> "Reply":
        """The reply of a recording.

        Raises:
            RecordError: ``data`` is none.
        """
        fields = check_fields(data, _REPLY, where)
        if not all(type(text) is str for text in fields["tool_arguments"]):
            raise RecordError(f"{where}: tool_arguments must be texts")
        return cls(**fields | {"tool_arguments": tuple(fields["tool_arguments"])} | _common(fields, where))


class CallError(RowproofError):
    """A request without an answer.

    Attributes:
        kind: one of :data:`ERROR_KINDS`.
        status: of HTTP; None if there was no response.
        usage: what was spent all the same, if that is known.
        seconds: how long the last try took.
        retries: cause to number of tries that were repeated.
        raw: what came instead of an answer.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        status: int | None = None,
        usage: Usage | None = None,
        seconds: float = 0.0,
        retries: Mapping[str, int] | None = None,
        raw: str | None = None,
    ) -> None:
        """Keep what is known."""
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.usage = usage
        self.seconds = seconds
        self.retries = dict(retries or {})
        self.raw = raw

    def to_data(self) -> Data:
        """Plain data for :meth:`from_data`."""
        return {
            "kind": self.kind,
            "message": str(self),
            "status": self.status,
            "usage": _usage_data(self.usage),
            "seconds": self.seconds,
            "retries": dict(self.retries),
            "raw": self.raw,
        }

    @classmethod
    def from_data(cls, data: Any, where: str) -> "CallError":
        """The error of a recording.

        Raises:
            RecordError: ``data`` is none.
        """
        fields = check_fields(data, _ERROR, where)
        if fields["kind"] not in ERROR_KINDS:
            raise RecordError(f"{where}: kind must be one of {list(ERROR_KINDS)}, found {fields['kind']!r}")
        return cls(**fields | _common(fields, where))


class Asker(Protocol):
    """Whoever answers requests: a client, or a recording of one."""

    def ask(self, request: Request) -> Reply:
        """Answer one request.

        Raises:
            CallError: there is no answer.
        """


_TEXT, _MAYBE = (str,), (str, NULL)
_REPLY: dict[str, Kinds] = {
    "text": _TEXT,
    "reasoning": _MAYBE,
    "tool_arguments": (list,),
    "finish_reason": _MAYBE,
    "usage": (dict, NULL),
    "seconds": (float,),
    "retries": (dict,),
    "served_model": _MAYBE,
    "raw": _MAYBE,
}
_ERROR: dict[str, Kinds] = {
    "kind": _TEXT,
    "message": _TEXT,
    "status": (int, NULL),
    "usage": (dict, NULL),
    "seconds": (float,),
    "retries": (dict,),
    "raw": _MAYBE,
}
_USAGE: dict[str, Kinds] = dict.fromkeys(Usage._fields, (int,))


def _usage_data(usage: Usage | None) -> Data | None:
    return None if usage is None else usage._asdict()


def _common(fields: Data, where: str) -> Data:
    usage, retries = fields["usage"], fields["retries"]
    if not all(cause in CAUSES and type(count) is int for cause, count in retries.items()):
        raise RecordError(f"{where}: retries must count {list(CAUSES)}, found {retries}")
    return {"usage": None if usage is None else Usage(**check_fields(usage, _USAGE, f"{where}: usage"))}
