"""Render one board from its rows, each of which must verify first."""

from pathlib import Path

from rowproof.evidence.leaderboard import render
from rowproof.files import write_atomic
from rowproof.jobs import job

with job(snakemake, "workflow/scripts/leaderboard.py") as current:
    board = current.recipe["board"]
    folder = Path("results") / board["board"]
    rules, absent = current.recipe["admission"], current.recipe["not_shown"]
    for name, data in render(board, folder, current.root, current.key, rules, absent).items():
        write_atomic(folder / name, data)
