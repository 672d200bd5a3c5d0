"""Choose the checkpoint of one training that is evaluated, and say why."""

from importlib import import_module
from pathlib import Path

from rowproof.checkpoints import file_name, read_bytes
from rowproof.evidence.selection import selection
from rowproof.files import write_atomic
from rowproof.jobs import job, log, read_product, write_product
from rowproof.records import decode, encode_document

with job(snakemake, "workflow/scripts/select_checkpoint.py") as current:
    producer, setup, seed = import_module(current.recipe["producer"]), current.recipe["setup"], snakemake.params.seed
    training = Path(snakemake.input.training)
    folder = training.parent / f"seed{seed}"
    judged = []
    for saved in decode(read_product(training)[0], training.name)["checkpoints"]:
        data = read_bytes(folder / file_name(saved["uri"]), saved["uri"])
        judged.append({**saved, "episodes": producer.validate(setup, saved["uri"], data)})
    document = selection(seed, judged, setup["limits"])
    for candidate in document["candidates"]:
        log.info("step %d: %d of %d", candidate["step"], candidate["score"], len(candidate["episodes"]))
    winner = document["selected"]
    log.info("selected step %d", winner["step"])
    write_atomic(Path(snakemake.output.checkpoint), read_bytes(folder / file_name(winner["uri"]), winner["uri"]))
    write_product(snakemake.output.evidence, encode_document(document), [current.entry(f"seed{seed}")])
