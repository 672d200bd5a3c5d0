"""The learned ego of the handover, built from a checkpoint."""

from rowproof.chamber.handover_cell import HandoverCell
from rowproof.chamber.handover_learned import ACTION_SIZE, STATE_SIZE, placement_of, state_of
from rowproof.chamber.handover_moves import Observation, Placement
from rowproof.chamber.learned.policy import Actor
from rowproof.chamber.learned.tensors import decode
from rowproof.checkpoints import CheckpointError


class LearnedEgo:
    """Plays the mean action of an actor; an ego as :data:`rowproof.chamber.handover_episodes.Ego` has it."""

    def __init__(self, actor: Actor, blind: bool = False) -> None:
        """Play ``actor``; ``blind`` hides from it what the presenter brought."""
        self._actor, self._blind = actor, blind

    def __call__(self, cell: HandoverCell, seen: Observation, initial_state_seed: int, root_seed: int) -> Placement:
        """The placement; it draws nothing, so the seeds do not matter."""
        return placement_of(cell, self._actor.mean_action(state_of(cell, seen, self._blind)))


def read_actor(uri: str, data: bytes) -> Actor:
    """The actor of the checkpoint ``uri`` with content ``data``.

    Raises:
        CheckpointError: other content than ``uri`` names, or no ego of this task.
    """
    actor = Actor(decode(data, uri, ("ego",))["ego"])
    if (actor.state_size, actor.action_size) != (STATE_SIZE, ACTION_SIZE):
        raise CheckpointError(
            f"checkpoint {uri}: ego must take {STATE_SIZE} values and give {ACTION_SIZE}, found "
            f"{actor.state_size} and {actor.action_size}"
        )
    return actor
