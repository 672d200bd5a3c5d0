import csv
import io

import pytest
from pydantic import TypeAdapter, ValidationError
from rowproof.plain_text import MAX_LINE, PlainLine, csv_value, markdown, markdown_cell, terminal, visible

LINE = TypeAdapter(PlainLine)


def test_a_block_scalar_loses_its_final_newline():
    assert LINE.validate_python("one line – with ü\n") == "one line – with ü"


@pytest.mark.parametrize(
    "text",
    ["a\nb", "a\tb", "a\x1b[2Jb", "a\u202eb", "a\u200bb", "a\u2028b", "a\u00adb", "u\u0308", "a\x9bb", "a\ufe0fb"],
)
def test_text_that_is_not_what_it_looks_like_is_refused(text):
    with pytest.raises(ValidationError):
        LINE.validate_python(text)


def test_a_line_is_bounded():
    with pytest.raises(ValidationError):
        LINE.validate_python("a" * (MAX_LINE + 1))


@pytest.mark.parametrize("text", ["<img src=x>", "a | b", "[x](y)", "`c`", "**b**", "_b_", "# h", "- i", "1. i"])
def test_markdown_keeps_words_words(text):
    assert markdown(text) != text and markdown(text).replace("\\", "") == text


def test_a_new_line_and_a_pipe_cannot_leave_a_cell():
    assert markdown_cell("x |\n| y <b>") == "x \\|\\n\\| y \\<b>"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@a", " =1", "＝1"])
def test_a_spreadsheet_computes_nothing(text):
    out = io.StringIO()
    csv.writer(out).writerow([csv_value(text)])
    assert out.getvalue().lstrip('"').startswith("'")


def test_a_terminal_gets_no_orders():
    assert terminal("a\n\x1b[2J\u202e\x9b") == "a\n\\x1b[2J\\u202e\\x9b" and visible("a\nb") == "a\\nb"
