# One training of a learned row: its checkpoints, named by their content, and the document that names them. The files lie
# beside the document in a folder, undeclared because their names are known only afterwards; so does the state from which
# a killed training goes on. Everything is checked by hash where it is read.
rule train:
    input:
        recipe=recipe_of("train"),
    output:
        document="work/rows/{board}/{row}/train-{key}/seed{seed}.json",
    log:
        "logs/train/{board}/{row}/{key}/seed{seed}.log",
    benchmark:
        "work/benchmarks/train/{board}/{row}/{key}/seed{seed}.tsv"
    conda:
        "../envs/rowproof.yaml"
    threads: 1
    resources:
        mem_mb=1500,
        runtime=60,
    params:
        plan_path=lambda wildcards: row_of(wildcards).plan_path,
        plan_blob=lambda wildcards: row_of(wildcards).plan_blob,
        seed=lambda wildcards: int(wildcards.seed),
    script:
        "../workflow/scripts/train.py"


# Which of a training's checkpoints is evaluated, judged in episodes that share nothing with the evaluation.
rule select_checkpoint:
    input:
        recipe=recipe_of("select"),
        training=trainings_of,
    output:
        evidence="work/rows/{board}/{row}/select-{key}/seed{seed}.json",
        checkpoint="work/rows/{board}/{row}/select-{key}/seed{seed}.safetensors",
    log:
        "logs/select/{board}/{row}/{key}/seed{seed}.log",
    benchmark:
        "work/benchmarks/select/{board}/{row}/{key}/seed{seed}.tsv"
    conda:
        "../envs/rowproof.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=20,
    params:
        seed=lambda wildcards: int(wildcards.seed),
    script:
        "../workflow/scripts/select_checkpoint.py"
