"""The small protocol by which benchmark families join the spine."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic import BaseModel

from rowproof.hashing import sha256_hex

FAMILIES = ("rowproof.chamber.family", "rowproof.gptnt.family", "rowproof.speedrun.family")
# They offer LISTS as well: by name, what `rowproof list` shows of the family.
COMMANDS = ("rowproof.gptnt.arguments", "rowproof.speedrun.arguments")
"""Modules that offer ``add_commands(subparsers)``, the commands of a family; they import nothing that takes time."""


def _of_all_bytes(path: str, data: bytes) -> str:
    return sha256_hex(data)


def _nothing(stage: str, setup: Mapping[str, Any]) -> tuple[str, ...]:
    return ()


def _whole(cell: dict[str, Any], policy: str, partners: list[str]) -> dict[str, Any]:
    return cell


def _no_anchors(cell: dict[str, Any]) -> tuple[str, ...]:
    return ()


def _whole_campaign(cell: dict[str, Any], policies: list[str]) -> dict[str, Any]:
    return cell


@dataclass(frozen=True)
class Engine:
    """One way to run episodes, as a family registers it.

    Attributes:
        name: what a board's ``engine:`` says.
        policies: the ego policies it can run.
        cell_model: strict model of the task parameters (``cell:`` of a plan).
        specs_module: offers ``specs(setup) -> list[dict]``, all evaluation units of a row in order.
        simulate_module: offers ``simulate(setup, specs) -> Iterator[dict]`` (one record per spec, in order, each
            depending on its own spec alone; for learned policies a third argument gives the checkpoint of each seed as
            ``(uri, bytes)``) and ``check_record(setup, spec, record) -> list[str]`` (what is wrong
            with a record as far as that can be told without running it). For boards of the tier ``statistical`` also
            ``difference(record, rebuilt) -> str | None``, how a rebuilt record differs by more than it may.
        replays: whether episodes are so cheap and exact that verification simply runs all of them again.
        learned_policies: those of ``policies`` that are trained, each with what its training and its row must say:
            ``algorithm`` and ``blind`` of the training, ``pair`` of the row. The entries below are theirs.
        validation_measurements: what the plan's selection may limit, by its name in a validation episode.
        training_model: strict model of a training configuration (``config/training/*.yaml``); it has ``training`` (its
            name), ``frames``, ``checkpoint_frames``, ``algorithm`` and ``blind``.
        training_module: offers ``train(setup, seed, folder, watcher) -> dict``, which leaves checkpoints in ``folder``
            and returns the document that names them.
        validation_module: offers ``validate(setup, uri, data) -> list[dict]``, the episodes by which one checkpoint is
            judged before any evaluation; ``check_episodes(setup, episodes) -> list[str]``, what is wrong with such
            episodes as far as that can be told without running them; and ``check_checkpoint(setup, uri, data)``,
            which raises if a file is not a checkpoint that the row can play.
        timing_module: for tasks whose rows are also timed: all rows of a board in turns, on a machine that does nothing
            else meanwhile. Offers ``measure(setup, records, report) -> dict``, plain data that every row keeps as
            ``timing.json`` beside its evidence, since no rebuild can repeat it. ``setup`` is a board's (see
            :func:`rowproof.boards.board_setup`), ``records`` has the records of each row, and ``report`` takes a line
            of progress. None for others.
        programs: Python files that the simulation runs as programs of their own, relative to the project: no import
            leads to them, and they count as code all the same.
        summary_module: offers ``summarise(records) -> dict``, the family's own figures of a row, which a summary holds
            as ``family``; None when there are none. Where rows are timed also ``timed(records, timing) -> dict``, what
            follows from the times of a row, and ``check_timing(setup, records, timing) -> list[str]``, what is wrong
            with them.
        page_module: offers what a board's page shows instead of the columns of the CHAMBER benchmark; see
            :mod:`rowproof.evidence.columns`.
        files: what the simulation reads beside its recipe, relative to the project, and is fetched. Their hashes
            stand in the engine's code and thereby in every recipe.
        files_module: offers ``ensure() -> bool``, which fetches these files unless they are here as their hashes
            demand. Jobs of the engine call it; no rule has these files as inputs, since a rule that makes them would
            run, and with it all that reads them, wherever they are not here yet.
        checks_module: offers what is asked of records after the fact and reaches none: ``check_record``,
            ``check_episodes``, ``check_checkpoint``, ``check_timing`` and ``difference`` as above. No producer imports
            it, so a change in it asks for no new records. None: they stand in the modules above.
        modules: ``modules(stage, setup)`` gives the dotted names of the modules that a stage (``train``, ``select``,
            ``simulate`` or ``time``) with this setup loads by name, in a fixed order: those of its own policy and its
            own partners. Together with script and producer they are the roots of the stage's code.
        data_files: ``data_files(stage, setup)`` gives the files below the project, other than code and :attr:`files`,
            that a stage (``specs`` and those above) opens. Their digests stand in its recipe.
        data_digest: ``data_digest(path, data)`` gives the digest (64 hex) of what counts in a data file, by default of
            all its bytes.
        settings: ``settings(read, setup)`` gives plain data that joins the setup of a row as ``settings``: all that its
            seats take from configuration files. ``read(path) -> bytes`` reads a file of the project, of today or of a
            commit, and raises :class:`~rowproof.errors.ConfigError` where it is missing. None: nothing joins.
        own_cell: ``own_cell(cell, policy, partners)`` gives the part of a plan's task parameters (plain data, complete)
            that binds a row with this policy and these partners. Parts that only concern other rows are left out, so
            that a plan can grow.
        anchors: ``anchors(cell)`` gives the policies that are timed in every campaign of a timed board: baseline and
            A/A candidate.
        campaign_cell: ``campaign_cell(cell, policies)`` gives the part of the task parameters that binds a campaign in
            which these policies are timed.
        runtime_min: minutes that one shard may take, with a margin.
    """

    name: str
    policies: tuple[str, ...]
    cell_model: type[BaseModel]
    specs_module: str
    simulate_module: str
    replays: bool
    learned_policies: Mapping[str, tuple[str, bool, bool]] = field(default_factory=dict)
    validation_measurements: tuple[str, ...] = ()
    training_model: type[BaseModel] | None = None
    training_module: str | None = None
    validation_module: str | None = None
    timing_module: str | None = None
    programs: tuple[str, ...] = ()
    summary_module: str | None = None
    page_module: str | None = None
    files: tuple[str, ...] = ()
    files_module: str | None = None
    checks_module: str | None = None
    modules: Callable[[str, Mapping[str, Any]], tuple[str, ...]] = _nothing
    data_files: Callable[[str, Mapping[str, Any]], tuple[str, ...]] = _nothing
    data_digest: Callable[[str, bytes], str] = _of_all_bytes
    settings: Callable[[Callable[[str], bytes], Mapping[str, Any]], dict[str, Any]] | None = None
    own_cell: Callable[[dict[str, Any], str, list[str]], dict[str, Any]] = _whole
    anchors: Callable[[dict[str, Any]], tuple[str, ...]] = _no_anchors
    campaign_cell: Callable[[dict[str, Any], list[str]], dict[str, Any]] = _whole_campaign
    runtime_min: int = 10


@cache
def engines() -> dict[str, Engine]:
    """All registered engines by name. Importing a family module is cheap: it imports no simulator."""
    found: dict[str, Engine] = {}
    for name in FAMILIES:
        for engine in importlib.import_module(name).ENGINES:
            found[engine.name] = engine
    return found
