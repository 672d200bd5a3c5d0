"""A board of the CPU track from nothing: real runs of twenty steps, verified, timed in blocks, and rendered."""

import json
import os
import shutil
import subprocess
import sys

import checkouts
import pytest
import yaml
from checkouts import environment
from rowproof.hashing import sha256_hex
from rowproof.layout import TIMING
from rowproof.records import decode, split_lines
from rowproof.speedrun.corpus import manifest_sha256
from rowproof.speedrun.patching import canonical_diff
from rowproof.speedrun.referee.ladder import SCRIPT_NAME, read_script
from rowproof.speedrun.referee.sandbox import available_mode, last_core
from rowproof.speedrun.steps import SMOKE_STEPS, read_ladder, with_steps, write_patch

pytestmark = pytest.mark.slow

BOARD = "nanogpt-speedrun-cpu-v1"
ROWS = ("r0", "r3", "r8", "n7")
SEEDS = (100, 101)
BATCH_TOKENS = 2049
# Seconds; runs of others slow these down.
TIMEOUT_S = 1500


def cut_short(folder):
    """Set the rungs of the ladder in ``folder`` to the steps of tests; return the digest of each script."""
    old = {name: read_script(folder, name) for name in read_ladder(folder) if name.startswith("R")}
    new = {name: with_steps(script, SMOKE_STEPS) for name, script in old.items()}
    for name, base in read_ladder(folder).items():
        if base is None:
            (folder / SCRIPT_NAME).write_text(new[name])
        elif name in new:
            write_patch(folder, name, base, canonical_diff(new[base], new[name], SCRIPT_NAME))
    control = folder / "patches/N7.diff"
    control.write_text(control.read_text().replace("num_iterations = 900", f"num_iterations = {SMOKE_STEPS}"))
    return {name.lower(): sha256_hex(script.encode("utf-8")) for name, script in {**new, "N7": new["R0"]}.items()}


def cell_of(scripts):
    """Task parameters of a board that every script meets the target of."""
    return {
        "track": "cpu-mini/smoke",
        "corpus": "gen-v1",
        "data_manifest_sha256": manifest_sha256(),
        "target": 6.0,
        "sigma": 0.005,
        "guard_band": 0.002,
        "val_windows": 64,
        "window_tokens": 128,
        "base_gap": 0.0,
        "audit_salt": "smoke",
        "baseline": "r0",
        "baseline_tokens": SMOKE_STEPS * BATCH_TOKENS,
        "baseline_flops": 10**9,
        "candidates": {
            name: {"script_sha256": scripts[name], "expected": {"outcome": "ok", "tokens": "same", "time": None}}
            for name in ROWS
        },
        "feedback_seeds": [200],
        "calibration_seeds": [300, 301],
        "n_blocks": 2,
        "order_seed": 20240520,
        "twice": "r3",
        "estimator": "median-ratio",
        "interval": "percentile-bootstrap-95",
        "resamples": 10_000,
        "bootstrap_seed": 20240520,
        "exclusion": {"min_occupancy": 0.8, "max_steal": 0.05},
        "limits": {"wall_s": 240, "cpu_s": 120, "mem_mb": 3000, "checkpoint_mb": 4},
    }


