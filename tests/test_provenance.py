import json

import pytest
from rowproof.errors import RecordError
from rowproof.hashing import sha256_hex
from rowproof.layout import document_digest
from rowproof.provenance import (
    EARLIER_SCHEMA,
    SCHEMA,
    TIME_FIELDS,
    build_provenance,
    kept_provenance,
    read_provenance,
    totals_of,
)
from rowproof.records import encode_document

BUNDLE = b"{}\n"
PLACES = {"simulate": {"script": "workflow/scripts/simulate.py", "files": {"workflow/scripts/simulate.py": "0" * 64}}}


def entry(stage="simulate", **changes):
    return {
        "stage": stage,
        "shard": None,
        "commit": "a" * 40,
        "dirty": False,
        "seconds": 1.5,
        "platform": "test",
        "cpu_model": "test",
        "python": "3.11.9",
        "versions": {"numpy": "2.0"},
        "host": "here",
        "threads": 1,
        "peak_memory_mb": 100.0,
        "slurm_job_id": None,
        "started": "2026-03-01T10:00:00+00:00",
        "ended": "2026-03-01T10:00:02+00:00",
        **changes,
    }


def earlier_entry(**changes):
    """Of jobs that told neither resources nor times."""
    told = {"host", "threads", "peak_memory_mb", "slurm_job_id", *TIME_FIELDS}
    return {key: value for key, value in entry(**changes).items() if key not in told}


@pytest.fixture
def data():
    return build_provenance(BUNDLE, [entry("specs"), entry()], PLACES)


def sealed(data, change):
    """The document after a change, with a digest of its own."""
    document = json.loads(data)
    change(document)
    document["digest"] = document_digest(document)
    return encode_document(document)


def refusal(data):
    with pytest.raises(RecordError) as caught:
        read_provenance(data)
    assert str(caught.value).startswith("provenance.json")
    return str(caught.value)


def test_what_was_written_is_read(data):
    document = read_provenance(data)
    assert document["schema"] == SCHEMA and document["row_digest"] == sha256_hex(BUNDLE)
    assert document["jobs"] == [entry("specs"), entry()] and document["places"] == PLACES
    assert document["totals"] == {
        "jobs": 2,
        "seconds": 3.0,
        "seconds_by_stage": {"specs": 1.5, "simulate": 1.5},
        "peak_memory_mb": 100.0,
    }
    assert encode_document(document) == data


def earlier(data):
    def change(document):
        document["schema"] = EARLIER_SCHEMA
        del document["places"]
        document["jobs"] = [earlier_entry(), entry("bundle")]
        for name in TIME_FIELDS:
            del document["jobs"][1][name]
        document["totals"] = totals_of(document["jobs"])

    return sealed(data, change)


def test_the_earlier_form_stays_readable(data):
    document = read_provenance(earlier(data))
    assert "places" not in document and document["totals"]["jobs"] == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(schema="rowproof/provenance/1"),
        lambda d: d.update(schema="rowproof/provenance/4"),
        lambda d: d.update(schema=EARLIER_SCHEMA),
        lambda d: d.pop("places"),
        lambda d: d.update(places=[]),
        lambda d: d.update(places={"simulate": []}),
        lambda d: d["places"]["simulate"].update(setup={}),
        lambda d: d.update(more=1),
        lambda d: d.pop("row_digest"),
        lambda d: d["totals"].update(seconds=2.9),
        lambda d: d["totals"].update(jobs=3),
        lambda d: d["totals"].update(peak_memory_mb=None),
        lambda d: d["totals"]["seconds_by_stage"].pop("specs"),
        lambda d: d.update(dirty=True),
        lambda d: d["jobs"][0].update(dirty=True),
        lambda d: d["jobs"][0].update(commit="a" * 39),
        lambda d: d["jobs"][0].update(commit="A" * 40),
        lambda d: d["jobs"][0].update(commit="a" * 40 + "\n"),
        lambda d: d["jobs"][0].update(seconds=-1.0),
        lambda d: d["jobs"][0].update(seconds="1"),
        lambda d: d["jobs"][0].update(more=1),
        lambda d: d["jobs"][0].pop("threads"),
        lambda d: d["jobs"].append([]),
    ],
)
def test_what_does_not_hold_together_is_refused(data, change):
    def and_totals(document):
        jobs = json.dumps(document["jobs"])
        change(document)
        if json.dumps(document["jobs"]) != jobs:
            try:
                document["totals"] = totals_of(document["jobs"])
            except (TypeError, KeyError):
                return

    refusal(sealed(data, and_totals))


