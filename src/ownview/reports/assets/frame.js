// What charts have in common: a drawing with axes, and a figure around it with a title, options and its table.

const HEIGHT = 300;

const LONGEST_NAME = 30;

/** A method's name as charts write it; tooltips and tables have it whole. */
const brief = (label) => (label.length > LONGEST_NAME ? `${label.slice(0, LONGEST_NAME - 1)}…` : label);

/** Pixels that the names beside a chart take. */
const nameRoom = (all) => Math.max(...all.map((one) => brief(one.label).length)) * 7.2;

const ARROWS = { up: "↑", down: "↓", left: "←", right: "→" };

/** An axis's label, and which way is better. */
const directed = (axis) => (axis.better ? `${axis.label}  (${ARROWS[axis.better]} better)` : axis.label);

/**
 * Axes, grid and labels. `x` and `y`: { scale, label, format, ticks, whole, better }; `whole`: ticks are whole numbers;
 * `better`: the way in which values are better, up, down, left or right. Returns the drawing.
 */
function axes(name, width, height, edge, x, y) {
  const root = canvas(name, width, height);
  const bottom = height - edge.bottom;
  const room = width - edge.left - edge.right;
  const upwards = y.ticks ?? y.scale.ticks(Math.max(2, Math.floor((bottom - edge.top) / 48)), y.whole ? 1 : 0);
  for (const value of distinctTicks(upwards, y.format)) {
    const at = y.scale(value);
    root.append(
      draw("line", { class: "gridline", x1: edge.left, x2: width - edge.right, y1: at, y2: at }),
      draw("text", { class: "tick", x: edge.left - 8, y: at + 4, "text-anchor": "end" }, y.format(value)));
  }
  for (const value of fittingTicks(x, room)) {
    const at = x.scale(value);
    root.append(
      draw("line", { class: "axis", x1: at, x2: at, y1: bottom, y2: bottom + 4 }),
      draw("text", { class: "tick", x: at, y: bottom + 18, "text-anchor": "middle" }, x.format(value)));
  }
  root.append(
    draw("line", { class: "axis", x1: edge.left, x2: width - edge.right, y1: bottom, y2: bottom }),
    draw("text", { x: edge.left + room / 2, y: height - 4, "text-anchor": "middle" }, directed(x)),
    draw("text", { x: edge.left - 8, y: 12, "text-anchor": edge.left > 60 ? "middle" : "start", dx: edge.left > 60 ? 0 : 8 - edge.left }, directed(y)));
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
 * shown, or a text that says why nothing is: then the figure is not there at all, unless the reader hid what it shows.
 * table(): { heads, rows }, or null.
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
  const save = saveButtons(host, () => text(title));
  const node = el("figure", { role: "group", "aria-labelledby": heading.id }, heading, words,
    options.childNodes.length ? options : null, host, el("div", { class: "below" }, table ? behind : null, save));

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
    node.hidden = false; // what is hidden has no width
    const width = Math.max(250, Math.round(host.clientWidth || node.clientWidth - 40 || 600));
    const shown = body(width, chosen);
    node.absent = typeof shown === "string" && typeof withEveryMethod(() => body(width, chosen)) === "string" ? shown : null;
    node.hidden = node.absent !== null;
    replace(host, typeof shown === "string" ? el("p", { class: "empty" }, shown) : shown);
    save.hidden = !host.querySelector("svg.chart");
    options.hidden = typeof shown === "string" && !picker?.options.length;
    if (table) {
      behind.hidden = typeof shown === "string";
      fillTable();
    }
  }
  node.update = update;
  node.host = host;
  node.called = () => text(title);
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
