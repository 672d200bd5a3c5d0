"""Rows made with another partner, player or training under the old name, and the file put back afterwards.

The forger may commit to a clone: the bundle's own commit holds what made it, so that all agree with one another but the
lock that the plan was committed with.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from bundles import commit_all, lock, make_project, make_row
from forged.test_row_forgeries import PLAN, ForgedRow, World, failing, git
from rowproof.boards import load_board
from rowproof.errors import ConfigError
from rowproof.evidence.verify import verify_bundle
from rowproof.plan_lock import check_lock

PARTNERS = "config/partners/handover-place-partners-v1.yaml"
PLAYER = "config/players/scripted.yaml"
TRAINING = "config/training/handover-aht.yaml"
GPTNT = "gptnt-multi-self-sync"


def replace(root: Path, path: str, old: str, new: str) -> None:
    text = (root / path).read_text()
    assert old in text, f"{path} no longer holds {old!r}: adapt the test"
    (root / path).write_text(text.replace(old, new, 1))


def made_and_restored(
    project: Path, tmp_path: Path, name: str, change: Callable[[Path], None], with_lock: bool
) -> tuple[Path, Path]:
    """A clone whose last commit has the files as they were, and the bundle that it made in between."""
    board, _, row = name.rpartition("/")
    root = shutil.copytree(project, tmp_path / "clone", symlinks=True)
    change(root)
    if with_lock:
        lock(root, [board])
    else:
        with pytest.raises(ConfigError, match="must be as it was when the plan was locked, found other content"):
            check_lock(load_board(root, board))
    commit_all(root)
    folder = make_row(root, tmp_path / "results", board, row)
    git(root, "checkout", "-q", "HEAD~1", "--", ".")
    commit_all(root)
    check_lock(load_board(root, board))
    return root, folder


def refused_by_the_lock(folder: Path, root: Path, thing: str, commit_too: bool) -> None:
    table = verify_bundle(folder, root)
    assert failing(table) == ["plan:lock"]
    found = table.failures[0].found
    assert f"{thing} today" in found
    commits = {job["commit"] for job in json.loads((folder / "provenance.json").read_bytes())["jobs"]}
    assert any(f"{thing} {commit[:12]}" in found for commit in commits) == commit_too


@pytest.fixture(scope="module")
def handover(tmp_path_factory):
    return make_project(tmp_path_factory.mktemp("handover") / "project")


def other_bias(root: Path) -> None:
    replace(root, PARTNERS, 'grasp_pose_bias_deg: "30.0"', 'grasp_pose_bias_deg: "3.0"')


@pytest.mark.parametrize("with_lock", [False, True], ids=["partner alone", "lock as well"])
def test_another_partner_under_the_old_version(handover, tmp_path, with_lock):
    root, folder = made_and_restored(handover, tmp_path, "handover-v1/ref-script", other_bias, with_lock)
    assert (
        json.loads((folder / "identities.json").read_bytes())["partners"][0]["params"]["grasp_pose_bias_deg"] == "3.0"
    )
    thing = "partner handover_place_partners@v1/presenter_mismatch_30"
    refused_by_the_lock(folder, root, thing, commit_too=not with_lock)


def test_another_partner_where_the_commit_of_the_forger_is_not_known(handover, tmp_path):
    _, folder = made_and_restored(handover, tmp_path, "handover-v1/ref-script", other_bias, True)
    assert failing(verify_bundle(folder, handover)) == ["records:replay", "plan:lock"]


def test_another_partner_of_another_version_is_an_honest_row(handover, tmp_path):
    """What the refusal asks for is enough."""
    root = shutil.copytree(handover, tmp_path / "clone", symlinks=True)
    other_bias(root)
    replace(root, PARTNERS, "version: 1", "version: 2")
    lock(root, ["handover-v1"])
    commit_all(root)
    folder = make_row(root, tmp_path / "results", "handover-v1", "ref-script")
    assert {check.verdict for check in verify_bundle(folder, root).checks} == {"pass"}


@pytest.fixture(scope="module")
def players(tmp_path_factory):
    """A project with one board of bombs, and a bundle of it."""
    root = make_project(
        tmp_path_factory.mktemp("players") / "project", boards=[GPTNT], seeds=[1], episodes_per_partner=10
    )
    built = tmp_path_factory.mktemp("players-rows")
    make_row(root, built, GPTNT, "scripted")
    return World(root, built, {})


def test_an_honest_row_of_players_verifies(players):
    table = verify_bundle(players.built / GPTNT / "scripted", players.root)
    assert {check.verdict for check in table.checks} == {"pass"}


@pytest.mark.parametrize("with_lock", [False, True], ids=["player alone", "lock as well"])
def test_another_script_of_a_player(players, tmp_path, with_lock):
    def change(root: Path) -> None:
        replace(root, PLAYER, "script: scripted", "script: scripted-slow")

    root, folder = made_and_restored(players.root, tmp_path, f"{GPTNT}/scripted", change, with_lock)
    refused_by_the_lock(folder, root, "players scripted", commit_too=not with_lock)


def data_of(copy: ForgedRow) -> dict[str, str]:
    return copy.load("recipe.json")["simulate"]["data"]


def test_a_data_file_of_another_digest(players, tmp_path):
    copy = ForgedRow(players, f"{GPTNT}/scripted", tmp_path / "results")
    path = next(iter(data_of(copy)))
    copy.edit_recipes(lambda recipes: recipes["simulate"]["data"].update({path: "0" * 64}))
    copy.reseal(keep=["summary"])
    assert failing(copy.verify()) == ["history:code"]
    assert f"{path} at " in copy.verify().failures[0].found


def test_a_data_file_that_is_kept_silent_about(players, tmp_path):
    copy = ForgedRow(players, f"{GPTNT}/scripted", tmp_path / "results")
    path = next(iter(data_of(copy)))
    copy.edit_recipes(lambda recipes: recipes["simulate"]["data"].pop(path))
    copy.reseal(keep=["summary"])
    assert failing(copy.verify()) == ["history:code"]
    assert f"{path} left out of simulate" in copy.verify().failures[0].found


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A project with learned rows, and a bundle of one."""
    pytest.importorskip("rowproof.chamber.learned.networks", reason="torch (extra training) is not installed")
    root = make_project(tmp_path_factory.mktemp("trained") / "project", learned=True)
    built = tmp_path_factory.mktemp("trained-rows")
    make_row(root, built, "handover-v1", "b-aht")
    return World(root, built, {})


