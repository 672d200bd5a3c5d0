"""``nanogpt_speedrun@v1``: verification runs of a board's patches.

A row is a patch of the ladder, its seeds are those of the training runs, and it has no partner. A record tells how the
run of one seed ended: its loss, and its cost as far as no clock is needed for it.
"""

import platform
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from rowproof.errors import ConfigError
from rowproof.hashing import sha256_hex
from rowproof.plain_data import read_model
from rowproof.speedrun.cell import SpeedrunCell
from rowproof.speedrun.corpus import manifest_sha256, read_split, write_corpus
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.patching import Application, apply_patch
from rowproof.speedrun.policy import check_policy
from rowproof.speedrun.referee.evaluation import WINDOW
from rowproof.speedrun.referee.ladder import LADDER, SCRIPT_NAME, base_of, read_patch, read_script
from rowproof.speedrun.referee.machine import idlest_core
from rowproof.speedrun.referee.runs import Referee, Verification, verify
from rowproof.speedrun.referee.sandbox import Limits, Sandbox, available_mode, self_test

PROJECT = Path(__file__).resolve().parents[3]
NOBODY = "nobody"


@dataclass(frozen=True)
class Entry:
    """A candidate as it stands in the ladder.

    Attributes:
        name: of the candidate.
        base: name of the candidate that it patches; None for the baseline.
        base_script: text of that one's script, or of its own.
        script: text of the script that runs.
        applied: what became of its patch; None for the baseline.
    """

    name: str
    base: str | None
    base_script: str
    script: str
    applied: Application | None


def read_entry(name: str, root: Path = PROJECT) -> Entry:
    """A candidate of the ladder of the project ``root``.

    Raises:
        ConfigError: the ladder has none of that name, or a patch that it rests on does not apply.
    """
    folder = root / LADDER
    script = read_script(folder, name.upper())
    base = base_of(folder, name.upper())
    if base is None:
        return Entry(name, None, script, script, None)
    base_script = read_script(folder, base)
    applied = apply_patch(base_script, read_patch(folder, name.upper()), SCRIPT_NAME)
    return Entry(name, base.lower(), base_script, script, applied)


def read_cell(setup: Mapping[str, Any]) -> SpeedrunCell:
    """The task parameters of a setup.

    Raises:
        ConfigError: they break their model, or were written for another corpus.
    """
    cell = read_model(setup["cell"], SpeedrunCell, "cell")
    if cell.data_manifest_sha256 != manifest_sha256() or cell.window_tokens != WINDOW:
        raise ConfigError(
            f"cell: must be written for the corpus {manifest_sha256()} in windows of {WINDOW} tokens, found "
            f"{cell.data_manifest_sha256} in windows of {cell.window_tokens}: write a new plan"
        )
    return cell


def planned_entry(name: str, cell: SpeedrunCell, root: Path = PROJECT) -> Entry:
    """A candidate whose script is the one that the plan fixed.

    Raises:
        ConfigError: it is another, or the plan has none.
    """
    if name not in cell.candidates:
        raise ConfigError(f"cell: candidates must have {name}, found {', '.join(cell.candidates)}")
    entry = read_entry(name, root)
    stated, found = cell.candidates[name].script_sha256, sha256_hex(entry.script.encode("utf-8"))
    if stated != found:
        raise ConfigError(
            f"{name}: its script must have the digest {stated} as the plan has it, found {found}: restore the patches "
            "that it rests on, or write a new plan"
        )
    return entry


def specs(setup: Mapping[str, Any], *, root: Path = PROJECT) -> list[dict[str, Any]]:
    """The verification runs of a row, one per seed.

    Args:
        setup: plain data with ``policy``, ``seeds``, ``members`` (nobody alone) and ``cell`` (a
            :class:`~rowproof.speedrun.cell.SpeedrunCell`; of its candidates only that of the row is read).
        root: the project that holds the ladder.

    Returns:
        One dict per run with ``seed``, ``episode_idx`` (always 0), ``initial_state_seed`` (the seed again), ``member``
        and ``script_sha256``, in this order.

    Raises:
        ConfigError: scripts, corpus or seeds are not those of the plan.
    """
    cell = read_cell(setup)
    if [member["name"] for member in setup["members"]] != [NOBODY] or setup["episodes_per_partner"] != 1:
        raise ConfigError(
            f"a row of a speedrun must have one run per seed and the partner {NOBODY}, found another plan"
        )
    shared = set(setup["seeds"]) & {*cell.feedback_seeds, *cell.calibration_seeds}
    if shared:
        raise ConfigError(f"seeds of scoring runs must be used for nothing else, found {sorted(shared)} elsewhere")
    entry = planned_entry(setup["policy"], cell, root)
    digest = sha256_hex(entry.script.encode("utf-8"))
    return [
        {"seed": seed, "episode_idx": 0, "initial_state_seed": seed, "member": NOBODY, "script_sha256": digest}
        for seed in setup["seeds"]
    ]


