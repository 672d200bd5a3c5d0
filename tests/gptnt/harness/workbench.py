"""What several tests of the harness need."""

import pytest
from helpers import ROOT
from rowproof.errors import ConfigError
from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.doctor import check_players, check_run_plan, load_anchor_players
from rowproof.gptnt.runs import RunManifest, load_anchors, load_manifest
from rowproof.gptnt.spec import Spec
from rowproof.gptnt.suite import Protocol
from rowproof.gptnt.suite_lock import load_lock
from rowproof.plain_data import read_model

SOLO = Protocol(role="defuser", communication_style="sync", is_playing_alone=True, include_manual=False)
DEFUSER = Protocol(role="defuser", communication_style="sync", is_playing_alone=False, include_manual=False)
EXPERT = Protocol(role="expert", communication_style="sync", is_playing_alone=False, include_manual=True)
WIRES = Mission(1, 300, ("Wires",), 1)


def solo_spec(**changes):
    """The spec whose fingerprint is published."""
    return Spec(
        **{
            "mission_spec": WIRES,
            "mission_set": "single_module",
            "suite_name": "single-parametric-sync",
            "suite_revision": 1,
            "defuser_protocol": SOLO,
            "defuser_name": "test-defuser",
            "expert_protocol": None,
            "expert_name": None,
            **changes,
        }
    )


def manifest(players=None, **changes):
    """A run of scripted players; ``players`` is a mapping from file name to count."""
    roster = [{"player": name, "count": count} for name, count in (players or {"test-defuser": 2}).items()]
    data = {"suites": ["multi-self-sync"], "rooms": 1, "players": roster, **changes}
    return read_model(data, RunManifest, "run")


def examine(run, root=ROOT, specs=None, lock=None):
    """The run plan of a manifest, or of a shipped one by its name."""
    if isinstance(run, str):
        run = load_manifest(root / f"config/runs/{run}.yaml", root)
    rows = check_players(root, run.players, {}, missing_key="warn")
    anchors = load_anchors(root, run)
    players = load_anchor_players(root, anchors, rows)
    return check_run_plan(run, rows, load_lock(root) if lock is None else lock, anchors, players, specs)


def statuses(plan):
    """Name to status of the checks of a run plan."""
    return {item.name: item.status for item in plan.section.checks}


def edit(root, file, old, new):
    """Change the first ``old`` in a file, which must hold it."""
    path = root / file
    text = path.read_text()
    assert old in text, f"{file} holds no {old!r}"
    path.write_text(text.replace(old, new, 1))


def refusal(function, *arguments):
    """The message with which a call is refused."""
    with pytest.raises(ConfigError) as caught:
        function(*arguments)
    return str(caught.value)
