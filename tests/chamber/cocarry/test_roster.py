import json

import pytest
import yaml
from helpers import ROOT, shared_data

# Public members in roster order: identity, start of the parameter digest.
PUBLIC = [
    ("imp_nominal", "3d43a19c051fc8bc", "92eb953311e1b0a0"),
    ("imp_stiff_low", "2551311d47ba8e57", "a5d61ee76a1a7a8a"),
    ("imp_stiff_high", "4d0ae9868c4c10c8", "212f054214340e8e"),
    ("imp_damp_low", "5ac85b19c0f522ee", "25c318a230e97df9"),
    ("imp_damp_high", "597b7116f63e09d8", "509cec1613d436a0"),
    ("imp_lag_bounded", "a1d7304eb9f423a6", "fc385b64d1b4fc86"),
    ("imp_blend_b", "6883ea1ebef2f0d3", "b1a0fa0aa3ee2d96"),
    ("imp_blend_c", "1d575685149b7174", "cc417fc13ef686b0"),
]


def test_public_members_are_the_published_ones(roster):
    assert roster.label == "cocarry_partners@v1"
    found = [
        (member.name, member.seat()["identity"], member.seat()["weights_uri"].rpartition("/")[2][:16])
        for member in roster.members
        if member.split == "public"
    ]
    assert found == PUBLIC


def test_order_is_that_of_the_published_roster(roster):
    text = (ROOT / "resources/published/partner-sets.yaml").read_text(encoding="utf-8")
    published = yaml.safe_load(text)["sets"][roster.label]["members"]
    names = [member.name for member in roster.members]
    assert names == [member["name"] for member in published if member["name"] in names]


@pytest.mark.parametrize("row", ["ref-script-2026-07-05", "b-stat-2026-07-05", "b-rnd-2026-07-05"])
def test_members_agree_with_published_bundles(roster, row):
    path = shared_data("chamber-bundles/spikes/results/benchmark/cocarry-v1", row, "partners.json")
    entries = [e for e in json.loads(path.read_text(encoding="utf-8")) if not e["name"].startswith("ego:")]
    assert len(entries) == 7
    for entry in entries:
        (seat,) = roster.seats([entry["name"]])
        geometry = {"bar_half_len", "base_xyz", "base_yaw_deg", "end_sign", "uid"}
        assert seat["params"] == {key: value for key, value in entry["extra"].items() if key not in geometry}
        assert (seat["class"], seat["seed"], seat["checkpoint_step"], seat["weights_uri"]) == (
            entry["class_name"],
            entry["seed"],
            entry["checkpoint_step"],
            entry["weights_uri"],
        )
