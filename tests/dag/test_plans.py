"""What a fresh clone of the whole project plans, family by family, and that ``rowproof why`` says the same.

A clone holds no intermediate files and none of the files that are fetched; neither may ask for what was done already.
"""

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest
from checkouts import Checkout, clone, copy_whole_tree, make_current
from dag.conftest import once
from rowproof import reproduce
from rowproof.errors import RowproofError
from rowproof.families import engines
from rowproof.layout import episode_file
from rowproof.recipes import prepare
from rowproof.why import explain

# Several plans of the whole project, about 10 s each.
pytestmark = pytest.mark.slow

STAGE_OF_RULE = {
    "select_checkpoint": "select",
    "summarise": "summary",
    "time_runs": "time",
    "assemble": "bundle",
    **{stage: stage for stage in ("train", "specs", "simulate")},
}
# A row of every engine, scripted, learned, of a language game, timed; and how many of its jobs one record file is of.
ROWS = {
    "handover-v1/b-rnd": 1,
    "handover-v1/b-aht": 1,
    "push-v1/b-stat": 1,
    "cocarry-v1/b-joint": 1,
    "cocarry-v1/ref-script": 1,
    "gptnt-single-self-async/scripted": 1,
    "nanogpt-speedrun-cpu-v1/r1-rotary": 1,
}


@pytest.fixture(scope="module")
def whole(shared_folder) -> Checkout:
    """The project with all rows current."""

    def make(root: Path, home: Path) -> None:
        make_current(copy_whole_tree(root, home))

    return once(shared_folder, "whole", make)


@pytest.fixture
def cloned(whole, tmp_path) -> Checkout:
    checkout = clone(whole, tmp_path / "cloned")
    assert not (checkout.root / "resources/robots").exists()
    return checkout


def stages(checkout: Checkout, *targets: str) -> dict[str, Counter]:
    """Row -> planned jobs of each stage; what is timed in turns stands under the first row of its board."""
    found: dict[str, Counter] = {}
    for name, jobs in checkout.plan(*targets).items():
        planned = {STAGE_OF_RULE[rule]: n for rule, n in jobs.items() if rule in STAGE_OF_RULE}
        if planned:
            found[name] = Counter(planned)
    return found


def check_as_said(checkout: Checkout, planned: dict[str, Counter], names: set[str]) -> None:
    """Plan and ``rowproof why`` name the same rows and, for each, the same stages.

    Specs are in no bundle, so a clone makes them again wherever something before them is missing; that costs nothing.
    """
    said = {entry["row"]: set(entry["rebuild_stages"]) for entry in explain(checkout.root, checkout.root, [])}
    assert set(said) == names
    assert set(planned) == names
    for name in sorted(names):
        assert set(planned[name]) - {"specs"} == said[name] - {"specs"}, name


def test_nothing_runs_in_a_fresh_clone(cloned):
    assert stages(cloned) == {}
    assert explain(cloned.root, cloned.root, []) == []


def test_a_lost_record_file_asks_for_its_episodes_alone(cloned):
    for name in ROWS:
        folder = cloned.root / "results" / name
        min(folder.glob("episodes_seed*.jsonl")).unlink()
    planned = stages(cloned)
    check_as_said(cloned, planned, set(ROWS))
    assert {name: jobs["simulate"] for name, jobs in planned.items()} == ROWS
    assert not any({"train", "select", "time"} & set(jobs) for jobs in planned.values())


def test_the_plan_of_one_row_with_a_lost_record_file(cloned):
    (cloned.root / "results/cocarry-v1/b-joint" / episode_file(0)).unlink()
    assert stages(cloned, "results/cocarry-v1/b-joint") == {
        "cocarry-v1/b-joint": Counter(simulate=1, summary=1, bundle=1),
    }


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("handover-v1/b-aht", "bundle.json"),
        ("handover-v1/b-aht", "SHA256SUMS.txt"),
        ("cocarry-v1/b-joint", "training_seed1.json"),
        ("cocarry-v1/b-joint", "checkpoint_seed0.safetensors"),
        ("nanogpt-speedrun-cpu-v1/r1-rotary", "timing.json"),
        ("push-v1/b-rnd", "recipe.json"),
        ("push-v1/b-rnd", "provenance.json"),
    ],
)
def test_another_lost_file(cloned, name, file):
    (cloned.root / "results" / name / file).unlink()
    planned = stages(cloned)
    check_as_said(cloned, with_timings(planned, {name.rpartition("/")[0]}, {name}), {name})
    if "train" in planned[name]:
        seed_of_one = "seed" in file
        assert planned[name]["train"] == (1 if seed_of_one else planned[name]["select"])


@pytest.mark.parametrize("engine", sorted(engines()))
def test_a_changed_constant_asks_for_what_it_reaches(cloned, engine):
    module = cloned.root / "workflow" / (engines()[engine].simulate_module.replace(".", "/") + ".py")
    with module.open("a") as stream:
        stream.write("\nADDED_BY_A_TEST = 1\n")
    cloned.commit()
    launch = prepare(cloned.root, cloned.root, touch=False)
    stale = {row.name for row in launch.rows if row.state == "stale"}
    assert stale
    planned = stages(cloned)
    timed = {row.board for row in launch.rows if row.timings}
    check_as_said(cloned, with_timings(planned, timed, stale), stale)


