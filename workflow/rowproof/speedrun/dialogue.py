"""The dialogue of a proposer with the harness: patches, what their runs gave, and which turn is scored.

Each turn ends in one of five events. After every turn but the last the proposer is told what happened; patches stack.
The runs behind these answers have other seeds than the run that scores: picking the luckiest turn gains nothing.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from rowproof.errors import ConfigError, RecordError
from rowproof.hashing import sha256_hex
from rowproof.llm.client import well_formed
from rowproof.records import NULL, Kinds, check_fields, decode, encode_document, encode_line
from rowproof.speedrun.extraction import extract
from rowproof.speedrun.outcomes import Outcome, Stage
from rowproof.speedrun.patching import apply_patch, canonical_diff
from rowproof.speedrun.policy import check_policy
from rowproof.speedrun.prompts import Prompt, build_prompt, render
from rowproof.speedrun.records_config import Arguments, Record, read_arguments
from rowproof.speedrun.scoring import reward_columns

SCHEMA = "rowproof/speedrun-dialogue/1"
STDERR_CHARACTERS = 4000

Event = Literal["not_parsed", "empty", "not_applied", "run_failed", "run_succeeded"]
Phase = Literal["feedback", "final"]
Data = dict[str, Any]

# What a proposer may know of a failure whose full text names the audit loss.
_AUDIT_GAP = "The loss on fresh text must be as near to the validation loss as that of the base script is."
# Programs of the sandbox; every other absolute path tells of the machine around it.
_PATH = re.compile(r"(?<![\w./])/(?!script/|referee/)[^\s\"':,;()<>]+")


@dataclass(frozen=True)
class Result:
    """What runs and evaluation of one patched script gave.

    Attributes:
        outcome: of a stage from running on.
        detail: the failure in a sentence, else empty.
        stderr: the end of the error output of a run that failed.
        val_loss: nats per token by seed.
        verdict: of the loss rule; None without losses.
        train_time_ms_median: of the patched script's timed runs, milliseconds; None where it was not timed.
        wall_ratio: time of the record's script over that of the patched one.
        ratio_ci95: its 95 % interval.
        evidence: what the harness kept of the runs, for the files of the attempt; no part of a transcript.
    """

    outcome: Outcome
    detail: str = ""
    stderr: str = field(default="", repr=False)
    val_loss: Mapping[int, float] = field(default_factory=dict)
    verdict: str | None = None
    train_time_ms_median: float | None = None
    wall_ratio: float | None = None
    ratio_ci95: tuple[float, float] | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def val_loss_mean(self) -> float | None:
        """Mean loss over seeds, nats per token, to six decimals."""
        return round(sum(self.val_loss.values()) / len(self.val_loss), 6) if self.val_loss else None

    def to_data(self) -> Data:
        """Plain data for :meth:`from_data`."""
        return {
            "outcome": str(self.outcome),
            "detail": self.detail,
            "stderr": self.stderr,
            "val_loss": {str(seed): loss for seed, loss in sorted(self.val_loss.items())},
            "verdict": self.verdict,
            "train_time_ms_median": self.train_time_ms_median,
            "wall_ratio": self.wall_ratio,
            "ratio_ci95": None if self.ratio_ci95 is None else list(self.ratio_ci95),
        }

    @classmethod
    def from_data(cls, data: Any, where: str) -> "Result":
        """The result of a transcript.

        Raises:
            RecordError: ``data`` is none.
        """
        fields = check_fields(data, _RESULT, where)
        interval = fields["ratio_ci95"]
        try:
            fields["outcome"] = Outcome(fields["outcome"])
            fields["val_loss"] = {int(seed): loss for seed, loss in fields["val_loss"].items()}
            numbers = [*fields["val_loss"].values(), *(interval or [0.0, 0.0])]
            if any(type(number) is not float for number in numbers) or len(interval or [0, 0]) != 2:
                raise ValueError("losses and interval must be numbers with a point")
        except ValueError as error:
            raise RecordError(f"{where}: {error}") from None
        return cls(**fields | {"ratio_ci95": None if interval is None else tuple(interval)})


_RESULT: dict[str, Kinds] = {
    "outcome": (str,),
    "detail": (str,),
    "stderr": (str,),
    "val_loss": (dict,),
    "verdict": (str, NULL),
    "train_time_ms_median": (float, NULL),
    "wall_ratio": (float, NULL),
    "ratio_ci95": (list, NULL),
}

Attempt = Callable[[str, Phase], Result]
"""Runs a patched script (its text) with the seeds of a phase, against the record's script; raises if it cannot."""

