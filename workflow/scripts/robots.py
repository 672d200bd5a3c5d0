"""Fetch the robot descriptions of the co-carry rig, unless they are here and unchanged."""

from rowproof.chamber.cocarry.robots import ROBOT_FOLDER, ensure
from rowproof.jobs import log, logged

# Also called by hand, without a rule around it.
with logged(globals().get("snakemake")):
    fetched = ensure(ROBOT_FOLDER)
    log.info("robot files fetched" if fetched else "robot files are here and unchanged")
