"""What a room does in every game: order of turns, time, ends, and what is left."""

import pytest
from gptnt.players.workbench import MANUAL, WIRES, Puppet, game, seat, spec
from rowproof.errors import ConfigError
from rowproof.gptnt import room
from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.bomb.published import multiple_module_n, single_module
from rowproof.gptnt.players.turns import (
    Answer,
    AnswerError,
    Usage,
    do_nothing,
    interact_game,
    send_message,
)
from rowproof.gptnt.room import Provenance, Rules, merged_steps, play
from rowproof.records import decode, digest, encode_line

TWO = Mission(851, 300, ("Wires", "Keypad"), 5, force_modules_to_front=True)
STEP_COLUMNS = [
    *("step", "timestamp", "role", "session_id", "player_uuid", "player_name", "output", "raw_output", "thoughts"),
    *("input_messages", "new_messages", "bomb_state", "observation", "usage", "num_prompt_truncations", "error_type"),
    *("is_reflection", "output_kind", "requested_at", "responded_at", "observation_at"),
]


@pytest.fixture
def bombs(monkeypatch):
    """The bombs of the games of a test, for puppets that reach for them."""
    built = []

    def build(mission):
        built.append(room_build(mission))
        return built[-1]

    room_build = room.build
    monkeypatch.setattr(room, "build", build)
    return built


def steps(played, role="defuser"):
    return [step for step in played.records[role]["steps"] if not step["is_reflection"]]


# ---- records ---------------------------------------------------------------------------------------------------


def test_a_solved_game_of_two_leaves_two_records():
    played = game()
    assert played.valid and not played.failure
    assert played.summary == {
        "outcome": "solved",
        "seconds_remaining": 75.0,
        "strike_count": 0,
        "num_modules_solved": 1,
        "n_modules": 1,
        "time_limit": 81,
        "is_hard_crash": False,
        "n_rounds": 3,
        "duration_s": 6.0,
    }
    defuser, expert = played.records["defuser"], played.records["expert"]
    assert list(defuser) == list(expert) == ["format_version", "session_id", "player_uuid", "footer", "steps"]
    assert defuser["session_id"] == expert["session_id"] and defuser["player_uuid"] != expert["player_uuid"]
    assert any(step["output_kind"] == "game_action" for step in defuser["steps"])
    assert expert["footer"]["final_bomb_state"] is None and defuser["footer"]["final_bomb_state"]["isSolved"]
    descriptor = expert["footer"]["descriptor"]
    assert descriptor == defuser["footer"]["descriptor"]
    assert (descriptor["defuser_uuid"], descriptor["expert_uuid"]) == (defuser["player_uuid"], expert["player_uuid"])
    assert descriptor["experiment_spec"] == spec() and descriptor["start_time"] == 0.0


@pytest.mark.parametrize("style", ["sync", "async"])
@pytest.mark.parametrize("alone", [True, False])
def test_every_step_has_the_columns_of_the_benchmark(style, alone):
    played = game(style=style, alone=alone)
    for role, record in played.records.items():
        assert [step["step"] for step in record["steps"]] == list(range(1, len(record["steps"]) + 1))
        for step in record["steps"]:
            assert list(step) == STEP_COLUMNS
            assert (step["role"], step["player_name"]) == (role, "scripted")
            assert step["requested_at"] <= step["responded_at"] == step["timestamp"]
            looks = role == "defuser" and not step["is_reflection"]
            assert (step["observation"] is not None) is looks is (step["bomb_state"] is not None)
            assert step["observation_at"] == (step["requested_at"] if looks else None)
            assert step["usage"]["input_tokens"] == 1 and step["num_prompt_truncations"] == 0
        assert [step["is_reflection"] for step in record["steps"]] == [False] * (len(record["steps"]) - 1) + [True]


def test_records_are_plain_data_with_canonical_bytes():
    played = game()
    for value in (played.summary, *played.records.values()):
        assert decode(encode_line(value).encode(), "record") == value


def test_who_plays_alone_leaves_one_record():
    played = game(alone=True)
    assert list(played.records) == ["defuser"]
    descriptor = played.records["defuser"]["footer"]["descriptor"]
    assert (descriptor["expert_uuid"], descriptor["expert_capabilities"]) == (None, None)
    assert {tuple(step["new_messages"]) for step in steps(played)} == {()}


