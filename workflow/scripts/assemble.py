"""Assemble the bundle of a row under work/ and verify it there."""

import shutil
from pathlib import Path

from rowproof.checkpoints import read_bytes
from rowproof.evidence.bundle import build, split_episodes
from rowproof.evidence.verify import require_verified
from rowproof.files import write_atomic
from rowproof.jobs import binding_plan, job, log, read_product, read_recipes
from rowproof.layout import PROVENANCE, TIMING
from rowproof.provenance import build_provenance, kept_provenance
from rowproof.records import decode, split_lines

with job(snakemake, "workflow/scripts/assemble.py") as current:
    recipes, places = read_recipes(snakemake.input.recipes)
    plan = binding_plan(current.root, snakemake.params.plan_path, snakemake.params.plan_blob)
    learned, jobs = {}, []
    for training, evidence, checkpoint in zip(
        snakemake.input.trainings, snakemake.input.evidence, snakemake.input.checkpoints, strict=True
    ):
        trained, entries = read_product(training)
        jobs += entries
        selected, entries = read_product(evidence)
        jobs += entries
        chosen = decode(selected, evidence)
        learned[chosen["training_seed"]] = trained, selected, read_bytes(Path(checkpoint), chosen["selected"]["uri"])
    specs_data, entries = read_product(snakemake.input.specs)
    jobs += entries
    specs = [decode(line, f"specs:{number}") for number, line in split_lines(specs_data, "specs")]
    shards = {}
    for path in snakemake.input.records:
        shards[path], entries = read_product(path)
        jobs += [entry for entry in entries if entry not in jobs]
    timings, timed_by = {}, []
    for timing in snakemake.input.timings:
        timings[TIMING], timed_by = read_product(timing)
        jobs += timed_by
    summary, entries = read_product(snakemake.input.summary)
    jobs += entries
    files = build(recipes, plan, split_episodes(shards, specs), decode(summary, "summary"), learned)
    staged = Path(snakemake.output[0]).parent
    provenance = build_provenance(files["bundle.json"], [*jobs, current.entry()], places)
    files[PROVENANCE] = kept_provenance(staged.parent / PROVENANCE, files["bundle.json"], timed_by) or provenance
    # Nothing stands under the final name before it is verified, not even when the process is killed.
    unverified = staged.with_name("unverified")
    shutil.rmtree(unverified, ignore_errors=True)
    for name, data in (files | timings).items():
        write_atomic(unverified / name, data)
    require_verified(unverified, current.root)
    shutil.rmtree(staged, ignore_errors=True)
    unverified.rename(staged)
    log.info("%s: %d files", current.recipe["row"], len(files))
