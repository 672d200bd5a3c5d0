"""The ego that learned with presenters drawn from a box."""

from rowproof.chamber.handover_learned_ego import LearnedEgo, read_actor

LEARNED = True


def build(uri: str, data: bytes) -> LearnedEgo:
    """The ego of the checkpoint ``uri`` with content ``data``.

    Raises:
        CheckpointError: other content than ``uri`` names, or no ego of this task.
    """
    return LearnedEgo(read_actor(uri, data))
