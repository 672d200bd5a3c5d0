"""Bundles: what is built from a database, and that each single change of one fails its own check."""

import json
import shutil
import socket
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from gptnt.players.workbench import WIRES, Puppet
from gptnt.recordings.workbench import LOCK, MISSIONS, PROVENANCE, WHO, crash, frozen, played
from helpers import ROOT
from rowproof.errors import ConfigError
from rowproof.gptnt.capabilities import Capabilities
from rowproof.gptnt.database import SUMMARIES, build_db
from rowproof.gptnt.recordings import write_game
from rowproof.gptnt.room import Provenance
from rowproof.gptnt.submissions import (
    GAMES,
    GAMES_SCHEMA,
    MANIFEST,
    META,
    METRICS,
    build,
    build_static,
    bundles_below,
    check_bundle,
    read_submission,
    render,
    run_new,
    run_validate,
    slug,
)
from rowproof.records import encode_document

DATE = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """Two missions, two experts, three attempts each, and a crashed session besides."""
    folder = tmp_path_factory.mktemp("database")
    for mission in MISSIONS:
        for expert in ("scripted", "scripted-slow"):
            for attempt in (1, 2, 3):
                write_game(played(mission, expert_name=expert, attempt=attempt), folder / "records")
    broken = played(WIRES, expert_name="scripted", expert=Puppet(crash))
    write_game(broken, folder / "records" / "crashed")
    report = build_db(folder / "records", folder / "games.duckdb")
    assert report.sessions == 12 and report.problems == []
    return folder / "games.duckdb"


@pytest.fixture(scope="module")
def built(database, tmp_path_factory):
    output = tmp_path_factory.mktemp("submissions")
    (bundle,) = build(ROOT, database, output, LOCK, suites=["workbench"], submitter=WHO, run_date=DATE)
    return bundle


@pytest.fixture
def bundle(built, tmp_path):
    """A copy of a valid bundle, to be tampered with."""
    return Path(shutil.copytree(built, tmp_path / built.name))


def failures(bundle, verdict="fail"):
    return {check.name for check in check_bundle(bundle, LOCK) if check.verdict == verdict}


# ---- building --------------------------------------------------------------------------------------------------


def test_a_bundle_of_three_attempts_and_a_crash_is_valid(built):
    assert failures(built) == failures(built, "warn") == set()
    names = [check.name for check in check_bundle(built, LOCK)]
    assert names == [
        *("manifest", "layout", "directory", "submission_id", "submitter", "gptnt_version", "git_sha", "payload"),
        *("suite", "suite digest", "outcomes", "defuser", "experts", "experiments", "missing", "duplicates", "unknown"),
    ]


def test_what_a_bundle_holds(built):
    assert sorted(path.name for path in built.iterdir()) == [GAMES, MANIFEST]
    table = pq.read_table(built / GAMES)
    assert table.schema.equals(GAMES_SCHEMA) and len(table) == 4
    rows = table.to_pylist()
    assert {row["attempt"] for row in rows} == {1} and {row["expert_name"] for row in rows} == {
        "scripted",
        "scripted-slow",
    }
    usage = json.loads(rows[0]["defuser_usage"])
    # A scripted player reports one token per turn; the look back is left out.
    assert usage["input_tokens"] == usage["requests"] == rows[0]["n_rounds"] and usage["details"] == {}
    assert json.loads(rows[0]["final_bomb_state"])["isSolved"]


def test_the_manifest(built):
    found = read_submission(built / MANIFEST)
    fingerprint = Capabilities(player_name="scripted", player_type="ai").fingerprint
    assert built.name == f"20260131_scripted_{fingerprint[:8]}_workbench_1"
    assert found.submission_id == f"2026-01-31_scripted_{fingerprint[:8]}_workbench@1"
    assert [(player.role, player.capabilities.player_name) for player in found.players] == [
        ("defuser", "scripted"),
        *sorted((("expert", "scripted"), ("expert", "scripted-slow")), key=lambda one: found_key(found, one[1])),
    ]
    assert found.measured.suite_digest == frozen().digest and found.submitter == WHO
    assert found.provenance.model_dump() == {"gptnt_version": "1.0.0", "git_sha": "c0ffee"}
    assert found.defuser.identity.display_name == "scripted"


