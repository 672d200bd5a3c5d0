"""A published bundle against its recorded command, its plan and the tag of that plan."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rowproof.errors import RecordError
from rowproof.evidence.checks import CheckTable
from rowproof.evidence.published.bundle import Bundle
from rowproof.evidence.published.catalogue import ADHOC, known_tags
from rowproof.evidence.published.commands import Command, members_run, parse_command, seeds_agree
from rowproof.evidence.published.plans import (
    DEFAULT_RESAMPLES,
    DEFAULT_ROOT_SEED,
    closest_cell,
    load_plan,
    planned_cells,
)
from rowproof.evidence.published.tables import STRICT, report
from rowproof.git import History, blob_id


def tag_rows(table: CheckTable, bundle: Bundle) -> None:
    """Reference rows: the tag exists and the plan has the recorded blob id."""
    tag, stated = bundle.meta["prereg_git_tag"], bundle.meta["prereg_blob_sha"]
    if tag is None:
        table.add("prereg", True, "a run without a plan says so", "not preregistered: never ranked")
        return
    if "prereg.yaml" not in bundle.files:
        table.add("prereg:copy", False, "the bundle holds the plan it was gated on", "no regular file prereg.yaml")
    must = "the tag exists in the repository"
    with table.guard("prereg:tag", must):
        commit = bundle.history.tag_commit(tag)
        table.add("prereg:tag", True, must, f"{tag} stands for {commit}")
    must = "the plan's git blob id, taken over its raw bytes, is the recorded one"
    with table.guard("prereg:blob", must):
        found = blob_id(bundle.need("prereg.yaml"))
        table.add("prereg:blob", found == stated, must, f"recorded {stated}, copy has {found}")


def command_row(table: CheckTable, bundle: Bundle) -> None:
    """Strict row: the recorded command; leaves ``command`` and ``members`` in the bundle."""
    must = "REPRO.txt is the recorded command, and its options agree with bundle.json"
    with table.guard(f"{STRICT}repro:text", must):
        text, meta = bundle.meta["repro_command"], bundle.meta
        problems = []
        if bundle.need("REPRO.txt") != (text + "\n").encode("utf-8"):
            problems.append("REPRO.txt is not repro_command and one newline")
        command = parse_command(text)
        if (command.one("--prereg") is None) != (meta["prereg_git_tag"] is None):
            problems.append("--prereg and prereg_git_tag must both be there or both be absent")
        if command.one("--out") is None:
            problems.append("--out is missing")
        if command.kind == "run":
            problems += _run_problems(bundle, command)
        elif not meta["partner_set_id"].startswith(ADHOC):
            problems.append("an admission cell must have a single partner")
        bundle.command = command
        report(table, f"{STRICT}repro:text", must, problems, f"{command.kind} command agrees")


def _run_problems(bundle: Bundle, command: Command) -> list[str]:
    meta, summary, schedule = bundle.meta, bundle.meta["summary"], bundle.meta["seed_schedule"]
    problems = []
    task = command.one("--task", "")
    if task not in (meta["task_id"], f"{meta['task_id']}@v{meta['task_version']}"):
        problems.append(f"--task {task!r}, bundle {meta['task_id']}@v{meta['task_version']}")
    if command.one("--policy") != meta["policy_id"]:
        problems.append(f"--policy {command.one('--policy')!r}, bundle {meta['policy_id']!r}")
    partner = command.one("--partner")
    if (partner is None) == (command.one("--partner-set") is None):
        problems.append("exactly one of --partner and --partner-set must be given")
    elif partner is None:
        if command.one("--partner-set") != meta["partner_set_id"]:
            problems.append(f"--partner-set {command.one('--partner-set')!r}, bundle {meta['partner_set_id']!r}")
        if command.one("--partner-weights") is not None:
            problems.append("--partner-weights must come with --partner")
        bundle.members = members_run(command, bundle.catalogue)
        if bundle.catalogue["sets"][meta["partner_set_id"]]["task"] != f"{meta['task_id']}@v{meta['task_version']}":
            problems.append(f"{meta['partner_set_id']} is not a set of task {meta['task_id']}@v{meta['task_version']}")
    else:
        if ADHOC + partner != meta["partner_set_id"]:
            problems.append(f"--partner {partner!r}, bundle {meta['partner_set_id']!r}")
        checkpoint = meta["policy_id"].partition(":")[2]
        if command.one("--partner-weights", "") != checkpoint:
            problems.append(f"the pair must play one checkpoint, found {checkpoint!r} for the ego alone")
        if "--exclude-member" in command.values or "--include-private" in command.switches:
            problems.append("--exclude-member and --include-private need --partner-set")
    if not seeds_agree(command.one("--seeds", ""), schedule["seeds"]):
        problems.append(f"--seeds {command.one('--seeds')!r}, bundle {schedule['seeds']}")
    for flag, default, factor, stated in (
        ("--episodes", "", len(bundle.members) or 1, schedule["episodes_per_seed"]),
        ("--root-seed", str(DEFAULT_ROOT_SEED), 1, schedule["root_seed"]),
        ("--root-seed", str(DEFAULT_ROOT_SEED), 1, summary["bootstrap_root_seed"]),
        ("--n-resamples", str(DEFAULT_RESAMPLES), 1, summary["n_resamples"]),
    ):
        given = command.one(flag, default)
        if not re.fullmatch(r"[0-9]{1,9}", given) or int(given) * factor != stated:
            problems.append(f"{flag} {given!r} (x {factor}), bundle {stated}")
    return problems


def plan_rows(table: CheckTable, bundle: Bundle, plans: Path | None) -> None:
    """Strict rows: the plan and the run that it lists; leaves ``plan`` and ``cell`` in the bundle."""
    meta = bundle.meta
    tag = meta["prereg_git_tag"]
    summary = meta["summary"]
    if tag is not None:
        must = "the plan is in document form and names the bundle's tag and task"
        with table.guard(f"{STRICT}prereg:plan", must):
            plan = load_plan(bundle.need("prereg.yaml"), "prereg.yaml")
            pairs = [("git_tag", tag), ("task_id", meta["task_id"])]
            problems = [f"{key} {plan[key]!r}, bundle {stated!r}" for key, stated in pairs if plan[key] != stated]
            if report(table, f"{STRICT}prereg:plan", must, problems, f"{tag}"):
                bundle.plan = plan
        plan_provenance_rows(table, STRICT, meta, bundle.files.get("prereg.yaml"), bundle.history)
        if plans is not None:
            _plan_file_row(table, bundle, plans)
        must = "policy, partners, seeds, counts and root seed are those of a run that the plan lists"
        with table.guard(f"{STRICT}prereg:cell", must):
            if bundle.plan is None:
                raise RecordError("no readable plan of this bundle")
            cell = closest_cell(planned_cells(bundle.plan, bundle.catalogue), meta)
            problems = cell.differences(meta)
            names = tuple(member["name"] for member in bundle.members)
            if names != cell.members:
                problems.append(f"members {list(names)}, plan {list(cell.members)}")
            bundle.cell = cell
            report(table, f"{STRICT}prereg:cell", must, problems, f"{cell.row} ({cell.purpose})")
    planned = (
        (bundle.cell.n_resamples, bundle.cell.root_seed) if bundle.cell else (DEFAULT_RESAMPLES, DEFAULT_ROOT_SEED)
    )
    stated = (summary["n_resamples"], summary["bootstrap_root_seed"])
    must = f"n_resamples and bootstrap_root_seed are the plan's, here {planned[0]} and {planned[1]}"
    table.add(f"{STRICT}summary:params", stated == planned, must, f"{stated[0]} and {stated[1]}")


def plan_provenance_rows(
    table: CheckTable, prefix: str, meta: Mapping[str, Any], plan: bytes | None, history: History
) -> None:
    """Rows that tie a plan to its tag: the known published tag, the tagged tree, the order of commits.

    Args:
        table: gains ``<prefix>prereg:known``, ``...:at_tag`` and ``...:order``.
        prefix: start of the check ids.
        meta: ``prereg_git_tag`` (not None), ``prereg_blob_sha``, ``git_sha`` and ``repro_command`` if there is one.
        plan: raw bytes of the plan, None when it is not here.
        history: where tags and commits are looked up.
    """
    tag, blob = meta["prereg_git_tag"], meta["prereg_blob_sha"]
    must = "the plan is byte for byte the one published under this tag"
    known = known_tags().get(tag)
    if known is None:
        table.add(f"{prefix}prereg:known", None, must, f"{tag!r} is not among the known published tags")
    else:
        copies = {blob} if plan is None else {blob, blob_id(plan)}
        problems = [f"blob {copy}, published {known['blob']}" for copy in copies - {known["blob"]}]
        try:
            named = parse_command(meta["repro_command"]).one("--prereg") if "repro_command" in meta else None
        except RecordError:
            named = None
        problems += (
            [f"command names {named!r}, published {known['plan']!r}"] if named not in (None, known["plan"]) else []
        )
        report(table, f"{prefix}prereg:known", must, sorted(problems), f"blob {known['blob']}")
    must = "the tagged tree holds exactly this plan"
    with table.guard(f"{prefix}prereg:at_tag", must):
        paths = history.paths_of_blob(history.tag_commit(tag), blob or "")
        found = (
            f"at {paths[0]}"
            if paths
            else f"blob {blob} is not in the tagged tree: the plan was edited, or the tag moved"
        )
        table.add(f"{prefix}prereg:at_tag", bool(paths), must, found)
    must = "the tagged commit is the launch commit or an ancestor of it"
    with table.guard(f"{prefix}prereg:order", must):
        tagged = history.tag_commit(tag)
        before = history.is_ancestor(tagged, meta["git_sha"])
        found = f"{tagged} {'precedes' if before else 'does not precede'} {meta['git_sha']}"
        table.add(f"{prefix}prereg:order", before, must, found)


def _plan_file_row(table: CheckTable, bundle: Bundle, plans: Path) -> None:
    must = "the plan in the given directory that names this tag is the bundle's copy, byte for byte"
    check_id = f"{STRICT}prereg:plans"
    with table.guard(check_id, must):
        tag, copy = bundle.meta["prereg_git_tag"], bundle.need("prereg.yaml")
        for candidate in sorted(plans.rglob("*.yaml")):
            data = candidate.read_bytes()
            if data == copy or (tag.encode() in data and load_plan(data, candidate.name)["git_tag"] == tag):
                table.add(check_id, data == copy, must, candidate.name)
                return
        table.add(check_id, None, must, f"no plan in {plans.as_posix()} names {tag}")
