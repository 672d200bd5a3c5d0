"""Learned rows: the checkpoint selection that a published bundle played."""

from pathlib import Path

from rowproof.errors import HistoryGap, RecordError
from rowproof.evidence.checks import CheckTable
from rowproof.evidence.published.bundle import Bundle
from rowproof.evidence.published.files import published_root, sorted_json
from rowproof.evidence.published.tables import STRICT, report
from rowproof.records import decode


def selection_row(table: CheckTable, bundle: Bundle) -> None:
    """Learned rows: the checkpoints that played are the ones selected, by the rule, and committed before the run."""
    cell, meta = bundle.cell, bundle.meta
    if cell is None or cell.manifest is None or bundle.records is None:
        return
    must = "the committed selection manifest names the checkpoint that played each seed, and the rule selects them"
    check_id = f"{STRICT}selection:manifest"
    with table.guard(check_id, must):
        named = meta["policy_id"].partition("_manifest:")[2]
        if named and named != cell.manifest:
            raise RecordError(f"the policy must read {cell.manifest}, found {named!r}")
        root = published_root(bundle.path)
        if root is None or not (root / cell.manifest).is_file():
            raise HistoryGap(f"{cell.manifest} is not found above the bundle: verify it inside the published tree")
        data = (root / cell.manifest).read_bytes()
        manifest = decode(data, cell.manifest)
        problems = [] if sorted_json(manifest) == data else [f"{cell.manifest} is not the encoding of its values"]
        for seed in bundle.seeds:
            policy = meta["policy_id"]
            if named:
                policy = bundle.records[seed][0]["metadata"]["seed_policy"]
            played = policy.partition(":")[2]
            chosen = _selected(root / cell.manifest, cell.row.lower(), seed)
            if not played == manifest.get(str(seed)) == chosen:
                problems.append(f"seed {seed}: played {played}, manifest {manifest.get(str(seed))}, rule {chosen}")
        report(table, check_id, must, problems, cell.manifest)
        must_commit = "the launch commit holds this selection manifest"
        with table.guard(f"{STRICT}selection:committed", must_commit):
            committed = bundle.history.file_at(meta["git_sha"], cell.manifest)
            table.add(f"{STRICT}selection:committed", committed == data, must_commit, cell.manifest)


def _selected(manifest: Path, row: str, seed: int) -> str:
    """URI that the selection rule gives for one seed: most compliant successes, then the earliest step."""
    name = f"{row}-seed{seed}.json"
    artefact = decode((manifest.parent / name).read_bytes(), name)
    best = min(artefact["scores"], key=lambda score: (-score["compliant_successes"], score["step"]))
    if (best["step"], best["uri"]) != (artefact["selected_step"], artefact["selected_uri"]):
        raise RecordError(f"{name}: the rule selects step {best['step']}, found {artefact['selected_step']}")
    return best["uri"]
