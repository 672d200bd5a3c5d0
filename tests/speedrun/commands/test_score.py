"""Scoring a patch: files, row, exit codes, and what is refused before anything runs."""

import json

import pytest
from helpers import ROOT
from rowproof.errors import RowproofError
from rowproof.hashing import sha256_hex
from rowproof.records import decode, encode_document, encode_sorted
from rowproof.speedrun.corpus import manifest_sha256
from rowproof.speedrun.logs import parse_log
from rowproof.speedrun.row import timed_columns
from speedrun.commands.workbench import (
    CLASS,
    CRASHING,
    FASTER,
    FORBIDDEN,
    PLATFORM,
    TOO_FAST,
    UNKNOWN_LINE,
    call,
    with_steps,
)

SALT = "a salt of tests that is long enough"


@pytest.fixture
def score(world, tmp_path, monkeypatch):
    """Score a patch with one pair, and give the row; ``folder`` is where."""
    monkeypatch.setenv("ROWPROOF_AUDIT_SALT", SALT)

    def run(text, *options, arguments="n_pairs: 1\n", name="try"):
        path = tmp_path / f"{name}.diff"
        path.write_text(text)
        given = tmp_path / "arguments.yaml"
        given.write_text(arguments)
        run.folder = tmp_path / "out" / name
        assert call("score", path, "--arguments", given, "--output", run.folder, *options) == 0
        row = run.folder / "row.json"
        return json.loads(row.read_bytes()) if row.exists() else None

    return run


# ---- what is left ----------------------------------------------------------------------------------------------------


def test_a_faster_patch_earns_the_published_reward(score):
    row = score(FASTER)
    known, timed = row["verifiable"], row["timed"]
    assert (known["outcome"], known["verdict"], known["seeds"]) == ("ok", "pass", [100, 101, 102])
    assert known["val_loss"] == {"mean": 1.3, "per_seed": {"100": 1.3, "101": 1.3, "102": 1.3}}
    assert (known["tokens_ratio"], known["flops_ratio"]) == (2.0, 2.0)
    assert (timed["wall_ratio"], timed["cpu_ratio"], timed["n_pairs"]) == (2.0, 2.0, 1)
    assert timed["reward"] == timed["reward_strict"] == pytest.approx(0.3 + 0.7 * 2)
    assert timed["reward_code_variant"] == pytest.approx(2.3)
    assert known["reward_flops"] == pytest.approx(1.7)
    assert (timed["aa_floor"], timed["fsr"], timed["statements"]) == (None, None, ["valid"])


def test_the_row_names_everything_that_it_came_from(score):
    row = score(FASTER)["verifiable"]
    files = {path.name: path.read_bytes() for path in score.folder.iterdir() if path.is_file()}
    assert row["patched_sha256"] == sha256_hex(files["patched.py"])
    assert row["diff_sha256"] == sha256_hex(files["canonical.diff"])
    assert (row["lines_added"], row["lines_removed"]) == (1, 1)
    assert row["audit_salt_sha256"] == sha256_hex(SALT.encode())
    assert row["data_manifest_sha256"] == manifest_sha256()
    assert row["proposer"] == {"kind": "file", "name": "try.diff", "turns": 1}
    assert row["prompt_sha256"] is None
    assert row["platform_class"] == PLATFORM
    assert (row["record"], row["track"]) == ("cpu-mini/R0", "cpu-mini")
    assert row["prereg_sha256"] == sha256_hex((ROOT / "config/plans/nanogpt-speedrun-cpu-v1.yaml").read_bytes())


def test_both_parts_have_the_fields_of_the_schema_in_order(score):
    row = score(FASTER)
    verifiable = [
        "family",
        "track",
        "track_version",
        "record",
        "attempt_id",
        "proposer",
        "prompt_sha256",
        "base_sha256",
        "patched_sha256",
        "diff_sha256",
        "lines_added",
        "lines_removed",
        "outcome",
        "flags",
        "seeds",
        "val_loss",
        "threshold",
        "margin_z",
        "verdict",
        "train_tokens",
        "tokens_ratio",
        "n_params",
        "checkpoint_bytes",
        "train_flops",
        "flops_ratio",
        "reward_flops",
        "threshold_met_seed",
        "data_manifest_sha256",
        "prereg_sha256",
        "audit_salt_sha256",
        "platform_class",
        "spec_version",
    ]
    timed = [
        "n_pairs",
        "wall_ms_base_median",
        "wall_ms_patched_median",
        "wall_ratio",
        "ratio_ci95",
        "hl_ratio",
        "ratio_of_means",
        "sign_wins",
        "cpu_ratio",
        "cpu_ratio_ci95",
        "aa_floor",
        "reward",
        "reward_ci95",
        "reward_strict",
        "reward_code_variant",
        "fsr",
        "machine",
        "date",
        "timing_sha256",
    ]
    assert set(verifiable) <= set(row["verifiable"])
    assert set(timed) <= set(row["timed"])
    for part in row.values():
        assert list(part) == sorted(part)


