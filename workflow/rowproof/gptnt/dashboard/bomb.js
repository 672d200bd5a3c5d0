// The bomb as a drawing: both faces, the four narrow sides, and a close-up of the module in focus.
// Faces are drawn from the recorded state; the close-up shows what the Defuser saw, with its marks.

const CELL = 100;
const GAP = 8;
const FACE = { width: 3 * CELL + 4 * GAP, height: 2 * CELL + 3 * GAP };
const STRIP = { wide: 88, high: 50 };
const PAINT = {
  red: "#d9363e",
  blue: "#2f6fed",
  yellow: "#f2c40f",
  white: "#fafafa",
  black: "#17191c",
  green: "#2fa35a",
};
const LED = { green: "#35d07f", red: "#ff4d4f", off: "#4a4f57" };
const SIDES = ["front", "back", "left", "right", "top", "bottom"];

const paint = (name) => PAINT[name] ?? "#9aa0a8";
const box = (x, y, width, height, fillColour, more) =>
  s("rect", { x, y, width, height, rx: 3, fill: fillColour, stroke: "#30343a", "stroke-width": 0.8, ...more });
const disc = (cx, cy, r, fillColour, more) =>
  s("circle", { cx, cy, r, fill: fillColour, stroke: "#30343a", "stroke-width": 0.8, ...more });

function label(x, y, text, size = 9, colour = "#16181b", more = {}) {
  const place = { x, y, "font-size": size, fill: colour, "text-anchor": "middle", "dominant-baseline": "central" };
  return s("text", { ...place, ...more }, text);
}

/** Text that is squeezed rather than let out of its box. */
function fitted(x, y, text, width, size, colour) {
  const tight = text.length * size * 0.62 > width;
  return label(x, y, text, size, colour, tight ? { textLength: width, lengthAdjust: "spacingAndGlyphs" } : {});
}

const screen = (x, y, width, height, text, size, colour = "#ffc46b") => [
  box(x, y, width, height, "#12161b"),
  fitted(x + width / 2, y + height / 2, text, width - 6, size, colour),
];

function wire(x1, y1, x2, y2, colours, cut) {
  const piece = (from, to) => {
    const at = (t) => [x1 + (x2 - x1) * t, y1 + (y2 - y1) * t];
    const [[ax, ay], [bx, by]] = [at(from), at(to)];
    const line = { x1: ax, y1: ay, x2: bx, y2: by };
    return [
      s("line", { ...line, stroke: "#22252a", "stroke-width": 6.4 }),
      s("line", { ...line, stroke: paint(colours[0]), "stroke-width": 4.6 }),
      colours[1] && s("line", { ...line, stroke: paint(colours[1]), "stroke-width": 4.6, "stroke-dasharray": "6 6" }),
    ];
  };
  return cut ? [piece(0, 0.38), piece(0.62, 1)] : piece(0, 1);
}

const initials = (colours) => colours.map((colour) => colour[0].toUpperCase()).join("");

/** A column of stage lights at the right. */
const stages = (lit, all) =>
  Array.from({ length: all }, (_, i) => box(88, 84 - i * 12, 7, 8, i < lit ? LED.green : LED.off));

function arrow(x, y, turn) {
  return s("path", { d: "M-6 4 L0 -5 L6 4 Z", fill: "#3b4048", transform: `translate(${x} ${y}) rotate(${turn})` });
}

/** Time left as the timer shows it. */
function timerText(seconds) {
  const hundredths = Math.floor(seconds * 100 + 1e-6);
  const whole = Math.floor(hundredths / 100);
  const two = (n) => String(n).padStart(2, "0");
  return whole >= 60 ? `${two(Math.floor(whole / 60))}:${two(whole % 60)}` : `${two(whole)}.${two(hundredths % 100)}`;
}

/** The last four seconds of a lamp, oldest first. */
function samples(text, colourOf) {
  return Array.from(text, (sign, i) => box(6 + i * 5.5, 88, 5, 7, sign === "." ? LED.off : colourOf(sign), { rx: 1 }));
}

