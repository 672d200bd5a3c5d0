"""Finds the module of a policy or of a partner class by its name.

One module each, so that the code of a row holds those of its own names and none beside them.
"""

import pkgutil
import re
from importlib import import_module
from types import ModuleType
from typing import Any

from rowproof.errors import ConfigError

_NAME = re.compile(r"[a-z][a-z0-9_]*")


def known(package: str) -> list[str]:
    """The names that have a module in the folder of ``package``, sorted; a name that is no identifier has none."""
    found = pkgutil.iter_modules(import_module(package).__path__)
    return sorted(module.name for module in found if _NAME.fullmatch(module.name))


def load(package: str, name: Any, what: str) -> ModuleType:
    """The module ``name`` of ``package``; ``what`` says in messages what the name stands for.

    Raises:
        ConfigError: there is no such module; nothing is imported then.
    """
    names = known(package)
    if name not in names:
        raise ConfigError(f"{what} must be one of {names}, found {name!r}")
    return import_module(f"{package}.{name}")


def is_learned(module: ModuleType) -> bool:
    """Whether who plays is built from a checkpoint, as a module says with ``LEARNED = True``."""
    return getattr(module, "LEARNED", False)
