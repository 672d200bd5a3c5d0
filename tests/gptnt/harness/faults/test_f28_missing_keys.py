"""A missing key was only a warning of the doctor; and generating, which is offline, could not be done without one."""

import pytest
from gptnt.harness.workbench import examine
from helpers import ROOT
from rowproof.gptnt.doctor import Report, check_players
from rowproof.gptnt.runs import RosterEntry

ENTRY = RosterEntry(player="claude-sonnet-4-6")


def test_a_missing_key_fails_and_is_named():
    (row,) = check_players(ROOT, [ENTRY], {})
    assert row.ready.status == "fail" and "ANTHROPIC_API_KEY" in row.ready.detail and Report([row], []).failed


def test_a_key_that_is_there_passes_and_is_not_shown():
    (row,) = check_players(ROOT, [ENTRY], {"ANTHROPIC_API_KEY": "sk-not-a-real-one"})
    assert row.ready.status == "pass" and "sk-not" not in repr(row)


@pytest.mark.parametrize("environment", [{}, {"ANTHROPIC_API_KEY": ""}])
def test_generating_needs_no_key(environment):
    (row,) = check_players(ROOT, [ENTRY], environment, missing_key="warn")
    assert row.ready.status == "warn" and not Report([row], []).failed
    assert len(examine("all-suites").specs) == 4500
