"""Assemble the bundle of a row under work/ and verify it there."""

from pathlib import Path

from rowproof.evidence.bundle import build, build_provenance, kept_provenance, split_episodes
from rowproof.evidence.verify import require_verified
from rowproof.files import write_atomic
from rowproof.jobs import check_gate, job, log, read_product
from rowproof.layout import PROVENANCE
from rowproof.records import decode, split_lines

with job(snakemake, "workflow/scripts/assemble.py") as current:
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
    staged = Path(snakemake.output[0]).parent
    provenance = build_provenance(files["bundle.json"], [*jobs, current.entry()])
    files[PROVENANCE] = kept_provenance(staged.parent / PROVENANCE, files["bundle.json"]) or provenance
    for name, data in files.items():
        write_atomic(staged / name, data)
    require_verified(staged, current.root)
    log.info("%s: %d files", current.recipe["row"], len(files))
