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
from bundles import code_tree, commit_all, make_project, make_row
from bundles import recipes_of as recipes_of_row
from helpers import ROOT
from rowproof.boards import load_board
from rowproof.checkpoints import store, uri_of
from rowproof.closure import HashCache
from rowproof.errors import ConfigError, StaleInputError
from rowproof.launches import LATENCY_VARIABLE
from rowproof.layout import PROVENANCE, SUMS, bundle_files, document_digest, learned_files, render_sums
from rowproof.plan_lock import write_lock
from rowproof.recipes import (
    compare_recipes,
    prepare,
    read_launch,
    read_pins,
    read_recorded,
    row_recipes,
    shards_of,
    write_launch,
)
from rowproof.records import digest, encode_document
from rowproof.stages import LEARNED_STAGES, SCRIPTS, STAGES, bare, stage_keys

BOARD, ROW = "handover-v1", "b-stat"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return make_project(tmp_path_factory.mktemp("project") / "p", episodes_per_partner=2, learned=True)


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
    return recipes_of_row(root, BOARD, row, cache)


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
    assert keys == {stage: digest(bare(found[stage])) for stage in STAGES}


@pytest.mark.parametrize("stage", STAGES)
def test_a_changed_stage_changes_the_keys_from_there_on(own, stage):
    before = stage_keys(recipes_of(own))
    with (own / SCRIPTS[stage]).open("a") as stream:
        stream.write("\nadded = 1\n")
    after = stage_keys(recipes_of(own))
    index = STAGES.index(stage)
    assert [before[s] == after[s] for s in STAGES] == [i < index for i in range(len(STAGES))]


def test_rows_and_boards_have_keys_of_their_own():
    keys = []
    for board in ("handover-v1", "push-v1"):
        setup = load_board(ROOT, board)
        for row in setup.board.rows:
            keys.append(stage_keys(row_recipes(setup, row, code_tree(ROOT)))["bundle"])
    assert len(set(keys)) == len(keys) >= 6


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
from rowproof.recipes import CodeTree, read_pins, row_recipes
from rowproof.stages import stage_keys
root = Path(sys.argv[1])
tree = CodeTree.of_checkout(root, HashCache(None), read_pins(root))
print(json.dumps(stage_keys(row_recipes(load_board(root, "handover-v1"), "b-stat", tree))))
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
        ("workflow/rowproof/chamber/handover.py", "from ", "X = 1\nfrom ", ("code", "{file}", "simulate")),
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
    ("old", "new", "item", "stage"),
    [
        ("lateral_window_m: 0.001", "lateral_window_m: 0.002", "setup.cell.lateral_window_m", "specs"),
        ("n_resamples: 100", "n_resamples: 101", "statistics.n_resamples", "summary"),
        ("episodes_per_partner: 2", "episodes_per_partner: 3", "setup.episodes_per_partner", "specs"),
    ],
)
def test_a_changed_plan_is_named_with_its_value_where_it_enters(own, old, new, item, stage):
    before = recipes_of(own)
    edit(own / "config/plans/handover-v1.yaml", old, new)
    (change,) = compare_recipes(before, recipes_of(own))
    assert (change.item, change.stage) == (item, stage)
    assert change.describe() == f"{stage}: config {item}: {change.before!r} -> {change.after!r}"
    assert change.before != change.after


def test_equal_recipes_have_no_changes(project):
    assert changes(recipes_of(project), recipes_of(project)) == []


def test_added_and_removed_code_is_called_so(project):
    before, after = recipes_of(project), recipes_of(project)
    before["bundle"] |= {"code": {"form": 2, "key": "0"}, "files": {"workflow/old.py": "0", "workflow/a.py": "1"}}
    after["bundle"] |= {"code": {"form": 2, "key": "1"}, "files": {"workflow/new.py": "2", "workflow/b.py": "1"}}
    # The file that only moved is none of the causes.
    assert [c.describe() for c in compare_recipes(before, after)] == [
        "bundle: code workflow/new.py added",
        "bundle: code workflow/old.py removed",
    ]


def test_changed_code_without_a_changed_file_is_named_by_its_script(project):
    before, after = recipes_of(project), recipes_of(project)
    after["bundle"]["code"] = {"form": 2, "key": "0"}
    (change,) = compare_recipes(before, after)
    assert change.describe() == "bundle: code workflow/scripts/assemble.py (what it reaches, or in which order) changed"


