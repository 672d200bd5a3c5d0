# The evaluation units of a row, generated before anything runs; refuses while the plan is not committed as it is.
rule specs:
    input:
        recipe=recipe_of("specs"),
    output:
        specs="work/rows/{board}/{row}/specs-{key}/specs.jsonl",
    log:
        "logs/specs/{board}/{row}/{key}.log",
    localrule: True
    conda:
        "../envs/rowproof.yaml"
    threads: 1
    resources:
        mem_mb=800,
        runtime=5,
    params:
        plan_path=lambda wildcards: row_of(wildcards).plan_path,
        plan_blob=lambda wildcards: row_of(wildcards).plan_blob,
    script:
        "../workflow/scripts/specs.py"