def with_timings(planned: dict[str, Counter], timed: set[str], stale: set[str]) -> dict[str, Counter]:
    """The same with the one job that times all rows of a board counted for each of them."""
    shared = planned.pop("time_runs", Counter())
    for name in stale if shared else ():
        if name.rpartition("/")[0] in timed:
            planned.setdefault(name, Counter())["time"] += 1
    return planned


LEARNED, TIMED = "cocarry-v1/b-joint", "nanogpt-speedrun-cpu-v1/r1-rotary"


def reproduced(checkout: Checkout, tmp_path: Path, monkeypatch, name: str, **options: bool) -> Counter:
    """The stages that reproducing a row would run, of which none is run."""
    planned: dict[str, Counter] = {}

    def plan_only(root, targets, workdir, cores, write):
        where = ("--snakefile", str(root / "Snakefile"), "--directory", str(workdir))
        profile = ("--workflow-profile", str(root / "profiles/default"))
        planned.update(stages(checkout, *targets, *where, *profile))
        raise Planned

    monkeypatch.setattr(reproduce, "rebuild", plan_only)
    with pytest.raises(Planned):
        reproduce.reproduce(
            checkout.root, checkout.root / "results", [name], 1, tmp_path / "again", lambda line: None, **options
        )
    return planned[name] + planned.get("time_runs", Counter())


class Planned(Exception):
    """The build that would follow is known."""


def test_reproducing_a_learned_row_trains_when_asked_to(cloned, tmp_path, monkeypatch):
    seeds = len(prepare(cloned.root, cloned.root, touch=False).row(LEARNED).seeds)
    assert set(reproduced(cloned, tmp_path, monkeypatch, LEARNED)) == {"specs", "simulate", "summary", "bundle"}
    shutil.rmtree(tmp_path / "again")
    again = reproduced(cloned, tmp_path, monkeypatch, LEARNED, retrain=True)
    assert again["train"] == again["select"] == seeds


def test_reproducing_a_timed_row_times_when_asked_to(cloned, tmp_path, monkeypatch):
    assert set(reproduced(cloned, tmp_path, monkeypatch, TIMED)) == {"specs", "simulate", "summary", "bundle"}
    shutil.rmtree(tmp_path / "again")
    assert reproduced(cloned, tmp_path, monkeypatch, TIMED, retime=True)["time"] == 1


@pytest.mark.parametrize(
    ("name", "lost", "option"),
    [
        (LEARNED, "checkpoint_seed*", "--retrain"),
        (LEARNED, "training_seed0.json", "--retrain"),
        (TIMED, "timing.json", "--retime"),
    ],
)
def test_what_a_bundle_lost_is_not_made_again_unasked(cloned, tmp_path, monkeypatch, name, lost, option):
    for path in [*(cloned.root / "results" / name).glob(lost)]:
        path.unlink()
    with pytest.raises(RowproofError, match=f"^{name}: must have .* or make them again with {option}$"):
        reproduced(cloned, tmp_path, monkeypatch, name)


def test_another_training_recipe_is_not_followed_unasked(cloned, tmp_path, monkeypatch):
    module = cloned.root / "workflow/rowproof/chamber/cocarry/training.py"
    module.write_text(module.read_text() + "\nADDED_BY_A_TEST = 1\n")
    cloned.commit()
    with pytest.raises(RowproofError, match=f"^{LEARNED}: must have .* with --retrain$"):
        reproduced(cloned, tmp_path, monkeypatch, LEARNED)


def taken_over(checkout: Checkout) -> dict[str, bytes]:
    """What of trainings and selections lies under work/."""
    work = checkout.root / "work/rows" / LEARNED
    files = (path for stage in ("train", "select") for path in work.glob(f"{stage}-*/*") if path.is_file())
    return {path.relative_to(work).as_posix(): path.read_bytes() for path in files}


def test_a_failed_submission_leaves_what_was_taken_over(cloned, tmp_path):
    folder = cloned.root / "results" / LEARNED
    (folder / episode_file(0)).unlink()
    (folder / "training_seed1.json").unlink()
    stub = tmp_path / "stub/sbatch"
    stub.parent.mkdir()
    stub.write_text("#!/bin/sh\necho no cluster here >&2\nexit 1\n")
    stub.chmod(0o755)
    before = stages(cloned, f"results/{LEARNED}")
    assert before[LEARNED]["train"] == 1
    kept = taken_over(cloned)
    assert kept
    path = f"{stub.parent}:{os.environ['PATH']}"
    run = cloned.snakemake(f"results/{LEARNED}", "--profile", "profiles/slurm", "--nocolor", env={"PATH": path})
    assert run.code != 0
    assert "Job submission failed" in run.output
    assert taken_over(cloned) == kept
    assert stages(cloned, f"results/{LEARNED}") == before


@pytest.mark.parametrize("lost", ["train-*/seed0.json", "select-*/seed0.json", "select-*/seed0.safetensors"])
def test_what_was_taken_over_and_lost_is_taken_over_again(cloned, lost):
    (cloned.root / "results" / LEARNED / episode_file(0)).unlink()
    before = stages(cloned, f"results/{LEARNED}")
    kept = taken_over(cloned)
    (path,) = (cloned.root / "work/rows" / LEARNED).glob(lost)
    # As snakemake does with the outputs of a job that failed.
    path.unlink()
    assert stages(cloned, f"results/{LEARNED}") == before
    assert taken_over(cloned) == kept
