"""Trainings are bound to weights of their own."""

import json
import shutil

import numpy as np
import pytest
import safetensors.numpy
from helpers import ROOT
from rowproof.errors import RowproofError
from rowproof.evidence.checks import CheckTable
from rowproof.evidence.verify import verify_bundle
from rowproof.evidence.weights import check_distinct, content_digest, shared_weights


def training(seed, *uris, curve=0.0):
    checkpoints = [{"step": 10 * (i + 1), "uri": f"sha256:{uri * 64}"} for i, uri in enumerate(uris)]
    points = {"columns": ["frames", "reward"], "points": [[10, seed + curve]]}
    return {"training_seed": seed, "checkpoints": checkpoints, "curve": points}


def weights(value, **more):
    return safetensors.numpy.save({"a": np.full(3, value), **more})


def test_seeds_with_weights_of_their_own_are_fine():
    documents = {0: training(0, "a", "b"), 1: training(1, "c", "d")}
    assert shared_weights(documents, {0: weights(0.0), 1: weights(1.0)}) == []


def test_a_checkpoint_of_two_seeds_is_named():
    documents = {0: training(0, "a", "b"), 1: training(1, "c", "b")}
    (problem,) = shared_weights(documents, {0: weights(0.0), 1: weights(1.0)})
    assert problem.endswith("is that of seed 0 step 20 and seed 1 step 20")


def test_a_checkpoint_of_two_steps_is_named():
    """A training that learned nothing between them is none."""
    (problem,) = shared_weights({0: training(0, "a", "a")}, {0: weights(0.0)})
    assert "seed 0 step 10 and seed 0 step 20" in problem


def test_one_curve_of_two_seeds_is_named():
    documents = {0: training(0, "a", curve=1.0), 1: training(1, "b")}
    assert shared_weights(documents, {0: weights(0.0), 1: weights(1.0)}) == ["seeds [0, 1] have the same curve"]


def test_the_same_weights_in_another_wrapping_are_seen():
    wrapped = safetensors.numpy.save({"a": np.full(3, 0.0)}, metadata={"note": "another"})
    assert wrapped != weights(0.0) and content_digest(wrapped) == content_digest(weights(0.0))
    documents = {0: training(0, "a"), 1: training(1, "b")}
    assert shared_weights(documents, {0: weights(0.0), 1: wrapped}) == ["seeds [0, 1] play with the same weights"]


@pytest.mark.parametrize(
    "other",
    [{"a": np.full(3, 1.0)}, {"b": np.full(3, 0.0)}, {"a": np.full((3, 1), 0.0)}, {"a": np.full(3, 0.0, np.float32)}],
    ids=["values", "names", "shape", "type"],
)
def test_other_weights_have_another_digest(other):
    assert content_digest(safetensors.numpy.save(other)) != content_digest(weights(0.0))


def test_what_is_no_checkpoint_is_refused():
    with pytest.raises(RowproofError, match="must be a safetensors file"):
        content_digest(b"\x80\x04pickle")


def rows(tmp_path, *documents):
    for number, document in enumerate(documents):
        folder = tmp_path / "board" / f"row{number}"
        folder.mkdir(parents=True)
        (folder / f"training_seed{document['training_seed']}.json").write_text(json.dumps(document))
    table = CheckTable("results")
    check_distinct(table, tmp_path)
    return table.checks[0]


def test_rows_share_no_checkpoint(tmp_path):
    assert rows(tmp_path, training(0, "a"), training(0, "b")).verdict == "pass"


def test_a_checkpoint_of_another_row_is_named(tmp_path):
    check = rows(tmp_path, training(0, "a"), training(3, "a"))
    assert check.verdict == "fail"
    assert "is that of board/row0 seed 0 and board/row1 seed 3" in check.found and "build them again" in check.found


def test_a_link_is_not_followed(tmp_path):
    folder = tmp_path / "board/row"
    folder.mkdir(parents=True)
    (folder / "training_seed0.json").symlink_to(tmp_path / "else.json")
    table = CheckTable("results")
    check_distinct(table, tmp_path)
    assert table.checks[0].verdict == "fail"


def test_committed_rows_share_none():
    table = CheckTable("results")
    check_distinct(table, ROOT / "results")
    assert table.passed and table.checks[0].found != "0 checkpoints"


def test_the_validation_of_a_selected_checkpoint_is_run_again():
    table = verify_bundle(ROOT / "results/handover-v1/b-aht", ROOT)
    told = {check.id: check for check in table.checks if check.id.startswith("validation:")}
    assert len(told) == 5 and {check.verdict for check in told.values()} == {"pass"}


def test_a_validation_that_the_weights_do_not_play_is_refused(tmp_path):
    folder = shutil.copytree(ROOT / "results/handover-v1/b-aht", tmp_path / "b-aht")
    path = folder / "selection_seed0.json"
    document = json.loads(path.read_bytes())
    chosen = document["selected"]["uri"]
    episodes = next(each["episodes"] for each in document["candidates"] if each["uri"] == chosen)
    episodes[0]["force_peak"] += 0.5
    path.write_text(json.dumps(document, indent=2) + "\n")
    failed = {check.id: check.found for check in verify_bundle(folder, ROOT).failures}
    assert failed["validation:seed0"] == "1 of 200 episodes come out otherwise, first 0"
