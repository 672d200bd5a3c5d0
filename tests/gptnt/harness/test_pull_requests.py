"""Handing bundles in, at a registry that is a bare repository and a stub of GitHub's interface on this machine."""

import json
import shutil
import socket
import subprocess
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from gptnt.harness.workbench import refusal
from gptnt.recordings.workbench import LOCK, MISSIONS, WHO, played
from helpers import ROOT
from rowproof.gptnt import pull_requests
from rowproof.gptnt.database import build_db
from rowproof.gptnt.pull_requests import GitHub, run_submit, token_of
from rowproof.gptnt.recordings import write_game
from rowproof.gptnt.submissions import GAMES, MANIFEST, build

TOKEN = "a-secret-token"
SLUG = "gptnt/submissions"


def git(folder, *arguments):
    command = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@example.org", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The bundles of one setup on two days."""
    folder = tmp_path_factory.mktemp("submissions")
    for mission in MISSIONS:
        write_game(played(mission), folder / "records")
    build_db(folder / "records", folder / "games.duckdb")
    for day in (1, 2):
        date = datetime(2026, 1, day, tzinfo=UTC)
        build(ROOT, folder / "games.duckdb", folder / "out", LOCK, suites=["workbench"], submitter=WHO, run_date=date)
    return folder / "out"


@pytest.fixture
def bundles(built, tmp_path):
    """Copies, sorted, to be tampered with."""
    return sorted(Path(shutil.copytree(built, tmp_path / "bundles")).iterdir())


class Stub:
    """GitHub as far as it is asked: a registry, perhaps a fork, and pull requests. It notes what it was asked."""

    def __init__(self, folder, may_push=True, looks_until_fork=0):
        self.upstream, self.fork = folder / "upstream.git", folder / "fork.git"
        git(folder, "init", "--quiet", "--bare", "--initial-branch=trunk", str(self.upstream))
        git(folder, "clone", "--quiet", str(self.upstream), "seed")
        git(folder / "seed", "commit", "--quiet", "--allow-empty", "--message", "Begin")
        git(folder / "seed", "push", "--quiet", "origin", "HEAD:trunk")
        git(folder, "clone", "--quiet", "--bare", str(self.upstream), str(self.fork))
        self.may_push, self.looks = may_push, looks_until_fork
        self.asked, self.pulls, self.tokens = [], [], set()

    def answer(self, method, path, data):
        self.asked.append(f"{method} {path.partition('?')[0]}")
        if (method, path) == ("GET", "/user"):
            return 200, {"login": "ada"}
        if (method, path) == ("GET", f"/repos/{SLUG}"):
            url, push = str(self.upstream), {"push": self.may_push}
            return 200, {"clone_url": url, "default_branch": "trunk", "permissions": push}
        if (method, path) == ("POST", f"/repos/{SLUG}/forks"):
            return 202, {"full_name": "ada/submissions"}
        if (method, path) == ("GET", "/repos/ada/submissions"):
            self.looks -= 1
            if self.looks >= 0:
                return 404, {"message": "Not Found"}
            return 200, {"clone_url": str(self.fork), "owner": {"login": "ada"}}
        if path.startswith(f"/repos/{SLUG}/pulls"):
            if method == "GET":
                return 200, [{"html_url": url} for url, pull in self.pulls if f"head={pull['head']}" in unquoted(path)]
            self.pulls.append((f"https://example.org/pull/{len(self.pulls) + 1}", data))
            return 201, {"html_url": self.pulls[-1][0]}
        return 500, {"message": "what?"}


def unquoted(path):
    return path.replace("%3A", ":").replace("%2F", "/")


@pytest.fixture
def serve(tmp_path, monkeypatch):
    """Starts a stub: it, and the environment in which it is GitHub."""
    servers = []
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(pull_requests, "FORK_WAIT_S", 0.0)

    def start(**settings):
        stub = Stub(tmp_path, **settings)

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self):
                size = int(self.headers.get("Content-Length") or 0)
                data = json.loads(self.rfile.read(size)) if size else None
                stub.tokens.add(self.headers["Authorization"])
                code, answer = stub.answer(self.command, self.path, data)
                body = json.dumps(answer).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = handle_any

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        address = f"http://127.0.0.1:{server.server_address[1]}"
        return stub, {"GITHUB_API_URL": address, "GITHUB_TOKEN": TOKEN}

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def submit(path, environment, **settings):
    lines = []
    code = run_submit(path, LOCK, SLUG, environment=environment, show=lines.append, **settings)
    return code, lines


@pytest.mark.parametrize("may_push", [True, False])
def test_each_bundle_is_one_branch_one_commit_and_one_pull_request(bundles, serve, may_push):
    stub, environment = serve(may_push=may_push, looks_until_fork=3)
    code, lines = submit(bundles[0].parent, environment)
    assert code == 0 and lines == [f"{one.name}: https://example.org/pull/{n}" for n, one in enumerate(bundles, 1)]
    target, other = (stub.upstream, stub.fork) if may_push else (stub.fork, stub.upstream)
    owner = "gptnt" if may_push else "ada"
    for bundle, (_, pull) in zip(bundles, stub.pulls, strict=True):
        branch = f"ada/add-{bundle.name}"
        title = f"Add submission: {bundle.name}"
        assert pull == {"title": title, "head": f"{owner}:{branch}", "base": "trunk", "body": ""}
        files = git(target, "ls-tree", "-r", "--name-only", branch).split()
        assert files == [f"submissions/{bundle.name}/{name}" for name in (GAMES, MANIFEST)]
        assert git(target, "log", "--format=%s", f"trunk..{branch}") == f"{title}\n"
        assert git(target, "show", f"{branch}:{files[1]}").encode() == (bundle / MANIFEST).read_bytes()
    assert git(other, "branch", "--list", "ada/*") == "" and stub.tokens == {f"Bearer {TOKEN}"}
    assert stub.asked.count("GET /repos/ada/submissions") == (0 if may_push else 4)