def test_the_same_game_is_equal_to_the_byte_and_another_is_not():
    first, second = game(), game()
    assert digest(first.records) == digest(second.records)
    others = [game(WIRES._replace(seed=235)), game(style="async"), game(alone=True), game(rules=Rules(seed=1))]
    sessions = {one.records["defuser"]["session_id"] for one in (first, *others)}
    assert len(sessions) == 5
    attempt = play(spec() | {"attempt": 2}, seat("scripted"), seat("scripted"), MANUAL, Provenance("1.0.0"))
    assert attempt.records["defuser"]["session_id"] not in sessions


def test_a_stated_fingerprint_changes_no_id():
    stated = play(spec() | {"fingerprint": "0" * 32}, seat("scripted"), seat("scripted"), MANUAL, Provenance("1.0.0"))
    assert stated.records["defuser"]["session_id"] == game().records["defuser"]["session_id"]


def test_the_same_player_objects_can_play_one_game_after_another():
    defuser, expert = seat("scripted"), seat("scripted")
    missions = [single_module()["Simon-234"], single_module()["Password-286"], WIRES]
    for mission in (*missions, *missions):
        played = play(spec(mission), defuser, expert, MANUAL, Provenance("1.0.0"))
        assert digest(played.records) == digest(game(mission).records)


def test_the_last_turn_of_the_defuser_shows_the_final_state():
    record = game().records["defuser"]
    *_, before, last, look_back = record["steps"]
    assert last["bomb_state"] == record["footer"]["final_bomb_state"]
    assert last["bomb_state"]["isSolved"] and not before["bomb_state"]["isSolved"]
    assert look_back["bomb_state"] is None and look_back["output_kind"] == "reflection"


def test_usage_is_kept_per_step():
    counts = iter(range(1, 1000))
    puppet = Puppet(lambda turn: Answer(do_nothing(), usage=Usage(next(counts), details=(("reasoning_tokens", 7),))))
    usages = [step["usage"] for step in steps(game(defuser=puppet))]
    assert [usage["input_tokens"] for usage in usages] == list(range(1, len(usages) + 1))
    assert all(usage["details"] == {"reasoning_tokens": 7} for usage in usages)


@pytest.mark.parametrize(
    ("version", "commit"), [("", "abc"), ("0.0.0", "abc")], ids=["blank", "the mark of a missing version"]
)
def test_a_version_that_readers_refuse_is_not_written(version, commit):
    with pytest.raises(ConfigError, match="the version of the package must be known"):
        play(spec(), seat("scripted"), seat("scripted"), MANUAL, Provenance(version, commit))


@pytest.mark.parametrize(
    ("request_", "expert", "message"),
    [
        (spec(defuser="somebody"), seat("scripted"), "the defuser must be 'somebody' as the spec has it"),
        (spec(expert="somebody"), seat("scripted"), "the expert must be 'somebody' as the spec has it"),
        (spec(), None, "the expert must be 'scripted' as the spec has it, found None"),
        (spec(alone=True), seat("scripted"), "the expert must be None as the spec has it, found 'scripted'"),
        (
            spec() | {"mission_spec": WIRES.wire_data() | {"components": ["Wire"]}},
            seat("scripted"),
            "mission_spec: components must be among",
        ),
    ],
)
def test_seats_and_mission_must_fit_the_spec(request_, expert, message):
    with pytest.raises(ConfigError, match=message):
        play(request_, seat("scripted"), expert, MANUAL, Provenance("1.0.0"))


# ---- synchronous play ------------------------------------------------------------------------------------------


def test_a_round_is_one_turn_of_each_and_three_seconds():
    defuser = Puppet(lambda turn: send_message(f"from the defuser {turn.number}"))
    expert = Puppet(lambda turn: send_message(f"from the expert {turn.number}"))
    played = game(defuser=defuser, expert=expert)
    assert played.summary["outcome"] == "timeout" and played.summary["seconds_remaining"] == 0.0
    # The game ends in the step after the last turn of the Defuser, so the Expert has one turn less.
    assert (len(defuser.turns), len(expert.turns)) == (27, 26)
    assert [turn.messages for turn in expert.turns[:2]] == [("from the defuser 1",), ("from the defuser 2",)]
    assert [turn.messages for turn in defuser.turns[:3]] == [(), ("from the expert 1",), ("from the expert 2",)]
    assert [turn.elapsed_ms for turn in defuser.turns] == [3000 * i for i in range(27)]
    assert {turn.elapsed_ms for turn in expert.turns} == {None}
    order = [(step["role"], step["timestamp"]) for step in merged_steps(played)[:4]]
    assert order == [("defuser", 0.0), ("expert", 3.0), ("defuser", 3.0), ("expert", 6.0)]


