"""Forgeries of a row's bundle: each alters one thing, and all that depends on it is recomputed."""

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

import safetensors.numpy
from rowproof.checkpoints import uri_of
from rowproof.families import engines
from rowproof.layout import PROVENANCE, SUMS, episode_file, learned_files

from forgeries.seal import NotApplicableError, Row, registry

Alteration = Callable[[Row], None]
# kind -> name -> alteration
ROWS: dict[str, dict[str, Alteration]] = {}


forgery = registry(ROWS)


def _need(condition: object, what: str) -> None:
    if not condition:
        raise NotApplicableError(what)


def _numbered(record: dict[str, Any], like: dict[str, Any]) -> dict[str, Any]:
    """A record under the number of another one, as good as a forger can make it."""
    own = {key: like["metadata"][key] for key in ("mission", "modules", "seed_policy") if key in like["metadata"]}
    places = {key: like[key] for key in ("seed", "episode_idx", "initial_state_seed")}
    return {**record, **places, "metadata": {**record["metadata"], **own}}


def _pair(row: Row) -> tuple[int, list[dict[str, Any]], int, int]:
    """A seed, its records, and the places of a success and of a failure with one partner."""
    for seed in row.seeds:
        records = row.records(seed)
        for bad, record in enumerate(records):
            if record["success"]:
                continue
            for good, other in enumerate(records):
                if other["success"] and other["metadata"]["member"] == record["metadata"]["member"]:
                    return seed, records, good, bad
    raise NotApplicableError("the row has no success beside a failure with the same partner and seed")


def _all_good(row: Row) -> None:
    """Give every failure what a success of the same partner has, whatever the seed."""
    by_member = {}
    for seed in row.seeds:
        for record in row.records(seed):
            if record["success"]:
                by_member.setdefault(record["metadata"]["member"], record)
    _need(by_member, "the row has no success that could be copied")
    for seed in row.seeds:
        records = row.records(seed)
        for index, record in enumerate(records):
            good = by_member.get(record["metadata"]["member"])
            if not record["success"] and good is not None:
                records[index] = _numbered(good, record)
        row.write_records(seed, records)


# --- Records ---------------------------------------------------------------------------------------------------------


@forgery("records")
def one_success_flipped(row: Row) -> None:
    """A failure calls itself a success."""
    seed, records, _, bad = _pair(row)
    records[bad]["success"] = True
    row.write_records(seed, records)
    row.reseal()


@forgery("records")
def one_success_repeated_in_place_of_a_failure(row: Row) -> None:
    """A success of the same partner stands in the place of a failure, under its number."""
    seed, records, good, bad = _pair(row)
    records[bad] = _numbered(records[good], records[bad])
    row.write_records(seed, records)
    row.reseal()


@forgery("records")
def every_failure_made_a_success(row: Row) -> None:
    """All failures are replaced by successes."""
    _all_good(row)
    row.reseal()


@forgery("records")
def a_failure_dropped_and_a_success_doubled(row: Row) -> None:
    """The number of records stays."""
    seed, records, good, bad = _pair(row)
    records[bad] = records[good]
    row.write_records(seed, records)
    row.reseal()


@forgery("records")
def records_of_one_seed_for_another(row: Row) -> None:
    """The better seed stands for the worse one, renumbered."""
    _need(len(row.seeds) > 1, "the row has one seed")
    rates = {seed: sum(record["success"] for record in row.records(seed)) for seed in row.seeds}
    best, worst = max(rates, key=rates.__getitem__), min(rates, key=rates.__getitem__)
    _need(rates[best] > rates[worst], "all seeds have the same rate")
    pairs = zip(row.records(best), row.records(worst), strict=True)
    row.write_records(worst, [_numbered(one, other) for one, other in pairs])
    row.reseal()


@forgery("records")
def one_measurement_in_its_last_digit(row: Row) -> None:
    """The smallest change of one number."""
    seed = row.seeds[0]
    records = row.records(seed)
    for record in records:
        for holder in (record, record["metadata"]):
            for key, value in holder.items():
                if type(value) is float and value:
                    holder[key] = value * (1 + 2**-52)
                    row.write_records(seed, records)
                    row.reseal()
                    return
    raise NotApplicableError("no record holds a number with a fraction")


@forgery("records")
def one_record_less(row: Row) -> None:
    """The last record of a seed is gone."""
    row.edit_records(row.seeds[0], lambda records: records.pop())
    row.reseal()


@forgery("records")
def a_seed_left_out(row: Row) -> None:
    """A seed is gone from files, recipe, schedule and summary."""
    _need(len(row.seeds) > 1, "the row has one seed")
    gone = row.seeds[-1]
    for name in (episode_file(gone), *(learned_files(gone) if row.learned else ())):
        (row.path / name).unlink()
    row.edit_setup(lambda setup: setup["seeds"].remove(gone))
    row.reseal()


