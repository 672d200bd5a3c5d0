"""Each test alters one thing in a sealed copy of a published bundle and names the check that catches it."""

import json
import os
import shutil
import subprocess

import pytest
from forger import ADMISSION, SUMS, Forged, forged, reseal
from forgeries.seal import sha256
from helpers import shared_data
from rowproof.errors import RowproofError
from rowproof.evidence.published import verify_admission, verify_published
from rowproof.git import blob_id
from rowproof.records import encode_document

HANDOVER = "handover-v1/b-stat-2026-07-06"
ORACLE = "handover-v1/ref-script-2026-07-06"
CARRY = "cocarry-v1/power-pilot-ref-script-2026-07-05"
LEARNED = "cocarry-v1/b-aht-2026-07-06"
PAIR = "cocarry-v1/b-joint-seed4-2026-07-06"


def failing(path, **options):
    """Ids of the failing checks."""
    return [check.id for check in verify_published(path, **options).failures]


def good(records):
    return next(record for record in records if record["success"] and not record["force_peak"].is_integer())


# --- Alterations: a function of the forged copy, which seals it itself -------------------------------------------


def empty_sums(f):
    f.write(SUMS, b"")


def shortened_sums(f):
    f.write(SUMS, b"".join(f.read(SUMS).splitlines(keepends=True)[2:]))


def unlisted_bundle_json_rewritten(f):
    f.edit_meta(lambda meta: meta.update(git_sha="0" * 40, package_version="9.9.9"))
    lines = f.read(SUMS).splitlines(keepends=True)
    f.write(SUMS, b"".join(line for line in lines if b"bundle.json" not in line))


def repeated_sums_line(f):
    lines = f.read(SUMS).splitlines(keepends=True)
    f.write(SUMS, b"".join([*lines[:1], *lines]))


def edited_plan(f):
    f.replace_bytes("prereg.yaml", b"n_resamples: 2000", b"n_resamples: 2000 # as agreed")
    f.reseal()


def foreign_published_plan(f):
    plan = shared_data("chamber-bundles", "spikes", "preregistration", "benchmark", "cocarry_baselines_v1.yaml")
    f.write("prereg.yaml", plan.read_bytes())
    f.reseal()


def foreign_plan_with_its_own_tag(f):
    foreign_published_plan(f)
    f.edit_meta(lambda meta: meta.update(prereg_git_tag="prereg-cocarry-baselines-v1-rev2-2026-07-05"))
    f.reseal()


def crlf_plan(f):
    f.write("prereg.yaml", f.read("prereg.yaml").replace(b"\n", b"\r\n"))
    f.reseal(blob=False)


def crlf_plan_with_new_blob(f):
    f.write("prereg.yaml", f.read("prereg.yaml").replace(b"\n", b"\r\n"))
    f.reseal()


def orphan_plan(f):
    f.edit_meta(lambda meta: meta.update(prereg_git_tag=None, prereg_blob_sha=None))
    f.reseal()


def unpreregistered_but_command_says_plan(f):
    (f.path / "prereg.yaml").unlink()
    orphan_plan(f)


def plan_removed(f):
    (f.path / "prereg.yaml").unlink()
    f.reseal()


def null_blob(f):
    f.edit_meta(lambda meta: meta.update(prereg_blob_sha=None))
    f.reseal(blob=False)


def plan_with_repeated_key(f):
    f.write("prereg.yaml", f.read("prereg.yaml") + b"notes: again\n")
    f.reseal()


def tag_of_another_plan(f):
    f.edit_meta(lambda meta: meta.update(prereg_git_tag="prereg-admission-cocarry-2026-07-05"))
    f.reseal()


def lost_and_doubled_record(f):
    f.edit_records(0, lambda records: records.pop())
    f.edit_records(1, lambda records: records.append(records[-1]))
    f.reseal()


def foreign_seed_field(f):
    f.edit_records(0, lambda records: records[3].update(seed=7))
    f.reseal()


def unscheduled_episode_file(f):
    f.write("episodes_seed9.jsonl", f.read("episodes_seed0.jsonl"))
    f.reseal()


def padded_episode_file(f):
    f.write("episodes_seed00.jsonl", f.read("episodes_seed0.jsonl"))
    f.reseal()


def seed_scheduled_twice(f):
    f.edit_meta(lambda meta: meta["seed_schedule"].update(seeds=[0, 1, 2, 3, 4, 4]))
    f.reseal()


def seed_dropped_file_left(f):
    f.edit_meta(lambda meta: meta["seed_schedule"].update(seeds=[0, 1, 2, 3]))
    f.reseal()


def seed_dropped(f):
    f.edit_meta(lambda meta: meta["seed_schedule"].update(seeds=[0, 1, 2, 3]))
    (f.path / "episodes_seed4.jsonl").unlink()
    f.replace_in_command("--seeds 5", "--seeds 4")
    f.reseal()


def seeds_reordered(f):
    f.edit_meta(lambda meta: meta["seed_schedule"].update(seeds=[4, 3, 2, 1, 0]))
    f.replace_in_command("--seeds 5", "--seeds 4,3,2,1,0")
    f.reseal()


def no_seeds(f):
    f.edit_meta(lambda meta: meta["seed_schedule"].update(seeds=[]))
    f.reseal(summary=False)


def fewer_episodes(f):
    for seed in range(5):
        records = f.records(seed)
        f.write_records(seed, [r | {"episode_idx": i} for i, r in enumerate(records[:25] + records[50:75])])
    f.edit_meta(lambda meta: meta["seed_schedule"].update(episodes_per_seed=50))
    f.replace_in_command("--episodes 50", "--episodes 25")
    f.reseal()


