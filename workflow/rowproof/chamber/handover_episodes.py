"""Who plays an episode of the handover, and the episode itself."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from rowproof.chamber import by_name
from rowproof.chamber.handover_cell import HandoverCell
from rowproof.chamber.handover_moves import Observation, Placement, Presentation
from rowproof.chamber.handover_task import Outcome, observe, resolve
from rowproof.errors import ConfigError

EGOS, PARTNERS = "rowproof.chamber.handover_egos", "rowproof.chamber.handover_partners"

Ego = Callable[[HandoverCell, Observation, int, int], Placement]


class Presenter(Protocol):
    """A partner: one presentation per initial state."""

    def present(self, initial_state_seed: int) -> Presentation:
        """The presentation of the episode that starts from ``initial_state_seed``."""


def is_learned(policy: str) -> bool:
    """Whether ``policy`` plays a checkpoint.

    Raises:
        ConfigError: there is no such policy.
    """
    return by_name.is_learned(by_name.load(EGOS, policy, "policy"))


def build_ego(policy: str, checkpoint: tuple[str, bytes] | None = None) -> Ego:
    """The ego ``policy``; ``checkpoint`` is URI and bytes of what a learned one plays.

    Raises:
        ConfigError: there is no such policy, or no checkpoint for a learned one.
        CheckpointError: the checkpoint is not what its URI names, or holds no ego of this task.
    """
    module = by_name.load(EGOS, policy, "policy")
    if not by_name.is_learned(module):
        return module.place
    if checkpoint is None:
        raise ConfigError(f"policy {policy} must have a checkpoint, found none")
    return module.build(*checkpoint)


def build_presenter(member: Mapping[str, Any]) -> Presenter:
    """The presenter of one entry of ``setup["members"]``, by its ``class``.

    Raises:
        ConfigError: the class is unknown or its parameters do not fit it.
    """
    where = f"partner {member['name']}"
    return by_name.load(PARTNERS, member["class"], f"{where}: class").build(member["params"], where)


def run_episode(cell: HandoverCell, presenter: Presenter, ego: Ego, initial_state_seed: int, root_seed: int) -> Outcome:
    """Present, place and resolve one episode; a pure function of its arguments."""
    presented = presenter.present(initial_state_seed)
    seen = observe(presented, initial_state_seed)
    return resolve(cell, presented, ego(cell, seen, initial_state_seed, root_seed))
