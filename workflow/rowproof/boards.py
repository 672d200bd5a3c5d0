"""Boards, plans and partner sets: the typed models of ``config/`` and how they refer to one another."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from rowproof.errors import ConfigError
from rowproof.families import Engine, engines
from rowproof.identities import identity
from rowproof.partners import PartnerSet
from rowproof.plain_text import PlainLine, PlainText
from rowproof.strict_yaml import Document, Key, load, validate

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=60)]
# One folder is allowed: admission/<board> holds the evidence on which a board was admitted.
BoardName = Annotated[str, StringConstraints(pattern=r"^(admission/)?[a-z0-9]+(-[a-z0-9]+)*$", max_length=60)]
Identifier = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+([-_][a-z0-9]+)*$", max_length=60)]
Versioned = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]+@v[1-9][0-9]*$")]
Seed = Annotated[int, Field(ge=0, lt=2**63)]


class Strict(BaseModel):
    """Base of all configuration models: unknown keys and silent conversions are refused."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def _unique(values: list[Any]) -> list[Any]:
    if len(set(values)) != len(values):
        raise ValueError(f"entries must be distinct, found {values}")
    return values


class Row(Strict):
    """One line of a board."""

    policy: Identifier = Field(description="the ego policy that the row evaluates; the engine must know it")
    label: PlainLine = Field("", description="text shown beside the row, e.g. 'oracle reference'")
    description: PlainLine = Field("", description="one sentence for readers of the board")


BlobId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]


class TimestampWitness(Strict):
    """A time stamp (RFC 3161) of one version of the plan."""

    kind: Literal["rfc3161"]
    blob: BlobId = Field(description="git's object id of the version of the plan that was stamped")
    token: Annotated[str, StringConstraints(pattern=r"^config/witnesses/[a-z0-9-]+(/[a-z0-9-]+)*\.tsr$")] = Field(
        description="file of the authority's response"
    )
    authority: Name = Field(
        description="who stamped it; its pinned certificates are config/authorities/<authority>.pem"
    )
    time: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")] = Field(
        description="the stamped time, in whole seconds of UTC; verify holds it against the token"
    )


class DepositWitness(Strict):
    """A deposit of one version of the plan in an archive: shown, and not looked up by any check."""

    kind: Literal["deposit"]
    blob: BlobId = Field(description="git's object id of the version of the plan that was deposited")
    id: Annotated[
        str,
        StringConstraints(
            pattern=r"^(doi:10\.[0-9]{4,9}/[A-Za-z0-9][A-Za-z0-9./_-]*|swh:1:(cnt|dir|rev|rel|snp):[0-9a-f]{40})$",
            max_length=200,
        ),
    ] = Field(description="the archive's persistent identifier: a DOI or a SWHID")


Witness = Annotated[TimestampWitness | DepositWitness, Field(discriminator="kind")]


class Board(Strict):
    """One leaderboard: ``config/boards/<board>.yaml``."""

    schema_: Literal["rowproof/board/1"] = Field(alias="schema")
    board: BoardName = Field(description="name of the board and of its folder under results/; equals the file name")
    title: PlainLine = Field(min_length=1)
    description: PlainLine = ""
    task: Versioned = Field(description="task and version, e.g. handover_place@v1")
    engine: Name = Field(description="the engine that runs the episodes")
    tier: Literal["exact", "outcome", "statistical"] = Field(description="what a rebuild elsewhere must equal")
    plan: BoardName = Field(description="the preregistration: config/plans/<plan>.yaml")
    partner_set: Name = Field(description="config/partners/<partner_set>.yaml")
    rows: dict[Name, Row] = Field(min_length=1)
    notes: list[PlainLine] = Field(default_factory=list, description="footnotes under the table")
    witnesses: list[Witness] = Field(
        default_factory=list, description="who outside of the project saw the plan, and when"
    )


