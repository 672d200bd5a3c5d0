"""Registers the engine of this family."""

from rowproof.families import Engine
from rowproof.gptnt.cell import SuiteCell

# Scripted players, the only ones whose games are the same everywhere. Models play through `rowproof run`.
SCRIPTED = ("scripted", "scripted-careless", "scripted-forgetful", "scripted-mishearing", "scripted-slow")
REFERENCES = ("test-defuser", "test-oracle", "test-random")

ENGINES = (
    Engine(
        name="gptnt-v1",
        policies=(*SCRIPTED, *REFERENCES),
        cell_model=SuiteCell,
        specs_module="rowproof.gptnt.evaluation",
        simulate_module="rowproof.gptnt.evaluation",
        summary_module="rowproof.gptnt.figures",
        page_module="rowproof.gptnt.page",
        replays=True,
    ),
)
