"""Proposers: a patch in a file, recorded answers, and a language model."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rowproof.errors import ConfigError, RecordError
from rowproof.llm.calls import Asker, CallError, Message, Request

Messages = Sequence[Mapping[str, str]]


class FilePlayer:
    """Hands in patch files, one in each turn, and ends the dialogue after the last."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """Read the files.

        Raises:
            ConfigError: there is none, or one is missing or not UTF-8.
        """
        if not paths:
            raise ConfigError("a proposer by files must have at least one patch file, found none: name it")
        self._rest = [_read(path) for path in paths]

    def __call__(self, messages: Messages) -> str | None:
        """The next file, whatever was answered."""
        return self._rest.pop(0) if self._rest else None


class RecordedPlayer:
    """Gives recorded answers in order, and ends the dialogue after the last."""

    def __init__(self, answers: Sequence[str]) -> None:
        """Take the texts of the assistant's messages."""
        self._rest = list(answers)

    def __call__(self, messages: Messages) -> str | None:
        """The next answer, whatever was replied to the one before."""
        return self._rest.pop(0) if self._rest else None


class LLMPlayer:
    """Asks a language model, or a cassette of one.

    Attributes:
        calls: of each answer the finish reason, the model as it names itself, tries that were repeated, and tokens.
    """

    def __init__(self, model: str, asker: Asker, parameters: Mapping[str, Any]) -> None:
        """Get ready.

        Args:
            model: as the provider calls it.
            asker: who answers requests: a client, or a cassette.
            parameters: of the protocol, such as ``temperature``.
        """
        self._model, self._asker, self._parameters = model, asker, dict(parameters)
        self.calls: list[dict[str, Any]] = []

    def __call__(self, messages: Messages) -> str:
        """The model's answer to the whole dialogue; one that its provider filtered out is empty.

        Raises:
            CallError: there is no answer, which is no fault of the model.
            CassetteMiss: there is no recording of the request.
        """
        said = tuple(Message(message["role"], (message["content"],)) for message in messages)
        try:
            reply = self._asker.ask(Request(self._model, said, self._parameters))
        except CallError as error:
            if error.kind != "content_filter":
                raise
            usage = None if error.usage is None else error.usage._asdict()
            self._note("content_filter", None, error.retries, usage)
            return ""
        self._note(
            reply.finish_reason,
            reply.served_model,
            reply.retries,
            None if reply.usage is None else reply.usage._asdict(),
        )
        return reply.text

    def _note(self, finish_reason: str | None, served: str | None, retries: Mapping[str, int], usage: Any) -> None:
        call = {"finish_reason": finish_reason, "served_model": served, "retries": dict(retries), "usage": usage}
        self.calls.append(call)

    def describe(self) -> dict[str, Any]:
        """Who proposed, as plain data: model, parameters and calls."""
        return {"kind": "model", "name": self._model, "parameters": self._parameters, "calls": self.calls}


def imported_answers(data: bytes, where: str) -> list[list[str]]:
    """The assistant's messages of each rollout in a ``results.jsonl`` of the verifiers runner.

    Nothing else is taken over: rewards are not trusted, and scripts in ``info`` may have been changed by the rollout.

    Args:
        data: the file.
        where: names it in messages.

    Raises:
        RecordError: a line is no rollout of a chat.
    """
    rollouts = []
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            completion = json.loads(line)["completion"]
            answers = [message["content"] for message in completion if message["role"] == "assistant"]
            if not all(type(answer) is str for answer in answers):
                raise TypeError("an answer must be a text")
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise RecordError(f"{where}:{number}: must be a rollout with a chat as its completion: {error!r}") from None
        rollouts.append(answers)
    return rollouts


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: must be a readable patch file: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: must be a patch in UTF-8, found other bytes: convert it") from None
