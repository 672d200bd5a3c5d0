"""Every figure of the board's validity notes is measured again."""

import importlib.util
import json
import re
import sys

import pytest
import yaml
from helpers import ROOT
from rowproof.chamber.cocarry import rig
from rowproof.chamber.cocarry_cell import PUBLISHED_CELL

RESULTS = ROOT / "results"
# Contact forces follow the digits of the physics engine, which differ between hosts: the note says "about".
HOST_SHARE = 0.1

NUMBER = r"([0-9]+(?:\.[0-9]+)?)"


def notes() -> dict[str, str]:
    """The validity notes of the board: subject to text, on one line each."""
    board = yaml.safe_load((ROOT / "config/boards/cocarry-v1.yaml").read_text(encoding="utf-8"))
    found = [" ".join(note.split()) for note in board["notes"]]
    subjects = ((re.match(r"Validity, ([a-z ]*[a-z])", note), note) for note in found)
    return {match[1]: note for match, note in subjects if match}


START, STRESS, WITHOUT = "the start", "the stress column", "without these contacts"

MEASURES = "force # instead of # N, its p90 # instead of # N, tilt # instead of # deg, distance # instead of # m"
# What stands around each figure of a note, # for a figure; the tests name them by the order here.
QUOTES = {
    START: [
        "link # of either arm reaches # mm into link # of the other",
        "the two wrist links reach # mm into each other",
        "one finger of each hand # mm into the bar",
        "which is # mm thick",
        "The first substep of # s",
        "throws the bar at # m/s",
        "samples count from step # on",
    ],
    STRESS: [
        "which weighs # N",
        "In # reference episodes (# start states with each of the # partners)",
        "about # N between the arms and # N between fingers and bar",
        "the median wrist force is about # N",
    ],
    WITHOUT: [
        "the same # pairs",
        "ref-script succeeds in # instead of # episodes",
        f"imp_lag_bounded: {MEASURES}, # instead of # steps",
        f"b-stat, which commands nothing, succeeds in # instead of # episodes: {MEASURES}",
    ],
}


def quoted(subject: str) -> list[list[str]]:
    """The figures of a note as they are written, one list per entry of ``QUOTES``."""
    text, found = notes()[subject], []
    for quote in QUOTES[subject]:
        pattern = NUMBER.join(re.escape(part) for part in quote.split("#"))
        (match,) = re.finditer(pattern, text)
        found.append(list(match.groups()))
    return found


def same(written: str, value: float) -> bool:
    """Whether a figure is ``value`` rounded to the digits that are written."""
    return written == f"{value:.{len(written.partition('.')[2])}f}"


@pytest.fixture(scope="module")
def contacts():
    """The script that measures, as a module."""
    spec = importlib.util.spec_from_file_location("cocarry_contacts", ROOT / "benchmarks/cocarry_contacts.py")
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look their module up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def first(contacts, simulator):
    return contacts.first_substep()


@pytest.fixture(scope="module")
def reference(contacts, simulator):
    return contacts.episode_figures(contacts.reference_episodes())


# Names of rows and partners hold no figures of ours.
NAMES = re.compile(r"cocarry-contact-free|ref-script|b-stat|imp_lag_bounded|p90")


@pytest.mark.parametrize("subject", QUOTES)
def test_no_figure_of_a_note_goes_unchecked(subject):
    written = re.findall(NUMBER, NAMES.sub("", notes()[subject]))
    assert sorted(written) == sorted(figure for figures in quoted(subject) for figure in figures)


def test_there_are_these_notes_and_no_others():
    assert set(notes()) == set(QUOTES)


def test_overlaps_at_reset(first):
    (outer, links_mm, inner), (wrists_mm,), (finger_mm,), *_ = quoted(START)
    pairs = {
        ("ego link" + outer, "partner link" + inner): links_mm,
        ("ego link" + inner, "partner link" + outer): links_mm,
        ("ego link" + outer, "partner link" + outer): wrists_mm,
        ("bar", "ego rightfinger"): finger_mm,
        ("bar", "partner rightfinger"): finger_mm,
    }
    # No other pair overlaps.
    assert set(first.depth_mm) == set(pairs)
    for pair, written in pairs.items():
        assert same(written, first.depth_mm[pair]), pair


def test_overlaps_are_those_of_the_reset_posture(contacts, first):
    other = contacts.first_substep(initial_state_seed=17, policy="static")
    assert other.depth_mm == first.depth_mm


