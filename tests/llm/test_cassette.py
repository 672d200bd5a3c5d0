"""Recorded calls: replay without a connection, misses, merging, damage, and what must not be in a file."""

import json
import socket

import pytest
from llm.server import ACCESS, ENVIRONMENT, KEY, FakeClock, Provider, completion, serving
from rowproof.errors import ConfigError, RecordError
from rowproof.llm.calls import CallError, Message, Picture, Reply, Request, Usage
from rowproof.llm.cassette import Cassette, CassetteMiss, through
from rowproof.llm.client import Client

SYSTEM = Message("system", ("Be brief.",))


def request(*texts, model="m", temperature=0.5):
    roles = ("user", "assistant")
    messages = tuple(Message(roles[index % 2], (text,)) for index, text in enumerate(texts))
    return Request(model, (SYSTEM, *messages), {"temperature": temperature})


class Counting:
    """Answers with the number of requests so far, or raises."""

    def __init__(self, *errors):
        self.errors = dict(errors)
        self.asked = 0

    def ask(self, asked):
        self.asked += 1
        if self.asked in self.errors:
            raise self.errors[self.asked]
        return Reply(f"answer {self.asked}", usage=Usage(10, self.asked), seconds=0.125 * self.asked)


def recorded(path, *requests, live=None):
    cassette = Cassette(path, live or Counting())
    return [cassette.ask(one) for one in requests]


def miss(path, asked):
    with pytest.raises(CassetteMiss) as caught:
        Cassette(path).ask(asked)
    return str(caught.value)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "games" / "one.jsonl"


def test_what_was_recorded_is_answered_again(path):
    requests = [request("a"), request("a", "answer 1", "b"), request("c", model="other")]
    replies = recorded(path, *requests)
    again = Cassette(path)
    assert [again.ask(one) for one in requests] == replies


def test_the_same_request_may_have_another_answer_each_time(path):
    assert [reply.text for reply in recorded(path, request("a"), request("a"))] == ["answer 1", "answer 2"]
    again = Cassette(path)
    assert [again.ask(request("a")).text for _ in range(2)] == ["answer 1", "answer 2"]
    with pytest.raises(CassetteMiss, match="occurrence: asked 2"):
        again.ask(request("a"))


def test_replay_opens_no_connection(path, monkeypatch):
    recorded(path, request("a"))

    def refuse(*arguments, **settings):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    assert through("replay", path, None).ask(request("a")).text == "answer 1"
    with pytest.raises(CassetteMiss):
        through("replay", path, Counting()).ask(request("b"))


def test_recording_goes_on_where_it_stopped(path):
    recorded(path, request("a"))
    live = Counting()
    assert [reply.text for reply in recorded(path, request("a"), request("b"), live=live)] == ["answer 1", "answer 1"]
    assert live.asked == 1


def test_errors_are_recorded_too(path):
    error = CallError("server_error", "server_error: HTTP 500: ü", status=500, seconds=1.5, retries={"connection": 4})
    for live in (Counting((1, error)), None):
        with pytest.raises(CallError) as caught:
            Cassette(path, live).ask(request("a"))
        assert caught.value.to_data() == error.to_data()


def test_a_wrong_key_is_not_recorded(path):
    cassette = Cassette(path, Counting((1, CallError("authentication", "no"))))
    with pytest.raises(CallError):
        cassette.ask(request("a"))
    assert not path.exists()


# ---- misses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "difference"),
    [
        (request("a", "b", "other"), r"messages[3]: role user, from character 0: asked 'other', recorded 'c'"),
        (request("a", "bcd", "c"), r"messages[2]: role assistant, from character 1: asked 'cd', recorded ''"),
        (request("a", "b"), "messages: asked 3, recorded 4"),
        (request("a", "b", "c", temperature=1.0), "parameters.temperature: asked 1.0, recorded 0.5"),
        (request("a", "b", "c", model="new"), "model: asked 'new', recorded 'm'"),
    ],
)
def test_a_miss_names_the_first_part_that_differs(path, asked, difference):
    recorded(path, request("z"), request("a", "b", "c"), request("a", "y", model="other"))
    assert difference in miss(path, asked)


def test_a_miss_of_an_empty_cassette(path):
    path.parent.mkdir()
    recorded(path, request("a"))
    lines = [line for line in path.read_text().splitlines(keepends=True) if "call" not in line]
    path.write_text("".join(lines))
    assert "no call is recorded" in miss(path, request("a"))