def wrong_episodes_per_seed(f):
    f.edit_meta(lambda meta: meta["seed_schedule"].update(episodes_per_seed=99))
    f.reseal()


def wrong_episode_count(f):
    f.edit_meta(lambda meta: meta["summary"].update(n_episodes=501))
    f.reseal(summary=False)


def one_resample(f):
    f.edit_meta(lambda meta: meta["summary"].update(n_resamples=1))
    f.replace_in_command(" --out", " --n-resamples 1 --out")
    f.reseal()


def searched_bootstrap_seed(f):
    f.edit_meta(lambda meta: meta["summary"].update(bootstrap_root_seed=12))
    f.reseal()


def other_root_seed(f):
    f.edit_meta(lambda meta: meta["seed_schedule"].update(root_seed=3))
    f.reseal()


def no_resamples(f):
    f.edit_meta(lambda meta: meta["summary"].update(n_resamples=0))
    f.sign()


def endless_resamples(f):
    f.edit_meta(lambda meta: meta["summary"].update(n_resamples=10**12))
    f.sign()


def negative_bootstrap_seed(f):
    f.edit_meta(lambda meta: meta["summary"].update(bootstrap_root_seed=-1))
    f.sign()


def changed_parameters(f):
    f.edit_seats(lambda seats: seats[0]["extra"].update(grasp_pose_bias_deg="5.0"))
    f.reseal()


def changed_parameters_and_uri(f):
    def change(seats):
        seats[0]["extra"]["grasp_pose_bias_deg"] = "5.0"
        params = {key: value for key, value in seats[0]["extra"].items() if key != "variant"}
        seats[0]["weights_uri"] = "member://handover_presenter/" + sha256(json.dumps(params, sort_keys=True).encode())

    f.edit_seats(change)
    f.reseal()


def changed_seat_geometry(f):
    f.edit_seats(lambda seats: seats[0]["extra"].update(variant="matched"))
    f.reseal()


def no_partners(f):
    f.write_seats([])
    f.reseal()


def partner_renamed(f):
    f.edit_seats(lambda seats: seats[0].update(name="presenter_mismatch_15"))
    f.reseal()


def partners_swapped(f):
    f.edit_seats(lambda seats: seats.reverse())
    f.reseal()


def unknown_class(f):
    f.edit_seats(lambda seats: seats[0].update(class_name="presenter_of_my_own"))
    f.reseal()


def identity_only(f):
    f.edit_meta(lambda meta: meta["partner_hashes"].update(presenter_mismatch_30="0" * 16))
    f.reseal(identities=False)


def partners_not_a_list(f):
    f.write_seats({"name": "presenter_mismatch_30"})
    f.reseal(identities=False)


def partner_extra_not_text(f):
    f.edit_seats(lambda seats: seats[0]["extra"].update(grasp_pose_bias_deg=30.0))
    f.reseal()


def version_four(f):
    f.edit_meta(lambda meta: meta.update(schema_version=4))
    f.sign()


def historical_version(f):
    f.edit_meta(lambda meta: meta.update(schema_version=2))
    f.sign()


def repeated_json_key(f):
    f.replace_bytes("bundle.json", b'"dirty": false,', b'"dirty": true,\n  "dirty": false,')
    f.sign()


def unknown_key(f):
    f.edit_meta(lambda meta: meta.update(note="trust me"))
    f.sign()


def null_statistic(f):
    f.edit_meta(lambda meta: meta["summary"].update(success_iqm=None))
    f.sign()


def number_as_text(f):
    f.edit_meta(lambda meta: meta["seed_schedule"].update(root_seed="0"))
    f.sign()


def keys_reordered(f):
    f.edit_meta(lambda meta: meta.update(task_id=meta.pop("task_id")))
    f.sign()


def reindented_bundle_json(f):
    f.write("bundle.json", (json.dumps(f.meta, indent=4) + "\n").encode())
    f.sign()


def truncated_bundle_json(f):
    f.write("bundle.json", f.read("bundle.json")[:300])
    f.sign()


def byte_order_mark_in_bundle_json(f):
    f.write("bundle.json", b"\xef\xbb\xbf" + f.read("bundle.json"))
    f.sign()


def deep_nesting(f):
    f.replace_bytes("bundle.json", b'"dirty": false', b'"dirty": ' + b"[" * 900 + b"]" * 900)
    f.sign()


def no_bundle_json(f):
    (f.path / "bundle.json").unlink()


def dirty(f):
    f.edit_meta(lambda meta: meta.update(dirty=True))
    f.reseal()


def unknown_commit(f):
    f.edit_meta(lambda meta: meta.update(git_sha="unknown"))
    f.reseal()


def name_leading_out(f):
    (f.path.parent / "outside.txt").write_bytes(b"x\n")
    f.edit_meta(lambda meta: meta["manifest"].update({"../outside.txt": sha256(b"x\n")}))
    f.sign()


def linked_episode_file(f):
    moved = f.path.parent / "moved.jsonl"
    shutil.move(f.path / "episodes_seed0.jsonl", moved)
    (f.path / "episodes_seed0.jsonl").symlink_to(moved)
    f.reseal(manifest=False)


def named_pipe(f):
    # Opening it for reading would wait for a writer for ever.
    os.mkfifo(f.path / "pipe")


def extra_file_sealed(f):
    f.write("notes.md", b"more\n")
    f.sign()


def extra_file_in_manifest(f):
    # Sealed in both layers, an extra file is just another file; a hidden one in the manifest alone is not.
    f.write(".hidden", b"more\n")
    f.reseal()
    lines = f.read(SUMS).splitlines(keepends=True)
    f.write(SUMS, b"".join(line for line in lines if b".hidden" not in line))


