"""What the commands of this family do."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rowproof.errors import ConfigError
from rowproof.files import write_atomic
from rowproof.hashing import sha256_hex
from rowproof.records import encode_document
from rowproof.speedrun.artefacts import ROW, attempt_files, attempt_id, check_folder, write_folder
from rowproof.speedrun.attempts import RefereeAttempt, phase_seeds
from rowproof.speedrun.corpus import MANIFEST, verify_corpus, write_corpus
from rowproof.speedrun.dialogue import Attempt, Dialogue, Player, Task, converse
from rowproof.speedrun.models import MAX_TOKENS, PLAYERS, load_model, model_player
from rowproof.speedrun.platforms import Machine, measure_machine
from rowproof.speedrun.players import FilePlayer, imported_answers
from rowproof.speedrun.progress import Progress
from rowproof.speedrun.records_config import FINAL_SEEDS, Arguments, load_record, read_arguments
from rowproof.speedrun.referee.ladder import LADDER
from rowproof.speedrun.referee.runs import Referee
from rowproof.speedrun.row import Provenance
from rowproof.speedrun.setups import CORPUS, RECORDS, SMOKE_THRESHOLD, build_referee, find_record, read_salt
from rowproof.speedrun.steps import SMOKE_STEPS, with_steps
from rowproof.strict_yaml import load

OUTPUT = Path("output", "speedrun")
# Losses of calibration runs, so that one that was broken off goes on where it was.
MEASURED = Path("work", "speedrun", "calibration.json")
CALIBRATION_SALT = b"calibration"
SMOKE_FILE = "smoke.json"
PROJECT = Path(__file__).resolve().parents[3]

Data = dict[str, Any]


def _root() -> Path:
    from rowproof.cli import project_root

    return project_root()


def _say(line: str) -> None:
    print(line, flush=True)


# ---- scoring -----------------------------------------------------------------------------------------------------


class Bench:
    """The referee of one job with what its rows say of it; every attempt of the job is made here."""

    def __init__(self, root: Path, task: Task, salt: Path | None, smoke: bool, report: Callable[[str], object]) -> None:
        """Look at the machine, and get the referee ready.

        Args:
            root: the project.
            task: what attempts are about.
            salt: file of the audit salt; None for the environment's, or a new one.
            smoke: run 20 steps of all scripts and score nothing.
            report: takes lines of progress.

        Raises:
            ConfigError: a file or an argument is not what it must be.
            RowproofError: this machine cannot run attempts.
        """
        self.task, self.smoke, self._report = task, smoke, report
        self._salt, self._fresh = read_salt(salt, os.environ)
        self.machine: Machine = measure_machine(task.arguments.threads)
        self.referee: Referee = build_referee(root, task.arguments, self._salt, smoke)
        peak = self.machine.peak_gflops_per_s
        report(f"core {self.referee.sandbox.core}, {self.referee.sandbox.mode} sandbox, peak {peak:.1f} GFLOP/s")

    def attempt(self) -> Attempt:
        """What runs patched scripts."""
        task, arguments = self.task, self.task.arguments
        made = RefereeAttempt(
            self.referee,
            with_steps(task.code, SMOKE_STEPS) if self.smoke else task.code,
            SMOKE_THRESHOLD if self.smoke else task.record.val_loss_threshold,
            arguments,
            phase_seeds(arguments.n_seeds),
            sigma=task.record.loss_sigma,
            peak_gflops_per_s=self.machine.peak_gflops_per_s,
        )

        def run(patched: str, phase: Any) -> Any:
            made.watch = Progress(arguments.n_seeds, arguments.n_pairs, self._report)
            return made(with_steps(patched, SMOKE_STEPS) if self.smoke else patched, phase)

        return run

    def score(self, player: Player, name: Data, source: Callable[[], Data], folder: Path, prompted: bool) -> Data:
        """Hold a dialogue, score it, and leave its files in ``folder``; returns the row.

        Args:
            player: the proposer.
            name: its ``kind`` and ``name``.
            source: what else is known of it, asked for afterwards.
            folder: of the attempt, checked before.
            prompted: whether it was shown the prompt.

        Raises:
            RowproofError: the player or the harness failed; nothing is scored or written.
        """
        dialogue = Dialogue(self.task)
        transcript = converse(dialogue, player, self.attempt())
        answers = [message["content"] for message in dialogue.messages if message["role"] == "assistant"]
        by = Provenance(
            attempt_id(self.task, answers, smoke=self.smoke),
            {**name, "turns": len(answers)},
            prompted,
            sha256_hex(self._salt),
            self.referee.sandbox.mode,
            self.machine,
        )
        files, row = attempt_files(dialogue, transcript, by, {**name, **source()})
        if self.smoke:
            # No row, so that nobody takes it for a score.
            del files[ROW]
            said = {"scored": False, "steps": SMOKE_STEPS, "outcome": row["verifiable"]["outcome"]}
            files[SMOKE_FILE] = encode_document(said)
        if self._fresh and self.task.arguments.publish_salt:
            # Used in this job alone: with it anybody can generate the audit text again.
            files["audit_salt"] = self._salt + b"\n"
        write_folder(folder, files)
        self._tell(row, transcript, folder)
        return row

    def _tell(self, row: Data, transcript: Data, folder: Path) -> None:
        known, timed = row["verifiable"], row["timed"]
        turn = next((turn for turn in transcript["turns"] if turn["turn"] == transcript["scored_turn"]), {})
        detail = turn["final"]["detail"] if turn.get("final") else turn.get("detail", "")
        self._report(f"outcome {known['outcome']}{': ' if detail else ''}{detail}")
        if self.smoke:
            self._report(f"smoke: {SMOKE_STEPS} steps tried the plumbing, nothing is scored; files in {folder}")
            return
        loss = known["val_loss"]["mean"]
        if loss is not None:
            self._report(f"loss {loss:.3f}, threshold {known['threshold']:g}, verdict {known['verdict']}")
        if timed["wall_ratio"] is not None:
            low, high = timed["ratio_ci95"]
            self._report(f"ratio of times {timed['wall_ratio']:.3f}, 95 % interval {low:.3f} to {high:.3f}")
        flags = [*known["flags"], *timed["timing_flags"]]
        self._report(f"reward {timed['reward']:.3f}, strict {timed['reward_strict']:.3f}")
        self._report(f"flags {', '.join(flags) or 'none'}; claims {', '.join(timed['statements']) or 'none'}")
        self._report(f"files in {folder}")


def _arguments(root: Path, path: Path | None, smoke: bool = False, **changes: Any) -> Arguments:
    """The arguments of a file, or the defaults, with ``changes``; resolved."""
    found = Arguments() if path is None else load(path, Arguments, root)[0]
    if found.track != "cpu-mini":
        raise ConfigError("arguments: track must be cpu-mini here, found gpu: snakemake --profile gpu runs that track")
    if smoke:
        changes |= {"n_seeds": 1, "n_pairs": 1}
    data = found.model_dump() | {key: value for key, value in changes.items() if value is not None}
    if smoke:
        data["num_training_runs_per_attempt"] = None
    return read_arguments(data, "arguments" if path is None else str(path))


def _task(root: Path, arguments: Arguments) -> Task:
    record, code = find_record(root, "cpu-mini", arguments.record)
    return Task(record, code, arguments)


def score(args: argparse.Namespace) -> int:
    """Score the patch of one or more files."""
    root = _root()
    folder = args.output or root / OUTPUT / (args.patches[0].stem + ("-smoke" if args.smoke else ""))
    score_patches(root, args.patches, args.arguments, args.record, folder, args.audit_salt, args.smoke, _say)
    return 0


def score_patches(
    root: Path,
    patches: list[Path],
    arguments_path: Path | None,
    record: str | None,
    folder: Path,
    salt: Path | None,
    smoke: bool,
    report: Callable[[str], object],
    replace: bool = False,
) -> Data:
    """Score the patch of one or more files, one for each turn; returns the row.

    Args:
        root: the project.
        patches: diffs, or answers that hold one.
        arguments_path: file of the arguments; None for the defaults.
        record: name of the base record; None for that of the arguments.
        folder: of the attempt.
        salt: file of the audit salt.
        smoke: 20 steps and one pair, which score nothing.
        report: takes lines of progress.
        replace: put the attempt in place of another one.

    Raises:
        RowproofError: bad input, or a failure of the harness; nothing is written then.
    """
    task = _task(root, _arguments(root, arguments_path, smoke, record=record, max_turns=len(patches)))
    player = FilePlayer(patches)
    if not replace:
        texts = [path.read_bytes().decode("utf-8") for path in patches]
        check_folder(folder, attempt_id(task, texts, smoke=smoke))
    bench = Bench(root, task, salt, smoke, report)
    names = [path.name for path in patches]
    name = {"kind": "file", "name": names[0]}
    return bench.score(player, name, lambda: {"files": names}, folder, prompted=False)


def play(args: argparse.Namespace) -> int:
    """Let models propose patches, one after the other."""
    if args.record and args.replay:
        raise ConfigError("--record and --replay must not be given together: choose one")
    if args.max_tokens is not None and args.max_tokens < 1:
        raise ConfigError(f"--max-tokens must be 1 or more, found {args.max_tokens}")
    root = _root()
    task = _task(root, _arguments(root, args.arguments))
    mode = "replay" if args.replay else "record" if args.record else "off"
    cassettes: Path | None = args.replay or args.record
    players = []
    for name in dict.fromkeys(args.models):
        model, provider = load_model(root, name, args.provider)
        path = (
            None
            if cassettes is None
            else cassettes / f"speedrun-{task.record.record_id.partition('/')[2]}-{name}.jsonl"
        )
        player = model_player(model, provider, mode, path, os.environ, args.max_tokens or MAX_TOKENS)
        folder = (args.output or root / OUTPUT) / name
        check_folder(folder, None)
        players.append((name, player, folder))
    bench = Bench(root, task, args.audit_salt, False, _say)
    for name, player, folder in players:
        _say(f"{PLAYERS}/{name}.yaml proposes")
        bench.score(player, {"kind": "model", "name": name}, lambda p=player: {"model": p.describe()}, folder, True)
    return 0


def import_results(args: argparse.Namespace) -> int:
    """Write the answers of rollouts as files that ``score`` takes."""
    check_folder(args.output, None)
    try:
        data = args.results.read_bytes()
    except OSError as error:
        raise ConfigError(f"{args.results}: must be a readable results.jsonl: {error.strerror}") from None
    rollouts = imported_answers(data, args.results.name)
    if not any(rollouts):
        raise ConfigError(f"{args.results}: must hold at least one answer of a model, found none")
    files = {}
    for number, answers in enumerate(rollouts):
        for turn, answer in enumerate(answers, start=1):
            files[f"rollout-{number:03d}-turn-{turn}.txt"] = answer.encode("utf-8", "replace")
    write_folder(args.output, files)
    _say(f"{len(files)} answers of {len(rollouts)} rollouts in {args.output}; no reward was taken over")
    _say("score a rollout: rowproof speedrun score " + " ".join(map(str, sorted(args.output.glob("rollout-000-*")))))
    return 0


# ---- records and corpus ------------------------------------------------------------------------------------------


def show_records(args: argparse.Namespace) -> int:
    """List the records of the CPU track."""
    root = _root()
    for path in sorted((root / RECORDS / "cpu-mini").glob("*.yaml")):
        record, _ = load_record(root, path)
        print(path.stem, record.title, f"{record.val_loss_threshold:g}", record.code_sha256[:12], sep="\t")
    return 0


def corpus(args: argparse.Namespace) -> int:
    """Generate the corpus where there is none, and check it."""
    folder = args.folder or _root() / CORPUS
    if not (folder / MANIFEST).exists():
        write_corpus(folder)
    for shard in verify_corpus(folder)["shards"]:
        print(shard["name"], shard["split"], shard["tokens"], shard["sha256"], sep="\t")
    return 0


def calibrate(args: argparse.Namespace) -> int:
    """``rowproof speedrun calibrate``: on all cores at once, as losses need no quiet machine."""
    from rowproof.speedrun import calibration

    root = _root()
    found = [
        build_referee(root, read_arguments({"pin_core": core}, "arguments"), CALIBRATION_SALT)
        for core in sorted(os.sched_getaffinity(0))
    ]
    losses = calibration.Losses(root / MEASURED, found, _say)
    n_final = len(FINAL_SEEDS)
    result = calibration.calibrate(args.ladder or root / LADDER, losses, n_final, _say)
    write_atomic(args.output, encode_document(result))
    _say(f"{args.output}: target {result['target']}, sigma {result['sigma']}")
    return 0
