"""The static policy: what a patched script may import and call, read from its syntax tree.

It is a hint and a courtesy to proposers, not a security boundary: the sandbox is that. What the base script does
already is no fault of the patch and is not reported.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from rowproof.speedrun.outcomes import Outcome

CHECKPOINT = "final.npz"
LITERAL_CHARACTERS = 2048
LITERAL_ELEMENTS = 256

_FORBIDDEN_MODULES = {
    "process": "ctypes cffi subprocess multiprocessing signal resource faulthandler posix pty",
    "network": "socket socketserver ssl urllib http ftplib smtplib poplib imaplib telnetlib xmlrpc asyncio selectors"
    " requests httpx aiohttp urllib3 websockets",
    "hidden code": "pickle shelve dill cloudpickle joblib marshal zlib gzip bz2 lzma zipfile tarfile zipimport base64"
    " binascii codecs zstandard brotli lz4",
    "import": "importlib imp runpy pkgutil builtins code codeop",
    "files": "shutil tempfile fileinput mmap sqlite3 linecache",
}
FORBIDDEN_MODULES = {module: kind for kind, modules in _FORBIDDEN_MODULES.items() for module in modules.split()}
"""Top-level module, or part of a dotted one such as ``torch.multiprocessing``, with the reason."""

_OS_ALLOWED = {"environ", "path"}
_CODE_BUILTINS = {"exec", "eval", "compile", "__import__", "__builtins__", "__loader__"}
_FILE_CALLS = {
    *("open", "io.open", "os.open"),
    *(f"numpy.{name}" for name in ("load", "save", "savez", "savez_compressed", "savetxt", "loadtxt", "genfromtxt")),
    *("numpy.fromfile", "numpy.memmap", "torch.load", "torch.save", "torch.from_file"),
}
_PATH_METHODS = {
    "read_text",
    "read_bytes",
    "write_text",
    "write_bytes",
    "open",
    "touch",
    "mkdir",
    "unlink",
    "symlink_to",
}
_PRECISION = {
    *("float16", "bfloat16", "half", "double", "float64", "autocast", "GradScaler", "set_float32_matmul_precision"),
    *("allow_tf32", "set_default_dtype", "float8_e4m3fn", "float8_e5m2", "_scaled_mm"),
}
_SEEDING = {"SPEEDRUN_SEED", "manual_seed", "seed", "default_rng", "Generator", "set_rng_state", "RandomState"}


class Finding(NamedTuple):
    """One place where the script breaks a rule.

    Attributes:
        rule: name of the rule.
        line: of the script, from 1.
        detail: what stands there.
    """

    rule: str
    line: int
    detail: str


class Report(NamedTuple):
    """What the policy found that the base script does not do already, by line.

    Attributes:
        hard: findings that end the attempt.
        soft: findings that the row shows as flags.
    """

    hard: tuple[Finding, ...]
    soft: tuple[Finding, ...]

    @property
    def failure(self) -> Outcome | None:
        """``policy_violation`` when there is a hard finding."""
        return Outcome.POLICY_VIOLATION if self.hard else None

    @property
    def flags(self) -> tuple[str, ...]:
        """The rules of the soft findings, sorted, each once."""
        return tuple(sorted({finding.rule for finding in self.soft}))


def check_policy(patched: str, base: str) -> Report:
    """Check a patched script that parses.

    Hard rules: ``forbidden_import``, ``os_access``, ``dynamic_code``, ``file_access``, ``pickled_arrays``. Soft ones:
    ``large_literal``, ``time_used``, ``gc_used``, ``unknown_file`` (a path that cannot be told), ``eval_path_changed``
    (the body of ``load_model``), ``precision_changed``, ``seed_changed``.

    Args:
        patched: text of the patched script.
        base: text of the script that the patch was applied to.
    """
    tree, base_tree = ast.parse(patched), ast.parse(base)
    hard = _new(_Hard(tree).findings(), _Hard(base_tree).findings())
    soft = _new(_soft(tree), _soft(base_tree))
    soft.extend(_changes(tree, base_tree))
    return Report(tuple(sorted(hard, key=_place)), tuple(sorted(soft, key=_place)))


def _text(node: ast.AST) -> str:
    try:
        return ast.unparse(node)[:80]
    except (RecursionError, ValueError):  # Nested too deeply, or an integer of thousands of digits.
        return "(too large to show)"


def _place(finding: Finding) -> tuple[int, str, str]:
    return finding.line, finding.rule, finding.detail


def _new(found: list[Finding], base: list[Finding]) -> list[Finding]:
    """The findings whose rule and detail the base does not have as often."""
    known = Counter((finding.rule, finding.detail) for finding in base)
    new = []
    for finding in found:
        known[finding.rule, finding.detail] -= 1
        if known[finding.rule, finding.detail] < 0:
            new.append(finding)
    return new


def _imports(tree: ast.AST) -> Iterator[tuple[ast.stmt, str, str]]:
    """Statement, dotted name and local name of everything that is imported, anywhere in the script."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                # ``import a.b`` binds a.
                yield node, alias.name, alias.asname or alias.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield node, ".".join(filter(None, [node.module, alias.name])), alias.asname or alias.name


