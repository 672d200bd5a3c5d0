"""What code a row reaches: its own policy, its own partner classes and its own engine, and nothing beside them."""

import shutil
import subprocess
import sys

import pytest
from helpers import ROOT
from rowproof.boards import PAIR
from rowproof.chamber.by_name import is_learned, known, load
from rowproof.closure import FolderSources, HashCache, closure
from rowproof.errors import ConfigError
from rowproof.families import engines
from rowproof.recipes import SCRIPTS

ENGINES = {name: engine for name, engine in engines().items() if engine.specs_module == "rowproof.chamber.grid"}
CACHE = HashCache(None)


def folders(engine):
    """The packages of egos and of partners."""
    own = engine.modules("simulate", {"policy": "p", "members": [{"class": "c"}]})
    return tuple(name.rpartition(".")[0] for name in own)


FOLDERS = {name: folders(engine) for name, engine in ENGINES.items()}
EGOS = {name: known(egos) for name, (egos, _) in FOLDERS.items()}
PARTNERS = {name: known(partners) for name, (_, partners) in FOLDERS.items()}
LEARNED = {name: set(engine.learned_policies) for name, engine in ENGINES.items()}


def reached(scripts, modules, root=ROOT):
    """The modules of the package that are reached, by dotted name."""
    files = closure(FolderSources(root, CACHE), scripts, modules).files
    return {name.removeprefix("workflow/").removesuffix(".py").replace("/", ".") for name in files}


def producers(engine):
    """By stage the module that makes its product."""
    made_by = {
        "specs": engine.specs_module,
        "train": engine.training_module,
        "select": engine.validation_module,
        "simulate": engine.simulate_module,
    }
    return {stage: module for stage, module in made_by.items() if module}


def of_stage(name, stage, policy, classes, root=ROOT):
    engine = ENGINES[name]
    members = [{"class": each} for each in classes]
    setup = {"policy": policy, "members": members, "member": members[0]}
    return reached([SCRIPTS[stage]], [producers(engine)[stage], *engine.modules(stage, setup)], root)


def inside(modules, package):
    """Those of ``modules`` in a package, by their last name."""
    return {module.rpartition(".")[2] for module in modules if module.startswith(package + ".")} - {"__init__"}


# ---- one module for every name ---------------------------------------------------------------------------------


def test_the_family_has_these_engines():
    assert list(ENGINES) == ["handover-v1", "push-v1", "cocarry-v1"]


@pytest.mark.parametrize("name", ENGINES)
def test_the_policies_of_the_family_are_the_modules_of_the_folder(name):
    assert sorted(ENGINES[name].policies) == EGOS[name]
    modules = {policy: load(FOLDERS[name][0], policy, "policy") for policy in EGOS[name]}
    assert {policy for policy, module in modules.items() if is_learned(module)} == LEARNED[name]


def test_partner_classes():
    assert PARTNERS == {
        "handover-v1": ["handover_presenter", "handover_presenter_ablated"],
        "push-v1": ["scripted_heuristic"],
        "cocarry-v1": ["cocarry_impedance", "partner_ablated_zero", "trained_pair"],
    }
    assert is_learned(load(FOLDERS["cocarry-v1"][1], PAIR["class"], "class"))


@pytest.mark.parametrize(
    "found",
    ["oracle", "..x", "", ".", "static.x", "../static", "static.py", "__init__", "Static", "sys", None, 1, ["a"]],
)
def test_a_name_without_module_is_refused_and_nothing_imported(found):
    package, _ = FOLDERS["cocarry-v1"]
    known(package)
    before = set(sys.modules)
    with pytest.raises(ConfigError) as caught:
        load(package, found, "policy")
    assert str(caught.value) == f"policy must be one of {EGOS['cocarry-v1']}, found {found!r}"
    assert set(sys.modules) == before


@pytest.fixture
def own_package(tmp_path, monkeypatch):
    """A package in a folder of its own, named as no other."""
    folder = tmp_path / "package_of_names"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for module in [module for module in sys.modules if module.split(".")[0] == folder.name]:
        del sys.modules[module]


def test_names_that_are_no_identifiers_have_no_module(own_package):
    for name in ("b", "a", "_shared", "with-hyphen", "2nd", "Upper"):
        (own_package / f"{name}.py").write_text("X = 1\n")
    (own_package / "notes.txt").touch()
    assert known(own_package.name) == ["a", "b"]
    assert load(own_package.name, "a", "policy").X == 1
    with pytest.raises(ConfigError, match=r"policy must be one of \['a', 'b'\], found 'with-hyphen'"):
        load(own_package.name, "with-hyphen", "policy")


# ---- what an engine says that is loaded by name ----------------------------------------------------------------


@pytest.mark.parametrize("name", ENGINES)
def test_modules_of_the_stages(name):
    egos, partners = FOLDERS[name]
    setup = {"policy": "p", "members": [{"class": "b"}, {"class": "a"}, {"class": "b"}], "member": {"class": "c"}}
    modules = ENGINES[name].modules
    assert modules("simulate", setup) == (f"{egos}.p", f"{partners}.a", f"{partners}.b")
    assert modules("select", setup) == (f"{egos}.p", f"{partners}.c")
    assert modules("train", {"cell": {}, "training": {}}) == modules("specs", setup) == ()


