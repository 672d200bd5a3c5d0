"""A presenter that is drawn from distributions: members of the roster, and those of trainings."""

from dataclasses import dataclass

from rowproof.chamber.handover_moves import Presentation
from rowproof.seeding import substream


@dataclass(frozen=True)
class DrawnPresenter:
    """Draws offset, grasp error and delay from normal distributions.

    The stream depends on the initial state and on whether the grasp is biased, not on the member: two biased members
    see the same standard normals and differ by their parameters alone.
    """

    lateral_offset_x_m: float
    lateral_offset_y_m: float
    lateral_sigma_m: float
    grasp_pose_bias_deg: float
    grasp_pose_sigma_deg: float
    timing_skew_bias_s: float
    timing_skew_sigma_s: float

    def present(self, initial_state_seed: int) -> Presentation:
        """Draw the presentation; see :class:`rowproof.chamber.handover_episodes.Presenter`."""
        variant = "matched" if self.grasp_pose_bias_deg == 0.0 else "mismatched"
        rng = substream(f"partner.handover_presenter.{variant}", initial_state_seed)
        # The order of the draws is part of the task.
        lateral_x_m = self.lateral_offset_x_m + self.lateral_sigma_m * rng.standard_normal()
        lateral_y_m = self.lateral_offset_y_m + self.lateral_sigma_m * rng.standard_normal()
        grasp_error_deg = self.grasp_pose_bias_deg + self.grasp_pose_sigma_deg * rng.standard_normal()
        timing_skew_s = max(0.0, self.timing_skew_bias_s + self.timing_skew_sigma_s * rng.standard_normal())
        return Presentation(lateral_x_m, lateral_y_m, grasp_error_deg, timing_skew_s)
