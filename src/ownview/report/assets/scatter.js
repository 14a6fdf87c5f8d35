// Points with names that keep out of each other's way.

const SHAPES = [
  (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`,
  (r) => `M${-r * 0.88} ${-r * 0.88}H${r * 0.88}V${r * 0.88}H${-r * 0.88}Z`,
  (r) => `M0 ${-r * 1.15}L${r * 1.1} ${r * 0.8}H${-r * 1.1}Z`,
  (r) => `M0 ${-r * 1.25}L${r * 1.25} 0L0 ${r * 1.25}L${-r * 1.25} 0Z`,
];

const shape = (kind, r, attributes) => draw("path", { d: SHAPES[kind % SHAPES.length](r), ...attributes });

/** The mark of a variant, as legends and tables show it. */
function swatch(one) {
  return draw("svg", { width: 14, height: 14, viewBox: "-7 -7 14 14", "aria-hidden": "true" },
    shape(one.shape ?? 0, 5, { fill: one.colour }));
}

/**
 * points: [{ label, colour, shape, hollow, x, y, tip: () => content, words }]; x and y: { label, format, log, zero }.
 * diagonal: draw x = y, with equal axes.
 */
function scatterChart(name, width, points, x, y, { height = 320, diagonal = false, names = true } = {}) {
  const edge = { left: 52, right: 18, top: 26, bottom: 42 };
  const both = points.flatMap((one) => [one.x, one.y]);
  const [xLow, xHigh] = extent(diagonal ? both : points.map((one) => one.x), x);
  const [yLow, yHigh] = extent(diagonal ? both : points.map((one) => one.y), y);
  const across = (x.log ? logarithmic : linear)(xLow, xHigh, edge.left, width - edge.right);
  const up = (y.log ? logarithmic : linear)(yLow, yHigh, height - edge.bottom, edge.top);
  const root = axes(name, width, height, edge, { ...x, scale: across }, { ...y, scale: up });
  if (diagonal) {
    root.append(draw("line", { class: "axis", x1: across(xLow), y1: up(yLow), x2: across(xHigh), y2: up(yHigh), "stroke-dasharray": "4 4", opacity: 0.7 }));
  }
  const placed = points.map((one) => ({ ...one, at: [across(one.x), up(one.y)] }));
  if (names) nameBeside(root, placed, width, height, edge);
  for (const one of placed) {
    const mark = shape(one.shape, 6, {
      transform: `translate(${one.at[0].toFixed(1)} ${one.at[1].toFixed(1)})`, tabindex: 0, role: "img", "aria-label": one.words,
      fill: one.hollow ? "var(--panel)" : one.colour, stroke: one.hollow ? one.colour : "var(--panel)", "stroke-width": one.hollow ? 2 : 1.2,
    });
    root.append(tip(mark, one.tip));
  }
  return root;
}

/** Each name goes to the first of four sides where it meets no point and no other name; else hovering tells it. */
function nameBeside(root, placed, width, height, edge) {
  const taken = placed.map(({ at: [x, y] }) => [x - 8, y - 8, x + 8, y + 8]);
  const meets = (a) => taken.some((b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]);
  for (const one of placed.filter((each) => each.label)) {
    const [x, y] = one.at;
    const long = nameRoom([one]) + 4;
    const sides = [
      [x + 10, y + 4, "start", [x + 9, y - 7, x + 10 + long, y + 8]],
      [x - 10, y + 4, "end", [x - 10 - long, y - 7, x - 9, y + 8]],
      [x, y - 12, "middle", [x - long / 2, y - 24, x + long / 2, y - 9]],
      [x, y + 21, "middle", [x - long / 2, y + 9, x + long / 2, y + 24]],
    ];
    const side = sides.find(([, , , box]) =>
      box[0] >= edge.left && box[2] <= width - 2 && box[1] >= 14 && box[3] <= height - edge.bottom && !meets(box));
    if (!side) continue;
    taken.push(side[3]);
    root.append(draw("text", { class: "label halo", x: side[0], y: side[1], "text-anchor": side[2], style: { fill: one.colour } }, brief(one.label)));
  }
}
