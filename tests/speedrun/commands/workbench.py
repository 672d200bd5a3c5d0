"""The commands with runs that are read off the scripts instead of being made, and patches to the real baseline."""

import numpy as np
from rowproof.cli import main
from rowproof.hashing import sha256_hex
from rowproof.speedrun import commands
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.platforms import Machine
from rowproof.speedrun.referee import runs
from rowproof.speedrun.referee.checkpoint import Checkpoint
from rowproof.speedrun.referee.evaluation import Evaluation
from rowproof.speedrun.referee.runs import Referee, Run
from rowproof.speedrun.referee.sandbox import Limits, Sandbox
from rowproof.speedrun.steps import steps_of

NO_TOKENS = np.zeros(0, dtype=np.uint16)
PLATFORM = {"torch": "2.0", "architecture": "x86_64", "cpu_capability": "AVX2", "threads": 1}
CLASS = {"cores": 2, "cpu": "a model", "gpu": None, "kernel_major": 6}
BATCH_TOKENS = 2049


def patch(old, new):
    return f"--- a/train_gpt.py\n+++ b/train_gpt.py\n@@ ... @@\n-{old}\n+{new}\n"


def with_steps(steps):
    return patch("    num_iterations = 900", f"    num_iterations = {steps}")


FASTER = with_steps(450)
TOO_FAST = with_steps(100)
CRASHING = patch("    batch_size = 16", "    batch_size = None")
UNKNOWN_LINE = patch("    momentum = 0.9", "    momentum = 0.95")
FORBIDDEN = patch("import os", "import os\n+import socket")


class World:
    """What every run gives: a tenth of a second for a step, and a loss that needs 300 steps."""

    def __init__(self, peak_gflops_per_s=50.0):
        self.machine = Machine(PLATFORM, CLASS, peak_gflops_per_s, "2026-01-02")
        self.stdout, self.cpu_share, self.shapes = b"", 0.9, {"w": (10, 10)}
        self.flops_factor, self.drift, self.error = 1, 0, None
        self.salts, self.smoked, self.trained = [], [], []

    def build_referee(self, root, arguments, salt, smoke=False):
        self.salts.append(salt)
        self.smoked.append(smoke)
        limits = Limits(wall_s=999.0, cpu_s=999)
        return Referee(Sandbox("strict", 0), NO_TOKENS, NO_TOKENS, salt, limits, audit=lambda sha256, salt: [0])

    def train(self, referee, source, seed, count_flops=False):
        if self.error is not None:
            raise self.error
        steps = steps_of(source)
        self.trained.append((steps, seed))
        wall_s = steps / 10
        outcome = Outcome.CRASHED if "batch_size = None" in source else Outcome.OK
        tokens = steps * BATCH_TOKENS
        run = Run(
            *(outcome, "as told", wall_s, wall_s * self.cpu_share, 100.0, tokens, tokens, BATCH_TOKENS, steps, 0),
            *(0.1, 0.1, 0.0, False, None),
            stdout=self.stdout,
            stderr="ValueError: no",
        )
        if outcome is not Outcome.OK:
            return run
        digest = sha256_hex(f"{source}{seed if count_flops else seed + self.drift}".encode())
        flops = 1000 * tokens * (self.flops_factor if steps != 900 else 1) if count_flops else None
        checkpoint = Checkpoint(digest, 170_000, 700_000, self.shapes)
        return Run(**vars(run) | {"checkpoint": checkpoint, "weights": b"w", "flops": flops})

    def evaluate(self, sandbox, source, weights, val, audit, folder, root_seed, base_gap, limits):
        loss = 1.3 if steps_of(source) >= 300 else 2.0 if steps_of(source) > 20 else 3.2
        return Evaluation(Outcome.OK, "", loss, loss + 0.01, 0.0, 0.0)

    def install(self, monkeypatch):
        monkeypatch.setattr(commands, "measure_machine", lambda threads: self.machine)
        monkeypatch.setattr(commands, "build_referee", self.build_referee)
        monkeypatch.setattr(runs, "train", self.train)
        monkeypatch.setattr(runs, "evaluate", self.evaluate)
        return self


def call(*arguments):
    """The exit code of ``rowproof speedrun``."""
    return main(["speedrun", *map(str, arguments)])