def test_the_places_of_code_enter_no_key(project):
    before, after = recipes_of(project), recipes_of(project)
    for recipe in after.values():
        recipe |= {"script": "elsewhere.py", "files": {f"new/{path}": sha for path, sha in recipe["files"].items()}}
    assert compare_recipes(before, after) == [] and stage_keys(before) == stage_keys(after)


def test_comments_and_unrelated_files_change_nothing(own):
    before = recipes_of(own)
    with (own / "workflow/rowproof/chamber/handover.py").open("a") as stream:
        stream.write("\n# a comment\n")
    (own / "workflow/rowproof/new.py").write_text("x = 1\n")
    edit(own / "workflow/rowproof/chamber/push.py", "import ", "X = 1\nimport ")
    edit(own / "requirements.lock", "matplotlib==", "matplotlib==9.")
    edit(own / "config/boards/handover-v1.yaml", "title: ", "title: new ")
    after = recipes_of(own)
    assert {stage: bare(recipe) for stage, recipe in after.items()} == {s: bare(recipe) for s, recipe in before.items()}
    # Jobs of a launch compare the bytes of files; they are none of the causes that are told.
    assert changes(before, after) == [] and after["simulate"]["files"] == before["simulate"]["files"]


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


@pytest.mark.parametrize("written_s", [None, 0.0, 1e10], ids=["now", "at time 0", "in the future"])
def test_a_damaged_row_has_a_newer_signal_with_new_content_each_time(project, workdir, written_s):
    assert state(project, workdir).state == "current"
    bundle = workdir / "results" / BOARD / ROW
    (bundle / "REPRO.txt").write_text("x\n")
    if written_s is not None:
        for path in [*bundle.iterdir(), signal(workdir)]:
            os.utime(path, (written_s, written_s))
    seen = set()
    for _ in range(3):
        row = state(project, workdir)
        assert row.state == "damaged" and row.reasons == (f"REPRO.txt differs from its hash in {SUMS}",)
        # To snakemake an output of time 0 is never too old, and an input from the future never right.
        newest_s = max(path.stat().st_mtime for path in bundle.iterdir())
        assert 0 < newest_s < signal(workdir).stat().st_mtime < time.time() + 2
        seen.add(signal(workdir).read_bytes())
    assert len(seen) == 3


@pytest.mark.parametrize("written_s", [0.0, 1e10], ids=["at time 0", "in the future"])
def test_what_jobs_read_is_never_from_the_future(project, workdir, written_s):
    row = state(project, workdir)
    (workdir / "results" / BOARD / ROW / "REPRO.txt").unlink()
    products = [workdir / path for stage in ("specs", "simulate", "summary") for path in row.products(stage)]
    for path in products:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    read = [*products, *(workdir / row.recipe_path(stage) for stage in row.keys)]
    elsewhere = workdir / "elsewhere"
    elsewhere.write_text("")
    products[0].unlink()
    products[0].symlink_to(elsewhere)
    for path in (*read, elsewhere):
        os.utime(path, (written_s, written_s))
    assert state(project, workdir).state == "damaged"
    assert all(0 < path.lstat().st_mtime < time.time() for path in read)
    assert elsewhere.stat().st_mtime == written_s, "what a link leads to is not ours"


@pytest.mark.parametrize("kind", ["file", "link", "dangling link"])
def test_what_is_no_folder_makes_way_for_a_staged_bundle(project, workdir, tmp_path, kind):
    staged = (workdir / state(project, workdir).staged).parent
    staged.parent.mkdir(parents=True, exist_ok=True)
    mine = tmp_path / "mine"
    if kind == "file":
        staged.write_text("")
    else:
        staged.symlink_to(mine)
    if kind == "link":
        mine.mkdir()
        (mine / "notes.txt").write_text("mine")
    (workdir / "results" / BOARD / ROW / "REPRO.txt").unlink()
    state(project, workdir)
    assert not staged.is_symlink() and not staged.exists()
    assert kind != "link" or (mine / "notes.txt").read_text() == "mine"


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
    assert {row.name for row in launch.rows} == {f"{BOARD}/{r}" for r in load_board(project, BOARD).board.rows}


@pytest.mark.parametrize("content", [None, b"", b"[]", b'{"root": 1}', b"\xff", b"rows"])
def test_a_damaged_launch_file_is_told(project, workdir, monkeypatch, content):
    monkeypatch.setenv(LATENCY_VARIABLE, "0.01")
    path = write_launch(prepare(project, workdir), workdir)
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(StaleInputError, match=r"must tell how this build was launched, found it missing or damaged"):
        read_launch(path)


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