class _Names:
    """What the names of a script stand for."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.modules: dict[str, str] = {}
        for node, dotted, local in _imports(tree):
            plain = isinstance(node, ast.Import) and "." in dotted and local == dotted.split(".")[0]
            self.modules[local] = local if plain else dotted
        self.values: dict[str, list[ast.expr]] = {}
        self.bound: set[str] = set(self.modules)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.values.setdefault(target.id, []).append(node.value)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self.bound.add(node.name)
            elif isinstance(node, ast.arg):
                self.bound.add(node.arg)

    def dotted(self, node: ast.expr) -> str:
        """The full dotted name of a chain of attributes, with imports resolved; empty for anything else."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self.modules.get(node.id, node.id), *reversed(parts)])


class _Hard(_Names):
    """The hard rules."""

    def findings(self) -> list[Finding]:
        """All findings, those of the base script too."""
        found = [*self._imported()]
        owners = {id(node.value) for node in ast.walk(self.tree) if isinstance(node, ast.Attribute)}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute):
                found.extend(self._attribute(node))
            elif isinstance(node, ast.Name):
                found.extend(self._name(node, id(node) in owners))
            elif isinstance(node, ast.Call):
                found.extend(self._call(node))
        return found

    def _imported(self) -> Iterator[Finding]:
        for node, dotted, _ in _imports(self.tree):
            parts = [part.lstrip("_") for part in dotted.split(".")]
            reason = next((FORBIDDEN_MODULES[part] for part in parts if part in FORBIDDEN_MODULES), None)
            # torch.signal is no module of processes: further down, only multiprocessing is meant.
            if reason and (parts[0] in FORBIDDEN_MODULES or "multiprocessing" in parts):
                yield Finding("forbidden_import", node.lineno, f"{dotted} ({reason})")
            if (
                isinstance(node, ast.ImportFrom)
                and node.module == "os"
                and dotted.removeprefix("os.") not in _OS_ALLOWED
            ):
                yield Finding("os_access", node.lineno, dotted)

    def _attribute(self, node: ast.Attribute) -> Iterator[Finding]:
        dotted = self.dotted(node)
        if dotted.startswith("os.") and dotted.count(".") == 1 and node.attr not in _OS_ALLOWED:
            yield Finding("os_access", node.lineno, dotted)
        elif dotted == "sys.modules":
            yield Finding("dynamic_code", node.lineno, dotted)
        elif dotted in ("torch.multiprocessing", "numpy.ctypeslib"):
            yield Finding("forbidden_import", node.lineno, dotted)

    def _name(self, node: ast.Name, owns_attribute: bool) -> Iterator[Finding]:
        # Handed on, the module would be out of sight.
        if self.modules.get(node.id) == "os" and not owns_attribute:
            yield Finding("os_access", node.lineno, "os")
        if node.id in _CODE_BUILTINS and isinstance(node.ctx, ast.Load) and node.id not in self.bound:
            yield Finding("dynamic_code", node.lineno, node.id)

    def _call(self, node: ast.Call) -> Iterator[Finding]:
        for keyword in node.keywords:
            safe = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
            if keyword.arg == "allow_pickle" and not safe:
                yield Finding("pickled_arrays", node.lineno, _text(node))
        path = _path_argument(self, node)
        if path is not None and _file_names(self, path) - {CHECKPOINT}:
            yield Finding("file_access", node.lineno, _text(node))


