// What is shown follows from the URL's hash alone: filters, orders of the tables, game and step.

const FILTERS = ["suite", "player", "outcome", "module", "style"];
const main = document.getElementById("main");
const overview = h("div", { id: "overview" });
const gameView = h("div", { id: "game", hidden: true });
main.replaceChildren(overview, gameView);

const suiteName = (row) => `${row.suite} rev ${row.revision}`;

const MATCHES = {
  suite: (row, value) => suiteName(row) === value,
  player: (row, value) => row.defuser === value || row.expert === value,
  outcome: (row, value) => row.outcome === undefined || row.outcome === value,
  module: (row, value) => row.modules.includes(value),
  style: (row, value) => row.style.split(", ").includes(value),
};

const readHash = () => new URLSearchParams(location.hash.slice(1));

/** Change the hash; by default without an entry in the history. */
function writeHash(changes, keep = false) {
  const state = readHash();
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === "") state.delete(key);
    else state.set(key, value);
  }
  const hash = `#${state}`;
  if (hash === location.hash || (hash === "#" && !location.hash)) return;
  if (keep) location.hash = hash;
  else location.replace(hash);
}

function hashWith(changes) {
  const state = readHash();
  for (const [key, value] of Object.entries(changes)) {
    if (value === null) state.delete(key);
    else state.set(key, value);
  }
  return `#${state}`;
}

function select(rows, state, names = FILTERS) {
  const active = names.filter((name) => state.get(name));
  return rows.filter((row) => active.every((name) => MATCHES[name](row, state.get(name))));
}

const unique = (values) => [...new Set(values)].sort(compare);

const CHOICES = {
  suite: unique(PAGE.games.map(suiteName)),
  player: unique(PAGE.games.flatMap((game) => [game.defuser, game.expert]).filter((name) => name !== null)),
  outcome: OUTCOMES.filter((outcome) => PAGE.games.some((game) => game.outcome === outcome)),
  module: unique(PAGE.games.flatMap((game) => game.modules)),
  style: unique(PAGE.games.map((game) => game.style)),
};

const GROUP_COLUMNS = [
  { key: "suite_name", label: "Suite" },
  { key: "defuser", label: "Defuser" },
  { key: "expert", label: "Expert" },
  { key: "style", label: "Style" },
];

const SETUP = { key: "setup", label: "Setup", title: "start of the capability fingerprints of Defuser and Expert" };

/** pass@k for every k of any row. */
const PASS_COLUMNS = unique(
  PAGE.tables.pairings.flatMap((row) => Object.keys(row).filter((key) => /^pass@[2-9]/.test(key))),
).map((key) => ({ key, label: key, kind: "rate" }));

const COVERAGE = {
  key: "missions_played",
  label: "Missions",
  kind: "count",
  title: "missions with a valid game, of those of the suite",
  draw: (row) => (row.missions === null ? `${row.missions_played} of ?` : `${row.missions_played} of ${row.missions}`),
};

const perRole = (role, label) => [
  { key: `${role}_turns_per_run`, label: `${label} turns`, kind: "count", title: "mean per game" },
  { key: `${role}_lost_turn_share`, label: `${label} lost`, kind: "share", title: "share of turns lost to errors" },
  { key: `${role}_input_tokens_per_run`, label: `${label} tokens in`, kind: "count", title: "mean per game" },
  { key: `${role}_output_tokens_per_run`, label: `${label} tokens out`, kind: "count", title: "mean per game" },
];

const TABLES = {
  pairings: {
    caption: "Results per suite and pairing",
    columns: [
      ...GROUP_COLUMNS,
      COVERAGE,
      { key: "runs", label: "Valid", kind: "count", title: "games that count; of each attempt the newest" },
      { key: "invalid", label: "Invalid", kind: "count", title: "games that do not count" },
      {
        key: "defuse_rate",
        label: "Defuse rate",
        kind: "rate",
        title: "mean over missions of the share of solved attempts",
      },
      { key: "pass@1", label: "pass@1", kind: "rate", title: "missions solved in attempt 1" },
      ...PASS_COLUMNS,
      { key: "modules_solved_share", label: "Modules solved", kind: "rate" },
      { key: "strikes", label: "Strikes", kind: "mean" },
      { key: "seconds_left", label: "Seconds left", kind: "mean", title: "mean over solved games" },
      {
        key: "time_left_share",
        label: "Time left",
        kind: "rate",
        title: "share of the time limit, mean over solved games",
      },
      { key: "rounds", label: "Rounds", kind: "mean", title: "turns of the Defuser" },
      ...perRole("defuser", "Defuser"),
      ...perRole("expert", "Expert"),
      SETUP,
    ],
  },
  modules: {
    caption: "Results per module, suites of one module per mission",
    columns: [
      { key: "module", label: "Module" },
      ...GROUP_COLUMNS,
      { key: "defuse_rate", label: "Defuse rate", kind: "rate" },
      SETUP,
    ],
  },
  errors: {
    caption: "Errors by kind, valid games",
    columns: [
      { key: "kind", label: "Error" },
      { key: "role", label: "Role" },
      ...GROUP_COLUMNS,
      { key: "errors", label: "Errors", kind: "count" },
      { key: "turns", label: "Turns", kind: "count", title: "all turns of the role" },
      { key: "per_100_turns", label: "Per 100 turns", kind: "count" },
      SETUP,
    ],
  },
};

