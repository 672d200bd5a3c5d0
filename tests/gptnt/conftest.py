import shutil

import pytest
from helpers import ROOT
from rowproof import cli

CONFIG = ROOT / "config"


@pytest.fixture(scope="session")
def single_module(tmp_path_factory):
    """A copy of the large mission set, which no test changes."""
    return shutil.copytree(CONFIG / "missions/single_module", tmp_path_factory.mktemp("missions") / "single_module")


@pytest.fixture
def project(tmp_path, single_module):
    """A copy of the shipped configuration of the family, to be edited."""
    for folder in ("missions/multiple_module_n", "suites", "runs", "players", "providers"):
        shutil.copytree(CONFIG / folder, tmp_path / "config" / folder)
    (tmp_path / "config/missions/single_module").symlink_to(single_module)
    shutil.copy(CONFIG / "anchors.yaml", tmp_path / "config")
    return tmp_path


@pytest.fixture
def command(project, monkeypatch, capsys):
    """Runs a command inside a project of its own: exit code, output, errors."""
    monkeypatch.setattr(cli, "project_root", lambda: project)
    monkeypatch.chdir(project)

    def run(*arguments):
        code = cli.main(list(arguments))
        return (code, *capsys.readouterr())

    return run