// One function per component: (state, view, spots) => nodes in a box of 100 x 100. The view is there in the close-up
// only. Spots are the places of what can be operated, in the order of the marks.
const DRAW = {
  Wires(state, view, spots) {
    return state.wires.map((one) => {
      const y = 23 + one.position * 12.5;
      spots.push([50, y]);
      return [wire(16, y, 86, y, [one.color], one.isCut), label(8.5, y, one.color.slice(0, 3), 6.5)];
    });
  },
  BigButton(state, view, spots) {
    spots.push([42, 75]);
    const pale = ["white", "yellow"].includes(state.buttonColor);
    return [
      disc(42, 54, 32, paint(state.buttonColor), { "stroke-width": state.isHeld ? 4 : 1 }),
      fitted(42, 54, state.buttonWord, 54, 13, pale ? "#16181b" : "#ffffff"),
      box(82, 30, 11, 56, state.stripColor ? paint(state.stripColor) : "#2a2e34"),
      state.stripColor && label(87.5, 93, initials([state.stripColor]), 8),
    ];
  },
  Keypad(state, view, spots) {
    return ["topLeft", "topRight", "bottomLeft", "bottomRight"].map((place, i) => {
      const [x, y] = [12 + (i % 2) * 38, 16 + Math.floor(i / 2) * 39];
      const { symbol, color } = state[place];
      spots.push([x + 6, y + 29]);
      return s(
        "g",
        {},
        s("title", {}, symbol),
        box(x, y, 34, 35, "#efe6cf"),
        box(x + 11, y + 2.5, 12, 4, color ? (LED[color] ?? paint(color)) : LED.off),
        label(x + 17, y + 20, PAGE.symbols[symbol] ?? "?", 20, "#16181b", { class: "glyph" }),
      );
    });
  },
  Maze(state, view, spots) {
    const at = ({ row, column }) => [22 + column * 10, 24 + row * 10];
    const cells = Array.from({ length: state.numRows * state.numColumns }, (_, i) => {
      const [x, y] = at({ row: Math.floor(i / state.numColumns), column: i % state.numColumns });
      return s("circle", { cx: x, cy: y, r: 1.3, fill: "#7f93b5" });
    });
    const walls = (view?.red_walls ?? []).map(([row, column, side]) => {
      const [x, y] = at({ row: row - 1, column: column - 1 });
      const ends = side === "right" ? [x + 5, y - 5, x + 5, y + 5] : [x - 5, y + 5, x + 5, y + 5];
      const [x1, y1, x2, y2] = ends;
      return s("line", { x1, y1, x2, y2, stroke: "#ff4d4f", "stroke-width": 2 });
    });
    const [sx, sy] = at(state.squarePosition);
    const [tx, ty] = at(state.trianglePosition);
    spots.push([47, 11], [8, 49], [86, 49], [47, 91]);
    return [
      box(15, 17, 64, 64, "#0d1626"),
      cells,
      walls,
      state.circlePositions.map((place) => {
        const [cx, cy] = at(place);
        return s("circle", { cx, cy, r: 4.2, fill: "none", stroke: "#35d07f", "stroke-width": 1.4 });
      }),
      s("path", { d: `M${tx - 3.6} ${ty + 3} L${tx} ${ty - 3.6} L${tx + 3.6} ${ty + 3} Z`, fill: "#ff4d4f" }),
      s("rect", { x: sx - 2.6, y: sy - 2.6, width: 5.2, height: 5.2, fill: "#ffffff" }),
      [arrow(47, 11, 0), arrow(8, 49, -90), arrow(86, 49, 90), arrow(47, 89, 180)],
    ];
  },
  Memory(state, view, spots) {
    return [
      screen(14, 14, 62, 38, String(state.displayNumber), 26),
      state.buttonNumbers.map((number, i) => {
        spots.push([18.5 + i * 18, 84]);
        return [box(11 + i * 18, 60, 15, 28, "#efe6cf"), label(18.5 + i * 18, 69, number, 14)];
      }),
      stages(state.isSolved ? 5 : state.stage - 1, 5),
    ];
  },
  Morse(state, view, spots) {
    const lit = view?.lamp?.endsWith(".") === false;
    spots.push([15, 62], [85, 62], [70, 75.5]);
    return [
      disc(50, 24, 10, lit ? "#ffd95a" : LED.off),
      screen(24, 46, 52, 18, `3.${state.currentFrequency} MHz`, 10),
      [arrow(15, 52, -90), arrow(85, 52, 90)],
      box(36, 69, 28, 13, "#efe6cf"),
      label(50, 75.5, "TX", 9),
      view && samples(view.lamp, () => "#ffd95a"),
    ];
  },
  Password(state, view, spots) {
    const xs = [16, 33, 50, 67, 84];
    xs.forEach((x) => spots.push([x, 17]));
    xs.forEach((x) => spots.push([x, 73]));
    spots.push([76, 87]);
    return [
      Array.from(state.currentWord.toUpperCase(), (letter, i) => [
        box(xs[i] - 7.5, 33, 15, 26, "#a9c77c"),
        label(xs[i], 46.5, letter, 16),
        arrow(xs[i], 26, 0),
        arrow(xs[i], 67, 180),
      ]),
      box(30, 80, 40, 14, "#efe6cf"),
      label(50, 87.5, "SUBMIT", 8),
    ];
  },
  Simon(state, view, spots) {
    const lit = view?.flashes?.at(-1);
    const places = view?.buttons ?? { top: "blue", left: "red", right: "yellow", bottom: "green" };
    const centres = { top: [50, 28], left: [29, 49], right: [71, 49], bottom: [50, 70] };
    return [
      Object.entries(centres).map(([place, [x, y]]) => {
        const colour = places[place];
        spots.push([x, y + 9]);
        const on = lit === colour[0].toUpperCase();
        const diamond = { d: `M${x} ${y - 19} l19 19 l-19 19 l-19 -19 Z`, fill: paint(colour) };
        const edge = { stroke: on ? "#ffffff" : "#30343a", "stroke-width": on ? 3 : 1 };
        return [s("path", { ...diamond, ...edge }), label(x, y - 4, colour[0].toUpperCase(), 10)];
      }),
      view && samples(view.flashes, (sign) => paint({ R: "red", B: "blue", G: "green", Y: "yellow" }[sign])),
    ];
  },
  Venn(state, view, spots) {
    return state.wires.map((one) => {
      const x = 13 + one.position * 14.5;
      const colours = one.color.split(", ");
      spots.push([x, 50]);
      return [
        disc(x, 19, 4, one.isLedOn ? "#ffe27a" : LED.off),
        wire(x, 28, x, 70, colours, one.isCut),
        box(x - 6, 74, 12, 12, "#efe6cf"),
        one.hasStar && label(x, 80.5, "★", 10),
        label(x, 92, initials(colours), 7),
      ];
    });
  },
  WhosOnFirst(state, view, spots) {
    return [
      screen(10, 10, 68, 18, state.displayWord, 10),
      state.buttonWords.map((word, i) => {
        const [x, y] = [8 + (i % 2) * 39, 33 + Math.floor(i / 2) * 21];
        spots.push([x + 1, y + 2]);
        return [box(x, y, 36, 18, "#efe6cf"), fitted(x + 18, y + 9.5, word, 32, 8.5)];
      }),
      stages(state.isSolved ? 3 : state.stage - 1, 3),
    ];
  },
  WireSequence(state, view, spots) {
    const shown = state.wires.filter((one) => Math.floor(one.startPositionNumber / 3) === state.panel - 1);
    spots.push([45, 9]);
    const drawn = shown.map((one) => {
      const y1 = 30 + (one.startPositionNumber % 3) * 20;
      const y2 = 30 + "ABC".indexOf(one.endPositionLetter) * 20;
      spots.push([45 - 14, y1 + (y2 - y1) * 0.27]);
      return [wire(20, y1, 70, y2, [one.color], one.isCut), label(6, y1 + 7, one.color.slice(0, 3), 5)];
    });
    spots.push([45, 91]);
    const first = (state.panel - 1) * 3;
    return [
      box(16, 20, 58, 60, "#d8d3c4"),
      drawn,
      state.panel <= 4 &&
        [0, 1, 2].map((i) => [label(12, 30 + i * 20, first + i + 1, 9), label(79, 30 + i * 20, "ABC"[i], 9)]),
      state.panel > 4 && label(45, 50, "done", 12),
      [arrow(45, 11, 0), arrow(45, 89, 180)],
      stages(Math.min(state.panel - 1, 4), 4),
    ];
  },
  NeedyCapacitor(state, view, spots) {
    const percent = view?.bar_percent ?? 0;
    spots.push([30, 62]);
    return [
      screen(34, 8, 32, 16, countdown(state, view), 12, "#ff6b6b"),
      box(14, 34, 32, 54, "#9299a3"),
      box(20, state.isHeld ? 66 : 42, 20, 14, "#2a2e34"),
      box(60, 34, 20, 54, "#12161b"),
      s("rect", { x: 61, y: 87 - 0.52 * percent, width: 18, height: 0.52 * percent, fill: "#ffc46b" }),
      !view && label(70, 61, "?", 10, "#ffc46b"),
    ];
  },
  NeedyKnob(state, view, spots) {
    const turns = { up: 0, right: 90, down: 180, left: 270 };
    const lamps = new Set(state.isBeingNeedy ? state.ledPosition : []);
    const [ux, uy] = { up: [50, 33], right: [76, 53], down: [50, 75], left: [24, 53] }[state.upLabelPoints] ?? [50, 33];
    spots.push([50, 54]);
    return [
      screen(34, 7, 32, 15, countdown(state, view), 12, "#ff6b6b"),
      disc(50, 54, 15, "#5d646e"),
      s("path", {
        d: "M50 54 V42",
        stroke: "#fff",
        "stroke-width": 3,
        transform: `rotate(${turns[state.knobPoints] ?? 0} 50 54)`,
      }),
      label(ux, uy, "UP", 8),
      Array.from({ length: 12 }, (_, i) => {
        const place = [18 + (i % 6) * 12.8, i < 6 ? 84 : 93];
        return disc(...place, 3, lamps.has(i) ? "#7dff9b" : LED.off);
      }),
    ];
  },
  NeedyVentGas(state, view, spots) {
    const question = { Vent: "VENT GAS?", Detonate: "DETONATE?" }[state.message] ?? state.message;
    spots.push([30, 78], [70, 78]);
    return [
      screen(34, 8, 32, 16, countdown(state, view), 12, "#ff6b6b"),
      screen(12, 32, 76, 26, view ? view.screen : state.isBeingNeedy ? question : "", 11, "#7dff9b"),
      ["Y", "N"].map((key, i) => [box(19 + i * 40, 68, 22, 20, "#efe6cf"), label(30 + i * 40, 79, key, 12)]),
    ];
  },
};

