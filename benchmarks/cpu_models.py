"""Which numbers of the co-carry rig and of the trainings are the same on all x86-64 processors.

Run: .venv/bin/python benchmarks/cpu_models.py [MODEL...] [--probes NAME...] [--set NAME=VALUE...] [--unpin NAME...]

Runs short probes natively and under the named processor models of qemu-x86_64 (Debian package qemu-user; without it
natively only) and prints a table of hashes; docs/determinism.md says what they show. --set adds environment variables
to the probes, for example GLIBC_TUNABLES; --unpin takes kernel pins away from torch. qemu 7.2 knows no AVX-512 and
computes rcpps and rsqrtps exactly, for which real processors have approximations of their own. A probe takes about a
second natively and up to minutes emulated.
"""

import argparse
import ctypes
import hashlib
import json
import math
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import numpy as np
from rowproof.determinism import PINNED_ENVIRONMENT
from rowproof.seeding import substream
from rowproof.strict_yaml import parse

ROOT = Path(__file__).resolve().parents[1]
NATIVE = "native"
# No AVX; AVX; AVX2 and FMA by Intel, two generations, and by AMD.
DEFAULT_MODELS = ("Nehalem", "SandyBridge", "Haswell", "Skylake-Client", "EPYC")
EMULATOR = "qemu-x86_64"
STEPS = 40
FRAMES = 320
ARGUMENTS = 20000
# Those of rowproof.chamber.learned.networks, which loads torch and so cannot be asked before.
PINS = {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41"}
Hashes = dict[str, str]


def digest(*arrays: np.ndarray) -> str:
    total = hashlib.sha256()
    for array in arrays:
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()[:8]


def uniform(label: str, *shape: int) -> np.ndarray:
    """Reproducible values in [-1, 1), float32: an integer times a power of two, no library function."""
    return substream(f"benchmarks.cpu_models.{label}", 0).uniform(-1.0, 1.0, shape).astype(np.float32)


# ---- probes, each run in a process of its own ----------------------------------------------------------------------


def libm(folder: Path) -> Hashes:
    """The C library's functions: in double precision through Python, in single precision as PhysX calls them."""
    values = uniform("libm", ARGUMENTS).tolist()
    wide = [3.0 * value for value in values]
    found = {f"math.{name}": digest(np.array(list(map(getattr(math, name), wide)))) for name in ("sin", "cos", "tanh")}
    found["math.asin"] = digest(np.array(list(map(math.asin, values))))
    library = ctypes.CDLL("libm.so.6")
    single = {"sinf": (wide,), "cosf": (wide,), "tanf": (wide,), "expf": (wide,), "logf": (list(map(abs, values)),)}
    single |= {"asinf": (values,), "acosf": (values,), "atan2f": (values, wide[::-1])}
    for name, arguments in single.items():
        function = getattr(library, name)
        function.argtypes, function.restype = [ctypes.c_float] * len(arguments), ctypes.c_float
        found[name] = digest(np.array(list(map(function, *arguments)), np.float32))
    return found


def players(folder: Path) -> Hashes:
    """NumPy only: the policy of a trained actor, and the noise of a training."""
    from rowproof.chamber.cocarry.observation import STATE_SIZE
    from rowproof.chamber.learned.policy import Actor, Affine, LayerNorm

    sizes = [STATE_SIZE, 256, 256]
    tensors = {"input_norm.weight": uniform("norm", STATE_SIZE), "input_norm.bias": uniform("shift", STATE_SIZE)}
    for i in range(2):
        tensors |= {f"hidden.{i}.weight": uniform(f"w{i}", sizes[i + 1], sizes[i])}
        tensors |= {f"{name}.{i}.bias": uniform(f"{name}{i}", sizes[i + 1]) for name in ("hidden", "norms")}
        tensors |= {f"norms.{i}.weight": uniform(f"scale{i}", sizes[i + 1])}
    tensors |= {"mean.weight": uniform("mean", 8, 256), "mean.bias": uniform("bias", 8)}
    actor, states = Actor(tensors), uniform("s", 50, STATE_SIZE)
    affine, norm = (
        Affine(tensors["hidden.0.weight"], tensors["hidden.0.bias"]),
        LayerNorm(tensors["norms.0.weight"], tensors["norms.0.bias"]),
    )
    # In double precision; the last rounding to float32 could hide small differences.
    inside = [norm(affine(state.astype(np.float64))) for state in states]
    return {
        "policy, inside": digest(np.array(inside)),
        "policy, actions": digest(np.array([actor.mean_action(state) for state in states])),
        "normal noise": digest(substream("benchmarks.cpu_models.noise", 0).standard_normal(100000, np.float32)),
    }


def scene_states(scene) -> np.ndarray:
    from rowproof.chamber.cocarry.observation import bar_pose

    arms = [value for arm in scene.arms for value in (arm.articulation.qpos, arm.articulation.qvel)]
    return np.concatenate([*arms, bar_pose(scene)])


def play(condition: str, act: Callable) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """States and actions of one episode of ``STEPS`` control steps, whether or not it succeeds before."""
    from rowproof.chamber.cocarry import rig
    from rowproof.chamber.cocarry.conditions import CONDITIONS
    from rowproof.chamber.cocarry.control import control_step
    from rowproof.chamber.cocarry.goals import evaluation_goal_m
    from rowproof.chamber.cocarry.observation import View
    from rowproof.chamber.cocarry.scene import Scene

    scene = Scene(CONDITIONS[condition])
    scene.reset(evaluation_goal_m(0))
    views = [View(scene, rig.EGO), View(scene, rig.PARTNER)]
    states, actions = [scene_states(scene)], []
    for step in range(STEPS):
        actions.append(np.array(act(step, views)))
        control_step(scene, *actions[-1])
        states.append(scene_states(scene))
    return states, actions


def controllers() -> Callable:
    from rowproof.chamber.cocarry import rig
    from rowproof.chamber.cocarry.impedance import Gains, ImpedanceController

    both = [ImpedanceController(seat, Gains()) for seat in (rig.EGO, rig.PARTNER)]
    return lambda step, views: [own.act(view) for own, view in zip(both, views, strict=True)]


def record(folder: Path) -> Hashes:
    """Actions for ``physics``, so that the controllers' own arithmetic plays no part in it."""
    from rowproof.chamber.cocarry.conditions import CONDITIONS

    for condition in CONDITIONS:
        np.save(folder / f"{condition}.npy", np.array(play(condition, controllers())[1]))
    return {}


def physics(folder: Path) -> Hashes:
    """PhysX with recorded actions, then with controllers."""
    from rowproof.chamber.cocarry.conditions import CONDITIONS

    found = {}
    for condition in CONDITIONS:
        actions = np.load(folder / f"{condition}.npy")
        states, _ = play(condition, lambda step, views, actions=actions: actions[step])
        name = condition.removeprefix("cocarry_")
        found |= {f"{name}, reset": digest(states[0]), f"{name}, step 1": digest(states[1])}
        found[f"{name}, {STEPS} steps"] = digest(*states)
        found[f"{name}, controllers"] = digest(*play(condition, controllers())[0])
    return found


def exact_reciprocal(folder: Path) -> Hashes:
    """The same after the one rcpps that the rig executes was replaced by an exact division."""
    from rowproof.chamber.cocarry.simulator import load_sapien

    load_sapien()
    replace_reciprocal()
    return {f"{name}, exact reciprocal": value for name, value in physics(folder).items()}


def replace_reciprocal() -> None:
    """Overwrite ``rcpps`` in PhysX's box-box contacts, in this process only, with a jump to ``divps``.

    Raises:
        SystemExit: the instruction is not where sapien 3.0.3 has it, or no memory near it is free.
    """
    site_offset, found_there = 0x487E3A, bytes.fromhex("0f53d4 0f57ff")  # rcpps xmm4, xmm2; xorps xmm7, xmm7
    maps = Path("/proc/self/maps").read_text().splitlines()
    base = int(next(line for line in maps if "libsapien.so" in line).split("-")[0], 16)
    site = base + site_offset
    if ctypes.string_at(site, len(found_there)) != found_there:
        raise SystemExit(f"libsapien.so must hold {found_there.hex()} at {site_offset:#x}: install sapien 3.0.3")
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    everything = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x100000  # MAP_FIXED_NOREPLACE
    # A jump reaches 2 GiB, so the new code must lie near the old.
    near = (base - i * 0x100000 for i in range(1, 1000))
    place = next((p for p in near if libc.mmap(p, mmap.PAGESIZE, everything, flags, -1, 0) == p), None)
    if place is None or libc.mprotect(site & -mmap.PAGESIZE, 2 * mmap.PAGESIZE, everything):
        raise SystemExit("no memory near libsapien.so can hold the new code")

    def relative(start: int, target: int) -> bytes:
        return (target - start).to_bytes(4, "little", signed=True)

    ones = 64
    code = bytes.fromhex("0f2815") + relative(7, ones)  # movaps ones, xmm2
    code += bytes.fromhex("0f5ed4 0f57ff e9")  # divps xmm4, xmm2; xorps xmm7, xmm7; jmp
    code += relative(place + len(code) + 4, site + len(found_there))
    ctypes.memmove(place, code, len(code))
    ctypes.memmove(place + ones, np.ones(4, np.float32).tobytes(), 16)
    ctypes.memmove(site, b"\xe9" + relative(site + 5, place) + b"\x90", len(found_there))


def learning(folder: Path) -> Hashes:
    """Torch alone: initial networks and one update from a made-up rollout; then with Adam's fused kernel."""
    from rowproof.chamber.learned.networks import torch

    learners = fresh_learners(epochs=4)
    found = {"initial networks": digest(*learners.state().values())}
    learners.update(made_up_rollout())
    found["after one update"] = digest(*learners.state().values())
    once = fresh_learners(epochs=1)
    once.update(made_up_rollout())
    parameters = [p for module in (*once.actors, once.critic) for p in module.parameters()]
    found["gradients"] = digest(*(p.grad.numpy() for p in parameters))
    found["torch.sqrt"] = digest(torch.from_numpy(abs(uniform("sqrt", ARGUMENTS))).sqrt().numpy())
    torch.optim.Adam = partial(torch.optim.Adam, fused=True)
    learners = fresh_learners(epochs=4)
    learners.update(made_up_rollout())
    return found | {"after one update, fused Adam": digest(*learners.state().values())}


def fresh_learners(epochs: int):
    from rowproof.chamber.cocarry.observation import STATE_SIZE
    from rowproof.chamber.cocarry.rig import ACTION_SIZE
    from rowproof.chamber.learned.ppo import Learners

    return Learners(configuration(FRAMES, epochs=epochs), 1, STATE_SIZE, ACTION_SIZE, torch_seed=0)


def made_up_rollout():
    from rowproof.chamber.cocarry.observation import STATE_SIZE
    from rowproof.chamber.cocarry.rig import ACTION_SIZE
    from rowproof.chamber.learned.ppo import Rollout

    succeeded = uniform("succeeded", FRAMES) > 0.9
    return Rollout(
        [uniform("states", FRAMES, STATE_SIZE)],
        [uniform("actions", FRAMES, ACTION_SIZE)],
        uniform("rewards", FRAMES),
        succeeded,
        ~succeeded & (uniform("truncated", FRAMES) > 0.9),
        uniform("following", FRAMES, STATE_SIZE),
    )


def training(folder: Path) -> Hashes:
    """All together: checkpoints of a training of two rollouts."""
    from rowproof.chamber.cocarry.training import CocarryTask
    from rowproof.chamber.cocarry_cell import PUBLISHED_CELL
    from rowproof.chamber.learned.trainer import Training

    class Nobody:
        def resume(self, done: int) -> None: ...

        def advance(self, units: int, work: int, note: str) -> None: ...

    config = configuration(2 * FRAMES)
    with tempfile.TemporaryDirectory() as own:
        done = Training(config, CocarryTask(config, PUBLISHED_CELL, 0), 0, Path(own)).run(Nobody())
    return {f"checkpoint {each['step']}": each["uri"].removeprefix("sha256:")[:8] for each in done["checkpoints"]}


def configuration(frames: int, **changed: int):
    from rowproof.chamber.cells import parse_cell
    from rowproof.chamber.training_config import TrainingConfig

    values = parse((ROOT / "config" / "training" / "cocarry-aht.yaml").read_bytes(), "cocarry-aht.yaml").data
    sizes = {"frames": frames, "checkpoint_frames": FRAMES, "rollout_frames": FRAMES}
    return parse_cell(TrainingConfig, values | sizes | changed)


PROBES = {probe.__name__: probe for probe in (libm, players, physics, exact_reciprocal, learning, training)}


def unpin(names: list[str]) -> None:
    """Load torch without some of its pins and make it choose kernels, before the module that sets them."""
    os.environ.update({name: value for name, value in PINS.items() if name not in names})
    import torch

    torch.relu(torch.nn.Linear(64, 64)(torch.zeros(64, 64))).sum().backward()
    torch.linalg.qr(torch.eye(64))
    os.environ.update(PINS)


def child(probe: str, folder: Path, unpinned: list[str]) -> None:
    if unpinned:
        unpin(unpinned)
    print(json.dumps({**PROBES, "record": record}[probe](folder)))


# ---- the table -----------------------------------------------------------------------------------------------------


def run(model: str, probe: str, folder: Path, unpinned: list[str], settings: dict[str, str]) -> Hashes:
    emulator = [] if model == NATIVE else [EMULATOR, "-cpu", model]
    arguments = [__file__, "--child", probe, "--folder", str(folder), "--unpin", *unpinned]
    environment = {**os.environ, **PINNED_ENVIRONMENT, **settings}
    done = subprocess.run(
        [*emulator, sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        print(f"{model}, {probe}: stopped with code {done.returncode}: {last}", file=sys.stderr)
        return {}
    return json.loads(done.stdout.splitlines()[-1])


def print_table(columns: Iterable[str], rows: dict[str, dict[str, str]]) -> None:
    columns = list(columns)
    width = max(map(len, rows))
    print(f"{'':<{width}}  " + "  ".join(f"{column:<14}" for column in columns))
    for label, found in rows.items():
        cells = [found.get(column, "-") for column in columns]
        same = len(cells) > 1 and "-" not in cells and len(set(cells)) == 1
        print(f"{label:<{width}}  " + "  ".join(f"{cell:<14}" for cell in cells) + ("  same" if same else ""))


def setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, found {text!r}")
    return name, value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help=f"processor models of qemu (default: {' '.join(DEFAULT_MODELS)})")
    parser.add_argument("--probes", nargs="+", choices=PROBES, default=list(PROBES))
    parser.add_argument(
        "--set", nargs="+", default=[], type=setting, metavar="NAME=VALUE", help="environment of the probes"
    )
    parser.add_argument("--unpin", nargs="*", default=[], choices=PINS, help="kernel pins to leave out")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child, arguments.folder, arguments.unpin)
        return
    models = arguments.models or DEFAULT_MODELS
    if shutil.which(EMULATOR) is None:
        print(f"{EMULATOR} is not installed (Debian package qemu-user): native only", file=sys.stderr)
        models = ()
    models = [NATIVE, *models]
    settings = dict(arguments.set)
    rows: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        run(NATIVE, "record", Path(folder), [], settings)
        for probe in arguments.probes:
            for model in models:
                for label, value in run(model, probe, Path(folder), arguments.unpin, settings).items():
                    rows.setdefault(label, {})[model] = value
                print(f"{probe} {model}", file=sys.stderr)
    if rows:
        print_table(models, rows)
    if any(len(found) < len(models) for found in rows.values()) or not rows:
        sys.exit("some probes stopped; their cells are empty")


if __name__ == "__main__":
    main()
