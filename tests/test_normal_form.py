import ast
import re
import shutil
import subprocess
import symtable
import sys
from collections import Counter

import pytest
from helpers import ROOT
from rowproof.errors import RowproofError
from rowproof.normal_form import _Binder, analyse, module_of, normal_form

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
ERRORS = "from rowproof.errors import RecordError\n"
LOG = "import logging\nlog = logging.getLogger('rowproof')\n"


def changed(old, new):
    assert BASE.count(old) == 1, old
    return BASE.replace(old, new)


def equal(one, other):
    return normal_form(one) == normal_form(other)


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
        # Variables that no caller can name.
        changed("[x + 1 for x in rest]", "[each + 1 for each in rest]"),
        BASE.replace("*rest", "*others").replace("in rest", "in others"),
        changed("**more", "**options"),
        # One statement or several.
        changed("import math\n", "import math\nimport json, os\n").replace("json, os", "json\nimport os"),
    ],
)
def test_what_cannot_reach_a_record_does_not_matter(source):
    assert source != BASE
    base = BASE if "json" not in source else changed("import math\n", "import math\nimport json, os\n")
    assert equal(source, base)


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
        changed("import math\nfrom math import sin as sine\n", "from math import sin as sine\nimport math\n"),
        changed("*rest", "*others"),
        changed("return f", "yield f"),
        BASE.replace("flag", "mark"),
        BASE.replace("size", "extent"),
        # A string that is no docstring counts, wherever it stands.
        changed('"""Class text."""\n', '"""Class text."""\n    "second"\n'),
        changed("import math\n", "import math\n'text'\n"),
        # A docstring is a plain string: an f-string or bytes in its place is code.
        changed('"""Method text."""', 'f"""{self}"""'),
        changed('"""Method text."""', 'b"x"'),
    ],
)
def test_everything_that_can_change_a_result_matters(source):
    assert not equal(source, BASE)


def test_values_that_are_equal_but_differ_are_told_apart():
    forms = {normal_form(f"x = {text}") for text in ("1", "1.0", "True", "'1'", "b'1'", "1j", "-1", "None", "...")}
    assert len(forms) == 9


FUNCTION = """
def f(given, /, plain, *rest, key=1, **more):
    total = given - plain
    for one, (two, *three) in rest:
        with open(one) as file:
            total += len(file.read())
        try:
            del two
        except OSError as error:
            raise error
    if (last := total) > key:
        match more:
            case {"a": first, **others} | [first, *others] | (first as others):
                return first, others
    def inner(own):
        nonlocal last
        last = own
        return lambda hidden, /: hidden + total + own
    return inner, [(last, item) for item in three if item], {item: last for item in three}
"""


@pytest.mark.parametrize(
    "name",
    "given rest more total one two three file error last first others hidden item".split(),  # noqa: SIM905
)
def test_a_name_of_a_local_does_not_matter(name):
    source = rename(FUNCTION, name, "zebra")
    assert source != FUNCTION and equal(source, FUNCTION)


@pytest.mark.parametrize("name", ["f", "plain", "key", "inner", "own", "read", "len", "OSError", "open"])
def test_a_name_that_others_can_use_matters(name):
    assert not equal(rename(FUNCTION, name, "zebra"), FUNCTION)


