"""Jobs that need the robot files fetch them, in the real workflow, without any network."""

import shutil

import pytest
from bundles import commit_all, make_project
from checkouts import Checkout
from helpers import ROOT
from rowproof.chamber.cocarry.robot_files import ROBOT_FILES, ROBOT_FOLDER
from rowproof.chamber.cocarry.robots import LOCK
from rowproof.recipes import prepare

# Real runs of snakemake on the whole repository, about 20 s.
pytestmark = pytest.mark.slow

MESH = "franka_description/meshes/collision/link5.stl"
PIP = """\
import pathlib, sys
pathlib.Path(__file__).with_name("called").write_text(" ".join(sys.argv))
sys.exit("no network in this test")
"""


@pytest.fixture(scope="module")
def template(simulator, tmp_path_factory):
    """A committed project with one co-carry board of one seed and one episode per partner, and the robot files."""
    root = make_project(
        tmp_path_factory.mktemp("robots") / "p", boards=("cocarry-v1",), seeds=[0], episodes_per_partner=1
    )
    for name in ("rules", "profiles", "envs"):
        shutil.copytree(ROOT / name, root / name)
    for name in ("Snakefile", ".gitignore"):
        shutil.copy(ROOT / name, root)
    commit_all(root)
    shutil.copytree(ROBOT_FOLDER, root / "resources/robots")
    return root


@pytest.fixture
def project(template, tmp_path):
    return Checkout(shutil.copytree(template, tmp_path / "p", symlinks=True), tmp_path / "home")


@pytest.fixture
def records(project):
    """The records of the reference row, which ask for the robot files."""
    (path,) = prepare(project.root, project.root, touch=False).row("cocarry-v1/ref-script").products("simulate")
    return path


@pytest.fixture
def offline(tmp_path):
    """Environment in which pip fails and leaves a note that it was called; and the place of the note."""
    (tmp_path / "stub/pip").mkdir(parents=True)
    (tmp_path / "stub/pip/__init__.py").touch()
    (tmp_path / "stub/pip/__main__.py").write_text(PIP)
    return {"PYTHONPATH": str(tmp_path / "stub")}, tmp_path / "stub/pip/called"


def files(project):
    folder = project.root / "resources/robots"
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    found.pop(LOCK, None)
    return found


def test_with_the_files_present_nothing_is_fetched(project, records, offline):
    environment, called = offline
    before = files(project)
    run = project.build(records, env=environment).ok()
    assert (project.root / records).read_bytes().count(b"\n") == 7
    assert "robot files" not in run.output
    assert not called.exists()
    assert files(project) == before


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"another mesh")])
def test_a_damaged_file_without_network_is_one_message_and_nothing_half_written(project, records, offline, damage):
    environment, called = offline
    right = files(project)
    damage(project.root / "resources/robots" / MESH)
    run = project.build(records, env=environment)
    assert run.code != 0
    assert "pip must be able to download mani_skill==3.0.1" in run.output
    assert "no network in this test" in run.output
    assert "RobotFilesError" not in run.output
    assert called.read_text().endswith("mani_skill==3.0.1")
    assert not (project.root / records).exists()
    # Whole files or none: what is there is right, and no temporary file is left.
    found = files(project)
    assert set(found) <= set(ROBOT_FILES)
    assert found.items() <= right.items()
