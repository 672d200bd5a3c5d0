"""Renders a board from its rows: table, full-precision data and plot, and only when every row verifies.

The bytes depend on the rows' evidence, the board's text, the published facts and the history of the plan alone: no date
of rendering, path or running time enters, so a board rendered from rows that were rebuilt elsewhere is the same board.
"""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from rowproof import git
from rowproof.audit import unwatched
from rowproof.errors import RowproofError
from rowproof.evidence import admission
from rowproof.evidence.checks import Check
from rowproof.evidence.columns import MISSING, Columns, bounded_ends, columns_of, shows_iqm, table
from rowproof.evidence.facts import channel_summary, compare_with_facts, load_facts, member_lines
from rowproof.evidence.intervals import RATE, bounds, page_flags, with_bound
from rowproof.evidence.learned_page import FIGURE, draw_learning, learned_notes, read_learning, selection_table
from rowproof.evidence.links import links_below, told
from rowproof.evidence.order import order_lines
from rowproof.evidence.statistics import HIERARCHICAL_STREAM, partner_range
from rowproof.evidence.verify import require_verified, verify_bundle
from rowproof.families import engines
from rowproof.hashing import sha256_hex
from rowproof.layout import TIMING, document_digest, episode_file, learned_files, read_timing
from rowproof.plain_text import csv_value, markdown
from rowproof.records import decode, digest, encode_document, format_float, split_lines

SCHEMA = "rowproof/leaderboard/2"
DIGEST_DIGITS = 12

# What a family says of its rows stands between these two.
FIRST_COLUMNS = ("Row", "Label", "Success rate [95 % CI]")
LAST_COLUMNS = ("Per-partner range", "Seeds", "Flags", "Row digest")

FLAG_NOTES = {
    "bad-seed": "one seed lies far below the median of the seeds, which the mean hides",
    "degenerate-iqm": "the interval of the IQM has no width, so bounds stand in its place",
    "degenerate-rate": "the interval of the success rate has no width, so bounds stand in its place",
    "repeated-records": "two episodes from different starts agree in every decimal",
    "single-seed": "the row has one seed, so no spread between seeds was measured and its interval holds none",
    "saturated": "every cell is 0 or every cell is 1, so the row cannot rank methods",
}

# Of the published channels whose names do not say them.
CHANNEL_UNITS = {"force_peak": "N", "centroid_to_goal": "m", "n_steps": "control steps"}
CHANNEL_FIGURES = ("p50", "p90", "mean")

FIRST_CSV_COLUMNS = (
    "board",
    "row",
    "label",
    "policy",
    "n_episodes",
    "success_rate",
    "success_rate_ci_low",
    "success_rate_ci_high",
    "success_rate_bound_by_seeds",
    "success_rate_bound_by_episodes",
)
LAST_CSV_COLUMNS = (
    "worst_partner",
    "worst_partner_rate",
    "best_partner",
    "best_partner_rate",
    "seeds",
    "flags",
    "row_key",
    "row_digest",
)

Joined = Callable[[str, Mapping[str, Any]], dict[str, Any]]
"""Row and its ``plan`` entry -> ``commit`` of the plan with which it joined the board, and the ``day`` of that."""


def render(
    board: Mapping[str, Any],
    folder: Path,
    root: Path,
    key: str,
    rules: Mapping[str, Any] | None = None,
    absent: Mapping[str, str | None] | None = None,
) -> dict[str, bytes]:
    """All files of a rendered board.

    Args:
        board: a ``boards.Board`` dumped by alias; its rows give the order of the table.
        folder: ``results/<board>``, which holds one bundle per row.
        root: the project that the bundles are verified against; ``resources/published/<board>.yaml`` is read there.
        key: digest of the board's recipe, noted in ``leaderboard.json``.
        rules: the plan's admission section, if the board is one of admission.
        absent: rows of the plan that the board does not list, with the reason where there is one.

    Returns:
        ``leaderboard.csv``, ``.json``, ``.md`` and ``.svg``, and an admission report with ``rules``: name -> bytes.
        In the JSON file ``board_digest`` is the digest of the list of [row, row digest] in the order of the board, a
        row digest is the SHA-256 of its ``bundle.json``, and ``digest`` covers the document without itself.

    Raises:
        RowproofError: a row does not verify, is not the one its folder says, does not belong to this board or stands
            there twice, or ``folder`` holds something else; the message lists every problem. No row, no table.
    """
    rows = _read_rows(board, folder, root, verify=True)
    if rules is not None and rules["a4"]:
        instrument = f"{rules['a4']['board']}/{rules['a4']['row']}"
        require_verified(admission.results_of(board["board"], folder) / instrument, root)
    return _drawn(board, rows, folder, root, key, rules, absent or {}, joined_by(root), {})


