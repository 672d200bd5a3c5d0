"""Recorded ``chamber-eval`` commands, taken apart."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rowproof.errors import RecordError

_RUN_VALUES = (
    *("--task", "--policy", "--partner-set", "--partner", "--partner-weights", "--exclude-member", "--seeds"),
    *("--episodes", "--out", "--prereg", "--root-seed", "--n-resamples"),
)
_VALUES = {"run": _RUN_VALUES, "admission": ("--prereg", "--out", "--date", "--render-backend")}
_SWITCHES = {"run": ("--include-private", "--allow-dirty"), "admission": ("--allow-dirty",)}
_REPEATABLE = ("--exclude-member",)


@dataclass(frozen=True)
class Command:
    """A recorded ``chamber-eval`` command: ``kind`` (``run`` or ``admission``) and its options as given."""

    kind: str
    values: Mapping[str, list[str]] = field(default_factory=dict)
    switches: frozenset[str] = frozenset()

    def one(self, flag: str, default: str | None = None) -> str | None:
        """The value of ``flag``, or ``default`` when it was not given."""
        return self.values.get(flag, [default])[0]


def parse_command(text: str) -> Command:
    """Take apart a recorded command.

    Raises:
        RecordError: another program, an unknown, repeated or incomplete option, or needless quoting.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise RecordError(f"a command must be readable as shell words: {error}") from None
    if shlex.join(words) != text:
        raise RecordError("a command must be quoted as a shell needs it and no more")
    if len(words) < 2 or words[0] != "chamber-eval" or words[1] not in _VALUES:
        raise RecordError(f"a command must start with chamber-eval run or admission, found {words[:2]}")
    kind, values, switches = words[1], {}, set()
    rest = iter(words[2:])
    for word in rest:
        flag, joined, value = word.partition("=")
        if not joined and flag in _SWITCHES[kind] and flag not in switches:
            switches.add(flag)
        elif flag in _VALUES[kind] and (flag not in values or flag in _REPEATABLE):
            given = value if joined else next(rest, None)
            if given is None:
                raise RecordError(f"option {flag} must have a value, found none")
            values.setdefault(flag, []).append(given)
        else:
            raise RecordError(f"options must be known and given once, found {word!r}")
    return Command(kind, values, frozenset(switches))


def seeds_agree(text: str, seeds: list[int]) -> bool:
    """Whether a ``--seeds`` text stands for these seeds: ``N`` for 0 to N-1, a text with a comma for a list."""
    if "," in text:
        parts = text.split(",")
        parts = parts[:-1] if parts[-1] == "" else parts
        return parts == [str(seed) for seed in seeds]
    return text == str(len(seeds)) and seeds == list(range(len(seeds)))


def members_run(command: Command, catalogue: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The members that a set run sweeps, in roster order: the public ones (or all) without the excluded ones.

    Raises:
        RecordError: the set or an excluded member is unknown, or nobody is left.
    """
    set_id = command.one("--partner-set")
    chosen = catalogue["sets"].get(set_id)
    if chosen is None:
        raise RecordError(f"--partner-set must name a published set with its version, found {set_id!r}")
    excluded = command.values.get("--exclude-member", [])
    private = "--include-private" in command.switches
    roster = [member for member in chosen["members"] if private or member["split"] == "public"]
    unknown = sorted(set(excluded) - {member["name"] for member in roster})
    if unknown or len(set(excluded)) != len(excluded):
        raise RecordError(f"excluded members must be distinct members of {set_id}, found {excluded}")
    members = [member for member in roster if member["name"] not in excluded]
    if not members:
        raise RecordError("at least one member must remain after the exclusions, found none")
    return members
