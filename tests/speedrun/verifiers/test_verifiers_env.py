"""The environment for verifiers: rollouts against a server on loopback, scored by our rules."""

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

vf = pytest.importorskip("verifiers", reason="needs the extra rowproof[verifiers]")

from helpers import ROOT  # noqa: E402
from llm.server import completion, serving  # noqa: E402
from rowproof.errors import ConfigError, RowproofError  # noqa: E402
from rowproof.speedrun import verifiers_env  # noqa: E402
from rowproof.speedrun.dialogue import encode_transcript, replay  # noqa: E402
from rowproof.speedrun.records_config import read_arguments  # noqa: E402
from rowproof.speedrun.referee.sandbox import available_mode, last_core  # noqa: E402
from rowproof.speedrun.verifiers_env import build_environment, load_environment  # noqa: E402
from speedrun.dialogue.workbench import (  # noqa: E402
    CODE,
    CRASHING,
    FASTER,
    FASTER_STILL,
    UNKNOWN_LINE,
    Runs,
    patch,
    task,
)
from verifiers.types import ClientConfig  # noqa: E402

KEY = "sk-no-key-at-all"


def rollout(monkeypatch, answers, runs=None, max_retries=0, **arguments):
    monkeypatch.setenv("VF_TEST_KEY", KEY)
    environment = build_environment(task(**arguments), runs or Runs())
    with serving([completion(answer) for answer in answers]) as server:
        found = environment.evaluate_sync(
            client=ClientConfig(api_base_url=server.base_url, api_key_var="VF_TEST_KEY"),
            model="m-1",
            num_examples=1,
            rollouts_per_example=1,
            max_retries=max_retries,
            state_columns=["transcript"],
        )
    (output,) = found["outputs"]
    return output, server.requests


def test_one_turn_is_a_single_turn_environment_and_earns_our_reward(monkeypatch):
    output, requests = rollout(monkeypatch, [FASTER], max_turns=1)
    assert isinstance(build_environment(task(max_turns=1), Runs()), vf.SingleTurnEnv)
    assert output["reward"] == output["transcript"]["reward"] == pytest.approx(1.7)
    assert output["metrics"]["reward_code_variant"] == pytest.approx(2.3)
    assert [message["role"] for message in requests[0]["messages"]] == ["system", "user"]
    assert requests[0]["messages"][1]["content"] == task().prompt.user


def test_several_turns_get_our_replies_and_stack(monkeypatch):
    runs = Runs()
    output, requests = rollout(monkeypatch, [UNKNOWN_LINE, FASTER, FASTER_STILL], runs, max_turns=3)
    assert runs.calls == [("feedback", 450), ("final", 300)]
    assert output["reward"] == pytest.approx(0.3 + 0.7 * 3)
    sent = [message["content"] for message in requests[2]["messages"]]
    assert sent == [message["content"] for message in output["transcript"]["messages"][:6]]
    data = encode_transcript(output["transcript"])
    assert encode_transcript(replay(data, task().record, CODE, "rollout")) == data


def test_only_the_last_turn_counts(monkeypatch):
    output, _ = rollout(monkeypatch, [FASTER, CRASHING], max_turns=2)
    assert output["reward"] == 0.0
    assert output["metrics"]["best_turn_reward"] == pytest.approx(1.7)


def test_the_row_has_the_published_fields_and_the_rollout_does_not_change_them(monkeypatch):
    output, _ = rollout(monkeypatch, [FASTER, FASTER_STILL], max_turns=2)
    wanted = {"record_index": 0, "wallclock_ms": None, "code": CODE, "val_loss_threshold": 1.35}
    assert output["info"] == wanted


@pytest.mark.parametrize("max_turns", [1, 2])
def test_a_failure_of_the_harness_is_an_error_and_no_zero_of_the_model(monkeypatch, max_turns):
    def broken(patched, phase):
        raise RowproofError("the sandbox must hold")

    output, _ = rollout(monkeypatch, [FASTER] * 2, broken, max_turns=max_turns)
    assert "the sandbox must hold" in json.dumps(output["error"])


def test_the_parser_takes_the_patch_out(monkeypatch):
    parser = build_environment(task(), Runs()).parser
    answer = [{"role": "assistant", "content": f"<think>so</think>\n{FASTER}\n\n"}]
    assert parser.parse_answer(answer) == FASTER
    assert parser.parse_answer([]) is None


