"""The lock beside a plan: what it pins, and that nothing pinned may become something else."""

import json
import shutil

import pytest
from bundles import commit_all
from helpers import ROOT
from rowproof import recipes
from rowproof.boards import load_board
from rowproof.errors import ConfigError, RecordError
from rowproof.plan_lock import check_lock, lock_path, pinned_by_row, read_lock, wanted, write_lock
from rowproof.records import encode_document

HANDOVER, GPTNT = "handover-v1", "gptnt-single-self-async"
LOCK = f"config/plans/{HANDOVER}.lock.json"


@pytest.fixture
def project(tmp_path):
    """The shipped configuration, for this test to change."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    return tmp_path


def edit(path, old, new):
    text = path.read_text()
    assert old in text, f"{path} holds no {old!r}"
    path.write_text(text.replace(old, new, 1))


def refusal(root, board=HANDOVER):
    with pytest.raises(ConfigError) as caught:
        check_lock(load_board(root, board))
    return str(caught.value)


@pytest.mark.parametrize("path", sorted((ROOT / "config/boards").rglob("*.yaml")), ids=lambda path: path.stem)
def test_the_shipped_plans_are_locked(path):
    name = path.relative_to(ROOT / "config/boards").with_suffix("").as_posix()
    setup = load_board(ROOT, name)
    check_lock(setup)
    assert wanted(setup)


def test_a_lock_lies_beside_its_plan():
    assert lock_path("config/plans/admission/x-v1.yaml") == "config/plans/admission/x-v1.lock.json"


CHANGES = [
    (
        HANDOVER,
        "config/partners/handover-place-partners-v1.yaml",
        ('grasp_pose_bias_deg: "30.0"', 'grasp_pose_bias_deg: "31.0"'),
        "partner handover_place_partners@v1/presenter_mismatch_30",
    ),
    (HANDOVER, "config/training/handover-aht.yaml", ("clip: 0.1", "clip: 0.2"), "training handover-aht"),
    (
        GPTNT,
        "config/players/scripted-slow.yaml",
        ("script: scripted-slow", "script: scripted-careless"),
        "players scripted-slow",
    ),
]


@pytest.mark.parametrize(("board", "file", "change", "thing"), CHANGES, ids=[each[3] for each in CHANGES])
def test_the_same_name_with_other_content_is_refused(project, board, file, change, thing):
    edit(project / file, *change)
    assert refusal(project, board) == (
        f"config/plans/{board}.lock.json: {thing} must be as it was when the plan was locked, found other content: "
        "restore it, or give the new content a name or version of its own"
    )


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("config/partners/handover-place-partners-v1.yaml", "floor: 0.9", "floor: 0.8"),
        ("config/partners/handover-place-partners-v1.yaml", "# Presenters", "# All presenters"),
        ("config/training/handover-aht.yaml", "# The ego", "# An ego"),
        ("config/training/cocarry-aht.yaml", "clip: 0.1", "clip: 0.2"),
    ],
)
def test_what_no_row_of_the_board_takes_may_change(project, file, old, new):
    edit(project / file, old, new)
    check_lock(load_board(project, HANDOVER))


def test_a_changed_capability_of_a_player_is_refused(project):
    """The plan itself pins capabilities, so it speaks before the lock."""
    edit(project / "config/players/scripted-slow.yaml", "tokens_per_image: 200", "tokens_per_image: 201")
    with pytest.raises(ConfigError, match="scripted-slow"):
        check_lock(load_board(project, GPTNT))


def test_a_changed_suite_is_refused(project):
    """Suites come from where they are frozen; a live one may move on."""
    suite = project / "config/suites/single-self-async.yaml"
    suite.write_text(suite.read_text().replace("revision: 1", "revision: 2"))
    check_lock(load_board(project, GPTNT))
    frozen = project / "config/suites/suites.lock"
    text = frozen.read_text()
    frozen.write_text(text.replace("timeLimit = 300", "timeLimit = 301"))
    assert frozen.read_text() != text
    with pytest.raises(ConfigError, match=r"suite|missions"):
        check_lock(load_board(project, GPTNT))


# --- the file


def lock_of(root):
    return json.loads((root / LOCK).read_bytes())


def rewrite(root, change):
    document = lock_of(root)
    change(document)
    (root / LOCK).write_bytes(encode_document(document))


def test_a_missing_entry_is_named_with_what_to_do(project):
    rewrite(project, lambda document: document["digests"].pop("training handover-aht"))
    assert refusal(project) == (
        f"{LOCK}: must pin training handover-aht, found no digest: run `rowproof lock {HANDOVER}` and commit the file "
        "with the plan"
    )


def test_a_missing_file_names_all_that_it_must_pin(project):
    everything = list(lock_of(project)["digests"])
    (project / LOCK).unlink()
    message = refusal(project)
    assert all(name in message for name in everything) and "found no digest: run `rowproof lock" in message


def test_an_edited_digest_is_refused(project):
    rewrite(project, lambda document: document["digests"].update({"training handover-aht": "0" * 64}))
    assert "training handover-aht must be as it was when the plan was locked" in refusal(project)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]\n",
        b"{}\n",
        b"\xff\n",
        b'{"schema": 1}\n',
        encode_document({"schema": "rowproof/plan-lock/2", "plan": HANDOVER, "digests": {}}),
        encode_document({"schema": "rowproof/plan-lock/1", "plan": HANDOVER, "digests": []}),
        encode_document({"schema": "rowproof/plan-lock/1", "plan": HANDOVER, "digests": {"a": "0" * 63}}),
        encode_document({"schema": "rowproof/plan-lock/1", "plan": HANDOVER, "digests": {"a": 0}}),
        encode_document({"schema": "rowproof/plan-lock/1", "plan": HANDOVER, "digests": {"a": "F" * 64}}),
        encode_document({"schema": "rowproof/plan-lock/1", "plan": HANDOVER, "digests": {"a": "0" * 64 + "\n"}}),
        encode_document({"schema": "rowproof/plan-lock/1", "plan": HANDOVER, "digests": {}, "more": 1}),
    ],
)
def test_a_malformed_lock_is_refused_by_name_and_left(project, data):
    (project / LOCK).write_bytes(data)
    assert refusal(project).startswith(LOCK)
    with pytest.raises(RecordError, match="here"):
        read_lock(data, "here", HANDOVER)
    with pytest.raises(ConfigError):
        write_lock(load_board(project, HANDOVER))
    assert (project / LOCK).read_bytes() == data


def test_a_lock_of_another_plan_is_refused(project):
    rewrite(project, lambda document: document.update(plan="push-v1"))
    message = refusal(project)
    assert message.startswith(LOCK) and "push-v1" in message


# --- writing


def test_writing_a_whole_lock_changes_nothing(project):
    data = (project / LOCK).read_bytes()
    assert write_lock(load_board(project, HANDOVER)) is False
    assert (project / LOCK).read_bytes() == data


def test_a_lock_from_nothing_is_the_one_that_is_committed(project):
    data = (project / LOCK).read_bytes()
    (project / LOCK).unlink()
    assert write_lock(load_board(project, HANDOVER)) is True
    assert (project / LOCK).read_bytes() == data


def test_writing_adds_and_keeps_what_no_row_takes_any_more(project):
    rewrite(project, lambda document: document["digests"].pop("training handover-aht"))
    rewrite(project, lambda document: document["digests"].update({"training older": "1" * 64}))
    before = lock_of(project)["digests"]
    assert write_lock(load_board(project, HANDOVER)) is True
    after = lock_of(project)["digests"]
    assert set(after) - set(before) == {"training handover-aht"} and before.items() <= after.items()
    assert list(after) == sorted(after)


def test_writing_changes_no_entry(project):
    edit(project / "config/training/handover-aht.yaml", "clip: 0.1", "clip: 0.2")
    before = (project / LOCK).read_bytes()
    with pytest.raises(ConfigError, match="training handover-aht must be as it was when the plan was locked"):
        write_lock(load_board(project, HANDOVER))
    assert (project / LOCK).read_bytes() == before


def test_another_version_of_the_partners_adds_entries(project):
    partners = project / "config/partners/handover-place-partners-v1.yaml"
    edit(partners, "version: 1", "version: 2")
    before = lock_of(project)["digests"]
    assert write_lock(load_board(project, HANDOVER)) is True
    after = lock_of(project)["digests"]
    assert before.items() <= after.items()
    assert {name.partition("/")[0] for name in set(after) - set(before)} == {"partner handover_place_partners@v2"}


# --- what is pinned


def test_a_row_pins_its_own_partners_training_and_players():
    setup = load_board(ROOT, GPTNT)
    assert list(pinned_by_row(setup, "scripted-slow")) == [
        "missions",
        "partner gptnt_experts@v1/scripted_slow",
        "players scripted-slow",
        "suite",
    ]
    assert list(pinned_by_row(load_board(ROOT, HANDOVER), "b-aht")) == [
        "partner handover_place_partners@v1/presenter_mismatch_30",
        "partner handover_place_partners@v1/presenter_mismatch_45",
        "partner handover_place_partners@v1/presenter_offgrid_b",
        "training handover-aht",
    ]


def test_the_start_of_a_build_asks_for_the_lock(project, tmp_path):
    (project / "config/config.yaml").write_text(f"schema: rowproof/config/1\nboards: [{HANDOVER}]\nshard_by: seed\n")
    shutil.copy(ROOT / "requirements.lock", project)
    (project / LOCK).unlink()
    commit_all(project)
    with pytest.raises(ConfigError, match="run `rowproof lock handover-v1`"):
        recipes.prepare(project, tmp_path / "w", touch=False)
