"""Verification of published CHAMBER admission archives: every number and every outcome from the episodes up."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rowproof.errors import RecordError, RowproofError
from rowproof.evidence.checks import CheckTable
from rowproof.evidence.history import History, HistoryGap, blob_id
from rowproof.evidence.published import (
    RECORD_SCHEMA,
    SUMS,
    encoding_problem,
    finished,
    guarded,
    plain_name,
    plan_provenance_rows,
    printable,
    published_root,
    read_directory,
    report,
    verify_published,
)
from rowproof.evidence.published_plans import DEFAULT_RESAMPLES, DEFAULT_ROOT_SEED, load_plan
from rowproof.evidence.statistics import (
    BUNDLE_STREAM,
    MAX_RESAMPLES,
    clusters_of,
    paired_delta,
    partner_of,
    stress_summary,
    success_summary,
)
from rowproof.hashing import sha256_hex
from rowproof.records import NULL, Kinds, check_fields, decode, decode_lines, encode_document

REPORT = "admission_report.json"
MARKDOWN = "ADMISSION_REPORT.md"
PLANS = Path("spikes/preregistration/admission")

REPORT_SCHEMA: Mapping[str, Kinds] = {
    "schema_version": (int,),
    "task_id": (str,),
    "task_version": (int,),
    "prereg_git_tag": (str,),
    "prereg_blob_sha": (str,),
    "git_sha": (str,),
    "dirty": (bool,),
    "date_stamp": (str,),
    "checks": (list,),
    "verdict": (str,),
    "seed_extension_used": (bool,),
    "binding_evidence": (dict,),
    "ego_robustness_profile": (dict, NULL),
    "notes": (str,),
}
CHECK_SCHEMA: Mapping[str, Kinds] = {
    "check": (str,),
    "outcome": (str,),
    "criterion": (str,),
    "statistics": (dict,),
    "bundles": (list,),
    "evidence": (dict,),
    "extended": (bool,),
    "notes": (str,),
}
OUTCOMES = ("PASS", "FAIL", "INDETERMINATE")
CHECK_ORDER = ("A1", "A2", "A3", "A4")
STRESS_KEYS = ("n", "p50", "p90", "p99", "max")


@dataclass
class _Archive:
    path: Path
    root: Path | None
    history: History
    files: dict[str, bytes]
    others: dict[str, str]
    report: dict[str, Any] = field(default_factory=dict)
    plan: dict[str, Any] | None = None
    plan_bytes: bytes | None = None
    statistics: dict[str, dict[str, Any]] = field(default_factory=dict)
    profile: dict[str, dict[str, float]] | None = None

    @property
    def rules(self) -> dict[str, Any]:
        if self.plan is None:
            raise HistoryGap("the plan of this archive is not here: verify it inside the published tree")
        return self.plan["parameters"]["admission"]

    def entry(self, check: str) -> dict[str, Any]:
        """The plan's block of a check: a measured cell, or wrapped evidence."""
        return self.rules[check.lower()]

    def evidence_file(self, name: str, wrapped: bool) -> bytes:
        """Bytes of an evidence file by its recorded path, which must stay inside the archive or the published tree."""
        parts = name.split("/")
        if not all(plain_name(part) for part in parts):
            raise RecordError(f"evidence paths must be relative and plain, found {name!r}")
        if wrapped and self.root is None:
            raise HistoryGap(f"{name} is not found above the archive: verify it inside the published tree")
        base = self.root if wrapped else self.path
        target = base.joinpath(*parts)
        if target.resolve() != base.resolve().joinpath(*parts):
            raise RecordError(f"evidence must not be reached through links, found {name!r}")
        return target.read_bytes()


