"""Every turn of a defuser left a file of its observation behind, and nobody removed them."""

import tempfile

from gptnt.llm.workbench import FLIP, config, tagged
from gptnt.players.workbench import Puppet
from gptnt.recordings.workbench import played
from rowproof.gptnt.llm.player import LLMPlayer
from rowproof.gptnt.recordings import write_game
from rowproof.llm.calls import Reply


class Model:
    def ask(self, request):
        return Reply(tagged(FLIP))


def test_a_game_with_pictures_leaves_its_records_alone(tmp_path, monkeypatch):
    for name in ("work", "tmp", "records"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    game = played(defuser=LLMPlayer(config(), lambda stream: Model(), sees="images"), expert=Puppet())
    assert len(game.records["defuser"]["steps"]) > 10
    written = write_game(game, tmp_path / "records")
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(written)
