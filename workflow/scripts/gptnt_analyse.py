"""Metrics of a run as JSON, and a page with every game."""

from argparse import Namespace
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from rowproof.files import write_atomic
from rowproof.gptnt.commands import analyse, results
from rowproof.jobs import logged

with logged(snakemake):
    database = Path(snakemake.input.database)
    with redirect_stdout(StringIO()) as text:
        results(Namespace(database=database, json=True))
    analyse(Namespace(database=database, output=Path(snakemake.output.page)))
    write_atomic(Path(snakemake.output.results), text.getvalue().encode())
