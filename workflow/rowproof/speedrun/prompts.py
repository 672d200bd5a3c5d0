"""What a proposer is told: the first two messages, and the texts that answer its turns. Texts are versioned files."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import Template
from typing import NamedTuple

from rowproof.errors import ConfigError
from rowproof.hashing import sha256_hex
from rowproof.speedrun.records_config import Arguments, Record

VERSION = "v1"
"""Name of the folder of the texts. A text that was published never changes: another wording is another version."""
FOLDER = Path(__file__).resolve().parents[3] / "resources" / "speedrun" / "prompts"

_HARDWARE = {
    "cpu-mini": "one CPU core of an ordinary machine, one process with one thread, $n_seeds seeds one after the other",
    "gpu": "one node with $nproc_per_node GPUs, runs one after the other: $runs",
}


class Prompt(NamedTuple):
    """The messages before the first turn.

    Attributes:
        system: text of the system message.
        user: text of the user message.
        version: of our texts; ``custom`` where the system message was replaced.
    """

    system: str
    user: str
    version: str

    @property
    def sha256(self) -> str:
        """SHA-256 (64 hex) of the system text, a NUL and the user text, in UTF-8 (``prompt_sha256`` of a row)."""
        return sha256_hex(f"{self.system}\0{self.user}".encode())

    @property
    def messages(self) -> list[dict[str, str]]:
        """Both messages as plain data."""
        return [{"role": "system", "content": self.system}, {"role": "user", "content": self.user}]


def build_prompt(record: Record, code: str, arguments: Arguments) -> Prompt:
    """The prompt for one record.

    Args:
        record: what is to be improved.
        code: text of its script.
        arguments: resolved; ``system_prompt`` replaces the system text as it stands.

    Raises:
        ConfigError: a text is missing or malformed.
    """
    counts = {
        "n_seeds": str(arguments.n_seeds),
        "nproc_per_node": str(arguments.nproc_per_node),
        "runs": str(arguments.num_training_runs_per_attempt),
    }
    user = render("user", {"script_name": record.script_name, "code": code})
    if arguments.system_prompt is not None:
        return Prompt(arguments.system_prompt, user, "custom")
    values = {
        "script_name": record.script_name,
        "hardware": Template(_HARDWARE[record.track]).substitute(counts),
        "baseline": _baseline(record, arguments),
        "threshold": f"{record.val_loss_threshold:g}",
        "val_tokens": f"{record.val_tokens:,}",
        "contract": render(
            f"contract-{record.track}", {"nproc_per_node": counts["nproc_per_node"]} if record.track == "gpu" else {}
        ),
    }
    return Prompt(render("system", values), user, VERSION)


def _baseline(record: Record, arguments: Arguments) -> str:
    stored = "" if record.wallclock_ms is None else f"{record.wallclock_ms:.0f} ms on {record.hardware_class}"
    if not arguments.recalc_wallclock:
        return f"The base script takes {stored}."
    known = f" It took {stored} when it was recorded." if stored else ""
    return f"The base script is timed in the same job as yours, in turns with it.{known}"


def render(name: str, values: Mapping[str, str]) -> str:
    """One text with its places filled in; what is filled in is not looked at again.

    Raises:
        ConfigError: the text is missing, or its places are not exactly those of ``values``.
    """
    template = _template(name)
    if not template.is_valid() or set(template.get_identifiers()) != set(values):
        found = ", ".join(sorted(template.get_identifiers())) or "none"
        raise ConfigError(f"{_place(name)}: must have the places {', '.join(sorted(values)) or 'none'}, found {found}")
    return template.substitute(values)


@cache
def _template(name: str) -> Template:
    try:
        return Template((FOLDER / VERSION / f"{name}.md").read_text(encoding="utf-8").rstrip("\n"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{_place(name)}: must be a readable text: {error}") from None


def _place(name: str) -> str:
    return f"resources/speedrun/prompts/{VERSION}/{name}.md"