def test_all_files_of_an_attempt_are_left(score):
    score(FASTER)
    left = {path.relative_to(score.folder).as_posix() for path in score.folder.rglob("*") if path.is_file()}
    named = {f"base/{seed}/{name}.json" for seed in (100, 101, 102) for name in ("eval", "usage")}
    named |= {f"verify/{seed}/{name}.json" for seed in (100, 101, 102) for name in ("eval", "usage")}
    named |= {f"verify/{seed}/{name}.tail" for seed in (100, 101, 102) for name in ("stdout", "stderr")}
    assert left == named | {
        *("completion.json", "dialogue.json", "extract.json", "policy.json", "timing.json", "row.json"),
        *("patched.py", "canonical.diff", "harness.log"),
    }
    assert [path.name for path in score.folder.parent.iterdir()] == ["try"], "no temporary folder stays"


def test_the_timed_part_comes_out_of_timing_json_to_the_byte(score):
    row = score(FASTER)
    timing = decode((score.folder / "timing.json").read_bytes(), "timing.json")
    assert encode_sorted(timed_columns(row["verifiable"], timing)) == encode_sorted(row["timed"])
    timing["runs"][-1]["t_wall_s"] += 1.0
    assert timed_columns(row["verifiable"], timing)["wall_ratio"] != row["timed"]["wall_ratio"]


def test_the_verifiable_part_repeats_to_the_byte(score, world):
    first = score(FASTER, name="one")["verifiable"]
    world.cpu_share = 0.95
    world.machine = world.machine._replace(date="2026-03-04")
    again = score(FASTER, name="one")["verifiable"]
    assert encode_document(first) == encode_document(again)


def test_the_harness_log_reads_by_the_published_patterns(score):
    score(FASTER)
    numbers = parse_log((score.folder / "harness.log").read_text())
    assert (numbers.val_loss, numbers.train_time_ms) == (1.3, 45_000)


def test_progress_tells_run_seconds_ratio_and_what_is_left(score, capsys):
    score(FASTER, arguments="n_pairs: 2\n")
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("run ")]
    assert len(lines) == 2 * 3 + 2 * 3
    assert lines[0] == "run 1 of 12, verify base seed 100, 90.0 s, loss 1.3000, about 16 min left"
    assert lines[-1].startswith("run 12 of 12, time ")
    assert lines[-1].endswith("ratio so far 2.000, about 0 s left")


def test_an_answer_with_thinking_and_a_fence_is_scored(score):
    row = score(f"<think>well</think>Here it is:\n```diff\n{FASTER}```\n")
    assert row["verifiable"]["outcome"] == "ok"
    assert "format_violation" in row["verifiable"]["flags"]


def test_several_files_are_turns_that_stack(score, tmp_path, world):
    second = tmp_path / "second.diff"
    second.write_text("--- a/train_gpt.py\n+++ b/train_gpt.py\n@@ ... @@\n-    num_iterations = 450\n"
                      "+    num_iterations = 300\n")  # fmt: skip
    path = tmp_path / "first.diff"
    path.write_text(FASTER)
    assert call("score", path, second, "--output", tmp_path / "turns") == 0
    row = json.loads((tmp_path / "turns/row.json").read_bytes())
    assert (row["timed"]["wall_ratio"], row["verifiable"]["proposer"]["turns"]) == (3.0, 2)


# ---- attempts that earn nothing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (TOO_FAST, "threshold_missed"),
        (CRASHING, "crashed"),
        (UNKNOWN_LINE, "hunk_not_found"),
        (FORBIDDEN, "policy_violation"),
        ("", "empty_patch"),
        (FASTER.replace("train_gpt.py", "other.py"), "patch_wrong_file"),
        (with_steps("900  # as before"), "noop_patch"),
    ],
)
def test_a_failed_attempt_is_scored_with_zero_and_ends_well(score, text, outcome):
    row = score(text)
    assert row["verifiable"]["outcome"] == outcome
    rewards = [row["timed"][name] for name in ("reward", "reward_strict", "reward_code_variant")]
    assert [*rewards, row["verifiable"]["reward_flops"]] == [0.0] * 4
    assert row["timed"]["wall_ratio"] is None
    assert row["timed"]["machine"] == CLASS
    assert "timed" in row and row["timed"]["statements"] == []