def simulate(
    setup: Mapping[str, Any], specs: Iterable[Mapping[str, Any]], *, root: Path = PROJECT
) -> Iterator[dict[str, Any]]:
    """The record of every run, in the order of ``specs``; each depends on its own seed and ``setup`` alone.

    Raises:
        ConfigError: see :func:`specs`.
        SandboxError: the sandbox itself failed.
    """
    cell = read_cell(setup)
    entry = planned_entry(setup["policy"], cell, root)
    failure = _failure(entry)
    referee = None if failure else prepare_referee(cell, idlest_core())
    for unit in specs:
        found = None if referee is None else verify(referee, entry.script, unit["seed"], _gap(entry, cell))
        yield _record(setup, cell, entry, unit, failure, referee, found)


def prepare_referee(cell: SpeedrunCell, core: int) -> Referee:
    """The referee of a board's runs, after it has tried what its sandbox must prevent.

    Raises:
        SandboxError: the sandbox lets through what it must prevent.
    """
    sandbox = Sandbox(available_mode("strict", core), core)
    limits = cell.limits
    with tempfile.TemporaryDirectory(prefix="speedrun-corpus-") as name:
        folder = Path(name)
        write_corpus(folder)
        self_test(sandbox, sorted(folder.iterdir()))
        train, val = (np.array(read_split(folder, split), dtype=np.uint16) for split in ("train", "val"))
    return Referee(
        sandbox=sandbox,
        train=train,
        val=val[: cell.val_windows * cell.window_tokens + 1],
        salt=cell.audit_salt.encode("utf-8"),
        limits=Limits(wall_s=float(limits.wall_s), cpu_s=limits.cpu_s, mem_mb=limits.mem_mb),
        checkpoint_limit_mb=float(limits.checkpoint_mb),
    )


def _failure(entry: Entry) -> tuple[Outcome, str] | None:
    """How a patch ends before anything runs; None if it does not."""
    if entry.applied is not None and entry.applied.failure is not None:
        return entry.applied.failure, entry.applied.detail
    report = check_policy(entry.script, entry.base_script)
    if report.failure is not None:
        return report.failure, "; ".join(f"line {found.line}: {found.rule}: {found.detail}" for found in report.hard)
    return None


def _gap(entry: Entry, cell: SpeedrunCell) -> float | None:
    return None if entry.name == cell.baseline else cell.base_gap


def _record(
    setup: Mapping[str, Any],
    cell: SpeedrunCell,
    entry: Entry,
    unit: Mapping[str, Any],
    failure: tuple[Outcome, str] | None,
    referee: Referee | None,
    found: Verification | None,
) -> dict[str, Any]:
    outcome, detail = failure or (found.outcome, found.detail)
    cost = found.record() if found else {}
    applied = entry.applied
    flags = () if failure else check_policy(entry.script, entry.base_script).flags
    return {
        **{name: unit[name] for name in ("seed", "episode_idx", "initial_state_seed")},
        "success": outcome is Outcome.OK and cost["val_loss"] <= cell.target,
        "metadata": {
            "policy": setup["policy"],
            "member": unit["member"],
            "partner_set": setup["partner_set"],
            **{name: getattr(cell, name) for name in ("track", "target", "sigma", "baseline")},
            **{name: getattr(cell, name) for name in ("baseline_tokens", "baseline_flops")},
            "expected": cell.candidates[entry.name].expected.model_dump(),
            "base": entry.base,
            "base_sha256": sha256_hex(entry.base_script.encode("utf-8")),
            "script_sha256": sha256_hex(entry.script.encode("utf-8")),
            "diff_sha256": applied.diff_sha256 if applied and applied.patched else None,
            "lines_added": applied.lines_added if applied else 0,
            "lines_removed": applied.lines_removed if applied else 0,
            "flags": sorted({*flags, *(applied.flags if applied else ())}),
            "outcome": str(outcome),
            "detail": detail,
            **{name: cost.get(name) for name in ("val_loss", "audit_loss", "train_tokens", "train_flops")},
            **{name: cost.get(name) for name in ("analytic_flops", "n_params", "checkpoint_bytes", "weights_sha256")},
            "data_manifest_sha256": cell.data_manifest_sha256,
            "audit_salt_sha256": sha256_hex(cell.audit_salt.encode("utf-8")),
            "sandbox": referee.sandbox.mode if referee else None,
            "platform": platform_class() if referee else "",
        },
    }


def platform_class() -> str:
    """What decides the digits of a training run: the build of PyTorch, the architecture, the instructions it uses."""
    import torch

    capability = torch.backends.cpu.get_cpu_capability()
    return f"torch {version('torch').partition('+')[0]}, {platform.machine()}, {capability}, 1 thread"
