"""Boards grow: a further row, with code of its own, leaves all others current."""

import json
import re
import subprocess
import sys

import pytest
from checkouts import environment
from helpers import ROOT

# Each clones the project and looks at all of its rows.
pytestmark = pytest.mark.slow

FAMILY = "workflow/rowproof/chamber/family.py"

LOOK = """
import json, sys
from pathlib import Path
from rowproof.recipes import prepare
statuses = {}
launch = prepare(Path("."), Path("."), touch=False, statuses=statuses)
print(json.dumps({
    "states": {row.name: row.state for row in launch.rows},
    "keys": {row.name: row.keys for row in launch.rows},
    "blobs": {row.name: row.plan_blob for row in launch.rows},
    "reasons": {name: status.reasons for name, status in statuses.items()},
}))
"""

EGO = '''"""Stands still, in words of its own."""

from rowproof.chamber.cocarry.zero_player import ZeroPlayer


def build(root_seed: int) -> ZeroPlayer:
    """The ego, which draws nothing."""
    return ZeroPlayer()
'''

PLACER = '''"""Asks for a re-grasp and does nothing else."""

from rowproof.chamber.handover_cell import HandoverCell
from rowproof.chamber.handover_moves import Observation, Placement


def place(cell: HandoverCell, seen: Observation, initial_state_seed: int, root_seed: int) -> Placement:
    """Ask."""
    return Placement(0.0, 0.0, 0.0, 1.0)
'''

SCRIPT = '''"""``scripted-hasty``: the scripted player without a weakness, under another name."""

from rowproof.gptnt.players.scripted import Scripted
from rowproof.gptnt.players.turns import Player


def player() -> Player:
    """A new player."""
    return Scripted()
'''

# Writes the patch of a further rung, and prints the digest of its script.
RUNG = """
from pathlib import Path
from rowproof.hashing import sha256_hex
from rowproof.speedrun.patching import canonical_diff
from rowproof.speedrun.referee.ladder import SCRIPT_NAME, read_script
from rowproof.speedrun.steps import with_steps, write_patch
folder = Path("resources/speedrun")
base = read_script(folder, "R8")
write_patch(folder, "R9", "R8", canonical_diff(base, with_steps(base, 128), SCRIPT_NAME))
print(sha256_hex(read_script(folder, "R9").encode()))
"""

FINGERPRINT = """
from pathlib import Path
from rowproof.gptnt.player_config import load_player
print(load_player(Path("."), "scripted-hasty").fingerprint)
"""

MEMBER = """
  - name: scripted_hasty
    class: gptnt_player
    split: public
    role: hasty
    seed: 0
    params: {player: scripted-hasty}
"""

CANDIDATE = """    r9:
      script_sha256: {digest}
      expected: {{outcome: ok, tokens: down, time: down}}
"""


class Clone:
    """A clone that can be edited, committed and looked at."""

    def __init__(self, folder):
        self.root = folder / "rowproof"
        self.home = folder / "home"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(self.root)], check=True)

    def run(self, *command, code=0):
        env = environment(self.home, {"PYTHONPATH": str(self.root / "workflow")})
        done = subprocess.run(command, cwd=self.root, env=env, capture_output=True, text=True, timeout=600)
        assert done.returncode == code, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def look(self):
        return json.loads(self.run(sys.executable, "-c", LOOK))

    def rowproof(self, *arguments, code=0):
        return self.run(sys.executable, "-m", "rowproof", *arguments, code=code)

    def write(self, path, text):
        (self.root / path).write_text(text)

    def replace(self, path, old, new):
        text = (self.root / path).read_text()
        assert text.count(old) == 1, (path, old, text.count(old))
        self.write(path, text.replace(old, new))

    def commit(self):
        self.run("git", "add", "--all")
        self.run("git", "commit", "--quiet", "--message", "A further row")


@pytest.fixture
def clone(tmp_path):
    return Clone(tmp_path)


def list_row(clone, board, after, row, policy, **planned):
    """Add a row to plan and board, behind the row ``after``."""
    plan, path = f"config/plans/{board}.yaml", f"config/boards/{board}.yaml"
    (line,) = [each for each in (clone.root / plan).read_text().splitlines() if each.startswith(f"  {after}: {{")]
    entry = ", ".join(f"{key}: {value}" for key, value in {"policy": policy, **planned}.items())
    clone.replace(plan, f"{line}\n", f"{line}\n  {row}: {{{entry}}}\n")
    clone.replace(path, f"\n  {after}:\n", f"\n  {row}:\n    policy: {policy}\n  {after}:\n")
    return f"{board}/{row}"


def cocarry(clone):
    clone.write("workflow/rowproof/chamber/cocarry/egos/own_ego.py", EGO)
    clone.replace(FAMILY, '"cocarry_blind_impedance", *COCARRY', '"cocarry_blind_impedance", "own_ego", *COCARRY')
    return list_row(clone, "cocarry-v1", "b-stat", "own", "own_ego")


def handover(clone):
    clone.write("workflow/rowproof/chamber/handover_egos/own_ego.py", PLACER)
    clone.replace(FAMILY, '"random", "static", *HANDOVER', '"random", "static", "own_ego", *HANDOVER')
    return list_row(clone, "handover-v1", "b-stat", "own", "own_ego")


def gptnt(clone):
    board, members = "gptnt-single-self-async", "config/partners/gptnt-experts-v1.yaml"
    clone.write("workflow/rowproof/gptnt/players/scripts/scripted_hasty.py", SCRIPT)
    player = (clone.root / "config/players/scripted.yaml").read_text()
    own = player.replace("name: scripted", "name: scripted-hasty").replace("script: scripted", "script: scripted-hasty")
    clone.write("config/players/scripted-hasty.yaml", own)
    clone.write(members, (clone.root / members).read_text().rstrip() + MEMBER)
    fingerprint = clone.run(sys.executable, "-c", FINGERPRINT).strip()
    clone.replace(f"config/plans/{board}.yaml", "  latency_ms:", f"    scripted-hasty: {fingerprint}\n  latency_ms:")
    return list_row(clone, board, "scripted", "scripted-hasty", "scripted-hasty", partners="[scripted_hasty]")


