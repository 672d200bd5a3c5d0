import json

import pytest
import yaml
from helpers import ROOT, shared_data
from pydantic import ValidationError
from rowproof.errors import ConfigError
from rowproof.hashing import sha256_hex
from rowproof.identities import identity, member_uri, parameter_digest
from rowproof.partners import PartnerSet

HANDOVER = ROOT / "config/partners/handover-place-partners-v1.yaml"
PUSH = ROOT / "config/partners/push-partners-v1.yaml"
COCARRY = ROOT / "config/partners/cocarry-partners-v1.yaml"

# Name, split, identity, start of the parameter digest: the published roster, in roster order.
ROSTER = [
    ("presenter_matched", "private", "dd261cfdde60ca43", "d4f8fcf58e75"),
    ("presenter_mismatch_15", "public", "18820ddf850874f9", "21dad7ccf561"),
    ("presenter_mismatch_30", "public", "7ec27e8d0c2efd6e", "8a14dce84204"),
    ("presenter_mismatch_45", "public", "046bc72af285fbd3", "4ad220f5eb49"),
    ("presenter_offgrid_a", "public", "7bb5130fbc52906e", "d4b9324e9d4f"),
    ("presenter_offgrid_b", "public", "7c555ca368e36f86", "493a16d55d28"),
]


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (("cocarry_impedance", 0, None, None), "8831ed572519c9d8"),
        (("scripted_heuristic", 0, None, None), "73250184e1abaccc"),
        (("partner_ablated_zero", 0, None, None), "880b8ae6a0260bea"),
        (("frozen_harl", 0, None, "local://artifacts/4f114f4bf72c1125_step100000.pt"), "b2cdbd8e79f9158a"),
        (
            ("frozen_cocarry_joint", 4, 150000, "local://artifacts/e9040cbc3c3b2456_step150000.pt"),
            "5118f7828d8ac7b8",
        ),
    ],
)
def test_published_identities(fields, expected):
    assert identity(*fields) == expected


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("plain", "('c', 0, None, 'plain')"),
        ("it's", """('c', 0, None, "it's")"""),
        ("""it's "x\"""", r"""('c', 0, None, 'it\'s "x"')"""),
        ("ä\n\\", r"""('c', 0, None, 'ä\n\\')"""),
    ],
)
def test_identity_quotes_as_repr_does(uri, text):
    assert identity("c", 0, None, uri) == sha256_hex(text.encode("utf-8"))[:16]


@pytest.mark.parametrize("fields", [("c", True, None, None), ("c", "0", None, None), (None, 0, None, None)])
def test_identity_refuses_other_types(fields):
    with pytest.raises(TypeError, match="identity needs"):
        identity(*fields)


