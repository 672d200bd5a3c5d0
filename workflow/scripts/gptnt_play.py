"""Play what of a run is not played yet, and list its recordings."""

import os
from argparse import Namespace
from pathlib import Path

from rowproof.errors import RowproofError
from rowproof.files import write_atomic
from rowproof.gptnt.commands import RECORDER_VARIABLE, run
from rowproof.hashing import sha256_hex
from rowproof.jobs import logged
from rowproof.records import encode_document

with logged(snakemake):
    folder = Path(snakemake.output.played).parent / "recordings"
    os.environ[RECORDER_VARIABLE] = str(folder.resolve())
    code = run(Namespace(manifest=Path(snakemake.input.manifest), force=False, record=None, replay=None))
    if code:
        raise RowproofError(f"every game of {snakemake.wildcards.run} must count, found some that do not: see the log")
    files = {path.name: sha256_hex(path.read_bytes()) for path in sorted(folder.glob("*.parquet"))}
    write_atomic(Path(snakemake.output.played), encode_document({"recordings": files}))
