import json
from typing import get_args

import pytest
from gptnt.harness.workbench import edit, examine, manifest, solo_spec, statuses
from helpers import ROOT
from rowproof.errors import ConfigError
from rowproof.gptnt.doctor import (
    Check,
    PlayerRow,
    Report,
    Section,
    check,
    check_image_tokens,
    check_players,
    check_stale_specs,
    guarded,
)
from rowproof.gptnt.names import config_names
from rowproof.gptnt.player_config import Script
from rowproof.gptnt.runs import RosterEntry
from rowproof.gptnt.suite import Suite
from rowproof.gptnt.suite_lock import Stamp, freeze, load_lock
from rowproof.gptnt.suites import load_suite
from rowproof.plain_data import read_model

SHIPPED = sorted(config_names(ROOT / "config/suites"))
STAMP = Stamp(frozen_at="2030-01-01T00:00:00Z", gptnt_version="9")


def row(plan, name):
    (found,) = [item for item in plan.section.checks if item.name == name]
    return found


# ---- players ---------------------------------------------------------------------------------------------------


def test_every_player_is_checked_without_a_manifest():
    rows = check_players(ROOT, None, {})
    assert [item.config for item in rows] == config_names(ROOT / "config/players")
    assert {item.exists.status for item in rows} == {"pass"}
    scripted = {item.config for item in rows if item.ready.status == "pass"}
    assert scripted == set(get_args(Script))


def test_with_a_manifest_the_roster_alone_is_checked(project):
    (project / "config/players/gpt-5-2.yaml").write_text("broken: [")
    entries = [RosterEntry(player="test-expert"), RosterEntry(player="qwen3-5-27b", provider="vllm_box4")]
    rows = check_players(project, entries, {})
    assert [item.label for item in rows] == ["test-expert", "qwen3-5-27b@vllm_box4"]
    assert "VLLM_BOX4_BASE_URL" in rows[1].ready.detail
    assert check_players(project, None, {})[2].exists.status == "fail"


def test_a_player_that_does_not_compose_fails_and_skips_the_rest():
    (found,) = check_players(ROOT, [RosterEntry(player="nobody")], {})
    assert (found.exists.status, found.ready.status, found.player) == ("fail", "skip", None)


@pytest.mark.parametrize(("tokens", "status"), [(0, "fail"), (1, "pass")])
def test_image_tokens_must_be_measured(project, tokens, status):
    edit(project, "config/players/test-expert.yaml", "tokens_per_image: 200", f"tokens_per_image: {tokens}")
    section = check_image_tokens(check_players(project, [RosterEntry(player="test-expert")], {}))
    assert section.status == status
    assert tokens or "rowproof measure-tokens-per-image test-expert" in section.checks[0].hint


# ---- run plan --------------------------------------------------------------------------------------------------


def test_a_sound_plan_has_one_row():
    plan = examine(manifest({"test-defuser": 2, "test-expert": 3}, attempts_per_mission=2))
    assert plan.section.checks == [
        Check("Roster coverage", "pass", "2 players, 40 specs, 2 attempts: test-defuser x2, test-expert x3")
    ]
    assert plan.missing == []


def test_an_entry_that_does_not_resolve_fails():
    plan = examine(manifest({"nobody": 2, "test-defuser": 2}))
    assert statuses(plan) == {"Roster: nobody": "fail"} and len(plan.specs) == 10


def test_nothing_is_generated_when_no_entry_resolves():
    plan = examine(manifest({"nobody": 2}, suites=["no-such-suite"]))
    assert statuses(plan) == {"Roster: nobody": "fail"} and plan.specs == {}


@pytest.mark.parametrize("other", [{"player": "qwen3-5-27b", "provider": "vllm_box2"}, {"player": "twin"}])
def test_two_entries_of_one_player_fail(project, other):
    text = (project / "config/players/qwen3-5-27b.yaml").read_text()
    (project / "config/players/twin.yaml").write_text(text)
    entries = [read_model(entry, RosterEntry, "x") for entry in ({"player": "qwen3-5-27b"}, other)]
    plan = examine(manifest().model_copy(update={"players": entries}), project)
    assert statuses(plan) == {"Roster: qwen3-5-27b": "fail"}


def test_one_broken_suite_does_not_hide_another():
    plan = examine(manifest(suites=["no-such-suite", "multi-self-sync"]))
    assert statuses(plan) == {"Generate: no-such-suite": "fail"} and len(plan.specs) == 10


def test_a_suite_that_is_not_frozen_fails(project):
    text = (project / "config/suites/multi-self-sync.yaml").read_text()
    (project / "config/suites/mine.yaml").write_text(text.replace("name: multi-self-sync", "name: mine"))
    assert "rowproof suite freeze" in row(examine(manifest(suites=["mine"]), project), "Generate: mine").detail


