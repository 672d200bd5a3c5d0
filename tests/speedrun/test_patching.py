import ast

import pytest
from hypothesis import assume, given
from hypothesis import strategies as some
from rowproof.errors import RowproofError
from rowproof.speedrun import patching
from rowproof.speedrun.extraction import extract
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.patching import apply_patch, canonical_diff

NAME = "train_gpt.py"
HEADER = f"--- a/{NAME}\n+++ b/{NAME}\n"
# 34 lines; line 9 and line 27 are alike, and line 33 begins with two dashes.
LINES = [f"x{i} = {i}" for i in range(1, 35)]
LINES[8] = LINES[26] = "repeated = 0"
LINES[12] = "y = 1  # spaced"
LINES[31:33] = ['sql = """', '-- a comment"""']
SOURCE = "\n".join(LINES) + "\n"


def patched(*changes):
    """The script with lines (numbered from 1) replaced; None removes one, and a list stands for several."""
    lines = list(LINES)
    for number, new in sorted(changes, reverse=True):
        lines[number - 1 : number] = [] if new is None else new if isinstance(new, list) else [new]
    return "\n".join(lines) + "\n"


def submit(text, mode="exact", source=SOURCE):
    """From an answer to the result, as an attempt goes."""
    extracted = extract([{"role": "assistant", "content": text}])
    assert extracted.failure is None, extracted.detail
    return apply_patch(source, extracted.patch, NAME, mode)


def result(text, *flags, mode="exact", source=SOURCE):
    done = submit(text, mode, source)
    assert done.failure is None, (done.failure, done.detail)
    assert done.flags == flags
    return done.patched


def failure(text, mode="exact", source=SOURCE):
    done = submit(text, mode, source)
    assert (done.patched, done.patched_sha256, done.diff) == (None, None, "") and done.detail
    return done.failure


ONE = HEADER + "@@ ... @@\n x4 = 4\n-x5 = 5\n+x5 = 50\n x6 = 6"
SECOND = "@@ ... @@\n x19 = 19\n-x20 = 20\n+x20 = 200\n x21 = 21\n"
TWO = ONE + "\n" + SECOND
BOTH = patched((5, "x5 = 50"), (20, "x20 = 200"))

# --- The measured rows of the published procedure, with what is demanded of ours --------------------------------------


@pytest.mark.parametrize("end", ["", "\n"])
def test_one_replacement_applies_with_and_without_a_final_newline(end):
    assert result(ONE + end) == patched((5, "x5 = 50"))


def test_two_hunks_with_a_final_newline_apply():
    assert result(TWO) == BOTH


def test_two_hunks_in_reversed_order_apply():
    assert result(HEADER + SECOND + ONE.removeprefix(HEADER)) == BOTH


def test_an_insertion_without_context_needs_a_real_line_number():
    assert failure(HEADER + "@@ ... @@\n+z = 0\n") is Outcome.UNANCHORED_INSERT
    assert failure(HEADER + "@@ -1,1 +1,2 @@\n+z = 0\n") is Outcome.UNANCHORED_INSERT
    assert result(HEADER + "@@ -20,0 +21 @@\n+z = 0\n") == patched((20, ["x20 = 20", "z = 0"]))
    assert result(HEADER + "@@ -0,0 +1 @@\n+z = 0\n") == "z = 0\n" + SOURCE
    assert result(HEADER + "@@ -34,0 +35 @@\n+z = 0\n") == SOURCE + "z = 0\n"
    assert failure(HEADER + "@@ -35,0 +36 @@\n+z = 0\n") is Outcome.HUNK_NOT_FOUND


@pytest.mark.parametrize("end", ["", "\n"])
def test_an_insertion_after_a_context_line_lands_there(end):
    assert result(HEADER + "@@ ... @@\n x20 = 20\n+z = 0" + end) == patched((20, ["x20 = 20", "z = 0"]))


REPEATED = "\n-repeated = 0\n+repeated = 1\n"


