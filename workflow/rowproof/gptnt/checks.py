"""What must hold in a record of ``gptnt_defuse@v1``, as far as that can be told without playing the game again."""

from collections.abc import Mapping
from typing import Any

from rowproof.errors import RecordError
from rowproof.gptnt.grid import NOBODY
from rowproof.gptnt.players.turns import DEFUSER, EXPERT
from rowproof.gptnt.room import VALID_OUTCOMES
from rowproof.records import Kinds, check_fields, encode_line

OUTCOMES = (*VALID_OUTCOMES, "detonated", "incomplete")
RECORD_SCHEMA: dict[str, Kinds] = {
    "seed": (int,),
    "episode_idx": (int,),
    "initial_state_seed": (int,),
    "success": (bool,),
    "metadata": (dict,),
}
METADATA_SCHEMA: dict[str, Kinds] = {
    "suite": (str,),
    "policy": (str,),
    "member": (str,),
    "partner_set": (str,),
    "mission": (str,),
    "modules": (list,),
    "outcome": (str,),
    "crashed": (bool,),
    "strikes": (int,),
    "max_strikes": (int,),
    "modules_solved": (int,),
    "remaining_ms": (int,),
    "time_limit_ms": (int,),
    "game_time_ms": (int,),
    "defuser": (dict,),
    "expert": (dict,),
    "transcript_sha256": (str,),
}
ROLE_SCHEMA: dict[str, Kinds] = {
    "turns": (int,),
    "game_actions": (int,),
    "messages": (int,),
    "errors": (dict,),
    "input_tokens": (int,),
    "output_tokens": (int,),
}


def check_record(setup: Mapping[str, Any], spec: Mapping[str, Any], record: Any) -> list[str]:
    """What is wrong with ``record`` as far as that can be told without playing the game again."""
    try:
        check_fields(record, RECORD_SCHEMA, "record")
        metadata = check_fields(record["metadata"], METADATA_SCHEMA, "record: metadata")
        for role in (DEFUSER, EXPERT):
            check_fields(metadata[role], ROLE_SCHEMA, f"record: {role}")
    except RecordError as error:
        return [str(error)]
    stated = {
        "suite": f"{setup['cell']['suite']}@r{setup['cell']['revision']}",
        "policy": setup["policy"],
        "partner_set": setup["partner_set"],
        **{name: spec[name] for name in ("member", "mission")},
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
    return problems + _contradictions(record["success"], metadata)


def _contradictions(success: bool, metadata: Mapping[str, Any]) -> list[str]:
    """What in a record contradicts itself."""
    outcome, modules = metadata["outcome"], len(metadata["modules"])
    solved = outcome == "solved" and not metadata["crashed"]
    wrong = {
        f"outcome must be one of {list(OUTCOMES)}": outcome in OUTCOMES,
        "success must be that of the outcome": success == solved,
        "modules_solved must lie between 0 and the number of modules": 0 <= metadata["modules_solved"] <= modules,
        "a solved bomb has all modules solved": outcome != "solved" or metadata["modules_solved"] == modules,
        "a bomb that struck out has all strikes": outcome != "strikeout"
        or metadata["strikes"] >= metadata["max_strikes"],
        "a bomb that ran out of time has none left": outcome != "timeout" or metadata["remaining_ms"] == 0,
        "time left must lie between 0 and the limit": 0 <= metadata["remaining_ms"] <= metadata["time_limit_ms"],
        "nobody takes no turns": (metadata["member"] != NOBODY) or metadata[EXPERT]["turns"] == 0,
    }
    return [f"{must}, found {encode_line(dict(metadata))[:200]}" for must, holds in wrong.items() if not holds]