def test_an_honest_learned_row_verifies(trained):
    table = verify_bundle(trained.built / "handover-v1/b-aht", trained.root)
    assert {check.verdict for check in table.checks} == {"pass"}


def test_another_training_in_the_recorded_setup(trained, tmp_path):
    copy = ForgedRow(trained, "handover-v1/b-aht", tmp_path / "results")
    copy.edit_recipes(lambda recipes: recipes["train"]["setup"]["training"].update(learning_rate=0.5))
    copy.reseal(keep=["identities"])
    assert failing(copy.verify()) == ["training:plan", "plan:lock"]
    assert "training handover-aht today" in copy.verify().failures[-1].found


@pytest.mark.parametrize("with_lock", [False, True], ids=["training alone", "lock as well"])
def test_another_training_under_the_old_name(trained, tmp_path, with_lock):
    def change(root: Path) -> None:
        replace(root, TRAINING, "epochs: 1", "epochs: 2")

    root, folder = made_and_restored(trained.root, tmp_path, "handover-v1/b-aht", change, with_lock)
    refused_by_the_lock(folder, root, "training handover-aht", commit_too=not with_lock)


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "in the folder"])
def test_a_plan_of_today_that_says_something_else(handover, tmp_path, committed):
    root = shutil.copytree(handover, tmp_path / "clone", symlinks=True)
    folder = make_row(root, tmp_path / "results", "handover-v1", "ref-script")
    assert verify_bundle(folder, root).passed
    replace(root, PLAN, "angular_window_deg: 5.0", "angular_window_deg: 6.0")
    if committed:
        commit_all(root)
    table = verify_bundle(folder, root)
    assert "plan:project" in failing(table)
    (check,) = (check for check in table.failures if check.id == "plan:project")
    assert f"{PLAN} says something else of ref-script today" in check.found
    assert "another plan is another board" in check.found


def test_a_plan_of_today_that_grew(handover, tmp_path):
    """More rows, notes and comments bind no row that was there."""
    root = shutil.copytree(handover, tmp_path / "clone", symlinks=True)
    folder = make_row(root, tmp_path / "results", "handover-v1", "ref-script")
    replace(root, PLAN, "rows:\n", "rows:\n  # another one\n  b-too: {policy: random}\n")
    commit_all(root)
    assert {check.verdict for check in verify_bundle(folder, root).checks} == {"pass"}