def test_a_line_that_occurs_twice_is_ambiguous():
    assert failure(HEADER + "@@ ... @@" + REPEATED) is Outcome.AMBIGUOUS_HUNK


def test_a_real_line_number_decides_between_equal_places():
    assert result(HEADER + "@@ -25 +25 @@" + REPEATED, "located_by_hint") == patched((27, "repeated = 1"))
    assert result(HEADER + "@@ -9 +9 @@" + REPEATED, "located_by_hint") == patched((9, "repeated = 1"))
    assert failure(HEADER + "@@ -18 +18 @@" + REPEATED) is Outcome.AMBIGUOUS_HUNK, "as far from one as from the other"


def test_a_line_number_is_not_needed_where_one_place_fits():
    assert result(HEADER + "@@ -30 +30 @@\n-x5 = 5\n+x5 = 50\n") == patched((5, "x5 = 50"))


def test_one_impossible_hunk_fails_all():
    done = submit(TWO.replace("-x20 = 20", "-x20 = 21"))
    assert (done.failure, done.patched) == (Outcome.HUNK_NOT_FOUND, None)
    assert "hunk 2" in done.detail


def test_a_markdown_fence_is_no_obstacle():
    assert result("```diff\n" + ONE + "\n```\n") == patched((5, "x5 = 50"))


def test_the_marker_of_a_missing_newline_is_ignored():
    assert result(ONE + "\n\\ No newline at end of file\n") == patched((5, "x5 = 50"))
    inner = HEADER + "@@ ... @@\n-x34 = 34\n\\ No newline at end of file\n+x34 = 0\n\\ No newline at end of file\n"
    assert result(inner) == patched((34, "x34 = 0"))


@pytest.mark.parametrize("head", ["@@ ... @@", "@@ -31,3 +31,3 @@"])
def test_a_removed_line_of_dashes_is_no_file_name(head):
    patch = HEADER + head + '\n x31 = 31\n sql = """\n--- a comment"""\n+-- another"""\n'
    assert result(patch) == patched((33, '-- another"""'))


def test_real_counts_tell_lines_of_dashes_and_pluses_from_file_names():
    source = "a = 1\ns = '''\n-- old\n'''\n"
    patch = HEADER + "@@ -2,3 +2,3 @@\n s = '''\n--- old\n+++ new\n '''\n"
    assert result(patch, source=source) == source.replace("-- old", "++ new")
    assert failure(patch.replace("-2,3 +2,3", "..."), source=source) is Outcome.PATCH_WRONG_FILE


def test_white_space_inside_a_line_counts():
    assert failure(HEADER + "@@ ... @@\n-x5  = 5\n+x5 = 50\n") is Outcome.HUNK_NOT_FOUND


@pytest.mark.parametrize(
    "name", ["b/other.py", "train_gpt_temp.py", "a/b/train_gpt.py", "../train_gpt.py", "/train_gpt.py"]
)
@pytest.mark.parametrize("side", ["--- a/", "+++ b/"])
def test_another_file_is_refused(name, side):
    assert failure(ONE.replace(side + NAME, side[:4] + name)) is Outcome.PATCH_WRONG_FILE


@pytest.mark.parametrize(
    "patch",
    [
        "--- /dev/null\n+++ b/sitecustomize.py\n@@ -0,0 +1 @@\n+import os\n",
        TWO + "--- /dev/null\n+++ b/sitecustomize.py\n@@ -0,0 +1 @@\n+import os\n",
        "--- a/train_gpt.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x1 = 1\n",
        f"diff --git a/{NAME} b/other.py\nsimilarity index 90%\nrename from {NAME}\nrename to other.py\n" + ONE,
        f"diff --git a/{NAME} b/{NAME}\nrename from {NAME}\n" + ONE,
        f"diff --git a/{NAME} b/{NAME}\nold mode 100644\nnew mode 100755\n" + ONE,
        f"diff --git a/{NAME} b/{NAME}\nnew file mode 100644\nindex 000..123\n" + ONE,
        f"diff --git a/{NAME} b/{NAME}\ndeleted file mode 100644\n" + ONE,
        f"diff --git a/{NAME} b/{NAME}\nindex 1234..5678 100644\nGIT binary patch\nliteral 3\nKcmZ\n",
        f"diff --git a/{NAME} b/{NAME}\nBinary files a/{NAME} and b/{NAME} differ\n",
    ],
)
def test_creation_deletion_renaming_modes_and_binaries_are_refused(patch):
    assert failure(patch) is Outcome.PATCH_WRONG_FILE


