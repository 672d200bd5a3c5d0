// Plots as SVG. Colours are those of Okabe and Ito; every plot also says its figures in words.

const tick = (x, y, text, anchor = "middle") => s("text", { x, y, "text-anchor": anchor, class: "tick" }, text);

/** Rates of one row per module with intervals: rows of {module, defuse_rate}. */
function ratePlot(title, rows) {
  const [left, right, top, step] = [98, 50, 12, 19];
  const width = 350;
  const inner = width - left - right;
  const height = top + rows.length * step + 30;
  const x = (share) => left + share * inner;
  const words = rows.map(({ module, defuse_rate: rate }) =>
    rate && rate.value !== null ? `${module}: ${RATE(rate)} of ${count(rate.n, "mission")}` : `${module}: n/a`,
  );
  const grid = [0, 0.25, 0.5, 0.75, 1].map((share) => [
    s("line", { x1: x(share), x2: x(share), y1: top - 6, y2: height - 26, class: "grid" }),
    tick(x(share), height - 10, `${share * 100} %`),
  ]);
  const marks = rows.map(({ module, defuse_rate: rate }, i) => {
    const y = top + i * step + step / 2;
    const name = tick(left - 8, y + 4, module, "end");
    if (!rate || rate.value === null) return [name, tick(x(0) + 6, y + 4, "n/a", "start")];
    const whole = rate.low !== null && rate.low !== undefined;
    return [
      name,
      s(
        "g",
        {},
        s("title", {}, words[i]),
        whole && s("line", { x1: x(rate.low), x2: x(rate.high), y1: y, y2: y, class: "whisker" }),
        s("circle", { cx: x(rate.value), cy: y, r: 4.5, class: "dot" }),
      ),
      tick(width - right + 10, y + 4, `n = ${rate.n}`, "start"),
    ];
  });
  return h(
    "figure",
    { class: "plot" },
    h("figcaption", {}, title),
    figureSvg(width, height, title, words.join("; "), grid, marks),
  );
}

/** Edges of at most twelve bins of equal, round width that hold all values. */
function bins(values) {
  const high = Math.max(...values, 1);
  const raw = high / 12;
  const power = 10 ** Math.floor(Math.log10(raw));
  const whole = values.every(Number.isInteger);
  const steps = [1, 2, 5, 10].map((factor) => factor * power).filter((width) => width >= raw && (!whole || width >= 1));
  const width = steps[0] ?? Math.max(1, Math.ceil(raw));
  return { width, count: Math.floor(high / width) + 1, whole };
}

/** Histogram of one number per game, stacked by outcome. */
function histogram(title, unit, games, valueOf) {
  const known = games.filter((game) => valueOf(game) !== null && valueOf(game) !== undefined);
  const caption = h("figcaption", {}, title, h("span", { class: "n" }, ` ${count(known.length, "game")}`));
  if (!known.length) return h("figure", { class: "plot" }, caption, h("p", { class: "none" }, "No game to show."));
  const { width: step, count: size, whole } = bins(known.map(valueOf));
  const stacks = Array.from({ length: size }, () => ({}));
  for (const game of known) {
    const stack = stacks[Math.floor(valueOf(game) / step)];
    stack[game.outcome] = (stack[game.outcome] ?? 0) + 1;
  }
  const totals = stacks.map((stack) => Object.values(stack).reduce((a, b) => a + b, 0));
  const peak = Math.max(...totals);
  const [left, top, inner, tall] = [34, 10, 300, 124];
  const bar = inner / size;
  const range = (i) => (whole && step === 1 ? `${i}` : `${short(i * step)} to ${short((i + 1) * step)}`);
  const words = totals
    .map(
      (total, i) =>
        total &&
        `${range(i)} ${unit}: ${total} (${OUTCOMES.filter((o) => stacks[i][o])
          .map((o) => `${stacks[i][o]} ${o}`)
          .join(", ")})`,
    )
    .filter(Boolean);
  const bars = stacks.map((stack, i) => {
    let y = top + tall;
    return OUTCOMES.filter((outcome) => stack[outcome]).map((outcome) => {
      const height = (stack[outcome] / peak) * tall;
      y -= height;
      return s(
        "rect",
        { x: left + i * bar + 1, y, width: Math.max(bar - 2, 1), height, class: `bar ${outcome}` },
        s("title", {}, `${range(i)} ${unit}: ${count(stack[outcome], "game")} ${outcome}`),
      );
    });
  });
  const every = Math.ceil(size / 6);
  const centred = whole && step === 1;
  const labels = Array.from(
    { length: size + !centred },
    (_, i) => i % every === 0 && tick(left + (i + (centred ? 0.5 : 0)) * bar, top + tall + 16, short(i * step)),
  );
  const axis = [
    s("line", { x1: left, x2: left + inner, y1: top + tall, y2: top + tall, class: "axis" }),
    tick(left - 6, top + 8, peak, "end"),
    tick(left - 6, top + tall, 0, "end"),
    tick(left + inner / 2, top + tall + 34, unit),
  ];
  return h(
    "figure",
    { class: "plot" },
    caption,
    figureSvg(350, top + tall + 40, title, words.join("; "), bars, axis, labels),
  );
}

function legend(games) {
  const present = OUTCOMES.filter((outcome) => games.some((game) => game.outcome === outcome));
  return h(
    "p",
    { class: "legend" },
    present.map((outcome) => h("span", { class: `key ${outcome}` }, outcomeTag(outcome))),
  );
}
