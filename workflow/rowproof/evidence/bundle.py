"""Builds the files of a bundle from recipes, records and summary; a pure function of its arguments."""

from collections.abc import Mapping
from typing import Any

from rowproof.hashing import sha256_hex
from rowproof.identities import identity
from rowproof.layout import (
    BUNDLE_SCHEMA,
    episode_file,
    learned_files,
    render_sums,
)
from rowproof.records import decode, digest, encode_document, split_lines


def split_episodes(shards: Mapping[str, bytes], specs: list[dict[str, Any]]) -> dict[str, bytes]:
    """Put the records of any set of shards into the order of the specs, one file per cluster seed.

    Args:
        shards: name -> JSONL bytes; the names do not matter.
        specs: the evaluation units of the row, in order.

    Raises:
        KeyError: a record is missing.
    """
    lines: dict[tuple[int, int], bytes] = {}
    for name, data in shards.items():
        for number, line in split_lines(data, name):
            record = decode(line, f"{name}:{number}")
            lines[record["seed"], record["episode_idx"]] = line + b"\n"
    files: dict[str, list[bytes]] = {}
    for spec in specs:
        files.setdefault(episode_file(spec["seed"]), []).append(lines[spec["seed"], spec["episode_idx"]])
    return {name: b"".join(parts) for name, parts in files.items()}


def identities(setup: Mapping[str, Any], selected: Mapping[int, Mapping[str, Any]] | None = None) -> dict[str, Any]:
    """The identity material of a row: its policy and its partners, with everything the hashes are taken of.

    ``selected`` gives, for learned policies, ``step`` and ``uri`` of the checkpoint that plays each seed.
    """
    policy = {"policy": setup["policy"]}
    checkpoints = [
        {"seed": seed, **chosen, "identity": identity(setup["policy"], seed, chosen["step"], chosen["uri"])}
        for seed, chosen in (selected or {}).items()
    ]
    return {
        "policy": {**policy, "identity": digest(policy)[:16], **({"checkpoints": checkpoints} if selected else {})},
        "partner_set": setup["partner_set"],
        "partners": setup["members"],
    }


def build(
    recipes: Mapping[str, Any],
    plan: tuple[str, str, bytes],
    episodes: Mapping[str, bytes],
    summary: Mapping[str, Any],
    learned: Mapping[int, tuple[bytes, bytes, bytes]] | None = None,
) -> dict[str, bytes]:
    """All identity files of a bundle: name -> bytes (everything but the provenance).

    Args:
        recipes: stage -> recipe, complete, without what is shown beside it.
        plan: path, object id and bytes of the version of the preregistration that binds the row.
        episodes: file name -> canonical JSONL, one per cluster seed.
        summary: the row summary.
        learned: of learned rows, by training seed the bytes of training, selection and checkpoint.
    """
    path, blob, plan_bytes = plan
    last = recipes["bundle"]
    setup = recipes["simulate"]["setup"]
    learned = learned or {}
    seats = identities(setup, {seed: decode(each[1], "selection")["selected"] for seed, each in learned.items()})
    target = f"results/{last['board']}/{last['row']}"
    files = {
        **episodes,
        **{name: data for seed, own in learned.items() for name, data in zip(learned_files(seed), own, strict=True)},
        "REPRO.txt": f"snakemake {target}\n".encode(),
        "identities.json": encode_document(seats),
        "plan.yaml": plan_bytes,
        "recipe.json": encode_document(recipes),
    }
    document = {
        "schema": BUNDLE_SCHEMA,
        "board": last["board"],
        "row": last["row"],
        "task": setup["task"],
        "engine": last["engine"],
        "tier": last["tier"],
        "row_key": digest(last),
        "stage_keys": {stage: digest(recipe) for stage, recipe in recipes.items()},
        "plan": {"path": path, "blob": blob},
        "policy": {"name": setup["policy"], "identity": seats["policy"]["identity"]},
        "partners": {member["name"]: member["identity"] for member in setup["members"]},
        "seed_schedule": {
            "root_seed": setup["root_seed"],
            "seeds": setup["seeds"],
            "episodes_per_partner": setup["episodes_per_partner"],
        },
        "summary": summary,
        "manifest": {name: sha256_hex(files[name]) for name in sorted(files)},
    }
    files["bundle.json"] = encode_document(document)
    files["SHA256SUMS.txt"] = render_sums(files)
    return files
