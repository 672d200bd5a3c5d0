import json
import os
import subprocess
import sys
import threading
import time

import pytest
from helpers import ROOT
from rowproof import closure as module
from rowproof.closure import OBSERVERS, CommitSources, FolderSources, HashCache, closure
from rowproof.errors import HistoryGap, RowproofError
from rowproof.hashing import sha256_hex
from rowproof.recipes import SCRIPTS
from sources import Texts, package, stages

SCRIPT = "workflow/scripts/run.py"
TREE = {
    SCRIPT: "import json, numpy.linalg\nfrom rowproof import jobs, top\n",
    "workflow/rowproof/__init__.py": '"""The package."""\n',
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
    "workflow/rowproof/errors.py": "class Wrong(Exception):\n    pass\nclass Worse(Wrong):\n    code = 2\n",
}


def found(changes=None, scripts=(SCRIPT,), modules=()):
    """The closure of the tree with other texts, by path below ``rowproof`` or whole; None takes a file away."""
    texts = dict(TREE)
    for path, text in (changes or {}).items():
        texts[path if path.startswith("workflow/") else f"workflow/rowproof/{path}"] = text
    return closure(Texts({path: text for path, text in texts.items() if text is not None}), scripts, modules)


def key(changes=None, **roots):
    return found(changes, **roots).key


@pytest.fixture
def tree(tmp_path):
    for name, text in TREE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_a_closure_follows_every_path_and_stops_at_observers():
    got = found(modules=["rowproof.named"])
    names = {path.removeprefix("workflow/") for path in got.files}
    # Files that run nothing are not shown.
    assert names == {
        "scripts/run.py",
        "rowproof/top.py",
        "rowproof/deep/__init__.py",
        "rowproof/deep/helper.py",
        "rowproof/deep/inner/leaf.py",
        "rowproof/side.py",
    }
    assert got.packages == {"numpy": f"{SCRIPT}:1", "scipy": "workflow/rowproof/deep/helper.py:1"}
    assert list(got.files) == sorted(got.files)
    assert len(got.key) == 64 and all(len(digest) == 64 for digest in got.files.values())


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("deep/inner/leaf.py", True),
        ("deep/inner/__init__.py", True),
        ("deep/__init__.py", True),
        # It loads modules and hands them nothing.
        ("__init__.py", False),
        ("jobs.py", False),
        ("watched.py", False),
        ("unused.py", False),
    ],
)
def test_only_reached_code_changes_the_key(file, counts):
    before, after = found(), found({file: TREE[f"workflow/rowproof/{file}"] + "\nnew = 2\n"})
    assert (after.key != before.key) == (after.files != before.files) == counts


def test_the_package_itself_offers_no_names():
    with pytest.raises(RowproofError, match="from rowproof import CONSTANT: must be a module"):
        found({"__init__.py": "CONSTANT = 1\n", "side.py": "from rowproof import CONSTANT\n\nthing = CONSTANT\n"})


def moved(old, new, texts):
    """The tree with a module elsewhere; ``texts`` has what must be written anew for that."""
    return {f"{old}.py": None, f"{new}.py": TREE[f"workflow/rowproof/{old}.py"], **texts}


@pytest.mark.parametrize(
    "changes",
    [
        # A module of another name, whether the alias is spelled out or not.
        {SCRIPT: "import json, numpy.linalg\nfrom rowproof import jobs as jobs, top as top\n"},
        moved("deep/helper", "deep/other", {"deep/__init__.py": "from rowproof.deep import other as helper\n"}),
        moved("side", "far/away/x", {"deep/inner/leaf.py": "from rowproof.far.away.x import thing\n"}),
        moved("side", "far/x", {"deep/inner/leaf.py": "from ...far.x import thing\n", "far/__init__.py": "'Text.'"}),
        moved(
            "deep/inner/leaf",
            "deep/inner/page",
            {"top.py": "def f():\n    from rowproof.deep.inner import page as leaf\n"},
        ),
        moved("side", "far/below", {"deep/inner/leaf.py": "from rowproof.far.below import thing\n"}),
        # Relative or not.
        {"deep/__init__.py": "from rowproof.deep import helper\n"},
        {"deep/inner/leaf.py": "from rowproof.side import thing\n"},
        {"deep/inner/leaf.py": "from rowproof.side import thing as thing\n"},
        # A package in place of a module.
        {"side.py": None, "side/__init__.py": TREE["workflow/rowproof/side.py"]},
        # Packages that run nothing.
        {"deep/inner/__init__.py": "'Text.'"},
        {"deep/inner/__init__.py": None},
    ],
)
def test_a_module_that_moves_leaves_the_key(changes):
    assert key(changes) == key()


