"""Tasks: what a player is told and shown, in its own size."""

import io

import numpy as np
import pytest
from gptnt.statics.workbench import NORMALISED, SMALL
from PIL import Image
from rowproof.errors import ConfigError
from rowproof.gptnt.capabilities import Capabilities, ImageDimensions
from rowproof.gptnt.manual import Manual
from rowproof.gptnt.statics.tasks import STATE_SPLITS, TASKS, how_do_you_rows, resize_mask, task_named
from rowproof.llm.calls import Picture

# Given upright although the Defuser's pictures lie.
SMALL_SIZE = ImageDimensions(width=240, height=320)
PLAYER = Capabilities(player_name="p", player_type="ai", image_dimensions=SMALL_SIZE)


def instances(name, capabilities=PLAYER):
    task = TASKS[name]
    rows = SMALL(task.dataset, task.split).rows
    return [task.instance(index, row, capabilities) for index, row in enumerate(rows)]


def kinds(instance):
    return ["picture" if isinstance(part, Picture) else "text" for part in instance.parts]


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.dataset])
def test_pictures_have_the_size_of_player_and_role(name):
    size = (240, 320) if name.startswith("expert") else (320, 240)
    assert TASKS[name].image_size(PLAYER) == size
    pictures = [part for instance in instances(name) for part in instance.parts if isinstance(part, Picture)]
    assert bool(pictures) is (name != "expert-vqa-no-manual")
    assert {Image.open(io.BytesIO(picture.data)).size for picture in pictures} <= {size}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("expert-vqa-no-manual", ["text"]),
        ("expert-ocr", ["picture", "text"]),
        ("expert-ocr-with-text", ["text", "picture", "text"]),
        ("expert-element-grounding", ["picture", "text"]),
        ("defuser-vqa-mcq", ["picture", "text"]),
        ("defuser-state-recognition-vqa-mcq-state-change", ["picture", "picture", "text"]),
        ("defuser-vqa-oe", ["picture", "text"]),
        ("defuser-grounding-som", ["picture", "text"]),
        ("defuser-grounding-coordinates", ["picture", "text"]),
    ],
)
def test_order_of_texts_and_pictures(name, expected):
    assert {tuple(kinds(instance)) for instance in instances(name)} == {tuple(expected)}


def test_pages_come_in_order_each_as_text_and_picture():
    task = TASKS["expert-vqa"]
    row = next(row for row in SMALL(task.dataset, None).rows if len(row["page_number"]) == 2)
    turned = {key: row[key][::-1] for key in ("page_number", "images", "manual_texts")}
    instance = task.instance(0, {**row, **turned}, PLAYER)
    assert kinds(instance) == ["text", "picture", "text", "picture", "text"]
    pages = Manual.read().pages
    assert instance.parts[0] == pages[9].text and instance.parts[2] == pages[10].text
    assert instance.parts == task.instance(0, row, PLAYER).parts


def test_without_the_manual_the_question_is_the_same():
    with_manual, without = instances("expert-vqa"), instances("expert-vqa-no-manual")
    assert [i.parts[-1] for i in with_manual] == [i.parts[0] for i in without]
    assert [i.truth for i in with_manual] == [i.truth for i in without]


def test_options_are_lettered_lines_and_the_truth_is_a_letter():
    row = {"model_input": "Which?", "options": ["red", "blue"], "input_images": [], "ground_truth": "blue"}
    instance = TASKS["defuser-vqa-mcq"].instance(0, {**row, "categories": []}, PLAYER)
    assert instance.parts == ("Which?\n\nA. red\nB. blue",) and instance.truth == "B"
    with pytest.raises(ConfigError, match="the truth must be one of the options"):
        TASKS["defuser-vqa-mcq"].instance(0, {**row, "ground_truth": "Blue", "categories": []}, PLAYER)


@pytest.mark.parametrize("name", ["defuser-grounding-som", "defuser-grounding-coordinates"])
def test_grounding_says_what_to_click_on(name):
    assert all(instance.parts[-1].startswith("click on the ") for instance in instances(name))
    instruction = TASKS[name].full_instruction(PLAYER, allow_thinking=False)
    assert "'More information needed'" in instruction and "'None'" in instruction


def test_coordinates_are_explained_in_the_players_own_way():
    task = TASKS["defuser-grounding-coordinates"]
    assert "320 pixels wide and 240 pixels high" in task.full_instruction(PLAYER, allow_thinking=False)
    assert "from 0 to 1000" in task.full_instruction(NORMALISED, allow_thinking=False)


@pytest.mark.parametrize(("method", "tag"), [("thinking-out-loud", "<thought>"), ("inner-monologue", "<think>")])
def test_reasoning_is_asked_for_by_the_players_method(method, tag):
    mode = None if method == "thinking-out-loud" else "native"
    player = Capabilities(player_name="p", player_type="ai", thinking_method=method, structured_output_mode=mode)
    plain = TASKS["expert-ocr"].full_instruction(player, allow_thinking=False)
    thinking = TASKS["expert-ocr"].full_instruction(player, allow_thinking=True)
    assert tag in thinking and tag not in plain and thinking.endswith(plain)


def test_masks_are_resized_with_their_pictures():
    found = [instance.truth for instance in instances("defuser-grounding-coordinates")]
    masks = [truth for truth in found if isinstance(truth, np.ndarray)]
    assert masks and all(mask.shape == (240, 320) and mask.dtype == bool and mask.any() for mask in masks)


def test_a_mask_of_another_number_of_pixels_is_refused():
    with pytest.raises(ConfigError, match="a mask must have 3 x 2 pixels, found 5"):
        resize_mask("01010", (3, 2), (6, 4))


def test_state_tasks_have_a_name_per_split():
    names = {task_named("defuser-state-recognition-vqa-mcq", split).name for split in STATE_SPLITS}
    assert len(names) == 3
    with pytest.raises(ConfigError, match="the state split must be one of"):
        task_named("defuser-state-recognition-vqa-mcq", "exploded")
    with pytest.raises(ConfigError, match="a static task must be one of"):
        task_named("expert-vqa-without-manual")


def test_more_attempts_come_after_the_first_ones():
    assert how_do_you_rows(3)[:11] == how_do_you_rows(1)
    assert len({row["component"] for row in how_do_you_rows(1)}) == 11
