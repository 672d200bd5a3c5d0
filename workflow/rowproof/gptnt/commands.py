"""What the commands of this family do; each imports what it needs, so that none pays for another."""

import argparse
import json
import os
import signal
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rowproof import git
from rowproof.errors import ConfigError, RowproofError
from rowproof.gptnt.runs import RunManifest, load_manifest

RECORDER_VARIABLE = "EXPERIMENT_RECORDER_OUTPUTS"
# What a model is asked when its pictures are measured.
MEASURE, MEASURE_TOKENS = "Answer with one word: ready.", 16
PROJECT = Path(__file__).resolve().parents[3]


def _root() -> Path:
    from rowproof.cli import project_root

    return project_root()


def manifest_path(root: Path, given: Path) -> Path:
    """The file that a user means: a path, or one below ``config`` (``runs/quickstart.yaml``).

    Raises:
        ConfigError: there is neither.
    """
    for path in (given, root / "config" / given):
        if path.is_file():
            return path
    known = ", ".join(sorted(path.name for path in (root / "config/runs").glob("[!_]*.yaml")))
    raise ConfigError(f"{given}: must be a run manifest, found no such file: see config/runs ({known})")


def _manifest(root: Path, given: Path) -> tuple[Path, RunManifest]:
    path = manifest_path(root, given)
    return path, load_manifest(path, root)


def _recordings(root: Path) -> Path:
    """Where records of all runs are looked for."""
    from rowproof.gptnt.recordings import FOLDER

    pinned = os.environ.get(RECORDER_VARIABLE)
    return Path(pinned) if pinned else root / FOLDER


def _database(root: Path, given: Path | None) -> Path:
    """The database that a user means."""
    from rowproof.gptnt.database import DATABASE, DATABASE_VARIABLE

    return given or Path(os.environ.get(DATABASE_VARIABLE) or root / DATABASE)


def provenance(root: Path) -> Any:
    """What records say of the package that wrote them."""
    from importlib.metadata import version

    from rowproof.gptnt.assets import assets_digest
    from rowproof.gptnt.room import Provenance

    state = git.tree_state(root)
    commit = None if state.commit == "unknown" else state.commit + ("-dirty" if state.dirty else "")
    return Provenance(version("rowproof"), commit, assets_digest())


# ---- before a run ----------------------------------------------------------------------------------------------


def doctor(args: argparse.Namespace) -> int:
    """Check a run or all players."""
    from rowproof.gptnt.examination import examine, render
    from rowproof.gptnt.specs import load_specs, specs_folder

    root = _root()
    manifest, specs, ledger = None, None, None
    if args.manifest is not None:
        path, manifest = _manifest(root, args.manifest)
        folder = specs_folder(root, path, os.environ)
        specs = load_specs(folder) if folder.is_dir() else None
        ledger = _ledger(root, manifest)
    report = examine(root, manifest, os.environ, specs, ledger, live=args.live).report
    print(json.dumps(report.to_data(), indent=2, ensure_ascii=False) if args.json else render(report))
    return 1 if report.failed else 0


def show(args: argparse.Namespace) -> int:
    """List suites, or players and providers."""
    from rowproof.gptnt.player_config import list_players
    from rowproof.gptnt.suites import list_suites

    root = _root()
    tables = {"suites": list_suites(root)} if args.what == "suites" else list_players(root)
    for rows in tables.values():
        for row in rows:
            print("\t".join("" if value is None else str(value) for value in row.values()))
    return 0


def _read_ledger(root: Path, manifest: RunManifest) -> Any:
    if manifest.source == "wandb":
        from rowproof.gptnt.run_store import open_store, read_store

        return read_store(open_store(os.environ))
    from rowproof.gptnt.ledger import read_ledger

    return read_ledger(_recordings(root))


def _ledger(root: Path, manifest: RunManifest) -> Any:
    def progress(specs: Any, fingerprints: Any) -> Any:
        try:
            from rowproof.gptnt.ledger import progress_of
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == "rowproof":
                raise
            # The doctor goes on without what reads records, and its check of packages says what is missing.
            return None
        return progress_of(specs, fingerprints, _read_ledger(root, manifest), _warn)

    return progress


def _warn(text: str) -> None:
    print(f"rowproof: {text}", file=sys.stderr)