@pytest.mark.parametrize(
    "changes",
    [
        {"deep/inner/leaf.py": "from ...unused import thing\n"},
        {"deep/inner/leaf.py": "from ...side import other\n"},
        {"deep/inner/leaf.py": "from ...side import thing as other\n"},
        {"deep/inner/leaf.py": "from ...side import *\n"},
        {"deep/inner/leaf.py": "from ... import side\n"},
        {"deep/inner/leaf.py": "import rowproof.side\n"},
        {"deep/inner/leaf.py": "from ...missing import thing\n"},
        {"deep/inner/leaf.py": "try:\n    from ...side import thing\nexcept ImportError:\n    thing = 2\n"},
        {"deep/inner/leaf.py": "if x:\n    from ...side import thing\n"},
        {"deep/inner/leaf.py": "def f():\n    from ...side import thing\n"},
        {"top.py": "from rowproof.deep.inner import leaf\n"},
        {SCRIPT: "import json, scipy.linalg\nfrom rowproof import jobs, top\n"},
        {SCRIPT: "import json, numpy\nfrom rowproof import jobs, top\n"},
        {SCRIPT: "import json, numpy.linalg\nfrom rowproof import top\n"},
        {SCRIPT: "import json, numpy.linalg\nfrom rowproof import top, jobs\n"},
        {SCRIPT: "import json, numpy.linalg\nfrom rowproof.jobs import a\nfrom rowproof import top\n"},
        # A package around that runs something: helper leaves one, side enters one.
        moved("deep/helper", "far/helper", {"deep/__init__.py": "from ..far import helper\n"}),
        moved("side", "deep/inner/below", {"deep/inner/leaf.py": "from rowproof.deep.inner.below import thing\n"}),
        {"deep/inner/__init__.py": "x = 1"},
    ],
)
def test_what_an_import_reaches_counts(changes):
    assert key(changes) != key()


def test_a_name_that_is_a_module_in_one_tree_is_an_attribute_in_another():
    importer = {"deep/__init__.py": "from rowproof.pack import part\n"}
    as_module = {**importer, "pack/__init__.py": "", "pack/part.py": "x = 1\n"}
    attribute = {**importer, "pack/__init__.py": "part = 1\n"}
    both = {**attribute, "pack/part.py": "x = 1\n"}
    lazy = {**importer, "pack/__init__.py": "def __getattr__(name): ...\n", "pack/part.py": "x = 1\n"}
    assert len({key(as_module), key(attribute), key(both), key(lazy)}) == 4
    assert "workflow/rowproof/pack/part.py" in found(both).files
    for changes in (both, lazy):
        assert key({**changes, "pack/part.py": "x = 2\n"}) != key(changes)


def test_functions_of_two_modules_cannot_be_exchanged():
    one = {"a.py": "def f(): return 1\n", "b.py": "def f(): return 2\n"}
    use = "from rowproof.{} import f\nfrom rowproof.{} import f as g\n"
    keys = {key({**one, "top.py": use.format(*names)}) for names in ("ab", "ba", "aa", "bb")}
    assert len(keys) == 4


def test_files_of_equal_text_are_told_apart():
    same = {"a.py": "x = []\n", "b.py": "x = []\n"}
    use = "from rowproof.{} import x\nfrom rowproof.{} import x as y\n"
    assert key({**same, "top.py": use.format("a", "b")}) != key({**same, "top.py": use.format("a", "a")})