HANDOVER_MODULE = "workflow/rowproof/chamber/handover.py"


@pytest.mark.parametrize("name", ["surely_unpinned", "surely_unpinned.part"])
def test_an_import_that_nothing_pins_is_refused_at_its_place(own, name):
    path = own / HANDOVER_MODULE
    path.write_text(path.read_text() + f"\nimport {name}\n")
    line = len(path.read_text().splitlines())
    with pytest.raises(ConfigError) as caught:
        recipes_of(own)
    top = name.partition(".")[0]
    assert str(caught.value).startswith(f"{HANDOVER_MODULE}:{line}: import {top}: what decides a record must be ")
    assert "requirements.lock pins, found neither: pin it there, or move the code into the package" in str(caught.value)


def test_an_import_inside_a_function_is_refused_likewise(own):
    path = own / HANDOVER_MODULE
    path.write_text(path.read_text() + "\ndef added():\n    from surely_unpinned import x\n    return x\n")
    with pytest.raises(ConfigError, match=rf"{HANDOVER_MODULE}:[0-9]+: import surely_unpinned: "):
        recipes_of(own)


def test_an_import_that_is_pinned_enters_the_pins_of_its_stage(own):
    before = recipes_of(own)
    assert "pillow" not in before["simulate"]["pins"]
    edit(own / HANDOVER_MODULE, "from typing import", "import PIL\nfrom typing import")
    pins = {stage: recipe["pins"] for stage, recipe in recipes_of(own).items()}
    assert pins["simulate"]["pillow"] == read_pins(own)["pillow"]
    assert not any("pillow" in pins[stage] for stage in ("specs", "summary", "bundle"))


@pytest.mark.parametrize(
    ("pin", "rows"),
    [("torch==", {"b-aht", "b-blind"}), ("numpy==", {"ref-script", "b-rnd", "b-stat", "b-aht", "b-blind"})],
)
def test_a_changed_pin_changes_exactly_the_rows_that_import_it(own, pin, rows):
    def keys():
        tree, setup = code_tree(own), load_board(own, BOARD)
        return {row: stage_keys(row_recipes(setup, row, tree)) for row in setup.board.rows}

    before = keys()
    edit(own / "requirements.lock", pin, f"{pin}9.")
    assert {row for row, own_keys in keys().items() if own_keys != before[row]} == rows


@pytest.mark.parametrize(("shard_by", "count"), [("row", 1), ("seed", 3), ("partner", 6)])
def test_shards_hold_every_episode_exactly_once(shard_by, count):
    seeds, partners = (4, 0, 2), ("b", "a")
    shards = shards_of(seeds, partners, shard_by)
    assert len(shards) == count == len({shard.name for shard in shards})
    for seed, partner in itertools.product(seeds, partners):
        assert sum(shard.holds(seed, partner) for shard in shards) == 1
    assert not any(shard.holds(1, "a") for shard in shards)


# --- learned rows: keys

COCARRY_LEARNED = ("b-aht", "b-blind", "b-joint")


def cocarry_keys(root, row="b-aht", cache=None):
    return stage_keys(recipes_of_row(root, "cocarry-v1", row, cache))


def first_changed(before, after):
    """The first stage whose key differs; from there on all must."""
    differing = [stage for stage in LEARNED_STAGES if before[stage] != after[stage]]
    assert differing == list(LEARNED_STAGES[len(LEARNED_STAGES) - len(differing) :])
    return differing[0] if differing else None


def test_learned_stage_keys_chain(project):
    found = recipes_of_row(project, "cocarry-v1", "b-aht")
    assert tuple(found) == LEARNED_STAGES == ("train", "select", *STAGES)
    keys = stage_keys(found)
    for before, stage in itertools.pairwise(LEARNED_STAGES):
        assert found[stage]["upstream"] == {before: keys[before]}
    assert found["train"]["upstream"] == {}
    assert found["train"]["pins"].keys() >= {"numpy", "sapien", "torch"}
    # Playing a checkpoint needs no torch.
    assert "torch" not in found["select"]["pins"] and "torch" not in found["simulate"]["pins"]


def test_rows_that_are_not_learned_have_no_training(project):
    assert tuple(recipes_of_row(project, "cocarry-v1", "b-stat")) == STAGES


def test_every_learned_row_has_trainings_of_its_own():
    assert len({cocarry_keys(ROOT, row)["train"] for row in COCARRY_LEARNED}) == 3


