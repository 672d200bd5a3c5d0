"""What an attempt on the CPU track is made of: a record by its name, and the referee of this machine."""

import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rowproof.errors import ConfigError
from rowproof.speedrun.corpus import MANIFEST, audit_seed, audit_stream, read_split, stream, stream_seed, write_corpus
from rowproof.speedrun.records_config import Arguments, Record, Track, load_record
from rowproof.speedrun.referee.evaluation import WINDOW
from rowproof.speedrun.referee.machine import idlest_core
from rowproof.speedrun.referee.runs import Referee
from rowproof.speedrun.referee.sandbox import Limits, Sandbox, available_mode, self_test

RECORDS = Path("config", "speedrun", "records")
CORPUS = Path("work", "speedrun", "corpus")
SALT_VARIABLE = "ROWPROOF_AUDIT_SALT"

SMOKE_THRESHOLD = 3.5
"""Nats per token; the baseline has lost 3.3 after its 20 steps of the smoke profile."""
SMOKE_WINDOWS = 64
_SMOKE_TRAIN_TOKENS = 200_000
_MIN_SALT_BYTES = 16
# Of the baseline with a wide margin, where the arguments set none: the slowest machine shall finish it.
_RUN_TIMEOUT_S, _CPU_LIMIT_S = 1200, 600


def record_names(root: Path, track: Track) -> list[str]:
    """The names of the records of a track, sorted."""
    return sorted(path.stem for path in (root / RECORDS / track).glob("*.yaml"))


def record_path(root: Path, track: Track, name: str) -> Path:
    """The file of a record.

    Raises:
        ConfigError: there is none of that name.
    """
    known = record_names(root, track)
    if name not in known:
        shown = ", ".join(known) or "none there"
        raise ConfigError(f"record must be one of {(RECORDS / track).as_posix()} ({shown}), found {name!r}")
    return root / RECORDS / track / f"{name}.yaml"


def find_record(root: Path, track: Track, name: str) -> tuple[Record, str]:
    """A record by its name, and the text of its script.

    Raises:
        ConfigError: there is none of that name, or its file or script is not what it must be.
    """
    return load_record(root, record_path(root, track, name))


def read_salt(path: Path | None, environment: Mapping[str, str]) -> tuple[bytes, bool]:
    """The secret that audit texts depend on, and whether it was made for this call.

    It comes from a file, else from the variable ``ROWPROOF_AUDIT_SALT``, else from the machine: who proposes a patch
    must not be able to tell it beforehand, so it is no draw of ours.

    Raises:
        ConfigError: the file cannot be read, or the salt is shorter than 16 bytes.
    """
    if path is None and not environment.get(SALT_VARIABLE):
        return os.urandom(32).hex().encode(), True
    where = SALT_VARIABLE if path is None else str(path)
    try:
        salt = environment[SALT_VARIABLE].encode() if path is None else path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{where}: must be a readable file with the audit salt: {error.strerror}") from None
    # An editor's last line end is no part of a secret.
    salt = salt.rstrip(b"\r\n")
    if len(salt) < _MIN_SALT_BYTES:
        raise ConfigError(f"{where}: an audit salt must have at least {_MIN_SALT_BYTES} bytes, found {len(salt)}")
    return salt, False


def build_referee(root: Path, arguments: Arguments, salt: bytes, smoke: bool = False) -> Referee:
    """The referee of this machine, after the self-test of its sandbox.

    Args:
        root: the project; the corpus is generated below it where it is missing.
        arguments: resolved, of the track ``cpu-mini``.
        salt: secret that audit texts depend on.
        smoke: little data, for 20 steps.

    Raises:
        ConfigError: PyTorch is missing, or the core is none of this process.
        RecordError: a shard is not that of the corpus.
        SandboxError: runs cannot be confined on this machine.
    """
    if importlib.util.find_spec("torch") is None:
        raise ConfigError(
            "training must have torch installed, found none: pip install -e '.[training]' -c requirements.lock"
        )
    cores = sorted(os.sched_getaffinity(0))
    core = idlest_core() if arguments.pin_core == "auto" else arguments.pin_core
    if core not in cores:
        raise ConfigError(f"pin_core must be one of the cores {', '.join(map(str, cores))}, found {core}")
    sandbox = Sandbox(available_mode(arguments.sandbox, core), core)
    corpus, hidden = root / CORPUS, []
    if smoke:
        train = stream(stream_seed("train"), _SMOKE_TRAIN_TOKENS)
        val = stream(stream_seed("val"), SMOKE_WINDOWS * WINDOW + 1)
    else:
        if not (corpus / MANIFEST).exists():
            write_corpus(corpus)
        train, val = read_split(corpus, "train"), read_split(corpus, "val")
        hidden = sorted(corpus.iterdir())
    self_test(sandbox, hidden)
    return Referee(
        sandbox=sandbox,
        train=np.array(train, dtype=np.uint16),
        val=np.array(val, dtype=np.uint16),
        salt=salt,
        limits=Limits(
            wall_s=arguments.run_timeout_s or _RUN_TIMEOUT_S,
            cpu_s=arguments.cpu_limit_s or _CPU_LIMIT_S,
            mem_mb=arguments.mem_limit_mb,
            scratch_mb=arguments.scratch_mb,
        ),
        checkpoint_limit_mb=arguments.checkpoint_limit_mb or 4,
        audit=_smoke_audit if smoke else audit_stream,
    )


def _smoke_audit(patched_sha256: str, salt: bytes) -> Any:
    return stream(audit_seed(patched_sha256, salt), SMOKE_WINDOWS * WINDOW + 1)
