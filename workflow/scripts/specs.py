"""Write the evaluation units of a row, before anything runs."""

from importlib import import_module

from rowproof.jobs import check_gate, job, write_product
from rowproof.records import encode_lines

with job(snakemake, "workflow/scripts/specs.py") as current:
    check_gate(current.root, snakemake.params.plan_path, snakemake.params.plan_blob)
    producer = import_module(current.recipe["producer"])
    specs = encode_lines(producer.specs(current.recipe["setup"]))
    write_product(snakemake.output.specs, specs, [current.entry()])
