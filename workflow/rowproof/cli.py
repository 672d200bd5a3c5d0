"""The ``rowproof`` command."""

import argparse
import io
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import rowproof
from rowproof import outside
from rowproof.errors import RowproofError
from rowproof.families import COMMANDS
from rowproof.line_ends import require_unconverted
from rowproof.plain_text import terminal, visible

LISTS = {what: show for module in COMMANDS for what, show in import_module(module).LISTS.items()}
"""What ``rowproof list`` shows of families."""
PACKAGE_ROOT = Path(rowproof.__file__).resolve().parents[2]


VERIFY = """\
Checks evidence against a project and the commits that its HEAD descends from.

exit codes:
  0  PASS throughout: no check fails, and all records of engines that are replayed came out again byte for byte.
     What needs history that is not here is listed as UNKNOWN; --strict demands that there be none.
  1  FAIL: a check fails (with --strict also: one is unknown).
  2  nothing usable, or a check could not be made: nothing is said of the evidence.
  3  NOT PROVEN: nothing is refuted, but the records of a replayed engine could be made again neither by the code at
     hand nor by that of the commit they name. To be treated as a failure.
"""


def project_root() -> Path:
    """The project of the working directory, whose code must be the code that runs.

    Raises:
        RowproofError: no project here, or another one than this rowproof belongs to.
    """
    from rowproof.evidence.subjects import find_root

    root = find_root(Path.cwd().resolve())
    if root is None:
        raise RowproofError("must be called inside a rowproof project, found no Snakefile upwards of here: cd there")
    if root != PACKAGE_ROOT:
        raise RowproofError(
            f"must be the rowproof of the project {root}, found that of {PACKAGE_ROOT}: "
            f"use {root}/.venv/bin/rowproof (make .venv creates it)"
        )
    require_unconverted(root)
    return root


def judging_project(named: Path | None) -> Path | None:
    """The project by which evidence is judged: the named one, else the one whose code runs, else none.

    Not that of the working directory: who clones a stranger's project and looks into it would be judged by it.

    Raises:
        RowproofError: the named folder is no project.
    """
    from rowproof.evidence.subjects import find_root

    if named is None:
        return PACKAGE_ROOT if find_root(PACKAGE_ROOT) == PACKAGE_ROOT else None
    root = named.resolve()
    if not root.is_dir() or find_root(root) != root:
        raise RowproofError(
            f"--project {named}: must be a project, found no Snakefile with config/config.yaml there: name its folder"
        )
    return root


def row_names(arguments: Iterable[str], known: Iterable[str]) -> list[str]:
    """``<board>/<row>`` names from what users type (with or without results/ and a final slash).

    Raises:
        RowproofError: an unknown row.
    """
    known = list(known)
    names = []
    for argument in arguments:
        name = argument.removeprefix("./").removeprefix("results/").rstrip("/")
        matches = [name] if name in known else [row for row in known if row.startswith(f"{name}/")]
        if not matches:
            raise RowproofError(f"{argument}: must be a row or board of this project ({', '.join(known)})")
        names += matches
    return list(dict.fromkeys(names))


