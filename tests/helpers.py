"""What several test modules need."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def shared_data(*parts: str) -> Path:
    """A file or folder of the published data beside the repository; the test is skipped where it is absent.

    The environment variable ROWPROOF_SHARED names the folder that holds ``data``; by default ``../shared``.
    """
    shared = Path(os.environ.get("ROWPROOF_SHARED") or ROOT / "../shared").resolve()
    path = shared.joinpath("data", *parts)
    if not path.exists():
        pytest.skip(f"published data are not here: {path} (set ROWPROOF_SHARED to the folder that holds data/)")
    return path
