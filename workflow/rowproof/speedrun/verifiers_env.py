"""The environment ``nanogpt-speedrun`` for the verifiers library: rollouts of models, scored by our referee.

It needs the extra ``rowproof[verifiers]``: the last versions of verifiers that load environments of this kind.
``load_environment`` also stands in the package ``nanogpt_speedrun``, where the loader of verifiers looks for it.
"""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from rowproof.errors import ConfigError, RowproofError
from rowproof.hashing import sha256_hex
from rowproof.speedrun.attempts import RefereeAttempt, phase_seeds
from rowproof.speedrun.corpus import MANIFEST
from rowproof.speedrun.dialogue import Attempt, Dialogue, Task
from rowproof.speedrun.extraction import extract
from rowproof.speedrun.records_config import Arguments, Record, read_arguments
from rowproof.speedrun.referee.evaluation import WINDOW
from rowproof.speedrun.referee.ladder import SCRIPT_NAME, read_script
from rowproof.speedrun.referee.runs import Referee
from rowproof.speedrun.setups import CORPUS, SMOKE_THRESHOLD, SMOKE_WINDOWS, build_referee, find_record, read_salt
from rowproof.speedrun.steps import SMOKE_STEPS, with_steps

try:
    import datasets
    import verifiers as vf
except ImportError as error:
    raise ConfigError(f"the environment for verifiers needs the extra rowproof[verifiers]: {error}") from None

ROOT = Path(__file__).resolve().parents[3]
Profile = Literal["full", "smoke"]


def load_environment(
    system_prompt: str | None = None,
    max_turns: int = 1,
    use_think: bool = True,
    recalc_wallclock: bool | str | None = None,
    num_training_runs_per_attempt: int | None = None,
    nproc_per_node: int | None = None,
    dataset_name: str = "leloy/nanogpt-speedrun",
    dataset_split: str = "train",
    root: str | None = None,
    profile: Profile = "full",
    **more: Any,
) -> vf.Environment:
    """The environment, with the arguments that the published one takes.

    Args:
        system_prompt: replaces our system prompt.
        max_turns: most turns of the assistant; with 1, a single-turn environment is built.
        use_think: remove the thinking of the model.
        recalc_wallclock: measure the baseline again, in the same job. Always true on ``cpu-mini``, the default track;
            other values are refused there. Booleans and their texts are understood.
        num_training_runs_per_attempt: timed pairs, and seeds when larger. None leaves both to their own arguments.
        nproc_per_node: GPUs; on ``cpu-mini`` nothing but 1.
        dataset_name: name of the public data set; the CPU track has a record of its own.
        dataset_split: its split.
        root: folder of the project; None for that of this code.
        profile: ``smoke`` trains for 20 steps on little data, for tests.
        more: arguments of :class:`rowproof.speedrun.records_config.Arguments`; the rest goes to the constructor of
            the environment.

    Raises:
        ConfigError: an argument is out of its range, or a file is missing.
        SandboxError: runs cannot be confined on this machine.
    """
    given = {name: more.pop(name) for name in list(more) if name in Arguments.model_fields}
    given |= {
        "system_prompt": system_prompt,
        "max_turns": max_turns,
        "use_think": use_think,
        "recalc_wallclock": recalc_wallclock,
        "num_training_runs_per_attempt": num_training_runs_per_attempt,
        "nproc_per_node": nproc_per_node,
        "dataset_name": dataset_name,
        "dataset_split": dataset_split,
    }
    # None is the default of the track, whatever the type.
    arguments = read_arguments({key: value for key, value in given.items() if value is not None}, "env-args")
    if arguments.track != "cpu-mini":
        raise ConfigError("env-args: track must be cpu-mini in this environment: runs on GPUs are jobs of the workflow")
    folder = ROOT if root is None else Path(root).resolve()
    if profile not in ("full", "smoke"):
        raise ConfigError(f"env-args: profile must be full or smoke, found {profile!r}")
    record, code = (
        _smoke_record(folder, arguments) if profile == "smoke" else find_record(folder, "cpu-mini", arguments.record)
    )
    referee = _referee(folder, arguments, profile)
    attempt = RefereeAttempt(
        referee,
        code,
        record.val_loss_threshold,
        arguments,
        phase_seeds(arguments.n_seeds),
        sigma=record.loss_sigma,
    )
    return build_environment(Task(record, code, arguments), attempt, **more)


