"""The scripted Defuser: it looks, tells, and does what it is told."""

import pytest
from gptnt.bomb.workbench import edgework, run_stream
from gptnt.players.workbench import MANUAL, setup
from rowproof.gptnt.bomb.bomb import Bomb, Slot, build
from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.bomb.modules.big_button import BigButton
from rowproof.gptnt.bomb.modules.keypad import Keypad
from rowproof.gptnt.bomb.modules.morse import Morse
from rowproof.gptnt.bomb.modules.simon import Simon
from rowproof.gptnt.bomb.modules.wires import Wires
from rowproof.gptnt.bomb.observation import observe
from rowproof.gptnt.manual import Edges
from rowproof.gptnt.players.defuser import PATIENCE_TURNS, Defuser
from rowproof.gptnt.players.expert import reply
from rowproof.gptnt.players.phrases import hear, say
from rowproof.gptnt.players.turns import Turn, read_output

PROTOCOL = {"role": "defuser", "is_playing_alone": False, "allow_magic_actions": False, "allow_lottery_actions": False}


def bench(*modules, face="front", time_limit=300):
    """A bomb with the timer in front slot 0 and ``modules`` beside it, on one face."""
    mission = Mission(1, time_limit, tuple(m.component for m in modules), 0)
    slots = [Slot(face, index) for index in range(1, len(modules) + 1)]
    return Bomb(mission, modules[0].edgework, Slot("front", 0), modules, slots)


def wires(edge, *colours):
    return Wires(edge, run_stream(), tuple(range(len(colours))), colours)


class Table:
    """A Defuser at a bomb, with a partner whose answers are given by a function of its message."""

    def __init__(self, bomb, partner=lambda message: reply(MANUAL, message), step_ms=3000):
        self.bomb, self.partner, self.step_ms = bomb, partner, step_ms
        self.defuser = Defuser(setup())
        self.waiting = ()
        self.turns = []

    def turn(self):
        """One round; return what the Defuser did."""
        number = len(self.turns) + 1
        turn = Turn(number, self.bomb.clock.game_ms, (), self.waiting, False, observe(self.bomb, number))
        action, errors = read_output(self.defuser.turn(turn), PROTOCOL)
        assert not errors
        self.waiting = ()
        if action.kind == "game_action":
            assert not self.bomb.act(action.action, action.location).refused
        self.bomb.advance(self.step_ms)
        if action.kind == "send_message":
            answer = self.partner(action.message)
            self.waiting = () if answer is None else (answer,)
        self.turns.append(action)
        return action

    def play(self, turns=80):
        while not self.bomb.over and len(self.turns) < turns:
            self.turn()
        return self.bomb

    def said(self):
        return [a.message for a in self.turns if a.kind == "send_message"]

    def did(self):
        return [a.action or a.kind for a in self.turns]


def test_a_short_game_word_for_word():
    edge = edgework("JR2ZR5")
    table = Table(bench(wires(edge, "red", "yellow", "red", "blue")))
    table.play()
    assert table.bomb.outcome == "solved"
    assert [(a.action, a.location) if a.action else a.message for a in table.turns] == [
        ("click_release", "A"),
        'Message: "1". I see: "horizontal wires between two strips". '
        'Wires from the top: "red", "yellow", "red", "blue".',
        ("roll_up", None),
        ("flip", None),
        ("roll_up", None),
        ("click_release", "A"),
        'Message: "2". I see: "horizontal wires between two strips". '
        'Wires from the top: "red", "yellow", "red", "blue". Label: "JR2ZR5".',
        ("click_release", "C"),
    ]


def test_it_looks_at_all_narrow_sides_when_counts_are_asked_for():
    edge = edgework("JR2ZR5", ["AA", "D"], [("CAR", True), ("FRK", False)], [["Parallel"], []])
    table = Table(bench(BigButton(edge, run_stream(), "red", "Detonate")))
    table.play()
    assert table.bomb.outcome == "solved"
    assert table.did()[2:8] == ["roll_up", "flip", "roll_up", "rotate_right", "flip", "rotate_right"]
    told = hear(table.turns[9].message)
    assert (told["Batteries"], told["Lit indicators"]) == (["3"], ["CAR"])
    assert told["Ports"] == ["very wide two-row connector with many round pins"]


