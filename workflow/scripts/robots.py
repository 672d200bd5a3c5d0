"""Fetch the robot descriptions of the co-carry rig, unless they are here and unchanged; called by hand.

Jobs fetch them by themselves. Where they run without a network, call this first on a host that has one.
"""

import sys
from pathlib import Path

# By hand nothing else tells where the package is.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rowproof.chamber.cocarry.robots import ensure
from rowproof.jobs import log, logged

with logged(None):
    log.info("robot files fetched" if ensure() else "robot files are here and unchanged")
