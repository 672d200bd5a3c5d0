"""Morse Code: a blinking word stands for a frequency."""

# Word to frequency (kHz), rising; the read-out steps through these values alone.
FREQUENCIES_KHZ = {
    "shell": 3505,
    "halls": 3515,
    "slick": 3522,
    "trick": 3532,
    "boxes": 3535,
    "leaks": 3542,
    "strobe": 3545,
    "bistro": 3552,
    "flick": 3555,
    "bombs": 3565,
    "break": 3572,
    "brick": 3575,
    "steak": 3582,
    "sting": 3592,
    "vector": 3595,
    "beats": 3600,
}

ALPHABET = {
    "A": ".-",
    "B": "-...",
    "C": "-.-.",
    "D": "-..",
    "E": ".",
    "F": "..-.",
    "G": "--.",
    "H": "....",
    "I": "..",
    "J": ".---",
    "K": "-.-",
    "L": ".-..",
    "M": "--",
    "N": "-.",
    "O": "---",
    "P": ".--.",
    "Q": "--.-",
    "R": ".-.",
    "S": "...",
    "T": "-",
    "U": "..-",
    "V": "...-",
    "W": ".--",
    "X": "-..-",
    "Y": "-.--",
    "Z": "--..",
    "0": "-----",
    "1": ".----",
    "2": "..---",
    "3": "...--",
    "4": "....-",
    "5": ".....",
    "6": "-....",
    "7": "--...",
    "8": "---..",
    "9": "----.",
}

# Lengths in units; the manual tells only short from long gaps.
DOT, DASH, SYMBOL_GAP, LETTER_GAP, WORD_GAP = 1, 3, 1, 3, 7


def code(word: str) -> str:
    """``word`` in dots and dashes, letters separated by spaces."""
    return " ".join(ALPHABET[letter] for letter in word.upper())


def word_of(code: str) -> str:
    """The word that ``code`` spells, letters separated by spaces.

    Raises:
        ValueError: a letter is not in the alphabet.
    """
    letters = {signal: letter for letter, signal in ALPHABET.items()}
    unknown = [signal for signal in code.split() if signal not in letters]
    if unknown:
        raise ValueError(f"every letter must be in the Morse alphabet, found {unknown}")
    return "".join(letters[signal] for signal in code.split()).lower()


def signal(word: str) -> str:
    """One loop of the lamp: ``#`` for a unit on, ``.`` for a unit off, closed by the gap before it repeats."""
    symbols = {".": "#" * DOT, "-": "#" * DASH}
    letters = (("." * SYMBOL_GAP).join(symbols[s] for s in ALPHABET[letter]) for letter in word.upper())
    return ("." * LETTER_GAP).join(letters) + "." * WORD_GAP


def presses_right(word: str) -> int:
    """Presses of the right arrow that lead from the lowest frequency to that of ``word``."""
    return list(FREQUENCIES_KHZ).index(word)
