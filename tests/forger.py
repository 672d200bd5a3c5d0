"""Altering copies of published bundles and sealing them again: only the alteration itself can give them away."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from forgeries.seal import Copy, sha256
from helpers import shared_data
from rowproof.evidence.published.seats import seat_identity
from rowproof.evidence.statistics import clusters_of, success_summary
from rowproof.git import blob_id
from rowproof.layout import SUMS
from rowproof.records import encode_document

BENCHMARK = ("chamber-bundles", "spikes", "results", "benchmark")
ADMISSION = ("chamber-bundles", "spikes", "results", "admission")


class Forged(Copy):
    """A copy of a published bundle under the hands of a forger."""

    def set_command(self, command: str) -> None:
        self.edit_meta(lambda meta: meta.update(repro_command=command))
        self.write("REPRO.txt", (command + "\n").encode())

    def replace_in_command(self, old: str, new: str) -> None:
        command = self.meta["repro_command"]
        assert old in command
        self.set_command(command.replace(old, new))

    @property
    def seats(self) -> list[dict[str, Any]]:
        return json.loads(self.read("partners.json"))

    def edit_seats(self, change: Callable[[list[dict[str, Any]]], Any]) -> None:
        seats = self.seats
        change(seats)
        self.write_seats(seats)

    def write_seats(self, seats: Any) -> None:
        self.write("partners.json", (json.dumps(seats, indent=2, sort_keys=True) + "\n").encode())

    def reseal(self, summary: bool = True, identities: bool = True, blob: bool = True, manifest: bool = True) -> None:
        """Recompute all that depends on other files: summary, identities, blob, manifest and digest list."""
        reseal(self.path, summary, identities, blob, manifest)

    def sign(self) -> None:
        """Recompute the digest list alone."""
        sign(self.path)


# Most alterations leave every success as it was, and the bootstrap is the slowest part of sealing.
_summary = cache(success_summary)


def reseal(path: Path, summary: bool = True, identities: bool = True, blob: bool = True, manifest: bool = True) -> None:
    """Make a bundle consistent after an alteration; see :meth:`Forged.reseal`."""
    meta = json.loads((path / "bundle.json").read_bytes())
    if summary:
        lines = [(path / f"episodes_seed{s}.jsonl").read_bytes().split(b"\n") for s in meta["seed_schedule"]["seeds"]]
        records = [json.loads(line) for group in lines for line in group if line.strip()]
        stated = meta["summary"]
        scores = tuple(map(tuple, clusters_of(records)))
        fresh = _summary(scores, stated["n_resamples"], stated["bootstrap_root_seed"])
        for key in ("n_episodes", "success_mean", "success_iqm", "success_ci_low", "success_ci_high"):
            stated[key] = getattr(fresh, key)
    if identities:
        seats = json.loads((path / "partners.json").read_bytes())
        meta["partner_hashes"] = {seat["name"]: seat_identity(seat) for seat in seats}
    if blob and meta["prereg_git_tag"] is not None and (path / "prereg.yaml").exists():
        meta["prereg_blob_sha"] = blob_id((path / "prereg.yaml").read_bytes())
    if manifest:
        names = sorted(p.name for p in path.iterdir() if p.is_file() and p.name not in ("bundle.json", SUMS))
        meta["manifest"] = {name: sha256((path / name).read_bytes()) for name in names}
    (path / "bundle.json").write_bytes(encode_document(meta))
    sign(path)


def sign(path: Path) -> None:
    """Write the digest list of a bundle, over whatever lies in it."""
    names = sorted(p.name for p in path.iterdir() if p.is_file() and p.name != SUMS)
    text = "".join(f"{sha256((path / name).read_bytes())}  {name}\n" for name in names)
    (path / SUMS).write_bytes(text.encode())


def forged(tmp_path: Path, *parts: str) -> Forged:
    """A copy of a published benchmark bundle, for example ``handover-v1/b-stat-2026-07-06``."""
    return Forged(shared_data(*BENCHMARK, *parts[0].split("/")), tmp_path / "bundle")
