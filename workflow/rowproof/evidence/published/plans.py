"""Published plans, read strictly and flattened into the list of runs that they allow; a bundle must be one of them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import yaml

from rowproof.errors import RecordError
from rowproof.evidence.published.catalogue import ADHOC, known_tags

DEFAULT_ROOT_SEED = 0
DEFAULT_RESAMPLES = 2000


class _StrictLoader(yaml.SafeLoader):
    """A safe loader that also refuses repeated keys, and aliases (which let a small file grow without bound).

    Not :mod:`rowproof.strict_yaml`, the reader of our own files: a plan means what its authors' reader made of it, and
    that took YAML 1.1 (``3.75e4`` is text there and ``010`` is eight).
    """

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


PLAN_REQUIRED: Mapping[str, type] = {"task_id": str, "git_tag": str, "parameters": dict, "decision_rules": str}
PLAN_OPTIONAL: Mapping[str, type] = {"schema_version": int, "revision": str, "notes": str}


@lru_cache(maxsize=8)
def load_plan(data: bytes, where: str) -> dict[str, Any]:
    """Read a preregistration in document form; not to be changed, because it is remembered for the next bundle.

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
