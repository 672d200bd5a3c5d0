"""Logs in the public format: what a script says of itself, and what the harness writes after it."""

import math
import re
from typing import Any, NamedTuple

MAX_STDOUT_BYTES = 2**20
MAX_LOSS_DIFFERENCE = 0.02
"""Nats per token between the script's own final loss and the harness's."""
MAX_TIME_DIFFERENCE = 0.2
"""Fraction of the harness's time."""

# The three patterns of the published parser.
_STEP = re.compile(r"step:(\d+)/(\d+)")
_LOSS = re.compile(r"val_loss:([0-9.]+)")
_TIME = re.compile(r"train_time:(\d+)ms")


class FinalNumbers(NamedTuple):
    """What a log gives as its end: loss (nats per token) and training time (ms)."""

    val_loss: float
    train_time_ms: int


def parse_log(text: str) -> FinalNumbers | None:
    """Final loss and time of a log by the published rules; None when it is unfinished or malformed.

    A line without step numbers is ignored. Loss and time count on lines whose two step numbers are equal, and later
    ones overwrite earlier ones. The last step that any line mentions must be the last of its run.
    """
    step = total = loss = time_ms = None
    for line in text.split("\n"):
        match = _STEP.search(line)
        if match is None:
            continue
        # The patterns also match what is no number: 1.2.3, or thousands of digits.
        try:
            step, total = int(match[1]), int(match[2])
            if step == total and (found := _LOSS.search(line)):
                loss = float(found[1])
            if step == total and (found := _TIME.search(line)):
                time_ms = int(found[1])
        except ValueError:
            return None
    if step != total or loss is None or time_ms is None or not math.isfinite(loss):
        return None
    return FinalNumbers(loss, time_ms)


def self_reported(stdout: bytes) -> dict[str, Any] | None:
    """The script's own ``val_loss`` and ``train_time_ms``, from the tail of its output; never used for scoring."""
    found = parse_log(tail(stdout).decode("utf-8", errors="replace"))
    return None if found is None else found._asdict()


def tail(stdout: bytes) -> bytes:
    """The last MiB of an output, from the beginning of a line when it was cut."""
    if len(stdout) <= MAX_STDOUT_BYTES:
        return stdout
    kept = stdout[-MAX_STDOUT_BYTES:]
    return kept[kept.find(b"\n") + 1 :]


def is_misreported(reported: FinalNumbers | None, val_loss: float, train_time_ms: float) -> bool:
    """Whether a script's own final numbers contradict the harness's: loss by over 0.02, or time by over 20 %.

    Args:
        reported: the script's numbers; None when it gave none, which contradicts nothing.
        val_loss: the harness's loss, nats per token.
        train_time_ms: the harness's time, milliseconds.
    """
    if reported is None:
        return False
    return (
        abs(reported.val_loss - val_loss) > MAX_LOSS_DIFFERENCE
        or abs(reported.train_time_ms - train_time_ms) > MAX_TIME_DIFFERENCE * train_time_ms
    )


def harness_log(n_steps: int, val_loss: float, train_time_ms: float) -> str:
    """The harness's own log: the final validation line in the public format.

    Args:
        n_steps: steps of the run, at least 1.
        val_loss: nats per token, from the harness's evaluation.
        train_time_ms: milliseconds, from the harness's clock.
    """
    times = f"train_time:{train_time_ms:.0f}ms step_avg:{train_time_ms / n_steps:.2f}ms"
    return f"step:{n_steps}/{n_steps} val_loss:{val_loss:.4f} {times}\n"
