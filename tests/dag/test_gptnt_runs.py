"""Runs of models as a graph: from a manifest to a page."""

import json

import pytest

pytestmark = pytest.mark.slow
RUN = "spec_version: 2\nsuites: [multi-self-sync]\nrooms: 2\nplayers:\n  - {player: scripted, count: 4}\n"


def test_a_run_is_played_counted_and_shown_and_then_there_is_nothing_to_do(fresh_small):
    (fresh_small.root / "config/runs/small.yaml").write_text(RUN)
    fresh_small.commit()
    target = "output/small/analysis.html"
    fresh_small.build(target).ok()
    output = fresh_small.root / "output/small"
    assert len(json.loads((output / "played.json").read_bytes())["recordings"]) == 20
    assert len(json.loads((output / "results.json").read_bytes())["runs"]) == 10
    assert (output / "analysis.html").stat().st_size > 10_000
    assert fresh_small.dry_run(target).nothing
    assert fresh_small.changed() == set(), "nothing of a run is committed"


def test_a_run_that_cannot_be_played_says_why_and_leaves_no_result(fresh_small):
    (fresh_small.root / "config/runs/small.yaml").write_text(RUN.replace("count: 4", "count: 1"))
    fresh_small.commit()
    run = fresh_small.build("output/small/analysis.html")
    assert run.code != 0 and "Satisfiable" in run.output
    assert not (fresh_small.root / "output/small/played.json").exists()
