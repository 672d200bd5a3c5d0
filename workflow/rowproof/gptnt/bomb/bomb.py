"""The bomb: modules on two faces, edgework, a timer, a pose, and the actions of the player who holds it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from rowproof.gptnt.bomb import edgework as edge
from rowproof.gptnt.bomb.clock import Q_PER_S, Clock
from rowproof.gptnt.bomb.components import MODULES
from rowproof.gptnt.bomb.edgework import Edgework
from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.bomb.modules.base import Effect, Module, Moment
from rowproof.gptnt.bomb.modules.needy import NeedyModule
from rowproof.gptnt.bomb.pose import BACK, FRONT, TURNS, Pose
from rowproof.gptnt.bomb.prng import Stream

SLOTS = range(6)
# Marks of the elements of a view, in reading order; no view has more than eleven.
MARKS = "ABCDEFGHIJK"

# Name of each game action to its value on the benchmark's wire.
ACTIONS = {
    "rotate_left": "left",
    "rotate_right": "right",
    "flip": "flip",
    "roll_up": "up",
    "roll_down": "down",
    "zoom_out": "out",
    "click_release": "click",
    "hold": "hold",
    "release": "release",
}
MARK_ACTIONS = ("click_release", "hold")


class Slot(NamedTuple):
    """A place for a module or the timer: a face, and an index from 0 in reading order (two rows of three)."""

    face: str
    index: int


class Effects(NamedTuple):
    """What an action or the passing of time did.

    Attributes:
        refused: why an action did nothing at all; empty if it did something.
        struck: ranks of the modules that caused a strike, in order.
        solved: ranks of the modules that were solved.
    """

    refused: str = ""
    struck: tuple[int, ...] = ()
    solved: tuple[int, ...] = ()


NOTHING = Effects()
OVER = Effects(refused="the game is over")


class Bomb:
    """One bomb from its start to its end; :func:`build` makes that of a mission.

    Everything happens in :meth:`act`, which takes no game time, and :meth:`advance`, which does nothing else.
    After its end a bomb never changes again.

    Attributes:
        mission: what it was built from.
        edgework: on its narrow sides.
        timer_slot: where the timer is.
        modules: by rank, the place in the alphabetical order of their ids.
        slots: of the modules, by rank.
        clock: game time and time left.
        pose: the side that shows.
        zoomed: rank of the module that the player is close to, or None.
        holding: whether an element is held down.
        strikes: component ids of the modules that caused them, in order.
        solved: whether it was defused.
        detonated: whether it exploded.
    """

    __slots__ = (
        *("mission", "edgework", "timer_slot", "modules", "slots", "clock", "pose", "zoomed", "holding"),
        *("strikes", "solved", "detonated", "_needy", "_unsolved", "_faces"),
    )

    def __init__(
        self, mission: Mission, edgework: Edgework, timer_slot: Slot, modules: Sequence[Module], slots: Sequence[Slot]
    ) -> None:
        """Put the parts together; the timer stands at the start and runs when time is advanced."""
        self.mission = mission
        self.edgework = edgework
        self.timer_slot = timer_slot
        self.modules = tuple(modules)
        self.slots = tuple(slots)
        self.clock = Clock(mission.time_limit)
        self.pose = Pose()
        self.zoomed: int | None = None
        self.holding = False
        self.strikes: list[str] = []
        self.solved = False
        self.detonated = False
        self._needy = [(r, m) for r, m in enumerate(self.modules) if isinstance(m, NeedyModule)]
        self._unsolved = sum(not module.needy for module in self.modules)
        for _, module in self._needy:
            module.event_ms = mission.needy_time * 1000
        ranks = sorted(range(len(self.slots)), key=self.slots.__getitem__)
        self._faces = {face: tuple(r for r in ranks if self.slots[r].face == face) for face in (FRONT, BACK)}

    # ---- what is there -----------------------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        """Whether it was defused or exploded."""
        return self.solved or self.detonated

    @property
    def side(self) -> str:
        """The side that shows: front, back, left, right, top or bottom."""
        return self.pose.side

    def facing(self) -> tuple[int, ...]:
        """Ranks of the modules on the face that shows, by slot; none on a narrow side."""
        return self._faces.get(self.pose.side, ())

    @property
    def outcome(self) -> str:
        """``solved``, ``timeout``, ``strikeout``, ``detonated`` or ``incomplete``; the first that fits."""
        if self.solved:
            return "solved"
        if not self.detonated:
            return "incomplete"
        if self.clock.remaining_q == 0:
            return "timeout"
        return "strikeout" if len(self.strikes) >= self.mission.num_strikes_allowed else "detonated"

    @property
    def seconds_remaining(self) -> float:
        """Time left, not negative."""
        return self.clock.remaining_q / Q_PER_S

    @property
    def modules_solved(self) -> int:
        """How many modules are solved."""
        return sum(module.solved for module in self.modules)

    def mark_count(self) -> int:
        """How many marks the present view has; they are the first letters of :data:`MARKS`."""
        if self.zoomed is not None:
            return len(self.modules[self.zoomed].elements())
        return len(self.facing())

    def legal_actions(self) -> list[tuple[str, str | None]]:
        """All actions that the present view offers, with their marks; some of them may do nothing."""
        if self.over:
            return []
        if self.holding:
            return [("release", None)]
        actions: list[tuple[str, str | None]] = [(turn, None) for turn in TURNS]
        if self.zoomed is not None:
            actions.append(("zoom_out", None))
        return actions + [(action, mark) for action in MARK_ACTIONS for mark in MARKS[: self.mark_count()]]

    # ---- actions -----------------------------------------------------------------------------------------------

    def act(self, action: str, mark: str | None = None) -> Effects:
        """Do one game action at the present instant.

        An action that cannot be done is refused with the reason and changes nothing. A mark is ignored by actions that
        need none.

        Args:
            action: one of :data:`ACTIONS`.
            mark: the letter of a module, or of an element when zoomed in; in either case of letters.
        """
        if self.over:
            return OVER
        if action not in ACTIONS:
            return Effects(refused=f"an action must be one of {list(ACTIONS)}, found {action!r}")
        if action == "release":
            if not self.holding or self.zoomed is None:
                return Effects(refused="nothing is held down")
            self.holding = False
            return self._operate("release", 0)
        if self.holding:
            return Effects(refused="an element is held down: release it first")
        if action == "zoom_out":
            if self.zoomed is None:
                return Effects(refused="the whole side is in view already")
            self.zoomed = None
            return NOTHING
        if action in TURNS:
            if not self.pose.turn(action):
                return Effects(refused="the bomb does not roll any further")
            self.zoomed = None
            return NOTHING
        count = self.mark_count()
        element = MARKS.find(mark.upper()) if isinstance(mark, str) and len(mark) == 1 else -1
        if not 0 <= element < count:
            return Effects(refused=f"a mark must be one of {list(MARKS[:count])}, found {mark!r}")
        if self.zoomed is None:
            self.zoomed = self.facing()[element]
            self.modules[self.zoomed].focus(self.clock.game_ms)
            return NOTHING
        return self._operate("hold" if action == "hold" else "press", element)

    def _operate(self, operation: str, element: int) -> Effects:
        rank = self.zoomed
        module = self.modules[rank]
        moment = Moment(self.clock.game_ms, len(self.strikes), self.clock.display)
        effect: Effect = module.apply(operation, element, moment)
        if effect.refused:
            return Effects(refused=effect.refused)
        if operation == "hold" and module.holdable:
            self.holding = True
        if effect.strike:
            self._strike(rank)
            return Effects(struck=(rank,))
        if effect.solved:
            self._unsolved -= 1
            if self._unsolved:
                self._notify("solved")
            else:
                self.solved = True
                self.holding = False
            return Effects(solved=(rank,))
        return NOTHING

    def _strike(self, rank: int) -> None:
        self.strikes.append(self.modules[rank].component)
        self.clock.set_strikes(len(self.strikes))
        if len(self.strikes) >= self.mission.num_strikes_allowed:
            self.detonate()
        else:
            self._notify("strike")

    def _notify(self, event: str) -> None:
        for _, module in self._needy:
            module.notice(event, self.clock.game_ms)

    def detonate(self) -> None:
        """Explode now, whatever time and strikes are left."""
        if not self.over:
            self.detonated = True
            self.holding = False

    def defuse(self) -> None:
        """Count every module as solved, now."""
        if not self.over:
            for module in self.modules:
                module.solved = not module.needy
            self.solved = True
            self.holding = False

    # ---- time --------------------------------------------------------------------------------------------------

    def advance(self, ms: int) -> Effects:
        """Let ``ms`` of game time pass, or what is left until the end of the bomb.

        At the same millisecond needy modules act first, by rank; then the timer.

        Raises:
            ValueError: ``ms`` is negative or no integer.
        """
        if type(ms) is not int or ms < 0:
            raise ValueError(f"game time must advance by whole milliseconds, not negative, found {ms!r}")
        clock = self.clock
        end_ms = clock.game_ms + ms
        struck: list[int] = []
        while not self.over:
            zero_ms = clock.game_ms + clock.ms_to_zero
            next_ms = min(end_ms, zero_ms)
            for _, module in self._needy:
                if module.event_ms is not None and module.event_ms < next_ms:
                    next_ms = module.event_ms
            clock.advance(next_ms - clock.game_ms)
            for rank, module in self._needy:
                if module.event_ms == next_ms and module.on_event(next_ms):
                    struck.append(rank)
                    self._strike(rank)
                    if self.over:
                        break
            if clock.remaining_q == 0:
                self.detonate()
            if next_ms == end_ms:
                break
        return Effects(struck=tuple(struck)) if struck else NOTHING

    # ---- the benchmark's log -----------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The full state in the fields of the benchmark's own log; it holds solutions and is never for a player."""
        return {
            "seed": self.mission.seed,
            "maxStrikes": self.mission.num_strikes_allowed,
            "strikes": list(self.strikes),
            "isDetonated": self.detonated,
            "isSolved": self.solved,
            "isLightOn": True,
            "bombSide": self.side,
            "timerModule": {
                "secondsRemaining": self.seconds_remaining,
                "onFront": self.timer_slot.face == FRONT,
                "index": self.timer_slot.index,
            },
            "widgets": [_widget_state(widget) for widget in self.edgework.widgets],
            "modules": [self._module_state(rank) for rank in range(len(self.modules))],
        }

    def _module_state(self, rank: int) -> dict[str, Any]:
        module, slot = self.modules[rank], self.slots[rank]
        on_front = slot.face == FRONT
        return {
            "name": module.component,
            "onFront": on_front,
            "index": slot.index,
            "moduleLocation": slot.index + (len(SLOTS) if on_front else 0),
            "isSolved": module.solved,
            "inFocus": rank == self.zoomed,
            "needsMultipleImages": module.needs_frames,
            **module.state(),
        }


