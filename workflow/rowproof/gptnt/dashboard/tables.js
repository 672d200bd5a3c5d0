// Tables that sort by a click on a column's head. The order is kept in the URL, see app.js.

const RATE = (m) => m.value.toLocaleString("en", { style: "percent", maximumFractionDigits: 1 });

/** An estimate of the metrics with its interval; its value is null where there is nothing to take it of. */
function figureCell(measure, format) {
  if (!measure || measure.value === null) return h("span", { class: "none" }, "n/a");
  const write = format === "rate" ? (value) => RATE({ value }) : short;
  const hasInterval = measure.low !== null && measure.low !== undefined;
  const parts = [measure.method, `n = ${measure.n}`];
  if (measure.seed !== null) parts.push(`seed ${measure.seed}`);
  if (measure.few_missions) parts.push("few missions");
  const title = parts.join(", ");
  return h(
    "span",
    { title, class: "figure" },
    h("b", {}, write(measure.value)),
    hasInterval && h("span", { class: "interval" }, ` ${write(measure.low)} ${DASH} ${write(measure.high)}`),
    h("span", { class: "n" }, ` n = ${measure.n}`, measure.few_missions && h("span", { class: "flag" }, " ⚠")),
  );
}

function sortKey(row, column) {
  const value = row[column.key];
  if (column.kind === "rate" || column.kind === "mean") return value?.value ?? null;
  return Array.isArray(value) ? value.join(", ") : value;
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  const [x, y] = [String(a), String(b)];
  return x < y ? -1 : x > y ? 1 : 0;
}

/** Rows by one column; rows without a value come last in either direction, equal ones keep their order. */
function sorted(rows, column, descending) {
  const keyed = rows.map((row) => [sortKey(row, column), row]);
  const missing = ([key]) => key === null || key === undefined;
  keyed.sort((a, b) => {
    if (missing(a) || missing(b)) return missing(a) - missing(b);
    return descending ? compare(b[0], a[0]) : compare(a[0], b[0]);
  });
  return keyed.map(([, row]) => row);
}

function cell(row, column) {
  const value = row[column.key];
  if (column.draw) return h("td", { class: column.kind === "count" && "number" }, column.draw(row));
  if (column.kind === "rate" || column.kind === "mean")
    return h("td", { class: "number" }, figureCell(value, column.kind));
  if (column.kind === "share" && typeof value === "number") return h("td", { class: "number" }, RATE({ value }));
  if (column.kind === "seconds") return h("td", { class: "number" }, clock(value));
  if (typeof value === "number") return h("td", { class: "number" }, short(value));
  const text = Array.isArray(value) ? value.join(", ") : (value ?? DASH);
  return h("td", { class: Array.isArray(value) ? "list" : "text", title: text }, h("bdi", {}, text));
}

const STEP = 100;

/**
 * A table in a box that scrolls sideways.
 *
 * id: its name in the URL; columns: {key, label, kind, title, draw}; sort: "key" or "key.desc" or null;
 * onsort: called with the new sort.
 */
function makeTable({ id, caption, columns, rows, sort, onsort }) {
  const [key, direction] = (sort ?? "").split(".");
  const chosen = columns.find((column) => column.key === key);
  const descending = direction === "desc";
  const ordered = chosen ? sorted(rows, chosen, descending) : rows;
  const heads = columns.map((column) => {
    const active = column === chosen;
    const next = active && !descending ? `${column.key}.desc` : column.key;
    const order = active ? (descending ? "descending" : "ascending") : "none";
    const sign = active ? (descending ? " ▼" : " ▲") : "";
    const numeric = ["rate", "mean", "share", "seconds", "count"].includes(column.kind);
    return h(
      "th",
      { scope: "col", "aria-sort": order, class: numeric && "number", title: column.title },
      h(
        "button",
        { type: "button", "data-sort": `${id}:${column.key}`, onclick: () => onsort(next) },
        column.label,
        sign,
      ),
    );
  });
  const body = h("tbody");
  const more = h("button", { type: "button", class: "more" });
  let shown = 0;
  const show = () => {
    const next = ordered.slice(shown, shown + STEP);
    body.append(
      ...next.map((row) =>
        h(
          "tr",
          {},
          columns.map((column) => cell(row, column)),
        ),
      ),
    );
    shown += next.length;
    more.hidden = shown >= ordered.length;
    more.textContent = `Show more: ${count(ordered.length - shown, "row")} left`;
  };
  more.addEventListener("click", show);
  show();
  if (!ordered.length)
    body.append(h("tr", {}, h("td", { colspan: columns.length, class: "none" }, "Nothing matches the filters.")));
  return h(
    "div",
    { class: "table", id: `table-${id}` },
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
      h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, heads)), body),
    ),
    more,
  );
}
