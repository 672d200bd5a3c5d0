"""The ego that learned beside a frozen partner."""

from rowproof.chamber.cocarry.learned_players import LearnedPlayer, read_actors

LEARNED = True


def build(uri: str, data: bytes) -> LearnedPlayer:
    """The ego of the checkpoint ``uri`` with content ``data``.

    Raises:
        CheckpointError: other content than ``uri`` names, or no ego of this task.
    """
    return LearnedPlayer(read_actors(uri, data, ("ego",))["ego"])