def verify_admission(
    path: Path,
    root: Path | None = None,
    plans: Path | None = None,
    repo: Path | None = None,
    allow_dirty: bool = False,
    partner_sets: Mapping[str, Any] | None = None,
) -> CheckTable:
    """Verify one admission archive directory.

    Args:
        path: the archive, which holds ``admission_report.json``.
        root: directory to which recorded paths are relative; by default the nearest one above that holds ``spikes``.
        plans: directory of the admission plans; by default ``spikes/preregistration/admission`` under ``root``.
        repo: a directory of a git clone that may hold the tag and the launch commit.
        allow_dirty: let an archive from a dirty tree pass.
        partner_sets: as in :func:`rowproof.evidence.published.verify_published`.

    Returns:
        The check table. What needs a plan, evidence or history that is not here is ``unknown``.

    Raises:
        RowproofError: ``path`` is not a readable directory.
    """
    files, others = read_directory(path)
    archive = _Archive(path, root or published_root(path), History(repo), files, others)
    table = CheckTable(path.as_posix())
    must = "admission_report.json has every field of schema version 1, typed, and no other"
    with guarded(table, "admission:schema", must):
        if REPORT not in files:
            raise RecordError(f"an admission archive must hold the regular file {REPORT}, found none")
        archive.report = check_report(decode(files[REPORT], REPORT))
        table.add("admission:schema", True, must, f"{len(archive.report['checks'])} checks")
    if archive.report:
        clean = not archive.report["dirty"] and archive.report["git_sha"] != "unknown"
        found = "clean" if clean else "dirty, or its commit unknown"
        must = "the launch tree was clean at a known commit"
        table.add("admission:eligibility", clean or allow_dirty, must, found)
        _file_rows(table, archive)
        _plan_rows(table, archive, plans)
        _cell_rows(table, archive, repo, allow_dirty, partner_sets)
        for check in archive.report["checks"]:
            _check_rows(table, archive, check)
        _verdict_rows(table, archive)
        _markdown_row(table, archive)
    return finished(table)


def check_report(document: Any) -> dict[str, Any]:
    """``admission_report.json`` when it has the published form; the profile may be absent.

    Raises:
        RecordError: naming the field.
    """
    where = REPORT
    schema = dict(REPORT_SCHEMA)
    if type(document) is dict and "ego_robustness_profile" not in document:
        del schema["ego_robustness_profile"]
    check_fields(document, schema, where)
    if document["schema_version"] != 1:
        raise RecordError(f"{where}: schema_version must be 1, found {document['schema_version']}")
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", document["date_stamp"]):
        raise RecordError(f"{where}: date_stamp must be YYYY-MM-DD, found {document['date_stamp']!r}")
    for key in ("prereg_blob_sha", "git_sha"):
        if not re.fullmatch(r"[0-9a-f]{40}", document[key]) and (key, document[key]) != ("git_sha", "unknown"):
            raise RecordError(f"{where}: {key} must be 40 lower-case hexadecimal digits, found {document[key]!r}")
    for check in document["checks"]:
        check_fields(check, CHECK_SCHEMA, f"{where}: checks")
        if check["outcome"] not in OUTCOMES:
            raise RecordError(f"{where}: outcome must be one of {OUTCOMES}, found {check['outcome']!r}")
        _check_floats(check["statistics"], f"{where}: {check['check']}: statistics")
        if any(type(name) is not str or not plain_name(name) for name in check["bundles"]):
            raise RecordError(f"{where}: {check['check']}: bundles must be plain directory names")
        if any(not re.fullmatch(r"[0-9a-f]{64}", str(value)) for value in check["evidence"].values()):
            raise RecordError(f"{where}: {check['check']}: evidence must map paths to 64 hexadecimal digits")
    names = [check["check"] for check in document["checks"]]
    if names not in ([*CHECK_ORDER[:1]], [*CHECK_ORDER[:3]], [*CHECK_ORDER]):
        raise RecordError(f"{where}: checks must be A1, or A1 to A3, or A1 to A4, found {names}")
    _check_floats(document["binding_evidence"], f"{where}: binding_evidence")
    for member, statistics in (document.get("ego_robustness_profile") or {}).items():
        if type(statistics) is not dict:
            raise RecordError(f"{where}: ego_robustness_profile must map members to objects, found {member!r}")
        _check_floats(statistics, f"{where}: ego_robustness_profile: {member}")
    return document


def _check_floats(values: Mapping[str, Any], where: str) -> None:
    for key, value in values.items():
        if type(value) is not float:
            raise RecordError(f"{where}: {key} must be float, found {type(value).__name__}")