def test_there_must_be_something_to_replay(path):
    with pytest.raises(ConfigError, match=r"one\.jsonl: there must be a cassette to replay"):
        through("replay", path, None)


@pytest.mark.parametrize(("mode", "message"), [("record", "must have a client"), ("rewind", "must be in mode")])
def test_a_mode_must_make_sense(path, mode, message):
    with pytest.raises(ConfigError, match=message):
        through(mode, path, None)


def test_off_is_no_cassette(path):
    live = Counting()
    assert through("off", path, live) is live and not path.exists()


# ---- files -----------------------------------------------------------------------------------------------------


def test_a_message_stands_in_a_cassette_once(path):
    recorded(path, request("a"), request("a", "b", "c"), request("a", "b", "c", "d", "e"))
    texts = [line["content"] for line in map(json.loads, path.read_text().splitlines()) if "message" in line]
    assert sorted(texts) == ["Be brief.", "a", "b", "c", "d", "e"]


def test_pictures_lie_beside_it_once(path):
    picture = Picture(b"\x89PNG")
    one = Request("m", (Message("user", ("Look", picture)),), {})
    two = Request("m", (Message("user", ("Again", picture)),), {})
    replies = recorded(path, one, two)
    (image,) = (path.parent / "images").iterdir()
    assert image.name == f"{picture.sha256}.png" and image.read_bytes() == b"\x89PNG"
    image.unlink()
    assert [Cassette(path).ask(asked).text for asked in (one, two)] == [reply.text for reply in replies]


def test_cassettes_are_merged_by_joining_their_lines(path, tmp_path):
    other = tmp_path / "two.jsonl"
    recorded(path, request("a"), request("b"))
    recorded(other, request("b"), request("c"), live=Counting())
    first = path.read_text().splitlines()
    lines = set(first) | {
        line for line in other.read_text().splitlines() if "answer 2" in line or line.startswith('{"message"')
    }
    path.write_text("".join(f"{line}\n" for line in sorted(lines)))
    assert [Cassette(path).ask(request(text)).text for text in "abc"] == ["answer 1", "answer 2", "answer 2"]


def test_two_answers_to_one_request_are_refused(path, tmp_path):
    other = tmp_path / "two.jsonl"
    recorded(path, request("a"), request("b"))
    recorded(other, request("b"))
    path.write_text(path.read_text() + other.read_text())
    with pytest.raises(RecordError, match="a request must have one answer"):
        Cassette(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"content":"a"', '"content":"b"'),
        ('"temperature":0.5', '"temperature":0.6'),
        ('"occurrence":0', '"occurrence": 0'),
        ('"reply"', '"answer"'),
        ('"role":"user",', ""),
    ],
)
def test_a_damaged_cassette_is_refused(path, old, new):
    recorded(path, request("a"))
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(RecordError, match=r"one\.jsonl:\d: "):
        Cassette(path)


@pytest.mark.parametrize(
    ("old", "new"), [('"output_tokens":1', '"output_tokens":"1"'), ('"retries":{}', '"retries":[]')]
)
def test_a_damaged_answer_is_refused_when_it_is_needed(path, old, new):
    recorded(path, request("a"))
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(RecordError, match=r"one\.jsonl: call "):
        Cassette(path).ask(request("a"))


def test_a_call_needs_its_messages(path):
    recorded(path, request("a"))
    path.write_text(path.read_text().splitlines(keepends=True)[-1])
    with pytest.raises(RecordError, match="must come with its messages"):
        Cassette(path)


def test_a_line_that_was_cut_off_is_dropped_by_whoever_records(path):
    recorded(path, request("a"), request("b"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with pytest.raises(RecordError, match="must be non-empty and end with one LF"):
        Cassette(path)
    live = Counting()
    live.asked = 1
    recorded(path, request("a"), request("b"), live=live)
    assert path.read_bytes() == whole


def test_no_secret_and_no_address_is_in_it(path):
    with serving([completion(f"Your key is {KEY}."), (500, KEY), (500, ACCESS)]) as server:
        live = Client(Provider(server.base_url), ENVIRONMENT, clock=FakeClock())
        cassette = Cassette(path, live)
        cassette.ask(request("a"))
        with pytest.raises(CallError):
            server.script = lambda body: (500, KEY + ACCESS)
            cassette.ask(request("b"))
    text = path.read_text()
    assert KEY not in text and ACCESS not in text and "127.0.0.1" not in text and "(removed)" in text
