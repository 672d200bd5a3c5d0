"""Attestations: which codes they connect, and what they never bridge."""

import copy

import pytest
from bundles import commit_all, recipes_of
from helpers import ROOT
from rowproof.boards import load_board
from rowproof.equivalence import FOLDER, SCHEMA, Equivalences, read_attestation
from rowproof.errors import ConfigError, RecordError
from rowproof.layout import document_digest, episode_file
from rowproof.recipes import Recorded, keep_equivalent
from rowproof.records import encode_document
from rowproof.stages import stage_key

BOARD, ROW = "handover-v1", "b-stat"
NAME = f"{BOARD}/{ROW}"


def code(name):
    return {"form": 2, "key": name * 64}


def entry(before, after):
    return {
        "before": {"commit": "c" * 40, "code": before, "places": {}},
        "after": {"commit": "d" * 40, "code": after, "places": {}},
        "draw": "0" * 64,
        "units": {"what": "episodes", "of": 1, "drawn": None, "old": [], "compared_sha256": "e" * 64},
    }


def sealed(document):
    document = {key: value for key, value in document.items() if key != "digest"}
    return encode_document({**document, "digest": document_digest(document)})


def document(before, after, stage="simulate", row=ROW, board=BOARD):
    made = {
        "started": "2026-03-01T10:00:00+00:00",
        "ended": "2026-03-01T10:00:01+00:00",
        "seconds": 1.0,
        "platform": "test",
        "versions": {},
    }
    return {"schema": SCHEMA, "board": board, "stage": stage, "rows": {row: entry(before, after)}, "made": made}


@pytest.fixture
def root(tmp_path):
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / "README").write_text("x")
    commit_all(tmp_path)
    return tmp_path


def put(root, name, before, after, **others):
    (root / FOLDER / f"{name}.json").write_bytes(sealed(document(before, after, **others)))


def chain(root, before="a", after="b", row=NAME, stage="simulate"):
    return Equivalences.read(root).chain(row, stage, code(before), code(after))


# --- chains


def test_equal_codes_need_no_attestation(root):
    assert chain(root, "a", "a") == () and chain(root) is None


def test_one_connects_both_ways(root):
    put(root, "1", code("a"), code("b"))
    commit_all(root)
    assert chain(root) == ("1.json",) == chain(root, "b", "a")


def test_two_make_a_chain_in_its_order(root):
    put(root, "2", code("a"), code("b"))
    put(root, "1", code("c"), code("b"))
    commit_all(root)
    assert chain(root, "a", "c") == ("2.json", "1.json") and chain(root, "c", "a") == ("1.json", "2.json")
    assert chain(root, "a", "d") is None


def test_the_shortest_chain_is_given_by_name_among_equals(root):
    put(root, "5", code("a"), code("b"))
    put(root, "4", code("a"), code("b"))
    put(root, "1", code("a"), code("c"))
    put(root, "2", code("c"), code("b"))
    commit_all(root)
    assert chain(root) == ("4.json",)


def test_codes_in_a_ring_end_the_search(root):
    for name, (before, after) in enumerate([("a", "c"), ("c", "d"), ("d", "a")]):
        put(root, name, code(before), code(after))
    commit_all(root)
    assert chain(root) is None


@pytest.mark.parametrize(
    "others", [{"row": "b-rnd"}, {"stage": "specs"}, {"board": "push-v1"}, {"row": "b-stat-2"}], ids=str
)
def test_that_of_something_else_connects_nothing(root, others):
    put(root, "1", code("a"), code("b"), **others)
    commit_all(root)
    assert chain(root) is None


def test_the_form_of_a_key_is_part_of_the_code(root):
    put(root, "1", {"form": 1, "key": "a" * 64}, code("b"))
    commit_all(root)
    assert chain(root) is None


# --- what counts


def test_one_that_is_not_committed_connects_nothing(root):
    put(root, "1", code("a"), code("b"))
    assert chain(root) is None


def test_one_that_is_committed_otherwise_connects_nothing(root):
    put(root, "1", code("a"), code("c"))
    commit_all(root)
    put(root, "1", code("a"), code("b"))
    assert chain(root) is None and chain(root, "a", "c") is None


def test_one_under_another_name_than_committed_connects_nothing(root):
    put(root, "1", code("a"), code("b"))
    commit_all(root)
    (root / FOLDER / "1.json").rename(root / FOLDER / "2.json")
    assert chain(root) is None


def test_one_that_is_deleted_connects_nothing(root):
    put(root, "1", code("a"), code("b"))
    commit_all(root)
    (root / FOLDER / "1.json").unlink()
    assert chain(root) is None


def test_without_a_repository_none_counts(tmp_path):
    (tmp_path / FOLDER).mkdir(parents=True)
    put(tmp_path, "1", code("a"), code("b"))
    assert chain(tmp_path) is None


BREAKS = {
    "another schema": lambda d: d.update(schema="rowproof/equivalence/2"),
    "another stage": lambda d: d.update(stage="leaderboard"),
    "a stage that is no text": lambda d: d.update(stage=[]),
    "rows in a list": lambda d: d.update(rows=[]),
    "a row in a list": lambda d: d["rows"].update({ROW: []}),
    "a side that is gone": lambda d: d["rows"][ROW].pop("before"),
    "a code that is gone": lambda d: d["rows"][ROW]["after"].pop("code"),
    "a key that is no text": lambda d: d["rows"][ROW]["after"]["code"].update(key=1),
    "a form that is no number": lambda d: d["rows"][ROW]["after"]["code"].update(form="2"),
    "something more": lambda d: d["rows"][ROW].update(more=1),
    "no units": lambda d: d["rows"][ROW].pop("units"),
    "no making": lambda d: d.pop("made"),
}


