"""Which version of a plan binds a row, and how a plan may grow."""

import os
import shutil
import subprocess

import pytest
import yaml
from bundles import code_tree, commit_all, make_project, make_row
from helpers import ROOT
from rowproof import git
from rowproof.boards import load_board
from rowproof.errors import ConfigError
from rowproof.memo import Memo
from rowproof.plan_history import Binding, bindings
from rowproof.recipes import prepare, row_recipes
from rowproof.stages import stage_keys

HANDOVER, GPTNT, SPEEDRUN = "handover-v1", "gptnt-single-self-async", "nanogpt-speedrun-cpu-v1"
PLAN = f"config/plans/{HANDOVER}.yaml"


def change(path, edit):
    """Rewrite a YAML file by a function of its content."""
    document = yaml.safe_load(path.read_text())
    edit(document)
    path.write_text(yaml.safe_dump(document, sort_keys=False))


# --- growth


@pytest.fixture(scope="module")
def tree():
    return code_tree(ROOT)


@pytest.fixture
def config(tmp_path):
    """A folder with the configuration alone, for this test to change."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    return tmp_path


def keys(root, board, tree):
    setup = load_board(root, board)
    return {row: stage_keys(row_recipes(setup, row, tree)) for row in setup.board.rows}


def drop(root, board, row, edit_cell=lambda cell: None, partner=None):
    """Take a row out of a board and its plan, with all that the plan says for it alone."""

    def shrink(plan):
        del plan["rows"][row]
        edit_cell(plan["cell"])
        if partner:
            plan["grid"]["partners"].remove(partner)

    change(root / f"config/plans/{board}.yaml", shrink)
    change(root / f"config/boards/{board}.yaml", lambda document: document["rows"].pop(row))


@pytest.mark.parametrize(
    "edit",
    [
        lambda plan: plan.update(notes="later thoughts"),
        lambda plan: plan.update(decision_rules="other words"),
        lambda plan: plan["rows"].update({"b-more": {"policy": "random", "cell": {"lateral_window_m": 0.002}}}),
    ],
    ids=["note", "decision rule", "row"],
)
def test_growth_changes_no_recipe(config, tree, edit):
    before = keys(config, HANDOVER, tree)
    change(config / PLAN, edit)
    assert keys(config, HANDOVER, tree) == before


def test_a_comment_changes_no_recipe(config, tree):
    before = keys(config, HANDOVER, tree)
    (config / PLAN).write_text("# First.\n" + (config / PLAN).read_text() + "# Last.\n")
    assert keys(config, HANDOVER, tree) == before


def test_a_further_row_on_the_board_changes_no_other(config, tree):
    whole = keys(config, HANDOVER, tree)
    drop(config, HANDOVER, "b-rnd")
    assert keys(config, HANDOVER, tree) == {row: own for row, own in whole.items() if row != "b-rnd"}


def test_a_further_candidate_in_a_campaign_of_its_own_changes_no_other_row(config, tree):
    row = next(name for name in load_board(config, SPEEDRUN).board.rows if name.startswith("n8"))
    change(config / f"config/plans/{SPEEDRUN}.yaml", lambda plan: plan["rows"][row].update(campaign=2))
    grown = keys(config, SPEEDRUN, tree)
    drop(config, SPEEDRUN, row, lambda cell: cell["candidates"].pop("n8"))
    assert keys(config, SPEEDRUN, tree) == {name: own for name, own in grown.items() if name != row}


def test_a_further_candidate_in_the_same_campaign_asks_for_other_times_alone(config, tree):
    row = next(name for name in load_board(config, SPEEDRUN).board.rows if name.startswith("n8"))
    grown = keys(config, SPEEDRUN, tree)
    drop(config, SPEEDRUN, row, lambda cell: cell["candidates"].pop("n8"))
    for name, own in keys(config, SPEEDRUN, tree).items():
        assert [stage for stage in own if own[stage] != grown[name][stage]] == ["time", "summary", "bundle"]


def test_a_further_player_changes_no_other_row(config, tree):
    grown = keys(config, GPTNT, tree)
    drop(config, GPTNT, "scripted-slow", lambda cell: cell["players"].pop("scripted-slow"), "scripted_slow")
    assert keys(config, GPTNT, tree) == {name: own for name, own in grown.items() if name != "scripted-slow"}


# --- the binding version


@pytest.fixture
def repo(config):
    """The configuration in a repository, committed once."""
    commit_all(config)
    return config


def bound(root):
    return bindings(load_board(root, HANDOVER), Memo(None))


def committed(root, edit):
    """Change the plan and commit it; what binds a row from then on if it is bound by this version."""
    change(root / PLAN, edit)
    commit = commit_all(root)
    return Binding(git.blob_id((root / PLAN).read_bytes()), commit)


def first(root):
    return Binding(git.blob_id((root / PLAN).read_bytes()), git.tree_state(root).commit)


def resampled(count, notes=""):
    return lambda plan: (plan["statistics"].update(n_resamples=count), plan.update(notes=notes))


def test_the_oldest_version_with_the_same_slice_binds(repo):
    oldest = first(repo)
    for note in ("one", "two"):
        committed(repo, lambda plan, note=note: plan.update(notes=note))
    assert set(bound(repo).values()) == {oldest}


def test_other_commits_bring_no_version(repo):
    oldest = first(repo)
    (repo / "other").write_text("x")
    commit_all(repo)
    assert set(bound(repo).values()) == {oldest}


def test_a_changed_slice_binds_from_its_change_on(repo):
    changed = committed(repo, resampled(10))
    committed(repo, resampled(10, "a note"))
    assert set(bound(repo).values()) == {changed}


def test_a_slice_that_changed_and_changed_back_is_bound_by_the_later_version(repo):
    committed(repo, resampled(10))
    back = committed(repo, resampled(2000, "as before"))
    committed(repo, resampled(2000, "and later"))
    assert set(bound(repo).values()) == {back}


def test_the_same_bytes_again_are_another_version(repo):
    data, oldest = (repo / PLAN).read_bytes(), first(repo)
    committed(repo, resampled(10))
    (repo / PLAN).write_bytes(data)
    again = commit_all(repo)
    assert set(bound(repo).values()) == {Binding(oldest.blob, again)}


def test_rows_are_bound_one_by_one(repo):
    oldest = first(repo)
    changed = committed(repo, lambda plan: plan["rows"]["b-rnd"].update(cell={"lateral_window_m": 0.002}))
    found = bound(repo)
    assert found.pop("b-rnd") == changed and set(found.values()) == {oldest}


def test_a_renamed_row_is_bound_by_the_version_that_named_it(repo):
    oldest = first(repo)
    change(repo / f"config/boards/{HANDOVER}.yaml", lambda b: b["rows"].update({"b-new": b["rows"].pop("b-rnd")}))
    renamed = committed(repo, lambda plan: plan["rows"].update({"b-new": plan["rows"].pop("b-rnd")}))
    found = bound(repo)
    assert found.pop("b-new") == renamed and set(found.values()) == {oldest}


def test_a_version_that_cannot_be_read_ends_the_walk(repo):
    text = (repo / PLAN).read_text()
    (repo / PLAN).write_text("schema: other\n")
    commit_all(repo)
    (repo / PLAN).write_text(text)
    again = commit_all(repo)
    assert {binding.commit for binding in bound(repo).values()} == {again}


def test_an_uncommitted_plan_is_bound_by_itself(repo):
    change(repo / PLAN, lambda plan: plan.update(notes="new"))
    here = Binding(git.blob_id((repo / PLAN).read_bytes()), None)
    assert set(bound(repo).values()) == {here}


def test_without_a_repository_the_file_binds(config):
    assert {binding.commit for binding in bound(config).values()} == {None}


def test_versions_of_another_branch_do_not_count(repo):
    oldest = first(repo)
    call(repo, "checkout", "-q", "-b", "side")
    committed(repo, resampled(10))
    call(repo, "checkout", "-q", "-")
    assert set(bound(repo).values()) == {oldest}


def call(root, *arguments):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{role}_NAME": "t", f"GIT_{role}_EMAIL": "t@example.org"}
    subprocess.run(["git", "-C", str(root), *arguments], env=environment, check=True, capture_output=True)


def test_a_merge_of_two_grown_plans_keeps_the_oldest_version(repo):
    oldest = first(repo)
    text = (repo / PLAN).read_text()
    call(repo, "checkout", "-q", "-b", "side")
    (repo / PLAN).write_text("# at the top\n" + text)
    commit_all(repo)
    call(repo, "checkout", "-q", "-")
    (repo / PLAN).write_text(text + "# at the end\n")
    commit_all(repo)
    call(repo, "merge", "-q", "--no-edit", "side")
    assert (repo / PLAN).read_text() == "# at the top\n" + text + "# at the end\n"
    assert set(bound(repo).values()) == {oldest}


def test_a_merge_that_drops_a_changed_slice_keeps_the_oldest_version(repo):
    oldest = first(repo)
    call(repo, "checkout", "-q", "-b", "side")
    committed(repo, resampled(10))
    call(repo, "checkout", "-q", "-")
    (repo / "other").write_text("x")
    commit_all(repo)
    call(repo, "merge", "-q", "--no-edit", "-s", "ours", "side")
    assert set(bound(repo).values()) == {oldest}


def test_what_is_remembered_gives_the_same_versions(repo, tmp_path):
    committed(repo, resampled(10))
    committed(repo, resampled(10, "a note"))
    setup = load_board(repo, HANDOVER)
    for _ in range(2):
        memo = Memo(tmp_path / "memo.json")
        assert bindings(setup, memo) == bound(repo)
        memo.save()


# --- what may not change any more


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A project with one row, not committed."""
    root = make_project(tmp_path_factory.mktemp("built") / "p", seeds=[0], episodes_per_partner=1)
    make_row(root, root / "results", HANDOVER, "b-stat")
    return root