# ---- arguments -------------------------------------------------------------------------------------------------


def test_the_published_arguments_are_there_with_their_defaults():
    found = {name: p.default for name, p in inspect.signature(load_environment).parameters.items()}
    published = {
        "system_prompt": None,
        "max_turns": 1,
        "use_think": True,
        "dataset_name": "leloy/nanogpt-speedrun",
        "dataset_split": "train",
    }
    assert found | published == found
    # Where the CPU track differs, None stands for the default of the track.
    for name, default in {"recalc_wallclock": False, "num_training_runs_per_attempt": 1, "nproc_per_node": 8}.items():
        assert found[name] is None
        assert getattr(read_arguments({"track": "gpu"}, "a"), name) == default


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"recalc_wallclock": "false"}, "recalc_wallclock must be true on the track cpu-mini"),
        ({"recalc_wallclock": "perhaps"}, "must be true or false, 1 or 0, yes or no"),
        ({"nproc_per_node": 8}, "nproc_per_node must be 1 on the track cpu-mini"),
        ({"track": "gpu"}, "track must be cpu-mini in this environment"),
        ({"profile": "quick"}, "profile must be full or smoke"),
        ({"record": "R99"}, "record must be one of config/speedrun/records"),
        ({"max_turns": 0}, "max_turns"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, said):
    with pytest.raises(ConfigError, match=said):
        load_environment(**arguments)


def test_the_loader_of_verifiers_finds_the_environment(monkeypatch):
    asked = {}

    def referee(root, arguments, profile):
        asked.update(profile=profile, arguments=arguments)

    monkeypatch.setattr(verifiers_env, "_referee", referee)
    environment = vf.load_environment(
        "nanogpt-speedrun", profile="smoke", recalc_wallclock="true", max_turns=4, n_pairs=2, pass_threshold=0.9
    )
    assert environment.env_id == "nanogpt-speedrun"
    assert (asked["arguments"].recalc_wallclock, asked["arguments"].n_pairs) == (True, 2)
    assert (environment.max_turns, environment.pass_threshold) == (4, 0.9)


# ---- end to end ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_runner_gives_the_reward_of_our_referee(tmp_path):
    pytest.importorskip("torch", reason="training needs the extra rowproof[training]")
    if available_mode("strict", last_core()) != "strict":
        pytest.skip("this machine lets nobody make namespaces, and the test needs the strict sandbox")
    # The same weights and the same work, so that only noise parts the times.
    answers = [patch("    log_every = 50", "    log_every = 1000"), ""]
    arguments = {"profile": "smoke", "n_seeds": 1, "n_pairs": 1, "max_turns": 2, "score_turn": "best"}
    runner = Path(sys.executable).with_name("vf-eval")
    with serving([completion(answer) for answer in answers]) as server:
        done = subprocess.run(
            [
                *(runner, "nanogpt-speedrun", "-a", json.dumps(arguments), "-m", "m-1", "-b", server.base_url),
                *("-k", "VF_TEST_KEY", "-n", "1", "-r", "1", "-s", "-o", tmp_path, "-C", "transcript"),
                *("--disable-tui", "--disable-env-server", "--max-retries", "0"),
            ],
            env={**os.environ, "VF_TEST_KEY": KEY, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=600,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    (path,) = tmp_path.rglob("results.jsonl")
    (line,) = path.read_text().splitlines()
    result = json.loads(line)
    transcript = result["transcript"]
    assert [turn["event"] for turn in transcript["turns"]] == ["run_succeeded", "empty"], transcript["turns"]
    assert transcript["outcome"] == "ok", transcript
    assert result["reward"] == transcript["reward"] > 0.3
    final = transcript["turns"][0]["final"]
    assert result["reward"] == pytest.approx(0.3 + 0.7 * final["wall_ratio"], abs=1e-6)
    smoke = read_arguments({key: value for key, value in arguments.items() if key != "profile"}, "arguments")
    record, code = verifiers_env._smoke_record(ROOT, smoke)
    assert replay(encode_transcript(transcript), record, code, path.name)["reward"] == result["reward"]