Player = Callable[[Sequence[Mapping[str, str]]], str | None]
"""Gives the next answer to a dialogue (messages with ``role`` and ``content``), or None to end it."""


class Task(NamedTuple):
    """What a dialogue is about.

    Attributes:
        record: what is to be improved.
        code: text of its script.
        arguments: resolved.
    """

    record: Record
    code: str
    arguments: Arguments

    @property
    def prompt(self) -> Prompt:
        """The messages before the first turn."""
        return build_prompt(self.record, self.code, self.arguments)


@dataclass
class Turn:
    """One answer of the proposer and what became of it.

    Attributes:
        number: from 1.
        base: script that the patch was applied to.
        patched: patched script; None when there is none that may run.
        failure: why there is none, or None.
        detail: the failure in a sentence, else empty.
        flags: of extraction, applying and policy, in order.
        steps: of extraction.
        diff: canonical diff from ``base`` to ``patched``.
        feedback: result of the runs that the proposer was told of.
        final: result of the runs that score.
    """

    number: int
    base: str
    patched: str | None
    failure: Outcome | None
    detail: str
    flags: tuple[str, ...]
    steps: tuple[tuple[str, int], ...]
    diff: str
    feedback: Result | None = None
    final: Result | None = None

    @property
    def result(self) -> Result | None:
        """The result that counts for this turn: the final one where there is one."""
        return self.final or self.feedback

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of this turn; None while it was not run."""
        return self.failure or (self.result.outcome if self.result else None)

    @property
    def event(self) -> Event | None:
        """Which of the five events the turn was; None while it was not run."""
        if self.failure is Outcome.EMPTY_PATCH:
            return "empty"
        if self.failure is not None:
            return "not_parsed" if self.failure.stage is Stage.EXTRACTION else "not_applied"
        if self.result is None:
            return None
        failed = not self.result.outcome.earns_reward and self.result.outcome is not Outcome.THRESHOLD_MISSED
        return "run_failed" if failed else "run_succeeded"


class Dialogue:
    """A dialogue under way."""

    def __init__(self, task: Task) -> None:
        """Begin with the two messages of the prompt.

        Raises:
            ConfigError: a text of the prompt is missing or malformed.
        """
        self.task = task
        self.messages: list[dict[str, str]] = task.prompt.messages
        self.turns: list[Turn] = []
        self._base = task.code

    @property
    def turns_left(self) -> int:
        """Turns that may still come."""
        return self.task.arguments.max_turns - len(self.turns)

    def take(self, answer: str) -> Turn:
        """Take the proposer's next answer: extract the patch, apply it to the present script, check the policy.

        Raises:
            ConfigError: there is no turn left.
            RowproofError: the published commands are to apply the patch, and one of them is missing.
        """
        if self.turns_left < 1:
            raise ConfigError(f"a dialogue must have at most {len(self.turns)} turns, found one more: raise max_turns")
        self.messages.append({"role": "assistant", "content": well_formed(answer)})
        self.turns.append(self._turn())
        return self.turns[-1]

    def reply(self, attempt: Attempt) -> str:
        """Run the patch of the last turn, and tell the proposer what came of it; returns the message.

        Raises:
            RowproofError: the harness failed.
        """
        turn, arguments = self.turns[-1], self.task.arguments
        if turn.patched is not None:
            turn.feedback = attempt(turn.patched, "feedback")
            if turn.event == "run_succeeded" or arguments.on_failed_turn == "keep":
                self._base = turn.patched
        message = self._message(turn)
        self.messages.append({"role": "user", "content": message})
        return message

    def finish(self, attempt: Attempt) -> Data:
        """Run what is to be scored with the seeds of the final phase; returns the transcript.

        The last turn is scored, whatever came before. With ``score_turn: best`` it is the one whose feedback runs
        earned most, the earlier one of equals.

        Raises:
            RowproofError: the harness failed.
        """
        turn = self._chosen(attempt)
        if turn is not None and turn.patched is not None:
            turn.final = attempt(turn.patched, "final")
        return self._transcript(turn)

    # ---- turns -------------------------------------------------------------------------------------------------

    def _turn(self) -> Turn:
        record, arguments = self.task.record, self.task.arguments
        number, base = len(self.turns) + 1, self._base
        found = extract(self.messages, arguments.think_mode or "strip", arguments.fence_mode)
        if found.failure is not None:
            return Turn(number, base, None, found.failure, found.detail, found.flags, found.steps, "")
        applied = apply_patch(base, found.patch, record.script_name, arguments.apply_mode)
        flags = (*found.flags, *applied.flags)
        if applied.patched is None:
            return Turn(number, base, None, applied.failure, applied.detail, flags, found.steps, "")
        failure, detail, more = _checked(self.task.code, applied.patched, record.script_name)
        patched = None if failure else applied.patched
        return Turn(number, base, patched, failure, detail, (*flags, *more), found.steps, applied.diff)

    def _chosen(self, attempt: Attempt) -> Turn | None:
        if not self.turns or self.task.arguments.score_turn == "last":
            return self.turns[-1] if self.turns else None
        last = self.turns[-1]
        if last.patched is not None and last.feedback is None and any(turn.feedback for turn in self.turns):
            last.feedback = attempt(last.patched, "feedback")
        best = max(self.turns, key=self._reward)
        return best if self._reward(best) > 0 else last

    def _reward(self, turn: Turn) -> float:
        return self._columns(turn)["reward"]

    def _columns(self, turn: Turn | None) -> Data:
        result = turn.result if turn else None
        if result is None:
            return reward_columns(Outcome.PARSE_FAILED, None, None)
        timed = None
        if result.wall_ratio is not None:
            timed = {"wall_ratio": result.wall_ratio, "ratio_ci95": result.ratio_ci95}
        return reward_columns(result.outcome, result.verdict, timed, self.task.arguments.nondeterminism)

    # ---- texts -------------------------------------------------------------------------------------------------

    def _message(self, turn: Turn) -> str:
        data = self._feedback(turn)
        return f"{self._text(turn, data)}\n\n```json\n{encode_line(data)}\n```"

    def _feedback(self, turn: Turn) -> Data:
        result, threshold = turn.feedback, self.task.record.val_loss_threshold
        mean = result.val_loss_mean if result else None
        return {
            "event": turn.event,
            "turn": turn.number,
            "outcome": str(turn.outcome),
            "detail": turn.detail if result is None else _shown(result),
            "val_loss_mean": mean,
            "val_loss_per_seed": result.to_data()["val_loss"] if result else {},
            "train_time_ms_median": result.train_time_ms_median if result else None,
            "wall_ratio": result.wall_ratio if result else None,
            "ratio_ci95": result.to_data()["ratio_ci95"] if result else None,
            "threshold": threshold,
            "threshold_met": None if mean is None else mean <= threshold,
            "reward_if_final": self._reward(turn),
            "turns_left": self.turns_left,
            "base_sha256": _sha256(self._base),
        }

    def _text(self, turn: Turn, data: Data) -> str:
        detail, outcome = data["detail"], data["outcome"]
        if turn.event == "empty":
            return render("empty", {})
        if turn.event == "not_parsed":
            return render("not-parsed", {"detail": detail})
        if turn.event == "not_applied":
            return render("not-applied", {"outcome": outcome, "detail": detail})
        if turn.event == "run_failed":
            kept = self.task.arguments.on_failed_turn == "keep"
            note = "It stays patched all the same" if kept else "The patch was taken back"
            note += ": the next patch must apply to the script as it is now."
            return render("run-failed", {"outcome": outcome, "base_note": note, "detail": detail})
        values = {
            "runs": str(len(data["val_loss_per_seed"])),
            "val_loss_mean": _number(data["val_loss_mean"], "{:.4f}"),
            "threshold": f"{data['threshold']:g}",
            "met": "met" if data["threshold_met"] else "missed",
            "train_time_ms": _number(data["train_time_ms_median"], "{:.0f}"),
            "wall_ratio": _number(data["wall_ratio"], "{:.2f}"),
            "reward": f"{data['reward_if_final']:.3f}",
        }
        return render("run-succeeded", values)

    # ---- transcript --------------------------------------------------------------------------------------------

    def _transcript(self, scored: Turn | None) -> Data:
        record, prompt = self.task.record, self.task.prompt
        patched = scored.patched if scored else None
        diff = "" if patched is None else canonical_diff(self.task.code, patched, record.script_name)
        return {
            "schema": SCHEMA,
            "record_id": record.record_id,
            "code_sha256": _sha256(self.task.code),
            "script_name": record.script_name,
            "threshold": record.val_loss_threshold,
            "arguments": self.task.arguments.model_dump(mode="json"),
            "prompt": {"version": prompt.version, "sha256": prompt.sha256},
            "messages": self.messages,
            "turns": [_turn_data(turn) for turn in self.turns],
            "scored_turn": scored.number if scored else None,
            "outcome": str(scored.outcome if scored else Outcome.PARSE_FAILED),
            "flags": list(scored.flags) if scored else [],
            "patched_sha256": None if patched is None else _sha256(patched),
            "diff": diff,
            **self._columns(scored),
            "best_turn_reward": max((self._reward(turn) for turn in self.turns), default=0.0),
        }


def _checked(code: str, patched: str, script_name: str) -> tuple[Outcome | None, str, list[str]]:
    """Failure, detail and flags of a patched script against the record's own."""
    # Turns that undo each other make no change either; the applier's own rule decides that.
    total = canonical_diff(code, patched, script_name)
    whole = apply_patch(code, total, script_name) if total else None
    if whole is None or whole.failure is Outcome.NOOP_PATCH:
        return Outcome.NOOP_PATCH, "the patches together must change code of the base script, found no change left", []
    report = check_policy(patched, code)
    flags = [f"policy:{rule}" for rule in dict.fromkeys(finding.rule for finding in report.soft)]
    if not report.hard:
        return None, "", flags
    shown = "; ".join(f"line {finding.line}: {finding.rule}: {finding.detail}" for finding in report.hard[:5])
    return Outcome.POLICY_VIOLATION, f"the patched script must keep the policy, found {shown}", flags