def found_key(found, name):
    return next(p.fingerprint for p in found.players if p.role == "expert" and p.capabilities.player_name == name)


def test_a_defuser_that_is_not_first_is_moved_there(bundle):
    edit(bundle, lambda data: data["players"].reverse())
    assert read_submission(bundle / MANIFEST).players[0].role == "defuser" and failures(bundle) == set()


def test_building_again_gives_the_same_bytes(database, built, tmp_path):
    (again,) = build(ROOT, database, tmp_path, LOCK, suites=["workbench"], submitter=WHO, run_date=DATE)
    assert again.name == built.name
    assert all((again / name).read_bytes() == (built / name).read_bytes() for name in (GAMES, MANIFEST))


def test_building_again_keeps_the_submitter(database, bundle):
    build(ROOT, database, bundle.parent, LOCK, suites=["workbench"], run_date=DATE)
    assert read_submission(bundle / MANIFEST).submitter == WHO


def test_one_setup_of_a_model_is_one_bundle(database, tmp_path):
    assert len(build(ROOT, database, tmp_path, LOCK, suites=["workbench"], models=["scripted"], run_date=DATE)) == 1
    with pytest.raises(ConfigError, match=r"must hold valid games of workbench by scripted-slow \(attempt 1\)"):
        build(ROOT, database, tmp_path, LOCK, suites=["workbench"], models=["scripted-slow"], run_date=DATE)


def test_games_in_virtual_time_need_a_date(database, tmp_path):
    with pytest.raises(ConfigError, match="the date of the games must be known"):
        build(ROOT, database, tmp_path, LOCK, suites=["workbench"])


def test_games_with_a_date_give_it(tmp_path):
    for mission, start_s in zip(MISSIONS, (1769860800.0, 1769860800.0 + 86400), strict=True):
        game = played(mission)
        for record in game.records.values():
            record["footer"]["descriptor"]["start_time"] = start_s
        write_game(game, tmp_path / "records")
    build_db(tmp_path / "records", tmp_path / "games.duckdb")
    (bundle,) = build(ROOT, tmp_path / "games.duckdb", tmp_path / "out", LOCK, suites=["workbench"], submitter=WHO)
    assert bundle.name.startswith("20260131_scripted_") and failures(bundle) == set()


def test_suites_and_players_must_be_known(database, tmp_path):
    with pytest.raises(ConfigError, match="a frozen suite must be one of"):
        build(ROOT, database, tmp_path, LOCK, suites=["other"], run_date=DATE)
    players = tmp_path / "config/players"
    shutil.copytree(ROOT / "config/players", players)
    (players / "other.yaml").write_text("[")
    assert build(tmp_path, database, tmp_path / "out", LOCK, suites=["workbench"], run_date=DATE)
    text = (players / "scripted.yaml").read_text()
    (players / "scripted.yaml").write_text(text.replace("organisation:", "organization:"))
    with pytest.raises(ConfigError, match=r"config/players/scripted\.yaml: identity: org"):
        build(tmp_path, database, tmp_path / "out", LOCK, suites=["workbench"], run_date=DATE)
    (players / "scripted.yaml").unlink()
    with pytest.raises(ConfigError, match=r"one file must have capabilities.player_name 'scripted'"):
        build(tmp_path, database, tmp_path / "out", LOCK, suites=["workbench"], run_date=DATE)


def test_games_of_several_versions_and_commits(tmp_path):
    def database_of(*provenances):
        for mission, provenance in zip(MISSIONS, provenances, strict=True):
            write_game(played(mission, provenance=provenance), tmp_path / "records")
        build_db(tmp_path / "records", tmp_path / "games.duckdb", delete_existing=True)
        return tmp_path / "games.duckdb"

    mixed = database_of(PROVENANCE, Provenance("1.0.0", "beef"))
    (bundle,) = build(ROOT, mixed, tmp_path, LOCK, suites=["workbench"], run_date=DATE, submitter=WHO)
    assert failures(bundle) == set() and failures(bundle, "warn") == {"git_sha"}
    mixed = database_of(PROVENANCE, Provenance("1.1.0", "c0ffee"))
    with pytest.raises(ConfigError, match=r"must be of one version, found \['1.0.0', '1.1.0'\]"):
        build(ROOT, mixed, tmp_path, LOCK, suites=["workbench"], run_date=DATE)


