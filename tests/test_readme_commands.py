"""Every command block of the README is executed here, or checked as far as a test can (see ``HOW``)."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from helpers import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    line for block in re.findall(r"^```bash\n(.*?)^```", README, re.M | re.S) for line in block.splitlines() if line
]

# What a test adds to a command: nothing, or what keeps it from installing, rebuilding or submitting anything.
HOW = {
    "make reproduce": "--dry-run",
    "make test": "--dry-run",
    "snakemake --cores all": "--dry-run",
    "snakemake --cores all results/handover-v1/b-stat": "--dry-run",
    "snakemake results/handover-v1/b-stat --profile slurm": "--dry-run",
}
SHELL_ONLY = {"source .venv/bin/activate"}
INSTALLS = {command for command in COMMANDS if command.startswith("pip install")}
# Each of these goes on where the one before it ended.
CHAIN = ("rowproof run runs/quickstart.yaml", "rowproof build-db", "rowproof results", "rowproof analyse")
SLOW = {"rowproof verify --quiet results"}
SAYS = {
    "snakemake --dry-run": "Nothing to be done",
    "snakemake --cores all": "Nothing to be done",
    "rowproof why": "all rows are current",
    "rowproof verify results/handover-v1/b-stat": "PASS results/handover-v1/b-stat",
    "rowproof reproduce handover-v1/b-stat": "match handover-v1/b-stat",
    "rowproof list rows": "handover-v1/b-stat",
    "rowproof leaderboard handover-v1": "b-stat",
}


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A fresh clone of what is committed."""
    target = tmp_path_factory.mktemp("readme") / "rowproof"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(target)], check=True)
    return target


def test_there_are_commands_and_none_is_forgotten():
    assert len(COMMANDS) > 10 and set(HOW) | set(SAYS) | SHELL_ONLY | {*CHAIN} | SLOW <= set(COMMANDS)


def test_the_environment_that_the_readme_activates_is_the_one_that_make_creates():
    assert "venv .venv" in (ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", sorted(INSTALLS))
def test_what_the_readme_installs_is_an_extra_of_the_package(command):
    extra = re.fullmatch(r"pip install -e '\.\[([a-z]+)\]' -c requirements\.lock", command)
    assert (
        extra and extra[1] in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    )


@pytest.mark.slow
def test_a_run_of_models_goes_from_its_manifest_to_a_page(clone):
    for command in CHAIN:
        check(clone, command)
    assert (clone / "output/analysis.html").is_file()


SINGLE = [c for c in COMMANDS if c not in {*SHELL_ONLY, *CHAIN, *INSTALLS}]


@pytest.mark.parametrize("command", [pytest.param(c, marks=pytest.mark.slow if c in SLOW else ()) for c in SINGLE])
def test_command_does_what_the_readme_says(clone, command):
    check(clone, command)


def check(clone, command):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("ROWPROOF_", "SNAKEMAKE_"))}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    # The clone has no environment of its own, so the installed commands are pointed at its code.
    environment["PYTHONPATH"] = str(clone / "workflow")
    arguments = [*shlex.split(command), *shlex.split(HOW.get(command, ""))]
    done = subprocess.run(arguments, cwd=clone, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert SAYS.get(command, "") in done.stdout + done.stderr
    if command == "snakemake --report report.html":
        page = (clone / "report.html").read_text(encoding="utf-8")
        assert "handover-v1" in page and "push-v1" in page and "leaderboard.svg" in page