def test_specs_on_disk_may_need_a_player_that_is_not_here():
    specs = examine(manifest({"test-defuser": 2, "test-expert": 2})).specs
    plan = examine(manifest({"test-defuser": 2}), specs=specs)
    assert statuses(plan) == {"Player test-expert": "fail", "Satisfiable": "fail"}
    assert plan.missing == ["test-expert"] and "10 specs need it" in row(plan, "Player test-expert").detail
    assert row(plan, "Satisfiable").detail.startswith(
        "10 of 20 specs can never be played: they need 2 more of test-exp"
    )


def test_a_player_that_no_spec_uses_warns():
    specs = examine(manifest({"test-defuser": 2})).specs
    plan = examine(manifest({"test-defuser": 2, "test-expert": 2}), specs=specs)
    assert statuses(plan) == {"Player test-expert": "warn", "Roster coverage": "pass"}


def test_scenario_16_capacity():
    def plan(rooms, suite="single-pairwise-sync", **counts):
        players = {f"test-{name}": count for name, count in counts.items()}
        return statuses(examine(manifest(players, rooms=rooms, suites=[suite])))

    assert plan(4, defuser=3, expert=4) == {"Capacity": "fail"}
    assert plan(4, defuser=4, expert=4) == {"Roster coverage": "pass"}
    assert plan(1, "multi-self-sync", defuser=1) == {"Satisfiable": "fail", "Capacity": "fail"}
    assert plan(2, defuser=1, expert=1) == {"Satisfiable": "fail", "Capacity": "fail"}
    assert plan(2, "single-solo-player-sync", defuser=1, expert=1) == {
        "Legal actions": "warn",
        "Roster coverage": "pass",
    }
    assert plan(3, "single-solo-player-sync", defuser=2) == {"Capacity": "fail"}


def test_scenario_16_what_can_never_be_played_cannot_be_forced():
    assert not examine(manifest({"test-defuser": 1})).is_playable
    assert examine(manifest({"test-defuser": 2}, rooms=2)).is_playable, "the second room idles"


def test_capacity_states_both_numbers_and_the_smallest_fix():
    found = row(examine(manifest({"test-defuser": 7}, rooms=4)), "Capacity")
    assert found.detail == "4 rooms need 8 players, the counts sum up to 7"
    assert found.hint == "raise counts by 1, or set rooms to 3"
    alone = row(examine(manifest({"test-defuser": 1}, rooms=1)), "Capacity")
    assert alone.hint == "raise counts by 1"


def test_one_two_player_suite_among_solo_ones_needs_two_per_room():
    suites = ["single-solo-player-sync", "multi-self-sync"]
    assert statuses(examine(manifest({"test-defuser": 3}, rooms=2, suites=suites))) == {"Capacity": "fail"}


def test_a_script_that_can_only_do_nothing_warns():
    plan = examine(manifest({"test-oracle": 2, "test-random": 2}, suites=[n for n in SHIPPED if n[:4] != "refe"]))
    assert [item.status for item in plan.section.checks if item.name == "Legal actions"] == ["warn", "warn"]
    plan = examine(manifest({"test-oracle": 2, "test-random": 2}, suites=["reference-oracle-sync"]))
    (warning,) = [item for item in plan.section.checks if item.name == "Legal actions"]
    assert warning.detail.startswith("test-random can only do nothing")
    assert set(statuses(examine("reference")).values()) == {"pass"}


# ---- anchors ---------------------------------------------------------------------------------------------------


def lock_with(rule):
    """The shipped lock and a suite that pairs by ``rule``."""
    suite, missions = load_suite(ROOT, "multi-self-sync")
    data = suite.model_dump(mode="json") | {"name": "mine", "matchup": {"pairing_type": rule}}
    return freeze(load_lock(ROOT), [(read_model(data, Suite, "x"), missions.values())], STAMP).lock


@pytest.mark.parametrize("key", ["best_expert", "best_defuser"])
def test_scenario_18_an_anchor_outside_the_roster_fails_and_is_named(key):
    run = manifest({"test-defuser": 2}, suites=["mine"], anchors={key: "test-expert"})
    plan = examine(run, lock=lock_with(f"with_{key}"))
    assert {name for name, status in statuses(plan).items() if status == "fail"} == {
        "Player test-expert",
        "Satisfiable",
    }
    assert row(plan, "Player test-expert").hint == f"add it to players: it is the anchor {key}"