def test_circular_imports_end():
    circle = {"a.py": "from rowproof import b\nx = 1\n", "b.py": "from rowproof import a\n"}
    one = found({**circle, "top.py": "from rowproof import a\n"})
    assert {"workflow/rowproof/a.py", "workflow/rowproof/b.py"} < set(one.files)
    assert key({**circle, "top.py": "from rowproof import b as a\n"}) != one.key
    assert key({"top.py": "from rowproof import top\n"}) != key({"top.py": "from rowproof import side as top\n"})


def test_a_star_import_of_a_package_reaches_the_modules_that_it_offers():
    star = {"top.py": "from rowproof.pack import *\n", "pack/part.py": "x = 1\n"}
    listed = {**star, "pack/__init__.py": "__all__ = ['part']\n"}
    assert "workflow/rowproof/pack/part.py" in found(listed).files
    assert "workflow/rowproof/pack/part.py" not in found({**star, "pack/__init__.py": "x = 1\n"}).files
    assert key({**listed, "pack/part.py": "x = 2\n"}) != key(listed)


def test_a_module_that_is_loaded_by_a_constant_name_is_reached():
    load = {"top.py": "from importlib import import_module\nx = import_module('rowproof.side')\n"}
    assert "workflow/rowproof/side.py" in found(load).files
    assert key({**load, "side.py": "thing = 2\n"}) != key(load)
    renamed = {"top.py": load["top.py"].replace("side", "other"), "side.py": None, "other.py": "thing = 1\n"}
    assert key({**renamed, "deep/inner/leaf.py": ""}) == key({**load, "side.py": "thing = 1\n"})
    foreign = {"top.py": "import importlib\nx = importlib.import_module('torch.nn')\n"}
    assert found(foreign).packages["torch"] == "workflow/rowproof/top.py:2"


def test_a_module_that_is_an_attribute_of_its_package_is_reached():
    use = {"top.py": "import rowproof\nx = rowproof.side.thing\n"}
    assert "workflow/rowproof/side.py" in found(use).files
    assert key({**use, "side.py": "thing = 2\n"}) != key(use)
    assert "workflow/rowproof/watched.py" not in found({"top.py": "import rowproof\nx = rowproof.jobs.watched\n"}).files
    through = {"top.py": "from rowproof import deep\nx = deep.inner.leaf.thing\n"}
    assert "workflow/rowproof/side.py" in found(through).files


def test_the_order_of_roots_counts():
    names = ["rowproof.named", "rowproof.unused"]
    other = {"named.py": "x = 1\n", "unused.py": "x = 2\n"}
    assert key(other, modules=names) != key(other, modules=names[::-1])
    assert key(modules=names) != key(modules=names[:1]) != key()
    assert key({SCRIPT: "x = 1"}, modules=["rowproof.side"]) != key({SCRIPT: "x = 1"}, modules=["rowproof.top"])


def test_a_root_of_another_name_leaves_the_key():
    new = {"other.py": "x = 1\n", "named.py": "x = 1\n", "workflow/scripts/b.py": TREE[SCRIPT]}
    assert key(new, modules=["rowproof.named"]) == key(new, modules=["rowproof.other"])
    assert key(new, scripts=["workflow/scripts/b.py"]) == key()


def test_a_file_that_is_program_and_module_is_one():
    one = found(scripts=[SCRIPT, "workflow/rowproof/side.py"])
    assert one.files == found().files and one.key != key()
    # It cannot be told from a copy by its text, but by what reaches it.
    assert one.key != key({"workflow/scripts/copy.py": "thing = 1\nimport rowproof.top\n"},
                          scripts=[SCRIPT, "workflow/scripts/copy.py"])  # fmt: skip


@pytest.mark.parametrize("roots", [{"scripts": ["workflow/scripts/none.py"]}, {"modules": ["rowproof.deep.none"]}])
def test_a_root_that_is_missing_is_named(roots):
    with pytest.raises(RowproofError, match=r"none.* must be a .* of the project, found none"):
        found(**roots)


def test_code_that_asks_for_its_place_binds_it():
    def at(path, text):
        where = path.removesuffix(".py").replace("/", ".")
        return key({"top.py": f"from rowproof.{where} import x\n", path: text})

    assert at("a.py", "x = 1") == at("b/c.py", "x = 1")
    assert at("a.py", "x = __file__") != at("b/c.py", "x = __file__")
    # What one module may ask of others binds all.
    asks = {"top.py": "from rowproof.deep import helper\nx = y.__module__\n"}
    away = moved("deep/helper", "deep/h", {"deep/__init__.py": "from . import h as helper\n"})
    assert key(asks) != key({**asks, **away})


