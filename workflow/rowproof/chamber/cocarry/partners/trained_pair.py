"""The partner that was trained together with the ego; its weights are in the ego's checkpoint."""

from rowproof.chamber.cocarry.learned_players import LearnedPlayer, read_actors

LEARNED = True


def build(uri: str, data: bytes) -> LearnedPlayer:
    """The partner in the checkpoint ``uri`` with content ``data``.

    Raises:
        CheckpointError: other content than ``uri`` names, or no pair of this task.
    """
    return LearnedPlayer(read_actors(uri, data, ("ego", "partner"))["partner"])
