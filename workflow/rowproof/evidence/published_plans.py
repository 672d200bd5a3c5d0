"""The plans, partner sets and commands behind the published CHAMBER bundles, read strictly.

A plan is flattened into the list of runs that it allows (:func:`planned_cells`); a bundle must be one of them.
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rowproof.errors import RecordError, RowproofError

ADHOC = "adhoc:"
DEFAULT_ROOT_SEED = 0
DEFAULT_RESAMPLES = 2000


class _StrictLoader(yaml.SafeLoader):
    """A safe loader that also refuses repeated keys, and aliases (which let a small file grow without bound)."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError(f"aliases are not allowed, found one{self.peek_event().start_mark}")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.YAMLError(f"keys must be unique, found {key!r} again{key_node.start_mark}")
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


def load_yaml(data: bytes, where: str) -> Any:
    """Parse one YAML 1.1 document of plain data.

    Raises:
        RecordError: not UTF-8, malformed, a repeated key, an alias, or a tag beyond plain data.
    """
    try:
        return yaml.load(data.decode("utf-8"), Loader=_StrictLoader)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        text = " ".join(str(error).split())
        raise RecordError(f"{where}: must be YAML with plain data and unique keys: {text}") from None


def _resources() -> Path:
    return Path(__file__).resolve().parents[3] / "resources" / "published"


def _load_resource(name: str) -> dict[str, Any]:
    path = _resources() / name
    try:
        return load_yaml(path.read_bytes(), str(path))
    except OSError as error:
        raise RowproofError(f"{path} must be readable, found: {error.strerror}; check out the whole project") from error


@cache
def known_tags() -> dict[str, dict[str, str]]:
    """Published preregistration tags: ``blob``, ``commit``, ``plan`` (path) and for some ``condition``."""
    return _load_resource("preregistrations.yaml")["tags"]


@cache
def known_partner_sets() -> dict[str, Any]:
    """Published partner sets and seats: ``sets``, ``egos``, ``pairs``, ``cell_egos``, ``cell_partners``."""
    return _load_resource("partner-sets.yaml")


def known_classes(catalogue: Mapping[str, Any]) -> set[str]:
    """Every class that may sit in a seat."""
    classes = {member["class"] for chosen in catalogue["sets"].values() for member in chosen["members"]}
    egos = [*catalogue["egos"].values(), *catalogue["cell_egos"].values()]
    classes.update(ego["class"] for ego in egos if ego is not None)
    return classes | set(catalogue["pairs"]) | set(catalogue["cell_partners"])


PLAN_REQUIRED: Mapping[str, type] = {"task_id": str, "git_tag": str, "parameters": dict, "decision_rules": str}
PLAN_OPTIONAL: Mapping[str, type] = {"schema_version": int, "revision": str, "notes": str}


def load_plan(data: bytes, where: str) -> dict[str, Any]:
    """Read a preregistration in document form.

    Raises:
        RecordError: as :func:`load_yaml`; a missing, unknown or wrongly typed key; a schema version other than 1.
    """
    plan = load_yaml(data, where)
    if type(plan) is not dict:
        raise RecordError(f"{where}: a plan must be a mapping, found {type(plan).__name__}")
    for key, kind in PLAN_REQUIRED.items():
        if type(plan.get(key)) is not kind:
            raise RecordError(f"{where}: {key} must be {kind.__name__}, found {type(plan.get(key)).__name__}")
    for key in plan:
        if key not in PLAN_REQUIRED and key not in PLAN_OPTIONAL:
            raise RecordError(f"{where}: unknown key {key!r}")
        if key in PLAN_OPTIONAL and type(plan[key]) is not PLAN_OPTIONAL[key]:
            raise RecordError(f"{where}: {key} must be {PLAN_OPTIONAL[key].__name__}")
    if plan.get("schema_version", 1) != 1:
        raise RecordError(f"{where}: schema_version must be 1, found {plan['schema_version']!r}")
    return plan


def number(value: Any, where: str) -> float:
    """A plan's number as a float; text such as ``3.75e4``, which YAML 1.1 does not take for a number, is converted."""
    if type(value) in (int, float, str):
        try:
            return float(value)
        except ValueError:
            pass
    raise RecordError(f"{where}: must be a number, found {value!r}")


