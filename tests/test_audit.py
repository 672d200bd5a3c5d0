"""What a job may read and load: that which its recipe names."""

import importlib
import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from bundles import commit_all
from helpers import ROOT
from rowproof import git
from rowproof.audit import Audit, unwatched
from rowproof.closure import FolderSources, HashCache, closure
from rowproof.errors import StaleInputError
from rowproof.jobs import check_gate

DATA = "resources/table.json"
RECIPE = {"stage": "simulate", "producer": "made.up", "data": {}, "files": {}}


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "p"
    (root / "resources").mkdir(parents=True)
    (root / DATA).write_text("[1]\n")
    np.save(root / "resources/array.npy", np.zeros(2))
    return root


def refusal(root, act, **recipe):
    with pytest.raises(StaleInputError) as caught, Audit(root, RECIPE | recipe):
        act()
    return str(caught.value)


def read_builtin(path):
    with open(path) as stream:  # noqa: PTH123
        stream.read()


def read_descriptor(path):
    os.close(os.open(path, os.O_RDONLY))


def read_json(path):
    with path.open() as stream:
        json.load(stream)


def append_and_read(path):
    with path.open("r+") as stream:
        stream.read()


READERS = {
    "open": read_builtin,
    "open of bytes": lambda path: read_builtin(os.fsencode(path)),
    "io.open_code": lambda path: io.open_code(str(path)).close(),
    "Path.read_bytes": Path.read_bytes,
    "Path.read_text": Path.read_text,
    "os.open": read_descriptor,
    "json.load": read_json,
    "numpy.fromfile": lambda path: np.fromfile(path, dtype=np.uint8),
    "numpy.loadtxt": lambda path: np.loadtxt(path, dtype=str),
    "numpy.memmap": lambda path: np.memmap(path, dtype=np.uint8, mode="r"),
    "update": append_and_read,
    "relative path": lambda path: read_builtin(os.path.relpath(path)),
    "through ..": lambda path: read_builtin(path.parent / ".." / "resources" / path.name),
}


@pytest.mark.parametrize("how", READERS)
def test_an_unnamed_file_is_refused_by_name_and_a_named_one_passes(project, how):
    assert refusal(project, lambda: READERS[how](project / DATA)) == (
        "stage simulate may read files of the project that its recipe names (none), found it opened "
        f"{DATA}: name them in data_files of the engine, or take the content from the setup"
    )
    with Audit(project, RECIPE | {"data": {DATA: "0" * 64}}):
        READERS[how](project / DATA)


def test_an_array_is_a_file_like_others(project):
    def load():
        np.load(project / "resources/array.npy")

    assert "found it opened resources/array.npy" in refusal(project, load)
    with Audit(project, RECIPE | {"data": {"resources/array.npy": "0" * 64}}):
        load()


def test_a_link_is_what_it_leads_to(project, tmp_path):
    (tmp_path / "link").symlink_to(project / DATA)
    assert f"found it opened {DATA}:" in refusal(project, (tmp_path / "link").read_bytes)
    (project / "resources/away").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_text("x")
    with Audit(project, RECIPE):
        (project / "resources/away").read_bytes()


def test_the_refusal_names_all_files_and_what_was_named(project):
    (project / "a.txt").write_text("x")
    message = refusal(
        project, lambda: [(project / n).read_bytes() for n in (DATA, "a.txt")], data={"resources/other": "0" * 64}
    )
    assert "names (resources/other), found it opened a.txt, resources/table.json:" in message


def test_fetched_files_pass(project):
    with Audit(project, RECIPE | {"fetched": [DATA]}):
        (project / DATA).read_bytes()


@pytest.mark.parametrize("folder", ["work", "logs", "results", ".venv", ".git", ".snakemake", "x/__pycache__"])
def test_products_and_tools_pass(project, folder):
    (project / folder).mkdir(parents=True)
    (project / folder / "file").write_text("x")
    with Audit(project, RECIPE):
        (project / folder / "file").read_bytes()


def test_folders_of_these_names_further_below_do_not_pass(project):
    (project / "config/work").mkdir(parents=True)
    (project / "config/work/file").write_text("x")
    assert "config/work/file" in refusal(project, (project / "config/work/file").read_bytes)


def test_products_of_rows_that_are_built_in_a_folder_of_the_project_pass(project, monkeypatch):
    (project / "rebuilt/work").mkdir(parents=True)
    (project / "rebuilt/work/file").write_text("x")
    assert "rebuilt/work/file" in refusal(project, (project / "rebuilt/work/file").read_bytes)
    monkeypatch.chdir(project / "rebuilt")
    with Audit(project, RECIPE):
        (project / "rebuilt/work/file").read_bytes()
    assert DATA in refusal(project, (project / DATA).read_bytes)


def write_exclusively(path):
    handle, name = tempfile.mkstemp(dir=path.parent)
    os.close(handle)
    Path(name).unlink()


WRITERS = {
    "write": lambda path: path.write_text("x"),
    "append": lambda path: path.open("a").close(),
    "create": lambda path: path.with_name("new").open("x").close(),
    "truncate": lambda path: path.open("w+").close(),
    "os.open": lambda path: os.close(os.open(path, os.O_WRONLY)),
    "a temporary file": write_exclusively,
}