# ---- what is reached -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "policy"), [(name, policy) for name in ENGINES for policy in EGOS[name]])
def test_records_reach_their_own_policy_and_no_other(name, policy):
    egos, partners = FOLDERS[name]
    for own in PARTNERS[name]:
        found = of_stage(name, "simulate", policy, [own])
        assert inside(found, egos) == {policy}
        assert inside(found, partners) == {own}
        # One learned seat is enough to reach what plays checkpoints.
        learned = policy in LEARNED[name] or own == PAIR["class"]
        assert bool(inside(found, "rowproof.chamber.learned")) == learned
        assert inside(found, "rowproof.chamber.learned") <= {"policy", "tensors"}


@pytest.mark.parametrize("name", ENGINES)
def test_a_row_with_several_classes_reaches_each_of_them(name):
    found = of_stage(name, "simulate", "static", PARTNERS[name])
    assert inside(found, FOLDERS[name][1]) == set(PARTNERS[name])


@pytest.mark.parametrize(("name", "policy"), [(name, policy) for name in ENGINES for policy in sorted(LEARNED[name])])
def test_a_selection_reaches_its_own_policy_and_member(name, policy):
    egos, partners = FOLDERS[name]
    for own in PARTNERS[name]:
        found = of_stage(name, "select", policy, [own])
        assert (inside(found, egos), inside(found, partners)) == ({policy}, {own})
        assert ENGINES[name].simulate_module not in found


@pytest.mark.parametrize("name", [name for name in ENGINES if LEARNED[name]])
def test_a_training_reaches_no_policy_and_no_partner_class(name):
    found = of_stage(name, "train", "happo", PARTNERS[name])
    assert ENGINES[name].training_module in found
    assert inside(found, FOLDERS[name][0]) == inside(found, FOLDERS[name][1]) == set()
    assert not {ENGINES[name].simulate_module, ENGINES[name].validation_module} & found


def test_players_reach_the_parts_that_they_are_made_of():
    def parts(policy, own):
        parts = {"impedance", "kinematics", "zero_player", "learned_players"}
        return inside(of_stage("cocarry-v1", "simulate", policy, [own]), "rowproof.chamber.cocarry") & parts

    controller = {"impedance", "kinematics"}
    assert parts("static", "partner_ablated_zero") == {"zero_player"}
    assert parts("random", "cocarry_impedance") == controller
    assert parts("static", "cocarry_impedance") == controller | {"zero_player"}
    assert parts("happo", "cocarry_impedance") == controller | {"learned_players"}
    assert parts("joint_ego", "trained_pair") == {"learned_players"}


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_reaches_no_other_engine(name):
    own = {"handover-v1": "handover", "push-v1": "push", "cocarry-v1": "cocarry"}
    for stage in producers(ENGINES[name]):
        found = of_stage(name, stage, sorted(LEARNED[name] or {"static"})[0], PARTNERS[name])
        for other in set(own.values()) - {own[name]}:
            assert not [module for module in found if module.startswith(f"rowproof.chamber.{other}")]


@pytest.mark.parametrize("name", ENGINES)
def test_no_producer_reaches_what_is_checked_after_the_fact(name):
    checks = ENGINES[name].checks_module
    shared = {"rowproof.chamber.family", "rowproof.chamber.record_checks"}
    assert {checks, "rowproof.chamber.record_checks"} <= reached([], [checks])
    egos, partners = FOLDERS[name]
    loaded = [*(f"{egos}.{policy}" for policy in EGOS[name]), *(f"{partners}.{own}" for own in PARTNERS[name])]
    for stage, producer in producers(ENGINES[name]).items():
        assert not reached([SCRIPTS[stage]], [producer, *loaded]) & {checks, *shared}, stage


@pytest.mark.parametrize("name", ENGINES)
def test_a_new_policy_or_class_is_one_file_and_changes_no_row(name, tmp_path):
    root = tmp_path / "project"
    shutil.copytree(ROOT / "workflow", root / "workflow", ignore=shutil.ignore_patterns("__pycache__"))
    egos, partners = (root / "workflow" / package.replace(".", "/") for package in FOLDERS[name])

    def codes():
        cache = HashCache(None)
        modules = ENGINES[name].modules("simulate", {"policy": "static", "members": [{"class": PARTNERS[name][0]}]})
        roots = [ENGINES[name].simulate_module, *modules]
        return closure(FolderSources(root, cache), [SCRIPTS["simulate"]], roots).files

    before = codes()
    for folder in (egos, partners):
        (folder / "own_one.py").write_text("def build(*anything): ...\n")
        (folder / "__init__.py").write_text('"""Other words."""\n')
    assert codes() == before
    found = of_stage(name, "simulate", "own_one", ["own_one"], root)
    assert (inside(found, FOLDERS[name][0]), inside(found, FOLDERS[name][1])) == ({"own_one"}, {"own_one"})


def test_all_players_load_without_simulator_and_torch():
    modules = [f"{package}.{own}" for name in ENGINES for package in FOLDERS[name] for own in known(package)]
    modules += [engine.checks_module for engine in ENGINES.values()]
    assert len(modules) == 5 + 2 + 3 + 1 + 7 + 3 + 3
    code = f"import sys; sys.modules.update(sapien=None, torch=None, gymnasium=None)\nimport {', '.join(modules)}"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(ROOT / "workflow")})
