"""How our co-carry episodes compare with the published records of the same rows and initial states.

Run: .venv/bin/python benchmarks/cocarry_agreement.py [ROW...] [--seeds S...] [--save FOLDER] [--load FOLDER]

ROW is ref-script, b-stat or b-rnd (default: all). Records are simulated here (one core: about 1, 12 and 14 minutes),
unless --load names a folder that an earlier --save filled. Digits differ between machines, and the first substep
amplifies them, so single outcomes may differ; the limits below say how many.
"""

import argparse
import logging
import os
import sys
from pathlib import Path

import numpy as np
import yaml
from rowproof.chamber.cocarry import engine
from rowproof.chamber.cocarry_cell import PUBLISHED_CELL
from rowproof.chamber.grid import specs
from rowproof.partners import PartnerSet
from rowproof.records import decode_lines, encode_lines

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = "data/chamber-bundles/spikes/results/benchmark/cocarry-v1"
MEMBERS = (
    "imp_stiff_low",
    "imp_stiff_high",
    "imp_damp_low",
    "imp_damp_high",
    "imp_lag_bounded",
    "imp_blend_b",
    "imp_blend_c",
)
ROWS = {"ref-script": "ref_script_cocarry_impedance", "b-stat": "static", "b-rnd": "random"}

# Of a full row: most outcomes that may differ, and how far the success mean may be off.
LIMITS = {"ref-script": (5, 0.003), "b-stat": (40, 0.015), "b-rnd": (3, 0.002)}
# How far an earlier port was off these records in each figure of FIGURES (b-rnd: seed 0 only), as a relative
# difference; ours may be off by that much plus 2 %.
EARLIER = {
    "ref-script": (0.0059, 0.0020, 0.0040, 0.0129, 0.0022, 0.0010, 0.0, 0.0146),
    "b-stat": (0.0043, 0.0010, 0.0045, 0.0088, 0.0, 0.0010, 0.0, 0.0025),
    "b-rnd": (0.0011, 0.0195, 0.0017, 0.0002, 0.0021, 0.0429, 0.0, 0.0),
}
EXTRA_SHARE = 0.02
FIGURES = ("force p50", "force p90", "tilt p50", "tilt p90", "distance p50", "distance p90", "steps p50", "steps mean")


def columns(records: list[dict]) -> dict[str, np.ndarray]:
    """Success, force (N), tilt (deg), distance (m) and steps of records, each of shape (n,)."""
    return {
        "success": np.array([r["success"] for r in records]),
        "force": np.array([r["force_peak"] for r in records]),
        "tilt": np.array([r["metadata"]["max_tilt_deg"] for r in records]),
        "distance": np.array([r["metadata"]["centroid_to_goal"] for r in records]),
        "steps": np.array([r["metadata"]["n_steps"] for r in records]),
    }


def figures(c: dict[str, np.ndarray]) -> list[float]:
    """The figures named in FIGURES."""
    return [
        *(float(np.percentile(c[name], q)) for name in ("force", "tilt", "distance") for q in (50, 90)),
        float(np.percentile(c["steps"], 50)),
        float(c["steps"].mean()),
    ]