# --- Headers and lines ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    [
        "--- train_gpt.py\n+++ train_gpt.py\n",
        "--- b/train_gpt.py\n+++ a/train_gpt.py\n",
        "--- a/train_gpt.py\t2025-09-01 12:00:00\n+++ b/train_gpt.py\t2025-09-01\n",
        f"diff --git a/{NAME} b/{NAME}\nindex 0123abc..4567def 100644\n{HEADER}",
    ],
)
def test_usual_headers_are_understood(header):
    assert result(header + ONE.removeprefix(HEADER)) == patched((5, "x5 = 50"))


def test_the_file_may_be_named_again():
    assert result(ONE + "\n" + HEADER + SECOND) == BOTH


@pytest.mark.parametrize("head", ["@@", "@@ ... @@", "@@ -x +y @@", "@@ -1,99 +1,99 @@", "@@ -4,3 +4,3 @@ def f():"])
def test_counts_and_numbers_of_a_hunk_may_be_wrong(head):
    assert result(ONE.replace("@@ ... @@", head)) == patched((5, "x5 = 50"))


def test_a_hunk_without_file_names_is_no_patch():
    assert apply_patch(SOURCE, ONE.removeprefix(HEADER) + "\n", NAME).failure is Outcome.PARSE_FAILED


@pytest.mark.parametrize("line", ["Done.", "```", "# note"])
def test_other_lines_are_a_parse_failure(line):
    assert failure(TWO + line + "\n") is Outcome.PARSE_FAILED
    assert failure(HEADER + line + "\n" + ONE.removeprefix(HEADER)) is Outcome.PARSE_FAILED


GAPPED = "a = 1\n\nb = 2\n\nc = 3\n"


def test_an_empty_line_is_an_empty_line_of_context():
    assert result(HEADER + "@@ ... @@\n a = 1\n\n-b = 2\n+b = 3\n", source=GAPPED) == GAPPED.replace("2", "3")
    assert result(HEADER + "@@ -1,3 +1,3 @@\n a = 1\n\n-b = 2\n+b = 3\n", source=GAPPED) == GAPPED.replace("2", "3")
    # Its counts are too small, and yet the hunk goes on.
    assert result(HEADER + "@@ -1,1 +1,1 @@\n a = 1\n\n-b = 2\n+b = 3\n", source=GAPPED) == GAPPED.replace("2", "3")


def test_blank_lines_after_a_counted_hunk_part_it_from_the_next():
    patch = HEADER + "@@ -5,1 +5,1 @@\n-x5 = 5\n+x5 = 50\n\n\n@@ -20,1 +20,1 @@\n-x20 = 20\n+x20 = 200\n"
    assert result(patch) == BOTH


def test_trailing_white_space_is_relaxed_and_context_stays_as_it_is():
    source = "a = 1   \nb = 2\nc = 3\t\n"
    patch = HEADER + "@@ ... @@\n a = 1\n-b = 2 \n+b = 20\n c = 3\n"
    assert result(patch, "whitespace_relaxed", source=source) == "a = 1   \nb = 20\nc = 3\t\n"
    twice = source + source
    assert failure(patch, source=twice) is Outcome.AMBIGUOUS_HUNK


def test_an_exact_place_wins_over_a_relaxed_one():
    source = "a = 1 \nb = 2\na = 1\nb = 3\n"
    assert result(HEADER + "@@ ... @@\n-a = 1\n+a = 9\n", source=source) == "a = 1 \nb = 2\na = 9\nb = 3\n"


