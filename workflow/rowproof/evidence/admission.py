"""Admission: what a task must show before rows of it may be ranked.

A1 asks whether the reference pair solves it, A2 whether one robot alone cannot, A3 whether a blind ego loses by not
seeing its partner, A4 (when a policy is to judge partners) whether it copes with every one of them.
The rules are those of the published admission protocol.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rowproof.errors import HistoryGap, RecordError
from rowproof.evidence.statistics import clusters_of, paired_delta, partner_of, stress_summary, success_summary
from rowproof.hashing import sha256_hex
from rowproof.layout import episode_file
from rowproof.records import decode, encode_document, split_lines

SCHEMA = "rowproof/admission/1"
PASS, FAIL, OPEN = "PASS", "FAIL", "INDETERMINATE"


def decide_floor(low: float, high: float, floor: float) -> str:
    """Whether an interval lies at or above ``floor`` (A1, A3, A4); open when the floor lies inside it."""
    return PASS if low >= floor else FAIL if high < floor else OPEN


def decide_ceiling(low: float, high: float, ceiling: float) -> str:
    """Whether an interval lies at or below ``ceiling`` (A2)."""
    return PASS if high <= ceiling else FAIL if low > ceiling else OPEN


def limit_stress(outcome: str, stress_max: Sequence[float | None], limit: float | None) -> str:
    """Turn a pass into a fail when a successful episode was stressed beyond ``limit`` (newton; None: no limit).

    Raises:
        RecordError: there is a limit and no recorded stress to compare with it.
    """
    if outcome != PASS or limit is None:
        return outcome
    if any(value is None for value in stress_max):
        raise RecordError("a stress limit needs recorded stress of successful episodes, found none")
    return FAIL if any(value > limit for value in stress_max if value is not None) else PASS


def verdict_of(outcomes: Mapping[str, str]) -> str:
    """The verdict for the outcomes of A1 to A4 (those that ran)."""
    if outcomes["A1"] == FAIL:
        return "NOT_SOLVABLE"
    if OPEN in outcomes.values():
        return OPEN
    if FAIL in (outcomes.get("A2"), outcomes.get("A3")):
        return "CONTROL"
    return "UNINSTRUMENTABLE" if outcomes.get("A4") == FAIL else "ADMITTED"


def results_of(board: str, folder: Path) -> Path:
    """The folder ``results`` that holds ``folder``, the one of ``board``."""
    return folder.absolute().parents[board.count("/")]


def _records(folder: Path, document: Mapping[str, Any]) -> list[dict[str, Any]]:
    names = [episode_file(seed) for seed in document["seed_schedule"]["seeds"]]
    return [decode(line, name) for name in names for _, line in split_lines((folder / name).read_bytes(), name)]


def _success(records: list[dict[str, Any]], bootstrap: Mapping[str, int], successes_only: bool) -> dict[str, Any]:
    summary = success_summary(clusters_of(records), **bootstrap)
    stress = stress_summary(records, successes_only)
    return {
        "n_episodes": summary.n_episodes,
        "success_mean": summary.success_mean,
        "success_iqm": summary.success_iqm,
        "success_ci_low": summary.success_ci_low,
        "success_ci_high": summary.success_ci_high,
        **{f"stress_{key}{'' if key == 'n' else '_n'}": stress[key] for key in stress},
    }


def _instrument(
    rules: Mapping[str, Any], stress_limit_n: float | None, folder: Path, bootstrap: Mapping[str, int]
) -> dict[str, Any]:
    """Check A4 on the row that ``rules`` name; ``folder`` is that row's bundle."""
    document = decode((folder / "bundle.json").read_bytes(), "bundle.json")
    records = _records(folder, document)
    members = {
        name: _success([record for record in records if partner_of(record) == name], bootstrap, True)
        for name in document["partners"]
    }
    outcomes = {
        name: limit_stress(
            decide_floor(own["success_ci_low"], own["success_ci_high"], rules["c_min"]),
            [own["stress_max_n"]],
            stress_limit_n,
        )
        for name, own in members.items()
    }
    weakest = min(members, key=lambda name: members[name]["success_ci_low"])
    limited = "" if stress_limit_n is None else f", and no successful episode is stressed beyond {stress_limit_n} N"
    return {
        "check": "A4",
        "question": f"the instrument {rules['row']} copes with every partner of {rules['board']}",
        # Evidence that is already there cannot be extended: what is open has failed.
        "outcome": PASS if all(outcome == PASS for outcome in outcomes.values()) else FAIL,
        "criterion": f"lower bound of success at least {rules['c_min']} with each{limited}",
        "rows": [f"{rules['board']}/{rules['row']}"],
        "statistics": {
            "partners": len(members),
            "success_ci_low_weakest": members[weakest]["success_ci_low"],
            **{f"success_ci_low_{name}": own["success_ci_low"] for name, own in members.items()},
            **{f"stress_max_n_{name}": own["stress_max_n"] for name, own in members.items()},
        },
    }


