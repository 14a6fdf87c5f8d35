// Curves over a common x, with a cursor that reads all of them at once.

const BY_ROUND = { label: "round", format: (value) => String(Math.round(value)), whole: true };

/**
 * series: [{ label, colour, dash, marked, x: [...], y: [...] }]; `marked`: places on x that get a ring. x and y: { label,
 * format, log, zero, better, chance }; `chance`: a level to draw, or null.
 * `names`: whether curves carry their names at the right end, where there is room.
 */
function lineChart(name, width, series, x, y, { height = HEIGHT, names = true, step = false } = {}) {
  const named = names && width > 560 && series.length <= 14;
  const edge = { left: 52, right: named ? 22 + nameRoom(series) : 14, top: 26, bottom: 42 };
  const [yLow, yHigh] = extent([...series.flatMap((one) => one.y), ...levels(y)], { zero: y.zero, log: y.log });
  const [xLow, xHigh] = extent(series.flatMap((one) => one.x), { room: 0, log: x.log });
  const make = (log) => (log ? logarithmic : linear);
  const across = make(x.log)(xLow, xHigh, edge.left, width - edge.right);
  const up = make(y.log)(yLow, Math.min(yHigh, y.most ?? Infinity), height - edge.bottom, edge.top);
  const root = axes(name, width, height, edge, { ...x, scale: across }, { ...y, scale: up });
  if (levels(y).length) chanceLevel(root, up(y.chance), edge, width);
  const turns = inTurns(series.map((one) => path(one, across, up, step, y.log)));
  series.forEach((one, k) => root.append(draw("path", {
    class: "line", d: turns[k].d, stroke: one.colour, "stroke-dasharray": turns[k].dash ?? one.dash, "stroke-dashoffset": turns[k].offset,
  })));
  for (const one of series) root.append(...rings(one, across, up));
  if (named) nameEnds(root, series, across, up, edge, width, height);
  readAcross(root, series, across, up, edge, width, height, x, y);
  const equal = equalNames(series, turns);
  return [root, named || series.length < 2 ? null : lineKey(series), equal ? el("p", { class: "small" }, equal) : null];
}

const levels = (axis) => (Number.isFinite(axis.chance) ? [axis.chance] : []);

/** A level across the drawing that a random order reaches. */
function chanceLevel(root, at, edge, width) {
  root.append(
    draw("line", { class: "chance", x1: edge.left, x2: width - edge.right, y1: at, y2: at }),
    draw("text", { class: "tick halo", x: width - edge.right - 2, y: at - 4, "text-anchor": "end" }, "chance"));
}

const TURN = 9; // pixels that each of several equal curves is drawn for before the next has its turn

/** Curves that lie on each other take turns along their way, so that the last does not hide the others. */
function inTurns(paths) {
  return paths.map((d, k) => {
    const same = paths.flatMap((other, place) => (other === d && d ? [place] : []));
    if (same.length < 2) return { d, same };
    return { d, same, dash: `${TURN} ${TURN * (same.length - 1)}`, offset: -TURN * same.indexOf(k) };
  });
}

function equalNames(series, turns) {
  const groups = turns.filter((one, k) => one.same.length > 1 && one.same[0] === k);
  return groups.map((one) => `Equal, drawn in turns: ${one.same.map((k) => series[k].label).join(", ")}.`).join(" ");
}

/** Rings around the places of a curve that are marked, such as the round that was chosen. */
function rings(one, across, up) {
  return [...new Set(one.marked ?? [])].map((value) => {
    const k = one.x.reduce((best, x, place) => (Math.abs(x - value) < Math.abs(one.x[best] - value) ? place : best), 0);
    return Number.isFinite(one.y[k]) ? draw("circle", { class: "ring", cx: across(one.x[k]).toFixed(1), cy: up(one.y[k]).toFixed(1), r: 4.6, stroke: one.colour }) : "";
  });
}

/** What the lines are, below a chart where they carry no names. */
const lineKey = (series) => el("ul", { class: "key" }, series.map((one) => el("li", {}, lineSample(one), one.label)));

const lineSample = (one) => draw("svg", { width: 26, height: 10, viewBox: "0 0 26 10", "aria-hidden": "true" },
  draw("line", { x1: 1, x2: 25, y1: 5, y2: 5, stroke: one.colour, "stroke-width": 2.2, "stroke-dasharray": one.dash }));

