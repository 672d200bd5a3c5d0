"""Bombs put together by hand, and hands to operate them."""

from rowproof.gptnt.bomb.bomb import MARKS, NOTHING, Bomb, Slot, build
from rowproof.gptnt.bomb.edgework import Battery, Edgework, Indicator, PortPlate, SerialNumber
from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.bomb.modules.wires import Wires
from rowproof.gptnt.bomb.observation import observe, text
from rowproof.gptnt.bomb.oracle import next_step, random_step
from rowproof.gptnt.bomb.prng import Stream
from rowproof.gptnt.bomb.published import multiple_module_n, single_module
from rowproof.hashing import sha256_hex
from rowproof.records import encode_line


def edgework(serial="AB1CD2", batteries=(), indicators=(), ports=()):
    """All widgets on the top side: battery types, (label, lit) pairs, and one list of ports per plate."""
    widgets = [SerialNumber("top", serial)]
    widgets += [Battery("top", kind) for kind in batteries]
    widgets += [Indicator("top", label, lit) for label, lit in indicators]
    widgets += [PortPlate("top", tuple(names)) for names in ports]
    return Edgework(widgets)


def run_stream():
    return Stream("workbench", "run")


def bench(*modules, time_limit=300, num_strikes_allowed=3, needy_time=60):
    """A bomb with the timer in front slot 0 and ``modules`` in the front slots after it."""
    components = tuple(module.component for module in modules)
    mission = Mission(1, time_limit, components, 0, num_strikes_allowed, needy_time)
    slots = [Slot("front", index) for index in range(1, len(modules) + 1)]
    return Bomb(mission, modules[0].edgework, Slot("front", 0), modules, slots)


def zoomed(*modules, **settings):
    """A bomb whose player is close to its first module."""
    bomb = bench(*modules, **settings)
    assert not bomb.act("click_release", "A").refused
    return bomb


def spare_wires(edge):
    """A module that is solved by its second wire."""
    return Wires(edge, run_stream(), (0, 1, 2), ("yellow", "blue", "white"))


def press(bomb, element, action="click_release"):
    """Operate an element by its index."""
    return bomb.act(action, MARKS[element])


def play(bomb, choose, turn_ms=3000):
    """Play to the end with one action of ``choose(bomb)`` per turn; yield observation, effects and state of each."""
    turn = 0
    while not bomb.over:
        turn += 1
        seen = observe(bomb, turn)
        step = choose(bomb)
        effects = bomb.act(*step) if step else NOTHING
        yield seen, effects, bomb.state()
        bomb.advance(turn_ms)


def half_random(draws):
    """A chooser that does something random every other time, and something right otherwise."""
    return lambda bomb: random_step(bomb, draws) if draws.chance(1, 2) else next_step(bomb)


def transcript(mission):
    """All that can be seen of a game by a player who is right half of the time, as canonical bytes."""
    bomb = build(mission)
    lines = [
        encode_line({"seen": seen, "text": text(seen), "effects": list(effects), "state": state})
        for seen, effects, state in play(bomb, half_random(Stream(mission.key, "workbench")), turn_ms=777)
    ]
    return "\n".join([*lines, bomb.outcome, encode_line(bomb.state())]).encode()


NEEDY_MISSION = Mission(
    3, 600, ("NeedyVentGas", "NeedyKnob", "NeedyCapacitor", "Simon", "Maze", "Morse", "Memory"), 5, 5, 30
)


def transcripts():
    """Digest of the transcripts of a few missions, among them one with every needy module."""
    missions = [*single_module().values()][::7] + [*multiple_module_n().values()][::3] + [NEEDY_MISSION]
    return sha256_hex(b"\n".join(transcript(mission) for mission in missions))
