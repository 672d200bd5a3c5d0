"""``cocarry@v1``: the records of co-carry episodes."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rowproof.chamber.cells import parse_cell
from rowproof.chamber.cocarry.player import Player
from rowproof.chamber.cocarry.runner import Runner
from rowproof.chamber.cocarry.seats import Checkpoint, build_ego, build_partner, is_learned
from rowproof.chamber.cocarry_cell import CocarryCell
from rowproof.chamber.progress import Progress
from rowproof.errors import ConfigError

# Names the checkpoint that played, in the records of learned policies.
SEED_POLICY = "seed_policy"


class _Seats:
    """Ego and partner of every episode of a row, built once for each seed."""

    def __init__(self, setup: Mapping[str, Any], checkpoints: Mapping[int, Checkpoint]) -> None:
        self._setup, self._checkpoints = setup, checkpoints
        self._members = {member["name"]: member for member in setup["members"]}
        self._learned = is_learned(setup["policy"])
        self._egos: dict[int, Player] = {}
        self._partners: dict[tuple[int, str], Player] = {}

    def of(self, seed: int, member: str) -> tuple[Player, Player]:
        """Ego and partner of an episode."""
        policy, checkpoint = self._setup["policy"], self._checkpoints.get(seed)
        if seed not in self._egos:
            if self._learned and checkpoint is None:
                raise ConfigError(f"policy {policy} must have a checkpoint for seed {seed}, found none")
            self._egos[seed] = build_ego(policy, self._setup["root_seed"], checkpoint)
        if (seed, member) not in self._partners:
            self._partners[seed, member] = build_partner(self._members[member], checkpoint)
        return self._egos[seed], self._partners[seed, member]

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