def test_nothing_needs_a_network(database, tmp_path, monkeypatch):
    def refuse(*_):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    (bundle,) = build(ROOT, database, tmp_path, LOCK, suites=["workbench"], submitter=WHO, run_date=DATE)
    assert run_validate(bundle, LOCK, show=lambda text: None) == 0


@pytest.mark.parametrize(
    ("text", "expected"), [("GPT-5.2 (high)", "gpt-5-2-high"), ("--A__b--", "a-b"), ("Ünïcode", "n-code")]
)
def test_slugs(text, expected):
    assert slug(text) == expected


# ---- tampering -------------------------------------------------------------------------------------------------


def edit(bundle, change):
    path = bundle / MANIFEST
    data = yaml.safe_load(path.read_text())
    change(data)
    path.write_text(yaml.safe_dump(data, sort_keys=False))


def put(*keys, value):
    def change(data):
        *way, last = keys
        for key in way:
            data = data[key]
        data[last] = value

    return lambda bundle: edit(bundle, change)


def games(change):
    """A change of the rows of a bundle's table."""

    def apply(bundle):
        rows = pq.read_table(bundle / GAMES).to_pylist()
        rows = change(rows) or rows
        pq.write_table(pa.Table.from_pylist(rows, GAMES_SCHEMA), bundle / GAMES)

    return apply


def row(**values):
    return games(lambda rows: rows[0].update(values))


def capabilities(data):
    data["players"][0]["capabilities"]["tokens_per_image"] = 7


MANIFESTS = {
    "missing": lambda bundle: (bundle / MANIFEST).unlink(),
    "no YAML": lambda bundle: (bundle / MANIFEST).write_text("["),
    "other schema": put("schema_version", value=2),
    "extra key": put("note", value="x"),
    "other fingerprint": put("players", 0, "fingerprint", value="0" * 32),
    "other capabilities": lambda bundle: edit(bundle, capabilities),
    "two kinds": put("measured", "task_name", value="expert-vqa"),
    "no kind": put("measured", value={}),
    "two defusers": put("players", 1, "role", value="defuser"),
    "no zone": put("run_date", value="2026-01-31T12:00:00"),
}


@pytest.mark.parametrize("tamper", MANIFESTS.values(), ids=MANIFESTS)
def test_a_manifest_that_cannot_be_read(bundle, tamper):
    tamper(bundle)
    assert [check.name for check in check_bundle(bundle, LOCK)] == ["manifest"] and failures(bundle) == {"manifest"}


PAYLOADS = {
    "missing": lambda bundle: (bundle / GAMES).unlink(),
    "no Parquet": lambda bundle: (bundle / GAMES).write_bytes(b"x"),
    "cut off": lambda bundle: (bundle / GAMES).write_bytes((bundle / GAMES).read_bytes()[:-5]),
    "empty": games(lambda rows: rows.clear()),
    "other columns": lambda bundle: pq.write_table(pq.read_table(bundle / GAMES).drop_columns("seed"), bundle / GAMES),
}


@pytest.mark.parametrize("tamper", PAYLOADS.values(), ids=PAYLOADS)
def test_a_payload_that_cannot_be_read(bundle, tamper):
    tamper(bundle)
    assert failures(bundle) == {"payload"}


SINGLE = {
    "layout": lambda bundle: (bundle / METRICS).write_text("{}"),
    "submission_id": put("submission_id", value="2026-01-31_other"),
    "submitter": put("submitter", "contact", value=" "),
    "suite": put("measured", "suite_revision", value=2),
    "suite digest": put("measured", "suite_digest", value="0" * 32),
    "experiments": row(mission_set="other"),
    "missing": games(lambda rows: rows[1:]),
    "duplicates": games(lambda rows: [*rows, rows[0]]),
    "unknown": games(lambda rows: [*rows, rows[0] | {"mission_key": "9|Wires"}]),
    "outcomes": row(outcome="detonated"),
    "defuser": row(defuser_capability_fingerprint="0" * 32),
    "experts": games(lambda rows: [*rows, rows[0] | {"expert_capability_fingerprint": "0" * 32}]),
    "gptnt_version": put("provenance", "gptnt_version", value=""),
}
# What goes along with some of them, since the same change breaks it as well.
ALSO = {"suite": {"directory", "submission_id"}, "experts": {"unknown"}}


