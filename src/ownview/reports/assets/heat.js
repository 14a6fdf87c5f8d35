// Matrices as shades of one colour, and clouds of points.

/** matrix [rows][columns]; names of both; `format` for the values. The darkest shade is the largest value. */
function heatMap(name, width, matrix, rowNames, columnNames, { format = tidy, low = 0, high = null, values = false } = {}) {
  const most = high ?? Math.max(...matrix.flat(), 1e-12);
  const left = Math.min(110, 14 + Math.max(...rowNames.map((one) => one.length)) * 7);
  const cell = (width - left - 2) / columnNames.length;
  const tall = Math.min(44, Math.max(24, cell));
  const sparse = Math.max(1, Math.ceil((Math.max(...columnNames.map((one) => one.length)) * 7 + 6) / cell));
  const height = rowNames.length * tall + 24;
  const root = canvas(name, width, height);
  matrix.forEach((row, r) => {
    root.append(draw("text", { x: left - 6, y: r * tall + tall / 2 + 4, "text-anchor": "end", class: "tick" }, rowNames[r]));
    row.forEach((value, c) => {
      const depth = Math.max(0, Math.min(1, (value - low) / (most - low || 1)));
      const box = draw("rect", {
        x: left + c * cell, y: r * tall, width: Math.max(1, cell - 1.5), height: tall - 1.5, rx: 1.5,
        fill: "var(--c0)", "fill-opacity": (0.05 + 0.95 * depth).toFixed(3),
      });
      root.append(tip(box, () => tipLines(`${rowNames[r]} × ${columnNames[c]}`, format(value))));
      if (values && cell > 44) {
        root.append(draw("text", { class: "tick", x: left + (c + 0.5) * cell, y: r * tall + tall / 2 + 4, "text-anchor": "middle", style: { pointerEvents: "none", fontSize: "11px", fill: depth > 0.5 ? "var(--panel)" : "var(--ink)" } }, format(value)));
      }
    });
  });
  columnNames.forEach((one, c) => c % sparse === 0 && root.append(
    draw("text", { x: left + (c + 0.5) * cell, y: height - 6, "text-anchor": "middle", class: "tick" }, one)));
  return root;
}

const MARKS = [
  { name: "other items", colour: "var(--muted)", draw: (x, y) => `M${x - 1.5} ${y}a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0 -3 0` },
  { name: "items the user has", colour: "var(--c1)", draw: (x, y) => `M${x - 3.4} ${y}h6.8M${x} ${y - 3.4}v6.8` },
  { name: "held-out items", colour: "var(--c0)", draw: (x, y) => `M${x} ${y - 5.5}l5.5 5.5l-5.5 5.5l-5.5 -5.5Z` },
];

/** points [[x, y]] in the unit square; marks [0, 1 or 2]. One path for each mark keeps the page light. */
function cloud(name, points, marks) {
  const size = 300;
  const inside = (value) => (10 + value * (size - 20)).toFixed(1);
  const root = canvas(name, size, size);
  root.append(draw("rect", { width: size, height: size, rx: 6, fill: "var(--faint)", opacity: 0.5 }));
  MARKS.forEach((mark, kind) => {
    const d = points.filter((_, k) => marks[k] === kind).map(([x, y]) => mark.draw(Number(inside(x)), Number(inside(1 - y)))).join("");
    root.append(draw("path", {
      d, fill: kind === 1 ? "none" : mark.colour, stroke: kind === 0 ? "none" : kind === 2 ? "var(--panel)" : mark.colour,
      "stroke-width": kind === 1 ? 1.5 : 1, opacity: kind === 0 ? 0.55 : 1,
    }));
  });
  return root;
}

const markKey = () => el("ul", { class: "key" }, MARKS.map((mark, kind) => el("li", {},
  draw("svg", { width: 14, height: 14, viewBox: "-7 -7 14 14", "aria-hidden": "true" },
    draw("path", { d: mark.draw(0, 0), fill: kind === 1 ? "none" : mark.colour, stroke: kind === 1 ? mark.colour : "none", "stroke-width": 1.5 })),
  mark.name)));
