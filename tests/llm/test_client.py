"""The client against a server on this machine: answers, errors, retries, limits, and what it must not tell."""

import json
import logging
import socket
import threading
import time
import traceback

import pytest
from llm.server import ACCESS, ENVIRONMENT, KEY, USAGE, Dribble, FakeClock, Provider, completion, serving
from rowproof.errors import ConfigError
from rowproof.llm.calls import CallError, Message, Picture, Request, Usage
from rowproof.llm.client import Client, Limiter, Policy
from rowproof.llm.limits import Limits

REQUEST = Request("model-1", (Message("system", ("Be brief.",)), Message("user", ("Hello?",))), {"temperature": 0.5})


def client(server, **settings):
    settings.setdefault("clock", FakeClock())
    return Client(Provider(server.base_url), ENVIRONMENT, **settings)


def failure(asker, request=REQUEST):
    with pytest.raises(CallError) as caught:
        asker.ask(request)
    return caught.value


# ---- answers ---------------------------------------------------------------------------------------------------


def test_an_answer_with_all_that_comes_with_it():
    with serving([completion("Yes.", reasoning_content="Should I?")]) as server:
        reply = client(server).ask(REQUEST)
    assert reply == (
        *("Yes.", "Should I?", (), "stop", Usage(120, 30, 100, 10), 0.0, {}),
        *("served-1", None),
    )
    (body,) = server.requests
    assert body == {
        "model": "model-1",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello?"}],
        "temperature": 0.5,
    }
    assert server.headers[0]["authorization"] == f"Bearer {KEY}" and server.headers[0]["x-access"] == ACCESS


def test_pictures_go_as_data_and_fields_of_one_provider_at_the_top():
    request = Request("m", (Message("user", ("Look:", Picture(b"png"))),), {"extra_body": {"top_k": 3}})
    with serving([completion("A bomb.")]) as server:
        client(server).ask(request)
    (body,) = server.requests
    assert body["top_k"] == 3
    assert body["messages"][0]["content"] == [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5n"}},
    ]


def test_the_time_of_the_try_that_brought_the_answer_is_measured():
    clock = FakeClock()

    def answer(body):
        clock.now_s += 2.5
        return completion("Yes.") if len(server.requests) > 1 else (500, "down")

    with serving(answer) as server:
        reply = client(server, clock=clock).ask(REQUEST)
    assert (reply.seconds, reply.retries, clock.slept) == (2.5, {"server_error": 1}, [1.0])


@pytest.mark.parametrize("content", ["", None, " \n"])
def test_an_empty_answer_is_kept_raw(content):
    with serving([completion(content)]) as server:
        reply = client(server).ask(REQUEST)
    assert reply.text.strip() == "" and json.loads(reply.raw)["choices"][0]["message"]["content"] == content
    assert reply.usage == Usage(120, 30, 100, 10)


def test_an_answer_that_was_cut_off_says_so():
    with serving([completion("I thi", finish_reason="length")]) as server:
        assert client(server).ask(REQUEST).finish_reason == "length"


def test_calls_of_tools_and_texts_in_parts_are_read():
    call = {"id": "1", "type": "function", "function": {"name": "answer", "arguments": '{"x": 1}'}}
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    with serving([completion(None, tool_calls=[call]), completion(parts)]) as server:
        asker = client(server)
        assert asker.ask(REQUEST).tool_arguments == ('{"x": 1}',)
        assert asker.ask(REQUEST).text == "ab"


def test_half_a_character_does_not_get_through():
    body = json.dumps(completion("MARK")).replace("MARK", "a \\ud83d b \\ud83d\\ude00")
    with serving([body]) as server:
        assert client(server).ask(REQUEST).text == "a � b \U0001f600"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ({}, None),
        ("many", None),
        ({"prompt_tokens": -1, "completion_tokens": 2.5}, None),
        ({"prompt_tokens": True, "completion_tokens": 7}, Usage(0, 7)),
        ({"prompt_tokens": 5, "completion_tokens": 7, "prompt_tokens_details": None}, Usage(5, 7)),
        ({"prompt_tokens": 5, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 9}}, Usage(5, 7, 5)),
    ],
)
def test_wrong_counts_are_not_believed(usage, expected):
    body = completion("Yes.", usage=None) | ({} if usage is None else {"usage": usage})
    with serving([body]) as server:
        assert client(server).ask(REQUEST).usage == expected


