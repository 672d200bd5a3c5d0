"""Run one comparison on GPUs in the published way."""

from pathlib import Path

from rowproof.files import write_atomic
from rowproof.jobs import log, logged
from rowproof.records import encode_document
from rowproof.speedrun.commands import PROJECT
from rowproof.speedrun.gpu import GpuTrack
from rowproof.speedrun.gpu_runs import score_on_gpus

with logged(snakemake):
    track = GpuTrack(PROJECT, snakemake.config["speedrun_gpu"])
    row = score_on_gpus(track, snakemake.wildcards.name, Path(snakemake.input.patch), log.info)
    write_atomic(Path(snakemake.output.row), encode_document(row))