def render_again(
    board: Mapping[str, Any],
    folder: Path,
    root: Path,
    key: str,
    rules: Mapping[str, Any] | None,
    absent: Mapping[str, str | None],
    joined: Joined,
    taken: Mapping[str, bytes],
) -> dict[str, bytes]:
    """What :func:`render` gave of rows that are verified elsewhere.

    Args:
        board, folder, root, key, rules, absent: see :func:`render`.
        joined: tells of each row when it joined the board.
        taken: files that cannot be made here, as they are.

    Raises:
        HistoryGap: a row of another board, on which an admission report rests, is not there.
        RowproofError: a row is missing, is not the one its folder says or does not belong to this board.
    """
    rows = _read_rows(board, folder, root, verify=False)
    return _drawn(board, rows, folder, root, key, rules, absent, joined, taken)


def _drawn(
    board: Mapping[str, Any],
    rows: list[dict[str, Any]],
    folder: Path,
    root: Path,
    key: str,
    rules: Mapping[str, Any] | None,
    absent: Mapping[str, str | None],
    joined: Joined,
    taken: Mapping[str, bytes],
) -> dict[str, bytes]:
    facts = load_facts(board["board"], root)
    for entry in rows:
        is_learned = (folder / entry["row"] / learned_files(entry["seed_schedule"]["seeds"][0])[0]).is_file()
        seeds = entry["seed_schedule"]["seeds"]
        entry["learning"] = read_learning(folder / entry["row"], seeds) if is_learned else None
        entry["published"] = _against_published(entry, facts.get(entry["row"]), folder, board["tier"])
        entry["joined"] = joined(entry["row"], entry["plan"])
        entry |= _timed(entry, folder)
        entry["bounds"] = bounds(entry["summary"], shows_iqm(entry["engine"]))
        entry["flags"] = page_flags(entry["summary"], entry["bounds"])
    board_digest = digest([[entry["row"], entry["row_digest"]] for entry in rows])
    learned = [(entry["row"], entry["learning"]) for entry in rows if entry["learning"]]
    files = {
        "leaderboard.csv": _csv(board["board"], rows),
        "leaderboard.md": _markdown(board, rows, board_digest, absent),
        "leaderboard.svg": taken.get("leaderboard.svg") or draw_plot(board["title"], rows),
    }
    if learned:
        files[FIGURE] = taken.get(FIGURE) or draw_learning(learned, SETTINGS, _use_bundled_font)
    if rules is not None:
        files |= admission.render(admission.report(board["board"], rules, folder))
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "board": board["board"],
        "title": board["title"],
        "key": key,
        "board_digest": board_digest,
        "rows": rows,
        "not_shown": dict(absent),
        "files": {name: sha256_hex(files[name]) for name in sorted(files)},
    }
    document["digest"] = document_digest(document)
    files["leaderboard.json"] = encode_document(document)
    return dict(sorted(files.items()))


