"""Assemble the bundle of a row in a folder under work/, verify it there, then move its files into place."""

import shutil
from pathlib import Path

from rowproof.evidence.bundle import build, build_provenance, kept_provenance, split_episodes
from rowproof.evidence.verify import require_verified
from rowproof.files import move_into, write_atomic
from rowproof.jobs import check_gate, job, log, read_product
from rowproof.layout import PROVENANCE
from rowproof.records import decode, split_lines

with job(snakemake, "workflow/scripts/bundle.py") as current:
    plan_path = current.recipe["plan"]["path"]
    check_gate(current.root, plan_path, current.recipe["plan"]["blob"])
    recipes = [decode(Path(path).read_bytes(), path) for path in snakemake.input.recipes]
    specs_data, jobs = read_product(snakemake.input.specs)
    specs = [decode(line, f"specs:{number}") for number, line in split_lines(specs_data, "specs")]
    shards = {}
    for path in snakemake.input.records:
        shards[path], entries = read_product(path)
        jobs += [entry for entry in entries if entry not in jobs]
    summary, entries = read_product(snakemake.input.summary)
    jobs += entries
    plan = (current.root / plan_path).read_bytes()
    files = build(
        {recipe["stage"]: recipe for recipe in recipes}, plan, split_episodes(shards, specs), decode(summary, "summary")
    )
    staged = Path(snakemake.params.staging)
    provenance = build_provenance(files["bundle.json"], [*jobs, current.entry()])
    files[PROVENANCE] = kept_provenance(staged.parent / PROVENANCE, files["bundle.json"]) or provenance
    shutil.rmtree(staged, ignore_errors=True)
    for name, data in files.items():
        write_atomic(staged / name, data)
    require_verified(staged, current.root)
    for path in snakemake.output:
        move_into(staged / Path(path).name, Path(path))
    log.info("%s: %d files", current.recipe["row"], len(files))
