"""The row of an attempt: a part that every machine of its class computes again, and a part that a clock showed.

The second part follows from ``timing.json``, the outcome and the first part alone, so that a reader computes it again
to the byte (:func:`timed_columns`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rowproof.hashing import sha256_hex
from rowproof.records import digest
from rowproof.speedrun.corpus import manifest_sha256
from rowproof.speedrun.dialogue import Task
from rowproof.speedrun.figures import LOW_TOKENS
from rowproof.speedrun.logs import FinalNumbers, is_misreported, self_reported
from rowproof.speedrun.losses import known_sigma_test
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.patching import Application
from rowproof.speedrun.platforms import Machine
from rowproof.speedrun.referee.runs import MAX_OCCUPANCY
from rowproof.speedrun.scoring import Nondeterminism, needs_explanation, reward_columns, reward_flops
from rowproof.speedrun.statistics import statements, timed_part

FAMILY = "nanogpt-speedrun"
SPEC_VERSION = 1
TRACK_VERSION = "cpu-mini/1"

Data = dict[str, Any]

TIMED_FIELDS = (
    *("n_pairs", "wall_ms_base_median", "wall_ms_patched_median", "wall_ratio", "ratio_ci95", "hl_ratio"),
    *("ratio_of_means", "sign_wins", "cpu_ratio", "cpu_ratio_ci95", "aa_floor", "machine", "date", "timing_sha256"),
)


class Provenance(NamedTuple):
    """Who made an attempt, and with what.

    Attributes:
        attempt_id: 16 hex digits.
        proposer: ``kind``, ``name`` and ``turns``.
        prompted: whether the proposer was shown the prompt.
        salt_sha256: digest of the audit salt.
        sandbox: mode of the sandbox.
        machine: of the job.
    """

    attempt_id: str
    proposer: Data
    prompted: bool
    salt_sha256: str
    sandbox: str
    machine: Machine


def build_row(task: Task, transcript: Mapping[str, Any], evidence: Mapping[str, Any], by: Provenance) -> Data:
    """The row of a dialogue.

    Args:
        task: what it was about.
        transcript: of the dialogue.
        evidence: of the result that scores, empty when nothing ran; see :class:`rowproof.speedrun.dialogue.Result`.
        by: who made it.
    """
    verifiable = _verifiable(task, transcript, evidence, by)
    timing = stamped_timing(evidence, by.machine)
    timed = timed_columns(verifiable, timing, task.arguments.nondeterminism)
    return {"verifiable": _by_key(verifiable), "timed": _by_key(timed)}


def stamped_timing(evidence: Mapping[str, Any], machine: Machine) -> Data:
    """The content of ``timing.json``: all timed runs with machine and day, and what else a clock showed.

    Without timed runs it holds no ``runs``.
    """
    outputs, checks = evidence.get("outputs", {}), []
    for record in evidence.get("verify", []):
        usage = record["usage"]
        checks.append(
            {
                "seed": record["seed"],
                "t_wall_s": usage["t_wall_s"],
                "cpu_s": usage["cpu_s"],
                "val_loss": record["val_loss"],
                "self_reported": self_reported(outputs[record["seed"]][0]),
            }
        )
    return {
        **evidence.get("timing", {}),
        # The comparison of a script with itself is another job's.
        "aa_floor": None,
        "machine": machine.machine,
        "date": machine.date,
        "peak_gflops_per_s": machine.peak_gflops_per_s,
        "verification_runs": checks,
    }


def timed_columns(verifiable: Mapping[str, Any], timing: Data, nondeterminism: Nondeterminism = "flag") -> Data:
    """The part ``timed`` of a row, from the other part and the content of ``timing.json``.

    Raises:
        RecordError: ``timing`` is not what a measurement leaves.
        RowproofError: the outcome earns a reward and there are no times.
    """
    outcome, verdict = Outcome(verifiable["outcome"]), verifiable["verdict"]
    ended_well = "runs" in timing and timing["outcome"] == Outcome.OK
    times = timed_part(timing) if ended_well else None
    columns: Data = dict(times) if times else dict.fromkeys(TIMED_FIELDS) | {"timing_flags": []}
    if times is None:
        columns |= {"machine": timing["machine"], "date": timing["date"], "timing_sha256": digest(timing)}
    columns |= reward_columns(outcome, verdict, times, nondeterminism)
    flags = set(columns["timing_flags"])
    flops_ratio, tokens_ratio = verifiable["flops_ratio"], verifiable["tokens_ratio"]
    if times and flops_ratio is not None and needs_explanation(times["wall_ratio"], flops_ratio):
        flags.add("explain")
    patched = [run for run in timing.get("runs", []) if run["arm"] == "B"]
    if any(run["cpu_s"] > MAX_OCCUPANCY * run["t_wall_s"] for run in [*patched, *timing["verification_runs"]]):
        flags.add("multicore")
    if any(map(_misreported, timing["verification_runs"])):
        flags.add("misreported_log")
    claims = []
    if times and outcome.earns_reward:
        claims = statements(
            times,
            verdict,
            audits_passed=outcome is not Outcome.NONDETERMINISTIC,
            strict_sandbox=timing["sandbox"] == "strict",
            deterministic=timing["deterministic"],
            backed=max(flops_ratio or 0, tokens_ratio or 0) > 1,
        )
    return {**columns, "timing_flags": sorted(flags), "fsr": None, "statements": claims}


def _by_key(value: Any) -> Any:
    """The same data with the keys of every mapping in order."""
    return {key: _by_key(value[key]) for key in sorted(value)} if isinstance(value, dict) else value


def _misreported(run: Mapping[str, Any]) -> bool:
    if run["self_reported"] is None or run["val_loss"] is None:
        return False
    return is_misreported(FinalNumbers(**run["self_reported"]), run["val_loss"], 1000 * run["t_wall_s"])


def _verifiable(task: Task, transcript: Mapping[str, Any], evidence: Mapping[str, Any], by: Provenance) -> Data:
    record, arguments = task.record, task.arguments
    turns = {turn["turn"]: turn for turn in transcript["turns"]}
    scored = turns.get(transcript["scored_turn"], {})
    final = scored.get("final") or {}
    outcome, losses = Outcome(transcript["outcome"]), final.get("val_loss", {})
    verdict, diff = final.get("verdict"), transcript["diff"]
    loss = None
    if verdict is not None:
        loss = known_sigma_test({int(s): x for s, x in losses.items()}, record.val_loss_threshold, record.loss_sigma)
    patch = Application(None, diff, None, "", ())
    figures = _figures(evidence, outcome)
    flags = {flag.removeprefix("policy:") for flag in transcript["flags"]}
    if figures["tokens_ratio"] is not None and figures["tokens_ratio"] > 1 / LOW_TOKENS:
        flags.add("low_tokens")
    if by.sandbox == "basic":
        flags.add("sandbox_basic")
    return {
        "family": FAMILY,
        "spec_version": SPEC_VERSION,
        "track": record.track,
        "track_version": TRACK_VERSION,
        "record": record.record_id,
        "attempt_id": by.attempt_id,
        "proposer": by.proposer,
        "prompt_sha256": transcript["prompt"]["sha256"] if by.prompted else None,
        "think_mode": arguments.think_mode,
        "base_sha256": record.code_sha256,
        "patched_sha256": transcript["patched_sha256"],
        "diff_sha256": sha256_hex(diff.encode("utf-8")) if diff else None,
        "lines_added": patch.lines_added,
        "lines_removed": patch.lines_removed,
        "outcome": str(outcome),
        "flags": sorted(flags),
        "seeds": sorted(int(seed) for seed in losses),
        "val_loss": {
            "mean": None if loss is None else round(loss.mean, 3),
            "per_seed": {seed: round(value, 3) for seed, value in losses.items()},
        },
        "threshold": record.val_loss_threshold,
        "threshold_met_seed": None if loss is None else loss.threshold_met,
        "margin_z": None if loss is None else loss.margin_z,
        "verdict": verdict,
        **figures,
        "data_manifest_sha256": manifest_sha256(),
        "prereg_sha256": record.prereg_sha256,
        "audit_salt_sha256": by.salt_sha256,
        "platform_class": by.machine.platform_class,
    }


def _figures(evidence: Mapping[str, Any], outcome: Outcome) -> Data:
    """Costs that no clock showed, of the first seed; None where nothing was measured."""
    base, patched = (_first(evidence.get(name, [])) for name in ("base", "verify"))
    own = {name: patched.get(name) for name in ("train_tokens", "n_params", "checkpoint_bytes", "train_flops")}
    score = 0.0
    if own["train_flops"] and base.get("train_flops"):
        score = reward_flops(outcome, base["train_flops"], own["train_flops"])
    return {
        **own,
        "analytic_flops": patched.get("analytic_flops"),
        "tokens_ratio": _ratio(base, patched, "train_tokens"),
        "flops_ratio": _ratio(base, patched, "train_flops"),
        "reward_flops": score,
    }


def _first(records: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return records[0] if records else {}


def _ratio(base: Mapping[str, Any], patched: Mapping[str, Any], key: str) -> float | None:
    """The base's figure over the patched script's, to six decimals."""
    return round(base[key] / patched[key], 6) if base.get(key) and patched.get(key) else None