def _verify(args: argparse.Namespace) -> int:
    from rowproof.evidence.subjects import find_subjects, verify_all
    from rowproof.history import standing

    root = judging_project(args.project)
    if (PACKAGE_ROOT / "Snakefile").is_file():
        require_unconverted(PACKAGE_ROOT)
    from rowproof.spot import add_spot_checks, read_options

    before = read_options(root, args.spot, args.retrain_one, args.beacon, args.added_since)
    looks_on = args.spot is not None or args.retrain_one
    options = args.plans, args.repo, args.allow_dirty
    subjects = [each for path in args.paths for each in find_subjects(path, *options, root=root)]
    subjects = [replace(each, signers=args.signers) for each in subjects]
    tables = []
    for table in verify_all(subjects, args.cores):
        tables.append(table)
        if not args.json and not looks_on:
            table.render(print, verbose=not args.quiet)
    if looks_on:
        add_spot_checks(tables, root, args.spot, args.retrain_one, args.beacon, args.cores, before)
    if args.json:
        print(json.dumps([table.as_json() for table in tables], indent=2))
    elif looks_on:
        for table in tables:
            table.render(print, verbose=not args.quiet)
    # JSON alone stands on the standard output.
    print(visible(standing(root)), file=sys.stderr if args.json else sys.stdout)
    undecided = args.strict and any(check.verdict == "unknown" for table in tables for check in table.checks)
    if any(table.verdict == "fail" for table in tables):
        return 1
    if any(table.crashed for table in tables):
        # Neither good nor refuted: something is wrong with the checker or with where it runs.
        return 2
    if any(table.verdict == "not proven" for table in tables):
        return 3
    return 1 if undecided else 0


def _why(args: argparse.Namespace) -> int:
    from rowproof.recipes import all_statuses
    from rowproof.why import equivalents, explain, render

    root = project_root()
    known = [status.name for status in all_statuses(root, root)] if args.rows else []
    rows = row_names(args.rows, known)
    report = explain(root, root, rows)
    if args.json:
        print(json.dumps(report, indent=2))
    else:
        print(terminal(render(report)) if report else "all rows are current")
        for entry in equivalents(root, root, rows):
            for stage, chain in entry["chains"].items():
                print(f"{entry['row']} is current (equivalent): {stage}: config/equivalences/{', '.join(chain)}")
    return 1 if report else 0


def _lock(args: argparse.Namespace) -> int:
    from rowproof.boards import load_config
    from rowproof.plan_lock import lock_path, write_lock

    _, setups = load_config(project_root())
    unknown = [board for board in args.boards if board not in setups]
    if unknown:
        raise RowproofError(f"{', '.join(unknown)}: must be a board of this project ({', '.join(setups)})")
    for board in args.boards or setups:
        path = lock_path(setups[board].plan_path)
        print(f"{path}: {'wrote: commit it with the plan' if write_lock(setups[board]) else 'pins everything already'}")
    return 0


def _attest(args: argparse.Namespace) -> int:
    from rowproof.attest import ATTESTED, attest, check, clean_commit
    from rowproof.boards import load_config
    from rowproof.recipes import Project

    root = project_root()
    _, setups = load_config(root)
    known = [f"{name}/{row}" for name, setup in setups.items() for row in setup.board.rows]
    names = row_names(args.rows, known) if args.rows else known
    project = Project.read(root, root / "results", root / "work")
    stages = args.stage or list(ATTESTED)
    commit = "" if args.check else clean_commit(root)
    complete, paths = True, []
    for board, setup in setups.items():
        rows = [name.removeprefix(f"{board}/") for name in names if name.rpartition("/")[0] == board]
        if rows and args.check:
            complete = check(setup, root, project.results, rows, stages, args.cores, print) and complete
        elif rows:
            written, whole = attest(setup, project, rows, stages, commit, args.cores, print)
            paths += written
            complete = complete and whole
    for path in paths:
        print(f"wrote {path.relative_to(root)}: commit it")
    if not paths and not args.check:
        print("nothing to attest")
    return 0 if complete else 1


def _reproduce(args: argparse.Namespace) -> int:
    from rowproof.boards import load_config
    from rowproof.reproduce import reproduce

    root = project_root()
    config, setups = load_config(root)
    known = [f"{name}/{row}" for name, setup in setups.items() for row in setup.board.rows]
    rows = row_names(args.rows, known) or config.quick_rows
    if not rows:
        raise RowproofError("rows must be named, since quick_rows of config/config.yaml is empty: rowproof list rows")
    return 0 if reproduce(root, root / "results", rows, args.cores, args.keep, print, args.retrain, args.retime) else 1


