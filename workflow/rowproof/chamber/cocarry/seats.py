"""Who sits where, built from the modules of their names."""

from collections.abc import Mapping
from typing import Any

from rowproof.chamber import by_name
from rowproof.chamber.cocarry.player import Player
from rowproof.errors import ConfigError

EGOS, PARTNERS = "rowproof.chamber.cocarry.egos", "rowproof.chamber.cocarry.partners"

Checkpoint = tuple[str, bytes]
"""URI and bytes."""


def is_learned(policy: str) -> bool:
    """Whether ``policy`` plays a checkpoint.

    Raises:
        ConfigError: there is no such policy.
    """
    return by_name.is_learned(by_name.load(EGOS, policy, "policy"))


def build_ego(policy: str, root_seed: int, checkpoint: Checkpoint | None = None) -> Player:
    """The ego ``policy``: a scripted one with the root of its random streams, a learned one from its checkpoint.

    Raises:
        ConfigError: there is no such policy, or no checkpoint for a learned one.
        CheckpointError: the checkpoint is not what its URI names, or holds no players of this task.
    """
    module = by_name.load(EGOS, policy, "policy")
    if not by_name.is_learned(module):
        return module.build(root_seed)
    if checkpoint is None:
        raise ConfigError(f"policy {policy} must have a checkpoint, found none")
    return module.build(*checkpoint)


def build_partner(member: Mapping[str, Any], checkpoint: Checkpoint | None = None) -> Player:
    """The partner of one entry of ``setup["members"]``, by its ``class``; ``checkpoint`` is that of the ego.

    Raises:
        ConfigError: the class is unknown, its parameters do not fit it, or it needs a checkpoint and there is none.
        CheckpointError: the checkpoint is not what its URI names, or holds no players of this task.
    """
    where = f"partner {member['name']}"
    module = by_name.load(PARTNERS, member["class"], f"{where}: class")
    if not by_name.is_learned(module):
        return module.build(member["params"], where)
    if checkpoint is None:
        raise ConfigError(f"{where}: {member['class']} must play beside a learned ego, found no checkpoint")
    return module.build(*checkpoint)
