"""Task parameters of a board of the CPU track: all that is fixed before its ladder runs, beside seeds and rows."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from rowproof.speedrun.schema import Positive, Seed, Sha256, Strict, Text

PolicyName = Annotated[str, StringConstraints(pattern=r"^[rn][0-9]+$")]
Direction = Literal["down", "same", "up"]


class Expectation(Strict):
    """What is expected of a rung or control before it runs.

    Attributes:
        outcome: the outcome code.
        tokens: how the trained tokens compare with its base.
        time: how the time compares with its base; null for what is not timed.
    """

    outcome: Literal["ok", "inconclusive", "threshold_missed", "noop_patch"]
    tokens: Direction
    time: Direction | None


class Candidate(Strict):
    """A rung or control of the ladder.

    Attributes:
        script_sha256: of its patched script.
        expected: before it runs.
    """

    script_sha256: Sha256
    expected: Expectation


class Exclusion(Strict):
    """When a run counts as disturbed, fixed beforehand.

    Attributes:
        min_occupancy: least CPU seconds per wall second.
        max_steal: largest fraction of the core's time that the host took.
    """

    min_occupancy: float
    max_steal: float


class RunLimits(Strict):
    """What one run may use.

    Attributes:
        wall_s: seconds from start to the end of the last process.
        cpu_s: CPU seconds of each process.
        mem_mb: memory of each process, MiB.
        checkpoint_mb: size of the checkpoint, MiB.
    """

    wall_s: Positive
    cpu_s: Positive
    mem_mb: Positive
    checkpoint_mb: Positive


class SpeedrunCell(Strict):
    """What a board measures, or of it what binds some of its rows.

    Attributes:
        track: name of the track with its version; another target is another version.
        corpus: name of the corpus.
        data_manifest_sha256: SHA-256 of its manifest.
        target: nats per token that a mean loss must not exceed.
        sigma: standard deviation of the loss between seeds that the loss rule takes as known, nats per token.
        guard_band: nats per token around the boundary of the loss rule.
        val_windows: scored windows.
        window_tokens: tokens per window.
        base_gap: audit loss minus validation loss of the baseline, nats per token.
        audit_salt: part of the seed of every audit text.
        baseline: the candidate that all others are compared with.
        baseline_tokens: tokens that it trains on.
        baseline_flops: floating-point operations of its training.
        candidates: rungs and controls by their names in the ladder, in lower case.
        feedback_seeds: seeds of runs that answer a turn (set F); the grid has those of scoring runs (set S).
        calibration_seeds: seeds of the runs that fixed target and steps; never published as rows.
        n_blocks: blocks in which all timed candidates run in turns.
        order_seed: decides the order inside blocks.
        twice: the candidate that runs twice in each block, against itself.
        estimator: of the ratio of times.
        interval: its interval.
        resamples: of the bootstrap.
        bootstrap_seed: of the bootstrap.
        exclusion: when a run counts as disturbed.
        limits: of one run.
    """

    track: Text
    corpus: Literal["gen-v1"]
    data_manifest_sha256: Sha256
    target: Annotated[float, Field(gt=0)]
    sigma: Annotated[float, Field(gt=0)]
    guard_band: float
    val_windows: Positive
    window_tokens: Positive
    base_gap: float
    audit_salt: Text
    baseline: PolicyName
    baseline_tokens: Positive
    baseline_flops: Positive
    candidates: Annotated[dict[PolicyName, Candidate], Field(min_length=1)]
    feedback_seeds: Annotated[list[Seed], Field(min_length=1)]
    calibration_seeds: Annotated[list[Seed], Field(min_length=2)]
    n_blocks: Positive
    order_seed: Seed
    twice: PolicyName
    estimator: Literal["median-ratio"]
    interval: Literal["percentile-bootstrap-95"]
    resamples: int
    bootstrap_seed: int
    exclusion: Exclusion
    limits: RunLimits
