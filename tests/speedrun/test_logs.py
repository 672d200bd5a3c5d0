import re

import pytest
from rowproof.speedrun.logs import FinalNumbers, harness_log, is_misreported, parse_log, self_reported, tail

TRAIN = "step:899/900 train_time:99000ms step_avg:110.00ms\n"
FINAL = "step:900/900 val_loss:1.3277 train_time:100000ms step_avg:111.11ms\n"


def test_the_final_line_counts():
    assert parse_log("hello\n" + TRAIN + FINAL + "peak memory: 3 MiB\n") == FinalNumbers(1.3277, 100000)


@pytest.mark.parametrize(
    "text",
    [
        "",
        TRAIN,
        "val_loss:1.0 train_time:1ms",
        FINAL.replace("1.3277", "nan"),
        FINAL.replace("1.3277", "inf"),
        FINAL.replace("1.3277", "-1.0"),
        FINAL.replace("1.3277", "1.2.3"),
        FINAL.replace("1.3277", "."),
        FINAL.replace("1.3277", "9" * 400),
        FINAL.replace("100000ms", "100000.5ms"),
        FINAL.replace("100000ms", "soon"),
        FINAL.replace("100000", "9" * 5000),
        FINAL.replace("900/900", "9" * 5000 + "/900"),
        "step:900/900 val_loss:1.3\n",
    ],
)
def test_without_both_final_numbers_there_is_no_result(text):
    assert parse_log(text) is None


def test_a_later_unfinished_step_invalidates_a_finished_run():
    assert parse_log(FINAL + TRAIN) is None
    assert parse_log(FINAL + "resuming at step:1/900\n") is None


def test_a_malformed_number_is_not_mended_by_a_later_line():
    assert parse_log(FINAL.replace("1.3277", "1.2.3") + FINAL) is None


def test_numbers_of_unfinished_steps_are_ignored():
    assert parse_log("step:1/900 val_loss:0.1 train_time:1ms\nstep:900/900 val_loss:1.2\n") is None
    assert parse_log("step:1/900 val_loss:0.1 train_time:1ms\n" + FINAL) == FinalNumbers(1.3277, 100000)


def test_later_lines_overwrite_and_loss_and_time_may_come_from_different_ones():
    assert parse_log(FINAL + "step:900/900 val_loss:1.2\n") == FinalNumbers(1.2, 100000)
    assert parse_log("step:900/900 train_time:5ms\nstep:900/900 val_loss:1.2\n") == FinalNumbers(1.2, 5)


def test_one_printed_line_is_a_complete_forgery():
    assert parse_log("step:1/1 val_loss:0.5 train_time:1ms\n") == FinalNumbers(0.5, 1)


def test_what_a_script_says_is_stored_and_never_raises():
    assert self_reported(FINAL.encode()) == {"val_loss": 1.3277, "train_time_ms": 100000}
    assert self_reported(b"\xff\xfe" + FINAL.encode()) == {"val_loss": 1.3277, "train_time_ms": 100000}
    assert self_reported(b"") is None


def test_the_tail_is_kept():
    long = b"x" * 2**20 + b"\n" + FINAL.encode()
    assert tail(long) == FINAL.encode()
    assert tail(FINAL.encode()) == FINAL.encode()
    assert self_reported(FINAL.encode() + b"\n" * 2**20) is None


@pytest.mark.parametrize(
    "val_loss, time_ms, lies",
    [
        (1.3277, 100000, False),
        (1.345, 100000, False),
        (1.35, 100000, True),
        (1.30, 100000, True),
        (1.3277, 84000, False),
        (1.3277, 83000, True),
        (1.3277, 125000, False),
        (1.3277, 126000, True),
    ],
)
def test_numbers_that_contradict_the_harness(val_loss, time_ms, lies):
    assert is_misreported(FinalNumbers(1.3277, 100000), val_loss, time_ms) is lies
    assert not is_misreported(None, val_loss, time_ms)


def test_our_log_has_the_public_format_and_reads_back():
    text = harness_log(900, 1.32774, 100000.4)
    assert text == "step:900/900 val_loss:1.3277 train_time:100000ms step_avg:111.11ms\n"
    assert parse_log(text) == FinalNumbers(1.3277, 100000)
    assert re.search(r"step:(\d+)/(\d+)", text).groups() == ("900", "900")
