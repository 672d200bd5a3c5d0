"""Mission sets as files: ``config/missions/<set>/<mission>.json``."""

from collections.abc import Callable
from pathlib import Path

from rowproof.errors import ConfigError, RecordError
from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.bomb.published import multiple_module_n, single_module
from rowproof.records import decode, encode_document

FOLDER = "config/missions"
PUBLISHED: dict[str, Callable[[], dict[str, Mission]]] = {
    "multiple_module_n": multiple_module_n,
    "single_module": single_module,
}


def mission_files() -> dict[str, bytes]:
    """Path, relative to the project, and content of each file of the published sets."""
    return {
        f"{FOLDER}/{name}/{mission_name}.json": encode_document(mission.wire_data())
        for name, missions in PUBLISHED.items()
        for mission_name, mission in missions().items()
    }


def load_mission_set(root: Path, name: str) -> dict[str, Mission]:
    """The missions of ``config/missions/<name>`` by name, in the order of the file names.

    Raises:
        ConfigError: there is no such folder, it is empty, or a file is no mission.
    """
    folder = root / FOLDER / name
    paths = sorted(folder.glob("*.json"))
    if not paths:
        known = sorted({path.parent.name for path in (root / FOLDER).glob("*/*.json")})
        raise ConfigError(f"{FOLDER}/{name}: must hold mission files (*.json), found none; sets here: {known}")
    missions = {}
    for path in paths:
        where = f"{FOLDER}/{name}/{path.name}"
        try:
            data = decode(path.read_bytes(), where)
        except RecordError as error:
            raise ConfigError(str(error)) from None
        except OSError as error:
            raise ConfigError(f"{where}: must be a readable file: {error.strerror}") from None
        missions[path.stem] = Mission.from_data(data, where)
    return missions
