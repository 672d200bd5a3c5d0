"""The games of a row of ``gptnt_defuse@v1``, and what a record keeps of them.

A record keeps the figures of a game and the digest of everything that was said and done in it; the game itself is
played again in milliseconds, since it depends on its spec alone. Beside the setup only the manual is read.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rowproof.errors import ConfigError
from rowproof.gptnt.fingerprint import fingerprint
from rowproof.gptnt.grid import Table, check_pins, expert_of, read_table
from rowproof.gptnt.manual import Manual
from rowproof.gptnt.players.scripts import player_for
from rowproof.gptnt.players.turns import DEFUSER, EXPERT, GAME_ACTION, SEND_MESSAGE
from rowproof.gptnt.room import Game, Provenance, Rules, Seat, play
from rowproof.gptnt.spec import Spec
from rowproof.records import digest

# What a game was played with and where enters no record: equal games have equal records.
_PROVENANCE = Provenance(version="board")


def _seat(name: str, table: Table) -> Seat:
    if name not in table.players:
        raise ConfigError(f"player {name}: must stand in the settings of the row, found {sorted(table.players)}")
    player = table.players[name]
    stated, found = table.cell.players.get(name), fingerprint(player.capabilities)
    if stated != found:
        raise ConfigError(
            f"player {name}: its capability fingerprint must be {stated} as the plan has it, found {found}"
        )
    return Seat(name, player_for(player.script), player.capabilities)


def games(
    setup: Mapping[str, Any],
    specs: Iterable[Mapping[str, Any]],
    *,
    provenance: Provenance = _PROVENANCE,
) -> Iterator[tuple[Mapping[str, Any], Spec, Game]]:
    """Play every unit of ``specs``: the unit, the harness's spec of it, and the game.

    ``provenance`` stands in the footers of the game's records.

    Raises:
        ConfigError: suite, manual or a player are not those of the plan.
    """
    table, manual = read_table(setup), Manual.read()
    check_pins(table.cell, manual_digest=manual.digest)
    members = {member["name"]: member for member in setup["members"]}
    rules = Rules(seed=setup["root_seed"], latency_ms=table.cell.latency_ms)
    defuser = _seat(setup["policy"], table)
    experts: dict[str, Seat | None] = {}
    for unit in specs:
        name = unit["member"]
        if name not in experts:
            expert = expert_of(members[name])
            experts[name] = None if expert is None else _seat(expert, table)
        expert = experts[name]
        mission = table.missions[unit["mission"]]
        spec = Spec.of(table.suite, mission, defuser.name, None if expert is None else expert.name, unit["seed"])
        yield unit, spec, play(spec.to_data(), defuser, expert, manual, provenance, rules)


def simulate(setup: Mapping[str, Any], specs: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The record of every unit, in the order of ``specs``; each depends on its own unit and ``setup`` alone.

    Raises:
        ConfigError: see :func:`games`.
    """
    for unit, spec, game in games(setup, specs):
        yield {
            **{name: unit[name] for name in ("seed", "episode_idx", "initial_state_seed")},
            "success": game.valid and game.summary["outcome"] == "solved",
            "metadata": _metadata(setup, unit, spec, game),
        }


def _metadata(setup: Mapping[str, Any], unit: Mapping[str, Any], spec: Spec, game: Game) -> dict[str, Any]:
    summary, mission = game.summary, spec.mission_spec
    return {
        "suite": f"{spec.suite_name}@r{spec.suite_revision}",
        "policy": setup["policy"],
        "member": unit["member"],
        "partner_set": setup["partner_set"],
        "mission": unit["mission"],
        "modules": list(mission.components),
        "outcome": summary["outcome"],
        "crashed": summary["is_hard_crash"],
        "strikes": summary["strike_count"],
        "max_strikes": mission.num_strikes_allowed,
        "modules_solved": summary["num_modules_solved"],
        # Whole numbers, as times of two games agree by chance, unlike measured doubles. Rounded down, as the bomb does.
        "remaining_ms": round(summary["seconds_remaining"] * 4000) // 4,
        "time_limit_ms": mission.time_limit * 1000,
        "game_time_ms": round(summary["duration_s"] * 1000),
        **{role: _counts(game, role) for role in (DEFUSER, EXPERT)},
        "transcript_sha256": transcript_digest(game),
    }


def _counts(game: Game, role: str) -> dict[str, Any]:
    """What a player did in a game; the look back afterwards is no turn. All zero for nobody."""
    steps = [step for step in game.records.get(role, {"steps": []})["steps"] if not step["is_reflection"]]
    kinds = Counter(step["output_kind"] for step in steps)
    errors = Counter(error for step in steps for error in step["error_type"])
    return {
        "turns": len(steps),
        "game_actions": kinds[GAME_ACTION],
        "messages": kinds[SEND_MESSAGE],
        "errors": {kind: errors[kind] for kind in sorted(errors)},
        **{name: sum(step["usage"][name] for step in steps) for name in ("input_tokens", "output_tokens")},
    }


def transcript_digest(game: Game) -> str:
    """Digest of all that was said, done and thought in a game, when, and of how the bomb was left.

    What a player saw follows from what was done; ids, versions and capabilities do not enter.
    """
    return digest(
        {
            role: [
                record["footer"]["final_bomb_state"],
                *(
                    [
                        *(step[name] for name in ("timestamp", "requested_at", "output_kind", "output", "thoughts")),
                        *(step[name] for name in ("new_messages", "error_type", "usage")),
                    ]
                    for step in record["steps"]
                ),
            ]
            for role, record in game.records.items()
        }
    )
