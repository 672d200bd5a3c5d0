import copy
import itertools
import json
import os
import shutil
import subprocess
import sys
import time

import pytest
import yaml
from bundles import make_project, make_row
from helpers import ROOT
from rowproof import recipes
from rowproof.boards import load_board
from rowproof.closure import HashCache
from rowproof.errors import ConfigError
from rowproof.layout import PROVENANCE, SUMS, bundle_files, document_digest, render_sums
from rowproof.recipes import (
    STAGES,
    compare_recipes,
    prepare,
    read_launch,
    read_pins,
    read_recorded,
    row_recipes,
    shards_of,
    stage_keys,
    write_launch,
)
from rowproof.records import digest, encode_document

BOARD, ROW = "handover-v1", "b-stat"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return make_project(tmp_path_factory.mktemp("project") / "p", episodes_per_partner=2)


@pytest.fixture(scope="module")
def built(project, tmp_path_factory):
    return make_row(project, tmp_path_factory.mktemp("results"), BOARD, ROW)


@pytest.fixture
def bundle(built, tmp_path):
    return shutil.copytree(built, tmp_path / "bundle")


@pytest.fixture
def workdir(built, tmp_path):
    shutil.copytree(built, tmp_path / "w" / "results" / BOARD / ROW)
    return tmp_path / "w"


@pytest.fixture
def own(project, tmp_path):
    """A project of the test's own, whose files it may edit."""
    return shutil.copytree(project, tmp_path / "own")


def recipes_of(root, row=ROW, cache=None):
    return row_recipes(load_board(root, BOARD), row, root, cache or HashCache(None), read_pins(root))


def edit(path, old, new):
    text = path.read_text()
    assert old in text, f"{path} holds no {old!r}"
    path.write_text(text.replace(old, new, 1))


# --- keys


def test_stage_keys_chain(project):
    found = recipes_of(project)
    assert tuple(found) == STAGES
    keys = stage_keys(found)
    for before, stage in itertools.pairwise(STAGES):
        assert found[stage]["upstream"] == {before: keys[before]}
    assert found[STAGES[0]]["upstream"] == {}
    assert keys == {stage: digest(found[stage]) for stage in STAGES}


@pytest.mark.parametrize("stage", STAGES)
def test_a_changed_stage_changes_the_keys_from_there_on(own, stage):
    before = stage_keys(recipes_of(own))
    with (own / recipes.SCRIPTS[stage]).open("a") as stream:
        stream.write("\nadded = 1\n")
    after = stage_keys(recipes_of(own))
    index = STAGES.index(stage)
    assert [before[s] == after[s] for s in STAGES] == [i < index for i in range(len(STAGES))]


def test_rows_and_boards_have_keys_of_their_own():
    keys = []
    for board in ("handover-v1", "push-v1"):
        setup = load_board(ROOT, board)
        for row in setup.board.rows:
            keys.append(stage_keys(row_recipes(setup, row, ROOT, HashCache(None), read_pins(ROOT)))["bundle"])
    assert len(set(keys)) == 6


def test_keys_do_not_depend_on_the_order_in_which_files_are_written(own):
    before = stage_keys(recipes_of(own))
    for path in (own / "config/boards/handover-v1.yaml", own / "config/partners/handover-place-partners-v1.yaml"):
        data = dict(reversed(yaml.safe_load(path.read_text()).items()))
        if "members" in data:
            data["members"] = [
                {k: dict(reversed(v.items())) if isinstance(v, dict) else v for k, v in reversed(member.items())}
                for member in data["members"]
            ]
        path.write_text(yaml.safe_dump(data, sort_keys=False))
    assert stage_keys(recipes_of(own)) == before


def test_keys_do_not_depend_on_the_place_of_the_project(project, tmp_path):
    other = shutil.copytree(project, tmp_path / "deeper" / "down é")
    assert stage_keys(recipes_of(other)) == stage_keys(recipes_of(project))


PRINT_KEYS = """
import json, sys
from pathlib import Path
from rowproof.boards import load_board
from rowproof.closure import HashCache
from rowproof.recipes import read_pins, row_recipes, stage_keys
root = Path(sys.argv[1])
setup = load_board(root, "handover-v1")
print(json.dumps(stage_keys(row_recipes(setup, "b-stat", root, HashCache(None), read_pins(root)))))
"""


@pytest.mark.parametrize(
    "extra", [{"PYTHONHASHSEED": "1", "LC_ALL": "C"}, {"PYTHONHASHSEED": "77", "TZ": "Asia/Tokyo"}]
)
def test_keys_do_not_depend_on_process_settings(project, extra, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(project / "workflow"), **extra}
    done = subprocess.run(
        [sys.executable, "-c", PRINT_KEYS, str(project)], env=environment, cwd=tmp_path, capture_output=True, check=True
    )
    assert json.loads(done.stdout) == stage_keys(recipes_of(project))


def test_a_cache_on_disk_gives_the_same_keys(project, tmp_path):
    store = tmp_path / "cache.json"
    for _ in range(2):
        cache = HashCache(store)
        assert stage_keys(recipes_of(project, cache=cache)) == stage_keys(recipes_of(project))
        cache.save()