class Grid(Strict):
    """Which episodes a row consists of: seeds x partners x episodes, in this order."""

    seeds: list[Seed] = Field(min_length=1, description="cluster seeds in run order")
    partners: list[Identifier] = Field(min_length=1, description="members of the partner set, in roster order")
    episodes_per_partner: Annotated[int, Field(ge=1, le=100_000)]
    root_seed: Seed = Field(description="root of the ego's random streams")
    initial_state: Literal["seed*1000+episode", "episode", "mission", "seed"] = Field(
        description="how an episode's start state is numbered; equal numbers start equally for every partner and row"
    )

    _distinct = field_validator("seeds", "partners")(_unique)


class StatisticsPlan(Strict):
    """Parameters of the bootstrap intervals."""

    n_resamples: Annotated[int, Field(ge=1, le=100_000)]
    root_seed: Seed


class PlanRow(Strict):
    """A row as it was preregistered; what it does not say, the plan says for all rows."""

    policy: Identifier
    partners: list[Identifier] | None = Field(None, min_length=1, description="instead of the grid's partners")
    cell: dict[str, Any] = Field(default_factory=dict, description="task parameters other than the plan's")
    training: Name | None = Field(None, description="how a learned policy is trained: config/training/<training>.yaml")
    pair: bool = Field(False, description="whether the only partner is the one that the ego was trained with")
    withdrawn: PlainLine | None = Field(
        None, min_length=1, description="why the row is not on the board; the board's page shows it"
    )
    campaign: Annotated[int, Field(ge=1)] = Field(
        1, description="of timed boards: in which campaign the row is timed, with the baseline and the A/A candidate"
    )

    @field_validator("partners")
    @classmethod
    def _distinct(cls, names: list[str] | None) -> list[str] | None:
        return None if names is None else _unique(names)


class SelectionPlan(Strict):
    """How one of a training's checkpoints is chosen, before any evaluation and apart from it.

    A checkpoint scores one point per episode that succeeds within the limits. The highest score wins, the earliest
    checkpoint among equals.
    """

    partner: Identifier = Field(description="a public member that no row is evaluated with")
    seeds: list[Seed] = Field(min_length=1, description="seeds that no row is evaluated with")
    episodes_per_seed: Annotated[int, Field(ge=1, le=1000)]
    limits: dict[Identifier, float] = Field(description="largest value of a measurement, by its name in a record")

    _distinct = field_validator("seeds")(_unique)


class InstrumentPlan(Strict):
    """A row of another board whose policy is to serve as the fixed instrument for judging partners."""

    board: BoardName
    row: Name
    c_min: Annotated[float, Field(ge=0, le=1)] = Field(description="A4: least lower bound of success with any partner")


class AdmissionPlan(Strict):
    """What a task must show before rows of it may be ranked, and by which rows of the plan it is shown."""

    tau_solv: Annotated[float, Field(ge=0, le=1)] = Field(description="A1: least lower bound of the reference pair")
    stress_limit_n: Annotated[float, Field(gt=0)] | None = Field(
        description="A1: largest stress of a successful episode, in newton; null when the task has no force channel"
    )
    tau_infeasible: Annotated[float, Field(ge=0, le=1)] = Field(description="A2: largest upper bound without partner")
    delta_min: Annotated[float, Field(ge=0, le=1)] = Field(description="A3: least lower bound of the paired gap")
    a1: Name = Field(description="row of the matched reference pair")
    a2: Name = Field(description="row with the partner ablated")
    a3: Name = Field(description="row of the blind ego, paired with a1")
    a4: InstrumentPlan | None = Field(None, description="A4 is asked only when a policy serves as instrument")

    @property
    def foreign_rows(self) -> list[str]:
        """Rows of other boards, ``<board>/<row>``, that the report rests on."""
        return [f"{self.a4.board}/{self.a4.row}"] if self.a4 else []


# The seat of a partner that was trained together with the ego; its weights are in the ego's checkpoint.
PAIR: dict[str, Any] = {
    "name": "own_partner",
    "class": "trained_pair",
    "seed": 0,
    "checkpoint_step": None,
    "weights_uri": None,
    "params": {},
    "identity": identity("trained_pair", 0, None, None),
}


