"""Score one patch on a machine that does nothing else meanwhile."""

from pathlib import Path

from rowproof.jobs import log, logged
from rowproof.speedrun.commands import PROJECT, score_patches

with logged(snakemake):
    arguments = next(iter(snakemake.input.arguments), None)
    score_patches(
        PROJECT,
        [Path(snakemake.input.patch)],
        Path(arguments) if arguments else None,
        None,
        Path(snakemake.output.row).parent,
        None,
        False,
        log.info,
        replace=True,
    )
