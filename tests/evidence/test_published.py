"""Every published bundle and admission archive verifies, and no damage to one passes or crashes the verifier."""

import copy
import json
import math
import shutil

import numpy as np
import pytest
import yaml
from forger import Forged
from helpers import ROOT, shared_data
from rowproof.closure import FolderSources, HashCache, closure
from rowproof.errors import RecordError, RowproofError
from rowproof.evidence.admission import verdict_of
from rowproof.evidence.facts import (
    MEMBER_COUNTS,
    channel_summary,
    compare_with_facts,
    member_lines,
    success_text,
)
from rowproof.evidence.published import extract_facts, reference_rows, render_facts, verify_admission, verify_published
from rowproof.evidence.published.catalogue import known_partner_sets, known_tags
from rowproof.evidence.published.commands import parse_command, seeds_agree
from rowproof.evidence.published.extraction import HEADER
from rowproof.evidence.published.files import published_root
from rowproof.evidence.published.plans import load_plan, load_yaml, number
from rowproof.evidence.published.records import repeated_episodes
from rowproof.git import blob_id
from rowproof.identities import identity, member_uri, parameter_digest
from rowproof.records import encode_document, encode_line
from rowproof.seeding import substream

# Bundle: episodes, mean, IQM, interval, rows of the reference's table (README of the published data).
EXPECTED = {
    "benchmark/cocarry-v1/ref-script-2026-07-05": (1750, 1.0, 1.0, 1.0, 1.0, 36),
    "benchmark/cocarry-v1/b-rnd-2026-07-05": (1750, 0.0005714285714285715, 0.0, 0.0, 0.0, 35),
    "benchmark/cocarry-v1/b-stat-2026-07-05": (
        *(1750, 0.496, 0.4920091324200913, 0.3984018264840183, 0.5913527397260272),
        35,
    ),
    "benchmark/cocarry-v1/b-blind-2026-07-06": (1750, 0.9674285714285714, 1.0, 1.0, 1.0, 40),
    "benchmark/cocarry-v1/b-aht-2026-07-06": (1750, 0.9605714285714285, 1.0, 1.0, 1.0, 40),
    **{f"benchmark/cocarry-v1/b-joint-seed{seed}-2026-07-06": (50, 1.0, 1.0, 1.0, 1.0, 21) for seed in range(4)},
    "benchmark/cocarry-v1/b-joint-seed4-2026-07-06": (50, 0.72, 0.9230769230769231, 0.6923076923076923, 1.0, 21),
    "benchmark/cocarry-v1/power-pilot-b-rnd-2026-07-05": (350, 0.0, 0.0, 0.0, 0.0, 27),
    "benchmark/cocarry-v1/power-pilot-ref-script-2026-07-05": (350, 1.0, 1.0, 1.0, 1.0, 28),
    "benchmark/handover-v1/ref-script-2026-07-06": (500, 0.338, 0.176, 0.072, 0.284, 30),
    "benchmark/handover-v1/b-rnd-2026-07-06": (500, 0.0, 0.0, 0.0, 0.0, 30),
    "benchmark/handover-v1/b-stat-2026-07-06": (500, 0.274, 0.048, 0.0, 0.136, 30),
    "admission/cocarry-2026-07-05/a1_reference": (60, 1.0, 1.0, 1.0, 1.0, 30),
    "admission/cocarry-2026-07-05/a2_single_arm": (60, 0.0, 0.0, 0.0, 0.0, 30),
    "admission/cocarry-2026-07-05/a3_blind": (60, 0.0, 0.0, 0.0, 0.0, 30),
}
NEEDS_HISTORY = {"prereg:tag", "strict:prereg:at_tag", "strict:prereg:order", "strict:selection:committed"}
KEYS = ("n_episodes", "success_mean", "success_iqm", "success_ci_low", "success_ci_high")


def results(*parts):
    return shared_data("chamber-bundles", "spikes", "results", *parts)


