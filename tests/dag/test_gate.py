"""No evidence from an uncommitted plan, and none from a modified checkout passes as clean."""

import json

import pytest
from checkouts import Checkout
from rowproof.evidence.verify import verify_bundle

ROW = "push-v1/ref-script"
PLAN = "config/plans/push-v1.yaml"
LOCK = "config/plans/push-v1.lock.json"


def untracked(checkout: Checkout) -> None:
    checkout.git("rm", "-q", "--cached", PLAN)
    checkout.git("commit", "-q", "-m", "without the plan")


def lock_untracked(checkout: Checkout) -> None:
    checkout.git("rm", "-q", "--cached", LOCK)
    checkout.git("commit", "-q", "-m", "without the lock")


def lock_edited(checkout: Checkout) -> None:
    checkout.edit(LOCK, '"digests": {', f'"digests": {{\n    "partner nobody@v1/nobody": "{"0" * 64}",')


def edited(checkout: Checkout) -> None:
    checkout.edit(PLAN, "success_reward: -1.2", "success_reward: -1.3")


def half_files(checkout: Checkout) -> list[str]:
    products = (path for path in (checkout.root / "work" / "rows").rglob("*") if path.is_file())
    return sorted(path.name for path in products if not path.name.startswith("provenance"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (untracked, f"the plan {PLAN} must be committed, found it untracked: commit it before any run"),
        (edited, f"the plan {PLAN} must be as committed"),
        (lock_untracked, f"the plan {LOCK} must be committed, found it untracked: commit it before any run"),
        (lock_edited, f"the plan {LOCK} must be as committed"),
    ],
    ids=["untracked", "edited", "lock untracked", "lock edited"],
)
def test_the_gate_refuses(empty_small, change, message):
    change(empty_small)
    run = empty_small.build(f"results/{ROW}")
    assert run.code != 0
    log = empty_small.log("specs")
    assert message in log
    assert "Traceback" not in log + run.output
    assert not (empty_small.root / "results").exists() or not any((empty_small.root / "results").rglob("*.*"))
    assert half_files(empty_small) == []


@pytest.mark.slow
def test_a_refused_plan_edit_leaves_the_committed_bundle_alone(fresh_small):
    with (fresh_small.root / "workflow/rowproof/evidence/bundle.py").open("a") as stream:
        stream.write("UNUSED = 1\n")
    fresh_small.commit()
    # A remark makes nothing stale, but what is made meanwhile is made under an uncommitted plan.
    fresh_small.edit(PLAN, "decision_rules:", "# a remark\ndecision_rules:")
    run = fresh_small.build(f"results/{ROW}")
    assert run.code != 0
    assert f"the plan {PLAN} must be as committed" in fresh_small.log("assemble")
    assert {path for path in fresh_small.changed() if path.startswith("results/")} == set()


def provenance(checkout: Checkout) -> dict:
    return json.loads((checkout.root / "results" / ROW / "provenance.json").read_bytes())


@pytest.mark.slow
def test_a_modified_checkout_is_told_and_rebuilt_when_clean(empty_small):
    (empty_small.root / "notes.txt").write_text("not committed\n")
    empty_small.build(f"results/{ROW}").ok()
    assert provenance(empty_small)["dirty"] is True
    folder = empty_small.root / "results" / ROW
    strict = verify_bundle(folder, empty_small.root, allow_dirty=False)
    assert [check.id for check in strict.failures] == ["eligibility:clean"]
    assert verify_bundle(folder, empty_small.root, allow_dirty=True).passed
    identity = empty_small.files(ROW)

    commit = empty_small.commit()
    run = empty_small.build(f"results/{ROW}").ok()
    assert f"{ROW} is provisional: it was made from a modified checkout" in run.output
    planned = run.jobs()[ROW]
    assert planned["simulate"] == 2, "products of a modified checkout must not be taken over"
    entries = provenance(empty_small)["jobs"]
    assert {entry["dirty"] for entry in entries} == {False}
    assert {entry["commit"] for entry in entries} == {commit}
    assert verify_bundle(folder, empty_small.root, allow_dirty=False).passed
    assert empty_small.files(ROW) == identity
