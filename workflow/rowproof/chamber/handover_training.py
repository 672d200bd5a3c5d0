"""The handover task as an ego trains on it: every episode one decision, with a presenter of its own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rowproof.chamber.cells import parse_cell
from rowproof.chamber.handover_cell import HandoverCell
from rowproof.chamber.handover_drawn_presenter import DrawnPresenter
from rowproof.chamber.handover_learned import ACTION_SIZE, STATE_SIZE, placement_of, state_of
from rowproof.chamber.handover_moves import Placement
from rowproof.chamber.handover_task import observe, resolve, uniform
from rowproof.chamber.handover_training_config import HandoverTrainingConfig
from rowproof.chamber.learned.trainer import Outcome, Training, Watcher
from rowproof.seeding import substream

# Presenters of training: uniform over the box from which the published roster's off-grid members were drawn.
LATERAL_SIGMA_M = (1e-4, 3e-4)
GRASP_BIAS_DEG = (15.0, 45.0)
GRASP_SIGMA_DEG = (8.0, 12.0)
SKEW_BIAS_S = (0.1, 0.3)
SKEW_SIGMA_S = (0.05, 0.15)
# Initial states of training, beyond those of any evaluation or validation.
INITIAL_STATE_SEEDS = (2**32, 2**63)

NOTHING = Placement(0.0, 0.0, 0.0, 0.0)


def draw_presenter(rng: np.random.Generator) -> DrawnPresenter:
    """A presenter from the box: five uniform draws in the order of the constants above; the mean offset is zero."""
    limits = (LATERAL_SIGMA_M, GRASP_BIAS_DEG, GRASP_SIGMA_DEG, SKEW_BIAS_S, SKEW_SIGMA_S)
    return DrawnPresenter(0.0, 0.0, *(uniform(rng, low, high) for low, high in limits))


class HandoverTask:
    """Episodes of one training; see :class:`rowproof.chamber.learned.trainer.Task`.

    Every episode has another presenter and another initial state, both from the stream ``training.episode.<i>`` of the
    training's seed. The members of the roster that lie in the box are single points of it and are never drawn.

    The reward is 1 for success, plus ``shaping_weight`` times what the ego took off the seating force, in units of the
    force limit: ``potential(after) - potential(before)``, where the potential is minus the force, and before means what
    doing nothing would have led to. Potential-based shaping proper has the potential 0 at the end of an episode; as
    an episode is one decision, the action would drop out of it. So the potential after the decision stays, and the
    shaping is a reward of its own. It still asks for nothing else than success does: success is limits on the two
    residuals, the force grows with both, and there is one way to make both smallest in every state: undo the offset
    (for a blind ego: do not move, since offsets are symmetric about zero) and ask for a re-grasp. The term before
    does not depend on the action; it takes out of the reward what no ego can help.

    A failure is reported as an episode that ran out of time, the trainer's only other way to end one. It makes no
    difference, because with discount 0 no value of a later state enters.
    """

    state_size = STATE_SIZE
    action_size = ACTION_SIZE

    def __init__(self, config: HandoverTrainingConfig, cell: HandoverCell, seed: int) -> None:
        """Train on ``cell``; all draws come from streams of ``seed``."""
        self._config, self._cell, self._seed = config, cell, seed

    def fresh(self, episode: int) -> list[np.ndarray]:
        """See :class:`rowproof.chamber.learned.trainer.Task`."""
        self._next = episode
        return self.reset()

    def reset(self) -> list[np.ndarray]:
        """See :class:`rowproof.chamber.learned.trainer.Task`."""
        rng = substream(f"training.episode.{self._next}", self._seed)
        presenter = draw_presenter(rng)
        initial_state_seed = int(rng.integers(*INITIAL_STATE_SEEDS))
        self._next += 1
        self._presented = presenter.present(initial_state_seed)
        self._state = state_of(self._cell, observe(self._presented, initial_state_seed), self._config.blind)
        return [self._state]

    def step(self, actions: list[np.ndarray]) -> Outcome:
        """See :class:`rowproof.chamber.learned.trainer.Task`."""
        cell = self._cell
        outcome = resolve(cell, self._presented, placement_of(cell, actions[0]))
        before_n = resolve(cell, self._presented, NOTHING).force_n
        shaping = self._config.shaping_weight * (before_n - outcome.force_n) / cell.seating_force_limit_n
        return Outcome([self._state], float(outcome.success) + shaping, outcome.success, not outcome.success)


def train(setup: Mapping[str, Any], seed: int, folder: Path, watcher: Watcher) -> dict[str, Any]:
    """Run the training ``seed``; a pure function of ``setup`` and ``seed``, whatever was interrupted before.

    Args:
        setup: plain data with ``cell`` and ``training``.
        seed: the training seed.
        folder: where checkpoints and the state to resume from are kept.
        watcher: who follows the progress.

    Returns:
        The document of the training: its checkpoints by name, its learning curve.

    Raises:
        ConfigError: cell or training configuration is not valid.
        Stopped: the process was told to stop.
    """
    config = parse_cell(HandoverTrainingConfig, setup["training"])
    task = HandoverTask(config, parse_cell(HandoverCell, setup["cell"]), seed)
    return Training(config, task, seed, folder).run(watcher)