def speedrun(clone):
    board = "nanogpt-speedrun-cpu-v1"
    digest = clone.run(sys.executable, "-c", RUNG).strip()
    clone.replace("workflow/rowproof/speedrun/family.py", '"r7", "r8")', '"r7", "r8", "r9")')
    clone.replace(f"config/plans/{board}.yaml", "    n1:\n", CANDIDATE.format(digest=digest) + "    n1:\n")
    return list_row(clone, board, "r8-batch-schedule", "r9-fewer-steps", "r9", campaign=2)


@pytest.mark.parametrize("grow", [cocarry, handover, gptnt, speedrun], ids=lambda grow: grow.__name__)
def test_a_further_row_leaves_all_others_current(clone, grow):
    before = clone.look()
    assert set(before["states"].values()) == {"current"}, before["reasons"]
    new = grow(clone)
    board = new.rpartition("/")[0]
    clone.rowproof("lock", board)
    clone.commit()
    after = clone.look()
    assert after["states"].pop(new) == "missing"
    assert after["states"] == before["states"]
    assert after["blobs"].pop(new) not in before["blobs"].values()
    assert after["blobs"] == before["blobs"]
    own = after["keys"].pop(new)
    assert after["keys"] == before["keys"]
    assert own["simulate"] not in {keys["simulate"] for keys in before["keys"].values()}
    # A row of the board as it was, held against the plan as it is.
    old = next(name for name in sorted(before["states"]) if name.startswith(f"{board}/"))
    # Attested code of rows that are too dear to run again is unknown to the verifier, so strictness refuses it.
    strict = ["--strict"] if grow in (handover, gptnt) else []
    clone.rowproof("verify", *strict, "--quiet", f"results/{old}")


@pytest.mark.parametrize("grow", [handover, gptnt], ids=lambda grow: grow.__name__)
def test_the_further_row_is_built_and_shown_beside_the_others(clone, grow):
    new = grow(clone)
    board, _, row = new.rpartition("/")
    clone.rowproof("lock", board)
    clone.commit()
    out = clone.run(sys.executable, "-m", "snakemake", "--cores", "2", f"results/{board}")
    assert "Nothing to be done" not in out
    changed = {line[3:] for line in clone.run("git", "status", "--porcelain").splitlines()}
    assert changed == {
        f"results/{new}/",
        *(f"results/{board}/leaderboard.{kind}" for kind in ("csv", "json", "md", "svg")),
    }
    clone.rowproof("verify", "--strict", "--quiet", f"results/{board}")
    page = (clone.root / f"results/{board}/leaderboard.md").read_text()
    joined = page.partition("## When rows joined")[2].partition("##")[0]
    was = (ROOT / f"results/{board}/leaderboard.md").read_text().partition("## When rows joined")[2].partition("##")[0]
    assert f"| {row} |" in joined and joined.count("| 20") == was.count("| 20") + 1


def test_what_binds_a_row_with_records_does_not_change(clone):
    clone.replace("config/plans/handover-v1.yaml", "episodes_per_partner: 50", "episodes_per_partner: 40")
    clone.commit()
    env = environment(clone.home, {"PYTHONPATH": str(clone.root / "workflow")})
    done = subprocess.run(
        [sys.executable, "-m", "rowproof", "why"], cwd=clone.root, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr
    for part in (
        "config/plans/handover-v1.yaml",
        "handover-v1/b-stat",
        "episodes_per_partner: 50 -> 40",
        "another version",
    ):
        assert part in done.stderr


EDITS = {
    "message of an error": (
        "workflow/rowproof/records.py",
        "lines must not be blank",
        "a line must not be blank, ever",
    ),
    "name of a local": ("workflow/rowproof/chamber/handover_task.py", "budget_s", "left_s"),
    "comment in a plan": ("config/plans/cocarry-v1.yaml", "rows:\n", "# Rows.\nrows:\n"),
    "note of a plan": ("config/plans/push-v1.yaml", "decision_rules: >-", "notes: all as before\ndecision_rules: >-"),
    "docstring": ("workflow/rowproof/chamber/cocarry/scene.py", '"""', '"""Now. '),
}


@pytest.mark.parametrize("edit", EDITS)
def test_tidying_makes_no_row_stale(clone, edit):
    path, old, new = EDITS[edit]
    text = (clone.root / path).read_text()
    assert old in text
    clone.write(path, re.sub(rf"\b{old}\b", new, text) if edit == "name of a local" else text.replace(old, new, 1))
    clone.commit()
    stale = [name for name, state in clone.look()["states"].items() if state != "current"]
    # Games and runs can tell of errors in their records, so there the texts of errors count.
    telling = ("gptnt-", "nanogpt-") if edit == "message of an error" else ()
    assert [name for name in stale if not name.startswith(telling)] == []


def test_moving_a_module_makes_no_row_stale(clone):
    """The task of the handover is moved, with all that import it."""
    old, new = "rowproof.chamber.handover_task", "rowproof.chamber.placing"
    package = clone.root / "workflow" / "rowproof" / "chamber"
    (package / "handover_task.py").rename(package / "placing.py")
    for path in (clone.root / "workflow").rglob("*.py"):
        text = path.read_text()
        if old in text:
            path.write_text(text.replace(old, new))
    clone.commit()
    states = clone.look()["states"]
    assert [name for name, state in states.items() if state != "current"] == []
