"""Plays the games of a run: as many rooms at a time as the manifest says, and never one player twice at a time."""

import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import IO, NamedTuple

from rowproof.gptnt.manual import Manual
from rowproof.gptnt.recordings import write_game
from rowproof.gptnt.room import Game, Provenance, Rules, Seat, play
from rowproof.gptnt.spec import Spec

# A terminal's line is drawn anew that often; elsewhere a line is written now and then.
REDRAW_S = 0.2
LINE_S = 15.0


class Totals(NamedTuple):
    """How a run ended.

    Attributes:
        outcomes: number of games by outcome; ``crashed`` stands for games that broke off.
        left: specs that were not played, because the run was stopped or a player had gone.
        seconds: wall time.
    """

    outcomes: dict[str, int]
    left: int
    seconds: float

    @property
    def complete(self) -> bool:
        """Whether every spec was played to an end that counts."""
        return not self.left and not set(self.outcomes) - {"solved", "timeout", "strikeout"}


class _Log:
    """One line per event, in the order of events, and the state of the run for whoever watches it."""

    def __init__(self, stream: IO[str], screen: IO[str], total: int) -> None:
        self._stream, self._screen, self._total = stream, screen, total
        self._start_s = time.monotonic()
        self._shown_s = 0.0
        self._tty = screen.isatty()
        self._width = 0

    def event(self, room: int, text: str) -> None:
        print(f"{self.seconds:.3f}\troom {room}\t{text}", file=self._stream, flush=True)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start_s

    def show(self, queued: int, running: Mapping[int, str], outcomes: Mapping[str, int], last: bool = False) -> None:
        now_s = self.seconds
        if not last and now_s - self._shown_s < (REDRAW_S if self._tty else LINE_S):
            return
        self._shown_s = now_s
        done = sum(outcomes.values())
        rest_s = (self._total - done) * now_s / done if done else None
        parts = [f"{done}/{self._total} games", f"{queued} queued", f"{len(running)} running"]
        parts += [f"{count} {outcome}" for outcome, count in sorted(outcomes.items())]
        if rest_s is not None and not last:
            parts.append(f"about {rest_s:.0f} s left")
        if self._tty and running:
            parts.append(running[min(running)])
        text = ", ".join(parts)
        if not self._tty:
            print(text, file=self._screen, flush=True)
            return
        text = text[:118]
        print(f"\r{text:<{self._width}}", end="\n" if last else "", file=self._screen, flush=True)
        self._width = len(text)


class Runner:
    """Plays specs in their order, each as soon as a room and its players are free."""

    def __init__(
        self,
        rooms: int,
        seats: Mapping[str, Iterable[Callable[[], Seat]]],
        folder: Path,
        provenance: Provenance,
        rules: Rules | None = None,
        display_of: Callable[[int], str | None] = lambda room: None,
        recorded: Callable[[Path], object] = lambda path: None,
    ) -> None:
        """Prepare a run.

        Args:
            rooms: how many games run at a time.
            seats: by player name, one maker per instance, called once; what it makes plays one game at a time.
            folder: where records are written.
            provenance: for the records.
            rules: of the rooms.
            display_of: the X display of a room, for the log; no game is drawn on it.
            recorded: told the path of each record.
        """
        self._display_of, self._recorded = display_of, recorded
        self._rooms, self._folder, self._provenance = rooms, folder, provenance
        self._rules = rules or Rules()
        self._free = {name: [make() for make in makers] for name, makers in seats.items()}
        self._counts = {name: len(free) for name, free in self._free.items()}
        self._manual = Manual.read()
        self._stop = threading.Event()

    def stop(self) -> None:
        """Start no further game; those under way are finished and recorded."""
        self._stop.set()

    def run(self, specs: Mapping[str, Spec], log_path: Path, screen: IO[str] | None = None) -> Totals:
        """Play ``specs`` (by attempt name), in order.

        Args:
            specs: what to play. One that needs more of a player than there are is left.
            log_path: file of events, one a line; tracebacks of games that broke off stand there.
            screen: where progress is shown; standard error if None.
        """
        queue = [(name, spec) for name, spec in specs.items() if self._possible(spec)]
        impossible = len(specs) - len(queue)
        outcomes: Counter[str] = Counter()
        running: dict[Future[tuple[Game | None, str]], tuple[int, str, list[tuple[str, Seat]]]] = {}
        free_rooms = list(range(self._rooms))
        log_path.parent.mkdir(parents=True, exist_ok=True)
        with log_path.open("a", encoding="utf-8") as stream, ThreadPoolExecutor(self._rooms) as pool:
            log = _Log(stream, screen or sys.stderr, len(specs))
            for room in free_rooms:
                if (display := self._display_of(room)) is not None:
                    log.event(room, f"display\t{display}")
            while queue or running:
                if self._stop.is_set():
                    if not running:
                        break
                else:
                    self._start(queue, running, free_rooms, pool, log)
                done, _ = wait(running, timeout=REDRAW_S, return_when=FIRST_COMPLETED)
                for future in done:
                    room, name, taken = running.pop(future)
                    for player, seat in taken:
                        self._free[player].append(seat)
                    free_rooms.append(room)
                    game, failure = future.result()
                    outcome = "crashed" if game is None or game.failure else game.summary["outcome"]
                    outcomes[outcome] += 1
                    log.event(room, f"{outcome}\t{name}{chr(10) + failure if failure else ''}")
                log.show(len(queue), {room: name for room, name, _ in running.values()}, outcomes)
            log.show(len(queue), {}, outcomes, last=True)
            return Totals(dict(sorted(outcomes.items())), len(queue) + impossible, log.seconds)

    def _possible(self, spec: Spec) -> bool:
        needed = Counter(spec.players)
        return all(self._counts.get(name, 0) >= count for name, count in needed.items())

    def _start(self, queue, running, free_rooms, pool, log) -> None:
        """Start every game that room and players are free for, the earliest specs first."""
        waiting = []
        while queue and free_rooms:
            name, spec = queue.pop(0)
            taken = self._take(spec)
            if taken is None:
                waiting.append((name, spec))
                continue
            free_rooms.sort()
            room = free_rooms.pop(0)
            log.event(room, f"started\t{name}")
            running[pool.submit(self._play, spec, taken)] = room, name, taken
        queue[:0] = waiting

    def _take(self, spec: Spec) -> list[tuple[str, Seat]] | None:
        needed = Counter(spec.players)
        if any(len(self._free[name]) < count for name, count in needed.items()):
            return None
        return [(name, self._free[name].pop(0)) for name in spec.players]

    def _play(self, spec: Spec, taken: list[tuple[str, Seat]]) -> tuple[Game | None, str]:
        """One game; whatever happens in it, the run goes on."""
        try:
            seats = [seat for _, seat in taken]
            expert = seats[1] if len(seats) > 1 else None
            game = play(spec.to_data(), seats[0], expert, self._manual, self._provenance, self._rules)
            for path in write_game(game, self._folder):
                self._recorded(path)
            return game, game.failure
        except BaseException:
            # Not only Exception: a SystemExit of a player must not end the run either.
            return None, traceback.format_exc()
