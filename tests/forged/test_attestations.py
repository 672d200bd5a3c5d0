"""Attestations: tidied code leaves rows current, and nothing else can pass as tidying."""

import json
import subprocess
import sys

import pytest
from checkouts import environment
from helpers import ROOT
from rowproof.equivalence import DRAWN, draw_of, drawn_units
from rowproof.layout import document_digest
from rowproof.records import decode, encode_document

# Most of these clone the project and start its commands.
pytestmark = pytest.mark.slow

ROW = "push-v1/b-stat"
CODE = "workflow/rowproof/chamber/push.py"
FOLDER = "config/equivalences"


class Clone:
    """A clone in which code is changed, attested and committed."""

    def __init__(self, folder):
        self.root, self.home = folder / "rowproof", folder / "home"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(self.root)], check=True)

    def run(self, *command):
        env = environment(self.home, {"PYTHONPATH": str(self.root / "workflow")})
        return subprocess.run(command, cwd=self.root, env=env, capture_output=True, text=True, timeout=600, check=False)

    def rowproof(self, *arguments):
        return self.run(sys.executable, "-m", "rowproof", *arguments)

    def commit(self):
        self.run("git", "add", "--all")
        assert self.run("git", "commit", "--quiet", "--message", "A change").returncode == 0

    def replace(self, path, old, new):
        text = (self.root / path).read_text()
        assert text.count(old) == 1, (old, text.count(old))
        (self.root / path).write_text(text.replace(old, new))

    def document(self, stage):
        (path,) = (self.root / FOLDER).glob(f"push-v1-{stage}-*.json")
        return path, json.loads(path.read_bytes())

    def rewrite(self, stage, change):
        """Change an attestation and seal it again."""
        path, document = self.document(stage)
        change(document)
        del document["digest"]
        path.write_bytes(encode_document({**document, "digest": document_digest(document)}))

    def state(self):
        """What `why` says of the row: exit code and text."""
        done = self.rowproof("why", ROW)
        return done.returncode, done.stdout + done.stderr

    def verify(self, *options):
        return self.rowproof("verify", "--quiet", *options, f"results/{ROW}")


@pytest.fixture
def clone(tmp_path):
    found = Clone(tmp_path)
    found.replace(CODE, "        return -total\n", "        return 0.0 - total\n")
    found.commit()
    return found