const { resamples, seed, few_missions: few } = PAGE.resampling;
const METHOD =
  `Figures are over valid games, and intervals two-sided at 95 %: Wilson where each mission has one attempt, else a bootstrap over missions (${resamples.toLocaleString("en")} resamples, seed ${seed}). ` +
  `n is the number of missions; ⚠ marks fewer than ${few}. Filters choose rows here and never change a figure; the filter of outcomes applies to games alone.`;

const GAME_COLUMNS = [
  {
    key: "id",
    label: "Game",
    draw: (game) => h("a", { href: hashWith({ game: game.id, step: null }) }, game.id.slice(0, 8)),
  },
  {
    key: "outcome",
    label: "Outcome",
    draw: (game) => [
      outcomeTag(game.outcome),
      game.valid ? null : h("span", { class: "flag", title: "does not count" }, game.crashed ? " crashed" : " invalid"),
    ],
  },
  { key: "suite_name", label: "Suite" },
  { key: "modules", label: "Modules" },
  { key: "defuser", label: "Defuser" },
  { key: "expert", label: "Expert" },
  { key: "style", label: "Style" },
  { key: "seed", label: "Seed", kind: "count" },
  { key: "attempt", label: "Attempt", kind: "count" },
  { key: "solved", label: "Solved", kind: "count", title: "modules solved" },
  { key: "strikes", label: "Strikes", kind: "count" },
  { key: "seconds_left", label: "Time left", kind: "seconds" },
  { key: "defuser_turns", label: "Turns", kind: "count", title: "of the Defuser" },
  { key: "errors", label: "Errors", kind: "count" },
  { key: "tokens", label: "Tokens", kind: "count", title: "input and output of both players" },
];

for (const row of [...PAGE.games, ...Object.values(PAGE.tables).flat()]) row.suite_name = suiteName(row);

function table(id, caption, columns, rows, state) {
  return makeTable({
    id,
    caption,
    columns,
    rows,
    sort: state.get(`sort-${id}`),
    onsort: (next) => writeHash({ [`sort-${id}`]: next }),
  });
}

/** Plots of rates per module: one for each suite and pairing, the first six. */
function ratePlots(rows) {
  const groups = Map.groupBy(
    rows,
    (row) => `${row.suite_name}: ${row.defuser} + ${row.expert ?? "no expert"}, ${row.style}, setup ${row.setup}`,
  );
  const shown = [...groups].slice(0, 6);
  const left = groups.size - shown.length;
  return [
    h(
      "div",
      { class: "plots" },
      shown.map(([name, group]) =>
        ratePlot(`Defuse rate per module. ${name}`, sorted(group, { key: "module" }, false)),
      ),
    ),
    left > 0 &&
      h("p", { class: "note" }, `${count(left, "more pairing")} not drawn: choose a suite or a player to see them.`),
    !groups.size && h("p", { class: "none" }, "No module to show."),
  ];
}

function filterBar(state) {
  const controls = FILTERS.map((name) => {
    const box = h(
      "select",
      { name, onchange: () => writeHash({ [name]: box.value }) },
      h("option", { value: "" }, "all"),
      CHOICES[name].map((value) => h("option", { value, selected: state.get(name) === value }, value)),
    );
    return h("label", {}, name, box);
  });
  const hide = h("input", {
    type: "checkbox",
    name: "valid",
    checked: state.get("valid") === "1",
    onchange: () => writeHash({ valid: hide.checked ? "1" : null }),
  });
  const clear = Object.fromEntries([...FILTERS, "valid"].map((name) => [name, null]));
  return h(
    "form",
    { class: "filters", onsubmit: (event) => event.preventDefault() },
    controls,
    h("label", { class: "check" }, hide, "hide games that do not count"),
    h("button", { type: "button", onclick: () => writeHash(clear) }, "Clear"),
  );
}

