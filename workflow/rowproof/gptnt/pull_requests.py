"""Hands bundles in: one branch and one pull request each, at the registry of the public leaderboard on GitHub.

Only here is anything sent anywhere; a dry run sends nothing and asks nobody.
"""

import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from rowproof.errors import ConfigError, RowproofError
from rowproof.gptnt.submissions import (
    GAMES,
    MANIFEST,
    META,
    METRICS,
    MeasuredStatic,
    bundles_below,
    check_bundle,
    read_submission,
)
from rowproof.gptnt.suite_lock import Lock

REGISTRY = "gptnt/submissions"
API, API_VARIABLE = "https://api.github.com", "GITHUB_API_URL"
TOKEN_VARIABLE = "GITHUB_TOKEN"
FILES = (MANIFEST, GAMES, METRICS, META)

REQUEST_S, GIT_S = 30.0, 600.0
# A fork comes into being some time after it was asked for.
FORK_TRIES, FORK_WAIT_S = 10, 2.0
_SLUG = r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+"


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        # The token must not follow to another host.
        return None


class GitHub:
    """What of GitHub's REST interface is needed; every failure is a ConfigError that never shows the token."""

    def __init__(self, token: str, base: str = API) -> None:
        """Talk to ``base`` in the name of ``token``.

        Raises:
            ConfigError: the token would travel without encryption.
        """
        parts = urlsplit(base)
        if parts.scheme != "https" and parts.hostname != "127.0.0.1":
            raise ConfigError(f"{API_VARIABLE} must be an https address, found {base}")
        self._token, self._base = token, base.rstrip("/")
        self._open = build_opener(_NoRedirect).open

    def find(self, path: str) -> Any:
        """What is at ``path``; None if there is nothing."""
        return self._call("GET", path, None, {404: None})

    def get(self, path: str) -> Any:
        """What is at ``path``."""
        return self._call("GET", path, None, {})

    def post(self, path: str, data: Mapping[str, Any]) -> Any:
        """What comes of sending ``data`` to ``path``."""
        return self._call("POST", path, json.dumps(data).encode(), {})

    def _call(self, method: str, path: str, data: bytes | None, instead: Mapping[int, Any]) -> Any:
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
        }
        try:
            request = Request(f"{self._base}{path}", data, headers, method=method)
            with self._open(request, timeout=REQUEST_S) as reply:
                return json.loads(reply.read())
        except HTTPError as error:
            if error.code in instead:
                return instead[error.code]
            raise ConfigError(f"{method} {path}: GitHub must agree, found {error.code} {_reason(error)}") from None
        except (URLError, OSError, ValueError) as error:
            raise ConfigError(f"{method} {path}: GitHub must answer with JSON, found {error}") from None


def _reason(error: HTTPError) -> str:
    try:
        return str(json.loads(error.read())["message"])[:200]
    except (OSError, ValueError, KeyError, TypeError):
        return error.reason


def _field(answer: Any, *keys: str) -> str:
    """A text in an answer of GitHub."""
    value = answer
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    if not isinstance(value, str):
        raise ConfigError(f"GitHub must answer with {'.'.join(keys)}, found {str(answer)[:100]}")
    return value


def token_of(environment: Mapping[str, str]) -> str:
    """The token of whoever submits: from the environment, or from GitHub's own tool.

    Raises:
        ConfigError: neither has one.
    """
    if token := environment.get(TOKEN_VARIABLE):
        return token
    tool = shutil.which("gh", path=environment.get("PATH"))
    if tool is not None:
        try:
            done = subprocess.run([tool, "auth", "token"], capture_output=True, text=True, timeout=REQUEST_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ConfigError(f"gh auth token: must answer, found {error}: set {TOKEN_VARIABLE}") from None
        if done.returncode == 0 and done.stdout.strip():
            return done.stdout.strip()
    raise ConfigError(
        f"a token of GitHub must be known, found none: set {TOKEN_VARIABLE}, or log in with gh auth login"
    )


class _Registry(NamedTuple):
    """A clone of the registry, and where its branches go.

    Attributes:
        github: where pull requests are opened.
        slug: of the registry.
        login: who submits.
        owner: of the repository that takes the branches.
        default: branch of the registry that pull requests are for.
        clone: folder of the clone.
        environment: for git.
    """

    github: GitHub
    slug: str
    login: str
    owner: str
    default: str
    clone: Path
    environment: dict[str, str]

    def git(self, *arguments: str) -> str:
        return _git(self.clone, self.environment, *arguments)


def _git(folder: Path, environment: Mapping[str, str], *arguments: str) -> str:
    # Hooks and signatures of the user are not asked for.
    settings = ("-c", f"core.hooksPath={os.devnull}", "-c", "commit.gpgSign=false")
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *settings, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_S,
            env=dict(environment),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"git {arguments[0]}: git must be there and answer, found {error}") from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ConfigError(f"git {arguments[0]}: must succeed, found {lines[-1] if lines else done.returncode}")
    return done.stdout.decode("utf-8", "replace")