def _file_rows(table: CheckTable, archive: _Archive) -> None:
    cells = {name for check in archive.report["checks"] for name in check["bundles"]}
    directories = {name for name, kind in archive.others.items() if kind == "a directory"}
    problems = [f"{name!r} is {kind}" for name, kind in archive.others.items() if name not in directories]
    problems += [f"stray {name!r}" for name in sorted({*archive.files} - {REPORT, MARKDOWN, SUMS})]
    problems += [f"{name!r} is missing" for name in sorted({REPORT, MARKDOWN, SUMS} - {*archive.files})]
    problems += [f"no check names the directory {name!r}" for name in sorted(directories - cells)]
    must = "the archive holds the two reports, their digest list and the cells that checks name, nothing else"
    report(table, "admission:files", must, problems, f"{len(cells)} cells")
    must = "the digest list names the two reports with their SHA-256"
    with guarded(table, "admission:sha256sums", must):
        expected = "".join(f"{sha256_hex(archive.files[name])}  {name}\n" for name in (MARKDOWN, REPORT))
        equal = archive.files[SUMS] == expected.encode("ascii")
        table.add("admission:sha256sums", equal, must, "equal" if equal else "the list is not that of these files")
    problems = []
    for name, data in archive.files.items():
        try:
            # The digest list is compared whole above.
            problem = encoding_problem(name, data, {}) if name != SUMS else ""
            if name == REPORT and encode_document(archive.report) != data:
                problem = "is not the encoding of its values"
        except (RowproofError, ValueError, TypeError, RecursionError) as error:
            problem = str(error) or type(error).__name__
        problems += [f"{name}: {problem}"] if problem else []
    must = "reports are UTF-8 with LF and one final newline, and the JSON is byte for byte what its values encode to"
    report(table, "admission:encoding", must, problems, f"{len(archive.files)} files")


def _plan_rows(table: CheckTable, archive: _Archive, plans: Path | None) -> None:
    tag, blob = archive.report["prereg_git_tag"], archive.report["prereg_blob_sha"]
    must = "a plan with the recorded blob and tag is here"
    with guarded(table, "admission:plan", must):
        folder = plans if plans is not None else archive.root / PLANS if archive.root else None
        candidates = sorted(folder.glob("*.yaml")) if folder is not None and folder.is_dir() else []
        candidates += [archive.path / name / "prereg.yaml" for name in sorted(archive.others)]
        rivals = []
        for candidate in candidates:
            data = candidate.read_bytes() if candidate.is_file() else b""
            if data and blob_id(data) == blob:
                plan = load_plan(data, candidate.name)
                pairs = [("git_tag", tag), ("task_id", archive.report["task_id"])]
                problems = [f"{key} {plan[key]!r}, report {stated!r}" for key, stated in pairs if plan[key] != stated]
                version = plan["parameters"]["admission"]["task_version"]
                if version != archive.report["task_version"]:
                    problems.append(f"task_version {version!r}, report {archive.report['task_version']!r}")
                archive.plan_bytes = data
                if report(table, "admission:plan", must, problems, candidate.name):
                    archive.plan = plan
                break
            if tag.encode("utf-8") in data and load_plan(data, candidate.name)["git_tag"] == tag:
                rivals.append(f"{candidate.name} names {tag} and has another blob than the recorded {blob}")
        else:
            table.add(
                "admission:plan", False if rivals else None, must, "; ".join(rivals) or f"no plan has blob {blob}"
            )
    plan_provenance_rows(table, "admission:", archive.report, archive.plan_bytes, archive.history)


def _cell_rows(
    table: CheckTable, archive: _Archive, repo: Path | None, allow_dirty: bool, partner_sets: Mapping[str, Any] | None
) -> None:
    """One row per bundle that carries the checks (cells and wrapped bundles), and one per failing row of it."""
    cells = [(name, archive.path / name) for check in archive.report["checks"] for name in check["bundles"]]
    for check in archive.report["checks"]:
        for name in [] if check["bundles"] else check["evidence"]:
            if name.endswith("/bundle.json") and archive.root is not None and all(map(plain_name, name.split("/"))):
                cells.append((name.removesuffix("/bundle.json"), archive.root / name.removesuffix("/bundle.json")))
    same = ("task_id", "task_version", "git_sha", "prereg_git_tag", "prereg_blob_sha")
    for name, path in sorted(set(cells)):
        must = "the bundle verifies, and a cell belongs to the report's task, plan and launch"
        check_id = f"cell:{name}"
        with guarded(table, check_id, must):
            inner = verify_published(path, repo=repo, allow_dirty=allow_dirty, partner_sets=partner_sets)
            problems = [f"{len(inner.failures)} rows fail"] if not inner.passed else []
            if path.parent == archive.path and inner.passed:
                meta = decode((path / "bundle.json").read_bytes(), f"{name}/bundle.json")
                problems += [f"{key} is not the report's" for key in same if meta[key] != archive.report[key]]
            report(table, check_id, must, problems, f"{len(inner.checks)} rows, none fails")
            for check in inner.failures:
                table.add(f"{check_id}/{check.id}", False, check.must, check.found)


