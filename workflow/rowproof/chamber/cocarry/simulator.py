"""Loads SAPIEN, whose PhysX steps the rig; verification and configuration work without it."""

import platform
import warnings
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

from rowproof.errors import RowproofError

SAPIEN_VERSION = "3.0.3"


class SimulatorError(RowproofError):
    """The simulator is not installed, has another version, or does not run on this platform."""


@cache
def load_sapien() -> ModuleType:
    """The module ``sapien`` in the one version that the rig is defined on.

    Raises:
        SimulatorError: see the class.
    """
    found = (platform.system(), platform.machine())
    if found != ("Linux", "x86_64"):
        raise SimulatorError(
            f"the co-carry rig runs on 64-bit x86 Linux, found {' '.join(found)}: build its rows on such a machine; "
            "verifying them works here"
        )
    try:
        installed = version("sapien")
    except PackageNotFoundError:
        installed = "none"
    if installed != SAPIEN_VERSION:
        raise SimulatorError(
            f"the co-carry rig needs sapien {SAPIEN_VERSION}, found {installed}: pip install sapien=={SAPIEN_VERSION}"
        )
    try:
        with warnings.catch_warnings():
            # It looks for a Vulkan driver, which physics does not need.
            warnings.simplefilter("ignore")
            import sapien
            import sapien.physx
            import sapien.wrapper.urdf_loader
    except (ImportError, OSError) as error:
        raise SimulatorError(f"sapien {installed} must be importable, found: {error}; reinstall it") from None
    return sapien