class Plan(Strict):
    """A preregistration: fixed by a commit before the first episode of the rows it lists."""

    schema_: Literal["rowproof/plan/1"] = Field(alias="schema")
    plan: BoardName
    board: BoardName
    task: Versioned
    grid: Grid
    cell: dict[str, Any] = Field(description="task parameters; their keys are those of the engine's model")
    statistics: StatisticsPlan
    rows: dict[Name, PlanRow] = Field(min_length=1)
    decision_rules: PlainText
    notes: PlainText = ""
    admission: AdmissionPlan | None = None
    selection: SelectionPlan | None = Field(None, description="for plans with learned rows")

    def partners_of(self, row: str) -> list[str]:
        """The partners that a row plays with, in roster order."""
        if self.rows[row].pair:
            return [PAIR["name"]]
        own = self.rows[row].partners
        return list(self.grid.partners if own is None else own)

    def cell_of(self, row: str) -> dict[str, Any]:
        """The task parameters of a row."""
        return {**self.cell, **self.rows[row].cell}

    def slice_of(self, row: str, engine: Engine) -> dict[str, Any]:
        """The part of the plan that binds a row, as plain data; what only other rows need is not in it.

        Notes, decision rules and labels are for readers; the rules that decide are these numbers.
        """
        entry, grid = self.rows[row], self.grid
        return {
            "plan": self.plan,
            "board": self.board,
            "task": self.task,
            "seeds": list(grid.seeds),
            "episodes_per_partner": grid.episodes_per_partner,
            "root_seed": grid.root_seed,
            "initial_state": grid.initial_state,
            "policy": entry.policy,
            "partners": self.partners_of(row),
            "training": entry.training,
            "pair": entry.pair,
            "campaign": entry.campaign,
            "cell": _own_cell(self, row, engine),
            "statistics": self.statistics.model_dump(),
            "selection": self.selection.model_dump() if self.selection and entry.training else None,
        }


class Config(Strict):
    """``config/config.yaml``: what is built by default and how it is cut into jobs."""

    schema_: Literal["rowproof/config/1"] = Field(alias="schema")
    boards: list[BoardName] = Field(min_length=1, description="boards of the default target")
    shard_by: Literal["row", "seed", "partner"] = Field(
        description="one job per row, per seed, or per seed and partner; changes speed, never a result"
    )
    quick_rows: list[str] = Field(default_factory=list, description="rows that make reproduce rebuilds from scratch")

    _distinct = field_validator("boards", "quick_rows")(_unique)


MODELS: dict[str, type[BaseModel]] = {"config": Config, "board": Board, "plan": Plan, "partner-set": PartnerSet}


def json_schema(kind: str) -> bytes:
    """The JSON schema file of one kind of configuration file (a key of ``MODELS``)."""
    return schema_file(MODELS[kind])


def schema_file(model: type[BaseModel]) -> bytes:
    """The JSON schema of a model of configuration files, as a file."""
    schema = model.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return (json.dumps(schema, indent=2, sort_keys=True) + "\n").encode()


Read = Callable[[str], bytes]
"""Gives a file of the project by its path: of today, or of a commit."""


def project_reader(root: Path) -> Read:
    """Reads files of the checkout at ``root``.

    The function raises :class:`~rowproof.errors.ConfigError` where a file cannot be read.
    """

    def read(path: str) -> bytes:
        try:
            return (root / path).read_bytes()
        except OSError as error:
            raise ConfigError(f"{path}: must be a readable file: {error.strerror}") from None

    return read


