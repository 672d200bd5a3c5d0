"""The records that are shipped."""

import pytest
import yaml
from helpers import ROOT
from rowproof.errors import ConfigError
from rowproof.hashing import sha256_hex
from rowproof.speedrun.records_config import load_record
from rowproof.speedrun.referee.ladder import read_script
from rowproof.speedrun.setups import RECORDS, find_record
from rowproof.speedrun.steps import read_ladder

PLAN = ROOT / "config/plans/nanogpt-speedrun-cpu-v1.yaml"
FOLDER = ROOT / RECORDS / "cpu-mini"
NAMES = [f"R{number}" for number in range(9)]


@pytest.mark.parametrize("name", NAMES)
def test_a_record_is_the_rung_of_its_name(name):
    record, code = find_record(ROOT, "cpu-mini", name)
    assert (record.record_id, record.record_index) == (f"cpu-mini/{name}", NAMES.index(name))
    assert code == read_script(ROOT / "resources/speedrun", name)
    assert record.code_sha256 == sha256_hex(code.encode())
    assert record.wallclock_ms is None, "times are measured with each candidate"


def test_every_rung_of_the_ladder_has_a_record():
    rungs = [name for name in read_ladder(ROOT / "resources/speedrun") if name.startswith("R")]
    assert rungs == NAMES == sorted(path.stem for path in FOLDER.glob("*.yaml"))


@pytest.mark.parametrize("name", NAMES)
def test_a_record_has_the_target_of_the_plan(name):
    cell = yaml.safe_load(PLAN.read_text())["cell"]
    record, _ = find_record(ROOT, "cpu-mini", name)
    assert record.val_loss_threshold == cell["target"]
    assert record.loss_sigma == cell["sigma"]
    assert record.prereg_sha256 == sha256_hex(PLAN.read_bytes())


def test_a_rung_that_has_changed_is_refused(tmp_path):
    text = (FOLDER / "R3.yaml").read_text()
    record, _ = find_record(ROOT, "cpu-mini", "R3")
    (tmp_path / "r.yaml").write_text(text.replace(record.code_sha256, "0" * 64))
    with pytest.raises(ConfigError, match="must be the digest of R3"):
        load_record(ROOT, tmp_path / "r.yaml")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("rung: R99", "R99 must be a rung of the ladder"),
        ("rung: R3\ncode_path: a.py", "either code_path or rung"),
        ("", "either"),
    ],
)
def test_a_record_names_one_script(tmp_path, line, said):
    (tmp_path / "r.yaml").write_text((FOLDER / "R3.yaml").read_text().replace("rung: R3", line))
    with pytest.raises(ConfigError, match=said):
        load_record(ROOT, tmp_path / "r.yaml")