def sub_directory(f):
    (f.path / "more").mkdir()


def missing_episode_file(f):
    (f.path / "episodes_seed0.jsonl").unlink()
    f.sign()


def truncated_episode_file(f):
    f.write("episodes_seed0.jsonl", f.read("episodes_seed0.jsonl")[:-40])
    f.reseal(summary=False)


def blank_line(f):
    f.replace_bytes("episodes_seed0.jsonl", b"\n", b"\n\n", 1)
    f.reseal()


def crlf_records(f):
    f.replace_bytes("episodes_seed0.jsonl", b"\n", b"\r\n")
    f.reseal()


def no_final_newline(f):
    f.write("episodes_seed0.jsonl", f.read("episodes_seed0.jsonl")[:-1])
    f.reseal()


def byte_order_mark_in_records(f):
    f.write("episodes_seed0.jsonl", b"\xef\xbb\xbf" + f.read("episodes_seed0.jsonl"))
    f.reseal(summary=False)


def spaced_record(f):
    f.replace_bytes("episodes_seed0.jsonl", b'"seed":0', b'"seed": 0', 1)
    f.reseal()


def record_keys_reordered(f):
    f.edit_records(0, lambda records: records[0].update(seed=records[0].pop("seed")))
    f.reseal()


def float_with_other_digits(f):
    f.replace_bytes("episodes_seed0.jsonl", b'"constraint_violation_peak":0.0', b'"constraint_violation_peak":0.00', 1)
    f.reseal()


def partners_encoded_otherwise(f):
    f.write("partners.json", (json.dumps(f.seats) + "\n").encode())
    f.reseal()


def undecodable_partners(f):
    f.write("partners.json", b"\xff" + f.read("partners.json"))
    f.reseal(identities=False)


def undecodable_command(f):
    f.write("REPRO.txt", b"\xff" + f.read("REPRO.txt"))
    f.reseal()


def undecodable_plan(f):
    f.write("prereg.yaml", b"\xff" + f.read("prereg.yaml"))
    f.reseal()


def undecodable_sums(f):
    f.write(SUMS, b"\xff" + f.read(SUMS))


def undecodable_records(f):
    f.replace_bytes("episodes_seed0.jsonl", b"handover_place_anchor", b"handover\xffplace_anchor", 1)
    f.reseal(summary=False)


def not_a_number(f):
    value = json.dumps(f.records(0)[0]["force_peak"]).encode()
    f.replace_bytes("episodes_seed0.jsonl", b'"force_peak":' + value, b'"force_peak":NaN', 1)
    f.reseal()


def beyond_a_double(f):
    value = json.dumps(f.records(0)[0]["force_peak"]).encode()
    f.replace_bytes("episodes_seed0.jsonl", b'"force_peak":' + value, b'"force_peak":1e999', 1)
    f.reseal()


def success_as_number(f):
    f.edit_records(0, lambda records: records[0].update(success=1))
    f.reseal()


def negative_force(f):
    f.edit_records(0, lambda records: records[0].update(force_peak=-1.5))
    f.reseal()


def force_of_other_residuals(f):
    f.edit_records(0, lambda records: records[0].update(force_peak=records[0]["force_peak"] + 0.25))
    f.reseal()


def success_flipped(f):
    bad = next(i for i, record in enumerate(f.records(0)) if not record["success"])
    f.edit_records(0, lambda records: records[bad].update(success=True))
    f.reseal()


def success_flipped_with_its_mode(f):
    def change(records):
        bad = next(record for record in records if not record["success"])
        bad["success"] = True
        bad["metadata"]["failure_mode"] = "none"

    f.edit_records(0, change)
    f.reseal()


def repeated_good_episode(f):
    def change(records):
        best = good(records)
        for record in records:
            if not record["success"]:
                record.update(success=True, force_peak=best["force_peak"])
                measured = ("residual_lateral_m", "residual_angular_deg", "failure_mode")
                record["metadata"].update({key: best["metadata"][key] for key in measured})

    f.edit_records(2, change)
    f.reseal()


def copied_member_block(f):
    # The easier member's episodes, sold as the harder member's too.
    for seed in range(5):
        records = f.records(seed)
        for easy, hard in zip(records[:50], records[50:], strict=True):
            name = hard["metadata"]["member"]
            hard.update(success=easy["success"], force_peak=easy["force_peak"])
            hard["metadata"] = {**easy["metadata"], "member": name}
        f.write_records(seed, records)
    f.reseal()


def members_relabelled(f):
    def change(records):
        for record in records:
            record["metadata"]["member"] = "presenter_mismatch_30"

    f.edit_records(0, change)
    f.reseal()


def member_blocks_exchanged(f):
    for seed in range(5):
        records = f.records(seed)
        f.write_records(seed, [r | {"episode_idx": i} for i, r in enumerate(records[50:] + records[:50])])
    f.reseal()


def other_start_state(f):
    f.edit_records(1, lambda records: records[5].update(initial_state_seed=1004))
    f.reseal()


def shuffled_indices(f):
    f.edit_records(1, lambda records: records.__setitem__(slice(0, 2), records[1::-1]))
    f.reseal()


def extra_metadata_key(f):
    f.edit_records(0, lambda records: records[0]["metadata"].update(comment="lucky"))
    f.reseal()


def other_condition(f):
    for seed in range(5):
        f.edit_records(seed, lambda records: [r["metadata"].update(condition="easier_cell") for r in records])
    f.reseal()