def test_hunks_that_overlap_are_refused():
    other = "@@ ... @@\n x6 = 6\n-x7 = 7\n+x7 = 70\n"
    assert failure(ONE + "\n" + other) is Outcome.AMBIGUOUS_HUNK
    assert failure(HEADER + "@@ -3,0 +4 @@\n+z = 0\n@@ -3,0 +4 @@\n+w = 0\n") is Outcome.AMBIGUOUS_HUNK
    assert failure(ONE + "\n@@ -5,0 +5 @@\n+z = 0\n") is Outcome.AMBIGUOUS_HUNK


def test_hunks_may_touch():
    touching = ONE + "\n@@ ... @@\n-x7 = 7\n+x7 = 70\n@@ -3,0 +4 @@\n+z = 0\n"
    assert result(touching) == patched((5, "x5 = 50"), (7, "x7 = 70"), (3, ["x3 = 3", "z = 0"]))


def test_a_hunk_of_context_alone_is_dropped():
    assert result(ONE + "\n@@ ... @@\n nowhere\n") == patched((5, "x5 = 50"))
    assert failure(HEADER + "@@ ... @@\n x5 = 5\n") is Outcome.NOOP_PATCH
    assert failure(HEADER) is Outcome.NOOP_PATCH


def test_many_blank_lines_are_read_fast():
    assert (
        apply_patch(SOURCE, HEADER + "@@ -5 +5 @@\n-x5 = 5\n+x5 = 50\n" + "\n" * 60000 + "@@\n", NAME).failure is None
    )
    assert failure(HEADER + "@@ -1,65000 +1,65000 @@\n" + " \n" * 30000 + "+z\n") is Outcome.HUNK_NOT_FOUND


def test_the_detail_names_hunk_and_nearest_line():
    assert "hunk 1" in submit(HEADER + "@@ ... @@\n-x5  = 5\n+x5 = 50\n").detail
    assert "most like its first at 5" in submit(HEADER + "@@ ... @@\n-x5 =  5\n+x5 = 50\n").detail
    assert "lines 9, 27" in submit(HEADER + "@@ ... @@" + REPEATED).detail


# --- Result -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["x5 = ", "def f(:", "  x5 = 5", "x5 = (", "x = " + "(" * 300 + ")" * 300])
def test_a_result_that_does_not_parse_is_refused(line):
    assert failure(HEADER + f"@@ ... @@\n-x5 = 5\n+{line}\n") is Outcome.SYNTAX_ERROR


@pytest.mark.parametrize("new", ["x5 = 5  # faster", "# fast\n+x5 = 5", "\n+x5 = 5", "x5=5", "x5 = (5)", "x5 = 5"])
def test_a_change_of_comments_and_blank_lines_is_none(new):
    assert failure(HEADER + f"@@ ... @@\n-x5 = 5\n+{new}\n") is Outcome.NOOP_PATCH


def test_the_result_is_described():
    done = submit(TWO)
    assert (done.lines_added, done.lines_removed) == (2, 2)
    assert done.diff.startswith(f"--- a/{NAME}\n+++ b/{NAME}\n@@ -2,7 +2,7 @@\n")
    assert done.diff == canonical_diff(SOURCE, BOTH, NAME)
    assert len(done.patched_sha256) == len(done.diff_sha256) == 64


def test_lines_that_look_like_headers_are_counted():
    source = "s = '''\n-- old\n'''\n"
    done = submit(HEADER + "@@ -1,3 +1,3 @@\n s = '''\n--- old\n+++ new\n '''\n", source=source)
    assert (done.lines_added, done.lines_removed) == (1, 1)


def test_a_script_without_a_final_newline_gets_one():
    source = "a = 1\nb = 2"
    done = submit(HEADER + "@@ ... @@\n-b = 2\n+b = 3\n", source=source)
    assert done.patched == "a = 1\nb = 3\n"
    assert done.diff.endswith("-b = 2\n\\ No newline at end of file\n+b = 3\n")
    assert apply_patch(source, done.diff, NAME).patched == done.patched


