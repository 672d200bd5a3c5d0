"""Neither the number of jobs, nor how a row is cut, nor the surroundings reach a byte of the evidence."""

import os
from dataclasses import dataclass, field

import pytest
from checkouts import Checkout


@dataclass(frozen=True)
class Surroundings:
    """What differs from an ordinary build."""

    cores: int = 1
    shard_by: str = "seed"
    variables: dict[str, str] = field(default_factory=dict)
    umask: int = 0o022
    depth: int = 0


FAST = {
    "all_at_once": Surroundings(
        cores=4,
        shard_by="partner",
        variables={"PYTHONHASHSEED": "1", "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8", "TZ": "Asia/Kolkata"},
        umask=0o077,
        depth=3,
    ),
}
SLOW = {
    "cores_1": Surroundings(),
    "cores_2": Surroundings(cores=2),
    "cores_4": Surroundings(cores=4),
    "one_shard": Surroundings(shard_by="row"),
    "partner_shards": Surroundings(shard_by="partner"),
    "hash_seed_0": Surroundings(variables={"PYTHONHASHSEED": "0"}),
    "hash_seed_1": Surroundings(variables={"PYTHONHASHSEED": "1"}),
    "locale_c": Surroundings(variables={"LC_ALL": "C"}),
    "locale_de": Surroundings(variables={"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"}),
    "time_zone": Surroundings(variables={"TZ": "Pacific/Auckland"}),
    "umask": Surroundings(umask=0o077),
    "depth": Surroundings(depth=5),
    "threads": Surroundings(variables={"OMP_NUM_THREADS": "8", "OPENBLAS_NUM_THREADS": "8"}),
}


def check(small, empty_small, tmp_path, surroundings: Surroundings, *rows: str) -> None:
    if surroundings.shard_by != "seed":
        empty_small.edit("config/config.yaml", "shard_by: seed", f"shard_by: {surroundings.shard_by}")
        empty_small.commit()
    workdir = empty_small.root
    args = [f"results/{row}" for row in rows]
    if surroundings.depth:
        workdir = tmp_path.joinpath(*["level"] * surroundings.depth)
        workdir.mkdir(parents=True)
        args += ["--directory", str(workdir), "--snakefile", str(empty_small.root / "Snakefile")]
    before = os.umask(surroundings.umask)
    try:
        empty_small.snakemake(*args, "--cores", str(surroundings.cores), env=surroundings.variables).ok()
    finally:
        os.umask(before)
    made = Checkout(workdir, small.home)
    assert made.files(*rows) == small.files(*rows)


@pytest.mark.parametrize("name", FAST)
def test_one_row_in(small, empty_small, tmp_path, name):
    check(small, empty_small, tmp_path, FAST[name], "handover-v1/b-rnd")


@pytest.mark.slow
@pytest.mark.parametrize("name", {**FAST, **SLOW})
def test_all_in(small, empty_small, tmp_path, name):
    check(small, empty_small, tmp_path, {**FAST, **SLOW}[name])
