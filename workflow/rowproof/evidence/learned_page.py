"""The part of a board's page that only learned rows have: how they were trained and which checkpoint plays."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rowproof.evidence.selection import INSTABILITY_DROP, largest_drop
from rowproof.layout import learned_files
from rowproof.records import decode

FIGURE = "training.svg"
# All lengths in inches.
WIDTH, PANEL_HEIGHT, LEFT, RIGHT, TOP, BOTTOM, GAP = 9.0, 2.1, 0.65, 0.2, 0.55, 0.75, 0.35
SEED_COLOURS = ("#0b5fa5", "#c2410c", "#2f7d32", "#7b3fa0", "#8a6d00", "#555555")
# Points of a learning curve that one drawn point averages over.
SMOOTHING = 4


def read_learning(folder: Path, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """What a learned row's bundle tells of its trainings: one entry per training seed, for tables and figure.

    Args:
        folder: the bundle, verified.
        seeds: its training seeds.

    Returns:
        Dicts with ``seed``, ``selected_step``, ``largest_drop`` (share of the validation episodes, 0 to 1),
        ``candidates`` (each ``step``, ``score``, ``episodes`` and ``force_peak_max`` in N, the largest of its episodes)
        and ``curve`` (``frames``, ``episodes``, ``successes``, ``reward_mean``).
    """
    entries = []
    for seed in seeds:
        training_name, selection_name, _ = learned_files(seed)
        training = decode((folder / training_name).read_bytes(), training_name)
        chosen = decode((folder / selection_name).read_bytes(), selection_name)
        columns = training["curve"]["columns"]
        curve = {name: [point[columns.index(name)] for point in training["curve"]["points"]] for name in columns}
        entries.append(
            {
                "seed": seed,
                "selected_step": chosen["selected"]["step"],
                "largest_drop": max(0.0, largest_drop(chosen)),
                "candidates": [
                    {
                        "step": candidate["step"],
                        "score": candidate["score"],
                        "episodes": len(candidate["episodes"]),
                        "force_peak_max": max(episode["force_peak"] for episode in candidate["episodes"]),
                    }
                    for candidate in chosen["candidates"]
                ],
                "curve": {name: curve[name] for name in ("frames", "episodes", "successes", "reward_mean")},
            }
        )
    return entries


def selection_table(rows: Sequence[tuple[str, Sequence[Mapping[str, Any]]]]) -> tuple[list[str], list[list[str]]]:
    """Header and lines of the table of checkpoints: points and largest force per checkpoint, the selected one marked.

    Args:
        rows: row name and :func:`read_learning` of each learned row.
    """
    steps = sorted({c["step"] for _, entries in rows for entry in entries for c in entry["candidates"]})
    header = ["Row", "Training seed", *(f"{step // 1000}k" if step % 1000 == 0 else str(step) for step in steps)]
    lines = []
    for name, entries in rows:
        for entry in entries:
            found = {c["step"]: c for c in entry["candidates"]}
            cells = []
            for step in steps:
                candidate = found.get(step)
                if candidate is None:
                    cells.append("—")
                    continue
                text = f"{candidate['score']}/{candidate['episodes']} ({candidate['force_peak_max']:.0f} N)"
                cells.append(f"**{text}**" if step == entry["selected_step"] else text)
            drop = f"{100 * entry['largest_drop']:.0f}"
            cells.append(f"{drop} (event)" if entry["largest_drop"] > INSTABILITY_DROP else drop)
            lines.append([name, str(entry["seed"]), *cells])
    return [*header, "Largest drop (points)"], lines


def learned_notes(rows: Sequence[tuple[str, Sequence[Mapping[str, Any]]]]) -> list[str]:
    """Footnotes of the table."""
    events = sum(entry["largest_drop"] > INSTABILITY_DROP for _, entries in rows for entry in entries)
    trainings = sum(len(entries) for _, entries in rows)
    return [
        "A cell: validation episodes that succeed within the plan's limits, of all, and their largest peak force; in "
        "bold the checkpoint that is evaluated (most points, the earliest among equals). Validation shares neither "
        "partners nor start states with the evaluation, and comes before it.",
        f"Instability: from one checkpoint to the next the share of points falls by more than "
        f"{100 * INSTABILITY_DROP:.0f} points in {events} of {trainings} trainings. It changes nothing else.",
    ]


def draw_learning(
    rows: Sequence[tuple[str, Sequence[Mapping[str, Any]]]], settings: Mapping[str, Any], finish: Any
) -> bytes:
    """The figure (SVG): one panel per learned row, with training and validation success over frames.

    Equal arguments give equal bytes under one version of matplotlib.

    Args:
        rows: row name and :func:`read_learning` of each learned row.
        settings: of matplotlib.
        finish: called with the figure before it is saved.
    """
    # Slow to load, and only boards with learned rows need it.
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(settings)
        height = TOP + BOTTOM + len(rows) * PANEL_HEIGHT + (len(rows) - 1) * GAP
        figure = Figure(figsize=(WIDTH, height), facecolor="white")
        for index, (name, entries) in enumerate(rows):
            bottom = height - TOP - (index + 1) * PANEL_HEIGHT - index * GAP
            box = (LEFT / WIDTH, bottom / height, (WIDTH - LEFT - RIGHT) / WIDTH, PANEL_HEIGHT / height)
            _panel(figure.add_axes(box), name, entries, last=index == len(rows) - 1)
        text = "lines: success in training (with exploration); dots: validation of each checkpoint; ringed: evaluated"
        figure.text(LEFT / WIDTH, 0.12 / height, text, size=8, color="#6b6b6b", va="bottom")
        figure.text(
            0.15 / WIDTH, 1 - 0.25 / height, "Training of the learned rows", size=12, weight="bold", va="center"
        )
        finish(figure)
        out = io.BytesIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


def _panel(axes: Any, name: str, entries: Sequence[Mapping[str, Any]], last: bool) -> None:
    axes.set_ylim(-0.05, 1.08)
    axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.tick_params(length=0, labelsize=8, labelcolor="#6b6b6b")
    axes.grid(color="#e9e9e9", linewidth=0.7)
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_ylabel(name, size=9)
    if last:
        axes.set_xlabel("frames (thousands)", size=8, color="#6b6b6b")
    for index, entry in enumerate(entries):
        colour = SEED_COLOURS[index % len(SEED_COLOURS)]
        curve = entry["curve"]
        xs, ys = [], []
        for start in range(0, len(curve["frames"]) - SMOOTHING + 1, SMOOTHING):
            part = slice(start, start + SMOOTHING)
            episodes = sum(curve["episodes"][part])
            if episodes:
                xs.append(curve["frames"][part][-1] / 1000)
                ys.append(sum(curve["successes"][part]) / episodes)
        axes.plot(xs, ys, color=colour, linewidth=1, alpha=0.75)
        # Side by side, so that equal shares of different seeds stay apart.
        aside = (index - (len(entries) - 1) / 2) * 1.6
        for candidate in entry["candidates"]:
            at = candidate["step"] / 1000 + aside, candidate["score"] / candidate["episodes"]
            chosen = candidate["step"] == entry["selected_step"]
            axes.plot(*zip(at, strict=True), "o", markersize=4.5, color=colour, markeredgewidth=0)
            if chosen:
                axes.plot(*zip(at, strict=True), "o", markersize=9, markerfacecolor="none", markeredgecolor=colour)
        share = 0.995 - 0.085 * (len(entries) - 1 - index)
        axes.text(
            share, 1.0, f"seed {entry['seed']}", transform=axes.transAxes, size=8, color=colour, ha="right", va="bottom"
        )