@pytest.fixture
def project(unbuilt, monkeypatch):
    """A clean checkout with a small board of the CPU track and nothing built."""
    pytest.importorskip("torch", reason="training needs the extra rowproof[training]")
    if available_mode("strict", last_core()) != "strict":
        pytest.skip("this machine lets nobody make namespaces, and runs need them")
    monkeypatch.setattr(checkouts, "TIMEOUT_S", TIMEOUT_S)
    root = unbuilt.root
    cell = cell_of(cut_short(root / "resources/speedrun"))
    rows = {name: {"policy": name} for name in ROWS}
    common = {"board": BOARD, "task": "nanogpt_speedrun@v1", "plan": BOARD, "rows": rows}
    plan = {
        "schema": "rowproof/plan/1",
        **common,
        "grid": {
            "seeds": list(SEEDS),
            "partners": ["nobody"],
            "episodes_per_partner": 1,
            "root_seed": 0,
            "initial_state": "seed",
        },
        "cell": cell,
        "statistics": {"n_resamples": 100, "root_seed": 0},
        "decision_rules": "none: this board tests the workflow",
    }
    board = {
        "schema": "rowproof/board/1",
        **common,
        "title": "Runs of twenty steps",
        "engine": BOARD,
        "tier": "statistical",
        "partner_set": "speedrun-nobody-v1",
    }
    config = {"schema": "rowproof/config/1", "boards": [BOARD], "shard_by": "seed"}
    for path, document in ((f"plans/{BOARD}", plan), (f"boards/{BOARD}", board), ("config", config)):
        (root / f"config/{path}.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    shutil.rmtree(root / "results", ignore_errors=True)
    unbuilt.commit()
    return unbuilt


def rowproof(checkout, *args):
    """Call the command line of the checkout; exit code and output."""
    done = subprocess.run(
        [sys.executable, "-m", "rowproof", *args],
        cwd=checkout.root,
        env=environment(checkout.home, {"PYTHONPATH": os.fspath(checkout.root / "workflow")}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=TIMEOUT_S,
        check=False,
    )
    return done.returncode, done.stdout.decode("utf-8", "replace")


def test_a_board_is_run_timed_rendered_kept_and_reproduced(project):
    built = project.build(cores=2).ok()
    assert "rule time_runs:" in built.output
    folder = project.root / "results" / BOARD
    shown = {row["row"]: row for row in json.loads((folder / "leaderboard.json").read_bytes())["rows"]}
    assert {name: row["summary"]["family"]["outcome"] for name, row in shown.items()} == {
        "r0": "ok",
        "r3": "ok",
        "r8": "ok",
        "n7": "noop_patch",
    }
    assert [shown[name]["timed"]["timed"] for name in ROWS] == [True, True, True, False]
    assert all(shown[name]["timed"]["deterministic"] for name in ROWS[:3]), (
        "timed runs give the weights of verified ones"
    )
    assert shown["r0"]["timed"]["says"] == ["baseline"] and shown["r3"]["timed"]["n_pairs"] == 2
    records = [
        decode(line, path.name)
        for path in sorted((folder / "r3").glob("episodes_*"))
        for _, line in split_lines(path.read_bytes(), path.name)
    ]
    assert [record["seed"] for record in records] == list(SEEDS)
    assert {record["metadata"]["train_tokens"] for record in records} == {SMOKE_STEPS * BATCH_TOKENS}
    assert len({(folder / name / TIMING).read_bytes() for name in ROWS}) == 1
    assert rowproof(project, "verify", *(f"results/{BOARD}/{name}" for name in ROWS))[0] == 0

    assert project.build(cores=2).nothing
    project.commit()
    assert project.dry_run().nothing

    # Lost times of one row are those of the others: the clock is not asked again.
    kept = (folder / "r3" / TIMING).read_bytes()
    (folder / "r3" / TIMING).unlink()
    assert "rule time_runs:" not in project.build(cores=2).ok().output
    assert (folder / "r3" / TIMING).read_bytes() == kept and project.changed() == set()

    code, output = rowproof(project, "reproduce", f"{BOARD}/r3", "--cores", "2", "--keep", "../rebuilt")
    assert code == 0, output[-4000:]
    assert f"match {BOARD}/r3 (tier statistical): 2 of 2 records as near as the tier demands" in output
    # On one machine the evidence comes out the same to the byte.
    rebuilt = project.root / f"../rebuilt/results/{BOARD}/r3"
    assert (rebuilt / "bundle.json").read_bytes() == (folder / "r3/bundle.json").read_bytes()
