"""The dialogue: five events, stacked patches, and which turn is scored."""

import json
import re
from pathlib import Path

import pytest
from rowproof.errors import ConfigError, RecordError
from rowproof.speedrun.dialogue import Dialogue, Result, encode_transcript, play, replay
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.players import RecordedPlayer
from speedrun.dialogue.workbench import (
    CODE,
    CRASHING,
    FASTER,
    FASTER_STILL,
    MENDING,
    TOO_FAST,
    UNKNOWN_LINE,
    Runs,
    patch,
    task,
)

RECORDING = Path(__file__).parent / "five_events.json"
FENCED = "I would use fewer steps.\n```\nsteps = 450\n```\n"


def played(*answers, runs=None, **arguments):
    return play(task(**arguments), RecordedPlayer(answers), runs or Runs())


def events(transcript):
    return [turn["event"] for turn in transcript["turns"]]


def replies(transcript):
    users = [message["content"] for message in transcript["messages"] if message["role"] == "user"]
    return [json.loads(re.search(r"```json\n(.*)\n```$", text)[1]) for text in users[1:]]


def recorded():
    document = json.loads(RECORDING.read_bytes())
    return replay(RECORDING.read_bytes(), task().record, CODE, RECORDING.name), document


# ---- the five events -------------------------------------------------------------------------------------------


def test_a_recorded_dialogue_has_all_five_events_and_replays_byte_for_byte():
    again, _ = recorded()
    assert events(again)[:5] == ["not_parsed", "empty", "not_applied", "run_failed", "run_succeeded"]
    assert encode_transcript(again) == RECORDING.read_bytes()


def test_the_recording_holds_what_playing_it_with_new_runs_gives():
    _, document = recorded()
    answers = [message["content"] for message in document["messages"] if message["role"] == "assistant"]
    assert encode_transcript(played(*answers, fence_mode="reject")) == RECORDING.read_bytes()


def test_every_reply_of_the_recording_has_all_fields_in_order():
    again, _ = recorded()
    fields = "event turn outcome detail val_loss_mean val_loss_per_seed train_time_ms_median wall_ratio ratio_ci95"
    fields += " threshold threshold_met reward_if_final turns_left base_sha256"
    assert [list(reply) for reply in replies(again)] == [fields.split()] * 5
    assert [reply["turns_left"] for reply in replies(again)] == [5, 4, 3, 2, 1]


@pytest.mark.parametrize("key", ["reward", "outcome", "best_turn_reward", "patched_sha256"])
def test_a_recording_whose_score_was_edited_is_refused(key):
    document = json.loads(RECORDING.read_bytes())
    document[key] = 9.0 if type(document[key]) is float else "0" * 64
    with pytest.raises(RecordError, match=key):
        replay(encode_transcript(document), task().record, CODE, "edited")


def test_a_recording_without_the_result_of_a_run_is_refused():
    document = json.loads(RECORDING.read_bytes())
    document["turns"][4]["feedback"] = None
    with pytest.raises(RecordError, match="must hold a feedback result"):
        replay(encode_transcript(document), task().record, CODE, "edited")


@pytest.mark.parametrize(
    ("key", "value"),
    [("messages", [1]), ("turns", [{}]), ("turns", [None]), ("arguments", {"max_turns": "x"}), ("schema", 1)],
)
def test_a_malformed_recording_is_refused_without_a_traceback(key, value):
    document = json.loads(RECORDING.read_bytes())
    document[key] = value
    with pytest.raises(RecordError):
        replay(encode_transcript(document), task().record, CODE, "edited")


# ---- what a turn does ------------------------------------------------------------------------------------------


def test_a_patch_applies_to_the_script_that_earlier_turns_left():
    transcript = played(FASTER, FASTER_STILL, max_turns=2)
    assert transcript["outcome"] == "ok"
    assert "-steps = 900\n+steps = 300\n" in transcript["diff"]
    assert "-steps = 450\n+steps = 300\n" in transcript["turns"][1]["diff"]


