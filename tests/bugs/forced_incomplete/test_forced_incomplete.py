"""A build that had been killed ended in success without the row that was asked for.

When snakemake is killed between the end of a job and its note of that, the product stays marked as incomplete. With
``rerun-incomplete`` the job that makes it is forced, and that job alone is planned: what follows takes the product as
ancient(), so snakemake sees no reason to run it, although its own output is missing. The profiles ignore the marks;
products appear by one rename, so none is ever half there.
"""

import base64
import os
import subprocess
import sys

import pytest
import yaml
from helpers import ROOT

SNAKEFILE = """
rule row:
    input: state="state.json", records=ancient("work/records.txt")
    output: "results/row.txt"
    shell: "cp {input.records} {output}"

rule simulate:
    input: ancient("recipe.json")
    output: "work/records.txt"
    shell: "echo record > {output}"
"""
ROW, PRODUCT = "results/row.txt", "work/records.txt"


def snakemake(folder, *arguments):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("ROWPROOF_", "SNAKEMAKE_"))}
    command = [sys.executable, "-m", "snakemake", *arguments, "--cores", "1", "--nocolor"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def build_after_a_kill(folder, profile):
    """Make the product, mark it as a killed snakemake leaves it, and ask for the row; whether the row is there."""
    (folder / "Snakefile").write_text(SNAKEFILE)
    (folder / "profiles/default").mkdir(parents=True)
    (folder / "profiles/default/config.yaml").write_text(yaml.safe_dump(profile))
    for name in ("state.json", "recipe.json"):
        (folder / name).write_text("{}")
    snakemake(folder, PRODUCT)
    marks = folder / ".snakemake/incomplete"
    marks.mkdir(exist_ok=True)
    (marks / base64.b64encode(PRODUCT.encode()).decode()).touch()
    snakemake(folder, ROW)
    return (folder / ROW).exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["default", pytest.param("slurm", marks=pytest.mark.slow)])
def test_the_row_is_built_with_the_profile(tmp_path, name):
    profile = yaml.safe_load((ROOT / "profiles" / name / "config.yaml").read_text())
    # What decides about marks and staleness, without the cluster.
    kept = {key: profile[key] for key in profile if "incomplete" in key or key == "rerun-triggers"}
    assert build_after_a_kill(tmp_path, kept)


@pytest.mark.slow
def test_the_trap_is_still_there(tmp_path):
    """Once this fails, snakemake has mended it and the profiles may be reconsidered."""
    assert not build_after_a_kill(tmp_path, {"rerun-triggers": ["mtime"], "rerun-incomplete": True})