@pytest.mark.parametrize("name", EXPECTED)
def test_published_bundle_verifies_with_the_published_numbers(name):
    path = results(*name.split("/"))
    table = verify_published(path)
    assert table.failures == []
    assert {check.id for check in table.checks if check.verdict == "unknown"} <= NEEDS_HISTORY
    assert len(reference_rows(table)) == EXPECTED[name][-1]
    stated = json.loads((path / "bundle.json").read_bytes())["summary"]
    assert tuple(stated[key] for key in KEYS) == EXPECTED[name][:-1]


def test_all_published_bundles_are_listed_here():
    folder = results()
    found = {path.parent.relative_to(folder).as_posix() for path in folder.glob("*/*/*/bundle.json")}
    assert found == set(EXPECTED)


@pytest.mark.parametrize("name", ["cocarry-2026-07-05", "cocarry-a4-rev2-2026-07-15"])
def test_published_admission_verifies(name):
    table = verify_admission(results("admission", name))
    assert table.failures == []
    found = {check.id: check.found for check in table.checks}
    assert found["admission:verdict"] == "ADMITTED"
    unknown = {check.id for check in table.checks if check.verdict == "unknown"}
    assert unknown == {"admission:prereg:at_tag", "admission:prereg:order"}


def test_plans_directory_agrees():
    plans = shared_data("chamber-bundles", "spikes", "preregistration")
    verdicts = {}
    for name in EXPECTED:
        table = verify_published(results(*name.split("/")), plans=plans)
        verdicts[name] = next(check.verdict for check in table.checks if check.id == "strict:prereg:plans")
    # The pilots' revision of the plan is no longer in the tree.
    assert {name for name, verdict in verdicts.items() if verdict == "unknown"} == {n for n in EXPECTED if "pilot" in n}
    assert "fail" not in verdicts.values()


def test_verdict_depends_neither_on_place_nor_on_file_order(tmp_path):
    source = results("benchmark", "handover-v1", "b-stat-2026-07-06")
    (tmp_path / "x").mkdir()
    for path in sorted(source.iterdir(), reverse=True):
        shutil.copy(path, tmp_path / "x")
    assert verify_published(tmp_path / "x").checks == verify_published(source).checks


# --- Damage ------------------------------------------------------------------------------------------------------

FLIPS_PER_FILE = 15


@pytest.fixture
def pair(tmp_path):
    return Forged(results("benchmark", "cocarry-v1", "b-joint-seed4-2026-07-06"), tmp_path / "pair")


def test_any_flipped_byte_fails(pair):
    rng = substream("tests.published.flip", 0)
    for path in sorted(pair.path.iterdir()):
        data = path.read_bytes()
        for offset in {0, len(data) - 1, *rng.integers(0, len(data), size=FLIPS_PER_FILE).tolist()}:
            changed = bytearray(data)
            changed[offset] ^= int(rng.integers(1, 256))
            path.write_bytes(changed)
            table = verify_published(pair.path)
            assert table.failures, f"{path.name} byte {offset}: {data[offset]:#04x} -> {changed[offset]:#04x}"
            encode_document(table.as_json())
        path.write_bytes(data)