def line(name: str, ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> str:
    """One line of the table: ours / published."""
    only_ours = int((ours["success"] & ~theirs["success"]).sum())
    only_theirs = int((theirs["success"] & ~ours["success"]).sum())
    cells = [f"{ours['success'].mean():.3f}/{theirs['success'].mean():.3f}", f"{only_ours}+{only_theirs}"]
    digits = (1, 1, 2, 2, 4, 4, 0, 1)
    pairs = zip(figures(ours), figures(theirs), digits, strict=True)
    cells += [f"{a:.{d}f}/{b:.{d}f}" for a, b, d in pairs]
    for key in ("force", "tilt", "distance"):
        varied = ours[key].std() > 0 and theirs[key].std() > 0
        cells.append(f"{np.corrcoef(ours[key], theirs[key])[0, 1]:.2f}" if varied else "-")
    return f"{name:<16}" + "".join(f"{cell:>16}" for cell in cells)


def compare(row: str, seeds: list[int], save: Path | None, load: Path | None) -> bool:
    """Print the table of one row; whether it is within the limits."""
    shared = Path(os.environ.get("ROWPROOF_SHARED") or ROOT / "../shared").resolve()
    text = (ROOT / "config/partners/cocarry-partners-v1.yaml").read_text(encoding="utf-8")
    roster = PartnerSet.model_validate(yaml.safe_load(text))
    ours: list[dict] = []
    theirs: list[dict] = []
    for seed in seeds:
        setup = {
            "seeds": [seed],
            "episodes_per_partner": 50,
            "root_seed": 0,
            "initial_state": "seed*1000+episode",
            "partner_set": roster.label,
            "members": roster.seats(MEMBERS),
            "policy": ROWS[row],
            "cell": PUBLISHED_CELL.model_dump(),
        }
        name = f"{row}-seed{seed}.jsonl"
        if load is None:
            found = list(engine.simulate(setup, specs(setup)))
        else:
            found = decode_lines((load / name).read_bytes(), engine.RECORD_SCHEMA, name)
        if save is not None:
            save.mkdir(parents=True, exist_ok=True)
            (save / name).write_bytes(encode_lines(found))
        path = shared / PUBLISHED / f"{row}-2026-07-05" / f"episodes_seed{seed}.jsonl"
        published = decode_lines(path.read_bytes(), engine.RECORD_SCHEMA, str(path))
        keys = [(r["episode_idx"], r["initial_state_seed"], r["metadata"]["member"]) for r in found]
        if keys != [(r["episode_idx"], r["initial_state_seed"], r["metadata"]["member"]) for r in published]:
            raise SystemExit(f"{path}: must hold the same episodes as ours, found others")
        ours += found
        theirs += published
    print(f"\n{row}, seeds {seeds}: ours/published; differ = only ours succeeds + only theirs; correlations last")
    headings = ("success", "differ", *FIGURES, "r force", "r tilt", "r dist")
    print(f"{'member':<16}" + "".join(f"{heading:>16}" for heading in headings))
    for member in MEMBERS:
        pick = [i for i, r in enumerate(ours) if r["metadata"]["member"] == member]
        print(line(member, columns([ours[i] for i in pick]), columns([theirs[i] for i in pick])))
    a, b = columns(ours), columns(theirs)
    print(line("all", a, b))
    differ = int((a["success"] != b["success"]).sum())
    off = abs(float(a["success"].mean() - b["success"].mean()))
    most, widest = LIMITS[row]
    # The limits are for full rows; part of a row gets its share, rounded up.
    allowed = -(-most * len(ours) // 1750)
    fine = differ <= allowed and (off <= widest or len(ours) < 1750)
    print(f"outcomes that differ: {differ} of {len(ours)} (at most {allowed})")
    print(f"success mean off by {off:.4f} (at most {widest} over a full row)")
    if len(ours) == 1750:
        for name, x, y, earlier in zip(FIGURES, figures(a), figures(b), EARLIER[row], strict=True):
            allowed_share = earlier + EXTRA_SHARE
            share = abs(x / y - 1)
            if share > allowed_share:
                fine = False
                print(f"{name}: off by {share:.1%}, at most {allowed_share:.1%} allowed")
    print("within the limits" if fine else "NOT within the limits")
    return fine


def main() -> None:
    """Compare the rows named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--save", type=Path)
    parser.add_argument("--load", type=Path)
    arguments = parser.parse_args()
    rows = arguments.rows or list(ROWS)
    if unknown := [row for row in rows if row not in ROWS]:
        parser.error(f"rows must be of {list(ROWS)}, found {unknown}")
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    results = [compare(row, arguments.seeds, arguments.save, arguments.load) for row in rows]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
