"""What of a Python file can reach a record: its normal form, in which layout, names of locals and messages are gone.

The rules and why each is safe stand in docs/keys.md. Written out here because ``ast.dump`` and ``ast.unparse`` change
between Python versions.
"""

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from rowproof.errors import RowproofError
from rowproof.hashing import sha256_hex

PACKAGE = "rowproof"
CODE = "workflow/"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A function that mentions one of these may see the names of its locals.
_SEES_NAMES = _words("locals vars dir eval exec globals inspect _getframe __import__ __builtins__ breakpoint")
# Code that mentions one of these may see line numbers, source text or the locals of its callers.
_SEES_FRAMES = _words(
    "_getframe currentframe f_locals f_lineno tb_lineno tb_frame walk_tb walk_stack extract_tb extract_stack "
    "format_exc print_exc format_exception print_exception TracebackException getsource getsourcelines getsourcefile "
    "linecache co_varnames co_firstlineno co_lines settrace setprofile"
)
# What other processes print may hold any message.
_PROCESSES = (
    "subprocess create_subprocess_exec create_subprocess_shell multiprocessing ProcessPoolExecutor Popen fork forkpty "
    "popen redirect_stderr"
)
# Code that mentions one of these may get hold of an error, or of the text of one, without an "except ... as".
_SEES_ERRORS = _words(
    "exc_info last_exc last_value traceback __cause__ __context__ __traceback__ __exit__ __aexit__ return_exceptions "
    f"exception excepthook unraisablehook {_PROCESSES}"
)
_SEES_LOGS = _words(
    "addHandler basicConfig dictConfig fileConfig Handler StreamHandler FileHandler MemoryHandler QueueHandler "
    "RotatingFileHandler handlers lastResort captureWarnings LogRecord makeLogRecord setLogRecordFactory "
    f"setLoggerClass addFilter {_PROCESSES}"
)
_SEES_DOCS = _words("__doc__ getdoc use_attribute_docstrings model_json_schema json_schema schema_json doctest")
# Names by which a module tells its own place, and attributes by which other code tells the place of something.
_OWN_PLACE = _words("__file__ __name__ __spec__ __path__ __package__ __loader__ __qualname__ __module__")
_ANY_PLACE = _words("__file__ __spec__ __path__ __package__ __loader__ __module__")

_LEVELS = frozenset(("debug", "info", "warning", "error", "exception", "critical"))
LOG, DOC = "<log>", "<doc>"
UNKNOWN = "?"

Part = str | list[Any]


@dataclass(frozen=True)
class Analysis:
    """What is known of one file; plain data, so that it can be remembered.

    Attributes:
        parts: the normal form. Text, or what depends on the code around: ``["import", module, name, line]`` for an
            import (``name`` empty for ``import module``), ``["attribute", name, line]`` for an attribute of something
            imported, which is a module if there is one of that name, ``["text", owner, text]`` for a text that only
            counts if what owns it (a class of errors, ``<log>``, ``<doc>``) is read somewhere.
        place: whether the code asks for its own name or place.
        classes: plain classes of errors that the file defines, with their bases.
        names: names of the module that are imported, with what they stand for.
        exports: for packages, the names that the module binds or lists in ``__all__``; ``*`` if it imports a star.
        handlers: ``[caught classes, whether the error is used otherwise, classes that its text is handed on to]``.
        sees: what the code may look at beside values: of frames, errors, logs, docs, places.
        text: SHA-256 of the file.
    """

    parts: list[Part]
    place: bool
    classes: dict[str, list[str]]
    names: dict[str, str]
    exports: list[str]
    handlers: list[list[Any]]
    sees: list[str]
    text: str

    @property
    def imports(self) -> list[tuple[str, str, int]]:
        """``(module, name, line)`` of each import in the order of the file."""
        return [(part[1], part[2], part[3]) for part in self.parts if part[0] == "import"]


