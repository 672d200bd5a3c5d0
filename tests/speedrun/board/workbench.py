"""A board of the CPU track with made-up losses and times: what real runs would leave, without a run."""

from functools import cache

import numpy as np
from helpers import ROOT
from rowproof.hashing import sha256_hex
from rowproof.partners import PartnerSet
from rowproof.speedrun import evaluation, timing
from rowproof.speedrun.corpus import manifest_sha256
from rowproof.speedrun.evaluation import read_entry
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.platforms import Machine
from rowproof.speedrun.protocol import block_order
from rowproof.speedrun.referee import runs
from rowproof.speedrun.referee.checkpoint import Checkpoint
from rowproof.speedrun.referee.evaluation import Evaluation
from rowproof.speedrun.referee.runs import Referee, Run
from rowproof.speedrun.referee.sandbox import Limits, Sandbox
from rowproof.speedrun.verdicts import TWICE, floor_of
from rowproof.strict_yaml import load

SEEDS = (100, 101, 102)
TARGET = 1.35
SALT = "a salt for tests"
ORDER_SEED = 20240520
BASELINE_TOKENS, BASELINE_FLOPS = 1_843_200, 2_400_000_000_000
# Of each candidate the one that it patches, its tokens, and the outcome that is expected of it.
CANDIDATES = {
    "r0": (None, BASELINE_TOKENS, "ok"),
    "r2": ("r1", 921_600, "ok"),
    "r3": ("r2", 307_200, "ok"),
    "r4": ("r3", 307_200, "ok"),
    "n1": ("r3", 307_200, "threshold_missed"),
    "n7": ("r0", None, "noop_patch"),
}
PLATFORM = "torch 2.0, x86_64, AVX2, 1 thread"
MACHINE = {"cores": 2, "cpu": "a model", "gpu": None, "kernel_major": 6}


@cache
def script_sha256(name):
    """Digest of the script of a candidate in the ladder."""
    return sha256_hex(read_entry(name).script.encode("utf-8"))


def cell_of(names=tuple(CANDIDATES), **changes):
    """Task parameters as a plan has them."""
    return {
        "track": "cpu-mini/test",
        "corpus": "gen-v1",
        "data_manifest_sha256": manifest_sha256(),
        "target": TARGET,
        "sigma": 0.005,
        "guard_band": 0.002,
        "val_windows": 1024,
        "window_tokens": 128,
        "base_gap": 0.004,
        "audit_salt": SALT,
        "baseline": "r0",
        "baseline_tokens": BASELINE_TOKENS,
        "baseline_flops": BASELINE_FLOPS,
        "candidates": {
            name: {
                "script_sha256": script_sha256(name),
                "expected": {
                    "outcome": CANDIDATES[name][2],
                    "tokens": "same",
                    "time": None if name == "n7" else "same",
                },
            }
            for name in names
        },
        "feedback_seeds": [200],
        "calibration_seeds": [300, 301],
        "n_blocks": 3,
        "order_seed": ORDER_SEED,
        "twice": "r3",
        "estimator": "median-ratio",
        "interval": "percentile-bootstrap-95",
        "resamples": 10_000,
        "bootstrap_seed": 20240520,
        "exclusion": {"min_occupancy": 0.8, "max_steal": 0.05},
        "limits": {"wall_s": 600, "cpu_s": 300, "mem_mb": 3000, "checkpoint_mb": 4},
        **changes,
    }


def members():
    """The seats of a row that has no partner."""
    return load(ROOT / "config/partners/speedrun-nobody-v1.yaml", PartnerSet, ROOT)[0].seats(["nobody"])


def row_setup(policy, cell, **changes):
    """The setup of a row."""
    return {
        "task": "nanogpt_speedrun@v1",
        "policy": policy,
        "seeds": list(SEEDS),
        "episodes_per_partner": 1,
        "root_seed": 0,
        "initial_state": "seed",
        "partner_set": "speedrun_nobody@v1",
        "members": members(),
        "cell": cell,
        **changes,
    }


def board_setup(cell, **changes):
    """The setup of what the rows do in turns; a row has the name of its candidate."""
    return {
        "task": "nanogpt_speedrun@v1",
        "policies": {name: name for name in cell["candidates"]},
        "seeds": list(SEEDS),
        "cell": cell,
        **changes,
    }


