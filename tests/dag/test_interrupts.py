"""A build that is interrupted or killed at any moment and then started again ends with the same bytes."""

import base64
import signal

import pytest
from rowproof.layout import bundle_files
from rowproof.seeding import substream

FAST, SLOW = 1, 20
FAST_ROW = "push-v1/ref-script"


def moment(index: int) -> tuple[int, float]:
    """Signal, and the fraction of an undisturbed build after which it is sent."""
    rng = substream("tests.interrupts", index)
    number = (signal.SIGINT, signal.SIGKILL)[int(rng.integers(0, 2))]
    return number, float(rng.uniform(0.1, 0.95))


def check(reference, checkout, index: int, duration_s: float, *targets: str) -> None:
    number, fraction = moment(index)
    running = checkout.interrupt(number, fraction * duration_s, *targets, "--cores", "2")
    assert running or fraction > 0.5, "the build ended long before it should have been interrupted"
    if any((checkout.root / ".snakemake" / "locks").glob("*")):
        checkout.snakemake("--unlock").ok()
    run = checkout.build(*targets, cores=2).ok()
    names = [target.removeprefix("results/") for target in targets]
    assert checkout.files(*names) == reference.files(*names), run.output[-6000:]
    assert checkout.dry_run(*targets).nothing


@pytest.mark.slow
@pytest.mark.parametrize("index", range(FAST))
def test_one_row_after(small, small_build_s, empty_small, index):
    check(small, empty_small, index, small_build_s / 2, f"results/{FAST_ROW}")


@pytest.mark.slow
@pytest.mark.parametrize("index", range(SLOW))
def test_whole_build_after(small, small_build_s, empty_small, index):
    check(small, empty_small, index, small_build_s)


@pytest.mark.slow
def test_a_kill_while_a_bundle_is_replaced_by_a_smaller_one(fresh_small):
    """snakemake has removed the outputs of the row rule, and with them what vouched for the file of the old seed."""
    target = f"results/{FAST_ROW}"
    fresh_small.unrecord()
    fresh_small.edit("config/plans/push-v1.yaml", "  - 0\n  - 1\n", "  - 0\n")
    fresh_small.git("commit", "-q", "-a", "-m", "one seed")
    fresh_small.snakemake(target, "--cores", "1", "--until", "assemble_push_v1__ref_script").ok()
    for path in (fresh_small.root / target).iterdir():
        if path.name != "episodes_seed1.jsonl":
            path.unlink()
    fresh_small.build(target).ok()
    assert {path.name for path in (fresh_small.root / target).iterdir()} == set(bundle_files([0]))
    assert fresh_small.dry_run(target).nothing


@pytest.mark.parametrize(
    "rule",
    ["simulate", pytest.param("specs", marks=pytest.mark.slow), pytest.param("summarise", marks=pytest.mark.slow)],
)
def test_a_finished_product_that_is_still_marked_incomplete(small, empty_small, rule):
    """The moment between the end of a job and snakemake's note of it.

    snakemake forces such a job, and leaves out everything behind it that takes its product as ancient().
    """
    target = f"results/{FAST_ROW}"
    empty_small.snakemake(target, "--cores", "1", "--until", rule).ok()
    marks = empty_small.root / ".snakemake" / "incomplete"
    marks.mkdir(exist_ok=True)
    stage = {"summarise": "summary"}.get(rule, rule)
    products = list((empty_small.root / "work/rows" / FAST_ROW).glob(f"{stage}-*/*.json*"))
    assert products
    for product in products:
        name = product.relative_to(empty_small.root).as_posix()
        (marks / base64.b64encode(name.encode()).decode()).touch()
    empty_small.build(target).ok()
    assert empty_small.files(FAST_ROW) == small.files(FAST_ROW)
