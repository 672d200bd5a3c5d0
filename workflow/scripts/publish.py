"""Copy a verified bundle from work/ into place, and remove what it replaces."""

from pathlib import Path

from rowproof.errors import StaleInputError
from rowproof.files import write_atomic
from rowproof.hashing import sha256_hex
from rowproof.jobs import log, logged
from rowproof.layout import read_sums
from rowproof.records import decode

with logged(snakemake):
    staged = Path(snakemake.input.staged).parent
    sums = read_sums((staged / "SHA256SUMS.txt").read_bytes())
    files = {Path(target): (staged / Path(target).name).read_bytes() for target in snakemake.output}
    for target, data in files.items():
        if sums.get(target.name, sha256_hex(data)) != sha256_hex(data):
            raise StaleInputError(
                f"{staged / target.name} must be as verified, found other content: delete {staged}, start again"
            )
    folder = Path(snakemake.output[0]).parent
    for target, data in files.items():
        write_atomic(target, data)
        # What a killed publication left beside the file; snakemake's lock keeps every other writer away.
        for left in folder.glob(f".{target.name}.*.tmp"):
            left.unlink()
    state = decode(Path(snakemake.input.state).read_bytes(), snakemake.input.state)
    for name, digest in state.get("superseded", {}).items():
        # Only what the replaced bundle itself vouched for is removed, never a file that somebody else put there.
        old = folder / name
        if old.is_file() and not old.is_symlink() and sha256_hex(old.read_bytes()) == digest:
            old.unlink()
            log.info("removed %s, which belonged to the bundle before", old)
    log.info("%s: %d files", folder, len(files))