@pytest.fixture
def attested(clone):
    done = clone.rowproof("attest", ROW, "--cores", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "equal   push-v1/b-stat simulate: 250 episodes compared" in done.stdout
    clone.commit()
    return clone


def test_tidied_code_is_stale_until_it_is_attested(clone):
    code, text = clone.state()
    assert code == 1 and f"simulate: code {CODE}" in text
    done = clone.rowproof("attest", ROW, "--cores", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    # Not committed, it counts for nothing.
    assert clone.state()[0] == 1
    clone.commit()
    code, text = clone.state()
    assert code == 0 and f"{ROW} is current (equivalent): simulate: {FOLDER}/push-v1-simulate-" in text
    done = clone.verify("--strict")
    assert done.returncode == 0, done.stdout
    plan = clone.run(sys.executable, "-m", "snakemake", "--dry-run", f"results/{ROW}")
    assert "Nothing to be done" in plan.stdout + plan.stderr


def test_committed_attestations_can_be_run_again(attested):
    done = attested.rowproof("attest", "--check", ROW, "--cores", "1")
    assert done.returncode == 0 and done.stdout.count("as stated push-v1/b-stat") == 1, done.stdout + done.stderr

    def lie(document):
        document["rows"]["b-stat"]["units"]["compared_sha256"] = "0" * 64

    attested.rewrite("simulate", lie)
    done = attested.rowproof("attest", "--check", ROW, "--cores", "1")
    assert done.returncode == 1 and "DIFFERS" in done.stdout and "makes other bytes here" in done.stdout


def test_code_that_makes_other_records_is_not_attested(clone):
    clone.replace(CODE, "0.0 - total", "0.5 - total")
    clone.commit()
    done = clone.rowproof("attest", ROW, "--cores", "1")
    assert done.returncode == 1 and "DIFFERS push-v1/b-stat simulate" in done.stdout
    assert not list((clone.root / FOLDER).glob("push-v1-simulate-*"))


def test_a_modified_checkout_attests_nothing(clone):
    clone.replace(CODE, "0.0 - total", "0.0  -  total  # now")
    done = clone.rowproof("attest", ROW, "--cores", "1")
    assert done.returncode == 2 and "the checkout must be clean" in done.stderr


def test_an_edited_attestation_is_refused(attested):
    path, _ = attested.document("simulate")
    path.write_text(path.read_text().replace('"episodes"', '"all episodes"'))
    attested.commit()
    code, text = attested.state()
    assert code == 2 and f"{FOLDER}/{path.name}" in text and "rowproof attest" in text


def change_stage(document):
    document["stage"] = "specs"


def change_row(document):
    document["rows"] = {"b-rnd": document["rows"]["b-stat"]}


def change_board(document):
    document["board"] = "handover-v1"


@pytest.mark.parametrize("change", [change_stage, change_row, change_board])
def test_an_attestation_of_something_else_bridges_nothing(attested, change):
    attested.rewrite("simulate", change)
    attested.commit()
    assert attested.state()[0] == 1


def of_some_units(document):
    document["rows"]["b-stat"]["units"]["drawn"] = [1, 2, 3]


def of_another_draw(document):
    document["rows"]["b-stat"]["draw"] = "0" * 64


def of_a_foreign_commit(document):
    document["rows"]["b-stat"]["before"]["commit"] = "0" * 40


def of_code_elsewhere(document):
    document["rows"]["b-stat"]["after"]["places"]["producer"] = "rowproof.chamber.handover"


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (of_some_units, "all episodes must be compared"),
        (of_another_draw, "its draw does not follow from both codes"),
        (of_a_foreign_commit, "is not in this clone"),
        (of_code_elsewhere, "has another key"),
    ],
)
def test_the_verifier_checks_what_an_attestation_says(attested, change, found):
    attested.rewrite("simulate", change)
    attested.commit()
    done = attested.verify("--strict")
    assert done.returncode == 1 and found in done.stdout, done.stdout


def test_a_changed_constant_cannot_be_attested_by_hand(attested):
    """The forger changes a number afterwards, and names the key of the new code in the attestation."""
    attested.replace(CODE, "0.0 - total", "0.5 - total")
    attested.commit()
    head = attested.run("git", "rev-parse", "HEAD").stdout.strip()
    code = (
        "import json\nfrom pathlib import Path\n"
        "from rowproof.boards import load_board\nfrom rowproof.recipes import *\n"
        "setup = load_board(Path('.').resolve(), 'push-v1')\n"
        "tree = CodeTree.of_checkout(setup.root, HashCache(None), read_pins(setup.root))\n"
        "print(json.dumps(record_recipes(setup, 'b-stat', tree)['simulate']['code']))\n"
    )
    key = json.loads(attested.run(sys.executable, "-c", code).stdout)

    def forge(document):
        entry = document["rows"]["b-stat"]
        entry["after"] |= {"commit": head, "code": key}
        entry["draw"] = draw_of("simulate", ROW, entry["before"]["code"], key)

    attested.rewrite("simulate", forge)
    attested.commit()
    # Snakemake trusts what is committed; whoever verifies runs the games.
    assert attested.state()[0] == 0
    done = attested.verify()
    assert done.returncode == 1 and "records:replay" in done.stdout


def test_units_follow_from_both_codes():
    one, other = {"form": 2, "key": "a" * 64}, {"form": 2, "key": "b" * 64}
    draw = draw_of("simulate", "x/y", one, other)
    units = drawn_units(draw, 1750, DRAWN)
    assert len(set(units)) == DRAWN and units == sorted(units) and units[0] >= 0 and units[-1] < 1750
    assert units == drawn_units(draw, 1750, DRAWN)
    for changed in (
        draw_of("train", "x/y", one, other),
        draw_of("simulate", "x/z", one, other),
        draw_of("simulate", "x/y", other, one),
    ):
        assert drawn_units(changed, 1750, DRAWN) != units
    assert drawn_units(draw, 5, DRAWN) == [0, 1, 2, 3, 4]


def test_an_attestation_is_canonical(attested):
    path, document = attested.document("simulate")
    assert encode_document(document) == path.read_bytes()
    assert decode(path.read_bytes(), path.name)["made"]["started"] <= document["made"]["ended"]
