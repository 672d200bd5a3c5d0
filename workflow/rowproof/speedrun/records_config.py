"""Configuration of the family as data: records, and arguments of an evaluation."""

import ast
import warnings
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StringConstraints,
    model_validator,
)

from rowproof.errors import ConfigError
from rowproof.hashing import sha256_hex
from rowproof.plain_data import read_model
from rowproof.speedrun.extraction import FenceMode, ThinkMode
from rowproof.speedrun.losses import LOSS_SIGMA
from rowproof.speedrun.patching import ApplyMode
from rowproof.speedrun.referee.ladder import LADDER, read_script
from rowproof.speedrun.schema import Positive, Seed, Sha256, Strict, Text
from rowproof.speedrun.scoring import Nondeterminism
from rowproof.strict_yaml import load

Track = Literal["cpu-mini", "gpu"]
Prompt = Annotated[str, StringConstraints(min_length=1, max_length=100_000)]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*\.py$", max_length=100)]
RecordId = Annotated[str, StringConstraints(pattern=r"^(cpu-mini|gpu)/[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=80)]
Seconds = Annotated[int, Field(ge=1, le=7 * 24 * 3600)]

FINAL_SEEDS = (100, 101, 102)
"""Default seeds of the scoring run (set S)."""
DEFAULT_ORDER_SEED = 20240520
CLAIM_PAIRS = 5
"""Folder of the baseline's script and of the patches of the ladder."""
GPU_COUNTS = (1, 2, 4, 8)


_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def parse_boolean(value: Any) -> bool:
    """A boolean from itself, from 1 or 0, or from the texts true, false, yes, no, 1 and 0 in any case.

    Raises:
        ValueError: anything else.
    """
    key = str(value).lower() if type(value) in (bool, int, str) else ""
    if key not in _BOOLEANS:
        raise ValueError("must be true or false, 1 or 0, yes or no")
    return _BOOLEANS[key]


Boolean = Annotated[bool, BeforeValidator(parse_boolean)]


def _relative(text: str) -> str:
    path = PurePosixPath(text)
    if not path.parts or path.is_absolute() or "\\" in text or ".." in path.parts:
        raise ValueError("must be a path below the project, without ..")
    return text


RelativePath = Annotated[str, AfterValidator(_relative)]


# --- Records ----------------------------------------------------------------------------------------------------------


class Record(Strict):
    """A script that proposals start from.

    Attributes:
        track: ``cpu-mini`` or ``gpu``.
        record_id: track and name, as ``cpu-mini/R0``.
        record_index: which record of the track's history the script is.
        title: short label for the table.
        code_path: the script, relative to the project; null for a rung of the ladder.
        rung: the rung of the ladder in ``resources/speedrun`` whose script it is; null with ``code_path``.
        code_sha256: SHA-256 of the script.
        script_name: the name that both headers of a patch must give.
        wallclock_ms: stored training time, milliseconds, on ``hardware_class``; null where it is measured with each
            candidate.
        val_loss_threshold: nats per token that a patched run must not exceed.
        loss_sigma: standard deviation of the loss between seeds that the loss rule takes as known, nats per token.
        data_manifest: manifest of the shards with sizes and SHA-256, relative to the project.
        val_tokens: scored validation tokens.
        prereg_sha256: SHA-256 of the preregistration file; null before it is written.
        hardware_class: where ``wallclock_ms`` was measured; null without it.
    """

    track: Track
    record_id: RecordId
    record_index: Annotated[int, Field(ge=0)]
    title: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    code_path: RelativePath | None = None
    rung: Text | None = None
    code_sha256: Sha256
    script_name: FileName
    wallclock_ms: Annotated[float, Field(gt=0)] | None = None
    val_loss_threshold: Annotated[float, Field(gt=0)]
    loss_sigma: Annotated[float, Field(gt=0)] = LOSS_SIGMA
    data_manifest: RelativePath
    val_tokens: Positive
    prereg_sha256: Sha256 | None = None
    hardware_class: Text | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "Record":
        if not self.record_id.startswith(f"{self.track}/"):
            raise ValueError(f"record_id must begin with {self.track}/, found {self.record_id}")
        if (self.code_path is None) == (self.rung is None):
            raise ValueError("there must be either code_path or rung")
        if (self.wallclock_ms is None) != (self.hardware_class is None):
            raise ValueError("wallclock_ms and hardware_class must be given together, or both left out")
        if self.track == "gpu" and self.wallclock_ms is None:
            raise ValueError("wallclock_ms must be given on the track gpu")
        return self


def load_record(root: Path, path: Path) -> tuple[Record, str]:
    """A record file (YAML, or JSON written as such) and the text of its script.

    Args:
        root: the project.
        path: the record file.

    Raises:
        ConfigError: the file breaks the model, or the script is missing, has another digest, is not UTF-8 with LF line
            ends, or does not parse.
    """
    record, document = load(path, Record, root)
    key = "code_path" if record.rung is None else "rung"
    try:
        if record.rung is None:
            data = (root / record.code_path).read_bytes()
        else:
            data = read_script(root / LADDER, record.rung).encode("utf-8")
    except OSError as error:
        raise document.error((key,), f"must name a readable file: {error.strerror}") from None
    except ConfigError as error:
        raise document.error((key,), str(error)) from None
    if sha256_hex(data) != record.code_sha256:
        raise document.error(
            ("code_sha256",),
            f"must be the digest of {record.code_path or record.rung}, which is {sha256_hex(data)}: restore that",
        )
    try:
        code = data.decode("utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code)
    except (UnicodeDecodeError, SyntaxError, ValueError) as error:
        raise document.error((key,), f"must name a Python script in UTF-8: {error}") from None
    if "\r" in code or not code.endswith("\n"):
        raise document.error((key,), "must name a script whose lines all end with LF")
    return record, code


# --- Arguments --------------------------------------------------------------------------------------------------------


class Arguments(Strict):
    """Arguments of an evaluation; None stands for a default that :meth:`resolved` or the harness fills in.

    Attributes:
        system_prompt: replaces the built-in system prompt.
        max_turns: most assistant turns.
        use_think: false turns the removal of thinking off (``think_mode: off``).
        recalc_wallclock: measure the baseline in the same job. Always true on ``cpu-mini``, else false by default.
        num_training_runs_per_attempt: replaces ``n_pairs``, and ``n_seeds`` when larger.
        nproc_per_node: GPUs (1, 2, 4 or 8; default 8), or 1 on ``cpu-mini``.
        dataset_name: data set of the hub that records are imported from.
        dataset_split: its split.
        track: ``cpu-mini`` or ``gpu``.
        record: name of the base record within the track.
        think_mode: how thinking is removed.
        fence_mode: what becomes of Markdown fences.
        apply_mode: our applier, or the published commands.
        on_failed_turn: whether a patch that fails in its run stays in the base of the next turn.
        score_turn: which turn gives the reward.
        n_seeds: seeds of the loss.
        n_pairs: timed pairs; 7 for a record claim.
        order_seed: decides the order inside pairs.
        threads: numerical threads per run.
        pin_core: the core that runs are bound to.
        run_timeout_s: wall seconds of one run; None: max(120, 3 x the baseline's median).
        cpu_limit_s: CPU seconds of one run; None: 3 x the baseline's.
        mem_limit_mb: memory of one run, MB.
        scratch_mb: writable scratch, MB.
        checkpoint_limit_mb: size of a checkpoint, MB; None: 4 x the baseline's, at least 4.
        sandbox: isolation of runs; ``strict`` falls back to ``basic`` with a flag where there are no namespaces.
        nondeterminism: whether runs that do not repeat earn nothing or are flagged.
        publish_salt: whether the audit salt is published when the campaign closes.
    """

    system_prompt: Prompt | None = None
    max_turns: Annotated[int, Field(ge=1, le=100)] = 1
    use_think: Boolean = True
    recalc_wallclock: Boolean | None = None
    num_training_runs_per_attempt: Annotated[int, Field(ge=1, le=100)] | None = None
    nproc_per_node: Positive | None = None
    dataset_name: Text = "leloy/nanogpt-speedrun"
    dataset_split: Text = "train"

    track: Track = "cpu-mini"
    record: Text = "R0"
    think_mode: ThinkMode | None = None
    fence_mode: FenceMode = "strip"
    apply_mode: ApplyMode = "exact"
    on_failed_turn: Literal["keep", "rollback"] = "keep"
    score_turn: Literal["last", "best"] = "last"
    n_seeds: Annotated[int, Field(ge=1, le=100)] = len(FINAL_SEEDS)
    n_pairs: Annotated[int, Field(ge=1, le=100)] = CLAIM_PAIRS
    order_seed: Seed = DEFAULT_ORDER_SEED
    threads: Positive = 1
    pin_core: Annotated[int, Field(ge=0)] | Literal["auto"] = "auto"
    run_timeout_s: Seconds | None = None
    cpu_limit_s: Seconds | None = None
    mem_limit_mb: Positive = 3000
    scratch_mb: Positive = 64
    checkpoint_limit_mb: Positive | None = None
    sandbox: Literal["strict", "basic"] = "strict"
    nondeterminism: Nondeterminism = "flag"
    publish_salt: Boolean = True

    @model_validator(mode="after")
    def _consistent(self) -> "Arguments":
        if self.track == "cpu-mini":
            for name, allowed in (("nproc_per_node", 1), ("threads", 1), ("recalc_wallclock", True)):
                if getattr(self, name) not in (None, allowed):
                    raise ValueError(f"{name} must be {str(allowed).lower()} on the track cpu-mini: leave it out")
        elif self.nproc_per_node not in (None, *GPU_COUNTS):
            raise ValueError("nproc_per_node must be 1, 2, 4 or 8 on the track gpu")
        if not self.use_think and self.think_mode not in (None, "off"):
            raise ValueError("think_mode must be off when use_think is false: leave one of them out")
        return self

    def resolved(self) -> "Arguments":
        """The same with the defaults of the track, and with the counts that ``num_training_runs_per_attempt`` sets."""
        cpu, runs = self.track == "cpu-mini", self.num_training_runs_per_attempt
        return self.model_copy(
            update={
                "recalc_wallclock": cpu if self.recalc_wallclock is None else self.recalc_wallclock,
                "nproc_per_node": self.nproc_per_node or (1 if cpu else 8),
                "think_mode": self.think_mode or ("strip" if self.use_think else "off"),
                "num_training_runs_per_attempt": runs if cpu or runs else 1,
                "n_pairs": self.n_pairs if runs is None else runs,
                "n_seeds": self.n_seeds if runs is None else max(self.n_seeds, runs),
            }
        )


def read_arguments(data: Any, where: str) -> Arguments:
    """Arguments from plain data, such as the JSON object of a command line; ``where`` names it in messages.

    Raises:
        ConfigError: all problems, one per line.
    """
    return read_model(data, Arguments, where, whole="arguments", entry="argument").resolved()


def load_arguments(root: Path, path: Path) -> Arguments:
    """Arguments from a file, with the defaults of the track filled in.

    Raises:
        ConfigError: the file is missing, malformed or breaks the model.
    """
    return load(path, Arguments, root)[0].resolved()