@pytest.mark.parametrize("data", [b"", b"{", b"[]\n", b"null\n", b"\xff"])
def test_what_is_no_document_is_refused(data):
    refusal(data)


def test_an_edited_document_is_refused(data):
    assert "must be as it was written" in refusal(data.replace(b'"host": "here"', b'"host": "away"', 1))
    assert "must be as it was written" in refusal(data.replace(b"1.5", b"1.6"))


@pytest.mark.parametrize("name", TIME_FIELDS)
@pytest.mark.parametrize(
    "value",
    [
        "",
        "2026-03-01",
        "2026-03-01 10:00:00+00:00",
        "2026-03-01T10:00:00",
        "2026-03-01T10:00:00Z",
        "2026-03-01T10:00:00+01:00",
        "2026-03-01T10:00:00.5+00:00",
        "2026-02-30T10:00:00+00:00",
        "2026-03-01T24:00:00+00:00",
        "2026-03-01T10:00:00+00:00\n",
        "2026-3-1T10:00:00+00:00",
    ],
)
def test_times_have_one_form(data, name, value):
    message = refusal(sealed(data, lambda document: document["jobs"][1].update({name: value})))
    assert f"jobs[1]: {name} must be a time of the form" in message and repr(value) in message


@pytest.mark.parametrize("name", TIME_FIELDS)
def test_times_are_told_both_or_none(data, name):
    refusal(sealed(data, lambda document: document["jobs"][0].pop(name)))


def test_a_clock_that_was_set_back_is_no_error(data):
    """Seconds are measured by a clock that nobody sets; times of day are told as the host had them."""
    document = read_provenance(
        sealed(data, lambda document: document["jobs"][0].update(ended="2026-03-01T09:00:00+00:00"))
    )
    assert document["jobs"][0]["ended"] < document["jobs"][0]["started"]


@pytest.mark.parametrize("dirty", [False, True])
def test_one_dirty_job_makes_a_dirty_row(dirty):
    assert read_provenance(build_provenance(BUNDLE, [entry(), entry(dirty=dirty)], {}))["dirty"] is dirty


# --- keeping the one that is there


@pytest.fixture
def path(tmp_path, data):
    (tmp_path / "provenance.json").write_bytes(data)
    return tmp_path / "provenance.json"


def test_that_of_the_same_bundle_is_kept(path, data):
    assert kept_provenance(path, BUNDLE, []) == data
    assert kept_provenance(path, BUNDLE, [entry("specs")]) == data


def test_that_of_an_earlier_form_is_kept(path, data):
    path.write_bytes(earlier(data))
    assert kept_provenance(path, BUNDLE, []) == earlier(data)


def test_that_of_another_bundle_or_timing_is_not(path):
    assert kept_provenance(path, b"[]\n", []) is None
    assert kept_provenance(path, BUNDLE, [entry("time")]) is None


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: b" " + data, lambda data: b""])
def test_a_damaged_one_is_not(path, data, change):
    path.write_bytes(change(data))
    assert kept_provenance(path, BUNDLE, []) is None


def test_a_missing_one_is_not(tmp_path):
    assert kept_provenance(tmp_path / "absent", BUNDLE, []) is None