def test_published_parameter_digests():
    blend_c = {"kp": "1.4134", "damping": "0.0281", "ki": "0.7293", "lag_steps": "2", "step_max": "0.0391"}
    assert parameter_digest(blend_c) == "cc417fc13ef686b0d64ab6feca899ccf5f19c57f0ff874ae4a57dbaf7f6fdcf0"
    assert parameter_digest({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert identity("cocarry_impedance", 0, None, member_uri("cocarry_impedance", blend_c)) == "1d575685149b7174"


@pytest.mark.parametrize(
    ("text", "digest"),
    [
        (
            '{"damping": "0.0408", "kp": "2.4285", "lag_steps": "3", "z": "1.0"}',
            "306d0692d4c4d95eff875845f89c07ba297df8685ccc5a7cfea91f9fabe07a27",
        ),
        (
            '{"damping": "0.0443", "kp": "2.5931", "lag_steps": "6", "z": "1.0"}',
            "229d3aa0943de6488f142f76dfe5b567eab9a716bad4034cac65d062c15de3c8",
        ),
    ],
)
def test_digest_of_canonical_text(text, digest):
    assert parameter_digest(json.loads(text)) == digest


def test_digest_refuses_unquoted_numbers():
    with pytest.raises(ConfigError, match="quotes"):
        parameter_digest({"kp": 1.5})


def test_handover_roster_is_the_published_one():
    roster = PartnerSet.model_validate(read(HANDOVER))
    assert roster.label == "handover_place_partners@v1"
    found = []
    for member in roster.members:
        seat = member.seat()
        found.append((member.name, member.split, seat["identity"], seat["weights_uri"].rpartition("/")[2][:12]))
    assert found == ROSTER


def test_handover_split_follows_the_published_rule():
    seats = [(member.seat()["identity"], member.split) for member in PartnerSet.model_validate(read(HANDOVER)).members]
    public = -(-7 * len(seats) // 10)
    assert [split for _, split in sorted(seats)] == ["public"] * public + ["private"] * (len(seats) - public)


@pytest.mark.parametrize("row", ["ref-script-2026-07-06", "b-rnd-2026-07-06", "b-stat-2026-07-06"])
def test_handover_members_agree_with_published_bundles(row):
    path = shared_data("chamber-bundles/spikes/results/benchmark/handover-v1", row, "partners.json")
    roster = PartnerSet.model_validate(read(HANDOVER))
    for entry in json.loads(path.read_text(encoding="utf-8")):
        (seat,) = roster.seats([entry["name"]])
        entry["extra"].pop("variant")
        assert seat["params"] == entry["extra"]
        assert (seat["class"], seat["seed"], seat["checkpoint_step"], seat["weights_uri"]) == (
            entry["class_name"],
            entry["seed"],
            entry["checkpoint_step"],
            entry["weights_uri"],
        )


def test_push_partner_is_its_class_alone():
    (seat,) = PartnerSet.model_validate(read(PUSH)).seats(["scripted_heuristic"])
    assert seat == {
        "name": "scripted_heuristic",
        "class": "scripted_heuristic",
        "seed": 0,
        "checkpoint_step": None,
        "weights_uri": None,
        "params": {},
        "identity": "73250184e1abaccc",
    }


def test_cocarry_roster_is_the_published_one():
    """Private members too, with what is published of them."""
    text = (ROOT / "resources/published/partner-sets.yaml").read_text(encoding="utf-8")
    published = yaml.safe_load(text)["sets"]["cocarry_partners@v1"]["members"]
    roster = PartnerSet.model_validate(read(COCARRY))
    found = []
    for member in roster.members:
        seat = member.seat()
        start = member.params_sha256_prefix or seat["weights_uri"].rpartition("/")[2]
        found.append((member.name, member.class_name, member.split, seat["identity"], start[:12]))
    assert found == [
        tuple(m[key] for key in ("name", "class", "split", "identity", "params_sha256_prefix")) for m in published
    ]


def test_cocarry_split_follows_the_published_rule():
    seats = [(member.seat()["identity"], member.split) for member in PartnerSet.model_validate(read(COCARRY)).members]
    public = -(-7 * len(seats) // 10)
    assert [split for _, split in sorted(seats)] == ["public"] * public + ["private"] * (len(seats) - public)


def test_a_private_seat_without_digest_has_its_stated_identity_alone():
    (seat,) = PartnerSet.model_validate(read(COCARRY)).seats(["imp_blend_a"])
    assert (seat["identity"], seat["params"], seat["weights_uri"]) == ("b6975bc340b25133", None, None)


def private(**changes):
    """The handover roster with its private member changed; None takes a key away."""
    data = read(HANDOVER)
    member = data["members"][0]
    assert member["split"] == "private"
    member |= changes
    data["members"][0] = {key: value for key, value in member.items() if value is not None}
    return data


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"params_sha256": None},
        {"params_sha256": None, "identity": "0" * 16},
        {"params_sha256": None, "params_sha256_prefix": "d4f8fcf58e75"},
        {"params_sha256": None, "params_sha256_prefix": "d4f8fcf58e750c8d"},
    ],
)
def test_what_a_private_member_may_show(changes):
    roster = PartnerSet.model_validate(private(**changes))
    assert roster.members[0].seat()["identity"] == changes.get("identity", "dd261cfdde60ca43")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"identity": None}, "identity of a private member must be 16 hex digits, found None"),
        ({"params_sha256": None, "identity": None}, "identity of a private member must be 16 hex digits"),
        ({"params_sha256": None, "identity": "DD261CFDDE60CA43"}, "identity of a private member must be 16 hex"),
        ({"params_sha256": None, "identity": "dd261cfdde60ca4"}, "identity of a private member must be 16 hex"),
        ({"identity": "0" * 16}, "identity must be dd261cfdde60ca43 for these fields"),
        ({"params_sha256": "d4f8fcf58e75"}, "params_sha256 must be 64 hex digits"),
        ({"params_sha256_prefix": "d4f8fcf58e75"}, "params_sha256 must stand alone"),
        ({"params_sha256": None, "params_sha256_prefix": "d4f8fcf58e7"}, "12 to 16 hex digits"),
        ({"params_sha256": None, "params_sha256_prefix": "d4f8fcf58e750c8d2"}, "12 to 16 hex digits"),
        ({"params_sha256": None, "params_sha256_prefix": "D4F8FCF58E75"}, "12 to 16 hex digits"),
        ({"params_sha256": None, "weights_uri": "local://x"}, "must not show params or weights_uri"),
    ],
)
def test_what_a_private_member_may_not_show(changes, message):
    with pytest.raises(ValidationError, match=message):
        PartnerSet.model_validate(private(**changes))


