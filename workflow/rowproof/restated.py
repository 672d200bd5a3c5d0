"""Recipes whose keys were made in an earlier form, restated in that of today.

A key follows from the code of the commit at which a stage ran. When the form of keys changes, the recipe is read at
that commit again, so evidence need not be made again because keys are made better. What a stage played with must be
equal throughout; otherwise its recipe stays as it is, and the row is stale.
"""

import ast
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rowproof.errors import RowproofError
from rowproof.history import committed_file
from rowproof.recipes import CodeTree, Project, Recorded, make_recipe, parse_pins, record_recipes, timing_recipe
from rowproof.records import digest
from rowproof.stages import stage_key

if TYPE_CHECKING:
    from rowproof.boards import BoardSetup

# Where a commit says which scripts run its stages, the newest place first.
_SCRIPT_TABLES = ("workflow/rowproof/stages.py", "workflow/rowproof/recipes.py")
_OBSERVER_TABLES = ("workflow/rowproof/closure.py",)


@lru_cache(maxsize=64)
def tree_at(root: Path, commit: str) -> CodeTree:
    """Code, data files and pins of a commit, read and not run.

    Raises:
        HistoryGap: the commit, or a file of it, is not in this clone.
        ForeignCommitError: HEAD of the project does not descend from it.
        RowproofError: it holds no lock file.
    """
    lock = committed_file(root, commit, "requirements.lock")
    if lock is None:
        raise RowproofError(f"{commit} must hold requirements.lock, found none")
    observers = frozenset(literal_at(root, commit, _OBSERVER_TABLES, "OBSERVERS"))
    return CodeTree.of_commit(root, commit, parse_pins(lock.decode("utf-8")), observers)


@lru_cache(maxsize=256)
def literal_at(root: Path, commit: str, paths: tuple[str, ...], name: str) -> Any:
    """The value of a module constant in a commit, read and not run; ``paths`` are the files that may define it."""
    for path in paths:
        for node in ast.parse(committed_file(root, commit, path) or b"").body:
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
                value = node.value
                return ast.literal_eval(value.args[0] if isinstance(value, ast.Call) else value)
    raise RowproofError(f"{commit} must define {name} in {' or '.join(paths)}, found no such constant")


def script_at(root: Path, commit: str, stage: str) -> str:
    """The script of a stage in a commit."""
    return literal_at(root, commit, _SCRIPT_TABLES, "SCRIPTS")[stage]


def restate_board(setup: "BoardSetup", recorded: Mapping[str, Recorded | None], project: Project) -> None:
    """Restate what the bundles of a board record, in place, as far as the history tells it."""
    renamed: dict[str, str] = {}
    for row, found in recorded.items():
        if found is not None and found.earlier and found.recipes is not None:
            _restate_records(setup, row, found, project, renamed)
    for row, found in recorded.items():
        if found is not None and found.earlier and found.recipes is not None and "time" in found.recipes:
            was = found.recipes["time"]
            upstream = {name: renamed.get(key, key) for name, key in was["upstream"].items()}
            now = timing_recipe(setup, setup.plan.rows[row].campaign, project.tree, upstream)
            if now["upstream"] == upstream:
                _restate(setup, "time", found, now, upstream, project)


def _restate_records(setup: "BoardSetup", row: str, found: Recorded, project: Project, renamed: dict[str, str]) -> None:
    upstream: dict[str, str] = {}
    for stage, now in record_recipes(setup, row, project.tree).items():
        was = found.recipes.get(stage)
        if was is None:
            return
        before = old_key(was)
        if not _restate(setup, stage, found, now, upstream, project):
            return
        key = stage_key(found.recipes[stage])
        if stage == "simulate":
            renamed[before] = key
        upstream = {stage: key}


def old_key(recipe: Mapping[str, Any]) -> str:
    """The key of a recorded recipe as it stands in the bundle."""
    return digest({key: value for key, value in recipe.items() if key != "files"})


def _restate(
    setup: "BoardSetup",
    stage: str,
    found: Recorded,
    now: Mapping[str, Any],
    upstream: Mapping[str, str],
    project: Project,
) -> bool:
    """Put a recipe of one stage in today's form in the place of the recorded one; returns whether that was possible."""
    was = found.recipes[stage]
    jobs = (found.provenance or {}).get("jobs", [])
    commits = sorted({job["commit"] for job in jobs if job["stage"] == stage and not job["dirty"]})
    if not commits or any(job["dirty"] for job in jobs) or not _same_setup(setup, stage, was, now):
        return False
    made = []
    for commit in commits:
        try:
            tree = tree_at(project.root, commit)
            made.append(_at_commit(setup, stage, was, now, upstream, tree, script_at(project.root, commit, stage)))
        except RowproofError:
            return False
    if any(stage_key(each) != stage_key(made[0]) for each in made):
        return False
    found.recipes[stage] = made[0]
    return True


def _at_commit(
    setup: "BoardSetup",
    stage: str,
    was: Mapping[str, Any],
    now: Mapping[str, Any],
    upstream: Mapping[str, str],
    tree: CodeTree,
    script: str,
) -> dict[str, Any]:
    own = {key: now[key] for key in now if key in ("setup", "plan")}
    places = {key: was[key] for key in ("producer", "programs") if key in was}
    return make_recipe(setup, stage, {**places, **own}, upstream, tree, script)


def _same_setup(setup: "BoardSetup", stage: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a stage was set up then as it is now; parts of the cell that only concern other rows may differ."""
    old, new = dict(was["setup"]), dict(now["setup"])
    if stage == "time":
        old = {"campaign": 1, **old}
        old["cell"] = setup.engine.campaign_cell(old["cell"], list(new["policies"].values()))
    elif "members" in new:
        old["cell"] = setup.engine.own_cell(old["cell"], new["policy"], [member["name"] for member in new["members"]])
    return old == new