RAISES = "from rowproof.errors import Worse\ndef f(x):\n    raise Worse({!r})\n"
HANDLER = """import json
import logging
from rowproof.errors import Worse, Wrong
from rowproof.deep.inner import leaf
log = logging.getLogger("x")
class Other(Wrong):
    pass
def f():
    try:
        leaf.thing()
"""


def handled(text):
    return HANDLER + "".join(f"    {line}\n" for line in text.split("\n"))


def text_counts(changes=None, text=RAISES):
    one, other = ({**(changes or {}), "side.py": text.format(word)} for word in ("must be", "has to be"))
    return key(one) != key(other)


@pytest.mark.parametrize(
    "handler",
    [
        "except Wrong as error:\n    raise",
        "except Wrong as error:\n    raise error",
        "except Wrong as error:\n    raise error from None",
        "except Wrong as error:\n    raise Worse('text') from error",
        "except Wrong as error:\n    raise Worse(f'here: {error}') from None",
        "except Wrong:\n    x = 1",
        "except Wrong as error:\n    log.warning('here: %s', error)",
        "except OSError as error:\n    x = str(error)",
        "except json.JSONDecodeError as error:\n    x = str(error)",
        "except (ValueError, KeyError) as error:\n    x = str(error)",
        "except Other as error:\n    x = str(error)",
    ],
)
def test_the_text_of_an_error_does_not_count_where_nobody_reads_it(handler):
    assert not text_counts({"top.py": handled(handler)})


@pytest.mark.parametrize(
    "handler",
    [
        "except Wrong as error:\n    x = str(error)",
        "except Worse as error:\n    x = f'{error}'",
        "except Worse as error:\n    return error.args",
        "except Worse as error:\n    return error.detail",
        "except Worse as error:\n    print(error)",
        "except Worse as error:\n    raise ValueError(f'here: {error}') from None",
        "except Worse as error:\n    raise make(error)",
        "except Worse as error:\n    raise Worse('x') from make(error)",
        "except Worse as error:\n    return lambda: error",
        "except (OSError, Wrong) as error:\n    x = str(error)",
        "except Exception as error:\n    x = str(error)",
        "except BaseException as error:\n    x = str(error)",
        "except KINDS as error:\n    x = str(error)",
        "except* Wrong as error:\n    x = str(error)",
        "except Wrong:\n    x = str(sys.exc_info()[1])",
        "except Wrong:\n    x = traceback.format_exc()",
        "except OSError as error:\n    x = str(error.__context__)",
        "except OSError as error:\n    x = getattr(error, '__cause__')",
        "except OSError:\n    x = future.exception()",
        "except OSError:\n    x = subprocess.run([], capture_output=True)",
    ],
)
def test_the_text_of_an_error_counts_where_somebody_may_read_it(handler):
    assert text_counts({"top.py": handled(handler)})


def test_the_text_of_an_error_counts_where_a_function_within_sees_it():
    shown = "def show():\n    return error\ntry:\n    leaf.thing()\nexcept Wrong as error:\n    {}\n"
    text = HANDLER.replace("    try:\n        leaf.thing()\n", "") + "".join(
        f"    {line}\n" for line in shown.format("x = show()").splitlines()
    )
    assert text_counts({"top.py": text})
    assert not text_counts({"top.py": text.replace("return error", "return 1")})


def test_the_text_of_an_error_counts_where_a_module_catches_it():
    text = "from rowproof.deep.inner import leaf\nfrom rowproof.errors import Wrong\ntry:\n    x()\n"
    text += "except Wrong as error:\n    show()\n"
    assert text_counts({"top.py": text})
    assert not text_counts({"top.py": text.replace(" as error", "")})