def _check_rows(table: CheckTable, archive: _Archive, check: Mapping[str, Any]) -> None:
    name = check["check"]
    must = "evidence hashes are those of the files, and exactly the files that the check rests on"
    with guarded(table, f"evidence:{name}", must):
        wrapped = not check["bundles"]
        problems = []
        for path, stated in check["evidence"].items():
            data = archive.evidence_file(path, wrapped)
            problems += [] if sha256_hex(data) == stated else [f"{path} has another SHA-256"]
        if wrapped:
            if check["evidence"] != archive.entry(name)["files"]:
                problems.append("evidence is not what the plan pins")
        elif set(check["evidence"]) != {f"{cell}/bundle.json" for cell in check["bundles"]}:
            problems.append("evidence must be the bundle.json of each cell")
        report(table, f"evidence:{name}", must, problems, f"{len(check['evidence'])} files")
    must = "the stated statistics are those of the episodes, bit for bit"
    with guarded(table, f"statistics:{name}", must):
        fresh = _statistics(archive, check)
        archive.statistics[name] = fresh
        problems = _unequal(fresh, check["statistics"])
        report(table, f"statistics:{name}", must, problems, f"{len(fresh)} numbers equal")
    must = "the outcome follows from the statistics and the plan's thresholds, which the criterion quotes"
    with guarded(table, f"outcome:{name}", must):
        if name not in archive.statistics:
            raise HistoryGap("the statistics could not be recomputed")
        outcome = _outcome(archive, check)
        problems = [] if outcome == check["outcome"] else [f"stated {check['outcome']}, derived {outcome}"]
        problems += [
            f"the criterion does not quote {key} {value!r}"
            for key, value in _thresholds(archive.rules, name).items()
            if f"({value!r})" not in check["criterion"]
        ]
        report(table, f"outcome:{name}", must, problems, outcome)


def _unequal(fresh: Mapping[str, Any], stated: Mapping[str, Any]) -> list[str]:
    if list(fresh) != list(stated):
        return [f"keys must be {list(fresh)}, found {list(stated)}"]
    return [f"{k} stated {stated[k]!r}, recomputed {fresh[k]!r}" for k in fresh if repr(fresh[k]) != repr(stated[k])]


def _records_of(archive: _Archive, directory: str, wrapped: bool) -> list[dict[str, Any]]:
    """All records of a bundle, in schedule order."""
    meta = decode(archive.evidence_file(f"{directory}/bundle.json", wrapped), f"{directory}/bundle.json")
    names = [f"{directory}/episodes_seed{seed}.jsonl" for seed in meta["seed_schedule"]["seeds"]]
    return [record for n in names for record in decode_lines(archive.evidence_file(n, wrapped), RECORD_SCHEMA, n)]


def _bootstrap(settings: Mapping[str, Any], root_key: str) -> tuple[int, int]:
    n_resamples = settings.get("n_resamples", DEFAULT_RESAMPLES)
    root_seed = settings.get(root_key, DEFAULT_ROOT_SEED)
    if type(n_resamples) is not int or not 1 <= n_resamples <= MAX_RESAMPLES or type(root_seed) is not int:
        raise RecordError(f"the plan must give n_resamples in 1..{MAX_RESAMPLES} and an integer root seed")
    return n_resamples, root_seed


def _success(records: list[dict[str, Any]], bootstrap: tuple[int, int], prefix: str = "") -> dict[str, float]:
    summary = success_summary(clusters_of(records), *bootstrap, BUNDLE_STREAM)
    keys = ("n_episodes", "success_mean", "success_iqm", "success_ci_low", "success_ci_high")
    return {prefix + key: float(getattr(summary, key)) for key in keys}


def _stress(records: list[dict[str, Any]], successes_only: bool) -> dict[str, float]:
    stress = stress_summary(records, successes_only)
    return {f"stress_{key}": float(stress[key]) for key in STRESS_KEYS} if stress["n"] else {"stress_n": 0.0}


