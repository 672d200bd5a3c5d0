"""Every hostile patch ends with its code and earns nothing."""

from dataclasses import replace

import pytest
import yaml
from helpers import ROOT
from rowproof.speedrun.extraction import extract
from rowproof.speedrun.outcomes import Outcome
from rowproof.speedrun.patching import apply_patch
from rowproof.speedrun.referee.ladder import SCRIPT_NAME, read_script
from rowproof.speedrun.referee.runs import judge_seeds, verify
from rowproof.speedrun.referee.sandbox import Limits
from rowproof.speedrun.steps import SMOKE_STEPS, with_steps

HOSTILE = ROOT / "tests/speedrun/hostile"
EXPECTED = yaml.safe_load((HOSTILE / "expected.yaml").read_text())
# The baseline has lost 3.3 nats per token after 20 steps.
SMOKE_TARGET = 3.5
# The attacks on time need little of it.
LIMITS = {"endless": Limits(wall_s=240.0, cpu_s=8), "endless_sleep": Limits(wall_s=2.0, cpu_s=60)}
EVALUATION_LIMITS = {"slow_answers": Limits(wall_s=2.0, cpu_s=60)}


def patched(name):
    base = read_script(ROOT / "resources/speedrun", "R0")
    applied = apply_patch(base, (HOSTILE / f"{name}.diff").read_text(), SCRIPT_NAME)
    assert applied.patched is not None, applied.detail
    return with_steps(applied.patched, SMOKE_STEPS)


STEPS = """\
--- a/train_gpt.py
+++ b/train_gpt.py
@@ -21,3 +21,3 @@
     # Optimisation.
-    num_iterations = 900
+    num_iterations = 800
     batch_size = 16
"""
RATE = """\
@@ -24,2 +24,2 @@
-    learning_rate = 2e-3
+    learning_rate = 3e-3
     beta1 = 0.9
"""
# Answers as models write them, and how they end before anything runs; None: the patch applies.
ANSWERS = {
    "start-up hook": (
        "--- /dev/null\n+++ b/sitecustomize.py\n@@ -0,0 +1 @@\n+import os\n",
        Outcome.PATCH_WRONG_FILE,
    ),
    "hook beside the patch": (
        STEPS + "--- /dev/null\n+++ b/usercustomize.py\n@@ -0,0 +1 @@\n+import os\n",
        Outcome.PATCH_WRONG_FILE,
    ),
    "parent path": (STEPS.replace("train_gpt.py", "../train_gpt.py"), Outcome.PATCH_WRONG_FILE),
    "ambiguous hunk": (
        "--- a/train_gpt.py\n+++ b/train_gpt.py\n@@ @@\n         super().__init__()\n+        self.x = 1\n",
        Outcome.AMBIGUOUS_HUNK,
    ),
    "unanchored insert": (
        "--- a/train_gpt.py\n+++ b/train_gpt.py\n@@ @@\n+print(1)\n",
        Outcome.UNANCHORED_INSERT,
    ),
    "huge literal": (
        STEPS.replace("= 800", f"= 800\n+    table = '{'x' * 70_000}'").replace("+21,3", "+21,4"),
        Outcome.PATCH_TOO_LARGE,
    ),
    "no change": (STEPS.replace("800", "900"), Outcome.NOOP_PATCH),
    "nothing": ("<think>\n\n</think>\n", Outcome.EMPTY_PATCH),
    "fenced": (f"Here it is:\n```diff\n{STEPS}```\n", None),
    "two hunks and blank lines": (f"{STEPS}{RATE}\n\n", None),
    "empty think block": (f"<think>\n\n</think>\n\n{STEPS}", None),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_end_with_their_code(name):
    text, expected = ANSWERS[name]
    extraction = extract([{"role": "assistant", "content": text}])
    found = extraction.failure
    if found is None:
        found = apply_patch(read_script(ROOT / "resources/speedrun", "R0"), extraction.patch, SCRIPT_NAME).failure
    assert found is expected


def outcome_of(referee, source, seeds=(100, 101)):
    verifications = []
    for seed in seeds:
        verifications.append(verify(referee, source, seed, base_gap=0.0))
        if verifications[-1].outcome is not Outcome.OK:
            break
    outcome, detail = judge_seeds(verifications)
    if outcome is Outcome.OK:
        losses = [verification.evaluation.val_loss for verification in verifications]
        outcome = Outcome.OK if sum(losses) / len(losses) <= SMOKE_TARGET else Outcome.THRESHOLD_MISSED
    return outcome, detail


def test_every_patch_has_an_expectation():
    assert {path.stem for path in HOSTILE.glob("*.diff")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_hostile_patches_still_apply(name):
    compile(patched(name), SCRIPT_NAME, "exec")


@pytest.mark.slow
def test_the_baseline_meets_the_target_of_these_tests(referee, smoke):
    assert outcome_of(referee, smoke("R0")) == (Outcome.OK, "")


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPECTED)
def test_hostile_patches_end_with_their_code(referee, name):
    limited = replace(
        referee,
        limits=LIMITS.get(name, referee.limits),
        evaluation_limits=EVALUATION_LIMITS.get(name, referee.evaluation_limits),
    )
    outcome, detail = outcome_of(limited, patched(name))
    assert outcome == EXPECTED[name], detail
    assert not outcome.earns_reward
