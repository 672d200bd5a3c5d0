"""Bundles whose keys have an earlier form keep their records as far as the history tells what made them."""

import json
import shutil

import pytest
from bundles import commit_all, make_project, make_row
from rowproof import git
from rowproof.errors import HistoryGap, RowproofError
from rowproof.hashing import sha256_hex
from rowproof.layout import PROVENANCE, SUMS, document_digest, render_sums
from rowproof.provenance import EARLIER_SCHEMA, totals_of
from rowproof.recipes import prepare
from rowproof.records import digest, encode_document
from rowproof.restated import literal_at, script_at, tree_at
from rowproof.stages import SCRIPTS, STAGES

BOARD, ROW = "handover-v1", "b-stat"
NOT_THEN = ("data",)


def older(folder):
    """Rewrite a bundle as it was made before: code by paths, places in the recipes, another provenance."""
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    recipes, provenance = json.loads(files["recipe.json"]), json.loads(files[PROVENANCE])
    upstream = {}
    for stage, recipe in recipes.items():
        places = provenance["places"][stage]
        recipe |= {"code": places["files"], "upstream": upstream}
        recipe |= {key: places[key] for key in ("producer", "programs") if key in places}
        for key in NOT_THEN:
            recipe.pop(key, None)
        upstream = {stage: digest(recipe)}
    files["recipe.json"] = encode_document(recipes)
    bundle = json.loads(files["bundle.json"])
    bundle |= {"schema": "rowproof/bundle/1", "row_key": digest(recipes["bundle"])}
    files["bundle.json"] = encode_document(bundle)
    provenance["schema"] = EARLIER_SCHEMA
    del provenance["places"]
    provenance["row_digest"] = sha256_hex(files["bundle.json"])
    provenance["digest"] = document_digest(provenance)
    files[PROVENANCE] = encode_document(provenance)
    files[SUMS] = render_sums({name: data for name, data in files.items() if name not in (PROVENANCE, SUMS)})
    for name, data in files.items():
        (folder / name).write_bytes(data)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    root = make_project(tmp_path_factory.mktemp("built") / "p", seeds=[0], episodes_per_partner=1)
    older(make_row(root, root / "results", BOARD, ROW))
    return root


@pytest.fixture
def project(built, tmp_path):
    return shutil.copytree(built, tmp_path / "p")


def found(root):
    """The state of the row, the stages whose products are taken over, and what changed."""
    statuses = {}
    launch = prepare(root, root, statuses=statuses)
    row = launch.row(f"{BOARD}/{ROW}")
    taken = [s for s in STAGES[:-1] if all((root / path).exists() for path in row.products(s))]
    return row.state, taken, [change.item for change in statuses[row.name].changes]


def edit(path, old, new):
    text = path.read_text()
    assert old in text, f"{path} holds no {old!r}"
    path.write_text(text.replace(old, new, 1))


def test_records_are_kept_and_the_bundle_is_made_again(project):
    state, taken, _ = found(project)
    assert state == "stale" and taken == ["specs", "simulate"]


def test_a_change_that_reaches_no_record_keeps_them_across_the_forms(project):
    path = project / "workflow/rowproof/chamber/handover.py"
    path.write_text(path.read_text() + "\n# a comment\n")
    commit_all(project)
    assert found(project)[1] == ["specs", "simulate"]


def test_a_change_of_the_code_is_a_change_across_the_forms(project):
    path = project / "workflow/rowproof/chamber/handover.py"
    path.write_text(path.read_text() + "\nadded = 1\n")
    commit_all(project)
    state, taken, items = found(project)
    assert state == "stale" and "simulate" not in taken
    assert "workflow/rowproof/chamber/handover.py" in items


def test_a_changed_parameter_is_a_change_across_the_forms(project):
    edit(project / "config/plans/handover-v1.yaml", "lateral_window_m: 0.001", "lateral_window_m: 0.002")
    state, taken, items = found(project)
    assert state == "stale" and taken == [] and "setup.cell.lateral_window_m" in items


def rewrite_jobs(root, change):
    path = root / "results" / BOARD / ROW / PROVENANCE
    document = json.loads(path.read_bytes())
    change(document["jobs"])
    document["totals"] = totals_of(document["jobs"])
    document["dirty"] = any(job["dirty"] for job in document["jobs"])
    document["digest"] = document_digest(document)
    path.write_bytes(encode_document(document))


@pytest.mark.parametrize(
    "change",
    [
        lambda job: job.update(commit="0" * 40),
        lambda job: job.update(commit="unknown"),
        lambda job: job.update(dirty=True),
        lambda job: job["stage"] == "specs" and job.update(dirty=True),
        lambda job: job["stage"] == "specs" and job.update(commit="0" * 40),
    ],
    ids=["a commit that is gone", "no commit", "a modified checkout", "one dirty job", "one commit that is gone"],
)
def test_what_the_history_does_not_tell_is_not_restated(project, change):
    rewrite_jobs(project, lambda jobs: [change(job) for job in jobs])
    state, taken, _ = found(project)
    assert state == "stale" and taken == []


@pytest.mark.parametrize(("added", "kept"), [("# a comment", True), ("added = 1", False)])
def test_jobs_of_several_commits_are_restated_if_their_code_is_the_same(project, added, kept):
    path = project / "workflow/rowproof/chamber/handover.py"
    text = path.read_text()
    path.write_text(f"{text}\n{added}\n")
    other = commit_all(project)
    path.write_text(text)
    commit_all(project)

    def share(jobs):
        jobs += [{**job, "commit": other} for job in jobs if job["stage"] == "simulate"]

    rewrite_jobs(project, share)
    assert ("simulate" in found(project)[1]) is kept


# --- reading a commit


def test_a_commit_is_read_and_not_run(project):
    commit = git.tree_state(project).commit
    assert script_at(project, commit, "simulate") == SCRIPTS["simulate"]
    stages = project / "workflow/rowproof/stages.py"
    edit(stages, "workflow/scripts/simulate.py", "workflow/scripts/renamed.py")
    stages.write_text(stages.read_text() + "\nraise SystemExit\n")
    assert script_at(project, commit_all(project), "simulate") == "workflow/scripts/renamed.py"
    assert script_at(project, commit, "simulate") == SCRIPTS["simulate"]


def test_the_observers_of_a_commit_are_its_own(project):
    edit(project / "workflow/rowproof/closure.py", '"rowproof.chamber.progress",', "")
    assert "rowproof.chamber.progress" not in tree_at(project, commit_all(project)).observers


def test_what_a_commit_lacks_is_named(project):
    with pytest.raises(HistoryGap, match="is not in this clone: fetch the full history"):
        tree_at(project, "0" * 40)
    commit = git.tree_state(project).commit
    with pytest.raises(RowproofError, match=r"must define NOTHING in workflow/rowproof/stages\.py"):
        literal_at(project, commit, ("workflow/rowproof/stages.py",), "NOTHING")
    (project / "requirements.lock").unlink()
    with pytest.raises(RowproofError, match=r"must hold requirements\.lock"):
        tree_at(project, commit_all(project))
