"""What players are shown and play with beside the bomb itself: prompts, manual and simulator, as one digest."""

from pathlib import Path

from rowproof.errors import ConfigError
from rowproof.gptnt.bomb.prng import SIMULATOR
from rowproof.gptnt.manual import Manual
from rowproof.hashing import sha256_hex
from rowproof.records import digest

PROMPTS = Path(__file__).resolve().parents[3] / "resources" / "gptnt" / "prompts"


def assets_digest(manual: Manual | None = None, prompts: Path = PROMPTS, simulator: str = SIMULATOR) -> str:
    """SHA-256 (64 hex digits) over the manual, all pieces of prompts and the version of the simulator.

    It informs and decides nothing: two games of one suite revision with different digests count alike.

    Args:
        manual: the shipped one by default.
        prompts: folder of the pieces.
        simulator: name and version.

    Raises:
        ConfigError: manual or prompts cannot be read.
    """
    try:
        pieces = {path.name: sha256_hex(path.read_bytes()) for path in sorted(prompts.iterdir())}
    except OSError as error:
        raise ConfigError(f"{prompts}: must be a folder of readable prompts: {error.strerror}") from None
    manual = manual or Manual.read()
    return digest({"manual": manual.digest, "prompts": pieces, "simulator": simulator})
