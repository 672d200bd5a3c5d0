import pytest
from rowproof.speedrun.extraction import extract
from rowproof.speedrun.outcomes import Outcome, Stage

PATCH = "--- a/train_gpt.py\n+++ b/train_gpt.py\n@@ -1 +1 @@\n-a = 1\n+a = 2\n"


def answer(text):
    return [{"role": "user", "content": "Go."}, {"role": "assistant", "content": text}]


def patch_of(text, **modes):
    found = extract(answer(text), **modes)
    assert found.failure is None, found.detail
    return found.patch


def failure_of(text, **modes):
    found = extract(answer(text), **modes)
    assert found.patch == "" and found.detail
    return found.failure


def test_a_bare_patch_is_taken_as_it_is():
    found = extract(answer(PATCH))
    assert (found.patch, found.failure, found.flags) == (PATCH, None, ())
    assert [name for name, _ in found.steps] == [
        *("last_message", "think_strip", "fence_strip", "prose", "lines", "end", "size")
    ]
    assert all(size == len(PATCH) for _, size in found.steps)


def test_the_last_assistant_message_counts():
    messages = [
        *answer("--- old"),
        {"role": "user", "content": "Again."},
        *answer(PATCH),
        {"role": "user", "content": "x"},
    ]
    assert extract(messages).patch == PATCH


@pytest.mark.parametrize(
    "messages",
    [[], [{"role": "user", "content": PATCH}], answer(None), answer([{"type": "text", "text": PATCH}]), [{}]],
)
def test_no_message_with_text_is_a_parse_failure(messages):
    assert extract(messages).failure is Outcome.PARSE_FAILED


@pytest.mark.parametrize("text", ["", "\n\n", " \n", "I have no idea.", "***\n", "--\n+++\n"])
def test_no_patch_at_all_is_an_empty_patch(text):
    assert failure_of(text) is Outcome.EMPTY_PATCH


# --- Thinking ---------------------------------------------------------------------------------------------------------

THOUGHT = "<think>\n--- no\n+++ no\n</think>\n" + PATCH


def test_required_thinking_is_cut_at_the_last_tag():
    assert patch_of(THOUGHT, think_mode="require") == PATCH
    assert patch_of("a</think>b</think>\n\n" + PATCH, think_mode="require") == PATCH


def test_required_thinking_without_a_closing_tag_leaves_nothing():
    assert failure_of(PATCH, think_mode="require") is Outcome.EMPTY_PATCH
    assert failure_of("<think>\n" + PATCH, think_mode="require") is Outcome.EMPTY_PATCH


@pytest.mark.parametrize("mode", ["require", "strip"])
def test_thinking_without_an_answer_is_an_empty_patch(mode):
    assert failure_of("<think>" + PATCH + "</think>\n", think_mode=mode) is Outcome.EMPTY_PATCH


def test_stripped_thinking_may_be_missing():
    assert patch_of(THOUGHT, think_mode="strip") == PATCH
    assert patch_of(PATCH, think_mode="strip") == PATCH


def test_thinking_left_alone_is_part_of_the_text():
    assert patch_of(THOUGHT, think_mode="off").startswith("--- no\n")


# --- Fences -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fence", ["```", "~~~", "````"])
@pytest.mark.parametrize("language", ["", "diff"])
def test_a_fence_around_the_patch_is_removed_and_flagged(fence, language):
    found = extract(answer(f"Here it is:\n{fence}{language}\n{PATCH}{fence}\nDone."))
    assert (found.patch, found.flags) == (PATCH, ("format_violation",))


def test_the_last_block_with_a_patch_is_taken():
    other = PATCH.replace("a = 2", "a = 3")
    text = f"```diff\n{other}```\nBetter:\n```diff\n{PATCH}```\nRun it:\n```sh\npython train_gpt.py\n```\n"
    assert patch_of(text) == PATCH


def test_a_fence_that_never_closes_ends_with_the_text():
    assert patch_of("```diff\n" + PATCH) == PATCH


def test_a_shorter_fence_does_not_close_a_block():
    assert patch_of("````diff\n" + PATCH + "```\n````\n").startswith(PATCH + "```")


def test_fences_in_lines_of_the_patch_are_code():
    patch = PATCH + "+```\n+b\n+```\n"
    found = extract(answer(patch))
    assert (found.patch, found.flags) == (patch, ())


def test_a_rejected_fence_is_a_parse_failure():
    assert failure_of(f"```diff\n{PATCH}```", fence_mode="reject") is Outcome.PARSE_FAILED
    assert patch_of(PATCH, fence_mode="reject") == PATCH


# --- Prose, line ends, limits -----------------------------------------------------------------------------------------


def test_prose_before_the_patch_is_dropped_and_flagged():
    found = extract(answer("I optimise.\n\n" + PATCH))
    assert (found.patch, found.flags) == (PATCH, ("prose_dropped",))


def test_blank_lines_before_the_patch_are_no_prose():
    assert extract(answer("\n\n" + PATCH)).flags == ()


def test_a_git_header_is_no_prose():
    patch = "diff --git a/train_gpt.py b/train_gpt.py\nold mode 100644\nnew mode 100755\n" + PATCH
    found = extract(answer("Look:\n" + patch))
    assert (found.patch, found.flags) == (patch, ("prose_dropped",))


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_other_line_ends_become_lf(end):
    assert patch_of(PATCH.replace("\n", end)) == PATCH
    assert patch_of(f"```diff{end}{PATCH.replace(chr(10), end)}```") == PATCH


def test_lines_of_asterisks_are_dropped():
    assert patch_of("*** Begin Patch\n" + PATCH + "*** End Patch\n") == PATCH


@pytest.mark.parametrize("end", ["", "\n", "\n\n\n"])
def test_the_patch_ends_with_one_newline(end):
    assert patch_of(PATCH.rstrip("\n") + end) == PATCH


def test_a_context_line_of_one_space_survives_at_the_end():
    assert patch_of(PATCH + " \n\n") == PATCH + " \n"


def padded(size):
    line = "+" + "x" * 998 + "\n"
    text = PATCH + line * ((size - len(PATCH)) // len(line))
    return text + "+" + "x" * (size - len(text) - 2) + "\n"


def test_limits_hold_exactly():
    assert len(patch_of(padded(65536))) == 65536
    assert patch_of(PATCH + "+\n" * 1998)
    assert patch_of(PATCH + "+" + "x" * 1999 + "\n")


@pytest.mark.parametrize(
    "text",
    [padded(65537), PATCH + "+\n" * 1999, PATCH + "+" + "x" * 2000 + "\n", PATCH + "+\0\n", PATCH + "+é" * 33000],
)
def test_beyond_a_limit_a_patch_is_too_large(text):
    assert failure_of(text) is Outcome.PATCH_TOO_LARGE


def test_a_lone_surrogate_is_a_parse_failure():
    assert failure_of(PATCH + "+\ud800\n") is Outcome.PARSE_FAILED


def test_every_outcome_has_a_stage_and_few_earn_a_reward():
    assert Outcome("empty_patch").stage is Stage.EXTRACTION and Outcome("ok").stage is Stage.SCORING
    assert {str(outcome) for outcome in Outcome if outcome.earns_reward} == {"ok", "inconclusive", "nondeterministic"}
