"""Players that were trained, built from a checkpoint."""

import numpy as np

from rowproof.chamber.cocarry import rig
from rowproof.chamber.cocarry.observation import STATE_SIZE, View, blinded
from rowproof.chamber.cocarry.partners import Player
from rowproof.chamber.learned.policy import Actor
from rowproof.chamber.learned.tensors import decode
from rowproof.checkpoints import CheckpointError

ALONE, BLIND, JOINT = "happo", "happo_blind", "joint_ego"
LEARNED_POLICIES = (ALONE, BLIND, JOINT)


class LearnedPlayer:
    """Plays the mean action of an actor; it has no memory."""

    def __init__(self, actor: Actor, blind: bool = False) -> None:
        """Play ``actor``; ``blind`` hides the partner and the bar from it."""
        self._actor, self._blind = actor, blind

    def reset(self, initial_state_seed: int) -> None:
        """Nothing to forget."""

    def act(self, view: View) -> np.ndarray:
        """See :class:`~rowproof.chamber.cocarry.partners.Player`."""
        state = view.state()
        return self._actor.mean_action(blinded(state) if self._blind else state)


def build_learned(policy: str, uri: str, data: bytes) -> tuple[Player, Player | None]:
    """The ego of a checkpoint, and the partner that it was trained with when both were.

    Args:
        policy: one of ``LEARNED_POLICIES``.
        uri: name of the checkpoint, compared with its content first.
        data: its bytes.

    Raises:
        CheckpointError: other content than ``uri`` names, or no players of this task.
    """
    actors = {
        seat: Actor(tensors)
        for seat, tensors in decode(data, uri, ("ego", "partner") if policy == JOINT else ("ego",)).items()
    }
    for seat, actor in actors.items():
        if (actor.state_size, actor.action_size) != (STATE_SIZE, rig.ACTION_SIZE):
            raise CheckpointError(
                f"checkpoint {uri}: {seat} must take {STATE_SIZE} values and give {rig.ACTION_SIZE}, found "
                f"{actor.state_size} and {actor.action_size}"
            )
    partner = LearnedPlayer(actors["partner"]) if policy == JOINT else None
    return LearnedPlayer(actors["ego"], blind=policy == BLIND), partner
