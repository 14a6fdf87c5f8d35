// Drawings; elements are made by elements.js.

const SVG = "http://www.w3.org/2000/svg";

const draw = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/** An empty drawing that shrinks with the page, and never grows beyond its own pixels, so that texts keep their size. */
const canvas = (name, width, height) => draw("svg", {
  class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": name, style: { maxWidth: `${width}px` },
});

function replace(node, ...children) {
  node.replaceChildren();
  return fill(node, {}, children);
}

let lastId = 0;
const freshId = () => `o${++lastId}`;

/** A plain table: heads are texts, rows are lists of texts; numbers, and texts that begin with a digit, stand right. */
function plainTable(caption, heads, rows) {
  const numeric = heads.map((_, k) => k > 0 && rows.every((row) => /^[-–]?\d|^–$|^$/.test(String(row[k] ?? ""))));
  const side = (k) => (numeric[k] ? "n" : null);
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    el("table", { class: "plain" },
      el("caption", {}, caption),
      el("thead", {}, el("tr", {}, heads.map((head, k) => el("th", { scope: "col", class: side(k) }, head)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, k) =>
        k === 0 ? el("th", { scope: "row" }, cell) : el("td", { class: side(k) }, cell)))))));
}