@dataclass(frozen=True)
class BoardSetup:
    """A board with everything it refers to, cross-checked."""

    root: Path
    board: Board
    plan: Plan
    plan_path: str
    plan_bytes: bytes
    partner_set: PartnerSet
    engine: Engine
    trainings: dict[str, BaseModel] = field(default_factory=dict)

    def row_setup(self, row: str, read: Read | None = None) -> dict[str, Any]:
        """All plain data that determines the episodes of ``row`` (the ``setup`` of its recipes).

        ``read`` reads files of the project, by default those of today.
        """
        return row_setup(self.plan, row, self.partner_set, self.engine, read or project_reader(self.root))

    def board_setup(self, campaign: int) -> dict[str, Any]:
        """All plain data that determines what the rows of a campaign do in turns."""
        return board_setup(self.plan, self.engine, campaign)

    def training_setup(self, row: str) -> dict[str, Any]:
        """All plain data that determines the trainings of a learned row, but for their seeds."""
        return training_setup(self.plan, row, self.trainings[row], self.engine)

    def selection_setup(self, row: str) -> dict[str, Any]:
        """All plain data that determines which checkpoint of a training is chosen."""
        return selection_setup(self.plan, row, self.partner_set, self.engine)


def row_setup(plan: Plan, row: str, partner_set: PartnerSet, engine: Engine, read: Read) -> dict[str, Any]:
    """The setup of one row as the plan demands it, with partners taken from ``partner_set``.

    ``read`` gives the configuration files from which the row's seats take more than plan and partner set say.
    """
    setup = {
        "task": plan.task,
        "policy": plan.rows[row].policy,
        "seeds": list(plan.grid.seeds),
        "episodes_per_partner": plan.grid.episodes_per_partner,
        "root_seed": plan.grid.root_seed,
        "initial_state": plan.grid.initial_state,
        "partner_set": partner_set.label,
        "members": [dict(PAIR)] if plan.rows[row].pair else partner_set.seats(plan.partners_of(row)),
        "cell": _own_cell(plan, row, engine),
    }
    return setup if engine.settings is None else {**setup, "settings": engine.settings(read, setup)}


def _own_cell(plan: Plan, row: str, engine: Engine) -> dict[str, Any]:
    """The task parameters that bind a row."""
    cell = engine.cell_model.model_validate(plan.cell_of(row)).model_dump()
    return engine.own_cell(cell, plan.rows[row].policy, plan.partners_of(row))


def rows_of_campaign(plan: Plan, engine: Engine, campaign: int) -> list[str]:
    """The rows that are timed in a campaign, in the order of the plan: its own, and those that are in each."""
    anchors = engine.anchors(engine.cell_model.model_validate(plan.cell).model_dump())
    return [name for name, row in plan.rows.items() if row.campaign == campaign or row.policy in anchors]


def board_setup(plan: Plan, engine: Engine, campaign: int) -> dict[str, Any]:
    """The setup of what the rows of a campaign do in turns: their policies by row, in the order of the plan."""
    policies = {name: plan.rows[name].policy for name in rows_of_campaign(plan, engine, campaign)}
    cell = engine.cell_model.model_validate(plan.cell).model_dump()
    return {
        "task": plan.task,
        "campaign": campaign,
        "policies": policies,
        "seeds": list(plan.grid.seeds),
        "cell": engine.campaign_cell(cell, list(policies.values())),
    }


def training_setup(plan: Plan, row: str, training: BaseModel, engine: Engine) -> dict[str, Any]:
    """The setup of a row's trainings as the plan demands it."""
    return {
        "task": plan.task,
        "cell": engine.cell_model.model_validate(plan.cell_of(row)).model_dump(),
        "training": training.model_dump(by_alias=True),
    }


def selection_setup(plan: Plan, row: str, partner_set: PartnerSet, engine: Engine) -> dict[str, Any]:
    """The setup of a row's checkpoint selection as the plan demands it."""
    selection = plan.selection
    assert selection is not None
    return {
        "policy": plan.rows[row].policy,
        "cell": engine.cell_model.model_validate(plan.cell_of(row)).model_dump(),
        "member": dict(PAIR) if plan.rows[row].pair else partner_set.seats([selection.partner])[0],
        "seeds": list(selection.seeds),
        "episodes_per_seed": selection.episodes_per_seed,
        "limits": dict(selection.limits),
    }


