"""What the page of a speedrun board shows beside success."""

from collections.abc import Mapping, Sequence
from typing import Any

from rowproof.evidence.columns import MISSING, table
from rowproof.plain_text import markdown, visible
from rowproof.speedrun.campaigns import step_across
from rowproof.speedrun.scoring import FAST_LEVELS, fast_p
from rowproof.speedrun.statistics import holm

HEADER = ("Outcome", "Loss", "Tokens ratio", "FLOPs ratio", "Time ratio [95 % CI]", "Reward", "Says")
CSV_COLUMNS = (
    *("outcome", "verdict", "val_loss", "threshold", "margin_z", "train_tokens", "tokens_ratio", "train_flops"),
    *("flops_ratio", "n_params", "checkpoint_bytes", "reward_flops", "wall_ratio", "ratio_ci_low", "ratio_ci_high"),
    *("hl_ratio", "ratio_of_means", "cpu_ratio", "n_pairs", "sign_wins", "reward", "reward_strict"),
    *("reward_code_variant", "fsr", "campaign", "says"),
)


def _text(value: float | None, digits: int = 2) -> str:
    return MISSING if value is None else f"{value:.{digits}f}"


def _interval(timed: Mapping[str, Any]) -> str:
    if not timed["timed"]:
        return MISSING
    low, high = timed["ratio_ci95"]
    if low == high:
        # The baseline against itself.
        return f"{timed['wall_ratio']:.2f}"
    return f"{timed['wall_ratio']:.2f} [{low:.2f}, {high:.2f}]"


def _outcome(row: Mapping[str, Any]) -> str:
    return visible(row["timed"].get("outcome", row["summary"]["family"]["outcome"]))


def cells(row: Mapping[str, Any]) -> list[str]:
    """The cells of a row; see :class:`rowproof.evidence.columns.Columns`."""
    family, timed = row["summary"]["family"], row["timed"]
    return [
        _outcome(row),
        _text(family["val_loss"], 3),
        _text(family["tokens_ratio"]),
        _text(family["flops_ratio"]),
        _interval(timed),
        _text(timed["reward"]),
        markdown(", ".join(timed["says"])) or MISSING,
    ]


def values(row: Mapping[str, Any]) -> list[Any]:
    """The values of a row in the CSV file."""
    family, timed = row["summary"]["family"], row["timed"]
    low, high = timed["ratio_ci95"] if timed["timed"] else (None, None)
    merged = {**family, **timed, "outcome": _outcome(row), "ratio_ci_low": low, "ratio_ci_high": high}
    merged["says"] = "; ".join(timed["says"])
    own = (merged.get(name) for name in CSV_COLUMNS)
    return ["" if value is None else value for value in own]


