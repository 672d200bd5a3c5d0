import pytest
from gptnt.harness.workbench import edit, refusal
from helpers import ROOT
from rowproof.errors import ConfigError
from rowproof.gptnt.names import config_names
from rowproof.gptnt.suite import Protocol, Suite, missions_digest
from rowproof.gptnt.suites import BENCHMARK, FOLDER, HEADLINE, LEADERBOARD, list_suites, load_suite, pairings
from rowproof.plain_data import read_model

# Suite: config digest, missions digest, suite digest, pairing, missions.
PUBLISHED = {
    "multi-self-async": (
        *("a45817fdec44cd0c18c0c02cd4c25f42", "2685266a5bb1680feae7ff0ce86a83dc", "a02fed7179d4fd142d34324d720468ba"),
        *("with_self", 10),
    ),
    "multi-self-sync": (
        *("1f2ca6b708a874d41370d36c19360f3d", "2685266a5bb1680feae7ff0ce86a83dc", "365784c76589a9c1a2b6f1708f068e92"),
        *("with_self", 10),
    ),
    "single-pairwise-sync": (
        *("dcafd2001512884373d83bf9d630640b", "a3f09ca77f2348f210efd43896fdee46", "ecb690fb90927c540b3940afc0c458d0"),
        *("pairwise", 110),
    ),
    "single-parametric-sync": (
        *("f0b287684649c3e82343d992683271a4", "a3f09ca77f2348f210efd43896fdee46", "5460034434039828c73292f7f3fc5867"),
        *("no_expert", 110),
    ),
    "single-self-async": (
        *("180ea87ccb1e37933848c1a13982901b", "a3f09ca77f2348f210efd43896fdee46", "a47edcc5dece4e117f0e7a145ed197c5"),
        *("with_self", 110),
    ),
    "single-solo-player-sync": (
        *("0068ad6146cc1aee6b76d0ad9608afdd", "a3f09ca77f2348f210efd43896fdee46", "125050b2dc2695dcc0fd887c2d1ad2eb"),
        *("no_expert", 110),
    ),
}
SUITE = f"{FOLDER}/multi-self-sync.yaml"


@pytest.mark.parametrize(("name", "expected"), PUBLISHED.items())
def test_shipped_suites_have_the_published_digests(name, expected):
    suite, missions = load_suite(ROOT, name)
    found = suite.config_digest, missions_digest(missions.values()), suite.digest(missions.values())
    assert (*found, suite.matchup.pairing_type, len(missions)) == expected
    assert suite.revision == 1 and name in BENCHMARK


def test_suites_outside_the_benchmark_are_told_apart():
    others = set(config_names(ROOT / FOLDER)) - set(BENCHMARK)
    assert set(BENCHMARK) == set(PUBLISHED) and others == {"reference-lottery-sync", "reference-oracle-sync"}
    oracle, lottery = (load_suite(ROOT, f"reference-{name}-sync")[0] for name in ("oracle", "lottery"))
    assert oracle.defuser_protocol.allow_magic_actions and not oracle.defuser_protocol.allow_lottery_actions
    assert lottery.defuser_protocol.allow_lottery_actions and not lottery.defuser_protocol.allow_magic_actions
    assert not any(load_suite(ROOT, name)[0].defuser_protocol.allow_magic_actions for name in BENCHMARK)


def test_name_and_revision_do_not_enter_the_digest(project):
    suite, missions = load_suite(project, "multi-self-sync")
    renamed = suite.model_copy(update={"name": "other", "revision": 7})
    assert renamed.digest(missions.values()) == suite.digest(missions.values())
    alone = suite.model_copy(update={"modality": ("vision",)})
    assert alone.digest(missions.values()) != suite.digest(missions.values())


@pytest.mark.parametrize("text", ["[vision, language]", "[language, vision, vision]"])
def test_modality_has_one_form(project, text):
    edit(project, SUITE, "[language, vision]", text)
    assert load_suite(project, "multi-self-sync")[0] == load_suite(ROOT, "multi-self-sync")[0]


