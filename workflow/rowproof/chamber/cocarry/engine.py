"""``cocarry@v1``: the records of co-carry episodes, and what must hold in each."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rowproof.chamber.cells import parse_cell
from rowproof.chamber.cocarry.egos import POLICIES as SCRIPTED_POLICIES
from rowproof.chamber.cocarry.egos import build_ego
from rowproof.chamber.cocarry.learned_players import LEARNED_POLICIES, build_learned
from rowproof.chamber.cocarry.measurements import measurement_problems
from rowproof.chamber.cocarry.partners import Player, build_partner
from rowproof.chamber.cocarry.runner import Runner
from rowproof.chamber.cocarry_cell import CocarryCell
from rowproof.chamber.grid import differences, record_schema
from rowproof.chamber.progress import Progress
from rowproof.errors import ConfigError, RecordError
from rowproof.records import Kinds, check_fields

__all__ = ["METADATA_SCHEMA", "POLICIES", "RECORD_SCHEMA", "check_record", "simulate"]

POLICIES = (*SCRIPTED_POLICIES, *LEARNED_POLICIES)
RECORD_SCHEMA = record_schema(float)
# Names the checkpoint that played, in the records of learned policies.
SEED_POLICY = "seed_policy"
METADATA_SCHEMA: dict[str, Kinds] = {
    "condition": (str,),
    "policy": (str,),
    "member": (str,),
    "partner_set": (str,),
    "max_tilt_deg": (float,),
    "centroid_to_goal": (float,),
    "n_steps": (float,),
}
LEARNED_METADATA_SCHEMA: dict[str, Kinds] = {
    "condition": (str,),
    "policy": (str,),
    SEED_POLICY: (str,),
    **{name: kinds for name, kinds in METADATA_SCHEMA.items() if name not in ("condition", "policy")},
}


class _Seats:
    """Ego and partner of every episode of a row, built once each."""

    def __init__(self, setup: Mapping[str, Any], checkpoints: Mapping[int, tuple[str, bytes]]) -> None:
        self._setup, self._checkpoints = setup, checkpoints
        self._members = {member["name"]: member for member in setup["members"]}
        self._learned = setup["policy"] in LEARNED_POLICIES
        self._scripted = None if self._learned else build_ego(setup["policy"], setup["root_seed"])
        self._pairs: dict[int, tuple[Player, Player | None]] = {}
        self._partners: dict[str, Player] = {}

    def of(self, seed: int, member: str) -> tuple[Player, Player]:
        """Ego and partner of an episode."""
        if self._learned and seed not in self._pairs:
            if seed not in self._checkpoints:
                raise ConfigError(f"policy {self._setup['policy']} must have a checkpoint for seed {seed}, found none")
            self._pairs[seed] = build_learned(self._setup["policy"], *self._checkpoints[seed])
        ego, partner = self._pairs[seed] if self._learned else (self._scripted, None)
        if partner is None:
            if member not in self._partners:
                self._partners[member] = build_partner(self._members[member])
            partner = self._partners[member]
        return ego, partner

    def seed_policy(self, seed: int) -> dict[str, str]:
        """What records say of the checkpoint that played."""
        return {SEED_POLICY: self._checkpoints[seed][0]} if self._learned else {}


def simulate(
    setup: Mapping[str, Any],
    specs: Iterable[Mapping[str, Any]],
    checkpoints: Mapping[int, tuple[str, bytes]] | None = None,
) -> Iterator[dict[str, Any]]:
    """The record of every spec, in the order of ``specs``; each depends on its own spec and ``setup`` alone.

    Args:
        setup: plain data with ``cell``, ``policy``, ``root_seed``, ``partner_set`` and ``members``.
        specs: any part of :func:`rowproof.chamber.grid.specs`, in any order.
        checkpoints: of learned policies, the URI and the bytes of the checkpoint that plays, by seed.

    Raises:
        ConfigError: the cell, policy or a member that runs is not valid, or a checkpoint is missing.
        CheckpointError: a checkpoint is not what its URI names, or holds no players of this task.
        SimulatorError: the simulator is not there.
        RobotFilesError: a robot file is missing or altered.
        Stopped: the process was told to stop.
    """
    specs = list(specs)
    cell = parse_cell(CocarryCell, setup["cell"])
    seats = _Seats(setup, checkpoints or {})
    # Built before the first episode, so that a faulty member is found in the first second and not after an hour.
    for spec in specs:
        seats.of(spec["seed"], spec["member"])
    runner = Runner(cell)
    with Progress(len(specs), "episodes", "control steps") as progress:
        for spec in specs:
            episode = runner.run(*seats.of(spec["seed"], spec["member"]), spec["initial_state_seed"])
            yield {
                "seed": spec["seed"],
                "episode_idx": spec["episode_idx"],
                "initial_state_seed": spec["initial_state_seed"],
                "success": episode.success,
                "constraint_violation_peak": 0.0,
                "fallback_fired": 0,
                "force_peak": episode.max_stress_n,
                "metadata": {
                    "condition": cell.condition,
                    "policy": setup["policy"],
                    **seats.seed_policy(spec["seed"]),
                    "member": spec["member"],
                    "partner_set": setup["partner_set"],
                    "max_tilt_deg": episode.max_tilt_deg,
                    "centroid_to_goal": episode.distance_m,
                    "n_steps": float(episode.steps),
                },
            }
            progress.advance(1, episode.steps)


def check_record(setup: Mapping[str, Any], spec: Mapping[str, Any], record: Any) -> list[str]:
    """What is wrong with ``record`` as the record of ``spec``, as far as can be told without running the episode.

    Schema, agreement with spec and setup, ranges and precision of the measurements, and what success and failure
    demand of them. For learned policies ``setup["checkpoints"]`` gives the URI of the checkpoint of each seed.
    That a failure did fail (its speed is not recorded) only a replay can tell.

    Returns:
        One message per problem; empty if there is none.

    Raises:
        ConfigError: the setup's own cell is not valid.
    """
    cell = parse_cell(CocarryCell, setup["cell"])
    where = f"seed {spec['seed']} episode {spec['episode_idx']}"
    try:
        check_fields(record, RECORD_SCHEMA, "record")
        learned = setup["policy"] in LEARNED_POLICIES
        played = {SEED_POLICY: setup["checkpoints"][spec["seed"]]} if learned else {}
        schema = LEARNED_METADATA_SCHEMA if learned else METADATA_SCHEMA
        metadata = check_fields(record["metadata"], schema, "metadata")
        problems = differences(
            {
                "seed": spec["seed"],
                "episode_idx": spec["episode_idx"],
                "initial_state_seed": spec["initial_state_seed"],
                "constraint_violation_peak": 0.0,
                "fallback_fired": 0,
            },
            record,
        )
        problems += differences(
            {
                "condition": cell.condition,
                "policy": setup["policy"],
                **played,
                "member": spec["member"],
                "partner_set": setup["partner_set"],
            },
            metadata,
        )
    except RecordError as error:
        return [f"{where}: {error}"]
    problems += measurement_problems(cell, record["success"], record["force_peak"], metadata)
    return [f"{where}: {problem}" for problem in problems]
