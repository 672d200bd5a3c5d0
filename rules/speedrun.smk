# Attempts of the speedrun family: `snakemake output/speedrun/<name>/row.json` scores patches/<name>.diff. Whose patch it is
# and how it is proposed is up to the user; these files are work in progress and no evidence, as those of gptnt runs.
ATTEMPT_PATTERN = "[A-Za-z0-9][A-Za-z0-9._-]*"


# Trains, evaluates and times one patch against its base. Nothing runs beside it: it takes all cores and the one unit of
# the resource `timing`, is not repeated by itself, and writes at its end. patches/<name>.yaml may hold its arguments.
rule speedrun_score:
    input:
        patch="patches/{name}.diff",
        arguments=lambda wildcards: [
            str(path) for path in Path("patches").glob(f"{wildcards.name}.yaml")
        ],
        baseline="resources/speedrun/train_gpt.py",
    output:
        row="output/speedrun/{name}/row.json",
    log:
        "logs/speedrun_score/{name}.log",
    wildcard_constraints:
        name=ATTEMPT_PATTERN,
    retries: 0
    conda:
        "../envs/rowproof.yaml"
    threads: all_cores()
    resources:
        mem_mb=6000,
        runtime=240,
        timing=1,
    script:
        "../workflow/scripts/speedrun_score.py"


# The GPU track exists with a profile of GPUs alone (`--profile gpu`, or `--config speedrun_gpu=NAME` on a cluster): without
# one these rules are absent. `snakemake --dry-run --profile gpu output/speedrun-gpu/<name>/row.json -p` prints the launch.
if config.get("speedrun_gpu"):

    from rowproof.speedrun.gpu import GpuTrack

    GPU_TRACK = GpuTrack(ROOT, config["speedrun_gpu"])

    # One comparison on one node, in the published way: the scripts keep their own clocks and print their own losses, and the
    # row says so. patches/<name>.yaml holds the arguments (`track: gpu`) and names the record.
    rule speedrun_gpu_score:
        input:
            patch="patches/{name}.diff",
            arguments="patches/{name}.yaml",
        output:
            row="output/speedrun-gpu/{name}/row.json",
        log:
            "logs/speedrun_gpu_score/{name}.log",
        wildcard_constraints:
            name=ATTEMPT_PATTERN,
        retries: 0
        conda:
            "../envs/rowproof.yaml"
        threads: all_cores()
        resources:
            mem_mb=GPU_TRACK.resource("mem_mb"),
            runtime=GPU_TRACK.resource("runtime"),
            timing=1,
            nodes=1,
            gpu=GPU_TRACK.resource("gpu"),
            gpu_model=GPU_TRACK.resource("gpu_model", ""),
            cpus_per_gpu=GPU_TRACK.resource("cpus_per_gpu"),
            tasks_per_gpu=GPU_TRACK.resource("tasks_per_gpu"),
            slurm_extra=GPU_TRACK.resource("slurm_extra", ""),
        params:
            launch=GPU_TRACK.launch,
        message:
            "{params.launch}"
        script:
            "../workflow/scripts/speedrun_gpu_score.py"