def _widget_state(widget: edge.Widget) -> dict[str, Any]:
    if isinstance(widget, edge.SerialNumber):
        fields: dict[str, Any] = {"serialNumber": widget.text}
    elif isinstance(widget, edge.Battery):
        fields = {"batteryType": widget.type, "batteriesCount": widget.cells}
    elif isinstance(widget, edge.Indicator):
        fields = {"label": widget.label, "lightActivated": widget.lit}
    else:
        fields = {"portType": list(widget.ports)}
    kind = "Port" if isinstance(widget, edge.PortPlate) else type(widget).__name__
    return {"name": kind, "position": widget.edge, **fields}


def build(mission: Mission) -> Bomb:
    """The bomb of a mission, at its start; seed and components determine every draw.

    Raises:
        ConfigError: no bomb can be built from the mission.
    """
    mission.check(f"mission {mission.key}")
    edgework = edge.generate(mission.key, mission.optional_widgets)
    draws = Stream(mission.key, "slots")
    timer_slot = Slot(FRONT, draws.pick(SLOTS))
    candidates = [slot for index in SLOTS if (slot := Slot(FRONT, index)) != timer_slot]
    if not mission.force_modules_to_front:
        candidates += [Slot(BACK, index) for index in SLOTS]
    components = mission.ranked_components
    modules = [
        MODULES[component].generate(
            Stream(mission.key, f"module/{rank}/{component}"),
            Stream(mission.key, f"run/{rank}/{component}"),
            edgework,
        )
        for rank, component in enumerate(components)
    ]
    return Bomb(mission, edgework, timer_slot, modules, draws.sample(candidates, len(components)))