def test_a_text_that_joins_the_text_of_another_error_is_read_with_it():
    hands_on = handled("except Worse as error:\n    raise Other(f'here: {error}') from None")
    assert not text_counts({"top.py": hands_on})
    reads = (
        "from rowproof.top import Other\n" + handled("except Other as error:\n    print(error)").partition("pass\n")[2]
    )
    assert text_counts({"top.py": hands_on, "deep/helper.py": reads})
    assert not text_counts({"top.py": hands_on.replace("{error}", ""), "deep/helper.py": reads})


@pytest.mark.parametrize(
    "kind",
    [
        "class Worse(ValueError):\n    pass",
        "class Worse(Exception):\n    def __init__(self, text):\n        self.text = text",
        "class Worse(Exception):\n    def __str__(self):\n        return 'x'",
        "class Worse(Exception, metaclass=Meta):\n    pass",
        "@register\nclass Worse(Exception):\n    pass",
        "class Base(KeyError):\n    pass\nclass Worse(Base):\n    pass",
        "class Worse(Unknown):\n    pass",
        "Worse = make()",
        "def Worse(text): ...",
    ],
)
def test_the_text_counts_of_errors_that_may_do_something_with_it(kind):
    assert text_counts({"errors.py": kind})
    assert text_counts(text=kind.replace("{", "{{") + "\ndef f(x):\n    raise Worse({!r})\n")


def test_an_error_that_a_module_passes_on_is_followed_to_its_origin():
    passes = {"other.py": "from rowproof.errors import Worse as Bad\n"}
    raises = "from rowproof.other import Bad\ndef f(x):\n    raise Bad({!r})\n"
    assert not text_counts(passes, raises)
    assert text_counts({**passes, "top.py": handled("except Wrong as error:\n    print(error)")}, raises)


def test_what_an_error_is_caught_by_counts():
    use = {"side.py": RAISES.format("x")}
    errors = TREE["workflow/rowproof/errors.py"]
    assert key(use) != key({**use, "errors.py": errors.replace("Worse(Wrong)", "Worse(Exception)")})
    more = errors.replace("code = 2", "code = 3") + "class New(Wrong):\n    pass\n"
    assert key(use) == key({**use, "errors.py": more})


LOGS = "import logging\nlog = logging.getLogger(__name__)\nlog.info({!r})\n"


def test_the_text_of_a_log_counts_where_somebody_may_read_it():
    assert not text_counts(text=LOGS)
    for look in ("getLogger().addHandler(h)", "class H(logging.Handler): ...", "logging.basicConfig()", "os.fork()"):
        assert text_counts({"deep/helper.py": look}, LOGS)


def test_docstrings_count_where_somebody_may_read_them():
    text = "thing = 1\ndef f():\n    {!r}\n"
    assert not text_counts(text=text)
    for look in ("print(f.__doc__)", "x.model_json_schema()", "getattr(f, '__doc__')", "C(use_attribute_docstrings=1)"):
        assert text_counts({"deep/helper.py": look}, text)
        assert text_counts({"deep/helper.py": look}, "{!r}")


def test_all_text_counts_where_frames_may_be_read():
    plain, comment = ({"side.py": f"thing = 1{why}\ndef f():\n    local = 1\n"} for why in ("", "  # why"))
    assert key(plain) == key(comment)
    for look in ("sys._getframe(1).f_locals", "traceback.format_exc()", "inspect.getsource(f)"):
        frames = {"deep/helper.py": look}
        assert key({**plain, **frames}) != key({**comment, **frames})


def test_the_order_of_files_in_a_folder_has_no_say():
    texts = package().texts
    other = Texts(dict(reversed(texts.items())))
    for scripts, modules in stages().values():
        assert closure(other, scripts, modules) == closure(package(), scripts, modules)


def test_observers_exist_and_are_in_no_shipped_closure():
    for name in OBSERVERS:
        assert (ROOT / "workflow" / (name.replace(".", "/") + ".py")).is_file(), name
    for script in SCRIPTS.values():
        files = closure(package(), [script], []).files
        assert script in files
        assert not {f"workflow/{name.replace('.', '/')}.py" for name in OBSERVERS} & set(files)


def test_nothing_that_runs_in_a_stage_may_read_frames():
    # Otherwise its key would change with every comment.
    for scripts, modules in stages().values():
        files = closure(package(), scripts, modules).files
        assert not [path for path in files if "frames" in package().analysis(path).sees]