@pytest.mark.parametrize("answer", [UNKNOWN_LINE, "", FENCED])
def test_an_answer_without_a_run_leaves_the_script_as_it_was(answer):
    transcript = played(answer, FASTER, max_turns=2)
    assert transcript["turns"][1]["base_sha256"] == transcript["code_sha256"]
    assert transcript["outcome"] == "ok"


def test_a_patch_that_crashes_stays_in_the_script_as_published():
    transcript = played(CRASHING, MENDING, max_turns=2)
    assert [turn["outcome"] for turn in transcript["turns"]] == ["crashed", "ok"]
    assert played(CRASHING, FASTER, max_turns=2)["outcome"] == "crashed"


def test_rollback_takes_a_patch_that_crashed_out_again():
    transcript = played(CRASHING, FASTER, max_turns=2, on_failed_turn="rollback")
    assert transcript["outcome"] == "ok"
    assert replies(transcript)[0]["base_sha256"] == transcript["code_sha256"]
    assert played(CRASHING, MENDING, max_turns=2, on_failed_turn="rollback")["outcome"] == "hunk_not_found"


def test_rollback_keeps_a_patch_that_ran_and_missed_the_target():
    transcript = played(TOO_FAST, patch("steps = 10", "steps = 600"), max_turns=2, on_failed_turn="rollback")
    assert transcript["outcome"] == "ok"
    assert events(transcript)[0] == "run_succeeded"


def test_turns_that_undo_each_other_hand_in_nothing():
    transcript = played(FASTER, patch("steps = 450", "steps = 900  # as it was"), max_turns=2)
    assert (transcript["outcome"], transcript["reward"]) == ("noop_patch", 0.0)


def test_the_policy_looks_at_all_patches_together():
    first = patch("batch = 16", "batch = 16\n+import socket")
    transcript = played(first, FASTER, max_turns=2)
    assert transcript["turns"][0]["outcome"] == "policy_violation"
    assert transcript["turns"][1]["base_sha256"] == transcript["code_sha256"]


# ---- what a proposer is told -----------------------------------------------------------------------------------


def test_the_reply_to_a_run_gives_its_figures():
    reply = replies(played(FASTER, FASTER_STILL, max_turns=2))[0]
    assert reply["val_loss_per_seed"] == {"200": 1.25, "201": 1.251, "202": 1.252}
    assert (reply["val_loss_mean"], reply["threshold_met"]) == (1.251, True)
    assert (reply["wall_ratio"], reply["ratio_ci95"], reply["train_time_ms_median"]) == (2.0, [1.9, 2.1], 22500.0)
    assert reply["reward_if_final"] == pytest.approx(0.3 + 0.7 * 2.0)


def test_the_reply_to_a_crash_ends_with_its_error_and_names_no_folder_of_the_machine():
    detail = replies(played(CRASHING, MENDING, max_turns=2))[0]["detail"]
    assert "someone" not in detail
    assert '"/script/train_gpt.py"' in detail
    assert detail.endswith("TypeError: None")


def test_the_error_output_is_cut_to_its_end():
    def runs(patched, phase):
        return Result(Outcome.CRASHED, "found 1", "x" * 9000 + "END")

    detail = replies(played(FASTER, FASTER, runs=runs, max_turns=2))[0]["detail"]
    assert len(detail) == 4000
    assert detail.endswith("END")


def test_a_reply_never_tells_the_audit_loss():
    def runs(patched, phase):
        return Result(Outcome.AUDIT_GAP, "audit loss 1.7654, validation loss 1.2", val_loss={200: 1.2})

    transcript = played(FASTER, FASTER, runs=runs, max_turns=2)
    messages = "".join(message["content"] for message in transcript["messages"])
    assert "1.7654" not in messages
    assert replies(transcript)[0]["outcome"] == "audit_gap"


def test_the_reply_to_a_patch_that_does_not_apply_names_the_hunk():
    detail = replies(played(UNKNOWN_LINE, FASTER, max_turns=2))[0]["detail"]
    assert detail.startswith("hunk 1:")


