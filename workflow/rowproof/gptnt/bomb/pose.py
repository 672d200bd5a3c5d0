"""Which side of the bomb faces the player."""

FRONT, BACK = "front", "back"
LEVEL = "level"

_RIGHT = {"front": "right", "right": "back", "back": "left", "left": "front"}
_LEFT = {after: before for before, after in _RIGHT.items()}
_UP = {"top": "level", "level": "bottom", "bottom": "bottom"}
_DOWN = {"bottom": "level", "level": "top", "top": "top"}
_FLIP_LEVEL = {"front": "back", "back": "front", "left": "right", "right": "left"}
_FLIP_ROLLED = {"top": "bottom", "bottom": "top"}

TURNS = ("rotate_left", "rotate_right", "flip", "roll_up", "roll_down")


class Pose:
    """``yaw`` (front, right, back, left) and ``pitch`` (level, top, bottom)."""

    __slots__ = ("pitch", "yaw")

    def __init__(self) -> None:
        """Face the front, level."""
        self.yaw = FRONT
        self.pitch = LEVEL

    @property
    def side(self) -> str:
        """The side that shows."""
        return self.yaw if self.pitch == LEVEL else self.pitch

    def turn(self, action: str) -> bool:
        """Turn the bomb by one of :data:`TURNS`; return whether it moved. Rolling stops at top and bottom."""
        before = self.yaw, self.pitch
        if action == "rotate_right":
            self.yaw = _RIGHT[self.yaw]
        elif action == "rotate_left":
            self.yaw = _LEFT[self.yaw]
        elif action == "roll_up":
            self.pitch = _UP[self.pitch]
        elif action == "roll_down":
            self.pitch = _DOWN[self.pitch]
        elif self.pitch == LEVEL:
            self.yaw = _FLIP_LEVEL[self.yaw]
        else:
            self.pitch = _FLIP_ROLLED[self.pitch]
        return (self.yaw, self.pitch) != before