def _git_environment(token: str, clone_url: str) -> dict[str, str]:
    """The environment of git with the token for one host alone, and on no command line."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
    parts = urlsplit(clone_url)
    if parts.scheme == "https":
        credentials = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        environment |= {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"http.https://{parts.netloc}/.extraHeader",
            "GIT_CONFIG_VALUE_0": f"Authorization: Basic {credentials}",
        }
    return environment


def _open_registry(github: GitHub, token: str, slug: str, folder: Path) -> _Registry:
    login = _field(github.get("/user"), "login")
    upstream = github.get(f"/repos/{slug}")
    url, default = _field(upstream, "clone_url"), _field(upstream, "default_branch")
    environment = _git_environment(token, url)
    clone = folder / "registry"
    _git(folder, environment, "clone", "--quiet", "--", url, str(clone))
    owner = slug.partition("/")[0]
    if not (upstream.get("permissions") or {}).get("push"):
        fork = _fork(github, slug)
        owner = _field(fork, "owner", "login")
        _git(clone, environment, "remote", "set-url", "--", "origin", _field(fork, "clone_url"))
    return _Registry(github, slug, login, owner, default, clone, environment)


def _fork(github: GitHub, slug: str) -> Any:
    name = _field(github.post(f"/repos/{slug}/forks", {}), "full_name")
    for _ in range(FORK_TRIES):
        if (fork := github.find(f"/repos/{name}")) is not None:
            return fork
        time.sleep(FORK_WAIT_S)
    raise ConfigError(f"the fork {name} must come into being, found none after {FORK_TRIES} looks: try again later")


def branch_name(login: str, bundle: Path) -> str:
    """The branch of a bundle."""
    return f"{login}/add-{bundle.name}"


def title(bundle: Path) -> str:
    """The title of the pull request of a bundle."""
    return f"Add submission: {bundle.name}"


def _files(bundle: Path) -> list[str]:
    return [name for name in FILES if (bundle / name).is_file()]


def _require_valid(bundle: Path, lock: Lock) -> None:
    failed = [f"{check.name}: {check.message}" for check in check_bundle(bundle, lock) if check.verdict == "fail"]
    if failed:
        raise ConfigError(f"must pass every check, found {len(failed)} that fail: {failed[0]}")
    measured = read_submission(bundle / MANIFEST).measured
    if isinstance(measured, MeasuredStatic) and measured.hf_repo_id.startswith("local/"):
        raise ConfigError(f"must be about a published data set, found {measured.hf_repo_id}, which was made here")


def _hand_in(registry: _Registry, bundle: Path) -> str:
    """Push the branch of a bundle and return the address of its pull request."""
    branch, below = branch_name(registry.login, bundle), f"submissions/{bundle.name}"
    registry.git("checkout", "--quiet", "--force", "-B", branch, f"origin/{registry.default}")
    target = registry.clone / below
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for name in _files(bundle):
        shutil.copyfile(bundle / name, target / name)
    registry.git("add", "--all", "--force", "--", below)
    if not registry.git("status", "--porcelain", "--", below):
        raise ConfigError(f"must be new to {registry.slug}, found the same bundle there")
    who = f"{registry.login}@users.noreply.github.com"
    author = ("-c", f"user.name={registry.login}", "-c", f"user.email={who}")
    registry.git(*author, "commit", "--quiet", "--message", title(bundle))
    registry.git("push", "--quiet", "--force", "origin", f"HEAD:refs/heads/{branch}")
    head, pulls = f"{registry.owner}:{branch}", f"/repos/{registry.slug}/pulls"
    for known in registry.github.get(f"{pulls}?state=open&head={quote(head, safe='')}"):
        return _field(known, "html_url")
    data = {"title": title(bundle), "head": head, "base": registry.default, "body": ""}
    return _field(registry.github.post(pulls, data), "html_url")


def run_submit(
    path: Path,
    lock: Lock,
    slug: str = REGISTRY,
    dry_run: bool = False,
    environment: Mapping[str, str] | None = None,
    show: Callable[[str], object] = print,
) -> int:
    """Hand in the bundles at or below a path that pass every check; 1 if one could not be.

    Args:
        path: a bundle or a folder of them.
        lock: frozen suites.
        slug: of the registry, as ``owner/name``.
        dry_run: check the bundles and show branch, title and files of each, and touch nothing elsewhere.
        environment: where token and address of GitHub are looked up; that of the process by default.
        show: where lines go.

    Raises:
        ConfigError: there is no bundle, ``slug`` is none, no token is known, or the registry cannot be had.
    """
    if not re.fullmatch(_SLUG, slug):
        raise ConfigError(f"--repo must be as {REGISTRY}, found {slug!r}")
    environment = os.environ if environment is None else environment
    errors: dict[Path, str] = {}
    good = []
    for bundle in bundles_below(path):
        try:
            _require_valid(bundle, lock)
            good.append(bundle)
        except RowproofError as error:
            errors[bundle] = str(error)
    if dry_run:
        for bundle in good:
            show(f"{title(bundle)}\n  branch {branch_name('LOGIN', bundle)} for {slug}")
            for name in _files(bundle):
                show(f"  file   submissions/{bundle.name}/{name}")
    elif good:
        token = token_of(environment)
        github = GitHub(token, environment.get(API_VARIABLE) or API)
        with tempfile.TemporaryDirectory() as scratch:
            registry = _open_registry(github, token, slug, Path(scratch))
            for bundle in good:
                try:
                    show(f"{bundle.name}: {_hand_in(registry, bundle)}")
                except ConfigError as error:
                    errors[bundle] = str(error)
    for bundle, message in errors.items():
        show(f"{bundle.name}: not handed in: {message}")
    return 1 if errors else 0
