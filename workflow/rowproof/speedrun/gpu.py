"""Launch plans of the GPU track in the published way: command, environment, cluster resources, and what a row must say.

Nothing here runs or measures anything. In this mode the script keeps its own clock and prints its own loss, so every
row of it is self-reported.
"""

import math
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rowproof.errors import ConfigError
from rowproof.speedrun.records_config import Arguments, Record, RelativePath, Strict, Text, load_arguments
from rowproof.speedrun.setups import record_path
from rowproof.strict_yaml import load

HARDWARE_CLASSES = ("h100x8", "h200x8", "h100x4", "h100x1", "h200x1", "other")
"""Times are compared within a class alone; counts of GPUs that no class names are ``other``."""
TRUST = "self-reported"
RULES = ("speedrun_gpu_score",)
"""The rules that only a profile of GPUs brings into the graph: one comparison, with its shards checked before it."""

CPUS_PER_GPU = 12
# 120 GB for eight.
MEM_MB_PER_GPU = 15_000
COMPILE_MIN = 20
TIME_MARGIN = 1.5
EARLIEST_SINGLE_GPU_RECORD = 20
VAL_TOKENS = 10_485_760


class GpuProfile(Strict):
    """A machine with GPUs (``config/speedrun/gpu/<name>.yaml``).

    Attributes:
        gpu_model: kind of all GPUs.
        slurm_gpu_model: what the cluster calls them; null off a cluster.
        shards: folder of the staged shards, relative to the project.
        train_files_variable: environment variable in which the script takes the pattern of the training shards.
        val_files_variable: and of the validation shards.
    """

    gpu_model: Literal["h100", "h200", "other"]
    slurm_gpu_model: Text | None = None
    shards: RelativePath
    train_files_variable: Text = "NANOGPT_TRAIN_FILES"
    val_files_variable: Text = "NANOGPT_VAL_FILES"


class LaunchPlan(NamedTuple):
    """One comparison on GPUs: what is started, where, and how often.

    Attributes:
        hardware_class: one of :data:`HARDWARE_CLASSES`.
        command: of one run, each entry one argument.
        environment: variables of a run; ``$scratch`` stands for a folder on the node's own disk.
        runs: names of the runs in order: ``base`` and ``patched``, or ``warm-up``.
        resources: of the job, as Snakemake and its SLURM executor name them.
        notes: what the row says beside its numbers.
    """

    hardware_class: str
    command: tuple[str, ...]
    environment: dict[str, str]
    runs: tuple[str, ...]
    resources: dict[str, Any]
    notes: tuple[str, ...]


def load_gpu_profile(root: Path, name: str | None) -> GpuProfile | None:
    """The profile of a name; None without a name, and then there is no GPU track.

    Raises:
        ConfigError: the file is missing, malformed or breaks the model.
    """
    if name is None:
        return None
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}", name):
        raise ConfigError(f"a GPU profile must have a plain name, found {name!r}")
    return load(root / "config" / "speedrun" / "gpu" / f"{name}.yaml", GpuProfile, root)[0]


class GpuTrack(NamedTuple):
    """The GPU track as the graph asks for it, one attempt at a time.

    Attributes:
        root: the project.
        profile: name of the GPU profile.
    """

    root: Path
    profile: str

    def arguments(self, attempt: str) -> Arguments:
        """The arguments of ``patches/<attempt>.yaml``; they must say ``track: gpu`` and name the record.

        Raises:
            ConfigError: they cannot be read, or are for the other track.
        """
        found = load_arguments(self.root, self.root / "patches" / f"{attempt}.yaml")
        if found.track != "gpu":
            raise ConfigError(f"patches/{attempt}.yaml: track must be gpu for this target, found {found.track}")
        return found

    def record(self, arguments: Arguments) -> Record:
        """The record of these arguments; its script is not looked at, since it may be on another machine."""
        return load(record_path(self.root, "gpu", arguments.record), Record, self.root)[0]

    def plan(self, attempt: str) -> LaunchPlan:
        """The launch plan of an attempt; see :func:`plan_launch`."""
        arguments, profile = self.arguments(attempt), load_gpu_profile(self.root, self.profile)
        assert profile is not None
        return plan_launch(self.record(arguments), arguments, profile)

    def launch(self, wildcards: Any) -> str:
        """Params function: what Snakemake prints of the attempt ``wildcards.name``, in a dry run and before the job."""
        return describe_plan(self.plan(wildcards.name)).partition("\n")[2].rstrip("\n")

    def resource(self, name: str, default: int | str = 0) -> Callable[[Any], Any]:
        """Resource function: one resource of the job, or ``default`` where the plan has none of that name."""
        return lambda wildcards: self.plan(wildcards.name).resources.get(name, default)


def gpu_rules(profile: GpuProfile | None) -> tuple[str, ...]:
    """The rules of the GPU track: none without a profile, so that they are absent from the graph and cannot fail."""
    return () if profile is None else RULES


