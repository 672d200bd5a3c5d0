"""How a row ends by its records, and the noise floor of a timing: what is needed before and after the clock runs."""

from collections.abc import Mapping, Sequence
from typing import Any

from rowproof.speedrun.blocks import aa_floor, block_pairs
from rowproof.speedrun.losses import LossTest, decide, known_sigma_test
from rowproof.speedrun.outcomes import Outcome

TWICE = "twice"
"""The arm of a timing that runs one of the candidates once more, against itself."""
FIRST_CAMPAIGN = 1
"""The campaign of rows, setups and timings that name none."""
Record = Mapping[str, Any]


def judge(records: Sequence[Record]) -> tuple[Outcome, LossTest | None]:
    """The outcome of a row, and what the loss rule says where all runs ended well.

    The first run that did not end well decides. Equal weights of two seeds are none of two samples.
    """
    told = [record["metadata"] for record in records]
    for metadata in told:
        if metadata["outcome"] != Outcome.OK:
            return Outcome(metadata["outcome"]), None
    if len({metadata["weights_sha256"] for metadata in told}) < len(told):
        return Outcome.POLICY_VIOLATION, None
    losses = {record["seed"]: record["metadata"]["val_loss"] for record in records}
    test = known_sigma_test(losses, told[0]["target"], told[0]["sigma"])
    return decide(None, test), test


def floor_of(timing: Mapping[str, Any]) -> float:
    """The noise floor of a timing: half-width of the interval of its candidate that runs twice."""
    return aa_floor(block_pairs(timing, TWICE, timing["twice"])[0])