# --- what changed


def changes(before, after):
    return [(c.kind, c.item, c.stage) for c in compare_recipes(before, after)]


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        ("workflow/rowproof/chamber/handover.py", "import ", "X = 1\nimport ", ("code", "{file}", "simulate")),
        ("workflow/rowproof/chamber/grid.py", "from ", "X = 1\nfrom ", ("code", "{file}", "specs")),
        ("workflow/rowproof/evidence/statistics.py", "import ", "X = 1\nimport ", ("code", "{file}", "summary")),
        ("workflow/rowproof/evidence/bundle.py", "from coll", "X = 1\nfrom coll", ("code", "{file}", "bundle")),
        ("workflow/rowproof/records.py", "import json", "X = 1\nimport json", ("code", "{file}", "specs")),
        ("requirements.lock", "numpy==", "numpy==9.", ("pin", "numpy", None)),
        ("config/boards/handover-v1.yaml", "tier: exact", "tier: outcome", ("config", "tier", "bundle")),
        (
            "config/partners/handover-place-partners-v1.yaml",
            'grasp_pose_bias_deg: "30.0"',
            'grasp_pose_bias_deg: "31.0"',
            ("config", "setup.members[presenter_mismatch_30].params.grasp_pose_bias_deg", "specs"),
        ),
    ],
)
def test_one_change_is_named_once_at_its_first_stage(own, file, old, new, expected):
    before = recipes_of(own)
    edit(own / file, old, new)
    found = changes(before, recipes_of(own))
    kind, item, stage = expected
    assert [c[:2] for c in found] == [(kind, item.format(file=file))]
    assert stage is None or found[0][2] == stage


@pytest.mark.parametrize(
    ("old", "new", "item"),
    [
        ("lateral_window_m: 0.001", "lateral_window_m: 0.002", "setup.cell.lateral_window_m"),
        ("n_resamples: 100", "n_resamples: 101", "statistics.n_resamples"),
        ("episodes_per_partner: 2", "episodes_per_partner: 3", "setup.episodes_per_partner"),
    ],
)
def test_a_changed_plan_is_named_with_its_value_and_its_blob(own, old, new, item):
    before = recipes_of(own)
    edit(own / "config/plans/handover-v1.yaml", old, new)
    found = compare_recipes(before, recipes_of(own))
    named = {c.item: c for c in found}
    assert set(named) == {item, "plan.blob"}
    # Another plan asks for new episodes, whatever changed in it.
    assert named["plan.blob"].stage == "specs"
    assert str(named[item].before) != str(named[item].after)
    assert named[item].describe().startswith(f"{named[item].stage}: config {item}: ")


def test_equal_recipes_have_no_changes(project):
    assert changes(recipes_of(project), recipes_of(project)) == []


def test_added_and_removed_code_is_called_so(project):
    before, after = recipes_of(project), recipes_of(project)
    before["bundle"]["code"]["workflow/old.py"] = "0"
    after["bundle"]["code"]["workflow/new.py"] = "0"
    assert [c.describe() for c in compare_recipes(before, after)] == [
        "bundle: code workflow/new.py added",
        "bundle: code workflow/old.py removed",
    ]


def test_comments_and_unrelated_files_change_nothing(own):
    before = recipes_of(own)
    with (own / "workflow/rowproof/chamber/handover.py").open("a") as stream:
        stream.write("\n# a comment\n")
    (own / "workflow/rowproof/new.py").write_text("x = 1\n")
    edit(own / "workflow/rowproof/chamber/push.py", "import ", "X = 1\nimport ")
    edit(own / "requirements.lock", "matplotlib==", "matplotlib==9.")
    edit(own / "config/boards/handover-v1.yaml", "title: ", "title: new ")
    assert recipes_of(own) == before


# --- what a bundle says of itself


def expected_files(project):
    return bundle_files(load_board(project, BOARD).plan.grid.seeds)


def problems(project, bundle):
    return read_recorded(bundle, expected_files(project), HashCache(None)).problems


def test_an_intact_bundle_vouches_for_all_its_files(project, bundle):
    found = read_recorded(bundle, expected_files(project), HashCache(None))
    assert found.problems == []
    assert found.good == set(expected_files(project)) - {SUMS, PROVENANCE}
    assert found.keys == stage_keys(recipes_of(project))
    assert found.provenance["dirty"] is False


@pytest.mark.parametrize("how", ["delete", "flip", "append", "truncate", "empty", "link", "folder"])
@pytest.mark.parametrize(
    "name",
    [
        "REPRO.txt",
        SUMS,
        "bundle.json",
        "episodes_seed1.jsonl",
        "identities.json",
        "plan.yaml",
        PROVENANCE,
        "recipe.json",
    ],
)
def test_every_damage_of_every_file_is_a_problem_that_names_it(project, bundle, tmp_path, name, how):
    path = bundle / name
    data = path.read_bytes()
    path.unlink()
    if how == "flip":
        path.write_bytes(data[:20] + bytes([data[20] ^ 1]) + data[21:])
    elif how == "append":
        path.write_bytes(data + b"\n")
    elif how == "truncate":
        path.write_bytes(data[:-1])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "link":
        (tmp_path / "elsewhere").write_bytes(data)
        path.symlink_to(tmp_path / "elsewhere")
    elif how == "folder":
        path.mkdir()
    assert any(name in problem for problem in problems(project, bundle)), problems(project, bundle)


