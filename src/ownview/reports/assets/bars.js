// Small panels for groups of users, and rows that add up to one.

/** values: [{ name, short, mean, low, high, tip }], one a group; `most`: the common top of all panels; y as for axes. */
function groupPanel(name, width, values, most, look, y) {
  const edge = { left: 36, right: 4, top: 20 };
  const tight = Math.max(...values.map((one) => one.short.length)) * 5.8 + 3 > (width - edge.left - edge.right) / values.length;
  const height = tight ? 151 : 138; // names that do not fit beside each other stand on two lines in turn
  const bottom = 118;
  const up = linear(0, most * 1.04, bottom, edge.top);
  const slot = (width - edge.left - edge.right) / values.length;
  const thick = Math.min(26, slot * 0.6);
  const small = { fontSize: slot < 40 ? "9.5px" : "10.5px" };
  const root = canvas(name, width, height);
  root.append(draw("text", { class: "tick", x: 0, y: 10, style: small }, directed(y)));
  for (const tick of distinctTicks(up.ticks(4), y.format)) {
    root.append(
      draw("line", { class: "gridline", x1: edge.left, x2: width - edge.right, y1: up(tick), y2: up(tick) }),
      draw("text", { class: "tick", x: edge.left - 5, y: up(tick) + 4, "text-anchor": "end", style: small }, y.format(tick)));
  }
  values.forEach((one, k) => {
    const middle = edge.left + slot * (k + 0.5);
    const zone = draw("rect", { x: middle - slot / 2, y: 0, width: slot, height, fill: "transparent", tabindex: 0, role: "img", "aria-label": `${one.name}: ${share(one.mean)}, ${share(one.low)} to ${share(one.high)}` });
    root.append(
      draw("rect", { x: middle - thick / 2, y: up(one.mean), width: thick, height: Math.max(0.8, bottom - up(one.mean)), fill: look.colour, rx: 1.5, opacity: 0.75 }),
      draw("path", { class: "whisker", d: `M${middle} ${up(one.low)}V${up(one.high)}M${middle - 3} ${up(one.low)}h6M${middle - 3} ${up(one.high)}h6` }),
      draw("text", { class: "tick", x: middle, y: bottom + (tight && k % 2 ? 28 : 15), "text-anchor": "middle", style: small }, one.short),
      tip(zone, one.tip));
  });
  for (const level of levels(y)) root.append(draw("line", { class: "chance", x1: edge.left, x2: width - edge.right, y1: up(level), y2: up(level) }));
  root.append(draw("line", { class: "axis", x1: edge.left, x2: width - edge.right, y1: bottom, y2: bottom }));
  return root;
}

/** rows: [{ label, mark, parts: [...] }], each adding up to 1; names: of the parts. */
function stackedRows(name, width, rows, names, colourOf) {
  const label = Math.max(80, 24 + nameRoom(rows));
  const narrow = width < 430;
  const each = narrow ? 42 : 30;
  const left = narrow ? 0 : label;
  const height = rows.length * each + 26;
  const across = linear(0, 1, left, width - 4);
  const root = canvas(name, width, height);
  rows.forEach((row, k) => {
    const top = k * each + (narrow ? 17 : 3);
    root.append(draw("text", { x: 0, y: narrow ? top - 4 : top + 16, class: "label", style: { fill: row.colour ?? "var(--ink)" } }, brief(row.label)));
    let sum = 0;
    row.parts.forEach((part, p) => {
      const from = across(sum);
      sum += part;
      const piece = draw("rect", {
        x: from, y: top, width: Math.max(0, across(sum) - from - 1), height: 22, ...colourOf(p), rx: 1.5,
        tabindex: part > 0 ? 0 : null, role: "img", "aria-label": `${row.label}, ${names[p]}: ${percent(part)}`,
      });
      root.append(tip(piece, () => tipLines(row.label, `${names[p]}: ${percent(part)}`)));
      if (across(sum) - from > 40) {
        root.append(draw("text", { class: "tick", x: (from + across(sum)) / 2, y: top + 15, "text-anchor": "middle", style: { fontSize: "11px", pointerEvents: "none", fill: colourOf(p).ink } }, percent(part)));
      }
    });
  });
  for (const at of [0, 0.25, 0.5, 0.75, 1]) {
    root.append(draw("text", { class: "tick", x: across(at), y: height - 6, "text-anchor": at === 0 ? "start" : at === 1 ? "end" : "middle" }, `${100 * at} %`));
  }
  return root;
}
