"""The family's own figures of a row: what its records say of loss and cost, and what its times say apart from them."""

from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any

from rowproof.errors import RecordError
from rowproof.speedrun.blocks import block_pairs, bootstrap_interval, ratio_of_medians
from rowproof.speedrun.losses import decide
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.protocol import is_disturbed
from rowproof.speedrun.scoring import fsr_column, is_implausible, needs_explanation, reward_columns, reward_flops
from rowproof.speedrun.statistics import sign_test, sign_wins, statements, timed_part
from rowproof.speedrun.verdicts import FIRST_CAMPAIGN, TWICE, Record, judge

LOW_TOKENS = 0.2
"""Share of the baseline's tokens below which a row asks for a look."""


def summarise(records: Sequence[Record]) -> dict[str, Any]:
    """What the records of a row say; nothing depends on their order.

    Args:
        records: of :func:`rowproof.speedrun.evaluation.simulate`.

    Returns:
        ``outcome``; ``expected`` of the row before it ran; ``base``, the candidate that it patches; ``verdict`` and
        ``margin_z`` of the loss rule (None without losses); ``threshold``; ``val_loss`` (mean and by seed, nats per
        token, three decimals), ``audit_gap`` (audit loss minus validation loss, mean); ``seeds_met``, the share of
        seeds whose own loss meets the target; costs, and their ratios baseline over row: ``tokens_ratio``,
        ``flops_ratio``; ``reward_flops``, the reward formula with operations in place of times; and ``flags``.
    """
    records = sorted(records, key=lambda record: record["seed"])
    outcome, test = judge(records)
    told = [record["metadata"] for record in records]
    first, met = told[0], outcome in (Outcome.OK, Outcome.INCONCLUSIVE)
    flags = {flag for metadata in told for flag in metadata["flags"]}
    if any(metadata["sandbox"] == "basic" for metadata in told):
        flags.add("basic_sandbox")
    tokens, flops = (_single(metadata[name] for metadata in told) for name in ("train_tokens", "train_flops"))
    if tokens is not None and tokens < LOW_TOKENS * first["baseline_tokens"]:
        flags.add("low_tokens")
    gaps = [m["audit_loss"] - m["val_loss"] for m in told if m["audit_loss"] is not None and m["val_loss"] is not None]
    return {
        "outcome": str(outcome),
        "expected": first["expected"],
        "base": first["base"],
        "verdict": test.verdict if test else None,
        "margin_z": test.margin_z if test else None,
        "threshold": first["target"],
        "val_loss": round(test.mean, 3) if test else None,
        "val_loss_by_seed": {
            str(record["seed"]): None
            if record["metadata"]["val_loss"] is None
            else round(record["metadata"]["val_loss"], 3)
            for record in records
        },
        "audit_gap": round(fmean(gaps), 3) if len(gaps) == len(told) else None,
        "seeds_met": round(fmean(record["success"] for record in records), 3),
        "train_tokens": tokens,
        "tokens_ratio": None if tokens is None else round(first["baseline_tokens"] / tokens, 3),
        "train_flops": flops,
        "flops_ratio": None if flops is None else round(first["baseline_flops"] / flops, 3),
        **{name: _single(metadata[name] for metadata in told) for name in ("n_params", "checkpoint_bytes")},
        "reward_flops": reward_flops(outcome, first["baseline_flops"], flops) if met and flops else 0.0,
        "lines_added": first["lines_added"],
        "lines_removed": first["lines_removed"],
        "flags": sorted(flags),
    }


def _single(values: Any) -> Any:
    """The one value that all seeds share; None where they differ or have none."""
    own = set(values)
    return own.pop() if len(own) == 1 else None