def test_a_foreign_file_is_named_and_left(project, bundle):
    (bundle / "notes.txt").write_text("mine")
    assert problems(project, bundle) == ["notes.txt does not belong to the bundle: move it away"]


def test_a_digest_list_of_other_files_is_a_problem(project, bundle):
    files = {p.name: p.read_bytes() for p in bundle.iterdir() if p.name not in (SUMS, PROVENANCE, "REPRO.txt")}
    (bundle / SUMS).write_bytes(render_sums(files))
    assert f"{SUMS} lists other files than the bundle must have" in problems(project, bundle)


def test_provenance_of_another_bundle_is_a_problem(project, bundle):
    document = json.loads((bundle / PROVENANCE).read_bytes())
    document["row_digest"] = "0" * 64
    document["digest"] = document_digest(document)
    (bundle / PROVENANCE).write_bytes(encode_document(document))
    assert problems(project, bundle) == [f"{PROVENANCE} belongs to another bundle"]


def test_missing_folder_lists_every_file(project, tmp_path):
    found = problems(project, tmp_path / "absent")
    assert [p for p in found if p.endswith(" is missing")] == [f"{n} is missing" for n in expected_files(project)]


# --- signals and launches


def signal(workdir):
    return workdir / "work" / "recipes" / BOARD / ROW / "state.json"


def state(project, workdir):
    launch = prepare(project, workdir)
    return launch.row(f"{BOARD}/{ROW}")


def test_a_current_row_has_a_signal_older_than_anything(project, workdir):
    assert state(project, workdir).state == "current"
    assert signal(workdir).stat().st_mtime == 0
    content = signal(workdir).read_bytes()
    os.utime(signal(workdir))
    assert state(project, workdir).state == "current"
    assert signal(workdir).stat().st_mtime == 0 and signal(workdir).read_bytes() == content


def test_a_damaged_row_has_a_newer_signal_with_new_content_each_time(project, workdir):
    assert state(project, workdir).state == "current"
    bundle = workdir / "results" / BOARD / ROW
    later = time.time() + 1000
    for path in bundle.iterdir():
        os.utime(path, (later, later))
    (bundle / "REPRO.txt").write_text("x\n")
    os.utime(bundle / "REPRO.txt", (later, later))
    seen = set()
    for _ in range(3):
        row = state(project, workdir)
        assert row.state == "damaged" and row.reasons == (f"REPRO.txt differs from its hash in {SUMS}",)
        assert signal(workdir).stat().st_mtime > later
        seen.add(signal(workdir).read_bytes())
    assert len(seen) == 3


def test_a_row_without_bundle_is_missing(project, tmp_path):
    row = state(project, tmp_path)
    assert (row.state, row.reasons) == ("missing", ("there is no bundle yet",))
    assert signal(tmp_path).stat().st_mtime >= time.time() - 60


def test_looking_writes_nothing(project, workdir):
    prepare(project, workdir, touch=False)
    assert sorted(path.name for path in workdir.iterdir()) == ["results"]


def test_launch_file_round_trip(project, workdir):
    launch = prepare(project, workdir)
    path = write_launch(launch, workdir)
    assert read_launch(path) == launch
    assert write_launch(copy.deepcopy(launch), workdir) == path
    assert {row.name for row in launch.rows} == {f"{BOARD}/{r}" for r in ("ref-script", "b-rnd", "b-stat")}


# --- pins and shards


@pytest.mark.parametrize(
    "line", ["numpy", "numpy>=2", "numpy==2; python_version>'3'", "-r other.txt", "numpy == 2", "numpy==", "a b==1"]
)
def test_a_line_that_is_no_pin_is_refused(tmp_path, line):
    (tmp_path / "requirements.lock").write_text(f"# text\n\nscipy==1.0 # why\n{line}\n")
    with pytest.raises(ConfigError, match=r"requirements\.lock:4: must be name==version, found"):
        read_pins(tmp_path)


def test_pin_names_are_normalised(tmp_path):
    (tmp_path / "requirements.lock").write_text("Some_Name.x==1.0+cpu\n")
    assert read_pins(tmp_path) == {"some-name-x": "1.0+cpu"}


def test_a_missing_lock_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"requirements\.lock: must be a readable file"):
        read_pins(tmp_path)


@pytest.mark.parametrize(("shard_by", "count"), [("row", 1), ("seed", 3), ("partner", 6)])
def test_shards_hold_every_episode_exactly_once(shard_by, count):
    seeds, partners = (4, 0, 2), ("b", "a")
    shards = shards_of(seeds, partners, shard_by)
    assert len(shards) == count == len({shard.name for shard in shards})
    for seed, partner in itertools.product(seeds, partners):
        assert sum(shard.holds(seed, partner) for shard in shards) == 1
    assert not any(shard.holds(1, "a") for shard in shards)
