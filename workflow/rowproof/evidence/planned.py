"""Whether boards hold what was preregistered: no row and no board leaves without a word."""

from pathlib import Path
from typing import Any

from rowproof import git
from rowproof.boards import Board, BoardSetup, Plan
from rowproof.errors import HistoryGap, RowproofError
from rowproof.evidence.checks import CheckTable
from rowproof.strict_yaml import parse, validate


def not_shown(plan: Plan, board: Board) -> dict[str, str | None]:
    """Rows of the plan that the board does not list -> why they were withdrawn; None where nothing is said."""
    return {name: row.withdrawn for name, row in plan.rows.items() if name not in board.rows}


def check_rows(table: CheckTable, setup: BoardSetup) -> None:
    """Check that the board lists every row that any committed version of its plan had, but for withdrawn ones."""
    must = "the board shows every preregistered row but those that its plan withdraws with a reason"
    with table.guard("board:plan", must):
        plan, board = setup.plan, setup.board
        missing = [name for name, reason in not_shown(plan, board).items() if reason is None]
        problems = [f"{name} is in {setup.plan_path} and not on the board" for name in missing]
        versions, gap = _committed_rows(setup.root, setup.plan_path)
        gone = sorted(set().union(*versions) - set(plan.rows)) if versions else []
        problems += [f"{name} was committed in {setup.plan_path} and is gone from it" for name in gone]
        way_out = "build and list it, or say `withdrawn: REASON` at the row in the plan"
        holds = False if problems else None if gap else True
        told = gap or f"{len(board.rows)} rows, {len(plan.rows) - len(board.rows)} withdrawn"
        table.add("board:plan", holds, must, f"{'; '.join(problems)}: {way_out}" if problems else told)


def _committed_rows(root: Path, path: str) -> tuple[list[set[str]], str | None]:
    """The rows of every version of a plan in the history of HEAD, and what of it is not here."""
    if git.run(root, "rev-parse", "--is-shallow-repository") != b"false\n":
        return [], "whether the plan once had other rows cannot be told without the full history: fetch it"
    out = git.run(root, "log", "--format=%H", "--end-of-options", "HEAD", "--", path)
    if out is None:
        raise HistoryGap("the history of the plan is not in this clone: fetch it")
    versions, seen = [], set()
    for commit in out.decode().split():
        blob = git.blob_at(root, commit, path)
        if blob is None or blob in seen:
            continue
        seen.add(blob)
        data = git.blob(root, blob)
        if data is None:
            return versions, f"version {blob[:12]} of the plan is not in this clone: fetch the full history"
        try:
            found: Any = parse(data, path).data
            versions.append(set(found["rows"]) if found.get("board") else set())
        except (RowproofError, KeyError, TypeError, AttributeError):
            # A version that no reader of plans could read bound no row.
            continue
    return versions, None


def check_boards(results: Path, root: Path) -> CheckTable:
    """Check that the folder ``results`` holds the rendered page of every board of the project, and nothing else."""
    table = CheckTable(str(results))
    boards = root / "config" / "boards"
    must = "results holds a rendered board for every board of the project, and for every committed plan"
    with table.guard("results:boards", must):
        known = {path.relative_to(boards).with_suffix("").as_posix() for path in boards.rglob("*.yaml")}
        # Also of a board whose definition was removed: its plan is committed.
        listed = git.run(root, "ls-tree", "-r", "-z", "--name-only", "HEAD", "--", "config/plans") or b""
        planned = set()
        for path in listed.decode("utf-8", "surrogateescape").split("\0"):
            if path.endswith(".yaml"):
                plan = validate(parse(git.file_at(root, "HEAD", path) or b"", path), Plan)
                planned.add(plan.board)
        missing = sorted(n for n in known | planned if not (results / n / "leaderboard.json").is_file())
        folders = {part for name in known | planned for part in (name, name.rpartition("/")[0]) if part}
        tops = [*results.iterdir(), *(p for n in folders if "/" in n for p in (results / n).parent.glob("*"))]
        strays = sorted({p.relative_to(results).as_posix() for p in tops} - folders)
        found = [f"no rendered board in {results / name}: snakemake results/{name}" for name in missing[:10]]
        found += [f"{name} is no board of the project: move it away" for name in strays[:10]]
        count = len(missing) + len(strays)
        table.add("results:boards", not count, must, f"{count} problems: {'; '.join(found)}" if count else "all")
    return table