def test_a_forbidden_import_is_shown_in_the_policy_file(score):
    score(FORBIDDEN)
    (found,) = json.loads((score.folder / "policy.json").read_bytes())["hard"]
    assert found["rule"] == "forbidden_import"


def test_runs_that_do_not_repeat_are_scored_without_a_claim(score, world):
    world.drift = 7
    row = score(FASTER)
    assert row["verifiable"]["outcome"] == "nondeterministic"
    assert (row["timed"]["reward"], row["timed"]["statements"]) == (pytest.approx(1.7), [])


# ---- flags -----------------------------------------------------------------------------------------------------------


def test_a_run_faster_than_the_machine_can_count_earns_nothing(score, world):
    # 6 * 1e6 numbers * 922,050 tokens: 5.5 TFLOP take 110 s at 50 GFLOP/s.
    world.shapes = {"w": (1000, 1000)}
    row = score(FASTER)
    assert row["verifiable"]["outcome"] == "implausible"
    assert (row["timed"]["reward"], row["verifiable"]["verdict"]) == (0.0, "pass")


def test_a_machine_that_is_fast_enough_makes_the_same_run_plausible(score, world):
    world.shapes = {"w": (1000, 1000)}
    world.machine = world.machine._replace(peak_gflops_per_s=500.0)
    assert score(FASTER)["verifiable"]["outcome"] == "ok"


def test_a_timed_run_that_is_too_fast_is_implausible_too(score, world, monkeypatch):
    from rowproof.speedrun.referee import runs

    def faster_when_timed(referee, source, seed, count_flops=False):
        run = world.train(referee, source, seed, count_flops)
        return run if count_flops else type(run)(**vars(run) | {"cpu_s": 0.01, "wall_s": 0.011})

    world.shapes = {"w": (100, 100)}
    monkeypatch.setattr(runs, "train", faster_when_timed)
    row = score(FASTER)
    assert (row["verifiable"]["outcome"], row["timed"]["reward"]) == ("implausible", 0.0)


@pytest.mark.parametrize(("steps", "flagged"), [(180, False), (179, True)])
def test_few_tokens_are_flagged(score, world, monkeypatch, steps, flagged):
    from rowproof.speedrun.outcomes import Outcome
    from rowproof.speedrun.referee import runs
    from rowproof.speedrun.referee.evaluation import Evaluation

    good = Evaluation(Outcome.OK, "", 1.3, 1.31, 0.0, 0.0)
    monkeypatch.setattr(runs, "evaluate", lambda *arguments, **more: good)
    assert ("low_tokens" in score(with_steps(steps))["verifiable"]["flags"]) is flagged


@pytest.mark.parametrize(
    ("said", "flagged"),
    [
        (b"step:450/450 val_loss:1.3100 train_time:45100ms\n", False),
        (b"step:450/450 val_loss:1.2700 train_time:45100ms\n", True),
        (b"step:450/450 val_loss:1.3000 train_time:20000ms\n", True),
        (b"nothing\n", False),
    ],
)
def test_a_log_that_says_something_else_is_flagged_and_changes_nothing(score, world, said, flagged):
    world.stdout = said
    row = score(FASTER)
    assert ("misreported_log" in row["timed"]["timing_flags"]) is flagged
    assert row["timed"]["reward"] == pytest.approx(1.7)
    assert (score.folder / "verify/100/stdout.tail").read_bytes() == said


@pytest.mark.parametrize(("share", "flagged"), [(1.04, False), (1.06, True)])
def test_a_second_core_is_flagged(score, world, share, flagged):
    world.cpu_share = share
    assert ("multicore" in score(FASTER)["timed"]["timing_flags"]) is flagged


@pytest.mark.parametrize(("factor", "flagged"), [(1, False), (5, True)])
def test_times_that_operations_do_not_explain_are_flagged(score, world, factor, flagged):
    world.flops_factor = factor
    row = score(FASTER)
    assert row["verifiable"]["flops_ratio"] == pytest.approx(2 / factor)
    assert ("explain" in row["timed"]["timing_flags"]) is flagged


def test_a_change_of_the_evaluated_model_is_flagged(score):
    text = "--- a/train_gpt.py\n+++ b/train_gpt.py\n@@ ... @@\n def load_model(path):\n+    path = str(path)\n"
    assert "eval_path_changed" in score(text)["verifiable"]["flags"]


# ---- audit salt ------------------------------------------------------------------------------------------------------


