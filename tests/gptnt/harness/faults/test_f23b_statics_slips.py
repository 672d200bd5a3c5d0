"""Preprocessing ran twice, whole rows were sent, truths were compared with case, stars were mistaken, and more."""

import numpy as np
import pytest
from gptnt.statics.workbench import QUICK, SMALL, Puppet, folders, read, run, small_data
from rowproof.gptnt.statics import tasks
from rowproof.gptnt.statics.scoring import coordinate_comparers, equal_texts, postprocess_ocr, text_comparers
from rowproof.gptnt.statics.tasks import TASKS
from rowproof.llm.calls import Picture


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    small_data(monkeypatch)


def test_a_picture_is_resized_once_at_most(tmp_path, monkeypatch):
    calls = []
    resize = tasks._resize_picture
    monkeypatch.setattr(tasks, "_resize_picture", lambda data, size: calls.append(size) or resize(data, size))
    task = TASKS[QUICK]
    task.instance(0, SMALL(task.dataset, task.split).rows[0], Puppet().capabilities)
    assert len(calls) == 1


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.dataset])
def test_no_truth_and_no_category_is_sent(name):
    task = TASKS[name]
    for row in SMALL(task.dataset, task.split).rows:
        marked = {**row, "categories": ["module=secret"], "metadata": {**row.get("metadata", {}), "seed": "secret"}}
        parts = task.instance(0, marked, Puppet().capabilities).parts
        assert all(isinstance(part, str | Picture) for part in parts)
        assert not any("secret" in part for part in parts if isinstance(part, str))


def test_truths_are_compared_without_case(tmp_path):
    run(QUICK, Puppet(lambda instance: instance.truth.lower()), tmp_path)
    assert read(folders(tmp_path, QUICK)[0], "metrics.json")["module"]["total"] == 1.0
    assert equal_texts("yes, okay", "YES, OKAY", clean=postprocess_ocr) == 1.0


def test_distance_scorers_have_different_names():
    assert len(coordinate_comparers("absolute", (6, 4))) == 4


def test_symbols_may_be_described_in_the_open_ended_task_alone():
    compare = {
        name: task.comparers(Puppet().capabilities)[""]("trident", "psi", "keypad")
        for name, task in TASKS.items()
        if task.dataset and name != "defuser-grounding-coordinates"
    }
    assert [name for name, value in compare.items() if value] == ["defuser-vqa-oe"]


def test_modules_of_page_texts_are_found_in_the_scores(tmp_path):
    run("expert-ocr", Puppet(lambda instance: instance.truth), tmp_path)
    module = read(folders(tmp_path, "expert-ocr")[0], "metrics.json")["module"]
    assert set(module.values()) == {1.0} and len(module) == 12


def test_an_asterisk_is_no_star():
    compare = text_comparers(postprocess_ocr)[""]
    assert compare("*", "★", "keypad") == 0.0 and compare("** ★", "★", "keypad") == 1.0
    assert compare("**yes**", "yes", "simon") == 1.0


def test_a_mask_is_no_text():
    truth = np.ones((4, 6), bool)
    assert coordinate_comparers("absolute", (6, 4))[""]('{"x": 1, "y": 1}', truth, "wires") == 1.0
