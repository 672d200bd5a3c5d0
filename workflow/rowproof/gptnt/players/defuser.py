"""A Defuser that operates the bomb and knows no rule: it tells what it sees and does what it is told."""

from typing import Any

from rowproof.gptnt.players.hands import HANDS, Hands, Orders, Situation
from rowproof.gptnt.players.phrases import Sentence, hear, say
from rowproof.gptnt.players.turns import Setup, Turn, do_nothing, interact_game, send_message

Place = tuple[str, int]
Output = dict[str, Any]

FACES = ("front", "back")
EDGES = ("bottom", "top", "right", "left")
OTHER_FACE = {"front": "back", "back": "front"}
# From a narrow upright side to a face.
_TO_FACE = {
    ("left", "front"): "rotate_right",
    ("right", "front"): "rotate_left",
    ("left", "back"): "rotate_left",
    ("right", "back"): "rotate_right",
}
# A message is sent again if there is no answer in the fourth turn after it: in asynchronous play one takes three.
PATIENCE_TURNS = 4


class Defuser:
    """The state of one game, as far as the Defuser knows it."""

    def __init__(self, setup: Setup) -> None:
        """Know nothing of the bomb."""
        self._latency_ms = setup.latency_ms
        # Per face the solved and unsolved places of modules, and what each looks like.
        self._solved: dict[str, dict[int, bool]] = {}
        self._looks: dict[Place, str] = {}
        self._hands: dict[Place, Hands] = {}
        self._edges: dict[str, list[dict[str, Any]]] = {}
        self._wanted: frozenset[str] = frozenset()
        self._target: Place | None = None
        self._strikes = 0
        # Time left in milliseconds, how much more it may be, and when that was read.
        self._timer_ms, self._timer_width_ms, self._timer_read_ms = 0, 0, 0
        self._orders: Orders | None = None
        self._sent = 0
        self._sent_turn: int | None = None

    def turn(self, turn: Turn) -> Output:
        """The output of one turn."""
        self._turn, self._seen = turn, turn.observation
        self._note()
        return self.decide(turn.messages)

    def decide(self, messages: tuple[str, ...]) -> Output:
        """The output after hearing ``messages`` in the present turn."""
        for message in messages:
            facts = hear(message)
            # Answers to earlier messages are out of date.
            if facts.get("To message") == [str(self._sent)]:
                self._orders = {head: items for head, items in facts.items() if head != "To message"}
                self._sent_turn = None
        if self._close() and not self._is_solved(self._target):
            return self._work()
        return self._travel()

    # ---- seeing ------------------------------------------------------------------------------------------------

    def _note(self) -> None:
        seen, side = self._seen, self._seen["side"]
        lights = [seen["module"]["led"]] if seen["zoomed_in"] else [s.get("led") for s in seen.get("slots", ())]
        if seen["timer"] is not None:
            self._strikes = seen["timer"]["strike_lights"]
            self._read_timer(seen["timer"]["display"])
        else:
            self._strikes += "red" in lights
        if "edge" in seen:
            self._edges[side] = seen["edge"]
        for slot in seen.get("slots", ()):
            if "led" in slot:
                self._solved.setdefault(side, {})[slot["slot"]] = slot["led"] == "green"
                self._looks[side, slot["slot"]] = slot["shows"]
            else:
                self._solved.setdefault(side, {})
        if not self._close():
            return
        module = seen["module"]
        self._solved[side][self._target[1]] = module["led"] == "green"
        hands = self._hands.get(self._target)
        if hands is None:
            hands = self._hands[self._target] = HANDS[module["shows"]]()
        if module["led"] == "red":
            hands.forget()
            self._drop_orders()
        hands.look(module, Situation(self._turn.elapsed_ms, self._strikes))

    def _close(self) -> bool:
        """Whether the module in view is the one that was aimed at."""
        if not self._seen["zoomed_in"] or self._target is None:
            return False
        return self._seen["module"]["shows"] == self._looks[self._target]

    def _is_solved(self, place: Place | None) -> bool:
        return place is None or self._solved[place[0]][place[1]]

    def _read_timer(self, display: str) -> None:
        left, right = display.replace(".", ":").split(":")
        minutes = ":" in display
        self._timer_ms = 1000 * (60 * int(left) + int(right)) if minutes else 1000 * int(left) + 10 * int(right)
        self._timer_width_ms = 1000 if minutes else 10
        self._timer_read_ms = self._turn.elapsed_ms

    def _will_show(self, digit: str) -> bool:
        """Whether the timer will certainly show ``digit`` when the answer of this turn takes effect."""
        passed_ms = self._turn.elapsed_ms + self._latency_ms - self._timer_read_ms
        # Each strike makes the timer a quarter faster.
        left_ms = self._timer_ms - passed_ms * (4 + min(self._strikes, 4)) // 4
        return all(digit in _display(ms) for ms in (left_ms, left_ms + self._timer_width_ms - 1))

    # ---- working at a module -----------------------------------------------------------------------------------

    def _drop_orders(self) -> None:
        self._orders, self._sent_turn = None, None

    def _work(self) -> Output:
        hands = self._hands[self._target]
        if self._orders is not None and "Look for" in self._orders:
            self._wanted = frozenset(self._orders["Look for"])
            self._drop_orders()
            if not self._surveyed():
                return self._travel()
        if self._orders is not None:
            try:
                step = hands.follow(self._orders)
            except (LookupError, ValueError):
                # What was heard does not fit what shows, or it was the wish to hear it again.
                step = None
            if isinstance(step, int) and not 0 <= step < len(self._seen["marks"]):
                step = None
            if step is not None:
                return self._do(step)
            self._drop_orders()
        if self._sent_turn is not None and self._turn.number < self._sent_turn + PATIENCE_TURNS:
            return do_nothing()
        sentences = hands.describe()
        if sentences is not None:
            return self._tell(hands, sentences)
        element = hands.explore()
        return do_nothing() if element is None else self._do(element)

    def _do(self, step: int | str) -> Output:
        marks = list(self._seen["marks"])
        if isinstance(step, int):
            return interact_game("click_release", marks[step])
        if step == "hold":
            return interact_game("hold", marks[0])
        if step == "release" and self._will_show(self._orders["Let go at"][0]):
            return interact_game("release")
        return do_nothing()

    def _tell(self, hands: Hands, sentences: list[Sentence]) -> Output:
        self._sent += 1
        self._sent_turn = self._turn.number
        return send_message(
            say([("Message", [str(self._sent)]), ("I see", [hands.shows]), *sentences, *self._edge_facts()])
        )

    # ---- turning the bomb --------------------------------------------------------------------------------------

    def _surveyed(self) -> bool:
        """Whether all that the Expert wants to know of the narrow sides was seen."""
        if self._wanted <= {"label"} and (not self._wanted or self._items("label")):
            return True
        return len(self._edges) == len(EDGES)

    def _items(self, kind: str) -> list[dict[str, Any]]:
        return [item for side in self._edges.values() for item in side if item["item"] == kind]

    def _edge_facts(self) -> list[Sentence]:
        """What is known for certain: the label once it was seen, counts once all sides were."""
        facts: list[Sentence] = [("Label", [item["text"]]) for item in self._items("label")]
        if len(self._edges) == len(EDGES):
            lit = [item["text"] for item in self._items("indicator") if item["lamp"] == "lit"]
            facts += [
                ("Batteries", [str(sum(item["cells"] for item in self._items("batteries")))]),
                ("Lit indicators", lit),
                ("Ports", [port for item in self._items("port plate") for port in item["ports"]]),
            ]
        return facts

    def _travel(self) -> Output:
        """One step towards what is to be seen or done next."""
        if not self._surveyed():
            return self._turn_towards_edges()
        self._wanted = frozenset()
        side = self._seen["side"]
        # A module that asked for the narrow sides comes first again.
        if self._is_solved(self._target):
            self._target = None
            self._drop_orders()
            face = side if side in FACES else "front"
            for candidate in (face, OTHER_FACE[face]):
                if candidate not in self._solved:
                    return self._turn_towards(candidate)
                unsolved = [slot for slot, solved in self._solved[candidate].items() if not solved]
                if unsolved:
                    self._target = candidate, min(unsolved)
                    break
            else:
                return do_nothing()
        face, slot = self._target
        if side != face:
            return self._turn_towards(face)
        if self._seen["zoomed_in"]:
            return interact_game("zoom_out")
        return interact_game("click_release", self._seen["slots"][slot]["mark"])

    def _turn_towards(self, face: str) -> Output:
        side = self._seen["side"]
        if side in ("top", "bottom"):
            return interact_game("roll_up" if side == "top" else "roll_down")
        return interact_game("flip" if side == OTHER_FACE[face] else _TO_FACE[side, face])

    def _turn_towards_edges(self) -> Output:
        side = self._seen["side"]
        unseen = [edge for edge in EDGES if edge not in self._edges]
        if side in ("top", "bottom"):
            if {"top", "bottom"} & set(unseen):
                return interact_game("flip")
            return interact_game("roll_up" if side == "top" else "roll_down")
        if unseen[0] in ("top", "bottom"):
            return interact_game("roll_down" if unseen[0] == "top" else "roll_up")
        return interact_game("rotate_right" if side in FACES else "flip")


def _display(left_ms: int) -> str:
    left_ms = max(0, left_ms)
    if left_ms >= 60_000:
        return f"{left_ms // 60_000:02d}:{left_ms // 1000 % 60:02d}"
    return f"{left_ms // 1000:02d}.{left_ms // 10 % 100:02d}"