def _leaderboard(args: argparse.Namespace) -> int:
    from rowproof.boards import load_config
    from rowproof.evidence.leaderboard import main_table

    root = project_root()
    _, setups = load_config(root)
    for board in args.boards or setups:
        folder = root / "results" / board
        if board not in setups or not (folder / "leaderboard.json").is_file():
            raise RowproofError(
                f"{board}: must be a rendered board of this project ({', '.join(setups)}), found none: "
                f"build it with snakemake results/{board}"
            )
        if args.full:
            print(terminal((folder / "leaderboard.md").read_text(encoding="utf-8")))
            continue
        document = json.loads((folder / "leaderboard.json").read_bytes())
        print(f"{setups[board].board.title} ({board}, board digest {visible(document['board_digest'][:12])})")
        print(terminal(_aligned(main_table(document["rows"]))), end="\n\n")
    return 0


def _aligned(table: str) -> str:
    """A Markdown table as columns for a terminal."""
    lines = [[cell.strip(" *`") for cell in line.strip().strip("|").split("|")] for line in table.splitlines()]
    lines = [line for line in lines if not set("".join(line)) <= {"-"}]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def _list(args: argparse.Namespace) -> int:
    from rowproof.boards import load_config

    if args.what in LISTS:
        return LISTS[args.what](args)
    _, setups = load_config(project_root())
    for name, setup in setups.items():
        if args.what == "boards":
            print(name, setup.board.title, sep="\t")
        elif args.what == "rows":
            for row, entry in setup.board.rows.items():
                print(f"{name}/{row}", entry.policy, setup.board.tier, sep="\t")
        else:
            for member in setup.partner_set.members:
                evaluated = any(member.name in setup.plan.partners_of(row) for row in setup.board.rows)
                used = "evaluated" if evaluated else member.split
                seat = member.seat()["identity"]
                print(f"{setup.board.partner_set}/{member.name}", seat, used, member.role, sep="\t")
    return 0