def _check_member(name: str, key: Key, document: Document, partner_set: PartnerSet) -> None:
    members = [member.name for member in partner_set.members if member.split == "public"]
    if name not in members:
        raise document.error(
            key, f"must be a public member of {partner_set.label} ({', '.join(members)}), found {name!r}"
        )


def _check_partners(names: list[str], key: Key, document: Document, partner_set: PartnerSet) -> None:
    for index, name in enumerate(names):
        _check_member(name, (*key, index), document, partner_set)
    in_order = [seat["name"] for seat in partner_set.seats(names)]
    if names != in_order:
        raise document.error(key, f"must be in roster order {in_order}, found {names}")


def _check_plan(plan: Plan, document: Document, engine: Engine, partner_set: PartnerSet) -> None:
    _check_partners(plan.grid.partners, ("grid", "partners"), document, partner_set)
    validate(document, engine.cell_model, at=("cell",))
    for key in ("a1", "a2", "a3"):
        if plan.admission is not None and getattr(plan.admission, key) not in plan.rows:
            raise document.error(("admission", key), f"must be a row of this plan ({', '.join(plan.rows)})")
    for policy in engine.anchors(plan.cell):
        found = sorted({row.campaign for row in plan.rows.values() if row.policy == policy})
        if found != [1]:
            raise document.error(
                ("rows",), f"{policy} is timed in every campaign: it must have a row of campaign 1, found {found}"
            )
    learned = [name for name, row in plan.rows.items() if row.policy in engine.learned_policies]
    if learned and plan.selection is None:
        raise document.error(
            ("rows", learned[0]), "must have its checkpoints selected, found no key selection in the plan"
        )
    if plan.selection is not None:
        _check_member(plan.selection.partner, ("selection", "partner"), document, partner_set)
        for name in plan.selection.limits:
            if name not in engine.validation_measurements:
                known = ", ".join(engine.validation_measurements)
                raise document.error(
                    ("selection", "limits", name), f"must be a measurement of validation episodes ({known})"
                )
        evaluated = {partner for name in plan.rows for partner in plan.partners_of(name)}
        if plan.selection.partner in evaluated or set(plan.selection.seeds) & set(plan.grid.seeds):
            raise document.error(("selection",), "must share neither partner nor seeds with the evaluation")
    for name, row in plan.rows.items():
        if (row.policy in engine.learned_policies) != (row.training is not None):
            must = "must name a training" if row.training is None else "must have no training"
            raise document.error(("rows", name), f"{must}, found policy {row.policy!r}")
        if row.pair and (row.partners is not None or row.training is None):
            raise document.error(("rows", name), "must be a trained pair without other partners")
        if row.policy not in engine.policies:
            raise document.error(
                ("rows", name, "policy"),
                f"must be a policy of engine {engine.name} ({', '.join(engine.policies)}), found {row.policy!r}",
            )
        if row.campaign != 1 and engine.timing_module is None:
            raise document.error(("rows", name, "campaign"), "must be left out of a board whose rows are not timed")
        if row.partners is not None:
            _check_partners(row.partners, ("rows", name, "partners"), document, partner_set)
        if row.cell:
            try:
                engine.cell_model.model_validate(plan.cell_of(name))
            except ValidationError as error:
                first = error.errors()[0]
                raise document.error(("rows", name, "cell", *first["loc"]), first["msg"]) from None


