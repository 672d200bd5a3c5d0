"""The episode records of a published bundle: the scheduled grid, metadata by producer, possible values, copies."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rowproof.errors import RecordError
from rowproof.evidence.checks import CheckTable
from rowproof.evidence.published.bundle import Bundle
from rowproof.evidence.published.catalogue import ADHOC
from rowproof.evidence.published.plans import number
from rowproof.evidence.published.tables import STRICT, repeated, report
from rowproof.records import NULL, Kinds, check_fields

RECORD_SCHEMA: Mapping[str, Kinds] = {
    "seed": (int,),
    "episode_idx": (int,),
    "initial_state_seed": (int,),
    "success": (bool,),
    "constraint_violation_peak": (float,),
    "fallback_fired": (int,),
    "force_peak": (float, NULL),
    "metadata": (dict,),
}
_CARRY = {"max_tilt_deg": (float,), "centroid_to_goal": (float,)}
_HANDOVER = {"residual_lateral_m": (float,), "residual_angular_deg": (float,), "failure_mode": (str,)}
_SET = dict.fromkeys(("condition", "policy", "member", "partner_set"), (str,))
_PUSH_TASK = "mpe_cooperative_push"
METADATA_SCHEMAS: Mapping[tuple[str, str], Mapping[str, Kinds]] = {
    ("cocarry", "set"): {**_SET, **_CARRY, "n_steps": (float,)},
    ("cocarry", "seeded set"): {**_SET, **_CARRY, "n_steps": (float,), "seed_policy": (str,)},
    ("cocarry", "single"): {**dict.fromkeys(("condition", "policy", "partner"), (str,)), **_CARRY, "n_steps": (float,)},
    ("cocarry", "cell"): {**dict.fromkeys(("condition", "ego", "partner"), (str,)), **_CARRY},
    ("handover_place", "set"): {**_SET, **_HANDOVER},
    ("handover_place", "cell"): {
        "condition": (str,),
        "residual_lateral_m": (float,),
        "residual_angular_deg": (float,),
        "binding_conjunct": (str,),
        "failure_mode": (str,),
    },
    ("stage1_pickplace_as", "cell"): dict.fromkeys(("condition", "variant", "partner", "end_phase"), (str,)),
    (_PUSH_TASK, "set"): {**dict.fromkeys(("condition", "member", "partner_set"), (str,)), "final_reward": (float,)},
    (_PUSH_TASK, "single"): {"condition": (str,), "final_reward": (float,)},
}
"""Keys of ``metadata`` in their order, by task and kind of run."""
FAILURE_MODES = ("none", "budget_mediated", "intrinsic")
EPISODES_PER_SEED_OF_STARTS = 1000
PAIRED_STARTS = ("cocarry", "handover_place")
"""Tasks whose start states are numbered seed * 1000 + episode; elsewhere the number is the episode's."""
CARRY_STRESS_LIMIT_N = 130.0
CARRY_TILT_LIMIT_DEG = 15.0
CARRY_GOAL_RADIUS_M = 0.10000000149011612
"""The single-precision 0.10 that the published environment compares with."""
CARRY_HORIZON_TICKS = 320
_EPISODE_FILE = re.compile(r"episodes_seed(.*)\.jsonl", re.DOTALL)


