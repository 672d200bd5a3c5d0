"""Whatever a bundle holds, verification ends in a table of checks, and a changed bundle fails."""

import copy
import json
import random
import shutil

import pytest
from bundles import make_project, make_row
from rowproof.cli import main
from rowproof.errors import HistoryGap, RecordError, RowproofError
from rowproof.evidence import subjects, verify
from rowproof.evidence.checks import CheckTable
from rowproof.evidence.verify import require_verified, verify_bundle
from rowproof.hashing import sha256_hex
from rowproof.layout import PROVENANCE, SUMS, document_digest, render_sums
from rowproof.records import encode_document

DOCUMENTS = ("bundle.json", "recipe.json", "identities.json", PROVENANCE)
VALUES = (None, [], {}, "", "x", "--help", "a\0b", "\ud800", 7, -1, True, 1e300, 10**400, [[]])
# Outside the identity of a row, and nothing else in a bundle tells what they must be.
FREE = ("platform", "cpu_model", "python", "seconds", "shard")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    root = make_project(tmp_path_factory.mktemp("hostile") / "p", seeds=[0], episodes_per_partner=2)
    return root, make_row(root, root / "results", "handover-v1", "b-stat")


@pytest.fixture(scope="module")
def files(bundle):
    return {path.name: path.read_bytes() for path in bundle[1].iterdir()}


@pytest.fixture
def judge(bundle, tmp_path):
    """Write files and verify them; returns the table, which must be printable."""

    def call(content):
        folder = tmp_path / "b"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, data in content.items():
            (folder / name).write_bytes(data)
        table = verify_bundle(folder, bundle[0])
        lines = []
        table.render(lines.append)
        "\n".join([*lines, json.dumps(table.as_json(), ensure_ascii=False)]).encode()
        return table

    return call


def places(value, path=()):
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def replaced(value, path, new):
    if not path:
        return new
    value = copy.deepcopy(value)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return value


def encode(value):
    try:
        return encode_document(value)
    except Exception:
        # What our encoder refuses, an attacker writes all the same.
        return (json.dumps(value, indent=2) + "\n").encode()


def sealed(content):
    """Everything that follows from other content made to follow from it again, as a forger does."""
    content = dict(content)

    def attempt(name, change):
        try:
            document = json.loads(content[name])
            change(document)
            content[name] = encode(document)
        except Exception:
            pass

    outside = ("bundle.json", SUMS, PROVENANCE)
    manifest = {name: sha256_hex(content[name]) for name in sorted(content) if name not in outside}
    attempt("bundle.json", lambda document: document.update(manifest=manifest))
    content[SUMS] = render_sums({n: d for n, d in content.items() if n not in (SUMS, PROVENANCE)})
    attempt(PROVENANCE, lambda document: document.update(row_digest=sha256_hex(content["bundle.json"])))
    attempt(PROVENANCE, lambda document: document.update(digest=document_digest(document)))
    return content


def test_the_bundle_passes_to_begin_with(judge, files):
    assert judge(files).failures == [] and judge(sealed(files)).failures == []
    assert sealed(files) == files


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_value_of_any_document_can_be_replaced(judge, files, name):
    document = json.loads(files[name])
    cases = [(path, value) for path in places(document) for value in VALUES]
    for path, value in random.Random(name).sample(cases, 15):
        content = {**files, name: encode(replaced(document, path, value))}
        if content[name] == files[name]:
            continue
        assert not judge(content).passed, (path, value)
        forged = sealed(content)
        passed = judge(forged).passed
        assert not passed or forged == files or (name == PROVENANCE and path[-1] in FREE), (path, value)


@pytest.mark.parametrize("seal", [False, True], ids=["", "sealed"])
@pytest.mark.parametrize("how", ["missing", "empty", "half", "flip", "appended", "mark", "deep"])
def test_no_file_can_be_damaged(judge, files, how, seal):
    for name, data in files.items():
        content = dict(files)
        del content[name]
        place = random.Random(name).randrange(len(data))
        if how != "missing":
            content[name] = {
                "empty": b"",
                "half": data[: len(data) // 2],
                "flip": data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :],
                "appended": data + b"x",
                "mark": b"\xef\xbb\xbf" + data,
                "deep": b'{"a":' * 900 + b"1" + b"}" * 900 + b"\n",
            }[how]
        if seal:
            content = sealed(content)
        assert content == files or not judge(content).passed, name


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"episodes_per_partner: 2", b"episodes_per_partner: 5000"),
        (b"episodes_per_partner: 2", b"episodes_per_partner: 100000"),
        (b"seeds:\n  - 0", b"seeds: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n  x:\n  - 0"),
    ],
)
def test_a_plan_that_demands_too_much_fails_at_once(judge, files, old, new):
    assert old in files["plan.yaml"]
    table = judge(sealed({**files, "plan.yaml": files["plan.yaml"].replace(old, new)}))
    assert not table.passed