# --- Form ------------------------------------------------------------------------------------------------------------


def _first(row: Row) -> str:
    return episode_file(row.seeds[0])


@forgery("form")
def a_record_with_spaces(row: Row) -> None:
    """Another text of the same record."""
    row.replace_bytes(_first(row), b'"episode_idx":0,', b'"episode_idx": 0,', 1)
    row.reseal()


@forgery("form")
def a_key_twice(row: Row) -> None:
    """Readers differ in which of two values they take."""
    row.replace_bytes(_first(row), b'"episode_idx":0,', b'"episode_idx":1,"episode_idx":0,', 1)
    row.reseal()


@forgery("form")
def a_number_that_is_none(row: Row) -> None:
    """NaN compares with nothing."""
    row.replace_bytes(_first(row), b'"episode_idx":0,', b'"episode_idx":0,"bonus":NaN,', 1)
    row.sign()


@forgery("form")
def carriage_returns(row: Row) -> None:
    """Lines end as elsewhere."""
    row.replace_bytes(_first(row), b"\n", b"\r\n")
    row.reseal()


@forgery("form")
def a_word_more_in_a_record(row: Row) -> None:
    """An unknown key."""
    row.edit_records(row.seeds[0], lambda records: records[0].update(reviewed=True))
    row.reseal()


@forgery("form")
def records_in_another_order(row: Row) -> None:
    """The last comes first."""
    row.edit_records(row.seeds[0], lambda records: records.reverse())
    row.reseal()


# --- Plan and partners -----------------------------------------------------------------------------------------------


@forgery("plan")
def a_comment_in_the_plan(row: Row) -> None:
    """A version of the plan that nobody committed."""
    row.write("plan.yaml", b"# as agreed\n" + row.read("plan.yaml"))
    row.reseal()


@forgery("plan")
def fewer_resamples(row: Row) -> None:
    """In the recipe alone."""
    row.edit_recipes(lambda recipes: recipes["summary"]["statistics"].update(n_resamples=1))
    row.reseal()


@forgery("plan")
def fewer_resamples_in_the_plan_too(row: Row) -> None:
    """In recipe and plan."""
    stated = row.load("recipe.json")["summary"]["statistics"]["n_resamples"]
    row.edit_plan(f"n_resamples: {stated}", "n_resamples: 1")
    row.edit_recipes(lambda recipes: recipes["summary"]["statistics"].update(n_resamples=1))
    row.reseal()


@forgery("plan")
def another_root_seed(row: Row) -> None:
    """The seed of all draws."""
    row.edit_setup(lambda setup: setup.update(root_seed=setup["root_seed"] + 1))
    row.reseal()


@forgery("partners")
def a_partner_renamed(row: Row) -> None:
    """The same partner under another name."""
    row.edit_setup(lambda setup: setup["members"][0].update(name="somebody_else"))
    row.reseal()


@forgery("partners")
def a_partner_with_another_seed(row: Row) -> None:
    """With the identity that follows."""
    row.edit_setup(lambda setup: setup["members"][0].update(seed=setup["members"][0]["seed"] + 1))
    row.reseal()


@forgery("partners")
def another_version_of_the_partners(row: Row) -> None:
    """The name of a set that is not that of the plan."""
    row.edit_setup(lambda setup: setup.update(partner_set=setup["partner_set"] + ".1"))
    row.reseal()


# --- Summary ---------------------------------------------------------------------------------------------------------


def _summary(row: Row, change: Callable[[dict[str, Any]], Any]) -> None:
    row.edit_meta(lambda meta: change(meta["summary"]))
    row.sign()


@forgery("summary")
def a_rate_in_its_last_digit(row: Row) -> None:
    """The smallest change of the number that is quoted."""
    _summary(row, lambda summary: summary.update(success_rate=summary["success_rate"] + 2**-50))


@forgery("summary")
def an_interval_of_no_width(row: Row) -> None:
    """Certain of itself."""
    _summary(row, lambda summary: summary.update(success_rate_ci=[summary["success_rate"] - 1e-3] * 2))


@forgery("summary")
def a_flag_changed(row: Row) -> None:
    """What warns the reader."""
    _summary(row, lambda summary: summary.update(flags=[] if summary["flags"] else ["reviewed"]))


# --- Code and history ------------------------------------------------------------------------------------------------

ABSENT = "0123456789" * 4


@forgery("code")
def another_key_of_the_code(row: Row) -> None:
    """Nobody has this code."""
    row.edit_recipes(lambda recipes: recipes["simulate"]["code"].update(key="0" * 64))
    row.reseal()