def _statistics(archive: _Archive, check: Mapping[str, Any]) -> dict[str, float]:
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
        loaded = _records_of(archive, directory, wrapped=True)
        unpinned = {f"{directory}/episodes_seed{record['seed']}.jsonl" for record in loaded} - set(entry["files"])
        if unpinned or f"{directory}/bundle.json" not in entry["files"]:
            raise RecordError(f"only files that the plan pins may be read, found {sorted(unpinned)}")
        return loaded

    if extractor == "bundle_success_summary" and name in ("A1", "A2"):
        loaded = records("bundle_dir")
        return {**_success(loaded, bootstrap), **_stress(loaded, settings.get("stress_successes_only", True))}
    if extractor == "bundle_paired_delta" and name == "A3":
        return _gap(records("reference_dir"), records("blind_dir"), bootstrap)
    if extractor == "bundle_ego_robustness_profile" and name == "A4":
        return _robustness(archive, records("bundle_dir"), settings["members"], bootstrap)
    raise HistoryGap(f"evidence of extractor {extractor!r} cannot be re-derived for {name}")


def _measured(archive: _Archive, check: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, float]:
    name, bootstrap = check["check"], _bootstrap(archive.rules, "root_seed")
    if check["bundles"] != [entry["cell_id"]]:
        raise RecordError(f"{name} must rest on the cell {entry['cell_id']!r}, found {check['bundles']}")
    records = _records_of(archive, entry["cell_id"], wrapped=False)
    if name == "A3":
        reference = _records_of(archive, archive.entry("A1")["cell_id"], wrapped=False)
        return {**_gap(reference, records, bootstrap), **_success(records, bootstrap, "blind_")}
    if name == "A4":
        # The members of a measured sweep are those that its records name.
        return _robustness(archive, records, sorted({partner_of(record) for record in records}), bootstrap)
    return {**_success(records, bootstrap), **_stress(records, successes_only=name == "A1")}


def _gap(reference: list[dict[str, Any]], blind: list[dict[str, Any]], bootstrap: tuple[int, int]) -> dict[str, float]:
    return {key: float(value) for key, value in paired_delta(reference, blind, *bootstrap).items()}


def _robustness(
    archive: _Archive, records: list[dict[str, Any]], members: list[str], bootstrap: tuple[int, int]
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
        member: {**_success(played, bootstrap), **_stress(played, successes_only=True)}
        for member, played in by_member.items()
    }
    return {
        "n_partners": float(len(by_member)),
        "min_success_ci_low": min(row["success_ci_low"] for row in archive.profile.values()),
        "min_success_ci_high": min(row["success_ci_high"] for row in archive.profile.values()),
    }


def _thresholds(rules: Mapping[str, Any], check: str) -> dict[str, float]:
    """The plan's thresholds that decide a check."""
    floor = {"A1": "tau_solv", "A2": "tau_infeasible", "A3": "delta_min", "A4": "c_min_ego"}[check]
    keys = [floor, "stress_limit"] if check in ("A1", "A4") and rules["stress_limit"] is not None else [floor]
    thresholds = {key: rules[key] for key in keys}
    _check_floats(thresholds, "plan: admission")
    return thresholds


def _outcome(archive: _Archive, check: Mapping[str, Any]) -> str:
    """PASS, FAIL or INDETERMINATE by the published rules; a straddle of wrapped evidence is a FAIL."""
    name, statistics = check["check"], archive.statistics[check["check"]]
    limits = _thresholds(archive.rules, name)
    if name == "A2":
        passes = statistics["success_ci_high"] <= limits["tau_infeasible"]
        fails = statistics["success_ci_low"] > limits["tau_infeasible"]
    elif name == "A3":
        passes = statistics["delta_ci_low"] >= limits["delta_min"]
        fails = statistics["delta_ci_high"] < limits["delta_min"]
    else:
        rows = [statistics] if name == "A1" else list(archive.profile.values())
        floor = limits["tau_solv" if name == "A1" else "c_min_ego"]
        passes = all(row["success_ci_low"] >= floor for row in rows)
        fails = any(row["success_ci_high"] < floor for row in rows)
        if passes and "stress_limit" in limits:
            if any("stress_max" not in row for row in rows):
                raise RecordError("a stress limit needs recorded stress of successful episodes, found none")
            overloaded = any(row["stress_max"] > limits["stress_limit"] for row in rows)
            passes, fails = not overloaded, overloaded
    straddle = "INDETERMINATE" if "cell_id" in archive.entry(name) else "FAIL"
    return "PASS" if passes else "FAIL" if fails else straddle


