"""Over the code of all stages: every small change of meaning changes the key, and no change of wording does."""

import ast
import random
import symtable
from collections import Counter

import pytest
from rowproof.closure import closure
from rowproof.normal_form import normal_form
from sources import Texts, package, reached, stages

PER_KIND = 24
COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
}


def with_value(node, field, value):
    """A change of one field: applies it when called, and gives back what undoes it."""

    def apply():
        old = getattr(node, field)
        setattr(node, field, value)
        return lambda: setattr(node, field, old)

    return apply


def is_docstring(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def is_log(node):
    return isinstance(node, ast.Expr) and ast.unparse(node).startswith(("log.", "logger.", "logging."))


def differ(one, other):
    names = getattr(one, "name", None), getattr(other, "name", None)
    return type(one) is not type(other) or names[0] != names[1] or ast.dump(one) != ast.dump(other)


def mutations(tree):
    """``(kind, change)`` of every mutation of a tree that is to count: none in docstrings and messages."""
    stack = [(tree, False)]
    while stack:
        node, message = stack.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        message = message or isinstance(node, ast.Raise) or is_log(node)
        yield from of_node(node, message)
        for child in ast.iter_child_nodes(node):
            if not is_docstring(child):
                stack.append((child, message))


def of_node(node, message):
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool):
            yield "bool or None", with_value(node, "value", not value)
        elif value is None:
            yield "bool or None", with_value(node, "value", False)
        elif isinstance(value, int | float):
            yield "number", with_value(node, "value", value + 1 if value + 1 != value else 0.0)
        elif isinstance(value, str) and not message:
            yield "string", with_value(node, "value", value + "x")
    if isinstance(node, ast.Compare):
        first, rest = node.ops[0], node.ops[1:]
        if type(first) in COMPARISONS:
            yield "comparison", with_value(node, "ops", [COMPARISONS[type(first)](), *rest])
        elif isinstance(first, ast.Is):
            yield "is to ==", with_value(node, "ops", [ast.Eq(), *rest])
    if isinstance(node, ast.BinOp):
        if type(node.op) in ARITHMETIC:
            yield "arithmetic", with_value(node, "op", ARITHMETIC[type(node.op)]())
        if isinstance(node.op, ast.Sub | ast.Div) and differ(node.left, node.right):
            yield "operands of - and /", lambda: swap(node)
    if isinstance(node, ast.arguments):
        for index, default in enumerate(node.defaults):
            if differ(default, ast.Constant(987)):
                new = [*node.defaults[:index], ast.Constant(987), *node.defaults[index + 1 :]]
                yield "default", with_value(node, "defaults", new)
    if isinstance(node, ast.Call):
        plain = len(node.args) >= 2 and not any(isinstance(arg, ast.Starred) for arg in node.args)
        if plain and not message and differ(*node.args[:2]):
            yield "positional arguments", with_value(node, "args", [node.args[1], node.args[0], *node.args[2:]])
        for keyword in node.keywords:
            if keyword.arg is not None:
                yield "keyword name", with_value(keyword, "arg", keyword.arg + "x")
    if isinstance(node, ast.Attribute):
        yield "attribute", with_value(node, "attr", node.attr + "x")
    if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("rowproof"):
        for other in ("rowproof.hashing", "rowproof.records"):
            if node.module != other:
                yield "import target", with_value(node, "module", other)
        for alias in node.names:
            new = ast.alias(alias.name + "x", alias.asname or alias.name)
            yield "imported name", with_value(node, "names", [new if each is alias else each for each in node.names])
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield "negated condition", with_value(node, "test", ast.UnaryOp(ast.Not(), node.test))
    for index, decorator in enumerate(getattr(node, "decorator_list", ())):
        assert isinstance(decorator, ast.expr)
        rest = [*node.decorator_list[:index], *node.decorator_list[index + 1 :]]
        yield "removed decorator", with_value(node, "decorator_list", rest)
    body = getattr(node, "body", None)
    if isinstance(body, list):
        start = 1 if body and is_docstring(body[0]) else 0
        for index in range(start, len(body)):
            statement = body[index]
            before, after = body[:index], body[index + 1 :]
            if not isinstance(statement, ast.Pass):
                rest = [*before, *after] if len(body) > start + 1 else [*before, ast.Pass()]
                yield "deleted statement", with_value(node, "body", rest)
            # A string that comes first would become a docstring.
            same = not after or not differ(statement, after[0]) or (is_log(statement) and is_log(after[0]))
            if not same and not is_docstring(after[0]):
                yield "swapped statements", with_value(node, "body", [*before, after[0], statement, *after[1:]])


