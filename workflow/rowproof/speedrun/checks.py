"""What must hold in records and times, and how near a rebuilt record must come: asked after the fact.

Nothing that makes records or times imports this module, so a change in it asks for no new ones.
"""

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, get_args

from rowproof.errors import RecordError
from rowproof.hashing import sha256_hex
from rowproof.plain_text import plain_line
from rowproof.records import NULL, Kinds, check_fields, encode_document, encode_line
from rowproof.speedrun.evaluation import read_entry
from rowproof.speedrun.figures import timed
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.policy import check_policy
from rowproof.speedrun.referee.sandbox import Mode
from rowproof.speedrun.verdicts import FIRST_CAMPAIGN, TWICE, Record, floor_of

LOSS_TOLERANCE = 0.002
"""Nats per token by which losses of two CPU types may differ."""
# What another machine may give otherwise: digits of the weights, and what it says of itself.
MACHINE_FIELDS = ("detail", "platform", "sandbox", "weights_sha256")
LOSS_FIELDS = ("audit_loss", "val_loss")

RECORD_SCHEMA: dict[str, Kinds] = {
    "seed": (int,),
    "episode_idx": (int,),
    "initial_state_seed": (int,),
    "success": (bool,),
    "metadata": (dict,),
}
METADATA_SCHEMA: dict[str, Kinds] = {
    "policy": (str,),
    "member": (str,),
    "partner_set": (str,),
    "track": (str,),
    "target": (float,),
    "sigma": (float,),
    "baseline": (str,),
    "baseline_tokens": (int,),
    "baseline_flops": (int,),
    "expected": (dict,),
    "base": (str, NULL),
    "base_sha256": (str,),
    "script_sha256": (str,),
    "diff_sha256": (str, NULL),
    "lines_added": (int,),
    "lines_removed": (int,),
    "flags": (list,),
    "outcome": (str,),
    "detail": (str,),
    "val_loss": (float, NULL),
    "audit_loss": (float, NULL),
    "train_tokens": (int, NULL),
    "train_flops": (int, NULL),
    "analytic_flops": (int, NULL),
    "n_params": (int, NULL),
    "checkpoint_bytes": (int, NULL),
    "weights_sha256": (str, NULL),
    "data_manifest_sha256": (str,),
    "audit_salt_sha256": (str,),
    "sandbox": (str, NULL),
    "platform": (str,),
}


def check_record(setup: Mapping[str, Any], spec: Mapping[str, Any], record: Any) -> list[str]:
    """What is wrong with ``record`` as far as that can be told without training again."""
    try:
        check_fields(record, RECORD_SCHEMA, "record")
        metadata = check_fields(record["metadata"], METADATA_SCHEMA, "record: metadata")
    except RecordError as error:
        return [str(error)]
    cell = setup["cell"]
    stated = {
        "policy": setup["policy"],
        "partner_set": setup["partner_set"],
        "member": spec["member"],
        "script_sha256": spec["script_sha256"],
        "audit_salt_sha256": sha256_hex(cell["audit_salt"].encode("utf-8")),
        **{name: cell[name] for name in ("track", "target", "sigma", "baseline", "baseline_tokens", "baseline_flops")},
        "data_manifest_sha256": cell["data_manifest_sha256"],
        "expected": cell["candidates"][setup["policy"]]["expected"],
    }
    problems = [
        f"metadata.{name} must be {value!r}, found {metadata[name]!r}"
        for name, value in stated.items()
        if metadata[name] != value
    ]
    problems += [
        f"{name} must be {spec[name]}, found {record[name]}"
        for name in ("seed", "episode_idx", "initial_state_seed")
        if record[name] != spec[name]
    ]
    problems += [
        f"metadata.{name} must be {value!r} by the ladder, found {metadata[name]!r}"
        for name, value in _of_the_ladder(setup["policy"]).items()
        if encode_line(metadata[name]) != encode_line(value)
    ]
    return problems + _contradictions(record["success"], metadata) + _free_texts(metadata)


@lru_cache(maxsize=64)
def _of_the_ladder(policy: str) -> dict[str, Any]:
    """What of a record the patches of the ladder determine."""
    entry = read_entry(policy)
    report, applied = check_policy(entry.script, entry.base_script), entry.applied
    refused = report.failure is not None or (applied is not None and applied.failure is not None)
    flags = {*(() if refused else report.flags), *(applied.flags if applied else ())}
    return {
        "base": entry.base,
        "base_sha256": sha256_hex(entry.base_script.encode("utf-8")),
        "diff_sha256": applied.diff_sha256 if applied and applied.patched else None,
        "lines_added": applied.lines_added if applied else 0,
        "lines_removed": applied.lines_removed if applied else 0,
        "flags": sorted(flags),
    }


def _free_texts(metadata: Mapping[str, Any]) -> list[str]:
    """What is wrong with the texts that nothing determines, and which a page may show."""
    problems = []
    if metadata["sandbox"] not in (None, *get_args(Mode)):
        problems.append(f"metadata.sandbox must be one of {', '.join(get_args(Mode))}, found {metadata['sandbox']!r}")
    if re.fullmatch(r"(torch [0-9.]+, [A-Za-z0-9_]+, [A-Za-z0-9_ ]+, 1 thread)?", metadata["platform"]) is None:
        problems.append(f"metadata.platform must tell PyTorch, processor and threads, found {metadata['platform']!r}")
    try:
        plain_line(metadata["detail"])
    except ValueError as error:
        problems.append(f"metadata.detail {error}")
    return problems