def test_a_salt_comes_from_a_file_before_the_environment_and_is_not_left(score, world, tmp_path):
    (tmp_path / "salt").write_text("another salt that is long enough\n")
    row = score(FASTER, "--audit-salt", tmp_path / "salt")
    assert world.salts == [b"another salt that is long enough"]
    assert row["verifiable"]["audit_salt_sha256"] == sha256_hex(world.salts[0])
    assert not any(world.salts[0] in path.read_bytes() for path in score.folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(("publish", "left"), [("true", True), ("false", False)])
def test_a_salt_of_this_job_alone_is_published_with_it(score, world, monkeypatch, publish, left):
    monkeypatch.delenv("ROWPROOF_AUDIT_SALT")
    row = score(FASTER, arguments=f"n_pairs: 1\npublish_salt: {publish}\n")
    assert row["verifiable"]["audit_salt_sha256"] == sha256_hex(world.salts[0])
    path = score.folder / "audit_salt"
    assert path.exists() is left
    assert not left or path.read_bytes().rstrip(b"\n") == world.salts[0]


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "arguments", "said"),
    [
        (["--record", "R99"], "", "record must be one of config/speedrun/records/cpu-mini"),
        (["--record", "../gpu/example"], "", "record must be one of"),
        ([], "track: gpu\n", "track must be cpu-mini here"),
        ([], "n_pair: 1\n", "unknown key"),
        ([], "n_pairs: 0\n", "greater than or equal to 1"),
        ([], "nproc_per_node: 8\n", "nproc_per_node must be 1"),
        (["--audit-salt", "no-such-file"], "", "must be a readable file with the audit salt"),
    ],
)
def test_bad_input_ends_with_2_and_runs_nothing(world, tmp_path, capsys, options, arguments, said):
    (tmp_path / "try.diff").write_text(FASTER)
    (tmp_path / "arguments.yaml").write_text(arguments or "n_pairs: 1\n")
    given = ["score", tmp_path / "try.diff", "--output", tmp_path / "out"]
    assert call(*given, "--arguments", tmp_path / "arguments.yaml", *options) == 2
    assert said in capsys.readouterr().err
    assert world.trained == [] and not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_patch_that_cannot_be_read_ends_with_2(world, tmp_path, capsys, content):
    if content is not None:
        (tmp_path / "try.diff").write_bytes(content)
    assert call("score", tmp_path / "try.diff", "--output", tmp_path / "out") == 2
    assert "try.diff: must be a" in capsys.readouterr().err


def test_a_short_salt_is_refused(world, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ROWPROOF_AUDIT_SALT", "short")
    (tmp_path / "try.diff").write_text(FASTER)
    assert call("score", tmp_path / "try.diff", "--output", tmp_path / "out") == 2
    assert "must have at least 16 bytes, found 5" in capsys.readouterr().err


def test_the_folder_of_another_attempt_is_refused_before_anything_runs(score, world, tmp_path, capsys):
    score(FASTER)
    before, world.trained = (score.folder / "row.json").read_bytes(), []
    (tmp_path / "other.diff").write_text(TOO_FAST)
    assert call("score", tmp_path / "other.diff", "--output", score.folder) == 2
    assert "must be an empty folder or hold this attempt" in capsys.readouterr().err
    assert world.trained == [] and (score.folder / "row.json").read_bytes() == before


def test_a_folder_of_something_else_is_refused(world, tmp_path, capsys):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/thesis.txt").write_text("mine")
    (tmp_path / "try.diff").write_text(FASTER)
    assert call("score", tmp_path / "try.diff", "--output", tmp_path / "out") == 2
    assert "found other files" in capsys.readouterr().err
    assert (tmp_path / "out/thesis.txt").read_text() == "mine"


def test_the_same_attempt_may_be_made_again(score):
    first = score(FASTER)
    (score.folder / "stale").write_text("x")
    assert score(FASTER)["verifiable"] == first["verifiable"]
    assert not (score.folder / "stale").exists()


def test_a_failure_of_the_harness_leaves_nothing(world, tmp_path, capsys):
    world.error = RowproofError("the sandbox must start, found that it does not")
    (tmp_path / "try.diff").write_text(FASTER)
    assert call("score", tmp_path / "try.diff", "--output", tmp_path / "out") == 2
    assert "the sandbox must start" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["try.diff"]


# ---- smoke -----------------------------------------------------------------------------------------------------------


def test_a_smoke_run_takes_twenty_steps_and_scores_nothing(score, world, capsys):
    assert score(FASTER, "--smoke", arguments="n_pairs: 9\n") is None
    assert "nothing is scored" in capsys.readouterr().out
    assert {steps for steps, _ in world.trained} == {20}
    assert [seed for _, seed in world.trained] == [100] * 6
    assert world.smoked == [True]
    said = json.loads((score.folder / "smoke.json").read_bytes())
    assert said == {"scored": False, "steps": 20, "outcome": "ok"}