def _path_argument(names: _Names, node: ast.Call) -> ast.expr | None:
    """The path that a call opens, or None when it opens none."""
    if names.dotted(node.func) in _FILE_CALLS:
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        return node.args[0] if node.args else keywords.get("file", keywords.get("fname", keywords.get("f")))
    if isinstance(node.func, ast.Attribute):
        if node.func.attr == "tofile" and node.args:
            return node.args[0]
        if node.func.attr in _PATH_METHODS and names.dotted(node.func) not in _FILE_CALLS:
            return node.func.value
    return None


def _file_names(names: _Names, path: ast.expr, depth: int = 0) -> set[str]:
    """The last parts that a path may have, as far as they stand in the script; empty when they cannot be told."""
    if depth > 8:
        return set()
    if isinstance(path, ast.Constant):
        return {PurePosixPath(path.value).name} if isinstance(path.value, str) else {"(no text)"}
    if isinstance(path, ast.JoinedStr) and path.values:
        last = path.values[-1]
        return _file_names(names, last, depth + 1) if isinstance(last, ast.Constant) else set()
    if isinstance(path, ast.BinOp) and isinstance(path.op, ast.Add | ast.Div):
        return _file_names(names, path.right, depth + 1)
    if isinstance(path, ast.Call) and path.args:
        called = names.dotted(path.func).split(".")[-1]
        if called in ("join", "Path", "PurePath", "fspath", "str", "abspath"):
            return _file_names(names, path.args[-1], depth + 1)
    if isinstance(path, ast.Name):
        if path.id == "__file__":
            return {"__file__"}
        if path.id not in names.bound:
            values = names.values.get(path.id, [])
            return set().union(*(_file_names(names, value, depth + 1) for value in values))
    if isinstance(path, ast.Subscript) and names.dotted(path.value) == "sys.argv":
        return {"sys.argv"}
    return set()


def _soft(tree: ast.Module) -> list[Finding]:
    """Findings of single places that flag the row."""
    names = _Names(tree)
    found = []
    for node, dotted, _ in _imports(tree):
        for rule, modules in (("time_used", {"time", "datetime", "timeit"}), ("gc_used", {"gc"})):
            if dotted.split(".")[0] in modules:
                found.append(Finding(rule, node.lineno, dotted))
    for node in ast.walk(tree):
        size, limit, unit = _literal_size(node)
        if size > limit:
            found.append(Finding("large_literal", node.lineno, f"{size} {unit}"))
        if isinstance(node, ast.Call):
            path = _path_argument(names, node)
            if path is not None and not _file_names(names, path):
                found.append(Finding("unknown_file", node.lineno, _text(node)))
    return found


def _literal_size(node: ast.AST) -> tuple[int, int, str]:
    """Size of a literal, the limit for its kind, and the unit; a size of 0 for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        return len(node.value), LITERAL_CHARACTERS, "characters"
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return len(node.elts), LITERAL_ELEMENTS, "elements"
    if isinstance(node, ast.Dict):
        return len(node.keys), LITERAL_ELEMENTS, "elements"
    return 0, 0, ""


def _statements(tree: ast.Module, words: set[str]) -> dict[str, int]:
    """The statements, without the body of compound ones, that hold one of ``words``, with their first lines."""
    found: dict[str, int] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt):
            continue
        own = [
            child
            for child in ast.iter_child_nodes(node)
            if not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case)
        ]
        if any(_holds(part, words) for child in own for part in ast.walk(child)):
            found.setdefault(" ".join(map(ast.dump, own)), node.lineno)
    return found


def _holds(node: ast.AST, words: set[str]) -> bool:
    value = getattr(node, "value", None)
    texts = (getattr(node, "id", None), getattr(node, "attr", None), getattr(node, "arg", None), value)
    return any(isinstance(text, str) and text in words for text in (*texts, getattr(node, "name", None)))


def _load_model(tree: ast.Module) -> tuple[str, int]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "load_model":
            return ast.dump(node), node.lineno
    return "", 1


def _changes(tree: ast.Module, base: ast.Module) -> Iterator[Finding]:
    """Findings that compare the script with its base."""
    code, line = _load_model(tree)
    if code != _load_model(base)[0]:
        yield Finding("eval_path_changed", line, "load_model")
    for rule, words in (("precision_changed", _PRECISION), ("seed_changed", _SEEDING)):
        found, known = _statements(tree, words), _statements(base, words)
        for code in found.keys() - known.keys():
            yield Finding(rule, found[code], "changed or added")
        if known.keys() - found.keys() and not found.keys() - known.keys():
            yield Finding(rule, 1, "removed")
