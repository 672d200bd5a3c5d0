# Every function of the workflow, and what it knows of boards and rows. No rules here.
import gc
import os
import re
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

# The graph of a large plan is millions of objects that live to the end: looking for garbage among them finds none.
gc.set_threshold(200_000, 50, 1000)

ROOT = Path(workflow.basedir).resolve()
sys.path.insert(0, str(ROOT / "workflow"))

from rowproof import recipes
from rowproof.determinism import pin_environment
from rowproof.errors import RowproofError
from rowproof.launches import LATENCY_VARIABLE, LAUNCH_VARIABLE
from rowproof.line_ends import require_unconverted


def load_launch():
    """Read the boards once per launch; job processes get the same answer from a file."""
    stored = os.environ.get(LAUNCH_VARIABLE)
    try:
        if stored and not workflow.is_main_process:
            return recipes.read_launch(Path(stored))
        if workflow.is_main_process:
            require_unconverted(ROOT)
        launch = recipes.prepare(ROOT, Path.cwd(), touch=workflow.is_main_process)
        if workflow.is_main_process:
            os.environ[LAUNCH_VARIABLE] = str(recipes.write_launch(launch, Path.cwd()))
    except RowproofError as error:
        raise WorkflowError(str(error)) from None
    except OSError as error:
        raise WorkflowError(
            f"{error.filename or 'a file'}: must be a file that can be read and written, found: {error.strerror}. "
            "Make room or give the right to it, and start snakemake again"
        ) from None
    if workflow.is_main_process:
        for row in launch.rows:
            for reason in row.reasons:
                logger.info(f"{row.name} is {row.state}: {reason}")
        for board in launch.boards:
            if board.reason:
                logger.info(f"board {board.board} is stale: {board.reason}")
    return launch


pin_environment(ROOT / "workflow")
LAUNCH = load_launch()
ROWS = {row.name: row for row in LAUNCH.rows}
BOARDS = {board.board: board for board in LAUNCH.boards}


# Jobs of a cluster inherit it, as they inherit where the launch is written.
onstart:
    os.environ[LATENCY_VARIABLE] = str(workflow.execution_settings.latency_wait)


def is_called_for(name):
    """Whether this process can need the rules of one row or board: a job process is told the rules that it may run."""
    stages = [f"{stage}_{rule_part(name)}" for stage in ("assemble", "leaderboard")]
    own = {*stages, f"results/{name}", f"results/{name}/"}
    return workflow.is_main_process or not own.isdisjoint(sys.argv)


def later(files, *arguments):
    """Input function: ``files(*arguments)``, asked for only where the rule is in the plan."""
    return lambda wildcards: files(*arguments)


def row_of(wildcards):
    """The row that a job of a stage belongs to."""
    return ROWS[f"{wildcards.board}/{wildcards.row}"]


def recipe_of(stage):
    """Input function: the recipe file of a stage. It is named by its digest, so its time stamp says nothing."""
    return lambda wildcards: ancient(row_of(wildcards).recipe_path(stage))


def product_of(stage, file):
    """Input function: a product of an earlier stage; likewise named by its recipe's digest."""
    return lambda wildcards: ancient(row_of(wildcards).product(stage, file))


def trainings_of(wildcards):
    """Input function: the document of one training, which names its checkpoints."""
    return ancient(row_of(wildcards).product("train", f"seed{wildcards.seed}.json"))


def selections_of(wildcards):
    """Input function: which checkpoints play the seeds of a shard; none for policies that are not learned."""
    return ancient(row_of(wildcards).selections(shard_of(wildcards).seeds))


def checkpoints_of(wildcards):
    """Input function: these checkpoints, in the same order."""
    return ancient(row_of(wildcards).checkpoints(shard_of(wildcards).seeds))


def timed_row(wildcards):
    """A row whose times are those of a timing job."""
    board = (ROWS[f"{wildcards.board}/{name}"] for name in BOARDS[wildcards.board].rows)
    return next(
        row
        for row in board
        if f"time-{wildcards.key}/" in row.product("time", "timing.json")
    )


def timed_rows(wildcards):
    """The rows that are timed in turns with one another: those of one campaign of a board."""
    names = BOARDS[wildcards.board].campaigns[str(timed_row(wildcards).campaign)]
    return [ROWS[f"{wildcards.board}/{name}"] for name in names]


def timing_recipe_of(wildcards):
    """Input function: the recipe of what a clock shows, of which every row of the campaign has a copy."""
    return ancient(timed_row(wildcards).recipe_path("time"))


def timed_records_of(wildcards):
    """Input function: the records of all rows of a campaign; named by their recipes' digests, so time stamps say nothing.

    Once measured, times rest on no file, so records that only they would need are not made for them.
    """
    rows = timed_rows(wildcards)
    if Path(timed_row(wildcards).product("time", "timing.json")).exists():
        return []
    return ancient([file for row in rows for file in row.products("simulate")])


def timed_rows_of(wildcards):
    """The row of each of these files."""
    return [row.row for row in timed_rows(wildcards) for _ in row.products("simulate")]


def all_cores():
    """As many threads as this run of Snakemake has; on a cluster the job has a node to itself instead."""
    try:
        return workflow.cores or 1
    except WorkflowError:
        # A plan or a report needs no cores, and nothing runs then.
        return 1


def rule_part(name):
    """A board or row as part of a rule's name; distinct ones stay distinct."""
    return re.sub(r"\W", lambda found: "_" if found[0] == "-" else "__", name)


def shard_of(wildcards):
    """The shard that a simulate job runs."""
    return row_of(wildcards).shards[wildcards.shard]


def shard_files(row):
    """The record files of all shards of a row; named by their recipe's digest, so time stamps say nothing."""
    return ancient(row.products("simulate"))


def board_files(board):
    """The rendered files of a board."""
    return [f"results/{board.board}/{name}" for name in board.files]


def bundles_of(board):
    """The bundles of a board's rows. Those to be rebuilt must be plain inputs: ancient ones would not pass it on."""
    own = [f"{board.board}/{name}" for name in board.rows]
    rows = [ROWS[name] for name in [*own, *board.foreign_rows]]
    return [
        file
        for row in rows
        for file in (ancient(row.bundle) if row.state == "current" else row.bundle)
    ]


def bundle_of(row):
    """The bundle of a row."""
    return row.bundle


def board_and_bundles(board):
    """The rendered files of a board and the bundles of its own rows."""
    rows = [ROWS[f"{board.board}/{name}"] for name in board.rows]
    return [*board_files(board), *(file for row in rows for file in row.bundle)]


def all_boards():
    """The rendered files of all boards and the bundles of all rows."""
    rows = [file for row in LAUNCH.rows for file in row.bundle]
    return rows + [file for board in LAUNCH.boards for file in board_files(board)]


wildcard_constraints:
    board="|".join(sorted(BOARDS)),
    row="|".join(sorted({row.row for row in LAUNCH.rows})),
    key="[0-9a-f]{16}(-dirty)?",
    shard="[a-z0-9_-]+",
    seed="[0-9]+",


def rooms_wanted(wildcards):
    """How many rooms a run wants; imported here, as every job of every board reads the rules."""
    from rowproof.gptnt.commands import rooms_of

    return rooms_of(wildcards.run)