@pytest.mark.parametrize("face", ["front", "back"])
@pytest.mark.parametrize("strikes", [0, 1])
@pytest.mark.parametrize("time_limit", [300, 83, 61])
def test_a_button_is_let_go_in_time_even_where_the_timer_cannot_be_seen(face, strikes, time_limit):
    edge = edgework("JR2ZR5", ["D"])
    spare = wires(edge, "yellow", "blue", "white")
    bomb = bench(BigButton(edge, run_stream(), "blue", "Abort"), spare, face=face, time_limit=time_limit)
    for _ in range(strikes):
        # A mistake at the other module, before the Defuser comes.
        bomb.pose.yaw = face
        bomb.act("click_release", "B")
        bomb.act("click_release", "A")
        bomb.pose.yaw, bomb.zoomed = "front", None
    assert len(bomb.strikes) == strikes
    table = Table(bomb)
    table.play()
    assert bomb.modules[0].solved and len(bomb.strikes) == strikes
    assert "release" in table.did()


def test_answers_to_earlier_messages_are_ignored():
    bomb = bench(wires(edgework(), "yellow", "blue", "white"))
    table = Table(bomb, partner=lambda message: 'To message: "0". Cut: "1".')
    table.play(turns=20)
    assert not bomb.strikes and not bomb.solved and set(table.did()[1:]) == {"send_message", "do_nothing"}


def test_a_message_without_an_answer_is_sent_again():
    bomb = bench(wires(edgework(), "yellow", "blue", "white"))
    table = Table(bomb, partner=lambda message: None)
    for _ in range(2 + 2 * PATIENCE_TURNS):
        table.turn()
    sent = [turn for turn, action in enumerate(table.turns) if action.kind == "send_message"]
    assert sent == [1, 1 + PATIENCE_TURNS, 1 + 2 * PATIENCE_TURNS]
    assert [hear(table.turns[turn].message)["Message"] for turn in sent] == [["1"], ["2"], ["3"]]


@pytest.mark.parametrize(
    "answer", [[("Say again", [])], [("Cut", ["7"])], [("Cut", ["0"])], [("Cut", ["x"])], [("Press", ["A"])], []]
)
def test_an_answer_that_does_not_fit_leads_to_the_question_again(answer):
    bomb = bench(wires(edgework(), "yellow", "blue", "white"))
    table = Table(bomb, partner=lambda m: say([("To message", hear(m)["Message"]), *answer]))
    for _ in range(4):
        table.turn()
    assert table.did() == ["click_release", "send_message", "send_message", "send_message"] and not bomb.strikes


def test_it_does_what_it_is_told_and_not_what_is_right():
    bomb = bench(wires(edgework(), "yellow", "blue", "white"))
    table = Table(bomb, partner=lambda m: say([("To message", hear(m)["Message"]), ("Cut", ["3"])]))
    for _ in range(3):
        table.turn()
    assert bomb.strikes == ["Wires"] and bomb.modules[0].cut == [False, False, True]


def test_after_a_strike_it_asks_anew():
    answers = iter(['Cut: "3".', 'Cut: "2".'])
    bomb = bench(wires(edgework(), "yellow", "blue", "white"))
    table = Table(bomb, partner=lambda m: f"{say([('To message', hear(m)['Message'])])} {next(answers)}")
    table.play(turns=10)
    assert table.did() == ["click_release", "send_message", "click_release", "send_message", "click_release"]
    assert bomb.solved


