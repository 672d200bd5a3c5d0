"""Runs of the GPU track in the published way. Times and losses are what the scripts print of themselves, and every row
says so: ``trust: self-reported``.
"""

import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean, median
from typing import Any

from rowproof.errors import ConfigError
from rowproof.hashing import sha256_hex
from rowproof.records import decode
from rowproof.speedrun.dialogue import Dialogue, Task
from rowproof.speedrun.gpu import TRUST, GpuTrack, LaunchPlan, load_gpu_profile, plan_launch
from rowproof.speedrun.logs import FinalNumbers, parse_log, tail
from rowproof.speedrun.losses import LossTest, decide
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.players import FilePlayer
from rowproof.speedrun.protocol import pair_orders
from rowproof.speedrun.records_config import Arguments, Record
from rowproof.speedrun.row import FAMILY, SPEC_VERSION
from rowproof.speedrun.scoring import reward_columns, stored_ratio
from rowproof.speedrun.setups import find_record
from rowproof.speedrun.statistics import t_test

Data = dict[str, Any]
_ARMS = {"A": "base", "B": "patched"}


def check_shards(root: Path, record: Record, folder: Path) -> str:
    """Compare staged shards with the record's manifest; returns the manifest's SHA-256. Nothing is fetched.

    The manifest is JSON with ``shards``, each with ``name``, ``bytes`` and ``sha256``.

    Raises:
        ConfigError: manifest or shard is missing, or differs.
    """
    path = root / record.data_manifest
    try:
        data = path.read_bytes()
        shards = [(shard["name"], shard["bytes"], shard["sha256"]) for shard in decode(data, str(path))["shards"]]
    except OSError as error:
        raise ConfigError(f"{record.data_manifest}: must be the manifest of staged shards: {error.strerror}") from None
    except (LookupError, TypeError):
        raise ConfigError(f"{record.data_manifest}: must list shards with name, bytes and sha256") from None
    for name, size, sha256 in shards:
        shard = folder / Path(name).name
        try:
            found = sha256_hex(shard.read_bytes()) if shard.stat().st_size == size else "another size"
        except OSError as error:
            raise ConfigError(f"{name}: must be a staged shard: {error.strerror}: stage it before the run") from None
        if found != sha256:
            raise ConfigError(f"{name}: must be {size} bytes with SHA-256 {sha256}, found {found}: stage it again")
    return sha256_hex(data)


def score_on_gpus(track: GpuTrack, attempt: str, patch: Path, report: Callable[[str], object]) -> Data:
    """Run one attempt by its launch plan, and make its row.

    Raises:
        RowproofError: a file is not what it must be. Failures of the patch are outcomes of the row.
    """
    arguments = track.arguments(attempt)
    record, code = find_record(track.root, "gpu", arguments.record)
    profile = load_gpu_profile(track.root, track.profile)
    assert profile is not None
    plan = plan_launch(record, arguments, profile)
    shards = track.root / profile.shards
    manifest_sha256 = check_shards(track.root, record, shards)
    dialogue = Dialogue(Task(record, code, arguments.model_copy(update={"max_turns": 1})))
    turn = dialogue.take(FilePlayer([patch])(dialogue.messages) or "")
    runs: list[Data] = []
    if turn.patched is not None:
        scripts = {"base": code, "patched": turn.patched}
        environment = {
            name: str(track.root / value) if value.startswith(f"{profile.shards}/") else value
            for name, value in plan.environment.items()
        }
        runs = _run_all(plan, scripts, record.script_name, arguments, environment, report)
    outcome, columns = _score(record, arguments, plan, turn.failure, runs)
    return {
        "family": FAMILY,
        "spec_version": SPEC_VERSION,
        "track": "gpu",
        "trust": TRUST,
        "notes": list(plan.notes),
        "record": record.record_id,
        "hardware_class": plan.hardware_class,
        "nproc_per_node": arguments.nproc_per_node,
        "base_sha256": record.code_sha256,
        "patched_sha256": None if turn.patched is None else sha256_hex(turn.patched.encode("utf-8")),
        "diff_sha256": sha256_hex(turn.diff.encode("utf-8")) if turn.diff else None,
        "data_manifest_sha256": manifest_sha256,
        "outcome": str(outcome),
        "detail": turn.detail,
        "flags": list(turn.flags),
        "threshold": record.val_loss_threshold,
        **columns,
        "runs": runs,
    }


