"""Recipes of mission sets, ``config/missions/recipes/<set>.yaml``: how a generated set came about."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field, field_validator, model_validator

from rowproof.errors import ConfigError
from rowproof.files import write_if_changed
from rowproof.gptnt.bomb.mission import MAX_MODULES, NEEDY, SOLVABLE, Mission
from rowproof.gptnt.bomb.published import time_limit_s
from rowproof.gptnt.mission_sets import FOLDER
from rowproof.gptnt.models import Positive, Strict
from rowproof.gptnt.names import config_names, unknown_name
from rowproof.records import encode_document
from rowproof.strict_yaml import load

RECIPES = f"{FOLDER}/recipes"
# Seeds of missions are drawn from here, the upper bound left out.
SEEDS = (100, 1000)
# Published recipes exclude them by name.
_NO_MODULES = ("Empty", "Timer")

Modules = Annotated[int, Field(ge=1, le=MAX_MODULES)]
Widgets = Annotated[int, Field(ge=0, le=10)]


class Draws(Strict):
    """What the missions of a set have in common.

    Attributes:
        time_limit: in seconds; None for the published formula (:func:`~rowproof.gptnt.bomb.mission.time_limit_s`).
        allow_back_placement: modules may sit on the back.
        n_modules_min: least number of modules of a mission.
        n_modules_max: largest.
        sample_from_modules: one mission per seed with modules that are drawn, instead of one per module and seed.
        allow_repeat_module: a drawn mission may have one kind of module twice.
        min_optional_widgets: least number of widgets besides the serial number.
        max_optional_widgets: largest.
        excluded_modules: kinds that are not wanted. Needy ones never are, named or not.
    """

    time_limit: Positive | None
    allow_back_placement: bool
    n_modules_min: Modules
    n_modules_max: Modules
    sample_from_modules: bool
    allow_repeat_module: bool
    min_optional_widgets: Widgets
    max_optional_widgets: Widgets
    excluded_modules: list[str]

    @field_validator("excluded_modules")
    @classmethod
    def _known(cls, names: list[str]) -> list[str]:
        known = [*SOLVABLE, *NEEDY, *_NO_MODULES]
        unknown = sorted(set(names) - set(known))
        if unknown:
            raise ValueError(f"must be among {known}, found {unknown}")
        return names

    @model_validator(mode="after")
    def _possible(self) -> "Draws":
        for least, most in (("n_modules_min", "n_modules_max"), ("min_optional_widgets", "max_optional_widgets")):
            if getattr(self, least) > getattr(self, most):
                raise ValueError(f"{least} must not exceed {most}")
        if not self.sample_from_modules and self.n_modules_max > 1:
            raise ValueError("n_modules_max must be 1 unless sample_from_modules is true: a mission per module has one")
        if not self.available or not (self.allow_repeat_module or self.n_modules_max <= len(self.available)):
            raise ValueError(f"excluded_modules must leave enough to draw {self.n_modules_max} from")
        if self.n_modules_max > 1 and len(self.available) == 1:
            raise ValueError("excluded_modules must leave two kinds, since a mission may not have one kind alone")
        return self

    @property
    def available(self) -> list[str]:
        """The kinds that missions may have, in alphabetical order."""
        return [name for name in SOLVABLE if name not in self.excluded_modules]


class MissionRecipe(Strict):
    """How a set is drawn; ``seed`` draws the seeds of its missions."""

    seed: Annotated[int, Field(ge=0)]
    num_seeds_per_mission: Positive
    config: Draws

    def missions(self) -> dict[str, Mission]:
        """The missions by name.

        All draws are those of NumPy's default generator, as for the published set: first the seeds, then for each seed
        from a generator of its own, and for each mission of it, the number of modules, that of the widgets, and the
        modules where they are drawn.

        Raises:
            ConfigError: two missions have the same seed, or a drawn mission makes no bomb.
        """
        seeds = [
            int(seed) for seed in np.random.default_rng(self.seed).integers(*SEEDS, size=self.num_seeds_per_mission)
        ]
        twice = sorted(seed for seed, count in Counter(seeds).items() if count > 1)
        if twice:
            raise ConfigError(f"seeds of missions must differ, found {twice} twice: choose another seed for the recipe")
        missions = {}
        for seed in seeds:
            rng = np.random.default_rng(seed)
            for kind in [None] if self.config.sample_from_modules else self.config.available:
                mission = self._draw(rng, seed, kind)
                name = f"{kind or 'mission'}-{seed}"
                mission.check(name)
                missions[name] = mission
        return missions

    def _draw(self, rng: np.random.Generator, seed: int, kind: str | None) -> Mission:
        config = self.config
        count = int(rng.integers(config.n_modules_min, config.n_modules_max + 1))
        widgets = int(rng.integers(config.min_optional_widgets, config.max_optional_widgets + 1))
        components = [kind] if kind else []
        while len(set(components)) < min(count, 2):
            components = [str(name) for name in rng.choice(config.available, count, config.allow_repeat_module)]
        limit_s = config.time_limit or time_limit_s(components, config.allow_back_placement)
        return Mission(
            seed, limit_s, tuple(components), widgets, force_modules_to_front=not config.allow_back_placement
        )


def generate_missions(root: Path, name: str) -> tuple[int, int]:
    """Write the mission set of a recipe and return how many missions it has and how many files changed.

    Raises:
        ConfigError: there is no such recipe, it breaks the model or makes no bombs, or the folder of the set holds
            missions that are not of it.
    """
    known = config_names(root / RECIPES)
    if name not in known:
        raise unknown_name("a recipe of missions", name, known, f"ls {RECIPES}")
    recipe = load(root / RECIPES / f"{name}.yaml", MissionRecipe, root)[0]
    files = {f"{key}.json": encode_document(mission.wire_data()) for key, mission in recipe.missions().items()}
    folder = root / FOLDER / name
    strange = sorted({path.name for path in folder.glob("*.json")} - set(files))
    if strange:
        raise ConfigError(
            f"{FOLDER}/{name}: must hold missions of its recipe alone, found {len(strange)} others, as {strange[0]}: "
            "remove them"
        )
    return len(files), sum(write_if_changed(folder / file, data) for file, data in files.items())
