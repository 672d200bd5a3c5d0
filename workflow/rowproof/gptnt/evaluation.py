"""``gptnt_defuse@v1``: the evaluation grid of a board, its games, and what must hold in each of their records.

A row is a Defuser, its partners are Experts (or nobody), its seeds are the attempts, and its episodes are the missions
of a suite in the order of their keys. A record keeps the figures of a game and the digest of everything that was said
and done in it; the game itself is played again in milliseconds, since it depends on its spec alone.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rowproof.errors import ConfigError, RecordError
from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.cell import SuiteCell
from rowproof.gptnt.manual import Manual
from rowproof.gptnt.player_config import load_player
from rowproof.gptnt.players.roster import player_for
from rowproof.gptnt.players.turns import DEFUSER, EXPERT, GAME_ACTION, SEND_MESSAGE
from rowproof.gptnt.room import VALID_OUTCOMES, Game, Provenance, Rules, Seat, play
from rowproof.gptnt.specs import Spec
from rowproof.gptnt.suites import Suite, load_suite
from rowproof.plain_data import read_model
from rowproof.records import Kinds, check_fields, digest, encode_line

PROJECT = Path(__file__).resolve().parents[3]
NOBODY = "nobody"
"""The partner of a Defuser that plays alone."""

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
# What a game was played with and where enters no record: equal games have equal records.
_PROVENANCE = Provenance(version="board")


class _Table(NamedTuple):
    """What all games of a board share."""

    cell: SuiteCell
    suite: Suite
    missions: list[tuple[str, Mission]]
    manual: Manual


def mission_key(mission: Mission) -> str:
    """How a mission is named in records: its modules in order, and its seed."""
    return f"{'+'.join(mission.components)}-{mission.seed}"


def _set(setup: Mapping[str, Any], root: Path) -> _Table:
    cell = read_model(setup["cell"], SuiteCell, "cell")
    suite, missions = load_suite(root, cell.suite)
    manual = Manual.read()
    for what, stated, found in (
        ("revision", cell.revision, suite.revision),
        ("suite_digest", cell.suite_digest, suite.digest(missions.values())),
        ("manual_digest", cell.manual_digest, manual.digest),
    ):
        if stated != found:
            raise ConfigError(
                f"suite {cell.suite}: {what} must be {stated} as the plan has it, found {found}: "
                "restore its files, or write a new plan"
            )
    return _Table(cell, suite, _numbered(missions.values()), manual)


def _numbered(missions: Iterable[Mission]) -> list[tuple[str, Mission]]:
    return sorted(((mission_key(mission), mission) for mission in missions), key=lambda pair: pair[0])


def specs(setup: Mapping[str, Any], *, root: Path = PROJECT) -> list[dict[str, Any]]:
    """The games of a row, ordered by attempt, then partner (both as given), then mission.

    Args:
        setup: plain data with ``seeds`` (the attempts, from 1), ``episodes_per_partner`` (the missions of the suite),
            ``members`` and ``cell`` (a :class:`~rowproof.gptnt.cell.SuiteCell`).
        root: the project that holds the suite.

    Returns:
        One dict per game with ``seed``, ``episode_idx`` (unique within the seed), ``initial_state_seed`` (the number of
        the mission), ``member`` and ``mission`` (its key), in this order.

    Raises:
        ConfigError: suite or manual are not those of the plan, attempts do not count from 1, or the plan has another
            number of episodes than the suite has missions.
    """
    table = _set(setup, root)
    count = len(table.missions)
    if min(setup["seeds"]) < 1:
        raise ConfigError(f"seeds are attempts and must count from 1, found {setup['seeds']}")
    if setup["episodes_per_partner"] != count:
        raise ConfigError(
            f"episodes_per_partner must be the {count} missions of {table.cell.suite}, found "
            f"{setup['episodes_per_partner']}"
        )
    alone = table.suite.expert_protocol is None
    for member in setup["members"]:
        if (member["name"] == NOBODY) != alone:
            raise ConfigError(
                f"a partner in suite {table.cell.suite} must be {NOBODY if alone else 'an expert'}, found "
                f"{member['name']!r}"
            )
    return [
        {
            "seed": attempt,
            "episode_idx": index * count + number,
            "initial_state_seed": number,
            "member": member["name"],
            "mission": key,
        }
        for attempt in setup["seeds"]
        for index, member in enumerate(setup["members"])
        for number, (key, _) in enumerate(table.missions)
    ]


def _seat(name: str, table: _Table, root: Path) -> Seat:
    config = load_player(root, name)
    if config.model.script is None:
        raise ConfigError(f"player {name}: must follow a script to play for a board, found a model")
    stated = table.cell.players.get(name)
    if stated != config.fingerprint:
        raise ConfigError(
            f"player {name}: its capability fingerprint must be {stated} as the plan has it, found {config.fingerprint}"
        )
    return Seat(name, player_for(config.model.script), config.capabilities.model_dump(mode="json"))


def _expert_name(member: Mapping[str, Any]) -> str | None:
    return None if member["name"] == NOBODY else member["params"]["player"]


def games(
    setup: Mapping[str, Any],
    specs: Iterable[Mapping[str, Any]],
    *,
    root: Path = PROJECT,
    provenance: Provenance = _PROVENANCE,
) -> Iterator[tuple[Mapping[str, Any], Spec, Game]]:
    """Play every unit of ``specs``: the unit, the harness's spec of it, and the game.

    ``provenance`` stands in the footers of the game's records.

    Raises:
        ConfigError: suite, manual or a player are not those of the plan.
    """
    table = _set(setup, root)
    missions = dict(table.missions)
    members = {member["name"]: member for member in setup["members"]}
    rules = Rules(seed=setup["root_seed"], latency_ms=table.cell.latency_ms)
    defuser = _seat(setup["policy"], table, root)
    experts: dict[str, Seat | None] = {}
    for unit in specs:
        name = unit["member"]
        if name not in experts:
            expert = _expert_name(members[name])
            experts[name] = None if expert is None else _seat(expert, table, root)
        expert = experts[name]
        spec = Spec.of(
            table.suite, missions[unit["mission"]], defuser.name, None if expert is None else expert.name, unit["seed"]
        )
        yield unit, spec, play(spec.to_data(), defuser, expert, table.manual, provenance, rules)


def simulate(
    setup: Mapping[str, Any], specs: Iterable[Mapping[str, Any]], *, root: Path = PROJECT
) -> Iterator[dict[str, Any]]:
    """The record of every unit, in the order of ``specs``; each depends on its own unit and ``setup`` alone.

    Raises:
        ConfigError: see :func:`games`.
    """
    for unit, spec, game in games(setup, specs, root=root):
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
