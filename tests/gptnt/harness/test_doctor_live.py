"""The doctor's one request per player, against a server on this machine."""

import pytest
from gptnt.harness.workbench import edit
from llm.server import KEY, completion, serving
from rowproof.gptnt.doctor import Report, check_live, check_players
from rowproof.gptnt.runs import RosterEntry

ENVIRONMENT = {"OPENAI_API_KEY": KEY}


def live(project, answer, player="gpt-5-2", environment=ENVIRONMENT):
    """The live box of a player whose provider gives ``answer``, and the requests that were made."""
    with serving(lambda body: answer) as server:
        edit(project, "config/providers/openai.yaml", "https://api.openai.com/v1", server.base_url)
        rows = check_players(project, [RosterEntry(player=player)], environment)
        (row,) = check_live(rows, environment)
    return row, server.requests


def test_a_model_that_answers_passes(project):
    row, (request,) = live(project, completion("Ready."))
    assert row.live.status == "pass" and row.live.detail.startswith("gpt-5.2 answered as served-1 in ")
    assert (request["model"], request["max_completion_tokens"]) == ("gpt-5.2", 1000)
    assert request["reasoning_effort"] == "minimal" and not Report([row], []).failed
    assert Report([row], []).to_data()["players"][0]["live"]["status"] == "pass"


@pytest.mark.parametrize(
    ("answer", "detail", "hint"),
    [
        ((404, "no such model"), "bad_request: HTTP 404: no such model", "the model's id"),
        ((401, f"wrong key {KEY}"), "authentication: HTTP 401: wrong key (removed)", "the key"),
        ((503, ""), "server_error: HTTP 503: no explanation", "is the provider up"),
        ("no JSON", "server_error: the answer must be JSON", "is the provider up"),
    ],
)
def test_a_model_that_does_not_answer_fails_after_one_request(project, answer, detail, hint):
    row, requests = live(project, answer)
    assert row.live.status == "fail" and row.live.detail.startswith(detail) and hint in row.live.hint
    assert Report([row], []).failed and len(requests) == 1 and KEY not in repr(row)


def test_a_server_that_is_not_there_fails(project):
    edit(project, "config/providers/openai.yaml", "https://api.openai.com/v1", "http://127.0.0.1:9/v1")
    (row,) = check_live(check_players(project, [RosterEntry(player="gpt-5-2")], ENVIRONMENT), ENVIRONMENT)
    assert row.live.status == "fail" and "no connection" in row.live.detail


@pytest.mark.parametrize(
    ("player", "environment", "why"),
    [("gpt-5-2", {}, "an earlier check failed"), ("nobody", {}, "an earlier check"), ("scripted", {}, "a script")],
)
def test_nobody_is_asked_in_vain(project, player, environment, why):
    row, requests = live(project, completion("Ready."), player, environment)
    assert row.live.status == "skip" and why in row.live.detail and requests == []


def test_a_key_that_cannot_be_one_fails(project):
    row, requests = live(project, completion("Ready."), environment={"OPENAI_API_KEY": "short"})
    assert row.live.status == "fail" and "OPENAI_API_KEY" in row.live.detail and requests == []


def test_without_being_asked_for_it_is_skipped(project):
    (row,) = check_players(project, [RosterEntry(player="scripted")], {})
    assert (row.live.status, row.live.detail) == ("skip", "not asked for")
