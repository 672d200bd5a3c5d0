"""Verification of published CHAMBER admission archives: every number and every outcome from the episodes up."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rowproof.errors import HistoryGap, RecordError, RowproofError
from rowproof.evidence.admission import verdict_of
from rowproof.evidence.checks import CheckTable
from rowproof.evidence.published.archive import CHECK_ORDER, REPORT, Archive, check_report, records_of
from rowproof.evidence.published.criteria import outcome_of, statistics_of, stress_figures, thresholds_of
from rowproof.evidence.published.files import SUMS, encoding_problem, plain_name, published_root, read_directory
from rowproof.evidence.published.plans import load_plan
from rowproof.evidence.published.preregistration import plan_provenance_rows
from rowproof.evidence.published.tables import finished, report, shortened
from rowproof.evidence.published.verify import verify_published
from rowproof.git import History, blob_id
from rowproof.hashing import sha256_hex
from rowproof.records import decode, encode_document

MARKDOWN = "ADMISSION_REPORT.md"
PLANS = Path("spikes/preregistration/admission")


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
        partner_sets: as in :func:`rowproof.evidence.published.verify.verify_published`.

    Returns:
        The check table. What needs a plan, evidence or history that is not here is ``unknown``.

    Raises:
        RowproofError: ``path`` is not a readable directory.
    """
    files, others = read_directory(path)
    archive = Archive(path, root or published_root(path), History(repo), files, others)
    table = CheckTable(path.as_posix())
    must = "admission_report.json has every field of schema version 1, typed, and no other"
    with table.guard("admission:schema", must):
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


def _file_rows(table: CheckTable, archive: Archive) -> None:
    cells = {name for check in archive.report["checks"] for name in check["bundles"]}
    directories = {name for name, kind in archive.others.items() if kind == "a directory"}
    problems = [f"{name!r} is {kind}" for name, kind in archive.others.items() if name not in directories]
    problems += [f"stray {name!r}" for name in sorted({*archive.files} - {REPORT, MARKDOWN, SUMS})]
    problems += [f"{name!r} is missing" for name in sorted({REPORT, MARKDOWN, SUMS} - {*archive.files})]
    problems += [f"no check names the directory {name!r}" for name in sorted(directories - cells)]
    must = "the archive holds the two reports, their digest list and the cells that checks name, nothing else"
    report(table, "admission:files", must, problems, f"{len(cells)} cells")
    must = "the digest list names the two reports with their SHA-256"
    with table.guard("admission:sha256sums", must):
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


def _plan_rows(table: CheckTable, archive: Archive, plans: Path | None) -> None:
    tag, blob = archive.report["prereg_git_tag"], archive.report["prereg_blob_sha"]
    must = "a plan with the recorded blob and tag is here"
    with table.guard("admission:plan", must):
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
    table: CheckTable, archive: Archive, repo: Path | None, allow_dirty: bool, partner_sets: Mapping[str, Any] | None
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
        with table.guard(check_id, must):
            inner = verify_published(path, repo=repo, allow_dirty=allow_dirty, partner_sets=partner_sets)
            problems = [f"{len(inner.failures)} rows fail"] if not inner.passed else []
            if path.parent == archive.path and inner.passed:
                meta = decode((path / "bundle.json").read_bytes(), f"{name}/bundle.json")
                problems += [f"{key} is not the report's" for key in same if meta[key] != archive.report[key]]
            report(table, check_id, must, problems, f"{len(inner.checks)} rows, none fails")
            for check in inner.failures:
                table.add(f"{check_id}/{check.id}", False, check.must, check.found)


def _check_rows(table: CheckTable, archive: Archive, check: Mapping[str, Any]) -> None:
    name = check["check"]
    must = "evidence hashes are those of the files, and exactly the files that the check rests on"
    with table.guard(f"evidence:{name}", must):
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
    with table.guard(f"statistics:{name}", must):
        fresh = statistics_of(archive, check)
        archive.statistics[name] = fresh
        problems = _unequal(fresh, check["statistics"])
        report(table, f"statistics:{name}", must, problems, f"{len(fresh)} numbers equal")
    must = "the outcome follows from the statistics and the plan's thresholds, which the criterion quotes"
    with table.guard(f"outcome:{name}", must):
        if name not in archive.statistics:
            raise HistoryGap("the statistics could not be recomputed")
        outcome = outcome_of(archive, check)
        problems = [] if outcome == check["outcome"] else [f"stated {check['outcome']}, derived {outcome}"]
        problems += [
            f"the criterion does not quote {key} {value!r}"
            for key, value in thresholds_of(archive.rules, name).items()
            if f"({value!r})" not in check["criterion"]
        ]
        report(table, f"outcome:{name}", must, problems, outcome)


def _unequal(fresh: Mapping[str, Any], stated: Mapping[str, Any]) -> list[str]:
    if list(fresh) != list(stated):
        return [f"keys must be {list(fresh)}, found {list(stated)}"]
    return [f"{k} stated {stated[k]!r}, recomputed {fresh[k]!r}" for k in fresh if repr(fresh[k]) != repr(stated[k])]


def _verdict_rows(table: CheckTable, archive: Archive) -> None:
    stated = archive.report
    must = "the verdict follows from the outcomes, and every check that the plan asks for is reported"
    with table.guard("admission:verdict", must):
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
    with table.guard("admission:binding_evidence", must):
        fresh: dict[str, float] = {}
        if "cell_id" in archive.entry("A1"):
            fresh = stress_figures(
                records_of(archive, archive.entry("A1")["cell_id"], wrapped=False), successes_only=True
            )
        problems = _unequal(fresh, stated["binding_evidence"])
        report(table, "admission:binding_evidence", must, problems, f"{len(fresh)} numbers equal")
    must = "the profile over members is that of the A4 episodes, bit for bit; absent without A4"
    with table.guard("admission:ego_robustness_profile", must):
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


def _markdown_row(table: CheckTable, archive: Archive) -> None:
    """The report for readers: wording is free, its facts are those of the JSON report."""
    must = "the Markdown report states verdict, provenance, outcomes and statistics of the JSON report"
    with table.guard("admission:markdown", must):
        stated = archive.report
        text = archive.files[MARKDOWN].decode("utf-8")
        facts = [f"`{stated[key]}`" for key in ("verdict", "prereg_git_tag", "prereg_blob_sha", "git_sha")]
        facts += [stated["date_stamp"], f"{stated['task_id']}@v{stated['task_version']}"]
        for check in stated["checks"]:
            facts += [f"### {check['check']} — {check['outcome']}\n", check["criterion"], *check["bundles"]]
            facts += [f"- `{key}` = {value:.6g}\n" for key, value in check["statistics"].items()]
        problems = [f"missing: {shortened(fact)}" for fact in facts if fact not in text]
        report(table, "admission:markdown", must, problems, f"{len(facts)} facts")
