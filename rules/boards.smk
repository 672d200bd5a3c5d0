# Tables and plot of one board, rendered only when each of its rows verifies.
for _board in (board for board in LAUNCH.boards if is_called_for(board.board)):

    rule:
        name:
            f"leaderboard_{rule_part(_board.board)}"
        input:
            state=_board.signal_path,
            recipe=ancient(_board.recipe_path),
            bundles=later(bundles_of, _board),
        output:
            # Not removed before the job, and put back as it was when the job fails.
            report(
                update(board_files(_board)),
                category="Boards",
                subcategory=_board.board,
                caption="../workflow/report/leaderboard.rst",
            ),
        log:
            f"logs/leaderboard/{_board.board}.log",
        localrule: True
        conda:
            "../envs/rowproof.yaml"
        threads: 1
        resources:
            mem_mb=1000,
            runtime=10,
        script:
            "../workflow/scripts/leaderboard.py"

    for _slash in ("", "/"):

        rule:
            name:
                f"results/{_board.board}{_slash}"
            input:
                later(board_and_bundles, _board),
            localrule: True