# ---- errors ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "delays"),
    [({"retry-after": "7"}, [7.0, 7.0]), ({}, [1.0, 2.0]), ({"retry-after": "900"}, [60.0, 60.0])],
)
def test_too_many_requests_are_repeated_when_the_provider_says(headers, delays):
    clock = FakeClock()
    with serving([(429, "slow down", headers)] * 2 + [completion("Yes.")]) as server:
        reply = client(server, clock=clock).ask(REQUEST)
    assert (reply.text, reply.retries, clock.slept) == ("Yes.", {"rate_limited": 2}, delays)


@pytest.mark.parametrize("header", ["-3", "nan", "inf", "Wed, 21 Oct 2026 07:28:00 GMT", ""])
def test_a_strange_time_to_wait_is_not_minded(header):
    clock = FakeClock()
    with serving([(429, "", {"retry-after": header}), completion("Yes.")]) as server:
        client(server, clock=clock).ask(REQUEST)
    assert clock.slept == [1.0]


@pytest.mark.parametrize(
    ("status", "kind"), [(429, "rate_limited"), (500, "server_error"), (503, "server_error"), (408, "timed_out")]
)
def test_tries_have_an_end(status, kind):
    clock = FakeClock()
    with serving(lambda body: (status, '{"error": "busy"}')) as server:
        error = failure(client(server, clock=clock))
    assert (error.kind, error.status, error.retries) == (kind, status, {kind: 4})
    assert clock.slept == [1.0, 2.0, 4.0, 8.0] and len(server.requests) == 5
    assert error.raw == '{"error": "busy"}' and f"{kind} after 5 tries: HTTP {status}" in str(error)


def test_no_try_begins_after_the_deadline():
    clock = FakeClock()
    with serving(lambda body: (429, "", {"retry-after": "60"})) as server:
        error = failure(client(server, clock=clock))
    assert clock.slept == [60.0, 60.0] and error.retries == {"rate_limited": 2}


def test_the_limits_of_a_provider_do_not_stretch_the_deadline():
    clock = FakeClock()
    limiter = Limiter(Limits(requests_per_minute=1), clock)
    with serving(lambda body: (500, "down")) as server:
        error = failure(client(server, clock=clock, limiter=limiter, policy=Policy(deadline_s=100.0)))
    # Of one try a minute, the third would come too late.
    assert (error.kind, error.retries, len(server.requests)) == ("server_error", {"server_error": 1}, 2)


def test_a_provider_that_is_silent_runs_out_of_time():
    policy = Policy(tries=2, request_s=0.2)
    with serving([0.5, completion("Yes.")]) as server:
        assert client(server, policy=policy).ask(REQUEST).retries == {"timed_out": 1}
    with serving([0.5, 0.5]) as server:
        assert failure(client(server, policy=policy)).kind == "timed_out"


def test_a_body_that_comes_byte_by_byte_takes_no_longer_than_its_limit():
    with serving([Dribble(completion("slow"))]) as server:
        start_s = time.monotonic()
        assert failure(client(server, policy=Policy(tries=1, request_s=0.3))).kind == "timed_out"
        # The whole body would take more than twenty seconds.
        assert time.monotonic() - start_s < 5


def test_a_provider_that_is_not_there_is_a_server_error():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        provider = Provider(f"http://127.0.0.1:{unused.getsockname()[1]}/v1")
        error = failure(Client(provider, ENVIRONMENT, clock=FakeClock()))
    assert (error.kind, error.status, error.retries) == ("server_error", None, {"connection": 4})
    assert "127.0.0.1" not in str(error)


def test_every_cause_is_counted():
    script = [(429, ""), (502, ""), (429, ""), completion("Yes.")]
    with serving(script) as server:
        assert client(server).ask(REQUEST).retries == {"rate_limited": 2, "server_error": 1}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, '{"error": {"message": "too long"}}', "bad_request"),
        (404, '{"error": {"message": "no such model"}}', "bad_request"),
        (400, '{"error": {"code": "content_filter"}}', "content_filter"),
        (401, "", "authentication"),
        (403, "", "authentication"),
    ],
)
def test_what_another_try_cannot_mend_is_not_tried_again(status, body, kind):
    with serving([(status, body)]) as server:
        error = failure(client(server))
    assert (error.kind, error.status, error.raw, error.retries) == (kind, status, body, {})


@pytest.mark.parametrize(
    "body", ["{", "", "[]", "null", '{"choices": []}', '{"choices": [{"message": null}]}', "[" * 100_000]
)
def test_a_malformed_body_is_kept_raw(body):
    with serving([body]) as server:
        error = failure(client(server))
    assert (error.kind, error.raw, error.retries) == ("server_error", body[:10_000], {})


@pytest.mark.parametrize(
    "answer",
    [completion("", finish_reason="content_filter"), completion(None, refusal="I will not.")],
    ids=["filtered", "refused"],
)
def test_a_refusal_costs_tokens_all_the_same(answer):
    with serving([answer]) as server:
        error = failure(client(server))
    assert (error.kind, error.usage) == ("content_filter", Usage(120, 30, 100, 10))