def test_an_action_takes_effect_before_its_step_of_time():
    bomb_states = [step["bomb_state"] for step in steps(game())]
    # Zooming in shows one turn later, three seconds of the timer later.
    assert [state["modules"][0]["inFocus"] for state in bomb_states[:2]] == [False, True]
    assert [state["timerModule"]["secondsRemaining"] for state in bomb_states[:2]] == [81.0, 78.0]


def test_a_strike_speeds_up_the_step_that_follows():
    clicks = Puppet(lambda turn: interact_game("click_release", "A"))
    played = game(defuser=clicks)
    left = [step["bomb_state"]["timerModule"]["secondsRemaining"] for step in steps(played)]
    assert left[:4] == [81.0, 78.0, 74.25, 70.5]


def test_the_step_of_a_mission_is_its_own():
    puppet = Puppet()
    game(WIRES._replace(time_step_size=27_000), defuser=puppet)
    assert [turn.elapsed_ms for turn in puppet.turns] == [0, 27_000, 54_000]


def test_a_mark_that_is_not_in_view_costs_the_turn():
    played = game(defuser=Puppet(lambda turn: interact_game("click_release", "B")))
    first = steps(played)[0]
    assert (first["output"], first["output_kind"], first["error_type"]) == ({}, "do_nothing", ["invalid_som_location"])


# ---- asynchronous play -----------------------------------------------------------------------------------------


def test_answers_take_their_time_and_events_come_in_order():
    defuser, expert = Puppet(lambda turn: send_message("d")), Puppet(lambda turn: Answer(do_nothing(), latency_ms=1000))
    played = game(defuser=defuser, expert=expert, style="async")
    times = [(step["requested_at"], step["responded_at"]) for step in steps(played)[:3]]
    assert times == [(0.0, 3.0), (3.5, 6.5), (7.0, 10.0)]
    times = [(step["requested_at"], step["responded_at"]) for step in steps(played, "expert")[:4]]
    assert times == [(0.0, 1.0), (1.5, 2.5), (3.0, 4.0), (4.5, 5.5)]
    # At 3.0 s the message arrives before the Expert's turn begins: ties go to the Defuser.
    assert [turn.messages for turn in expert.turns[:4]] == [(), (), ("d",), ()]
    stamps = [step["timestamp"] for step in merged_steps(played)]
    assert stamps == sorted(stamps)


def test_the_defuser_acts_on_what_it_saw_when_its_turn_began():
    played = game(defuser=Puppet(lambda turn: interact_game("click_release", "A")), style="async")
    states = [step["bomb_state"] for step in steps(played)]
    assert [state["modules"][0]["inFocus"] for state in states[:2]] == [False, True]
    assert [state["timerModule"]["secondsRemaining"] for state in states[:2]] == [81.0, 77.5]


@pytest.mark.parametrize("latency_ms", [0, 1, 3000, 10_000, 1_000_000])
def test_no_turn_begins_after_the_end_and_answers_on_their_way_are_kept(latency_ms):
    defuser = Puppet(lambda turn: send_message("too late?"))
    expert = Puppet(lambda turn: Answer(do_nothing(), latency_ms=70_000))
    played = game(defuser=defuser, expert=expert, style="async", rules=Rules(latency_ms=latency_ms))
    assert played.summary["outcome"] == "timeout" and played.summary["duration_s"] == 81.0
    for role in ("defuser", "expert"):
        last = steps(played, role)[-1]
        assert last["requested_at"] < 81.0
        assert len(steps(played, role)) == len((defuser if role == "defuser" else expert).turns)
    assert steps(played, "expert")[-1]["responded_at"] == 140.5
    assert played.records["expert"]["steps"][-1]["timestamp"] >= 140.5


def test_an_action_after_the_end_is_ignored():
    touch = Puppet(lambda turn: Answer(interact_game("click_release", "A"), latency_ms=100_000))
    played = game(defuser=touch, style="async")
    assert played.summary["outcome"] == "timeout" and played.summary["strike_count"] == 0
    (only,) = steps(played)
    assert (only["output_kind"], only["responded_at"], only["error_type"]) == ("game_action", 100.0, [])


def test_asynchronous_play_alone():
    puppet = Puppet()
    played = game(defuser=puppet, alone=True, style="async")
    assert played.summary["outcome"] == "timeout" and len(puppet.turns) == 24
    assert puppet.setup.latency_ms == 3000 and puppet.setup.style == "async"


# ---- how games end ---------------------------------------------------------------------------------------------


