"""Spec files were named by replacing a suffix: a dot in a player's name cut it, and specs overwrote each other."""

from gptnt.harness.workbench import solo_spec
from rowproof.gptnt.specs import load_specs, unite, write_specs


def test_dots_in_names_cost_no_spec(tmp_path):
    specs = unite(solo_spec(defuser_name=name, attempt=n) for name in ("gpt-5.2", "gpt-5.1", "v1.0.1") for n in (1, 2))
    write_specs(tmp_path, specs)
    assert len(list(tmp_path.iterdir())) == len(specs) == 6
    assert load_specs(tmp_path).keys() == specs.keys()
    assert {path.name.rpartition(".")[2] for path in tmp_path.iterdir()} == {"json"}
