import json
import os
import sys
import threading
import time

import pytest
from helpers import ROOT
from rowproof import closure as module
from rowproof.closure import OBSERVERS, HashCache, analyse, closure, normal_form
from rowproof.errors import RowproofError
from rowproof.hashing import sha256_hex
from rowproof.recipes import SCRIPTS

BASE = '''
"""Module text."""
import math
from math import sin as sine


@decorate(1)
class Box(Base):
    """Class text."""

    size: int = 3

    def area(self, scale: float = 2.0, *rest, flag=True, **more) -> float:
        """Method text."""
        if flag and self.size > 1:
            return f"{scale * self.size:.3f}"
        return [x + 1 for x in rest]

    async def wait(self):
        """Coroutine text."""
        await sleep(0.5)
'''


def changed(old, new):
    assert BASE.count(old) == 1, old
    return BASE.replace(old, new)


@pytest.mark.parametrize(
    "source",
    [
        BASE.replace("import math\n", "import math  # why\n# more\n"),
        changed('"""Module text."""', '"""Another."""'),
        changed('"""Module text."""', ""),
        changed('    """Class text."""\n', ""),
        changed('"""Method text."""', "'other'"),
        changed('        """Coroutine text."""\n', ""),
        BASE.replace("\n\n", "\n\n\n\n"),
        changed('f"{scale * self.size:.3f}"', "f'{scale * self.size:.3f}'"),
        changed("self.size > 1", "(self.size) > 1"),
        changed("sleep(0.5)", "sleep(0.50,)"),
        changed("[x + 1 for x in rest]", "[\n            x + 1\n            for x in rest\n        ]"),
        changed("if flag and self.size > 1:", "if (\n            flag and\n            self.size > 1\n        ):"),
        BASE.replace("    ", "\t"),
        BASE.replace("\n", "\r\n"),
    ],
)
def test_layout_comments_and_docstrings_do_not_matter(source):
    assert source != BASE
    assert normal_form(source) == normal_form(BASE)


@pytest.mark.parametrize(
    "source",
    [
        changed("size: int = 3", "size: int = 4"),
        changed("size: int = 3", "size: int = 3.0"),
        changed("size: int = 3", "size: int = True"),
        changed("size: int = 3", "size: float = 3"),
        changed("size: int = 3", "size = 3"),
        changed("scale * self.size", "scale + self.size"),
        changed("self.size > 1", "self.size >= 1"),
        changed("flag and self", "flag or self"),
        changed("scale: float = 2.0", "scale: float = 2.5"),
        changed("scale: float = 2.0", "scale: float"),
        changed("flag=True", "flag=False"),
        changed("@decorate(1)", "@decorate(2)"),
        changed("@decorate(1)\n", ""),
        changed("-> float", "-> int"),
        changed("class Box", "class Bag"),
        changed("def area", "def space"),
        changed("Box(Base)", "Box"),
        changed(":.3f", ":.4f"),
        changed("x + 1 for", "x + 1 + 0 for"),
        changed("[x + 1 for x in rest]", "(x + 1 for x in rest)"),
        changed("await sleep(0.5)", "sleep(0.5)"),
        changed("sin as sine", "cos as sine"),
        changed("sin as sine", "sin"),
        changed("*rest", "*others"),
        changed("return f", "yield f"),
        # A string that is no docstring counts, wherever it stands.
        changed('"""Class text."""\n', '"""Class text."""\n    "second"\n'),
        changed("import math\n", "import math\n'text'\n"),
        # A docstring is a plain string: an f-string or bytes in its place is code.
        changed('"""Method text."""', 'f"""{self}"""'),
        changed('"""Method text."""', 'b"x"'),
    ],
)
def test_everything_that_can_change_a_result_matters(source):
    assert normal_form(source) != normal_form(BASE)


def test_values_that_are_equal_but_differ_are_told_apart():
    forms = {normal_form(f"x = {text}") for text in ("1", "1.0", "True", "'1'", "b'1'", "1j", "-1", "None", "...")}
    assert len(forms) == 9