function chosenGames(state) {
  return select(PAGE.games, state).filter((game) => state.get("valid") !== "1" || game.valid);
}

function renderOverview(state) {
  const focus = document.activeElement?.dataset?.sort ?? document.activeElement?.name;
  const games = chosenGames(state);
  const invalid = games.filter((game) => !game.valid).length;
  const rows = Object.fromEntries(Object.entries(PAGE.tables).map(([name, all]) => [name, select(all, state)]));
  const scroll = Object.fromEntries(
    [...overview.querySelectorAll(".table")].map((one) => [one.id, one.firstChild.scrollLeft]),
  );
  overview.replaceChildren(
    filterBar(state),
    h(
      "p",
      { class: "counts", role: "status" },
      `${count(games.length, "game")} of ${PAGE.games.length.toLocaleString("en")}; ${count(invalid, "game")} among them ${invalid === 1 ? "does" : "do"} not count.`,
    ),
    h(
      "div",
      {},
      PAGE.notes.map((note) => h("p", { class: "note" }, note)),
    ),
    h(
      "section",
      {},
      h("h2", {}, "Results"),
      h("p", { class: "hint" }, METHOD),
      Object.entries(TABLES).map(([id, { caption, columns }]) =>
        id === "errors" ? null : table(id, caption, columns, rows[id], state),
      ),
      ratePlots(rows.modules),
    ),
    h(
      "section",
      {},
      h("h2", {}, "Errors"),
      table("errors", TABLES.errors.caption, TABLES.errors.columns, rows.errors, state),
    ),
    h(
      "section",
      {},
      h("h2", {}, "Distributions"),
      legend(games),
      h(
        "div",
        { class: "plots" },
        histogram(
          "Time left, solved games",
          "seconds",
          games.filter((game) => game.outcome === "solved"),
          (game) => game.seconds_left,
        ),
        histogram("Strikes", "strikes", games, (game) => game.strikes),
        histogram("Turns of the Defuser", "turns", games, (game) => game.defuser_turns),
        histogram("Tokens of both players, input and output", "tokens", games, (game) => game.tokens),
      ),
    ),
    h(
      "section",
      {},
      h("h2", {}, "Games"),
      table("games", "Games; a click on one opens its dialogue", GAME_COLUMNS, games, state),
    ),
  );
  for (const [id, left] of Object.entries(scroll)) document.getElementById(id).firstChild.scrollLeft = left;
  if (focus)
    overview
      .querySelector(`[data-sort="${CSS.escape(focus)}"], [name="${CSS.escape(focus)}"]`)
      ?.focus({ preventScroll: true });
}

const viewer = new Viewer(gameView, (step) => writeHash({ step }));

/** The games in the order of the list, so that the next one is that below. */
function neighbours(game, state) {
  const [key, direction] = (state.get("sort-games") ?? "").split(".");
  const column = GAME_COLUMNS.find((one) => one.key === key);
  const games = column ? sorted(chosenGames(state), column, direction === "desc") : chosenGames(state);
  const at = games.indexOf(game);
  const link = (other) => (other && at >= 0 ? hashWith({ game: other.id, step: null }) : null);
  return {
    previous: link(games[at - 1]),
    next: link(games[at + 1]),
    place: at < 0 ? "not among the filtered games" : `${at + 1} of ${games.length}`,
  };
}

let drawn = null;

async function render() {
  const state = readHash();
  const id = state.get("game");
  const game = PAGE.games.find((one) => one.id === id);
  overview.hidden = Boolean(id);
  gameView.hidden = !id;
  document.getElementById("to-overview").href = hashWith({ game: null, step: null });
  document.getElementById("to-overview").hidden = !id;
  if (!id) {
    viewer.close();
    const key = [...state].filter(([name]) => name !== "game" && name !== "step").join("&");
    if (drawn !== key) renderOverview(state);
    drawn = key;
  } else if (game) {
    await viewer.open(game, Number(state.get("step")) || 1, neighbours(game, state));
  } else {
    viewer.close();
    gameView.replaceChildren(h("p", { class: "note" }, "There is no such game in this page."));
  }
  document.body.dataset.ready = String(Number(document.body.dataset.ready ?? 0) + 1);
}

window.addEventListener("hashchange", render);
render();
