"""What code a stage consists of: the modules its script reaches by import, keyed by what of them can reach a record."""

import json
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from rowproof import git
from rowproof.errors import RowproofError
from rowproof.files import write_atomic
from rowproof.hashing import sha256_hex
from rowproof.normal_form import CODE, DOC, LOG, PACKAGE, UNKNOWN, Analysis, Part, analyse, module_of

# No chain of names or bases is longer, unless it runs in a circle.
_DEEPEST = 20

# Modules that watch a stage: they may refuse, log, time and verify, but they hand it no content. A change in them
# asks for no rebuild, so imports are not followed through them.
OBSERVERS = frozenset(
    {
        "rowproof.audit",
        "rowproof.chamber.progress",
        "rowproof.errors",
        "rowproof.evidence.verify",
        "rowproof.files",
        "rowproof.jobs",
        "rowproof.provenance",
    }
)


_LOADER = f"{CODE}{PACKAGE}/__init__.py"

# What is computed from a file depends on these modules and on Python's parser; another maker's entries are dropped.
_MADE_BY = b"".join(Path(__file__).with_name(name).read_bytes() for name in ("closure.py", "normal_form.py"))
_MAKER = f"{sys.implementation.cache_tag}-{sha256_hex(_MADE_BY)[:16]}"
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


class Sources(Protocol):
    """Where source files are read from."""

    def analysis(self, path: str) -> Analysis | None:
        """Of the Python file at a path relative to the project; None when there is no such file."""


class FolderSources:
    """The files of a checkout."""

    def __init__(self, root: Path, cache: HashCache) -> None:
        """Read files below ``root``; their analyses are remembered in ``cache``."""
        self._root, self._cache = root, cache

    def analysis(self, path: str) -> Analysis | None:
        """See :class:`Sources`.

        Raises:
            RowproofError: the file cannot be read or is no Python source.
        """
        file = self._root / path
        try:
            stored = self._cache.get(f"code:{path}", file, lambda data: asdict(_analysis(data, path)))
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            raise RowproofError(f"{path}: must be a readable file: {error.strerror}") from None
        return Analysis(**stored)


# By path and SHA-256 of content: a checkout and the commits of its history share most of their files.
_ANALYSES: dict[tuple[str, str], Analysis] = {}


def _analysis(data: bytes, path: str) -> Analysis:
    key = path, sha256_hex(data)
    if key not in _ANALYSES:
        _ANALYSES[key] = analyse(data, path)
    return _ANALYSES[key]


class CommitSources:
    """The files of a commit, read from git's objects as they are: no filter, no attribute, no checkout, no fetch."""

    def __init__(self, repo: Path, commit: str) -> None:
        """List the files of ``commit`` below ``repo``, a folder of a repository.

        Raises:
            HistoryGap: the commit or one of its trees is not in this clone.
        """
        self._repo, self._commit = repo, commit
        self._ids = git.files_at(repo, commit)
        self._held: dict[str, bytes] = {}

    def analysis(self, path: str) -> Analysis | None:
        """See :class:`Sources`.

        Raises:
            HistoryGap: the clone does not hold the file's content.
            RowproofError: the file is no Python source.
        """
        if path not in self._ids:
            return None
        if path not in self._held:
            wanted = [p for p in self._ids if p == path or (p.startswith(CODE) and p.endswith(".py"))]
            blobs = git.blobs(self._repo, [self._ids[p] for p in wanted])
            self._held.update((p, blobs[self._ids[p]]) for p in wanted)
        return _analysis(self._held[path], path)


@dataclass(frozen=True)
class Closure:
    """The code of a stage.

    Attributes:
        key: SHA-256 (64 hex) of all code that is reached, from the roots on. Names and places of modules do not enter.
        files: path -> SHA-256 of the file's own normal form, in which imports go by name. Shown to people; files that
            run nothing are left out.
        packages: foreign top-level module -> ``path:line`` of its first import.
    """

    key: str
    files: dict[str, str]
    packages: dict[str, str]


@dataclass(frozen=True)
class _Target:
    """What an import reaches: files in the order in which they run, and what is taken from the last.

    Attributes:
        before: the packages around, which run first.
        files: what the import names.
        label: what is taken, without the name of any own module.
        package: a foreign package's name.
    """

    before: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    label: str = ""
    package: str = ""


