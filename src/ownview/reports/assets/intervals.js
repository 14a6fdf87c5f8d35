// Means with their intervals, one row a method: what the table says, for the eye.

/** rows: [{ label, colour, shape, mean, low, high, tip }]; x as for axes, with `chance`: a level to mark, or null. */
function intervalChart(name, width, rows, x) {
  const narrow = width < 420;
  const each = narrow ? 36 : 26;
  const left = narrow ? 8 : 20 + nameRoom(rows);
  const edge = { left, right: 16, top: levels(x).length ? (narrow ? 26 : 18) : 10, bottom: 42 };
  const height = rows.length * each + edge.top + edge.bottom;
  const values = [...rows.flatMap((row) => [row.low, row.high]), ...levels(x)];
  const [low, high] = extent(values, { zero: true, log: x.log });
  const across = (x.log ? logarithmic : linear)(low, high, edge.left, width - edge.right);
  const ticks = fittingTicks({ ...x, scale: across }, width - edge.left - edge.right);
  const root = axes(name, width, height, edge, { ...x, scale: across, ticks }, { label: "", format: String, ticks: [] });
  for (const tick of ticks) {
    root.append(draw("line", { class: "gridline", x1: across(tick), x2: across(tick), y1: edge.top, y2: height - edge.bottom }));
  }
  for (const level of levels(x)) {
    root.append(
      draw("line", { class: "chance", x1: across(level), x2: across(level), y1: edge.top - 6, y2: height - edge.bottom }),
      draw("text", { class: "tick halo", x: across(level) + 4, y: edge.top + 2 }, "chance"));
  }
  rows.forEach((row, k) => {
    const at = edge.top + (k + (narrow ? 0.72 : 0.5)) * each;
    root.append(
      draw("text", narrow ? { class: "label halo", x: left, y: at - 10 } : { class: "label", x: left - 10, y: at + 4, "text-anchor": "end" }, brief(row.label)),
      draw("line", { x1: across(row.low), x2: across(row.high), y1: at, y2: at, stroke: row.colour, "stroke-width": 2.4, "stroke-linecap": "round", opacity: 0.55 }),
      tip(shape(row.shape, 5.5, { transform: `translate(${across(row.mean).toFixed(1)} ${at})`, fill: row.colour, stroke: "var(--panel)", "stroke-width": 1, tabindex: 0, role: "img", "aria-label": `${row.label}: ${share(row.mean)}, ${share(row.low)} to ${share(row.high)}` }), row.tip));
  });
  return root;
}