def policy_in_records(f):
    f.edit_records(0, lambda records: records[0]["metadata"].update(policy="random"))
    f.reseal()


def policy_swapped_in_bundle_json(f):
    f.edit_meta(lambda meta: meta.update(policy_id="ref_script_handover_ego"))
    f.reseal()


def policy_swapped_with_command(f):
    f.edit_meta(lambda meta: meta.update(policy_id="ref_script_handover_ego"))
    f.replace_in_command("--policy static", "--policy ref_script_handover_ego")
    f.reseal()


def policy_outside_the_plan(f):
    f.edit_meta(lambda meta: meta.update(policy_id="my_method"))
    f.replace_in_command("--policy static", "--policy my_method")
    for seed in range(5):
        f.edit_records(seed, lambda records: [r["metadata"].update(policy="my_method") for r in records])
    f.reseal()


def other_task(f):
    f.edit_meta(lambda meta: meta.update(task_id="cocarry"))
    f.replace_in_command("--task handover_place", "--task cocarry")
    f.reseal()


def other_task_version(f):
    f.edit_meta(lambda meta: meta.update(task_version=2))
    f.reseal()


def other_partner_set(f):
    f.edit_meta(lambda meta: meta.update(partner_set_id="cocarry_partners@v1"))
    f.replace_in_command("handover_place_partners@v1", "cocarry_partners@v1")
    f.reseal()


def command_rewritten(f):
    f.edit_meta(lambda meta: meta.update(repro_command="chamber-eval run --task handover_place"))
    f.reseal()


def command_file_only(f):
    f.write("REPRO.txt", b"chamber-eval run\n")
    f.reseal()


def exclusion_removed_from_command(f):
    f.replace_in_command(" --exclude-member presenter_offgrid_b", "")
    f.reseal()


def exclusion_exchanged_in_command(f):
    f.replace_in_command("presenter_mismatch_15", "presenter_mismatch_45")
    f.reseal()


def unknown_option(f):
    f.replace_in_command(" --out", " --easy --out")
    f.reseal()


def digit_of_the_mean(f):
    f.edit_meta(lambda meta: meta["summary"].update(success_mean=0.284))
    f.reseal(summary=False)


def last_bit_of_the_iqm(f):
    f.edit_meta(lambda meta: meta["summary"].update(success_iqm=meta["summary"]["success_iqm"] + 1e-16))
    f.reseal(summary=False)


def wider_interval(f):
    f.edit_meta(lambda meta: meta["summary"].update(success_ci_high=0.2))
    f.reseal(summary=False)


FORGERIES = {
    empty_sums: "strict:sha256sums:coverage",
    shortened_sums: "strict:sha256sums:coverage",
    unlisted_bundle_json_rewritten: "strict:sha256sums:coverage",
    repeated_sums_line: "strict:sha256sums:coverage",
    edited_plan: "strict:prereg:known",
    foreign_published_plan: "strict:prereg:known",
    foreign_plan_with_its_own_tag: "strict:prereg:plan",
    crlf_plan: "prereg:blob",
    crlf_plan_with_new_blob: "strict:prereg:known",
    orphan_plan: "strict:prereg:orphan",
    unpreregistered_but_command_says_plan: "strict:repro:text",
    plan_removed: "prereg:copy",
    null_blob: "prereg:blob",
    plan_with_repeated_key: "strict:prereg:plan",
    tag_of_another_plan: "strict:prereg:plan",
    lost_and_doubled_record: "strict:schedule:records",
    foreign_seed_field: "strict:schedule:records",
    unscheduled_episode_file: "strict:schedule:seeds",
    padded_episode_file: "strict:schedule:seeds",
    seed_scheduled_twice: "strict:schedule:seeds",
    seed_dropped_file_left: "strict:schedule:seeds",
    seed_dropped: "strict:prereg:cell",
    seeds_reordered: "strict:prereg:cell",
    no_seeds: "strict:schedule:seeds",
    fewer_episodes: "strict:prereg:cell",
    wrong_episodes_per_seed: "summary:n_episodes",
    wrong_episode_count: "summary:n_episodes",
    one_resample: "strict:summary:params",
    searched_bootstrap_seed: "strict:summary:params",
    other_root_seed: "strict:prereg:cell",
    no_resamples: "summary:recompute",
    endless_resamples: "summary:recompute",
    negative_bootstrap_seed: "summary:recompute",
    changed_parameters: "strict:partners:digest",
    changed_parameters_and_uri: "strict:partners:roster",
    changed_seat_geometry: "strict:partners:roster",
    no_partners: "strict:partners:nonempty",
    partner_renamed: "strict:partners:roster",
    partners_swapped: "strict:partners:roster",
    unknown_class: "partner:presenter_mismatch_30:registered",
    identity_only: "partner:hashes",
    partners_not_a_list: "partners",
    partner_extra_not_text: "partners",
    version_four: "strict:bundle:version",
    historical_version: "bundle:schema",
    repeated_json_key: "bundle:schema",
    unknown_key: "bundle:schema",
    null_statistic: "bundle:schema",
    number_as_text: "bundle:schema",
    keys_reordered: "bundle:schema",
    reindented_bundle_json: "strict:encoding",
    truncated_bundle_json: "bundle:schema",
    byte_order_mark_in_bundle_json: "bundle:schema",
    deep_nesting: "bundle:schema",
    no_bundle_json: "bundle",
    dirty: "bundle:eligibility",
    unknown_commit: "bundle:eligibility",
    name_leading_out: "strict:files:plain",
    linked_episode_file: "strict:files:plain",
    named_pipe: "strict:files:plain",
    extra_file_sealed: "manifest:membership",
    extra_file_in_manifest: "strict:sha256sums:coverage",
    sub_directory: "manifest:membership",
    missing_episode_file: "manifest:episodes_seed0.jsonl",
    truncated_episode_file: "summary:recompute",
    blank_line: "strict:encoding",
    crlf_records: "strict:encoding",
    no_final_newline: "strict:encoding",
    byte_order_mark_in_records: "strict:encoding",
    spaced_record: "strict:encoding",
    record_keys_reordered: "strict:encoding",
    float_with_other_digits: "strict:encoding",
    partners_encoded_otherwise: "strict:encoding",
    undecodable_partners: "partners",
    undecodable_command: "strict:encoding",
    undecodable_plan: "strict:prereg:plan",
    undecodable_sums: "sha256sums",
    undecodable_records: "summary:recompute",
    not_a_number: "summary:recompute",
    beyond_a_double: "summary:recompute",
    success_as_number: "summary:recompute",
    negative_force: "strict:records:values",
    force_of_other_residuals: "strict:records:values",
    success_flipped: "strict:records:values",
    success_flipped_with_its_mode: "strict:records:values",
    repeated_good_episode: "strict:records:distinct",
    copied_member_block: "strict:records:distinct",
    members_relabelled: "strict:records:metadata",
    member_blocks_exchanged: "strict:records:metadata",
    other_start_state: "strict:schedule:records",
    shuffled_indices: "strict:schedule:records",
    extra_metadata_key: "strict:records:metadata",
    other_condition: "strict:records:metadata",
    policy_in_records: "strict:records:metadata",
    policy_swapped_in_bundle_json: "strict:repro:text",
    policy_swapped_with_command: "strict:records:metadata",
    policy_outside_the_plan: "strict:prereg:cell",
    other_task: "strict:prereg:plan",
    other_task_version: "strict:prereg:cell",
    other_partner_set: "strict:prereg:cell",
    command_rewritten: "strict:repro:text",
    command_file_only: "strict:repro:text",
    exclusion_removed_from_command: "strict:repro:text",
    exclusion_exchanged_in_command: "strict:prereg:cell",
    unknown_option: "strict:repro:text",
    digit_of_the_mean: "summary:success_mean",
    last_bit_of_the_iqm: "strict:summary:exact",
    wider_interval: "summary:success_ci_high",
}