function countdown(state, view) {
  if (view) return view.seconds === null ? "" : String(view.seconds).padStart(2, "0");
  return state.isBeingNeedy ? "on" : "";
}

/** The inside of a module; one that is not known, or whose state has another form, gives its name. */
function inside(state, view, spots) {
  try {
    return s("g", {}, DRAW[state.name](state, view, spots));
  } catch {
    spots.length = 0;
    return s("g", {}, fitted(50, 50, String(state.name), 86, 12));
  }
}

const isNeedy = (state) => String(state.name).startsWith("Needy");

function lightOf(state, look) {
  if (isNeedy(state)) return null;
  return look?.led ?? (state.isSolved ? "green" : "off");
}

function plate(state, look, view, spots) {
  const light = lightOf(state, look);
  return [box(0, 0, CELL, CELL, "#b4bac3", { rx: 6 }), inside(state, view, spots), light && disc(91, 9, 5, LED[light])];
}

function markTag(x, y, mark, chosen) {
  return s(
    "g",
    { class: chosen ? "mark chosen" : "mark" },
    s("circle", { cx: x, cy: y, r: chosen ? 7 : 5.5 }),
    label(x, y + 0.4, mark, chosen ? 9 : 7.5, null),
  );
}

const slotPlace = (index) => [GAP + (index % 3) * (CELL + GAP), GAP + Math.floor(index / 3) * (CELL + GAP)];