def swap(node):
    def undo():
        node.left, node.right = node.right, node.left

    undo()
    return undo


KINDS = (
    "number",
    "string",
    "bool or None",
    "comparison",
    "arithmetic",
    "operands of - and /",
    "default",
    "positional arguments",
    "keyword name",
    "attribute",
    "import target",
    "imported name",
    "negated condition",
    "removed decorator",
    "deleted statement",
    "swapped statements",
    "is to ==",
)


@pytest.fixture(scope="module")
def candidates():
    """Kind -> ``(path, tree, change)`` of all mutations of all files that run."""
    found = {kind: [] for kind in KINDS}
    for path in reached():
        tree = ast.parse(package().texts[path])
        for kind, change in mutations(tree):
            found[kind].append((path, tree, change))
    return found


@pytest.fixture(scope="module")
def keys():
    return {name: closure(package(), *roots).key for name, roots in stages().items()}


@pytest.mark.parametrize("kind", KINDS)
def test_every_mutant_changes_the_key_of_every_stage_that_runs_it(kind, candidates, keys, record_property):
    chosen = random.Random(f"mutants of kind {kind}").sample(candidates[kind], min(PER_KIND, len(candidates[kind])))
    assert len(chosen) == PER_KIND, f"{kind}: {len(chosen)} mutants"
    survivors = []
    for path, tree, change in chosen:
        undo = change()
        mutant = ast.unparse(tree)
        undo()
        name = reached()[path][0]
        if closure(package().with_text(path, mutant), *stages()[name]).key == keys[name]:
            survivors.append((path, name, mutant))
    record_property("mutants", len(chosen))
    assert survivors == []


def test_the_mutants_come_from_all_families(candidates):
    folders = Counter(path.split("/")[2] for found in candidates.values() for path, _, _ in found)
    assert min(folders[name] for name in ("chamber", "gptnt", "speedrun")) > 1000