# No other check sees these, so the row that the name stands for does the work.
ALONE = {
    edited_plan,
    last_bit_of_the_iqm,
    repeated_good_episode,
    copied_member_block,
    changed_seat_geometry,
    shortened_sums,
    version_four,
    reindented_bundle_json,
    truncated_bundle_json,
    no_bundle_json,
    force_of_other_residuals,
    other_start_state,
    changed_parameters,
    dirty,
    command_file_only,
}


@pytest.mark.parametrize("alter", FORGERIES, ids=lambda alter: alter.__name__)
def test_forged_handover_bundle_fails_at_the_named_check(alter, tmp_path):
    copy = forged(tmp_path, HANDOVER)
    alter(copy)
    failures = failing(copy.path)
    assert FORGERIES[alter] in failures
    if alter in ALONE:
        assert failures == [FORGERIES[alter]]


@pytest.mark.parametrize("source", [HANDOVER, ORACLE, CARRY, PAIR])
def test_resealing_alone_changes_nothing(source, tmp_path):
    copy = forged(tmp_path, source)
    before = {path.name: path.read_bytes() for path in copy.path.iterdir()}
    copy.reseal()
    assert {path.name: path.read_bytes() for path in copy.path.iterdir()} == before
    assert failing(copy.path) == []


def test_line_separators_inside_strings_do_not_break_lines(tmp_path):
    copy = forged(tmp_path, HANDOVER)
    copy.edit_records(0, lambda records: records[0]["metadata"].update(condition="a\u2028b"))
    copy.reseal()
    failures = failing(copy.path)
    assert failures == ["strict:records:metadata"]


def test_dirty_bundle_passes_when_allowed(tmp_path):
    copy = forged(tmp_path, HANDOVER)
    dirty(copy)
    assert failing(copy.path, allow_dirty=True) == []


def test_unpreregistered_bundle_may_exist(tmp_path):
    copy = forged(tmp_path, HANDOVER)
    (copy.path / "prereg.yaml").unlink()
    copy.edit_meta(lambda meta: meta.update(prereg_git_tag=None, prereg_blob_sha=None))
    copy.set_command(copy.meta["repro_command"].partition(" --prereg")[0])
    copy.reseal()
    assert failing(copy.path) == []


def test_plan_under_an_unheard_tag_is_unknown_not_passed(tmp_path):
    copy = forged(tmp_path, HANDOVER)
    old, new = b"prereg-handover-baselines-v1-2026-07-06", b"prereg-invented"
    copy.replace_bytes("prereg.yaml", old, new)
    copy.edit_meta(lambda meta: meta.update(prereg_git_tag=new.decode()))
    copy.reseal()
    verdicts = {check.id: check.verdict for check in verify_published(copy.path).checks}
    assert verdicts["strict:prereg:known"] == verdicts["prereg:tag"] == verdicts["strict:prereg:at_tag"] == "unknown"


# --- Other producers ---------------------------------------------------------------------------------------------


def test_wrong_weights_of_a_pair(tmp_path):
    copy = forged(tmp_path, PAIR)
    uri = "local://artifacts/e9040cbc3c3b2456_step150000.pt"
    copy.replace_in_command(f"--partner-weights {uri}", "--partner-weights local://artifacts/other.pt")
    copy.edit_seats(lambda seats: seats[0].update(weights_uri="local://artifacts/other.pt"))
    copy.reseal()
    assert failing(copy.path) == ["strict:repro:text"]


