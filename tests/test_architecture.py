"""Who may import whom, and what must not occur anywhere: read from the sources, without importing them."""

import ast
import re
import subprocess
import sys
import tomllib

import pytest
import yaml
from helpers import ROOT
from rowproof import git
from rowproof.families import FAMILIES
from rowproof.recipes import read_pins

CODE = ROOT / "workflow"
PACKAGE = CODE / "rowproof"
FAMILY_NAMES = tuple(name.split(".")[1] for name in FAMILIES)

# What a family takes from the rest of the package: small tools and evidence. Its family.py registers it as well.
FAMILY_MAY = {
    *("rowproof.checkpoints", "rowproof.errors", "rowproof.files", "rowproof.hashing", "rowproof.records"),
    *("rowproof.plain_data", "rowproof.plain_text", "rowproof.seeding", "rowproof.strict_yaml"),
}
# Clients of language models, shared by families and built on the same small tools.
SHARED = "llm"
# Modules that run a family's commands may use the spine as the command line does.
COMMAND_MODULES = {"rowproof.gptnt.commands", "rowproof.speedrun.commands"}
# Modules of commands and jobs: nothing is built on them.
ENTRIES = {
    *("rowproof.attest", "rowproof.attest_worker", "rowproof.cli", "rowproof.generated", "rowproof.jobs"),
    *("rowproof.intake", "rowproof.outside", "rowproof.reproduce", "rowproof.spot", "rowproof.why"),
}
# What plain jobs load: a job lives for a fraction of a second, and there are thousands.
JOB_MODULES = ("rowproof.jobs", "rowproof.evidence.bundle", "rowproof.provenance")
SLOW = {"pydantic", "yaml", "numpy", "rowproof.boards", "rowproof.families", "rowproof.recipes", "rowproof.partners"}
# The modules outside rowproof.evidence that may use it.
# Whether a page is current is told by what it must hold.
USE_EVIDENCE = {
    *("rowproof.cli", "rowproof.generated", "rowproof.intake", "rowproof.outside", "rowproof.recipes"),
    *("rowproof.reproduce", "rowproof.spot"),
}


def module_name(path):
    return ".".join(path.relative_to(CODE).with_suffix("").parts).removesuffix(".__init__")


FILES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
SCRIPTS = sorted((CODE / "scripts").glob("*.py"))


