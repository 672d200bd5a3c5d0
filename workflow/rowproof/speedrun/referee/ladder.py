"""The published ladder of patches and its negative controls: the scripts that follow from it.

Every patch is a file of its own, ``patches/<name>.diff``: a line ``Base: <name>``, then a unified diff on the script of
that base. So a rung can be added without a change in what the others rest on.
"""

import re
from pathlib import Path

from rowproof.errors import ConfigError
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.patching import apply_patch

LADDER = Path("resources/speedrun")
"""Where the ladder of a project lies."""
SCRIPT_NAME = "train_gpt.py"
BASELINE = "R0"
"""The rung that has no patch: the script itself."""

_NAME = re.compile(r"[RN](0|[1-9][0-9]*)")
_BASE = re.compile(r"Base: (\S+)")


def _text(folder: Path, where: str, what: str) -> str:
    try:
        return (folder / where).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{what}, found no file {where}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{where}: must be text in UTF-8, found other bytes: restore it") from None


def _parts(folder: Path, name: str) -> tuple[str, str]:
    """The name of the base of a rung other than the baseline, and its diff."""
    if _NAME.fullmatch(name) is None:
        raise ConfigError(f"{name!r} must be a rung of the ladder, with a name such as R1 or N1")
    where = f"patches/{name}.diff"
    text = _text(folder, where, f"{name} must be a rung of the ladder")
    first, _, diff = text.partition("\n")
    found = _BASE.fullmatch(first)
    if found is None:
        raise ConfigError(f"{where}:1: must name the rung that it patches, as in 'Base: R1', found {first!r}")
    return found[1], diff


def chain_of(folder: Path, name: str) -> tuple[str, ...]:
    """All rungs that a rung rests on, from the baseline up to itself.

    Args:
        folder: holds the script and the patches.
        name: R0 is the baseline, R1 and on the ladder, N1 and on the controls.

    Raises:
        ConfigError: a rung has no patch, its patch names no base, or bases go round in a circle.
    """
    chain = [name]
    while chain[0] != BASELINE:
        base = _parts(folder, chain[0])[0]
        if base in chain:
            raise ConfigError(f"patches/{chain[0]}.diff:1: must not rest on itself, found the base {base}")
        chain.insert(0, base)
    return tuple(chain)


def chain_files(folder: Path, name: str) -> list[str]:
    """The files in ``folder`` that the script of a rung is made of, in the order of :func:`chain_of`.

    Raises:
        ConfigError: see :func:`chain_of`.
    """
    return [SCRIPT_NAME, *(f"patches/{rung}.diff" for rung in chain_of(folder, name)[1:])]


def base_of(folder: Path, name: str) -> str | None:
    """The rung whose script a patch changes; none for the baseline.

    Raises:
        ConfigError: the rung has no patch, or its patch names no base.
    """
    return None if name == BASELINE else _parts(folder, name)[0]


def read_patch(folder: Path, name: str) -> str:
    """The unified diff of a rung other than the baseline.

    Raises:
        ConfigError: see :func:`base_of`.
    """
    return _parts(folder, name)[1]


def read_script(folder: Path, name: str) -> str:
    """The script of a rung: the baseline with all patches up to this one. A control that changes nothing is its base.

    Raises:
        ConfigError: see :func:`chain_of`, or a patch does not apply.
    """
    script = ""
    for rung in chain_of(folder, name):
        if rung == BASELINE:
            script = _text(folder, SCRIPT_NAME, "the ladder must have a script")
            continue
        base, patch = _parts(folder, rung)
        applied = apply_patch(script, patch, SCRIPT_NAME)
        if applied.failure is Outcome.NOOP_PATCH:
            continue
        if applied.patched is None:
            raise ConfigError(f"patches/{rung}.diff: must apply to the script of {base}: {applied.detail}")
        script = applied.patched
    return script
