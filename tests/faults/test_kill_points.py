"""A process is killed before each of its steps on files in turn; what is there then is whole, and a start mends it."""

import itertools
import os
import shutil
from pathlib import Path

import pytest
from bundles import commit_all
from faults.conftest import Workdir, enter, killed_before
from rowproof.hashing import sha256_hex
from rowproof.launches import LAUNCH_VARIABLE
from rowproof.layout import PROVENANCE

pytestmark = pytest.mark.slow


def kill_everywhere(workdir: Workdir, work, check) -> int:
    """Kill ``work`` before each of its steps, each time in the state of now; returns their number."""
    launched, launch_file = workdir.launched, os.environ[LAUNCH_VARIABLE]
    before = shutil.copytree(workdir.folder, workdir.folder.with_name("before"), symlinks=True)
    for number in itertools.count():
        if not killed_before(number, work):
            return number
        check()
        for entry in workdir.folder.iterdir():
            shutil.rmtree(entry)
        shutil.copytree(before, workdir.folder, symlinks=True, dirs_exist_ok=True)
        workdir.launched, os.environ[LAUNCH_VARIABLE] = launched, launch_file


@pytest.mark.parametrize("stage", ["specs", "simulate", "summary", "bundle"])
def test_a_job_is_killed(empty, expected, stage):
    until = {"specs": None, "simulate": "specs", "summary": "simulate", "bundle": "summary"}[stage]
    if until == "simulate":
        empty.build("specs").ok()
        for shard in empty.row.shards:
            empty.run("simulate", shard).ok()
    elif until:
        empty.build(until).ok()
    shard = "seed0" if stage == "simulate" else None

    def check() -> None:
        empty.build().ok()
        assert empty.digests() == expected
        assert empty.whole()

    assert kill_everywhere(empty, lambda: empty.run(stage, shard).code, check) >= 5


def test_a_publication_is_killed(worked, expected):
    """Some files are in place then and some are not."""
    shutil.rmtree(worked.results)
    worked.launch()

    def check() -> None:
        assert expected.items() >= {name: sha for name, sha in worked.digests().items() if name in expected}.items()
        worked.build().ok()
        assert {name: sha for name, sha in worked.digests().items() if name in expected} == expected
        assert worked.whole()

    assert kill_everywhere(worked, lambda: worked.run("publish").code, check) >= 9 * 3


def test_a_bundle_is_killed_while_it_replaces_another(patched, project, undisturbed, tmp_path):
    """Every file is that of the bundle before or of the bundle after, never a part."""
    root = shutil.copytree(project, tmp_path / "project")
    old = {path.name: sha256_hex(path.read_bytes()) for path in Workdir(root, undisturbed).results.iterdir()}
    plan = root / "config/plans/push-v1.yaml"
    assert "n_resamples: 100" in plan.read_text()
    plan.write_text(plan.read_text().replace("n_resamples: 100", "n_resamples: 50"))
    commit_all(root)
    shutil.copytree(undisturbed, tmp_path / "w", symlinks=True)
    workdir = enter(patched, root, tmp_path / "w")
    assert workdir.launch().state == "stale"
    workdir.build("bundle").ok()
    staged = Path(workdir.row.staged).parent
    new = {path.name: sha256_hex(path.read_bytes()) for path in staged.iterdir()}

    def check() -> None:
        for name, sha in old.items():
            path = workdir.results / name
            assert sha256_hex(path.read_bytes()) in (sha, new[name])
        workdir.build().ok()
        assert {n: s for n, s in workdir.digests().items() if n in new} == {
            n: s for n, s in new.items() if n != PROVENANCE
        }
        assert workdir.whole()

    assert kill_everywhere(workdir, lambda: workdir.run("publish").code, check) >= 9 * 3


@pytest.mark.parametrize("state", ["empty", "unpublished", "worked"])
def test_a_start_is_killed(request, expected, state):
    workdir = request.getfixturevalue(state)
    if state == "worked":
        # Half of a bundle: what is left is taken over.
        (workdir.results / "episodes_seed1.jsonl").unlink()
        (workdir.results / "recipe.json").write_text("{")

    def work() -> int:
        workdir.launch()
        return 0

    def check() -> None:
        workdir.build().ok()
        assert workdir.digests() == expected
        assert workdir.whole()

    assert kill_everywhere(workdir, work, check) >= 5