def ender(bombs, what, turn_number=2):
    """A Defuser that lets something happen to the bomb in one of its turns."""

    def choose(turn):
        if turn.number == turn_number:
            what(bombs[-1])

    return Puppet(choose)


def test_an_explosion_with_time_and_strikes_left_is_no_valid_game_and_no_crash(bombs):
    played = game(defuser=ender(bombs, lambda bomb: bomb.detonate()))
    assert (played.summary["outcome"], played.summary["is_hard_crash"], played.valid) == ("detonated", False, False)
    assert not any(record["footer"]["is_hard_crash"] for record in played.records.values())


def test_three_strikes_are_a_valid_end():
    # The oracle of the wrong: cuts every wire, the right one last.
    def choose(turn):
        return interact_game("click_release", "ABCD"[turn.number - 2] if turn.number > 1 else "A")

    mission = WIRES._replace(num_strikes_allowed=3)
    played = game(mission, defuser=Puppet(choose))
    assert (played.summary["outcome"], played.summary["strike_count"], played.valid) == ("strikeout", 3, True)
    assert played.records["defuser"]["footer"]["final_bomb_state"]["strikes"] == ["Wires"] * 3


def test_time_and_strikes_at_once_are_a_timeout(bombs):
    def both(bomb):
        bomb.strikes += ["Wires"] * 3
        bomb.advance(bomb.clock.ms_to_zero)

    played = game(defuser=ender(bombs, both))
    assert (played.summary["outcome"], played.summary["strike_count"], played.valid) == ("timeout", 3, True)


def test_modules_solved_before_an_explosion_count(bombs):
    # The Expert of the other module never answers, so one of two is solved.
    played = game(TWO, defuser=ender(bombs, lambda bomb: (setattr(bomb.modules[0], "solved", True), bomb.detonate())))
    assert (played.summary["num_modules_solved"], played.summary["n_modules"]) == (1, 2)


def test_a_bomb_that_is_over_gets_no_further_turn(bombs):
    expert = Puppet()
    defuser = ender(bombs, lambda bomb: bomb.defuse())
    played = game(defuser=defuser, expert=expert)
    assert (len(defuser.turns), len(expert.turns)) == (2, 1) and played.summary["outcome"] == "solved"


# ---- the look back ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        (lambda bomb: bomb.defuse(), "The bomb was defused."),
        (lambda bomb: bomb.detonate(), "The bomb exploded. "),
        (lambda bomb: None, "The bomb exploded because the time ran out."),
        (
            lambda bomb: (bomb.strikes.extend(["Wires"] * 3), bomb.detonate()),
            "The bomb exploded because of too many mistakes.",
        ),
    ],
)
def test_both_players_are_told_the_outcome(bombs, what, sentence):
    defuser, expert = ender(bombs, what), Puppet()
    played = game(defuser=defuser, expert=expert)
    for puppet, role in ((defuser, "defuser"), (expert, "expert")):
        (task,) = puppet.tasks
        assert task.startswith(sentence) and "your partner" in task
        last = played.records[role]["steps"][-1]
        assert (last["output"], last["output_kind"]) == ({"message": "So be it."}, "reflection")
        assert last["new_messages"] == [task]


def test_alone_there_is_no_partner_to_look_back_on():
    puppet = Puppet()
    game(defuser=puppet, alone=True)
    assert "partner" not in puppet.tasks[0]


def test_a_look_back_that_fails_takes_nothing_from_the_game():
    def fail(task):
        raise RuntimeError("no words")

    played = game(defuser=Puppet(reflect=fail))
    assert played.valid and not any(step["is_reflection"] for step in played.records["defuser"]["steps"])

    def refuse(task):
        raise AnswerError("max_output_tokens_exceeded", raw_output="It was", usage=Usage(output_tokens=5))

    last = game(defuser=Puppet(reflect=refuse)).records["defuser"]["steps"][-1]
    assert last["output"] == {"message": "It was"} and last["usage"]["output_tokens"] == 5
    assert last["error_type"] == ["max_output_tokens_exceeded"]


# ---- trouble ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", ["sync", "async"])
@pytest.mark.parametrize("role", ["defuser", "expert"])
def test_a_player_that_breaks_ends_the_game_and_nothing_else(role, style):
    def choose(turn):
        if turn.number == 3:
            raise RuntimeError("out of order")

    puppet = Puppet(choose)
    played = game(**{role: puppet}, style=style)
    assert played.failure == f"{role} scripted: RuntimeError: out of order"
    assert played.summary["is_hard_crash"] and played.summary["outcome"] == "incomplete" and not played.valid
    for record in played.records.values():
        assert record["footer"]["is_hard_crash"] and not any(step["is_reflection"] for step in record["steps"])
    assert len(played.records[role]["steps"]) == 2 and not puppet.tasks
    assert steps(played)[-1]["bomb_state"] == played.records["defuser"]["footer"]["final_bomb_state"]
    assert game().valid


