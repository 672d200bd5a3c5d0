import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bundles import commit_all, entered, make_project, make_row
from helpers import ROOT
from rowproof import cli
from rowproof.boards import load_board
from rowproof.errors import RowproofError
from rowproof.evidence.leaderboard import render
from rowproof.layout import PROVENANCE, SUMS
from rowproof.records import decode, encode_document, encode_lines, split_lines
from rowproof.reproduce import compare, first_difference

ROW = "handover-v1/b-stat"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A project with one row that is built and committed."""
    root = make_project(tmp_path_factory.mktemp("cli") / "p", seeds=[0], episodes_per_partner=3)
    for name in ("rules", "profiles", "resources", "envs"):
        shutil.copytree(ROOT / name, root / name, dirs_exist_ok=True)
    for name in ("Snakefile", "README.md", ".gitignore"):
        shutil.copy(ROOT / name, root)
    commit_all(root)
    make_row(root, root / "results", *ROW.split("/"))
    commit_all(root)
    return root


@pytest.fixture
def project(built, tmp_path, monkeypatch):
    """A copy of it in which the command is called, as if it were installed from there."""
    return entered(built, tmp_path, monkeypatch)


@pytest.fixture
def run(capsys):
    """Call the command in this process: exit code, standard output, standard error."""

    def call(*arguments):
        try:
            code = cli.main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def spawn(root, *arguments, **options):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("ROWPROOF_", "SNAKEMAKE_", "GIT_"))}
    environment |= {"PYTHONPATH": str(root / "workflow"), **options.pop("environment", {})}
    command = [sys.executable, "-m", "rowproof", *map(str, arguments)]
    return subprocess.run(command, cwd=root, env=environment, text=True, capture_output=True, timeout=120, **options)


def edit(path, old, new):
    text = path.read_text()
    assert old in text, f"{path} holds no {old!r}"
    path.write_text(text.replace(old, new, 1))


def test_help_names_every_command(run):
    code, out, _ = run("--help")
    assert code == 0
    for command in ("verify", "why", "lock", "attest", "reproduce", "leaderboard", "list", "generate"):
        assert re.search(rf"^    {command}\s", out, re.MULTILINE)
        assert run(command, "--help")[0] == 0


@pytest.mark.parametrize("arguments", [[], ["fly"], ["verify"], ["list", "stars"], ["why", "--jason"]])
def test_wrong_usage_exits_2(run, arguments):
    code, _, err = run(*arguments)
    assert code == 2 and err.startswith("usage: rowproof")


def test_list(project, run):
    assert run("list", "boards") == (0, "handover-v1\tHandover and place\n", "")
    assert run("list", "rows")[1].splitlines()[2] == "handover-v1/b-stat\tstatic\texact"
    partners = run("list", "partners")[1].splitlines()
    assert len(partners) == 6
    assert partners[2].split("\t")[:3] == [
        "handover-place-partners-v1/presenter_mismatch_30",
        "7ec27e8d0c2efd6e",
        "evaluated",
    ]


def test_outside_a_project(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("list", "rows")
    assert (code, out) == (2, "") and "must be called inside a rowproof project" in err


def test_the_rowproof_of_another_checkout_is_refused(project, monkeypatch, run):
    monkeypatch.setattr(cli, "PACKAGE_ROOT", ROOT)
    code, _, err = run("why")
    assert code == 2 and str(project) in err and str(ROOT) in err and "use " in err


def test_a_configuration_error_is_one_message(project, run):
    edit(project / "config/boards/handover-v1.yaml", "tier: exact", "teir: exact")
    code, out, err = run("list", "rows")
    assert (code, out) == (2, "")
    assert err.startswith("rowproof: config/boards/handover-v1.yaml:") and "teir: unknown key" in err


# --- why


def test_why_of_a_current_row_is_silent(project, run):
    assert run("why", ROW) == (0, "all rows are current\n", "")


@pytest.mark.parametrize("form", [ROW, f"results/{ROW}", f"./results/{ROW}/", f"{ROW}/"])
def test_rows_are_named_as_people_type_them(project, run, form):
    assert run("why", form)[0] == 0


def test_why_works_from_a_folder_below(project, run, monkeypatch):
    monkeypatch.chdir(project / "config")
    assert run("why", ROW)[0] == 0


def test_why_of_an_unknown_row(project, run):
    code, _, err = run("why", "handover-v1/b-new")
    assert code == 2 and "must be a row or board of this project" in err and ROW in err


def test_why_of_a_missing_row(project, run):
    code, out, _ = run("why", "handover-v1/b-rnd")
    assert code == 1
    assert "handover-v1/b-rnd is missing; runs again: specs, simulate, summary, bundle (no recorded time)" in out
    assert "there is no bundle yet" in out


def test_why_tells_of_a_board_when_all_of_it_is_asked_for(project, run):
    told = "board handover-v1 is stale: rows ref-script, b-rnd are not current"
    for arguments in ((), ("handover-v1",)):
        code, out, _ = run("why", *arguments)
        assert code == 1 and told in out.splitlines()
    assert told not in run("why", ROW, "handover-v1/b-rnd")[1]


PARTNERS = "config/partners/handover-place-partners-v1.yaml"
CHANGED_MEMBER = 'grasp_pose_bias_deg: "30.0"', 'grasp_pose_bias_deg: "31.0"'


def test_a_changed_partner_is_refused_until_its_set_has_another_version(project, run):
    edit(project / PARTNERS, *CHANGED_MEMBER)
    for command in ("why", "lock", "reproduce"):
        code, out, err = run(command, *([ROW] if command == "reproduce" else []))
        assert (code, out) == (2, ""), command
        assert err.startswith("rowproof: config/plans/handover-v1.lock.json: partner handover_place_partners@v1/")
        assert err.endswith("restore it, or give the new content a name or version of its own\n")
    edit(project / PARTNERS, "version: 1", "version: 2")
    code, out, err = run("why", ROW)
    assert code == 2 and "found no digest: run `rowproof lock handover-v1` and commit" in err
    assert run("lock")[1] == "config/plans/handover-v1.lock.json: wrote: commit it with the plan\n"
    assert run("lock", "handover-v1")[1] == "config/plans/handover-v1.lock.json: pins everything already\n"
    assert run("why", ROW)[0] == 1


def test_lock_of_an_unknown_board(project, run):
    code, _, err = run("lock", "absent")
    assert code == 2 and "absent: must be a board of this project (handover-v1)" in err


def test_why_names_changed_item_stage_hits_and_estimate(project, run):
    edit(project / PARTNERS, *CHANGED_MEMBER)
    edit(project / PARTNERS, "version: 1", "version: 2")
    assert run("lock")[0] == 0
    item = "setup.members[presenter_mismatch_30].params.grasp_pose_bias_deg"
    code, out, _ = run("why", ROW)
    assert code == 1
    assert f"specs: config {item} in config/partners/" in out and "'30.0' -> '31.0'" in out
    assert f"makes stale: {ROW}\n" in out
    code, out, _ = run("why", "--json")
    report = {entry["row"]: entry for entry in json.loads(out) if "row" in entry}
    assert code == 1 and len(report) == 3
    entry = report[ROW]
    assert entry["state"] == "stale" and entry["rebuild_stages"] == ["specs", "simulate", "summary", "bundle"]
    assert entry["estimated_seconds"] == 0.0
    [change, version] = entry["changes"]
    assert (version["item"], version["before"], version["after"]) == (
        "setup.partner_set",
        "handover_place_partners@v1",
        "handover_place_partners@v2",
    )
    assert (change["kind"], change["item"], change["stage"]) == ("config", item, "specs")
    assert (change["before"], change["after"], change["hits"]) == ("30.0", "31.0", [ROW])


def test_why_of_changed_statistics_needs_no_episodes(project, run):
    with (project / "workflow/rowproof/evidence/statistics.py").open("a") as stream:
        stream.write("\nadded = 1\n")
    code, out, _ = run("why", "--json", ROW)
    [entry] = json.loads(out)
    assert code == 1 and entry["rebuild_stages"] == ["summary", "bundle"]
    assert entry["changes"][0]["file"] == "workflow/rowproof/evidence/statistics.py"


def test_why_of_a_damaged_row(project, run):
    (project / "results" / ROW / "episodes_seed0.jsonl").write_text("x\n")
    code, out, _ = run("why", ROW)
    assert code == 1 and f"{ROW} is damaged" in out and f"episodes_seed0.jsonl differs from its hash in {SUMS}" in out


def test_code_that_is_no_python_is_named(project, run):
    (project / "workflow/scripts/simulate.py").write_text("def f(:\n")
    code, _, err = run("why")
    assert code == 2 and err.startswith("rowproof: workflow/scripts/simulate.py:1: must be Python source")


# --- verify


def test_verify_passes_and_fails(project, run):
    code, out, _ = run("verify", f"results/{ROW}")
    verdict, judge = out.splitlines()[-2:]
    assert code == 0 and verdict.startswith("PASS ") and verdict.endswith("0 unknown")
    assert judge.startswith(f"judged by the project {project} at HEAD ") and "modified" not in judge
    (project / "results" / ROW / "REPRO.txt").write_text("x\n")
    code, out, _ = run("verify", f"results/{ROW}")
    assert code == 1 and "FAIL    sums:REPRO.txt" in out
    code, quiet, _ = run("verify", "--quiet", f"results/{ROW}")
    assert code == 1 and [line.split() for line in quiet.splitlines()] == [
        line.split() for line in out.splitlines() if not line.startswith("PASS ")
    ]
    code, out, _ = run("verify", "--json", f"results/{ROW}")
    [table] = json.loads(out)
    assert code == 1 and table["verdict"] == "fail"
    assert {"id", "verdict", "must", "found"} == set(table["checks"][0])


def test_verify_finds_all_bundles_below_a_folder(project, run):
    for folder in ("deep/2", "deep/1/x"):
        shutil.copytree(project / "results" / ROW, project / "results" / folder)
    code, out, _ = run("verify", "--json", "results")
    found = [(table["subject"], table["verdict"]) for table in json.loads(out)]
    # The folder itself: no board of this project is rendered.
    subjects = ["results", "results/deep/1/x", "results/deep/2", "results/handover-v1/b-stat"]
    assert [subject for subject, _ in found] == subjects and found[0][1] == "fail"
    # The last lies where it says; one of the others does not.
    assert found[-1][1] == "pass" and code == 1


@pytest.mark.parametrize("lost", [["bundle.json", "recipe.json", SUMS], ["recipe.json", PROVENANCE], ["recipe.json"]])
def test_a_bundle_that_lost_files_is_still_verified(project, run, lost):
    shutil.copytree(project / "results" / ROW, project / "results/handover-v1/whole")
    for name in lost:
        (project / "results" / ROW / name).unlink()
    code, out, _ = run("verify", "results")
    assert code == 1 and "FAIL results/handover-v1/b-stat:" in out


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("absent", "must be a folder with a bundle or archive"),
        ("config", "must hold a bundle"),
        ("Snakefile", "folder"),
    ],
)
def test_verify_of_what_is_no_bundle_exits_2(project, run, path, message):
    code, out, err = run("verify", path)
    assert (code, out) == (2, "") and message in err


def test_evidence_cannot_write_lines_of_the_table(project, run):
    (project / "results" / ROW / "REPRO.txt").write_bytes(b"x\x1b[2J\nPASS    everything  \xff fine\n")
    code, out, _ = run("verify", f"results/{ROW}")
    assert code == 1 and "\x1b" not in out
    assert not any(line.startswith("PASS    everything") for line in out.splitlines())


def test_unreadable_files_are_a_failing_check(project, run):
    if os.geteuid() == 0:
        pytest.skip("root reads every file")
    (project / "results" / ROW / "bundle.json").chmod(0)
    assert run("verify", f"results/{ROW}")[0] == 1


def test_an_unreadable_configuration_is_one_message(project, run):
    (project / "requirements.lock").unlink()
    (project / "requirements.lock").mkdir()
    code, _, err = run("why")
    assert code == 2 and err.startswith("rowproof: requirements.lock: must be a readable file")


# --- leaderboard and generate


def test_leaderboard_of_a_board_that_is_not_rendered(project, run):
    code, out, err = run("leaderboard", "handover-v1")
    assert (code, out) == (2, "") and "snakemake results/handover-v1" in err


@pytest.fixture
def rendered(project):
    """The project with its board rendered."""
    folder = project / "results/handover-v1"
    for row in ("ref-script", "b-rnd"):
        make_row(project, project / "results", "handover-v1", row)
    board = load_board(project, "handover-v1").board
    shutil.rmtree(project / "resources")
    for name, data in render(board.model_dump(by_alias=True), folder, project, "0" * 64).items():
        (folder / name).write_bytes(data)


def test_leaderboard_prints_the_table_in_columns(rendered, run):
    code, out, _ = run("leaderboard")
    lines = out.splitlines()
    assert code == 0 and lines[0].startswith("Handover and place (handover-v1, board digest ")
    assert [line.split()[0] for line in lines[1:5]] == ["Row", "ref-script", "b-rnd", "b-stat"]
    start = lines[1].index("Success rate")
    assert all(line[start - 2 : start] == "  " and line[start] == "0" for line in lines[2:5])


def test_leaderboard_prints_the_whole_page(project, rendered, run):
    page = (project / "results/handover-v1/leaderboard.md").read_text(encoding="utf-8")
    assert run("leaderboard", "handover-v1", "--full")[:2] == (0, page + "\n")


def test_generate_restores_what_drifted(project, run):
    assert run("generate")[0] == 0
    assert run("generate", "--check") == (0, "", "")
    schema = project / "config/schemas/plan.schema.json"
    before = schema.read_bytes()
    schema.write_text("{}")
    code, out, _ = run("generate", "--check")
    assert code == 1 and "config/schemas/plan.schema.json must equal what its sources generate" in out
    assert schema.read_text() == "{}"
    assert run("generate") == (0, "wrote config/schemas/plan.schema.json\n", "")
    assert schema.read_bytes() == before


# --- reproduce


def test_reproduce_without_rows_is_refused(project, run):
    code, _, err = run("reproduce")
    assert code == 2 and "rows must be named" in err


def test_reproduce_without_committed_bundle_is_refused_before_building(project, run):
    code, _, err = run("reproduce", "handover-v1/b-rnd")
    assert code == 2 and "must have a committed bundle" in err


def test_reproduce_needs_an_empty_folder(project, run):
    code, _, err = run("reproduce", ROW, "--keep", "config")
    assert code == 2 and "must be empty" in err


def test_reproduce_names_file_record_and_field_of_a_difference(project):
    path = project / "results" / ROW / "episodes_seed0.jsonl"
    records = [decode(line, "x") for _, line in split_lines(path.read_bytes(), "x")]
    stated = records[2]["force_peak"]
    records[2]["force_peak"] = stated + 1.0
    path.write_bytes(encode_lines(records))
    done = spawn(project, "reproduce", ROW, "--cores", "1", "--keep", "rebuilt")
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"DIFFERS {ROW} (tier exact): episodes_seed0.jsonl: record 3, field force_peak: committed" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    # The rebuilt row is the one that was committed before the change.
    shutil.rmtree(project / "results" / ROW)
    subprocess.run(["git", "-C", str(project), "checkout", "-q", "--", "results"], check=True)
    rebuilt = project / "rebuilt/results" / ROW
    found = compare(ROW, project / "results" / ROW, rebuilt)
    assert found.match and found.detail.endswith("identity files identical")


@pytest.fixture
def pair(built, tmp_path):
    source = built / "results" / ROW
    return shutil.copytree(source, tmp_path / "old"), shutil.copytree(source, tmp_path / "new")


def change_bundle(folder, change):
    document = decode((folder / "bundle.json").read_bytes(), "x")
    change(document)
    (folder / "bundle.json").write_bytes(encode_document(document))


def outcome(pair):
    for folder in pair:
        change_bundle(folder, lambda document: document.update(tier="outcome"))
    return pair


def change_records(folder, change):
    path = folder / "episodes_seed0.jsonl"
    records = [decode(line, "x") for _, line in split_lines(path.read_bytes(), "x")]
    change(records)
    path.write_bytes(encode_lines(records))


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        (lambda new: (new / "REPRO.txt").unlink(), "REPRO.txt: only committed"),
        (lambda new: (new / "extra").write_text("x"), "extra: only rebuilt"),
        (lambda new: (new / "plan.yaml").write_bytes(b"\0" + (new / "plan.yaml").read_bytes()), "plan.yaml: byte 0"),
        (lambda new: (new / "REPRO.txt").write_bytes(b"snakemake"), "REPRO.txt: "),
        (lambda new: change_records(new, lambda records: records.pop()), "6 records committed, 5 rebuilt"),
        (lambda new: (new / "episodes_seed0.jsonl").write_bytes(b"\xff"), "episodes_seed0.jsonl: byte 0"),
        (lambda new: change_bundle(new, lambda d: d["summary"].update(x=1)), "bundle.json: field summary.x"),
        (
            lambda new: (new / "bundle.json").write_text(json.dumps(json.loads((new / "bundle.json").read_text()))),
            "bundle.json: written differently",
        ),
    ],
)
def test_exact_comparison_sees_every_byte(pair, change, detail):
    old, new = pair
    assert compare(ROW, old, new).match
    change(new)
    found = compare(ROW, old, new)
    assert not found.match and detail in found.detail


def test_provenance_is_no_part_of_a_comparison(pair):
    (pair[1] / PROVENANCE).write_text("{}")
    assert compare(ROW, *pair).match


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda new: change_records(new, lambda records: records[1].update(force_peak=0.125)), True),
        (lambda new: change_bundle(new, lambda d: d["summary"].update(stress={})), True),
        (lambda new: change_records(new, lambda r: r[1].update(success=not r[1]["success"])), False),
        (lambda new: change_records(new, lambda records: records.pop()), False),
        (lambda new: (new / "episodes_seed0.jsonl").unlink(), False),
        (lambda new: change_bundle(new, lambda d: d["summary"].update(x=1)), False),
        (lambda new: change_bundle(new, lambda d: d.update(summary=None)), False),
    ],
)
def test_outcome_comparison_forgives_digits_alone(pair, change, match):
    old, new = outcome(pair)
    change(new)
    assert compare(ROW, old, new).match == match


def test_an_unknown_tier_is_refused(pair):
    change_bundle(pair[0], lambda document: document.update(tier="approximate"))
    with pytest.raises(RowproofError, match="no comparison is defined for tier 'approximate'"):
        compare(ROW, *pair)


def test_first_difference_of_nested_values():
    old, new = ({"a": [{"b": 1}, {"b": value}]} for value in (2, 3))
    found = first_difference("x.json", encode_document(old), encode_document(new))
    assert found == "x.json: field a[1].b: committed 2, rebuilt 3"


# --- as its own process


def test_module_call_and_a_reader_that_leaves(built):
    done = spawn(built, "list", "rows")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 3 and done.stderr == ""
    read, write = os.pipe()
    os.close(read)
    environment = {**os.environ, "PYTHONPATH": str(built / "workflow")}
    command = [sys.executable, "-m", "rowproof", "list", "rows"]
    done = subprocess.run(command, cwd=built, env=environment, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_full_disk_is_one_message(built):
    environment = {**os.environ, "PYTHONPATH": str(built / "workflow")}
    command = [sys.executable, "-m", "rowproof", "list", "rows"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, cwd=built, env=environment, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and done.stderr.startswith("rowproof: No space left")
    assert len(done.stderr.splitlines()) == 1


def test_a_terminal_without_the_letters(built, tmp_path):
    folder = shutil.copytree(built / "results" / ROW, tmp_path / "é\udcff")
    done = spawn(built, "verify", "--quiet", folder, environment={"PYTHONIOENCODING": "ascii"})
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr and "\\xe9" in done.stdout