def generate(args: argparse.Namespace) -> int:
    """Write the specs of a run."""
    from rowproof.gptnt.examination import examine, render
    from rowproof.gptnt.specs import specs_folder, write_specs

    root = _root()
    path, manifest = _manifest(root, args.manifest)
    found = examine(root, manifest, os.environ, missing_key="warn", machine=False)
    if found.report.failed or found.plan is None:
        print(render(found.report), file=sys.stderr)
        raise ConfigError(f"{path.name}: every check must pass before specs are written, found failures above")
    environment: Mapping[str, str] = os.environ
    if args.output_dir is not None:
        from rowproof.gptnt.specs import FOLDER_VARIABLE

        environment = {FOLDER_VARIABLE: str(args.output_dir)}
    folder = specs_folder(root, path, environment)
    written = write_specs(folder, found.plan.specs)
    removed = f", {len(written.removed)} stale ones removed" if written.removed else ""
    print(f"{len(found.plan.specs)} specs in {folder}, {written.changed} written{removed}")
    return 0


def generate_missions(args: argparse.Namespace) -> int:
    """Write a mission set from its recipe."""
    from rowproof.gptnt.mission_recipes import generate_missions as write
    from rowproof.gptnt.mission_sets import FOLDER

    count, changed = write(_root(), args.name)
    print(f"{count} missions in {FOLDER}/{args.name}, {changed} written")
    return 0


def new(args: argparse.Namespace) -> int:
    """Write a commented player or provider file."""
    from rowproof.gptnt.player_config import new_file

    root = _root()
    path = new_file(root, "config/players" if args.what == "player" else "config/providers", args.name)
    print(f"wrote {path.relative_to(root)}: edit it, then rowproof doctor")
    return 0


def measure_tokens_per_image(args: argparse.Namespace) -> int:
    """Ask a model once without and once with a picture, and write the difference into its file."""
    from rowproof.files import write_atomic
    from rowproof.gptnt.player_config import PLAYERS, load_player, with_tokens_per_image
    from rowproof.gptnt.seating import Cassettes, Limiters, asker_for
    from rowproof.gptnt.statics.pages import picture_of_manual

    root = _root()
    player = load_player(root, args.player, args.provider)
    size = player.capabilities.image_dimensions
    ask = asker_for(player, "measure", Cassettes(None, "off"), Limiters(), os.environ, max_tokens=MEASURE_TOKENS)
    asked = []
    for parts in ((MEASURE,), (MEASURE, picture_of_manual(min(size.width, size.height), max(size.width, size.height)))):
        _, usage = ask("You look at pages.", parts)
        if usage is None:
            raise ConfigError(f"player {args.player}: its provider must count tokens, found no usage in its answer")
        asked.append(usage.input_tokens)
    path = root / PLAYERS / f"{args.player}.yaml"
    text = with_tokens_per_image(path.read_text(encoding="utf-8"), asked[1] - asked[0], path.name)
    write_atomic(path, text.encode())
    print(f"{path.relative_to(root)}: {asked[1] - asked[0]} tokens per image")
    return 0


def suite(args: argparse.Namespace) -> int:
    """Freeze suites, or tell whether they are frozen as they are."""
    from importlib.metadata import version

    from rowproof.files import write_atomic
    from rowproof.gptnt.assets import assets_digest
    from rowproof.gptnt.names import config_names
    from rowproof.gptnt.suite_lock import LOCK, Stamp, freeze, load_lock, render_lock
    from rowproof.gptnt.suites import FOLDER, load_suite

    root = _root()
    state = git.tree_state(root)
    stamp = Stamp(
        frozen_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        gptnt_version=version("rowproof"),
        git_sha="" if state.commit == "unknown" else state.commit,
        assets_digest=assets_digest(),
    )
    live = [
        (found, missions.values()) for found, missions in (load_suite(root, n) for n in config_names(root / FOLDER))
    ]
    result = freeze(load_lock(root), live, stamp)
    failures = result.failures(args.check)
    for name, outcome in result.outcomes.items():
        print(f"{name}\t{failures.get(name, outcome)}")
    if failures:
        return 1
    if not args.check and "append" in result.outcomes.values():
        write_atomic(root / LOCK, render_lock(result.lock))
        print(f"wrote {LOCK}")
    return 0


def _cassettes(args: argparse.Namespace) -> Any:
    from rowproof.gptnt.seating import Cassettes

    if args.record and args.replay:
        raise RowproofError("--record and --replay must not be given together: choose one")
    return Cassettes(args.replay or args.record, "replay" if args.replay else "record" if args.record else "off")


# ---- the run ---------------------------------------------------------------------------------------------------


