"""Runs a static task: one request per question, one file per answer, and the scores of all of them.

Answers lie below ``<output>/<task>/<player>/<digest>``. The digest holds all that bears on an answer, so that answers
are used again only where they would be asked for in the same way.
"""

import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from rowproof.errors import ConfigError, RecordError, RowproofError
from rowproof.files import write_atomic
from rowproof.gptnt.room import Provenance
from rowproof.gptnt.statics.datasets import Row, load_dataset
from rowproof.gptnt.statics.players import StaticPlayer, split_reasoning
from rowproof.gptnt.statics.scoring import Scored, score
from rowproof.gptnt.statics.tasks import HOW_DO_YOU, Instance, Task, how_do_you_rows, task_named
from rowproof.hashing import sha256_hex
from rowproof.llm.calls import Picture
from rowproof.records import NULL, Kinds, check_fields, decode, digest, encode_document

FOLDER = "statics"
DIGEST_LENGTH = 12
PREDICTION: dict[str, Kinds] = {
    "index": (int,),
    "usage": (dict,),
    "model": (str,),
    "output": (str,),
    "thoughts": (str, NULL),
    "raw_output": (str, NULL),
    "error": (list, NULL),
    "exception": (dict, NULL),
}
Prediction = dict[str, Any]
CHARACTERS_PER_TOKEN = 4
# Messages of errors may hold whole requests.
MESSAGE_LENGTH = 2000


class Options(NamedTuple):
    """How a task is run.

    Attributes:
        throw: ask the player; else only tell what would be asked.
        limit: ask and score the first rows alone; None for all.
        revision: that the data must have; None for any.
        allow_thinking: tell the player how to reason.
        state_split: of the task on recognising states.
        attempts: per module, of ``how-do-you``.
    """

    throw: bool = False
    limit: int | None = None
    revision: str | None = None
    allow_thinking: bool = True
    state_split: str = "state-change"
    attempts: int = 1


DEFAULT_OPTIONS = Options()