def test_any_lost_line_fails(pair):
    for path in sorted(pair.path.iterdir()):
        data = path.read_bytes()
        lines = data.splitlines(keepends=True)
        for index in {0, len(lines) // 2, len(lines) - 1}:
            path.write_bytes(b"".join(lines[:index] + lines[index + 1 :]))
            assert verify_published(pair.path).failures, f"{path.name} line {index}"
        path.write_bytes(data)


def test_any_lost_file_fails(pair):
    for path in sorted(pair.path.iterdir()):
        data = path.read_bytes()
        path.unlink()
        assert verify_published(pair.path).failures, path.name
        path.write_bytes(data)


HOSTILE = [None, True, -1, 10**30, 0.5, "", "\ud800", "a\0b", "../..", [], [[]], {}, {"": None}]


def places(value, path=()):
    """Every place inside plain JSON data, leaves and containers alike."""
    yield from [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def put(document, path, value):
    for key in path[:-1]:
        document = document[key]
    document[path[-1]] = value


@pytest.mark.parametrize("name", ["bundle.json", "partners.json"])
def test_hostile_values_never_raise(name, pair):
    document = json.loads(pair.read(name))
    rng = substream("tests.published.hostile", 0)
    for place in places(document):
        changed = copy.deepcopy(document)
        put(changed, place, HOSTILE[int(rng.integers(len(HOSTILE)))])
        pair.write(name, (json.dumps(changed, indent=2) + "\n").encode())
        table = verify_published(pair.path)
        assert table.failures, place
        encode_document(table.as_json())


def test_hostile_admission_values_never_raise(tmp_path):
    shutil.copytree(results("admission", "cocarry-2026-07-05"), tmp_path / "archive")
    for cell in ("a1_reference", "a2_single_arm", "a3_blind"):
        # Without its bundles an archive is judged faster, and its report is what is altered here.
        shutil.rmtree(tmp_path / "archive" / cell)
    report = tmp_path / "archive" / "admission_report.json"
    document = json.loads(report.read_bytes())
    rng = substream("tests.published.hostile", 1)
    for place in places(document):
        changed = copy.deepcopy(document)
        put(changed, place, HOSTILE[int(rng.integers(len(HOSTILE)))])
        report.write_bytes((json.dumps(changed, indent=2) + "\n").encode())
        table = verify_admission(tmp_path / "archive")
        assert table.failures, place
        encode_document(table.as_json())


def test_names_of_files_cannot_break_the_table(pair):
    (pair.path / "line\nbreak\x1b[31m").write_bytes(b"x\n")
    lines = []
    verify_published(pair.path).render(lines.append)
    assert all(line.isprintable() for line in lines)


# --- Parts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (("cocarry_impedance", 0, None, None), "8831ed572519c9d8"),
        (("scripted_heuristic", 0, None, None), "73250184e1abaccc"),
        (("partner_ablated_zero", 0, None, None), "880b8ae6a0260bea"),
        (("frozen_harl", 0, None, "local://artifacts/4f114f4bf72c1125_step100000.pt"), "b2cdbd8e79f9158a"),
        (("frozen_cocarry_joint", 4, 150000, "local://artifacts/e9040cbc3c3b2456_step150000.pt"), "5118f7828d8ac7b8"),
    ],
)
def test_identity(fields, expected):
    assert identity(*fields) == expected


def test_identity_quotes_like_repr():
    assert len({identity(name, 0, None, None) for name in ("a", "a'", 'a"', "a'\"", "a\\'")}) == 5


