"""Pins everything outside a recipe that could reach a number: threads, hash seed, locale, time zone."""

import os

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


def pin_environment() -> None:
    """Set the pinned variables for this process's children; results must not rely on it, it only removes luck."""
    os.environ.update(PINNED_ENVIRONMENT)
