"""Put the recordings of a run into one database."""

from pathlib import Path

from rowproof.errors import RowproofError
from rowproof.gptnt.database import run
from rowproof.jobs import log, logged

with logged(snakemake):
    recordings = Path(snakemake.input.played).parent / "recordings"
    if run(recordings, Path(snakemake.output.database), delete_existing=True, show=log.info):
        raise RowproofError(f"every recording in {recordings} must be whole, found damaged ones: see the log")
