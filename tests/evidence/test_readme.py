import shutil

import pytest
from bundles import make_project, make_row
from rowproof.boards import load_board
from rowproof.errors import RowproofError
from rowproof.evidence.leaderboard import main_table, render
from rowproof.evidence.readme import boards_block, update
from rowproof.evidence.rendered import board_key
from rowproof.layout import document_digest
from rowproof.records import decode, encode_document

BEGIN, END = "<!-- rowproof:begin boards -->", "<!-- rowproof:end boards -->"
TEXT = f"# Title  \r\n\n{BEGIN}\nold\n{END}\nafter, without a last newline"


def test_only_the_block_changes():
    new = update(TEXT, {"boards": "new\n"})
    assert new == f"# Title  \r\n\n{BEGIN}\nnew\n{END}\nafter, without a last newline"


def test_a_second_update_changes_nothing():
    once = update(TEXT, {"boards": "a\n\nb"})
    assert update(once, {"boards": "a\n\nb"}) == once


def test_an_empty_block_can_be_filled_and_emptied():
    empty = f"{BEGIN}\n{END}\n"
    assert update(update(empty, {"boards": "x\n"}), {"boards": ""}) == empty


def test_blocks_in_any_order_and_blocks_not_named():
    text = "".join(f"<!-- rowproof:begin {n} -->\n{n}\n<!-- rowproof:end {n} -->\n" for n in ("a", "b", "c"))
    assert update(text, {"c": "C\n", "a": "A\n"}) == text.replace("\na\n", "\nA\n").replace("\nc\n", "\nC\n")


def test_a_marker_inside_a_line_is_only_text():
    text = f"see `{BEGIN}` for more\n{TEXT}"
    assert update(text, {"boards": "old\n"}) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# Title\n", "block boards must have its markers, found none"),
        (f"{BEGIN}\nold\n", "must have an end marker"),
        (f"old\n{END}\n", "must follow its own begin marker"),
        (f"{END}\nold\n{BEGIN}\n", "must follow its own begin marker"),
        (f"{BEGIN}\nold\n<!-- rowproof:end other -->\n", "must follow its own begin marker"),
        (f"{BEGIN}\n{BEGIN}\nold\n{END}\n", "must end before boards begins"),
        (f"{TEXT}\n{BEGIN}\n{END}\n", "must occur once"),
        (f"{TEXT}\n{END}\n", "must occur once"),
        (f"{BEGIN}\n<!-- rowproof:begin other -->\n{END}\n<!-- rowproof:end other -->\n", "must end before other"),
    ],
)
def test_markers_that_are_missing_doubled_or_out_of_order_are_refused(text, message):
    with pytest.raises(RowproofError, match=message):
        update(text, {"boards": "new\n"})


def test_content_with_a_marker_line_is_refused():
    with pytest.raises(RowproofError, match="must hold no marker line"):
        update(TEXT, {"boards": f"x\n{END}\n"})


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    root = make_project(tmp_path_factory.mktemp("project"), boards=("handover-v1", "push-v1"))
    setup = load_board(root, "push-v1")
    board = setup.board.model_dump(by_alias=True)
    for row in board["rows"]:
        make_row(root, root / "results", "push-v1", row)
    for name, data in render(board, root / "results/push-v1", root, board_key(setup, root)).items():
        (root / "results/push-v1" / name).write_bytes(data)
    return root


@pytest.fixture
def root(rendered, tmp_path):
    """A project with one rendered board of two, for this test to break."""
    return shutil.copytree(rendered, tmp_path / "project")


def test_a_forged_page_that_fits_its_digests_does_not_reach_the_readme(root):
    path = root / "results/push-v1/leaderboard.json"
    document = decode(path.read_bytes(), path.name)
    document["rows"][0]["summary"]["success_rate"] = 0.999
    path.write_bytes(encode_document({**document, "digest": document_digest(document)}))
    with pytest.raises(RowproofError, match="must be what its rows render to"):
        boards_block(root)


def test_the_boards_block_shows_every_board_in_the_order_of_the_configuration(root):
    block = boards_block(root)
    data = (root / "results/push-v1/leaderboard.json").read_bytes()
    assert main_table(decode(data, "leaderboard.json")["rows"]) in block
    headings = [line for line in block.splitlines() if line.startswith("### ")]
    assert [heading.rpartition("(")[2] for heading in headings] == ["`handover-v1`)", "`push-v1`)"]


def test_the_boards_block_says_so_where_nothing_is_rendered(root):
    assert "Not rendered yet: `snakemake results/handover-v1`" in boards_block(root)


def test_the_table_of_the_block_is_the_one_of_the_page(root):
    page = (root / "results/push-v1/leaderboard.md").read_text()
    block = boards_block(root)
    table = [line for line in block.splitlines() if line.startswith("|")]
    assert len(table) == 5
    assert "\n".join(table) in page


def test_an_edited_leaderboard_is_refused(root):
    path = root / "results/push-v1/leaderboard.json"
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"success_rate": 0.', b'"success_rate": 1.', 1))
    assert path.read_bytes() != data
    with pytest.raises(RowproofError, match="must be as it was rendered, found it edited"):
        boards_block(root)


def test_the_leaderboard_of_another_board_is_refused(root):
    shutil.copytree(root / "results/push-v1", root / "results/handover-v1")
    with pytest.raises(RowproofError, match=r"results/handover-v1/leaderboard\.json: must be a .* of this board"):
        boards_block(root)
