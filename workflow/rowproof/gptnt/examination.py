"""The doctor's whole report on a run, from its manifest to what is done already."""

import os
import platform
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from rowproof.errors import ConfigError
from rowproof.gptnt.arguments import INSTALL
from rowproof.gptnt.doctor import (
    Check,
    Plan,
    PlayerRow,
    Report,
    Section,
    check,
    check_image_tokens,
    check_live,
    check_players,
    check_resume,
    check_run_plan,
    check_stale_specs,
    guarded,
    load_anchor_players,
    missing_packages,
)
from rowproof.gptnt.runs import RunManifest, load_anchors
from rowproof.gptnt.spec import Spec
from rowproof.gptnt.specs import Progress
from rowproof.gptnt.suite_lock import load_lock

LEAST_FREE_GIB = 10
# Without the first no run can write its records; the others are for models, databases and pictures.
RECORD_PACKAGES, OTHER_PACKAGES = ("msgpack", "pyarrow", "zstandard"), ("duckdb", "json_repair", "openai", "PIL")
# What says how far specs are, with the capability fingerprint of every player; None where it cannot be told.
Ledger = Callable[[Mapping[str, Spec], Mapping[str, str]], Progress | None]


class Examination(NamedTuple):
    """What the doctor found, and what a run goes on with.

    Attributes:
        report: all checks.
        plan: of the run; None without a manifest.
        progress: how far its specs are; None where nobody asked or could tell.
    """

    report: Report
    plan: Plan | None
    progress: Progress | None


def examine(
    root: Path,
    manifest: RunManifest | None,
    environment: Mapping[str, str],
    specs: Mapping[str, Spec] | None = None,
    ledger: Ledger | None = None,
    missing_key: Literal["fail", "warn"] = "fail",
    machine: bool = True,
    live: bool = False,
) -> Examination:
    """Check players, plan and machine.

    Args:
        root: the project.
        manifest: the run; None checks every player there is.
        environment: where credentials and the display are looked up.
        specs: those on disk; None takes those that the manifest gives.
        ledger: what is done; None leaves that out.
        missing_key: what an unset credential means.
        machine: look at this machine, too.
        live: send each model one short request.

    Raises:
        ConfigError: anchors or the suite lock cannot be read.
    """
    rows = check_players(root, manifest.players if manifest else None, environment, missing_key)
    if live:
        rows = check_live(rows, environment)
    sections = [check_image_tokens(rows)]
    plan, found = None, None
    if manifest is not None:
        lock, anchors = load_lock(root), load_anchors(root, manifest)
        players = load_anchor_players(root, anchors, rows)
        plan = check_run_plan(manifest, rows, lock, anchors, players, specs)
        extra: list[Check] = []
        if specs is not None:
            generated = check_run_plan(manifest, rows, lock, anchors, players).specs
            extra.append(check_stale_specs(specs, generated))
        if ledger is not None and not plan.missing:
            try:
                found = ledger(plan.specs, fingerprints(rows))
                extra.append(check_resume(plan.specs, found, manifest.source))
            except ConfigError as error:
                extra.append(check("Resume", "fail", str(error)))
        sections.append(Section(plan.section.name, [*plan.section.checks, *extra]))
    if machine:
        sections += [_infrastructure(manifest), Section("Machine", guarded("Machine", lambda: _machine(root)))]
    return Examination(Report(rows, sections), plan, found)


def fingerprints(rows: list[PlayerRow]) -> dict[str, str]:
    """The capability fingerprint of every player that can be built, by its name."""
    return {row.player.name: row.player.fingerprint for row in rows if row.player is not None}


def _infrastructure(manifest: RunManifest | None) -> Section:
    checks = [
        check("Simulator", "pass", "embedded: no game, window or mod is needed"),
        check("Message bus", "pass", "embedded"),
    ]
    if manifest is not None and manifest.displays:
        shown = ", ".join(f":{number}" for number in manifest.displays)
        checks.append(check("Displays", "pass", f"{shown}: noted in the log, the embedded simulator draws none"))
    return Section("Infrastructure", checks)


def _packages() -> Check:
    absent = missing_packages(RECORD_PACKAGES)
    absent_others = missing_packages(OTHER_PACKAGES)
    if absent:
        return check("Packages", "fail", f"not installed: {', '.join(absent + absent_others)}", INSTALL)
    if absent_others:
        return check("Packages", "warn", f"not installed: {', '.join(absent_others)}", INSTALL)
    return check("Packages", "pass", "all that runs, databases and pages need")


def _machine(root: Path) -> list[Check]:
    facts = f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    free_gib = shutil.disk_usage(root).free / 2**30
    enough = free_gib >= LEAST_FREE_GIB
    hint = "" if enough else f"free some: recordings want {LEAST_FREE_GIB} GiB"
    return [
        check("System", "pass", facts),
        _packages(),
        check("Disk space", "pass" if enough else "warn", f"{free_gib:.0f} GiB free", hint),
    ]


def render(report: Report) -> str:
    """The report as text."""
    marks = {"pass": "ok  ", "fail": "FAIL", "warn": "warn", "skip": "skip"}
    lines = ["Players"]
    for row in report.players:
        boxes = " ".join(marks[box.status].strip() for box in (row.exists, row.ready, row.live))
        name = row.player.name if row.player else ""
        lines.append(f"  {row.label}: {boxes} {name}".rstrip())
        lines += [
            f"    {box.detail}{f' -> {box.hint}' if box.hint else ''}"
            for box in (row.exists, row.ready, row.live)
            if box.status in ("fail", "warn") or (box.name == "Live" and box.status == "pass")
        ]
    for section in report.sections:
        lines.append(section.name)
        for item in section.checks:
            fix = f" -> {item.hint}" if item.hint and item.status in ("fail", "warn") else ""
            lines.append(f"  {marks[item.status]} {item.name}: {item.detail}{fix}")
    lines.append("failed" if report.failed else "nothing is in the way")
    return "\n".join(lines)