def timed(records: Sequence[Record], timing: Mapping[str, Any]) -> dict[str, Any]:
    """What follows from the times of a row and from nothing else; the same bytes wherever it is computed.

    Args:
        records: of the row; they say which candidate it is and how it ended.
        timing: content of ``timing.json``.

    Returns:
        ``timed`` (False for a row that earns nothing and so was not timed, with its rewards alone), ``campaign`` (in
        which it was timed), the columns of :func:`rowproof.speedrun.statistics.timed_part` against the baseline and of
        :func:`rowproof.speedrun.scoring.reward_columns`, ``says`` (what the row may claim), ``step`` (its ratio to the
        candidate that it patches, with interval, pairs won and the p value of the sign test; None where that one was
        not timed in the same campaign), ``fsr`` (likewise), ``twice`` (the ratio of the candidate that runs twice to
        itself, with interval and claim), and ``flags``.

    Raises:
        RecordError: the timing is malformed or not as its protocol demands.
    """
    told = records[0]["metadata"]
    name, base, baseline = told["policy"], told["base"], told["baseline"]
    outcome, test = judge(records)
    verdict = test.verdict if test else None
    if name not in timing["scripts_sha256"]:
        if outcome.earns_reward:
            raise RecordError(f"timing: {name} met the target and must be timed, found no run of it")
        return {"timed": False, **reward_columns(outcome, verdict, None), "says": [], "flags": []}
    part = timed_part(dict(timing), name, baseline)
    runs = [run for run in timing["runs"] if run["arm"] == name]
    deterministic = all(run["weights_match"] is not False for run in runs)
    flops_ratio = summarise(records)["flops_ratio"]
    flags = set(part.pop("timing_flags"))
    found = None if deterministic else Outcome.NONDETERMINISTIC
    least_cpu_s = min(run["cpu_s"] for run in runs)
    if is_implausible(least_cpu_s, told["analytic_flops"], timing["peak_gflops"]):
        found = Outcome.IMPLAUSIBLE
    if flops_ratio is not None and needs_explanation(part["wall_ratio"], flops_ratio):
        flags.add("explain")
    outcome = decide(found, test)
    backed = flops_ratio is not None and (flops_ratio > 1) == (part["wall_ratio"] > 1)
    part_and_flags = {**part, "timing_flags": sorted(flags)}
    says = statements(
        part_and_flags,
        verdict or "miss",
        audits_passed=found is None,
        strict_sandbox=timing["sandbox"] == "strict",
        deterministic=deterministic,
        backed=backed,
    )
    if name == baseline:
        says = ["baseline"]
    twice = timed_part(dict(timing), TWICE, timing["twice"])
    return {
        "timed": True,
        "campaign": timing.get("campaign", FIRST_CAMPAIGN),
        "outcome": str(outcome),
        **part,
        **reward_columns(outcome, verdict, part_and_flags),
        "says": says,
        "deterministic": deterministic,
        "step": None if base is None else _step(timing, name, base),
        "fsr": _fsr(timing, name, base),
        "twice": {
            "candidate": timing["twice"],
            "wall_ratio": twice["wall_ratio"],
            "ratio_ci95": twice["ratio_ci95"],
            "says": statements(twice, "pass", True, True, True, False),
        },
        "flags": sorted({*flags, *([] if deterministic else ["nondeterministic"])}),
    }


def _step(timing: Mapping[str, Any], name: str, base: str) -> dict[str, Any] | None:
    """A candidate against the one that it patches; None where that was not timed."""
    if base not in timing["scripts_sha256"]:
        return None
    pairs, _ = block_pairs(timing, name, base)
    return {
        "base": base,
        "wall_ratio": round(ratio_of_medians(pairs), 6),
        "ratio_ci95": [round(bound, 6) for bound in bootstrap_interval(pairs)],
        "wins": sign_wins(pairs),
        "n_pairs": len(pairs),
        "p_value": sign_test(sign_wins(pairs), len(pairs)),
    }


def _fsr(timing: Mapping[str, Any], name: str, base: str | None) -> float | None:
    """The share of the speed-up from the base to the rung after it; None for the rungs themselves."""
    after = f"r{int(base[1:]) + 1}" if base else ""
    arms = timing["scripts_sha256"]
    if name.startswith("r") or base not in arms or after not in arms:
        return None
    step, _ = block_pairs(timing, after, base)
    own, _ = block_pairs(timing, name, base)
    shown = bootstrap_interval(step)[0] > 1
    base_s, after_s = median(pair.base_s for pair in step), median(pair.patched_s for pair in step)
    return fsr_column(base_s, after_s, median(pair.patched_s for pair in own), shown)


def disturbed_runs(timing: Mapping[str, Any]) -> int:
    """How many runs of the blocks the machine disturbed."""
    return sum(is_disturbed(run) for run in timing["runs"] if run["pair"] >= 0)