function face(bomb, onFront, seen, chosen) {
  const side = onFront ? "front" : "back";
  const inView = (seen?.side ?? bomb.bombSide) === side;
  const looks = new Map((inView ? (seen?.slots ?? []) : []).map((slot) => [slot.slot, slot]));
  const taken = new Map(bomb.modules.filter((one) => one.onFront === onFront).map((one) => [one.index, one]));
  const timer = bomb.timerModule;
  const cells = Array.from({ length: 6 }, (_, index) => {
    const [x, y] = slotPlace(index);
    const at = { transform: `translate(${x} ${y})` };
    const state = taken.get(index);
    if (state) {
      const look = looks.get(index);
      const focus = state.inFocus && s("rect", { x: -3, y: -3, width: 106, height: 106, rx: 8, class: "focus" });
      const mark = look?.mark && markTag(9, 9, look.mark, look.mark === chosen);
      return s(
        "g",
        at,
        s("title", {}, `${state.name}${state.isSolved ? ", solved" : ""}`),
        plate(state, look, null, []),
        focus,
        mark,
      );
    }
    if (timer && timer.onFront === onFront && timer.index === index) return s("g", at, timerPlate(bomb, seen));
    return s("rect", { ...at, width: CELL, height: CELL, rx: 6, fill: "#666d77", opacity: 0.35 });
  });
  const frame = {
    width: FACE.width,
    height: FACE.height,
    rx: 10,
    fill: "#7d848e",
    class: inView ? "side in-view" : "side",
  };
  return s("g", {}, s("rect", frame), cells);
}