def run(args: argparse.Namespace) -> int:
    """Play what of a run is not done."""
    from rowproof.gptnt.examination import examine, render
    from rowproof.gptnt.recordings import FOLDER
    from rowproof.gptnt.running import registered
    from rowproof.gptnt.seating import Limiters, seat_makers
    from rowproof.gptnt.session import Runner
    from rowproof.gptnt.specs import load_specs, remaining, specs_folder, write_specs

    root = _root()
    path, manifest = _manifest(root, args.manifest)
    folder = specs_folder(root, path, os.environ)
    cassettes = _cassettes(args)
    recorded = _recorder(manifest)
    needs_keys = "warn" if args.replay else "fail"
    specs = load_specs(folder) if folder.is_dir() else None
    found = examine(root, manifest, os.environ, specs, _ledger(root, manifest), needs_keys, machine=False)
    if found.plan is None or not found.plan.is_playable or found.plan.missing:
        print(render(found.report), file=sys.stderr)
        raise ConfigError(f"{path.name}: must be playable to its end, found what the checks above say")
    if found.report.failed and not args.force:
        print(render(found.report), file=sys.stderr)
        raise ConfigError(f"{path.name}: every check must pass, found failures above: mend them, or add --force")
    if specs is None:
        write_specs(folder, found.plan.specs)
    todo = found.plan.specs if found.progress is None else remaining(found.plan.specs, found.progress)
    if not todo:
        print(f"all {len(found.plan.specs)} games of {path.name} are done")
        return 0
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S.%fZ")
    pinned = os.environ.get(RECORDER_VARIABLE)
    output = Path(pinned) if pinned else root / FOLDER / stamp
    log_path = root / "output/logs" / f"run_{output.name}" / "run.log"
    players = ", ".join(f"{entry.label} x{entry.count}" for entry in manifest.players)
    print(f"suites   {', '.join(manifest.suites)}\nrooms    {manifest.rooms}\nplayers  {players}")
    print(f"games    {len(todo)} to play, {len(found.plan.specs) - len(todo)} done before")
    print(f"records  {output}\nlog      {log_path}", flush=True)
    limiters = Limiters()
    rows = {row.label: row.player for row in found.report.players}
    makers = {
        row.name: seat_makers(row, entry.count, cassettes, limiters, os.environ)
        for entry in manifest.players
        if (row := rows[entry.label]) is not None
    }
    runner = Runner(manifest.rooms, makers, output, provenance(root), display_of=manifest.display_of, recorded=recorded)
    before = signal.signal(signal.SIGTERM, lambda *_: runner.stop())
    try:
        with registered(root, path.stem):
            totals = runner.run(todo, log_path)
    finally:
        signal.signal(signal.SIGTERM, before)
    ends = ", ".join(f"{count} {outcome}" for outcome, count in totals.outcomes.items())
    print(f"{sum(totals.outcomes.values())} games in {totals.seconds:.1f} s: {ends or 'none'}; {totals.left} left")
    return 0 if totals.complete else 1


def _recorder(manifest: RunManifest) -> Any:
    """What is told of each record that a run writes."""
    if manifest.source == "local":
        return lambda path: None
    from rowproof.gptnt.recordings import read_recording
    from rowproof.gptnt.run_store import open_store

    store = open_store(os.environ)
    return lambda path: store.mirror(read_recording(path))


def reconcile_wandb(args: argparse.Namespace) -> int:
    """Bring the runs of a store and the records here together."""
    from rowproof.gptnt.run_store import open_store, run_reconcile

    folder = args.folder or _recordings(_root())
    missing = args.mark_missing_output_as_old
    return run_reconcile(open_store(os.environ), folder, args.execute, args.include_dummy_runs, missing)


def kill(args: argparse.Namespace) -> int:
    """Tell runs to end."""
    from rowproof.gptnt.running import run_kill

    root = _root()
    return run_kill(root, None if args.manifest is None else manifest_path(root, args.manifest).stem)


def games(args: argparse.Namespace) -> int:
    """Play the games of board rows again and keep their recordings."""
    from rowproof.boards import load_config
    from rowproof.cli import row_names
    from rowproof.gptnt.evaluation import games as play_again
    from rowproof.gptnt.grid import specs as units
    from rowproof.gptnt.recordings import write_game

    root = _root()
    _, setups = load_config(root)
    own = {name: setup for name, setup in setups.items() if setup.engine.name == "gptnt-v1"}
    known = [f"{name}/{row}" for name, setup in own.items() for row in setup.board.rows]
    count = 0
    for name in row_names(args.rows, known):
        board, _, row = name.rpartition("/")
        setup = own[board].row_setup(row)
        for _, _, game in play_again(setup, units(setup), provenance=provenance(root)):
            count += len(write_game(game, args.output_dir / board / row))
    print(f"{count} recordings in {args.output_dir}")
    return 0


def rooms_of(run_name: str) -> int:
    """How many rooms a run of ``config/runs`` wants; 1 if it cannot be read, which its own job will tell."""
    try:
        return load_manifest(PROJECT / "config/runs" / f"{run_name}.yaml", PROJECT).rooms
    except RowproofError:
        return 1


