"""Each test alters one thing in a sealed bundle of ours, seals it again, and names the checks that catch it.

The forger of these tests recomputes all that can be recomputed without the right to commit to the project: summary,
identities, blob id, recipe keys, manifest, digest list and the digest of the provenance.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from bundles import commit_all, make_project, make_row
from forgeries.seal import Row, sha256
from rowproof.evidence.checks import CheckTable
from rowproof.evidence.verify import verify_bundle
from rowproof.git import file_at
from rowproof.layout import PROVENANCE, SUMS, document_digest
from rowproof.recipes import pins_of
from rowproof.records import encode_document
from rowproof.restated import tree_at
from rowproof.stages import FORM

ORACLE = "handover-v1/ref-script"
RANDOM = "handover-v1/b-rnd"
PUSH = "push-v1/b-rnd"
PLAN = "config/plans/handover-v1.yaml"
HANDOVER_CODE = "workflow/rowproof/chamber/handover.py"
ABSENT = "0123456789" * 4


@dataclass(frozen=True)
class World:
    """A project and bundles that verify against it; nobody writes into either.

    Attributes:
        root: the project, a git repository.
        built: holds ``<board>/<row>`` for each bundle.
        commits: ``before_plan`` (the code is there, the plan is not), ``earlier_plan`` (with fewer resamples),
            ``planned``, ``other_code``, ``foreign`` (with a producer and a script of a forger), ``other_policy``,
            ``head``; and ``side``, which no other descends from, with another comment in the plan.
    """

    root: Path
    built: Path
    commits: dict[str, str]


FOREIGN_PRODUCER = "workflow/rowproof/chamber/lenient.py"
FOREIGN_SCRIPT = "workflow/scripts/lenient.py"
POLICY_CODE = "workflow/rowproof/chamber/handover_egos/ref_script_handover_ego.py"
LENIENT = b"LENIENT = True\n"


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    root = make_project(tmp_path_factory.mktemp("forged-project"), boards=("handover-v1", "push-v1"))
    shutil.rmtree(root / ".git")
    plans = (root / "config/plans").rename(root.parent / f"{root.name}-plans")
    commits = {"before_plan": commit_all(root)}
    plans.rename(root / "config/plans")

    def with_changed(name: str, path: str, change: Callable[[bytes], bytes], source: str | None = None) -> None:
        file = root / path
        original = file.read_bytes() if file.is_file() else None
        file.write_bytes(change((root / (source or path)).read_bytes()))
        commits[name] = commit_all(root)
        file.unlink() if original is None else file.write_bytes(original)

    with_changed("earlier_plan", PLAN, lambda data: data.replace(b"n_resamples: 100", b"n_resamples: 90"))
    commits["planned"] = commit_all(root)
    with_changed("other_code", HANDOVER_CODE, lambda data: data + LENIENT)
    commit_all(root)
    with_changed("foreign", FOREIGN_PRODUCER, lambda data: data + LENIENT, HANDOVER_CODE)
    with_changed("foreign_script", FOREIGN_SCRIPT, lambda data: data + LENIENT, "workflow/scripts/simulate.py")
    with_changed("other_policy", POLICY_CODE, lambda data: data + LENIENT)
    with_changed("side", PLAN, lambda data: b"# as agreed\n" + data)
    git(root, "branch", "-q", "side")
    git(root, "reset", "-q", "--soft", commits["other_policy"])
    commits["head"] = commit_all(root)
    built = tmp_path_factory.mktemp("forged-rows")
    for name in (ORACLE, RANDOM, PUSH):
        make_row(root, built, *name.split("/"))
    return World(root, built, commits)


def git(root: Path, *command: str) -> None:
    subprocess.run(["git", "-C", str(root), *command], check=True, capture_output=True)


class ForgedRow(Row):
    """A copy of one of our bundles under the hands of a forger."""

    def __init__(self, world: World, row: str, results: Path) -> None:
        super().__init__(world.built / row, results / row)
        self.world = world

    def edit_record(self, name: str, change: Callable[[dict[str, Any]], Any]) -> None:
        """Alter the first record of seed 0 that is ``good`` or ``bad``."""
        records = self.records(0)
        change(next(record for record in records if record["success"] == (name == "good")))
        self.write_records(0, records)

    def made_at(self, commit: str, stage: str = "simulate", **places: Any) -> None:
        """Claim that a stage ran at a commit by what lay at other places, with the key, files and pins of those.

        A place of None is left out.
        """
        document, recipes = self.load(PROVENANCE), self.load("recipe.json")
        stated = {key: value for key, value in {**document["places"][stage], **places}.items() if value is not None}
        tree = tree_at(self.world.root, commit)
        modules = (*([stated["producer"]] if "producer" in stated else []), *stated.get("modules", ()))
        reached = tree.closure((stated["script"],), modules)
        recipes[stage] |= {"code": {"form": FORM, "key": reached.key}, "pins": pins_of(reached, tree.pins)}
        document["places"][stage] = {**stated, "files": reached.files}
        self.write("recipe.json", encode_document(recipes))
        self.write(PROVENANCE, encode_document(document))
        self.edit_jobs(lambda job: job.update(commit=commit), stage)
        self.reseal()

    def verify(self, root: Path | None = None, **options: Any) -> CheckTable:
        return verify_bundle(self.path, root or self.world.root, **options)


def failing(table: CheckTable) -> list[str]:
    return [check.id for check in table.failures]


def verdicts(table: CheckTable, *ids: str) -> list[str]:
    return [check.verdict for check in table.checks if check.id in ids]


# --- Nothing altered ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", [ORACLE, RANDOM, PUSH])
def test_resealing_an_honest_bundle_changes_no_byte_and_it_passes(row, world, tmp_path):
    copy = ForgedRow(world, row, tmp_path / "results")
    copy.reseal()
    for path in sorted((world.built / row).iterdir()):
        assert copy.read(path.name) == path.read_bytes(), path.name
    table = copy.verify()
    assert {check.verdict for check in table.checks} == {"pass"}


# --- Alterations: each takes a copy, alters it and seals it; the ids are all the checks that fail ----------------

FORGERIES: dict[str, tuple[Callable[[ForgedRow], None], tuple[Any, ...], str]] = {}


def caught_by(*ids: Any, row: str = ORACLE):
    """The checks that fail, all of them and in order; a final ``...`` stands for those that miss a broken input."""

    def register(alteration):
        assert alteration.__name__ not in FORGERIES
        FORGERIES[alteration.__name__] = (alteration, ids, row)
        return alteration

    return register


def blob_of(world, commit, path):
    """A file of a commit of the world."""
    return file_at(world.root, world.commits[commit], path)


def renumber(record, like):
    return {**record, **{key: like[key] for key in ("seed", "episode_idx", "initial_state_seed")}}


# Records


@caught_by("records:content", "records:replay")
def good_episode_repeated(f):
    records = f.records(0)
    good = next(record for record in records if record["success"])
    bad = next(i for i, record in enumerate(records) if not record["success"])
    f.write_records(0, [*records[:bad], good, *records[bad + 1 :]])
    f.reseal()


@caught_by("records:replay")
def good_episode_repeated_under_another_number(f):
    records = f.records(0)
    good = next(record for record in records if record["success"])
    member = good["metadata"]["member"]
    own = [i for i, r in enumerate(records) if not r["success"] and r["metadata"]["member"] == member]
    records[own[0]] = renumber(good, records[own[0]])
    f.write_records(0, records)
    f.reseal()


@caught_by("records:replay")
def good_episode_repeated_in_another_seed(f):
    good = next(record for record in f.records(1) if record["success"])
    records = f.records(0)
    member = good["metadata"]["member"]
    own = [i for i, r in enumerate(records) if not r["success"] and r["metadata"]["member"] == member]
    records[own[0]] = renumber(good, records[own[0]])
    f.write_records(0, records)
    f.reseal()


@caught_by("records:set", "records:content", "records:replay", "summary:exact")
def lost_and_doubled_record(f):
    f.edit_records(0, lambda records: records.pop(0))
    f.edit_records(1, lambda records: records.append(records[-1]))
    f.reseal()


@caught_by("records:content", "records:replay")
def seed_file_doubled(f):
    f.write("episodes_seed1.jsonl", f.read("episodes_seed0.jsonl"))
    f.reseal()


@caught_by("records:replay")
def seed_file_doubled_and_renumbered(f):
    f.write_records(1, [renumber(one, other) for one, other in zip(f.records(0), f.records(1), strict=True)])
    f.reseal()


@caught_by("records:content", "records:replay")
def another_seed_field(f):
    f.edit_records(0, lambda records: records[3].update(seed=7))
    f.reseal()


@caught_by("records:content", "records:replay")
def start_state_that_suits(f):
    f.edit_records(0, lambda records: records[3].update(initial_state_seed=4))
    f.reseal()


@caught_by("files:set", "records:set", "records:replay", "summary:exact")
def seed_dropped(f):
    (f.path / "episodes_seed1.jsonl").unlink()
    f.reseal(keep=["summary"])


@caught_by("files:set", "setup:plan", "records:set", "records:replay")
def seed_dropped_from_the_recipe_too(f):
    (f.path / "episodes_seed1.jsonl").unlink()
    f.edit_setup(lambda setup: setup.update(seeds=[0]))
    f.reseal()


@caught_by("plan:project", "history:plan")
def seed_dropped_from_the_plan_too(f):
    (f.path / "episodes_seed1.jsonl").unlink()
    f.edit_setup(lambda setup: setup.update(seeds=[0]))
    f.edit_plan("- 0\n  - 1\n", "- 0\n")
    f.reseal()


@caught_by("setup:plan", "summary:exact")
def seed_left_out_of_schedule_and_summary(f):
    f.edit_setup(lambda setup: setup.update(seeds=[0]))
    f.reseal()


@caught_by("setup:plan")
def seed_scheduled_twice(f):
    f.edit_setup(lambda setup: setup.update(seeds=[0, 1, 1]))
    f.reseal()


@caught_by("setup:plan")
def seeds_reordered(f):
    f.edit_setup(lambda setup: setup.update(seeds=[1, 0]))
    f.reseal()


@caught_by("setup:plan")
def no_seeds(f):
    f.edit_setup(lambda setup: setup.update(seeds=[]))
    f.reseal(keep=["summary"])


@caught_by("files:set")
def extra_seed_file(f):
    f.write("episodes_seed9.jsonl", f.read("episodes_seed0.jsonl"))
    f.reseal()


@caught_by("files:set")
def padded_seed_file(f):
    f.write("episodes_seed00.jsonl", f.read("episodes_seed0.jsonl"))
    f.reseal()


@caught_by("setup:plan", "records:set", "records:content", "records:replay")
def fewer_episodes(f):
    for seed in (0, 1):
        records = f.records(seed)
        f.write_records(seed, [r | {"episode_idx": i} for i, r in enumerate(records[:3] + records[4:7])])
    f.edit_setup(lambda setup: setup.update(episodes_per_partner=3))
    f.reseal()


@caught_by("plan:project", "history:plan")
def fewer_episodes_in_the_plan_too(f):
    for seed in (0, 1):
        records = f.records(seed)
        f.write_records(seed, [r | {"episode_idx": i} for i, r in enumerate(records[:3] + records[4:7])])
    f.edit_setup(lambda setup: setup.update(episodes_per_partner=3))
    f.edit_plan("episodes_per_partner: 4", "episodes_per_partner: 3")
    f.reseal()


@caught_by("records:content", "records:replay")
def partner_relabelled(f):
    f.edit_record("bad", lambda record: record["metadata"].update(member="presenter_mismatch_45"))
    f.reseal()


@caught_by("records:content", "records:replay")
def partners_exchanged_in_the_records(f):
    names = {"presenter_mismatch_30": "presenter_mismatch_45", "presenter_mismatch_45": "presenter_mismatch_30"}

    def exchange(records):
        for record in records:
            record["metadata"]["member"] = names[record["metadata"]["member"]]

    for seed in (0, 1):
        f.edit_records(seed, exchange)
    f.reseal()


@caught_by("records:set", "records:replay", "summary:exact")
def force_nan(f):
    f.edit_record("good", lambda record: record.update(force_peak=12345.5))
    f.reseal()
    f.replace_bytes("episodes_seed0.jsonl", b"12345.5", b"NaN")
    f.sign()


@caught_by("records:set", "records:replay", "summary:exact")
def force_infinite(f):
    f.edit_record("good", lambda record: record.update(force_peak=12345.5))
    f.reseal()
    f.replace_bytes("episodes_seed0.jsonl", b"12345.5", b"Infinity")
    f.sign()


@caught_by("records:set", "records:replay", "summary:exact")
def force_beyond_a_double(f):
    f.edit_record("good", lambda record: record.update(force_peak=12345.5))
    f.reseal()
    f.replace_bytes("episodes_seed0.jsonl", b"12345.5", b"1e999")
    f.sign()


@caught_by("records:content", "records:replay")
def force_negative(f):
    f.edit_record("good", lambda record: record.update(force_peak=-record["force_peak"]))
    f.reseal()


@caught_by("records:content", "records:replay")
def force_lowered(f):
    f.edit_record("bad", lambda record: record.update(force_peak=1.5))
    f.reseal()


@caught_by("records:content", "records:replay")
def violation_minus_zero(f):
    f.edit_record("good", lambda record: record.update(constraint_violation_peak=-0.0))
    f.reseal()


@caught_by("records:content", "records:replay")
def success_flipped(f):
    f.edit_record("bad", lambda record: record.update(success=True))
    f.reseal()


def made_good(record):
    """A success that agrees with itself: residuals within the windows, and the force that they make."""
    lateral_m = record["metadata"]["residual_lateral_m"]
    record.update(success=True, force_peak=37500.0 * lateral_m + 7.5 * 0.0)
    record["metadata"].update(residual_angular_deg=0.0, failure_mode="none")


@caught_by("records:replay")
def success_flipped_with_all_that_follows(f):
    f.edit_record("bad", made_good)
    f.reseal()


@caught_by("records:content", "records:replay")
def failure_mode_changed(f):
    f.edit_record("bad", lambda record: record["metadata"].update(failure_mode="none"))
    f.reseal()


@caught_by("records:replay", row=PUSH)
def reward_and_success_changed_together(f):
    def change(record):
        record["success"] = True
        record["metadata"]["final_reward"] = -0.5

    f.edit_record("bad", change)
    f.reseal()


@caught_by("records:content", "records:replay", row=PUSH)
def success_without_the_reward(f):
    f.edit_record("bad", lambda record: record.update(success=True))
    f.reseal()


@caught_by("records:content", "records:replay")
def integer_for_a_float(f):
    f.edit_record("good", lambda record: record.update(constraint_violation_peak=0))
    f.reseal()


@caught_by("records:content", "records:replay")
def integer_for_a_bool(f):
    f.edit_record("good", lambda record: record.update(success=1))
    f.reseal()


@caught_by("records:set")
def other_digits_of_a_float(f):
    f.replace_bytes("episodes_seed0.jsonl", b'"constraint_violation_peak":0.0', b'"constraint_violation_peak":0.00', 1)
    f.reseal()


@caught_by("records:content", "records:replay")
def record_keys_reordered(f):
    f.edit_records(0, lambda records: records[0].update(seed=records[0].pop("seed")))
    f.reseal()


@caught_by("records:content", "records:replay")
def records_reordered(f):
    f.edit_records(0, lambda records: records.reverse())
    f.reseal()


@caught_by("records:content", "records:replay")
def unknown_key_in_a_record(f):
    f.edit_record("good", lambda record: record.update(note="rerun"))
    f.reseal()


@caught_by("records:content", "records:replay")
def missing_key_in_a_record(f):
    f.edit_record("good", lambda record: record.pop("fallback_fired"))
    f.reseal()


@caught_by("records:set", "records:replay", "summary:exact")
def repeated_key_in_a_record(f):
    f.replace_bytes("episodes_seed0.jsonl", b'"success":false', b'"success":true,"success":false', 1)
    f.reseal()


@caught_by("records:content", "records:replay")
def huge_integer_in_a_record(f):
    f.edit_record("good", lambda record: record.update(fallback_fired=10**400))
    f.reseal()


@caught_by("records:set", "records:replay", "summary:exact")
def integer_too_long_to_read(f):
    f.replace_bytes("episodes_seed0.jsonl", b'"fallback_fired":0', b'"fallback_fired":' + b"9" * 5000, 1)
    f.sign()


@caught_by("records:set", "records:replay", "summary:exact")
def deep_nesting_in_a_record(f):
    f.replace_bytes("episodes_seed0.jsonl", b'"fallback_fired":0', b'"fallback_fired":' + b"[" * 500 + b"]" * 500, 1)
    f.sign()


@caught_by("records:set", "records:replay", "summary:exact")
def truncated_records(f):
    f.write("episodes_seed0.jsonl", f.read("episodes_seed0.jsonl")[:-40])
    f.sign()


@caught_by("records:set", "records:replay", "summary:exact")
def empty_records(f):
    f.write("episodes_seed0.jsonl", b"")
    f.reseal()


@caught_by("records:set", "records:replay", "summary:exact")
def crlf_records(f):
    f.replace_bytes("episodes_seed0.jsonl", b"\n", b"\r\n")
    f.reseal()


@caught_by("records:set", "records:replay", "summary:exact")
def byte_order_mark_before_the_records(f):
    f.write("episodes_seed0.jsonl", b"\xef\xbb\xbf" + f.read("episodes_seed0.jsonl"))
    f.sign()


@caught_by("records:set", "records:replay", "summary:exact")
def blank_line(f):
    f.replace_bytes("episodes_seed0.jsonl", b"\n", b"\n\n", 1)
    f.reseal()


@caught_by("records:set", "records:replay", "summary:exact")
def no_final_newline(f):
    f.write("episodes_seed0.jsonl", f.read("episodes_seed0.jsonl")[:-1])
    f.reseal()


@caught_by("records:set")
def spaced_record(f):
    f.replace_bytes("episodes_seed0.jsonl", b'"seed":0', b'"seed": 0', 1)
    f.reseal()


@caught_by("records:set", "records:replay", "summary:exact")
def record_not_utf8(f):
    f.replace_bytes("episodes_seed0.jsonl", b"handover_place_anchor", b"handover_place_\xff", 1)
    f.sign()


@caught_by("records:replay")
def records_of_another_row_relabelled(f):
    for seed in (0, 1):
        name = f"episodes_seed{seed}.jsonl"
        stolen = (f.world.built / RANDOM / name).read_bytes()
        f.write(name, stolen.replace(b'"policy":"random"', b'"policy":"ref_script_handover_ego"'))
    f.reseal()


# Partners


@caught_by("setup:plan")
def members_exchanged(f):
    f.edit_setup(lambda setup: setup["members"].reverse())
    f.reseal()


@caught_by("setup:plan", "plan:lock")
def partner_renamed(f):
    f.edit_setup(lambda setup: setup["members"][0].update(name="presenter_mismatch_31"))
    f.reseal()


@caught_by("setup:plan", "plan:lock")
def partner_parameter_edited(f):
    f.edit_setup(lambda setup: setup["members"][0]["params"].update(grasp_pose_bias_deg="3.0"))
    f.reseal()


@caught_by("partners:identity", "setup:plan", "plan:lock")
def partner_parameter_edited_beside_the_old_identity(f):
    f.edit_setup(lambda setup: setup["members"][0]["params"].update(grasp_pose_bias_deg="3.0"))
    f.edit("identities.json", lambda seats: seats["partners"][0]["params"].update(grasp_pose_bias_deg="3.0"))
    f.reseal(keep=["identities"])


@caught_by("partners:identity")
def parameter_edited_in_the_identities_alone(f):
    f.edit("identities.json", lambda seats: seats["partners"][0]["params"].update(grasp_pose_bias_deg="3.0"))
    f.sign()


@caught_by("partners:identity")
def identity_edited_in_the_bundle_alone(f):
    f.edit("bundle.json", lambda meta: meta["partners"].update(presenter_mismatch_30="0" * 16))
    f.sign()


@caught_by("partners:identity", "setup:plan", "plan:lock")
def identity_edited_everywhere(f):
    f.edit_setup(lambda setup: setup["members"][0].update(identity="0" * 16))
    f.edit("identities.json", lambda seats: seats["partners"][0].update(identity="0" * 16))
    f.edit("bundle.json", lambda meta: meta["partners"].update(presenter_mismatch_30="0" * 16))
    f.reseal(keep=["identities"])


@caught_by("partners:identity")
def policy_identity_edited(f):
    f.edit("bundle.json", lambda meta: meta["policy"].update(identity="0" * 16))
    f.sign()


@caught_by("partners:identity")
def whole_number_as_a_float_in_the_identities(f):
    f.edit("identities.json", lambda seats: seats["partners"][0].update(seed=0.0))
    f.sign()


@caught_by("partners:identity")
def partners_reordered_in_the_bundle(f):
    f.edit("bundle.json", lambda meta: meta.update(partners=dict(reversed(meta["partners"].items()))))
    f.sign()


@caught_by("partners:identity", "setup:plan", "plan:lock")
def private_member_injected(f):
    private = {
        "name": "presenter_matched",
        "class": "handover_presenter",
        "seed": 0,
        "checkpoint_step": None,
        "weights_uri": "member://handover_presenter/d4f8fcf58e750c8dcd223ff4e78cb08da29f758d8b2fb03b9886789711915123",
        "params": None,
        "identity": "dd261cfdde60ca43",
    }
    f.edit_setup(lambda setup: setup["members"].insert(0, private))
    f.reseal()


@caught_by("setup:plan", ...)
def no_partners(f):
    f.edit_setup(lambda setup: setup.update(members=[]))
    f.reseal()


@caught_by("setup:plan", "plan:lock")
def another_partner_set_version(f):
    f.edit_setup(lambda setup: setup.update(partner_set="handover_place_partners@v2"))
    f.reseal()


# Files


@caught_by("files:plain", "sums:coverage", "bundle:manifest", "records:set", ...)
def linked_record_file(f):
    moved = f.path.parent / "moved.jsonl"
    (f.path / "episodes_seed0.jsonl").rename(moved)
    (f.path / "episodes_seed0.jsonl").symlink_to(moved)


@caught_by("files:plain", "sums:coverage", "bundle:manifest", "records:set", ...)
def hard_linked_record_file(f):
    os.link(f.path / "episodes_seed0.jsonl", f.path.parent / "twin.jsonl")


@caught_by("files:plain", "files:set")
def sub_directory(f):
    (f.path / "more").mkdir()


@caught_by("files:plain", "files:set")
def named_pipe(f):
    # Opening it for reading would wait for a writer for ever.
    os.mkfifo(f.path / "pipe")


@caught_by("files:set")
def extra_file(f):
    f.write("notes.md", b"more\n")
    f.sign()


@caught_by("files:set", "sums:coverage")
def hidden_file(f):
    f.write(".hidden", b"more\n")
    f.sign()


@caught_by("plan:model", "files:set", ...)
def no_plan(f):
    (f.path / "plan.yaml").unlink()
    f.sign()


@caught_by("encoding:recipe.json", "files:set", ...)
def no_recipe(f):
    (f.path / "recipe.json").unlink()
    f.sign()


@caught_by("encoding:identities.json", "files:set", "partners:identity")
def no_identities(f):
    (f.path / "identities.json").unlink()
    f.sign()


@caught_by("files:set", "repro:text")
def no_command(f):
    (f.path / "REPRO.txt").unlink()
    f.sign()


@caught_by("encoding:bundle.json", "files:set", ...)
def no_bundle_json(f):
    (f.path / "bundle.json").unlink()


@caught_by("files:set", ...)
def no_provenance(f):
    (f.path / PROVENANCE).unlink()


@caught_by("files:set", ...)
def no_sums(f):
    (f.path / SUMS).unlink()


# Manifest and digest list


def manifest_with(f, name, data=b"x\n"):
    f.edit("bundle.json", lambda meta: meta["manifest"].update({name: sha256(data)}))
    f.edit("bundle.json", lambda meta: meta.update(manifest=dict(sorted(meta["manifest"].items()))))
    f.sign(manifest=False)


@caught_by("bundle:manifest")
def manifest_leads_out(f):
    (f.path.parent / "outside.txt").write_bytes(b"x\n")
    manifest_with(f, "../outside.txt")


@caught_by("bundle:manifest")
def manifest_with_an_absolute_name(f):
    (f.path.parent / "outside.txt").write_bytes(b"x\n")
    manifest_with(f, str(f.path.parent / "outside.txt"))


@caught_by("bundle:manifest")
def manifest_with_an_empty_name(f):
    manifest_with(f, "")


@caught_by("bundle:manifest")
def manifest_with_another_spelling_of_a_name(f):
    manifest_with(f, "./plan.yaml", f.read("plan.yaml"))


@caught_by("bundle:manifest")
def manifest_that_leaves_a_file_out(f):
    f.edit("bundle.json", lambda meta: meta["manifest"].pop("plan.yaml"))
    f.sign(manifest=False)


@caught_by("bundle:manifest")
def manifest_unsorted(f):
    f.edit("bundle.json", lambda meta: meta.update(manifest=dict(reversed(meta["manifest"].items()))))
    f.sign(manifest=False)


@caught_by("bundle:manifest")
def manifest_in_upper_case(f):
    f.edit("bundle.json", lambda meta: meta["manifest"].update({"plan.yaml": meta["manifest"]["plan.yaml"].upper()}))
    f.sign(manifest=False)


@caught_by("encoding:bundle.json", ...)
def manifest_repeats_a_name(f):
    f.replace_bytes("bundle.json", b'"manifest": {', b'"manifest": {\n    "plan.yaml": "00",')
    f.sign(manifest=False)


def with_sums(f, change):
    f.write(SUMS, b"".join(change(f.read(SUMS).splitlines(keepends=True))))


@caught_by("sums:coverage")
def sums_empty(f):
    f.write(SUMS, b"")


@caught_by("sums:coverage", "sums:bytes")
def sums_shortened(f):
    with_sums(f, lambda lines: lines[2:])


@caught_by("sums:coverage", "sums:bytes", "plan:row", "board:project")
def bundle_json_unlisted_and_rewritten(f):
    f.edit("bundle.json", lambda meta: meta.update(tier="outcome"))
    f.bind()
    with_sums(f, lambda lines: [line for line in lines if b"bundle.json" not in line])


@caught_by("sums:coverage")
def sums_repeat_a_line(f):
    with_sums(f, lambda lines: [lines[0], *lines])


@caught_by("sums:coverage", "sums:bytes")
def sums_unsorted(f):
    with_sums(f, lambda lines: lines[::-1])


@caught_by("sums:coverage")
def sums_in_upper_case(f):
    with_sums(f, lambda lines: [lines[0][:64].upper() + lines[0][64:], *lines[1:]])


@caught_by("sums:coverage")
def sums_lead_out(f):
    (f.path.parent / "outside.txt").write_bytes(b"x\n")
    with_sums(f, lambda lines: [f"{sha256(b'x' + bytes([10]))}  ../outside.txt\n".encode(), *lines])


@caught_by("sums:coverage")
def sums_with_an_absolute_name(f):
    with_sums(f, lambda lines: [*lines, f"{'0' * 64}  /etc/hostname\n".encode()])


@caught_by("sums:coverage")
def sums_with_an_empty_name(f):
    with_sums(f, lambda lines: [*lines, f"{'0' * 64}  \n".encode()])


@caught_by("sums:coverage")
def sums_in_binary_mode(f):
    with_sums(f, lambda lines: [line.replace(b"  ", b" *") for line in lines])


@caught_by("sums:coverage", "sums:bytes")
def sums_list_the_provenance(f):
    with_sums(f, lambda lines: sorted([*lines, f"{sha256(f.read(PROVENANCE))}  {PROVENANCE}\n".encode()]))


@caught_by("sums:coverage")
def crlf_sums(f):
    with_sums(f, lambda lines: [line.replace(b"\n", b"\r\n") for line in lines])


@caught_by("sums:plan.yaml", "sums:bytes")
def wrong_digest_in_the_sums(f):
    with_sums(f, lambda lines: [b"0" * 64 + line[64:] if b"plan.yaml" in line else line for line in lines])


# Plan


@caught_by("plan:model", ...)
def plan_of_another_board(f):
    f.write("plan.yaml", (f.world.built / PUSH / "plan.yaml").read_bytes())
    f.reseal()


@caught_by("plan:project", "history:plan")
def plan_with_another_comment(f):
    f.write("plan.yaml", b"# as agreed\n" + f.read("plan.yaml"))
    f.reseal()


@caught_by("plan:project", "setup:plan", "summary:exact", "history:plan")
def earlier_version_of_the_plan(f):
    f.write("plan.yaml", blob_of(f.world, "earlier_plan", PLAN))
    f.reseal()


@caught_by("plan:project", "setup:plan", "summary:exact")
def earlier_version_of_the_plan_at_its_commit(f):
    f.write("plan.yaml", blob_of(f.world, "earlier_plan", PLAN))
    f.edit_jobs(lambda job: job.update(commit=f.world.commits["earlier_plan"]))
    f.reseal()


@caught_by("plan:project", "summary:exact")
def earlier_version_of_the_plan_and_its_statistics(f):
    """Found by the plan of today alone, if the summary were that of the other plan."""
    f.write("plan.yaml", blob_of(f.world, "earlier_plan", PLAN))
    f.edit_recipes(lambda recipes: recipes["summary"]["statistics"].update(n_resamples=90))
    f.edit_jobs(lambda job: job.update(commit=f.world.commits["earlier_plan"]))
    f.reseal(keep=["summary"])


@caught_by("plan:project", "history:plan")
def plan_of_an_unmerged_branch(f):
    f.write("plan.yaml", blob_of(f.world, "side", PLAN))
    f.reseal()


@caught_by("history:commits", "plan:project")
def plan_and_commit_of_an_unmerged_branch(f):
    f.write("plan.yaml", blob_of(f.world, "side", PLAN))
    f.edit_jobs(lambda job: job.update(commit=f.world.commits["side"]))
    f.reseal()


@caught_by("plan:project", "setup:plan", "records:content", "history:plan")
def threshold_softened_in_the_plan_alone(f):
    f.edit_plan("angular_window_deg: 5.0", "angular_window_deg: 50.0")
    f.reseal()


@caught_by("plan:project", "history:plan")
def threshold_softened_throughout(f):
    f.edit_plan("angular_window_deg: 5.0", "angular_window_deg: 500.0")
    f.edit_plan("seating_force_limit_n: 75.0", "seating_force_limit_n: 7500.0")
    f.edit_setup(lambda setup: setup["cell"].update(angular_window_deg=500.0, seating_force_limit_n=7500.0))
    for seed in (0, 1):
        records = f.records(seed)
        for record in records:
            record["success"] = True
            record["metadata"]["failure_mode"] = "none"
        f.write_records(seed, records)
    f.reseal()


@caught_by("plan:project", "history:plan")
def crlf_plan(f):
    f.write("plan.yaml", f.read("plan.yaml").replace(b"\n", b"\r\n"))
    f.reseal()


@caught_by("plan:row", "plan:project", "history:plan")
def crlf_plan_under_the_old_blob(f):
    f.write("plan.yaml", f.read("plan.yaml").replace(b"\n", b"\r\n"))
    f.reseal(keep=["blob"])


@caught_by("plan:model", ...)
def plan_with_a_repeated_key(f):
    f.write("plan.yaml", f.read("plan.yaml") + b"notes: again\nnotes: and again\n")
    f.reseal()


@caught_by("plan:model", ...)
def plan_not_utf8(f):
    f.write("plan.yaml", b"# \xff\n" + f.read("plan.yaml"))
    f.reseal()


@caught_by("plan:model", ...)
def plan_too_deep(f):
    f.write("plan.yaml", f.read("plan.yaml") + b"notes: " + b"[" * 3000 + b"]" * 3000 + b"\n")
    f.reseal()


@caught_by("plan:row")
def plan_blob_edited(f):
    f.edit_meta(lambda meta: meta["plan"].update(blob="0" * 40))
    f.reseal(keep=["blob"])


@caught_by("plan:project", "history:plan", "plan:lock")
def plan_path_elsewhere(f):
    f.edit_meta(lambda meta: meta["plan"].update(path="config/plans/../plans/handover-v1.yaml"))
    f.reseal()


@caught_by("plan:project", "history:plan", "plan:lock")
def plan_path_of_another_file(f):
    f.edit_meta(lambda meta: meta["plan"].update(path="config/plans/push-v1.yaml"))
    f.reseal()


@caught_by("bundle:schema", "recipe:schema", "plan:row", "plan:project", "history:plan", "plan:lock")
def plan_reference_null(f):
    f.edit_meta(lambda meta: meta.update(plan=None))
    f.reseal(keep=["blob"])


@caught_by("setup:plan", "summary:exact")
def one_resample(f):
    f.edit_recipes(lambda recipes: recipes["summary"]["statistics"].update(n_resamples=1))
    f.reseal()


@caught_by("plan:project", "history:plan")
def one_resample_in_the_plan_too(f):
    f.edit_recipes(lambda recipes: recipes["summary"]["statistics"].update(n_resamples=1))
    f.edit_plan("n_resamples: 100", "n_resamples: 1")
    f.reseal()


@caught_by("plan:model", ...)
def no_resamples_in_the_plan(f):
    f.edit_recipes(lambda recipes: recipes["summary"]["statistics"].update(n_resamples=0))
    f.edit_plan("n_resamples: 100", "n_resamples: 0")
    f.reseal(keep=["summary"])


@caught_by("setup:plan", "summary:exact")
def bootstrap_seed_searched(f):
    def width(seed):
        f.edit_recipes(lambda recipes: recipes["summary"]["statistics"].update(root_seed=seed))
        f.reseal()
        low, high = f.meta["summary"]["success_rate_ci"]
        return high - low

    width(min(range(1, 6), key=width))


@caught_by("setup:plan")
def another_root_seed(f):
    f.edit_setup(lambda setup: setup.update(root_seed=1))
    f.reseal()


# bundle.json


@caught_by("setup:plan")
def wrong_episode_count_in_the_schedule(f):
    f.edit("bundle.json", lambda meta: meta["seed_schedule"].update(episodes_per_partner=5))
    f.sign()


@caught_by("setup:plan")
def whole_number_as_a_float_in_the_schedule(f):
    f.edit("bundle.json", lambda meta: meta["seed_schedule"].update(root_seed=0.0))
    f.sign()


@caught_by("setup:plan")
def whole_numbers_as_floats_in_the_setup(f):
    f.edit_setup(lambda setup: setup.update(seeds=[False, 1.0]))
    f.edit("bundle.json", lambda meta: meta["seed_schedule"].update(seeds=[False, 1.0]))
    f.reseal(keep=["schedule", "summary"])


@caught_by("setup:plan")
def setup_keys_reordered(f):
    f.edit_setup(lambda setup: setup.update(task=setup.pop("task")))
    f.reseal()


def edit_summary(f, change):
    f.edit("bundle.json", lambda meta: change(meta["summary"]))
    f.sign()


@caught_by("summary:exact")
def last_digit_of_a_rate(f):
    edit_summary(f, lambda summary: summary.update(success_rate=summary["success_rate"] + 2**-50))


@caught_by("summary:exact")
def narrower_interval(f):
    edit_summary(f, lambda summary: summary.update(success_rate_ci=[summary["success_rate"]] * 2))


@caught_by("summary:exact")
def flag_added(f):
    edit_summary(f, lambda summary: summary["flags"].append("saturated"))


@caught_by("summary:exact")
def matrix_edited(f):
    edit_summary(f, lambda summary: summary.update(matrix={**summary["matrix"], "note": 1}))


@caught_by("summary:exact")
def published_mean_edited(f):
    edit_summary(f, lambda summary: summary["published"].update(success_mean=0.875))


@caught_by("summary:exact")
def stress_left_out(f):
    edit_summary(f, lambda summary: summary.update(stress=None))


@caught_by("summary:exact")
def whole_number_as_a_float_in_the_summary(f):
    edit_summary(f, lambda summary: summary.update(n_resamples=100.0))


@caught_by("summary:exact")
def summary_reordered(f):
    edit_summary(f, lambda summary: summary.update(n_resamples=summary.pop("n_resamples")))


@caught_by("board:project")
def tier_lowered(f):
    f.edit_recipes(lambda recipes: recipes["bundle"].update(tier="outcome"))
    f.reseal()


@caught_by("plan:model", ...)
def another_engine(f):
    f.edit_recipes(lambda recipes: recipes["bundle"].update(engine="push-v1"))
    f.reseal()


@caught_by("plan:model", ...)
def unknown_engine(f):
    f.edit_recipes(lambda recipes: recipes["bundle"].update(engine="handover-v2"))
    f.reseal()


@caught_by("bundle:place", "plan:row", "board:project")
def board_renamed(f):
    f.edit_recipes(lambda recipes: recipes["bundle"].update(board="handover-v2"))
    f.reseal()


@caught_by("bundle:place", "plan:row", "plan:project", "board:project", "setup:plan", ...)
def row_not_in_the_plan(f):
    f.edit_recipes(lambda recipes: recipes["bundle"].update(row="b-best"))
    f.reseal()


@caught_by("bundle:place")
def bundle_of_another_row(f):
    shutil.rmtree(f.path)
    shutil.copytree(f.world.built / RANDOM, f.path)


@caught_by("bundle:place")
def bundle_of_another_board(f):
    shutil.rmtree(f.path)
    shutil.copytree(f.world.built / PUSH, f.path)


@caught_by("plan:row", "recipe:places", "board:project", "setup:plan", "history:code")
def another_policy(f):
    f.edit_setup(lambda setup: setup.update(policy="random"))
    f.reseal()


@caught_by("plan:row", "board:project", "setup:plan")
def another_task(f):
    f.edit_setup(lambda setup: setup.update(task="handover_place@v2"))
    f.reseal()


@caught_by("repro:text")
def another_command(f):
    f.write("REPRO.txt", b"snakemake --force results/handover-v1/ref-script\n")
    f.sign()


@caught_by("bundle:schema")
def another_schema_version(f):
    f.edit("bundle.json", lambda meta: meta.update(schema="rowproof/bundle/3"))
    f.sign()


@caught_by("bundle:schema")
def unknown_key_in_the_bundle(f):
    f.edit("bundle.json", lambda meta: meta.update(reviewed=True))
    f.sign()


@caught_by("bundle:schema", "plan:row", "board:project")
def missing_key_in_the_bundle(f):
    f.edit("bundle.json", lambda meta: meta.pop("tier"))
    f.sign()


@caught_by("bundle:schema")
def bundle_keys_reordered(f):
    f.edit("bundle.json", lambda meta: meta.update(schema=meta.pop("schema")))
    f.sign()


@caught_by("encoding:bundle.json", ...)
def repeated_key_in_the_bundle(f):
    f.replace_bytes("bundle.json", b'"tier": "exact"', b'"tier": "outcome",\n  "tier": "exact"')
    f.sign(manifest=False)


@caught_by("encoding:bundle.json")
def bundle_indented_otherwise(f):
    f.write("bundle.json", (json.dumps(f.meta, indent=4) + "\n").encode())
    f.sign(manifest=False)


@caught_by("encoding:bundle.json", ...)
def bundle_truncated(f):
    f.write("bundle.json", f.read("bundle.json")[:300])
    f.sign(manifest=False)


@caught_by("bundle:schema", ...)
def bundle_is_a_list(f):
    f.write("bundle.json", b"[]\n")
    f.sign(manifest=False)


@caught_by("encoding:bundle.json", ...)
def bundle_not_utf8(f):
    f.replace_bytes("bundle.json", b'"exact"', b'"ex\xe4ct"')
    f.sign(manifest=False)


@caught_by("encoding:bundle.json", ...)
def byte_order_mark_before_the_bundle(f):
    f.write("bundle.json", b"\xef\xbb\xbf" + f.read("bundle.json"))
    f.sign(manifest=False)


@caught_by("encoding:bundle.json", ...)
def deep_nesting_in_the_bundle(f):
    f.replace_bytes("bundle.json", b'"exact"', b"[" * 400 + b"]" * 400)
    f.sign(manifest=False)


@caught_by("encoding:bundle.json", ...)
def nesting_beyond_any_stack(f):
    f.replace_bytes("bundle.json", b'"exact"', b"[" * 100_000 + b"]" * 100_000)
    f.sign(manifest=False)


# recipe.json


def edit_code(f, stage="simulate", **change):
    f.edit_recipes(lambda recipes: recipes[stage]["code"].update(change))


@caught_by("history:code")
def code_key_edited(f):
    edit_code(f, key="0" * 64)
    f.reseal()


@caught_by("history:code")
def code_key_of_another_stage(f):
    edit_code(f, key=f.load("recipe.json")["specs"]["code"]["key"])
    f.reseal()


@caught_by("history:code")
def code_key_of_another_row(f):
    other = json.loads((f.world.built / RANDOM / "recipe.json").read_bytes())
    edit_code(f, key=other["simulate"]["code"]["key"])
    f.reseal()


@caught_by("recipe:schema", "history:code", ...)
def code_key_left_out(f):
    f.edit_recipes(lambda recipes: recipes["simulate"]["code"].pop("key"))
    f.reseal()


@caught_by("recipe:schema")
def code_files_beside_the_key(f):
    edit_code(f, files={HANDOVER_CODE: "0" * 64})
    f.reseal()


@caught_by("recipe:schema")
def form_as_a_text(f):
    edit_code(f, form=str(FORM))
    f.reseal()


@caught_by("recipe:schema")
def form_as_a_truth_value(f):
    edit_code(f, form=True)
    f.reseal()


@caught_by("recipe:schema")
def what_is_shown_stands_in_a_recipe(f):
    f.edit_recipes(lambda recipes: recipes["simulate"].update(producer="rowproof.chamber.handover"))
    f.reseal()


@caught_by("history:code")
def data_file_made_up(f):
    f.edit_recipes(lambda recipes: recipes["simulate"]["data"].update({"config/none.yaml": "0" * 64}))
    f.reseal()


# Places: where the code lay, by the word of the provenance


def edit_places(f, stage="simulate", **change):
    def edit(document):
        for key, value in change.items():
            if value is None:
                document["places"][stage].pop(key)
            else:
                document["places"][stage][key] = value

    f.edit(PROVENANCE, edit)
    f.bind()


@caught_by("history:code")
def another_producer(f):
    edit_places(f, producer="rowproof.chamber.push")


@caught_by("history:code")
def no_producer(f):
    edit_places(f, producer=None)


@caught_by("recipe:places")
def a_producer_of_the_forger_at_a_commit_of_his(f):
    """Places, key, files and commit agree with one another: only what the engine names gives it away."""
    f.made_at(f.world.commits["foreign"], producer="rowproof.chamber.lenient")


@caught_by("recipe:places")
def a_script_of_the_forger_at_a_commit_of_his(f):
    f.made_at(f.world.commits["foreign_script"], script=FOREIGN_SCRIPT)


@caught_by("history:code")
def own_policy_left_out_of_places_and_key(f):
    """A key that does not say which policy played."""
    f.made_at(f.world.commits["other_policy"], modules=None)


@caught_by("history:code")
def other_files(f):
    files = f.load(PROVENANCE)["places"]["simulate"]["files"]
    edit_places(f, files={**files, HANDOVER_CODE: "0" * 64})


@caught_by("history:code")
def a_file_more(f):
    files = f.load(PROVENANCE)["places"]["simulate"]["files"]
    edit_places(f, files={**files, "workflow/rowproof/audit.py": "0" * 64})


@caught_by("history:code")
def a_file_less(f):
    files = f.load(PROVENANCE)["places"]["simulate"]["files"]
    edit_places(f, files={path: sha for path, sha in files.items() if path != HANDOVER_CODE})


@caught_by("history:code")
def no_files(f):
    edit_places(f, files=None)


@caught_by("history:code")
def another_module(f):
    edit_places(f, modules=["rowproof.chamber.handover_egos.random"])


@caught_by("provenance:form", "history:code", "history:pins")
def stage_without_a_place(f):
    f.edit(PROVENANCE, lambda document: document["places"].pop("simulate"))
    f.bind()


@caught_by("provenance:form")
def place_of_no_stage(f):
    f.edit(PROVENANCE, lambda document: document["places"].update(audit=document["places"]["simulate"]))
    f.bind()


@caught_by("provenance:form", ...)
def no_places(f):
    f.edit(PROVENANCE, lambda document: document.update(places={}))
    f.bind()


@caught_by("provenance:form")
def unknown_word_in_a_place(f):
    edit_places(f, reviewed=True)


@caught_by("provenance:form", ...)
def places_of_odd_shape(f):
    f.edit(PROVENANCE, lambda document: document.update(places={stage: ["all"] for stage in document["places"]}))
    f.bind()


@caught_by("provenance:form", ...)
def provenance_of_the_earlier_form(f):
    """That form did not say where code lay, and its recipes held it themselves."""

    def change(document):
        document.pop("places")
        document["schema"] = "rowproof/provenance/2"

    f.edit(PROVENANCE, change)
    f.bind()


@caught_by("provenance:form", "history:pins")
def pins_edited(f):
    f.edit_recipes(lambda recipes: recipes["simulate"]["pins"].update(numpy="1.26.4"))
    f.reseal()


@caught_by("history:pins")
def pins_edited_in_the_provenance_too(f):
    f.edit_recipes(lambda recipes: recipes["simulate"]["pins"].update(numpy="1.26.4"))
    f.edit_jobs(lambda job: job["versions"].update(numpy="1.26.4"), "simulate")
    f.reseal()


@caught_by("history:pins")
def pins_left_out(f):
    f.edit_recipes(lambda recipes: recipes["simulate"]["pins"].clear())
    f.edit_jobs(lambda job: job["versions"].clear(), "simulate")
    f.reseal()


@caught_by("recipe:schema", "recipe:chain", ...)
def stage_removed(f):
    f.edit_recipes(lambda recipes: recipes.pop("summary"))
    f.reseal(keep=["summary"])


@caught_by("recipe:chain")
def stages_reordered(f):
    f.edit_recipes(lambda recipes: recipes.update(specs=recipes.pop("specs")))
    f.reseal(keep=["chain"])


@caught_by("recipe:chain")
def upstream_key_wrong(f):
    f.edit_recipes(lambda recipes: recipes["summary"]["upstream"].update(simulate="0" * 64))
    f.reseal(keep=["chain"])


@caught_by("recipe:keys")
def row_key_wrong(f):
    f.edit("bundle.json", lambda meta: meta.update(row_key="0" * 64))
    f.sign()


@caught_by("recipe:keys")
def stage_keys_reordered(f):
    f.edit("bundle.json", lambda meta: meta.update(stage_keys=dict(reversed(meta["stage_keys"].items()))))
    f.sign()


@caught_by("recipe:schema")
def unknown_key_in_a_recipe(f):
    f.edit_recipes(lambda recipes: recipes["bundle"].update(reviewed=True))
    f.reseal()


@caught_by("recipe:schema")
def unknown_key_beside_the_plan(f):
    f.edit_meta(lambda meta: meta["plan"].update(tag="prereg"))
    f.reseal()


@caught_by("partners:identity")
def setups_that_differ_between_stages(f):
    f.edit_recipes(lambda recipes: recipes["specs"]["setup"].update(episodes_per_partner=5))
    f.reseal()


@caught_by("recipe:schema", ...)
def recipe_of_odd_shape(f):
    f.edit_recipes(lambda recipes: recipes["simulate"].update(code=["all"], pins=None))
    f.reseal()


# Provenance


@caught_by("eligibility:clean")
def modified_checkout(f):
    f.edit_jobs(lambda job: job.update(dirty=True), "simulate")
    f.bind()


@caught_by("provenance:form")
def clean_by_a_flag_alone(f):
    f.edit_jobs(lambda job: job.update(dirty=True), "simulate")
    f.bind()
    f.edit(PROVENANCE, lambda document: document.update(dirty=False))
    f.edit(PROVENANCE, lambda document: document.update(digest=document_digest(document)))


@caught_by("provenance:form")
def provenance_edited_unsealed(f):
    f.edit_jobs(lambda job: job.update(seconds=1.5), "simulate")


@caught_by("provenance:form", "history:code")
def provenance_of_another_bundle(f):
    f.write(PROVENANCE, (f.world.built / RANDOM / PROVENANCE).read_bytes())


@caught_by("provenance:form")
def job_stage_missing(f):
    f.edit(PROVENANCE, lambda document: document.update(jobs=document["jobs"][1:]))
    f.bind()


@caught_by("provenance:form", "eligibility:clean")
def no_jobs(f):
    f.edit(PROVENANCE, lambda document: document.update(jobs=[]))
    f.bind()


@caught_by("provenance:form", "history:code", "history:pins")
def job_of_an_unknown_stage(f):
    f.edit(PROVENANCE, lambda document: document["jobs"].append({**document["jobs"][0], "stage": "audit"}))
    f.bind()


@caught_by("provenance:form")
def negative_seconds(f):
    f.edit_jobs(lambda job: job.update(seconds=-1.0), "simulate")
    f.bind()


@caught_by("provenance:form")
def whole_seconds(f):
    f.edit_jobs(lambda job: job.update(seconds=1), "simulate")
    f.bind()


@caught_by("provenance:form")
def other_versions_than_pinned(f):
    f.edit_jobs(lambda job: job["versions"].update(numpy="1.26.4"), "simulate")
    f.bind()


@caught_by("provenance:form")
def another_provenance_schema(f):
    f.edit(PROVENANCE, lambda document: document.update(schema="rowproof/provenance/1"))
    f.bind()


@caught_by("encoding:provenance.json", ...)
def dirty_twice(f):
    f.replace_bytes(PROVENANCE, b'"dirty": false', b'"dirty": true,\n  "dirty": false', 1)


@caught_by("provenance:form", "eligibility:clean")
def commit_that_is_an_option(f):
    f.edit_jobs(lambda job: job.update(commit="--upload-pack=x"))
    f.bind()


@caught_by("provenance:form", "eligibility:clean")
def commit_by_a_name(f):
    f.edit_jobs(lambda job: job.update(commit="HEAD"))
    f.bind()


@caught_by("provenance:form", "eligibility:clean")
def commit_shortened(f):
    f.edit_jobs(lambda job: job.update(commit=job["commit"][:12]))
    f.bind()


@caught_by("eligibility:clean")
def commit_unknown_by_its_own_word(f):
    f.edit_jobs(lambda job: job.update(commit="unknown"))
    f.bind()


@caught_by("history:plan", "plan:lock")
def commit_before_the_plan(f):
    f.edit_jobs(lambda job: job.update(commit=f.world.commits["before_plan"]))
    f.bind()


def all_successes_at(f, commit):
    """Every failure is made good, and other code is named that nobody else has."""
    for seed in (0, 1):
        f.edit_records(seed, lambda records: [made_good(r) for r in records if not r["success"]])
    f.edit_recipes(lambda recipes: recipes["simulate"]["code"].update(key="0" * 64))
    f.edit_jobs(lambda job: job.update(commit=commit))
    f.reseal()


@caught_by("records:replay", "history:code")
def all_successes_by_an_older_commit(f):
    all_successes_at(f, f.world.commits["other_code"])


@caught_by("plan:project", "history:commits", ...)
def all_successes_by_a_commit_of_an_unmerged_branch(f):
    f.write("plan.yaml", blob_of(f.world, "side", PLAN))
    all_successes_at(f, f.world.commits["side"])


@caught_by("records:replay")
def all_successes_by_an_absent_commit(f):
    all_successes_at(f, ABSENT)


@caught_by("history:plan")
def one_job_before_the_plan(f):
    f.edit_jobs(lambda job: job.update(commit=f.world.commits["before_plan"]), "simulate")
    f.bind()


@caught_by("history:code")
def commit_with_other_code(f):
    f.edit_jobs(lambda job: job.update(commit=f.world.commits["other_code"]))
    f.bind()


@pytest.mark.parametrize("name", FORGERIES)
def test_forgery_fails_at_the_named_checks(name, world, tmp_path):
    alteration, expected, row = FORGERIES[name]
    copy = ForgedRow(world, row, tmp_path / "results")
    alteration(copy)
    found = failing(copy.verify())
    if expected[-1] is ...:
        assert set(expected[:-1]) <= set(found)
    else:
        assert found == list(expected)


@pytest.mark.parametrize("form", [1, 3], ids=["earlier", "later"])
def test_keys_of_another_form_are_unknown_and_never_vouched_for(form, world, tmp_path):
    copy = ForgedRow(world, ORACLE, tmp_path / "results")
    edit_code(copy, form=form)
    copy.reseal()
    table = copy.verify()
    assert failing(table) == []
    (code,) = (check for check in table.checks if check.id == "history:code")
    assert code.verdict == "unknown"
    assert f"keys of form {form} cannot be made again" in code.found


def test_keys_of_another_form_do_not_hide_forged_records(world, tmp_path):
    """Nothing says that the code at hand made them, so replay does not refuse them; it must not confirm them either."""
    copy = ForgedRow(world, ORACLE, tmp_path / "results")
    copy.edit_record("bad", made_good)
    edit_code(copy, form=1)
    copy.reseal()
    assert verdicts(copy.verify(), "records:replay", "history:code") == ["not proven", "unknown"]


# name -> what the refusal must name, beside the rule
NAMED = {
    "another_producer": ("history:code", "simulate at"),
    "a_producer_of_the_forger_at_a_commit_of_his": ("recipe:places", "other places at ['simulate']"),
    "own_policy_left_out_of_places_and_key": (
        "history:code",
        "rowproof.chamber.handover_egos.ref_script_handover_ego left out of simulate",
    ),
    "other_files": ("history:code", "files of simulate at"),
    "stage_without_a_place": ("provenance:form", "does not show where the code of each stage lay"),
    "code_key_edited": ("history:code", "simulate at"),
    "data_file_made_up": ("history:code", "config/none.yaml at"),
    "pins_left_out": ("history:pins", "simulate: {}, locked {'numpy'"),
    "pins_edited_in_the_provenance_too": ("history:pins", "'numpy': '1.26.4'"),
    "earlier_version_of_the_plan": ("plan:project", "another plan is another board"),
    "plan_of_an_unmerged_branch": ("plan:project", f"no commit of this history has {PLAN} as "),
    "plan_with_another_comment": ("plan:project", f"no commit of this history has {PLAN} as "),
}


@pytest.mark.parametrize("name", NAMED)
def test_refusal_names_the_thing_and_the_rule(name, world, tmp_path):
    alteration, _, row = FORGERIES[name]
    copy = ForgedRow(world, row, tmp_path / "results")
    alteration(copy)
    rule, thing = NAMED[name]
    (check,) = (check for check in copy.verify().failures if check.id == rule)
    assert thing in check.found and check.must


# --- What history alone can tell -----------------------------------------------------------------------------------

HISTORY = ("eligibility:clean", "history:plan", "history:code", "history:pins", "plan:lock")


def test_commit_with_the_same_plan_and_code_is_as_good(world, tmp_path):
    """Which of two commits with equal plan, code and pins made a row cannot be told, and nothing hangs on it."""
    copy = ForgedRow(world, ORACLE, tmp_path / "results")
    assert world.commits["planned"] != world.commits["head"]
    copy.edit_jobs(lambda job: job.update(commit=world.commits["planned"]))
    copy.bind()
    assert {check.verdict for check in copy.verify().checks} == {"pass"}


def test_commit_that_does_not_exist_is_unknown_and_said_so(world, tmp_path):
    copy = ForgedRow(world, ORACLE, tmp_path / "results")
    copy.edit_jobs(lambda job: job.update(commit=ABSENT))
    copy.bind()
    table = copy.verify()
    assert failing(table) == []
    assert set(verdicts(table, *HISTORY)) == {"unknown"}
    (eligibility,) = (check for check in table.checks if check.id == "eligibility:clean")
    assert "not in this clone" in eligibility.found
    assert ABSENT in eligibility.found
    lines: list[str] = []
    table.render(lines.append, verbose=False)
    assert "6 unknown" in lines[-1]


def test_without_a_project_nothing_that_it_must_tell_passes(world, tmp_path):
    copy = ForgedRow(world, ORACLE, tmp_path / "results")
    table = verify_bundle(copy.path, None)
    assert failing(table) == []
    told = (*HISTORY, "plan:project", "board:project", "setup:plan")
    assert set(verdicts(table, *told)) == {"unknown"}


def test_forged_success_that_no_code_or_history_vouches_for_is_not_proven(world, tmp_path):
    """A foreign key and an absent commit take replay and history out of play: the table must not hide it."""
    copy = ForgedRow(world, ORACLE, tmp_path / "results")
    copy.edit_record("bad", made_good)
    code_key_edited(copy)
    copy.edit_jobs(lambda job: job.update(commit=ABSENT))
    copy.bind()
    table = copy.verify()
    assert failing(table) == ["records:replay"] and table.verdict == "not proven" and not table.passed
    assert verdicts(table, "records:replay") == ["not proven"]
    assert set(verdicts(table, *HISTORY)) == {"unknown"}


@pytest.fixture(scope="module")
def lenient(tmp_path_factory):
    """A project whose checkout is modified after its commit, and the bundle that it makes, which says so."""
    root = make_project(tmp_path_factory.mktemp("lenient-project"))
    commit = commit_all(root)
    with (root / HANDOVER_CODE).open("ab") as stream:
        stream.write(b"LENIENT = True\n")
    built = tmp_path_factory.mktemp("lenient-rows")
    make_row(root, built, *ORACLE.split("/"), dirty=True)
    return World(root, built, {"head": commit})


def test_modified_checkout_is_not_eligible(lenient, tmp_path):
    copy = ForgedRow(lenient, ORACLE, tmp_path / "results")
    copy.edit_record("bad", made_good)
    copy.reseal()
    assert failing(copy.verify()) == ["records:replay", "eligibility:clean"]
    assert copy.verify(allow_dirty=True).verdict == "not proven"


def test_modified_checkout_that_calls_itself_clean_is_caught_by_its_code(lenient, tmp_path):
    copy = ForgedRow(lenient, ORACLE, tmp_path / "results")
    copy.edit_record("bad", made_good)
    copy.edit_jobs(lambda job: job.update(dirty=False))
    copy.reseal()
    assert failing(copy.verify()) == ["records:replay", "history:code"]


def test_modified_checkout_that_names_the_committed_code_is_caught_by_replay(lenient, tmp_path):
    """Giving the modified code the key of the committed one makes the records disagree with what they claim."""
    copy = ForgedRow(lenient, ORACLE, tmp_path / "results")
    honest = make_row_of_commit(lenient, tmp_path / "honest")
    copy.edit_record("bad", made_good)
    for name in ("recipe.json", PROVENANCE):
        copy.write(name, (honest / name).read_bytes())
    copy.reseal()
    assert failing(copy.verify()) == ["records:replay"]


def make_row_of_commit(world, results):
    """The bundle that the committed state of a modified project makes."""
    code = world.root / HANDOVER_CODE
    modified = code.read_bytes()
    code.write_bytes(modified.removesuffix(b"LENIENT = True\n"))
    try:
        return make_row(world.root, results, *ORACLE.split("/"))
    finally:
        code.write_bytes(modified)


# --- Valid, though unusual -----------------------------------------------------------------------------------------


def test_line_separator_within_a_string_is_no_end_of_line(tmp_path):
    root = make_project(tmp_path / "project")
    plan = yaml.safe_load((root / PLAN).read_text())
    plan["cell"]["condition"] = "anchor\u2028cell"
    (root / PLAN).write_text(yaml.safe_dump(plan, sort_keys=False))
    commit_all(root)
    folder = make_row(root, tmp_path / "results", *ORACLE.split("/"))
    assert "\u2028".encode() in (folder / "episodes_seed0.jsonl").read_bytes()
    assert {check.verdict for check in verify_bundle(folder, root).checks} == {"pass"}


def test_line_separator_in_the_name_of_a_platform(world, tmp_path):
    copy = ForgedRow(world, ORACLE, tmp_path / "results")
    copy.edit_jobs(lambda job: job.update(platform="Linux\u2028x86"))
    copy.bind()
    assert failing(copy.verify()) == ["provenance:form"]


def test_copy_of_a_bundle_outside_results_is_judged_by_itself(world, tmp_path):
    copy = shutil.copytree(world.built / ORACLE, tmp_path / "b-any")
    assert failing(verify_bundle(copy, world.root)) == []