class Oddity(Puppet):
    """Gives back what no player may: as it is, or in place of the answer of an error."""

    def __init__(self, odd, as_error=False, number=3):
        super().__init__()
        self.odd, self.as_error, self.number = odd, as_error, number

    def turn(self, turn):
        if turn.number < self.number:
            return super().turn(turn)
        return self.give()

    def give(self):
        if not self.as_error:
            return self.odd
        error = AnswerError("server_error")
        error.answer = self.odd
        raise error


ODDITIES = {
    "nothing": (None, "must return an Answer, found NoneType"),
    "output alone": (do_nothing(), "must return an Answer, found dict"),
    "usage": (Answer({}, usage=None), "usage of an Answer must be Usage, found None"),
    "errors": (Answer({}, errors=None), "errors of an Answer must be tuple or list, found None"),
    "text": (Answer({}, raw_output=b"x"), "raw_output of an Answer must be str or NoneType"),
    "latency": (Answer({}, latency_ms="1"), "latency_ms of an Answer must be int or NoneType"),
    "past": (Answer({}, latency_ms=-1), "latency_ms of an Answer must not be negative, found -1"),
}


@pytest.mark.parametrize("style", ["sync", "async"])
@pytest.mark.parametrize("as_error", [False, True])
@pytest.mark.parametrize(("odd", "message"), ODDITIES.values(), ids=ODDITIES)
def test_what_is_no_answer_ends_the_game_like_any_fault(odd, message, as_error, style):
    played = game(expert=Oddity(odd, as_error), style=style)
    assert played.failure.startswith("expert scripted: ") and message in played.failure
    assert played.summary["is_hard_crash"] and not played.valid
    assert len(steps(played, "expert")) == 2 and len(steps(played)) >= 2


@pytest.mark.parametrize("as_error", [False, True])
@pytest.mark.parametrize("odd", [odd for odd, _ in ODDITIES.values()], ids=ODDITIES)
def test_a_look_back_that_is_no_answer_takes_nothing_from_the_game(odd, as_error):
    oddity = Oddity(odd, as_error, number=1000)
    oddity.reflect = lambda task: oddity.give()
    played = game(defuser=oddity)
    assert played.failure == "" and played.summary["outcome"] == "timeout"
    assert not any(step["is_reflection"] for step in played.records["defuser"]["steps"])


def test_a_player_that_cannot_be_made_ready_breaks_the_game():
    class Broken(Puppet):
        def configure(self, setup):
            raise RuntimeError("no key")

    played = game(expert=Broken())
    assert played.failure == "expert scripted: RuntimeError: no key" and played.records == {}
    assert merged_steps(played) == []


def test_what_is_sent_to_the_one_never_reaches_the_other():
    told = Puppet(lambda turn: send_message("hello"))
    game(defuser=told)
    assert not any("hello" in message for turn in told.turns for message in turn.messages)


def test_random_streams_of_the_room_are_the_missions():
    lottery = game(names=("test-random", "scripted"), allow_lottery_actions=True)
    draws = Stream(WIRES.key, "lottery")
    # Eleven legal actions before a face with one module: five turns of the bomb, then click and hold.
    first = ["left", "right", "flip", "up", "down", "click", "hold"][draws.below(7)]
    names = dict(left="left", right="right", flip="back", up="bottom", down="top")
    assert steps(lottery)[0]["output"] == {"action": "lottery", "location": None}
    assert steps(lottery)[1]["bomb_state"]["bombSide"] == names.get(first, "front")


@pytest.mark.parametrize("style", ["sync", "async"])
def test_a_multi_module_mission_is_recorded_whole(style):
    played = game(multiple_module_n()["mission_spec0"], style=style)
    solved = [sum(m["isSolved"] for m in step["bomb_state"]["modules"]) for step in steps(played)]
    assert solved == sorted(solved) and solved[-1] == 3
    sent = [s["output"]["message"] for s in steps(played) if s["output_kind"] == "send_message"]
    received = [line for s in steps(played, "expert") for text in s["new_messages"] for line in text.split("\n")]
    assert [line for line in received if line != "<no_new_messages>"] == sent