def hardware_class(gpu_model: str, nproc_per_node: int) -> str:
    """The class of a machine."""
    name = f"{gpu_model}x{nproc_per_node}"
    return name if name in HARDWARE_CLASSES else "other"


def launch_command(script_name: str, nproc_per_node: int) -> tuple[str, ...]:
    """The published command of one run."""
    return "torchrun", "--standalone", f"--nproc_per_node={nproc_per_node}", script_name


def plan_launch(record: Record, arguments: Arguments, profile: GpuProfile) -> LaunchPlan:
    """The plan of one comparison.

    Without ``recalc_wallclock`` the patched script runs ``num_training_runs_per_attempt`` times and is compared with
    the stored time; with it, base and patched script run in pairs on the same node, after a pair that warms up.

    Args:
        record: of the track ``gpu``.
        arguments: resolved, of the same track.
        profile: of the machine.

    Raises:
        ConfigError: the record or the arguments are of another track, or the stored time is of another hardware class.
    """
    if (record.track, arguments.track) != ("gpu", "gpu"):
        raise ConfigError(f"a launch plan needs the track gpu, found {record.track} and {arguments.track}")
    n_gpus = arguments.nproc_per_node
    found = hardware_class(profile.gpu_model, n_gpus)
    if not arguments.recalc_wallclock and not (found == record.hardware_class and found != "other"):
        raise ConfigError(
            f"{record.record_id}: a stored time must come from the hardware class of this machine, found "
            f"{record.hardware_class} and {found}: set recalc_wallclock to true"
        )
    if arguments.recalc_wallclock:
        # The order inside the pairs is tossed when they run.
        runs = ("warm-up", "warm-up", *(("base", "patched") * arguments.n_pairs))
    else:
        runs = ("patched",) * arguments.num_training_runs_per_attempt
    notes = [f"trust: {TRUST}"]
    if n_gpus == 1 and record.record_index < EARLIEST_SINGLE_GPU_RECORD:
        notes.append(f"records before {EARLIEST_SINGLE_GPU_RECORD} take hours on one GPU")
    return LaunchPlan(
        found,
        launch_command(record.script_name, n_gpus),
        _environment(profile),
        runs,
        _resources(record, n_gpus, len(runs), profile),
        tuple(notes),
    )


def _environment(profile: GpuProfile) -> dict[str, str]:
    return {
        profile.train_files_variable: f"{profile.shards}/fineweb_train_*.bin",
        profile.val_files_variable: f"{profile.shards}/fineweb_val_*.bin",
        "NANOGPT_VAL_TOKENS": str(VAL_TOKENS),
        "OMP_NUM_THREADS": "1",
        # Empty for each attempt: a cache that attempts share would let one change the times of another.
        "TORCHINDUCTOR_CACHE_DIR": "$scratch/inductor",
        "TORCHINDUCTOR_FX_GRAPH_CACHE": "1",
        "TORCHINDUCTOR_AUTOGRAD_CACHE": "1",
    }


def _resources(record: Record, n_gpus: int, n_runs: int, profile: GpuProfile) -> dict[str, Any]:
    # With fewer GPUs than the stored time was measured on, gradients accumulate.
    match = re.search(r"x(\d+)$", record.hardware_class or "")
    slower = max(1.0, int(match[1]) / n_gpus) if match else 1.0
    run_min = record.wallclock_ms / 60_000 * slower * TIME_MARGIN
    resources: dict[str, Any] = {
        "timing": 1,
        "nodes": 1,
        "gpu": n_gpus,
        # One task: torchrun starts the processes itself.
        "tasks_per_gpu": 0,
        "cpus_per_gpu": CPUS_PER_GPU,
        "mem_mb": MEM_MB_PER_GPU * n_gpus,
        "runtime": math.ceil(n_runs * run_min) + COMPILE_MIN,
        "slurm_extra": "--exclusive --no-requeue",
    }
    if profile.slurm_gpu_model is not None:
        resources["gpu_model"] = profile.slurm_gpu_model
    return resources


def describe_plan(plan: LaunchPlan) -> str:
    """What a dry run prints: everything that would be started, and that nothing was."""
    lines = [
        "# Not run: no figure here was measured.",
        f"# hardware class: {plan.hardware_class}",
        *(f"# {note}" for note in plan.notes),
        f"# runs, one after the other: {', '.join(plan.runs)}",
        *(f"# resource {name}: {value}" for name, value in plan.resources.items()),
        # Patterns are for the script, so they are quoted; the scratch folder is for the shell.
        *(f"export {name}={_quoted(value)}" for name, value in plan.environment.items()),
        shlex.join(plan.command),
    ]
    return "\n".join(lines) + "\n"


def _quoted(value: str) -> str:
    head, scratch, tail = value.partition("$scratch")
    return f'"$scratch"{shlex.quote(tail)}' if scratch and not head else shlex.quote(value)
