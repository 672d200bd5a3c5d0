"""The reference: undoes what it can."""

from rowproof.chamber.handover_cell import HandoverCell
from rowproof.chamber.handover_moves import Observation, Placement
from rowproof.chamber.handover_task import at_most


def place(cell: HandoverCell, seen: Observation, initial_state_seed: int, root_seed: int) -> Placement:
    """Undo the offset, turn the wrist as far as it goes, ask for a re-grasp when that is not enough.

    It asks whether or not the time allows it: the delay is hidden from it.
    """
    x_m, y_m = at_most(-seen.lateral_x_m, -seen.lateral_y_m, cell.translation_range_m)
    reach_deg = cell.wrist_correction_deg
    left_deg = max(0.0, abs(seen.grasp_error_deg) - reach_deg)
    turn_deg = min(max(-seen.grasp_error_deg, -reach_deg), reach_deg)
    return Placement(x_m, y_m, turn_deg, 1.0 if left_deg >= cell.angular_window_deg else 0.0)
