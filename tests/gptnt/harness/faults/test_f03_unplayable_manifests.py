"""Shipped manifests broke the rules of capacity and self-play, which nothing checked, and waited for ever."""

import pytest
from gptnt.harness.workbench import edit, examine, statuses
from helpers import ROOT
from rowproof.gptnt.names import config_names


@pytest.mark.parametrize("name", config_names(ROOT / "config/runs"))
def test_shipped_manifests_are_satisfiable(name):
    assert not {"Satisfiable", "Capacity"} & set(statuses(examine(name)))


def test_the_quickstart_as_it_was_is_refused(project):
    for _ in range(2):
        edit(project, "config/runs/quickstart.yaml", "count: 2", "count: 1")
    plan = examine("quickstart", project)
    assert statuses(plan) == {"Satisfiable": "fail", "Capacity": "fail"}
    assert plan.section.checks[0].detail.startswith("220 of 440 specs can never be played")
