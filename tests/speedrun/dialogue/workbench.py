"""One small task, patches for it, and runs that are read off the patched script instead of being made."""

from rowproof.hashing import sha256_hex
from rowproof.speedrun.dialogue import Result, Task
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.records_config import Record, read_arguments

CODE = """\
steps = 900
rate = 0.002
batch = 16


def train():
    return steps * batch * rate
"""
THRESHOLD = 1.35


def task(**arguments):
    record = Record(
        track="cpu-mini",
        record_id="cpu-mini/T0",
        record_index=0,
        title="Test",
        code_path="train_gpt.py",
        code_sha256=sha256_hex(CODE.encode()),
        script_name="train_gpt.py",
        val_loss_threshold=THRESHOLD,
        data_manifest="manifest.json",
        val_tokens=131_072,
    )
    return Task(record, CODE, read_arguments({"max_turns": 6, **arguments}, "arguments"))


def patch(old, new):
    return f"--- a/train_gpt.py\n+++ b/train_gpt.py\n@@ ... @@\n-{old}\n+{new}\n"


FASTER = patch("steps = 900", "steps = 450")
FASTER_STILL = patch("steps = 450", "steps = 300")
TOO_FAST = patch("steps = 900", "steps = 10")
CRASHING = patch("batch = 16", "batch = None")
MENDING = patch("batch = None", "batch = 8")
OTHER_FILE = FASTER.replace("train_gpt.py", "other.py")
UNKNOWN_LINE = patch("momentum = 0.9", "momentum = 0.95")


class Runs:
    """An attempt that runs nothing: steps decide loss and time; ``calls`` has the phase and steps of each."""

    def __init__(self):
        self.calls = []

    def __call__(self, patched, phase):
        names = {}
        exec(patched, names)
        steps = names["steps"]
        self.calls.append((phase, steps))
        if names["batch"] is None:
            stderr = 'File "/script/train_gpt.py", line 7\nFile "/opt/someone/torch/nn.py"\nTypeError: None\n'
            return Result(Outcome.CRASHED, "the run must end with exit code 0, found 1", stderr)
        first = 200 if phase == "feedback" else 100
        loss = 1.25 if steps >= 300 else 2.5
        val_loss = {first + i: round(loss + i / 1000 + (0.001 if phase == "final" else 0.0), 6) for i in range(3)}
        if steps < 300:
            return Result(Outcome.THRESHOLD_MISSED, val_loss=val_loss, verdict="miss")
        ratio = 900 / steps
        return Result(
            *(Outcome.OK, "", ""), val_loss, "pass", 50.0 * steps, ratio, (round(ratio - 0.1, 6), round(ratio + 0.1, 6))
        )
