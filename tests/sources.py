"""Source files held in memory, and the code that the stages of all engines reach."""

from functools import cache

from helpers import ROOT
from rowproof.closure import Analysis, FolderSources, HashCache, closure
from rowproof.families import engines
from rowproof.normal_form import analyse
from rowproof.recipes import SCRIPTS

_ANALYSES: dict[tuple[str, str], Analysis] = {}


class Texts:
    """Sources by path; what is equal is analysed once."""

    def __init__(self, texts):
        self.texts = texts

    def analysis(self, path):
        text = self.texts.get(path)
        if text is None:
            return None
        if (path, text) not in _ANALYSES:
            _ANALYSES[path, text] = analyse(text.encode(), path)
        return _ANALYSES[path, text]

    def with_text(self, path, text):
        return Texts({**self.texts, path: text})


@cache
def stages():
    """``engine stage`` -> scripts and modules, the roots of its code."""
    found = {}
    for engine in engines().values():
        for stage, producer in (
            ("specs", engine.specs_module),
            ("train", engine.training_module),
            ("select", engine.validation_module),
            ("simulate", engine.simulate_module),
            ("time", engine.timing_module),
        ):
            if producer is not None:
                programs = engine.programs if stage in ("simulate", "time") else ()
                found[f"{engine.name} {stage}"] = ((SCRIPTS[stage], *programs), (producer,))
    return found


@cache
def package():
    """All sources of the package and its scripts."""
    files = sorted((ROOT / "workflow").rglob("*.py"))
    return Texts({file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in files})


@cache
def reached():
    """Path of every file that runs in some stage -> the stages."""
    found = {}
    for name, roots in stages().items():
        for path in closure(FolderSources(ROOT, HashCache(None)), *roots).files:
            found.setdefault(path, []).append(name)
    return dict(sorted(found.items()))