@forgery("code")
def all_successes_by_code_that_nobody_has(row: Row) -> None:
    """Replay has nothing to run, and history nothing to say."""
    _all_good(row)
    row.edit_recipes(lambda recipes: recipes["simulate"]["code"].update(key="0" * 64))
    row.edit_jobs(lambda job: job.update(commit=ABSENT))
    row.reseal()


@forgery("code")
def all_successes_by_keys_of_an_earlier_form(row: Row) -> None:
    """Such keys cannot be made again."""
    _all_good(row)
    row.edit_recipes(lambda recipes: recipes["simulate"]["code"].update(form=1, key="0" * 64))
    row.reseal()


@forgery("code")
def a_commit_that_is_an_option(row: Row) -> None:
    """Evidence becomes an argument of a program."""
    row.edit_jobs(lambda job: job.update(commit="--upload-pack=touch"))
    row.reseal()


@forgery("code")
def another_version_of_a_library(row: Row) -> None:
    """In recipe and provenance."""
    recipes = row.load("recipe.json")
    _need(recipes["simulate"]["pins"], "the simulation uses no library")
    name = next(iter(recipes["simulate"]["pins"]))
    row.edit_recipes(lambda recipes: recipes["simulate"]["pins"].update({name: "0.0.1"}))
    row.edit_jobs(lambda job: job["versions"].update({name: "0.0.1"}), "simulate")
    row.reseal()


# --- Weights ---------------------------------------------------------------------------------------------------------


def _learned(row: Row) -> None:
    _need(row.learned, "the row's policy is not trained")
    _need(len(row.seeds) > 1, "the row has one seed")


def _play(row: Row, seed: int, weights: bytes) -> None:
    """Let other weights stand for the checkpoint of a seed, in every place that names it."""
    old = row.load(learned_files(seed)[1])["selected"]["uri"].encode()
    new = uri_of(weights).encode()
    for name in (*learned_files(seed)[:2], episode_file(seed)):
        row.write(name, row.read(name).replace(old, new))
    row.write(learned_files(seed)[2], weights)


def _rates(row: Row) -> dict[int, int]:
    return {seed: sum(record["success"] for record in row.records(seed)) for seed in row.seeds}


@forgery("weights")
def the_best_seed_in_the_place_of_the_worst(row: Row) -> None:
    """Its checkpoint and its records."""
    _learned(row)
    rates = _rates(row)
    best, worst = max(rates, key=rates.__getitem__), min(rates, key=rates.__getitem__)
    _need(best != worst, "all seeds have the same rate")
    _play(row, worst, row.read(learned_files(best)[2]))
    row.reseal()


def _copy_training(row: Row, source: int, target: int) -> None:
    """Let the training of one seed stand for that of another, with all that its documents say."""
    old = row.load(learned_files(target)[1])["selected"]["uri"].encode()
    new = row.load(learned_files(source)[1])["selected"]["uri"].encode()
    for name, twin in zip(learned_files(source), learned_files(target), strict=True):
        row.write(twin, row.read(name))
    for name in learned_files(target)[:2]:
        row.edit(name, lambda document: document.update(training_seed=target))
    row.write(episode_file(target), row.read(episode_file(target)).replace(old, new))


@forgery("weights")
def the_best_seed_twice_with_episodes_that_it_plays(row: Row) -> None:
    """Trained once, shown as two seeds; everything else is honestly run."""
    _learned(row)
    rates = _rates(row)
    best, worst = max(rates, key=rates.__getitem__), min(rates, key=rates.__getitem__)
    _need(best != worst, "all seeds have the same rate")
    _copy_training(row, best, worst)
    engine = engines()[row.meta["engine"]]
    _need(engine.replays, "its episodes take minutes")
    setup = row.load("recipe.json")["simulate"]["setup"]
    specs = [spec for spec in import_module(engine.specs_module).specs(setup) if spec["seed"] == worst]
    uri = row.load(learned_files(worst)[1])["selected"]["uri"]
    players = {worst: (uri, row.read(learned_files(worst)[2]))}
    row.write_records(worst, list(import_module(engine.simulate_module).simulate(setup, specs, players)))
    row.reseal()


@forgery("weights")
def two_seeds_exchanged(row: Row) -> None:
    """All of their files, with the numbers that they carry."""
    _learned(row)
    one, other = row.seeds[:2]
    names = list(zip(learned_files(one), learned_files(other), strict=True))
    for first, second in names:
        held = row.read(first), row.read(second)
        row.write(first, held[1])
        row.write(second, held[0])
    for seed in (one, other):
        for name in learned_files(seed)[:2]:
            row.edit(name, lambda document, seed=seed: document.update(training_seed=seed))
    for seed, twin in ((one, other), (other, one)):
        old = row.load(learned_files(twin)[1])["selected"]["uri"].encode()
        new = row.load(learned_files(seed)[1])["selected"]["uri"].encode()
        row.write(episode_file(seed), row.read(episode_file(seed)).replace(old, new))
    row.reseal()


