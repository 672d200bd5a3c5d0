"""Task parameters of the handover engine."""

from rowproof.chamber.cells import Condition, Positive, StrictCell


class HandoverCell(StrictCell):
    """One cell of the handover task: windows, ranges, stiffnesses and times, all positive and finite."""

    condition: Condition
    lateral_window_m: Positive
    angular_window_deg: Positive
    seating_force_limit_n: Positive
    translation_range_m: Positive
    wrist_correction_deg: Positive
    reacquire_range_deg: Positive
    contact_stiffness_n_per_m: Positive
    angular_stiffness_n_per_deg: Positive
    regrasp_budget_s: Positive
    regrasp_duration_s: Positive