@pytest.mark.parametrize("face", ["front", "back"])
@pytest.mark.parametrize("colour", ["green", "red", "blue"])
def test_a_wrong_press_in_a_growing_sequence_is_made_good(colour, face):
    # The wrong press comes as the last one of the first, second or third stage.
    bomb = bench(Simon(edgework("JR2ZR5"), run_stream(), ("green", "red", "blue")), face=face)

    def partner(message):
        """Tells a wrong button for one colour until there is a strike."""
        answer = reply(MANUAL, message)
        right = MANUAL.simon_buttons(0, Edges(label="JR2ZR5"))[colour]
        wrong = next(button for button in ("red", "yellow") if button != right)
        return answer if bomb.strikes else answer.replace(f"{colour} by {right}", f"{colour} by {wrong}")

    table = Table(bomb, partner)
    table.play()
    assert bomb.solved and bomb.strikes == ["Simon"]
    # On the back the strike shows by the light of the module alone.
    assert [hear(m)["Strikes"] for m in table.said()] == [["0"], ["0"], ["1"]]
    assert len(table.turns) <= 19


def test_a_sequence_entered_too_slowly_is_entered_again():
    bomb = bench(Simon(edgework("JR2ZR5"), run_stream(), ("green", "red", "blue")))
    table, module, late = Table(bomb), bomb.modules[0], False
    while not bomb.over and len(table.turns) < 60:
        # Once, in the middle of the second stage, time runs away.
        middle = module.stage == 2 and module.progress(bomb.clock.game_ms) == 1
        if middle and not late:
            late = True
            bomb.advance(3000)
        table.turn()
    assert late and bomb.solved and not bomb.strikes


def test_a_lamp_that_was_not_watched_all_the_time_is_not_read():
    bomb = bench(Morse(edgework(), run_stream(), "vector"), time_limit=600)
    table = Table(bomb, step_ms=6000)
    table.play(turns=100)
    assert table.said() == [] and bomb.outcome == "timeout"


def test_a_button_is_held_until_the_answer_is_understood():
    bomb = bench(BigButton(edgework("JR2ZR5"), run_stream(), "blue", "Abort"))
    answers = iter(["Let go at: none.", "Let go at: none."])

    def partner(message):
        held = hear(message)["Strip"] != ["dark"]
        return f"{say([('To message', hear(message)['Message'])])} {next(answers)}" if held else reply(MANUAL, message)

    table = Table(bomb, partner)
    for _ in range(5):
        table.turn()
    assert table.did()[2:] == ["hold", "send_message", "send_message"] and bomb.holding


def test_a_wrong_order_of_keys_costs_one_strike():
    symbols = ("ha-with-descender", "lambda-bar", "hollow-star", "qa")
    bomb = bench(Keypad(edgework(), run_stream(), symbols))

    def partner(message):
        answer = reply(MANUAL, message)
        return answer if bomb.strikes else answer.replace('"bottom right", "top left"', '"top left", "bottom right"')

    Table(bomb, partner).play()
    assert bomb.solved and bomb.strikes == ["Keypad"]


def test_what_was_pressed_before_a_mistake_is_forgotten():
    bomb = build(Mission(7, 105, ("Memory",), 0, force_modules_to_front=True))
    module = bomb.modules[0]

    def partner(message):
        answer = reply(MANUAL, message)
        if len(module.pressed) == 2 and not bomb.strikes:
            right = int(hear(answer)["Press"][0])
            answer = answer.replace(f'Press: "{right}"', f'Press: "{right % 4 + 1}"')
        return answer

    table = Table(bomb, partner)
    table.play()
    assert bomb.solved and bomb.strikes == ["Memory"]
    assert [len(hear(message)["Pressed"]) for message in table.said()] == [0, 1, 2, 0, 1, 2, 3, 4]


def test_it_finds_modules_on_both_faces():
    mission = Mission(286, 300, ("WhosOnFirst", "Memory", "Password", "Keypad", "Maze", "Wires"), 5)
    bomb = build(mission)
    assert {slot.face for slot in bomb.slots} == {"front", "back"}
    Table(bomb).play(turns=100)
    assert bomb.solved and not bomb.strikes


def test_it_leaves_a_module_that_it_did_not_aim_at():
    bomb = bench(wires(edgework(), "yellow", "blue", "white"), BigButton(edgework(), run_stream(), "red", "Hold"))
    table = Table(bomb)
    assert table.turn().location == "A"
    # Something else was taken hold of.
    bomb.zoomed = 1
    assert table.turn().action == "zoom_out"
    table.play()
    assert bomb.solved and not bomb.strikes