def rename(source, old, new):
    return re.sub(rf"\b{old}\b", new, source)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # Roles swapped.
        ("def f(*p):\n a, b = p\n return a - b", "def f(*p):\n a, b = p\n return b - a"),
        ("def f(a, b):\n return a - b", "def f(b, a):\n return a - b"),
        # A local that takes the name of a global, and a global that is no local.
        ("def f():\n x = 1\n return y", "def f():\n y = 1\n return y"),
        ("def f():\n x = 1\n return x, y", "def f():\n y = 1\n return y, y"),
        # A builtin, shadowed or not.
        ("def f(*p):\n a = p\n return len(p)", "def f(*p):\n len = p\n return len(p)"),
        # A variable of the function around, or one's own.
        (
            "def f():\n x = 1\n def g():\n  x = 2\n g()\n return x",
            "def f():\n x = 1\n def g():\n  nonlocal x\n  x = 2\n g()\n return x",
        ),
        (
            "def f():\n x = y = 1\n return lambda: x",
            "def f():\n x = y = 1\n return lambda: y",
        ),
        ("x = 1\ndef f():\n global x\n x = 2", "x = 1\ndef f():\n x = 2"),
        ("def f():\n global x\n x = 2", "def f():\n global y\n y = 2"),
        # A comprehension's variable does not leak, one of := does.
        ("def f(*p):\n x = 1\n [x for x in p]\n return x", "def f(*p):\n y = 1\n [x for x in p]\n return x"),
        (
            "def f(*p):\n x = 1\n [(x := q) for q in p]\n return x",
            "def f(*p):\n x = 1\n [(y := q) for q in p]\n return x",
        ),
        ("def f(*x):\n return [x for x in x]", "def f(*x):\n return [x for y in x]"),
        # The names of a class body are attributes, and functions within do not see them.
        (
            "def f():\n x = 1\n class C:\n  x = 2\n  def g(self):\n   return x\n return C",
            "def f():\n y = 1\n class C:\n  x = 2\n  def g(self):\n   return y\n return C",
        ),
        ("class C:\n x = 1\n def f(self):\n  return x", "class C:\n y = 1\n def f(self):\n  return x"),
        # A name that the text shows.
        ("def f(*p):\n a = p\n return f'{a=}'", "def f(*p):\n b = p\n return f'{b=}'"),
        # Names of arguments, attributes, keys and functions.
        ("def f(*p):\n a = p\n return g(a=a)", "def f(*p):\n b = p\n return g(b=b)"),
        ("def f(*p):\n a = p\n return {'a': a}", "def f(*p):\n b = p\n return {'b': b}"),
        ("def f():\n return lambda a: a", "def f():\n return lambda b: b"),
        ("def f():\n def a(): pass\n return a", "def f():\n def b(): pass\n return b"),
        # Names of a private kind are written anew within a class.
        ("class C:\n def f(self):\n  __a = 1\n  return __a", "class C:\n def f(self):\n  __b = 1\n  return __b"),
        # Names at module level.
        ("a = 1\nb = a", "c = 1\nb = c"),
        ("for a in b: pass", "for c in b: pass"),
    ],
)
def test_variables_are_told_apart_by_python_s_rules_of_scope(one, other):
    assert not equal(one, other)


def classified(text):
    """How often each name is local, free or global in a function or comprehension: by the package, and by Python."""
    tree, mine, theirs = ast.parse(text), Counter(), Counter()
    binder = _Binder()
    for statement in tree.body:
        binder.visit(statement)
    used = {(id(scope), name): scope for scope in binder.scope_of.values() for name in scope.bound}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            scope = binder.scope_of[id(node)]
            used[id(scope), node.id] = scope
        elif isinstance(node, ast.Global):
            scope = binder.scope_of[id(node)]
            used.update({(id(scope), name): scope for name in node.names})
    for (_, name), scope in used.items():
        if scope.kind in ("function", "comprehension"):
            owner = scope.owner(name)
            mine[name, "local" if owner is scope else "global" if owner is binder.module else "free"] += 1

    def visit(table):
        for symbol in table.get_symbols() if table.get_type() == "function" else ():
            own = symbol.is_assigned() or symbol.is_referenced() or symbol.is_parameter() or symbol.is_imported()
            if (own or symbol.is_declared_global()) and not symbol.get_name().startswith("."):
                kind = "local" if symbol.is_local() else "free" if symbol.is_free() else "global"
                theirs[symbol.get_name(), kind] += 1
        for child in table.get_children():
            visit(child)

    visit(symtable.symtable(text, "source", "exec"))
    # Python's tables have names of a private kind as they are written anew within a class.
    return [{key: n for key, n in found.items() if "__" not in key[0]} for found in (mine, theirs)]


def test_every_name_of_the_package_is_resolved_as_python_resolves_it():
    counts = Counter()
    for path in sorted((ROOT / "workflow/rowproof").rglob("*.py")):
        mine, python_s = classified(path.read_text(encoding="utf-8"))
        assert mine == python_s, path
        for (_, kind), n in mine.items():
            counts[kind] += n
    assert counts["local"] > 5000 and counts["global"] > 5000 and counts["free"] > 200