def _verdict_rows(table: CheckTable, archive: _Archive) -> None:
    stated = archive.report
    must = "the verdict follows from the outcomes, and every check that the plan asks for is reported"
    with guarded(table, "admission:verdict", must):
        outcomes = {check["check"]: check["outcome"] for check in stated["checks"]}
        derived = verdict_of(outcomes)
        problems = [] if stated["verdict"] == derived else [f"stated {stated['verdict']!r}, derived {derived!r}"]
        asked = CHECK_ORDER if archive.rules.get("c_min_ego") is not None else CHECK_ORDER[:3]
        if tuple(outcomes) != (asked if outcomes["A1"] != "FAIL" else CHECK_ORDER[:1]):
            problems.append(f"checks {list(outcomes)}, plan {list(asked)} (A1 alone when it fails)")
        extended = any(check["extended"] for check in stated["checks"])
        if stated["seed_extension_used"] != extended:
            problems.append(f"seed_extension_used must be {extended}")
        report(table, "admission:verdict", must, problems, derived)
    must = "binding evidence is the stress of A1's successful episodes, or empty when A1 is wrapped"
    with guarded(table, "admission:binding_evidence", must):
        fresh: dict[str, float] = {}
        if "cell_id" in archive.entry("A1"):
            fresh = _stress(_records_of(archive, archive.entry("A1")["cell_id"], wrapped=False), successes_only=True)
        problems = _unequal(fresh, stated["binding_evidence"])
        report(table, "admission:binding_evidence", must, problems, f"{len(fresh)} numbers equal")
    must = "the profile over members is that of the A4 episodes, bit for bit; absent without A4"
    with guarded(table, "admission:ego_robustness_profile", must):
        profile = stated.get("ego_robustness_profile")
        if any(check["check"] == "A4" for check in stated["checks"]) and archive.profile is None:
            raise HistoryGap("the profile could not be recomputed")
        if profile is None or archive.profile is None:
            problems = [] if profile is archive.profile else ["a profile must be there exactly when A4 ran"]
        else:
            problems = [] if list(profile) == list(archive.profile) else [f"members {list(profile)}"]
            for member in profile.keys() & archive.profile.keys():
                problems += [f"{member}: {text}" for text in _unequal(archive.profile[member], profile[member])]
        report(table, "admission:ego_robustness_profile", must, sorted(problems), f"{len(profile or {})} members")


def verdict_of(outcomes: Mapping[str, str]) -> str:
    """The published verdict for the outcomes of A1 to A4 (those that ran)."""
    if outcomes["A1"] == "FAIL":
        return "NOT_SOLVABLE"
    if "INDETERMINATE" in outcomes.values():
        return "INDETERMINATE"
    if "FAIL" in (outcomes.get("A2"), outcomes.get("A3")):
        return "CONTROL"
    return "UNINSTRUMENTABLE" if outcomes.get("A4") == "FAIL" else "ADMITTED"


def _markdown_row(table: CheckTable, archive: _Archive) -> None:
    """The report for readers: wording is free, its facts are those of the JSON report."""
    must = "the Markdown report states verdict, provenance, outcomes and statistics of the JSON report"
    with guarded(table, "admission:markdown", must):
        stated = archive.report
        text = archive.files[MARKDOWN].decode("utf-8")
        facts = [f"`{stated[key]}`" for key in ("verdict", "prereg_git_tag", "prereg_blob_sha", "git_sha")]
        facts += [stated["date_stamp"], f"{stated['task_id']}@v{stated['task_version']}"]
        for check in stated["checks"]:
            facts += [f"### {check['check']} — {check['outcome']}\n", check["criterion"], *check["bundles"]]
            facts += [f"- `{key}` = {value:.6g}\n" for key, value in check["statistics"].items()]
        problems = [f"missing: {printable(fact)}" for fact in facts if fact not in text]
        report(table, "admission:markdown", must, problems, f"{len(facts)} facts")
