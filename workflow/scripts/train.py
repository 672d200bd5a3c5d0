"""Run one training of a learned row; its checkpoints lie beside its document, each named by its content."""

from importlib import import_module
from pathlib import Path

from rowproof.chamber.learned.trainer import discard_state
from rowproof.chamber.progress import Progress
from rowproof.jobs import check_gate, job, log, write_product
from rowproof.records import encode_document

with job(snakemake, "workflow/scripts/train.py") as current:
    check_gate(current.root, snakemake.params.plan_path, snakemake.params.plan_blob)
    producer = import_module(current.recipe["producer"])
    seed = snakemake.params.seed
    folder = Path(snakemake.output.document).parent / f"seed{seed}"
    with Progress(current.recipe["setup"]["training"]["frames"], "frames", "frames") as progress:
        document = producer.train(current.recipe["setup"], seed, folder, progress)
    log.info("training %d: %d checkpoints", seed, len(document["checkpoints"]))
    write_product(snakemake.output.document, encode_document(document), [current.entry(f"seed{seed}")])
    discard_state(folder)
