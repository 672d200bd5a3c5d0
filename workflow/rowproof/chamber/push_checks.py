"""What must hold in each record of the push task, asked after the fact."""

import math
from collections.abc import Mapping
from typing import Any

from rowproof.chamber.cells import parse_cell
from rowproof.chamber.push_cell import PushCell
from rowproof.chamber.record_checks import differences, record_schema
from rowproof.errors import RecordError
from rowproof.records import NULL, Kinds, check_fields

# Two landmarks, each at most the diagonal of the square [-1, 1]^2 away from the nearest agent.
WORST_REWARD = -2.0 * math.sqrt(8.0)
RECORD_SCHEMA = record_schema(NULL)
METADATA_SCHEMA: dict[str, Kinds] = {
    "condition": (str,),
    "member": (str,),
    "partner_set": (str,),
    "final_reward": (float,),
}


def check_record(setup: Mapping[str, Any], spec: Mapping[str, Any], record: Any) -> list[str]:
    """What is wrong with ``record`` as the record of ``spec``, as far as can be told without running the episode.

    Schema, agreement with spec and setup, the range of the reward, and success.

    Returns:
        One message per problem; empty if there is none.

    Raises:
        ConfigError: the setup's own cell is not valid.
    """
    cell = parse_cell(PushCell, setup["cell"])
    where = f"seed {spec['seed']} episode {spec['episode_idx']}"
    try:
        check_fields(record, RECORD_SCHEMA, "record")
        metadata = check_fields(record["metadata"], METADATA_SCHEMA, "metadata")
        final_reward = metadata["final_reward"]
        problems = differences(
            {
                "seed": spec["seed"],
                "episode_idx": spec["episode_idx"],
                "initial_state_seed": spec["initial_state_seed"],
                "success": final_reward >= cell.success_reward,
                "constraint_violation_peak": 0.0,
                "fallback_fired": 0,
                "force_peak": None,
            },
            record,
        )
        problems += differences(
            {"condition": cell.condition, "member": spec["member"], "partner_set": setup["partner_set"]}, metadata
        )
    except RecordError as error:
        return [f"{where}: {error}"]
    if not WORST_REWARD <= final_reward <= 0.0:
        problems.append(f"final_reward must be in [{WORST_REWARD!r}, 0.0], found {final_reward!r}")
    return [f"{where}: {problem}" for problem in problems]
