"""What a proposer is told first."""

import pytest
from rowproof.errors import ConfigError
from rowproof.speedrun import prompts
from rowproof.speedrun.prompts import build_prompt, render
from rowproof.speedrun.records_config import Record, read_arguments
from speedrun.dialogue.workbench import CODE, task

# Published rows name these digests; another wording is another version, in a folder of its own.
SHA256 = {
    "cpu-mini": "d740c82dacdb8258e09e59c769145d6b33109afb3595a810546941ff5fa043b5",
    "gpu": "26d88adadbfba69952a50b9edc182731d2d77c0e754424a329b03e1d8a0ae413",
}


def gpu_prompt(**arguments):
    record = task().record.model_copy(
        update={"track": "gpu", "record_id": "gpu/T0", "wallclock_ms": 175_000.0, "hardware_class": "h100x8"}
    )
    return build_prompt(
        Record.model_validate(record.model_dump()), CODE, read_arguments({"track": "gpu", **arguments}, "a")
    )


def test_published_texts_do_not_change():
    assert {"cpu-mini": task().prompt.sha256, "gpu": gpu_prompt().sha256} == SHA256


@pytest.mark.parametrize(
    "said",
    [
        "at most 1.35 nats per token",
        "131,072 tokens",
        "timed in the same job as yours",
        "Leave the streams of training and validation tokens as they are",
        "tokens.read(offset, length)",
        "Whatever the script prints is ignored",
        "An attempt to manipulate the measurement scores 0, and is published as one.",
        "--- a/train_gpt.py",
    ],
)
def test_the_system_text_says(said):
    assert said in task().prompt.system


def test_the_user_text_holds_the_script_as_it_is():
    odd = 'price = "$threshold and ${x} and $$"\n'
    record, _, arguments = task()
    assert f"```python\n{odd}```" in build_prompt(record, odd, arguments).user


def test_the_prompt_of_the_gpu_track_gives_the_stored_time_and_says_that_numbers_are_self_reported():
    prompt = gpu_prompt(nproc_per_node=4)
    assert "The base script takes 175000 ms on h100x8." in prompt.system
    assert "4 GPUs" in prompt.system
    assert "self-reported" in prompt.system
    assert "ignored" not in prompt.system


def test_the_argument_system_prompt_replaces_the_system_text_and_no_other():
    prompt = task(system_prompt="Be quick. $code").prompt
    assert (prompt.system, prompt.version) == ("Be quick. $code", "custom")
    assert prompt.user == task().prompt.user
    assert prompt.sha256 != task().prompt.sha256


def test_a_text_with_other_places_is_refused():
    with pytest.raises(ConfigError, match="must have the places none, found detail"):
        render("not-parsed", {})


def test_a_missing_text_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(prompts, "FOLDER", tmp_path)
    with pytest.raises(ConfigError, match=r"v1/nothing\.md: must be a readable text"):
        render("nothing", {})