def main_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The main table in Markdown, closed by a newline.

    Args:
        rows: the ``rows`` of a ``leaderboard.json``.
    """
    columns = columns_of(rows[0]["engine"])
    header = (*FIRST_COLUMNS, *columns.HEADER, *LAST_COLUMNS)
    return table(header, [_main_cells(entry, columns) for entry in rows])


# --- Rows ------------------------------------------------------------------------------------------------------------


def _read_rows(board: Mapping[str, Any], folder: Path, root: Path, verify: bool) -> list[dict[str, Any]]:
    problems = _strays(board, folder) if verify else []
    bundles: dict[str, tuple[dict[str, Any], str]] = {}
    first_with: dict[str, str] = {}
    for row in board["rows"]:
        try:
            found = _unfit(folder / row, root) if verify else []
            problems += [f"{row}: {check.id}: {check.found}" for check in found]
            data = (folder / row / "bundle.json").read_bytes()
            document = decode(data, f"{row}/bundle.json")
            problems += _misfits(board, row, document)
            row_key = document.get("row_key") if isinstance(document, dict) else None
            if isinstance(row_key, str) and first_with.setdefault(row_key, row) != row:
                problems.append(f"{row}: must be another row than {first_with[row_key]}, found row key {row_key} again")
            if not found:
                bundles[row] = document, sha256_hex(data)
        except (RowproofError, OSError) as error:
            problems.append(f"{row}: {error}")
    problems += _conflicts({row: document for row, (document, _) in bundles.items()})
    if problems:
        raise RowproofError(
            f"board {board['board']} is rendered only when each of its rows verifies and nothing else lies beside "
            "them, found:\n  " + "\n  ".join(problems) + "\nmend or rebuild these rows "
            f"(snakemake results/{board['board']}/ROW from a committed checkout), then render again"
        )
    return [_entry(row, board["rows"][row], *bundles[row]) for row in board["rows"]]


def _unfit(bundle: Path, root: Path) -> list[Check]:
    """The checks that keep a row off the page."""
    with unwatched():
        verified = verify_bundle(bundle, root)
    # A row whose commit is not here vouches for its own cleanliness; that is enough to read it, not to rank it.
    unranked = [c for c in verified.checks if c.verdict == "unknown" and c.id == "eligibility:clean"]
    return [*verified.failures, *(c for c in unranked if c not in verified.failures)]


def _strays(board: Mapping[str, Any], folder: Path) -> list[str]:
    problems = [f"{told(links)}" for links in [links_below(folder)] if links]
    if not f"/{folder.resolve().as_posix()}".endswith(f"/{board['board']}"):
        problems.append(f"(folder): must be the folder of board {board['board']}, found {folder.name}")
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        hidden = path.name.startswith(".")
        own = path.name.startswith(("leaderboard.", "admission_report.")) or path.name == FIGURE
        rendered = own and path.is_file() and not path.is_symlink()
        row = path.name in board["rows"] and path.is_dir() and not path.is_symlink()
        if not (hidden or rendered or row):
            problems.append(f"{path.name}: must be the folder of a row that the board lists: list it or move it away")
    return problems


def _misfits(board: Mapping[str, Any], row: str, document: Any) -> list[str]:
    """How a bundle differs from what its place on this board says of it."""
    if not isinstance(document, dict):
        return [f"{row}: bundle.json must be an object"]
    plan = document.get("plan")
    pairs = {
        "board": (board["board"], document.get("board")),
        "row": (row, document.get("row")),
        **{name: (board[name], document.get(name)) for name in ("task", "engine", "tier")},
        "plan": (f"config/plans/{board['plan']}.yaml", plan.get("path") if isinstance(plan, dict) else plan),
    }
    return [
        f"{row}: {name} must be {wanted} as its place and the board say, found {found}"
        for name, (wanted, found) in pairs.items()
        if wanted != found
    ]


def _conflicts(documents: Mapping[str, Any]) -> list[str]:
    """Rows that cannot stand in one table: one partner name for two partners.

    ``documents`` holds the bundles that verify by themselves, each against the plan of today: what binds a row there
    is what bound its records, so rows that joined under different versions of the file agree.
    """
    problems = []
    partners: dict[str, tuple[str, str]] = {}
    for row, document in documents.items():
        for name, identity in document["partners"].items():
            first, known = partners.setdefault(name, (row, identity))
            if known != identity:
                problems.append(f"{row}: partner {name} must be that of {first} ({known}), found {identity}")
    return problems


def joined_by(root: Path) -> Joined:
    """Tells by the history of HEAD under which commit of the plan a row joined the board, and on which day."""

    @cache
    def found(path: str, blob: str) -> dict[str, Any]:
        commit = git.first_commit_with(root, "HEAD", path, blob)
        return {"commit": commit, "day": None if commit is None else git.commit_day(root, commit)}

    return lambda row, plan: dict(found(plan["path"], plan["blob"]))


def _joined_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows by the version of the plan that bound them first, in the order of the table."""
    versions: dict[str, list[Mapping[str, Any]]] = {}
    for entry in rows:
        versions.setdefault(entry["plan"]["blob"], []).append(entry)
    lines = []
    for blob, own in versions.items():
        joined = own[0]["joined"]
        commit = f"`{joined['commit'][:DIGEST_DIGITS]}`" if joined["commit"] else MISSING
        names = ", ".join(entry["row"] for entry in own)
        lines.append([names, joined["day"] or MISSING, commit, f"`{blob[:DIGEST_DIGITS]}`"])
    return table(("Rows", "Plan committed on", "Commit of the plan", "Version of the file"), lines)