# --- Properties -------------------------------------------------------------------------------------------------------

# Few different lines, so that blocks repeat; all are statements, and together they parse in any order.
statements = some.sampled_from(["a = 1", "b = 2", "", "'-- x'", "'++ y'", "# c", "a = 1 ", "\x0c", "c = 'é\u2028'"])
scripts = some.lists(statements, max_size=12).map(lambda lines: "".join(line + "\n" for line in lines))


@given(scripts, scripts)
def test_the_canonical_diff_gives_the_patched_text(old, new):
    assume(ast.dump(ast.parse(old)) != ast.dump(ast.parse(new)))
    done = apply_patch(old, canonical_diff(old, new, NAME), NAME)
    assert (done.failure, done.patched, done.diff) == (None, new, canonical_diff(old, new, NAME))


def hunk_of(number, new):
    return f"@@ ... @@\n-{LINES[number - 1]}\n" + "".join(f"+{line}\n" for line in new)


# Lines that occur once and are no part of the text in several lines.
unique = [i for i, line in enumerate(LINES, start=1) if LINES.count(line) == 1 and i not in (32, 33)]
edits = some.dictionaries(some.sampled_from(unique), some.lists(some.sampled_from(["p = 1", "q = 2"])), min_size=1)


@given(edits, some.randoms(use_true_random=False))
def test_the_order_of_hunks_does_not_matter(changes, shuffler):
    hunks = [hunk_of(number, new) for number, new in changes.items()]
    shuffler.shuffle(hunks)
    done = apply_patch(SOURCE, HEADER + "".join(hunks), NAME)
    assert done.patched == patched(*changes.items())


@given(edits, some.integers(0, 40))
def test_one_bad_hunk_fails_all_wherever_it_stands(changes, place):
    hunks = [hunk_of(number, new) for number, new in changes.items()]
    hunks.insert(place, "@@ ... @@\n-nowhere\n+z = 0\n")
    done = apply_patch(SOURCE, HEADER + "".join(hunks), NAME)
    assert (done.failure, done.patched, done.diff) == (Outcome.HUNK_NOT_FOUND, None, "")


@given(some.text(alphabet="-+ @ab/1,\n\\d", max_size=200))
def test_no_text_raises(text):
    done = apply_patch(SOURCE, HEADER + text, NAME)
    assert (done.failure is None) == (done.patched is not None)


# --- The published commands -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("patch, expected", [(ONE, patched((5, "x5 = 50"))), (TWO, BOTH)])
def test_published_commands_apply_on_fresh_copies(patch, expected):
    assert result(patch, mode="seed-compat") == expected


def test_published_commands_guess_where_ours_refuse():
    assert result(HEADER + "@@ ... @@\n+z = 0", mode="seed-compat") == "z = 0\n" + SOURCE
    assert result(HEADER + "@@ ... @@" + REPEATED, mode="seed-compat") == patched((9, "repeated = 1"))


def test_published_commands_undergo_our_checks():
    for patch, expected in [
        (ONE.replace(NAME, "other.py"), Outcome.PATCH_WRONG_FILE),
        (HEADER + "@@ ... @@\n-x5 = 5\n+x5 = (\n", Outcome.SYNTAX_ERROR),
        (HEADER + "@@ ... @@\n-x5 = 5\n+x5 = 5  # fast\n", Outcome.NOOP_PATCH),
        (HEADER + "@@ ... @@\n-nowhere at all\n+z = 0\n", Outcome.HUNK_NOT_FOUND),
        (ONE + "\n\\ No newline at end of file\n", Outcome.PARSE_FAILED),
    ]:
        assert failure(patch, mode="seed-compat") is expected, patch


def test_a_missing_command_is_said(monkeypatch):
    monkeypatch.setattr(patching, "_COMMANDS", (("no-such-command",),))
    with pytest.raises(RowproofError, match="must find the command no-such-command"):
        submit(ONE, "seed-compat")
