"""Which contacts the co-carry rig starts with, what they do to it, and what its rows do without them.

Run: .venv/bin/python benchmarks/cocarry_contacts.py [--results FOLDER]

Depths are the contact separations that PhysX reports after the first substep. It looks for contacts before it moves
anything, so they are those of the reset posture, whatever is commanded. A contact force is the sum of the lengths of a
pair's point impulses over the substep of 0.01 s. The last part compares committed bundles of cocarry-contact-free with
the episodes of cocarry-v1 that have the same start state and partner; it is left out where bundles are missing.
Takes seconds on one core.
"""

import argparse
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from rowproof.chamber.cocarry import rig
from rowproof.chamber.cocarry.conditions import CONDITIONS
from rowproof.chamber.cocarry.control import command
from rowproof.chamber.cocarry.goals import evaluation_goal_m
from rowproof.chamber.cocarry.observation import View
from rowproof.chamber.cocarry.player import Player
from rowproof.chamber.cocarry.scene import Scene
from rowproof.chamber.cocarry.seats import build_ego, build_partner
from rowproof.chamber.cocarry.telemetry import Judge, measure
from rowproof.chamber.cocarry_cell import PUBLISHED_CELL
from rowproof.evidence.statistics import linear_percentile
from rowproof.partners import PartnerSet
from rowproof.records import decode, split_lines

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = "ref_script_cocarry_impedance"
MEMBERS = (
    "imp_stiff_low",
    "imp_stiff_high",
    "imp_damp_low",
    "imp_damp_high",
    "imp_lag_bounded",
    "imp_blend_b",
    "imp_blend_c",
)
START_STATES = (0, 1, 2)
BAR_WEIGHT_N = rig.BAR_MASS_KG * 9.81
ROWS = ("ref-script", "b-stat")

Pair = tuple[str, str]


@dataclass(frozen=True)
class FirstSubstep:
    """What the first substep finds and does.

    Attributes:
        depth_mm: of every overlapping pair that touches an arm or the bar, deepest first.
        force_n: contact force of the same pairs.
        bar_speed_m_per_s: of the bar's centre afterwards.
    """

    depth_mm: dict[Pair, float]
    force_n: dict[Pair, float]
    bar_speed_m_per_s: float


@dataclass(frozen=True)
class Contacts:
    """Contact and wrist forces of one episode, one entry per control step that counts (from the settle step on).

    They are those of the last substep, which is also the one whose wrist force the stress channel takes.
    """

    arm_arm_n: list[float]
    finger_bar_n: list[float]
    wrist_n: list[float]
    success: bool


def members() -> list[dict[str, Any]]:
    """The seats of the evaluated partners, in roster order."""
    text = (ROOT / "config/partners/cocarry-partners-v1.yaml").read_text(encoding="utf-8")
    return PartnerSet.model_validate(yaml.safe_load(text)).seats(MEMBERS)


