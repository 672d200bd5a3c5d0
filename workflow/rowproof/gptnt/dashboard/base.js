// Elements, text and numbers. Every text of the page goes through clean() and textContent; no markup is ever parsed.

const PAGE = JSON.parse(document.getElementById("page-data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const DASH = "–";

/** Text with what cannot be seen made visible: control characters, and marks that reorder or hide text. */
function clean(value) {
  return String(value)
    .replaceAll("\r\n", "\n")
    .replace(/[\u0000-\u0008\u000b-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(
      /[\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
      (c) => `⟨U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`,
    );
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : clean(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : clean(child));
  }
  return element;
}

/** An HTML element; attributes that start with "on" are listeners, children are nodes or text. */
function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

let svgCount = 0;

/** A drawing with a name and a description for those who do not see it. */
function figureSvg(width, height, title, description, ...children) {
  const id = `svg${++svgCount}`;
  return s(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-labelledby": `${id}t ${id}d` },
    s("title", { id: `${id}t` }, title),
    s("desc", { id: `${id}d` }, description),
    ...children,
  );
}

function count(n, noun) {
  return `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
}

/** A number with at most three significant digits, or whole. */
function short(value) {
  if (value === null || value === undefined) return DASH;
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const size = Math.abs(value);
  return value.toLocaleString("en", { maximumFractionDigits: size >= 100 ? 0 : size >= 10 ? 1 : 2 });
}

/** Seconds as minutes and seconds with tenths. */
function clock(seconds) {
  if (seconds === null || seconds === undefined) return DASH;
  const tenths = Math.floor(seconds * 10 + 1e-6);
  const rest = String(Math.floor(tenths / 10) % 60).padStart(2, "0");
  return `${Math.floor(tenths / 600)}:${rest}.${tenths % 10}`;
}

const OUTCOMES = ["solved", "timeout", "strikeout", "detonated", "incomplete"];
const OUTCOME_SIGNS = { solved: "✓", timeout: "◷", strikeout: "✗", detonated: "✹", incomplete: "…" };

function outcomeTag(outcome) {
  return h("span", { class: `outcome ${outcome}` }, `${OUTCOME_SIGNS[outcome] ?? "?"} ${outcome}`);
}
