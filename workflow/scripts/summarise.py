"""Compute the summary of a row from all its records."""

from importlib import import_module

from rowproof.evidence.statistics import row_summary
from rowproof.jobs import job, read_product, write_product
from rowproof.records import decode, encode_document, split_lines

with job(snakemake, "workflow/scripts/summarise.py") as current:
    records = [
        decode(line, f"{path}:{number}")
        for path in snakemake.input.records
        for number, line in split_lines(read_product(path)[0], path)
    ]
    records.sort(key=lambda record: (snakemake.params.seeds.index(record["seed"]), record["episode_idx"]))
    recipe = current.recipe
    summary = row_summary(records, partners=recipe["partners"], **recipe["statistics"])
    if "producer" in recipe:
        summary["family"] = import_module(recipe["producer"]).summarise(records)
    write_product(snakemake.output.summary, encode_document(summary), [current.entry()])