def test_thickness_clock_and_settling():
    *_, (thick_mm,), (substep_s,), _, (step,) = quoted(START)
    assert same(thick_mm, 2000 * rig.BAR_HALF_SIZES_M[1])
    assert float(substep_s) == rig.DT_S
    assert int(step) == PUBLISHED_CELL.settle_step


def test_the_bar_is_thrown(first):
    ((speed,),) = quoted(START)[5:6]
    assert same(speed, first.bar_speed_m_per_s)


def test_what_the_stress_column_measures(contacts, reference):
    (weight,), (episodes, states, partners), (arms_n, fingers_n), (wrist_n,) = quoted(STRESS)
    assert same(weight, contacts.BAR_WEIGHT_N)
    assert int(episodes) == reference["episodes"] == int(states) * int(partners)
    assert (int(states), int(partners)) == (len(contacts.START_STATES), len(contacts.MEMBERS))
    assert reference["samples"] > 0
    assert reference["samples_with_arm_arm_contact"] == reference["samples"]
    assert reference["samples_with_finger_bar_contact"] == reference["samples"]
    for written, name in ((arms_n, "arm_arm_p50_n"), (fingers_n, "finger_bar_p50_n"), (wrist_n, "wrist_p50_n")):
        assert float(written) == pytest.approx(reference[name], rel=HOST_SHARE), name


FIGURES = ("force_p50_n", "force_p90_n", "tilt_p50_deg", "distance_p50_m", "steps_p50")


@pytest.mark.parametrize("row", ["ref-script", "b-stat"])
def test_what_changes_without_the_contacts(contacts, row):
    compared = contacts.contact_free(RESULTS, row)
    if compared is None:
        pytest.skip(f"the bundles of {row} in cocarry-contact-free and cocarry-v1 are not both in {RESULTS}")
    free, published = compared["contact-free"], compared["as published"]
    (pairs,), successes, rest, static = quoted(WITHOUT)
    written = successes + rest if row == "ref-script" else static
    assert int(pairs) == free["episodes"] == published["episodes"]
    names = ("successes", *FIGURES)[: len(written) // 2]
    for name, ours, theirs in zip(names, written[::2], written[1::2], strict=True):
        assert same(ours, free[name]), (name, free[name])
        assert same(theirs, published[name]), (name, published[name])


def test_contact_free_failures_are_those_of_one_partner(contacts):
    records = contacts.bundle_records(RESULTS / "cocarry-contact-free" / "ref-script")
    if not records:
        pytest.skip(f"the bundle cocarry-contact-free/ref-script is not in {RESULTS}")
    assert "all failures with imp_lag_bounded:" in notes()[WITHOUT]
    assert {r["metadata"]["member"] for r in records if not r["success"]} == {"imp_lag_bounded"}


# ---- the note on learned rows ----------------------------------------------------------------------------------


def test_the_note_on_learned_rows_quotes_the_committed_bundles():
    board = yaml.safe_load((ROOT / "config/boards/cocarry-v1.yaml").read_text(encoding="utf-8"))
    (note,) = (" ".join(n.split()) for n in board["notes"] if n.startswith("Learned rows"))
    summaries = {
        row: json.loads((RESULTS / "cocarry-v1" / row / "bundle.json").read_bytes())["summary"]
        for row in ("b-aht", "b-blind", "b-joint")
    }
    aht = summaries["b-aht"]
    matrix = aht["matrix"]
    column = matrix["partners"].index("imp_lag_bounded")
    weak = [place for place, rates in enumerate(matrix["rates"]) if rates[column] < 0.5]
    won = sum(matrix["successes"][place][column] for place in weak)
    played = sum(matrix["episodes"][place][column] for place in weak)
    others = [rate for name, rate in aht["per_partner"].items() if name != "imp_lag_bounded"]
    assert [matrix["seeds"][place] for place in weak] == [0, 3, 4]
    assert f"its success is {aht['success_rate']:.3f} and not within 0.90 and 0.99" in note
    assert f"succeed in {won} of {played} episodes with imp_lag_bounded" in note
    assert f"with the other six partners the row's success is {sum(others) / len(others):.3f}" in note
    assert aht["success_rate_ci"][0] < 0.961 < aht["success_rate_ci"][1]
    assert 0.90 <= summaries["b-blind"]["success_rate"] <= 0.99
    assert f"is {max(s['stress']['p90'] for s in summaries.values()):.1f} N here" in note
    assert f"b-joint {summaries['b-joint']['stress']['p90']:.1f} N" in note
