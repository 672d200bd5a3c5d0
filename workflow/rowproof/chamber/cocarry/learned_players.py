"""Players that were trained, built from a checkpoint."""

import numpy as np

from rowproof.chamber.cocarry import rig
from rowproof.chamber.cocarry.observation import STATE_SIZE, View
from rowproof.chamber.learned.policy import Actor
from rowproof.chamber.learned.tensors import decode
from rowproof.checkpoints import CheckpointError


class LearnedPlayer:
    """Plays the mean action of an actor; it has no memory."""

    def __init__(self, actor: Actor) -> None:
        """Play ``actor``."""
        self._actor = actor

    def reset(self, initial_state_seed: int) -> None:
        """Nothing to forget."""

    def state(self, view: View) -> np.ndarray:
        """What the actor gets of ``view``, float32 of shape (46,)."""
        return view.state()

    def act(self, view: View) -> np.ndarray:
        """See :class:`~rowproof.chamber.cocarry.player.Player`."""
        return self._actor.mean_action(self.state(view))


def read_actors(uri: str, data: bytes, seats: tuple[str, ...]) -> dict[str, Actor]:
    """The actors of a checkpoint by seat.

    Args:
        uri: name of the checkpoint, compared with its content first.
        data: its bytes.
        seats: those that it must hold and no other, ``ego`` or ``ego`` and ``partner``.

    Raises:
        CheckpointError: other content than ``uri`` names, or no players of this task.
    """
    actors = {seat: Actor(tensors) for seat, tensors in decode(data, uri, seats).items()}
    for seat, actor in actors.items():
        if (actor.state_size, actor.action_size) != (STATE_SIZE, rig.ACTION_SIZE):
            raise CheckpointError(
                f"checkpoint {uri}: {seat} must take {STATE_SIZE} values and give {rig.ACTION_SIZE}, found "
                f"{actor.state_size} and {actor.action_size}"
            )
    return actors
