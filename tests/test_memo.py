import json

import pytest
from rowproof import memo as module
from rowproof.memo import Memo


def never():
    raise AssertionError("must be remembered")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache" / "memo.json"


def stored(path, **facts):
    memo = Memo(path)
    for key, value in facts.items():
        memo.get(key, lambda value=value: value)
    memo.save()


def test_a_fact_is_computed_once():
    memo = Memo(None)
    assert memo.get("a", lambda: 1) == 1 and memo.get("a", never) == 1


def test_facts_outlive_the_process(path):
    stored(path, a={"b": [None, 1]})
    assert Memo(path).get("a", never) == {"b": [None, 1]}


def test_false_and_none_are_facts(path):
    stored(path, a=None, b=False)
    memo = Memo(path)
    assert memo.get("a", never) is None and memo.get("b", never) is False


def test_what_is_used_no_more_is_forgotten(path):
    stored(path, a=1, b=2)
    memo = Memo(path)
    memo.get("b", never)
    memo.save()
    assert json.loads(path.read_bytes())["facts"] == {"b": 2}


def test_nothing_is_written_where_nothing_is_new(path):
    stored(path, a=1)
    before = path.stat()
    stored(path, a=1)
    after = path.stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)


def test_nothing_is_kept_without_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    memo = Memo(None)
    memo.get("a", lambda: 1)
    memo.save()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b"\xff", b'{"maker": 1}', b'{"facts": {"a": 2}}', b"[" * 100_000],
)
def test_an_unreadable_file_is_dropped(path, data):
    path.parent.mkdir()
    path.write_bytes(data)
    memo = Memo(path)
    assert memo.get("a", lambda: 1) == 1
    memo.save()
    assert Memo(path).get("a", never) == 1


@pytest.mark.parametrize("facts", [None, 5, "text", [1]])
def test_facts_of_another_form_are_dropped(path, facts):
    stored(path, a=1)
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"facts": facts}))
    assert Memo(path).get("a", lambda: 2) == 2


def test_what_another_program_found_is_dropped(path, monkeypatch):
    stored(path, a=1)
    monkeypatch.setattr(module, "_maker", lambda: "another")
    assert Memo(path).get("a", lambda: 2) == 2
