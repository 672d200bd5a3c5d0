"""Frames per CPU second of a training on the co-carry rig, updates included, and the share of it that PhysX takes.

Run: taskset -c 0 .venv/bin/python benchmarks/training_speed.py
"""

import sys
import tempfile
import time
from pathlib import Path

from rowproof.chamber.cocarry import training
from rowproof.chamber.cocarry_cell import PUBLISHED_CELL
from rowproof.chamber.training_config import TrainingConfig
from rowproof.strict_yaml import parse, validate

TARGET = 500.0
"""Frames per CPU second."""
ROLLOUTS = 12
ROOT = Path(__file__).resolve().parents[1]


class Silent:
    """Follows a training without a word."""

    def resume(self, done: int) -> None:
        pass

    def advance(self, units: int, work: int, note: str) -> None:
        pass


class Clock:
    """Adds up the CPU time of calls."""

    def __init__(self) -> None:
        self.total_s = 0.0

    def around(self, call):
        def timed(*args):
            start_s = time.process_time()
            result = call(*args)
            self.total_s += time.process_time() - start_s
            return result

        return timed


def run(name: str, physics: Clock | None) -> tuple[float, int]:
    """CPU seconds and frames of a short training; ``physics`` also measures the time inside PhysX."""
    path = ROOT / "config" / "training" / f"{name}.yaml"
    config = validate(parse(path.read_bytes(), path.name), TrainingConfig)
    frames = ROLLOUTS * config.rollout_frames
    data = config.model_dump(by_alias=True) | {"frames": frames, "checkpoint_frames": frames}
    renew = training.Scene._new_scene

    def measured(self):
        renew(self)
        if physics is not None:
            self.substep = physics.around(self.substep)

    training.Scene._new_scene = measured
    try:
        with tempfile.TemporaryDirectory() as folder:
            start_s = time.process_time()
            training.train({"cell": PUBLISHED_CELL.model_dump(), "training": data}, 0, Path(folder), Silent())
            return time.process_time() - start_s, frames
    finally:
        training.Scene._new_scene = renew


def main() -> None:
    run("cocarry-aht", None)  # Loads everything once.
    slowest = float("inf")
    for name in ("cocarry-blind", "cocarry-aht", "cocarry-joint"):
        seconds, frames = run(name, None)
        rate = frames / seconds
        physics = Clock()
        seconds, _ = run(name, physics)
        slowest = min(slowest, rate)
        print(f"{name:<14} {rate:5.0f} frames per CPU second, PhysX {physics.total_s / seconds:4.0%}")
    met = slowest >= TARGET
    print(f"target {TARGET:.0f} frames per CPU second: {'met' if met else 'MISSED'}")
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