@dataclass(frozen=True)
class Cell:
    """One run that a plan allows.

    Attributes:
        row: row of the campaign, or cell id of an admission.
        purpose: ``leaderboard``, ``power`` (a pilot, never ranked) or ``admission``.
        task: ``id@vN``.
        policy: the policy id, or a prefix when ``policy_is_prefix`` (the plan left the checkpoint open).
        partner_set_id: ``set@vN`` or ``adhoc:<class>``.
        members: members in the order of the plan; empty without a set.
        seeds: cluster seeds in run order.
        episodes_per_seed: records per seed.
        condition: condition of every record; None when the plan is silent.
        ego: name of the ego in an admission cell, else None.
        manifest: path of the committed checkpoint selection of a learned row, else None.
    """

    row: str
    purpose: str
    task: str
    policy: str
    policy_is_prefix: bool
    partner_set_id: str
    members: tuple[str, ...]
    seeds: tuple[int, ...]
    episodes_per_seed: int
    n_resamples: int
    root_seed: int
    condition: str | None = None
    ego: str | None = None
    manifest: str | None = None

    def policy_fits(self, policy_id: str) -> bool:
        """Whether the plan means this policy id."""
        if self.policy_is_prefix:
            return policy_id.startswith(self.policy) and len(policy_id) > len(self.policy)
        return policy_id == self.policy

    def differences(self, meta: Mapping[str, Any]) -> list[str]:
        """What of ``bundle.json`` is not as the plan says; empty when this is the run."""
        schedule = meta["seed_schedule"]
        pairs = [
            ("task", self.task, f"{meta['task_id']}@v{meta['task_version']}"),
            ("partner_set_id", self.partner_set_id, meta["partner_set_id"]),
            ("seeds", list(self.seeds), schedule["seeds"]),
            ("episodes_per_seed", self.episodes_per_seed, schedule["episodes_per_seed"]),
            ("root_seed", self.root_seed, schedule["root_seed"]),
        ]
        found = [] if self.policy_fits(meta["policy_id"]) else [f"policy {meta['policy_id']!r}, plan {self.policy!r}"]
        return found + [f"{name} {stated!r}, plan {planned!r}" for name, planned, stated in pairs if planned != stated]


_PLACEHOLDER = re.compile(r"([a-z_]+:)<[^<>]*>")


def _campaign_cells(plan: Mapping[str, Any], catalogue: Mapping[str, Any]) -> list[Cell]:
    parameters = plan["parameters"]
    campaign, grid, evaluation = parameters["campaign"], parameters["partner_grid"], parameters["evaluation"]
    members = tuple(grid["eval_members"])
    pilot = evaluation.get("power_pilot", {})
    pilot_rows = re.split(r"\s*,\s*|\s+and\s+", pilot.get("row", ""))
    episodes = evaluation.get("episodes_per_seed_per_partner")
    cells = []
    for row, entry in (parameters.get("rows") or campaign["rows"]).items():
        placeholder = _PLACEHOLDER.fullmatch(entry["policy"])
        common = {
            "row": row,
            "task": campaign["task"],
            "policy": placeholder[1] if placeholder else entry["policy"],
            "policy_is_prefix": placeholder is not None,
            "n_resamples": evaluation["n_resamples"],
            "root_seed": evaluation["root_seed"],
            "condition": campaign.get("condition_id") or known_tags().get(plan["git_tag"], {}).get("condition"),
            "manifest": f"{campaign['results_root']}/selection/{row.lower()}_selected_manifest.json"
            if placeholder
            else None,
        }
        seeds = tuple(evaluation["eval_seeds"])
        if episodes is not None and "partner_dimension" in entry:
            # A jointly trained pair has its own checkpoint for each seed, and a bundle holds one partner.
            for pair in catalogue["pairs"]:
                single = {"partner_set_id": ADHOC + pair, "members": (), "episodes_per_seed": episodes}
                cells += [Cell(purpose="leaderboard", seeds=(seed,), **single, **common) for seed in seeds]
        elif "partner_dimension" not in entry:
            panel = {"partner_set_id": grid["partner_set"], "members": members}
            if episodes is not None:
                count = episodes * len(members)
                cells.append(Cell(purpose="leaderboard", seeds=seeds, episodes_per_seed=count, **panel, **common))
            if row in pilot_rows:
                count = pilot["episodes_per_partner"] * len(members)
                pilot_seeds = tuple(pilot["seeds"])
                cells.append(Cell(purpose="power", seeds=pilot_seeds, episodes_per_seed=count, **panel, **common))
    return cells


def _admission_cells(plan: Mapping[str, Any]) -> list[Cell]:
    admission = plan["parameters"]["admission"]
    cells = []
    for check in ("a1", "a2", "a3", "a4"):
        entry = admission.get(check)
        if entry is None or "cell_id" not in entry:
            continue
        for seeds, suffix in ((admission["seeds"], ""), (admission["extension_seeds"], "-ext")):
            cells.append(
                Cell(
                    row=entry["cell_id"] + suffix,
                    purpose="admission",
                    task=f"{plan['task_id']}@v{admission['task_version']}",
                    policy=entry["policy_id"],
                    policy_is_prefix=False,
                    partner_set_id=ADHOC + entry["partner_name"],
                    members=(),
                    seeds=tuple(seeds),
                    episodes_per_seed=admission["episodes_per_seed"],
                    n_resamples=admission.get("n_resamples", DEFAULT_RESAMPLES),
                    root_seed=admission.get("root_seed", DEFAULT_ROOT_SEED),
                    condition=entry["params"].get("condition_id"),
                    ego=entry["params"].get("ego"),
                )
            )
    return cells


