"""Data sets: reproducible, complete, and true to what they show."""

import os
import subprocess
import sys

import numpy as np
import pytest
from gptnt.bomb.workbench import edgework, run_stream, spare_wires, zoomed
from gptnt.statics.workbench import SMALL
from helpers import ROOT
from rowproof.errors import ConfigError
from rowproof.gptnt.bomb.mission import SOLVABLE
from rowproof.gptnt.bomb.modules.wires import Wires
from rowproof.gptnt.bomb.observation import look
from rowproof.gptnt.manual import Edges, Manual
from rowproof.gptnt.statics.datasets import DATASETS, load_dataset
from rowproof.gptnt.statics.pages import draw_page, render_marked_page, render_page
from rowproof.gptnt.statics.questions import CHANGES, NOTHING, VISIBLE, change_question, targets
from rowproof.gptnt.statics.scoring import postprocess_ocr

SPLITS = [(name, split) for name, splits in DATASETS.items() for split in splits]
MANUAL = Manual.read()


@pytest.mark.parametrize(("name", "split"), SPLITS)
def test_every_module_is_asked_about(name, split):
    rows = SMALL(name, split).rows
    modules = [row["categories"][0] for row in rows]
    expected = [f"module={component.lower()}" for component in SOLVABLE]
    if name == "local/expert-element-grounding":
        # The page of the mazes has no lines.
        expected.remove("module=maze")
    assert modules == expected


@pytest.mark.parametrize(("name", "split"), SPLITS)
def test_options_differ_and_hold_the_truth(name, split):
    for row in SMALL(name, split).rows:
        options = row.get("options") or row.get("metadata", {}).get("options")
        if options:
            assert 2 <= len(options) == len(set(options)) <= 4
            assert row["ground_truth"] in (*options, *"ABCD"[: len(options)])


def test_all_splits_are_one_after_another():
    name = "local/defuser-state-recognition-vqa-mc"
    parts = [SMALL(name, split).rows for split in DATASETS[name]]
    assert SMALL(name, None).rows == tuple(row for rows in parts for row in rows)


def test_revisions_name_the_content():
    names = {SMALL(name, split).revision for name, split in SPLITS}
    assert len(names) == len(SPLITS)
    made = SMALL("local/defuser-vqa-mc", "test")
    assert SMALL("local/defuser-vqa-mc", "test", made.revision[:10]) == made
    assert load_dataset("local/defuser-vqa-mc", "test", rows_per_module=2).revision != made.revision


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("local/none", None), "a data set must be one of"),
        (("local/defuser-vqa-mc", "train"), "a split of local/defuser-vqa-mc must be one of"),
        (("local/defuser-vqa-mc", "test", "main"), "must have the revision 'main'"),
        (("local/defuser-vqa-mc", "test", ""), "must have the revision ''"),
    ],
)
def test_what_is_not_there_is_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        SMALL(*arguments)


@pytest.mark.slow
def test_the_same_rows_in_every_process():
    code = (
        "from gptnt.statics.workbench import SMALL;"
        "print(SMALL('local/defuser-grounding', 'test_som').revision, SMALL('local/expert-vqa', 'test').revision)"
    )
    outputs = set()
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(["workflow", "tests"])}
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, check=True)
        outputs.add(done.stdout.split()[0] + done.stdout.split()[1])
    here = SMALL("local/defuser-grounding", "test_som").revision + SMALL("local/expert-vqa", "test").revision
    assert outputs == {here.encode()}


# ---- Expert ----------------------------------------------------------------------------------------------------


def test_the_truth_of_rules_is_what_the_manual_says():
    rows = load_dataset("local/expert-vqa", "test", rows_per_module=6).rows
    checked = 0
    for row in rows:
        text, options = row["model_input"], row["metadata"]["options"]
        answer = options["ABCD".index(row["ground_truth"])]
        label = text.split("label of the bomb reads ")[1][:6]
        if row["metadata"]["component"] == "Wires":
            colours = text.split("from the top: ")[1].split(".")[0].split(", ")
            ordinals = ["first", "second", "third", "fourth", "fifth", "sixth"]
            assert answer == f"the {ordinals[MANUAL.wire_to_cut(colours, Edges(label)) - 1]} wire"
            checked += 1
        elif row["metadata"]["component"] == "Morse":
            signals = text.split("these signals: ")[1].split(". Which")[0].split(" ")
            assert answer == f"{MANUAL.frequency(signals)} MHz"
            checked += 1
    assert checked == 12