@pytest.mark.parametrize("name", SINGLE)
def test_each_change_fails_its_own_check(bundle, name):
    SINGLE[name](bundle)
    assert failures(bundle) == {name} | ALSO.get(name, set())


@pytest.mark.parametrize(
    ("check", "tamper"),
    [
        ("submitter", put("submitter", "name", value="")),
        ("experiments", row(suite_name="other")),
        ("experiments", row(suite_revision=2)),
        ("experiments", row(attempt=2)),
        ("outcomes", row(is_hard_crash=True)),
        ("outcomes", row(outcome="incomplete")),
        ("outcomes", row(outcome="timeout")),
        ("outcomes", row(strike_count=1)),
        ("outcomes", row(final_bomb_state="{}")),
        ("gptnt_version", put("provenance", "gptnt_version", value="0.0.0")),
        ("gptnt_version", put("provenance", "gptnt_version", value="newest")),
    ],
)
def test_further_changes(bundle, check, tamper):
    tamper(bundle)
    assert failures(bundle) == {check}


def test_another_name_of_the_folder(bundle):
    moved = bundle.rename(bundle.with_name("20260131_other"))
    assert failures(moved) == {"directory"}


def test_another_date(bundle):
    put("run_date", value="2026-02-01T12:00:00+00:00")(bundle)
    assert failures(bundle) == {"directory", "submission_id"}


@pytest.mark.parametrize("commit", [None, "c0ffee-dirty"])
def test_an_unknown_or_dirty_commit_is_a_warning(bundle, commit):
    put("provenance", "git_sha", value=commit)(bundle)
    assert failures(bundle) == set() and failures(bundle, "warn") == {"git_sha"}


def test_where_the_suite_is_unknown_its_coverage_is_not_asked(bundle):
    put("measured", "suite_digest", value="0" * 32)(bundle)
    names = {check.name for check in check_bundle(bundle, LOCK)}
    assert not names & {"experiments", "missing", "duplicates", "unknown"}


# ---- static tasks ----------------------------------------------------------------------------------------------


def static_run(folder, **statics):
    folder.mkdir()
    meta = {
        "model_name": "script scripted",
        "run_date": "2026-01-31T12:00:00+00:00",
        "statics": {
            "task_name": "expert-vqa-no-manual",
            "hf_repo_id": "gptnt/expert-vqa",
            "dataset_split": "test",
            "requested_revision": None,
            "resolved_revision": "abcdef0123456789",
            "n_instances": 5,
            "n_dataset": 5,
            "n_failed": 0,
            "limit": None,
            **statics,
        },
        "capabilities": Capabilities(player_name="scripted", player_type="ai").model_dump(mode="json"),
        "provenance": {"version": "1.0.0", "commit": "c0ffee"},
    }
    (folder / META).write_bytes(encode_document(meta))
    (folder / METRICS).write_bytes(encode_document({"exact": {"accuracy": 0.5}}))
    return folder


@pytest.fixture
def static(tmp_path):
    return build_static(ROOT, static_run(tmp_path / "run"), tmp_path / "out", WHO)


def test_a_static_bundle(static):
    assert failures(static) == failures(static, "warn") == set()
    assert static.name.endswith("_expert-vqa-no-manual_abcdef01")
    assert read_submission(static / MANIFEST).submission_id.endswith("_expert-vqa-no-manual@abcdef01")
    assert [check.name for check in check_bundle(static, LOCK)][-3:] == ["payload", "dataset pin", "dataset coverage"]


@pytest.mark.parametrize(
    "statics", [{"n_instances": 3}, {"n_failed": 1}, {"limit": 5}], ids=["fewer", "failed", "limited"]
)
def test_a_static_run_that_is_not_whole(tmp_path, statics):
    bundle = build_static(ROOT, static_run(tmp_path / "run", **statics), tmp_path / "out", WHO)
    assert failures(bundle) == {"dataset coverage"}


def test_a_static_run_without_a_pinned_data_set(tmp_path):
    run = static_run(tmp_path / "run", resolved_revision=None)
    bundle = build_static(ROOT, run, tmp_path / "out", WHO)
    assert failures(bundle) == set() and failures(bundle, "warn") == {"dataset pin"} and "unpinned" in bundle.name


