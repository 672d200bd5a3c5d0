"""Specs were written into the folder of a variable and looked for in one below it."""

from pathlib import Path

from gptnt.harness.workbench import examine, manifest
from rowproof.gptnt.specs import load_specs, specs_folder, write_specs


def test_writer_and_reader_share_one_folder(tmp_path):
    run, environment = Path("config/runs/mine.yaml"), {"EXPERIMENT_SPECS_DIR": str(tmp_path / "elsewhere")}
    specs = examine(manifest()).specs
    write_specs(specs_folder(tmp_path, run, environment), specs)
    assert load_specs(specs_folder(tmp_path, run, environment)).keys() == specs.keys()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere"]
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["mine"]