def _generate(args: argparse.Namespace) -> int:
    if args.manifest is not None:
        return import_module("rowproof.gptnt.arguments").generate(args)
    from rowproof.generated import generated_files

    root = project_root()
    drift = [path for path, data in generated_files(root).items() if _read(root / path) != data]
    if args.check:
        for path in drift:
            print(f"{path} must equal what its sources generate: run rowproof generate")
        return 1 if drift else 0
    from rowproof.files import write_atomic

    for path in drift:
        write_atomic(root / path, generated_files(root)[path])
        print(f"wrote {path}")
    return 0


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, found {text!r}")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """The argument parser of all commands."""
    top = argparse.ArgumentParser(
        prog="rowproof", description="Leaderboard rows as file targets that carry their own proof."
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    sub = commands.add_parser(
        "verify",
        help="check bundles, admission archives, or all that lie below a folder",
        description=VERIFY,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    sub.add_argument("--json", action="store_true", help="the check tables as JSON")
    sub.add_argument("--quiet", action="store_true", help="show only what does not pass")
    sub.add_argument("--strict", action="store_true", help="let a check that cannot be decided here fail")
    sub.add_argument("--allow-dirty", action="store_true", help="let bundles from a modified checkout pass")
    sub.add_argument(
        "--project",
        type=Path,
        metavar="DIR",
        help="the project whose history judges (default: the checkout that this rowproof runs from)",
    )
    sub.add_argument("--signers", type=Path, metavar="FILE", help="allowed signers (ssh-keygen): who vouches for a row")
    sub.add_argument("--plans", type=Path, help="folder of published plans (found upwards of PATH by default)")
    sub.add_argument("--repo", type=Path, help="git repository with the tags of published plans")
    sub.add_argument(
        "--spot",
        type=_count,
        nargs="?",
        const=40,
        metavar="N",
        help="also run N drawn records again of rows whose engine is not replayed in full (40)",
    )
    sub.add_argument("--retrain-one", action="store_true", help="also train one drawn seed of each learned row again")
    sub.add_argument(
        "--beacon",
        metavar="TEXT",
        help="a text that the maker of a row could not know, to draw by (default: the commit that merged the row)",
    )
    sub.add_argument(
        "--added-since",
        metavar="COMMIT",
        help="look with --spot and --retrain-one only at records and trainings that are new since HEAD left COMMIT",
    )
    sub.add_argument("--cores", type=_count, default=_cores(), metavar="N", help="processes at once (all)")
    sub.set_defaults(run=_verify)

    sub = commands.add_parser("why", help="which rows are stale, through what, and what rebuilding costs")
    sub.add_argument("rows", nargs="*", metavar="ROW")
    sub.add_argument("--json", action="store_true")
    sub.set_defaults(run=_why)

    sub = commands.add_parser("lock", help="pin what the plans of boards take from other files, by digest")
    sub.add_argument("boards", nargs="*", metavar="BOARD", help="default: all boards")
    sub.set_defaults(run=_lock)

    sub = commands.add_parser(
        "attest",
        help="compare the code that made rows with that at hand on the same units, and attest where both agree",
    )
    sub.add_argument("rows", nargs="*", metavar="ROW", help="default: all rows whose code differs and nothing else")
    sub.add_argument("--check", action="store_true", help="run committed attestations again instead of making any")
    sub.add_argument("--stage", action="append", choices=("train", "select", "specs", "simulate", "time"))
    sub.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    sub.set_defaults(run=_attest)

    sub = commands.add_parser("reproduce", help="rebuild rows in a fresh place and compare them by tier")
    sub.add_argument("rows", nargs="*", metavar="ROW", help="default: quick_rows of config/config.yaml")
    sub.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    sub.add_argument("--keep", type=Path, metavar="DIR", help="leave the rebuilt rows in this empty folder")
    sub.add_argument(
        "--retrain",
        action="store_true",
        help="train learned rows again; by default their bundles' checkpoints are evaluated again",
    )
    sub.add_argument(
        "--retime",
        action="store_true",
        help="time timed rows again, with all rows of their boards; by default their bundles' times are taken",
    )
    sub.set_defaults(run=_reproduce)

    sub = commands.add_parser("leaderboard", help="print rendered boards")
    sub.add_argument("boards", nargs="*", metavar="BOARD")
    sub.add_argument("--full", action="store_true", help="the whole page in Markdown")
    sub.set_defaults(run=_leaderboard)

    sub = commands.add_parser("list", help="what the project defines")
    sub.add_argument("what", choices=("boards", "rows", "partners", *LISTS))
    sub.set_defaults(run=_list)

    sub = commands.add_parser(
        "generate", help="the specs of a gptnt run; without one, JSON schemas and the generated part of the README"
    )
    sub.add_argument("manifest", nargs="?", type=Path, metavar="RUN.yaml")
    sub.add_argument("--output-dir", type=Path, help="of specs, instead of output/experiment_specs")
    sub.add_argument("--check", action="store_true", help="only tell whether generated files are up to date")
    sub.set_defaults(run=_generate)
    outside.add_commands(commands, project_root, _cores())
    for module in COMMANDS:
        import_module(module).add_commands(commands)
    return top


def main(arguments: list[str] | None = None) -> int:
    """Run one command; errors that the user can mend become one message on standard error and an exit code."""
    args = parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A path or text that the terminal's encoding lacks must not end a report.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = args.run(args)
        print(end="", flush=True)
        return code
    except RowproofError as error:
        print(terminal(f"rowproof: {error}"), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        gone = isinstance(error, BrokenPipeError)
        if not gone:
            print(f"rowproof: {error.strerror or error}: {error.filename or 'output'}", file=sys.stderr)
        try:
            print(end="", flush=True)
        except OSError:
            # The reader (head, less) has gone or the disk is full; Python would complain again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1 if gone else 2


if __name__ == "__main__":
    sys.exit(main())