def test_once_more_finds_the_open_pull_request(bundles, serve):
    stub, environment = serve()
    first, second = submit(bundles[0], environment), submit(bundles[0], environment)
    assert first == second and len(stub.pulls) == 1


def test_a_bundle_that_the_registry_has_is_told(bundles, serve):
    stub, environment = serve()
    submit(bundles[0], environment)
    git(stub.upstream, "branch", "--force", "trunk", f"ada/add-{bundles[0].name}")
    code, lines = submit(bundles[0].parent, environment)
    assert code == 1 and "found the same bundle there" in lines[1] and lines[0].startswith(f"{bundles[1].name}: https")


def test_one_that_fails_a_check_hinders_no_other(bundles, serve):
    stub, environment = serve()
    (bundles[0] / GAMES).write_bytes(b"x")
    code, lines = submit(bundles[0].parent, environment)
    assert code == 1 and len(stub.pulls) == 1 and bundles[1].name in stub.pulls[0][1]["title"]
    assert "must pass every check" in lines[1] and lines[1].startswith(f"{bundles[0].name}: not handed in")


def test_a_dry_run_asks_nobody(bundles, monkeypatch):
    def refuse(*_):
        raise AssertionError("nothing may be sent")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(subprocess, "run", refuse)
    code, lines = submit(bundles[0], {}, dry_run=True)
    assert code == 0 and lines[0].splitlines()[0] == f"Add submission: {bundles[0].name}"
    assert f"branch LOGIN/add-{bundles[0].name} for {SLUG}" in lines[0]
    assert lines[1:] == [f"  file   submissions/{bundles[0].name}/{name}" for name in (MANIFEST, GAMES)]
    (bundles[0] / GAMES).unlink()
    assert submit(bundles[0], {}, dry_run=True)[0] == 1


def test_a_fork_that_never_comes_is_told(bundles, serve):
    _, environment = serve(may_push=False, looks_until_fork=100)
    assert "found none after 10 looks" in refusal(submit, bundles[0], environment)


@pytest.mark.parametrize("slug", ["submissions", "a/b/c", "../x", "-a/b", "a b/c"])
def test_what_is_no_repository_is_refused(bundles, slug):
    assert "--repo must be as gptnt/submissions" in refusal(run_submit, bundles[0], LOCK, slug)


def test_answers_of_no_use_are_told_without_the_token(bundles, serve):
    stub, environment = serve()
    stub.answer = lambda *_: (401, {"message": "Bad credentials"})
    assert "GET /user: GitHub must agree, found 401 Bad credentials" in refusal(submit, bundles[0], environment)
    stub.answer = lambda *_: (200, [])
    assert "GitHub must answer with login, found []" in refusal(submit, bundles[0], environment)
    stub.answer = lambda *_: (301, {})
    assert TOKEN not in (text := refusal(submit, bundles[0], environment)) and "301" in text


def test_a_registry_that_cannot_be_cloned_is_told(bundles, serve):
    stub, environment = serve()
    shutil.rmtree(stub.upstream)
    text = refusal(submit, bundles[0], environment)
    assert text.startswith("git clone: must succeed, found ") and TOKEN not in text


def test_the_token_comes_from_the_environment_or_the_tool(tmp_path):
    assert token_of({"GITHUB_TOKEN": "a", "PATH": ""}) == "a"
    assert "set GITHUB_TOKEN, or log in with gh auth login" in refusal(token_of, {"PATH": str(tmp_path)})
    tool = tmp_path / "gh"
    tool.write_text("#!/bin/sh\necho from-the-tool\n")
    tool.chmod(0o755)
    assert token_of({"PATH": str(tmp_path)}) == "from-the-tool"
    tool.write_text("#!/bin/sh\nexit 1\n")
    assert "found none" in refusal(token_of, {"PATH": str(tmp_path)})


def test_the_token_travels_encrypted_and_for_its_host_alone(monkeypatch):
    assert "must be an https address" in refusal(GitHub, TOKEN, "http://example.org")
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    found = pull_requests._git_environment(TOKEN, "https://github.com/a/b.git")
    assert found["GIT_CONFIG_KEY_0"] == "http.https://github.com/.extraHeader" and "GIT_DIR" not in found
    assert "GIT_CONFIG_KEY_0" not in pull_requests._git_environment(TOKEN, "http://github.com/a/b.git")


def test_data_made_here_is_nothing_for_the_public_leaderboard(bundles, monkeypatch):
    measured = {
        "task_name": "expert-vqa",
        "hf_repo_id": "local/expert-vqa",
        "dataset_split": None,
        "requested_revision": None,
        "resolved_revision": "0" * 40,
    }
    text = (bundles[0] / MANIFEST).read_text()
    before, _, rest = text.partition("measured:\n")
    _, _, after = rest.partition("submitter:")
    fields = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in measured.items())
    (bundles[0] / MANIFEST).write_text(f"{before}measured:\n{fields}submitter:{after}")
    monkeypatch.setattr(pull_requests, "check_bundle", lambda *_: [])
    code, lines = submit(bundles[0], {}, dry_run=True)
    assert code == 1 and "must be about a published data set, found local/expert-vqa" in lines[0]


def test_the_command(command, bundles):
    code, out, _ = command("submission", "submit", str(bundles[0]), "--dry-run")
    assert code == 1 and "not handed in: must pass every check" in out, "the suite of the test is in no lock here"
