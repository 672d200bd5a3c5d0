import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rowproof.errors import RecordError
from rowproof.records import (
    MAX_DEPTH,
    NULL,
    check_fields,
    decode,
    decode_lines,
    digest,
    encode_document,
    encode_line,
    encode_lines,
    encode_sorted,
    format_float,
    split_lines,
)

SCHEMA = {"seed": (int,), "score": (float,), "note": (str, NULL)}
RECORD = {"seed": 3, "score": 0.5, "note": None}

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abé\u2028", max_size=3), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (0.1, "0.1"),
        (1e-4, "0.0001"),
        (1e-5, "0.00001"),
        (-1.5e-5, "-0.000015"),
        (math.nextafter(1e-5, 0), "9.999999999999999e-6"),
        (math.nextafter(1e16, 0), "9999999999999998.0"),
        (1e16, "1e+16"),
        (-1e16, "-1e+16"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (5e-324, "5e-324"),
        (2.2250738585072014e-308, "2.2250738585072014e-308"),
    ],
)
def test_float_text_is_positional_between_1e_minus_5_and_1e16(value, text):
    assert format_float(value) == text
    assert float(text) == value and math.copysign(1, float(text)) == math.copysign(1, value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_float_must_be_finite(value):
    with pytest.raises(RecordError, match="finite"):
        encode_line({"x": value})


@settings(max_examples=200, deadline=None, database=None, derandomize=True)
@given(plain)
def test_every_form_reads_back_to_the_same_value(value):
    for data in (encode_line(value).encode(), encode_document(value), encode_sorted(value)):
        again = decode(data, "x")
        assert again == value
        # Equality cannot tell 1 from 1.0 or True; the canonical text can.
        assert encode_sorted(again) == encode_sorted(value)


@settings(max_examples=100, deadline=None, database=None, derandomize=True)
@given(st.dictionaries(st.text("abc", max_size=3), st.integers(), max_size=5))
def test_digest_ignores_key_order_and_lines_keep_it(value):
    turned = dict(reversed(value.items()))
    assert digest(turned) == digest(value)
    assert list(json.loads(encode_line(turned))) == list(turned)


@pytest.mark.parametrize(
    "value",
    [
        np.float64(1.0),
        np.float32(1.0),
        np.int64(1),
        np.bool_(True),
        np.zeros(2),
        b"x",
        {1, 2},
        Ellipsis,
        {1: 2},
        {True: 1},
        {"x": np.int64(1)},
        [np.float64(0.5)],
    ],
    ids=repr,
)
def test_other_types_are_refused_and_not_converted(value):
    with pytest.raises(RecordError):
        encode_line(value)


@pytest.mark.parametrize("value", ["\ud800", "a\udfff", {"\ud800": 1}], ids=["high", "low", "key"])
def test_lone_surrogates_are_refused(value):
    with pytest.raises(RecordError, match="lone surrogate"):
        encode_line(value)


def test_text_is_written_as_utf8_and_line_separators_stay_inside_strings():
    data = encode_lines([{"note": "é\u2028\u2029\x85😀\n\r\t\x00"}, {"note": ""}])
    assert data.count(b"\n") == 2
    assert "é\u2028\u2029\x85😀".encode() in data
    assert [decode(line, "x")["note"] for _, line in split_lines(data, "x")] == ["é\u2028\u2029\x85😀\n\r\t\x00", ""]


def test_nesting_is_bounded_on_both_ways():
    def nested(depth):
        value = 0
        for _ in range(depth):
            value = [value]
        return value

    assert decode(encode_line(nested(MAX_DEPTH)).encode(), "x") == nested(MAX_DEPTH)
    with pytest.raises(RecordError, match="nested"):
        encode_line(nested(MAX_DEPTH + 1))
    for data in (b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000):
        with pytest.raises(RecordError, match="x: must be valid JSON"):
            decode(data, "x")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"NaN", "finite, found NaN"),
        (b"[Infinity]", "finite, found Infinity"),
        (b"-Infinity", "finite, found -Infinity"),
        (b"1e999", "fit a double, found 1e999"),
        (b"-1e999", "fit a double"),
        (b"9" * 5000, "valid JSON"),
        (b'{"a":1,"b":2,"a":1}', "unique, found 'a' twice"),
        (b'{"a":{"b":1,"b":2}}', "unique, found 'b' twice"),
        (b"\xef\xbb\xbf{}", "byte-order mark"),
        (b'"\xff"', "UTF-8, found byte 0xff at 1"),
        (b"", "valid JSON"),
        (b"{", "valid JSON"),
        (b"{} {}", "valid JSON"),
        (b"{'a':1}", "valid JSON"),
        (b"[1,]", "valid JSON"),
        (b"01", "valid JSON"),
        (b"// x\n1", "valid JSON"),
        (b'"a\nb"', "valid JSON"),
    ],
)
def test_reader_refuses(data, message):
    with pytest.raises(RecordError, match=message) as caught:
        decode(data, "file.json")
    assert str(caught.value).startswith("file.json: ")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "x: must be non-empty and end with one LF"),
        (b"{}", "x: must be non-empty and end with one LF"),
        (b"{}\r\n", "CR at byte 2"),
        (b"{}\n\n", "x:2: lines must not be blank"),
        (b"\n{}\n", "x:1: lines must not be blank"),
        (b"{}\n \t\n{}\n", "x:2: lines must not be blank"),
    ],
)
def test_lines_refuse(data, message):
    with pytest.raises(RecordError, match=message):
        list(split_lines(data, "x"))


def test_records_read_back():
    assert decode_lines(encode_lines([RECORD, RECORD]), SCHEMA, "x") == [RECORD, RECORD]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"seed":3,"score":0.5}', r"missing \['note'\]"),
        (b'{"seed":3,"score":0.5,"note":null,"z":1}', r"unknown \['z'\]"),
        (b'{"score":0.5,"seed":3,"note":null}', "in this order"),
        (b'{"seed":3.0,"score":0.5,"note":null}', "seed must be int, found 3.0"),
        (b'{"seed":true,"score":0.5,"note":null}', "seed must be int, found true"),
        (b'{"seed":3,"score":1,"note":null}', "score must be float, found 1"),
        (b'{"seed":3,"score":0.5,"note":false}', "note must be str or null, found false"),
        (b'{"seed":3,"score":0.50,"note":null}', "canonical form, expected"),
        (b'{"seed":3,"score":5e-1,"note":null}', "canonical form"),
        (b'{"seed":-0,"score":0.5,"note":null}', "canonical form"),
        (b'{"seed": 3,"score":0.5,"note":null}', "canonical form"),
        (b'{"seed":3,"score":0.5,"note":"\\u00e9"}', "canonical form"),
        (b'{"seed":3,"score":0.5,"note":"\\ud800"}', "lone surrogate"),
        (b"[3]", "must be an object, found list"),
    ],
)
def test_records_refuse(line, message):
    with pytest.raises(RecordError, match=message):
        decode_lines(encode_lines([RECORD]) + line + b"\n", SCHEMA, "x")


def test_check_fields_names_the_place():
    with pytest.raises(RecordError, match=r"^jobs\[0\]: "):
        check_fields({**RECORD, "seed": None}, SCHEMA, "jobs[0]")
