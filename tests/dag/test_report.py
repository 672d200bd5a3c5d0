"""snakemake's HTML report of the boards, with and without snakemake's memory of the build."""

import pytest
from checkouts import BOARDS

# No way out of the machine: the report must not need one.
OFFLINE = {f"{scheme}_proxy": "http://127.0.0.1:9" for scheme in ("http", "https", "all")}


@pytest.mark.slow
@pytest.mark.parametrize("state", ["fresh", pytest.param("worked", marks=pytest.mark.slow)])
def test_report_shows_every_board(request, state):
    checkout = request.getfixturevalue(state)
    run = checkout.snakemake("--report", "report.html", env=OFFLINE).ok()
    assert "Traceback" not in run.output
    report = (checkout.root / "report.html").read_text()
    for board in BOARDS:
        assert board in report
        assert f"results/{board}/leaderboard.svg" in report
    assert checkout.changed() == set()
