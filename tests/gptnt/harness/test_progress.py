from gptnt.harness.workbench import examine, manifest
from rowproof.gptnt.doctor import check_resume
from rowproof.gptnt.specs import Played, content_of, progress, remaining

SPECS = examine(manifest()).specs
NAMES = list(SPECS)
SETUP = {"test-defuser": "f1"}


def record(index, session="s", valid=True, setup=None, **changes):
    spec = SPECS[NAMES[index]].model_copy(update=changes)
    return Played(session, content_of(spec, setup or SETUP), valid)


def test_nothing_played():
    found = progress(SPECS, SETUP, [])
    assert found == ([], [], NAMES, []) and list(remaining(SPECS, found)) == NAMES


def test_done_failed_and_not_attempted():
    found = progress(SPECS, SETUP, [record(3), record(1, "t", valid=False)])
    assert (found.done, found.failed, found.outdated) == ([NAMES[3]], [NAMES[1]], [])
    assert found.not_attempted == [name for i, name in enumerate(NAMES) if i not in (1, 3)]
    assert list(remaining(SPECS, found)) == [name for name in NAMES if name != NAMES[3]]


def test_all_records_of_a_session_must_be_valid():
    records = [record(0), record(0, valid=False)]
    assert progress(SPECS, SETUP, records).failed == progress(SPECS, SETUP, records[::-1]).failed == [NAMES[0]]


def test_nothing_to_do():
    found = progress(SPECS, SETUP, [record(index, f"s{index}") for index in range(len(NAMES))])
    assert found.done == NAMES and remaining(SPECS, found) == {}


def test_another_setup_of_a_player_is_other_content():
    found = progress(SPECS, SETUP, [record(0, setup={"test-defuser": "f2"})])
    assert found.done == [] and found.outdated == [NAMES[0]] and NAMES[0] in found.not_attempted


def test_another_state_of_the_suite_is_other_content():
    mission = SPECS[NAMES[0]].mission_spec
    changed = mission._replace(time_limit=mission.time_limit + 1)
    found = progress(SPECS, SETUP, [record(0, mission_spec=changed)])
    assert found.done == [] and found.outdated == [NAMES[0]]


def test_an_invalid_session_of_other_content_says_nothing():
    found = progress(SPECS, SETUP, [record(0, valid=False, setup={"test-defuser": "f2"})])
    assert found == ([], [], NAMES, [])


def test_sessions_of_other_runs_do_not_matter():
    found = progress({NAMES[0]: SPECS[NAMES[0]]}, SETUP, [record(1), record(0, "t")])
    assert found == ([NAMES[0]], [], [], [])


def test_more_attempts_keep_what_is_done():
    specs = examine(manifest(attempts_per_mission=3)).specs
    found = progress(specs, SETUP, [record(index, f"s{index}") for index in range(len(NAMES))])
    assert found.done == NAMES and len(found.not_attempted) == 20


def test_the_doctor_tells_how_much_is_done():
    found = progress(SPECS, SETUP, [record(0), record(1, "t", setup={"test-defuser": "f2"})])
    item = check_resume(SPECS, found, "local")
    assert item.status == "pass" and item.detail.startswith("1 of 10 done according to local, 9 would run; 1 of these")
    assert check_resume(SPECS, None, "local").status == "warn"
    assert check_resume({}, found, "local").status == "skip"