def planned_cells(plan: Mapping[str, Any], catalogue: Mapping[str, Any]) -> list[Cell]:
    """Every run that a plan of :func:`load_plan` allows, in the order of the plan.

    Raises:
        RecordError: the plan's parameters do not have the form of a campaign or an admission.
    """
    try:
        return _admission_cells(plan) if "admission" in plan["parameters"] else _campaign_cells(plan, catalogue)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise RecordError(f"a plan must list its rows or cells in full: {type(error).__name__} {error}") from None


def closest_cell(cells: Iterable[Cell], meta: Mapping[str, Any]) -> Cell:
    """The cell from which ``bundle.json`` differs least (the first of equals); a cell of its policy goes first.

    Raises:
        RecordError: there is no cell.
    """
    ranked = sorted(cells, key=lambda cell: (not cell.policy_fits(meta["policy_id"]), len(cell.differences(meta))))
    if not ranked:
        raise RecordError("a plan must list at least one run, found none")
    return ranked[0]


_RUN_VALUES = (
    *("--task", "--policy", "--partner-set", "--partner", "--partner-weights", "--exclude-member", "--seeds"),
    *("--episodes", "--out", "--prereg", "--root-seed", "--n-resamples"),
)
_VALUES = {"run": _RUN_VALUES, "admission": ("--prereg", "--out", "--date", "--render-backend")}
_SWITCHES = {"run": ("--include-private", "--allow-dirty"), "admission": ("--allow-dirty",)}
_REPEATABLE = ("--exclude-member",)


@dataclass(frozen=True)
class Command:
    """A recorded ``chamber-eval`` command: ``kind`` (``run`` or ``admission``) and its options as given."""

    kind: str
    values: Mapping[str, list[str]] = field(default_factory=dict)
    switches: frozenset[str] = frozenset()

    def one(self, flag: str, default: str | None = None) -> str | None:
        """The value of ``flag``, or ``default`` when it was not given."""
        return self.values.get(flag, [default])[0]


def parse_command(text: str) -> Command:
    """Take apart a recorded command.

    Raises:
        RecordError: another program, an unknown, repeated or incomplete option, or needless quoting.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise RecordError(f"a command must be readable as shell words: {error}") from None
    if shlex.join(words) != text:
        raise RecordError("a command must be quoted as a shell needs it and no more")
    if len(words) < 2 or words[0] != "chamber-eval" or words[1] not in _VALUES:
        raise RecordError(f"a command must start with chamber-eval run or admission, found {words[:2]}")
    kind, values, switches = words[1], {}, set()
    rest = iter(words[2:])
    for word in rest:
        flag, joined, value = word.partition("=")
        if not joined and flag in _SWITCHES[kind] and flag not in switches:
            switches.add(flag)
        elif flag in _VALUES[kind] and (flag not in values or flag in _REPEATABLE):
            given = value if joined else next(rest, None)
            if given is None:
                raise RecordError(f"option {flag} must have a value, found none")
            values.setdefault(flag, []).append(given)
        else:
            raise RecordError(f"options must be known and given once, found {word!r}")
    return Command(kind, values, frozenset(switches))


def seeds_agree(text: str, seeds: list[int]) -> bool:
    """Whether a ``--seeds`` text stands for these seeds: ``N`` for 0 to N-1, a text with a comma for a list."""
    if "," in text:
        parts = text.split(",")
        parts = parts[:-1] if parts[-1] == "" else parts
        return parts == [str(seed) for seed in seeds]
    return text == str(len(seeds)) and seeds == list(range(len(seeds)))


def members_run(command: Command, catalogue: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The members that a set run sweeps, in roster order: the public ones (or all) without the excluded ones.

    Raises:
        RecordError: the set or an excluded member is unknown, or nobody is left.
    """
    set_id = command.one("--partner-set")
    chosen = catalogue["sets"].get(set_id)
    if chosen is None:
        raise RecordError(f"--partner-set must name a published set with its version, found {set_id!r}")
    excluded = command.values.get("--exclude-member", [])
    private = "--include-private" in command.switches
    roster = [member for member in chosen["members"] if private or member["split"] == "public"]
    unknown = sorted(set(excluded) - {member["name"] for member in roster})
    if unknown or len(set(excluded)) != len(excluded):
        raise RecordError(f"excluded members must be distinct members of {set_id}, found {excluded}")
    members = [member for member in roster if member["name"] not in excluded]
    if not members:
        raise RecordError("at least one member must remain after the exclusions, found none")
    return members
