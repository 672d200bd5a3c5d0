"""Run the evaluation units of one shard and write one record for each."""

from importlib import import_module
from pathlib import Path

from rowproof.checkpoints import read_bytes
from rowproof.jobs import job, log, read_product, write_product
from rowproof.records import decode, encode_lines, split_lines

with job(snakemake, "workflow/scripts/simulate.py") as current:
    producer = import_module(current.recipe["producer"])
    data, _ = read_product(snakemake.input.specs)
    specs = [decode(line, f"specs:{number}") for number, line in split_lines(data, "specs")]
    seeds, partner = snakemake.params.seeds, snakemake.params.partner
    own = [spec for spec in specs if spec["seed"] in seeds and partner in (None, spec["member"])]
    checkpoints = {}
    for path, checkpoint in zip(snakemake.input.selections, snakemake.input.checkpoints, strict=True):
        evidence = decode(read_product(path)[0], path)
        uri = evidence["selected"]["uri"]
        checkpoints[evidence["training_seed"]] = uri, read_bytes(Path(checkpoint), uri)
    learned = (checkpoints,) if checkpoints else ()
    records = encode_lines(producer.simulate(current.recipe["setup"], own, *learned))
    log.info("%d episodes", len(own))
    write_product(snakemake.output.records, records, [current.entry(snakemake.wildcards.shard)])