class Rig:
    """The published rig with its contacts read out by name."""

    def __init__(self) -> None:
        self.scene = Scene(CONDITIONS[PUBLISHED_CELL.condition])
        self._views = (View(self.scene, rig.EGO), View(self.scene, rig.PARTNER))
        self._players: tuple[Player, ...] = ()
        self._names: dict[int, str] = {}

    def start(self, ego: Player, partner: Player, initial_state_seed: int) -> None:
        """Reset to a start state, as an evaluation episode does."""
        scene = self.scene
        scene.renew()
        scene.reset(evaluation_goal_m(initial_state_seed))
        self._players = (ego, partner)
        for player in self._players:
            player.reset(initial_state_seed)
        # Both arms are made of links of the same names, so a name needs the arm's in front.
        self._names = {
            link.entity.per_scene_id: f"{seat} {link.name.removeprefix('panda_')}"
            for seat, arm in zip(("ego", "partner"), scene.arms, strict=True)
            for link in arm.articulation.links
        }

    def substeps(self) -> Iterator[None]:
        """One control step, substep by substep."""
        actions = [player.act(view) for player, view in zip(self._players, self._views, strict=True)]
        for arm, action in zip(self.scene.arms, actions, strict=True):
            command(arm, action)
        for _ in range(rig.SUBSTEPS):
            self.scene.substep()
            yield

    def contacts(self) -> dict[Pair, tuple[float, float]]:
        """Pair -> depth (mm; negative while apart) and force (N) of the last substep."""
        found: dict[Pair, tuple[float, float]] = {}
        for contact in self.scene._physics.get_contacts():
            names = [self._names.get(b.entity.per_scene_id, b.entity.name) for b in contact.bodies]
            pair = (min(names), max(names))
            depth_mm = -1000 * min(float(point.separation) for point in contact.points)
            force_n = sum(float(np.linalg.norm(point.impulse)) for point in contact.points) / rig.DT_S
            deepest, total = found.get(pair, (-math.inf, 0.0))
            found[pair] = max(deepest, depth_mm), total + force_n
        return found


def arm_arm(pair: Pair) -> bool:
    """Whether the two arms touch each other."""
    return {name.partition(" ")[0] for name in pair} == {"ego", "partner"}


def finger_bar(pair: Pair) -> bool:
    """Whether a finger touches the bar."""
    return "bar" in pair and any(name.endswith("finger") for name in pair)


def first_substep(initial_state_seed: int = 0, policy: str = REFERENCE) -> FirstSubstep:
    """Reset and one substep, with the first partner."""
    rig_ = Rig()
    rig_.start(build_ego(policy, 0), build_partner(members()[0]), initial_state_seed)
    next(rig_.substeps())
    overlapping = [(depth, pair, force) for pair, (depth, force) in rig_.contacts().items() if depth > 0]
    overlapping.sort(key=lambda entry: (-entry[0], entry[1]))
    return FirstSubstep(
        {pair: depth for depth, pair, _ in overlapping},
        {pair: force for _, pair, force in overlapping},
        float(np.linalg.norm(rig_.scene._bar_body.linear_velocity)),
    )


def reference_episodes(start_states: Iterable[int] = START_STATES) -> list[Contacts]:
    """Every start state with every evaluated partner, the reference in the ego's seat."""
    rig_, ego = Rig(), build_ego(REFERENCE, 0)
    partners = [build_partner(member) for member in members()]
    return [_episode(rig_, ego, partner, state) for state in start_states for partner in partners]


def _episode(rig_: Rig, ego: Player, partner: Player, initial_state_seed: int) -> Contacts:
    rig_.start(ego, partner, initial_state_seed)
    judge, success = Judge(PUBLISHED_CELL), False
    arms_n, fingers_n, wrists_n = [], [], []
    for step in range(1, PUBLISHED_CELL.max_steps + 1):
        for _ in rig_.substeps():
            pass
        if not judge.counts(step):
            continue
        forces = {pair: force for pair, (_, force) in rig_.contacts().items()}
        arms_n.append(sum(force for pair, force in forces.items() if arm_arm(pair)))
        fingers_n.append(sum(force for pair, force in forces.items() if finger_bar(pair)))
        sample = measure(rig_.scene)
        wrists_n.append(float(sample.stress_n))
        success = judge.success(step, sample)
        if success:
            break
    return Contacts(arms_n, fingers_n, wrists_n, success)


def episode_figures(episodes: list[Contacts]) -> dict[str, float]:
    """Counts of episodes, and medians over all their samples (N)."""
    samples = {
        name: [value for e in episodes for value in getattr(e, name)]
        for name in ("arm_arm_n", "finger_bar_n", "wrist_n")
    }
    return {
        "episodes": len(episodes),
        "episodes_with_finger_bar_contact": sum(max(e.finger_bar_n) > 0 for e in episodes),
        "samples": len(samples["wrist_n"]),
        "samples_with_finger_bar_contact": sum(value > 0 for value in samples["finger_bar_n"]),
        "samples_with_arm_arm_contact": sum(value > 0 for value in samples["arm_arm_n"]),
        **{f"{name.removesuffix('_n')}_p50_n": linear_percentile(values, 50.0) for name, values in samples.items()},
        "wrist_peak_p50_n": linear_percentile([max(e.wrist_n) for e in episodes], 50.0),
    }


