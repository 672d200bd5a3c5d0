"""The ladder as a whole, and its scripts at other lengths: for calibration, and for tests."""

import re
from collections.abc import Mapping
from pathlib import Path

from rowproof.errors import ConfigError
from rowproof.files import write_atomic
from rowproof.speedrun.patching import canonical_diff
from rowproof.speedrun.referee.ladder import BASELINE, SCRIPT_NAME, base_of, chain_of, read_script

SMOKE_STEPS = 20

_STEPS = re.compile(r"^( +num_iterations = )\d+$", re.MULTILINE)


def read_ladder(folder: Path) -> dict[str, str | None]:
    """All rungs with their bases: the baseline, the ladder, then the controls, each in the order of their numbers.

    Args:
        folder: holds the script and the patches.

    Raises:
        ConfigError: a patch is none of a rung, or rests on no rung.
    """
    names = [BASELINE, *(path.stem for path in (folder / "patches").glob("*.diff"))]
    for name in names:
        chain_of(folder, name)
    names.sort(key=lambda name: (name[0] != "R", int(name[1:])))
    return {name: base_of(folder, name) for name in names}


def write_patch(folder: Path, name: str, base: str, diff: str) -> None:
    """Write the patch of a rung."""
    write_atomic(folder / "patches" / f"{name}.diff", f"Base: {base}\n{diff}".encode())


def with_steps(source: str, steps: int) -> str:
    """``source`` trained for another number of steps: for calibration, and at ``SMOKE_STEPS`` for tests.

    Raises:
        ConfigError: the script does not set ``num_iterations`` on exactly one line.
    """
    found = _STEPS.findall(source)
    if len(found) != 1:
        raise ConfigError(f"the script must set num_iterations on one line, found {len(found)} of them")
    return _STEPS.sub(rf"\g<1>{steps}", source)


def set_steps(folder: Path, steps: Mapping[str, int]) -> None:
    """Write the patches of ``folder`` anew with other numbers of steps, as calibration finds them.

    A rung that ``steps`` does not name keeps its own number, or that of its base if its patch sets none.

    Raises:
        ConfigError: ``steps`` names an unknown rung or the baseline, which is fixed by its digest.
    """
    bases = read_ladder(folder)
    old = {name: read_script(folder, name) for name in bases}
    # A control that changes nothing stays as it is, and so does the baseline.
    patched = {name: base for name, base in bases.items() if base is not None and old[name] != old[base]}
    unknown = sorted(set(steps) - set(patched))
    if unknown:
        raise ConfigError(f"steps can be set for {', '.join(patched)}, found {', '.join(unknown)}")
    new = dict(old)
    patches = {}
    for name in sorted(patched, key=lambda name: len(chain_of(folder, name))):
        base = patched[name]
        follows = steps_of(old[name]) == steps_of(old[base])
        new[name] = with_steps(old[name], steps.get(name, steps_of(new[base] if follows else old[name])))
        patches[name] = canonical_diff(new[base], new[name], SCRIPT_NAME)
    for name, patch in patches.items():
        write_patch(folder, name, patched[name], patch)


def steps_of(source: str) -> int:
    """The number of steps that a script is trained for.

    Raises:
        ConfigError: it does not set one.
    """
    found = _STEPS.search(source)
    if found is None:
        raise ConfigError("the script must set num_iterations on one line, found none")
    return int(found[0].rpartition("=")[2])
