"""Runs: plans, answers, resume, scores and metadata."""

import json

import pytest
from gptnt.statics.workbench import NORMALISED, QUICK, SMALL, Puppet, folders, read, run
from rowproof.errors import ConfigError
from rowproof.gptnt.room import Provenance
from rowproof.gptnt.statics.players import ModelPlayer, OraclePlayer, RandomPlayer, Reply, split_reasoning
from rowproof.gptnt.statics.run import PREDICTION, run_static
from rowproof.gptnt.statics.tasks import STATE_SPLITS, STATE_TASK, TASKS
from rowproof.llm.calls import CallError, Usage

pytestmark = pytest.mark.usefixtures("small")
ALL = [(name, "state-change") for name in TASKS if not name.startswith(STATE_TASK)]
ALL += [(STATE_TASK, split) for split in STATE_SPLITS]
ROWS = 11


@pytest.mark.parametrize(("name", "split"), ALL)
def test_the_oracle_is_right_in_every_task(name, split, tmp_path):
    for player in (OraclePlayer(), OraclePlayer(NORMALISED)):
        assert run(name, player, tmp_path, state_split=split)[0] == 0
    for folder in tmp_path.glob("*/*/*"):
        assert (folder / "run_meta.json").is_file()
        if name == "how-do-you":
            continue
        for scorer, values in read(folder, "metrics.json").items():
            assert set(values.values()) == {0.0 if scorer.endswith("distance") else 1.0}, scorer


def test_random_answers_are_the_same_whenever_they_are_drawn(tmp_path):
    run("defuser-grounding-coordinates", RandomPlayer(3), tmp_path / "a")
    run("defuser-grounding-coordinates", RandomPlayer(3), tmp_path / "b", limit=4)
    run("defuser-grounding-coordinates", RandomPlayer(3), tmp_path / "b")
    run("defuser-grounding-coordinates", RandomPlayer(4), tmp_path / "c")
    made = {key: folders(tmp_path / key, "defuser-grounding-coordinates")[0] for key in "abc"}
    files = {key: [path.read_bytes() for path in sorted(made[key].glob("prediction_*"))] for key in "abc"}
    assert files["a"] == files["b"] != files["c"] and made["a"].name == made["b"].name != made["c"].name


def test_a_model_is_given_instruction_and_parts_and_nothing_else(tmp_path, monkeypatch):
    asked = []

    def ask(instruction, parts):
        asked.append((instruction, parts))
        return "<think>hm</think> B", Usage(input_tokens=7, output_tokens=2)

    class Configured:
        """A player as its files describe it."""

        name = "model"
        model_label = "vendor/model-1"
        capabilities = OraclePlayer().capabilities

        class model:
            class settings:
                model_dump = staticmethod(lambda mode: {"temperature": 0.6})

    assert run(QUICK, ModelPlayer(Configured(), ask), tmp_path, limit=1)[0] == 0
    task = TASKS[QUICK]
    instance = task.instance(0, SMALL(task.dataset, task.split).rows[0], Configured.capabilities)
    assert asked == [(task.full_instruction(Configured.capabilities, True), instance.parts)]
    assert read(folders(tmp_path, QUICK)[0], "prediction_0.json") == {
        "index": 0,
        "usage": {"input_tokens": 7, "output_tokens": 2},
        "model": "vendor/model-1",
        "output": "B",
        "thoughts": "hm",
        "raw_output": "<think>hm</think> B",
        "error": None,
        "exception": None,
    }


def test_a_plan_tells_all_and_asks_nothing(tmp_path):
    puppet = Puppet()
    run(QUICK, puppet, tmp_path, limit=2)
    before = sorted(tmp_path.rglob("*"))
    asked = len(puppet.asked)
    code, said = run(QUICK, puppet, tmp_path, throw=False, limit=5)
    text = "\n".join(said)
    assert code == 0 and len(puppet.asked) == asked and sorted(tmp_path.rglob("*")) == before
    revision = SMALL("local/defuser-vqa-mc", "test").revision
    for part in (
        f"Task: {QUICK}",
        f"Data set: local/defuser-vqa-mc, split test, revision {revision}",
        "Instances: 5 of 11 (limited to the first 5)",
        "Answer with its letter alone",
        "[picture, ",
        "A. ",
        f"Output folder: {folders(tmp_path, QUICK)[0]}",
        "Predictions there: 2",
        "To ask: 3 requests, about ",
    ):
        assert part in text, part


def test_answers_are_asked_for_once(tmp_path):
    puppet = Puppet()
    run(QUICK, puppet, tmp_path, limit=3)
    run(QUICK, puppet, tmp_path)
    run(QUICK, puppet, tmp_path)
    assert [index for index, *_ in puppet.asked] == list(range(ROWS))


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]\n", b'{"index": 1}\n', b"\xff", None],
    ids=["empty", "cut", "list", "keys", "bytes", "other"],
)
def test_a_damaged_answer_is_asked_for_again(damage, tmp_path):
    puppet = Puppet()
    run(QUICK, puppet, tmp_path, limit=3)
    path = folders(tmp_path, QUICK)[0] / "prediction_1.json"
    whole = path.read_bytes()
    path.write_bytes((path.parent / "prediction_2.json").read_bytes() if damage is None else damage)
    run(QUICK, puppet, tmp_path, limit=3)
    assert [index for index, *_ in puppet.asked] == [0, 1, 2, 1] and path.read_bytes() == whole