def module_of(path: str) -> str:
    """Dotted name of the package's file at a path relative to the project; empty for others, such as scripts."""
    if not path.startswith(f"{CODE}{PACKAGE}/") or not path.endswith(".py"):
        return ""
    return path.removeprefix(CODE).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def analyse(data: bytes, path: str) -> Analysis:
    """Analysis of the Python file at a path relative to the project.

    Raises:
        RowproofError: the file is no Python source.
    """
    try:
        tree = ast.parse(data.decode("utf-8"), path)
        form = _Form(tree, path)
        form.write(tree)
        return form.analysis(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        raise RowproofError(f"{path}:{line}: must be Python source, found an error: {error}") from None


def normal_form(source: str, path: str = f"{CODE}{PACKAGE}/source.py", read: Iterable[str] | None = ()) -> str:
    """The normal form of one file by itself, as text; imports by their names.

    Args:
        source: Python source.
        path: where the file would lie.
        read: owners whose texts count; None for all.

    Raises:
        RowproofError: it is no Python source.
    """
    try:
        tree = ast.parse(source, path)
    except (SyntaxError, ValueError) as error:
        raise RowproofError(f"{path}: must be Python source, found an error: {error}") from None
    form = _Form(tree, path)
    form.write(tree)
    shown = []
    for part in form.joined():
        if isinstance(part, str):
            shown.append(part)
        elif part[0] == "import":
            shown.append(f"<{part[1]}:{part[2]}>")
        elif part[0] == "text" and (read is None or part[1] in read):
            shown.append(part[2])
    return "".join(shown) + (f"place={path}" if form.place else "")


class _Scope:
    """Names that one module, class, function or comprehension binds."""

    def __init__(self, kind: str, parent: "_Scope | None") -> None:
        self.kind, self.parent = kind, parent
        self.bound: dict[str, int] = {}
        self.kept: set[str] = set()
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        self.sees_names = False

    @property
    def outermost(self) -> "_Scope":
        """The outermost function or comprehension around, or the module."""
        found, scope = None, self
        while scope.parent is not None:
            if scope.kind in ("function", "comprehension"):
                found = scope
            scope = scope.parent
        return found or scope

    def bind(self, name: str, keep: bool = False) -> None:
        scope = self
        if name in self.globals:
            while scope.parent is not None:
                scope = scope.parent
        scope.bound[name] = scope.bound.get(name, 0) + 1
        if keep:
            scope.kept.add(name)

    def owner(self, name: str) -> "_Scope":
        """The scope whose variable a name is here: by Python's rules, in which functions do not see class bodies."""
        scope, inner = self, False
        while scope.parent is not None:
            if not (scope.kind == "class" and inner):
                if name in scope.globals:
                    break
                if name in scope.bound and name not in scope.nonlocals:
                    return scope
            scope, inner = scope.parent, True
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def renames(self, name: str) -> bool:
        """Whether a variable of this scope can have any name."""
        if self.kind not in ("function", "comprehension") or name in self.kept or name.startswith("__"):
            return False
        return not self.outermost.sees_names


class _Binder(ast.NodeVisitor):
    """Finds the scope of every name."""

    def __init__(self) -> None:
        self.module = self.scope = _Scope("module", None)
        self.scope_of: dict[int, _Scope] = {}
        self.sees_names = False

    def visit_Global(self, node: ast.Global) -> None:
        self.scope_of[id(node)] = self.scope

    visit_Nonlocal = visit_Global

    def _inside(self, kind: str, nodes: Iterable[ast.AST], args: ast.arguments | None = None) -> None:
        outer, nodes = self.scope, list(nodes)
        self.scope = _Scope(kind, outer)
        if args is not None:
            for arg in (*args.args, *args.kwonlyargs):
                self._bind(arg, arg.arg, keep=True)
            for arg in (*args.posonlyargs, args.vararg, args.kwarg):
                if arg is not None:
                    self._bind(arg, arg.arg)
        # Declarations hold for the whole scope, wherever they stand in it.
        for node in _of_scope(nodes):
            if isinstance(node, ast.Global):
                self.scope.globals.update(node.names)
            elif isinstance(node, ast.Nonlocal):
                self.scope.nonlocals.update(node.names)
        for node in nodes:
            self.visit(node)
        self.scope = outer

    def _bind(self, node: ast.AST, name: str, keep: bool = False) -> None:
        self.scope_of[id(node)] = self.scope
        self.scope.bind(name, keep)

    def _mention(self, name: str) -> None:
        if name in _SEES_NAMES:
            self.scope.outermost.sees_names = True
            self.sees_names = self.sees_names or self.scope.outermost is self.module

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._bind(node, node.name, keep=True)
        self._type_params(node)
        self._signature(node.args)
        for outside in (*node.decorator_list, *([node.returns] if node.returns else [])):
            self.visit(outside)
        self._inside("function", node.body, node.args)

    visit_FunctionDef = visit_AsyncFunctionDef = _function

    def _signature(self, args: ast.arguments) -> None:
        every = (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg)
        for node in (*args.defaults, *args.kw_defaults, *(arg.annotation for arg in every if arg is not None)):
            if node is not None:
                self.visit(node)

    def _type_params(self, node: ast.AST) -> None:
        for parameter in getattr(node, "type_params", ()):
            self.sees_names = True
            self.visit(parameter)

    def visit_TypeAlias(self, node: ast.AST) -> None:
        self.sees_names = True
        self.generic_visit(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._signature(node.args)
        self._inside("function", [node.body], node.args)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._bind(node, node.name, keep=True)
        if self.scope.outermost is not self.module:
            # A class body may look its names up in a namespace of its own making.
            self.scope.outermost.sees_names = True
        self._type_params(node)
        for outside in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(outside)
        self._inside("class", node.body)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        first = node.generators[0]
        self.visit(first.iter)
        outcome = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        inside = [first.target, *first.ifs, *node.generators[1:], *outcome]
        self._inside("comprehension", inside)

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        inner = self.scope
        while self.scope.kind == "comprehension" and self.scope.parent is not None:
            self.scope = self.scope.parent
        self._bind(node.target, node.target.id)
        self.scope = inner
        self.visit(node.value)

    def visit_Name(self, node: ast.Name) -> None:
        self.scope_of[id(node)] = self.scope
        self._mention(node.id)
        if not isinstance(node.ctx, ast.Load):
            self.scope.bind(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._mention(node.attr)
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self._captured(node, node.name)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        self._captured(node, node.name)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        self._captured(node, node.name)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self._captured(node, node.rest)

    def _captured(self, node: ast.AST, name: str | None) -> None:
        if name is not None:
            self._bind(node, name)
        self.generic_visit(node)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            for name in (*(getattr(node, "module", None) or "").split("."), *alias.name.split(".")):
                self._mention(name)
            plain = alias.name.split(".")[0] if isinstance(node, ast.Import) else alias.name
            self._bind(alias, alias.asname or plain)

    visit_Import = visit_ImportFrom = _import


def _of_scope(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The statements of a scope, not those of functions and classes within it."""
    for node in nodes:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _of_scope(ast.iter_child_nodes(node))


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and type(statement.value.value) is str
    )


@dataclass
class _Form:
    """Writes the normal form of one file."""

    tree: ast.Module
    path: str
    place: bool = False
    parts: list[Part] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.module = module_of(self.path)
        self.owner_name = self.module or self.path
        self.is_package = self.path.endswith("/__init__.py")
        self.binder = _Binder()
        for statement in self.tree.body:
            self.binder.visit(statement)
        self.numbers: dict[tuple[int, str], int] = {}
        self.sees: set[str] = set()
        # What names of the module stand for, where that is sure: bound once, by an import or as a class.
        self.stands: dict[str, str] = {}
        self.loggers: set[str] = set()
        self.imported: set[str] = set()
        self._look_at_module()
        self._look_at_mentions()

    # What the module's names are.

    def _absolute(self, node: ast.ImportFrom) -> str:
        base = node.module or ""
        if node.level:
            parts = self.module.split(".") if self.module else []
            if len(parts) + self.is_package <= node.level:
                return "." * node.level + base
            parts = parts[: len(parts) - node.level + self.is_package]
            base = ".".join([*parts, base] if base else parts)
        return base

    def _look_at_module(self) -> None:
        bound = self.binder.module.bound
        # A star may bind any name a second time.
        sure = "*" not in bound
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    if alias.asname is None and isinstance(node, ast.Import):
                        name = stands = alias.name.split(".")[0]
                    elif isinstance(node, ast.Import):
                        name, stands = alias.asname, alias.name
                    else:
                        name, stands = alias.asname or alias.name, f"{self._absolute(node)}.{alias.name}"
                    self.imported.add(name)
                    if sure and self.binder.scope_of[id(alias)] is self.binder.module and bound.get(name) == 1:
                        self.stands[name] = stands
        for node in self.tree.body:
            if sure and isinstance(node, ast.ClassDef) and bound.get(node.name) == 1:
                self.stands[node.name] = f"{self.owner_name}.{node.name}"
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                name, value = node.targets[0].id, node.value
                made = isinstance(value, ast.Call) and self._stands_for(value.func) == "logging.getLogger"
                if made and bound.get(name) == 1:
                    self.loggers.add(name)
        self.loggers.update(name for name, what in self.stands.items() if what in ("logging", f"{PACKAGE}.jobs.log"))

    def _stands_for(self, node: ast.AST | None) -> str:
        """Dotted name of what an expression stands for; ``?`` when that is not sure."""
        if isinstance(node, ast.Attribute):
            base = self._stands_for(node.value)
            return UNKNOWN if base == UNKNOWN or base.startswith("builtins.") else f"{base}.{node.attr}"
        if not isinstance(node, ast.Name):
            return UNKNOWN
        module = self.binder.module
        if self.binder.scope_of[id(node)].owner(node.id) is not module:
            return UNKNOWN
        if node.id in self.stands:
            return self.stands[node.id]
        if node.id not in module.bound and "*" not in module.bound and hasattr(builtins, node.id):
            return f"builtins.{node.id}"
        return UNKNOWN

    def _look_at_mentions(self) -> None:
        mentioned = set(self._mentions())
        for what, names in (
            ("frames", _SEES_FRAMES),
            ("errors", _SEES_ERRORS),
            ("logs", _SEES_LOGS),
            ("docs", _SEES_DOCS),
        ):
            if mentioned & names:
                self.sees.add(what)

    def _mentions(self) -> Iterator[str]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.Attribute):
                if node.attr == "exception" and self._is_logger(node.value):
                    continue
                of_module = isinstance(node.value, ast.Name) and node.value.id in self.imported
                asked = node.attr in _ANY_PLACE or (node.attr == "__name__" and of_module)
                if asked and not self._is_loaded_by_name(node.value):
                    self.sees.add("places")
                if node.attr == "stderr" and not isinstance(node.ctx, ast.Load):
                    self.sees.update(("errors", "logs"))
                yield node.attr
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    yield from alias.name.split(".")
            elif isinstance(node, ast.ImportFrom):
                yield from (node.module or "").split(".")
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.name
            elif isinstance(node, ast.keyword) and node.arg:
                yield node.arg
            elif isinstance(node, ast.Call | ast.Subscript):
                # Names handed to getattr and its like.
                for inside in node.args if isinstance(node, ast.Call) else [node.slice]:
                    if isinstance(inside, ast.Constant) and isinstance(inside.value, str):
                        if inside.value in _ANY_PLACE or inside.value == "__name__":
                            self.sees.add("places")
                        yield inside.value

    def _is_loaded_by_name(self, node: ast.AST) -> bool:
        """Whether an expression is a module whose name the code states, so that it cannot move unseen."""
        return (
            isinstance(node, ast.Call)
            and self._stands_for(node.func) == "importlib.import_module"
            and len(node.args) == 1
            and not isinstance(node.args[0], ast.Constant)
            and not any(isinstance(n, ast.Name) and n.id in _OWN_PLACE for n in ast.walk(node))
        )

    def _is_logger(self, node: ast.AST) -> bool:
        return (
            isinstance(node, ast.Name)
            and node.id in self.loggers
            and self.binder.scope_of[id(node)].owner(node.id) is self.binder.module
        )

    # Writing.

    def ref(self, name: str, node: ast.AST) -> str:
        """A name, or the number of the variable where its name is of no account."""
        scope = self.binder.scope_of[id(node)].owner(name)
        if self.binder.sees_names or not scope.renames(name):
            return f"str:{name!a}"
        number = self.numbers.setdefault((id(scope), name), len(self.numbers))
        return f"%{number}"

    def add(self, *parts: Part) -> None:
        self.parts.extend(parts)

    def fields(self, node: ast.AST, **written: str) -> None:
        """``Type(name=value,...)`` of all fields that are not empty; ``written`` holds those that are text already."""
        self.add(f"{type(node).__name__}(")
        for name in sorted(node._fields):
            value = getattr(node, name, None)
            if name in ("ctx", "kind") or value is None or value == []:
                continue
            self.add(f"{name}=")
            if name in written:
                self.add(written[name])
            else:
                self.write(value)
            self.add(",")
        self.add(")")

    def write(self, value: object) -> None:
        """Append the form of a value of the syntax tree."""
        if isinstance(value, ast.AST):
            special = getattr(self, f"_{type(value).__name__}", None)
            if special is None:
                self.fields(value)
            else:
                special(value)
        elif isinstance(value, list):
            self.add("[")
            for item in value:
                self.write(item)
                if not isinstance(item, ast.Import | ast.ImportFrom):
                    self.add(",")
            self.add("]")
        else:
            # Unlike repr, ascii does not depend on a version of Unicode.
            self.add(f"{type(value).__name__}:{value!a}")

    def _body(self, node: ast.AST, **written: str) -> None:
        body = node.body  # type: ignore[attr-defined]
        doc = ""
        if body and _is_docstring(body[0]):
            doc = f"doc={body[0].value.value!a},"
            node.body = body[1:]  # type: ignore[attr-defined]
        # Here even if empty: the pieces of the form must be the same with and without.
        self.add(["text", DOC, doc])
        self.fields(node, **written)

    _Module = _FunctionDef = _AsyncFunctionDef = _ClassDef = _body

    def _Name(self, node: ast.Name) -> None:
        if node.id in _OWN_PLACE and self.binder.scope_of[id(node)].owner(node.id) is self.binder.module:
            self.place = True
        self.fields(node, id=self.ref(node.id, node))

    def _Attribute(self, node: ast.Attribute) -> None:
        self.fields(node)
        stands = self._stands_for(node)
        if stands.startswith(f"{PACKAGE}."):
            self.add(["attribute", stands, node.lineno])

    def _arg(self, node: ast.arg) -> None:
        self.fields(node, arg=self.ref(node.arg, node))

    def _named(self, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar) -> None:
        self.fields(node, **({} if node.name is None else {"name": self.ref(node.name, node)}))

    _ExceptHandler = _MatchAs = _MatchStar = _named

    def _MatchMapping(self, node: ast.MatchMapping) -> None:
        self.fields(node, **({} if node.rest is None else {"rest": self.ref(node.rest, node)}))

    def _declared(self, node: ast.Global | ast.Nonlocal) -> None:
        self.add(f"{type(node).__name__}(", ",".join(self.ref(name, node) for name in node.names), ")")

    _Global = _Nonlocal = _declared

    def _Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.split(".")[0]
            # Only "import a.b" without "as" binds something else than what it names.
            whole = f"{alias.name!a} " if alias.asname is None and top != alias.name else ""
            bound = self.ref(alias.asname or top, alias)
            self.add("Import(", ["import", alias.name, "", node.lineno], f" {whole}as {bound})")

    def _ImportFrom(self, node: ast.ImportFrom) -> None:
        # Several names in one statement are imported one after the other, as by several statements.
        for alias in node.names:
            bound = self.ref(alias.asname or alias.name, alias)
            self.add("Import(", ["import", self._absolute(node), alias.name, node.lineno], f" as {bound})")

    def _If(self, node: ast.If) -> None:
        # What stands below "if TYPE_CHECKING" never runs.
        if (
            self._stands_for(node.test) == "typing.TYPE_CHECKING"
            and not node.orelse
            and any(node is statement for statement in self.tree.body)
        ):
            self.add("Pass()")
        else:
            self.fields(node)

    def _Call(self, node: ast.Call) -> None:
        callee = self._stands_for(node.func)
        alone = len(node.args) == 1 and not node.keywords
        first = node.args[0] if node.args else None
        if callee == "logging.getLogger" and alone and isinstance(first, ast.Name) and first.id == "__name__":
            self.add("Call(getLogger)")
            return
        if callee == "importlib.import_module":
            name = first.value if alone and isinstance(first, ast.Constant) else None
            if isinstance(name, str) and not name.startswith("."):
                self.add("Call(import_module", ["import", name, "", node.lineno], ")")
                return
            # What is loaded by name is a root of its own.
            before = self.place
            names = {n.id for argument in node.args for n in ast.walk(argument) if isinstance(n, ast.Name)}
            self.fields(node)
            if names & _OWN_PLACE == {"__package__"}:
                self.place = before
            return
        self.fields(node)

    def _JoinedStr(self, node: ast.JoinedStr) -> None:
        # Some versions of Python put empty texts between the values.
        node.values = [v for v in node.values if not (isinstance(v, ast.Constant) and v.value == "")]
        self.fields(node)

    def _Expr(self, node: ast.Expr) -> None:
        if self._is_log_call(node):
            self._with_texts(node.value, LOG, "Log")  # type: ignore[arg-type]
        else:
            self.fields(node)

    def _is_log_call(self, node: ast.AST) -> bool:
        return (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Attribute)
            and node.value.func.attr in _LEVELS
            and self._is_logger(node.value.func.value)
        )

    def _Raise(self, node: ast.Raise) -> None:
        if isinstance(node.exc, ast.Call):
            kind = self._stands_for(node.exc.func)
            if kind.startswith((f"{PACKAGE}.", f"{self.owner_name}.")):
                self.add("Raise(")
                self._with_texts(node.exc, kind, "New")
                self.write(node.cause)
                self.add(")")
                return
        self.fields(node)

    def _with_texts(self, call: ast.Call, owner: str, label: str) -> None:
        """A call whose positional arguments are messages where they are texts."""
        self.add(f"{label}(")
        self.write(call.func)
        for argument in call.args:
            self.add(",")
            if isinstance(argument, ast.Constant) and type(argument.value) is str:
                self.add("Text(", ["text", owner, f"{argument.value!a}"], ")")
            elif isinstance(argument, ast.JoinedStr):
                # The texts come first, with the places of the values between them.
                texts = [f"{v.value!a}" if isinstance(v, ast.Constant) else "{}" for v in argument.values]
                self.add("Text(", ["text", owner, "".join(text for text in texts if text != "''")])
                for value in argument.values:
                    if not isinstance(value, ast.Constant):
                        self.write(value)
                self.add(")")
            else:
                self.write(argument)
        self.write(call.keywords)
        self.add(")")

    # What becomes of errors.

    def _handlers(self) -> list[list[Any]]:
        found = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ExceptHandler) and node.name is not None and node.type is not None:
                kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
                scope = self.binder.scope_of[id(node)]
                into: set[str] = set()
                reads = scope.owner(node.name).kind != "function" or self._shared(node.name, scope.owner(node.name))
                reads = any([reads, *(self._reads(statement, node.name, into) for statement in node.body)])
                if reads or into:
                    found.append([sorted({self._stands_for(kind) for kind in kinds}), reads, sorted(into)])
        return found

    def _shared(self, name: str, owner: _Scope) -> bool:
        """Whether a function within sees a variable."""
        return any(
            isinstance(node, ast.Name)
            and node.id == name
            and self.binder.scope_of[id(node)] is not owner
            and self.binder.scope_of[id(node)].owner(name) is owner
            for node in ast.walk(self.tree)
        )

    def _reads(self, node: ast.AST, name: str, into: set[str]) -> bool:
        """Whether the error ``name`` is used other than to raise it, or in the message of another (put in ``into``)."""

        def is_error(node: ast.AST | None) -> bool:
            return isinstance(node, ast.Name) and node.id == name

        def mentions(nodes: Iterable[ast.AST]) -> bool:
            return any(is_error(inner) for node in nodes for inner in ast.walk(node))

        if isinstance(node, ast.Raise):
            call = node.exc
            if isinstance(call, ast.Call):
                if mentions([*call.args, *call.keywords]):
                    into.add(self._stands_for(call.func))
                used = mentions([call.func])
            else:
                used = not is_error(call) and call is not None and mentions([call])
            return used or (node.cause is not None and not is_error(node.cause) and mentions([node.cause]))
        if self._is_log_call(node):
            call = node.value  # type: ignore[attr-defined]
            if mentions([*call.args, *call.keywords]):
                into.add(LOG)
            return False
        if is_error(node):
            return True
        return any([self._reads(inner, name, into) for inner in ast.iter_child_nodes(node)])

    def _classes(self) -> dict[str, list[str]]:
        """Classes that have nothing but bases and constants, so that all that is done with a message is to keep it."""
        found = {}
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef) and not node.decorator_list and not node.keywords and node.bases:
                plain = all(
                    isinstance(s, ast.Pass)
                    or _is_docstring(s)
                    or (
                        isinstance(s, ast.Assign)
                        and isinstance(s.value, ast.Constant)
                        and all(isinstance(t, ast.Name) and not t.id.startswith("__") for t in s.targets)
                    )
                    for s in node.body
                )
                if plain and self.binder.module.bound.get(node.name) == 1:
                    found[node.name] = [self._stands_for(base) for base in node.bases]
        return found

    def _listed(self) -> set[str]:
        """All texts that top-level statements put into ``__all__``."""
        return {
            node.value
            for statement in self.tree.body
            if any(isinstance(node, ast.Name) and node.id == "__all__" for node in ast.walk(statement))
            for node in ast.walk(statement)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }

    def joined(self) -> list[Part]:
        """The parts with neighbouring texts in one."""
        joined: list[Part] = []
        for part in self.parts:
            if isinstance(part, str) and joined and isinstance(joined[-1], str):
                joined[-1] += part
            else:
                joined.append(part)
        return joined

    def analysis(self, data: bytes) -> Analysis:
        """What is known of the file, after it was written."""
        parts = []
        for part in self.joined():
            if isinstance(part, str):
                parts.append(part if len(part) <= 64 else "#" + sha256_hex(part.encode()))
            elif part[0] == "text":
                parts.append([*part[:2], part[2] and "#" + sha256_hex(part[2].encode())])
            else:
                parts.append(part)
        exports = sorted({*self.binder.module.bound, *self._listed()}) if self.is_package else []
        return Analysis(
            parts,
            self.place,
            self._classes(),
            dict(sorted(self.stands.items())),
            exports,
            self._handlers(),
            sorted(self.sees),
            sha256_hex(data),
        )