def bundle_records(folder: Path) -> list[dict[str, Any]]:
    """The records of a bundle; none where there is no bundle."""
    return [
        decode(line, path.name)
        for path in sorted(folder.glob("episodes_seed*.jsonl"))
        for _, line in split_lines(path.read_bytes(), path.name)
    ]


def _key(record: Mapping[str, Any]) -> tuple[int, int, str]:
    return record["seed"], record["initial_state_seed"], record["metadata"]["member"]


def _row_figures(records: list[Mapping[str, Any]]) -> dict[str, float]:
    def of(name: str) -> list[float]:
        return [record["metadata"][name] for record in records]

    force_n = [record["force_peak"] for record in records]
    return {
        "episodes": len(records),
        "successes": sum(record["success"] for record in records),
        "force_p50_n": linear_percentile(force_n, 50.0),
        "force_p90_n": linear_percentile(force_n, 90.0),
        "tilt_p50_deg": linear_percentile(of("max_tilt_deg"), 50.0),
        "distance_p50_m": linear_percentile(of("centroid_to_goal"), 50.0),
        "steps_p50": linear_percentile(of("n_steps"), 50.0),
    }


def contact_free(results: Path, row: str) -> dict[str, dict[str, float]] | None:
    """Figures of a row ``as published`` and ``contact-free`` over the episodes that both have; None without bundles.

    Raises:
        SystemExit: an episode of the contact-free row has no counterpart.
    """
    free, published = (bundle_records(results / board / row) for board in ("cocarry-contact-free", "cocarry-v1"))
    if not free or not published:
        return None
    by_key = {_key(record): record for record in published}
    lost = [_key(record) for record in free if _key(record) not in by_key]
    if lost:
        raise SystemExit(f"{row}: every contact-free episode must be one of cocarry-v1, found none for {lost[0]}")
    return {
        "as published": _row_figures([by_key[_key(record)] for record in free]),
        "contact-free": _row_figures(free),
    }


def main() -> None:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="folder of the committed bundles")
    results = parser.parse_args().results
    first = first_substep()
    print("Overlaps at reset, from the contact separations of the first substep")
    for pair, depth_mm in first.depth_mm.items():
        force_n = first.force_n[pair]
        weights = force_n / BAR_WEIGHT_N
        print(f"  {' - '.join(pair):<32}{depth_mm:7.1f} mm {force_n:11.0f} N = {weights:8.0f} bar weights")
    print(f"bar speed after it: {first.bar_speed_m_per_s:.1f} m/s; weight of the bar: {BAR_WEIGHT_N:.2f} N")

    found = episode_figures(reference_episodes())
    states = ", ".join(map(str, START_STATES))
    print(f"\nReference, start states {states} with {len(MEMBERS)} partners, samples that count")
    for name, value in found.items():
        print(f"  {name:<36}{value:10.1f}" if isinstance(value, float) else f"  {name:<36}{value:8d}")

    print("\nThe same start states and partners with and without contacts of the robots")
    for row in ROWS:
        compared = contact_free(results, row)
        if compared is None:
            print(f"  {row}: bundles are not in {results}")
            continue
        names = list(compared["as published"])
        print(f"  {row:<16}" + "".join(f"{name:>16}" for name in names))
        for label, figures in compared.items():
            print(f"  {label:<16}" + "".join(f"{figures[name]:>16.4g}" for name in names))


if __name__ == "__main__":
    main()