def load_board(root: Path, name: str) -> BoardSetup:
    """Read ``config/boards/<name>.yaml`` and what it refers to.

    Raises:
        ConfigError: any file breaks its model, or names something that does not exist or does not fit.
    """
    config = root / "config"
    board_path = config / "boards" / f"{name}.yaml"
    if not board_path.is_file():
        boards = config / "boards"
        known = ", ".join(sorted(p.relative_to(boards).with_suffix("").as_posix() for p in boards.rglob("*.yaml")))
        raise ConfigError(f"board {name!r}: must be one of {known}, found no file config/boards/{name}.yaml")
    board, document = load(board_path, Board, root)
    if board.board != name:
        raise document.error(("board",), f"must equal the file name {name!r}, found {board.board!r}")
    known_engines = engines()
    if board.engine not in known_engines:
        raise document.error(("engine",), f"must be one of {', '.join(known_engines)}, found {board.engine!r}")
    engine = known_engines[board.engine]
    for key, folder, value in (("plan", "plans", board.plan), ("partner_set", "partners", board.partner_set)):
        if not (config / folder / f"{value}.yaml").is_file():
            raise document.error((key,), f"must name a file in config/{folder}/, found no {value}.yaml there")
    plan_path = config / "plans" / f"{board.plan}.yaml"
    plan, plan_document = load(plan_path, Plan, root)
    partner_set, set_document = load(config / "partners" / f"{board.partner_set}.yaml", PartnerSet, root)
    for what, doc, value, expected in (
        ("plan", plan_document, plan.plan, board.plan),
        ("board", plan_document, plan.board, board.board),
        ("task", plan_document, plan.task, board.task),
        ("task", set_document, partner_set.task, board.task),
    ):
        if value != expected:
            raise doc.error((what,), f"must be {expected!r} as in {document.name}, found {value!r}")
    _check_plan(plan, plan_document, engine, partner_set)
    for row_name, row in board.rows.items():
        if row_name in plan.rows and plan.rows[row_name].withdrawn is not None:
            raise document.error(("rows", row_name), f"must not be listed: {plan_document.name} withdraws it")
        if row_name not in plan.rows:
            raise document.error(
                ("rows", row_name),
                f"must be listed in {plan_document.name} ({', '.join(plan.rows)}), found no such row",
            )
        if row.policy != plan.rows[row_name].policy:
            raise document.error(
                ("rows", row_name, "policy"),
                f"must be {plan.rows[row_name].policy!r} as planned in {plan_document.name}, found {row.policy!r}",
            )
    trainings = {}
    for row_name in board.rows:
        training = plan.rows[row_name].training
        if training is None or engine.training_model is None:
            continue
        path = config / "training" / f"{training}.yaml"
        if not path.is_file():
            raise plan_document.error(
                ("rows", row_name, "training"), f"must name a file in config/training/, found no {training}.yaml there"
            )
        trainings[row_name], training_document = load(path, engine.training_model, root)
        if trainings[row_name].training != training:
            raise training_document.error(("training",), f"must equal the file name {training!r}")
        trained, row = trainings[row_name], plan.rows[row_name]
        found, demanded = (trained.algorithm, trained.blind, row.pair), engine.learned_policies[row.policy]
        if found != demanded:
            raise plan_document.error(
                ("rows", row_name),
                f"policy {row.policy} needs (algorithm, blind, pair) {demanded}, found {found} with {training}.yaml",
            )
    plan_bytes = plan_path.read_bytes()
    path = plan_path.relative_to(root).as_posix()
    return BoardSetup(root, board, plan, path, plan_bytes, partner_set, engine, trainings)


def load_config(root: Path) -> tuple[Config, dict[str, BoardSetup]]:
    """Read ``config/config.yaml`` and its boards.

    Raises:
        ConfigError: naming file, line and key.
    """
    config, document = load(root / "config" / "config.yaml", Config, root)
    setups: dict[str, BoardSetup] = {}
    for index, name in enumerate(config.boards):
        if not (root / "config" / "boards" / f"{name}.yaml").is_file():
            raise document.error(("boards", index), f"must name a file in config/boards/, found {name!r}")
        setups[name] = load_board(root, name)
    for index, target in enumerate(config.quick_rows):
        board, _, row = target.rpartition("/")
        if board not in setups or row not in setups[board].board.rows:
            raise document.error(("quick_rows", index), f"must be <board>/<row> of the boards above, found {target!r}")
    return config, setups