def _shown(result: Result) -> str:
    """What the proposer may read of a failed run."""
    if result.outcome is Outcome.AUDIT_GAP:
        return _AUDIT_GAP
    text = _PATH.sub("(path)", f"{result.detail}\n{result.stderr}").strip()
    return text[-STDERR_CHARACTERS:]


def _number(value: float | None, form: str) -> str:
    return "not measured" if value is None else form.format(value)


def _sha256(text: str) -> str:
    return sha256_hex(text.encode("utf-8"))


def _turn_data(turn: Turn) -> Data:
    return {
        "turn": turn.number,
        "event": turn.event,
        "outcome": None if turn.outcome is None else str(turn.outcome),
        "detail": turn.detail,
        "flags": list(turn.flags),
        "steps": [[name, characters] for name, characters in turn.steps],
        "base_sha256": _sha256(turn.base),
        "patched_sha256": None if turn.patched is None else _sha256(turn.patched),
        "diff": turn.diff,
        "feedback": None if turn.feedback is None else turn.feedback.to_data(),
        "final": None if turn.final is None else turn.final.to_data(),
    }


# ---- whole dialogues -------------------------------------------------------------------------------------------------


def play(task: Task, player: Player, attempt: Attempt) -> Data:
    """A dialogue from its first turn to its score; returns the transcript.

    Raises:
        RowproofError: the player or the harness failed; neither is the proposer's fault, and nothing is scored.
    """
    return converse(Dialogue(task), player, attempt)