@pytest.mark.parametrize(
    ("tamper", "check"),
    [
        (lambda bundle: (bundle / METRICS).write_text("{"), "payload"),
        (lambda bundle: (bundle / METRICS).unlink(), "payload"),
        (lambda bundle: (bundle / META).unlink(), "dataset coverage"),
        (lambda bundle: (bundle / META).write_text("{}"), "dataset coverage"),
        (lambda bundle: (bundle / GAMES).write_bytes(b""), "layout"),
    ],
)
def test_static_payloads(static, tamper, check):
    tamper(static)
    assert failures(static) == {check}


def test_a_broken_static_run_is_left_out(database, tmp_path):
    broken = static_run(tmp_path / "broken")
    (broken / META).write_text("{}")
    lines = []
    runs = [broken, static_run(tmp_path / "run")]
    assert run_new(ROOT, database, tmp_path / "out", LOCK, suites=[], statics=runs, show=lines.append) == 0
    assert lines[0].startswith("left out: ") and len(lines) == 2 and Path(lines[1]).is_dir()


@pytest.mark.parametrize("date", ["2026-01-31", "2026-01-31T23:00:00Z", "2026-02-01T01:00:00+02:00"])
def test_the_date_of_a_command(database, tmp_path, date):
    lines = []
    code = run_new(ROOT, database, tmp_path, LOCK, suites=["workbench"], submitter=WHO, date=date, show=lines.append)
    assert code == 0 and Path(lines[0]).name.startswith("20260131_") and failures(Path(lines[0])) == set()


def test_what_is_no_date(database, tmp_path):
    with pytest.raises(ConfigError, match=r"the date must be as 2026-01-31 .*found 'today'"):
        run_new(ROOT, database, tmp_path, LOCK, suites=["workbench"], date="today")


# ---- the command -----------------------------------------------------------------------------------------------


def test_all_bundles_below_a_folder_are_checked(bundle, static, tmp_path):
    assert bundles_below(tmp_path) == sorted([bundle, static, tmp_path / "run"])
    with pytest.raises(ConfigError, match="must be a bundle or hold some"):
        bundles_below(tmp_path / "run")


def test_exit_codes_and_text(bundle):
    lines = []
    assert run_validate(bundle, LOCK, show=lines.append) == 0
    assert lines[0].splitlines()[-1] == "17 pass, 0 warn, 0 fail"
    put("provenance", "git_sha", value=None)(bundle)
    assert run_validate(bundle, LOCK, show=lines.append) == 0
    put("submitter", "name", value="")(bundle)
    assert run_validate(bundle, LOCK, show=lines.append) == 1
    assert "  fail  submitter         submitter.name must be filled in" in lines[-1]


def test_json_holds_every_check(bundle):
    lines = []
    put("submitter", "name", value="")(bundle)
    assert run_validate(bundle, LOCK, "json", show=lines.append) == 1
    found = json.loads(lines[0])
    assert found["summary"] == {"pass": 16, "warn": 0, "fail": 1}
    assert [check["name"] for check in found["checks"] if check["verdict"] == "fail"] == ["submitter"]


def test_github_annotations_are_escaped(bundle, tmp_path):
    put("submission_id", value="a: 100%, b\nc")(bundle)
    page = tmp_path / "summary.md"
    page.write_text("before\n")
    lines = []
    environment = {"GITHUB_STEP_SUMMARY": str(page)}
    assert run_validate(bundle, LOCK, "github", environment, lines.append) == 1
    (annotation,) = lines[0].splitlines()
    assert annotation.startswith(f"::error file={bundle.name}/{MANIFEST},title=submission_id::must be ")
    assert annotation.endswith("found a: 100%25, b%0Ac")
    text = page.read_text().splitlines()
    assert text[0] == "before" and len(text) == 3 + 17
    assert render(check_bundle(bundle, LOCK)[:1], "github") == ""


def test_an_empty_database(tmp_path):
    (tmp_path / "records").mkdir()
    build_db(tmp_path / "records", tmp_path / "games.duckdb")
    with duckdb.connect(str(tmp_path / "games.duckdb"), read_only=True) as connection:
        assert connection.execute(f"SELECT count(*) FROM {SUMMARIES}").fetchone() == (0,)
    with pytest.raises(ConfigError, match="must hold valid games of workbench"):
        build(ROOT, tmp_path / "games.duckdb", tmp_path, LOCK, suites=["workbench"], run_date=DATE)
