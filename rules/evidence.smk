# The summary of a row over all its records.
rule summarise:
    input:
        recipe=recipe_of("summary"),
        records=lambda wildcards: shard_files(row_of(wildcards)),
    output:
        summary="work/rows/{board}/{row}/summary-{key}/summary.json",
    log:
        "logs/summarise/{board}/{row}/{key}.log",
    localrule: True
    conda:
        "../envs/rowproof.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        seeds=lambda wildcards: list(row_of(wildcards).seeds),
    script:
        "../workflow/scripts/summarise.py"


# Two rules per row. The first assembles the bundle under work/ and verifies it there, so that a refusal leaves the bundle
# in results/ alone. The second is named by the path that users type and only moves files; its outputs are all files of
# the bundle. Only the state file has a time stamp that counts, because every other input is named by the digest of what
# determines it.
for _row in (row for row in LAUNCH.rows if is_called_for(row.name)):

    rule:
        name:
            f"assemble_{rule_part(_row.name)}"
        input:
            recipe=ancient(_row.recipe_path("bundle")),
            recipes=ancient([_row.recipe_path(stage) for stage in _row.keys]),
            specs=ancient(_row.product("specs", "specs.jsonl")),
            trainings=ancient(_row.trainings),
            evidence=ancient(_row.selections(_row.seeds)),
            checkpoints=ancient(_row.checkpoints(_row.seeds)),
            records=later(shard_files, _row),
            timings=ancient(_row.timings),
            summary=ancient(_row.product("summary", "summary.json")),
        output:
            _row.staged,
        log:
            f"logs/assemble/{_row.name}.log",
        localrule: True
        conda:
            "../envs/rowproof.yaml"
        threads: 1
        resources:
            mem_mb=1000,
            runtime=10,
        params:
            plan_path=_row.plan_path,
            plan_blob=_row.plan_blob,
        script:
            "../workflow/scripts/assemble.py"

    rule:
        name:
            f"results/{_row.name}"
        input:
            state=_row.signal_path,
            recipe=ancient(_row.recipe_path("bundle")),
            staged=ancient(_row.staged),
        output:
            # Not removed before the job, and put back as it was when the job fails.
            update(_row.bundle),
        log:
            f"logs/publish/{_row.name}.log",
        localrule: True
        conda:
            "../envs/rowproof.yaml"
        threads: 1
        resources:
            mem_mb=1000,
            runtime=10,
        script:
            "../workflow/scripts/publish.py"

    # Shell completion appends the slash once the folder exists.
    rule:
        name:
            f"results/{_row.name}/"
        input:
            later(bundle_of, _row),
        localrule: True
