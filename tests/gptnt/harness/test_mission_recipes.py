"""Mission sets out of recipes: the published one comes out, drawn ones keep their bounds, and the rest is refused."""

import pytest
from gptnt.harness.workbench import refusal
from helpers import ROOT
from rowproof.errors import ConfigError
from rowproof.gptnt.bomb.bomb import build
from rowproof.gptnt.bomb.mission import SOLVABLE
from rowproof.gptnt.bomb.published import SINGLE_MODULE_WIDGETS, single_module, time_limit_s
from rowproof.gptnt.mission_recipes import RECIPES, MissionRecipe, generate_missions
from rowproof.gptnt.mission_sets import FOLDER, load_mission_set
from rowproof.plain_data import read_model
from rowproof.strict_yaml import load

CONFIG = {
    "time_limit": None,
    "allow_back_placement": True,
    "n_modules_min": 2,
    "n_modules_max": 4,
    "sample_from_modules": True,
    "allow_repeat_module": True,
    "min_optional_widgets": 0,
    "max_optional_widgets": 3,
    "excluded_modules": ["Maze", "Morse"],
}


def recipe(seed=3, count=10, **changes):
    data = {"seed": seed, "num_seeds_per_mission": count, "config": CONFIG | changes}
    return read_model(data, MissionRecipe, "recipe")


@pytest.fixture
def recipes(project):
    """A project with one recipe of its own and none of the sets."""
    (project / RECIPES).mkdir()
    text = (ROOT / RECIPES / "single_module.yaml").read_text()
    (project / RECIPES / "mine.yaml").write_text(text.replace("num_seeds_per_mission: 10", "num_seeds_per_mission: 2"))
    return project


def test_the_published_set_comes_out():
    made = load(ROOT / RECIPES / "single_module.yaml", MissionRecipe, ROOT)[0].missions()
    assert made == single_module() and len(made) == 110
    assert list(dict.fromkeys(mission.seed for mission in made.values()))[:3] == [798, 960, 337]
    assert {mission.seed for mission in made.values()} == set(SINGLE_MODULE_WIDGETS)


def test_drawn_missions_keep_their_bounds_and_make_bombs():
    missions = recipe(count=12).missions()
    assert {len(mission.components) for mission in missions.values()} == {2, 3, 4}
    for name, mission in missions.items():
        assert name == f"mission-{mission.seed}" and 100 <= mission.seed < 1000
        assert 0 <= mission.optional_widgets <= 3 and not mission.force_modules_to_front
        assert not {"Maze", "Morse"} & set(mission.components) and len(set(mission.components)) > 1
        assert mission.time_limit == time_limit_s(mission.components, back_allowed=True)
        build(mission)


def test_modules_repeat_only_where_they_may():
    def repeats(missions):
        return any(len(set(mission.components)) < len(mission.components) for mission in missions.values())

    assert repeats(recipe(count=12).missions())
    assert not repeats(recipe(count=12, allow_repeat_module=False).missions())


def test_a_time_limit_of_the_recipe_holds():
    assert {mission.time_limit for mission in recipe(count=3, time_limit=200).missions().values()} == {200}


def test_one_module_each_may_be_drawn_as_well():
    missions = recipe(count=5, n_modules_min=1, n_modules_max=1).missions()
    assert {len(mission.components) for mission in missions.values()} == {1}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_modules_min": 5}, "n_modules_min must not exceed n_modules_max"),
        ({"min_optional_widgets": 4}, "min_optional_widgets must not exceed max_optional_widgets"),
        ({"n_modules_max": 12}, "n_modules_max"),
        ({"max_optional_widgets": 11}, "max_optional_widgets"),
        ({"time_limit": 0}, "time_limit"),
        ({"sample_from_modules": False}, "n_modules_max must be 1 unless sample_from_modules is true"),
        ({"excluded_modules": ["Knob"]}, "must be among"),
        ({"excluded_modules": [name for name in SOLVABLE if name != "Wires"]}, "must leave two kinds"),
        ({"allow_repeat_module": False, "n_modules_max": 10}, "must leave enough to draw 10 from"),
        ({"extra": 1}, "extra"),
    ],
)
def test_recipes_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        recipe(**changes)


def test_two_missions_of_one_seed_are_refused():
    assert "seeds of missions must differ" in refusal(recipe(count=500).missions)


def test_what_makes_no_bomb_is_named():
    with pytest.raises(ConfigError, match=r"mission-\d+: the front must hold 1 to 5 components"):
        recipe(count=5, n_modules_min=6, n_modules_max=6, allow_back_placement=False).missions()


def test_the_command_writes_a_set_that_loads_and_writes_it_once(recipes, command):
    assert command("generate-missions", "mine")[:2] == (0, "22 missions in config/missions/mine, 22 written\n")
    assert len(load_mission_set(recipes, "mine")) == 22
    assert command("generate-missions", "mine")[1].endswith("0 written\n")
    (recipes / FOLDER / "mine" / "Wires-798.json").write_text("{}")
    assert command("generate-missions", "mine")[1].endswith("1 written\n")


def test_missions_of_others_are_not_mixed_in(recipes):
    (recipes / FOLDER / "mine").mkdir()
    (recipes / FOLDER / "mine" / "other.json").write_text("{}")
    assert "must hold missions of its recipe alone, found 1 others, as other.json" in refusal(
        generate_missions, recipes, "mine"
    )
    assert len(list((recipes / FOLDER / "mine").iterdir())) == 1


def test_unknown_recipes_are_refused_with_the_nearest(recipes):
    assert "did you mean 'mine'" in refusal(generate_missions, recipes, "mime")
