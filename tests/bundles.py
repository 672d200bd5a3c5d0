"""Small but real projects and bundles, made in well under a second by the functions that the workflow scripts call."""

import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml
from helpers import ROOT
from rowproof import cli, git
from rowproof.boards import BoardSetup, load_board
from rowproof.checkpoints import file_name, read_bytes, uri_of
from rowproof.closure import HashCache
from rowproof.evidence.bundle import build, split_episodes
from rowproof.evidence.selection import selection
from rowproof.evidence.statistics import row_summary
from rowproof.families import Engine
from rowproof.layout import PROVENANCE
from rowproof.plan_lock import lock_path, write_lock
from rowproof.provenance import build_provenance
from rowproof.recipes import CodeTree, read_pins, row_recipes
from rowproof.records import encode_document, encode_lines
from rowproof.stages import bare, shown
from rowproof.versions import installed

SEEDS = (0, 1)
EPISODES_PER_PARTNER = 4
N_RESAMPLES = 100
TRAINING = {"frames": 320, "checkpoint_frames": 160, "rollout_frames": 80, "epochs": 1, "hidden_units": [8]}
SELECTION = {"seeds": [9000], "episodes_per_seed": 4}


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
    learned: bool = False,
    training: Mapping[str, Any] = TRAINING,
) -> Path:
    """A committed copy of this project's code and configuration in ``root``, with smaller plans for ``boards``.

    Learned rows are on the boards only with ``learned``; ``training`` replaces values of their trainings. The plans
    are locked anew.
    """
    # Published facts are what tests give a project, if they want some.
    for name in ("workflow", "config", "resources/gptnt", "resources/speedrun"):
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
        if "selection" in plan:
            plan["selection"] |= SELECTION
        path.write_text(yaml.safe_dump(plan, sort_keys=False))
        if not learned:
            path = root / f"config/boards/{board}.yaml"
            document = yaml.safe_load(path.read_text())
            scripted = {name: row for name, row in document["rows"].items() if "training" not in plan["rows"][name]}
            path.write_text(yaml.safe_dump(document | {"rows": scripted}, sort_keys=False))
        for name in sorted({row["training"] for row in plan["rows"].values() if "training" in row}):
            path = root / f"config/training/{name}.yaml"
            path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | dict(training), sort_keys=False))
    lock(root, boards)
    commit_all(root)
    return root


def lock(root: Path, boards: Iterable[str]) -> None:
    """Write the locks of the plans of ``boards`` as if there had been none."""
    for board in boards:
        setup = load_board(root, board)
        (root / lock_path(setup.plan_path)).unlink(missing_ok=True)
        write_lock(setup)


def code_tree(root: Path, cache: HashCache | None = None) -> CodeTree:
    """Code, data files and pins of the project ``root``."""
    return CodeTree.of_checkout(root, cache or HashCache(None), read_pins(root))


def recipes_of(root: Path, board: str, row: str, cache: HashCache | None = None) -> dict[str, Any]:
    """The recipes of a row of the project ``root``, with what is shown beside them."""
    return row_recipes(load_board(root, board), row, code_tree(root, cache))


def plan_of(setup: BoardSetup) -> tuple[str, str, bytes]:
    """Path, object id and bytes of a board's plan as it lies in the checkout."""
    return setup.plan_path, git.blob_id(setup.plan_bytes), setup.plan_bytes


def bare_recipes(recipes: Mapping[str, Any]) -> dict[str, Any]:
    """What a bundle holds of recipes."""
    return {stage: bare(recipe) for stage, recipe in recipes.items()}


def places_of(recipes: Mapping[str, Any]) -> dict[str, Any]:
    """What a provenance shows of recipes."""
    return {stage: shown(recipe) for stage, recipe in recipes.items()}


class _Silent:
    """Watches a training without a word."""

    def resume(self, done: int) -> None:
        pass

    def advance(self, units: int, work: int, note: str) -> None:
        pass


def learn(engine: Engine, recipes: Mapping[str, Any], seeds: Iterable[int]) -> dict[int, tuple[bytes, bytes, bytes]]:
    """Train and select as the recipes of a learned row say: seed -> bytes of training, selection and checkpoint."""
    training, validation = import_module(engine.training_module), import_module(engine.validation_module)
    setup, learned = recipes["select"]["setup"], {}
    with tempfile.TemporaryDirectory() as name:
        for seed in seeds:
            folder = Path(name) / f"seed{seed}"
            document = training.train(recipes["train"]["setup"], seed, folder, _Silent())
            files = {
                saved["uri"]: read_bytes(folder / file_name(saved["uri"]), saved["uri"])
                for saved in document["checkpoints"]
            }
            judged = [
                {**saved, "episodes": validation.validate(setup, saved["uri"], files[saved["uri"]])}
                for saved in document["checkpoints"]
            ]
            evidence = selection(seed, judged, setup["limits"])
            chosen = files[evidence["selected"]["uri"]]
            learned[seed] = encode_document(document), encode_document(evidence), chosen
    return learned


def make_row(root: Path, results_dir: Path, board: str, row: str, *, dirty: bool = False) -> Path:
    """Run one row of the project ``root`` and write its bundle to ``results_dir/board/row``; return that folder.

    The grid is the one of the project's plan (see :func:`make_project`). The bundle verifies against ``root``
    unless it is marked ``dirty``. Its bytes are the same on every call. Learned rows are trained and need torch.
    """
    setup = load_board(root, board)
    recipes = row_recipes(setup, row, code_tree(root))
    data = recipes["simulate"]["setup"]
    specs = import_module(setup.engine.specs_module).specs(data)
    learned = learn(setup.engine, recipes, data["seeds"]) if "train" in recipes else {}
    checkpoints = {seed: (uri_of(each[2]), each[2]) for seed, each in learned.items()}
    simulate = import_module(setup.engine.simulate_module).simulate
    records = list(simulate(data, specs, *([checkpoints] if learned else [])))
    summary = row_summary(records, partners=recipes["summary"]["partners"], **recipes["summary"]["statistics"])
    if setup.engine.summary_module:
        summary["family"] = import_module(setup.engine.summary_module).summarise(records)
    episodes = split_episodes({"all": encode_lines(records)}, specs)
    files = build(bare_recipes(recipes), plan_of(setup), episodes, summary, learned)
    commit = git.tree_state(root).commit
    seed_shards = [f"seed{seed}" for seed in data["seeds"]]
    shards = {"train": seed_shards, "select": seed_shards, "simulate": ["all"]}
    jobs = [
        {
            "stage": stage,
            "shard": shard,
            "commit": commit,
            "dirty": dirty,
            "seconds": 0.0,
            "platform": "test",
            "cpu_model": "test",
            "python": platform.python_version(),
            "versions": {name: installed(name) for name in recipes[stage]["pins"]},
        }
        for stage in recipes
        for shard in shards.get(stage, [None])
    ]
    files[PROVENANCE] = build_provenance(files["bundle.json"], jobs, places_of(recipes))
    folder = results_dir / board / row
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def entered(built: Path, tmp_path: Path, monkeypatch: Any) -> Path:
    """A copy of a built project in which the command is called, as if it were installed from there."""
    root = shutil.copytree(built, tmp_path / "p", symlinks=True)
    monkeypatch.chdir(root)
    monkeypatch.setattr(cli, "PACKAGE_ROOT", root)
    return root
