"""The commands of this family as the parser knows them; what runs them is imported only when it is called."""

import argparse
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from rowproof.errors import RowproofError

LISTS: dict[str, Callable[[argparse.Namespace], int]] = {}
"""Nothing: ``rowproof speedrun list`` shows the records."""


def _lazy(name: str) -> Callable[[argparse.Namespace], int]:
    def run(args: argparse.Namespace) -> int:
        try:
            return getattr(import_module("rowproof.speedrun.commands"), name)(args)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == "rowproof":
                raise
            raise RowproofError(
                f"this command must have {error.name} installed, found none: "
                "pip install -e '.[play,training]' -c requirements.lock"
            ) from None

    return run


def add_commands(commands: Any) -> None:
    """Add the commands to the subparsers of ``rowproof``."""
    family = commands.add_parser("speedrun", help="speedrun: score patches to a training script")
    actions = family.add_subparsers(dest="action", required=True, metavar="ACTION")

    sub = actions.add_parser("score", help="score a patch: train, evaluate and time it against its base script")
    sub.add_argument("patches", nargs="+", type=Path, metavar="PATCH", help="a diff, or an answer that holds one; or "
                     "several, one for each turn")  # fmt: skip
    sub.add_argument("--record", metavar="NAME", help="the base, see rowproof speedrun list; default: R0")
    sub.add_argument("--output", type=Path, metavar="FOLDER", help="default: output/speedrun/<name of the patch>")
    sub.add_argument("--smoke", action="store_true", help="20 steps and one pair: tries everything and scores nothing")
    _add_common(sub)
    sub.set_defaults(run=_lazy("score"))

    sub = actions.add_parser("play", help="let models propose patches, and score them")
    sub.add_argument("models", nargs="+", metavar="MODEL", help="a file of config/players that has a model")
    sub.add_argument("--provider", help="of config/providers, instead of the model's own")
    sub.add_argument("--max-tokens", type=int, metavar="N", help="of one answer; default: 16000")
    sub.add_argument("--output", type=Path, metavar="FOLDER", help="a folder in it for each; default: output/speedrun")
    sub.add_argument("--record", type=Path, metavar="DIR", help="keep every answer as a cassette in DIR")
    sub.add_argument("--replay", type=Path, metavar="DIR", help="take the answers from DIR; needs no key")
    _add_common(sub)
    sub.set_defaults(run=_lazy("play"))

    sub = actions.add_parser("import", help="take the answers out of a results.jsonl of verifiers; score them then")
    sub.add_argument("results", type=Path, metavar="results.jsonl")
    sub.add_argument("--output", type=Path, required=True, metavar="FOLDER")
    sub.set_defaults(run=_lazy("import_results"))

    sub = actions.add_parser("list", help="the records that patches start from")
    sub.set_defaults(run=_lazy("show_records"))

    sub = actions.add_parser("corpus", help="generate the training and validation text, or check what is there")
    sub.add_argument("folder", type=Path, nargs="?", metavar="FOLDER", help="default: work/speedrun/corpus")
    sub.set_defaults(run=_lazy("corpus"))

    sub = actions.add_parser(
        "calibrate", help="find target, sigma and steps of a ladder before its plan; takes an hour"
    )
    sub.add_argument("ladder", type=Path, nargs="?", metavar="FOLDER", help="default: resources/speedrun")
    sub.add_argument("--output", type=Path, required=True, metavar="FILE.json")
    sub.set_defaults(run=_lazy("calibrate"))


def _add_common(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--arguments", type=Path, metavar="FILE.yaml", help="how it is scored; default: as published")
    sub.add_argument(
        "--audit-salt",
        type=Path,
        metavar="FILE",
        help="the secret behind the audit text; default: ROWPROOF_AUDIT_SALT, else a new one",
    )
