# Tables and plot of one board, rendered only when each of its rows verifies.
for _board in LAUNCH.boards:

    rule:
        name:
            f"leaderboard_{rule_part(_board.board)}"
        input:
            state=_board.signal_path,
            recipe=ancient(_board.recipe_path),
            bundles=bundles_of(_board),
        output:
            report(
                board_files(_board),
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
                board_files(_board),
                [ROWS[f"{_board.board}/{_name}"].bundle for _name in _board.rows],
            localrule: True
