"""One crashed session made an attempt fail for ever, even after a good one."""

import pytest
from gptnt.harness.workbench import solo_spec
from rowproof.gptnt.specs import Played, content_of, progress

SPEC = solo_spec()
SPECS, SETUP = {SPEC.attempt_name: SPEC}, {SPEC.defuser_name: "f"}
CONTENT = content_of(SPEC, SETUP)


@pytest.mark.parametrize("order", [1, -1])
def test_one_valid_session_is_enough(order):
    records = [Played("crashed", CONTENT, False), Played("good", CONTENT, True), Played("again", CONTENT, False)]
    assert progress(SPECS, SETUP, records[::order]).done == [SPEC.attempt_name]


def test_invalid_sessions_alone_are_not():
    records = [Played("crashed", CONTENT, False), Played("again", CONTENT, False)]
    assert progress(SPECS, SETUP, records).failed == [SPEC.attempt_name]