def test_parameter_digest():
    params = {"step_max": "0.0391", "damping": "0.0281", "ki": "0.7293", "kp": "1.4134", "lag_steps": "2"}
    assert parameter_digest(params) == "cc417fc13ef686b0d64ab6feca899ccf5f19c57f0ff874ae4a57dbaf7f6fdcf0"
    assert parameter_digest({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert identity("cocarry_impedance", 0, None, member_uri("cocarry_impedance", params)) == "1d575685149b7174"


def test_split_of_the_known_sets_follows_the_identities():
    # The first 70 % (rounded up) by identity are public: ties the typed-in table to itself.
    for chosen in known_partner_sets()["sets"].values():
        ranked = sorted(chosen["members"], key=lambda member: member["identity"])
        n_public = -(-7 * len(ranked) // 10)
        assert [member["split"] for member in ranked] == ["public"] * n_public + ["private"] * (len(ranked) - n_public)


def test_known_blobs_are_those_of_the_published_plans():
    root = shared_data("chamber-bundles")
    checked = 0
    for known in known_tags().values():
        plan = root / known["plan"]
        if plan.is_file():
            checked += blob_id(plan.read_bytes()) in {entry["blob"] for entry in known_tags().values()}
    assert checked == 5


def test_blob_id_of_the_empty_file():
    assert blob_id(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


@pytest.mark.parametrize(
    "text", ["a: 1\na: 2\n", "a: &x [1]\nb: *x\n", "a: !!python/object:os.system {}\n", "a: [\n", "{[1]: 2}", "\x00"]
)
def test_yaml_that_is_refused(text):
    with pytest.raises(RecordError, match="plan"):
        load_yaml(text.encode(), "plan")


@pytest.mark.parametrize(
    ("old", "new"), [("schema_version: 1", "schema_version: 2"), ("notes:", "note:"), ("git_tag: ", "git_tag: 7 #")]
)
def test_plan_that_is_refused(old, new):
    text = shared_data("chamber-bundles", *known_tags()["prereg-admission-cocarry-2026-07-05"]["plan"].split("/"))
    data = text.read_bytes()
    assert load_plan(data, "plan")["task_id"] == "cocarry"
    with pytest.raises(RecordError, match="plan"):
        load_plan(data.replace(old.encode(), new.encode(), 1), "plan")


def test_number_like_text_in_plans_is_a_number():
    assert number("3.75e4", "plan") == 37500.0
    with pytest.raises(RecordError):
        number(True, "plan")


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /",
        "chamber-eval",
        "chamber-eval run --seeds",
        "chamber-eval run --task a --task b",
        "chamber-eval run --what 1",
        "chamber-eval run  --task a",
        "chamber-eval run --task 'a'",
        "chamber-eval run --task 'a",
        "chamber-eval admission --policy x",
    ],
)
def test_command_that_is_refused(command):
    with pytest.raises(RecordError):
        parse_command(command)


def test_command_with_joined_and_repeated_options():
    command = parse_command("chamber-eval run --task=a --exclude-member x --exclude-member y --allow-dirty")
    assert command.one("--task") == "a"
    assert command.values["--exclude-member"] == ["x", "y"]
    assert command.switches == {"--allow-dirty"}


@pytest.mark.parametrize(
    ("text", "seeds", "agree"),
    [
        ("3", [0, 1, 2], True),
        ("3", [0, 1], False),
        ("3", [0, 2, 1], False),
        ("4,", [4], True),
        ("0,3,7", [0, 3, 7], True),
        ("0,3", [3, 0], False),
        ("03", [0, 1, 2], False),
        ("", [], False),
        ("1000000000000", [0], False),
    ],
)
def test_seeds_text(text, seeds, agree):
    assert seeds_agree(text, seeds) is agree


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        ("FAIL", "NOT_SOLVABLE"),
        ("PASS PASS PASS", "ADMITTED"),
        ("PASS FAIL PASS", "CONTROL"),
        ("PASS PASS FAIL", "CONTROL"),
        ("PASS FAIL INDETERMINATE", "INDETERMINATE"),
        ("INDETERMINATE PASS PASS", "INDETERMINATE"),
        ("PASS PASS PASS FAIL", "UNINSTRUMENTABLE"),
        ("PASS FAIL PASS FAIL", "CONTROL"),
        ("PASS PASS PASS PASS", "ADMITTED"),
    ],
)
def test_verdict(outcomes, verdict):
    assert verdict_of(dict(zip(("A1", "A2", "A3", "A4"), outcomes.split(), strict=False))) == verdict


def episode(start, member, force_n, value):
    metadata = {"member": member, "value": value}
    return {"seed": 0, "episode_idx": 0, "initial_state_seed": start, "force_peak": force_n, "metadata": metadata}


def test_repeated_episodes():
    distinct = [
        episode(0, "a", 1.5, 2.5),
        episode(1, "a", 1.5, 2.75),
        episode(0, "b", 1.5, 2.5),
        episode(1, "b", 0.5, 1.0),
    ]
    assert repeated_episodes(distinct) == []
    assert repeated_episodes([*distinct, episode(2, "b", 1.5, 2.75)])
    assert repeated_episodes([*distinct[:2], episode(0, "b", 1.5, 2.5), episode(1, "b", 1.5, 2.75)])
    # Whole numbers agree by chance.
    assert repeated_episodes([episode(0, "a", 0.0, 320.0), episode(1, "a", 0.0, 320.0)]) == []


# --- Facts -------------------------------------------------------------------------------------------------------