def test_pair_of_a_seed_outside_the_plan(tmp_path):
    copy = forged(tmp_path, PAIR)
    records = [r | {"seed": 7, "initial_state_seed": r["initial_state_seed"] + 3000} for r in copy.records(4)]
    (copy.path / "episodes_seed4.jsonl").unlink()
    copy.write_records(7, records)
    copy.edit_meta(lambda meta: meta["seed_schedule"].update(seeds=[7]))
    copy.replace_in_command("--seeds 4,", "--seeds 7,")
    copy.reseal()
    assert failing(copy.path) == ["strict:prereg:cell"]


def test_carry_success_above_the_stress_limit(tmp_path):
    copy = forged(tmp_path, CARRY)
    copy.edit_records(0, lambda records: records[0].update(force_peak=130.0))
    copy.reseal()
    assert failing(copy.path) == ["strict:records:values"]


def test_carry_failure_before_the_horizon(tmp_path):
    copy = forged(tmp_path, CARRY)
    copy.edit_records(0, lambda records: records[0].update(success=False))
    copy.reseal()
    assert failing(copy.path) == ["strict:records:values"]


def test_carry_success_far_from_the_goal(tmp_path):
    copy = forged(tmp_path, CARRY)
    copy.edit_records(0, lambda records: records[0]["metadata"].update(centroid_to_goal=0.11))
    copy.reseal()
    assert failing(copy.path) == ["strict:records:values"]


def test_ego_seat_left_out(tmp_path):
    copy = forged(tmp_path, CARRY)
    copy.edit_seats(lambda seats: seats.pop(0))
    copy.reseal()
    assert failing(copy.path) == ["strict:partners:roster"]


def learned_in_its_tree(tmp_path):
    results = shared_data("chamber-bundles", "spikes", "results", "benchmark", "cocarry-v1")
    target = tmp_path / "spikes" / "results" / "benchmark" / "cocarry-v1"
    shutil.copytree(results / "selection", target / "selection")
    return Forged(results / "b-aht-2026-07-06", target / "b-aht-2026-07-06"), target / "selection"


def test_learned_row_without_its_selection_is_unknown(tmp_path):
    copy = forged(tmp_path, LEARNED)
    table = verify_published(copy.path)
    assert table.passed
    assert "strict:selection:manifest" in [check.id for check in table.checks if check.verdict == "unknown"]


def test_learned_row_with_another_checkpoint(tmp_path):
    copy, _ = learned_in_its_tree(tmp_path)
    old, new = "4f114f4bf72c1125_step100000", "4f114f4bf72c1125_step250000"
    for name in ("episodes_seed0.jsonl", "partners.json"):
        copy.replace_bytes(name, old.encode(), new.encode())
    copy.reseal()
    assert failing(copy.path) == ["strict:selection:manifest"]


def test_selection_that_breaks_its_rule(tmp_path):
    copy, selection = learned_in_its_tree(tmp_path)
    artefact = selection / "b-aht-seed0.json"
    artefact.write_bytes(artefact.read_bytes().replace(b'"compliant_successes": 10', b'"compliant_successes": 12', 1))
    assert failing(copy.path) == ["strict:selection:manifest"]


def test_selection_is_the_one_committed_before_the_run(tmp_path):
    copy, selection = learned_in_its_tree(tmp_path)
    manifest = selection / "b-aht_selected_manifest.json"
    published = manifest.read_bytes()
    git(tmp_path, "init", "-q", "-b", "main")
    verdicts = []
    for committed in (published, published.replace(b"step100000", b"step50000")):
        manifest.write_bytes(committed)
        git(tmp_path, "add", "spikes/results/benchmark/cocarry-v1/selection")
        git(tmp_path, "commit", "-q", "-m", "selection")
        manifest.write_bytes(published)
        copy.edit_meta(lambda meta: meta.update(git_sha=git(tmp_path, "rev-parse", "HEAD")))
        copy.reseal()
        table = verify_published(copy.path, repo=tmp_path)
        verdicts += [check.verdict for check in table.checks if check.id == "strict:selection:committed"]
    assert verdicts == ["pass", "fail"]


def test_seed_policy_that_changes_within_a_seed(tmp_path):
    copy = forged(tmp_path, LEARNED)
    copy.edit_records(0, lambda records: records[9]["metadata"].update(seed_policy="happo:local://artifacts/x.pt"))
    copy.reseal()
    assert failing(copy.path) == ["strict:records:metadata"]


def test_not_a_directory_is_a_usage_error(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "file", tmp_path / "absent"):
        with pytest.raises(RowproofError, match="must be a directory"):
            verify_published(path)


# --- Tags ----------------------------------------------------------------------------------------------------------

PLAN = "spikes/preregistration/benchmark/handover_baselines_v1.yaml"
TAG = "prereg-handover-baselines-v1-2026-07-06"
TAG_ROWS = ("prereg:tag", "strict:prereg:at_tag", "strict:prereg:order")