def weights_sha256(policy, seed):
    """Digest of the weights that a run of a candidate leaves."""
    return sha256_hex(f"{policy} {seed}".encode())


def record_of(policy, cell, seed=SEEDS[0], loss=1.33, **metadata):
    """The record of a run that ended well, with ``metadata`` in place of its own."""
    base, tokens, _ = CANDIDATES[policy]
    applied = read_entry(policy).applied
    flops = BASELINE_FLOPS * tokens // BASELINE_TOKENS
    told = {
        "policy": policy,
        "member": "nobody",
        "partner_set": "speedrun_nobody@v1",
        **{name: cell[name] for name in ("track", "target", "sigma", "baseline")},
        "baseline_tokens": BASELINE_TOKENS,
        "baseline_flops": BASELINE_FLOPS,
        "expected": cell["candidates"][policy]["expected"],
        "base": base,
        "base_sha256": script_sha256(base or policy),
        "script_sha256": cell["candidates"][policy]["script_sha256"],
        "diff_sha256": None if base is None else applied.diff_sha256,
        "lines_added": 0 if base is None else applied.lines_added,
        "lines_removed": 0 if base is None else applied.lines_removed,
        "flags": [],
        "outcome": "ok",
        "detail": "",
        "val_loss": loss,
        "audit_loss": round(loss + 0.003, 6),
        "train_tokens": tokens,
        "train_flops": flops,
        "analytic_flops": flops * 4 // 5,
        "n_params": 174_976,
        "checkpoint_bytes": 703_000,
        "weights_sha256": weights_sha256(policy, seed),
        "data_manifest_sha256": cell["data_manifest_sha256"],
        "audit_salt_sha256": sha256_hex(SALT.encode()),
        "sandbox": "strict",
        "platform": PLATFORM,
        **metadata,
    }
    success = told["outcome"] == Outcome.OK and told["val_loss"] <= told["target"]
    return {"seed": seed, "episode_idx": 0, "initial_state_seed": seed, "success": success, "metadata": told}


def noop_record(cell, seed):
    """The record of a patch that changes nothing."""
    nothing = ("val_loss", "audit_loss", "train_tokens", "train_flops", "analytic_flops", "n_params")
    record = record_of("r0", cell, seed)
    record["metadata"] |= {
        **dict.fromkeys((*nothing, "checkpoint_bytes", "weights_sha256", "sandbox")),
        "policy": "n7",
        "expected": cell["candidates"]["n7"]["expected"],
        "base": "r0",
        "outcome": "noop_patch",
        "platform": "",
    }
    return record | {"success": False}


def records_of(policy, cell, loss=1.33, **metadata):
    """The records of a row; losses of its seeds lie 0.001 apart, ``loss`` in the middle."""
    if policy == "n7":
        return [noop_record(cell, seed) for seed in SEEDS]
    return [
        record_of(policy, cell, seed, round(loss + offset, 6), **metadata)
        for seed, offset in zip(SEEDS, (-0.001, 0.0, 0.001), strict=True)
    ]


def run_of(arm, block, order, cell, wall_s, **changes):
    """One timed run that went well."""
    seed, policy = SEEDS[max(block, 0) % len(SEEDS)], cell["twice"] if arm == TWICE else arm
    return {
        "arm": arm,
        "pair": block,
        "try": 0,
        "order": order,
        "seed": seed,
        "outcome": "ok",
        "detail": "",
        "t_wall_s": wall_s,
        "cpu_s": round(0.95 * wall_s, 6),
        "tokens": CANDIDATES[policy][1],
        "steal": 0.0,
        "slept": False,
        "weights_sha256": weights_sha256(policy, seed),
        "weights_match": True,
        **changes,
    }


