"""Constants of the published rig.

World frame in metres: z is up, the table top lies at z = 0. Quaternions are (w, x, y, z).
"""

import math

EGO, PARTNER = 0, 1

DT_S = 0.01
SUBSTEPS = 5
ARM_JOINTS = 7
JOINTS = 9
"""Seven arm joints and two fingers."""
ACTION_SIZE = 8
"""Seven joint increments and one gripper command, each in [-1, 1]."""

# Fixed bases: the arms face each other, 0.5 m from the table centre.
BASE_POSITIONS_M = ((-0.5, 0.0, 0.0), (0.5, 0.0, 0.0))
BASE_QUATERNIONS = ((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))

# Joint 7 is at -pi/4, so the fingers open along the bar and one of each hand starts inside it; that is the rig.
READY_POSTURE = (0.0, math.pi / 8, 0.0, -5 * math.pi / 8, 0.0, 3 * math.pi / 4, -math.pi / 4, 0.04, 0.04)
PARKED_POSTURE = (0.0, -math.pi / 4, 0.0, -7 * math.pi / 8, 0.0, 5 * math.pi / 8, -math.pi / 4, 0.04, 0.04)

BAR_HALF_SIZES_M = (0.115, 0.0125, 0.0125)
BAR_MASS_KG = 0.4
# The arms are crossed: the ego, whose base is at -x, holds the +x end.
BAR_END_SIGNS = (1.0, -1.0)
# The tool centre point in the hand frame; each bar end is pinned to one.
TCP_IN_HAND_M = (0.0, 0.0, 0.1034)

TABLE_HALF_SIZES_M = (2.418 / 2, 1.209 / 2, 0.9196429 / 2)
TABLE_POSITION_M = (-0.12, 0.0, -0.9196429)
TABLE_QUATERNION = (math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5))