def build_environment(task: Task, attempt: Attempt, **more: Any) -> vf.Environment:
    """The environment of a task whose patches are run by ``attempt``; ``more`` goes to its constructor."""
    single = task.arguments.max_turns == 1
    kind = SingleTurnSpeedrun if single else MultiTurnSpeedrun
    turns = {} if single else {"max_turns": task.arguments.max_turns}
    parser = PatchParser(task.arguments)
    metrics = [_metric(name) for name in ("reward_strict", "reward_code_variant", "best_turn_reward")]
    scorer = _Scorer(task, attempt)
    rubric = vf.Rubric(funcs=[scorer.speedrun_reward, *metrics], weights=[1.0, *[0.0] * len(metrics)], parser=parser)
    prompt, record = task.prompt, task.record
    row = {
        "question": prompt.user,
        "answer": "",
        "info": {
            "record_index": record.record_index,
            "wallclock_ms": record.wallclock_ms,
            "code": task.code,
            "val_loss_threshold": record.val_loss_threshold,
        },
    }
    environment = kind(
        dataset=datasets.Dataset.from_list([row]),
        system_prompt=prompt.system,
        parser=parser,
        rubric=rubric,
        **turns,
        **more,
    )
    environment.scorer = scorer
    return environment


class PatchParser(vf.Parser):
    """Takes the patch out of a completion by our rules."""

    def __init__(self, arguments: Arguments) -> None:
        """Extract as ``arguments`` say."""
        super().__init__()
        self._modes = arguments.think_mode or "strip", arguments.fence_mode

    def parse(self, text: str) -> str:
        """The patch in one answer; empty when there is none."""
        return extract([{"role": "assistant", "content": text}], *self._modes).patch

    def parse_answer(self, completion: Any) -> str | None:
        """The patch in the last answer of a completion; None when there is no answer."""
        answers = _answers(completion)
        return self.parse(answers[-1]) if answers else None


class _Scorer:
    """Runs patches one at a time and off the event loop: two runs at once would disturb each other's times."""

    def __init__(self, task: Task, attempt: Attempt) -> None:
        self._task, self._attempt, self._lock = task, attempt, asyncio.Lock()

    def dialogue(self, state: vf.State) -> Dialogue:
        """The dialogue of a rollout, up to the last answer of the model."""
        if "dialogue" not in state:
            state["dialogue"] = Dialogue(self._task)
        dialogue = state["dialogue"]
        said = [message for step in state["trajectory"] for message in step["completion"]]
        for answer in _answers(said)[len(dialogue.turns) :]:
            dialogue.take(answer)
        return dialogue

    async def run(self, call: Callable[[Attempt], Any]) -> Any:
        """``call(attempt)`` in a thread.

        Raises:
            vf.InfraError: the harness failed, which is no fault of the model.
        """
        async with self._lock:
            try:
                return await asyncio.to_thread(call, self._attempt)
            except RowproofError as error:
                raise vf.InfraError(str(error)) from error

    async def speedrun_reward(self, state: vf.State) -> float:
        """The reward of the turn that counts; the transcript is left in the state as ``transcript``."""
        if state.get("error") is not None:
            return 0.0
        try:
            dialogue = self.dialogue(state)
            state["transcript"] = await self.run(dialogue.finish)
        except vf.InfraError as error:
            # A reward function that raises counts as zero; the rollout has failed instead, and may be repeated.
            state["error"] = error
            return 0.0
        return state["transcript"]["reward"]


class SingleTurnSpeedrun(vf.SingleTurnEnv):
    """One patch, which is scored."""


class MultiTurnSpeedrun(vf.MultiTurnEnv):
    """Patches that stack; every one but the last is answered with what its runs gave."""

    async def env_response(self, messages: Any, state: vf.State, **_: Any) -> Any:
        """What became of the last patch."""
        dialogue = self.scorer.dialogue(state)
        return [vf.UserMessage(content=await self.scorer.run(dialogue.reply))]


def _metric(name: str) -> Any:
    def value(state: vf.State) -> float:
        return state.get("transcript", {}).get(name, 0.0)

    value.__name__ = name
    return value


def _answers(completion: Any) -> list[str]:
    if isinstance(completion, str):
        return [completion]
    found = []
    for message in completion:
        role, content = (
            (message.get("role"), message.get("content"))
            if isinstance(message, dict)
            else (message.role, message.content)
        )
        if role == "assistant":
            found.append(content if isinstance(content, str) else "")
    return found


# ---- records and referee -------------------------------------------------------------------------------------------


def _smoke_record(root: Path, arguments: Arguments) -> tuple[Record, str]:
    code = with_steps(read_script(root / "resources" / "speedrun", arguments.record), SMOKE_STEPS)
    record = Record(
        track="cpu-mini",
        record_id=f"cpu-mini/smoke-{arguments.record}",
        record_index=0,
        title=f"{arguments.record} for {SMOKE_STEPS} steps",
        code_path=f"resources/speedrun/{SCRIPT_NAME}",
        code_sha256=sha256_hex(code.encode("utf-8")),
        script_name=SCRIPT_NAME,
        val_loss_threshold=SMOKE_THRESHOLD,
        data_manifest=str(CORPUS / MANIFEST),
        val_tokens=SMOKE_WINDOWS * WINDOW,
    )
    return record, code


def _referee(root: Path, arguments: Arguments, profile: Profile) -> Referee:
    # The salt lives as long as the environment.
    salt, _ = read_salt(None, os.environ)
    return build_referee(root, arguments, salt, smoke=profile == "smoke")
