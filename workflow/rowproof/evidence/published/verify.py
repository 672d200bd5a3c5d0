"""Verification of published CHAMBER bundles (schema version 3): a directory against itself, its plan and its tag."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rowproof.evidence.checks import CheckTable
from rowproof.evidence.published.bundle import Bundle, check_bundle_fields
from rowproof.evidence.published.catalogue import known_partner_sets
from rowproof.evidence.published.files import form_rows, manifest_rows, read_directory, sums_rows
from rowproof.evidence.published.preregistration import command_row, plan_rows, tag_rows
from rowproof.evidence.published.records import record_rows, schedule_rows
from rowproof.evidence.published.seats import partner_rows, seat_rows
from rowproof.evidence.published.selection import selection_row
from rowproof.evidence.published.summary import exact_row, summary_rows
from rowproof.evidence.published.tables import finished
from rowproof.git import History
from rowproof.records import decode


def verify_published(
    path: Path,
    plans: Path | None = None,
    repo: Path | None = None,
    allow_dirty: bool = False,
    partner_sets: Mapping[str, Any] | None = None,
) -> CheckTable:
    """Verify one published bundle directory.

    Args:
        path: the bundle.
        plans: a directory of plans; the one that names the bundle's tag must be the bundle's copy byte for byte.
        repo: a directory of a git clone that may hold the tag and the launch commit.
        allow_dirty: let a bundle from a dirty tree pass ``bundle:eligibility`` (local work, never ranking).
        partner_sets: known sets and seats instead of ``resources/published/partner-sets.yaml``.

    Returns:
        The check table. Where git history is missing, rows are ``unknown``.

    Raises:
        RowproofError: ``path`` is not a readable directory.
    """
    files, others = read_directory(path)
    catalogue = known_partner_sets() if partner_sets is None else partner_sets
    bundle = Bundle(path, files, others, catalogue, History(repo))
    table = CheckTable(path.as_posix())
    if _reference_block(table, bundle, allow_dirty):
        _strict_block(table, bundle, plans)
    return finished(table)


def _reference_block(table: CheckTable, bundle: Bundle, allow_dirty: bool) -> bool:
    """Fill in the rows of the published verifier; return whether ``bundle.json`` could be read."""
    if "bundle.json" not in bundle.files and "bundle.json" not in bundle.others:
        table.add("bundle", False, "a bundle holds bundle.json", "none: this is not a bundle")
        return False
    must = "bundle.json has every field of schema version 3, typed, and no other"
    with table.guard("bundle:schema", must):
        bundle.meta = check_bundle_fields(decode(bundle.need("bundle.json"), "bundle.json"))
        table.add("bundle:schema", True, must, f"schema version {bundle.meta['schema_version']}")
    if not bundle.meta:
        return False
    meta = bundle.meta
    # A tree whose commit could not be read was never shown to be clean.
    clean = not meta["dirty"] and meta["git_sha"] != "unknown"
    found = "clean" if clean else "dirty, or its commit unknown"
    table.add("bundle:eligibility", clean or allow_dirty, "the run's tree was clean at a known commit", found)
    manifest_rows(table, bundle)
    sums_rows(table, bundle)
    summary_rows(table, bundle)
    partner_rows(table, bundle)
    tag_rows(table, bundle)
    return True


def _strict_block(table: CheckTable, bundle: Bundle, plans: Path | None) -> None:
    form_rows(table, bundle)
    command_row(table, bundle)
    plan_rows(table, bundle, plans)
    exact_row(table, bundle)
    schedule_rows(table, bundle)
    record_rows(table, bundle)
    seat_rows(table, bundle)
    selection_row(table, bundle)
