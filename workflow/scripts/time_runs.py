"""Time the runs of a board's rows in turns, on a machine that does nothing else meanwhile."""

from importlib import import_module

from rowproof.jobs import job, log, read_product, write_timing
from rowproof.records import decode, split_lines

with job(snakemake, "workflow/scripts/time_runs.py") as current:
    records = {}
    for row, path in zip(snakemake.params.rows, snakemake.input.records, strict=True):
        lines = split_lines(read_product(path)[0], path)
        records.setdefault(row, []).extend(decode(line, f"{path}:{number}") for number, line in lines)
    producer = import_module(current.recipe["producer"])
    timing = producer.measure(current.recipe["setup"], records, log.info)
    write_timing(snakemake.output.timing, timing, [current.entry()])
