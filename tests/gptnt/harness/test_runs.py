import pytest
from gptnt.harness.workbench import examine, refusal, statuses
from helpers import ROOT
from rowproof.gptnt.names import config_names
from rowproof.gptnt.runs import RosterEntry, RunManifest, load_anchors, load_manifest

GOOD = """spec_version: 2
suites: [multi-self-sync]
rooms: 3
players:
  - player: test-defuser
    provider: openai
    count: 2
displays: [0, 1]
anchors: {best_expert: test-expert}
source: wandb
observability: "off"
attempts_per_mission: 4
"""


def load(tmp_path, text):
    path = tmp_path / "run.yaml"
    path.write_text(text)
    return load_manifest(path, tmp_path)


def test_every_field_is_read(tmp_path):
    run = load(tmp_path, GOOD)
    assert run.model_dump() == {
        "spec_version": 2,
        "suites": ["multi-self-sync"],
        "rooms": 3,
        "players": [{"player": "test-defuser", "provider": "openai", "count": 2}],
        "displays": [0, 1],
        "anchors": {"best_expert": "test-expert", "best_defuser": None},
        "source": "wandb",
        "observability": "off",
        "attempts_per_mission": 4,
    }
    assert run.players[0].label == "test-defuser@openai"


def test_defaults(tmp_path):
    run = load(tmp_path, "suites: [a]\nrooms: 1\nplayers: [{player: b}]\n")
    assert (run.spec_version, run.displays, run.source, run.observability) == (2, None, "local", "limited")
    assert (run.attempts_per_mission, run.anchors.best_expert, run.anchors.best_defuser) == (1, None, None)
    assert run.players == [RosterEntry(player="b", provider=None, count=1)]


def test_manifests_share_no_defaults(tmp_path):
    text = "suites: [a]\nrooms: 1\nplayers: [{player: b}]\n"
    first, second = load(tmp_path, text), load(tmp_path, text)
    assert first.anchors is not second.anchors and first.players is not second.players


# Old text, new text, line, key, what the message says.
REFUSALS = [
    ("spec_version: 2", "spec_version: 1", 1, "spec_version", "the only one that is: 2, found 1"),
    ("spec_version: 2", "spec_version: '2'", 1, "spec_version", "valid integer, found '2'"),
    ("spec_version: 2", "spec_version: true", 1, "spec_version", "valid integer, found True"),
    ("suites: [multi-self-sync]", "suites: []", 2, "suites", "at least 1"),
    ("suites: [multi-self-sync]", "suites: multi-self-sync", 2, "suites", "valid list"),
    ("suites: [multi-self-sync]", "suites: [../x]", 2, "suites.0", "match pattern"),
    ("suites: [multi-self-sync]\n", "", 1, "suites", "required key is missing"),
    ("rooms: 3", "rooms: 0", 3, "rooms", "greater than or equal to 1, found 0"),
    ("rooms: 3", "rooms: 2.0", 3, "rooms", "valid integer"),
    ("rooms: 3", "rooms: yes", 3, "rooms", "valid integer, found 'yes'"),
    ("rooms: 3\n", "", 1, "rooms", "required key is missing"),
    ("rooms: 3", "rooms: 3\nrooms: 4", 4, "rooms", "already given on line 3"),
    ("count: 2", "count: 0", 7, "players.0.count", "greater than or equal to 1"),
    ("count: 2", "copies: 2", 7, "players.0.copies", "must be one of player, provider, count"),
    ("player: test-defuser", "name: test-defuser", 5, "players.0.player", "required key is missing"),
    ("player: test-defuser", "player: 5", 5, "players.0.player", "valid string, found 5"),
    ("displays: [0, 1]", "displays: []", 8, "displays", "at least 1"),
    ("displays: [0, 1]", "displays: [0, -1]", 8, "displays.1", "greater than or equal to 0, found -1"),
    ("displays: [0, 1]", "displays: inherit", 8, "displays", "valid list, found 'inherit'"),
    ("{best_expert: test-expert}", "{best_player: x}", 9, "anchors.best_player", "best_expert, best_defuser"),
    ("source: wandb", "source: cloud", 10, "source", "'local' or 'wandb'"),
    ('observability: "off"', "observability: none", 11, "observability", "'full', 'limited' or 'off'"),
    ("attempts_per_mission: 4", "attempts_per_mission: 0", 12, "attempts_per_mission", "or equal to 1"),
    ("attempts_per_mission: 4", "recording: true", 12, "recording", "unknown key"),
    ("attempts_per_mission: 4", "wandb: {entity: x}", 12, "wandb", "unknown key"),
    ("attempts_per_mission: 4", "models: [x]", 12, "models", "unknown key"),
]


@pytest.mark.parametrize(("old", "new", "line", "key", "message"), REFUSALS)
def test_a_broken_manifest_is_refused_with_line_and_key(tmp_path, old, new, line, key, message):
    assert GOOD.count(old) == 1
    text = refusal(load, tmp_path, GOOD.replace(old, new))
    assert text.startswith(f"run.yaml:{line}: {key}: ") and message in text


def test_all_problems_are_told_at_once(tmp_path):
    text = GOOD.replace("rooms: 3", "rooms: 0").replace("count: 2", "count: -1").replace("source: wandb", "sauce: 1")
    lines = refusal(load, tmp_path, text).splitlines()
    assert [line.split(": ")[1] for line in lines] == ["rooms", "players.0.count", "sauce"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must hold a mapping, found an empty file"),
        ("# nothing\n", "must hold a mapping"),
        ("- a\n", "valid dictionary"),
        ("text", "valid dictionary"),
        ("a: b: c", "one valid YAML document"),
        ("a: 1\n---\nb: 2\n", "one valid YAML document"),
    ],
)
def test_what_is_no_mapping_is_refused(tmp_path, text, message):
    assert message in refusal(load, tmp_path, text)


def test_a_missing_file_is_refused(tmp_path):
    assert "must be a readable file" in refusal(load_manifest, tmp_path / "absent.yaml", tmp_path)


def test_scenario_17_rooms_take_displays_in_turn(tmp_path):
    run = load(tmp_path, GOOD)
    assert [run.display_of(room) for room in range(run.rooms)] == [":0", ":1", ":0"]
    assert load(tmp_path, GOOD.replace("displays: [0, 1]\n", "")).display_of(0) is None


def test_anchors_of_the_manifest_go_before_those_of_the_project(tmp_path):
    run = load(tmp_path, GOOD)
    anchors = load_anchors(ROOT, run)
    assert (anchors.best_expert, anchors.best_defuser) == ("test-expert", "gemini-3-flash-preview")


RUNS = [*config_names(ROOT / "config/runs"), "_template"]


@pytest.mark.parametrize("name", RUNS)
def test_shipped_manifests_can_be_played(name):
    plan = examine(name)
    assert "fail" not in statuses(plan).values() and statuses(plan)["Roster coverage"] == "pass"


def test_the_shipped_manifests():
    assert set(RUNS) == {"_template", "all-suites", "headline", "quickstart", "reference"}
    assert {name: len(examine(name).specs) for name in ("all-suites", "headline", "quickstart")} == {
        "all-suites": 5 * (10 + 10 + 110 + 110 + 110) + 25 * 110,
        "headline": 100,
        "quickstart": 440,
    }
    template = load_manifest(ROOT / "config/runs/_template.yaml", ROOT)
    assert set(template.model_fields_set) == set(RunManifest.model_fields) - {"displays"}