def test_metadata(tmp_path):
    run("expert-vqa-no-manual", Puppet(temperature=0.5), tmp_path, allow_thinking=False)
    meta = read(folders(tmp_path, "expert-vqa-no-manual")[0], "run_meta.json")
    assert meta["model_name"] == "puppet-1" and meta["player_name"] == "puppet"
    assert meta["run_date"] == "2026-01-02T03:04:05+00:00"
    statics = meta["statics"]
    assert statics["hf_repo_id"] == "local/expert-vqa" and statics["dataset_split"] is None
    assert statics["resolved_revision"] == SMALL("local/expert-vqa", None).revision
    assert (statics["n_instances"], statics["n_failed"], statics["limit"]) == (ROWS, 0, None)
    assert meta["provenance"] == {"version": "1.0", "commit": None, "assets_digest": ""}
    assert meta["capabilities"]["player_name"] == "puppet" and meta["setup"] == {"temperature": 0.5}


@pytest.mark.parametrize("usage", [{"input": 3, "zero": 0, "details": {"cached": 2}}, None])
def test_usage_is_flat_and_without_zeros(usage, tmp_path):
    run(QUICK, Puppet(lambda _: Reply("A", usage)), tmp_path, limit=1)
    found = read(folders(tmp_path, QUICK)[0], "prediction_0.json")["usage"]
    assert found == ({"input": 3, "details.cached": 2} if usage else {})


def test_a_hostile_answer_is_recorded(tmp_path):
    text = "\ud800\x00\u202e<script>" + "x" * 100_000
    assert run(QUICK, Puppet(text), tmp_path, limit=1)[0] == 0
    found = read(folders(tmp_path, QUICK)[0], "prediction_0.json")
    assert found["output"] == "?" + text[1:]


def test_errors_are_told_without_paths(tmp_path):
    def fail(instance):
        if instance.index:
            raise CallError("rate_limited", "too many requests") if instance.index == 1 else KeyError("x")
        return "A"

    code, _ = run(QUICK, Puppet(fail), tmp_path, limit=3)
    folder = folders(tmp_path, QUICK)[0]
    call, other = read(folder, "prediction_1.json"), read(folder, "prediction_2.json")
    assert code == 1 and list(call) == list(PREDICTION)
    assert call["error"] == ["rate_limited"] and call["exception"]["type"] == "CallError" and call["output"] == ""
    assert other["exception"]["frames"][-1]["function"] == "fail"
    assert "/" not in json.dumps(other["exception"])


@pytest.mark.parametrize("output", ["A", ""])
def test_how_do_you_is_asked_at_once_and_grows_with_attempts(output, tmp_path):
    puppet = Puppet(output)
    assert run("how-do-you", puppet, tmp_path, throw=False)[0] == 0
    assert run("how-do-you", puppet, tmp_path, attempts=2)[0] == 0
    assert len(puppet.asked) == 22
    (folder,) = folders(tmp_path, "how-do-you")
    answers = read(folder, "how_do_you.json")
    assert len(answers) == 11
    assert answers["Maze"] == [{"prompt": "How do you solve the module Mazes?", "response": output}] * 2
    assert not (folder / "metrics.json").exists()


@pytest.mark.parametrize("options", [{"limit": 0}, {"limit": -1}, {"attempts": 0}])
def test_senseless_numbers_are_refused(options, tmp_path):
    with pytest.raises(ConfigError, match="must be 1 or more"):
        run(QUICK, Puppet(), tmp_path, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "a b"])
def test_a_player_must_have_a_name_for_a_folder(name, tmp_path):
    puppet = Puppet()
    puppet.name = name
    with pytest.raises(ConfigError, match="the name of a player must be a file name"):
        run(QUICK, puppet, tmp_path)
    assert not list(tmp_path.iterdir())


def test_lines_go_to_the_user_by_default(tmp_path, capsys):
    assert run_static(QUICK, Puppet(), tmp_path, Provenance("1.0")) == 0
    assert capsys.readouterr().out.startswith(f"Task: {QUICK}\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("B", ("B", None)),
        ("<think>a</think>B", ("B", "a")),
        ("<thought>a</thought><action>B</action>", ("B", "a")),
        ("<thought>a</thought> words <action> B </action> more", ("B", "a")),
        ("<THINK>a</THINK>\n<think>b</think>\nB", ("B", "a\nb")),
        ("<think>never closed", ("", "never closed")),
        ("<action>B", ("B", None)),
        ("never opened</think>B", ("B", "never opened")),
        ("a <b and c>", ("a <b and c>", None)),
    ],
)
def test_reasoning_is_set_apart(text, expected):
    assert split_reasoning(text) == expected
