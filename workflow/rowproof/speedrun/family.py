"""Registers the engine of this family."""

from rowproof.families import Engine
from rowproof.speedrun.cell import SpeedrunCell

# Rungs and negative controls of the ladder.
RUNGS = ("r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8")
CONTROLS = ("n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8")

ENGINES = (
    Engine(
        name="nanogpt-speedrun-cpu-v1",
        policies=(*RUNGS, *CONTROLS),
        cell_model=SpeedrunCell,
        specs_module="rowproof.speedrun.evaluation",
        simulate_module="rowproof.speedrun.evaluation",
        timing_module="rowproof.speedrun.timing",
        # Run inside the sandbox, so no import leads to them.
        programs=tuple(
            f"workflow/rowproof/speedrun/referee/inside/{name}.py"
            for name in ("evaluate", "launcher", "tokens", "train")
        ),
        summary_module="rowproof.speedrun.figures",
        page_module="rowproof.speedrun.page",
        replays=False,
        runtime_min=30,
    ),
)
