"""Registers the engines of this family."""

from collections.abc import Callable, Mapping
from typing import Any

from rowproof.chamber.cocarry.robot_files import ROBOT_FILES
from rowproof.chamber.cocarry_cell import CocarryCell
from rowproof.chamber.handover_cell import HandoverCell
from rowproof.chamber.handover_training_config import HandoverTrainingConfig
from rowproof.chamber.push_cell import PushCell
from rowproof.chamber.training_config import TrainingConfig
from rowproof.families import Engine

# Policy -> algorithm of its training, whether it is blind, whether it plays with the partner that it learned with.
HANDOVER_LEARNED = {"happo": ("happo", False, False), "happo_blind": ("happo", True, False)}
COCARRY_LEARNED = {**HANDOVER_LEARNED, "joint_ego": ("mappo", False, True)}


def _players(egos: str, partners: str) -> Callable[[str, Mapping[str, Any]], tuple[str, ...]]:
    """What a row loads by name: the module of its policy, then those of its members' classes, sorted.

    Args:
        egos: the package that holds a module for every policy.
        partners: likewise for every partner class.
    """

    def modules(stage: str, setup: Mapping[str, Any]) -> tuple[str, ...]:
        if stage not in ("select", "simulate"):
            return ()
        members = setup["members"] if stage == "simulate" else [setup["member"]]
        classes = sorted({member["class"] for member in members})
        return (f"{egos}.{setup['policy']}", *(f"{partners}.{name}" for name in classes))

    return modules


# Every policy is a module of its name in the folder of egos; a partner class needs its module alone.
ENGINES = (
    Engine(
        name="handover-v1",
        policies=("ref_script_handover_ego", "random", "static", *HANDOVER_LEARNED),
        learned_policies=HANDOVER_LEARNED,
        training_model=HandoverTrainingConfig,
        training_module="rowproof.chamber.handover_training",
        validation_module="rowproof.chamber.handover_validation",
        validation_measurements=("force_peak",),
        cell_model=HandoverCell,
        specs_module="rowproof.chamber.grid",
        simulate_module="rowproof.chamber.handover",
        checks_module="rowproof.chamber.handover_checks",
        modules=_players("rowproof.chamber.handover_egos", "rowproof.chamber.handover_partners"),
        replays=True,
    ),
    Engine(
        name="push-v1",
        policies=("scripted_heuristic", "random", "static"),
        cell_model=PushCell,
        specs_module="rowproof.chamber.grid",
        simulate_module="rowproof.chamber.push",
        checks_module="rowproof.chamber.push_checks",
        modules=_players("rowproof.chamber.push_egos", "rowproof.chamber.push_partners"),
        replays=True,
    ),
    Engine(
        name="cocarry-v1",
        policies=("ref_script_cocarry_impedance", "random", "static", "cocarry_blind_impedance", *COCARRY_LEARNED),
        learned_policies=COCARRY_LEARNED,
        training_model=TrainingConfig,
        training_module="rowproof.chamber.cocarry.training",
        validation_module="rowproof.chamber.cocarry.validation",
        validation_measurements=("force_peak", "max_tilt_deg", "centroid_to_goal", "n_steps"),
        cell_model=CocarryCell,
        specs_module="rowproof.chamber.grid",
        simulate_module="rowproof.chamber.cocarry.engine",
        checks_module="rowproof.chamber.cocarry.checks",
        modules=_players("rowproof.chamber.cocarry.egos", "rowproof.chamber.cocarry.partners"),
        replays=False,
        files=tuple(f"resources/robots/{name}" for name in ROBOT_FILES),
        files_module="rowproof.chamber.cocarry.robots",
        runtime_min=60,
    ),
)