def test_odd_names_are_resolved_as_python_resolves_them():
    mine, python_s = classified(FUNCTION + "x = 1\ndef h():\n    global x, y\n    x = z = [x for x in y]\n    del z\n")
    assert mine == python_s
    assert {("x", "global"), ("x", "local"), ("z", "local"), ("last", "free")} <= set(mine)


@pytest.mark.parametrize(
    "look",
    [
        "locals()",
        "vars()",
        "dir()",
        "eval('a')",
        "exec('a')",
        "globals()",
        "__import__('inspect').stack()",
        "sys._getframe()",
        "builtins.eval('a')",
        "(lambda: locals())()",
        "[locals() for _ in '1']",
    ],
)
def test_names_count_where_code_may_look_at_them(look):
    source = f"def f():\n a = 1\n def g():\n  b = a\n  return {look}\n return g"
    assert not equal(source, rename(source, "a", "c").replace("'c'", "'a'"))
    assert not equal(source, rename(source, "b", "c"))
    blind = source.replace(look, "1")
    assert equal(blind, rename(blind, "a", "c"))


def test_names_count_in_a_whole_file_that_may_look_at_them_by_another_name():
    source = "look = locals\ndef f():\n a = 1\n return look()"
    assert not equal(source, rename(source, "a", "b"))
    assert not equal("import inspect\ndef f():\n a = 1", "import inspect\ndef f():\n b = 1")


def test_what_is_only_for_type_checkers_does_not_matter():
    source = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from rowproof import a\nx = 1"
    assert equal(source, source.replace("import a", "import b\n    import c"))
    assert not analyse(source.encode(), "x.py").imports[1:]
    assert equal(*(f"import typing\nif typing.TYPE_CHECKING:\n    import {name}" for name in "ab"))