def _run_all(
    plan: LaunchPlan,
    scripts: Mapping[str, str],
    script_name: str,
    arguments: Arguments,
    environment: Mapping[str, str],
    report: Callable[[str], object],
) -> list[Data]:
    """All runs of a plan in turn, up to the first that does not end well."""
    arms = ["patched"] * len(plan.runs)
    if arguments.recalc_wallclock:
        orders = pair_orders(arguments.order_seed, arguments.n_pairs)[: len(plan.runs) // 2]
        arms = [_ARMS[arm] for pair in orders for arm in pair]
    runs: list[Data] = []
    # One folder for all runs of the attempt: its first run warms its compile cache.
    with tempfile.TemporaryDirectory(prefix="speedrun-gpu-") as name:
        for number, arm in enumerate(arms):
            warms_up = plan.runs[number] == "warm-up"
            found = _run(plan, scripts[arm], script_name, Path(name), environment)
            runs.append({"arm": arm, "warm_up": warms_up, **found})
            report(f"run {number + 1} of {len(arms)}: {arm}, exit {found['exit']}, says {found['self_reported']}")
            if found["exit"] != 0 or found["self_reported"] is None:
                break
    return runs


def _run(plan: LaunchPlan, script: str, script_name: str, scratch: Path, environment: Mapping[str, str]) -> Data:
    (scratch / script_name).write_text(script, encoding="utf-8")
    variables = {name: value.replace("$scratch", str(scratch)) for name, value in environment.items()}
    limit_s = 60 * plan.resources["runtime"]
    try:
        done = subprocess.run(
            plan.command,
            cwd=scratch,
            env=os.environ | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limit_s,
            check=False,
        )
    except FileNotFoundError:
        raise ConfigError(f"{plan.command[0]} must be a command of this machine, found none: install PyTorch") from None
    except subprocess.TimeoutExpired:
        return {"exit": None, "self_reported": None, "stderr": f"ended after {limit_s} s"}
    said = parse_log(tail(done.stdout).decode("utf-8", errors="replace"))
    return {
        "exit": done.returncode,
        "self_reported": None if said is None else said._asdict(),
        "stderr": done.stderr[-4000:].decode("utf-8", errors="replace"),
    }


def _score(
    record: Record, arguments: Arguments, plan: LaunchPlan, failure: Outcome | None, runs: list[Data]
) -> tuple[Outcome, Data]:
    """Outcome and figures of the runs; the loss is the mean over them, as published."""
    last = runs[-1] if runs else {"exit": 0, "self_reported": {}}
    if failure is None and last["exit"] is None:
        failure = Outcome.TIMEOUT
    elif failure is None and (last["exit"] != 0 or last["self_reported"] is None):
        failure = Outcome.CRASHED
    said = {arm: [FinalNumbers(**run["self_reported"]) for run in runs if _counts(run, arm)] for arm in _ARMS.values()}
    columns: Data = {
        "val_loss_mean": None,
        "verdict": None,
        "train_time_ms_mean": None,
        "wall_ratio": None,
        "ratio_of_means": None,
    }
    if failure is not None:
        return failure, columns | reward_columns(failure, None, None)
    losses = {number: one.val_loss for number, one in enumerate(said["patched"])}
    test: LossTest = t_test(losses, record.val_loss_threshold)
    times_ms = [one.train_time_ms for one in said["patched"]]
    if arguments.recalc_wallclock:
        base_ms = [one.train_time_ms for one in said["base"]]
        ratio, of_means = median(base_ms) / median(times_ms), fmean(base_ms) / fmean(times_ms)
    else:
        seconds = [time_ms / 1000 for time_ms in times_ms]
        ratio = of_means = stored_ratio(record.wallclock_ms, record.hardware_class, seconds, plan.hardware_class)
    outcome = decide(None, test)
    timed = {"wall_ratio": round(ratio, 6), "ratio_ci95": None}
    return outcome, {
        "val_loss_mean": round(test.mean, 6),
        "verdict": test.verdict,
        "train_time_ms_mean": round(fmean(times_ms), 3),
        "wall_ratio": timed["wall_ratio"],
        "ratio_of_means": round(of_means, 6),
        **reward_columns(outcome, test.verdict, timed, arguments.nondeterminism),
    }


def _counts(run: Data, arm: str) -> bool:
    return run["arm"] == arm and not run["warm_up"] and run["self_reported"] is not None
