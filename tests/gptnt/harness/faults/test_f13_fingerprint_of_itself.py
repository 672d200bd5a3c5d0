"""The fingerprint of a spec included itself and recursed for ever."""

import json

from gptnt.harness.workbench import solo_spec
from rowproof.gptnt.specs import read_spec


def test_a_spec_survives_its_file():
    spec = solo_spec()
    again = read_spec(spec.file(), "x.json")
    assert again == spec and again.file() == spec.file()
    assert json.loads(spec.file())["fingerprint"] == spec.fingerprint == again.fingerprint


def test_attempt_and_names_do_not_matter_and_a_changed_copy_has_its_own():
    spec = solo_spec()
    assert spec.model_copy(update={"attempt": 2, "defuser_name": "other"}).fingerprint == spec.fingerprint
    assert spec.model_copy(update={"suite_revision": 2}).fingerprint != spec.fingerprint