def _entry(row: str, listed: Mapping[str, Any], document: Mapping[str, Any], row_digest: str) -> dict[str, Any]:
    return {
        "row": row,
        "label": listed["label"],
        "description": listed["description"],
        "policy": document["policy"],
        "engine": document["engine"],
        "tier": document["tier"],
        "row_key": document["row_key"],
        "row_digest": row_digest,
        "dirty": False,
        "plan": document["plan"],
        "seed_schedule": document["seed_schedule"],
        "partners": document["partners"],
        "partner_range": [list(end) for end in partner_range(document["summary"]["per_partner"])],
        "summary": document["summary"],
    }


def _records(entry: Mapping[str, Any], folder: Path) -> list[dict[str, Any]]:
    names = [episode_file(seed) for seed in entry["seed_schedule"]["seeds"]]
    files = {name: (folder / entry["row"] / name).read_bytes() for name in names}
    return [decode(line, name) for name, data in files.items() for _, line in split_lines(data, name)]


def _timed(entry: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """What follows from the times of a row, apart from its evidence; nothing for rows that are not timed."""
    engine = engines()[entry["engine"]]
    if engine.timing_module is None or engine.summary_module is None:
        return {}
    data = (folder / entry["row"] / TIMING).read_bytes()
    figures = import_module(engine.summary_module).timed(_records(entry, folder), read_timing(data))
    return {"timing_sha256": sha256_hex(data), "timed": figures}


# --- Published facts -------------------------------------------------------------------------------------------------


def _against_published(entry: Mapping[str, Any], facts: Any, folder: Path, tier: str) -> dict[str, Any] | None:
    """How a row compares with the published one; None when there is none.

    Where digits may differ (any tier but ``exact``) it is also said by member and by channel.
    """
    if facts is None:
        return None
    names = [episode_file(seed) for seed in entry["seed_schedule"]["seeds"]]
    files = {name: (folder / entry["row"] / name).read_bytes() for name in names}
    pooled, own = facts["pooled"], entry["summary"]
    stress = pooled["force_peak_n"] if pooled["force_peak_n"]["n"] else None
    records = _records(entry, folder)
    if entry["learning"]:
        # Another training is another policy: episodes of equal number have nothing to agree on, distributions may.
        return {
            "success_mean": pooled["success_mean"],
            "rates": _rates(pooled["per_partner"], own["per_partner"]),
            "channels": _channels(stress, own["stress"], pooled["channels"], channel_summary(records)),
        }
    compared = compare_with_facts(facts, files)
    pairs = {
        **{name: (pooled[name], own["published"][name]) for name in ("n_episodes", "success_mean", "success_iqm")},
        "ci_bundle": (pooled["ci_bundle"], own["published"]["success_iqm_ci_bundle_stream"]),
        "ci_leaderboard": (pooled["ci_leaderboard"], own["published"]["success_iqm_ci_leaderboard_stream"]),
        "per_partner": (pooled["per_partner"], own["per_partner"]),
    }
    counts = ("episodes_agree", "episodes_total", "files_identical", "files_total")
    details: dict[str, Any] = {}
    if tier != "exact":
        details = {
            "per_member": compared["per_member"],
            "channels": _channels(stress, own["stress"], pooled["channels"], channel_summary(records)),
        }
    return {
        "success_mean": pooled["success_mean"],
        **{name: compared[name] for name in counts},
        "summary_equal": all(digest(theirs) == digest(ours) for theirs, ours in pairs.values()),
        "stress_equal": digest(stress) == digest(own["stress"]),
        **details,
    }


def _rates(published: Mapping[str, float], own: Mapping[str, float]) -> dict[str, list[float]]:
    """Partner -> [rate here, published]; a sole partner is the pair's own, whatever either side calls it."""
    if len(published) == len(own) == 1:
        return {name: [rate, *published.values()] for name, rate in own.items()}
    return {name: [rate, published[name]] for name, rate in own.items() if name in published}


def _channels(
    published_stress: Any, own_stress: Any, published: Mapping[str, Any], own: Mapping[str, Any]
) -> dict[str, dict[str, list[float]]]:
    """Channel -> figure -> [here, published], for all that both sides have."""
    pairs = {name: (own[name], published[name]) for name in published if name in own}
    if published_stress is not None and own_stress is not None:
        pairs = {"force_peak": (own_stress, published_stress), **pairs}
    return {
        name: {key: [here[key], there[key]] for key in CHANNEL_FIGURES if key in here and key in there}
        for name, (here, there) in pairs.items()
    }


# --- Formats ---------------------------------------------------------------------------------------------------------


def _csv(board: str, rows: Iterable[Mapping[str, Any]]) -> bytes:
    rows = list(rows)
    columns = columns_of(rows[0]["engine"])
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((*FIRST_CSV_COLUMNS, *columns.CSV_COLUMNS, *LAST_CSV_COLUMNS))
    for entry in rows:
        summary = entry["summary"]
        (worst, worst_rate), (best, best_rate) = entry["partner_range"]
        values = [
            *(board, entry["row"], entry["label"], entry["policy"]["name"], summary["published"]["n_episodes"]),
            *(summary["success_rate"], *bounded_ends(summary["success_rate_ci"], entry.get("bounds", {}).get(RATE))),
            *columns.values(entry),
            *(worst, worst_rate, best, best_rate),
            *(_joined(entry["seed_schedule"]["seeds"], " "), _joined(entry.get("flags", summary["flags"]), " ")),
            *(entry["row_key"], entry["row_digest"]),
        ]
        writer.writerow([format_float(value) if type(value) is float else csv_value(value) for value in values])
    return out.getvalue().encode("utf-8")


def _joined(values: Iterable[Any], separator: str) -> str:
    return separator.join(str(value) for value in values)


def _main_cells(entry: Mapping[str, Any], columns: Columns) -> list[str]:
    summary = entry["summary"]
    (worst, worst_rate), (best, best_rate) = entry["partner_range"]
    return [
        entry["row"],
        f"*{markdown(entry['label'])}*" if entry["label"] else "",
        with_bound(summary["success_rate"], summary["success_rate_ci"], entry.get("bounds", {}).get(RATE)),
        *columns.cells(entry),
        f"{worst_rate:.2f} ({worst}) … {best_rate:.2f} ({best})",
        _joined(entry["seed_schedule"]["seeds"], ", "),
        _joined(entry.get("flags", summary["flags"]), ", ") or MISSING,
        f"`{entry['row_digest'][:DIGEST_DIGITS]}`",
    ]


def _matrix_table(matrix: Mapping[str, Any]) -> str:
    lines = []
    for seed, rates, won, played in zip(
        matrix["seeds"], matrix["rates"], matrix["successes"], matrix["episodes"], strict=True
    ):
        cells = [
            MISSING if rate is None else f"{rate:.2f} ({w}/{n})" for rate, w, n in zip(rates, won, played, strict=True)
        ]
        lines.append([str(seed), *cells])
    return table(["Seed", *matrix["partners"]], lines)


def _published_table(rows: Iterable[Mapping[str, Any]]) -> str:
    header = (
        "Row",
        "Episodes agreeing",
        "Files byte-identical",
        "Summary equal",
        "Stress equal",
        "Published mean",
        "Mean here",
    )
    lines = []
    for entry in rows:
        facts = entry["published"]
        if facts is None:
            lines.append([entry["row"], *[MISSING] * (len(header) - 1)])
            continue
        lines.append(
            [
                entry["row"],
                f"{facts['episodes_agree']} of {facts['episodes_total']}",
                f"{facts['files_identical']} of {facts['files_total']}",
                "yes" if facts["summary_equal"] else "no",
                "yes" if facts["stress_equal"] else "no",
                f"{facts['success_mean']:.3f}",
                f"{entry['summary']['published']['success_mean']:.3f}",
            ]
        )
    return table(header, lines)


def _rate_table(rows: Sequence[Mapping[str, Any]]) -> str:
    partners = list(dict.fromkeys(name for entry in rows for name in entry["published"]["rates"]))
    lines = []
    for entry in rows:
        facts = entry["published"]
        pairs = [(entry["summary"]["published"]["success_mean"], facts["success_mean"])]
        pairs += [facts["rates"].get(name) for name in partners]
        lines.append([entry["row"], *(MISSING if pair is None else f"{pair[0]:.3f} / {pair[1]:.3f}" for pair in pairs)])
    return table(["Row", "all", *partners], lines)


def _member_table(per_member: Mapping[str, Any]) -> str:
    header, *lines = member_lines(per_member)
    return table(header, lines)


def _channel_table(rows: Iterable[Mapping[str, Any]]) -> str:
    lines = []
    for entry in rows:
        for name, figures in (entry["published"] or {}).get("channels", {}).items():
            unit = CHANNEL_UNITS.get(name)
            cells = [_deviation(*figures[key]) if key in figures else MISSING for key in CHANNEL_FIGURES]
            lines.append([entry["row"], f"{name} ({unit})" if unit else name, *cells])
    return table(("Row", "Channel", *CHANNEL_FIGURES), lines)


def _deviation(here: float, published: float) -> str:
    """``here / published (relative difference)`` with four digits; no difference relative to zero is given."""
    figures = f"{here:.4g} / {published:.4g}"
    if published == 0:
        return f"{figures} ({MISSING})"
    # Adding zero takes the sign of a rounded -0.0 away.
    percent = round(100 * (here - published) / abs(published), 1) + 0.0
    return f"{figures} ({percent:+.1f} %)"


def _footnotes(board: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    # What binds every row is what the plan of today says, so these two hold for each of them.
    draws, root_seed = (rows[0]["summary"][name] for name in ("n_resamples", "root_seed"))
    notes = [
        "Success rate: mean over the cells (one seed with one partner) shown below. Its interval is a hierarchical "
        "bootstrap, seeds first and then initial states with all their partners; the partners are a fixed panel.",
        f"Random stream of that interval: `{HIERARCHICAL_STREAM}`; {draws} resamples, root seed {root_seed}.",
        *columns_of(rows[0]["engine"]).notes(rows),
        f"Row digest: the first {DIGEST_DIGITS} digits of the SHA-256 of the row's `bundle.json`, which lists the "
        "hash of everything else in the row.",
    ]
    raised = sorted({flag for entry in rows for flag in entry["flags"]})
    notes += [f"Flag {flag}: {FLAG_NOTES.get(flag, 'see the statistics of the row')}." for flag in raised]
    if any(entry["bounds"] for entry in rows):
        notes.append(
            "Bounds, where an interval has no width: one-sided, 95 %. By episodes: Clopper and Pearson, as if episodes "
            "were independent. By seeds: a tolerance bound of their rates (Wilks), whatever the distribution. The "
            "bound of an IQM follows from that of the rate, so it is 1 where the rate is surely above three quarters."
        )
    return [*notes, *(markdown(note) for note in board["notes"])]


def _absent_table(absent: Mapping[str, str | None]) -> str:
    told = {row: "not built yet" if why is None else f"withdrawn: {markdown(why)}" for row, why in absent.items()}
    return table(("Row of the plan", "Why it is not here"), told.items())


def _markdown(
    board: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    board_digest: str,
    absent: Mapping[str, str | None],
) -> bytes:
    parts = [f"# {markdown(board['title'])}\n"]
    if board["description"]:
        parts.append(markdown(board["description"]) + "\n")
    parts.append(
        f"Board `{board['board']}`, task `{board['task']}`, tier `{board['tier']}`, "
        f"board digest `{board_digest[:DIGEST_DIGITS]}`. Every row was verified before this page was written.\n"
    )
    parts += [main_table(rows), "![Success rate of every row](leaderboard.svg)\n"]
    parts.append("".join(f"- {note}\n" for note in _footnotes(board, rows)))
    if absent:
        parts += ["## Preregistered and not shown\n", _absent_table(absent)]
    parts.append("## Success rate by seed and partner\n")
    for entry in rows:
        about = markdown(entry["description"])
        parts += [f"**{entry['row']}**{': ' + about if about else ''}\n", _matrix_table(entry["summary"]["matrix"])]
    parts += [
        "## When rows joined\n",
        "What binds a row in the plan was committed before its records were made and has not changed since; later "
        "versions of the plan may add rows, notes and comments.\n",
        _joined_table(rows),
        *order_lines(board, rows),
    ]
    parts += columns_of(rows[0]["engine"]).sections(rows)
    learned = [(entry["row"], entry["learning"]) for entry in rows if entry["learning"]]
    if learned:
        header, lines = selection_table(learned)
        parts += ["## Training and selected checkpoints\n", f"![Training of the learned rows]({FIGURE})\n"]
        parts += [table(header, lines), "".join(f"- {note}\n" for note in learned_notes(learned))]
    compared = [entry for entry in rows if entry["published"] is not None]
    scripted = [entry for entry in rows if not entry["learning"]]
    if compared:
        parts.append("## Against the published row\n")
    if any(entry["published"] is not None for entry in scripted):
        parts.append(_published_table(scripted))
    detailed = [entry for entry in compared if "channels" in entry["published"]]
    for entry in (entry for entry in detailed if "per_member" in entry["published"]):
        parts += [f"**{entry['row']}**, outcomes by member\n", _member_table(entry["published"]["per_member"])]
    distributed = [entry for entry in compared if entry["learning"]]
    if distributed:
        parts += [
            "Learned rows are other trainings than the published ones, so only rates compare: here / published, mean "
            "over the training seeds.\n",
            _rate_table(distributed),
        ]
    if detailed:
        parts += [
            "Measured quantities over all episodes of a row: here / published (relative difference). Names are those "
            "of the records.\n",
            _channel_table(detailed),
        ]
    return "\n".join(parts).encode("utf-8")


# --- Plot ------------------------------------------------------------------------------------------------------------

INK, MUTED, OWN, PUBLISHED = "#1a1a1a", "#6b6b6b", "#0b5fa5", "#c2410c"
SETTINGS = {
    "svg.hashsalt": "rowproof",
    # Text stays text: small, searchable, and its bytes do not depend on glyph outlines.
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
}
# All lengths in inches; the drawing is laid out by hand so that no text width moves anything.
WIDTH, RIGHT, TOP, BOTTOM, PER_ROW = 9.0, 1.75, 0.55, 0.85, 0.62
PER_LETTER, LEFT_LEAST, LEFT_MOST = 0.088, 1.2, 3.2


def draw_plot(title: str, rows: Sequence[Mapping[str, Any]], image_format: str = "svg") -> bytes:
    """The plot of a board: one line per row with interval, cells and published mean.

    Equal arguments give equal bytes under one version of matplotlib.

    Args:
        title: heading of the plot.
        rows: the ``rows`` of a ``leaderboard.json``; rates are fractions in [0, 1].
        image_format: ``svg``, or ``png`` to look at it without a browser.
    """
    # Only this function and its helpers need matplotlib, which is slow to load.
    import matplotlib
    from matplotlib.figure import Figure

    # Settings of the user or of the working directory must not change the picture.
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        longest = max(max(len(entry["row"]), 0.85 * len(entry["label"])) for entry in rows)
        left = min(max(PER_LETTER * longest + 0.3, LEFT_LEAST), LEFT_MOST)
        height = TOP + PER_ROW * len(rows) + BOTTOM
        figure = Figure(figsize=(WIDTH, height), facecolor="white")
        box = (left / WIDTH, BOTTOM / height, (WIDTH - left - RIGHT) / WIDTH, PER_ROW * len(rows) / height)
        _rows(figure.add_axes(box), rows)
        figure.text(0.15 / WIDTH, 1 - 0.3 / height, title, size=12, weight="bold", color=INK, va="center")
        _legend(figure.add_axes((left / WIDTH, 0, 1 - left / WIDTH, 0.3 / height)), rows)
        _use_bundled_font(figure)
        out = io.BytesIO()
        # Neither the date nor the version of matplotlib belongs into the bytes.
        metadata = {"Date": None, "Creator": None} if image_format == "svg" else {"Software": None}
        figure.savefig(out, format=image_format, metadata=metadata, dpi=120)
    return out.getvalue()


def _use_bundled_font(figure: Any) -> None:
    import matplotlib
    from matplotlib.text import Text

    fonts = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    for text in figure.findobj(Text):
        # A copy of the font that the system has, perhaps of another version, would shift text.
        own = text.get_fontproperties().copy()
        own.set_file(fonts / ("DejaVuSans-Bold.ttf" if own.get_weight() == "bold" else "DejaVuSans.ttf"))
        text.set_fontproperties(own)
        text.set_parse_math(False)


def _rows(axes: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.50", "0.75", "1"])
    axes.set_yticks([])
    axes.tick_params(axis="x", length=0, labelsize=9, labelcolor=MUTED)
    axes.grid(axis="x", color="#e3e3e3", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_xlabel("success rate", size=9, color=MUTED)
    for spine in axes.spines.values():
        spine.set_visible(False)
    aside = axes.get_yaxis_transform()
    for place, entry in enumerate(rows):
        summary = entry["summary"]
        rate, (low, high), matrix = summary["success_rate"], summary["success_rate_ci"], summary["matrix"]
        if place:
            axes.axhline(place - 0.5, color="#efefef", linewidth=0.8)
        for column in range(len(matrix["partners"])):
            # One thin lane per partner, so that equal rates of different partners stay apart.
            lane = place + 0.12 + 0.24 * (column + 0.5) / len(matrix["partners"])
            cells = [rates[column] for rates in matrix["rates"] if rates[column] is not None]
            axes.plot(cells, [lane] * len(cells), "o", markersize=3.2, color=OWN, alpha=0.28, markeredgewidth=0)
        line = place - 0.12
        axes.plot([low, high], [line, line], color=OWN, linewidth=2, solid_capstyle="butt")
        for end in (low, high):
            axes.plot([end, end], [line - 0.07, line + 0.07], color=OWN, linewidth=1.2)
        if entry["published"] is not None:
            value = entry["published"]["success_mean"]
            axes.plot([value, value], [line - 0.2, line + 0.2], color=PUBLISHED, linewidth=1.6)
        axes.plot([rate], [line], "o", markersize=6.5, color=OWN, markeredgecolor="white", markeredgewidth=0.8)
        named = bool(entry["label"])
        axes.text(
            -0.015, line if named else place, entry["row"], transform=aside, ha="right", va="center", size=10, color=INK
        )
        if named:
            axes.text(
                -0.015, place + 0.22, entry["label"], transform=aside, ha="right", va="center", size=8, color=MUTED
            )
        bound = entry.get("bounds", {}).get(RATE)
        text = f"{rate:.3f} [{low:.3f}, {high:.3f}]"
        if bound is not None:
            sign = "≥" if bound["side"] == "at least" else "≤"
            text = f"{rate:.3f} ({sign} {bound['by_seeds']['value']:.3f}, seeds)"
        axes.text(1.02, line, text, transform=aside, ha="left", va="center", size=9, color=INK)


def _legend(axes: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    axes.set_axis_off()
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 1)
    axes.plot([0.5, 3.5], [0.6, 0.6], color=OWN, linewidth=2)
    axes.plot([2], [0.6], "o", markersize=6.5, color=OWN, markeredgecolor="white", markeredgewidth=0.8)
    axes.text(5, 0.6, "mean of the cells, 95 % interval", va="center", size=8, color=MUTED)
    axes.plot([42], [0.6], "o", markersize=3.2, color=OWN, alpha=0.45, markeredgewidth=0)
    axes.text(43.5, 0.6, "one seed with one partner", va="center", size=8, color=MUTED)
    if any(entry["published"] is not None for entry in rows):
        axes.plot([75, 75], [0.3, 0.9], color=PUBLISHED, linewidth=1.6)
        axes.text(76.5, 0.6, "published mean", va="center", size=8, color=MUTED)