@pytest.mark.parametrize(
    ("source", "name", "is_package", "expected"),
    [
        ("import a.b.c as d", "rowproof.x", False, {"a.b.c"}),
        ("from a import b", "rowproof.x", False, {"a", "a.b"}),
        ("from . import b", "rowproof.f.x", False, {"rowproof.f", "rowproof.f.b"}),
        ("from .b import c", "rowproof.f.x", False, {"rowproof.f.b", "rowproof.f.b.c"}),
        ("from ..b import c", "rowproof.f.x", False, {"rowproof.b", "rowproof.b.c"}),
        ("from . import b", "rowproof.f", True, {"rowproof.f", "rowproof.f.b"}),
        ("from .. import b", "rowproof.f", True, {"rowproof", "rowproof.b"}),
        ("def f():\n    import a\n    class C:\n        from b import c", "m", False, {"a", "b", "b.c"}),
        ("if x:\n    import a\ntry:\n    import b\nexcept E:\n    import c", "m", False, {"a", "b", "c"}),
    ],
)
def test_imports_of_every_kind_are_found(source, name, is_package, expected):
    assert set(analyse(source.encode(), name, is_package, "x").imports) == expected


@pytest.mark.parametrize("source", [b"def f(:\n", b"x = '\xff'", b"x = 1\0", b"\n\nreturn return"])
def test_what_is_no_python_is_named(source):
    with pytest.raises(RowproofError, match=r"^here\.py:[0-9]+: must be Python source"):
        analyse(source, "m", False, "here.py")


@pytest.fixture
def tree(tmp_path):
    files = {
        "workflow/scripts/run.py": "import json, numpy.linalg\nfrom rowproof import jobs, top\n",
        "workflow/rowproof/__init__.py": "",
        "workflow/rowproof/top.py": "def f():\n    from rowproof.deep.inner import leaf\n",
        "workflow/rowproof/deep/__init__.py": "from . import helper\n",
        "workflow/rowproof/deep/helper.py": "import scipy\n",
        "workflow/rowproof/deep/inner/__init__.py": "",
        "workflow/rowproof/deep/inner/leaf.py": "from ...side import thing\n",
        "workflow/rowproof/side.py": "thing = 1\nimport rowproof.top\n",
        "workflow/rowproof/jobs.py": "from rowproof import watched\n",
        "workflow/rowproof/watched.py": "import pandas\n",
        "workflow/rowproof/named.py": "",
        "workflow/rowproof/unused.py": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_closure_follows_every_path_and_stops_at_observers(tree):
    found = closure(tree, ["workflow/scripts/run.py"], ["rowproof.named"], HashCache(None))
    names = {path.removeprefix("workflow/") for path in found.code}
    assert names == {
        "scripts/run.py",
        "rowproof/__init__.py",
        "rowproof/top.py",
        "rowproof/deep/__init__.py",
        "rowproof/deep/helper.py",
        "rowproof/deep/inner/__init__.py",
        "rowproof/deep/inner/leaf.py",
        "rowproof/side.py",
        "rowproof/named.py",
    }
    assert found.packages == ("numpy", "scipy")
    assert list(found.code) == sorted(found.code)


@pytest.mark.parametrize(
    ("file", "counts"),
    [("deep/inner/leaf.py", True), ("deep/__init__.py", True), ("jobs.py", False), ("unused.py", False)],
)
def test_only_reached_code_changes_the_closure(tree, file, counts):
    before = closure(tree, ["workflow/scripts/run.py"], [], HashCache(None)).code
    with (tree / "workflow/rowproof" / file).open("a") as stream:
        stream.write("\nnew = 2\n")
    assert (closure(tree, ["workflow/scripts/run.py"], [], HashCache(None)).code != before) == counts


def test_observers_exist_and_are_in_no_shipped_closure():
    for name in OBSERVERS:
        assert (ROOT / "workflow" / (name.replace(".", "/") + ".py")).is_file(), name
    for script in SCRIPTS.values():
        code = closure(ROOT, [script], [], HashCache(None)).code
        assert script in code
        assert not {f"workflow/{name.replace('.', '/')}.py" for name in OBSERVERS} & set(code)


def hashed(path, cache_file=None):
    cache = HashCache(cache_file)
    return cache, cache.sha256(path)


def test_cache_spares_the_reading(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"one")
    calls = []
    cache = HashCache(None)
    for _ in range(3):
        cache.get("kind", path, lambda data: calls.append(data) or len(data))
    assert calls == [b"one"]
    assert cache.get("other", path, lambda data: data.decode()) == "one"


@pytest.fixture
def settled(monkeypatch):
    monkeypatch.setattr(module, "_SETTLED_NS", 0)


def test_cache_is_read_back(tmp_path, settled):
    path, store = tmp_path / "x", tmp_path / "cache.json"
    path.write_bytes(b"one")
    time.sleep(0.02)
    cache, digest = hashed(path, store)
    cache.save()
    later = HashCache(store)
    assert later.get("sha256", path, lambda data: pytest.fail("was read again")) == digest


def test_cache_sees_other_content_of_equal_size_and_mtime(tmp_path, settled):
    path, store = tmp_path / "x", tmp_path / "cache.json"
    path.write_bytes(b"one")
    time.sleep(0.02)
    cache, digest = hashed(path, store)
    cache.save()
    stat = path.stat()
    with path.open("r+b") as stream:
        stream.write(b"two")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns, path.stat().st_ino) == (3, stat.st_mtime_ns, stat.st_ino)
    assert hashed(path, store)[1] == sha256_hex(b"two") != digest


