"""The bomb's timer: integers alone, so that a game ends at the same instant on every machine."""

# Quarters of a millisecond that one millisecond of game time takes off, by strikes; more strikes count as four.
RATE_Q = (4, 5, 6, 7, 8)
Q_PER_MS = 4
Q_PER_S = 4000


class Clock:
    """Game time, which runs evenly, and the time left on the bomb, which runs faster after strikes.

    Attributes:
        game_ms: game time since the start, in milliseconds.
        remaining_q: time left on the bomb, in quarters of a millisecond; never negative.
        rate_q: what one millisecond takes off ``remaining_q``.
    """

    __slots__ = ("game_ms", "rate_q", "remaining_q")

    def __init__(self, time_limit_s: int) -> None:
        """Stand at the start with the whole time left."""
        self.game_ms = 0
        self.remaining_q = time_limit_s * Q_PER_S
        self.rate_q = RATE_Q[0]

    def set_strikes(self, strikes: int) -> None:
        """Run at the rate of that many strikes from now on."""
        self.rate_q = RATE_Q[min(strikes, len(RATE_Q) - 1)]

    @property
    def ms_to_zero(self) -> int:
        """Game time until nothing is left, rounded up to a whole millisecond."""
        return -(-self.remaining_q // self.rate_q)

    def advance(self, ms: int) -> None:
        """Let ``ms`` of game time pass at the present rate."""
        self.game_ms += ms
        self.remaining_q = max(0, self.remaining_q - ms * self.rate_q)

    @property
    def display(self) -> str:
        """``MM:SS`` from a minute on, else ``SS.CC`` with hundredths; both rounded down."""
        if self.remaining_q >= 60 * Q_PER_S:
            minutes, seconds = divmod(self.remaining_q // Q_PER_S, 60)
            return f"{minutes:02d}:{seconds:02d}"
        seconds, hundredths = divmod(self.remaining_q // (Q_PER_S // 100), 100)
        return f"{seconds:02d}.{hundredths:02d}"