@pytest.mark.parametrize("how", WRITERS)
def test_writing_is_not_reading(project, how):
    with Audit(project, RECIPE):
        WRITERS[how](project / DATA)


def test_files_elsewhere_pass(project, tmp_path):
    (tmp_path / "pp").mkdir()
    (tmp_path / "pp/file").write_text("x")
    with Audit(project, RECIPE):
        (tmp_path / "pp/file").read_bytes()


def test_a_folder_is_no_file(project):
    with Audit(project, RECIPE):
        os.close(os.open(project / "resources", os.O_RDONLY))
        list((project / "resources").iterdir())


def test_a_stage_that_fails_says_why_and_nothing_else(project):
    with pytest.raises(ZeroDivisionError), Audit(project, RECIPE):
        (project / DATA).read_bytes()
        raise ZeroDivisionError


def test_nothing_counts_before_and_after(project):
    (project / DATA).read_bytes()
    audit = Audit(project, RECIPE)
    with audit:
        pass
    (project / DATA).read_bytes()
    assert audit.files_read() == set()


def test_the_inner_of_two_audits_takes_note(project):
    inner = Audit(project, RECIPE | {"data": {DATA: "0" * 64}})
    outer = Audit(project, RECIPE)
    (project / "a.txt").write_text("x")
    with pytest.raises(StaleInputError, match=r"opened a\.txt:"), outer:
        with inner:
            (project / DATA).read_bytes()
        (project / "a.txt").read_bytes()
    assert (inner.files_read(), outer.files_read()) == ({DATA}, {"a.txt"})


def test_what_is_unwatched_counts_for_no_audit_and_watching_goes_on(project):
    (project / "a.txt").write_text("x")

    def act():
        with unwatched():
            (project / DATA).read_bytes()
        (project / "a.txt").read_bytes()

    message = refusal(project, act)
    assert "opened a.txt:" in message and DATA not in message


def test_an_error_in_what_is_unwatched_ends_no_watching(project):
    def act():
        with pytest.raises(ZeroDivisionError), unwatched():
            raise ZeroDivisionError
        (project / DATA).read_bytes()

    assert DATA in refusal(project, act)


def test_reads_of_the_gate_do_not_count(project):
    (project / "config/plans").mkdir(parents=True)
    (project / "config/plans/p.yaml").write_text("one\n")
    (project / "config/plans/p.lock.json").write_text("{}\n")
    commit_all(project)
    with Audit(project, RECIPE):
        check_gate(project, "config/plans/p.yaml", git.blob_id(b"one\n"))
    # And what the job itself reads of the plan does.
    assert "config/plans/p.yaml" in refusal(project, (project / "config/plans/p.yaml").read_bytes)


# --- modules


@pytest.fixture
def module(project, monkeypatch):
    """Writes a module of the project and loads it by a computed name; returns its path."""
    monkeypatch.syspath_prepend(str(project))
    loaded = []

    def load(text, name="audited_module"):
        (project / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        loaded.append(name)
        return importlib.import_module("".join(["audited", name.removeprefix("audited")]))

    yield load
    for name in loaded:
        sys.modules.pop(name, None)


def test_a_module_that_is_loaded_by_a_computed_name_is_refused(project, module):
    assert refusal(project, lambda: module("x = 1\n")) == (
        "stage simulate may load code that its recipe names, found it loaded audited_module.py: import it by a "
        "statement, or name it in modules of the engine"
    )


def test_a_named_module_passes(project, module):
    with Audit(project, RECIPE | {"files": {"audited_module.py": "0" * 64}}):
        module("x = 1\n")


def test_a_module_that_runs_nothing_passes(project, module):
    with Audit(project, RECIPE):
        module('"""Words alone."""\n')


def test_a_module_that_was_there_before_passes(project, module):
    module("x = 1\n")
    with Audit(project, RECIPE):
        importlib.import_module("audited_module")


def test_late_stages_may_load_what_verifies(project, module):
    """The bundle is verified where it is made; what verifies it is no part of it."""
    late = {key: value for key, value in RECIPE.items() if key != "producer"}
    with Audit(project, late):
        module("x = 1\n")


def in_a_job(*names):
    """What an audit says of a process that loads these modules of the project by computed names."""
    code = (
        "import sys, importlib; from pathlib import Path; from rowproof.audit import Audit\n"
        f"with Audit(Path({str(ROOT)!r}), {RECIPE!r}):\n"
        f"    for name in {names!r}: importlib.import_module(name)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "workflow")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stderr


def test_observers_and_what_they_import_pass():
    # It runs a verification, which needs the models of all configuration.
    assert in_a_job("rowproof.evidence.verify") == (0, "")


def test_what_an_observer_imports_is_what_its_closure_holds():
    theirs = closure(FolderSources(ROOT, HashCache(None)), (), ("rowproof.evidence.verify",), frozenset()).files
    assert "workflow/rowproof/evidence/checks.py" in theirs
    assert "workflow/rowproof/chamber/push.py" not in theirs


def test_other_modules_beside_an_observer_do_not_pass():
    code, errors = in_a_job("rowproof.chamber.progress", "rowproof.chamber.push")
    assert code != 0 and "found it loaded workflow/rowproof/chamber/" in errors
    assert "workflow/rowproof/chamber/push.py" in errors and "progress.py" not in errors
