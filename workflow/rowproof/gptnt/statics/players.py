"""Who answers: a language model through a callable, and two scripts that show that the plumbing works."""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from rowproof.gptnt.capabilities import Capabilities
from rowproof.gptnt.player_config import Player
from rowproof.gptnt.statics.scoring import NORMALISED_RANGE
from rowproof.gptnt.statics.tasks import Instance, Parts
from rowproof.records import encode_line
from rowproof.seeding import substream

Ask = Callable[[str, Parts], tuple[str, Any]]


class Reply(NamedTuple):
    """An answer as it came.

    Attributes:
        text: with all that a model wrote around its answer.
        usage: a named tuple or mapping of counts; None if nothing was counted.
    """

    text: str
    usage: Any = None


class StaticPlayer(Protocol):
    """Answers questions one by one; it remembers nothing.

    Attributes:
        name: of the player, a file name.
        model: its id.
        capabilities: decide the size of pictures and how it points.
        setup: plain data of everything else that bears on its answers.
    """

    name: str
    model: str
    capabilities: Capabilities
    setup: Mapping[str, Any]

    def answer(self, task: str, instruction: str, instance: Instance) -> Reply:
        """Answer one question of a task; any exception is a failed request."""


class ModelPlayer:
    """A language model; it is given the instruction and the parts of a question, never the truth."""

    def __init__(self, player: Player, ask: Ask) -> None:
        """Ask ``player`` through ``ask(instruction, parts) -> (text, usage)``."""
        self.name = player.name
        self.model = player.model_label
        self.capabilities = player.capabilities
        self.setup = {"model": self.model, "settings": player.model.settings.model_dump(mode="json")}
        self._ask = ask

    def answer(self, task: str, instruction: str, instance: Instance) -> Reply:
        """Ask the model."""
        return Reply(*self._ask(instruction, instance.parts))


def _scripted(name: str, capabilities: Capabilities | None) -> Capabilities:
    return capabilities or Capabilities(player_name=name, player_type="ai")


def _point(instance: Instance, capabilities: Capabilities, row: int, column: int) -> str:
    """The answer that points at a pixel of a mask."""
    point = {"x": column, "y": row}
    if capabilities.coordinate_mode == "normalised":
        height, width = np.shape(instance.truth)
        # The smallest numbers that are not truncated to another pixel.
        point = {"x": -(-column * NORMALISED_RANGE // width), "y": -(-row * NORMALISED_RANGE // height)}
    return encode_line(point)


class OraclePlayer:
    """Answers with the truth: what is left of a score below 1 is a fault of the task."""

    name = "test-static-oracle"
    model = "script test-static-oracle"

    def __init__(self, capabilities: Capabilities | None = None) -> None:
        """Point as ``capabilities`` say; None for the defaults."""
        self.capabilities = _scripted(self.name, capabilities)
        self.setup: Mapping[str, Any] = {"script": self.name}

    def answer(self, task: str, instruction: str, instance: Instance) -> Reply:
        """Give the truth, or a point well inside it."""
        truth = instance.truth
        if isinstance(truth, str):
            return Reply(truth)
        if isinstance(truth, tuple):
            return Reply(truth[0])
        # The middle one of all pixels in reading order has pixels of the region around it.
        row, column = np.argwhere(truth)[int(truth.sum()) // 2].tolist()
        return Reply(_point(instance, self.capabilities, row, column))


class RandomPlayer:
    """Answers at random with something well formed; each question has a random stream of its own."""

    name = "test-static-random"
    model = "script test-static-random"

    def __init__(self, seed: int = 0, capabilities: Capabilities | None = None) -> None:
        """Draw under the root ``seed``."""
        self.capabilities = _scripted(self.name, capabilities)
        self.setup: Mapping[str, Any] = {"script": self.name, "seed": seed}
        self._seed = seed

    def answer(self, task: str, instruction: str, instance: Instance) -> Reply:
        """Draw one of the choices, or a point; with neither there is nothing to draw from."""
        draws = substream(f"gptnt/statics/{self.name}/{task}/{instance.index}", self._seed)
        if isinstance(instance.truth, np.ndarray):
            height, width = instance.truth.shape
            return Reply(_point(instance, self.capabilities, int(draws.integers(height)), int(draws.integers(width))))
        if not instance.choices:
            return Reply("")
        return Reply(instance.choices[int(draws.integers(len(instance.choices)))])


def split_reasoning(text: str) -> tuple[str, str | None]:
    """The answer in a text, and the reasoning in its tags or None.

    What stands in an action tag is the answer; without one, all that stands outside of the tags of reasoning is.
    """
    if "</think>" in text and "<think>" not in text:
        # Some servers put the first tag into the prompt.
        text = f"<think>{text}"
    thoughts = re.findall(r"<(thought|think)>(.*?)(?:</\1>|\Z)", text, re.DOTALL | re.IGNORECASE)
    rest = re.sub(r"<(thought|think)>.*?(?:</\1>|\Z)", "", text, flags=re.DOTALL | re.IGNORECASE)
    action = re.search(r"<action>(.*?)(?:</action>|\Z)", rest, re.DOTALL | re.IGNORECASE)
    return (action[1] if action else rest).strip(), "\n".join(part.strip() for _, part in thoughts) or None