@pytest.mark.parametrize(
    "source",
    [
        "from rowproof.x import TYPE_CHECKING\nif TYPE_CHECKING:\n    import a",
        "TYPE_CHECKING = True\nif TYPE_CHECKING:\n    import a",
        "from typing import TYPE_CHECKING\nTYPE_CHECKING = 1\nif TYPE_CHECKING:\n    import a",
        "from typing import TYPE_CHECKING\nfrom y import *\nif TYPE_CHECKING:\n    import a",
        "from typing import TYPE_CHECKING\nif not TYPE_CHECKING:\n    import a",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import b\nelse:\n    import a",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING or x:\n    import a",
        "def f():\n    from typing import TYPE_CHECKING\n    if TYPE_CHECKING:\n        import a",
    ],
)
def test_other_conditions_matter(source):
    assert not equal(source, source.replace("import a", "import c"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("raise RecordError('must be a')", "raise RecordError('must be b')"),
        ("raise RecordError(f'{x}: must be {y!r:>3} or so')", "raise RecordError(f'expected {x}{y!r:>3}')"),
        ("raise RecordError('a', 'b') from None", "raise RecordError('c', 'd') from None"),
        (
            "def f(x):\n    if x:\n        raise RecordError('a')",
            "def f(x):\n    if x:\n        raise RecordError('b')",
        ),
    ],
)
def test_the_text_of_an_error_that_nobody_reads_does_not_matter(one, other):
    assert equal(ERRORS + one, ERRORS + other)
    assert normal_form(ERRORS + one, read=None) != normal_form(ERRORS + other, read=None)
    owner = {"rowproof.errors.RecordError"}
    assert normal_form(ERRORS + one, read=owner) != normal_form(ERRORS + other, read=owner)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("raise RecordError(f'{x}')", "raise RecordError(f'{y}')"),
        ("raise RecordError(f'{x!r}')", "raise RecordError(f'{x}')"),
        ("raise RecordError(f'{x:3}')", "raise RecordError(f'{x:4}')"),
        ("raise RecordError(f'{x}{y}')", "raise RecordError(f'{y}{x}')"),
        ('raise RecordError(f("a"))', 'raise RecordError(f("b"))'),
        ("raise RecordError(t['a'])", "raise RecordError(t['b'])"),
        ("raise RecordError('a' + 'b')", "raise RecordError('a' + 'c')"),
        ("raise RecordError(kind='a')", "raise RecordError(kind='b')"),
        ("raise RecordError(1)", "raise RecordError(2)"),
        ("raise RecordError(b'a')", "raise RecordError(b'b')"),
        ("raise RecordError('a')", "raise RecordError"),
        ("raise RecordError('a')", "raise RecordError('a') from None"),
        ("raise RecordError('a')", "return RecordError('a')"),
        ("raise ValueError('a')", "raise ValueError('b')"),
        ("x = RecordError('a')", "x = RecordError('b')"),
        ("raise make(RecordError('a'))", "raise make(RecordError('b'))"),
        ("def f(RecordError):\n raise RecordError('a')", "def f(RecordError):\n raise RecordError('b')"),
        ("RecordError = g\nraise RecordError('a')", "RecordError = g\nraise RecordError('b')"),
        ("from other import *\nraise RecordError('a')", "from other import *\nraise RecordError('b')"),
    ],
)
def test_all_else_in_a_raise_matters(one, other):
    assert not equal(ERRORS + one, ERRORS + other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("log.info('a %s', x)", "log.info('b %s', x)"),
        ("log.warning(f'{x} a')", "log.warning(f'b {x}')"),
        ("def f():\n    log.error('a')", "def f():\n    log.error('b')"),
        ("logging.debug('a')", "logging.debug('b')"),
    ],
)
def test_the_text_of_a_log_does_not_matter(one, other):
    assert equal(LOG + one, LOG + other)
    assert normal_form(LOG + one, read={"<log>"}) != normal_form(LOG + other, read={"<log>"})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("log.info('a %s', x)", "log.info('a %s', y)"),
        ("log.info('a %s', x)", "log.info('a %s', x())"),
        ("log.info(t['a'])", "log.info(t['b'])"),
        ("log.info('a')", "log.debug('a')"),
        ("log.info('a')", "pass"),
        ("log.info('a', extra={'a': 1})", "log.info('a', extra={'a': 2})"),
        ("x = log.info('a')", "x = log.info('b')"),
        ("log.getChild('a')", "log.getChild('b')"),
        ("other.info('a')", "other.info('b')"),
        ("def f(log):\n    log.info('a')", "def f(log):\n    log.info('b')"),
        ("log = x\nlog.info('a')", "log = x\nlog.info('b')"),
        ("logging.getLogger('a')", "logging.getLogger('b')"),
    ],
)
def test_all_else_of_a_log_matters(one, other):
    assert not equal(LOG + one, LOG + other)


def placed(source, *paths):
    return len({normal_form(source, path) for path in paths})


PLACES = ("workflow/rowproof/a.py", "workflow/rowproof/b/c.py")


@pytest.mark.parametrize(
    "source",
    [
        "x = __file__",
        "x = __name__",
        "def f():\n    return __package__",
        "class C:\n    x = __qualname__, __module__",
        "log = getLogger(__name__)",
        "import logging\nlog = logging.getLogger(__name__ + 'x')",
        "from importlib import import_module\nx = import_module(f'{__package__}.x', __name__)",
        "from importlib.resources import files\nx = files(__package__)",
        "x = f'{__package__}.x'",
    ],
)
def test_code_that_asks_for_its_place_has_one(source):
    assert placed(source, *PLACES) == 2


@pytest.mark.parametrize(
    "source",
    [
        "x = 1",
        "import logging\nlog = logging.getLogger(__name__)",
        "from logging import getLogger\nlog = getLogger(__name__)",
        "from importlib import import_module\nx = import_module(f'{__package__}.egos.{policy}')",
        "import importlib\nx = importlib.import_module('.egos', __package__)",
        "x = type(y).__name__",
        "def f():\n    return f.__qualname__",
    ],
)
def test_other_code_has_no_place(source):
    assert placed(source, *PLACES) == 1