def converse(dialogue: Dialogue, player: Player, attempt: Attempt) -> Data:
    """What :func:`play` does, with a dialogue that the caller keeps: it holds what no transcript has."""
    while (answer := player(dialogue.messages)) is not None:
        dialogue.take(answer)
        if dialogue.turns_left == 0:
            break
        dialogue.reply(attempt)
    return dialogue.finish(attempt)


def encode_transcript(transcript: Data) -> bytes:
    """The canonical document of a transcript."""
    return encode_document(transcript)


def replay(data: bytes, record: Record, code: str, where: str) -> Data:
    """A recorded dialogue played again, with its answers and its results of runs; returns the transcript.

    Args:
        data: a document of :func:`encode_transcript`.
        record: of the dialogue.
        code: text of its script.
        where: names the document in messages.

    Raises:
        RecordError: it is none, or playing it again gives another document.
    """
    document = check_fields(decode(data, where), _DOCUMENT, where)
    messages, results = document["messages"], {}

    def attempt(patched: str, phase: Phase) -> Result:
        try:
            return results[phase, _sha256(patched)].pop(0)
        except (KeyError, IndexError):
            raise RecordError(f"{where}: must hold a {phase} result of {_sha256(patched)[:12]}, found none") from None

    try:
        dialogue = Dialogue(Task(record, code, read_arguments(document["arguments"], where)))
        answers = [message["content"] for message in messages if message["role"] == "assistant"]
        results.update(_recorded(document["turns"], where))
        for answer in answers:
            dialogue.take(answer)
            # A dialogue may break off before the answer to a turn.
            if len(dialogue.messages) < len(messages):
                dialogue.reply(attempt)
    except (ConfigError, KeyError, TypeError, AttributeError) as error:
        raise RecordError(f"{where}: must be the transcript of a dialogue: {error}") from None
    again = dialogue.finish(attempt)
    if encode_transcript(again) != data:
        changed = [key for key in again if again[key] != document[key]] or ["form"]
        raise RecordError(f"{where}: must be what its answers and results give, found another {', '.join(changed)}")
    return again


def _recorded(turns: list[Data], where: str) -> dict[tuple[str, str], list[Result]]:
    found: dict[tuple[str, str], list[Result]] = {}
    for phase in ("feedback", "final"):
        for turn in turns:
            if turn[phase] is not None:
                place = f"{where}: turn {turn['turn']}: {phase}"
                found.setdefault((phase, turn["patched_sha256"]), []).append(Result.from_data(turn[phase], place))
    return found


_DOCUMENT: dict[str, Kinds] = {
    "schema": (str,),
    "record_id": (str,),
    "code_sha256": (str,),
    "script_name": (str,),
    "threshold": (float,),
    "arguments": (dict,),
    "prompt": (dict,),
    "messages": (list,),
    "turns": (list,),
    "scored_turn": (int, NULL),
    "outcome": (str,),
    "flags": (list,),
    "patched_sha256": (str, NULL),
    "diff": (str,),
    "reward": (float,),
    "reward_ci95": (list, NULL),
    "reward_strict": (float,),
    "reward_code_variant": (float,),
    "best_turn_reward": (float,),
}
