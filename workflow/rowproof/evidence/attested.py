"""Checks of attestations of equivalence, as far as they can be checked without running anything."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rowproof.equivalence import FOLDER, draw_of, drawn_units, read_attestation
from rowproof.errors import HistoryGap, RowproofError
from rowproof.history import committed_file, require_ancestor
from rowproof.restated import tree_at
from rowproof.stages import FORM


def attestation_problems(name: str, root: Path, row: str, stage: str, count: int | None) -> list[str]:
    """What is wrong with an attestation of one stage of the row ``<board>/<row>``.

    Args:
        name: of the file below ``config/equivalences/``.
        root: the project.
        row: the row.
        stage: the stage.
        count: how many records must have been compared (:func:`~rowproof.equivalence.how_many`).

    Raises:
        HistoryGap: a commit is not in this clone.
        RowproofError: the file is missing, malformed or edited.
    """
    path = f"{FOLDER}/{name}"
    data = (root / path).read_bytes()
    document = read_attestation(data, path)
    board, _, own = row.rpartition("/")
    problems = []
    if committed_file(root, "HEAD", path) != data:
        problems.append("it is not committed as it is")
    entry = document["rows"].get(own)
    if document["board"] != board or document["stage"] != stage or entry is None:
        return [*problems, f"it says nothing of stage {stage} of {row}"]
    for side in ("before", "after"):
        problems += _side_problems(side, entry[side], root)
    draw = draw_of(stage, row, entry["before"]["code"], entry["after"]["code"])
    if entry["draw"] != draw:
        problems.append("its draw does not follow from both codes")
    return problems + _unit_problems(stage, entry["units"], draw, count)


def _side_problems(side: str, stated: Mapping[str, Any], root: Path) -> list[str]:
    commit, code, places = stated["commit"], stated["code"], stated["places"]
    if code["form"] != FORM:
        return [f"{side}: its key has the form {code['form']}, and today's is {FORM}"]
    require_ancestor(root, commit)
    producer = [places["producer"]] if "producer" in places else []
    try:
        reached = tree_at(root, commit).closure(
            (places["script"], *places.get("programs", ())), (*producer, *places.get("modules", ()))
        )
    except (KeyError, TypeError):
        return [f"{side}: it does not say where the code lay"]
    return [] if reached.key == code["key"] else [f"{side}: the code at {commit} has another key"]


def _unit_problems(stage: str, units: Mapping[str, Any], draw: str, count: int | None) -> list[str]:
    drawn, of = units["drawn"], units["of"]
    if stage == "train":
        drawn_right = drawn == drawn_units(draw, of, 1)
        return [] if drawn_right else ["the training that was run whole is not the one that is drawn from both codes"]
    if stage != "simulate":
        return [] if drawn is None else ["all units must be compared"]
    if count is None or of <= count:
        return [] if drawn is None else ["all episodes must be compared"]
    wanted = drawn_units(draw, of, count)
    return [] if drawn == wanted else ["its episodes are not those that are drawn from both codes"]


def chain_problems(chain: tuple[str, ...], root: Path, row: str, stage: str, count: int | None) -> list[str]:
    """:func:`attestation_problems` of every link, each with the name of its file."""
    problems = []
    for name in chain:
        try:
            problems += [f"{name}: {each}" for each in attestation_problems(name, root, row, stage, count)]
        except HistoryGap:
            raise
        except (RowproofError, OSError) as error:
            problems.append(f"{name}: {error}")
    return problems
