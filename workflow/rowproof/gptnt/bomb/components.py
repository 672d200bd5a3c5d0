"""The state machine of every component id."""

from rowproof.gptnt.bomb.modules.base import Module
from rowproof.gptnt.bomb.modules.big_button import BigButton
from rowproof.gptnt.bomb.modules.keypad import Keypad
from rowproof.gptnt.bomb.modules.maze import Maze
from rowproof.gptnt.bomb.modules.memory import Memory
from rowproof.gptnt.bomb.modules.morse import Morse
from rowproof.gptnt.bomb.modules.needy_capacitor import NeedyCapacitor
from rowproof.gptnt.bomb.modules.needy_knob import NeedyKnob
from rowproof.gptnt.bomb.modules.needy_vent_gas import NeedyVentGas
from rowproof.gptnt.bomb.modules.password import Password
from rowproof.gptnt.bomb.modules.simon import Simon
from rowproof.gptnt.bomb.modules.venn import Venn
from rowproof.gptnt.bomb.modules.whos_on_first import WhosOnFirst
from rowproof.gptnt.bomb.modules.wire_sequence import WireSequence
from rowproof.gptnt.bomb.modules.wires import Wires

MODULES: dict[str, type[Module]] = {
    module.component: module
    for module in (
        *(BigButton, Keypad, Maze, Memory, Morse, Password, Simon, Venn, WhosOnFirst, WireSequence, Wires),
        *(NeedyCapacitor, NeedyKnob, NeedyVentGas),
    )
}