class _Walk:
    """One walk through the code that the roots reach."""

    def __init__(self, sources: Sources, observers: frozenset[str]) -> None:
        self._sources, self._observers = sources, observers
        self._known: dict[str, Analysis | None] = {}
        self._targets: dict[tuple[str, str], _Target] = {}
        self.seen: dict[str, Analysis] = {}
        self.packages: dict[str, str] = {}

    def analysis(self, path: str) -> Analysis | None:
        if path not in self._known:
            # The package's own file decides how modules are loaded, and hands them nothing.
            self._known[path] = analyse(b"", path) if path == _LOADER else self._sources.analysis(path)
        return self._known[path]

    def _path(self, module: str) -> str | None:
        """The file of an own module."""
        base = CODE + module.replace(".", "/")
        return next((p for p in (f"{base}/__init__.py", f"{base}.py") if self.analysis(p) is not None), None)

    def target(self, module: str, name: str) -> _Target:
        """What ``import module`` reaches, or ``from module import name``."""
        key = module, name
        if key not in self._targets:
            self._targets[key] = self._find(module, name)
        return self._targets[key]

    def target_of(self, part: Part) -> _Target | None:
        """What a part of a normal form reaches; None for one that reaches nothing."""
        if part[0] == "import":
            return self.target(part[1], part[2])
        if part[0] != "attribute":
            return None
        target = self.target(part[1], "")
        return target if target.files else None

    def _find(self, module: str, name: str) -> _Target:
        parts = module.split(".")
        if parts[0] != PACKAGE:
            return _Target(label=f"foreign {module} {name}", package=parts[0])
        around = [".".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
        submodule = f"{module}.{name}"
        if name and submodule in self._observers and not self._observers & set(around):
            return _Target(self._packages(around), label="observer ")
        watched = next((depth for depth, each in enumerate(around) if each in self._observers), None)
        if watched is not None:
            return _Target(self._packages(around[:watched]), label=f"observer {name}{self._kind(module, name)}")
        path = self._path(module)
        if path is None:
            # A folder without an __init__ file.
            below = self._path(submodule) if name else None
            if below is not None:
                return _Target(self._packages(around), (below,), "module")
            return _Target(self._packages(around), label=f"missing {module} {name}")
        before = self._packages(around[:-1])
        within = self.analysis(path)
        assert within is not None
        if not name:
            return _Target(before, (path,), "module")
        if name == "*":
            inside = [self._path(f"{module}.{each}") for each in within.exports] if path.endswith("__init__.py") else []
            return _Target(before, (path, *(each for each in inside if each is not None)), "star")
        below = self._path(submodule) if path.endswith("/__init__.py") else None
        if below is None and path == _LOADER:
            raise RowproofError(f"from {PACKAGE} import {name}: must be a module, found none: the package has no names")
        if below is None:
            return _Target(before, (path,), f"name {name}")
        named = name in within.exports and within.names.get(name) != submodule
        if named or {"*", "__getattr__"} & set(within.exports):
            # The package's own name goes before its module, unless it is bound later.
            return _Target(before, (path, below), f"name {name} or module")
        return _Target((*before, path), (below,), "module")

    def _kind(self, module: str, name: str) -> str:
        """For a class of errors that an observer defines: by which classes it is caught."""
        lineage = self.lineage(f"{module}.{name}") if name else None
        return "" if lineage is None else " ".join(["", "of", *sorted(each.rpartition(".")[2] for each in lineage)])

    def _packages(self, modules: Iterable[str]) -> tuple[str, ...]:
        paths = (self._path(module) for module in modules)
        return tuple(path for path in paths if path is not None)

    def reach(self, path: str) -> None:
        """Go to a file and on to all that it imports."""
        found = self.analysis(path)
        if path in self.seen or found is None:
            return
        self.seen[path] = found
        for part in found.parts:
            target = self.target_of(part)
            if target is None:
                continue
            if target.package and target.package not in sys.stdlib_module_names | {"snakemake", ""}:
                self.packages.setdefault(target.package, f"{path}:{part[-1]}")
            for each in (*target.before, *target.files):
                self.reach(each)

    # Which texts count.

    def _class(self, dotted: str, depth: int = 0) -> tuple[str, list[str] | None] | None:
        """Name of a class at its origin, and its bases if it is a plain class of errors; None if it cannot be told."""
        module, _, name = dotted.rpartition(".")
        path = module if module in self.seen else self._path(module) if module.startswith(PACKAGE) else None
        found = None if path is None else self.analysis(path)
        if found is None or depth > _DEEPEST:
            return None
        if name in found.classes:
            return dotted, found.classes[name]
        origin = found.names.get(name)
        if origin is None:
            return None
        return (dotted, None) if origin == dotted else self._class(origin, depth + 1)

    def lineage(self, dotted: str, depth: int = 0) -> frozenset[str] | None:
        """A class and all its bases up to ``Exception``; None unless all of them are plain and known."""
        if dotted == "builtins.Exception":
            return frozenset((dotted,))
        found = self._class(dotted)
        if found is None or not found[1] or depth > _DEEPEST:
            return None
        lineage = {found[0]}
        for base in found[1]:
            above = self.lineage(base, depth + 1)
            if above is None:
                return None
            lineage |= above
        return frozenset(lineage)

    def unread(self) -> frozenset[str]:
        """The owners of texts that no code here looks at: classes of errors, ``<log>`` and ``<doc>``."""
        sees = {what for found in self.seen.values() for what in found.sees}
        handlers = [handler for found in self.seen.values() for handler in found.handlers]
        unread = {owner for owner, what in ((LOG, "logs"), (DOC, "docs")) if what not in sees}
        owners = {part[1] for found in self.seen.values() for part in found.parts if part[0] == "text"}
        owners |= {owner for _, _, into in handlers for owner in into}
        lineages: dict[str, frozenset[str]] = {}
        for owner in owners - {LOG, DOC} if "errors" not in sees else ():
            lineage = self.lineage(owner)
            if lineage is not None:
                lineages[owner] = lineage
        unread |= set(lineages)
        while True:
            # A text that joins the text of another error is read with it.
            reading = [caught for caught, reads, into in handlers if reads or not set(into) <= unread]
            read = {
                owner
                for owner in unread & set(lineages)
                if any(self._catches(kind, lineages[owner]) for caught in reading for kind in caught)
            }
            if not read:
                return frozenset(unread)
            unread -= read

    def _catches(self, kind: str, lineage: frozenset[str]) -> bool:
        """Whether ``except kind`` may catch an error of this lineage."""
        if kind in (UNKNOWN, "builtins.BaseException"):
            return True
        if not kind.startswith((f"{PACKAGE}.", CODE)):
            # Of the classes that are not ours, the lineage holds Exception alone.
            return kind in lineage
        found = self._class(kind)
        return found is None or found[0] in lineage


def _contents(found: Analysis, walk: _Walk, unread: frozenset[str], names: dict[str, str]) -> str:
    """The normal form of one file among others; ``names`` says what stands for each file."""
    shown = []
    for part in found.parts:
        if isinstance(part, str):
            shown.append(part)
        elif (target := walk.target_of(part)) is not None:
            before = [names[each] for each in target.before if each in names]
            files = [names[each] for each in target.files]
            shown.append(f"<{target.label}: {' '.join(before)}; {' '.join(files)}>")
        elif part[0] == "text" and part[1] not in unread:
            shown.append(part[2])
    return "".join(shown)


def closure(
    sources: Sources,
    scripts: Iterable[str],
    modules: Iterable[str],
    observers: frozenset[str] = OBSERVERS,
) -> Closure:
    """All code that ``scripts`` and ``modules`` reach by import.

    Args:
        sources: where the files are read from.
        scripts: paths relative to the project.
        modules: dotted names of modules that the scripts load by name.
        observers: modules through which imports are not followed.

    Raises:
        RowproofError: a root does not exist, or a file is no Python source.
        HistoryGap: the clone does not hold what is asked for.
    """
    walk = _Walk(sources, observers)
    roots = [_Target(files=(script,), label="script") for script in scripts]
    for script in (root.files[0] for root in roots):
        if walk.analysis(script) is None:
            raise RowproofError(f"{script}: must be a Python file of the project, found none: restore it")
    for module in modules:
        root = walk.target(module, "")
        if root.label.startswith("missing"):
            raise RowproofError(f"{module}: must be a module of the project, found none: restore it")
        if root.package:
            walk.packages.setdefault(root.package, module)
        roots.append(root)
    for root in roots:
        for path in (*root.before, *root.files):
            walk.reach(path)
    unread = walk.unread()
    sees = {what for found in walk.seen.values() for what in found.sees}
    own = {path: module_of(path) or path for path in walk.seen}
    digests, forms = {}, []
    named = {path for root in roots for path in root.files}
    for found in walk.seen.values():
        targets = (walk.target_of(part) for part in found.parts)
        named.update(path for target in targets if target is not None for path in target.files)
    running = {}
    for path, found in walk.seen.items():
        form = _contents(found, walk, unread, own)
        if form != "Module()":
            running[path] = form
    # Packages that run nothing are left out, unless something is taken from them.
    kept = [path for path in walk.seen if path in running or path in named]
    numbers = {path: str(number) for number, path in enumerate(kept)}
    for path in kept:
        found = walk.seen[path]
        place = own[path] if found.place or {"places", "frames"} & sees else ""
        text = found.text if "frames" in sees else ""
        forms.append([_contents(found, walk, unread, numbers), place, text])
        if path in running:
            digests[path] = sha256_hex(json.dumps([running[path], text]).encode())
    started = [[root.label, *(numbers.get(path, "") for path in (*root.before, *root.files))] for root in roots]
    key = sha256_hex(json.dumps([started, forms]).encode())
    return Closure(key, dict(sorted(digests.items())), dict(sorted(walk.packages.items())))
