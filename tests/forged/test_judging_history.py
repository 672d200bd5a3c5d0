"""Only commits that HEAD of the judging project descends from are history, and a row that names others is refused."""

import os
import shutil
import subprocess

import pytest
from bundles import commit_all, make_project, make_row
from forgeries.seal import Row
from rowproof import cli
from rowproof.evidence import replay
from rowproof.evidence.verify import verify_bundle
from rowproof.history import standing

ROW = ("handover-v1", "b-stat")
PLAN = "config/plans/handover-v1.yaml"
CODE = "workflow/rowproof/chamber/handover.py"
HISTORY = ("history:commits", "history:plan", "history:code", "history:pins", "plan:project", "plan:lock")


def git(root, *args, **env):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    clean |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **env}
    for role in ("AUTHOR", "COMMITTER"):
        clean |= {f"GIT_{role}_NAME": "t", f"GIT_{role}_EMAIL": "t@example.org"}
    done = subprocess.run(["git", "-C", str(root), *args], env=clean, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A project with a row of its first commit; the code of that commit differs from that at hand."""
    root = make_project(tmp_path_factory.mktemp("history") / "p", seeds=[0], episodes_per_partner=3)
    row = make_row(root, root.parent / "rows", *ROW)
    (root / "README.md").write_text("more\n")
    commit_all(root)
    return root, row


@pytest.fixture
def project(world, tmp_path):
    return shutil.copytree(world[0], tmp_path / "p"), world[1]


def checks(table):
    return {check.id: check for check in table.checks}


# --- Clones in which honest rows never fail -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "verdict", "reason"),
    [
        ([], "pass", ""),
        (["--depth", "1"], "unknown", "git fetch --unshallow"),
        (["--filter=blob:none", "--no-checkout"], "unknown", "must be in this clone"),
        (["--filter=tree:0", "--no-checkout"], "unknown", "in this clone"),
        (["--config", "core.autocrlf=true"], "pass", ""),
    ],
    ids=["full", "shallow", "blobless", "treeless", "autocrlf"],
)
def test_an_honest_row_never_fails_in_a_clone(world, tmp_path, options, verdict, reason):
    root, row = world
    git(root, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", *options, f"file://{root}", "clone")
    if "--no-checkout" in options:
        # Its files without what the checkout would have fetched.
        shutil.copytree(root, tmp_path / "clone", dirs_exist_ok=True, ignore=shutil.ignore_patterns(".git"))
    table = verify_bundle(row, tmp_path / "clone")
    found = checks(table)
    assert table.passed, table.failures
    assert found["records:replay"].verdict == "pass"
    assert found["history:code"].verdict == verdict and reason in found["history:code"].found
    if verdict == "pass":
        assert {check.verdict for check in table.checks} == {"pass"}


def test_an_honest_row_in_a_folder_of_somebody_else(world, monkeypatch):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert {check.verdict for check in verify_bundle(world[1], world[0]).checks} == {"pass"}


def test_an_honest_row_in_a_worktree(project, tmp_path):
    git(project[0], "worktree", "add", "-q", "--detach", str(tmp_path / "w"))
    assert {check.verdict for check in verify_bundle(project[1], tmp_path / "w").checks} == {"pass"}


@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in_another_repository"])
def test_an_honest_row_without_history(project, tmp_path, inside):
    root, row = project
    shutil.rmtree(root / ".git")
    if inside:
        (tmp_path / ".gitignore").write_text("p/\n")
        commit_all(tmp_path)
    table = verify_bundle(row, root)
    assert table.passed, table.failures
    assert {checks(table)[name].verdict for name in HISTORY} == {"unknown"}


# --- Commits that are no history ----------------------------------------------------------------------------------


def unmerged(root):
    git(root, "checkout", "-q", "-b", "side")
    (root / "README.md").write_text("side\n")
    side = commit_all(root)
    git(root, "checkout", "-q", "-")
    return side


def nameless(root):
    return git(root, "commit-tree", "HEAD^{tree}", "-m", "x")


def of_a_fork(root):
    fork = root.parent / "fork"
    git(root.parent, "clone", "-q", str(root), str(fork))
    (fork / "README.md").write_text("fork\n")
    commit = commit_all(fork)
    git(root, "fetch", "-q", str(fork), "HEAD:refs/forks/one")
    return commit


def grafted(root):
    side = nameless(root)
    (root / ".git/info").mkdir(exist_ok=True)
    (root / ".git/info/grafts").write_text(f"{git(root, 'rev-parse', 'HEAD')} {side}\n")
    return side


def replaced(root):
    side, head = nameless(root), git(root, "rev-parse", "HEAD")
    git(root, "replace", head, git(root, "commit-tree", "HEAD^{tree}", "-p", side, "-m", "y"))
    return side


@pytest.mark.parametrize("commit_of", [unmerged, nameless, of_a_fork, grafted, replaced])
def test_a_row_of_a_commit_that_head_does_not_descend_from_fails(project, tmp_path, monkeypatch, commit_of):
    root, _ = project
    commit = commit_of(root)
    head = git(root, "rev-parse", "HEAD", GIT_NO_REPLACE_OBJECTS="1")
    git(root, "update-ref", "--no-deref", "HEAD", commit)
    row = make_row(root, tmp_path / "rows", *ROW)
    git(root, "update-ref", "--no-deref", "HEAD", head)
    table = verify_bundle(row, root)
    found = checks(table)["history:commits"]
    assert table.verdict == "fail" and found.verdict == "fail"
    assert commit in found.found and "merge it, or check out the branch" in found.found
    # In a shallow clone it cannot be told, and nobody is accused.
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{root}", "shallow")
    assert checks(verify_bundle(row, tmp_path / "shallow"))["history:commits"].verdict == "unknown"


def test_a_plan_that_is_not_committed_is_none_of_the_project(project, tmp_path):
    root, _ = project
    (root / PLAN).write_bytes(b"# mine\n" + (root / PLAN).read_bytes())
    row = make_row(root, tmp_path / "rows", *ROW)
    found = checks(verify_bundle(row, root))
    assert found["plan:project"].verdict == "fail" and "commit it" in found["plan:project"].found


def test_a_softened_plan_of_ones_own_clone_is_not_asked(project, world, tmp_path, monkeypatch, capsys):
    root, _ = project
    judge = shutil.copytree(world[0], tmp_path / "judge")
    for place in (root, judge):
        (place / "Snakefile").touch()
        commit_all(place)
    text = (root / PLAN).read_text()
    assert "angular_window_deg: 5.0" in text
    (root / PLAN).write_text(text.replace("angular_window_deg: 5.0", "angular_window_deg: 50.0"))
    commit_all(root)
    row = make_row(root, root / "results", *ROW)
    assert verify_bundle(row, root).passed
    monkeypatch.chdir(root)
    monkeypatch.setattr(cli, "PACKAGE_ROOT", judge)
    assert cli.main(["verify", "--quiet", "--cores", "1", str(row)]) == 1
    assert f"judged by the project {judge} at HEAD" in capsys.readouterr().out.splitlines()[-1]
    assert cli.main(["verify", "--quiet", "--cores", "1", "--project", ".", str(row)]) == 0
    assert cli.main(["verify", "--project", str(tmp_path), str(row)]) == 2
    monkeypatch.setattr(cli, "PACKAGE_ROOT", tmp_path / "site-packages")
    cli.main(["verify", "--quiet", "--cores", "1", str(row)])
    assert "judged without a project" in capsys.readouterr().out.splitlines()[-1]


# --- Programs -----------------------------------------------------------------------------------------------------


def test_no_program_that_a_repository_configures_runs(project, tmp_path):
    root, row = project
    trace = tmp_path / "trace"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho $0 $@ >>{trace}\ncat\n")
    program.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        shutil.copy(program, hooks / name)
    for key in (
        "filter.evil.smudge", "filter.evil.clean", "filter.evil.process", "diff.evil.textconv", "diff.evil.command",
        "core.fsmonitor", "core.sshCommand", "core.pager", "core.alternateRefsCommand", "gpg.program",
        "credential.helper", "core.editor", "merge.evil.driver", "uploadpack.packObjectsHook",
    ):  # fmt: skip
        git(root, "config", key, str(program))
    for key, value in {
        "core.hooksPath": str(hooks),
        "log.showSignature": "true",
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "evil",
        "remote.evil.url": f"ext::{program}",
        "remote.evil.promisor": "true",
        "protocol.allow": "always",
    }.items():
        git(root, "config", key, value)
    (root / ".git/info").mkdir(exist_ok=True)
    (root / ".git/info/attributes").write_text("* filter=evil diff=evil merge=evil text eol=crlf ident\n")
    for path in (root / CODE, root / PLAN):
        os.utime(path, (1, 1))
    # Another object that is missing, which git would fetch.
    oid = git(root, "rev-parse", f"HEAD:{CODE}")
    (root / ".git/objects" / oid[:2] / oid[2:]).unlink()
    trace.unlink(missing_ok=True)
    table = verify_bundle(row, root)
    assert table.passed and checks(table)["history:code"].verdict == "unknown", table.failures
    assert "judged by" in standing(root)
    assert not trace.exists(), trace.read_text()


# --- Code of other commits ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def older(tmp_path_factory):
    """A project of whose history an older commit makes all successes; its row is honest about that."""
    root = make_project(tmp_path_factory.mktemp("older") / "p", seeds=[0], episodes_per_partner=3)
    path = root / CODE
    now = path.read_text()
    path.write_text(now + "\nOLDER = True\n")
    commit = commit_all(root)
    row = make_row(root, root.parent / "rows", *ROW)
    path.write_text(now)
    commit_all(root)
    return root, row, commit


def run_by_commit(monkeypatch):
    """Lets the code at hand make no records, so that the recorded commit must."""
    import rowproof.chamber.handover as handover

    def broken(*_):
        raise KeyError("of another form")

    monkeypatch.setattr(handover, "simulate", broken)


def test_the_code_of_the_commit_makes_the_records_again(older, monkeypatch):
    root, row, commit = older
    run_by_commit(monkeypatch)
    found = checks(verify_bundle(row, root))["records:replay"]
    assert found.verdict == "pass" and f"by the code of commit {commit}" in found.found, found


def test_forged_records_are_refuted_by_the_code_that_they_name(older, tmp_path):
    root, row, commit = older
    copy = Row(row, tmp_path / "results" / "/".join(ROW))
    records = copy.records(0)
    assert not all(record["success"] for record in records)
    copy.write_records(0, [record | {"success": True} for record in records])
    copy.reseal()
    table = verify_bundle(copy.path, root)
    found = checks(table)["records:replay"]
    assert found.verdict == "fail" and f"by the code of commit {commit} differing" in found.found, found


def test_what_takes_too_long_is_not_proven(older, monkeypatch):
    root, row, _ = older
    run_by_commit(monkeypatch)
    monkeypatch.setattr(replay, "LIMIT_S", 0.01)
    table = verify_bundle(row, root)
    assert table.verdict == "not proven" and not table.passed
    assert "no end within" in checks(table)["records:replay"].found
