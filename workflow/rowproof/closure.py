"""What code a stage consists of: the modules its script reaches by import, hashed by meaning and not by layout."""

import ast
import json
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rowproof.errors import RowproofError
from rowproof.files import write_atomic
from rowproof.hashing import sha256_hex

PACKAGE = "rowproof"

# Modules that watch a stage: they may refuse, log, time and verify, but they hand it no content. A change in them
# asks for no rebuild, so imports are not followed through them.
OBSERVERS = frozenset(
    {
        "rowproof.chamber.progress",
        "rowproof.errors",
        "rowproof.evidence.verify",
        "rowproof.files",
        "rowproof.jobs",
    }
)


def normal_form(source: str, name: str = "<source>") -> str:
    """A text that is equal for two Python sources exactly when they differ in layout, comments and docstrings only.

    Written out here because ``ast.dump`` and ``ast.unparse`` change between Python versions. Empty fields are left
    out, so that fields which a later Python adds to a node do not change the form of older code.
    """
    tree = ast.parse(source, name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and type(first.value.value) is str:
                node.body = node.body[1:]
    return _form(tree)


def _form(value: object) -> str:
    if isinstance(value, ast.AST):
        fields = ((name, getattr(value, name, None)) for name in sorted(value._fields) if name not in ("ctx", "kind"))
        inside = ",".join(f"{name}={_form(item)}" for name, item in fields if item is not None and item != [])
        return f"{type(value).__name__}({inside})"
    if isinstance(value, list):
        return "[" + ",".join(_form(item) for item in value) + "]"
    return f"{type(value).__name__}:{value!r}"


@dataclass(frozen=True)
class Source:
    """One analysed file: the digest of its normal form and the modules that it imports."""

    digest: str
    imports: tuple[str, ...]


def analyse(source: bytes, module: str, is_package: bool, name: str) -> Source:
    """Digest and imports of one file; imports inside functions count, relative ones are resolved.

    Raises:
        RowproofError: the file is no Python source.
    """
    found: set[str] = set()
    try:
        text = source.decode("utf-8")
        tree = ast.parse(text, name)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise RowproofError(f"{name}:{line}: must be Python source, found an error: {error}") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                parts = parts[: len(parts) - node.level + is_package]
                base = ".".join([*parts, base] if base else parts)
            found.add(base)
            found.update(f"{base}.{alias.name}" for alias in node.names)
    return Source(sha256_hex(normal_form(text, name).encode()), tuple(sorted(found)))


# What is computed from a file depends on this module and on Python's parser; another maker's entries are dropped.
_MAKER = f"{sys.implementation.cache_tag}-{sha256_hex(Path(__file__).read_bytes())[:16]}"
# Time stamps tick every few milliseconds, on some file systems every two seconds.
_SETTLED_NS = 2_000_000_000


class HashCache:
    """Remembers what was computed from a file for as long as its size, times and inode stay the same.

    The change time is part of the key: an edit that restores size and modification time is still seen.
    """

    def __init__(self, path: Path | None) -> None:
        """Read the cache file ``path``; an unreadable one is dropped, ``None`` keeps nothing on disk."""
        self._path = path
        self._new: dict[str, list] = {}
        self._old: dict[str, list] = {}
        # Rows of a board share their code; looked up once per cache, that is once per launch.
        self.closures: dict[tuple, Closure] = {}
        # Likewise what a clock is to show of all rows of a board.
        self.timings: dict[tuple, dict] = {}
        self._unsettled: set[str] = set()
        if path is not None:
            try:
                stored = json.loads(path.read_bytes())
                if stored["maker"] == _MAKER:
                    self._old = dict(stored["entries"])
            except (OSError, ValueError, TypeError, KeyError, RecursionError):
                self._old = {}

    @staticmethod
    def _stamp(path: Path) -> list[int]:
        stat = path.stat()
        return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]

    def get(self, kind: str, path: Path, compute) -> object:
        """``compute(bytes)`` of the file, from the cache where its stamp is unchanged (JSON data only)."""
        key = f"{kind}:{path}"
        stamp = self._stamp(path)
        for store in (self._new, self._old):
            entry = store.get(key)
            if isinstance(entry, list) and len(entry) == 2 and entry[0] == stamp:
                self._new[key] = entry
                return entry[1]
        read_at_ns = time.time_ns()
        value = compute(path.read_bytes())
        if self._stamp(path) == stamp:
            self._new[key] = [stamp, value]
            # A file changed within the last moments could change again without a new time stamp.
            if stamp[2] >= read_at_ns - _SETTLED_NS:
                self._unsettled.add(key)
        return value

    def sha256(self, path: Path) -> str:
        """SHA-256 of a file."""
        return self.get("sha256", path, sha256_hex)

    def save(self) -> None:
        """Write the entries that were used, atomically; two processes at once cannot damage the file."""
        if self._path is None or self._new == self._old:
            return
        settled = {key: entry for key, entry in self._new.items() if key not in self._unsettled}
        write_atomic(self._path, json.dumps({"maker": _MAKER, "entries": settled}, sort_keys=True).encode())


def _module_file(code_root: Path, module: str) -> Path | None:
    base = code_root / Path(*module.split("."))
    for candidate in (base / "__init__.py", base.with_suffix(".py")):
        if candidate.is_file():
            return candidate
    return None


@dataclass(frozen=True)
class Closure:
    """The code of a stage: relative path -> digest, and the names of the foreign packages that it imports."""

    code: dict[str, str]
    packages: tuple[str, ...]


def closure(
    root: Path,
    scripts: Iterable[str],
    modules: Iterable[str],
    cache: HashCache,
    observers: frozenset[str] = OBSERVERS,
) -> Closure:
    """All package files reachable by import from ``scripts`` (paths below ``root``) and ``modules``.

    Args:
        root: the project; the package lies in ``root/workflow``.
        scripts: paths relative to ``root``.
        modules: dotted names of modules that the scripts load by name.
        cache: where analyses are remembered.
        observers: modules through which imports are not followed.

    Raises:
        RowproofError: a file is no Python source.
    """
    code_root = root / "workflow"
    queue: list[tuple[str, Path]] = [("", root / script) for script in scripts]
    pending = list(modules)
    code: dict[str, str] = {}
    packages: set[str] = set()
    seen: set[str] = set()
    while queue or pending:
        while pending:
            module = pending.pop()
            parts = module.split(".")
            if parts[0] != PACKAGE:
                packages.add(parts[0])
                continue
            # Importing a.b.c runs the __init__ files of a and a.b as well.
            for depth in range(1, len(parts) + 1):
                name = ".".join(parts[:depth])
                if name in observers:
                    break
                path = _module_file(code_root, name)
                if path is not None and name not in seen:
                    seen.add(name)
                    queue.append((name, path))
        if not queue:
            break
        name, path = queue.pop()
        relative = path.relative_to(root).as_posix()

        def compute(data: bytes, name: str = name, path: Path = path, relative: str = relative) -> list:
            source = analyse(data, name, path.name == "__init__.py", relative)
            return [source.digest, list(source.imports)]

        code[relative], imports = cache.get("code", path, compute)
        pending.extend(imports)
    foreign = sorted(p for p in packages if p and p not in sys.stdlib_module_names and p != "snakemake")
    return Closure(dict(sorted(code.items())), tuple(foreign))