@pytest.mark.parametrize("look", ["x.__file__", "x.__module__", "getattr(x, '__file__')", "vars(x)['__spec__']"])
def test_code_that_asks_for_the_place_of_others_is_known(look):
    assert analyse(f"y = {look}".encode(), "x.py").sees == ["places"]


@pytest.mark.parametrize(
    ("expression", "sees"),
    [
        ("import_module(name).__path__", []),
        ("import_module(f'{__package__}.x').__path__", ["places"]),
        # This import is shown without its name.
        ("import_module('rowproof.x').__path__", ["places"]),
        ("load(name).__path__", ["places"]),
    ],
)
def test_the_place_of_a_module_whose_name_the_code_states_is_known_by_that_name(expression, sees):
    assert analyse(f"from importlib import import_module\ny = {expression}".encode(), "x.py").sees == sees


def test_the_name_of_an_imported_module_is_a_place():
    assert analyse(b"from rowproof import x\ny = x.__name__", "x.py").sees == ["places"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import a.b.c as d", [("a.b.c", "")]),
        ("from a import b", [("a", "b")]),
        ("from . import b", [("rowproof.f", "b")]),
        ("from .b import c", [("rowproof.f.b", "c")]),
        ("from ..b import c", [("rowproof.b", "c")]),
        ("def f():\n    import a\n    class C:\n        from b import c", [("a", ""), ("b", "c")]),
        ("if x:\n    import a\ntry:\n    import b\nexcept E:\n    import c", [("a", ""), ("b", ""), ("c", "")]),
        ("from a import *", [("a", "*")]),
        ("import importlib\nimportlib.import_module('rowproof.x')", [("importlib", ""), ("rowproof.x", "")]),
    ],
)
def test_imports_of_every_kind_are_found(source, expected):
    found = analyse(source.encode(), "workflow/rowproof/f/x.py").imports
    assert sorted((module, name) for module, name, _ in found) == sorted(expected)


@pytest.mark.parametrize(("source", "expected"), [("from . import b", "rowproof.f"), ("from .. import b", "rowproof")])
def test_relative_imports_of_a_package_start_at_the_package(source, expected):
    (found,) = analyse(source.encode(), "workflow/rowproof/f/__init__.py").imports
    assert found == (expected, "b", 1)


def test_modules_have_names_and_scripts_have_none():
    assert module_of("workflow/rowproof/a/b.py") == "rowproof.a.b"
    assert module_of("workflow/rowproof/a/__init__.py") == "rowproof.a"
    assert module_of("workflow/scripts/a.py") == module_of("workflow/rowproof/a.txt") == ""


@pytest.mark.parametrize("source", [b"def f(:\n", b"x = '\xff'", b"x = 1\0", b"\n\nreturn return", b"(" * 5000])
def test_what_is_no_python_is_named(source):
    with pytest.raises(RowproofError, match=r"^here\.py:[0-9]+: must be Python source"):
        analyse(source, "here.py")


PROGRAM = r"""
import sys
from pathlib import Path
from rowproof.normal_form import normal_form
for path in sorted(Path(sys.argv[1]).rglob("*.py")):
    print(path, ascii(normal_form(path.read_text(encoding="utf-8"), read=None)))
for text in ('{x:}', '{x=}', '{x = !r:>{w}}', '{x:{w}.{p}f}', '{{}}{x}', '', '{x:a{y}b}', '{x:{{}}}'):
    print(ascii(normal_form(f"y = f'{text}'")))
"""


@pytest.mark.parametrize("other", ["python3.12", "python3.13"])
def test_the_form_is_the_same_in_every_python(other):
    program = shutil.which(other)
    command = ["-c", PROGRAM, str(ROOT / "workflow/rowproof/chamber")]
    options = {"capture_output": True, "cwd": ROOT / "workflow", "check": False, "encoding": "utf-8"}
    there = program and subprocess.run([program, *command], **options)
    if not there or "No module" in there.stderr or "not found" in there.stderr or there.returncode == 127:
        pytest.skip(f"{other} is not here")
    here = subprocess.run([sys.executable, *command], **options)
    assert here.returncode == there.returncode == 0, there.stderr
    assert here.stdout == there.stdout and len(here.stdout) > 100_000
