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
 * points: [{ label, colour, shape, hollow, x, y, tip: () => content, words }]; x and y as for axes, y with
 * `chance`: a level to draw, or null. diagonal: draw x = y, with equal axes.
 */
function scatterChart(name, width, points, x, y, { height = 320, diagonal = false, names = true } = {}) {
  const edge = { left: 52, right: 18, top: 26, bottom: 42 };
  const both = points.flatMap((one) => [one.x, one.y]);
  const [xLow, xHigh] = extent(diagonal ? both : points.map((one) => one.x), x);
  const [yLow, yHigh] = extent(diagonal ? both : [...points.map((one) => one.y), ...levels(y)], y);
  const across = (x.log ? logarithmic : linear)(xLow, xHigh, edge.left, width - edge.right);
  const up = (y.log ? logarithmic : linear)(yLow, yHigh, height - edge.bottom, edge.top);
  const root = axes(name, width, height, edge, { ...x, scale: across }, { ...y, scale: up });
  if (diagonal) {
    root.append(draw("line", { class: "axis", x1: across(xLow), y1: up(yLow), x2: across(xHigh), y2: up(yHigh), "stroke-dasharray": "4 4", opacity: 0.7 }));
  }
  if (levels(y).length) chanceLevel(root, up(y.chance), edge, width);
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

const RING = 16; // directions that a name may stand in, seen from its point

/** Places beside a point where its name may stand, the nearest first: [x, y, box, far], x and y of the text's middle. */
function placesBeside([x, y], long) {
  const near = [[1, 0], [-1, 0], [0, -1], [0, 1]].map(([right, down]) => [x + right * (11 + long / 2), y + down * 17]);
  const ring = (far) => Array.from({ length: RING }, (_, k) => {
    const angle = (2 * Math.PI * k) / RING;
    return [x + Math.cos(angle) * (far + long / 2), y + Math.sin(angle) * far];
  });
  const boxed = (far) => ([mx, my]) => [mx, my, [mx - long / 2, my - 8, mx + long / 2, my + 7], far];
  return [...near.map(boxed(false)), ...[26, 42, 60, 80, 104, 130, 160, 200].flatMap((far) => ring(far).map(boxed(true)))];
}

/** Each name goes to the nearest place where it meets no point and no other name; from afar a line leads to it. */
function nameBeside(root, placed, width, height, edge) {
  const taken = placed.map(({ at: [x, y] }) => [x - 8, y - 8, x + 8, y + 8]);
  const meets = (a) => taken.filter((b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]).length;
  const inside = (box) => box[0] >= edge.left && box[2] <= width - 2 && box[1] >= 14 && box[3] <= height - edge.bottom;
  for (const one of placed.filter((each) => each.label)) {
    const free = placesBeside(one.at, nameRoom([one]) + 2).filter(([, , box]) => inside(box));
    const least = Math.min(...free.map(([, , box]) => meets(box)));
    const found = free.find(([, , box]) => meets(box) === least);
    if (!found) continue; // a drawing narrower than the name
    const [x, y, box, far] = found;
    taken.push(box);
    if (far) {
      const end = Math.max(box[0], Math.min(one.at[0], box[2]));
      root.append(draw("line", { class: "leader", x1: one.at[0], y1: one.at[1], x2: end, y2: y > one.at[1] ? box[1] : box[3], stroke: one.colour }));
    }
    root.append(draw("text", { class: "label halo", x: x.toFixed(1), y: (y + 4).toFixed(1), "text-anchor": "middle", style: { fill: one.colour } }, brief(one.label)));
  }
}