def renamed(text):
    """The text with other names for locals: found by Python's own tables of symbols, unlike those of the package."""
    tree = ast.parse(text)
    count = 0

    def outermost(table):
        for child in table.get_children():
            if child.get_type() == "function" and child.get_name() not in COMPREHENSIONS:
                yield child
            else:
                yield from outermost(child)

    tables = {}
    for table in outermost(symtable.symtable(text, "source", "exec")):
        tables.setdefault((table.get_name(), table.get_lineno()), []).append(table)
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        lines = [node.lineno, *(decorator.lineno for decorator in node.decorator_list)]
        table = [t for line in lines for t in tables.get((node.name, line), [])]
        if len(table) != 1 or any(isinstance(inner, ast.ClassDef) for inner in ast.walk(node)):
            continue
        mentioned = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        mentioned |= {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
        if mentioned & {"locals", "vars", "dir", "eval", "exec", "globals", "compile", "__import__"}:
            continue
        names = free_names(table[0])
        new = {name: f"new_{len(names) - i}_{name[::-1]}" for i, name in enumerate(sorted(names))}
        count += len(new)
        outside = {id(n) for part in signature(node) for n in ast.walk(part)}
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and id(inner) not in outside:
                inner.id = new.get(inner.id, inner.id)
            elif isinstance(inner, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
                inner.name = new.get(inner.name, inner.name)
            elif isinstance(inner, ast.MatchMapping):
                inner.rest = new.get(inner.rest, inner.rest)
            elif isinstance(inner, ast.Nonlocal):
                inner.names = [new.get(name, name) for name in inner.names]
    return ast.unparse(tree), count


COMPREHENSIONS = ("listcomp", "setcomp", "dictcomp", "genexpr", "lambda")


def signature(node):
    return [*node.decorator_list, *node.args.defaults, *filter(None, [*node.args.kw_defaults, node.returns])]


def free_names(table):
    """Names that are local wherever they occur in a function, and neither parameters, imports nor functions."""
    fine, kept = set(), set()

    def visit(table):
        for symbol in table.get_symbols():
            name = symbol.get_name()
            local = symbol.is_local() or symbol.is_free()
            bound = symbol.is_parameter() or symbol.is_imported() or symbol.is_namespace()
            (fine if local and not bound and not name.startswith(("__", ".")) else kept).add(name)
        for child in table.get_children():
            visit(child)

    visit(table)
    return fine - kept


class OtherMessages(ast.NodeTransformer):
    """Changes the texts in raises of the package's errors."""

    def visit_Raise(self, node):
        if isinstance(node.exc, ast.Call) and ast.unparse(node.exc.func) in (
            "ConfigError",
            "RecordError",
            "PatchError",
        ):
            for index, argument in enumerate(node.exc.args):
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    node.exc.args[index] = ast.Constant("another message")
                elif isinstance(argument, ast.JoinedStr):
                    values = [v for v in argument.values if isinstance(v, ast.FormattedValue)]
                    argument.values = [ast.Constant("found: "), *values, ast.Constant("!")]
        return node


def test_names_of_locals_and_layout_leave_every_key(keys):
    count, texts = 0, dict(package().texts)
    for path in reached():
        texts[path], names = renamed(texts[path])
        count += names
    assert count > 1500
    other = Texts(texts)
    for name, roots in stages().items():
        found = closure(other, *roots)
        assert found.key == keys[name], name
        assert found.files == closure(package(), *roots).files


def test_other_messages_leave_the_key_where_nobody_reads_them(keys):
    script, producer = stages()["handover-v1 specs"]
    texts = dict(package().texts)
    files = [path for path, names in reached().items() if "handover-v1 specs" in names]
    for path in files:
        texts[path] = ast.unparse(OtherMessages().visit(ast.parse(texts[path])))
        assert texts[path].count("another message") == texts[path].count("('another message')")
    assert sum(text.count("found: ") + text.count("another message") for text in texts.values()) > 10
    assert closure(Texts(texts), script, producer).key == keys["handover-v1 specs"]


def test_other_messages_change_the_key_where_they_are_recorded(keys):
    path = "workflow/rowproof/speedrun/patching.py"
    text = ast.unparse(OtherMessages().visit(ast.parse(package().texts[path])))
    assert normal_form(text, path) == normal_form(package().texts[path], path)
    assert normal_form(text, path, read=None) != normal_form(package().texts[path], path, read=None)
    name = "nanogpt-speedrun-cpu-v1 simulate"
    assert closure(package().with_text(path, text), *stages()[name]).key != keys[name]


class Moved(ast.NodeTransformer):
    """Rewrites the import lines of a module that has moved."""

    def __init__(self, old, new):
        self.old, self.new = old, new

    def visit_ImportFrom(self, node):
        package, _, name = self.old.rpartition(".")
        if node.module == self.old:
            return ast.ImportFrom(self.new, node.names, 0)
        if node.module != package or all(alias.name != name for alias in node.names):
            return node
        to, _, new = self.new.rpartition(".")
        return [
            ast.ImportFrom(to, [ast.alias(new, alias.asname or name)], 0)
            if alias.name == name
            else ast.ImportFrom(package, [alias], 0)
            for alias in node.names
        ]


def test_a_module_that_moves_leaves_every_key(keys):
    held = [path for path in reached() if path.startswith("workflow/rowproof/") and "__" not in path]
    held = [path for path in held if "inside" not in path and not package().analysis(path).place]
    for path in random.Random("modules that move").sample(held, 12):
        old = path.removeprefix("workflow/").removesuffix(".py").replace("/", ".")
        new = "rowproof.elsewhere.deeper.renamed"
        move = Moved(old, new)
        importers = {p: t for p, t in package().texts.items() if old.rpartition(".")[2] in t}
        texts = {**package().texts, **{p: ast.unparse(move.visit(ast.parse(t))) for p, t in importers.items()}}
        texts["workflow/rowproof/elsewhere/deeper/renamed.py"] = texts.pop(path)
        texts["workflow/rowproof/elsewhere/__init__.py"] = '"""A folder that runs nothing."""'
        moved = Texts(texts)
        for name in reached()[path][:2]:
            scripts, modules = stages()[name]
            modules = tuple(new if module == old else module for module in modules)
            assert closure(moved, scripts, modules).key == keys[name], (path, name)