def test_page_texts_are_on_their_pages_and_can_be_scored():
    for row in load_dataset("local/expert-element-ocr", "test", rows_per_module=6).rows:
        pages = [page for page in MANUAL.pages.values() if render_page(page) == row["image"]]
        assert len(pages) == 1 and row["ground_truth"] in pages[0].text
        assert postprocess_ocr(row["ground_truth"])


@pytest.mark.parametrize("number", MANUAL.pages)
def test_every_line_of_a_table_is_on_the_page(number):
    page = MANUAL.pages[number]
    sheet = draw_page(page)
    lines = [(line.table, line.number) for line in sheet.lines]
    headings = [part.partition("\n")[0] for part in page.text.split("\n## ")[1:]]
    assert lines == [(h, n) for h in headings if h in MANUAL.tables for n in range(1, len(MANUAL.tables[h]) + 1)]
    tops = [sheet.scene.regions[line.region].points[0] for line in sheet.lines]
    assert len(set(tops)) == len(tops)


def test_marks_of_lines_are_in_reading_order():
    page = MANUAL.pages[13]
    _, letters = render_marked_page(page, [("letters", 1), ("complicated wires", 5), ("complicated wires", 2)])
    assert letters == {("complicated wires", 2): "A", ("complicated wires", 5): "B", ("letters", 1): "C"}
    before = render_page(page)
    render_marked_page(page, [("letters", 1)])
    assert render_page(page) == before, "marks must not stay on the page"


def test_a_line_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="lines must be on page 13"):
        render_marked_page(MANUAL.pages[13], [("letters", 9)])


# ---- Defuser ---------------------------------------------------------------------------------------------------


def _wires(*colours, cut=()):
    bomb = zoomed(Wires(edgework(), run_stream(), (0, 2, 4), colours), spare_wires(edgework()))
    for mark in cut:
        bomb.act("click_release", mark)
    return look(bomb, 1)["module"]


def test_questions_on_wires():
    answers = {question.text: question.answer for question in VISIBLE["Wires"](_wires("red", "blue", "red", cut="B"))}
    assert answers == {
        "How many wires are between the two strips?": "3",
        "How many of the wires are cut?": "1",
        "Which colour has the first wire from the top? Empty rows do not count.": "red",
        "Which colour has the second wire from the top? Empty rows do not count.": "blue",
        "Which colour has the third wire from the top? Empty rows do not count.": "red",
    }


def test_changes():
    before = _wires("red", "blue", "white")
    question = change_question(before, _wires("red", "blue", "white", cut="A"))
    assert question.answer == "a wire was cut"
    # The wrong wire also turned the status light red, which is true and so no option.
    assert "the status light turned red" not in question.others and NOTHING in question.others
    assert len(question.others) == len(CHANGES) - 1
    assert change_question(before, before).answer == NOTHING
    assert change_question({"led": "off", "flashes": "R"}, {"led": "off", "flashes": "."}) is None


def test_targets_fit_one_several_or_none():
    found = targets("Wires", _wires("red", "blue", "red"))
    one = {target.text: target.index for target in found if not target.trick}
    assert one == {
        **{"blue wire": 1, "first wire from the top": 0},
        **{"second wire from the top": 1, "third wire from the top": 2},
    }
    assert [target.text for target in found if target.trick == "type_a"] == ["red wire", "wire"]
    assert all(target.index is None for target in found if target.trick)


def test_both_kinds_of_grounding_ask_the_same():
    som, points = (SMALL("local/defuser-grounding", f"test_{kind}").rows for kind in ("som", "coordinates"))
    asked = ("model_input", "frames", "categories", "hallucination", "segmentation_mask")
    assert [[row[key] for key in asked] for row in som] == [[row[key] for key in asked] for row in points]
    for marked, pointed in zip(som, points, strict=True):
        if marked["hallucination"]:
            assert marked["ground_truth"] == pointed["ground_truth"]
        else:
            assert len(marked["ground_truth"]) == 1
            bits = np.array(list(pointed["ground_truth"]))
            assert len(bits) == 640 * 480 and set(bits) == {"0", "1"}