def schedule_rows(table: CheckTable, bundle: Bundle) -> None:
    """Strict rows: the seeds and the grid of episodes of each."""
    seeds = bundle.seeds
    problems = ["no seed is scheduled"] if not seeds else []
    problems += [f"seed {seed} is scheduled twice" for seed in sorted(repeated(seeds))]
    present = {name for name in {*bundle.files, *bundle.others} if _EPISODE_FILE.fullmatch(name)}
    scheduled = {f"episodes_seed{seed}.jsonl" for seed in seeds}
    problems += [f"{name} is not scheduled" for name in sorted(present - scheduled)]
    problems += [f"{name} is missing" for name in sorted(scheduled - present)]
    must = "seeds are distinct, at least one, and the episode files are exactly those of the schedule"
    report(table, f"{STRICT}schedule:seeds", must, problems, f"{len(seeds)} seeds")
    must = "every file holds its seed's complete grid: members in order, episodes 0 to n-1, the same start states"
    with table.guard(f"{STRICT}schedule:records", must):
        if bundle.records is None:
            raise RecordError("the records could not be loaded")
        per_seed = bundle.meta["seed_schedule"]["episodes_per_seed"]
        n_groups = len(bundle.members) or 1
        if per_seed % n_groups:
            raise RecordError(f"episodes_per_seed must be a multiple of the {n_groups} members, found {per_seed}")
        problems = []
        for seed, records in bundle.records.items():
            problems += _grid_problems(seed, records, per_seed, per_seed // n_groups, bundle.meta["task_id"])
        report(table, f"{STRICT}schedule:records", must, problems, f"{len(seeds)} x {per_seed} records")


def _grid_problems(seed: int, records: Sequence[Mapping[str, Any]], count: int, episodes: int, task: str) -> list[str]:
    where = f"episodes_seed{seed}.jsonl"
    problems = [] if len(records) == count else [f"{where}: {len(records)} records, scheduled {count}"]
    first_start = seed * EPISODES_PER_SEED_OF_STARTS if task in PAIRED_STARTS else 0
    for index, record in enumerate(records):
        expected = (seed, index, first_start + index % episodes)
        found = (record["seed"], record["episode_idx"], record["initial_state_seed"])
        if found != expected:
            problems.append(f"{where}:{index + 1}: seed, index and start must be {expected}, found {found}")
    return problems


def record_rows(table: CheckTable, bundle: Bundle) -> None:
    """Strict rows: what the records say, one by one and together."""
    if bundle.records is None:
        return
    must = "metadata has the keys of its producer and agrees with policy, partners and condition of the run"
    with table.guard(f"{STRICT}records:metadata", must):
        problems = _metadata_problems(bundle)
        report(table, f"{STRICT}records:metadata", must, problems, f"{len(bundle.pooled)} records")
    must = "numbers are finite and in range, and success agrees with the measurements recorded beside it"
    with table.guard(f"{STRICT}records:values", must):
        problems = []
        limits = _handover_limits(bundle)
        for record in bundle.pooled:
            problem = _value_problem(record, bundle.meta["task_id"], limits)
            problems += [f"seed {record['seed']} episode {record['episode_idx']}: {problem}"] if problem else []
        report(table, f"{STRICT}records:values", must, problems, f"{len(bundle.pooled)} records")
    must = "no episode is a copy of another: different starts or members give different measurements"
    with table.guard(f"{STRICT}records:distinct", must):
        report(table, f"{STRICT}records:distinct", must, repeated_episodes(bundle.pooled), "no copies")


def _metadata_problems(bundle: Bundle) -> list[str]:
    meta, kind = bundle.meta, bundle.kind
    schema = METADATA_SCHEMAS.get((meta["task_id"], kind))
    if schema is None:
        raise RecordError(f"no known producer writes records of task {meta['task_id']!r} in a {kind} run")
    names = [member["name"] for member in bundle.members]
    partner = meta["partner_set_id"].removeprefix(ADHOC)
    expected: dict[str, Any] = {"policy": meta["policy_id"], "partner_set": meta["partner_set_id"], "partner": partner}
    if bundle.cell is not None:
        expected["condition"] = bundle.cell.condition
        expected["ego"] = bundle.catalogue["cell_egos"].get(bundle.cell.ego, {}).get("class")
    problems = []
    first = bundle.pooled[0]["metadata"]
    seed_policies: dict[int, str] = {}
    for seed, records in bundle.records.items():
        for index, record in enumerate(records):
            metadata = check_fields(record["metadata"], schema, f"episodes_seed{seed}.jsonl:{index + 1}: metadata")
            wanted = {key: value for key, value in expected.items() if key in schema and value is not None}
            wanted.setdefault("condition", first["condition"])
            if "member" in schema:
                wanted["member"] = names[index * len(names) // len(records)] if names else None
            if "seed_policy" in schema:
                wanted["seed_policy"] = seed_policies.setdefault(seed, metadata["seed_policy"])
            problems += [
                f"episodes_seed{seed}.jsonl:{index + 1}: {key} must be {value!r}, found {metadata[key]!r}"
                for key, value in wanted.items()
                if metadata[key] != value
            ]
    prefix = seeded_prefix(meta["policy_id"])
    problems += [
        f"seed {seed}: seed_policy must start with {prefix!r}, found {policy!r}"
        for seed, policy in seed_policies.items()
        if not policy.startswith(prefix)
    ]
    return problems


def seeded_prefix(policy_id: str) -> str:
    """Prefix of the per-seed policies that a manifest policy stands for: ``happo_manifest:...`` gives ``happo:``."""
    return policy_id.partition("_manifest:")[0] + ":"


def _handover_limits(bundle: Bundle) -> dict[str, float] | None:
    """Windows and stiffnesses of the handover cell in the plan, when the plan has them."""
    if bundle.plan is None or "env_cell" not in bundle.plan["parameters"]:
        return None
    cell = bundle.plan["parameters"]["env_cell"]
    return {key: number(value, f"prereg.yaml: env_cell: {key}") for key, value in cell.items()}


def _value_problem(record: Mapping[str, Any], task: str, limits: Mapping[str, float] | None) -> str:
    """What is impossible about the numbers of a record; empty when nothing is."""
    metadata, force_n = record["metadata"], record["force_peak"]
    if record["constraint_violation_peak"] < 0 or record["fallback_fired"] < 0 or (force_n is not None and force_n < 0):
        return "peaks and counts must not be negative"
    signed = ("final_reward",)
    if any(type(value) is float and value < 0 and key not in signed for key, value in metadata.items()):
        return "measurements must not be negative"
    success = record["success"]
    if task == "cocarry":
        if force_n is None:
            return "force_peak must be recorded"
        ticks = metadata.get("n_steps", float(CARRY_HORIZON_TICKS))
        if not ticks.is_integer() or not 1 <= ticks <= CARRY_HORIZON_TICKS:
            return f"n_steps must be a whole number in 1..{CARRY_HORIZON_TICKS}, found {ticks!r}"
        within = force_n < CARRY_STRESS_LIMIT_N and metadata["max_tilt_deg"] < CARRY_TILT_LIMIT_DEG
        if success and not (within and metadata["centroid_to_goal"] <= CARRY_GOAL_RADIUS_M):
            return "a success must stay below the stress and tilt limits and end at the goal"
        if not success and ticks != CARRY_HORIZON_TICKS:
            return "an episode ends early by success alone"
    if task == "handover_place":
        if metadata["failure_mode"] not in FAILURE_MODES or (metadata["failure_mode"] == "none") != success:
            return f"failure_mode must be one of {FAILURE_MODES}, and 'none' for a success alone"
        if limits is not None:
            lateral_m, angular_deg = metadata["residual_lateral_m"], metadata["residual_angular_deg"]
            stiff = limits["contact_stiffness_n_per_m"] * lateral_m
            stiff += limits["angular_stiffness_n_per_deg"] * angular_deg
            if force_n != stiff:
                return f"force_peak must be that of the residuals, {stiff!r} N, found {force_n!r}"
            seated = (
                lateral_m < limits["lateral_window_m"]
                and angular_deg < limits["angular_window_deg"]
                and force_n < limits["seating_force_limit_n"]
            )
            if seated != success:
                return f"success must be {seated} by the residuals and the force"
    return ""


def repeated_episodes(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Episodes that are copies of others by their measurements, one text each.

    Measurements that hold at least one non-integral double do not agree by chance between different start states. At
    equal starts single episodes may agree (two partners that differ in one respect), a member's whole block may not.
    """
    seen: dict[tuple[Any, ...], tuple[int, str]] = {}
    blocks: dict[str, list[Any]] = {}
    problems = []
    for record in records:
        metadata = record["metadata"]
        name = metadata.get("member", metadata.get("partner", ""))
        measured = (record["force_peak"], *(v for v in metadata.values() if type(v) is float))
        blocks.setdefault(name, []).append((record["initial_state_seed"], measured))
        if all(value is None or value.is_integer() for value in measured):
            continue
        here = (record["initial_state_seed"], f"seed {record['seed']} episode {record['episode_idx']}")
        first = seen.setdefault(measured, here)
        if first[0] != here[0]:
            problems.append(f"{here[1]} repeats {first[1]}")
    names = list(blocks)
    for index, name in enumerate(names):
        for other in names[:index]:
            if blocks[name] == blocks[other]:
                problems.append(f"all episodes of {name!r} repeat those of {other!r}")
    return problems
