"""The published admission checks A1 to A4: statistics from the episodes up, thresholds, outcomes, verdict."""

from collections.abc import Mapping
from typing import Any

from rowproof.errors import HistoryGap, RecordError
from rowproof.evidence.admission import FAIL, OPEN, decide_ceiling, decide_floor, limit_stress
from rowproof.evidence.published.archive import Archive, check_floats, records_of
from rowproof.evidence.published.plans import DEFAULT_RESAMPLES, DEFAULT_ROOT_SEED
from rowproof.evidence.published.summary import summary_of
from rowproof.evidence.statistics import (
    MAX_RESAMPLES,
    clusters_of,
    paired_delta,
    partner_of,
    stress_summary,
)

STRESS_KEYS = ("n", "p50", "p90", "p99", "max")


def _bootstrap(settings: Mapping[str, Any], root_key: str) -> tuple[int, int]:
    n_resamples = settings.get("n_resamples", DEFAULT_RESAMPLES)
    root_seed = settings.get(root_key, DEFAULT_ROOT_SEED)
    if type(n_resamples) is not int or not 1 <= n_resamples <= MAX_RESAMPLES or type(root_seed) is not int:
        raise RecordError(f"the plan must give n_resamples in 1..{MAX_RESAMPLES} and an integer root seed")
    return n_resamples, root_seed


def _success(records: list[dict[str, Any]], bootstrap: tuple[int, int], prefix: str = "") -> dict[str, float]:
    summary = summary_of(tuple(map(tuple, clusters_of(records))), *bootstrap)
    keys = ("n_episodes", "success_mean", "success_iqm", "success_ci_low", "success_ci_high")
    return {prefix + key: float(getattr(summary, key)) for key in keys}


def stress_figures(records: list[dict[str, Any]], successes_only: bool) -> dict[str, float]:
    """The stress statistics of an admission report, in newton."""
    stress = stress_summary(records, successes_only)
    return {f"stress_{key}": float(stress[key]) for key in STRESS_KEYS} if stress["n"] else {"stress_n": 0.0}


def statistics_of(archive: Archive, check: Mapping[str, Any]) -> dict[str, float]:
    """Recompute the statistics of a check from the episode records alone."""
    if check["extended"]:
        raise HistoryGap("re-deriving a check that used its seed extension is not supported: none was published")
    name, entry = check["check"], archive.entry(check["check"])
    if "cell_id" in entry:
        return _measured(archive, check, entry)
    settings, extractor = entry["params"], entry["extractor"]
    bootstrap = _bootstrap(settings, "bootstrap_root_seed")

    def records(key: str) -> list[dict[str, Any]]:
        directory = settings[key]
        loaded = records_of(archive, directory, wrapped=True)
        unpinned = {f"{directory}/episodes_seed{record['seed']}.jsonl" for record in loaded} - set(entry["files"])
        if unpinned or f"{directory}/bundle.json" not in entry["files"]:
            raise RecordError(f"only files that the plan pins may be read, found {sorted(unpinned)}")
        return loaded

    if extractor == "bundle_success_summary" and name in ("A1", "A2"):
        loaded = records("bundle_dir")
        return {**_success(loaded, bootstrap), **stress_figures(loaded, settings.get("stress_successes_only", True))}
    if extractor == "bundle_paired_delta" and name == "A3":
        return _gap(records("reference_dir"), records("blind_dir"), bootstrap)
    if extractor == "bundle_ego_robustness_profile" and name == "A4":
        return _robustness(archive, records("bundle_dir"), settings["members"], bootstrap)
    raise HistoryGap(f"evidence of extractor {extractor!r} cannot be re-derived for {name}")


def _measured(archive: Archive, check: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, float]:
    name, bootstrap = check["check"], _bootstrap(archive.rules, "root_seed")
    if check["bundles"] != [entry["cell_id"]]:
        raise RecordError(f"{name} must rest on the cell {entry['cell_id']!r}, found {check['bundles']}")
    records = records_of(archive, entry["cell_id"], wrapped=False)
    if name == "A3":
        reference = records_of(archive, archive.entry("A1")["cell_id"], wrapped=False)
        return {**_gap(reference, records, bootstrap), **_success(records, bootstrap, "blind_")}
    if name == "A4":
        # The members of a measured sweep are those that its records name.
        return _robustness(archive, records, sorted({partner_of(record) for record in records}), bootstrap)
    return {**_success(records, bootstrap), **stress_figures(records, successes_only=name == "A1")}


def _gap(reference: list[dict[str, Any]], blind: list[dict[str, Any]], bootstrap: tuple[int, int]) -> dict[str, float]:
    return {key: float(value) for key, value in paired_delta(reference, blind, *bootstrap).items()}


def _robustness(
    archive: Archive, records: list[dict[str, Any]], members: list[str], bootstrap: tuple[int, int]
) -> dict[str, float]:
    by_member: dict[str, list[dict[str, Any]]] = {member: [] for member in sorted(members)}
    for record in records:
        member = partner_of(record)
        if member not in by_member:
            raise RecordError(f"records must be of the members {sorted(members)}, found {member!r}")
        by_member[member].append(record)
    counts = {(record["seed"], partner_of(record)): 0 for record in records}
    for record in records:
        counts[record["seed"], partner_of(record)] += 1
    if not by_member or len(set(counts.values())) != 1 or any(not played for played in by_member.values()):
        raise RecordError("every member must be played equally often under every seed")
    archive.profile = {
        member: {**_success(played, bootstrap), **stress_figures(played, successes_only=True)}
        for member, played in by_member.items()
    }
    return {
        "n_partners": float(len(by_member)),
        "min_success_ci_low": min(row["success_ci_low"] for row in archive.profile.values()),
        "min_success_ci_high": min(row["success_ci_high"] for row in archive.profile.values()),
    }


def thresholds_of(rules: Mapping[str, Any], check: str) -> dict[str, float]:
    """The plan's thresholds that decide a check."""
    floor = {"A1": "tau_solv", "A2": "tau_infeasible", "A3": "delta_min", "A4": "c_min_ego"}[check]
    keys = [floor, "stress_limit"] if check in ("A1", "A4") and rules["stress_limit"] is not None else [floor]
    thresholds = {key: rules[key] for key in keys}
    check_floats(thresholds, "plan: admission")
    return thresholds


def outcome_of(archive: Archive, check: Mapping[str, Any]) -> str:
    """PASS, FAIL or INDETERMINATE by the published rules; a straddle of wrapped evidence is a FAIL."""
    name, statistics = check["check"], archive.statistics[check["check"]]
    limits = thresholds_of(archive.rules, name)
    if name == "A2":
        outcome = decide_ceiling(statistics["success_ci_low"], statistics["success_ci_high"], limits["tau_infeasible"])
    elif name == "A3":
        outcome = decide_floor(statistics["delta_ci_low"], statistics["delta_ci_high"], limits["delta_min"])
    else:
        rows = [statistics] if name == "A1" else list(archive.profile.values())
        floor = limits["tau_solv" if name == "A1" else "c_min_ego"]
        # Every member must hold, so the weakest lower and the weakest upper bound decide.
        low, high = min(row["success_ci_low"] for row in rows), min(row["success_ci_high"] for row in rows)
        outcome = limit_stress(
            decide_floor(low, high, floor), [row.get("stress_max") for row in rows], limits.get("stress_limit")
        )
    return FAIL if outcome == OPEN and "cell_id" not in archive.entry(name) else outcome