def test_scenario_18_the_same_anchor_changes_nothing_with_shipped_suites():
    run = manifest({"test-defuser": 2, "test-expert": 2}, suites=SHIPPED)
    plain = examine(run)
    anchored = examine(run.model_copy(update={"anchors": run.anchors.model_copy(update={"best_expert": "gpt-5-2"})}))
    assert anchored.specs == plain.specs and anchored.missing == plain.missing
    assert [c for c in anchored.section.checks if c.name != "Anchor best_expert"] == plain.section.checks
    assert row(anchored, "Anchor best_expert").status == "warn"


def test_an_anchor_of_the_roster_is_left_out_of_the_candidates():
    run = manifest({"test-defuser": 2, "test-expert": 2}, suites=["mine"], anchors={"best_expert": "test-expert"})
    plan = examine(run, lock=lock_with("with_best_expert"))
    assert {spec.players for spec in plan.specs.values()} == {("test-defuser", "test-expert")}
    assert set(statuses(plan)) == {"Roster coverage"}


def test_the_anchor_of_the_project_is_demanded_where_the_run_names_none():
    plan = examine(manifest({"test-defuser": 2}, suites=["mine"]), lock=lock_with("with_best_expert"))
    assert statuses(plan)["Player gemini-3-flash-preview"] == "fail"


@pytest.mark.parametrize("suites", [["mine"], ["multi-self-sync"]])
def test_an_anchor_that_cannot_be_used_fails(suites):
    run = manifest({"test-defuser": 2}, suites=suites, anchors={"best_expert": "nobody"})
    assert statuses(examine(run, lock=lock_with("with_best_expert")))["Anchor best_expert"] == "fail"


def test_a_pairing_without_an_anchor_fails(project):
    (project / "config/anchors.yaml").write_text("best_expert: null\n")
    run = manifest({"test-defuser": 2}, suites=["mine"])
    plan = examine(run, project, lock=lock_with("with_best_expert"))
    assert "anchors.best_expert" in row(plan, "Generate: mine").detail and plan.specs == {}


# ---- the report ------------------------------------------------------------------------------------------------


def test_stale_specs():
    three, one = (examine(manifest(attempts_per_mission=attempts)).specs for attempts in (3, 1))
    assert check_stale_specs(one, one).status == "pass"
    assert check_stale_specs(three, one).detail.startswith("20 specs on disk are not of this manifest, 0 of it")
    assert check_stale_specs(one, three).detail.endswith("20 of it are not on disk")
    name, spec = next(iter(one.items()))
    changed = spec.model_copy(update={"mission_spec": spec.mission_spec._replace(time_limit=1000)})
    assert check_stale_specs(one | {name: changed}, one).status == "warn"


@pytest.mark.parametrize("error", [ConfigError("broken\nfile"), ZeroDivisionError("oops")])
def test_a_crash_of_one_check_is_a_failed_check(error):
    def run():
        raise error

    (found,) = guarded("Thing", run)
    assert (found.name, found.status) == ("Thing", "fail") and str(error).split()[0] in found.detail


def test_long_details_become_one_short_line():
    found = check("a", "warn", "word\n " * 200)
    assert len(found.detail) == 200 and "\n" not in found.detail and found.detail.endswith("…")


PLAYER = PlayerRow("a", "a", check("Exists", "pass"), check("Inst.", "pass"), None)


@pytest.mark.parametrize("status", ["pass", "warn", "skip", "fail"])
def test_only_a_failure_fails(status):
    assert Report([PLAYER], [Section("s", [check("c", status)])]).failed is (status == "fail")
    assert Report([PLAYER._replace(ready=check("Inst.", status))], []).failed is (status == "fail")


def test_no_players_at_all_fail():
    assert Report([], []).failed


def test_a_section_has_its_worst_status():
    def worst(*found):
        return Section("s", [check("c", status) for status in found]).status

    assert worst("skip", "pass") == "pass" and worst("pass", "warn") == "warn" and worst("warn", "fail") == "fail"
    assert worst() == "skip"


def test_the_report_is_plain_data():
    rows = check_players(ROOT, [RosterEntry(player="gpt-5-2"), RosterEntry(player="nobody")], {})
    data = json.loads(json.dumps(Report(rows, [examine(manifest()).section]).to_data()))
    assert data["failed"] is True and data["players"][0]["has"]["model"] == "gpt-5.2"
    assert data["players"][1]["has"] is None and data["sections"][0]["status"] == "pass"


def test_the_specs_of_disk_are_taken_as_they_are():
    spec = solo_spec()
    plan = examine(manifest({"test-defuser": 1}, suites=["no-such-suite"]), specs={spec.attempt_name: spec})
    assert plan.specs == {spec.attempt_name: spec} and statuses(plan) == {"Roster coverage": "pass"}
