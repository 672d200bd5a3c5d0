"""Control steps per CPU second of the co-carry rig, and the share of it that PhysX takes.

Run: taskset -c 0 .venv/bin/python benchmarks/cocarry_speed.py
"""

import sys
import time

import numpy as np
from rowproof.chamber.cocarry import rig
from rowproof.chamber.cocarry.control import command
from rowproof.chamber.cocarry.goals import evaluation_goal_m
from rowproof.chamber.cocarry.impedance import Gains, ImpedanceController
from rowproof.chamber.cocarry.observation import View
from rowproof.chamber.cocarry.runner import Runner
from rowproof.chamber.cocarry.seats import build_ego
from rowproof.chamber.cocarry_cell import PUBLISHED_CELL

TARGET = 550.0
"""Control steps per CPU second, everything included."""
REFERENCE = "ref_script_cocarry_impedance"
EPISODES = {REFERENCE: 60, "static": 6, "random": 6}
FULL_ROW_EPISODES = 1750


class Recorder:
    """A player that remembers what it did."""

    def __init__(self, player):
        self.player = player
        self.actions = []

    def reset(self, initial_state_seed):
        self.actions = []
        self.player.reset(initial_state_seed)

    def act(self, view: View) -> np.ndarray:
        self.actions.append(self.player.act(view))
        return self.actions[-1]


def physics_s(runner: Runner, egos: list[np.ndarray], partners: list[np.ndarray], initial_state_seed: int) -> float:
    """CPU seconds inside PhysX when the recorded actions are played again."""
    scene = runner.scene
    scene.renew()
    scene.reset(evaluation_goal_m(initial_state_seed))
    total_s = 0.0
    for ego_action, partner_action in zip(egos, partners, strict=True):
        command(scene.arms[rig.EGO], ego_action)
        command(scene.arms[rig.PARTNER], partner_action)
        start_s = time.process_time()
        for _ in range(rig.SUBSTEPS):
            scene.substep()
        total_s += time.process_time() - start_s
    return total_s


def main() -> None:
    start_s = time.process_time()
    runner = Runner(PUBLISHED_CELL)
    print(f"building the scene: {time.process_time() - start_s:.3f} CPU s")
    start_s = time.process_time()
    for _ in range(100):
        runner.scene.renew()
    print(f"a fresh scene by moving: {(time.process_time() - start_s) / 100 * 1e3:.2f} CPU ms")
    slowest = float("inf")
    for policy, episodes in EPISODES.items():
        ego, partner = Recorder(build_ego(policy, 0)), Recorder(ImpedanceController(rig.PARTNER, Gains()))
        all_s = inside_s = 0.0
        steps = 0
        for initial_state_seed in range(episodes):
            start_s = time.process_time()
            steps += runner.run(ego, partner, initial_state_seed).steps
            all_s += time.process_time() - start_s
            inside_s += physics_s(runner, ego.actions, partner.actions, initial_state_seed)
        rate = steps / all_s
        slowest = min(slowest, rate)
        row_s = all_s / episodes * FULL_ROW_EPISODES
        print(
            f"{policy:<30} {rate:6.0f} control steps per CPU second, PhysX {inside_s / all_s:4.0%}, "
            f"{steps / episodes:.0f} steps per episode, a row of {FULL_ROW_EPISODES}: {row_s / 60:.1f} CPU min"
        )
    met = slowest >= TARGET
    print(f"target {TARGET:.0f} control steps per CPU second: {'met' if met else 'MISSED'}")
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
