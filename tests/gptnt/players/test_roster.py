"""The plain players of the benchmark, and those with a weakness."""

import re
from collections import Counter

import pytest
from gptnt.players.workbench import MANUAL, Puppet, game, heard, setup
from rowproof.errors import ConfigError
from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.bomb.published import multiple_module_n, single_module
from rowproof.gptnt.players.scripts import known_scripts, player_for
from rowproof.gptnt.players.scripts.scripted_careless import Careless
from rowproof.gptnt.players.scripts.scripted_forgetful import Forgetful
from rowproof.gptnt.players.scripts.scripted_mishearing import Mishearing
from rowproof.gptnt.players.scripts.scripted_slow import Slow
from rowproof.gptnt.players.turns import Answer, interact_game, send_message
from rowproof.gptnt.room import Rules
from rowproof.records import digest

SINGLE = single_module()
SOME = [*SINGLE.values()][::5]


def steps(played, role):
    return [step for step in played.records[role]["steps"] if not step["is_reflection"]]


def test_a_script_must_be_known():
    assert set(known_scripts()) >= {"test-defuser", "test-expert", "test-oracle", "test-random", "scripted"}
    for name in ("skripted", "../scripted", "scripted_slow", "__init__", ""):
        with pytest.raises(ConfigError, match=rf"a script must be one of \['scripted', .*, found '{re.escape(name)}'"):
            player_for(name)


def test_the_test_defuser_follows_its_list():
    mission = SINGLE["Password-234"]
    played = game(mission, names=("test-defuser", "test-expert"))
    done = [(s["output"]["action"], s["output"]["location"]) for s in steps(played, "defuser")]
    assert [action for action, _ in done[:9]] == ["left", "flip", "left", "flip", "down", "up", "up", "down", "flip"]
    assert done[9:18] == [("click", "A"), ("out", None), ("click", "A"), *[("hold", "A"), ("release", None)] * 3]
    assert len(done) == mission.time_limit // 3 and set(done[18:]) == {("click", "A")}


def test_the_test_expert_counts_messages_of_the_conversation():
    played = game(names=("test-defuser", "test-expert"))
    assert [step["output"]["message"] for step in steps(played, "expert")[:3]] == [
        "Message 1",
        "Message 3",
        "Message 5",
    ]
    talking = game(names=("test-expert", "test-expert"))
    assert {step["output_kind"] for step in steps(talking, "defuser")} == {"send_message"}
    assert talking.summary["outcome"] == "timeout"


@pytest.mark.parametrize("name", ["test-defuser", "test-oracle", "test-random"])
def test_what_a_role_may_not_do_becomes_nothing(name):
    names = ("scripted", name) if name == "test-defuser" else (name, "scripted")
    played = game(names=names)
    role = "expert" if name == "test-defuser" else "defuser"
    assert {(step["output_kind"], *step["error_type"]) for step in steps(played, role)} == {("do_nothing", "unknown")}
    assert {str(step["output"]) for step in steps(played, role)} == {"{}"}


def test_the_oracle_solves_what_it_may_touch():
    for mission in SINGLE.values():
        played = game(mission, names=("test-oracle", "scripted"), allow_magic_actions=True)
        assert (played.summary["outcome"], played.summary["strike_count"]) == ("solved", 0), mission


def test_the_lottery_is_the_missions_own():
    played = [game(names=("test-random", "scripted"), allow_lottery_actions=True) for _ in range(2)]
    assert digest(played[0].records) == digest(played[1].records)
    outcomes = Counter()
    for mission in SOME:
        outcomes[game(mission, names=("test-random", "scripted"), allow_lottery_actions=True).summary["outcome"]] += 1
    assert outcomes["solved"] < len(SOME) / 2 < outcomes["timeout"] + outcomes["strikeout"]


# ---- weaknesses ------------------------------------------------------------------------------------------------


def weak_game(name, role, mission, style="sync", seed=0):
    names = (name, "scripted") if role == "defuser" else ("scripted", name)
    return game(mission, names=names, style=style, rules=Rules(seed=seed))


@pytest.mark.parametrize("name", ["scripted-forgetful", "scripted-mishearing", "scripted-slow", "scripted-careless"])
def test_weak_players_play_on_and_the_same_seed_gives_the_same_game(name):
    different = 0
    for mission in SOME[::8]:
        for role in ("defuser", "expert"):
            for style in ("sync", "async"):
                played = [weak_game(name, role, mission, style, seed) for seed in (0, 0, 1)]
                assert not any(one.failure for one in played)
                assert digest(played[0].records) == digest(played[1].records)
                different += digest([s["output"] for s in played[0].records["defuser"]["steps"]]) != digest(
                    [s["output"] for s in played[2].records["defuser"]["steps"]]
                )
    assert different > 0


