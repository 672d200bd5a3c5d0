# What a clock shows of a board's rows: their runs in turns, in one job that has the machine to itself. It takes all cores
# and the resource `timing`, of which there is one, so nothing else of ours runs beside it, and it is never tried again by
# itself. Rows that are not timed have no such job.
rule time_runs:
    input:
        recipe=timing_recipe_of,
        records=timed_records_of,
    output:
        timing="work/rows/{board}/_rows/time-{key}/timing.json",
    log:
        "logs/time_runs/{board}/{key}.log",
    retries: 0
    conda:
        "../envs/rowproof.yaml"
    threads: all_cores()
    resources:
        mem_mb=2000,
        runtime=240,
        timing=1,
    params:
        rows=timed_rows_of,
    script:
        "../workflow/scripts/time_runs.py"
