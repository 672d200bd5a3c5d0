"""Small but real projects and bundles, made in well under a second by the functions that the workflow scripts call."""

import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path

import yaml
from helpers import ROOT
from rowproof import git
from rowproof.boards import load_board
from rowproof.closure import HashCache
from rowproof.evidence.bundle import build, build_provenance, split_episodes
from rowproof.evidence.statistics import row_summary
from rowproof.jobs import installed
from rowproof.layout import PROVENANCE
from rowproof.recipes import STAGES, read_pins, row_recipes
from rowproof.records import encode_lines

SEEDS = (0, 1)
EPISODES_PER_PARTNER = 4
N_RESAMPLES = 100


def commit_all(root: Path) -> str:
    """Commit everything in the throw-away repository ``root``, without the user's settings; return the commit."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-q", "--allow-empty", "-m", "state"]):
        subprocess.run(["git", "-C", str(root), *command], env=environment, check=True, capture_output=True)
    return git.tree_state(root).commit


def make_project(
    root: Path,
    *,
    boards: Sequence[str] = ("handover-v1",),
    seeds: Iterable[int] = SEEDS,
    episodes_per_partner: int = EPISODES_PER_PARTNER,
    n_resamples: int = N_RESAMPLES,
) -> Path:
    """A committed copy of this project's code and configuration in ``root``, with smaller plans for ``boards``."""
    for name in ("workflow", "config"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy(ROOT / "requirements.lock", root)
    config = yaml.safe_load((root / "config/config.yaml").read_text())
    config |= {"boards": list(boards), "quick_rows": []}
    (root / "config/config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    for board in boards:
        path = root / "config/plans" / f"{load_board(root, board).board.plan}.yaml"
        plan = yaml.safe_load(path.read_text())
        plan["grid"] |= {"seeds": list(seeds), "episodes_per_partner": episodes_per_partner}
        plan["statistics"]["n_resamples"] = n_resamples
        path.write_text(yaml.safe_dump(plan, sort_keys=False))
    commit_all(root)
    return root


def make_row(root: Path, results_dir: Path, board: str, row: str, *, dirty: bool = False) -> Path:
    """Run one row of the project ``root`` and write its bundle to ``results_dir/board/row``; return that folder.

    The grid is the one of the project's plan (see :func:`make_project`). The bundle verifies against ``root``
    unless it is marked ``dirty``. Its bytes are the same on every call.
    """
    setup = load_board(root, board)
    recipes = row_recipes(setup, row, root, HashCache(None), read_pins(root))
    data = recipes["simulate"]["setup"]
    specs = import_module(setup.engine.specs_module).specs(data)
    records = list(import_module(setup.engine.simulate_module).simulate(data, specs))
    summary = row_summary(records, partners=recipes["summary"]["partners"], **recipes["summary"]["statistics"])
    episodes = split_episodes({"all": encode_lines(records)}, specs)
    files = build(recipes, setup.plan_bytes, episodes, summary)
    commit = git.tree_state(root).commit
    jobs = [
        {
            "stage": stage,
            "shard": "all" if stage == "simulate" else None,
            "commit": commit,
            "dirty": dirty,
            "seconds": 0.0,
            "platform": "test",
            "cpu_model": "test",
            "python": platform.python_version(),
            "versions": {name: installed(name) for name in recipes[stage]["pins"]},
        }
        for stage in STAGES
    ]
    files[PROVENANCE] = build_provenance(files["bundle.json"], jobs)
    folder = results_dir / board / row
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder
