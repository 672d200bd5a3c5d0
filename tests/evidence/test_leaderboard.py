import copy
import csv
import io
import json
import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from bundles import commit_all, make_project, make_row
from helpers import ROOT
from rowproof.boards import load_board
from rowproof.errors import RowproofError
from rowproof.evidence.facts import channel_summary, success_text
from rowproof.evidence.leaderboard import _deviation, draw_plot, main_table, render
from rowproof.evidence.verify import verify_bundle
from rowproof.layout import PROVENANCE, document_digest
from rowproof.plan_lock import write_lock
from rowproof.provenance import totals_of
from rowproof.recipes import BOARD_FILES
from rowproof.records import decode, digest, encode_document

BOARD = "handover-v1"
ROWS = ("ref-script", "b-rnd", "b-stat")
KEY = "5" * 64


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with both boards, whose bundles lie beside it; nobody writes into either."""
    root = make_project(tmp_path_factory.mktemp("project"), boards=(BOARD, "push-v1"))
    built = tmp_path_factory.mktemp("built")
    for row in ROWS:
        make_row(root, built, BOARD, row)
    make_row(root, built, "push-v1", "b-stat")
    return root, built


@pytest.fixture
def root(project):
    return project[0]


@pytest.fixture
def folder(project, tmp_path):
    """The results of one board, all rows fine, for this test to break."""
    return shutil.copytree(project[1] / BOARD, tmp_path / "results" / BOARD)


@pytest.fixture(scope="module")
def sound(project):
    """What the untouched rows of the board render to."""
    root, built = project
    return render(load_board(root, BOARD).board.model_dump(by_alias=True), built / BOARD, root, KEY)


@pytest.fixture
def board(root):
    return load_board(root, BOARD).board.model_dump(by_alias=True)


def refusal(board, folder, root) -> str:
    with pytest.raises(RowproofError) as error:
        render(board, folder, root, KEY)
    return str(error.value)


def document_of(files) -> dict:
    return decode(files["leaderboard.json"], "leaderboard.json")


# --- What refuses the whole render -----------------------------------------------------------------------------------


def test_a_board_of_sound_rows_is_rendered(sound):
    assert set(sound) == set(BOARD_FILES)


def test_one_edited_record_refuses_and_names_every_failing_check(board, folder, root):
    path = folder / "b-stat" / "episodes_seed1.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"success":false', b'"success":true', 1))
    failures = verify_bundle(folder / "b-stat", root).failures
    message = refusal(board, folder, root)
    assert len(failures) > 1
    for check in failures:
        assert f"b-stat: {check.id}: {check.found}" in message
    assert "ref-script:" not in message


def test_a_row_from_a_modified_checkout_refuses(board, folder, root):
    shutil.rmtree(folder / "b-rnd")
    make_row(root, folder.parent, BOARD, "b-rnd", dirty=True)
    assert "b-rnd: eligibility:clean: " in refusal(board, folder, root)


def test_a_missing_row_refuses(board, folder, root):
    shutil.rmtree(folder / "b-rnd")
    assert "b-rnd: " in refusal(board, folder, root)


def test_a_missing_results_folder_refuses_with_every_row(board, folder, root):
    shutil.rmtree(folder)
    message = refusal(board, folder, root)
    assert all(f"{row}: " in message for row in ROWS)


def test_two_broken_rows_are_both_named(board, folder, root):
    for row in ("ref-script", "b-stat"):
        (folder / row / "REPRO.txt").unlink()
    message = refusal(board, folder, root)
    assert "ref-script: files:set: " in message
    assert "b-stat: files:set: " in message


@pytest.mark.parametrize("data", [b"[]\n", b"{}\n", b"nothing", b'{\n  "row_key": [],\n  "partners": 3\n}\n'])
def test_a_bundle_of_any_content_refuses_with_a_message(board, folder, root, data):
    (folder / "b-rnd" / "bundle.json").write_bytes(data)
    assert "b-rnd: sums:bundle.json: differs" in refusal(board, folder, root)


def test_the_bundle_of_another_row_refuses(board, folder, root):
    (folder / "b-rnd").rename(folder / ".b-rnd")
    (folder / "b-stat").rename(folder / "b-rnd")
    (folder / ".b-rnd").rename(folder / "b-stat")
    message = refusal(board, folder, root)
    assert "b-rnd: row must be b-rnd as its place and the board say, found b-stat" in message
    assert "b-stat: row must be b-stat as its place and the board say, found b-rnd" in message


def test_the_bundle_of_another_board_refuses(project, board, folder, root):
    shutil.rmtree(folder / "b-stat")
    shutil.copytree(project[1] / "push-v1" / "b-stat", folder / "b-stat")
    assert f"b-stat: board must be {BOARD} as its place and the board say, found push-v1" in refusal(
        board, folder, root
    )


def test_the_same_row_twice_refuses(board, folder, root):
    shutil.rmtree(folder / "b-rnd")
    shutil.copytree(folder / "b-stat", folder / "b-rnd")
    assert "b-stat: must be another row than b-rnd, found row key" in refusal(board, folder, root)


def test_a_folder_that_is_no_row_refuses(board, folder, root):
    shutil.copytree(folder / "b-stat", folder / "b-stat-pilot")
    assert "b-stat-pilot: must be the folder of a row that the board lists" in refusal(board, folder, root)


def test_a_file_that_is_no_rendered_board_refuses(board, folder, root):
    (folder / "notes.txt").write_text("x")
    assert "notes.txt: must be the folder of a row" in refusal(board, folder, root)


def test_a_link_in_the_place_of_a_row_refuses(board, folder, root, tmp_path):
    (folder / "b-stat").rename(tmp_path / "elsewhere")
    (folder / "b-stat").symlink_to(tmp_path / "elsewhere")
    assert "b-stat: must be the folder of a row" in refusal(board, folder, root)


def test_rendered_and_hidden_files_are_no_strays(board, folder, root):
    for name in (*BOARD_FILES, ".b-stat.tmp"):
        (folder / name).write_text("old")
    (folder / ".bundle-abc").mkdir()
    assert render(board, folder, root, KEY)


def test_the_folder_of_another_name_refuses(board, folder, root):
    moved = folder.rename(folder.parent / "handover-v2")
    assert f"must be the folder of board {BOARD}, found handover-v2" in refusal(board, moved, root)


@pytest.mark.parametrize(
    ("name", "value"), [("tier", "outcome"), ("task", "handover_place@v2"), ("engine", "push-v1"), ("plan", "other")]
)
def test_a_board_that_says_otherwise_than_its_rows_refuses(board, folder, root, name, value):
    message = refusal({**board, name: value}, folder, root)
    assert all(f"{row}: {name} must be " in message for row in ROWS)


def rows_around_an_edit_of_the_plan(tmp_path, old, new):
    """A project, and the rows of its board, of which the first was made before the plan was edited."""
    root = make_project(tmp_path / "project")
    results = tmp_path / "results"
    make_row(root, results, BOARD, "ref-script")
    plan = root / "config/plans/handover-v1.yaml"
    assert old in plan.read_text()
    plan.write_text(plan.read_text().replace(old, new))
    commit_all(root)
    make_row(root, results, BOARD, "b-rnd")
    make_row(root, results, BOARD, "b-stat")
    return root, results / BOARD


def test_a_row_that_the_plan_of_today_binds_otherwise_refuses(board, tmp_path):
    root, folder = rows_around_an_edit_of_the_plan(tmp_path, "n_resamples: 100", "n_resamples: 101")
    message = refusal(board, folder, root)
    assert "ref-script: plan:project: config/plans/handover-v1.yaml says something else of ref-script today" in message
    assert "b-rnd" not in message


def test_rows_that_joined_under_different_versions_of_a_plan_stand_in_one_table(board, tmp_path):
    root, folder = rows_around_an_edit_of_the_plan(tmp_path, "decision_rules:", "# more\ndecision_rules:")
    blobs = [json.loads((folder / row / "bundle.json").read_bytes())["plan"]["blob"] for row in ROWS]
    assert blobs[0] != blobs[1] == blobs[2]
    page = render(board, folder, root, KEY)["leaderboard.md"].decode()
    assert all(blob[:12] in page for blob in blobs)


def test_one_partner_name_for_two_partners_refuses(board, tmp_path):
    root = make_project(tmp_path / "project")
    results = tmp_path / "results"
    make_row(root, results, BOARD, "ref-script")
    path = root / "config/partners/handover-place-partners-v1.yaml"
    partners = yaml.safe_load(path.read_text())
    member = next(m for m in partners["members"] if m["name"] == "presenter_mismatch_30")
    member["seed"] = 1
    # Under a version of its own each row is sound by itself.
    partners["version"] = 2
    path.write_text(yaml.safe_dump(partners, sort_keys=False))
    assert write_lock(load_board(root, BOARD))
    commit_all(root)
    make_row(root, results, BOARD, "b-rnd")
    make_row(root, results, BOARD, "b-stat")
    assert all(verify_bundle(results / BOARD / row, root).passed for row in ROWS)
    message = refusal(board, results / BOARD, root)
    assert "b-rnd: partner presenter_mismatch_30 must be that of ref-script" in message


# --- Same evidence, same bytes ---------------------------------------------------------------------------------------

RENDER = """
import json, sys
from pathlib import Path
from rowproof.boards import load_board
from rowproof.evidence.leaderboard import render
loaded_early = "matplotlib" in sys.modules
root, folder, board = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
files = render(load_board(root, board).board.model_dump(by_alias=True), folder, root, "5" * 64)
print(json.dumps([loaded_early, "matplotlib.pyplot" in sys.modules, {n: d.decode() for n, d in files.items()}]))
"""


def test_processes_with_other_settings_and_working_directories_render_the_same_bytes(sound, folder, root, tmp_path):
    expected = {name: data.decode() for name, data in sound.items()}
    (tmp_path / "matplotlibrc").write_text("svg.fonttype: path\naxes.facecolor: black\nsavefig.bbox: tight\n")
    for seed, where, target in (("0", folder.parent.parent, f"results/{BOARD}"), ("1", tmp_path / "cwd", str(folder))):
        where.mkdir(exist_ok=True)
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": str(ROOT / "workflow"),
            "MATPLOTLIBRC": str(tmp_path / "matplotlibrc"),
            "MPLCONFIGDIR": str(tmp_path / f"config{seed}"),
            "TZ": "Pacific/Auckland",
        }
        command = [sys.executable, "-c", RENDER, str(root), target, BOARD]
        done = subprocess.run(command, cwd=where, env=environment, capture_output=True, check=True)
        loaded_early, pyplot, files = json.loads(done.stdout)
        assert not loaded_early
        assert not pyplot
        assert files == expected


def test_who_built_a_row_and_how_fast_does_not_enter(sound, board, folder, root):
    path = folder / "b-stat" / PROVENANCE
    provenance = json.loads(path.read_bytes())
    for job in provenance["jobs"]:
        job |= {"seconds": 17.5, "platform": "elsewhere", "cpu_model": "another"}
    provenance["totals"] = totals_of(provenance["jobs"])
    provenance["digest"] = document_digest(provenance)
    path.write_bytes(encode_document(provenance))
    assert render(board, folder, root, KEY) == sound


def test_drawing_leaves_the_settings_of_matplotlib_alone():
    import matplotlib

    with matplotlib.rc_context({"axes.facecolor": "black", "svg.hashsalt": "mine"}):
        before = dict(matplotlib.rcParams)
        draw_plot("t", [plotted()])
        assert dict(matplotlib.rcParams) == before


# --- leaderboard.json ------------------------------------------------------------------------------------------------


def test_json_holds_the_rows_in_board_order_with_all_numbers_of_their_bundles(sound, board, folder):
    document = document_of(sound)
    assert [entry["row"] for entry in document["rows"]] == list(board["rows"]) == list(ROWS)
    for entry in document["rows"]:
        data = (folder / entry["row"] / "bundle.json").read_bytes()
        bundle = json.loads(data)
        assert entry["row_digest"] == sha256(data).hexdigest()
        assert entry["row_key"] == bundle["row_key"]
        assert entry["summary"] == bundle["summary"]


def test_json_vouches_for_the_other_files_and_for_itself(sound):
    document = document_of(sound)
    assert document["key"] == KEY
    others = ("leaderboard.csv", "leaderboard.md", "leaderboard.svg")
    assert document["files"] == {name: sha256(sound[name]).hexdigest() for name in others}
    assert document.pop("digest") == digest(document)


def test_the_board_digest_depends_on_the_order_of_the_rows(sound, board, folder, root):
    turned = {**board, "rows": dict(reversed(board["rows"].items()))}
    other = document_of(render(turned, folder, root, KEY))
    assert other["board_digest"] != document_of(sound)["board_digest"]


# --- leaderboard.csv -------------------------------------------------------------------------------------------------


def test_csv_reads_back_to_the_same_doubles(board, folder, root):
    board["rows"]["b-stat"] = {**board["rows"]["b-stat"], "label": 'a "quoted", label'}
    files = render(board, folder, root, KEY)
    assert b"\r" not in files["leaderboard.csv"]
    lines = list(csv.DictReader(io.StringIO(files["leaderboard.csv"].decode(), newline="")))
    for line, entry in zip(lines, document_of(files)["rows"], strict=True):
        summary = entry["summary"]
        assert line["label"] == entry["label"]
        assert float(line["success_rate"]) == summary["success_rate"]
        low, high = summary["published"]["success_iqm_ci_leaderboard_stream"]
        ends = [line["success_iqm_ci_low"], line["success_iqm_ci_high"]]
        # An interval without width is none; bounds stand beside it.
        assert ends == ["", ""] if low == high else [float(end) for end in ends] == [low, high]
        assert (line["success_iqm_bound_by_seeds"] == "") == (low != high)
        assert float(line["stress_p90_newton"]) == summary["stress"]["p90"]
        assert line["row_digest"] == entry["row_digest"]


def test_csv_leaves_a_missing_stress_empty(project, root):
    push = load_board(root, "push-v1").board.model_dump(by_alias=True)
    push["rows"] = {"b-stat": push["rows"]["b-stat"]}
    data = render(push, project[1] / "push-v1", root, KEY)["leaderboard.csv"].decode()
    (line,) = csv.DictReader(io.StringIO(data))
    assert (line["stress_episodes"], line["stress_p90_newton"]) == ("0", "")


# --- leaderboard.md --------------------------------------------------------------------------------------------------


def entry_of(**changes) -> dict:
    """A row as leaderboard.json holds it, with the parts that the table shows."""
    summary = {
        "success_rate": 0.33849,
        "success_rate_ci": [0.2, 1.0],
        "published": {
            "success_mean": 0.3385,
            "success_iqm": 0.17649,
            "success_iqm_ci_bundle_stream": [0.1, 0.3],
            "success_iqm_ci_leaderboard_stream": [0.072, 0.2840999],
        },
        "flags": ["bad-seed", "saturated"],
        "stress": {"n": 4, "p50": 1.0, "p90": 211.5236, "p99": 3.0, "max": 4.0},
    }
    summary |= changes.pop("summary", {})
    return {
        "engine": "cocarry-v1",
        "row": "b-aht",
        "label": "upper anchor",
        "seed_schedule": {"seeds": [0, 7]},
        "partner_range": [["lagging", 0.128], ["blend_b", 0.548]],
        "row_digest": "0123456789abcdef" * 4,
        **changes,
        "summary": summary,
    }


def cells_of(**changes) -> list[str]:
    header, rule, line = main_table([entry_of(**changes)]).splitlines()
    assert header.count("|") == rule.count("|") == 11
    return line.removeprefix("| ").removesuffix(" |").split(" | ")


def test_the_main_table_shows_numbers_in_their_formats():
    assert cells_of() == [
        "b-aht",
        "*upper anchor*",
        "0.338 [0.200, 1.000]",
        "0.176 [0.072, 0.284]",
        "0.339",
        "211.5",
        "0.13 (lagging) … 0.55 (blend_b)",
        "0, 7",
        "bad-seed, saturated",
        "`0123456789ab`",
    ]


def test_what_is_missing_is_a_dash_and_no_label_is_nothing():
    line = main_table([entry_of(label="", summary={"stress": None, "flags": []})]).splitlines()[2]
    assert line.startswith("| b-aht |  | 0.338")
    assert "| 0.339 | — | 0.13 (lagging) … 0.55 (blend_b) | 0, 7 | — |" in line


def test_a_label_cannot_break_the_table():
    assert cells_of(label="a|b *c*\n<i>")[1] == r"*a\|b \*c\*\\n\<i\>*"


def test_ends_of_the_range_that_print_alike_keep_their_own_names():
    ends = [["first", 0.0], ["second", 0.004]]
    assert cells_of(partner_range=ends)[6] == "0.00 (first) … 0.00 (second)"


def test_a_tie_of_partners_goes_to_the_first_of_the_roster(sound):
    line = next(x for x in sound["leaderboard.md"].decode().splitlines() if "b-rnd" in x)
    assert "0.00 (presenter_mismatch_30) … 0.00 (presenter_mismatch_30)" in line


def test_the_page_holds_matrix_counts_streams_flags_and_notes(sound, board, project):
    page = sound["leaderboard.md"].decode()
    assert page.startswith(f"# {board['title']}\n")
    for entry in document_of(sound)["rows"]:
        matrix = entry["summary"]["matrix"]
        for seed, won, played in zip(matrix["seeds"], matrix["successes"], matrix["episodes"], strict=True):
            cells = " | ".join(f"{w / n:.2f} ({w}/{n})" for w, n in zip(won, played, strict=True))
            assert f"| {seed} | {cells} |\n" in page
    for stream in ("hierarchical_bootstrap", "leaderboard_bootstrap", "bundle_bootstrap"):
        assert f"`evaluation.{stream}`" in page
    assert "- Flag saturated: " in page
    assert "- Flag repeated-records: " not in page
    for note in board["notes"]:
        assert f"- {note}\n" in page
    assert "Against the published row" not in page
    assert "/tmp" not in page
    assert str(project[1]) not in page


# --- Published facts -------------------------------------------------------------------------------------------------


def facts_of(folder: Path, row: str) -> dict:
    """Published facts of a row that agree with the bundle in every point."""
    bundle = json.loads((folder / row / "bundle.json").read_bytes())
    summary = bundle["summary"]
    files = {path.name: path.read_bytes() for path in sorted((folder / row).glob("episodes_*"))}
    records = [json.loads(line) for data in files.values() for line in data.splitlines()]
    return {
        "episode_files": {name: sha256(data).hexdigest() for name, data in files.items()},
        "success": {n: success_text([json.loads(line) for line in d.splitlines()]) for n, d in files.items()},
        "pooled": {
            **{name: summary["published"][name] for name in ("n_episodes", "success_mean", "success_iqm")},
            "ci_bundle": summary["published"]["success_iqm_ci_bundle_stream"],
            "ci_leaderboard": summary["published"]["success_iqm_ci_leaderboard_stream"],
            "per_partner": summary["per_partner"],
            "force_peak_n": summary["stress"],
            "channels": channel_summary(records),
        },
    }


@pytest.fixture(scope="module")
def second_root(project, tmp_path_factory):
    """A copy of the project for tests that give it published facts; made once, because its history is read once."""
    return shutil.copytree(project[0], tmp_path_factory.mktemp("compared") / "project", symlinks=True)


@pytest.fixture
def compared(board, folder, second_root):
    """Renders the board of a project that knows the given published rows."""

    def run(rows: dict) -> dict[str, bytes]:
        path = second_root / "resources/published" / f"{BOARD}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump({"rows": rows}))
        return render(board, folder, second_root, KEY)

    return run


def test_agreement_with_the_published_rows_is_counted(folder, compared):
    page = compared({row: facts_of(folder, row) for row in ROWS})["leaderboard.md"].decode()
    for row in ROWS:
        assert f"| {row} | 16 of 16 | 2 of 2 | yes | yes | " in page


def test_a_published_row_that_differs_is_shown_as_such(folder, compared):
    facts = facts_of(folder, "b-rnd")
    text = facts["success"]["episodes_seed0.jsonl"]["presenter_mismatch_30"]
    facts["success"]["episodes_seed0.jsonl"]["presenter_mismatch_30"] = ("1" if text[0] == "0" else "0") + text[1:]
    facts["episode_files"]["episodes_seed0.jsonl"] = "0" * 64
    facts["pooled"]["success_mean"] = 0.0625
    facts["pooled"]["force_peak_n"] = {**facts["pooled"]["force_peak_n"], "p50": 1.0}
    page = compared({"b-rnd": facts})["leaderboard.md"].decode()
    assert "| b-rnd | 15 of 16 | 1 of 2 | no | no | 0.062 | 0.000 |" in page
    assert "| b-stat | — | — | — | — | — | — |" in page


@pytest.mark.parametrize("name", ["ci_bundle", "ci_leaderboard", "per_partner", "success_iqm", "n_episodes"])
def test_every_part_of_the_published_summary_counts(folder, compared, name):
    facts = facts_of(folder, "b-stat")
    old = facts["pooled"][name]
    if isinstance(old, dict):
        new = {**old, next(iter(old)): 0.123}
    else:
        new = [old[0], old[1] + 1e-15] if isinstance(old, list) else old + 1
    facts["pooled"][name] = new
    assert "| b-stat | 16 of 16 | 2 of 2 | no | yes |" in compared({"b-stat": facts})["leaderboard.md"].decode()


def test_the_published_rows_are_met_on_their_own_grid(tmp_path):
    root = make_project(tmp_path / "project", seeds=range(5), episodes_per_partner=50, n_resamples=2000)
    shutil.copytree(ROOT / "resources/published", root / "resources/published")
    board = load_board(root, BOARD).board.model_dump(by_alias=True)
    board["rows"] = {"b-stat": board["rows"]["b-stat"]}
    make_row(root, tmp_path / "results", BOARD, "b-stat")
    files = render(board, tmp_path / "results" / BOARD, root, KEY)
    assert document_of(files)["rows"][0]["published"] == {
        "success_mean": 0.274,
        "episodes_agree": 500,
        "episodes_total": 500,
        "files_identical": 5,
        "files_total": 5,
        "summary_equal": True,
        "stress_equal": True,
    }


# --- Boards whose digits may differ ----------------------------------------------------------------------------------

DETAILS = ("outcomes by member", "Measured quantities over all episodes")


@pytest.fixture(scope="module")
def outcome_project(tmp_path_factory):
    """A project whose board is of tier ``outcome``, and its rows; a test writes published facts only."""
    root = make_project(tmp_path_factory.mktemp("outcome") / "project")
    path = root / f"config/boards/{BOARD}.yaml"
    path.write_text(path.read_text().replace("tier: exact", "tier: outcome"))
    commit_all(root)
    for row in ROWS:
        make_row(root, root / "results", BOARD, row)
    return root


@pytest.fixture
def outcome(outcome_project):
    """Renders that board against the given published rows."""

    def run(rows: dict) -> dict[str, bytes]:
        path = outcome_project / "resources/published" / f"{BOARD}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump({"rows": rows}, sort_keys=False))
        board = load_board(outcome_project, BOARD).board.model_dump(by_alias=True)
        return render(board, outcome_project / "results" / BOARD, outcome_project, KEY)

    return run


def test_exact_boards_have_no_details(folder, compared):
    files = compared({row: facts_of(folder, row) for row in ROWS})
    assert not any(text in files["leaderboard.md"].decode() for text in DETAILS)
    assert all(not {"per_member", "channels"} & set(entry["published"]) for entry in document_of(files)["rows"])


def test_members_of_a_board_whose_digits_may_differ(outcome, outcome_project):
    facts = facts_of(outcome_project / "results" / BOARD, "ref-script")
    texts = facts["success"]
    for member, name, old in (
        ("presenter_mismatch_30", "episodes_seed0.jsonl", "1"),
        ("presenter_mismatch_45", "episodes_seed1.jsonl", "0"),
    ):
        text = texts[name][member]
        assert old in text
        texts[name][member] = text.replace(old, "10"[int(old)], 1)
    ours = {m: sum(facts_before[m].count("1") for facts_before in own_texts(outcome_project)) for m in texts[name]}
    page = outcome({"ref-script": facts})["leaderboard.md"].decode()
    assert "**ref-script**, outcomes by member\n" in page
    a, b = ours["presenter_mismatch_30"], ours["presenter_mismatch_45"]
    assert f"| presenter_mismatch_30 | 8 | 7 | 1 | 0 | {a / 8:.3f} | {(a - 1) / 8:.3f} |\n" in page
    assert f"| presenter_mismatch_45 | 8 | 7 | 0 | 1 | {b / 8:.3f} | {(b + 1) / 8:.3f} |\n" in page
    assert f"| all | 16 | 14 | 1 | 1 | {(a + b) / 16:.3f} | {(a + b) / 16:.3f} |\n" in page
    assert page.count(DETAILS[0]) == 1


def own_texts(root):
    for path in sorted((root / "results" / BOARD / "ref-script").glob("episodes_*")):
        yield success_text([json.loads(line) for line in path.read_bytes().splitlines()])


def test_channels_of_a_board_whose_digits_may_differ(outcome, outcome_project):
    folder = outcome_project / "results" / BOARD
    facts = {row: facts_of(folder, row) for row in ROWS[:2]}
    own = facts["b-rnd"]["pooled"]["channels"]["residual_lateral_m"]
    stress = json.loads((folder / "b-rnd/bundle.json").read_bytes())["summary"]["stress"]
    channels = facts["b-rnd"]["pooled"]["channels"] = copy.deepcopy(facts["b-rnd"]["pooled"]["channels"])
    channels["residual_lateral_m"] |= {"p50": own["p50"] * 2, "p90": 0.0}
    channels["unknown_here"] = {"p50": 1.0, "p90": 1.0, "mean": 1.0}
    files = outcome(facts)
    page = files["leaderboard.md"].decode()
    p50, p90, mean = (f"{own[key]:.4g}" for key in ("p50", "p90", "mean"))
    assert (
        f"| b-rnd | residual_lateral_m | {p50} / {own['p50'] * 2:.4g} (-50.0 %) | {p90} / 0 (—) | "
        f"{mean} / {mean} (+0.0 %) |\n"
    ) in page
    force = f"{stress['p50']:.4g} / {stress['p50']:.4g} (+0.0 %) | {stress['p90']:.4g} / {stress['p90']:.4g} (+0.0 %)"
    assert f"| b-rnd | force_peak (N) | {force} | — |\n" in page
    assert "unknown_here" not in page
    assert "| b-stat | residual_lateral_m" not in page
    entry = document_of(files)["rows"][1]["published"]
    assert list(entry["channels"]) == ["force_peak", "residual_lateral_m", "residual_angular_deg"]
    assert entry["channels"]["residual_lateral_m"]["p50"] == [own["p50"], own["p50"] * 2]


@pytest.mark.parametrize(
    ("here", "published", "text"),
    [
        (1.0, 2.0, "1 / 2 (-50.0 %)"),
        (0.09999, 0.1, "0.09999 / 0.1 (+0.0 %)"),
        (-1.0, -2.0, "-1 / -2 (+50.0 %)"),
        (123.456, 100.0, "123.5 / 100 (+23.5 %)"),
        (0.0, 0.0, "0 / 0 (—)"),
    ],
)
def test_deviations_show_four_digits_and_one_of_the_percentage(here, published, text):
    assert _deviation(here, published) == text


def test_a_board_with_details_renders_to_the_same_bytes(outcome, outcome_project):
    rows = {row: facts_of(outcome_project / "results" / BOARD, row) for row in ROWS}
    first = outcome(rows)
    assert outcome(dict(reversed(rows.items()))) == first
    assert str(outcome_project) not in first["leaderboard.json"].decode()


def test_without_published_rows_there_are_no_details(outcome):
    assert not any(text in outcome({})["leaderboard.md"].decode() for text in DETAILS)


# --- leaderboard.svg -------------------------------------------------------------------------------------------------


def plotted(published=None, **changes) -> dict:
    matrix = {"partners": ["a", "b"], "rates": [[0.25, None], [0.5, 1.0]]}
    return entry_of(summary={"matrix": matrix}, published=published, **changes)


def texts_of(svg: bytes) -> list[str]:
    return [e.text for e in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_the_plot_names_rows_labels_and_numbers_as_text():
    texts = texts_of(draw_plot("A <title> & $more$", [plotted()]))
    for text in ("A <title> & $more$", "b-aht", "upper anchor", "0.338 [0.200, 1.000]", "success rate"):
        assert text in texts


def test_the_plot_draws_every_cell_that_has_episodes():
    marks = []
    for rates in ([[None, None], [None, None]], [[0.25, None], [0.5, 1.0]], [[0.25, 0.75], [0.5, 1.0]]):
        entry = plotted()
        entry["summary"]["matrix"] = {"partners": ["a", "b"], "rates": rates}
        marks.append(draw_plot("t", [entry]).count(b"<use "))
    assert [count - marks[0] for count in marks] == [0, 3, 4]


def test_the_plot_marks_the_published_mean_only_where_there_is_one():
    without, with_one = draw_plot("t", [plotted()]), draw_plot("t", [plotted({"success_mean": 0.3})])
    assert "published mean" not in texts_of(without)
    assert "published mean" in texts_of(with_one)
    assert (without.count(b"#c2410c"), with_one.count(b"#c2410c")) == (0, 2)


def test_the_plot_carries_no_date_and_no_version():
    svg = draw_plot("t", [plotted()])
    assert b"dc:date" not in svg
    assert b"atplotlib v" not in svg