@pytest.fixture(scope="module")
def stage_of_edit(project, tmp_path_factory):
    """A function that tells at which stage of b-aht an edit of a file of code enters."""
    root = shutil.copytree(project, tmp_path_factory.mktemp("edited") / "p")
    cache = HashCache(None)
    before = cocarry_keys(root, cache=cache)

    def find(file):
        path = root / "workflow" / file
        text = path.read_text()
        path.write_text(text + "\nadded = 1\n")
        after = cocarry_keys(root, cache=cache)
        path.write_text(text)
        return first_changed(before, after)

    return find


@pytest.mark.parametrize(
    ("file", "stage"),
    [
        ("scripts/train.py", "train"),
        ("rowproof/chamber/cocarry/training.py", "train"),
        ("rowproof/chamber/cocarry/scene.py", "train"),
        ("rowproof/chamber/cocarry/telemetry.py", "train"),
        ("rowproof/chamber/learned/networks.py", "train"),
        ("rowproof/chamber/learned/policy.py", "train"),
        ("rowproof/chamber/learned/ppo.py", "train"),
        ("rowproof/chamber/learned/tensors.py", "train"),
        ("rowproof/chamber/learned/trainer.py", "train"),
        ("rowproof/seeding.py", "train"),
        ("scripts/select_checkpoint.py", "select"),
        ("rowproof/chamber/cocarry/learned_players.py", "select"),
        ("rowproof/chamber/cocarry/runner.py", "select"),
        ("rowproof/chamber/cocarry/validation.py", "select"),
        ("rowproof/evidence/selection.py", "select"),
        ("rowproof/chamber/cocarry/egos/random.py", None),
        ("rowproof/chamber/cocarry/engine.py", "simulate"),
        ("scripts/simulate.py", "simulate"),
        ("rowproof/evidence/statistics.py", "summary"),
        ("rowproof/evidence/bundle.py", "bundle"),
        ("rowproof/chamber/progress.py", None),
        ("rowproof/chamber/handover.py", None),
        ("rowproof/chamber/learned/__init__.py", "train"),
        ("rowproof/evidence/leaderboard.py", None),
        ("rowproof/evidence/verify.py", None),
        ("rowproof/jobs.py", None),
    ],
)
def test_code_enters_where_it_is_used_first(stage_of_edit, file, stage):
    assert stage_of_edit(file) == stage


PLAN_OF_COCARRY, TRAINING_OF_AHT = "config/plans/cocarry-v1.yaml", "config/training/cocarry-aht.yaml"


@pytest.mark.parametrize(
    ("file", "old", "new", "stage"),
    [
        (TRAINING_OF_AHT, "clip: 0.1", "clip: 0.2", "train"),
        (TRAINING_OF_AHT, "frames: 300000", "frames: 350000", "train"),
        (TRAINING_OF_AHT, "hidden_units: [256, 256]", "hidden_units: [256]", "train"),
        (TRAINING_OF_AHT, "# The ego", "# An ego", None),
        (PLAN_OF_COCARRY, "goal_radius_m: 0.1", "goal_radius_m: 0.2", "train"),
        (PLAN_OF_COCARRY, "force_peak: 130.0", "force_peak: 120.0", "select"),
        (PLAN_OF_COCARRY, "seeds: [9000, 9001, 9002, 9003]", "seeds: [9000, 9001]", "select"),
        (PLAN_OF_COCARRY, "episodes_per_seed: 3", "episodes_per_seed: 4", "select"),
        (PLAN_OF_COCARRY, "seeds: [0, 1, 2, 3, 4]", "seeds: [0, 1, 2, 3, 4, 5]", "specs"),
        (PLAN_OF_COCARRY, "episodes_per_partner: 50", "episodes_per_partner: 51", "specs"),
        (PLAN_OF_COCARRY, "n_resamples: 2000", "n_resamples: 2001", "summary"),
        (PLAN_OF_COCARRY, "schema:", "# Another plan, by this comment.\nschema:", None),
        ("requirements.lock", "torch==", "torch==9.", "train"),
        ("config/boards/cocarry-v1.yaml", "tier: outcome", "tier: exact", "bundle"),
    ],
)
def test_configuration_enters_where_it_is_used_first(own, file, old, new, stage):
    before = cocarry_keys(own)
    edit(own / file, old, new)
    assert first_changed(before, cocarry_keys(own)) == stage


