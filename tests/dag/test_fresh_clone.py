"""A clone of committed results has nothing to do, whatever its time stamps say."""

import os
import time
from pathlib import Path

import pytest

YEAR_S = 365 * 86400


@pytest.mark.parametrize(
    "targets",
    [(), ("results/handover-v1/b-stat", "results/handover-v1/b-rnd/", "results/push-v1", "results/handover-v1/")],
    ids=["default", "named"],
)
def test_nothing_to_do_for(fresh, targets):
    run = fresh.dry_run(*targets)
    assert run.nothing, run.output[-3000:]
    assert fresh.changed() == set(), "a dry run must leave the checkout clean"


def _set_times(folder: Path, time_s: float) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            os.utime(path, (time_s, time_s))


# Seconds since 1970, relative to now where marked by a sign: (results, work, everything else)
TIMES = {
    "zero": (0, 0, 0),
    "future": (+YEAR_S, +YEAR_S, +YEAR_S),
    "work_newest": (-100, +YEAR_S, -200),
    "results_newest": (+YEAR_S, -100, -200),
    "sources_newest": (-200, -100, +YEAR_S),
}


@pytest.mark.parametrize(
    "name",
    [
        "zero",
        pytest.param("results_newest", marks=pytest.mark.slow),
        pytest.param("work_newest", marks=pytest.mark.slow),
        pytest.param("sources_newest", marks=pytest.mark.slow),
        pytest.param("future", marks=pytest.mark.slow),
    ],
)
def test_time_stamps_do_not_matter(worked, name):
    now_s = time.time()
    results_s, work_s, other_s = (offset_s and now_s + offset_s for offset_s in TIMES[name])
    for entry in sorted(worked.root.iterdir()):
        if entry.name in (".git", ".snakemake"):
            continue
        time_s = {"results": results_s, "work": work_s}.get(entry.name, other_s)
        if entry.is_dir():
            _set_times(entry, time_s)
        else:
            os.utime(entry, (time_s, time_s), follow_symlinks=False)
    run = worked.dry_run()
    assert run.nothing, run.output[-3000:]


@pytest.mark.slow
def test_rewriting_unchanged_content_does_not_matter(worked):
    for path in worked.git("ls-files", "-z").split("\0")[:-1]:
        file = worked.root / path
        if file.is_symlink():
            continue
        data, mode = file.read_bytes(), file.stat().st_mode
        file.unlink()
        file.write_bytes(data)
        file.chmod(mode)
    run = worked.dry_run()
    assert run.nothing, run.output[-3000:]


def test_unknown_row_is_refused(fresh):
    run = fresh.dry_run("results/handover-v1/no-such-row")
    assert run.code == 1
    assert "results/handover-v1/no-such-row" in run.output
