"""Proposers."""

import json

import pytest
from rowproof.errors import ConfigError, RecordError
from rowproof.llm.calls import CallError, Reply, Usage
from rowproof.llm.cassette import Cassette, CassetteMiss
from rowproof.speedrun.dialogue import play
from rowproof.speedrun.players import FilePlayer, LLMPlayer, imported_answers
from speedrun.dialogue.workbench import FASTER, FASTER_STILL, Runs, task


class Live:
    """A model that answers from a list; an error in it is raised."""

    def __init__(self, *answers):
        self.answers, self.requests = list(answers), []

    def ask(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Reply(answer, finish_reason="stop", usage=Usage(100, 20), served_model="served-1")


def test_a_patch_file_is_handed_in(tmp_path):
    (tmp_path / "a.diff").write_text(FASTER)
    transcript = play(task(max_turns=1), FilePlayer([tmp_path / "a.diff"]), Runs())
    assert transcript["outcome"] == "ok"


def test_patch_files_are_handed_in_one_a_turn(tmp_path):
    paths = [tmp_path / "a.diff", tmp_path / "b.diff"]
    for path, text in zip(paths, [FASTER, FASTER_STILL], strict=True):
        path.write_text(text)
    assert "+steps = 300" in play(task(), FilePlayer(paths), Runs())["diff"]


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_patch_file_that_cannot_be_read_is_refused(tmp_path, content):
    if content is not None:
        (tmp_path / "a.diff").write_bytes(content)
    with pytest.raises(ConfigError, match=r"a\.diff: must be"):
        FilePlayer([tmp_path / "a.diff"])


def test_no_patch_file_is_refused():
    with pytest.raises(ConfigError, match="at least one patch file"):
        FilePlayer([])


def test_a_model_gets_the_whole_dialogue():
    live = Live(FASTER, FASTER_STILL)
    transcript = play(task(max_turns=2), LLMPlayer("m-1", live, {"temperature": 0.5}), Runs())
    assert transcript["outcome"] == "ok"
    first, second = live.requests
    assert [message.role for message in first.messages] == ["system", "user"]
    assert [message.role for message in second.messages] == ["system", "user", "assistant", "user"]
    assert [message.text for message in second.messages] == [m["content"] for m in transcript["messages"][:4]]
    assert second.parameters == {"temperature": 0.5}


def test_a_dialogue_with_a_model_replays_from_its_cassette(tmp_path):
    path = tmp_path / "calls.jsonl"
    live = play(task(max_turns=2), LLMPlayer("m-1", Cassette(path, Live(FASTER, FASTER_STILL)), {}), Runs())
    again = play(task(max_turns=2), LLMPlayer("m-1", Cassette(path), {}), Runs())
    assert again == live
    with pytest.raises(CassetteMiss):
        play(task(max_turns=2), LLMPlayer("m-2", Cassette(path), {}), Runs())


def test_what_a_model_spent_is_kept():
    player = LLMPlayer("m-1", Live(FASTER), {"seed": 1})
    play(task(max_turns=1), player, Runs())
    usage = {"input_tokens": 100, "output_tokens": 20, "cached_tokens": 0, "reasoning_tokens": 0}
    call = {"finish_reason": "stop", "served_model": "served-1", "retries": {}, "usage": usage}
    assert player.describe() == {"kind": "model", "name": "m-1", "parameters": {"seed": 1}, "calls": [call]}


def test_a_filtered_answer_is_an_empty_patch():
    player = LLMPlayer("m-1", Live(CallError("content_filter", "no")), {})
    assert play(task(max_turns=1), player, Runs())["outcome"] == "empty_patch"
    assert player.calls[0]["finish_reason"] == "content_filter"


def test_a_failed_call_is_no_answer_of_the_model():
    runs = Runs()
    with pytest.raises(CallError):
        play(task(max_turns=1), LLMPlayer("m-1", Live(CallError("server_error", "down")), {}), runs)
    assert runs.calls == []


def test_answers_of_a_results_file_are_taken_and_nothing_else():
    rollout = {
        "completion": [{"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}],
        "reward": 99.0,
        "info": {"code": "other"},
    }
    other = {"completion": [{"role": "assistant", "content": "c"}]}
    data = "\n".join(map(json.dumps, [rollout, other])).encode()
    assert imported_answers(data, "results.jsonl") == [["a"], ["c"]]


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b"{}", b'{"completion": "text"}', b'{"completion": [{"role": "assistant", "content": null}]}']
)
def test_a_malformed_results_file_is_refused(line):
    with pytest.raises(RecordError, match=r"results\.jsonl:1: must be a rollout"):
        imported_answers(line, "results.jsonl")