function timerPlate(bomb, seen) {
  const strikes = bomb.strikes.length;
  return [
    box(0, 0, CELL, CELL, "#2a2e34", { rx: 6 }),
    screen(8, 34, 84, 38, seen?.timer?.display ?? timerText(bomb.timerModule.secondsRemaining), 21, "#ff6b6b"),
    bomb.maxStrikes > 1 &&
      label(
        50,
        18,
        strikes ? Array(strikes).fill("✗").join(" ") : "no strikes",
        strikes ? 17 : 10,
        strikes ? "#ff6b6b" : "#c3c9d2",
      ),
    label(
      50,
      86,
      bomb.isSolved ? "DEFUSED" : bomb.isDetonated ? "EXPLODED" : "",
      11,
      bomb.isSolved ? "#7dff9b" : "#ff6b6b",
    ),
  ];
}

function widgetBox(widget, width, height) {
  const middle = [width / 2, height / 2];
  if (widget.name === "SerialNumber") {
    return [
      box(0, 0, width, height, "#ffffff"),
      s("rect", { width, height: 9, rx: 3, fill: PAINT.red }),
      label(width / 2, 4.8, "SERIAL", 6.5, "#ffffff"),
      fitted(width / 2, 9 + (height - 9) / 2, widget.serialNumber, width - 8, 14),
    ];
  }
  if (widget.name === "Battery") {
    return [
      box(0, 0, width, height, "#3c4249"),
      label(...middle, `${widget.batteriesCount} × ${widget.batteryType}`, 12, "#ffd479"),
    ];
  }
  if (widget.name === "Indicator") {
    const lit = widget.lightActivated;
    return [
      box(0, 0, width, height, "#22262b"),
      disc(15, height / 2, 6, lit ? "#ffffff" : "#22262b", { stroke: "#cfd5dd" }),
      label(width / 2 + 8, height / 2 - 5, widget.label, 12, "#ffffff"),
      label(width / 2 + 8, height / 2 + 8, lit ? "lit" : "unlit", 8, "#cfd5dd"),
    ];
  }
  const ports = widget.portType ?? [];
  const lines =
    ports.length > 2 ? [ports.slice(0, 2).join(" · "), ports.slice(2).join(" · ")] : [ports.join(" · ") || "no ports"];
  const first = 9 + (height - 9) / 2 - (lines.length - 1) * 5.5;
  return [
    box(0, 0, width, height, "#9aa1ab"),
    label(width / 2, 7, "PORTS", 6.5),
    lines.map((line, i) => fitted(width / 2, first + i * 11, line, width - 6, 8.5)),
  ];
}

