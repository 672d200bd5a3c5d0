"""The look back counted as a step and a message, its errors as errors of the game, and it got the final state."""

from gptnt.players.workbench import Puppet
from gptnt.recordings.workbench import played
from rowproof.gptnt.database import build_db, connect, runs
from rowproof.gptnt.players.turns import Answer, do_nothing, send_message
from rowproof.gptnt.recordings import read_recording, write_game


def test_the_look_back_is_no_turn(tmp_path):
    clumsy = Answer(send_message("So be it."), errors=("reasoning_absent",))
    game = played(defuser=Puppet(lambda turn: do_nothing(), lambda task: clumsy))
    path = write_game(game, tmp_path)[0]
    build_db(tmp_path, tmp_path / "games.duckdb")
    with connect(tmp_path / "games.duckdb") as connection:
        (run,) = runs(connection)
    total = run["totals"]["defuser"]
    assert run["n_rounds"] == total["turns"] == total["do_nothings"] == total["input_tokens"] == 27
    assert (total["messages"], total["errors"]) == (0, {})
    assert (total["reflection"]["turns"], total["reflection"]["errors"]) == (1, {"reasoning_absent": 1})
    *_, last, look_back = read_recording(path).steps
    assert last["bomb_state"]["isDetonated"] and look_back["bomb_state"] is None
