# Runs of the gptnt family: `snakemake output/<run>/analysis.html` plays config/runs/<run>.yaml and shows it. These files are
# work in progress of whoever runs a model, no evidence: boards of scripted players are rows like any other.
RUN_PATTERN = "[A-Za-z0-9][A-Za-z0-9_-]*"


# Plays what of the run is not played yet. Rooms are a global resource: `--resources rooms=8` bounds them over all runs.
rule gptnt_play:
    input:
        manifest="config/runs/{run}.yaml",
        lock="config/suites/suites.lock",
    output:
        played="output/{run}/played.json",
    log:
        "logs/gptnt_play/{run}.log",
    wildcard_constraints:
        run=RUN_PATTERN,
    conda:
        "../envs/rowproof.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=720,
        rooms=rooms_wanted,
    script:
        "../workflow/scripts/gptnt_play.py"


# Puts the recordings into one DuckDB file.
rule gptnt_database:
    input:
        played="output/{run}/played.json",
    output:
        database="output/{run}/experiments.duckdb",
    log:
        "logs/gptnt_database/{run}.log",
    wildcard_constraints:
        run=RUN_PATTERN,
    localrule: True
    conda:
        "../envs/rowproof.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    script:
        "../workflow/scripts/gptnt_database.py"


# Metrics with intervals, and a page with every game.
rule gptnt_analyse:
    input:
        database="output/{run}/experiments.duckdb",
    output:
        results="output/{run}/results.json",
        page="output/{run}/analysis.html",
    log:
        "logs/gptnt_analyse/{run}.log",
    wildcard_constraints:
        run=RUN_PATTERN,
    localrule: True
    conda:
        "../envs/rowproof.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    script:
        "../workflow/scripts/gptnt_analyse.py"
