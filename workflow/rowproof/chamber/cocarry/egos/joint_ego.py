"""The ego of a pair that learned together."""

from rowproof.chamber.cocarry.learned_players import LearnedPlayer, read_actors

LEARNED = True


def build(uri: str, data: bytes) -> LearnedPlayer:
    """The ego in the checkpoint ``uri`` with content ``data``.

    Raises:
        CheckpointError: other content than ``uri`` names, or no pair of this task.
    """
    return LearnedPlayer(read_actors(uri, data, ("ego", "partner"))["ego"])
