"""Games of two scripted players per CPU second, and where their time goes.

Run: taskset -c 0 .venv/bin/python benchmarks/gptnt_speed.py
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from rowproof.boards import load_board
from rowproof.gptnt import evaluation, room
from rowproof.gptnt.players.scripted import Scripted
from rowproof.gptnt.recordings import write_game

ROOT = Path(__file__).resolve().parents[1]
TARGET = 200.0
"""Games of one module per CPU second."""
REPEATS = 7


class Clock:
    """Adds up the CPU time of calls."""

    def __init__(self) -> None:
        self.total_s = 0.0

    def around(self, call):
        def timed(*args, **kwargs):
            start_s = time.process_time()
            result = call(*args, **kwargs)
            self.total_s += time.process_time() - start_s
            return result

        return timed


def seconds_of(board: str) -> tuple[float, int]:
    """CPU seconds of all games of the reference pair in one attempt, and their number."""
    setup = load_board(ROOT, board).row_setup("scripted")
    setup = {**setup, "seeds": [1], "members": [m for m in setup["members"] if m["name"] == "scripted"]}
    units = evaluation.specs(setup)
    start_s = time.process_time()
    count = sum(1 for _ in evaluation.games(setup, units))
    return time.process_time() - start_s, count


def shares(board: str) -> dict[str, float]:
    """Shares of the time of games: looking, thinking, and the bomb."""
    clocks = {"observations": Clock(), "players": Clock(), "building bombs": Clock()}
    kept = room.observe, Scripted.turn, room.build
    room.observe = clocks["observations"].around(room.observe)
    Scripted.turn = clocks["players"].around(Scripted.turn)
    room.build = clocks["building bombs"].around(room.build)
    try:
        total_s, _ = seconds_of(board)
    finally:
        room.observe, Scripted.turn, room.build = kept
    return {name: clock.total_s / total_s for name, clock in clocks.items()}


def recording_s(board: str) -> float:
    """CPU seconds that writing one game's Parquet files takes."""
    setup = load_board(ROOT, board).row_setup("scripted")
    setup = {**setup, "seeds": [1], "members": [m for m in setup["members"] if m["name"] == "scripted"]}
    provenance = room.Provenance("benchmark")
    games = [game for _, _, game in evaluation.games(setup, evaluation.specs(setup)[:10], provenance=provenance)]
    with tempfile.TemporaryDirectory() as folder:
        start_s = time.process_time()
        for game in games:
            write_game(game, Path(folder))
        return (time.process_time() - start_s) / len(games)


def main() -> None:
    rates = {}
    for board in ("gptnt-single-pairwise-sync", "gptnt-single-self-async", "gptnt-multi-self-sync"):
        seconds_of(board)
        measured = [seconds_of(board) for _ in range(REPEATS)]
        rates[board] = statistics.median(count / seconds for seconds, count in measured)
        parts = ", ".join(f"{name} {share:.0%}" for name, share in shares(board).items())
        print(f"{board:<28} {rates[board]:6.0f} games per CPU second; {parts}")
    print(f"recordings (not part of boards): {1000 * recording_s('gptnt-single-pairwise-sync'):.0f} ms per game")
    met = rates["gptnt-single-pairwise-sync"] >= TARGET
    print(f"target {TARGET:.0f} games of one module: {'met' if met else 'MISSED'}")
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