# ---- limits ----------------------------------------------------------------------------------------------------


def test_requests_per_minute():
    clock = FakeClock()
    limiter = Limiter(Limits(requests_per_minute=2), clock)
    with serving([completion("Yes.")] * 4) as server:
        asker = client(server, clock=clock, limiter=limiter)
        for _ in range(4):
            asker.ask(REQUEST)
    assert clock.slept == pytest.approx([30, 30])


def test_tokens_per_minute_are_counted_when_they_are_known():
    clock = FakeClock()
    limiter = Limiter(Limits(tokens_per_minute=100), clock)
    with serving([completion("Yes.")] * 2) as server:
        asker = client(server, clock=clock, limiter=limiter)
        asker.ask(REQUEST)
        assert clock.slept == []
        asker.ask(REQUEST)
    # 100 less 150 are spent: 51 must come back at 100 a minute.
    assert clock.slept == pytest.approx([51 * 60 / 100])


def test_waiting_for_a_slot_is_no_part_of_an_answers_time():
    clock = FakeClock()
    limiter = Limiter(Limits(requests_per_minute=1), clock)
    with serving([completion("Yes.")] * 2) as server:
        asker = client(server, clock=clock, limiter=limiter)
        assert [asker.ask(REQUEST).seconds for _ in range(2)] == [0.0, 0.0]
    assert clock.slept == pytest.approx([60])


def test_no_more_at_once_than_allowed():
    running, most = [], []

    def answer(body):
        running.append(1)
        most.append(len(running))
        time.sleep(0.05)
        running.pop()
        return completion("Yes.")

    with serving(answer) as server:
        asker = Client(Provider(server.base_url), ENVIRONMENT, limiter=Limiter(Limits(concurrent_requests=2)))
        threads = [threading.Thread(target=asker.ask, args=(REQUEST,)) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(most) == 5 and max(most) == 2


# ---- secrets ---------------------------------------------------------------------------------------------------


def test_a_missing_variable_is_named():
    with pytest.raises(ConfigError, match="MODEL_KEY"):
        Client(Provider("http://127.0.0.1:1"), {"ACCESS_SECRET": ACCESS})


@pytest.mark.parametrize("key", ["short", "with a\nbreak", "k\u00e9y that is long enough"])
def test_what_cannot_be_a_key_is_refused_and_not_shown(key):
    with pytest.raises(ConfigError) as caught:
        Client(Provider("http://127.0.0.1:1"), ENVIRONMENT | {"MODEL_KEY": key})
    assert "MODEL_KEY" in str(caught.value) and key not in str(caught.value)


def test_a_server_without_keys_needs_none():
    provider = Provider("x", api_key_default="EMPTY", header_variables={})
    provider.missing_variables = lambda environment: []
    with serving([completion("EMPTY of words")]) as server:
        provider.base_url = server.base_url
        assert Client(provider, {}).ask(REQUEST).text == "EMPTY of words"


@pytest.mark.parametrize("status", [200, 400, 401, 429, 500])
def test_a_provider_that_repeats_the_key_gives_it_to_nobody(status, caplog):
    caplog.set_level(logging.DEBUG)
    text = f"Incorrect key {KEY} and {ACCESS}"
    with serving([(status, completion(text) if status == 200 else text)] * 5) as server:
        asker = client(server)
        if status == 200:
            shown = repr(asker.ask(REQUEST))
        else:
            error = failure(asker)
            shown = "".join(traceback.format_exception(error)) + repr(error.to_data())
            assert error.__cause__ is None and error.__context__ is None
    assert "(removed)" in shown
    for secret in (KEY, ACCESS):
        assert secret not in shown and secret not in caplog.text and secret not in repr(vars(asker._limiter))


def test_variables_that_a_provider_does_not_name_are_not_sent(monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-somebody")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-of-somebody")
    with serving([completion("Yes.")]) as server:
        client(server).ask(REQUEST)
    assert "of-somebody" not in repr(server.headers)


def test_the_bytes_of_pictures_stand_in_no_repr():
    assert len(repr(Message("user", (Picture(b"\x00" * 1_000_000),)))) < 200


def test_usage_is_a_value():
    with serving([completion("Yes.")] * 2) as server:
        asker = client(server)
        first, second = asker.ask(REQUEST), asker.ask(REQUEST)
    assert first.usage == second.usage and USAGE["prompt_tokens"] == 120
    with pytest.raises(AttributeError):
        first.usage.input_tokens = 0