def timing_of(cell, times, change=None):
    """Blocks by the protocol, at least as far as the figures read them.

    Args:
        cell: task parameters.
        times: wall seconds of each candidate by block, the baseline's for both of its runs.
        change: takes each run and alters it.
    """
    reference, n_blocks = cell["baseline"], cell["n_blocks"]
    runs = [run_of(reference, -1, 0, cell, times[reference][0])]
    for block in range(n_blocks):
        arms = block_order(cell["order_seed"], block, [name for name in times if name != reference], reference)
        runs += [run_of(arm, block, order, cell, times[arm][block]) for order, arm in enumerate(arms)]
    for run in runs:
        if change is not None:
            change(run)
    timing = {
        "n_pairs": n_blocks,
        "order_seed": cell["order_seed"],
        "design": "blocks",
        "outcome": "ok",
        "failed_arm": None,
        "scripts_sha256": {
            arm: cell["candidates"][cell["twice"] if arm == TWICE else arm]["script_sha256"] for arm in times
        },
        "sandbox": "strict",
        "core": 1,
        "deterministic": all(run["weights_match"] for run in runs),
        "runs": runs,
        "twice": cell["twice"],
        "peak_gflops": 100.0,
        "platform": PLATFORM,
        "machine": MACHINE,
        "date": "2026-01-02",
    }
    return {**timing, "aa_floor": floor_of(timing)}


class Runs:
    """Stands in for training, evaluation and clock: what they give is looked up by the script that runs.

    Attributes:
        losses: nats per token, by candidate.
        seconds: of a run on the wall, by candidate.
        outcomes: how runs end that do not end well, by candidate.
        drift: what the digest of all further weights is salted with.
        trained: candidate and seed of each run so far.
        referee: that of all runs.
    """

    def __init__(self, monkeypatch):
        self.losses = dict.fromkeys(CANDIDATES, 1.33) | {"n1": 1.38}
        self.seconds = {"r0": 60.0, "r2": 30.0, "r3": 10.0, "r4": 9.0, "n1": 9.0}
        self.outcomes, self.drift, self.trained = {}, "", []
        self._names = {script_sha256(name): name for name in CANDIDATES if name != "n7"}
        nothing = np.zeros(0, dtype=np.uint16)
        limits = Limits(wall_s=600.0, cpu_s=300)
        self.referee = Referee(Sandbox("strict", 0), nothing, nothing, SALT.encode(), limits, audit=lambda *_: [0])
        monkeypatch.setattr(runs, "train", self.train)
        monkeypatch.setattr(runs, "evaluate_weights", self.evaluate)
        monkeypatch.setattr(timing, "measure_machine", lambda: Machine({}, MACHINE, 100.04, "2026-01-02"))
        for module, core in ((evaluation, "idlest_core"), (timing, "last_core")):
            monkeypatch.setattr(module, core, lambda: 0)
            monkeypatch.setattr(module, "platform_class", lambda: PLATFORM)
            monkeypatch.setattr(module, "prepare_referee", lambda cell, core: self.referee)

    def train(self, referee, source, seed, count_flops=False):
        name = self._names[sha256_hex(source.encode("utf-8"))]
        self.trained.append((name, seed))
        outcome, tokens = self.outcomes.get(name, Outcome.OK), CANDIDATES[name][1]
        # Every third run takes a little longer.
        wall_s = self.seconds[name] * (1 + 0.01 * (len(self.trained) % 3))
        weights = weights_sha256(name + self.drift, seed)
        return Run(
            outcome=outcome,
            detail="" if outcome is Outcome.OK else "as the test has it",
            wall_s=wall_s,
            cpu_s=0.95 * wall_s,
            max_rss_mb=300.0,
            tokens=tokens,
            distinct_tokens=tokens,
            largest_window=2049,
            requests=900,
            exit_code=0,
            load_before=0.1,
            load_after=1.1,
            steal=0.0,
            slept=False,
            core_mhz=None,
            checkpoint=Checkpoint(weights, 174_976, 703_000, {"w": (288, 64)}) if outcome is Outcome.OK else None,
            weights=b"weights" if outcome is Outcome.OK else None,
            flops=BASELINE_FLOPS * tokens // BASELINE_TOKENS if count_flops else None,
        )

    def evaluate(self, referee, source, weights, audited, purpose, base_gap):
        name = self._names[sha256_hex(source.encode("utf-8"))]
        loss = round(self.losses[name] + 0.001 * (self.trained[-1][1] - SEEDS[1]), 6)
        return Evaluation(Outcome.OK, val_loss=loss, audit_loss=round(loss + 0.003, 6))