def imports(path, name, nested=True):
    """Dotted names of the modules that a file imports; relative imports are resolved."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree) if nested else tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = name.split(".")
            if path.name != "__init__.py":
                parts = parts[:-1]
            base = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
            base = ".".join(filter(None, [base, node.module]))
            for alias in node.names:
                member = f"{base}.{alias.name}"
                yield member if member in FILES else base


def own_imports(name):
    return {other for other in imports(FILES[name], name) if other.split(".")[0] == "rowproof"}


def family_of(name):
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in FAMILY_NAMES else None


def is_shared(name):
    return name.split(".")[1:2] == [SHARED]


def in_evidence(name):
    return name.startswith("rowproof.evidence")


def test_the_table_knows_every_folder():
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == {"evidence", SHARED, *FAMILY_NAMES}, "a new family joins through rowproof.families.FAMILIES"
    assert set(FILES) >= FAMILY_MAY | ENTRIES | USE_EVIDENCE


@pytest.mark.parametrize("name", FILES)
def test_import_arrows(name):
    for other in own_imports(name):
        arrow = f"{name} must not import {other}"
        if family_of(name):
            own = family_of(other) == family_of(name) or is_shared(other)
            allowed = own or in_evidence(other) or other in FAMILY_MAY
            if name in COMMAND_MODULES:
                allowed = allowed or family_of(other) is None
            assert allowed or (name in FAMILIES and other == "rowproof.families"), arrow
        elif is_shared(name):
            assert is_shared(other) or other in FAMILY_MAY, arrow
        else:
            # The spine and evidence know families by their registration alone.
            assert family_of(other) is None, arrow
            if in_evidence(name):
                assert other not in ENTRIES, arrow
            elif in_evidence(other):
                assert name in USE_EVIDENCE, arrow
            if name not in {*ENTRIES, "rowproof.__main__"}:
                assert other not in ENTRIES, arrow


def test_imports_form_no_cycle():
    done, path = set(), []

    def visit(name):
        assert name not in path, " -> ".join([*path, name])
        if name in done:
            return
        path.append(name)
        for other in sorted(set(imports(FILES[name], name, nested=False)) & set(FILES)):
            if other != name:
                visit(other)
        path.pop()
        done.add(name)

    for name in FILES:
        visit(name)
    assert done == set(FILES)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_are_thin(path):
    foreign = {name.split(".")[0] for name in imports(path, path.stem)} - {"rowproof"}
    assert foreign <= sys.stdlib_module_names
    assert len(path.read_text().splitlines()) < 60


def test_reading_the_configuration_loads_no_simulator():
    code = (
        "import sys; import rowproof.recipes, rowproof.cli; from rowproof.families import engines; engines()\n"
        "print(*sorted({'sapien', 'torch', 'mujoco', 'scipy', 'gymnasium', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=CODE, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_jobs_load_nothing_that_only_planning_needs():
    code = f"import sys, {', '.join(JOB_MODULES)}; print(*sorted({SLOW!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=CODE, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


FORBIDDEN_IMPORTS = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "random", "secrets", "uuid"}
FORBIDDEN_CALLS = {
    *("eval", "exec", "__import__", "os.system", "os.popen", "os.urandom"),
    *("yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load"),
    *("np.random.default_rng", "np.random.seed", "numpy.random.default_rng", "torch.manual_seed"),
}
# Where streams are made, where torch gets the seed that one of them gave, where published missions are drawn again, and
# where something must be what nobody can know: the content of a signal to Snakemake, the salt of an audit without one.
SEEDS = {
    ("rowproof.speedrun.setups", "os.urandom"),
    ("rowproof.signals", "os.urandom"),
    ("rowproof.seeding", "np.random.default_rng"),
    ("rowproof.chamber.learned.ppo", "torch.manual_seed"),
    ("rowproof.gptnt.mission_recipes", "np.random.default_rng"),
}
FORBIDDEN_KEYWORDS = {("shell", True), ("allow_pickle", True), ("weights_only", False)}


def offences(source, name):
    tree = ast.parse(source)
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    safe = {node.name for node in classes if [ast.unparse(base) for base in node.bases] == ["yaml.SafeLoader"]}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            yield from (n for n in names if n.split(".")[0] in FORBIDDEN_IMPORTS)
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called == "yaml.load" and any(k.arg == "Loader" and ast.unparse(k.value) in safe for k in node.keywords):
                continue
            if called in FORBIDDEN_CALLS and (name, called) not in SEEDS:
                yield called
            for keyword in node.keywords:
                value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                if (keyword.arg, value) in FORBIDDEN_KEYWORDS:
                    yield f"{called}({keyword.arg}={value})"


@pytest.mark.parametrize("path", [*FILES.values(), *SCRIPTS], ids=lambda path: path.relative_to(CODE).as_posix())
def test_no_code_from_data_and_no_hidden_randomness(path):
    assert list(offences(path.read_text(encoding="utf-8"), module_name(path))) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from random import random",
        "eval('1')",
        "yaml.load(x)",
        "yaml.load(x, Loader=yaml.Loader)",
        "class Mine(yaml.Loader): pass\nyaml.load(x, Loader=Mine)",
        "subprocess.run(x, shell=True)",
        "np.load(x, allow_pickle=True)",
        "np.random.default_rng(0)",
    ],
)
def test_offences_are_seen(source):
    assert len(list(offences(source, "rowproof.x"))) == 1


# --- versions


LOCK = read_pins(ROOT)
CONDA_NAMES = {"matplotlib-base": "matplotlib"}


@pytest.mark.parametrize("path", sorted((ROOT / "envs").glob("*.yaml")), ids=lambda path: path.name)
def test_environments_pin_what_the_lock_pins(path):
    document = yaml.safe_load(path.read_text())
    assert document["channels"] == ["conda-forge", "nodefaults"]
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    pinned = 0
    for entry in document["dependencies"]:
        for requirement in entry["pip"] if isinstance(entry, dict) else [entry]:
            match = re.fullmatch(r"([A-Za-z0-9._-]+) ?(==?|>=)([0-9][^ ]*)", requirement)
            assert match, f"{requirement} must be pinned"
            name, relation, version = match.groups()
            if name == "python":
                assert relation + version == requires
                continue
            pinned += 1
            assert relation != ">=" and version == LOCK[CONDA_NAMES.get(name, name).lower()], requirement
    assert pinned


def test_the_package_pins_what_the_lock_pins():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    pinned = {}
    for requirement in [*project["dependencies"], *(entry for extra in extras for entry in extra)]:
        if requirement.startswith("rowproof["):
            continue
        name, separator, version = requirement.partition("==")
        assert separator, f"{requirement} must be pinned"
        pinned[re.sub(r"[-_.]+", "-", name).lower()] = version
    assert pinned and pinned.items() <= LOCK.items()


# --- what must not be committed


def committed():
    listed = git.run(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listed is None:
        pytest.skip("no git checkout, so there is no list of what is committed")
    names = [name for name in listed.decode().split("\0") if name]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


# Written with a mark in the middle, so that this file does not hold them.
PRIVATE = [
    text.replace("~", "")
    for text in (
        *("/wo~rk/main", "/wo~rk/shared", "/ro~ot/", "/ho~me/", "/Us~ers/", "file:~///"),
        *("pypi~.org", "python~hosted", "index~-url", "find~-links", "trusted~-host", "local~host"),
    )
]


def test_no_path_of_this_machine_and_no_registry_is_committed():
    files = committed()
    found = []
    for path in files:
        data = path.read_bytes()
        found += [f"{path.relative_to(ROOT)}: {text}" for text in PRIVATE if text.encode() in data]
        if re.search(rb"://[^/\s\"']*:[^/\s\"'@]*@", data):
            found.append(f"{path.relative_to(ROOT)}: password in an address")
    assert len(files) > 50 and found == []


def test_no_large_or_binary_object_is_committed_among_the_sources():
    for path in committed():
        if path.suffix in (".py", ".smk", ".yaml", ".md", ".toml", ".jsonl", ".json"):
            data = path.read_bytes()
            assert b"\r" not in data and b"\0" not in data, path
            assert data == b"" or data.endswith(b"\n"), path
        assert path.suffix not in (".pkl", ".pickle", ".pyc"), path