@pytest.mark.parametrize("key", ["params_sha256", "params_sha256_prefix", "identity"])
def test_a_public_member_shows_its_parameters_and_no_digest(key):
    data = read(HANDOVER)
    data["members"][1][key] = "18820ddf850874f9"
    with pytest.raises(ValidationError, match="must have params and neither"):
        PartnerSet.model_validate(data)


def test_seats_come_in_roster_order():
    roster = PartnerSet.model_validate(read(HANDOVER))
    names = [seat["name"] for seat in roster.seats(["presenter_mismatch_45", "presenter_mismatch_30"])]
    assert names == ["presenter_mismatch_30", "presenter_mismatch_45"]


def test_private_seat_withholds_its_parameters():
    (seat,) = PartnerSet.model_validate(read(HANDOVER)).seats(["presenter_matched"])
    assert seat["params"] is None


@pytest.mark.parametrize("names", [["nobody"], ["presenter_mismatch_30"] * 2])
def test_seats_refuses_unknown_and_repeated_names(names):
    with pytest.raises(ConfigError, match="distinct names"):
        PartnerSet.model_validate(read(HANDOVER)).seats(names)


def _set(path, value):
    def change(data):
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        _set(["schema"], "rowproof/partner-set/2"),
        _set(["version"], 0),
        _set(["version"], "1"),
        _set(["task"], "handover_place"),
        _set(["floor"], 1.5),
        _set(["floor"], None),
        _set(["floor_probe"], "guess"),
        _set(["members"], []),
        _set(["extra"], 1),
        _set(["members", 0, "identity"], "0" * 16),
        _set(["members", 0, "params_sha256"], "D4" * 32),
        _set(["members", 0, "params"], {}),
        _set(["members", 0, "split"], "public"),
        _set(["members", 1, "split"], "secret"),
        _set(["members", 1, "split"], "private"),
        _set(["members", 1, "name"], "presenter_mismatch_30"),
        _set(["members", 1, "params", "grasp_pose_bias_deg"], "30.0"),
        _set(["members", 1, "params", "grasp_pose_bias_deg"], 15.0),
        _set(["members", 1, "weights_uri"], "local://artifacts/x.pt"),
        _set(["members", 1, "identity"], "18820ddf850874f9"),
        _set(["members", 1, "seed"], -1),
        _set(["members", 1, "seed"], True),
        _set(["members", 1, "note"], "x"),
    ],
)
def test_partner_set_refuses(change):
    data = read(HANDOVER)
    PartnerSet.model_validate(data)
    change(data)
    with pytest.raises(ValidationError):
        PartnerSet.model_validate(data)
