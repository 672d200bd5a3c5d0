"""What every rule must declare, the profiles, and the checks of snakemake and snakefmt."""

import importlib.util
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from checkouts import NOTHING
from helpers import ROOT

RULE_FILES = [ROOT / "Snakefile", *sorted((ROOT / "rules").glob("*.smk"))]
SCRIPTS = sorted((ROOT / "workflow" / "scripts").glob("*.py"))
# In profiles/default these would beat the profile that a user names.
FORBIDDEN = {"cores", "jobs", "executor", "default-resources", "set-resources", "retries", "latency-wait"}


def rules() -> list[tuple[str, dict[str, str]]]:
    """(file:line, directive -> text) of every rule; directives stand one level deeper than their rule."""
    found = []
    for path in RULE_FILES:
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            match = re.fullmatch(r"( *)rule( \w+)?:", line)
            if match is None:
                continue
            indent = len(match[1]) + 4
            directives: dict[str, str] = {}
            name = None
            for body in lines[number + 1 :]:
                if body.strip() and len(body) - len(body.lstrip()) < indent:
                    break
                directive = re.match(rf" {{{indent}}}(\w+):(.*)", body)
                if directive:
                    name, directives[directive[1]] = directive[1], directive[2]
                elif name is not None:
                    directives[name] += body + "\n"
            found.append((f"{path.name}:{number + 1}", directives))
    return found


RULES = rules()
WORKING = [rule for rule in RULES if "script" in rule[1]]


def test_rules_are_found():
    assert len(WORKING) >= 5
    assert len(RULES) > len(WORKING)


@pytest.mark.parametrize(("place", "directives"), WORKING, ids=lambda value: value if isinstance(value, str) else "")
def test_working_rules_declare_log_threads_and_resources(place, directives):
    assert {"log", "threads", "resources", "conda", "output"} <= set(directives), place
    assert "mem_mb=" in directives["resources"]
    assert "runtime=" in directives["resources"]


def test_other_rules_are_pure_targets():
    for place, directives in RULES:
        if "script" not in directives:
            assert set(directives) <= {"name", "input", "localrule", "default_target"}, place
            assert directives["localrule"].strip() == "True", place


def test_no_rule_runs_anything_but_a_script():
    for place, directives in RULES:
        assert not {"run", "shell", "notebook", "wrapper"} & set(directives), place


def test_one_script_per_rule():
    used = [re.search(r"workflow/scripts/(\w+\.py)", directives["script"])[1] for _, directives in WORKING]
    # Called by hand.
    assert sorted([*used, "robots.py"]) == [path.name for path in SCRIPTS]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_are_thin(script):
    assert len(script.read_text().splitlines()) < 60


def test_default_profile_leaves_the_choice_to_the_user():
    profile = yaml.safe_load((ROOT / "profiles/default/config.yaml").read_text())
    assert not FORBIDDEN & set(profile)


def test_lint(unbuilt):
    unbuilt.git("checkout", "-q", "HEAD~1")
    run = unbuilt.snakemake("--lint")
    assert run.code == 0, run.output


def test_all_boards_of_the_repository_plan(unbuilt):
    unbuilt.git("checkout", "-q", "HEAD~1")
    shutil.rmtree(unbuilt.root / "results")
    boards = yaml.safe_load((unbuilt.root / "config/config.yaml").read_text())["boards"]
    planned = unbuilt.plan()
    assert {name for name, jobs in planned.items() if jobs["leaderboard"]} == set(boards)
    rows = {name: jobs for name, jobs in planned.items() if jobs["row"]}
    assert {name.rpartition("/")[0] for name in rows} == set(boards)
    for name, jobs in rows.items():
        assert jobs["specs"] == jobs["summarise"] == jobs["assemble"] == 1 <= jobs["simulate"], name


def test_snakefmt():
    command = [sys.executable, "-m", "snakefmt", "--check", "Snakefile", "rules"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("own", [["simulate"], ["simulate", "assemble_push_v1__b_rnd"]])
def test_a_job_process_makes_no_rules_of_other_rows(unbuilt, own):
    """So its start does not take longer in a larger plan."""
    run = unbuilt.snakemake("--list-rules", "--mode", "remote", "--allowed-rules", *own).ok()
    listed = set(run.output.split())
    assert set(own) <= listed
    rows = {name for name in listed if name.startswith(("assemble_", "leaderboard_", "results/"))}
    named = {"assemble_push_v1__b_rnd", "results/push-v1/b-rnd", "results/push-v1/b-rnd/"}
    assert rows == (named if len(own) > 1 else set())


@pytest.mark.skipif(
    importlib.util.find_spec("snakemake_executor_plugin_slurm") is None,
    reason="snakemake-executor-plugin-slurm is not installed (pip install '.[slurm]')",
)
def test_slurm_profile_resolves_in_a_clone(fresh):
    run = fresh.dry_run("--profile", "slurm")
    assert run.nothing, run.output
    (fresh.root / "results/push-v1/b-rnd/REPRO.txt").unlink()
    run = fresh.dry_run("results/push-v1/b-rnd", "--profile", "slurm").ok()
    assert NOTHING not in run.output
    assert set(run.jobs()) == {"push-v1/b-rnd"}
