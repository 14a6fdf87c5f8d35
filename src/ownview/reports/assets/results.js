// The table: methods as rows, protocols side by side; every number tells where it comes from.

const TABLE = ["HR@10", "NDCG@10"];
const narrow = matchMedia("(max-width: 44rem)");
let sorted = "score"; // of the chosen protocol and metric; or "name", or { protocol, metric }

/** A narrow page has room for one metric beside both protocols: the chosen one. */
const columns = () => (narrow.matches ? [chosen.metric] : TABLE);
narrow.addEventListener("change", () => choose({}));

function resultsSection(charts = true) {
  const words = el("div");
  const node = el("section", { id: "results", "aria-labelledby": "results-title" }, words, charts ? intervalsFigure() : null);
  const update = () => replace(words,
    el("h2", { id: "results-title" }, "Results"),
    el("p", { class: "lead" }, `${dataset().name}: ${sizeOf(dataset().size)}. Test at the chosen round: mean over seeds, below it the 95 % interval over users. Point at a number for its protocol, seeds and settings.`),
    el("div", { class: "panel" }, el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Results" }, resultsTable())),
    el("p", { class: "small muted", style: { marginTop: ".6rem" } }, footnotes()));
  listeners.push(update);
  update();
  return node;
}

const sizeOf = (size) => (size.users ? `${whole(size.users)} users, ${whole(size.items)} items, ${whole(size.interactions)} interactions` : "size not told");

function intervalsFigure() {
  const rows = (name) => shown(name).filter((one) => one.result.cells[chosen.metric]).map((one) => {
    const cell = one.result.cells[chosen.metric];
    return { ...one, ...cell, tip: () => tipLines(`${one.label}, ${chosen.metric} ${share(cell.mean)}`, `protocol ${name}`, `95 % interval over users ${share(cell.low)} to ${share(cell.high)}`, seedsOf(one.result)) };
  });
  const known = () => dataset().protocols.filter((one) => rows(one.name).length);
  return figure({
    title: () => `${chosen.metric} under every protocol`,
    about: () => `${dataset().name}, test: mean over seeds and 95 % interval over users; the dotted line is what a random order reaches. Each protocol has a scale of its own; numbers of different protocols are not to be compared.`,
    toggles: { log: { label: "log scale" } },
    body: (width, { log }) => {
      if (!known().length) return "No method is chosen.";
      const columns = Math.max(1, Math.min(known().length, Math.floor((width + 24) / 350)));
      const each = Math.floor((width - 24 * (columns - 1)) / columns);
      return el("div", { style: { display: "grid", gap: "16px 24px", gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))` } }, known().map((one) => el("div", {}, el("h4", {}, one.name, " ", el("span", { class: "muted" }, `of ${one.ranked}`)),
        intervalChart(`${chosen.metric} under protocol ${one.name}`, each, rows(one.name), { label: `${chosen.metric}, ${one.name}`, format: tidy, log, better: "right", chance: chanceOf(one) }))));
    },
    table: () => ({
      heads: ["method", ...known().flatMap((one) => [`${one.name} mean`, "low", "high"])],
      rows: [...new Set(known().flatMap((one) => rows(one.name).map((row) => row.label)))].map((label) => [label, ...known().flatMap((one) => {
        const row = rows(one.name).find((each) => each.label === label);
        return row ? [share(row.mean), share(row.low), share(row.high)] : ["–", "–", "–"];
      })]),
    }),
  });
}

function footnotes() {
  const notes = ["Bold: the highest mean of its column. Higher is better in all of them."];
  const known = Object.values(dataset().results).flatMap((by) => Object.values(by)).flatMap((one) => TABLE.map((metric) => one.cells[metric]));
  const grey = dataset().protocols.filter(flawed).map((one) => one.name);
  if (grey.length) notes.push(` Grey numbers, protocol ${grey.join(", ")}: marked by the audit above; they say little about preference.`);
  if (known.some((cell) => cell?.alike?.length)) notes.push(" ≈: cannot be told apart from the methods that its hint names.");
  if (known.some((cell) => cell?.not_above)) notes.push(" ○: by the same test, cannot be told to be above every yardstick of its column, rows that count and learn nothing of taste.");
  const chances = dataset().protocols.filter((one) => chanceOf(one) !== null).map((one) => `${share(chanceOf(one))} under ${one.name}`);
  if (chances.length) notes.push(` A random order reaches ${chosen.metric} ${chances.join(", ")}.`);
  notes.push(` ${dataset().tried[0].toUpperCase()}${dataset().tried.slice(1)}.`);
  return notes.join("");
}

function resultsTable() {
  const protocols = dataset().protocols;
  const rows = dataset().variants.map((variant, place) => ({ ...look(variant.label), place, settings: variant.settings, tried: variant.tried }));
  rows.sort(sorted === "name" ? (a, b) => a.label.localeCompare(b.label) : (a, b) => meanOf(b, sortedBy()) - meanOf(a, sortedBy()));
  return el("table", { class: "results" },
    el("caption", {}, "One row a method. Sort by a column's head."),
    el("thead", {},
      el("tr", {}, el("td", {}), protocols.map((one) => el("th", { class: "protocol first", colspan: columns().length, scope: "colgroup" },
        one.name, " ", firing(one).length ? el("span", { class: "tag warn" }, firing(one).map((f) => PROBES[f.probe] ?? f.probe).join(", ")) : null,
        el("span", { class: "between" }, `of ${one.ranked}${one.cuts.length > 1 ? `, ${one.cuts.length} cuts pooled` : ""}, round chosen on ${one.chosen_on}`)))),
      el("tr", {}, el("th", { scope: "col" }, sortButton("method", "name")), protocols.flatMap((one) => columns().map((metric, k) =>
        el("th", { scope: "col", class: k ? "n" : "n first" }, sortButton(metric, { protocol: one.name, metric })))))),
    el("tbody", {}, rows.map((row) => el("tr", { class: chosen.hidden.has(row.label) ? "off" : null },
      el("th", { scope: "row" }, swatch(row), row.label, row.tried > 1 ? el("span", { class: "between" }, `${whole(row.tried)} settings tried`) : null),
      protocols.flatMap((one) => columns().map((metric, k) => resultCell(row, one, metric, k === 0)))))));
}

const sortedBy = () => (sorted === "score" ? { protocol: protocol().name, metric: chosen.metric } : sorted);
const resultOf = (row, name) => dataset().results[name]?.[row.place];
const meanOf = (row, { protocol: name, metric }) => resultOf(row, name)?.cells[metric]?.mean ?? -1;

function sortButton(text, by) {
  const now = sortedBy();
  const mine = by === "name" ? now === "name" : now.protocol === by.protocol && now.metric === by.metric;
  return el("button", { class: "sort", type: "button", "aria-pressed": String(mine), title: by === "name" ? "Sort by name" : `Sort by ${text} under ${by.protocol}`, onclick: () => { sorted = by; choose({}); } }, text);
}

function resultCell(row, one, metric, first) {
  const result = resultOf(row, one.name);
  const cell = result?.cells[metric];
  if (!cell) return el("td", { class: first ? "n first" : "n" }, el("span", { class: "muted" }, "–"));
  const best = Math.max(...dataset().variants.map((_, place) => meanOf({ place }, { protocol: one.name, metric })));
  const names = ["n", first && "first", cell.mean >= best - 1e-12 && "best", flawed(one) && "flawed"].filter(Boolean);
  const node = el("td", { class: names.join(" "), tabindex: 0, "data-method": row.label, "data-protocol": one.name, "data-metric": metric },
    el("span", { class: "value" }, cell.alike.length ? "≈ " : "", cell.not_above ? "○ " : "", share(cell.mean)),
    el("span", { class: "between" }, `${share(cell.low)} – ${share(cell.high)}`));
  return tip(node, () => tipLines(`${row.label}, ${metric} ${share(cell.mean)}`,
    `protocol ${one.name}, of ${one.ranked}, ${whole(cell.users ?? result.users)} users`,
    `95 % interval over users ${share(cell.low)} to ${share(cell.high)}`,
    `${seedsOf(result)}${cell.spread === null ? "" : `, standard deviation over seeds ${share(cell.spread)}`}`,
    `round chosen on ${one.chosen_on}: ${result.chosen_rounds.join(", ")} of ${row.settings.rounds}`,
    cell.alike.length ? `cannot be told apart from ${cell.alike.join(", ")}` : [],
    cell.not_above ? `cannot be told to be above ${cell.not_above}, a yardstick` : [],
    settingsText(row.settings)));
}

function settingsText(settings) {
  const own = Object.entries(settings).filter(([name]) => !["method", "rounds"].includes(name) && !name.startsWith("federation."));
  return own.length ? own.map(([name, value]) => `${name} ${Array.isArray(value) ? value.join("-") || "none" : value}`).join(", ") : "no settings";
}
