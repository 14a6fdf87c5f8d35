// What charts have in common: a drawing with axes, and a figure around it with a title, options and its table.

const HEIGHT = 300;

const LONGEST_NAME = 30;

/** A method's name as charts write it; tooltips and tables have it whole. */
const brief = (label) => (label.length > LONGEST_NAME ? `${label.slice(0, LONGEST_NAME - 1)}…` : label);

/** Pixels that the names beside a chart take. */
const nameRoom = (all) => Math.max(...all.map((one) => brief(one.label).length)) * 7.2;

/** Axes, grid and labels. `x` and `y`: { scale, label, format, ticks }. Returns the drawing. */
function axes(name, width, height, edge, x, y) {
  const root = canvas(name, width, height);
  const bottom = height - edge.bottom;
  const room = width - edge.left - edge.right;
  for (const value of y.ticks ?? y.scale.ticks(Math.max(2, Math.floor((bottom - edge.top) / 48)))) {
    const at = y.scale(value);
    root.append(
      draw("line", { class: "gridline", x1: edge.left, x2: width - edge.right, y1: at, y2: at }),
      draw("text", { class: "tick", x: edge.left - 8, y: at + 4, "text-anchor": "end" }, y.format(value)));
  }
  let free = -Infinity;
  for (const value of x.ticks ?? x.scale.ticks(Math.max(2, Math.floor(room / 80)))) {
    const at = x.scale(value);
    const text = x.format(value);
    const half = text.length * 3.4;
    if (at - half < free) continue; // a label that would run into the one before it
    free = at + half + 6;
    root.append(
      draw("line", { class: "axis", x1: at, x2: at, y1: bottom, y2: bottom + 4 }),
      draw("text", { class: "tick", x: at, y: bottom + 18, "text-anchor": "middle" }, text));
  }
  root.append(
    draw("line", { class: "axis", x1: edge.left, x2: width - edge.right, y1: bottom, y2: bottom }),
    draw("text", { x: edge.left + room / 2, y: height - 4, "text-anchor": "middle" }, x.label),
    draw("text", { x: edge.left - 8, y: 12, "text-anchor": edge.left > 60 ? "middle" : "start", dx: edge.left > 60 ? 0 : 8 - edge.left }, y.label));
  return root;
}

/** Moves places apart until neighbours are `gap` from each other, inside [low, high]; keeps their order. */
function spread(wanted, gap, low, high) {
  const order = wanted.map((_, k) => k).sort((a, b) => wanted[a] - wanted[b]);
  const found = [...wanted];
  let least = low;
  for (const k of order) {
    found[k] = Math.max(found[k], least);
    least = found[k] + gap;
  }
  let most = high;
  for (const k of order.reverse()) {
    found[k] = Math.min(found[k], most);
    most = found[k] - gap;
  }
  return found;
}

const figures = [];

/**
 * A figure that draws itself again when what is chosen, or its width, changes.
 *
 * title, about: texts, or functions that return them. toggles: { name: { label, on } }. body(width, options): what is
 * shown, or a text that says why nothing is. table(): { heads, rows }, or null.
 */
function figure({ title, about, toggles = {}, choices = null, body, table }) {
  const text = (one) => (typeof one === "function" ? one() : one);
  const chosen = Object.fromEntries(Object.entries(toggles).map(([name, { on = false }]) => [name, on]));
  const host = el("div", { class: "host" });
  const heading = el("h3", { id: freshId() });
  const words = el("p");
  const options = el("div", { class: "options" }, Object.entries(toggles).map(([name, { label }]) =>
    el("label", { class: "check" }, el("input", {
      type: "checkbox", name, checked: chosen[name],
      onchange: (event) => { chosen[name] = event.target.checked; update(); },
    }), label)));
  const picker = choices ? el("select", { onchange: () => update() }) : null;
  if (picker) options.append(el("label", { class: "check" }, el("span", {}, choices.label), picker));
  const behind = el("details", { ontoggle: () => fillTable() }, el("summary", {}, "The numbers as a table"), el("div"));
  const node = el("figure", { role: "group", "aria-labelledby": heading.id }, heading, words,
    options.childNodes.length ? options : null, host, table ? behind : null);

  function fillChoices() {
    const list = choices.list();
    const before = picker.value;
    replace(picker, list.map(([value, label]) => el("option", { value }, label)));
    if (list.some(([value]) => String(value) === before)) picker.value = before;
    chosen.choice = picker.value;
  }
  function fillTable() {
    if (!behind.open) return;
    const known = table(chosen);
    replace(behind.lastElementChild, known ? plainTable(text(title), known.heads, known.rows) : "There are none.");
  }
  function update() {
    replace(heading, text(title));
    replace(words, text(about));
    if (picker) fillChoices();
    const width = Math.max(250, Math.round(host.clientWidth || node.clientWidth - 40 || 600));
    const shown = body(width, chosen);
    replace(host, typeof shown === "string" ? el("p", { class: "empty" }, shown) : shown);
    options.hidden = typeof shown === "string" && !picker?.options.length;
    if (table) {
      behind.hidden = typeof shown === "string";
      fillTable();
    }
  }
  node.update = update;
  node.host = host;
  figures.push(node);
  return node;
}

const widths = new WeakMap();
const resized = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    const width = Math.round(contentRect.width);
    if (width && widths.get(target) !== width) {
      widths.set(target, width);
      target.closest("figure").update();
    }
  }
});
