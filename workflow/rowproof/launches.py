"""How the processes of one build know of each other: the file of its launch, and how late files may be seen."""

import json
import logging
import os
import time
from pathlib import Path
from typing import Any

from rowproof.errors import RecordError, StaleInputError
from rowproof.records import check_fields

log = logging.getLogger("rowproof")

# Names the file of the launch that a process is a job of.
LAUNCH_VARIABLE = "ROWPROOF_LAUNCH"

# What stands in the file of a launch.
LAUNCH_FIELDS = {"boards": (list,), "commit": (str,), "dirty": (bool,), "root": (str,), "rows": (list,)}

# Names the seconds by which a shared file system may show a file later than its writer has it (--latency-wait).
LATENCY_VARIABLE = "ROWPROOF_LATENCY_S"
# What holds for a process that is told nothing.
LATENCY_S = 60.0


def read_launch_file(path: Path) -> dict[str, Any]:
    """What the process that launched this build wrote down for its jobs; it may be seen late.

    Raises:
        StaleInputError: the file is missing or damaged.
    """
    try:
        wait_for(path, time.time())
        return check_fields(json.loads(path.read_bytes()), LAUNCH_FIELDS, str(path))
    except (OSError, ValueError, RecordError):
        raise StaleInputError(
            f"{path} must tell how this build was launched, found it missing or damaged: start snakemake again"
        ) from None


def wait_for(path: Path, since_s: float) -> None:
    """Wait for a file that was written before ``since_s`` (Unix time), though another host may see it later.

    Returns as well when it is not seen within the latency of the file system.
    """
    # What was written may seem to come from the future, after the clock was set back.
    deadline_s = min(since_s, time.time()) + float(os.environ.get(LATENCY_VARIABLE) or LATENCY_S)
    while not path.exists():
        left_s = deadline_s - time.time()
        if left_s <= 0:
            return
        log.info("waiting for %s, at most %.0f s", path, left_s)
        time.sleep(min(1.0, left_s))