def _contradictions(success: bool, metadata: Mapping[str, Any]) -> list[str]:
    """What in a record contradicts itself."""
    outcomes = [str(outcome) for outcome in Outcome]
    costs = ("train_tokens", "analytic_flops", "n_params", "checkpoint_bytes")
    ended_well = metadata["outcome"] == Outcome.OK
    losses = [metadata[name] for name in LOSS_FIELDS]
    wrong = {
        f"outcome must be one of {outcomes}": metadata["outcome"] in outcomes,
        "success must say that the run ended well and met the target": success
        == (ended_well and metadata["val_loss"] is not None and metadata["val_loss"] <= metadata["target"]),
        "a run that ended well has losses, costs and weights": not ended_well
        or None not in (*losses, *(metadata[name] for name in costs), metadata["weights_sha256"], metadata["sandbox"]),
        "losses must be positive": all(loss is None or loss > 0 for loss in losses),
        "costs must be positive": all(metadata[name] is None or metadata[name] > 0 for name in costs),
    }
    return [f"{must}, found {encode_line(dict(metadata))[:200]}" for must, holds in wrong.items() if not holds]


def difference(committed: Mapping[str, Any], rebuilt: Mapping[str, Any]) -> str | None:
    """How a rebuilt record differs by more than another machine may make it; None if it does not.

    Losses may differ by 0.002 nats per token, digests of weights freely; all else must be equal.
    """
    old, new = dict(committed.get("metadata", {})), dict(rebuilt.get("metadata", {}))
    for name in (*committed, *rebuilt):
        if name != "metadata" and committed.get(name) != rebuilt.get(name):
            return f"field {name}: committed {committed.get(name)!r}, rebuilt {rebuilt.get(name)!r}"
    for name in (*old, *new):
        before, after = old.get(name), new.get(name)
        if name in MACHINE_FIELDS or before == after:
            continue
        near = type(before) is type(after) is float and abs(before - after) <= LOSS_TOLERANCE
        if not (name in LOSS_FIELDS and near):
            return f"field metadata.{name}: committed {before!r}, rebuilt {after!r}"
    return None


def check_timing(setup: Mapping[str, Any], records: Sequence[Record], timing: Any) -> list[str]:
    """What is wrong with the times of a row: its arms, its order, its weights, and what it says of itself.

    Args:
        setup: of what was timed in turns, as for :func:`rowproof.speedrun.timing.measure`.
        records: of the row.
        timing: content of ``timing.json``.
    """
    cell, problems = setup["cell"], []
    try:
        if not (type(timing["peak_gflops"]) is float and 0 < timing["peak_gflops"] < math.inf):
            raise RecordError(f"peak_gflops must be positive, found {timing['peak_gflops']!r}")
        # Whatever follows from the times must be something that a file can hold.
        encode_document(timed(records, timing))
        campaign, found = setup.get("campaign", FIRST_CAMPAIGN), timing.get("campaign", FIRST_CAMPAIGN)
        if type(found) is not int or found != campaign:
            problems.append(f"campaign must be {campaign}, found {found!r}")
        strangers = sorted(set(timing["scripts_sha256"]) - {TWICE, *setup["policies"].values()})
        if strangers:
            problems.append(f"scripts_sha256 must name rows of campaign {campaign} alone, found {strangers}")
        scripts = {arm: cell["candidates"][arm]["script_sha256"] for arm in timing["scripts_sha256"] if arm != TWICE}
        scripts[TWICE] = scripts[cell["twice"]]
        stated = {
            "scripts_sha256": scripts,
            "design": "blocks",
            "n_pairs": cell["n_blocks"],
            "order_seed": cell["order_seed"],
            "twice": cell["twice"],
            "aa_floor": floor_of(timing),
        }
        problems += [
            f"{name} must be {value}, found {timing[name]}" for name, value in stated.items() if timing[name] != value
        ]
        runs, machine = timing["runs"], timing["machine"]
        blocks = [run["pair"] for run in runs]
        if runs[0]["arm"] != cell["baseline"] or blocks[0] != -1 or -1 in blocks[1:] or blocks != sorted(blocks):
            problems.append(
                f"runs must be one warm-up of {cell['baseline']}, then block by block, found blocks {blocks}"
            )
        for run in runs:
            problems += _check_run(run, records, setup["seeds"], timing["platform"])
        if not (type(machine["cores"]) is int and type(machine["cpu"]) is str and machine["cpu"].isprintable()):
            problems.append(f"machine must tell its cores and its CPU, found {machine!r}")
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", timing["date"]):
            problems.append(f"date must be a day as in 2026-01-02, found {timing['date']!r}")
    except RecordError as error:
        problems.append(str(error))
    except (KeyError, TypeError, AttributeError) as error:
        problems.append(f"must have the form of a timing, found {type(error).__name__}: {error}")
    return problems


def _check_run(run: Mapping[str, Any], records: Sequence[Record], seeds: Sequence[int], platform: str) -> list[str]:
    """What is wrong with one run, as far as the records of this row tell."""
    problems = []
    where = f"run of {run['arm']} in block {run['pair']}"
    if run["outcome"] != Outcome.OK:
        problems.append(f"{where}: must have ended well, found {run['outcome']}")
    if run["seed"] != seeds[max(run["pair"], 0) % len(seeds)]:
        problems.append(f"{where}: seed must go round through {list(seeds)}, found {run['seed']}")
    if run["arm"] != records[0]["metadata"]["policy"]:
        return problems
    expected = {record["seed"]: record["metadata"] for record in records}[run["seed"]]
    # Records that were made again elsewhere have other digits, and say nothing of these runs.
    same = run["weights_sha256"] == expected["weights_sha256"]
    if expected["platform"] == platform and run["weights_match"] is not same:
        problems.append(f"{where}: weights_match must be {same}, found {run['weights_match']}")
    if run["tokens"] != expected["train_tokens"]:
        problems.append(f"{where}: tokens must be {expected['train_tokens']}, found {run['tokens']}")
    return problems
