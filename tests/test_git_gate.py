import os
import subprocess

import pytest
from rowproof import git
from rowproof.errors import GateError, HistoryGap
from rowproof.jobs import binding_plan, check_gate

PLAN, LOCK = "config/plans/p.yaml", "config/plans/p.lock.json"


def call(repo, *args, **options):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", "-C", str(repo), *identity, *args], env=environment, check=True, capture_output=True, **options
    )
    return done.stdout.decode().strip()


def commit(repo, message="m"):
    call(repo, "add", "-A")
    call(repo, "commit", "-q", "--allow-empty", "-m", message)
    return call(repo, "rev-parse", "HEAD")


@pytest.fixture(autouse=True)
def isolated(monkeypatch, tmp_path):
    """No settings of the user; a home folder in which a test may put some."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "xdg"))
    return home


@pytest.fixture
def repo(tmp_path):
    root = tmp_path / "repo"
    (root / "config/plans").mkdir(parents=True)
    (root / PLAN).write_text("one\n")
    (root / LOCK).write_text("{}\n")
    (root / "results").mkdir()
    (root / "results/a.json").write_text("{}\n")
    call(tmp_path, "init", "-q", "repo")
    commit(root)
    return root


@pytest.mark.parametrize("data", [b"", b"one\n", b"a\r\nb\0\xff" * 1000], ids=["empty", "text", "bytes"])
def test_blob_ids_are_those_of_git(repo, data):
    (repo / "file").write_bytes(data)
    assert git.blob_id(data) == call(repo, "hash-object", "--no-filters", "file")


def test_a_clean_checkout(repo):
    assert git.tree_state(repo) == git.TreeState(call(repo, "rev-parse", "HEAD"), False)


@pytest.mark.parametrize("file", ["new.py", "deep/new.py", "name with é and space", PLAN])
def test_a_new_or_modified_file_makes_dirty(repo, file):
    (repo / file).parent.mkdir(exist_ok=True, parents=True)
    (repo / file).write_text("two\n")
    state = git.tree_state(repo)
    assert state.dirty and len(state.changed) == 1


def test_a_deleted_or_staged_file_makes_dirty(repo):
    (repo / PLAN).unlink()
    assert git.tree_state(repo).dirty
    call(repo, "add", "-A")
    assert git.tree_state(repo).dirty


def test_results_and_ignored_files_do_not_make_dirty(repo):
    (repo / ".gitignore").write_text("work/\n")
    commit(repo)
    (repo / "work").mkdir()
    (repo / "work/x").write_text("x")
    (repo / "results/a.json").write_text("changed\n")
    (repo / "results/new.json").write_text("new\n")
    assert not git.tree_state(repo).dirty


def test_at_most_ten_changes_are_named(repo):
    for index in range(12):
        (repo / f"f{index:02}").write_text("x")
    assert len(git.tree_state(repo).changed) == 10


def test_no_repository_is_unknown_and_dirty(tmp_path):
    state = git.tree_state(tmp_path)
    assert (state.commit, state.dirty) == ("unknown", True)


def test_no_commit_is_unknown_and_dirty(tmp_path):
    call(tmp_path, "init", "-q", "empty")
    assert git.tree_state(tmp_path / "empty").commit == "unknown"


def test_missing_git_is_unknown_and_dirty(repo, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git.tree_state(repo) == git.TreeState("unknown", True, git.tree_state(tmp_path).changed)
    with pytest.raises(GateError, match="found no git commit here"):
        check_gate(repo, PLAN, git.blob_id(b"one\n"))


def test_settings_of_the_user_do_not_reach_the_answer(repo, isolated, tmp_path):
    (isolated / "ignore").write_text("*\n")
    (isolated / ".gitconfig").write_text(
        f"[core]\n\texcludesFile = {isolated}/ignore\n\tfsmonitor = touch {tmp_path}/ran\n"
        "[log]\n\tshowSignature = true\n\tfollow = true\n[status]\n\tshowUntrackedFiles = no\n[color]\n\tui = always\n"
    )
    (repo / "new.py").write_text("x = 1\n")
    assert git.tree_state(repo).changed == ("new.py",)
    assert git.first_commit_with(repo, "HEAD", PLAN, git.blob_id(b"one\n")) == call(repo, "rev-parse", "HEAD")
    assert not (tmp_path / "ran").exists()


def test_variables_of_an_enclosing_git_do_not_reach_the_answer(repo, monkeypatch, tmp_path):
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert not git.tree_state(repo).dirty


def test_content_and_blobs_in_the_history(repo):
    first = call(repo, "rev-parse", "HEAD")
    (repo / PLAN).write_text("two\n")
    second = commit(repo)
    assert git.file_at(repo, first, PLAN) == b"one\n" and git.file_at(repo, second, PLAN) == b"two\n"
    assert git.blob_at(repo, first, PLAN) == git.blob_id(b"one\n")
    assert git.blob_at(repo, first, "absent") is None and git.file_at(repo, "0" * 40, PLAN) is None
    assert git.has_commit(repo, first) and not git.has_commit(repo, "0" * 40)
    assert git.is_ancestor(repo, first, second) and not git.is_ancestor(repo, second, first)


def test_paths_are_relative_to_the_project_inside_a_larger_repository(repo):
    (repo / "sub/config").mkdir(parents=True)
    (repo / "sub/config/x").write_text("x\n")
    head = commit(repo)
    assert git.file_at(repo / "sub", head, "config/x") == b"x\n"
    assert git.first_commit_with(repo / "sub", head, "config/x", git.blob_id(b"x\n")) == head


def test_first_commit_with_is_the_oldest(repo):
    first = call(repo, "rev-parse", "HEAD")
    (repo / PLAN).write_text("two\n")
    second = commit(repo)
    (repo / PLAN).write_text("one\n")
    commit(repo)
    assert git.first_commit_with(repo, "HEAD", PLAN, git.blob_id(b"one\n")) == first
    assert git.first_commit_with(repo, "HEAD", PLAN, git.blob_id(b"two\n")) == second
    assert git.first_commit_with(repo, first, PLAN, git.blob_id(b"two\n")) is None
    assert git.first_commit_with(repo, "HEAD", "absent", git.blob_id(b"one\n")) is None


@pytest.mark.parametrize("name", ["--output={}/x", "-O{}/x", "--exec=touch {}/x", "a\0b"])
def test_a_hostile_name_of_a_commit_is_no_option(repo, tmp_path, name):
    name = name.format(tmp_path)
    (tmp_path / "x:." / "config/plans").mkdir(parents=True)
    assert git.file_at(repo, name, PLAN) is None
    assert git.blob_at(repo, name, PLAN) is None
    assert not git.has_commit(repo, name)
    assert not git.is_ancestor(repo, name, "HEAD")
    assert git.first_commit_with(repo, name, PLAN, git.blob_id(b"one\n")) is None
    assert [path for path in tmp_path.rglob("*") if path.name.startswith("p.yaml") and "repo" not in path.parts] == []
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("name", ["--output={}/x", "--exec=touch {}/x", "-x", "no-such-name"])
def test_a_witness_takes_no_name_for_an_option(repo, tmp_path, name):
    name, head = name.format(tmp_path), call(repo, "rev-parse", "HEAD")
    witness = git.History(repo)
    for ask in (
        lambda: witness.tag_commit(name),
        lambda: witness.require_commit(name),
        lambda: witness.paths_of_blob(name, git.blob_id(b"one\n")),
        lambda: witness.is_ancestor(name, head),
        lambda: witness.is_ancestor(head, name),
        lambda: witness.file_at(name, PLAN),
    ):
        with pytest.raises(HistoryGap):
            ask()
    assert not (tmp_path / "x").exists()
    assert witness.paths_of_blob(head, git.blob_id(b"one\n")) == [PLAN] and witness.file_at(head, PLAN) == b"one\n"


def test_a_witness_that_cannot_be_asked_is_a_gap(repo, monkeypatch, tmp_path):
    head = call(repo, "rev-parse", "HEAD")
    with pytest.raises(HistoryGap, match="no git repository was given"):
        git.History(None).require_commit(head)
    with pytest.raises(HistoryGap, match="not a git repository"):
        git.History(tmp_path).require_commit(head)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HistoryGap, match="git could not be run"):
        git.History(repo).require_commit(head)


ONE = git.blob_id(b"one\n")


def test_the_gate_opens_for_the_committed_plan(repo):
    check_gate(repo, PLAN, ONE)
    # Only the plan counts: work in progress elsewhere is told in the provenance.
    (repo / "new.py").write_text("x")
    check_gate(repo, PLAN, ONE)


def test_the_gate_opens_for_an_earlier_version_that_binds(repo):
    first = call(repo, "rev-parse", "HEAD")
    (repo / PLAN).write_text("one and a note\n")
    commit(repo)
    check_gate(repo, PLAN, ONE)
    assert binding_plan(repo, PLAN, ONE) == (PLAN, ONE, b"one\n")
    assert git.first_commit_with(repo, "HEAD", PLAN, ONE) == first


def uncommit(repo, path):
    call(repo, "rm", "-q", "--cached", path)
    call(repo, "commit", "-qm", "m")


@pytest.mark.parametrize("path", [PLAN, LOCK])
@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda repo, path: (repo / path).write_text("edited\n"), "must be as committed"),
        (lambda repo, path: ((repo / path).write_text("edited\n"), call(repo, "add", "-A")), "must be as committed"),
        (lambda repo, path: (repo / path).unlink(), "must be as committed .*, found blob none on disk"),
        (uncommit, "untracked"),
    ],
    ids=["edited", "staged", "deleted", "untracked"],
)
def test_the_gate_refuses_by_name(repo, path, prepare, message):
    prepare(repo, path)
    with pytest.raises(GateError, match=message) as caught:
        check_gate(repo, PLAN, ONE)
    assert path in str(caught.value) and caught.value.exit_code == 4


def test_the_gate_refuses_where_there_is_no_commit(repo):
    call(repo, "update-ref", "-d", "HEAD")
    with pytest.raises(GateError, match="no git commit here"):
        check_gate(repo, PLAN, ONE)


@pytest.mark.parametrize("blob", [git.blob_id(b"never\n"), git.blob_id(b"{}\n"), "0" * 40, "", "--all"])
def test_the_gate_refuses_a_version_that_the_plan_never_had(repo, blob):
    """Nor does the content of another file count, although its blob is in the repository."""
    for ask in (check_gate, binding_plan):
        with pytest.raises(GateError, match=r"must have been committed as blob .*, found no such version"):
            ask(repo, PLAN, blob)


def test_the_gate_refuses_a_version_of_another_branch(repo):
    call(repo, "checkout", "-q", "-b", "side")
    (repo / PLAN).write_text("two\n")
    commit(repo)
    call(repo, "checkout", "-q", "-")
    with pytest.raises(GateError, match="found no such version"):
        check_gate(repo, PLAN, git.blob_id(b"two\n"))


def test_the_gate_refuses_bytes_that_git_would_convert(repo):
    (repo / PLAN).write_bytes(b"one\r\n")
    call(repo, "config", "core.autocrlf", "true")
    with pytest.raises(GateError, match="must be as committed"):
        check_gate(repo, PLAN, git.blob_id(b"one\r\n"))