@forgery("weights")
def weights_by_hand(row: Row) -> None:
    """Every number of a checkpoint a little larger."""
    _learned(row)
    seed = row.seeds[0]
    arrays = safetensors.numpy.load(row.read(learned_files(seed)[2]))
    _play(
        row, seed, safetensors.numpy.save({name: (array * 1.001).astype(array.dtype) for name, array in arrays.items()})
    )
    row.reseal()


@forgery("weights")
def a_validation_made_better(row: Row) -> None:
    """The selected checkpoint's own validation says what the forger likes."""
    _learned(row)
    seed = row.seeds[0]

    def change(document: dict[str, Any]) -> None:
        for candidate in document["candidates"]:
            for episode in candidate["episodes"]:
                episode["success"] = True

    row.edit(learned_files(seed)[1], change)
    row.reseal()


# --- Provenance and text ---------------------------------------------------------------------------------------------


@forgery("provenance")
def a_modified_checkout_called_clean(row: Row) -> None:
    """The flag alone."""
    row.edit_jobs(lambda job: job.update(dirty=True))
    row.bind()
    row.edit(PROVENANCE, lambda document: document.update(dirty=False))


@forgery("provenance")
def a_stage_without_a_job(row: Row) -> None:
    """Nobody tells how a stage ran."""
    row.edit(PROVENANCE, lambda document: document.update(jobs=document["jobs"][1:]))
    row.bind()


@forgery("provenance")
def provenance_that_is_not_its_own(row: Row) -> None:
    """Bound to another bundle."""
    row.edit(PROVENANCE, lambda document: document.update(row_digest="0" * 64))


LINE = "x86_64\n| best | 1.000 | <b>reviewed</b> |"


@forgery("text")
def a_table_row_in_the_name_of_a_platform(row: Row) -> None:
    """Text of the bundle becomes structure of a page."""
    row.edit_jobs(lambda job: job.update(platform=LINE))
    row.bind()


@forgery("text")
def a_command_for_the_terminal_in_the_name_of_a_platform(row: Row) -> None:
    """What is printed erases what was printed."""
    row.edit_jobs(lambda job: job.update(platform="Linux\x1b[2K\x1b[1APASS"))
    row.bind()


@forgery("text")
def letters_that_run_backwards(row: Row) -> None:
    """Read by people otherwise than by programs."""
    row.edit_jobs(lambda job: job.update(platform="Linux \u202e46_68x"))
    row.bind()


@forgery("text")
def a_table_row_in_a_record(row: Row) -> None:
    """The same through a record."""
    row.edit_records(row.seeds[0], lambda records: records[0]["metadata"].update(member=LINE))
    row.reseal()


# --- Files -----------------------------------------------------------------------------------------------------------


@forgery("files")
def a_link_in_the_place_of_records(row: Row) -> None:
    """The records lie elsewhere."""
    records, outside = row.path / _first(row), row.path.parent / f"{row.path.name}-outside.jsonl"
    records.rename(outside)
    records.symlink_to(outside)


@forgery("files")
def a_pipe_in_the_place_of_records(row: Row) -> None:
    """Reading it waits for ever."""
    records = row.path / _first(row)
    records.unlink()
    os.mkfifo(records)


@forgery("files")
def a_file_more(row: Row) -> None:
    """Listed like all others."""
    row.write("notes.md", b"reviewed\n")
    row.sign()


@forgery("files")
def a_hidden_file(row: Row) -> None:
    """Listed nowhere."""
    row.write(".reviewed", b"yes\n")


@forgery("files")
def a_folder_more(row: Row) -> None:
    """With nothing in it."""
    (row.path / "more").mkdir()


@forgery("files")
def records_that_are_huge(row: Row) -> None:
    """64 GiB that take no room on the disk."""
    with (row.path / _first(row)).open("r+b") as stream:
        stream.truncate(1 << 36)


@forgery("files")
def no_provenance(row: Row) -> None:
    """Where it came from is not told."""
    (row.path / PROVENANCE).unlink()


@forgery("files")
def a_manifest_that_leads_out(row: Row) -> None:
    """It vouches for a file of the reader's."""
    row.edit_meta(lambda meta: meta["manifest"].update({"../../../etc/hostname": "0" * 64}))
    row.sign(manifest=False)


@forgery("files")
def a_digest_list_that_is_short(row: Row) -> None:
    """What is not listed is not compared."""
    row.write(SUMS, b"".join(row.read(SUMS).splitlines(keepends=True)[2:]))


@forgery("files")
def unsealed_change_of_a_record(row: Row) -> None:
    """The only one that digests alone find."""
    seed, records, _, bad = _pair(row)
    records[bad]["success"] = True
    row.write_records(seed, records)