def test_a_reply_about_a_missed_target_says_what_was_not_measured():
    transcript = played(TOO_FAST, FASTER, max_turns=2)
    assert "target 1.35: missed" in transcript["messages"][3]["content"]
    assert "Speed-up over the base script: not measured" in transcript["messages"][3]["content"]
    assert replies(transcript)[0]["threshold_met"] is False


# ---- what is scored --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("last", [UNKNOWN_LINE, "", FENCED, CRASHING, patch("steps = 450", "steps = 10")])
def test_a_good_turn_before_a_bad_last_one_earns_nothing(last):
    transcript = played(FASTER, last, max_turns=2)
    assert (transcript["scored_turn"], transcript["reward"]) == (2, 0.0)
    assert transcript["best_turn_reward"] == pytest.approx(1.7)


def test_score_turn_best_scores_the_best_turn_with_seeds_of_its_own():
    runs = Runs()
    transcript = played(FASTER, CRASHING, runs=runs, max_turns=2, score_turn="best")
    assert (transcript["scored_turn"], transcript["outcome"]) == (1, "ok")
    assert runs.calls == [("feedback", 450), ("feedback", 450), ("final", 450)]
    assert set(transcript["turns"][0]["final"]["val_loss"]) == {"100", "101", "102"}


def test_score_turn_best_may_be_the_last_turn():
    transcript = played(FASTER, FASTER_STILL, max_turns=2, score_turn="best")
    assert transcript["scored_turn"] == 2
    assert transcript["reward"] == pytest.approx(0.3 + 0.7 * 3)


def test_the_last_turn_runs_once_with_the_final_seeds_and_gets_no_reply():
    runs = Runs()
    transcript = played(FASTER, runs=runs, max_turns=1)
    assert runs.calls == [("final", 450)]
    assert transcript["messages"][-1]["role"] == "assistant"
    assert transcript["reward"] == pytest.approx(1.7)


def test_a_proposer_that_stops_early_is_scored_by_its_last_turn():
    transcript = played(FASTER, max_turns=4)
    assert (transcript["scored_turn"], transcript["outcome"], len(transcript["turns"])) == (1, "ok", 1)


def test_a_dialogue_that_breaks_off_before_a_reply_replays():
    dialogue = Dialogue(task())
    dialogue.take(FASTER)
    data = encode_transcript(dialogue.finish(Runs()))
    assert encode_transcript(replay(data, task().record, CODE, "broken off")) == data


def test_a_proposer_that_says_nothing_earns_nothing():
    transcript = played()
    assert (transcript["scored_turn"], transcript["outcome"], transcript["reward"]) == (None, "parse_failed", 0.0)


def test_one_turn_too_many_is_refused():
    dialogue = Dialogue(task(max_turns=1))
    dialogue.take(FASTER)
    with pytest.raises(ConfigError, match="max_turns"):
        dialogue.take(FASTER)


def test_thinking_needs_its_closing_tag_where_it_is_required():
    assert played(FASTER, max_turns=1, think_mode="require")["outcome"] == "empty_patch"
    assert played(f"<think>hm</think>{FASTER}", max_turns=1, think_mode="require")["outcome"] == "ok"
    assert played(f"<think>hm</think>{FASTER}", max_turns=1)["outcome"] == "ok"


def test_a_nondeterministic_run_earns_nothing_where_it_is_rejected():
    def runs(patched, phase):
        return Result(Outcome.NONDETERMINISTIC, "", "", {100: 1.2}, "pass", 1.0, 2.0, (1.9, 2.1))

    assert played(FASTER, runs=runs, max_turns=1)["reward"] == pytest.approx(1.7)
    assert played(FASTER, runs=runs, max_turns=1, nondeterminism="reject")["reward"] == 0.0


def test_broken_text_of_a_model_is_mended_before_it_is_kept():
    transcript = played(f"\ud800\n{FASTER}", max_turns=1)
    assert transcript["outcome"] == "ok"
    assert json.loads(encode_transcript(transcript)) == transcript