@pytest.fixture
def project(built, tmp_path):
    return shutil.copytree(built, tmp_path / "p")


def test_a_changed_slice_is_refused_once_its_row_is_committed(project):
    commit_all(project)
    change(project / PLAN, resampled(10))
    with pytest.raises(ConfigError) as caught:
        prepare(project, project)
    message = str(caught.value)
    assert message.startswith(f"{PLAN}: ") and "found it changed for handover-v1/b-stat (statistics: " in message
    assert "b-rnd" not in message
    assert message.endswith("restore it, or write another version of the board with a plan of its own")


def test_the_refusal_outlives_a_commit_of_the_change(project):
    commit_all(project)
    change(project / PLAN, resampled(10))
    commit_all(project)
    with pytest.raises(ConfigError, match="found it changed for handover-v1/b-stat"):
        prepare(project, project)


def test_without_a_committed_row_a_slice_may_change(project):
    change(project / PLAN, resampled(10))
    assert {row.row: row.state for row in prepare(project, project).rows}["b-stat"] == "stale"


def test_the_slice_of_a_row_without_records_may_change(project):
    commit_all(project)
    change(project / PLAN, lambda plan: plan["rows"]["b-rnd"].update(cell={"lateral_window_m": 0.002}))
    assert {row.row: row.state for row in prepare(project, project).rows}["b-stat"] == "current"


def test_a_grown_plan_keeps_its_rows_current_and_bound_as_they_were(project):
    commit_all(project)
    blob = git.blob_id((project / PLAN).read_bytes())
    change(project / PLAN, lambda plan: plan.update(notes="later"))
    commit_all(project)
    row = prepare(project, project).row(f"{HANDOVER}/b-stat")
    assert (row.state, row.plan_blob) == ("current", blob)
