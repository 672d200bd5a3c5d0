"""Move a verified bundle from work/ into place, and away what it replaces."""

from pathlib import Path

from rowproof.files import write_atomic
from rowproof.hashing import sha256_hex
from rowproof.jobs import log, logged
from rowproof.records import decode

with logged(snakemake):
    for source, target in zip(snakemake.input.staged, snakemake.output, strict=True):
        write_atomic(Path(target), Path(source).read_bytes())
    folder = Path(snakemake.output[0]).parent
    state = decode(Path(snakemake.input.state).read_bytes(), snakemake.input.state)
    for name, digest in state.get("superseded", {}).items():
        # Only what the replaced bundle itself vouched for is removed, never a file that somebody else put there.
        old = folder / name
        if old.is_file() and not old.is_symlink() and sha256_hex(old.read_bytes()) == digest:
            old.unlink()
            log.info("removed %s, which belonged to the bundle before", old)
    log.info("%s: %d files", folder, len(snakemake.output))
