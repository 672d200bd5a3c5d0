"""The published ladder of patches and its negative controls, and scripts at other lengths."""

import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from rowproof.errors import ConfigError
from rowproof.files import write_atomic
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.patching import apply_patch, canonical_diff
from rowproof.strict_yaml import load

SCRIPT_NAME = "train_gpt.py"
SMOKE_STEPS = 20

_STEPS = re.compile(r"^( +num_iterations = )\d+$", re.MULTILINE)


class Rung(BaseModel):
    """One patch of the ladder, or the baseline.

    Attributes:
        name: R0 is the baseline, R1 and on the ladder, N1 and on the controls.
        base: the rung whose script the patch changes; none for the baseline.
        title: what the patch does.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: str
    base: str | None
    title: str


class _Ladder(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    rungs: list[Rung]


def read_ladder(folder: Path) -> dict[str, Rung]:
    """All rungs by name, in order; ``folder`` holds ``ladder.yaml``, the script and the patches.

    Raises:
        ConfigError: the file breaks its schema, a name occurs twice, or a base does not stand before its patch.
    """
    ladder, _ = load(folder / "ladder.yaml", _Ladder, folder)
    found: dict[str, Rung] = {}
    for rung in ladder.rungs:
        if rung.name in found:
            raise ConfigError(f"ladder.yaml: names must be distinct, found {rung.name} twice")
        if (rung.base is None) != (not found) or (rung.base is not None and rung.base not in found):
            raise ConfigError(
                f"ladder.yaml: the base of {rung.name} must be a rung before it (none for the first), found {rung.base}"
            )
        found[rung.name] = rung
    return found


def read_patch(folder: Path, name: str) -> str:
    """The unified diff of a rung other than the baseline."""
    return (folder / "patches" / f"{name}.diff").read_text(encoding="utf-8")


def read_script(folder: Path, name: str) -> str:
    """The script of a rung: the baseline with all patches up to this one. A control that changes nothing is its base.

    Raises:
        ConfigError: there is no such rung, or its patch does not apply.
    """
    ladder = read_ladder(folder)
    if name not in ladder:
        raise ConfigError(f"ladder.yaml: must have a rung {name}, found {', '.join(ladder)}")
    rung = ladder[name]
    if rung.base is None:
        return (folder / SCRIPT_NAME).read_text(encoding="utf-8")
    base = read_script(folder, rung.base)
    applied = apply_patch(base, read_patch(folder, name), SCRIPT_NAME)
    if applied.failure is Outcome.NOOP_PATCH:
        return base
    if applied.patched is None:
        raise ConfigError(f"patches/{name}.diff: must apply to the script of {rung.base}: {applied.detail}")
    return applied.patched


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
    ladder = read_ladder(folder)
    old = {name: read_script(folder, name) for name in ladder}
    # A control that changes nothing stays as it is, and so does the baseline.
    patched = [name for name, rung in ladder.items() if rung.base is not None and old[name] != old[rung.base]]
    unknown = sorted(set(steps) - set(patched))
    if unknown:
        raise ConfigError(f"steps can be set for {', '.join(patched)}, found {', '.join(unknown)}")
    new = {name: old[name] for name, rung in ladder.items() if rung.base is None}
    patches = {}
    for name in patched:
        base = ladder[name].base
        follows = steps_of(old[name]) == steps_of(old[base])
        new[name] = with_steps(old[name], steps.get(name, steps_of(new[base] if follows else old[name])))
        patches[name] = canonical_diff(new[base], new[name], SCRIPT_NAME)
    for name, patch in patches.items():
        write_atomic(folder / "patches" / f"{name}.diff", patch.encode("utf-8"))


def steps_of(source: str) -> int:
    """The number of steps that a script is trained for.

    Raises:
        ConfigError: it does not set one.
    """
    found = _STEPS.search(source)
    if found is None:
        raise ConfigError("the script must set num_iterations on one line, found none")
    return int(found[0].rpartition("=")[2])