def run_static(
    task: str,
    player: StaticPlayer,
    output: Path,
    provenance: Provenance,
    options: Options = DEFAULT_OPTIONS,
    say: Callable[[str], None] = print,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> int:
    """Run a static task, or tell what running it would do; nothing but ``player`` ever uses a network.

    Questions that were answered before are not asked again; those whose request failed are. ``how-do-you`` has no
    data and is not scored; it is always run.

    Args:
        task: its published name.
        player: who answers.
        output: folder for all static tasks.
        provenance: for the metadata.
        options: see :class:`Options`.
        say: takes each line meant for the user.
        now: the time of the run, for the metadata.

    Returns:
        The exit code: 1 if requests failed.

    Raises:
        ConfigError: there is no such task, or an option does not fit.
    """
    for name, value in (("limit", options.limit), ("attempts", options.attempts)):
        if value is not None and value < 1:
            raise ConfigError(f"{name} must be 1 or more, found {value}")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", player.name):
        raise ConfigError(
            f"the name of a player must be a file name of letters, digits, . _ and -, found {player.name!r}"
        )
    run = _Run(task_named(task, options.state_split), player, output, options)
    if not (options.throw or run.task.dataset is None):
        for line in run.plan():
            say(line)
        return 0
    for row_index in run.missing():
        run.predict(row_index)
    failed = run.finish(provenance, now())
    asked = len(run.asked)
    say(f"{run.task.name}: {len(run.rows)} questions, {asked} asked now, {failed} failed: {run.folder}")
    return 1 if failed else 0


class _Run:
    def __init__(self, task: Task, player: StaticPlayer, output: Path, options: Options) -> None:
        self.task = task
        self.player = player
        self.options = options
        self.instruction = task.full_instruction(player.capabilities, options.allow_thinking)
        self.all_rows, self.revision = _rows(task, options)
        self.rows = self.all_rows[: options.limit]
        self.asked: list[int] = []
        asked = {
            "setup": {**player.setup, "model": player.model, "capabilities": player.capabilities.fingerprint},
            "instruction": self.instruction,
            "revision": self.revision,
            "flags": {"allow_thinking": options.allow_thinking},
        }
        self.folder = output / task.name / player.name / digest(asked)[:DIGEST_LENGTH]

    def instance(self, index: int) -> Instance:
        return self.task.instance(index, self.rows[index], self.player.capabilities)

    def path(self, index: int) -> Path:
        return self.folder / f"prediction_{index}.json"

    def read(self, index: int) -> Prediction | None:
        """The answer that is there; None if there is none, it is damaged, or its request failed."""
        path = self.path(index)
        try:
            found = check_fields(decode(path.read_bytes(), path.name), PREDICTION, path.name)
        except (FileNotFoundError, RecordError):
            return None
        return found if found["exception"] is None and found["index"] == index else None

    def missing(self) -> list[int]:
        return [index for index in range(len(self.rows)) if self.read(index) is None]

    # ---- telling -------------------------------------------------------------------------------------------

    def plan(self) -> list[str]:
        """What would be done, line by line."""
        missing = self.missing()
        first = self.instance(0)
        tokens = sum(self._tokens(self.instance(index)) for index in missing)
        limit = "" if self.options.limit is None else f" (limited to the first {self.options.limit})"
        return [
            f"Task: {self.task.name}",
            f"Data set: {self.task.dataset}, split {self.task.split or 'all'}, revision {self.revision}",
            f"Instances: {len(self.rows)} of {len(self.all_rows)}{limit}",
            "Instruction:",
            *(f"  {line}" for line in self.instruction.splitlines()),
            "First prompt:",
            *(f"  {line}" for part in first.parts for line in _shown(part).splitlines()),
            f"Output folder: {self.folder}",
            f"Predictions there: {len(self.rows) - len(missing)}",
            f"To ask: {len(missing)} requests, about {tokens} input tokens",
            "Nothing was asked. Use --throw to ask.",
        ]

    def _tokens(self, instance: Instance) -> int:
        texts = [self.instruction, *(part for part in instance.parts if isinstance(part, str))]
        pictures = len(instance.parts) - len(texts) + 1
        tokens = sum(-(-len(text) // CHARACTERS_PER_TOKEN) for text in texts)
        return tokens + pictures * self.player.capabilities.tokens_per_image

    # ---- asking --------------------------------------------------------------------------------------------

    def predict(self, index: int) -> None:
        """Ask one question and write what came of it, whatever that is."""
        prediction: Prediction = {
            "index": index,
            "usage": {},
            "model": self.player.model,
            "output": "",
            "thoughts": None,
            "raw_output": None,
            "error": None,
            "exception": None,
        }
        self.asked.append(index)
        try:
            reply = self.player.answer(self.task.name, self.instruction, self.instance(index))
            text = _well_formed(reply.text)
            answer, thoughts = split_reasoning(text)
            prediction |= {"output": answer, "thoughts": thoughts, "raw_output": text}
            prediction["usage"] = _counts(reply.usage)
        except Exception as error:
            # Whatever happens to one question, the others are still asked.
            prediction |= {"error": _kinds(error), "exception": _described(error)}
            prediction["usage"] = _counts(getattr(error, "usage", None))
        write_atomic(self.path(index), encode_document(prediction), durable=False)

    # ---- scoring -------------------------------------------------------------------------------------------

    def finish(self, provenance: Provenance, date: datetime) -> int:
        """Write scores and metadata; return how many requests failed."""
        outputs = [found["output"] if (found := self.read(index)) else "" for index in range(len(self.rows))]
        failed = len(self.missing())
        if self.task.dataset is None:
            answers: dict[str, list[dict[str, str]]] = {}
            for row, output in zip(self.rows, outputs, strict=True):
                answers.setdefault(row["component"], []).append({"prompt": row["model_input"], "response": output})
            write_atomic(self.folder / "how_do_you.json", encode_document(answers))
        else:
            comparers = self.task.comparers(self.player.capabilities)
            # One instance at a time: together their pictures and masks would fill the memory.
            scored = (
                Scored(output, instance.truth, instance.categories)
                for output, instance in zip(outputs, map(self.instance, range(len(self.rows))), strict=True)
            )
            write_atomic(self.folder / "metrics.json", encode_document(score(scored, comparers)))
        write_atomic(self.folder / "run_meta.json", encode_document(self._meta(failed, provenance, date)))
        return failed

    def _meta(self, failed: int, provenance: Provenance, date: datetime) -> dict[str, Any]:
        return {
            "model_name": self.player.model,
            "player_name": self.player.name,
            "run_date": date.isoformat(timespec="seconds"),
            "statics": {
                "task_name": self.task.name,
                "hf_repo_id": self.task.dataset,
                "dataset_split": self.task.split,
                "requested_revision": self.options.revision,
                "resolved_revision": self.revision,
                "n_instances": len(self.rows),
                "n_dataset": len(self.all_rows),
                "n_failed": failed,
                "limit": self.options.limit,
                "allow_thinking": self.options.allow_thinking,
                "instruction": self.instruction,
            },
            "setup": dict(self.player.setup),
            "capabilities": self.player.capabilities.model_dump(mode="json"),
            "provenance": provenance._asdict(),
        }


def is_partial(meta: Mapping[str, Any]) -> bool:
    """Whether the metadata of a run tell of scores over less than the whole data set."""
    statics = meta["statics"]
    return statics["limit"] is not None or statics["n_failed"] > 0 or statics["n_instances"] < statics["n_dataset"]


def _rows(task: Task, options: Options) -> tuple[Sequence[Row], str]:
    if task.name == HOW_DO_YOU or task.dataset is None:
        # The number of attempts is no part of what is asked: more of them add to those that are there.
        return how_do_you_rows(options.attempts), digest(HOW_DO_YOU)
    dataset = load_dataset(task.dataset, task.split, options.revision)
    return dataset.rows, dataset.revision


def _shown(part: str | Picture) -> str:
    if isinstance(part, str):
        return part
    return f"[picture, {len(part.data)} bytes, sha256 {sha256_hex(part.data)[:12]}]"


def _counts(usage: Any) -> dict[str, int]:
    """Counts of a usage by name, nested ones joined by dots, without zeros."""
    if usage is None:
        return {}
    data = usage._asdict() if hasattr(usage, "_asdict") else dict(usage)
    counts: dict[str, int] = {}
    for name, value in data.items():
        if isinstance(value, Mapping):
            counts |= {f"{name}.{key}": count for key, count in _counts(value).items()}
        elif type(value) is int and value:
            counts[name] = value
    return counts


def _well_formed(text: str) -> str:
    """Text without lone surrogates, which no file may hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _kinds(error: Exception) -> list[str] | None:
    kind = getattr(error, "kind", None)
    return [kind] if isinstance(kind, str) else None


def _described(error: Exception) -> dict[str, Any]:
    """An exception as plain data; its frames are given by module and line, without paths."""
    if isinstance(error, RowproofError):
        return {"type": type(error).__name__, "message": _well_formed(str(error)), "frames": []}
    frames = [
        {"module": frame.f_globals.get("__name__", "?"), "function": frame.f_code.co_name, "line": line}
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    return {"type": type(error).__name__, "message": _well_formed(str(error)[:MESSAGE_LENGTH]), "frames": frames}