@pytest.mark.parametrize(
    ("code", "failing"),
    [({"form": 2, "key": "0" * 64}, {"history:code"}), ({}, {"recipe:schema", "history:code"})],
    ids=["another", "none"],
)
def test_a_recipe_must_name_all_code_that_was_reached(judge, files, code, failing):
    """With another key a recipe evades the replay; the history tells."""
    from rowproof.records import digest

    recipes = json.loads(files["recipe.json"])
    recipes["simulate"]["code"] = code
    upstream = {}
    for stage, recipe in recipes.items():
        recipe["upstream"] = upstream
        upstream = {stage: digest(recipe)}
    document = json.loads(files["bundle.json"])
    document["stage_keys"] = {stage: digest(recipe) for stage, recipe in recipes.items()}
    document["row_key"] = document["stage_keys"]["bundle"]
    content = {**files, "recipe.json": encode(recipes), "bundle.json": encode(document)}
    failed = {check.id for check in judge(sealed(content)).failures}
    assert failed == failing


@pytest.mark.parametrize("error", [RecordError, RowproofError, OSError])
def test_what_a_check_says_against_the_evidence_is_a_failing_check(error):
    table = CheckTable("x")
    with table.guard("a:b", "something holds"):
        raise error("text\nof two lines")
    [check] = table.checks
    assert check.verdict == table.verdict == "fail" and "\n" not in check.found
    assert table.crashed == []


CRASHES = [AssertionError, AttributeError, RecursionError, MemoryError, SyntaxError, TypeError, KeyError]


@pytest.mark.parametrize("error", CRASHES)
def test_an_error_that_nobody_foresaw_says_nothing_of_the_evidence_and_never_passes(error):
    table = CheckTable("x")
    table.add("a:a", True, "another thing holds", "it does")
    with table.guard("a:b", "something holds"):
        raise error("text")
    check = table.checks[-1]
    assert check.verdict == "unknown" and check.found.startswith(f"cannot be checked: {error.__name__}: ")
    assert table.crashed == table.failures == [check]
    assert (table.passed, table.verdict, table.as_json()["verdict"]) == (False, "unknown", "unknown")
    lines = []
    table.render(lines.append, verbose=False)
    assert lines[-1] == "UNKNOWN x: 1 passed, 0 failed, 1 unknown"


def test_evidence_that_is_refuted_stays_so_when_another_check_crashes():
    table = CheckTable("x")
    with table.guard("a:b", "something holds"):
        raise KeyError("text")
    table.add("a:c", False, "a third thing holds", "it does not")
    assert table.verdict == "fail" and not table.passed
    assert [check.id for check in table.failures] == ["a:b", "a:c"]


def test_nothing_is_built_or_accepted_on_a_check_that_crashed(bundle, tmp_path, monkeypatch, capsys):
    root, folder = bundle[0], shutil.copytree(bundle[1], tmp_path / "b")
    require_verified(folder, root)

    def broken(table):
        with table.guard("a:b", "something holds"):
            raise TypeError("an argument that this Python lacks")
        return table

    def verified(path, _, allow_dirty=False):
        return broken(verify_bundle(path, root, allow_dirty))

    monkeypatch.setattr(verify, "verify_bundle", verified)
    monkeypatch.setattr(subjects, "verify_bundle", verified)
    with pytest.raises(RowproofError, match="a:b: cannot be checked: TypeError: an argument"):
        require_verified(folder, root)
    assert main(["verify", "--quiet", str(folder)]) == 2
    said = capsys.readouterr().out
    assert "UNKNOWN a:b" in said and "FAIL" not in said
    (folder / "REPRO.txt").write_text("other\n")
    assert main(["verify", "--quiet", str(folder)]) == 1


def test_a_gap_in_the_history_makes_a_check_unknown():
    table = CheckTable("x")
    with table.guard("a:b", "something holds"):
        raise HistoryGap("no clone")
    [check] = table.checks
    assert (check.verdict, check.found) == ("unknown", "no clone")


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_is_none(error):
    with pytest.raises(error), CheckTable("x").guard("a:b", "something holds"):
        raise error


def test_lines_of_the_table_cannot_be_forged():
    table = CheckTable("sub\nPASS ject")
    table.add("a:b", False, "must\r", "found\nPASS    all\x1b[2J\u202e\udcff")
    lines = []
    table.render(lines.append)
    assert len(lines) == 2 and all(line.isprintable() for line in lines)
