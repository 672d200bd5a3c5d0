"""The ego that learned without seeing the partner and the bar."""

import numpy as np

from rowproof.chamber.cocarry.learned_players import LearnedPlayer, read_actors
from rowproof.chamber.cocarry.observation import View, blinded

LEARNED = True


class BlindPlayer(LearnedPlayer):
    """Plays as it learned: partner and bar are hidden from it."""

    def state(self, view: View) -> np.ndarray:
        """See :func:`rowproof.chamber.cocarry.observation.blinded`."""
        return blinded(view.state())


def build(uri: str, data: bytes) -> BlindPlayer:
    """The ego of the checkpoint ``uri`` with content ``data``.

    Raises:
        CheckpointError: other content than ``uri`` names, or no ego of this task.
    """
    return BlindPlayer(read_actors(uri, data, ("ego",))["ego"])
