# One shard of a row's episodes: a seed, or a seed with one partner, or the whole row (config: shard_by).
# Beside every product its script leaves who made it (*.job.json), undeclared, to keep the graph of a large plan small.
rule simulate:
    input:
        recipe=recipe_of("simulate"),
        specs=product_of("specs", "specs.jsonl"),
        selections=selections_of,
        checkpoints=checkpoints_of,
    output:
        records="work/rows/{board}/{row}/simulate-{key}/{shard}.jsonl",
    log:
        "logs/simulate/{board}/{row}/{key}/{shard}.log",
    benchmark:
        "work/benchmarks/simulate/{board}/{row}/{key}/{shard}.tsv"
    conda:
        "../envs/rowproof.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=lambda wildcards: row_of(wildcards).runtime_min,
    params:
        seeds=lambda wildcards: list(shard_of(wildcards).seeds),
        partner=lambda wildcards: shard_of(wildcards).partner,
    script:
        "../workflow/scripts/simulate.py"
