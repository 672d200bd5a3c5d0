"""Who's on First: the display names a button to read; its label names an order of preference."""

from collections.abc import Sequence

# Reading order of the six buttons: top, middle and bottom row, left before right.
POSITIONS = ("TL", "TR", "ML", "MR", "BL", "BR")

# Display word ("" is an empty display) to the position of the button to read.
READ_AT = {
    "YES": "ML",
    "FIRST": "TR",
    "DISPLAY": "BR",
    "OKAY": "TR",
    "SAYS": "BR",
    "NOTHING": "ML",
    "": "BL",
    "BLANK": "MR",
    "NO": "BR",
    "LED": "ML",
    "LEAD": "BR",
    "READ": "MR",
    "RED": "MR",
    "REED": "BL",
    "LEED": "BL",
    "HOLD ON": "BR",
    "YOU": "MR",
    "YOU ARE": "BR",
    "YOUR": "MR",
    "YOU'RE": "MR",
    "UR": "TL",
    "THERE": "BR",
    "THEY'RE": "BL",
    "THEIR": "MR",
    "THEY ARE": "ML",
    "SEE": "BR",
    "C": "TR",
    "CEE": "BR",
}

# The labels of one stage come from one group.
GROUPS = tuple(
    tuple(words.split("|"))
    for words in (
        "READY|FIRST|NO|BLANK|NOTHING|YES|WHAT|UHHH|LEFT|RIGHT|MIDDLE|OKAY|WAIT|PRESS",
        "YOU|YOU ARE|YOUR|YOU'RE|UR|U|UH HUH|UH UH|WHAT?|DONE|NEXT|HOLD|SURE|LIKE",
    )
)

# Label that was read to the labels to look for, best first.
PREFERENCES = {
    label: tuple(words.split("|"))
    for label, words in {
        "READY": "YES|OKAY|WHAT|MIDDLE|LEFT|PRESS|RIGHT|BLANK|READY|NO|FIRST|UHHH|NOTHING|WAIT",
        "FIRST": "LEFT|OKAY|YES|MIDDLE|NO|RIGHT|NOTHING|UHHH|WAIT|READY|BLANK|WHAT|PRESS|FIRST",
        "NO": "BLANK|UHHH|WAIT|FIRST|WHAT|READY|RIGHT|YES|NOTHING|LEFT|PRESS|OKAY|NO|MIDDLE",
        "BLANK": "WAIT|RIGHT|OKAY|MIDDLE|BLANK|PRESS|READY|NOTHING|NO|WHAT|LEFT|UHHH|YES|FIRST",
        "NOTHING": "UHHH|RIGHT|OKAY|MIDDLE|YES|BLANK|NO|PRESS|LEFT|WHAT|WAIT|FIRST|NOTHING|READY",
        "YES": "OKAY|RIGHT|UHHH|MIDDLE|FIRST|WHAT|PRESS|READY|NOTHING|YES|LEFT|BLANK|NO|WAIT",
        "WHAT": "UHHH|WHAT|LEFT|NOTHING|READY|BLANK|MIDDLE|NO|OKAY|FIRST|WAIT|YES|PRESS|RIGHT",
        "UHHH": "READY|NOTHING|LEFT|WHAT|OKAY|YES|RIGHT|NO|PRESS|BLANK|UHHH|MIDDLE|WAIT|FIRST",
        "LEFT": "RIGHT|LEFT|FIRST|NO|MIDDLE|YES|BLANK|WHAT|UHHH|WAIT|PRESS|READY|OKAY|NOTHING",
        "RIGHT": "YES|NOTHING|READY|PRESS|NO|WAIT|WHAT|RIGHT|MIDDLE|LEFT|UHHH|BLANK|OKAY|FIRST",
        "MIDDLE": "BLANK|READY|OKAY|WHAT|NOTHING|PRESS|NO|WAIT|LEFT|MIDDLE|RIGHT|FIRST|UHHH|YES",
        "OKAY": "MIDDLE|NO|FIRST|YES|UHHH|NOTHING|WAIT|OKAY|LEFT|READY|BLANK|PRESS|WHAT|RIGHT",
        "WAIT": "UHHH|NO|BLANK|OKAY|YES|LEFT|FIRST|PRESS|WHAT|WAIT|NOTHING|READY|RIGHT|MIDDLE",
        "PRESS": "RIGHT|MIDDLE|YES|READY|PRESS|OKAY|NOTHING|UHHH|BLANK|LEFT|FIRST|WHAT|NO|WAIT",
        "YOU": "SURE|YOU ARE|YOUR|YOU'RE|NEXT|UH HUH|UR|HOLD|WHAT?|YOU|UH UH|LIKE|DONE|U",
        "YOU ARE": "YOUR|NEXT|LIKE|UH HUH|WHAT?|DONE|UH UH|HOLD|YOU|U|YOU'RE|SURE|UR|YOU ARE",
        "YOUR": "UH UH|YOU ARE|UH HUH|YOUR|NEXT|UR|SURE|U|YOU'RE|YOU|WHAT?|HOLD|LIKE|DONE",
        "YOU'RE": "YOU|YOU'RE|UR|NEXT|UH UH|YOU ARE|U|YOUR|WHAT?|UH HUH|SURE|DONE|LIKE|HOLD",
        "UR": "DONE|U|UR|UH HUH|WHAT?|SURE|YOUR|HOLD|YOU'RE|LIKE|NEXT|UH UH|YOU ARE|YOU",
        "U": "UH HUH|SURE|NEXT|WHAT?|YOU'RE|UR|UH UH|DONE|U|YOU|LIKE|HOLD|YOU ARE|YOUR",
        "UH HUH": "UH HUH|YOUR|YOU ARE|YOU|DONE|HOLD|UH UH|NEXT|SURE|LIKE|YOU'RE|UR|U|WHAT?",
        "UH UH": "UR|U|YOU ARE|YOU'RE|NEXT|UH UH|DONE|YOU|UH HUH|LIKE|YOUR|SURE|HOLD|WHAT?",
        "WHAT?": "YOU|HOLD|YOU'RE|YOUR|U|DONE|UH UH|LIKE|YOU ARE|UH HUH|UR|NEXT|WHAT?|SURE",
        "DONE": "SURE|UH HUH|NEXT|WHAT?|YOUR|UR|YOU'RE|HOLD|LIKE|YOU|U|YOU ARE|UH UH|DONE",
        "NEXT": "WHAT?|UH HUH|UH UH|YOUR|HOLD|SURE|NEXT|LIKE|DONE|YOU ARE|UR|YOU'RE|U|YOU",
        "HOLD": "YOU ARE|U|DONE|UH UH|YOU|UR|SURE|WHAT?|YOU'RE|NEXT|HOLD|UH HUH|YOUR|LIKE",
        "SURE": "YOU ARE|DONE|LIKE|YOU'RE|YOU|HOLD|UH HUH|UR|SURE|U|WHAT?|NEXT|YOUR|UH UH",
        "LIKE": "YOU'RE|NEXT|U|UR|HOLD|DONE|UH UH|WHAT?|UH HUH|YOU|LIKE|SURE|YOU ARE|YOUR",
    }.items()
}


def label_to_read(display: str, labels: Sequence[str]) -> str:
    """The label of the button that ``display`` points to; ``labels`` has six words in reading order."""
    return labels[POSITIONS.index(READ_AT[display])]


def label_to_press(display: str, labels: Sequence[str]) -> str:
    """The label that must be pressed: the first of the preference list that is there."""
    preferences = PREFERENCES[label_to_read(display, labels)]
    return min(labels, key=preferences.index)
