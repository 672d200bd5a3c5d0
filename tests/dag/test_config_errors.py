"""A mistake in a configuration file ends the launch with file, line, key and what is allowed, without a traceback."""

import pytest

CONFIG = "config/config.yaml"
BOARD = "config/boards/push-v1.yaml"
PLAN = "config/plans/push-v1.yaml"

# (name, file, old text, new text, what the message must hold; {line} is that of the last line of the new text)
CASES = [
    (
        "unknown_key",
        CONFIG,
        "shard_by: seed",
        "shard_by: seed\nshards: 3",
        ["{path}:{line}: shards: unknown key: must be one of", "shard_by"],
    ),
    (
        "duplicate_key",
        CONFIG,
        "shard_by: seed",
        "shard_by: seed\nshard_by: row",
        ["{path}:{line}: shard_by: keys must be unique", "line 3"],
    ),
    ("tag", CONFIG, "shard_by: seed", "shard_by: !secret seed", ["{path}:{line}: ", "tag", "!secret"]),
    (
        "bad_choice",
        CONFIG,
        "shard_by: seed",
        "shard_by: episode",
        ["{path}:{line}: shard_by: ", "'row', 'seed' or 'partner'", "'episode'"],
    ),
    (
        "wrong_type",
        PLAN,
        "episodes_per_partner: 50",
        "episodes_per_partner: many",
        ["{path}:{line}: grid.episodes_per_partner: ", "integer", "'many'"],
    ),
    ("bad_name", BOARD, "  b-rnd:", "  ../b-rnd:", ["{path}:{line}: rows", "../b-rnd"]),
    (
        "missing_policy",
        PLAN,
        "b-rnd: {policy: random}",
        "b-rnd: {policy: rondam}",
        ["{path}:{line}: rows.b-rnd.policy: ", "scripted_heuristic, random, static", "'rondam'"],
    ),
    (
        "missing_partner",
        PLAN,
        "partners: [scripted_heuristic]",
        "partners: [nobody]",
        ["{path}:{line}: grid.partners.0: ", "scripted_heuristic", "'nobody'"],
    ),
    ("missing_plan", BOARD, "plan: push-v1", "plan: push-v2", ["{path}:{line}: plan: ", "config/plans/", "push-v2"]),
    ("missing_board", CONFIG, "push-v1]", "pull-v1]", ["{path}:{line}: boards.1: ", "config/boards/", "'pull-v1'"]),
    ("damaged_yaml", PLAN, "seeds: [0, 1", "seeds: [0, 1]]", ["{path}:{line}: ", "one valid YAML document"]),
    ("bad_pin", "requirements.lock", "numpy==", "numpy>=", ["{path}:{line}: ", "name==version", "numpy>="]),
]


# One of each kind in the fast part: schema, reference, lock.
FAST = ("unknown_key", "missing_policy", "bad_pin")


@pytest.mark.parametrize(
    ("path", "old", "new", "parts"),
    [pytest.param(*case, id=name, marks=[] if name in FAST else pytest.mark.slow) for name, *case in CASES],
)
def test_message_of(unbuilt, path, old, new, parts):
    unbuilt.edit(path, old, new)
    before = (unbuilt.root / path).read_text().partition(new)[0]
    line = f"{before}{new}".count("\n") + 1
    run = unbuilt.dry_run()
    assert run.code == 1
    assert "Traceback" not in run.output
    for part in parts:
        assert part.format(path=path, line=line) in run.output