function strip(bomb, side, seen) {
  const upright = side === "left" || side === "right";
  const width = upright ? STRIP.wide - 6 : FACE.width;
  const height = upright ? FACE.height : STRIP.high - 6;
  const widgets = (bomb.widgets ?? []).filter((widget) => widget.position === side);
  const inView = (seen?.side ?? bomb.bombSide) === side;
  const [w, h1] = upright ? [width - 8, (height - 16) / 3] : [(width - 16) / 3, height - 8];
  return [
    s("rect", { width, height, rx: 6, fill: "#8d949e", class: inView ? "side in-view" : "side" }),
    widgets.map((widget, i) => {
      const [x, y] = upright ? [4, 4 + i * (h1 + 4)] : [4 + i * (w + 4), 4];
      return s("g", { transform: `translate(${x} ${y})` }, s("title", {}, widget.name), widgetBox(widget, w, h1));
    }),
  ];
}

/** What the drawings show, in words. */
function bombText(bomb, seen) {
  const parts = [`${seen?.side ?? bomb.bombSide} in view`];
  parts.push(
    `${bomb.strikes.length} of ${bomb.maxStrikes} strikes`,
    `${clock(bomb.timerModule.secondsRemaining)} left`,
  );
  for (const one of bomb.modules) {
    const status = isNeedy(one) ? (one.isBeingNeedy ? "active" : "quiet") : one.isSolved ? "solved" : "not solved";
    parts.push(`${one.name} (${one.onFront ? "front" : "back"}${one.inFocus ? ", close" : ""}): ${status}`);
  }
  if (bomb.isSolved) parts.push("defused");
  if (bomb.isDetonated) parts.push("exploded");
  return parts.join("; ");
}

/** Front with the narrow sides around it. */
function drawFront(bomb, seen, chosen) {
  const width = FACE.width + 2 * STRIP.wide;
  const height = FACE.height + 2 * STRIP.high;
  const at = (x, y, ...nodes) => s("g", { transform: `translate(${x} ${y})` }, ...nodes);
  return figureSvg(
    width,
    height,
    "Front of the bomb and its narrow sides",
    bombText(bomb, seen),
    at(STRIP.wide, 2, strip(bomb, "top", seen)),
    at(2, STRIP.high, strip(bomb, "left", seen)),
    at(STRIP.wide + FACE.width + 4, STRIP.high, strip(bomb, "right", seen)),
    at(STRIP.wide, STRIP.high + FACE.height + 4, strip(bomb, "bottom", seen)),
    at(STRIP.wide, STRIP.high, face(bomb, true, seen, chosen)),
  );
}

function drawBack(bomb, seen, chosen) {
  const names = bomb.modules.filter((one) => !one.onFront).map((one) => one.name);
  const words = names.length ? `Modules: ${names.join(", ")}` : "No modules";
  const drawn = s("g", { transform: "translate(2 2)" }, face(bomb, false, seen, chosen));
  return figureSvg(FACE.width + 4, FACE.height + 4, "Back of the bomb", words, drawn);
}

/** The module in focus as the Defuser sees it, with marks; null if none is. */
function drawCloseUp(bomb, seen, chosen) {
  const state = bomb.modules.find((one) => one.inFocus);
  if (!state) return null;
  const spots = [];
  const drawn = plate(state, seen?.module, seen?.module ?? null, spots);
  const marks = Object.entries(seen?.marks ?? {});
  const tags =
    marks.length === spots.length ? marks.map(([mark], i) => markTag(...spots[i], mark, mark === chosen)) : [];
  const words = marks.map(([mark, element]) => `${mark}: ${element}`).join("; ");
  return figureSvg(CELL, CELL, `Close-up of ${state.name}`, words || "no marks recorded", drawn, tags);
}
