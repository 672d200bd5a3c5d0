"""Registers the engine of this family."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rowproof.families import Engine
from rowproof.hashing import sha256_hex
from rowproof.speedrun.plan_cell import PlanCell, own_cell, with_candidates
from rowproof.speedrun.referee.ladder import LADDER, chain_files

# Rungs and negative controls of the ladder.
RUNGS = ("r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8")
CONTROLS = ("n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8")

_PROJECT = Path(__file__).resolve().parents[3]


def data_files(stage: str, setup: Mapping[str, Any], *, root: Path = _PROJECT) -> tuple[str, ...]:
    """The files that a stage opens: the script, and of the patches those that its rows rest on.

    Args:
        stage: name of the stage.
        setup: of a row, with ``policy``, or of what is timed in turns, with ``policies``.
        root: the project that holds the ladder.

    Returns:
        Paths below the project, each once.

    Raises:
        ConfigError: the ladder lacks a patch, or a patch names no base.
    """
    if stage not in ("specs", "simulate", "time"):
        return ()
    policies = setup["policies"].values() if stage == "time" else [setup["policy"]]
    files = [name for policy in policies for name in chain_files(root / LADDER, policy.upper())]
    return tuple((LADDER / name).as_posix() for name in dict.fromkeys(files))


def data_digest(path: str, data: bytes) -> str:
    """Digest of what counts in a file of the ladder: of a patch, the diff.

    What stands above it is for people, and the name of the base, which the files of a chain tell as well.
    """
    start = data.find(b"--- ") if path.endswith(".diff") else 0
    return sha256_hex(data[max(start, 0) :])


def anchors(cell: dict[str, Any]) -> tuple[str, ...]:
    """The candidates that are timed in every campaign."""
    return cell["baseline"], cell["twice"]


ENGINES = (
    Engine(
        name="nanogpt-speedrun-cpu-v1",
        policies=(*RUNGS, *CONTROLS),
        cell_model=PlanCell,
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
        checks_module="rowproof.speedrun.checks",
        data_files=data_files,
        data_digest=data_digest,
        own_cell=own_cell,
        anchors=anchors,
        campaign_cell=with_candidates,
        replays=False,
        runtime_min=30,
    ),
)
