"""Runs units of one stage by the code of one tree: ``python attest_worker.py TASK.json``.

Called as a file, so that nothing but the tree that the task names is imported. It uses only what every tree offers:
boards with their setups, and producers by name.
"""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any


class _Watcher:
    """Follows nothing."""

    def resume(self, done: int) -> None:
        pass

    def advance(self, *steps: Any) -> None:
        pass


def _specs(task: dict[str, Any], setup: dict[str, Any]) -> list[Any]:
    return import_module(task["specs_producer"]).specs(setup)


def _simulate(task: dict[str, Any], setup: dict[str, Any]) -> list[Any]:
    specs = _specs(task, setup)
    chosen = specs if task["units"] is None else [specs[index] for index in task["units"]]
    players = {int(seed): (uri, Path(path).read_bytes()) for seed, (uri, path) in task["checkpoints"].items()}
    return list(import_module(task["producer"]).simulate(setup, chosen, *((players,) if players else ())))


def _select(task: dict[str, Any], setup: dict[str, Any]) -> list[Any]:
    validate = import_module(task["producer"]).validate
    return [validate(setup, uri, Path(path).read_bytes()) for uri, path in task["checkpoints"].values()]


def _train(task: dict[str, Any], setup: dict[str, Any]) -> list[Any]:
    train, folder = import_module(task["producer"]).train, Path(task["folder"])
    made = []
    for seed in task["first_update_of"]:
        config = setup["training"]
        short = {**config, "frames": config["rollout_frames"], "checkpoint_frames": config["rollout_frames"]}
        made.append(train({**setup, "training": short}, seed, folder / f"first{seed}", _Watcher()))
    made += [train(setup, seed, folder / f"whole{seed}", _Watcher()) for seed in task["whole"]]
    return made


def main(path: str) -> None:
    """Run the task in the file ``path`` and write its canonical lines to the file that it names."""
    task = json.loads(Path(path).read_bytes())
    root = Path(task["root"])
    sys.path.insert(0, str(root / "workflow"))
    boards, records = import_module("rowproof.boards"), import_module("rowproof.records")
    stage, row = task["stage"], task.get("row")
    setup = None if "setup" in task else boards.load_board(root, task["board"])
    if setup is None:
        # All episodes of a row, by the setup that its recipe records.
        made = _simulate(task, task["setup"])
    elif stage in ("specs", "simulate"):
        made = {"specs": _specs, "simulate": _simulate}[stage](task, setup.row_setup(row))
    elif stage == "select":
        made = _select(task, setup.selection_setup(row))
    else:
        made = _train(task, setup.training_setup(row))
    lines = "".join(records.encode_line(each) + "\n" for each in made)
    Path(task["output"]).write_text(lines, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(sys.argv[1])
