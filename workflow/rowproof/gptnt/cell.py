"""Task parameters of boards of this family: one frozen suite, and by digests all that its games read from files."""

from typing import Annotated

from pydantic import Field

from rowproof.gptnt.models import ConfigName, PlayerName, Positive, Strict

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{32}([0-9a-f]{32})?$")]


class SuiteCell(Strict):
    """What a board measures.

    Attributes:
        suite: name of the suite.
        revision: of the suite.
        suite_digest: of the suite and its missions.
        manual_digest: of the Expert's manual.
        players: capability fingerprint of every player that takes part, by its name.
        latency_ms: what an answer takes in asynchronous play unless the player says otherwise.
    """

    suite: ConfigName
    revision: Positive
    suite_digest: Digest
    manual_digest: Digest
    players: dict[PlayerName, Digest] = Field(min_length=1)
    latency_ms: Annotated[int, Field(ge=1, le=600_000)]


def member_name(player: str) -> str:
    """How a partner set names the member that ``player`` is."""
    return player.lower().replace("-", "_").replace(".", "_")
