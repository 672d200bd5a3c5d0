"""Models as proposers, rollouts of others, and the commands around them."""

import json

import pytest
from helpers import ROOT
from rowproof.errors import ConfigError
from rowproof.llm.calls import CallError, Reply, Usage
from rowproof.speedrun import models
from rowproof.speedrun.corpus import SHARDS
from rowproof.speedrun.dialogue import replay
from rowproof.speedrun.models import load_model
from rowproof.speedrun.setups import find_record
from speedrun.commands.workbench import FASTER, TOO_FAST, call, patch, with_steps

MODEL = "gpt-5-2"
SECOND = patch("    num_iterations = 450", "    num_iterations = 300")


class Live:
    """A model that answers from a list; an error in it is raised. What it was asked is kept."""

    def __init__(self):
        self.answers, self.requests = [], []

    def client(self, provider, environment, policy, limiter):
        assert provider.api_key_variable == "OPENAI_API_KEY"
        return self

    def ask(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Reply(answer, finish_reason="stop", usage=Usage(100, 20), served_model="served-1")


@pytest.fixture
def live(monkeypatch):
    made = Live()
    monkeypatch.setattr(models, "Client", made.client)
    monkeypatch.setenv("ROWPROOF_AUDIT_SALT", "a salt of tests that is long enough")
    return made


def play(tmp_path, *options, name="out", arguments="n_pairs: 1\nmax_turns: 2\n"):
    (tmp_path / "arguments.yaml").write_text(arguments)
    given = ["--arguments", tmp_path / "arguments.yaml", "--output", tmp_path / name]
    return call("play", MODEL, *given, *options), tmp_path / name / MODEL


def test_a_model_proposes_is_answered_and_is_scored(world, live, tmp_path):
    live.answers = [FASTER, SECOND]
    code, folder = play(tmp_path)
    row = json.loads((folder / "row.json").read_bytes())
    assert (code, row["timed"]["wall_ratio"]) == (0, 3.0)
    assert row["verifiable"]["proposer"] == {"kind": "model", "name": MODEL, "turns": 2}
    completion = json.loads((folder / "completion.json").read_bytes())
    assert row["verifiable"]["prompt_sha256"] == completion["prompt"]["sha256"]
    assert [message["role"] for message in completion["messages"]] == ["system", "user", "assistant", "user",
                                                                         "assistant"]  # fmt: skip
    asked = completion["proposer"]["model"]
    assert (asked["name"], len(asked["calls"])) == ("gpt-5.2", 2)
    assert asked["parameters"] == {
        "max_completion_tokens": 16_000,
        "temperature": 0.6,
        "reasoning_effort": "minimal",
    }
    assert live.requests[0].model == "gpt-5.2"


def test_feedback_and_score_have_other_seeds(world, live, tmp_path):
    live.answers = [FASTER, SECOND]
    play(tmp_path)
    assert {seed for steps, seed in world.trained if steps == 450} == {200, 201, 202}
    assert {seed for steps, seed in world.trained if steps == 300} == {100, 101, 102}


def test_a_dialogue_replays_from_its_cassette_without_a_model(world, live, tmp_path):
    live.answers = [FASTER, SECOND]
    _, first = play(tmp_path, "--record", tmp_path / "tapes")
    code, second = play(tmp_path, "--replay", tmp_path / "tapes", name="again")
    assert (code, len(live.requests)) == (0, 2)
    assert (tmp_path / f"tapes/speedrun-R0-{MODEL}.jsonl").is_file()
    for name in ("row.json", "completion.json", "dialogue.json"):
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


def test_the_transcript_of_an_attempt_replays(world, live, tmp_path):
    live.answers = [TOO_FAST, with_steps(450)]
    _, folder = play(tmp_path, arguments="n_pairs: 1\nmax_turns: 2\non_failed_turn: rollback\n")
    record, code = find_record(ROOT, "cpu-mini", "R0")
    data = (folder / "dialogue.json").read_bytes()
    assert replay(data, record, code, "dialogue.json")["outcome"] == json.loads(data)["outcome"]


def test_a_model_that_cannot_be_reached_is_no_zero(world, live, tmp_path, capsys):
    live.answers = [CallError("server_error", "no connection")]
    code, folder = play(tmp_path)
    assert (code, folder.exists()) == (2, False)
    assert "no connection" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such-model"], "config/players must have a file for 'no-such-model'"),
        (["../providers/openai"], "config/players must have a file"),
        (["scripted"], "must be a model with id and provider"),
        ([MODEL, "--provider", "nowhere"], "config/providers must have a file for 'nowhere'"),
        ([MODEL, "--replay", "no-such-folder"], "there must be a cassette to replay"),
        ([MODEL, "--replay", "a", "--record", "b"], "choose one"),
        ([MODEL, "--max-tokens", "0"], "--max-tokens must be 1 or more"),
        ([MODEL], "these environment variables must be set to reach the model: OPENAI_API_KEY"),
    ],
)
def test_bad_input_ends_with_2_before_anything_runs(world, tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert call("play", *arguments, "--output", tmp_path / "out") == 2
    assert said in capsys.readouterr().err
    assert world.trained == [] and not (tmp_path / "out").exists()


def test_a_key_in_a_provider_file_is_not_shown(tmp_path):
    for folder, name, text in (
        ("players", "m", "model: {id: m-1, provider: p}\n"),
        ("providers", "p", "base_url: https://x.example/v1\napi_key_variable: sk-secret-12345\n"),
    ):
        path = tmp_path / "config" / folder / f"{name}.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    with pytest.raises(ConfigError, match="must be a provider that rowproof doctor accepts") as error:
        load_model(tmp_path, "m")
    assert "sk-secret" not in str(error.value)


@pytest.mark.parametrize("path", sorted((ROOT / "config/players").glob("[!_]*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_model_can_be_asked(path):
    if "script:" in path.read_text():
        pytest.skip("a script proposes no patches")
    model, provider = load_model(ROOT, path.stem)
    assert model.id and provider.api_key_variable


# ---- rollouts of others ----------------------------------------------------------------------------------------------


def results(tmp_path):
    said = [{"role": "assistant", "content": FASTER}, {"role": "user", "content": "go on"}]
    said.append({"role": "assistant", "content": SECOND})
    lines = [{"completion": said, "reward": 99.0}, {"completion": said[:1], "reward": 99.0, "info": {"code": "x"}}]
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_rollouts_are_imported_as_answers_and_scored_anew(world, tmp_path, capsys):
    assert call("import", results(tmp_path), "--output", tmp_path / "in") == 0
    assert "no reward was taken over" in capsys.readouterr().out
    answers = sorted((tmp_path / "in").iterdir())
    assert [path.name for path in answers] == [
        *("rollout-000-turn-1.txt", "rollout-000-turn-2.txt", "rollout-001-turn-1.txt"),
    ]
    assert call("score", *answers[:2], "--output", tmp_path / "out") == 0
    assert json.loads((tmp_path / "out/row.json").read_bytes())["timed"]["wall_ratio"] == 3.0


@pytest.mark.parametrize("content", ["", "{}\n", "not json\n", '{"completion": []}\n'])
def test_a_results_file_without_answers_is_refused(tmp_path, content):
    (tmp_path / "results.jsonl").write_text(content)
    assert call("import", tmp_path / "results.jsonl", "--output", tmp_path / "in") == 2
    assert not (tmp_path / "in").exists()


def test_an_import_into_a_used_folder_is_refused(tmp_path, capsys):
    path = results(tmp_path)
    assert call("import", path, "--output", tmp_path) == 2
    assert "must be an empty folder" in capsys.readouterr().err


# ---- records and corpus ----------------------------------------------------------------------------------------------


def test_records_are_listed(capsys):
    assert call("list") == 0
    names = [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()]
    assert names == [f"R{number}" for number in range(9)]


@pytest.mark.slow
def test_a_corpus_is_generated_once_and_checked_afterwards(tmp_path, capsys):
    assert call("corpus", tmp_path / "corpus") == 0
    assert len(capsys.readouterr().out.splitlines()) == len(SHARDS)
    path = tmp_path / "corpus" / SHARDS[0].name
    path.write_bytes(path.read_bytes()[:-2] + b"\0\0")
    assert call("corpus", tmp_path / "corpus") == 2
    assert "write the corpus again" in capsys.readouterr().err