def test_a_training_file_is_that_of_its_rows_alone(own):
    before = {row: cocarry_keys(own, row) for row in COCARRY_LEARNED}
    edit(own / TRAINING_OF_AHT, "clip: 0.1", "clip: 0.2")
    after = {row: cocarry_keys(own, row) for row in COCARRY_LEARNED}
    assert [row for row in COCARRY_LEARNED if before[row] != after[row]] == ["b-aht"]


def test_a_changed_hyperparameter_is_named_once_at_the_training(own):
    before = recipes_of_row(own, "cocarry-v1", "b-aht")
    edit(own / TRAINING_OF_AHT, "clip: 0.1", "clip: 0.2")
    assert changes(before, recipes_of_row(own, "cocarry-v1", "b-aht")) == [("config", "setup.training.clip", "train")]


# --- learned rows: adoption

LEARNED_ROW = "b-aht"


@pytest.fixture(scope="module")
def learned_built(project, tmp_path_factory):
    pytest.importorskip("rowproof.chamber.learned.networks", reason="torch (extra training) is not installed")
    return make_row(project, tmp_path_factory.mktemp("learned"), BOARD, LEARNED_ROW)


@pytest.fixture
def learned_workdir(learned_built, tmp_path):
    shutil.copytree(learned_built, tmp_path / "w" / "results" / BOARD / LEARNED_ROW)
    return tmp_path / "w"


def learned_state(root, workdir):
    return prepare(root, workdir).row(f"{BOARD}/{LEARNED_ROW}")


def change_later_stage(own):
    """Commit another way to compute summaries, which asks for no other trainings and no other episodes."""
    edit(own / "workflow/rowproof/evidence/statistics.py", "import ", "X = 1\nimport ")
    commit_all(own)


def present(plan, workdir, stage):
    return [path for path in plan.products(stage) if (workdir / path).exists()]


def test_an_intact_learned_bundle_vouches_for_all_its_files(project, learned_built):
    seeds = load_board(project, BOARD).plan.grid.seeds
    expected = bundle_files(seeds, learned=True)
    assert set(expected) - set(bundle_files(seeds)) == {name for seed in seeds for name in learned_files(seed)}
    found = read_recorded(learned_built, expected, HashCache(None))
    assert found.problems == [] and found.good == set(expected) - {SUMS, PROVENANCE}
    assert found.keys == stage_keys(recipes_of(project, LEARNED_ROW))


def test_an_intact_learned_row_is_current(project, learned_workdir):
    assert learned_state(project, learned_workdir).state == "current"


@pytest.mark.parametrize("name", learned_files(1))
def test_damage_of_what_was_learned_is_a_problem_that_names_it(project, learned_built, tmp_path, name):
    bundle = shutil.copytree(learned_built, tmp_path / "bundle")
    data = (bundle / name).read_bytes()
    (bundle / name).write_bytes(data[:-1])
    expected = bundle_files(load_board(project, BOARD).plan.grid.seeds, learned=True)
    assert read_recorded(bundle, expected, HashCache(None)).problems == [f"{name} differs from its hash in {SUMS}"]


def test_a_change_after_training_asks_for_no_training_in_a_clone(own, learned_workdir):
    change_later_stage(own)
    plan = learned_state(own, learned_workdir)
    assert plan.state == "stale" and plan.learned
    for stage in ("train", "select", "specs", "simulate"):
        assert present(plan, learned_workdir, stage) == plan.products(stage) != []
    assert present(plan, learned_workdir, "summary") == []
    bundle = learned_workdir / "results" / BOARD / LEARNED_ROW
    for seed in plan.seeds:
        paths = (
            plan.product("train", f"seed{seed}.json"),
            plan.product("select", f"seed{seed}.json"),
            plan.product("select", f"seed{seed}.safetensors"),
        )
        for name, path in zip(learned_files(seed), paths, strict=True):
            assert (learned_workdir / path).read_bytes() == (bundle / name).read_bytes()
        for stage, path in zip(("train", "select"), paths, strict=False):
            jobs = json.loads((learned_workdir / path).with_suffix(".job.json").read_bytes())["jobs"]
            assert [(job["stage"], job["shard"]) for job in jobs] == [(stage, f"seed{seed}")]


def another_selection(own):
    edit(own / "workflow/rowproof/evidence/selection.py", "import math", "X = 1\nimport math")


def another_training(own):
    text = (own / "config/training/handover-aht.yaml").read_text()
    text = text.replace("training: handover-aht", "training: handover-aht-2").replace("clip: 0.1", "clip: 0.2")
    (own / "config/training/handover-aht-2.yaml").write_text(text)
    edit(own / "config/plans/handover-v1.yaml", "training: handover-aht\n", "training: handover-aht-2\n")
    write_lock(load_board(own, BOARD))