def git(repo, *arguments):
    environment = {
        "PATH": os.environ["PATH"],
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_{what}": "test@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        **{f"GIT_{who}_DATE": "2026-07-06T00:00:00Z" for who in ("AUTHOR", "COMMITTER")},
    }
    command = ["git", "-C", os.fspath(repo), *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def tagged(tmp_path):
    """A repository whose tag holds the published plan, and a copy of a bundle launched one commit later."""
    repo = tmp_path / "repo"
    (repo / PLAN).parent.mkdir(parents=True)
    shutil.copyfile(shared_data("chamber-bundles", *PLAN.split("/")), repo / PLAN)
    git(tmp_path, "init", "-q", "-b", "main", os.fspath(repo))
    git(repo, "add", ".")
    git(repo, "commit", "-q", "-m", "plan")
    git(repo, "tag", "-a", "-m", "plan", TAG)
    git(repo, "commit", "-q", "--allow-empty", "-m", "launch")
    copy = forged(tmp_path, HANDOVER)
    copy.edit_meta(lambda meta: meta.update(git_sha=git(repo, "rev-parse", "HEAD")))
    copy.reseal()
    return repo, copy


def tag_verdicts(repo, copy):
    return [check.verdict for check in verify_published(copy.path, repo=repo).checks if check.id in TAG_ROWS]


def test_rebuilt_tag_has_the_published_blob(tagged):
    repo, copy = tagged
    assert git(repo, "rev-parse", f"{TAG}:{PLAN}") == copy.meta["prereg_blob_sha"]


def test_tag_rows_pass_with_the_tag(tagged):
    assert tag_verdicts(*tagged) == ["pass", "pass", "pass"]


def test_moved_tag_fails(tagged):
    repo, copy = tagged
    (repo / PLAN).write_bytes(b"edited\n")
    git(repo, "commit", "-q", "-a", "-m", "edit")
    git(repo, "tag", "-f", "-a", "-m", "moved", TAG)
    assert tag_verdicts(repo, copy) == ["pass", "fail", "fail"]


def test_plan_edited_after_the_tag_fails(tagged):
    repo, copy = tagged
    edited_plan(copy)
    assert tag_verdicts(repo, copy) == ["pass", "fail", "pass"]


def test_tag_after_the_launch_fails(tagged):
    repo, copy = tagged
    git(repo, "commit", "-q", "--allow-empty", "-m", "later")
    git(repo, "tag", "-f", "-a", "-m", "later", TAG)
    assert tag_verdicts(repo, copy) == ["pass", "pass", "fail"]


def test_absent_tag_is_unknown(tagged):
    repo, copy = tagged
    git(repo, "tag", "-d", TAG)
    assert tag_verdicts(repo, copy) == ["unknown", "unknown", "unknown"]


def test_branch_of_that_name_is_no_tag(tagged):
    repo, copy = tagged
    git(repo, "tag", "-d", TAG)
    git(repo, "branch", TAG)
    assert tag_verdicts(repo, copy) == ["unknown", "unknown", "unknown"]


def test_absent_launch_commit_is_unknown(tagged):
    repo, copy = tagged
    copy.edit_meta(lambda meta: meta.update(git_sha="6a7325ef" + "0" * 32))
    copy.reseal()
    assert tag_verdicts(repo, copy) == ["pass", "pass", "unknown"]


def test_directory_without_history_is_unknown(tagged, tmp_path):
    _, copy = tagged
    (tmp_path / "plain").mkdir()
    assert tag_verdicts(tmp_path / "plain", copy) == ["unknown", "unknown", "unknown"]


def test_revision_expression_is_no_tag_name(tagged):
    repo, copy = tagged
    copy.edit_meta(lambda meta: meta.update(prereg_git_tag=TAG + "^{}"))
    copy.reseal()
    assert tag_verdicts(repo, copy)[:2] == ["unknown", "unknown"]


def test_user_git_configuration_does_not_matter(tagged, monkeypatch, tmp_path):
    (tmp_path / "gitconfig").write_text("[core]\n\tautocrlf = true\n[alias\nbroken")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.fspath(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_DIR", os.fspath(tmp_path / "nowhere"))
    assert tag_verdicts(*tagged) == ["pass", "pass", "pass"]


def test_given_plan_directory(tagged):
    repo, copy = tagged
    row = [c for c in verify_published(copy.path, plans=repo / "spikes").checks if c.id == "strict:prereg:plans"]
    assert [c.verdict for c in row] == ["pass"]
    (repo / PLAN).write_bytes((repo / PLAN).read_bytes() + b"\n")
    assert failing(copy.path, plans=repo / "spikes") == ["strict:prereg:plans"]


# --- Admission archives ------------------------------------------------------------------------------------------


@pytest.fixture
def archive(tmp_path):
    """The measured admission archive, with its plan, in a tree of its own."""
    target = tmp_path / "spikes" / "results" / "admission" / "cocarry-2026-07-05"
    shutil.copytree(shared_data(*ADMISSION, "cocarry-2026-07-05"), target)
    plans = tmp_path / "spikes" / "preregistration" / "admission"
    plans.mkdir(parents=True)
    shutil.copy(
        shared_data("chamber-bundles", "spikes", "preregistration", "admission", "cocarry_admission.yaml"), plans
    )
    return target


def reseal_archive(path, change=None):
    document = json.loads((path / "admission_report.json").read_bytes())
    if change is not None:
        change(document)
    (path / "admission_report.json").write_bytes(encode_document(document))
    names = ("ADMISSION_REPORT.md", "admission_report.json")
    lines = [f"{sha256((path / name).read_bytes())}  {name}\n" for name in names]
    (path / SUMS).write_bytes("".join(lines).encode())


def archive_failures(path):
    return [check.id for check in verify_admission(path).failures]


REPORT_CHANGES = {
    "verdict": (lambda d: d.update(verdict="CONTROL"), "admission:verdict"),
    "outcome": (lambda d: d["checks"][1].update(outcome="FAIL"), "outcome:A2"),
    "statistic": (lambda d: d["checks"][0]["statistics"].update(stress_p90=104.0792839050294), "statistics:A1"),
    "gap": (lambda d: d["checks"][2]["statistics"].update(delta_ci_low=0.9), "statistics:A3"),
    "missing statistic": (lambda d: d["checks"][0]["statistics"].pop("stress_max"), "statistics:A1"),
    "criterion": (lambda d: d["checks"][1].update(criterion="success_ci_high <= tau_infeasible (0.5)"), "outcome:A2"),
    "evidence": (lambda d: d["checks"][0]["evidence"].update({"a1_reference/bundle.json": "0" * 64}), "evidence:A1"),
    "evidence left out": (lambda d: d["checks"][0].update(evidence={}), "evidence:A1"),
    "evidence outside": (lambda d: d["checks"][0].update(evidence={"../x": "0" * 64}), "evidence:A1"),
    "cells exchanged": (lambda d: d["checks"][1].update(bundles=["a3_blind"]), "statistics:A2"),
    "check left out": (lambda d: d["checks"].pop(), "admission:schema"),
    "checks after a failed A1": (lambda d: d.update(checks=d["checks"][:1]), "admission:verdict"),
    "binding evidence": (lambda d: d["binding_evidence"].update(stress_max=99.0), "admission:binding_evidence"),
    "profile": (lambda d: d.update(notes=d.pop("notes"), ego_robustness_profile=None), "admission:schema"),
    "extension": (lambda d: d.update(seed_extension_used=True), "admission:verdict"),
    "commit": (lambda d: d.update(git_sha="0" * 40), "cell:a1_reference"),
    "dirty": (lambda d: d.update(dirty=True), "admission:eligibility"),
    "blob": (lambda d: d.update(prereg_blob_sha="0" * 40), "admission:prereg:known"),
    "tag": (lambda d: d.update(prereg_git_tag="prereg-handover-baselines-v1-2026-07-06"), "admission:plan"),
    "date": (lambda d: d.update(date_stamp="5 July"), "admission:schema"),
    "version": (lambda d: d.update(schema_version=2), "admission:schema"),
    "integer statistic": (lambda d: d["checks"][0]["statistics"].update(n_episodes=60), "admission:schema"),
}


@pytest.mark.parametrize("name", REPORT_CHANGES)
def test_forged_admission_report_fails_at_the_named_check(name, archive):
    change, check_id = REPORT_CHANGES[name]
    reseal_archive(archive, change)
    assert check_id in archive_failures(archive)


def test_untouched_archive_passes(archive):
    reseal_archive(archive)
    assert archive_failures(archive) == []


def test_altered_cell_is_named_with_its_failing_rows(archive):
    cell = archive / "a2_single_arm"
    lines = (cell / "episodes_seed90000.jsonl").read_bytes().split(b"\n")
    lines[0] = lines[0].replace(b'"force_peak":8.98055362701416', b'"force_peak":-8.98055362701416')
    (cell / "episodes_seed90000.jsonl").write_bytes(b"\n".join(lines))
    reseal(cell)
    digest = sha256((cell / "bundle.json").read_bytes())
    reseal_archive(archive, lambda d: d["checks"][1].update(evidence={"a2_single_arm/bundle.json": digest}))
    failures = archive_failures(archive)
    assert "cell:a2_single_arm" in failures
    assert "cell:a2_single_arm/strict:records:values" in failures


def test_softened_threshold_in_the_plan_fails(archive):
    plan = archive.parents[2] / "preregistration" / "admission" / "cocarry_admission.yaml"
    edited = plan.read_bytes().replace(b"tau_solv: 0.95", b"tau_solv: 0.05")
    plan.write_bytes(edited)
    for cell in ("a1_reference", "a2_single_arm", "a3_blind"):
        (archive / cell / "prereg.yaml").write_bytes(edited)
        reseal(archive / cell)

    def change(document):
        document["prereg_blob_sha"] = blob_id(edited)
        for check in document["checks"]:
            for name in check["evidence"]:
                check["evidence"][name] = sha256((archive / name).read_bytes())

    reseal_archive(archive, change)
    failures = archive_failures(archive)
    assert {"admission:prereg:known", "outcome:A1"} <= set(failures)


@pytest.mark.parametrize("name", ["a4_more", "notes.txt"])
def test_stray_entry_in_an_archive(name, archive):
    if name.endswith(".txt"):
        (archive / name).write_bytes(b"x\n")
    else:
        (archive / name).mkdir()
    assert archive_failures(archive) == ["admission:files"]


def test_markdown_that_tells_another_story(archive):
    report = archive / "ADMISSION_REPORT.md"
    report.write_bytes(report.read_bytes().replace(b"### A2 \xe2\x80\x94 PASS", b"### A2 \xe2\x80\x94 FAIL"))
    reseal_archive(archive)
    assert archive_failures(archive) == ["admission:markdown"]


def test_digest_list_of_an_archive(archive):
    (archive / SUMS).write_bytes(b"")
    assert archive_failures(archive) == ["admission:sha256sums"]


def test_archive_without_its_plan_is_unknown_not_passed(tmp_path):
    shutil.copytree(shared_data(*ADMISSION, "cocarry-a4-rev2-2026-07-15"), tmp_path / "archive")
    table = verify_admission(tmp_path / "archive")
    unknown = {check.id for check in table.checks if check.verdict == "unknown"}
    assert {"admission:plan", "evidence:A4", "statistics:A4", "outcome:A4", "admission:verdict"} <= unknown


def test_archive_without_a_report(archive):
    (archive / "admission_report.json").unlink()
    assert archive_failures(archive) == ["admission:schema"]
