// Bars: one small panel a variant for groups, and rows that add up to one.

/** values: [{ name, value, tip }]; `most`: the common top of all panels. */
function barPanel(name, width, values, most, colour, format) {
  const height = 112;
  const edge = { top: 16, bottom: 18 };
  const up = linear(0, most, height - edge.bottom, edge.top);
  const slot = width / values.length;
  const thick = Math.min(34, slot * 0.66);
  const small = { fontSize: slot < 38 ? "9.5px" : "10.5px" };
  const root = canvas(name, width, height);
  values.forEach((one, k) => {
    const middle = slot * (k + 0.5);
    const top = up(one.value);
    const bar = draw("rect", { x: middle - thick / 2, y: top, width: thick, height: Math.max(0.8, height - edge.bottom - top), fill: colour, rx: 1.5, opacity: 0.9 });
    const zone = draw("rect", { x: slot * k, y: 0, width: slot, height, fill: "transparent", tabindex: 0, role: "img", "aria-label": `${one.name}: ${format(one.value)}` });
    root.append(bar,
      draw("text", { class: "tick", x: middle, y: top - 4, "text-anchor": "middle", style: { ...small, fill: "var(--ink)" } }, format(one.value)),
      draw("text", { class: "tick", x: middle, y: height - 4, "text-anchor": "middle", style: small }, one.short),
      tip(zone, one.tip));
  });
  root.append(draw("line", { class: "axis", x1: 0, x2: width, y1: height - edge.bottom, y2: height - edge.bottom }));
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
