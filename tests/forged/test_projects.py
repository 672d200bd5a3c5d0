"""Evidence is judged by the project whose code is running, or by one that the reader names: never by its own."""

import shutil

import pytest
from bundles import commit_all, lock, make_project, make_row
from rowproof import cli

PLAN = "config/plans/push-v1.yaml"
ROW = "push-v1/b-stat"


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return make_project(tmp_path_factory.mktemp("ours"), boards=("push-v1",))


@pytest.fixture(scope="module")
def theirs(ours, tmp_path_factory):
    """A clone of the project whose plan was softened, with a row by it that is without fault there."""
    root = tmp_path_factory.mktemp("theirs") / "clone"
    shutil.copytree(ours, root)
    plan = (root / PLAN).read_text()
    assert "success_reward: -1.2" in plan
    (root / PLAN).write_text(plan.replace("success_reward: -1.2", "success_reward: -9.5", 1))
    (root / PLAN.replace(".yaml", ".lock.json")).unlink()
    lock(root, ["push-v1"])
    commit_all(root)
    make_row(root, root / "results", *ROW.split("/"))
    commit_all(root)
    for each in (ours, root):
        for name in ("Snakefile",):
            (each / name).write_text("")
    return root


def judged(monkeypatch, capsys, own, folder, *options):
    monkeypatch.setattr(cli, "PACKAGE_ROOT", own)
    code = cli.main(["verify", "--quiet", *options, str(folder)])
    return code, capsys.readouterr().out


def test_a_softened_plan_of_its_own_does_not_help(ours, theirs, monkeypatch, capsys):
    code, out = judged(monkeypatch, capsys, ours, theirs / "results" / ROW)
    assert code == 1 and "FAIL    plan:project" in out
    assert out.splitlines()[-1].startswith(f"judged by the project {ours} at ")


def test_nor_does_standing_in_it(ours, theirs, monkeypatch, capsys):
    monkeypatch.chdir(theirs)
    assert judged(monkeypatch, capsys, ours, f"results/{ROW}")[0] == 1


def test_whoever_trusts_it_names_it(ours, theirs, monkeypatch, capsys):
    code, out = judged(monkeypatch, capsys, ours, theirs / "results" / ROW, "--project", str(theirs))
    assert code == 0, out
    assert f"judged by the project {theirs} at" in out.splitlines()[-1]


def test_a_row_that_lies_elsewhere_is_judged_by_ours(ours, tmp_path, monkeypatch, capsys):
    folder = make_row(ours, tmp_path / "built", *ROW.split("/"))
    moved = shutil.copytree(folder, tmp_path / "any")
    (ours / "Snakefile").write_text("")
    code, out = judged(monkeypatch, capsys, ours, moved)
    assert code == 0, out


def test_a_folder_that_is_no_project_is_refused(tmp_path, ours, capsys, monkeypatch):
    monkeypatch.setattr(cli, "PACKAGE_ROOT", ours)
    assert cli.main(["verify", "--project", str(tmp_path), str(tmp_path)]) == 2
    assert "must be a project, found no Snakefile" in capsys.readouterr().err
