"""Games depend on nothing around them."""

import os
import subprocess
import sys

from gptnt.players.workbench import game
from helpers import ROOT
from rowproof.gptnt.bomb.published import multiple_module_n, single_module
from rowproof.records import digest


def games():
    """Digest of a few games, among them some of players that draw."""
    missions = [*[*single_module().values()][::25], multiple_module_n()["mission_spec2"]]
    played = [game(mission, style=style) for mission in missions for style in ("sync", "async")]
    played += [game(mission, names=("scripted-careless", "scripted-mishearing")) for mission in missions]
    return digest([[one.summary, one.records] for one in played])


def test_games_are_the_same_under_any_hash_seed_locale_and_zone(tmp_path):
    expected = games()
    for surroundings in (
        {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "Asia/Kolkata"},
        {"PYTHONHASHSEED": "77", "LC_ALL": "de_DE.UTF-8", "LANG": "tr_TR.UTF-8"},
    ):
        done = subprocess.run(
            [sys.executable, "-c", "from gptnt.room.test_surroundings import games; print(games())"],
            cwd=tmp_path,
            env=os.environ | surroundings | {"PYTHONPATH": f"{ROOT / 'workflow'}{os.pathsep}{ROOT / 'tests'}"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == expected
