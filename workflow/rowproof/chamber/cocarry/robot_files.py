"""The robot descriptions that the rig is built from: which files, with which content, and where they lie."""

from pathlib import Path

from rowproof.errors import RowproofError
from rowproof.hashing import sha256_hex

ROBOT_FOLDER = Path(__file__).resolve().parents[4] / "resources" / "robots"
# Fetches them by hand.
FETCH_SCRIPT = "workflow/scripts/robots.py"

EGO_URDF = "panda_v3.urdf"
PARTNER_URDF = "panda_v2.urdf"

# SHA-256 of every file, as in mani_skill 3.0.1 below mani_skill/assets/robots/panda/.
ROBOT_FILES = {
    "panda_v2.urdf": "524c6986dbbabe244e05801f262862205e880834d01459b06ee273016d0579ba",
    "panda_v2.srdf": "00d8beb0b638928ab5ce272aa5daf7e80d56b556555c2aa18d9c677ef826e6e4",
    "panda_v3.urdf": "d040277352476639950e2ddce1dff8a1c0e95df470e5e9ed186cd01c468fa412",
    "panda_v3.srdf": "914d50f60103ca85d90c940b0006f42e993b537b0cc90d04f2bcae93d988c308",
    "franka_description/meshes/collision/hand.stl": "94493e94f30fe940f2c8ca2f155c3bbe67bbff406d3edf5e261670d2f0f6e2ed",
    "franka_description/meshes/collision/link0.stl": "dfc6d94330de8ddb005b311bfdba9f3b8e1aa7c256b71592ee7ff32cb9a9a5aa",
    "franka_description/meshes/collision/link1.stl": "e41a39a94108fcf56aacff603fc91ec80541f4c1af17b51a0de5617f5566e6d2",
    "franka_description/meshes/collision/link2.stl": "370f7605a0fae3529db169ded50f52f171024aa792d4d773bc84197301f6a039",
    "franka_description/meshes/collision/link3.stl": "0a8d638b9349c6c0eefc4e888636ac4838c4b27170f18a51699321118af709c1",
    "franka_description/meshes/collision/link4.stl": "0180ebb5772ec9840cb049750cffb29a9ddc90311752a16ea34757782ef9e48d",
    "franka_description/meshes/collision/link5.stl": "dd17e688c7870e722283525879643d53a74c0024d328b0e14b034b54c8b6c31a",
    "franka_description/meshes/collision/link6.stl": "20b768e99a0e0440b5754dcca108016434e57937cc356acd9c352ccd3cb27f77",
    "franka_description/meshes/collision/link7.stl": "92ac6afcf7574c034d3170d8a68e95ac9048ab9d0dd5bbd8311b86e551b9ab1c",
}


class RobotFilesError(RowproofError):
    """A robot description is missing or altered, or cannot be fetched."""


def problems(folder: Path) -> list[str]:
    """What is wrong with the robot files in ``folder``: one text per missing or altered file."""
    found = []
    for name, expected in ROBOT_FILES.items():
        try:
            digest = sha256_hex((folder / name).read_bytes())
        except OSError as error:
            found.append(f"{name} ({error.strerror})")
        else:
            if digest != expected:
                found.append(f"{name} (SHA-256 {digest}, expected {expected})")
    return found


def require(folder: Path) -> None:
    """Refuse to build a rig from other files: a mesh that fails to load is dropped silently by the simulator.

    Raises:
        RobotFilesError: a file is missing or altered.
    """
    wrong = problems(folder)
    if wrong:
        raise RobotFilesError(
            f"{folder} must hold the {len(ROBOT_FILES)} robot files of mani_skill 3.0.1, found missing or altered: "
            f"{', '.join(wrong)}; run python {FETCH_SCRIPT}, which fetches them"
        )