def test_missed_messages_cost_time_and_no_strikes():
    whole = [game(mission).summary["n_rounds"] for mission in SOME]
    played = [weak_game("scripted-forgetful", "defuser", mission).summary for mission in SOME]
    assert all(one["strike_count"] == 0 for one in played)
    more = [one["n_rounds"] - rounds for one, rounds in zip(played, whole, strict=True)]
    assert min(more) >= 0 < sum(more)


def test_careless_hands_cause_strikes():
    missions = [mission for name, mission in SINGLE.items() if name.startswith(("Maze", "Keypad", "Venn"))]
    strikes = sum(weak_game("scripted-careless", "defuser", mission).summary["strike_count"] for mission in missions)
    assert strikes > 0 == sum(game(mission).summary["strike_count"] for mission in missions)


def test_slowness_shows_in_asynchronous_play_alone():
    mission = SINGLE["Keypad-234"]
    quick, slow = (game(mission, names=(name, "scripted"), style="async") for name in ("scripted", "scripted-slow"))
    assert slow.summary["seconds_remaining"] < quick.summary["seconds_remaining"]
    quick, slow = (game(mission, names=(name, "scripted")) for name in ("scripted", "scripted-slow"))
    assert slow.summary == quick.summary


def asked(weak, turn, **settings):
    weak.configure(setup(**settings))
    return weak.turn(turn)


def test_lapses_are_as_frequent_as_they_are_said_to_be():
    turns = [heard("one", "two", number=number) for number in range(1, 501)]
    puppet = Puppet()
    forgetful = Forgetful(puppet, lapse=0.25)
    forgetful.configure(setup("expert"))
    for turn in turns:
        forgetful.turn(turn)
    missed = 1000 - sum(len(turn.messages) for turn in puppet.turns)
    # Five standard deviations of a binomial count.
    assert abs(missed - 250) < 5 * (1000 * 0.25 * 0.75) ** 0.5


@pytest.mark.parametrize(
    ("message", "others"),
    [
        ("blue", {"red", "white", "yellow", "black", "green"}),
        ("go up", {"go left", "go right", "go down"}),
        ("7", set("012345689")),
        ("hello", {""}),
        ("", {""}),
    ],
)
def test_a_misheard_word_is_one_like_it(message, others):
    puppet = Puppet()
    mishearing = Mishearing(puppet, lapse=1)
    mishearing.configure(setup("expert"))
    for number in range(1, 101):
        mishearing.turn(heard(message, number=number))
    assert {turn.messages[0] for turn in puppet.turns} == others


def test_without_lapses_a_weak_player_is_the_player():
    turn = heard("blue")._replace(observation={"marks": {"A": "", "B": ""}})
    for weakness in (Forgetful, Mishearing, Careless):
        puppet = Puppet(lambda turn: interact_game("click_release", "A"))
        assert asked(weakness(puppet, lapse=0), turn).output == interact_game("click_release", "A")
        assert puppet.turns == [turn]


def test_careless_hands_take_another_element_and_a_careless_tongue_another_word():
    turn = heard()._replace(observation={"marks": dict.fromkeys("ABC", "")})
    slip = asked(Careless(Puppet(lambda turn: interact_game("hold", "A")), lapse=1), turn)
    assert slip.output["result"]["data"]["location"] in {"B", "C"}
    alone = turn._replace(observation={"marks": {"A": ""}})
    assert asked(Careless(Puppet(lambda turn: interact_game("hold", "A")), lapse=1), alone).output == interact_game(
        "hold", "A"
    )
    slip = asked(Careless(Puppet(lambda turn: send_message('Button: "tap".')), lapse=1), turn)
    assert slip.output == send_message('Button: "hold".')


def test_a_slow_answer_takes_its_own_time():
    turn = heard()
    assert asked(Slow(Puppet()), turn, latency_ms=3000).latency_ms > 3000
    assert asked(Slow(Puppet(lambda turn: Answer({}, latency_ms=100_000))), turn).latency_ms > 100_000


def test_every_player_of_a_game_has_a_stream_of_its_own():
    first, second = Puppet(), Puppet()
    game(defuser=first, expert=second)
    again = Puppet()
    game(Mission(235, 81, ("Wires",), 2), defuser=again)
    streams = {puppet.setup.stream for puppet in (first, second, again)}
    assert len(streams) == 3
    assert MANUAL is second.setup.manual and first.setup.manual is None


def test_multi_module_missions_wear_the_weak_down():
    missions = multiple_module_n().values()
    solved = sum(weak_game("scripted-careless", "defuser", m).summary["outcome"] == "solved" for m in missions)
    assert solved < len(missions)