def test_closures_of_a_folder_are_remembered(tmp_path, settled):
    store = tmp_path / "cache.json"
    cache = HashCache(store)
    before = [closure(FolderSources(ROOT, cache), *roots) for roots in stages().values()]
    cache.save()
    start = time.process_time()
    cache = HashCache(store)
    assert [closure(FolderSources(ROOT, cache), *roots) for roots in stages().values()] == before
    assert time.process_time() - start < 1


def git(folder, *args):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", folder, *identity, *args], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def committed(folder):
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x")
    return git(folder, "rev-parse", "HEAD")


ROOTS = ((SCRIPT,), ("rowproof.named",))


def test_a_commit_has_the_closure_of_its_checkout(tree):
    here = closure(FolderSources(tree, HashCache(None)), *ROOTS)
    commit = committed(tree)
    (tree / "workflow/rowproof/side.py").write_text("thing = 2\n")
    assert closure(CommitSources(tree, commit), *ROOTS) == here == found(modules=["rowproof.named"])
    assert closure(FolderSources(tree, HashCache(None)), *ROOTS) != here


def test_a_commit_is_read_from_a_folder_of_a_repository(tree):
    outer = tree / "outer"
    (outer / "project").mkdir(parents=True)
    (tree / "workflow").rename(outer / "project/workflow")
    commit = committed(outer)
    assert closure(CommitSources(outer / "project", commit), *ROOTS) == found(modules=["rowproof.named"])
    with pytest.raises(RowproofError, match="must be a Python file of the project"):
        closure(CommitSources(outer, commit), *ROOTS)


def test_a_commit_is_read_as_it_is(tree):
    (tree / ".gitattributes").write_text("*.py export-subst export-ignore filter=none ident\n")
    (tree / "workflow/rowproof/side.py").write_text("thing = '$Id$ $Format:%H$'\n")
    here = closure(FolderSources(tree, HashCache(None)), *ROOTS)
    commit = committed(tree)
    git(tree, "config", "filter.none.smudge", "false")
    git(tree, "config", "core.autocrlf", "true")
    assert closure(CommitSources(tree, commit), *ROOTS) == here


def test_links_in_a_commit_are_no_files(tree):
    (tree / "workflow/rowproof/named.py").unlink()
    (tree / "workflow/rowproof/named.py").symlink_to("side.py")
    sources = CommitSources(tree, committed(tree))
    assert sources.analysis("workflow/rowproof/named.py") is None
    assert sources.analysis("workflow/rowproof/side.py") is not None


def test_what_a_clone_does_not_hold_is_a_gap(tree, tmp_path_factory):
    with pytest.raises(HistoryGap, match="must be in this clone"):
        CommitSources(tree, "0" * 40)
    commit = committed(tree)
    for other in ("1" * 40, "--help"):
        with pytest.raises(HistoryGap, match="must be in this clone"):
            CommitSources(tree, other)
    git(tree, "config", "uploadpack.allowFilter", "true")
    partial = tmp_path_factory.mktemp("partial")
    git(partial, "clone", "-q", "--no-checkout", "--filter=blob:none", tree.as_uri(), ".")
    sources = CommitSources(partial, commit)
    with pytest.raises(HistoryGap, match=r"the content [0-9a-f]{40} of a file must be in this clone: fetch all of it"):
        closure(sources, *ROOTS)
    # Nothing was fetched for the question.
    assert "?" in git(partial, "rev-list", "--objects", "--all", "--missing=print")


def test_a_commit_s_file_that_is_no_python_is_named(tree):
    (tree / "workflow/rowproof/side.py").write_text("def f(:\n")
    with pytest.raises(RowproofError, match=r"^workflow/rowproof/side\.py:1: must be Python source"):
        closure(CommitSources(tree, committed(tree)), *ROOTS)


@pytest.mark.parametrize("kind", ["folder", "missing"])
def test_what_is_no_file_is_not_there(tree, kind):
    path = tree / "workflow/rowproof/odd.py"
    if kind == "folder":
        path.mkdir()
    assert FolderSources(tree, HashCache(None)).analysis("workflow/rowproof/odd.py") is None


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