def report(board: str, rules: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The admission report of a board whose rows were verified, as plain JSON data.

    Args:
        board: name of the board.
        rules: the plan's admission section.
        folder: the folder of the rows, ``results/<board>``; rows of other boards lie in the same ``results``.

    Raises:
        HistoryGap: a row of another board is not there.
        RecordError: a stress limit without recorded stress.
    """
    documents = {
        key: decode((folder / rules[key] / "bundle.json").read_bytes(), rules[key]) for key in ("a1", "a2", "a3")
    }
    records = {key: _records(folder / rules[key], documents[key]) for key in documents}
    summary = documents["a1"]["summary"]
    bootstrap = {"n_resamples": summary["n_resamples"], "root_seed": summary["root_seed"]}
    a1, a2 = _success(records["a1"], bootstrap, True), _success(records["a2"], bootstrap, False)
    a3 = paired_delta(records["a1"], records["a3"], **bootstrap)
    limit = rules["stress_limit_n"]
    first = decide_floor(a1["success_ci_low"], a1["success_ci_high"], rules["tau_solv"])
    limited = "" if limit is None else f", and no successful episode is stressed beyond {limit} N"
    checks = [
        {
            "check": "A1",
            "question": "the matched reference pair solves the task",
            "outcome": limit_stress(first, [a1["stress_max_n"]], limit),
            "criterion": f"lower bound of success at least {rules['tau_solv']}{limited}",
            "rows": [rules["a1"]],
            "statistics": a1,
        },
        {
            "check": "A2",
            "question": "without the partner it cannot be solved",
            "outcome": decide_ceiling(a2["success_ci_low"], a2["success_ci_high"], rules["tau_infeasible"]),
            "criterion": f"upper bound of success at most {rules['tau_infeasible']}",
            "rows": [rules["a2"]],
            "statistics": a2,
        },
        {
            "check": "A3",
            "question": "an ego that does not see its partner does worse from the same starts",
            "outcome": decide_floor(a3["delta_ci_low"], a3["delta_ci_high"], rules["delta_min"]),
            "criterion": f"lower bound of the paired gap at least {rules['delta_min']}",
            "rows": [rules["a1"], rules["a3"]],
            "statistics": a3,
        },
    ]
    digests = {rules[key]: sha256_hex((folder / rules[key] / "bundle.json").read_bytes()) for key in documents}
    if rules.get("a4"):
        name, instrument = f"{rules['a4']['board']}/{rules['a4']['row']}", rules["a4"]
        bundle = results_of(board, folder) / name
        if not (bundle / "bundle.json").is_file():
            raise HistoryGap(f"the report rests on {name}, found no bundle in {bundle}: put it there")
        checks.append(_instrument(instrument, limit, bundle, bootstrap))
        digests[name] = sha256_hex((bundle / "bundle.json").read_bytes())
    # Nothing after a task that its own reference cannot solve has a meaning.
    checks = checks[:1] if checks[0]["outcome"] == FAIL else checks
    return {
        "schema": SCHEMA,
        "board": board,
        "task": documents["a1"]["task"],
        "verdict": verdict_of({check["check"]: check["outcome"] for check in checks}),
        "thresholds": dict(rules),
        "checks": checks,
        "row_digests": digests,
    }


def render(document: Mapping[str, Any]) -> dict[str, bytes]:
    """``admission_report.json`` and ``admission_report.md`` of a report."""
    lines = [
        f"# Admission of {document['task']}: {document['verdict']}",
        "",
        f"Board `{document['board']}`. Every row was verified before this page was written; intervals are those of the",
        "published cluster bootstrap of the interquartile mean.",
        "",
        "| Check | Question | Outcome | Criterion | Rows |",
        "| --- | --- | --- | --- | --- |",
    ]
    for check in document["checks"]:
        rows = ", ".join(f"`{row}`" for row in check["rows"])
        lines.append(
            f"| {check['check']} | {check['question']} | **{check['outcome']}** | {check['criterion']} | {rows} |"
        )
    for check in document["checks"]:
        lines += ["", f"## {check['check']}", "", "| Statistic | Value |", "| --- | --- |"]
        for name, value in check["statistics"].items():
            shown = "—" if value is None else f"{value:.6g}"
            lines.append(f"| {name} | {shown} |")
    lines += ["", "Row digests: " + ", ".join(f"`{r}` `{d[:12]}`" for r, d in document["row_digests"].items()) + "."]
    text = "\n".join(lines) + "\n"
    return {"admission_report.json": encode_document(document), "admission_report.md": text.encode()}