@pytest.mark.parametrize("change", [another_selection, another_training])
def test_another_selection_or_training_takes_nothing_over(own, learned_workdir, change):
    change(own)
    commit_all(own)
    plan = learned_state(own, learned_workdir)
    assert plan.state == "stale"
    assert not any(present(plan, learned_workdir, stage) for stage in ("train", "select", "specs", "simulate"))


def test_more_seeds_keep_the_trainings_that_are_there(own, learned_workdir):
    path = own / "config/plans/handover-v1.yaml"
    plan = yaml.safe_load(path.read_text())
    plan["grid"]["seeds"].append(5)
    path.write_text(yaml.safe_dump(plan, sort_keys=False))
    commit_all(own)
    row = learned_state(own, learned_workdir)
    assert row.state == "stale" and row.seeds == (0, 1, 5)
    for stage in ("train", "select"):
        assert present(row, learned_workdir, stage) == [p for p in row.products(stage) if "seed5" not in p]
    assert present(row, learned_workdir, "simulate") == []


@pytest.mark.parametrize("name", learned_files(1))
def test_a_damaged_seed_is_trained_again_alone(project, learned_workdir, name):
    path = learned_workdir / "results" / BOARD / LEARNED_ROW / name
    path.write_bytes(path.read_bytes()[:-1])
    plan = learned_state(project, learned_workdir)
    assert plan.state == "damaged"
    for stage in ("train", "select"):
        assert present(plan, learned_workdir, stage) == [p for p in plan.products(stage) if "seed0" in p]
    # Records of another checkpoint than the one that will be trained are not taken over.
    assert [path for path in present(plan, learned_workdir, "simulate") if "seed1" in path] == []
    assert [path for path in present(plan, learned_workdir, "simulate") if "seed0" in path] != []


def test_what_was_trained_here_is_kept_and_not_mixed_with_a_bundle(own, learned_workdir):
    change_later_stage(own)
    plan = prepare(own, learned_workdir, touch=False).row(f"{BOARD}/{LEARNED_ROW}")
    mine = learned_workdir / plan.product("train", "seed0.json")
    uri = store(mine.parent / "seed0", b"mine")
    mine.write_bytes(encode_document({"checkpoints": [{"step": 1, "uri": uri}]}))
    before = mine.read_bytes()
    plan = learned_state(own, learned_workdir)
    assert mine.read_bytes() == before
    assert present(plan, learned_workdir, "select") == [p for p in plan.products("select") if "seed1" in p]
    assert present(plan, learned_workdir, "simulate") == [p for p in plan.products("simulate") if "seed1" in p]


def test_nothing_is_taken_from_a_modified_checkout(own, project, tmp_path):
    pytest.importorskip("rowproof.chamber.learned.networks", reason="torch (extra training) is not installed")
    make_row(project, tmp_path / "w/results", BOARD, LEARNED_ROW, dirty=True)
    change_later_stage(own)
    plan = learned_state(own, tmp_path / "w")
    assert not any(present(plan, tmp_path / "w", stage) for stage in ("train", "select", "simulate"))


@pytest.mark.parametrize(("checkpoints", "selected", "kept"), [(2, False, True), (1, False, False), (0, True, True)])
def test_a_training_is_done_again_when_another_selection_needs_its_checkpoints(
    project, tmp_path, checkpoints, selected, kept
):
    plan = prepare(project, tmp_path, touch=False).row(f"{BOARD}/{LEARNED_ROW}")
    document = tmp_path / plan.product("train", "seed0.json")
    document.parent.mkdir(parents=True)
    contents = [b"first", b"second"]
    uris = [uri_of(data) for data in contents]
    for data in contents[:checkpoints]:
        store(document.parent / "seed0", data)
    document.write_bytes(encode_document({"checkpoints": [{"step": 1, "uri": uri} for uri in uris]}))
    if selected:
        selection = tmp_path / plan.product("select", "seed0.json")
        selection.parent.mkdir(parents=True)
        selection.write_bytes(b"{}\n")
    learned_state(project, tmp_path)
    assert document.exists() is kept


def test_a_learned_bundle_is_the_same_on_every_call(project, learned_built, tmp_path):
    again = make_row(project, tmp_path, BOARD, LEARNED_ROW)
    assert {path.name: path.read_bytes() for path in again.iterdir()} == {
        path.name: path.read_bytes() for path in learned_built.iterdir()
    }