def test_cache_does_not_keep_what_could_change_within_the_same_tick(tmp_path, monkeypatch):
    path, store = tmp_path / "x", tmp_path / "cache.json"

    def coarse(path):
        stat = path.stat()
        tick = 2 * 10**9
        return [stat.st_size, stat.st_mtime_ns // tick * tick, stat.st_ctime_ns // tick * tick, stat.st_ino]

    monkeypatch.setattr(HashCache, "_stamp", staticmethod(coarse))
    path.write_bytes(b"one")
    hashed(path, store)[0].save()
    with path.open("r+b") as stream:
        stream.write(b"two")
    assert hashed(path, store)[1] == sha256_hex(b"two")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'"x"', b"{}", b"\xff", b'{"maker": 1, "entries": 5}'])
def test_a_damaged_cache_is_dropped(tmp_path, content):
    path, store = tmp_path / "x", tmp_path / "cache.json"
    path.write_bytes(b"one")
    store.write_bytes(content)
    cache, digest = hashed(path, store)
    assert digest == sha256_hex(b"one")
    cache.save()
    assert json.loads(store.read_bytes())["maker"] == module._MAKER


def test_a_cache_of_other_code_is_dropped(tmp_path, settled, monkeypatch):
    path, store = tmp_path / "x", tmp_path / "cache.json"
    path.write_bytes(b"one")
    time.sleep(0.02)
    hashed(path, store)[0].save()
    monkeypatch.setattr(module, "_MAKER", "another")
    calls = []
    HashCache(store).get("sha256", path, lambda data: calls.append(data))
    assert calls == [b"one"]


def test_concurrent_saves_leave_a_whole_file(tmp_path, settled):
    paths = [tmp_path / f"x{i}" for i in range(20)]
    for path in paths:
        path.write_bytes(path.name.encode())
    store = tmp_path / "cache.json"
    time.sleep(0.02)
    seen = []

    def work(own):
        for _ in range(10):
            cache = HashCache(store)
            for path in own:
                cache.sha256(path)
            cache.save()
            seen.append(len(json.loads(store.read_bytes())["entries"]))

    threads = [threading.Thread(target=work, args=(paths[i::2],)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 20 and min(seen) >= 1
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".tmp")] == []


def test_the_maker_names_python():
    assert sys.implementation.cache_tag in module._MAKER
