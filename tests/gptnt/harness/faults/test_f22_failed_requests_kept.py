"""Failed requests were kept as empty answers for ever, and a limited run left scores that looked complete."""

import pytest
from gptnt.statics.workbench import QUICK, Puppet, folders, read, run, small_data
from rowproof.gptnt.statics.run import is_partial


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    small_data(monkeypatch)


def _down(instance):
    if instance.index in (1, 3):
        raise ConnectionError("no route")
    return "A"


def test_failed_requests_are_made_again_and_done_ones_never(tmp_path):
    puppet = Puppet(_down)
    assert run(QUICK, puppet, tmp_path, limit=5)[0] == 1
    (folder,) = folders(tmp_path, QUICK)
    assert read(folder, "prediction_1.json")["exception"]["type"] == "ConnectionError"
    assert read(folder, "run_meta.json")["statics"]["n_failed"] == 2
    assert run(QUICK, puppet, tmp_path, limit=5)[0] == 1
    puppet.reply = "A"
    assert run(QUICK, puppet, tmp_path, limit=5)[0] == 0
    assert [index for index, *_ in puppet.asked] == [0, 1, 2, 3, 4, 1, 3, 1, 3]
    assert read(folder, "run_meta.json")["statics"]["n_failed"] == 0


def test_metadata_tell_of_partial_runs(tmp_path):
    def meta():
        return read(folders(tmp_path, QUICK)[0], "run_meta.json")

    run(QUICK, Puppet(), tmp_path, limit=5)
    assert meta()["statics"]["n_instances"] == meta()["statics"]["limit"] == 5 and is_partial(meta())
    run(QUICK, Puppet(), tmp_path)
    assert meta()["statics"]["limit"] is None and meta()["statics"]["n_instances"] == 11 and not is_partial(meta())
    run(QUICK, Puppet(), tmp_path, limit=11)
    assert is_partial(meta()), "a limit is a limit even if it happens to hold all rows"


def test_failures_make_a_run_partial(tmp_path):
    run(QUICK, Puppet(_down), tmp_path)
    assert is_partial(read(folders(tmp_path, QUICK)[0], "run_meta.json"))
