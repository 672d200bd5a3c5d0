"""Games with full capabilities, their files, and what a database holds."""

import json

import pyarrow.parquet as pq
from gptnt.players.workbench import MANUAL, WIRES, Puppet, protocol, seat, spec
from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.database import connect, session_steps, summaries
from rowproof.gptnt.players.turns import interact_game
from rowproof.gptnt.room import Provenance, Rules, play
from rowproof.gptnt.submissions import Submitter
from rowproof.gptnt.suite import Matchup, Protocol, Suite
from rowproof.gptnt.suite_lock import FrozenSuite, Stamp

WHO = Submitter(name="Ada", contact="ada@example.org")
MISSIONS = (WIRES, Mission(851, 120, ("Keypad",), 2, force_modules_to_front=True))
PROVENANCE = Provenance("1.0.0", "c0ffee", "a5" * 32)


def frozen(name="workbench", revision=1):
    """A frozen suite of two missions, in which each defuser plays with each expert."""
    suite = Suite(
        name=name,
        revision=revision,
        modality=["language"],
        missions_path=f"configs/missions/{name}",
        defuser_protocol=Protocol(**protocol("defuser")),
        expert_protocol=Protocol(**protocol("expert")),
        matchup=Matchup(pairing_type="pairwise"),
    )
    missions = tuple(sorted(MISSIONS, key=lambda mission: mission.key))
    stamp = Stamp(frozen_at="2026-01-01T00:00:00Z", gptnt_version="1.0.0")
    return FrozenSuite(suite, missions, suite.digest(missions), stamp)


LOCK = {("workbench", 1): frozen()}


def played(
    mission=WIRES,
    *,
    defuser=None,
    expert=None,
    rules=None,
    provenance=PROVENANCE,
    attempt=1,
    expert_name=None,
    **settings,
):
    """One game of scripted players, as far as none are given."""
    request = spec(mission, expert=expert_name or "scripted", **settings) | {"attempt": attempt}
    seats = [
        None if name is None else seat(name, player, player_type="ai")
        for name, player in ((request["defuser_name"], defuser), (request["expert_name"], expert))
    ]
    return play(request, *seats, MANUAL, provenance, rules or Rules())


def crash(turn):
    """What a player does to break a game off in its second turn."""
    if turn.number > 1:
        raise RuntimeError("gone")
    return interact_game("click_release", "A")


def without_expert_steps():
    """A game that counts and is over before the expert's first turn; nor does it look back."""

    def fail(task):
        raise RuntimeError("no words")

    mission = Mission(234, 3, ("Wires",), 2, needy_time=3, force_modules_to_front=True)
    game = played(mission, defuser=Puppet(), expert=Puppet(reflect=fail))
    assert game.valid and list(game.records) == ["defuser"]
    return game


def content(database):
    """All that a database holds."""
    with connect(database) as connection:
        rows = summaries(connection)
        return [(row, session_steps(connection, row["session_id"])) for row in rows]


def rewrite(path, change=lambda table: table, **metadata):
    """Write a file again with other rows, or with other texts beside them; None removes one."""
    table = pq.read_table(path)
    beside = {key: value for key, value in (table.schema.metadata | _encoded(metadata)).items() if value is not None}
    changed = change(table).replace_schema_metadata(beside)
    pq.write_table(changed, path)


def refooter(path, change):
    """Write a file again with a changed footer."""
    footer = json.loads(pq.read_metadata(path).metadata[b"footer"])
    change(footer)
    rewrite(path, footer=json.dumps(footer))


def _encoded(texts):
    return {key.encode(): None if text is None else text.encode() for key, text in texts.items()}
