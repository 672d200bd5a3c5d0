"""A run with a model, through the commands: played against a server here, then again from its cassettes alone."""

import pytest
from gptnt.llm.workbench import CLICK_A, SAY, tagged
from llm.server import KEY, USAGE, completion, serving
from rowproof.gptnt.recordings import recording_paths

PLAYER = """
capabilities:
  player_name: local
  thinking_method: thinking-out-loud
  structured_output_mode: null
  interaction_location_method: set-of-marks
  tokens_per_image: 200
  usage_limits: {input_tokens_limit: 100000, output_tokens_limit: 10000}
identity: {display_name: Local, organisation: here, is_os_model: true, url: null}
model:
  id: local-1
  provider: here
  prices: {input_per_million: 2.0, output_per_million: 8.0, cached_input_per_million: 0.5}
"""
RUN = """
spec_version: 2
suites: [multi-self-sync]
rooms: 1
players:
  - {player: local, count: 2}
"""


def talker(body):
    if "You are the Expert" in body["messages"][0]["content"]:
        return completion(tagged(SAY))
    return completion(tagged(CLICK_A))


@pytest.fixture
def call(command, project):
    """The command line of a project with a model and a run of it."""
    (project / "config/players/local.yaml").write_text(PLAYER)
    (project / "config/runs/model.yaml").write_text(RUN)
    return command


def one_mission(call, project):
    """Keep a single spec: a run plays what it finds."""
    assert call("generate", "runs/model.yaml")[0] == 0
    for path in sorted((project / "output/experiment_specs/model").glob("*.json"))[1:]:
        path.unlink()


@pytest.mark.slow
def test_a_run_is_recorded_and_played_again_without_server_and_key(call, project, monkeypatch):
    with serving(talker) as server:
        provider = f"base_url: {server.base_url}\napi_key_variable: MODEL_KEY\nlimits: {{concurrent_requests: 1}}\n"
        (project / "config/providers/here.yaml").write_text(provider)
        one_mission(call, project)
        code, _, err = call("run", "runs/model.yaml")
        assert code == 2 and "MODEL_KEY" in err and not server.requests, "without a key nothing is asked"
        monkeypatch.setenv("MODEL_KEY", KEY)
        code, out, _ = call("doctor", "--live", "runs/model.yaml")
        assert code == 0 and "answered" in out
        asked = len(server.requests)
        code, out, _ = call("run", "--record", "cassettes", "runs/model.yaml")
        assert code == 0 and "1 games" in out and len(server.requests) > asked
    first = {path.name: path.read_bytes() for path in recording_paths(project / "output")}
    assert len(first) == 2
    monkeypatch.delenv("MODEL_KEY")
    monkeypatch.setenv("EXPERIMENT_RECORDER_OUTPUTS", str(project / "again"))
    code, _, _ = call("run", "--replay", "cassettes", "runs/model.yaml")
    assert code == 0
    assert {path.name: path.read_bytes() for path in recording_paths(project / "again")} == first
    for path in project.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path


@pytest.mark.slow
def test_what_models_cost_is_in_the_results(call, project, monkeypatch):
    with serving(talker) as server:
        (project / "config/providers/here.yaml").write_text(
            f"base_url: {server.base_url}\napi_key_variable: MODEL_KEY\n"
        )
        monkeypatch.setenv("MODEL_KEY", KEY)
        one_mission(call, project)
        assert call("run", "runs/model.yaml")[0] == 0
    assert call("build-db")[0] == 0
    out = call("results")[1]
    assert "cost per run" in out


def test_what_a_picture_costs_is_measured_and_noted_in_its_line(call, project, monkeypatch):
    def counting(body):
        content = body["messages"][-1]["content"]
        pictures = 0 if isinstance(content, str) else sum(part["type"] == "image_url" for part in content)
        assert body["max_completion_tokens"] == 16
        return completion("ready", usage={**USAGE, "prompt_tokens": 20 + 765 * pictures})

    with serving(counting) as server:
        (project / "config/providers/here.yaml").write_text(
            f"base_url: {server.base_url}\napi_key_variable: MODEL_KEY\n"
        )
        monkeypatch.setenv("MODEL_KEY", KEY)
        code, out, _ = call("measure-tokens-per-image", "local")
    assert code == 0 and "765 tokens per image" in out
    path = project / "config/players/local.yaml"
    assert path.read_text() == PLAYER.replace("tokens_per_image: 200", "tokens_per_image: 765")


def test_a_script_has_no_picture_to_measure(call):
    code, _, err = call("measure-tokens-per-image", "scripted")
    assert code == 2 and "must be a model" in err
