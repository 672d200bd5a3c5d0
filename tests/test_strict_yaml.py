import pytest
from pydantic import BaseModel, ConfigDict
from rowproof.errors import ConfigError
from rowproof.strict_yaml import load, parse, validate


class Inner(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    number: float
    count: int = 0


class Outer(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    name: str
    inner: Inner
    many: list[Inner] = []


GOOD = "name: a\ninner:\n  number: 1.5\n"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("0", 0),
        ("-7", -7),
        ("1.5", 1.5),
        ("1.", 1.0),
        (".5", 0.5),
        ("3.75e4", 37500.0),
        ("1e3", 1000.0),
        ("-0.0", 0.0),
        # What YAML 1.1 would turn into something else.
        ("yes", "yes"),
        ("No", "No"),
        ("on", "on"),
        ("True", "True"),
        ("1:30", "1:30"),
        ("010", "010"),
        ("00.5", "00.5"),
        ("0o17", "0o17"),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("2024-01-01", "2024-01-01"),
        ("'5'", "5"),
        ('"true"', "true"),
        ("text", "text"),
    ],
)
def test_values_follow_yaml_1_2(text, value):
    found = parse(f"key: {text}\n".encode(), "f").data["key"]
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "f:1: must hold a mapping, found an empty file"),
        (b"# only a comment\n", "f:1: must hold a mapping"),
        (b"a: \xff\n", "f: must be UTF-8, found another byte at 3"),
        (b"a: 1\nb: [\n", "f:3: must be one valid YAML document"),
        (b"a: 1\n\tb: 1\n", "f:2: must be one valid YAML document"),
        (b"a: \x00\n", "must be one valid YAML document"),
        (b"a: 1\n---\nb: 2\n", "f:2: must be one valid YAML document"),
        (b"a: 1\nb: 2\na: 3\n", "f:3: a: keys must be unique, already given on line 1"),
        (b"o:\n  a: 1\n  a: 2\n", "f:3: a: keys must be unique, already given on line 2"),
        (b"1: a\n'1': b\n", "f:2: 1: keys must be unique"),
        (b"a: &x 1\nb: *x\n", "f:2: b: must not use YAML aliases"),
        (b"a: &x {c: 1}\nb:\n  <<: *x\n", "f:3: must not use YAML merge keys"),
        (b"a: &x [*x]\n", "f:1: a.0: must not use YAML aliases"),
        (b"? [a]\n: 1\n", "f:1: keys must be plain text"),
        (b"!!str a: 1\n!!int '5': 1\n", "f:2: keys must be plain text without tags"),
        (b"a: !!python/object/apply:os.system [ls]\n", "f:1: a: must not carry a YAML tag"),
        (b"a:\n  b: !!bool yes\n", "f:2: a.b: must not carry a YAML tag"),
        (b"a: !!int '5'\n", "must not carry a YAML tag"),
        (b"a: !!int text\n", "must not carry a YAML tag"),
        (b"a: !!str 5\n", "must not carry a YAML tag"),
        (b"a: !x [1]\n", "must not carry a YAML tag"),
        (b"a: !!set {b}\n", "must not carry a YAML tag"),
        (b"a: 1e999\n", "f:1: a: must be a number that fits a double, found 1e999"),
        (b"a: " + b"9" * 5000, "must be a number that fits a double"),
        (b"a: " + b"[" * 500 + b"]" * 500, "f:1: must be nested a few levels"),
        (b"a: " + b"[" * 100_000, "must be one valid YAML document"),
    ],
)
def test_refuses(text, message):
    with pytest.raises(ConfigError) as caught:
        parse(text, "f")
    assert message in str(caught.value)


def test_billion_laughs_is_refused_at_once():
    text = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 40))
    with pytest.raises(ConfigError, match=r"f:2: a1\.0: must not use YAML aliases"):
        parse(text.encode(), "f")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + "extra: 1\n", "f:4: extra: unknown key"),
        (GOOD + "many:\n- number: 1.0\n  nmber: 2\n", "f:6: many.0.nmber: unknown key"),
        ("name: a\ninner: {}\n", "f:2: inner.number: required key is missing"),
        ("name: a\n", "f:1: inner: required key is missing"),
        ("name: 5\ninner: {number: 1.5}\n", "f:1: name: Input should be a valid string, found 5"),
        ("name: a\ninner:\n  number: yes\n", "f:3: inner.number: Input should be a valid number, found 'yes'"),
        ("name: a\ninner:\n  number: true\n", "f:3: inner.number: Input should be a valid number, found True"),
        (GOOD + "  count: 1.0\n", "f:4: inner.count: Input should be a valid integer"),
        (GOOD + "  count: 010\n", "f:4: inner.count: Input should be a valid integer, found '010'"),
        (GOOD + "  count: true\n", "f:4: inner.count: Input should be a valid integer"),
        ("- 1\n", "f:1: (document): Input should be"),
        ("text\n", "f:1: (document): Input should be"),
    ],
)
def test_model_errors_name_file_line_and_key(text, message):
    with pytest.raises(ConfigError) as caught:
        validate(parse(text.encode(), "f"), Outer)
    assert message in str(caught.value)


def test_all_problems_are_named_one_per_line():
    with pytest.raises(ConfigError) as caught:
        validate(parse(b"nme: a\ninner:\n  number: x\n", "f"), Outer)
    assert [line.rpartition(": ")[0].split(": ")[:2] for line in str(caught.value).splitlines()] == [
        ["f:1", "name"],
        ["f:3", "inner.number"],
        ["f:1", "nme"],
    ]


def test_a_part_keeps_its_key_and_line():
    document = parse(b"cell:\n  number: 1.5\n  count: x\n", "f")
    with pytest.raises(ConfigError, match=r"^f:3: cell\.count: "):
        validate(document, Inner, at=("cell",))
    assert validate(parse(b"cell: {number: 2}", "f"), Inner, at=("cell",)).number == 2


def test_an_integer_beyond_a_double_is_no_number():
    with pytest.raises(ConfigError, match=r"f:3: inner\.number: "):
        validate(parse(GOOD.replace("1.5", "1" + "0" * 400).encode(), "f"), Outer)


def test_load_names_files_from_the_root(tmp_path):
    path = tmp_path / "config" / "x.yaml"
    path.parent.mkdir()
    with pytest.raises(ConfigError, match=r"^config/x\.yaml: must be a readable file: No such file"):
        load(path, Outer, tmp_path)
    path.write_text(GOOD)
    assert load(path, Outer, tmp_path)[0].inner.number == 1.5
    path.write_text("x: 1\n")
    with pytest.raises(ConfigError, match=r"^config/x\.yaml:1: "):
        load(path, Outer, tmp_path)