function path(one, across, up, step, log) {
  let d = "";
  one.x.forEach((x, k) => {
    if (!Number.isFinite(one.y[k]) || (log && one.y[k] <= 0)) return;
    const at = `${across(x).toFixed(1)} ${up(one.y[k]).toFixed(1)}`;
    if (!d) d = `M${at}`;
    else d += step ? `H${across(x).toFixed(1)}V${up(one.y[k]).toFixed(1)}` : `L${at}`;
  });
  return d;
}

function nameEnds(root, series, across, up, edge, width, height) {
  const ends = series.map((one) => up(Math.max(one.y[one.y.length - 1], 1e-9)));
  const at = spread(ends, 14, edge.top, height - edge.bottom);
  series.forEach((one, k) => {
    const from = across(one.x[one.x.length - 1]);
    root.append(
      draw("path", { d: `M${from + 3} ${ends[k]}L${width - edge.right + 10} ${at[k]}`, stroke: one.colour, fill: "none", "stroke-width": 1, "stroke-dasharray": "1 3", opacity: 0.8 }),
      draw("text", { class: "label", x: width - edge.right + 13, y: at[k] + 4, style: { fill: one.colour } }, brief(one.label)));
  });
}

function readAcross(root, series, across, up, edge, width, height, x, y) {
  const all = [...new Set(series.flatMap((one) => one.x))].sort((a, b) => a - b);
  const cursor = draw("line", { class: "cursor", y1: edge.top, y2: height - edge.bottom, visibility: "hidden" });
  const dots = series.map((one) => draw("circle", { r: 3.5, fill: one.colour, visibility: "hidden" }));
  const area = draw("rect", {
    x: edge.left, y: edge.top, width: Math.max(0, width - edge.left - edge.right), height: height - edge.top - edge.bottom,
    fill: "transparent", tabindex: 0, role: "slider", "aria-label": `Read values along ${x.label}`,
    "aria-valuemin": all[0], "aria-valuemax": all[all.length - 1], "aria-valuenow": all[all.length - 1],
  });
  let at = all.length - 1;
  const show = (clientX, clientY) => {
    const value = all[at];
    cursor.setAttribute("x1", across(value));
    cursor.setAttribute("x2", across(value));
    cursor.setAttribute("visibility", "visible");
    const rows = [];
    series.forEach((one, k) => {
      const place = one.x.indexOf(value);
      const known = place >= 0 && Number.isFinite(one.y[place]);
      dots[k].setAttribute("visibility", known ? "visible" : "hidden");
      if (!known) return;
      dots[k].setAttribute("cx", across(value));
      dots[k].setAttribute("cy", up(one.y[place]));
      rows.push([one.y[place], [swatch(one), one.label, (y.read ?? y.format)(one.y[place])]]);
    });
    rows.sort((a, b) => b[0] - a[0]);
    area.setAttribute("aria-valuenow", value);
    area.setAttribute("aria-valuetext", `${x.label} ${x.format(value)}: ${rows.map(([, row]) => `${row[1]} ${row[2]}`).join(", ")}`);
    showTip(tipRows(`${x.label} ${x.format(value)}`, rows.map(([, row]) => row)), clientX, clientY);
  };
  const hide = () => {
    for (const one of [cursor, ...dots]) one.setAttribute("visibility", "hidden");
    hideTip();
  };
  const box = () => area.getBoundingClientRect();
  area.addEventListener("pointermove", (event) => {
    const here = ((event.clientX - root.getBoundingClientRect().left) / root.getBoundingClientRect().width) * width;
    at = all.reduce((best, value, k) => (Math.abs(across(value) - here) < Math.abs(across(all[best]) - here) ? k : best), 0);
    show(event.clientX, event.clientY);
  });
  area.addEventListener("pointerleave", hide);
  area.addEventListener("blur", hide);
  area.addEventListener("focus", () => area.matches(":focus-visible") && show(box().left + box().width / 2, box().top));
  area.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    at = Math.max(0, Math.min(all.length - 1, at + step));
    show(box().left + across(all[at]) - edge.left, box().top);
  });
  root.append(cursor, ...dots, area);
}
