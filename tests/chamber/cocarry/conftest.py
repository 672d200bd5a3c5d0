"""Fixtures of the co-carry tests; those that need the simulator or the robot files skip without them."""

import pytest
import yaml
from helpers import ROOT
from rowproof.chamber.cocarry import robot_files
from rowproof.chamber.cocarry.simulator import SimulatorError, load_sapien
from rowproof.partners import PartnerSet

CELL = {
    "condition": "cocarry_matched_panda_pair",
    "goal_radius_m": 0.10,
    "tilt_limit_deg": 15.0,
    "force_limit_n": 130.0,
    "joint_speed_limit_rad_per_s": 0.2,
    "settle_step": 15,
    "max_steps": 320,
}
MEMBERS = (
    "imp_stiff_low",
    "imp_stiff_high",
    "imp_damp_low",
    "imp_damp_high",
    "imp_lag_bounded",
    "imp_blend_b",
    "imp_blend_c",
)


@pytest.fixture(scope="session")
def simulator():
    """The simulator and the robot files are here."""
    try:
        load_sapien()
        robot_files.require(robot_files.ROBOT_FOLDER)
    except (SimulatorError, robot_files.RobotFilesError) as error:
        pytest.skip(f"the co-carry rig cannot run here: {error}")


@pytest.fixture(scope="session")
def roster():
    """The partner set of the board."""
    text = (ROOT / "config/partners/cocarry-partners-v1.yaml").read_text(encoding="utf-8")
    return PartnerSet.model_validate(yaml.safe_load(text))


@pytest.fixture
def setup(roster):
    """A function that makes the setup of a row."""

    def make(**changes):
        return {
            "seeds": [0, 1, 2, 3, 4],
            "episodes_per_partner": 50,
            "root_seed": 0,
            "initial_state": "seed*1000+episode",
            "partner_set": roster.label,
            "members": roster.seats(MEMBERS),
            "policy": "ref_script_cocarry_impedance",
            **changes,
            "cell": {**CELL, **changes.get("cell", {})},
        }

    return make
