"""Pins everything outside a recipe that could reach a number: threads, hash seed, locale, time zone."""

import os
from pathlib import Path

PINNED_ENVIRONMENT = {
    # One numeric thread: the order of a parallel sum is not ours to choose.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
}


def pin_environment(code: Path) -> None:
    """Prepare this process's children: the pinned variables, and ``code`` first on their import path.

    The code that runs must be the code that was hashed, whichever rowproof is installed. Results must not rely on the
    pinned variables; they only remove luck.
    """
    paths = [str(code), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ.update(PINNED_ENVIRONMENT, PYTHONPATH=os.pathsep.join(paths))
