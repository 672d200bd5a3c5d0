"""What the dashboard shows, read from the database: games, tables of metrics, and dialogues."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rowproof.gptnt.dashboard.dialogues import GLYPHS, fair_order, in_order, pack_dialogue, viewer_step
from rowproof.gptnt.dashboard.tables import Missions, Row, read_tables
from rowproof.gptnt.database import connect, runs, session_steps
from rowproof.gptnt.metrics import FEW_MISSIONS, RESAMPLES, SEED, Run, counts
from rowproof.gptnt.players.turns import DEFUSER

# With the overview of a thousand games the page stays below 15 MB.
DIALOGUES_BYTES = 12_000_000


def read_page(database: Path, missions: Missions, dialogues_bytes: int = DIALOGUES_BYTES) -> tuple[Row, list[str]]:
    """The data of the page, and the packed dialogues that its games point to.

    Args:
        database: of :func:`rowproof.gptnt.database.build_db`.
        missions: keys of the missions of frozen suites, by name and revision.
        dialogues_bytes: what all dialogues together may take.

    Raises:
        ConfigError: there is no such database.
        RecordError: a step of it is damaged.
    """
    dialogues: list[str] = []
    room = dialogues_bytes
    with connect(database) as connection:
        found = runs(connection)
        games = [_game(run) for run in found]
        for game in fair_order(games):
            steps = session_steps(connection, game["id"])
            packed = pack_dialogue([viewer_step(step) for step in in_order(steps, game["style"])])
            room -= len(packed)
            if room < 0:
                # All that follow are left out as well: what is shown must not depend on how long they are.
                break
            game["dialogue"] = len(dialogues)
            dialogues.append(packed)
    page = {
        "symbols": GLYPHS,
        "notes": _notes(games, dialogues_bytes),
        "resampling": {"resamples": RESAMPLES, "seed": SEED, "few_missions": FEW_MISSIONS},
        "tables": read_tables(found, missions),
        "games": games,
    }
    return page, dialogues


def _game(session: Run) -> Row:
    totals = session["totals"]
    return {
        "id": session["session_id"],
        "suite": session["suite_name"] or "unknown",
        "revision": session["suite_revision"] or 0,
        "defuser": session["defuser_name"],
        "expert": session["expert_name"],
        "style": session["communication_style"],
        "mission_set": session["mission_set"],
        "seed": session["seed"],
        "attempt": session["attempt"],
        "modules": session["modules"],
        "defuser_has_manual": session["defuser_has_manual"],
        "outcome": session["outcome"],
        "valid": counts(session),
        "crashed": session["is_hard_crash"],
        "seconds_left": session["seconds_remaining"],
        "time_limit": session["time_limit"],
        "strikes": session["strike_count"],
        "solved": session["num_modules_solved"],
        "n_modules": session["n_modules"],
        "defuser_turns": totals[DEFUSER]["turns"] if DEFUSER in totals else 0,
        "errors": sum(sum(total["errors"].values()) for total in totals.values()),
        "tokens": sum(total["input_tokens"] + total["output_tokens"] for total in totals.values()),
        "tags": session["tags"] or [],
        "dialogue": None,
    }


def _notes(games: Sequence[Mapping[str, Any]], dialogues_bytes: int) -> list[str]:
    if not games:
        return ["The database holds no games yet."]
    left_out = sum(game["dialogue"] is None for game in games)
    if not left_out:
        return []
    return [
        f"The dialogues of {left_out:,} of {len(games):,} games are left out, because all of them would take more than "
        f"{dialogues_bytes / 1e6:g} MB. Those shown are spread evenly over suites, pairings and outcomes; tables and "
        "plots cover every game."
    ]
