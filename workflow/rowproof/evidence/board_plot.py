"""The plot of a board: one line per row, with interval, cells and published value."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

INK, MUTED, OWN, PUBLISHED = "#1a1a1a", "#6b6b6b", "#0b5fa5", "#c2410c"
FONT = "DejaVu Sans"

# All lengths in inches; the drawing is laid out by hand so that no text width moves anything.
WIDTH, RIGHT, TOP, BOTTOM, PER_ROW = 9.0, 1.75, 0.55, 0.85, 0.62
PER_LETTER, LEFT_LEAST, LEFT_MOST = 0.088, 1.2, 3.2


def draw_svg(title: str, rows: Sequence[Mapping[str, Any]]) -> bytes:
    """The plot as SVG; equal arguments give equal bytes under one version of matplotlib.

    Args:
        title: heading of the plot.
        rows: the ``rows`` of a ``leaderboard.json``; rates are fractions in [0, 1].
    """
    return _draw(title, rows, "svg")


def _draw(title: str, rows: Sequence[Mapping[str, Any]], form: str) -> bytes:
    import matplotlib
    from matplotlib.figure import Figure

    # Settings of the user or of the working directory must not change the picture.
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.hashsalt": "rowproof", "svg.fonttype": "none", "font.family": FONT})
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
        metadata = {"Date": None, "Creator": None} if form == "svg" else None
        figure.savefig(out, format=form, metadata=metadata, dpi=120 if form == "png" else 72)
    return out.getvalue()


def _use_bundled_font(figure: Any) -> None:
    from pathlib import Path

    import matplotlib
    from matplotlib.text import Text

    fonts = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    for text in figure.findobj(Text):
        # A copy of the font that the system has, perhaps of another version, would shift text.
        own = text.get_fontproperties().copy()
        own.set_file(fonts / ("DejaVuSans-Bold.ttf" if own.get_weight() == "bold" else "DejaVuSans.ttf"))
        text.set_fontproperties(own)


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
        text = f"{rate:.3f} [{low:.3f}, {high:.3f}]"
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
        axes.plot([75, 75], [0.2, 1.0], color=PUBLISHED, linewidth=1.6)
        axes.text(76.5, 0.6, "published mean", va="center", size=8, color=MUTED)