def listed(task):
    root = shared_data("chamber-bundles")
    lines = (root / f"spikes/results/benchmark/{task}/LEADERBOARD_BUNDLES.txt").read_text("utf-8").split("\n")
    return [root / line for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("task", ["handover-v1", "cocarry-v1"])
def test_committed_facts_are_those_of_the_bundles(task):
    committed = (ROOT / "resources" / "published" / f"{task}.yaml").read_bytes()
    assert len(committed) <= 60_000
    assert render_facts(extract_facts(listed(task))) == committed


def facts(task, row):
    return yaml.safe_load((ROOT / "resources" / "published" / f"{task}.yaml").read_text("utf-8"))["rows"][row]


@pytest.mark.parametrize(
    ("task", "row", "n", "low", "high", "p90"),
    [
        ("cocarry-v1", "b-stat", 1750, 0.39609018264840185, 0.5913527397260272, 101.35244140625001),
        ("cocarry-v1", "b-joint", 250, 1.0, 1.0, 41.19453201293945),
        ("handover-v1", "b-stat", 500, 0.0, 0.14, 225.56523008117895),
        ("handover-v1", "ref-script", 500, 0.072, 0.2840999999999994, 211.52369909251345),
    ],
)
def test_facts_hold_the_published_table(task, row, n, low, high, p90):
    pooled = facts(task, row)["pooled"]
    assert (pooled["n_episodes"], pooled["ci_leaderboard"], pooled["force_peak_n"]["p90"]) == (n, [low, high], p90)


@pytest.mark.parametrize(
    ("task", "row"), [("cocarry-v1", "b-stat"), ("cocarry-v1", "b-joint"), ("handover-v1", "ref-script")]
)
def test_facts_hold_the_measured_quantities(task, row):
    stated = facts(task, row)
    sources = [bundle["source"].rpartition("/")[2] for bundle in stated["bundles"]]
    records = []
    for name in sources:
        for path in sorted(results("benchmark", task, name).glob("episodes_*.jsonl")):
            records += [json.loads(line) for line in path.read_bytes().splitlines()]
    channels = stated["pooled"]["channels"]
    floats = [name for name, value in records[0]["metadata"].items() if isinstance(value, float)]
    assert list(channels) == floats != []
    for name, figures in channels.items():
        values = np.array([record["metadata"][name] for record in records])
        assert [figures["p50"], figures["p90"]] == np.percentile(values, [50, 90]).tolist()
        assert figures["mean"] == pytest.approx(values.mean(), rel=1e-12)


def channel_records(**columns):
    return [{"metadata": dict(zip(columns, values, strict=True))} for values in zip(*columns.values(), strict=True)]


def test_channels_are_the_fields_that_are_floats_everywhere():
    records = channel_records(member=["a", "b"], tilt=[1.0, 3.0], count=[1, 2], mixed=[1.0, 2], gap=[None, 1.0])
    records[1]["metadata"]["late"] = 1.0
    assert channel_summary(records) == {"tilt": {"p50": 2.0, "p90": 2.8, "mean": 2.0}}
    assert channel_summary([]) == {}


def test_channels_do_not_depend_on_the_order_of_records():
    records = channel_records(x=[0.1 * k for k in range(11)] + [1e16, -1e16])
    assert channel_summary(records[::-1]) == channel_summary(records)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_channel_must_be_finite(value):
    with pytest.raises(RowproofError):
        channel_summary(channel_records(x=[1.0, value]))


def counts(**changes):
    return {**dict.fromkeys(MEMBER_COUNTS, 0), **changes}


def test_member_lines_give_rates_over_what_each_side_has():
    a = counts(episodes=4, agree=2, only_here=1, successes_here=2, successes_published=1)
    b = counts(episodes=4, successes_published=4)
    header, *lines = member_lines({"a": a, "b": b})
    assert header == ["Member", "Episodes", "Agreeing", "Only here", "Only published", "Rate here", "Rate published"]
    assert lines == [
        ["a", "4", "2", "1", "0", "0.667", "0.250"],
        ["b", "4", "0", "0", "0", "—", "1.000"],
        ["all", "8", "2", "1", "0", "0.667", "0.625"],
    ]
    assert len(member_lines({"a": a})) == 2


def own_files():
    path = results("benchmark", "handover-v1", "b-stat-2026-07-06")
    return {f.name: f.read_bytes() for f in path.glob("episodes_*.jsonl")}


def test_published_episodes_agree_with_their_facts():
    found = compare_with_facts(facts("handover-v1", "b-stat"), own_files())
    assert {key: found[key] for key in list(found)[:4]} == {
        "files_identical": 5,
        "files_total": 5,
        "episodes_agree": 500,
        "episodes_total": 500,
    }
    for member in found["per_member"].values():
        assert member["agree"] == member["episodes"] == 250
        assert member["only_here"] == member["only_published"] == 0
        assert member["successes_here"] == member["successes_published"]
    assert sum(member["successes_here"] for member in found["per_member"].values()) == 137


def test_one_other_success_is_counted():
    files = own_files()
    lines = files["episodes_seed2.jsonl"].split(b"\n")
    record = json.loads(lines[60])
    lines[60] = encode_line(record | {"success": not record["success"]}).encode()
    files["episodes_seed2.jsonl"] = b"\n".join(lines)
    found = compare_with_facts(facts("handover-v1", "b-stat"), files)
    assert (found["files_identical"], found["episodes_agree"]) == (4, 499)
    changed = found["per_member"]["presenter_mismatch_45"]
    assert changed["agree"] == 249
    # Which side succeeded is said by the change that the test made.
    sides = (0, 1) if record["success"] else (1, 0)
    assert (changed["only_here"], changed["only_published"]) == sides
    assert changed["successes_here"] - changed["successes_published"] == sides[0] - sides[1]
    assert found["per_member"]["presenter_mismatch_30"]["agree"] == 250


def test_missing_files_do_not_agree():
    files = own_files()
    del files["episodes_seed0.jsonl"]
    found = compare_with_facts(facts("handover-v1", "b-stat"), files)
    assert (found["files_identical"], found["episodes_agree"], found["episodes_total"]) == (4, 400, 500)
    for member in found["per_member"].values():
        assert (member["episodes"], member["agree"], member["only_here"], member["only_published"]) == (250, 200, 0, 0)


def test_surplus_episodes_are_refused():
    files = own_files()
    with pytest.raises(RecordError, match="among those"):
        compare_with_facts(
            facts("handover-v1", "b-stat"), {**files, "episodes_seed5.jsonl": files["episodes_seed0.jsonl"]}
        )
    files["episodes_seed0.jsonl"] += files["episodes_seed0.jsonl"].split(b"\n")[0] + b"\n"
    with pytest.raises(RecordError, match="no more episodes"):
        compare_with_facts(facts("handover-v1", "b-stat"), files)


def test_a_change_in_the_verifier_asks_for_no_board():
    code = closure(FolderSources(ROOT, HashCache(None)), ["workflow/scripts/leaderboard.py"], []).files
    assert "workflow/rowproof/evidence/facts.py" in code
    assert [path for path in code if "/published" in path or path.endswith(("/verify.py", "_checks.py"))] == []


def test_success_text_keeps_every_episode():
    records = [{"success": i % 3 == 0, "metadata": {"member": "ab"[i % 2]}} for i in range(8)]
    assert success_text(records) == {"a": "1001", "b": "0100"}


def test_facts_refuse_pilots_damage_and_other_tasks(tmp_path):
    benchmark = results("benchmark")
    with pytest.raises(RowproofError, match="purpose power"):
        extract_facts([benchmark / "cocarry-v1" / "power-pilot-b-rnd-2026-07-05"])
    pair = benchmark / "cocarry-v1" / "b-joint-seed4-2026-07-06"
    with pytest.raises(RowproofError, match="must be of task"):
        extract_facts([pair, benchmark / "handover-v1" / "b-stat-2026-07-06"])
    with pytest.raises(RowproofError, match="share a seed"):
        extract_facts([pair, pair])
    damaged = Forged(pair, tmp_path / "damaged")
    damaged.replace_bytes("REPRO.txt", b"chamber", b"CHAMBER")
    with pytest.raises(RowproofError, match="must verify"):
        extract_facts([damaged.path])


def test_rendered_facts_say_where_they_come_from():
    data = render_facts({"schema": "x", "task": "t@v1", "rows": {}})
    assert data.decode().startswith(HEADER.format(task="t@v1"))


def test_published_root_is_found_above(tmp_path):
    (tmp_path / "spikes" / "results" / "row").mkdir(parents=True)
    assert published_root(tmp_path / "spikes" / "results" / "row") == tmp_path.resolve()
