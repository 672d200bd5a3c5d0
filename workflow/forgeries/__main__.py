"""Makes a zoo of forgeries from an honest bundle or board, and scores any verifier that is shown it.

``python -m forgeries FOLDER --zoo DIR`` writes the zoo; with ``--verifier 'CMD {}'`` the command is run on each animal,
``{}`` being its folder. A verifier accepts by exit code 0 and refuses by any other. One that does not end in time, or
is killed, has found nothing. To be scored it must accept the honest copy, which was sealed again like all others.
"""

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from forgeries.boards import BOARDS, Board
from forgeries.rows import ROWS
from forgeries.seal import NotApplicableError, Row

HONEST = "honest"


@dataclass(frozen=True)
class Animal:
    """A copy in the zoo.

    Attributes:
        kind: of forgery; ``honest`` for the copy that was only sealed again.
        name: of the forgery.
        folder: where it lies.
        about: what was done.
    """

    kind: str
    name: str
    folder: Path
    about: str


def breed(source: Path, zoo: Path) -> tuple[list[Animal], dict[str, str]]:
    """Write all forgeries of ``source`` below the new folder ``zoo``.

    Returns:
        The animals, the honest one first; and name -> reason of the forgeries that this source offers no place for.

    Raises:
        ValueError: ``source`` is neither a bundle nor a rendered board.
        FileExistsError: ``zoo`` exists.
    """
    if (source / "bundle.json").is_file() and (source / "recipe.json").is_file():
        maker, kinds, place = Row, ROWS, Path("results", *_own_place(source))
    elif (source / "leaderboard.json").is_file():
        maker, kinds, place = (
            Board,
            BOARDS,
            Path("results", json.loads((source / "leaderboard.json").read_bytes())["board"]),
        )
    else:
        raise ValueError(
            f"{source}: must be a rowproof bundle or a rendered board, found neither bundle.json nor leaderboard.json"
        )
    zoo.mkdir(parents=True)
    honest = zoo / HONEST / place
    maker(source, honest).reseal()
    animals, unfit = [Animal(HONEST, HONEST, honest, "sealed again, nothing else")], {}
    for kind, alterations in kinds.items():
        for name, alteration in alterations.items():
            folder = zoo / re.sub("[^a-z]", "-", kind) / name / place
            try:
                alteration(maker(source, folder))
            except NotApplicableError as error:
                unfit[name] = str(error)
            else:
                about = (alteration.__doc__ or "").splitlines()[0]
                animals.append(Animal(kind, name, folder, about))
    return animals, unfit


def _own_place(source: Path) -> tuple[str, ...]:
    document = json.loads((source / "bundle.json").read_bytes())
    return (*document["board"].split("/"), document["row"])


def judge(animal: Animal, command: Sequence[str], timeout_s: float) -> str:
    """``accepted``, ``refused``, or ``no verdict`` of a verifier's command about an animal."""
    words = [word.replace("{}", str(animal.folder)) for word in command]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, check=False)
    except (subprocess.TimeoutExpired, OSError):
        return "no verdict"
    return "accepted" if done.returncode == 0 else "refused" if done.returncode > 0 else "no verdict"


def table(verdicts: Mapping[Animal, str]) -> str:
    """A Markdown table of what was refused, by kind."""
    kinds = dict.fromkeys(animal.kind for animal in verdicts if animal.kind != HONEST)
    lines = ["| kind | forgeries | refused | not refused |", "|---|---:|---:|---|"]
    total = [0, 0]
    for kind in kinds:
        own = {animal: verdict for animal, verdict in verdicts.items() if animal.kind == kind}
        missed = [f"{a.name} ({v})" for a, v in own.items() if v != "refused"]
        total = [total[0] + len(own), total[1] + len(own) - len(missed)]
        lines.append(f"| {kind} | {len(own)} | {len(own) - len(missed)} | {', '.join(missed)} |")
    return "\n".join([*lines, f"| all | {total[0]} | {total[1]} | |"])


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if a zoo was made and, with a verifier, nothing forged was accepted; 1 otherwise; 2 if it cannot be scored."""
    parser = argparse.ArgumentParser(prog="python -m forgeries", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="an honest bundle (results/<board>/<row>) or board (results/<board>)")
    parser.add_argument("--zoo", type=Path, help="folder to write, which must not exist; default: a temporary one")
    parser.add_argument("--verifier", help="command with {} for the folder, for example 'rowproof verify {}'")
    parser.add_argument("--timeout", type=float, default=300.0, metavar="S", help="seconds for one animal (300)")
    parser.add_argument("--cores", type=int, default=2, help="animals that are judged at once (2)")
    options = parser.parse_args(arguments)
    if options.verifier is None and options.zoo is None:
        parser.error("--zoo or --verifier must be given: a zoo that nobody sees is of no use")
    command = shlex.split(options.verifier or "")
    if command and not any("{}" in word for word in command):
        parser.error(f"--verifier must hold {{}} where the folder goes, found {options.verifier!r}")
    with tempfile.TemporaryDirectory() as scratch:
        try:
            animals, unfit = breed(options.folder, options.zoo or Path(scratch) / "zoo")
        except (ValueError, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        for name, reason in unfit.items():
            print(f"left out: {name}: {reason}", file=sys.stderr)
        if not command:
            print("\n".join(f"{animal.folder}: {animal.about}" for animal in animals))
            return 0
        with ThreadPoolExecutor(options.cores) as pool:
            found = list(pool.map(lambda animal: judge(animal, command, options.timeout), animals))
    verdicts = dict(zip(animals, found, strict=True))
    if found[0] != "accepted":
        print(
            f"error: the verifier must accept the honest copy, found {found[0]}: its score means nothing",
            file=sys.stderr,
        )
        return 2
    print(table(verdicts))
    return 0 if all(verdict == "refused" for verdict in found[1:]) else 1


if __name__ == "__main__":
    sys.exit(main())