# Old text, new text, key of the message, what it says.
REFUSALS = [
    ("revision: 1", "revision: 0", "revision", "greater than or equal to 1, found 0"),
    ("revision: 1", "revision: 1.0", "revision", "valid integer"),
    ("revision: 1", "", "revision", "required key is missing"),
    ("revision: 1", "revision: 1\nlevel: 1", "level", "unknown key"),
    ("revision: 1", "revision: 1\nrevision: 2", "revision", "already given on line"),
    ("name: multi-self-sync", "name: other", "name", "must equal the file name"),
    ("name: multi-self-sync", "name: a b", "name", "match pattern"),
    ("[language, vision]", "[]", "modality", "at least 1"),
    ("[language, vision]", "[smell]", "modality.0", "'vision', 'language' or 'audio'"),
    ("[language, vision]", "vision", "modality", "valid tuple"),
    ("[language, vision]", "[1]", "modality.0", "'vision', 'language' or 'audio'"),
    ("path: configs/", "path: /configs/", "missions_path", "below the project"),
    ("path: configs/missions/", "path: ../", "missions_path", "below the project"),
    ("path: configs/missions/multiple_module_n", "path: .", "missions_path", "below the project"),
    ("path: configs/missions/multiple_module_n", "path: configs/missions/absent", "missions_path", "must hold mission"),
    ("role: defuser", "role: expert", "(document)", "role of defuser_protocol must be defuser"),
    ("role: expert", "role: defuser", "(document)", "role of expert_protocol must be expert"),
    ("is_playing_alone: false", "is_playing_alone: true", "(document)", "alone must have no expert"),
    ("include_manual: true", "include_manual: yes", "expert_protocol.include_manual", "valid boolean, found 'yes'"),
    ("communication_style: sync", "communication_style: turns", "defuser_protocol.communication_style", "'async'"),
    ("pairing_type: with_self", "pairing_type: no_expert", "(document)", "unless matchup.pairing_type is no_expert"),
    ("pairing_type: with_self", "pairing_type: all", "matchup.pairing_type", "'pairwise'"),
]


@pytest.mark.parametrize(("old", "new", "key", "message"), REFUSALS)
def test_a_broken_suite_is_refused_with_file_line_and_key(project, old, new, key, message):
    edit(project, SUITE, old, new)
    text = refusal(load_suite, project, "multi-self-sync")
    place, _, rest = text.partition(": ")
    assert place.startswith(f"{SUITE}:") and place.rpartition(":")[2].isdigit()
    assert rest.startswith(f"{key}: ") and message in rest


def test_an_unknown_suite_is_refused_with_the_nearest_name():
    text = refusal(load_suite, ROOT, "multi-self-sinc")
    assert "did you mean 'multi-self-sync'" in text and "rowproof list suites" in text
    assert "did you mean" not in refusal(load_suite, ROOT, "zzz")


def test_templates_are_no_suites():
    assert "_template" not in config_names(ROOT / FOLDER)
    refusal(load_suite, ROOT, "_template")


def test_the_template_is_valid_once_it_is_copied(project):
    text = (project / FOLDER / "_template.yaml").read_text()
    (project / FOLDER / "mine.yaml").write_text(text.replace("NAME", "mine"))
    assert load_suite(project, "mine")[0].mission_set == "single_module"


def test_an_expert_is_never_alone():
    with pytest.raises(ConfigError, match="an expert must not play alone"):
        read_model(
            {"role": "expert", "communication_style": "sync", "is_playing_alone": True, "include_manual": True},
            Protocol,
            "x",
        )


def test_the_computed_field_is_written_and_checked_on_reading():
    protocol = load_suite(ROOT, "multi-self-sync")[0].defuser_protocol
    data = protocol.model_dump()
    assert data["allow_message_output"] is True
    assert read_model(data, Protocol, "x") == protocol
    for wrong in (False, None, "yes", 1):
        with pytest.raises(ConfigError, match="opposite of is_playing_alone"):
            read_model({**data, "allow_message_output": wrong}, Protocol, "x")


def with_pairing(rule):
    suite = load_suite(ROOT, "multi-self-sync")[0]
    data = suite.model_dump(mode="json") | {"matchup": {"pairing_type": rule}}
    if rule == "no_expert":
        data["expert_protocol"] = None
    return read_model(data, Suite, "x")


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("with_self", [("b", "b"), ("a", "a"), ("c", "c")]),
        ("no_expert", [("b", None), ("a", None), ("c", None)]),
        ("pairwise", [("b", x) for x in "bac"] + [("a", x) for x in "bac"] + [("c", x) for x in "bac"]),
        ("with_best_expert", [("b", "a"), ("c", "a")]),
        ("with_best_defuser", [("c", "b"), ("c", "a")]),
    ],
)
def test_pairings_follow_the_order_of_the_players(rule, expected):
    assert pairings(with_pairing(rule), ["b", "a", "c"], best_expert="a", best_defuser="c") == expected


@pytest.mark.parametrize("key", ["best_expert", "best_defuser"])
def test_pairings_with_the_best_need_an_anchor(key):
    other = {"best_expert": "best_defuser", "best_defuser": "best_expert"}[key]
    with pytest.raises(ConfigError, match=f"anchors.{key}"):
        pairings(with_pairing(f"with_{key}"), ["a"], **{other: "b"})


def test_the_list_shows_every_suite_and_what_is_wrong_with_one(project):
    rows = {row["name"]: row for row in list_suites(project)}
    assert list(rows) == config_names(ROOT / FOLDER)
    assert {name for name, row in rows.items() if row["is_headline"]} == set(HEADLINE)
    assert {name for name, row in rows.items() if row["is_leaderboard"]} == set(LEADERBOARD)
    edit(project, SUITE, "revision: 1", "revision: 0")
    broken = [row for row in list_suites(project) if "error" in row]
    assert [row["name"] for row in broken] == ["multi-self-sync"] and f"{SUITE}:2: revision" in broken[0]["error"]
