"""A run waited for children that never ended; and nobody could tell by its exit code whether all games were played."""

import pytest
from rowproof import cli
from rowproof.gptnt import session

RUN = "spec_version: 2\nsuites: [multi-self-sync]\nrooms: 1\nplayers: [{player: scripted, count: 2}]\n"


@pytest.mark.parametrize("breaks", [False, True])
def test_the_exit_code_tells_whether_every_game_counts(project, monkeypatch, capsys, breaks):
    monkeypatch.setattr(cli, "project_root", lambda: project)
    (project / "config/runs/small.yaml").write_text(RUN)
    real, calls = session.play, []

    def play(*args):
        calls.append(args)
        if breaks and len(calls) == 4:
            raise RuntimeError("the room fell in")
        return real(*args)

    monkeypatch.setattr(session, "play", play)
    assert cli.main(["run", "runs/small.yaml"]) == int(breaks) and len(calls) == 10
    assert ("1 crashed, 9 solved; 0 left" if breaks else "10 solved; 0 left") in capsys.readouterr().out
    # What broke off is played by the next run, and nothing else.
    assert cli.main(["run", "runs/small.yaml"]) == 0 and len(calls) == 10 + breaks
