"""Recorded calls: what a model answered once is answered again, without a connection.

A cassette is a JSONL file. A line is either a message, under the digest of its content, or a call, under the digest of
its request: model, digests of its messages, parameters, and how many equal requests came before it. Lines need no
order and may occur twice, so that cassettes are merged by joining their lines. Pictures lie once each beside it, in
``images/<sha256>.png``. Addresses, headers and keys are in none of it.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from rowproof.errors import ConfigError, RecordError, RowproofError
from rowproof.files import write_atomic, write_if_changed
from rowproof.llm.calls import Asker, CallError, Data, Reply, Request
from rowproof.records import Kinds, check_fields, decode, digest, encode_line, encode_lines, split_lines

Mode = Literal["record", "replay", "off"]
IMAGES = "images"

_MESSAGE: dict[str, Kinds] = {"message": (str,), "role": (str,), "content": (str, list)}
_CALL: dict[str, Kinds] = {"call": (str,), "request": (dict,), "answer": (dict,)}
_REQUEST: dict[str, Kinds] = {"model": (str,), "messages": (list,), "parameters": (dict,), "occurrence": (int,)}
_SHOWN = 40


class CassetteMiss(RowproofError):
    """A request has no recording; the message names the first part that differs from the nearest one that has."""


class Cassette:
    """Answers requests from its file. One that records asks for what the file lacks, and appends it."""

    def __init__(self, path: Path, live: Asker | None = None) -> None:
        """Open a cassette, or begin one if ``live`` is given.

        Args:
            path: a JSONL file.
            live: asked where there is no recording; None replays alone, and opens no connection.

        Raises:
            ConfigError: there is no such file to replay.
            RecordError: the file is damaged. A last line that was cut off is dropped by whoever records.
        """
        self._path = path
        self._live = live
        self._messages: dict[str, Data] = {}
        self._calls: dict[str, tuple[Data, Data]] = {}
        self._asked: Counter[str] = Counter()
        self._load()

    def ask(self, request: Request) -> Reply:
        """The recorded answer, or a new one.

        Raises:
            CallError: the recorded or the new call failed.
            CassetteMiss: there is no recording and nobody to ask.
        """
        messages = [message.to_data() for message in request.messages]
        key = {"model": request.model, "messages": [digest(message) for message in messages]}
        key["parameters"] = dict(request.parameters)
        same = digest(key)
        key["occurrence"] = self._asked[same]
        self._asked[same] += 1
        call = digest(key)
        if call not in self._calls:
            if self._live is None:
                raise CassetteMiss(f"{self._path.name}: {self._difference(key, messages)}")
            self._record(call, key, request, messages)
        place, answer = f"{self._path.name}: call {call[:12]}", self._calls[call][1]
        if "error" in answer:
            raise CallError.from_data(answer["error"], place)
        return Reply.from_data(answer["reply"], place)

    # ---- files -------------------------------------------------------------------------------------------------

    def _record(self, call: str, key: Data, request: Request, messages: list[Data]) -> None:
        assert self._live is not None
        try:
            answer = {"reply": self._live.ask(request).to_data()}
        except CallError as error:
            if error.kind == "authentication":
                # Says something about a key and nothing about the request.
                raise
            answer = {"error": error.to_data()}
        for message in request.messages:
            for picture in message.pictures:
                write_if_changed(self._path.parent / IMAGES / f"{picture.sha256}.png", picture.data, durable=False)
        lines: list[Data] = []
        for name, message in zip(key["messages"], messages, strict=True):
            if name not in self._messages:
                self._messages[name] = message
                lines.append({"message": name, **message})
        lines.append({"call": call, "request": key, "answer": answer})
        self._append(encode_lines(lines))
        self._calls[call] = key, answer

    def _append(self, data: bytes) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # At the end of the file: a crash can cut off the last line and nothing else.
        with self._path.open("ab") as stream:
            stream.write(data)

    def _load(self) -> None:
        where = self._path.name
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            if self._live is None:
                raise ConfigError(f"{where}: there must be a cassette to replay, found none: record it first") from None
            return
        if self._live is not None and not data.endswith(b"\n"):
            data = data[: data.rfind(b"\n") + 1]
            write_atomic(self._path, data)
        if not data and self._live is not None:
            return
        for number, line in split_lines(data, where):
            self._load_line(decode(line, f"{where}:{number}"), line, f"{where}:{number}")
        for call, (key, _) in self._calls.items():
            lacking = [name for name in key["messages"] if name not in self._messages]
            if lacking:
                raise RecordError(f"{where}: call {call[:12]}: must come with its messages, missing {lacking[0][:12]}")

    def _load_line(self, value: Any, line: bytes, place: str) -> None:
        if isinstance(value, dict) and "message" in value:
            name, known = check_fields(value, _MESSAGE, place)["message"], self._messages
            content: Any = {key: value[key] for key in ("role", "content")}
            entry: Any = content
        else:
            name, known = check_fields(value, _CALL, place)["call"], self._calls
            content = check_fields(value["request"], _REQUEST, place)
            if list(value["answer"]) not in (["reply"], ["error"]):
                raise RecordError(f"{place}: an answer must be a reply or an error, found {list(value['answer'])}")
            entry = content, value["answer"]
        if digest(content) != name:
            raise RecordError(f"{place}: must stand under the digest of its content, found {name[:12]}")
        if encode_line(value).encode() != line:
            raise RecordError(f"{place}: must be in canonical form")
        if known.setdefault(name, entry) != entry:
            raise RecordError(f"{place}: a request must have one answer, found another one before: keep one of them")

    # ---- misses ------------------------------------------------------------------------------------------------

    def _difference(self, key: Data, messages: list[Data]) -> str:
        if not self._calls:
            return "no call is recorded"

        def nearness(recorded: Data) -> tuple[bool, int, bool, int]:
            return (
                recorded["model"] == key["model"],
                _common(recorded["messages"], key["messages"]),
                recorded["parameters"] == key["parameters"],
                -abs(len(recorded["messages"]) - len(key["messages"])),
            )

        near = max((recorded for recorded, _ in self._calls.values()), key=nearness)
        start = "the request must equal a recorded one; the nearest differs in "
        if near["model"] != key["model"]:
            return f"{start}model: asked {key['model']!r}, recorded {near['model']!r}"
        index = _common(near["messages"], key["messages"])
        if index < min(len(near["messages"]), len(key["messages"])):
            return f"{start}messages[{index}]: {_content(messages[index], self._messages[near['messages'][index]])}"
        if len(near["messages"]) != len(key["messages"]):
            return f"{start}messages: asked {len(key['messages'])}, recorded {len(near['messages'])}"
        for name in sorted({*near["parameters"], *key["parameters"]}):
            asked, recorded = key["parameters"].get(name), near["parameters"].get(name)
            if asked != recorded:
                return f"{start}parameters.{name}: asked {asked!r}, recorded {recorded!r}"
        return f"{start}occurrence: asked {key['occurrence']}, recorded fewer"


def through(mode: Mode, path: Path | None, live: Asker | None) -> Asker:
    """Whoever answers in a mode: ``live`` itself (``off``), a cassette that may ask it, or a cassette alone.

    Raises:
        ConfigError: the mode needs a file or ``live`` and there is none, or it is unknown; see also :class:`Cassette`.
    """
    if mode not in ("record", "replay", "off"):
        raise ConfigError(f"a cassette must be in mode record, replay or off, found {mode!r}")
    if mode != "off" and path is None:
        raise ConfigError(f"mode {mode} must have a cassette, found none")
    if mode != "replay" and live is None:
        raise ConfigError(f"mode {mode} must have a client to ask, found none")
    return live if mode == "off" else Cassette(path, None if mode == "replay" else live)


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many entries are the same from the first on."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


def _content(asked: Data, recorded: Data) -> str:
    if asked["role"] != recorded["role"]:
        return f"asked role {asked['role']}, recorded {recorded['role']}"
    texts = [
        entry["content"] if isinstance(entry["content"], str) else encode_line(entry["content"])
        for entry in (asked, recorded)
    ]
    place = _common(*texts)
    shown = [repr(text[place : place + _SHOWN]) for text in texts]
    return f"role {asked['role']}, from character {place}: asked {shown[0]}, recorded {shown[1]}"
