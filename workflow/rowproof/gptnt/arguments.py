"""The commands of this family as the parser knows them; what runs them is imported only when it is called."""

import argparse
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from rowproof.errors import RowproofError

INSTALL = "pip install -e '.[play]' -c requirements.lock"
"""What brings the packages that runs need."""


def _lazy(name: str) -> Callable[[argparse.Namespace], int]:
    def run(args: argparse.Namespace) -> int:
        try:
            return getattr(import_module("rowproof.gptnt.commands"), name)(args)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == "rowproof":
                raise
            raise RowproofError(f"this command must have {error.name} installed, found none: {INSTALL}") from None

    return run


LISTS = {"suites": _lazy("show"), "players": _lazy("show")}
generate = _lazy("generate")
"""What ``rowproof generate`` does with a manifest."""


def add_commands(commands: Any) -> None:
    """Add the commands to the subparsers of ``rowproof``."""
    sub = commands.add_parser("doctor", help="gptnt: check players, a run's plan and this machine")
    sub.add_argument("manifest", nargs="?", type=Path, metavar="RUN.yaml")
    sub.add_argument("--live", action="store_true", help="send every model one short request (this costs tokens)")
    sub.add_argument("--json", action="store_true")
    sub.set_defaults(run=_lazy("doctor"))

    sub = commands.add_parser("run", help="gptnt: play what a run has not played yet")
    sub.add_argument("manifest", type=Path, metavar="RUN.yaml")
    sub.add_argument(
        "--force", action="store_true", help="go on although a check failed; what can never be played stays refused"
    )
    sub.add_argument("--record", type=Path, metavar="DIR", help="keep every answer of a model as a cassette in DIR")
    sub.add_argument("--replay", type=Path, metavar="DIR", help="take the answers of models from DIR; needs no key")
    sub.set_defaults(run=_lazy("run"))

    sub = commands.add_parser("status", help="gptnt: what of a run is done")
    sub.add_argument("manifest", type=Path, metavar="RUN.yaml")
    sub.set_defaults(run=_lazy("status"))

    sub = commands.add_parser("kill", help="gptnt: tell runs to end; games under way are finished and recorded")
    sub.add_argument("manifest", nargs="?", type=Path, metavar="RUN.yaml", help="default: all runs of this project")
    sub.set_defaults(run=_lazy("kill"))

    sub = commands.add_parser("games", help="gptnt: play the games of board rows again and keep their full recordings")
    sub.add_argument("rows", nargs="+", metavar="ROW")
    sub.add_argument("--output-dir", type=Path, required=True)
    sub.set_defaults(run=_lazy("games"))

    sub = commands.add_parser("build-db", help="gptnt: put recordings into a DuckDB database")
    sub.add_argument("folder", type=Path, nargs="?")
    sub.add_argument("-o", "--output", type=Path)
    sub.add_argument("-j", "--max-workers", type=int, default=1)
    sub.add_argument("--delete-existing-db", action="store_true")
    sub.set_defaults(run=_lazy("build_db"))

    sub = commands.add_parser("results", help="gptnt: metrics of a database")
    sub.add_argument("database", type=Path, nargs="?")
    sub.add_argument("--json", action="store_true")
    sub.set_defaults(run=_lazy("results"))

    sub = commands.add_parser("analyse", help="gptnt: a page with all results and games, for any browser")
    sub.add_argument("database", type=Path, nargs="?")
    sub.add_argument("-o", "--output", type=Path, default=Path("output/analysis.html"))
    sub.set_defaults(run=_lazy("analyse"))

    sub = commands.add_parser("new", help="gptnt: write a commented player or provider file")
    sub.add_argument("what", choices=("player", "provider"))
    sub.add_argument("name")
    sub.set_defaults(run=_lazy("new"))

    sub = commands.add_parser("cleanup-outputs", help="gptnt: what of the recordings can go")
    sub.add_argument("folder", type=Path, nargs="?")
    sub.add_argument("--execute", action="store_true", help="remove it; by default it is only shown")
    sub.set_defaults(run=_lazy("cleanup_outputs"))

    sub = commands.add_parser("reconcile-wandb", help="gptnt: bring the runs of a store and the recordings together")
    sub.add_argument("folder", type=Path, nargs="?", metavar="DIRECTORY")
    sub.add_argument("--execute", action="store_true", help="do it; by default it is only shown")
    sub.add_argument("--include-dummy-runs", action="store_true", help="also those of players for tests")
    sub.add_argument("--mark-missing-output-as-old", action=argparse.BooleanOptionalAction, default=True)
    sub.set_defaults(run=_lazy("reconcile_wandb"))

    sub = commands.add_parser("statics", help="gptnt: questions without a game, over data made here")
    sub.add_argument("task")
    # Two spellings: that of the benchmark's documentation and that of its program.
    sub.add_argument("--player", "--model", required=True, help="a player file, or oracle or random")
    sub.add_argument("--provider")
    sub.add_argument("--throw", action="store_true", help="ask; by default it is only told what would be asked")
    sub.add_argument("--limit-instances", type=int, metavar="N")
    sub.add_argument("--dataset-revision", metavar="REF")
    sub.add_argument("--allow-thinking", action=argparse.BooleanOptionalAction, default=True)
    sub.add_argument("--output-dir", type=Path, default=Path("output/statics"))
    sub.add_argument("--record", type=Path, metavar="DIR", help="keep every answer as a cassette in DIR")
    sub.add_argument("--replay", type=Path, metavar="DIR", help="take the answers from DIR; needs no key")
    sub.set_defaults(run=_lazy("statics"))

    sub = commands.add_parser("submission", help="gptnt: bundles for the public leaderboard")
    actions = sub.add_subparsers(dest="action", required=True, metavar="ACTION")
    # The benchmark calls it new.
    act = actions.add_parser("build", aliases=["new"], help="bundles of what a database holds")
    act.add_argument("database", type=Path, nargs="?")
    act.add_argument("-o", "--output-dir", type=Path, default=Path("output/submissions"))
    act.add_argument("--suite", action="append", help="default: those of the leaderboard")
    act.add_argument("--static", action="append", type=Path, default=[], metavar="DIR", help="folder of a static run")
    act.add_argument("--model", action="append", default=[], help="player names; default: all")
    act.add_argument("--date", metavar="YYYY-MM-DD", help="of the games, which know only their own clock")
    for name in ("name", "contact", "affiliation"):
        act.add_argument(f"--submitter.{name}", dest=f"submitter_{name}", default="")
    act.set_defaults(run=_lazy("submission_build"))
    act = actions.add_parser("validate", help="check bundles")
    act.add_argument("path", type=Path, nargs="?", default=Path("output/submissions"))
    act.add_argument("--format", choices=("rich", "json", "github"), default="rich")
    act.set_defaults(run=_lazy("submission_validate"))
    act = actions.add_parser("submit", help="open a pull request for each bundle that passes every check")
    act.add_argument("path", type=Path, nargs="?", default=Path("output/submissions"))
    act.add_argument("--repo", default="gptnt/submissions", metavar="OWNER/NAME", help="default: %(default)s")
    act.add_argument("--dry-run", action="store_true", help="only show branches, titles and files; needs no network")
    act.set_defaults(run=_lazy("submission_submit"))

    sub = commands.add_parser(
        "measure-tokens-per-image", help="gptnt: ask a model twice and note what a picture costs (this costs tokens)"
    )
    sub.add_argument("player")
    sub.add_argument("--provider")
    sub.set_defaults(run=_lazy("measure_tokens_per_image"))

    sub = commands.add_parser("generate-missions", help="gptnt: write a mission set from its recipe")
    sub.add_argument("name", help="config/missions/recipes/NAME.yaml")
    sub.set_defaults(run=_lazy("generate_missions"))

    sub = commands.add_parser("suite", help="gptnt: freeze suites")
    sub.add_argument("action", choices=("freeze",))
    sub.add_argument("--check", action="store_true", help="only tell whether all suites are frozen as they are")
    sub.set_defaults(run=_lazy("suite"))
