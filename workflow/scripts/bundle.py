"""Assemble the bundle of a row in a temporary folder, verify it there, then move its files into place."""

import tempfile
from pathlib import Path

from rowproof.evidence.bundle import build, build_provenance, split_episodes
from rowproof.evidence.verify import require_verified
from rowproof.jobs import check_gate, job, log, read_product
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
    files["provenance.json"] = build_provenance(files["bundle.json"], [*jobs, current.entry()])
    target = Path(snakemake.output[0]).parent
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".bundle-", dir=target.parent) as folder:
        for name, data in files.items():
            (Path(folder) / name).write_bytes(data)
        require_verified(Path(folder), current.root)
        target.mkdir(exist_ok=True)
        for name in sorted(files):
            (Path(folder) / name).replace(target / name)
    log.info("%s: %d files", target, len(files))
