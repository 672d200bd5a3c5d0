"""Simon Says: every flash asks for a button, by the serial number and the strikes at the time of the press."""

# Top, left, right, bottom of the diamond.
BUTTONS = ("blue", "red", "yellow", "green")
# The order in which colours are drawn.
COLOURS = ("red", "blue", "green", "yellow")

# Whether the serial number holds a vowel, then strikes (two stand for more), then flash to button.
BUTTON_FOR = {
    True: (
        {"red": "blue", "blue": "red", "green": "yellow", "yellow": "green"},
        {"red": "yellow", "blue": "green", "green": "blue", "yellow": "red"},
        {"red": "green", "blue": "red", "green": "yellow", "yellow": "blue"},
    ),
    False: (
        {"red": "blue", "blue": "yellow", "green": "green", "yellow": "red"},
        {"red": "red", "blue": "blue", "green": "yellow", "yellow": "green"},
        {"red": "yellow", "blue": "green", "green": "blue", "yellow": "red"},
    ),
}


def button_for(flash: str, has_vowel: bool, strikes: int) -> str:
    """The colour of the button that answers ``flash``; ``strikes`` counts those of the whole bomb."""
    return BUTTON_FOR[has_vowel][min(strikes, 2)][flash]