def status(args: argparse.Namespace) -> int:
    """Show how far the specs of a run are."""
    from rowproof.gptnt.examination import examine, fingerprints
    from rowproof.gptnt.ledger import run_status
    from rowproof.gptnt.specs import load_specs, specs_folder

    root = _root()
    path, manifest = _manifest(root, args.manifest)
    folder = specs_folder(root, path, os.environ)
    found = examine(root, manifest, os.environ, missing_key="warn", machine=False)
    specs = load_specs(folder) if folder.is_dir() else found.plan.specs if found.plan else {}
    ledger = _read_ledger(root, manifest)
    return run_status(specs, fingerprints(found.report.players), ledger, getattr(ledger, "running", ()))


def cleanup_outputs(args: argparse.Namespace) -> int:
    """Show or remove recordings that do not count."""
    from rowproof.gptnt.ledger import run_cleanup

    return run_cleanup(args.folder or _recordings(_root()), args.execute)


# ---- after a run -----------------------------------------------------------------------------------------------


def _missions(root: Path) -> dict[tuple[str, int], list[str]]:
    """Keys of the missions of all frozen suites."""
    from rowproof.gptnt.suite_lock import load_lock

    return {key: [mission.key for mission in frozen.missions] for key, frozen in load_lock(root).items()}


def build_db(args: argparse.Namespace) -> int:
    """Put recordings into a database."""
    from rowproof.gptnt.database import run as build

    root = _root()
    folder, output = args.folder or _recordings(root), _database(root, args.output)
    return build(folder, output, args.max_workers, args.delete_existing_db)


def results(args: argparse.Namespace) -> int:
    """Show the metrics of a database."""
    from rowproof.gptnt.metrics import run as show_results

    root = _root()
    return show_results(_database(root, args.database), _missions(root), prices(root), args.json)


def analyse(args: argparse.Namespace) -> int:
    """Write a page with all results and games."""
    from rowproof.gptnt.dashboard import write_dashboard

    root = _root()
    write_dashboard(_database(root, args.database), args.output, _missions(root))
    print(f"wrote {args.output}: open it in any browser")
    return 0


def prices(root: Path) -> dict[str, Any]:
    """What the tokens of players cost, by player name, as far as their files say it."""
    from rowproof.gptnt.names import config_names
    from rowproof.gptnt.player_config import PLAYERS, load_player

    players = [load_player(root, name) for name in config_names(root / PLAYERS)]
    return {player.name: player.model.prices for player in players if player.model.prices is not None}


def statics(args: argparse.Namespace) -> int:
    """Ask the questions of a static task."""
    from rowproof.gptnt.player_config import load_player
    from rowproof.gptnt.seating import Limiters, asker_for
    from rowproof.gptnt.statics.players import ModelPlayer, OraclePlayer, RandomPlayer, StaticPlayer
    from rowproof.gptnt.statics.run import Options, run_static

    root = _root()
    options = Options(args.throw, args.limit_instances, args.dataset_revision, args.allow_thinking)
    player: StaticPlayer
    if args.player in ("oracle", "random"):
        player = OraclePlayer() if args.player == "oracle" else RandomPlayer(0)
    else:
        config = load_player(root, args.player, args.provider)
        cassettes = _cassettes(args)
        player = ModelPlayer(config, _ask_nobody)
        if args.throw:
            player = ModelPlayer(config, asker_for(config, args.task, cassettes, Limiters(), os.environ))
    return run_static(args.task, player, args.output_dir, provenance(root), options)


def _ask_nobody(instruction: str, parts: Any) -> Any:
    raise AssertionError("a dry run asks nobody")


def submission_build(args: argparse.Namespace) -> int:
    """Build bundles of suites and static runs."""
    from rowproof.gptnt.submissions import Submitter, run_new
    from rowproof.gptnt.suite_lock import load_lock
    from rowproof.gptnt.suites import LEADERBOARD

    root = _root()
    given = (args.submitter_name, args.submitter_contact, args.submitter_affiliation)
    submitter = Submitter(name=given[0], contact=given[1], affiliation=given[2]) if any(given) else None
    return run_new(
        root,
        _database(root, args.database),
        args.output_dir,
        load_lock(root),
        suites=args.suite or LEADERBOARD,
        models=args.model,
        statics=args.static,
        submitter=submitter,
        date=args.date,
    )


def submission_submit(args: argparse.Namespace) -> int:
    """Hand bundles in."""
    from rowproof.gptnt.pull_requests import run_submit
    from rowproof.gptnt.suite_lock import load_lock

    return run_submit(args.path, load_lock(_root()), args.repo, args.dry_run, os.environ)


def submission_validate(args: argparse.Namespace) -> int:
    """Check bundles."""
    from rowproof.gptnt.submissions import run_validate
    from rowproof.gptnt.suite_lock import load_lock

    return run_validate(args.path, load_lock(_root()), args.format, os.environ)
