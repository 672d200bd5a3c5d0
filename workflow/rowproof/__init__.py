"""rowproof: leaderboard rows as file targets that carry their own proof.

Before any module of the package is imported, importing is made to follow the sources: byte code counts only where it
names the content that it was compiled from. Python's own choice, size and time stamp, would let code run that is no
longer there, under the digest of the code that is.
"""

import os
import sys
from contextlib import suppress
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from importlib.util import cache_from_source

# In the head of a byte code file: made from a source with this hash, which is to be compared at every import.
_CHECKED_HASH = (0b11).to_bytes(4, "little")


def _names_content(path: str) -> bool:
    try:
        with open(cache_from_source(path), "rb") as stream:  # noqa: PTH123 (as few imports as can be)
            return stream.read(8)[4:] == _CHECKED_HASH
    except (OSError, NotImplementedError):
        return False


class _ByContent(SourceFileLoader):
    """Loads modules from their sources, or from byte code that names the very content of its source."""

    def get_code(self, fullname: str):
        if not sys.dont_write_bytecode and not _names_content(self.path):
            import py_compile

            # A checkout that cannot be written is compiled each time; errors in a source are told by the import.
            with suppress(OSError, NotImplementedError, py_compile.PyCompileError):
                mode = py_compile.PycInvalidationMode.CHECKED_HASH
                py_compile.compile(self.path, doraise=True, invalidation_mode=mode)
        return super().get_code(fullname)

    def path_stats(self, path):
        if not _names_content(str(path)):
            # Without these, byte code is neither read nor written.
            raise OSError("byte code must name the content of its source")
        return super().path_stats(path)


_finder_of = FileFinder.path_hook((_ByContent, SOURCE_SUFFIXES))


def _own_folders(path: str):
    if not f"{path}{os.sep}".startswith(f"{__path__[0]}{os.sep}"):
        raise ImportError(path)
    return _finder_of(path)


sys.path_hooks.insert(0, _own_folders)
