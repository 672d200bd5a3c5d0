"""Places at random."""

from rowproof.chamber.handover_cell import HandoverCell
from rowproof.chamber.handover_moves import Observation, Placement
from rowproof.chamber.handover_task import uniform
from rowproof.seeding import substream


def place(cell: HandoverCell, seen: Observation, initial_state_seed: int, root_seed: int) -> Placement:
    """Uniform over the command ranges; the same placement whatever the member."""
    rng = substream(f"benchmarks.handover_eval.ego_random.{initial_state_seed}", root_seed)
    reach_m, reach_deg = cell.translation_range_m, cell.wrist_correction_deg
    x_m = uniform(rng, -reach_m, reach_m)
    y_m = uniform(rng, -reach_m, reach_m)
    turn_deg = uniform(rng, -reach_deg, reach_deg)
    return Placement(x_m, y_m, turn_deg, float(rng.integers(0, 2)))
