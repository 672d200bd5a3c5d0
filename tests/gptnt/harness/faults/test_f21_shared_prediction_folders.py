"""Tasks, setups, revisions and flags shared one folder, so that answers were used again where they did not belong."""

import pytest
from gptnt.statics.workbench import NORMALISED, QUICK, SMALL, Puppet, folders, read, run, small_data
from rowproof.gptnt.statics import run as statics_run
from rowproof.gptnt.statics.datasets import load_dataset
from rowproof.gptnt.statics.tasks import STATE_SPLITS, STATE_TASK, TASKS


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    small_data(monkeypatch)


@pytest.mark.slow
def test_every_task_asks_anew(tmp_path):
    asked = []
    for name in TASKS:
        split = next((split for split in STATE_SPLITS if name == f"{STATE_TASK}-{split}"), None)
        puppet = Puppet()
        run(STATE_TASK if split else name, puppet, tmp_path, state_split=split or "state-change", limit=2)
        asked.append(len(puppet.asked))
        assert len(folders(tmp_path, name)) == 1
    assert asked == [2] * len(TASKS)


@pytest.mark.parametrize(
    ("change", "options"),
    [
        ({"name": "other"}, {}),
        ({"temperature": 0.1}, {}),
        ({"capabilities": NORMALISED}, {}),
        ({"model": "puppet-2"}, {}),
        ({}, {"allow_thinking": False}),
    ],
    ids=["player", "setting", "capabilities", "model", "thinking"],
)
def test_another_setup_asks_anew(change, options, tmp_path):
    run(QUICK, Puppet(), tmp_path, limit=2)
    model = change.pop("model", Puppet.model)
    puppet = Puppet("B", **change)
    puppet.model = model
    run(QUICK, puppet, tmp_path, limit=2, **options)
    assert len(puppet.asked) == 2
    answers = {read(folder, "prediction_0.json")["output"] for folder in folders(tmp_path, QUICK)}
    assert answers == {"A", "B"}


def test_another_revision_of_the_data_asks_anew(tmp_path, monkeypatch):
    run(QUICK, Puppet(), tmp_path, limit=2)
    monkeypatch.setattr(statics_run, "load_dataset", lambda *a: load_dataset(*a, rows_per_module=2))
    puppet = Puppet()
    run(QUICK, puppet, tmp_path, limit=2)
    assert len(puppet.asked) == 2 and len(folders(tmp_path, QUICK)) == 2


def test_another_instruction_asks_anew(tmp_path, monkeypatch):
    run(QUICK, Puppet(), tmp_path, limit=2)
    monkeypatch.setitem(TASKS, QUICK, _with_instruction("Other words."))
    puppet = Puppet()
    run(QUICK, puppet, tmp_path, limit=2)
    assert len(puppet.asked) == 2 and len(folders(tmp_path, QUICK)) == 2


def _with_instruction(text):
    from dataclasses import replace

    return replace(TASKS[QUICK], instruction=lambda _: text)


def test_the_limit_does_not_part_answers(tmp_path):
    puppet = Puppet()
    run(QUICK, puppet, tmp_path, limit=2)
    run(QUICK, puppet, tmp_path)
    assert len(puppet.asked) == len(SMALL("local/defuser-vqa-mc", "test").rows)
    assert len(folders(tmp_path, QUICK)) == 1