def notes(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Footnotes."""
    family = rows[0]["summary"]["family"]
    lines = [
        f"Success: the loss of a seed is at or below {family['threshold']} nats per token. It is a gate, so flags of "
        "the success rate say little here. Loss: mean over seeds. Tokens and FLOPs ratio: baseline over row; these "
        "need no clock. FLOPs are counted inside the script's process.",
        "Time ratio: median time of the baseline over that of the row, in blocks of one run each on one core; the "
        "interval is a bootstrap over blocks. Reward: 0.3 + 0.7 x time ratio if the mean loss meets the target, "
        "otherwise 0.",
        "Says: valid (the loss rule holds with its margin), faster (the interval lies above 1 + noise floor), record "
        "(all of at least seven blocks won, strict sandbox, same weights every time, FLOPs agree). Times are recorded "
        "in `timing.json` beside the evidence; no rebuild repeats them, and they say nothing about GPU records.",
    ]
    campaigns = _campaigns(rows)
    for campaign, own in campaigns.items():
        timed = own[0]["timed"]
        low, high = timed["twice"]["ratio_ci95"]
        machine = timed["machine"]
        lines.append(
            f"{f'Campaign {campaign}: ' if len(campaigns) > 1 else ''}"
            f"Measured on {machine['cores']} cores of {markdown(machine['cpu'])}, {timed['date']}. Noise: "
            f"{timed['twice']['candidate']} against itself {timed['twice']['wall_ratio']:.3f} [{low:.3f}, {high:.3f}] "
            f"({', '.join(timed['twice']['says'])}); noise floor {timed['aa_floor']:.3f}. "
            f"Timed together: {', '.join(row['row'] for row in own)}."
        )
    if len(campaigns) > 1:
        lines.append(
            "Each campaign has runs of the baseline and of the script that runs twice. Rows of one campaign are "
            "compared block by block, those of two only through the baseline of each, with the wider interval that "
            "follows."
        )
    if any(len({row["timing_sha256"] for row in own}) > 1 for own in campaigns.values()):
        lines.append("Rows were timed in different jobs: compare their time ratios with care.")
    return lines


def _campaigns(rows: Sequence[Mapping[str, Any]]) -> dict[int, list[Mapping[str, Any]]]:
    """The timed rows of each campaign, by its number."""
    timed = [row for row in rows if row["timed"]["timed"]]
    numbers = sorted({row["timed"]["campaign"] for row in timed})
    return {number: [row for row in timed if row["timed"]["campaign"] == number] for number in numbers}


def sections(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Loss and cost of every row, times, expectations, the steps of the ladder, and shares of fast rows."""
    parts = ["## Loss and cost\n", _costs(rows), "## Times\n", _times(rows)]
    parts += ["## Against what was expected\n", _expectations(rows)]
    steps = [row for row in rows if row["timed"].get("step")]
    if steps:
        parts += ["## Against the script that it patches\n", _steps(steps)]
    crossing = {row["row"]: step for row in rows if (step := step_across(row, rows))}
    if crossing:
        parts += ["## Against a script of another campaign\n", _crossing(crossing)]
    attempts = [row for row in rows if row["timed"]["says"] != ["baseline"]]
    intervals = [tuple(row["timed"]["ratio_ci95"]) if row["timed"]["timed"] else None for row in attempts]
    shares = ", ".join(f"{level} times: {fast_p(intervals, level):.2f}" for level in FAST_LEVELS)
    parts.append(f"Share of the {len(attempts)} patches that are valid and surely faster than {shares}.\n")
    return parts


def _costs(rows: Sequence[Mapping[str, Any]]) -> str:
    header = (
        "Row",
        "Loss by seed",
        "Margin (z)",
        "Verdict",
        "Audit gap",
        "Tokens",
        "TFLOP",
        "Parameters",
        "Reward by FLOPs",
    )
    lines = []
    for row in rows:
        family = row["summary"]["family"]
        tokens, flops = family["train_tokens"], family["train_flops"]
        lines.append(
            [
                row["row"],
                " ".join(_text(loss, 3) for loss in family["val_loss_by_seed"].values()),
                _text(family["margin_z"], 1),
                markdown(family["verdict"] or MISSING),
                _text(family["audit_gap"], 3),
                MISSING if tokens is None else f"{tokens:,}",
                MISSING if flops is None else f"{flops / 1e12:.3f}",
                MISSING if family["n_params"] is None else f"{family['n_params']:,}",
                _text(family["reward_flops"]),
            ]
        )
    return table(header, lines)


def _times(rows: Sequence[Mapping[str, Any]]) -> str:
    header = (
        "Row",
        "Median (s)",
        "Time ratio",
        "Hodges-Lehmann",
        "Of means",
        "CPU ratio",
        "Blocks won",
        "FSR",
        "Flags",
    )
    lines = []
    for row in rows:
        timed = row["timed"]
        flags = ", ".join([*row["summary"]["family"]["flags"], *timed["flags"]]) or MISSING
        flags = markdown(flags)
        if not timed["timed"]:
            lines.append([row["row"], *[MISSING] * 7, flags])
            continue
        ratios = (timed[name] for name in ("wall_ratio", "hl_ratio", "ratio_of_means", "cpu_ratio"))
        lines.append(
            [
                row["row"],
                f"{timed['wall_ms_patched_median'] / 1000:.2f}",
                *(f"{ratio:.2f}" for ratio in ratios),
                f"{timed['sign_wins']} of {timed['n_pairs']}",
                _text(timed["fsr"]),
                flags,
            ]
        )
    return table(header, lines)


def _direction(ratio_low: float, ratio_high: float) -> str:
    """Where a cost went, by the interval of the ratio base over row."""
    return "down" if ratio_low > 1 else "up" if ratio_high < 1 else "same"


def _expectations(rows: Sequence[Mapping[str, Any]]) -> str:
    tokens = {row["policy"]["name"]: row["summary"]["family"]["train_tokens"] for row in rows}
    lines = []
    for row in rows:
        family, step = row["summary"]["family"], row["timed"].get("step") or step_across(row, rows)
        own, base = family["train_tokens"], tokens.get(family["base"])
        ratio = base / own if own and base else None
        found = {
            "outcome": _outcome(row),
            "tokens": None if ratio is None else _direction(ratio, ratio),
            "time": _direction(*step["ratio_ci95"]) if step else None,
        }
        cells = []
        for name, expected in family["expected"].items():
            if found[name] is None or expected is None:
                cells.append(found[name] or MISSING)
            else:
                cells.append(found[name] if found[name] == expected else f"**{found[name]}** (expected {expected})")
        lines.append([row["row"], family["base"] or MISSING, *cells])
    note = "Tokens and time against the script that is patched; what came out otherwise than planned is in bold."
    return table(("Row", "Base", "Outcome", "Tokens", "Time"), lines) + f"\n{note}\n"


def _steps(rows: Sequence[Mapping[str, Any]]) -> str:
    adjusted = holm([row["timed"]["step"]["p_value"] for row in rows])
    lines = []
    for row, p_value in zip(rows, adjusted, strict=True):
        step = row["timed"]["step"]
        low, high = step["ratio_ci95"]
        ratio = f"{step['wall_ratio']:.3f} [{low:.3f}, {high:.3f}]"
        lines.append([row["row"], step["base"], ratio, f"{step['wins']} of {step['n_pairs']}", f"{p_value:.3f}"])
    note = (
        "Time of the base over that of the row in the same blocks. p: one-sided sign test, by Holm's correction for "
        f"{len(rows)} steps; {rows[0]['timed']['step']['n_pairs']} blocks can hardly make it small."
    )
    return table(("Row", "Base", "Time ratio [95 % CI]", "Blocks won", "p (Holm)"), lines) + f"\n{note}\n"


def _crossing(steps: Mapping[str, Mapping[str, Any]]) -> str:
    lines = []
    for row, step in steps.items():
        low, high = step["ratio_ci95"]
        ratio = f"{step['wall_ratio']:.3f} [{low:.3f}, {high:.3f}]"
        own, base = step["campaigns"]
        lines.append([row, str(own), step["base"], str(base), ratio, ", ".join(step["says"]) or MISSING])
    note = (
        "Time of the base over that of the row: the row's time ratio over that of the base, each in its own campaign. "
        "On the logarithmic scale the interval reaches as far as the root of the summed squares of both. Faster: it "
        "lies above 1 + both noise floors. No blocks were won, so nothing is a record here."
    )
    header = ("Row", "Campaign", "Base", "Its campaign", "Time ratio [95 % CI]", "Says")
    return table(header, lines) + f"\n{note}\n"
