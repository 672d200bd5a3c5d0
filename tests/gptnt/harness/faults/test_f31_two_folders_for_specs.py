"""Specs were written into the folder of a variable and looked for in one below it; records had two folders as well."""

from pathlib import Path

import pytest
from gptnt.harness.workbench import examine, manifest
from rowproof import cli
from rowproof.gptnt.recordings import recording_paths
from rowproof.gptnt.specs import load_specs, specs_folder, write_specs


def test_writer_and_reader_share_one_folder(tmp_path):
    run, environment = Path("config/runs/mine.yaml"), {"EXPERIMENT_SPECS_DIR": str(tmp_path / "elsewhere")}
    specs = examine(manifest()).specs
    write_specs(specs_folder(tmp_path, run, environment), specs)
    assert load_specs(specs_folder(tmp_path, run, environment)).keys() == specs.keys()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere"]
    assert sorted(path.name for path in (tmp_path / "elsewhere").iterdir()) == ["mine", "mine.index.tsv"]


@pytest.mark.slow
def test_all_commands_share_one_folder_of_records_and_one_database(project, tmp_path, monkeypatch, capsys):
    records, database = tmp_path / "kept/records", tmp_path / "kept/games.duckdb"
    monkeypatch.setattr(cli, "project_root", lambda: project)
    # Not the folder of the project: what is not pinned lies there, wherever a command is called.
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    run = project / "config/runs/small.yaml"
    run.write_text("spec_version: 2\nsuites: [multi-self-sync]\nrooms: 1\nplayers: [{player: scripted, count: 2}]\n")

    def play():
        for command in (["run", str(run)], ["build-db"], ["results"], ["analyse"]):
            assert cli.main(command) == 0, command
        capsys.readouterr()
        assert cli.main(["status", str(run)]) == cli.main(["cleanup-outputs"]) == 0
        assert "10 done" in capsys.readouterr().out

    play()
    assert (project / "output/experiments.duckdb").is_file() and not database.exists()
    monkeypatch.setenv("EXPERIMENT_RECORDER_OUTPUTS", str(records))
    monkeypatch.setenv("EXPERIMENTS_DB", str(database))
    play()
    assert database.is_file() and len(recording_paths(records)) == 20