@pytest.mark.parametrize("how", BREAKS)
def test_a_malformed_one_is_refused_by_name(root, how):
    broken = document(code("a"), code("b"))
    read_attestation(sealed(broken), "here")
    BREAKS[how](broken)
    (root / FOLDER / "1.json").write_bytes(sealed(broken))
    commit_all(root)
    with pytest.raises(ConfigError, match=r"^config/equivalences/1\.json.*: make it again with rowproof attest, or"):
        Equivalences.read(root)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.replace(b"a" * 64, b"f" * 64),
        lambda data: data[:-1],
        lambda data: data.replace(b"  ", b" "),
        lambda data: b"",
        lambda data: b"[]\n",
        lambda data: b"\xff",
    ],
)
def test_an_edited_one_is_refused_by_name(root, change):
    data = sealed(document(code("a"), code("b")))
    assert read_attestation(data, "here")["board"] == BOARD
    with pytest.raises(RecordError, match=r"^here"):
        read_attestation(change(data), "here")
    (root / FOLDER / "1.json").write_bytes(change(data))
    commit_all(root)
    with pytest.raises(ConfigError, match=r"config/equivalences/1\.json"):
        Equivalences.read(root)


# --- what is kept


@pytest.fixture(scope="module")
def recorded_recipes():
    return recipes_of(ROOT, BOARD, ROW)


class Case:
    """A bundle whose records were made by other code than that at hand, both attested; a test breaks one thing."""

    def __init__(self, recipes):
        self.setup = load_board(ROOT, BOARD)
        self.was, self.now = copy.deepcopy(recipes), copy.deepcopy(recipes)
        self.was["simulate"]["code"] = code("a")
        self.now["simulate"]["code"] = code("b")
        self.good = {episode_file(seed) for seed in self.setup.plan.grid.seeds}
        self.provenance = {"dirty": False}
        self.known = Equivalences()
        self.known.add(document(code("a"), code("b")), "1.json")

    def kept(self):
        """The stages that keep the recorded recipe for an attestation, with what connects them."""
        recorded = Recorded(recipes=self.was, good=self.good, provenance=self.provenance)
        stages = {stage: self.now[stage] for stage in ("specs", "simulate")}
        found = keep_equivalent(self.setup, ROW, stages, recorded, self.known)
        for stage, recipe in found.recipes.items():
            assert recipe["code"] == (self.was if stage in found.bridges else self.now)[stage]["code"]
        return found.bridges


@pytest.fixture
def case(recorded_recipes):
    return Case(recorded_recipes)


def test_attested_code_keeps_its_recipe(case):
    assert case.kept() == {"simulate": ("1.json",)}


def test_nothing_is_kept_without_a_bundle(case):
    found = keep_equivalent(case.setup, ROW, {"simulate": case.now["simulate"] | {"upstream": {}}}, None, case.known)
    assert found.bridges == {} and found.recipes["simulate"]["code"] == code("b")


def damage(case):
    case.good.remove(episode_file(case.setup.plan.grid.seeds[-1]))


def another_upstream(case):
    """Specs that came from other code, which nothing attests."""
    case.was["specs"]["code"] = code("c")
    case.was["simulate"]["upstream"] = {"specs": stage_key(case.was["specs"])}


NEVER = {
    "a setup value": lambda case: case.was["simulate"]["setup"].update(root_seed=1),
    "a task parameter": lambda case: case.was["simulate"]["setup"]["cell"].update(regrasp_budget_s=1.0),
    "a partner": lambda case: case.was["simulate"]["setup"]["members"].pop(),
    "a version": lambda case: case.was["simulate"]["pins"].update(numpy="1.0"),
    "a data file": lambda case: case.was["simulate"]["data"].update({"resources/x": "0" * 64}),
    "another content of a data file": lambda case: [
        each["simulate"]["data"].update({"resources/x": sha * 64}) for each, sha in ((case.was, "0"), (case.now, "1"))
    ],
    "an entry that is gone": lambda case: case.was["simulate"].pop("data"),
    "an entry more": lambda case: case.was["simulate"].update(more=1),
    "an upstream that is not kept": another_upstream,
    "damaged products": damage,
    "a modified checkout": lambda case: case.provenance.update(dirty=True),
    "a recipe that is gone": lambda case: case.was.pop("simulate"),
}


@pytest.mark.parametrize("what", NEVER)
def test_what_is_never_bridged(case, what):
    NEVER[what](case)
    assert case.kept() == {}


def test_without_provenance_nothing_is_bridged(case):
    case.provenance = None
    assert case.kept() == {}


def test_a_pin_that_only_one_of_the_codes_imports_is_no_change(case):
    case.now["simulate"]["pins"]["scipy"] = "1.0"
    case.was["simulate"]["pins"].pop("numpy")
    assert case.kept() == {"simulate": ("1.json",)}


def test_a_stage_is_kept_when_the_one_before_it_is(case):
    another_upstream(case)
    case.known.add(document(code("c"), case.now["specs"]["code"], stage="specs"), "2.json")
    assert case.kept() == {"specs": ("2.json",), "simulate": ("1.json",)}
