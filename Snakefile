from snakemake.utils import min_version

min_version("9.27")


include: "rules/common.smk"
include: "rules/specs.smk"
include: "rules/train.smk"
include: "rules/simulate.smk"
include: "rules/time.smk"
include: "rules/evidence.smk"
include: "rules/boards.smk"
include: "rules/gptnt.smk"
include: "rules/speedrun.smk"


rule all:
    default_target: True
    input:
        later(all_boards),
    localrule: True
