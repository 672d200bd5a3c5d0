"""Whole games of models against a server on this machine: recorded, then replayed with the server gone."""

import json
import socket

import pytest
from gptnt.llm.workbench import CLICK_A, FLIP, NATIVE, SAY, config, tagged
from gptnt.players.workbench import MANUAL, WIRES, game, spec
from llm.server import KEY, completion, serving
from rowproof.gptnt.llm.seats import seat_for
from rowproof.gptnt.player_config import Settings
from rowproof.gptnt.room import Provenance, play
from rowproof.llm.client import Clock
from rowproof.records import encode_document

ENVIRONMENT = {"MODEL_KEY": KEY}


class Steady(Clock):
    """Every look at it takes two seconds, and waiting none."""

    def __init__(self):
        self.now_s = 0.0

    def now(self):
        self.now_s += 2.0
        return self.now_s

    def sleep(self, seconds):
        pass


class Script:
    """A model that acts as Defuser, talks as Expert, and has all the troubles of a model at fixed requests."""

    def __init__(self):
        self.count = 0

    def __call__(self, body):
        self.count += 1
        troubles = {
            3: (429, "slow down", {"retry-after": "3"}),
            4: (429, "slow down"),
            6: (500, "down"),
            8: (200, f"{{the key {KEY} is fine"),
            10: completion(tagged(FLIP)[:25], finish_reason="length"),
            12: completion(""),
            14: completion(None, refusal="I will not."),
            16: completion("What do you mean?"),
            18: completion(f"{tagged(FLIP)}{tagged(FLIP)}"),
            20: (400, "the request is not understood"),
        }
        if self.count in troubles:
            return troubles[self.count]
        if "You are the Expert" in body["messages"][0]["content"]:
            return completion(tagged(SAY.replace("Hi.", f"Say more, {self.count}.")))
        return completion(tagged(CLICK_A if self.count % 5 else FLIP, f"Turn {self.count}."))


def played(folder, mode, style, base_url="http://127.0.0.1:1/v1", settings=None, sees="text"):
    def seated():
        return seat_for(
            config(base_url, settings=settings),
            ENVIRONMENT if mode != "replay" else {},
            mode=mode,
            folder=folder,
            sees=sees,
            clock=Steady(),
        )

    request = spec(WIRES, style, defuser="model", expert="model")
    return play(request, seated(), seated(), MANUAL, Provenance("1.0.0"))


def files(folder):
    return {file.name: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def kinds(steps):
    return [error for step in steps for error in step["error_type"]]


@pytest.mark.parametrize("style", ["sync", "async"])
def test_a_recorded_game_is_played_again_byte_for_byte(tmp_path, style, monkeypatch):
    with serving(Script()) as server:
        first = played(tmp_path, "record", style, server.base_url)
    assert first.valid, first.failure
    steps = [step for record in first.records.values() for step in record["steps"]]
    assert {
        *("server_error", "max_output_tokens_exceeded", "guardrail_violation", "action_not_present"),
        *("multiple_actions_present", "unknown", "reasoning_absent"),
    } <= set(kinds(steps))
    # What was lost was paid for as well, and repeated requests are counted.
    lost = [step for step in steps if "max_output_tokens_exceeded" in step["error_type"]]
    assert [step["usage"]["output_tokens"] for step in lost] == [30]
    assert max(step["usage"]["requests"] for step in steps) == 3
    if style == "async":
        # Two looks at the clock per try: an answer takes two seconds, then half a second passes.
        (one, two), *_ = zip(first.records["defuser"]["steps"], first.records["defuser"]["steps"][1:], strict=False)
        assert one["responded_at"] - one["requested_at"] == 2.0 and two["requested_at"] == 2.5

    def refuse(*arguments, **settings):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    before = files(tmp_path)
    again = played(tmp_path, "replay", style)
    assert encode_document(again.records) == encode_document(first.records)
    assert again.summary == first.summary and files(tmp_path) == before and len(before) == 2

    # Another temperature is another request.
    other = played(tmp_path, "replay", style, settings=Settings(temperature=0.0))
    assert other.failure.startswith("defuser model: CassetteMiss: gptnt-")
    assert "parameters.temperature: asked 0.0, recorded 0.6" in other.failure and not other.valid

    text = b"".join(files(tmp_path).values()).decode() + json.dumps(first.records)
    assert KEY not in text and "(removed)" in text and server.base_url not in text


def test_pictures_of_a_game_lie_beside_the_cassette(tmp_path):
    with serving(lambda body: completion(tagged(SAY))) as server:
        first = played(tmp_path, "record", "sync", server.base_url, sees="images")
    names = {file.stem for file in (tmp_path / "images").iterdir()}
    shown = {
        part["image"]
        for step in first.records["defuser"]["steps"]
        for message in step["new_messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
        if "image" in part
    }
    assert names == shown and len(names) > 20
    assert encode_document(played(tmp_path, "replay", "sync", sees="images").records) == encode_document(first.records)


def test_a_refused_key_ends_the_game_and_counts_for_nobody(tmp_path):
    with serving(lambda body: (401, f"bad key {KEY}")) as server:
        lost = played(tmp_path, "record", "sync", server.base_url)
    assert not lost.valid and lost.failure.startswith("defuser model: CallError: authentication: HTTP 401")
    assert KEY not in lost.failure and list(tmp_path.iterdir()) == []


def test_without_a_cassette_a_model_is_just_asked(tmp_path):
    with serving(lambda body: completion(FLIP)) as server:
        seat = seat_for(config(server.base_url, **NATIVE), ENVIRONMENT, sees="json", clock=Steady())
        request = spec(WIRES, alone=True, defuser="model")
        assert play(request, seat, None, MANUAL, Provenance("1.0.0")).summary["outcome"] == "timeout"


def test_records_of_scripts_are_as_they_were():
    step = game().records["defuser"]["steps"][0]
    assert step["input_messages"] is None and step["new_messages"] == ["<no_new_messages>"]
    assert step["num_prompt_truncations"] == 0


def test_games_may_be_replayed_in_another_order_and_by_other_instances(tmp_path):
    requests = [spec(WIRES, alone=True, defuser="model") | {"attempt": attempt} for attempt in (1, 2, 3)]

    def records(mode, order, base_url="http://127.0.0.1:1/v1"):
        seat = seat_for(config(base_url), ENVIRONMENT, mode=mode, folder=tmp_path, sees="text", clock=Steady())
        games = {n: play(requests[n], seat, None, MANUAL, Provenance("1.0.0")) for n in order}
        return {n: encode_document(games[n].records) for n in sorted(games)}

    counter = iter(range(10_000))
    with serving(lambda body: completion(tagged(FLIP, f"Thought {next(counter)}."))) as server:
        recorded = records("record", (0, 1, 2), server.base_url)
    assert len(set(recorded.values())) == 3
    assert records("replay", (2, 0, 1)) == recorded
