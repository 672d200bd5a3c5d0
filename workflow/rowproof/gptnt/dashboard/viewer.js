// One game, turn by turn.

const ACTION_WORDS = {
  left: "rotate left",
  right: "rotate right",
  flip: "flip",
  up: "roll up",
  down: "roll down",
  out: "zoom out",
};
const SPEEDS = [0.5, 1, 2, 5];

const ICONS = {
  "First step": "M3 3h2v10h-2z M13 3v10l-7 -5z",
  "Step back": "M9 3v10l-7 -5z M11 3h2v10h-2z",
  Play: "M4 2v12l9 -6z",
  Pause: "M4 3h3v10h-3z M9 3h3v10h-3z",
  "Step forward": "M3 3h2v10h-2z M7 3v10l7 -5z",
  "Last step": "M3 3v10l7 -5z M11 3h2v10h-2z",
};

function icon(name) {
  return s("svg", { viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true" }, s("path", { d: ICONS[name] }));
}

/** The steps of a game: base64 of zlib of JSON, unpacked on demand. */
async function loadDialogue(number) {
  const packed = document.getElementById(`game-${number}`).textContent.trim();
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

function place(location) {
  if (location === null || location === undefined) return "";
  return typeof location === "object" ? `(${location.x_pos}, ${location.y_pos})` : location;
}

function actionText(output) {
  const where = place(output.location);
  return `${ACTION_WORDS[output.action] ?? output.action}${where && ` ${where}`}`;
}

const folded = (title, text, more) =>
  text ? h("details", more, h("summary", {}, title), h("pre", { dir: "auto" }, text)) : null;

function usageText(usage) {
  const parts = [`${short(usage.input_tokens)} in, ${short(usage.output_tokens)} out tokens`];
  for (const [name, value] of Object.entries(usage)) {
    if (typeof value !== "number" || !value || ["input_tokens", "output_tokens"].includes(name)) continue;
    if (name === "requests" && value === 1) continue;
    parts.push(`${short(value)} ${name.replaceAll("_", " ")}`);
  }
  for (const [name, value] of Object.entries(usage.details ?? {}))
    parts.push(`${short(value)} ${name.replaceAll("_", " ")}`);
  return parts.join(" · ");
}

function said(step) {
  if (step.kind === "game_action") return h("p", { class: "action" }, actionText(step.output));
  if (typeof step.output?.message === "string") return h("p", { class: "message", dir: "auto" }, step.output.message);
  if (step.kind === "do_nothing") return h("p", { class: "nothing" }, "does nothing");
  return folded("Output", JSON.stringify(step.output, null, 1), { open: true });
}

function bubble(step, index, go) {
  const role = step.role === "defuser" ? "Defuser" : "Expert";
  const errors = step.errors.map((error) => h("li", {}, `⚠ ${error}`));
  const seconds =
    step.kind !== "reflection" && step.requested_at !== null && step.timestamp > step.requested_at
      ? `asked at ${clock(step.requested_at)}`
      : null;
  return h(
    "li",
    { class: `step ${step.role}${step.errors.length ? " has-errors" : ""}`, "data-index": index },
    h(
      "button",
      { type: "button", class: "head", onclick: () => go(index) },
      h("b", {}, role),
      " ",
      h("bdi", {}, step.player),
      h(
        "span",
        { class: "when" },
        step.kind === "reflection" ? "after the game" : `turn ${step.step} · ${clock(step.timestamp)}`,
      ),
    ),
    said(step),
    errors.length ? h("ul", { class: "errors", "aria-label": "Errors" }, errors) : null,
    folded("Thoughts", step.thoughts, { class: "thoughts" }),
    folded("Raw output", step.raw),
    folded("Given to the player", step.given),
    h(
      "p",
      { class: "usage" },
      [usageText(step.usage), seconds, step.truncations ? `${step.truncations} dropped from the history` : null]
        .filter(Boolean)
        .join(" · "),
    ),
  );
}

/** The viewer of one game; onstep is told the number of the step (from 1) that is shown. */
class Viewer {
  constructor(root, onstep) {
    this.root = root;
    this.onstep = onstep;
    this.timer = null;
    this.speed = 1;
    this.steps = [];
    this.index = 0;
    document.addEventListener("keydown", (event) => this.key(event));
  }

  /** Show a game at a step; what is shown already is kept. */
  async open(game, step, neighbours) {
    if (this.game !== game) {
      this.stop();
      this.game = game;
      this.steps = [];
      this.root.replaceChildren(this.head(game, neighbours), h("p", {}, "Loading …"));
      if (game.dialogue === null) {
        this.root.lastChild.replaceWith(
          h(
            "p",
            { class: "note" },
            "The dialogue of this game is not in this page: it was left out to keep the page small.",
          ),
        );
        return;
      }
      const steps = await loadDialogue(game.dialogue);
      if (this.game !== game) return;
      this.steps = steps;
      this.index = -1;
      this.build(game, neighbours);
    }
    const index = Math.min(Math.max(step - 1, 0), this.steps.length - 1);
    if (index !== this.index) this.show(index);
  }

  close() {
    this.stop();
    this.game = null;
    this.steps = [];
    this.root.replaceChildren();
  }

  head(game, { previous, next, place: where }) {
    const link = (other, text) =>
      other ? h("a", { href: other, class: "button" }, text) : h("span", { class: "button off" }, text);
    const facts = [
      ["Suite", `${game.suite}, revision ${game.revision}`],
      ["Mission", `${game.mission_set}, seed ${game.seed}, attempt ${game.attempt}`],
      ["Modules", `${game.solved} of ${game.n_modules} solved: ${game.modules.join(", ")}`],
      ["Defuser", game.defuser + (game.defuser_has_manual ? ", has the manual" : "")],
      ["Expert", game.expert ?? "none"],
      ["Style", game.style],
      ["Time left", `${clock(game.seconds_left)} of ${clock(game.time_limit)}`],
      ["Strikes", String(game.strikes)],
      ...(game.tags.length ? [["Tags", game.tags.join(", ")]] : []),
    ];
    return h(
      "header",
      {},
      h(
        "div",
        { class: "row" },
        h(
          "h2",
          {},
          "Game ",
          h("span", { class: "id" }, game.id.slice(0, 8)),
          " ",
          outcomeTag(game.outcome),
          game.valid ? null : h("span", { class: "flag" }, game.crashed ? " crashed" : " does not count"),
        ),
        h(
          "nav",
          { "aria-label": "Games" },
          link(previous, "← Previous game"),
          h("span", { class: "n" }, where),
          link(next, "Next game →"),
        ),
      ),
      h(
        "dl",
        { class: "facts" },
        facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, h("bdi", {}, value)))),
      ),
    );
  }

  build(game, neighbours) {
    const go = (index) => {
      this.stop();
      this.show(index);
    };
    const control = (name, action) =>
      h("button", { type: "button", "aria-label": name, title: name, onclick: action }, icon(name));
    this.slider = h("input", {
      type: "range",
      min: 1,
      max: this.steps.length,
      step: 1,
      "aria-label": "Step",
      oninput: () => go(Number(this.slider.value) - 1),
    });
    this.playButton = control("Play", () => this.toggle());
    this.status = h("output", { class: "status", "aria-live": "polite" });
    this.list = h(
      "ol",
      { class: "dialogue", "aria-label": "Dialogue" },
      this.steps.map((step, i) => bubble(step, i, go)),
    );
    this.bomb = h("div", { class: "bomb" });
    const speed = h(
      "select",
      {
        "aria-label": "Speed",
        onchange: () => {
          this.speed = Number(speed.value);
          if (this.timer) this.play();
        },
      },
      SPEEDS.map((value) => h("option", { value, selected: value === this.speed }, `${value} ×`)),
    );
    const controls = h(
      "div",
      { class: "controls", role: "toolbar", "aria-label": "Steps" },
      control("First step", () => go(0)),
      control("Step back", () => go(this.index - 1)),
      this.playButton,
      control("Step forward", () => go(this.index + 1)),
      control("Last step", () => go(this.steps.length - 1)),
      this.slider,
      speed,
      this.status,
      h("span", { class: "hint keys" }, "Keys: ← → Home End, Space plays"),
    );
    this.root.replaceChildren(
      this.head(game, neighbours),
      h("div", { class: "stage" }, controls, this.list, this.bomb),
    );
  }

  show(index) {
    if (!this.steps.length || index < 0 || index >= this.steps.length) return;
    this.index = index;
    const step = this.steps[index];
    const items = [...this.list.children];
    items.forEach((item, i) => {
      item.classList.toggle("current", i === index);
      item.classList.toggle("later", i > index);
      if (i === index) item.setAttribute("aria-current", "step");
      else item.removeAttribute("aria-current");
    });
    // The list alone scrolls: scrollIntoView would move the page as well.
    const item = items[index];
    this.list.scrollTop = item.offsetTop - this.list.offsetTop - (this.list.clientHeight - item.clientHeight) / 2;
    this.slider.value = index + 1;
    const who = step.role === "defuser" ? "Defuser" : "Expert";
    this.status.textContent = `Step ${index + 1} of ${this.steps.length}: ${who} at ${clock(step.timestamp)}`;
    this.drawBomb(index);
    this.onstep(index + 1);
  }

  drawBomb(index) {
    const known = this.steps.slice(0, index + 1).findLastIndex((step) => step.bomb);
    const first = this.steps.findIndex((step) => step.bomb);
    const at = known >= 0 ? known : first;
    if (at < 0) {
      this.bomb.replaceChildren(h("p", { class: "note" }, "This record holds no state of the bomb."));
      return;
    }
    try {
      this.bomb.replaceChildren(...this.drawings(at, at === index));
    } catch {
      this.bomb.replaceChildren(
        h("p", { class: "note" }, "The state of the bomb has another form than this page can draw."),
      );
    }
  }

  /** The bomb at a step of the Defuser; its action is marked if that step is the one shown. */
  drawings(at, isShown) {
    const { bomb, seen, output, kind } = this.steps[at];
    const final = !this.steps.slice(at + 1).some((step) => step.bomb);
    // The last state is the one after the game, so what was seen before it no longer fits.
    const look = final ? null : seen;
    const chosen = !final && isShown && kind === "game_action" ? place(output.location) : null;
    const closeUp = drawCloseUp(bomb, look, chosen);
    const when = final ? "at the end of the game" : `as the Defuser saw it in turn ${this.steps[at].step}`;
    return [
      h("figure", {}, h("figcaption", {}, `Front and narrow sides, ${when}`), drawFront(bomb, look, chosen)),
      h(
        "div",
        { class: "pair" },
        h("figure", {}, h("figcaption", {}, "Back"), drawBack(bomb, look, chosen)),
        h("figure", { class: "close-up" }, h("figcaption", {}, closeUp ? "Close-up" : "No module in focus"), closeUp),
      ),
      h("details", { class: "words" }, h("summary", {}, "In words"), h("p", {}, bombText(bomb, look))),
    ];
  }

  key(event) {
    if (!this.steps.length || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.target.closest?.("input, select, textarea")) return;
    const steps = { ArrowLeft: this.index - 1, ArrowRight: this.index + 1, Home: 0, End: this.steps.length - 1 };
    if (event.key in steps) {
      this.stop();
      this.show(steps[event.key]);
    } else if (event.key === " " && !event.target.closest?.("button, a, summary")) this.toggle();
    else return;
    event.preventDefault();
  }

  toggle() {
    if (this.timer) this.stop();
    else this.play();
  }

  play() {
    this.stop();
    if (this.index === this.steps.length - 1) this.show(0);
    this.timer = setInterval(() => {
      this.show(this.index + 1);
      if (this.index === this.steps.length - 1) this.stop();
    }, 1500 / this.speed);
    this.nameButton("Pause");
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    if (this.playButton) this.nameButton("Play");
  }

  nameButton(name) {
    this.playButton.setAttribute("aria-label", name);
    this.playButton.title = name;
    this.playButton.replaceChildren(icon(name));
  }
}
