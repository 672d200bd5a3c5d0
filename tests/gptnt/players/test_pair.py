"""The pair that really talks defuses every mission of the published suites within its time, without a strike."""

import pytest
from gptnt.players.workbench import game
from rowproof.gptnt.bomb.mission import SOLVABLE, Mission
from rowproof.gptnt.bomb.published import multiple_module_n, single_module, time_limit_s

SINGLE, MULTIPLE = single_module(), multiple_module_n()


def check(played):
    assert not played.failure
    assert (played.summary["outcome"], played.summary["strike_count"]) == ("solved", 0), played.summary
    for record in played.records.values():
        assert not any(step["error_type"] for step in record["steps"])


@pytest.mark.parametrize("style", ["sync", "async"])
@pytest.mark.parametrize("component", SOLVABLE)
def test_the_pair_defuses_every_single_module_mission(component, style):
    missions = [mission for mission in SINGLE.values() if mission.components == (component,)]
    assert len(missions) == 10
    for mission in missions:
        check(game(mission, style=style))


@pytest.mark.parametrize("style", ["sync", "async"])
@pytest.mark.parametrize("name", MULTIPLE)
def test_the_pair_defuses_every_mission_of_several_modules(name, style):
    played = game(MULTIPLE[name], style=style)
    check(played)
    assert played.summary["num_modules_solved"] == len(MULTIPLE[name].components)
    kinds = [step["output_kind"] for step in played.records["defuser"]["steps"]]
    assert kinds.count("send_message") >= len(MULTIPLE[name].components)


def test_alone_with_the_manual_it_defuses_them_as_well():
    for mission in (SINGLE | MULTIPLE).values():
        played = game(mission, alone=True)
        check(played)
        assert played.summary["n_rounds"] <= mission.time_limit // 3


def test_alone_without_the_manual_it_does_nothing():
    played = game(alone=True, manual=False)
    assert played.summary["outcome"] == "timeout"
    assert {step["output_kind"] for step in played.records["defuser"]["steps"]} == {"do_nothing", "reflection"}


def test_without_an_expert_who_answers_nothing_is_touched():
    played = game(names=("scripted", "test-oracle"))
    assert (played.summary["outcome"], played.summary["strike_count"]) == ("timeout", 0)


def missions_beyond(seeds):
    for seed in seeds:
        for component in SOLVABLE:
            yield Mission(seed, time_limit_s([component], False), (component,), seed % 6, force_modules_to_front=True)
        yield Mission(seed, 3000, SOLVABLE, 5)


def test_nothing_is_tuned_to_the_published_seeds():
    for mission in missions_beyond(range(5000, 5002)):
        check(game(mission))


@pytest.mark.slow
@pytest.mark.parametrize("style", ["sync", "async"])
def test_many_other_seeds(style):
    for mission in missions_beyond(range(1000, 1050)):
        check(game(mission, style=style))
