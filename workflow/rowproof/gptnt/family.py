"""Registers the engine of this family."""

from collections.abc import Callable, Mapping
from typing import Any

from rowproof.families import Engine
from rowproof.gptnt.cell import SuiteCell, member_name
from rowproof.gptnt.players.scripts import known_scripts, script_module


def _modules(stage: str, setup: Mapping[str, Any]) -> tuple[str, ...]:
    """The scripts of the row's own players."""
    if stage != "simulate":
        return ()
    return tuple(sorted({script_module(player["script"]) for player in setup["settings"]["players"].values()}))


def _data_files(stage: str, setup: Mapping[str, Any]) -> tuple[str, ...]:
    """The manual. A row without it reads it all the same, to hold it against the plan."""
    from rowproof.gptnt.manual import page_files

    return tuple(f"resources/gptnt/manual/{name}" for name in page_files()) if stage == "simulate" else ()


def _settings(read: Callable[[str], bytes], setup: Mapping[str, Any]) -> dict[str, Any]:
    from rowproof.gptnt.settings import settings

    return settings(read, setup)


def _own_cell(cell: dict[str, Any], policy: str, partners: list[str]) -> dict[str, Any]:
    """The cell with the pins of the players that take part; a partner has the name of its player."""
    own = {name: pin for name, pin in cell["players"].items() if name == policy or member_name(name) in partners}
    return {**cell, "players": own}


ENGINES = (
    Engine(
        name="gptnt-v1",
        # Scripted players, the only ones whose games are the same everywhere. Models play through `rowproof run`.
        policies=known_scripts(),
        cell_model=SuiteCell,
        specs_module="rowproof.gptnt.grid",
        simulate_module="rowproof.gptnt.evaluation",
        checks_module="rowproof.gptnt.checks",
        summary_module="rowproof.gptnt.figures",
        page_module="rowproof.gptnt.page",
        replays=True,
        modules=_modules,
        data_files=_data_files,
        settings=_settings,
        own_cell=_own_cell,
    ),
)
