// The papers' pictures, of clients that were watched.

const WATCH = "No chosen run under this protocol watched a client; add --watch USER to a run.";
const nameOf = (one) => dataset().variants[one.variant].label;
const asked = (entries, options) => entries.find((one, k) => String(k) === options.choice) ?? entries[0];
const numbered = (entries, words) => entries.map((one, k) => [k, words(one)]);

function layoutFigure() {
  const entries = () => pictured(dataset().pictures.layouts);
  const ROLE = { global: "global table", local: "local table", merged: "merged table", table: "table" };
  return figure({
    title: "Item tables of one client",
    about: () => `Every point is an item, laid out so that items with similar vectors lie close to each other. If the user's items gather, the table knows them. ${model.about.tsne ? "By t-SNE; where a panel says PCA, by the two main directions, as there were more tables than t-SNE takes in a reasonable time." : "By the two main directions (PCA), because scikit-learn was not installed where this page was made (extra report)."} Up to 300 items are drawn.`,
    choices: { label: "Client", list: () => numbered(entries(), (one) => `${nameOf(one)}, user ${one.user}`) },
    body: (width, options) => {
      const one = asked(entries(), options);
      if (!one) return WATCH;
      return [el("div", { class: "panels" }, one.tables.map((table) => el("div", {},
        el("h4", {}, `${ROLE[table.role] ?? table.role} (${table.name}), ${one.by}`),
        cloud(`${nameOf(one)}, ${table.role} item table of user ${one.user} by ${one.by}`, table.points, one.marks)))), markKey()];
    },
  });
}

function trajectoryFigure() {
  const entries = () => pictured(dataset().pictures.trajectories);
  return figure({
    title: "A user vector's path, with and without aggregation",
    about: "Both paths in their common two main directions (PCA), one point a round; the hollow point is round 1. Beside it the skew: how far the two updates of a round are apart, relative to the one without aggregation.",
    toggles: { log: { label: "log scale of the skew" } },
    choices: { label: "Client", list: () => numbered(entries(), (one) => `${nameOf(one)}, user ${one.user}`) },
    body: (width, options) => {
      const one = asked(entries(), options);
      if (!one) return "No pair of runs with and without the plug-in late-aggregation watched the same client; run METHOD --watch USER and METHOD --plugin late-aggregation --watch USER with the same seed.";
      const half = width > 640 ? Math.floor((width - 24) / 2) : width;
      const paths = [{ label: "with aggregation", colour: "var(--c0)" }, { label: "without", colour: "var(--c1)", dash: "5 3" }];
      return el("div", { class: "panels" },
        el("div", {}, el("h4", {}, "Path"), pathChart(`Paths of user ${one.user}`, half, one.paths, paths),
          lineKey(paths)),
        el("div", {}, el("h4", {}, "Skew"), lineChart(`Skew of user ${one.user}`, half,
          [{ ...variantOf(one.variant), dash: null, x: one.skew.map((_, k) => k + 2), y: one.skew }],
          BY_ROUND, { label: "skew", format: tidy, read: share, log: options.log, zero: true }, { names: false, height: 280 })));
    },
    table: (options) => {
      const one = asked(entries(), options);
      return one && { heads: ["round", "skew"], rows: one.skew.map((value, k) => [String(k + 2), share(value)]) };
    },
  });
}

function pathChart(name, width, paths, looks) {
  const all = paths.flat();
  const [left, right] = extent(all.map(([x]) => x));
  const [low, high] = extent(all.map(([, y]) => y));
  const unit = Math.min((width - 20) / (right - left), 260 / (high - low)); // the same on both axes
  const height = Math.max(90, (high - low) * unit + 20);
  const at = ([x, y]) => [width / 2 + (x - (left + right) / 2) * unit, height / 2 - (y - (low + high) / 2) * unit];
  const root = canvas(name, width, height);
  paths.forEach((path, k) => {
    const points = path.map(at);
    root.append(draw("path", { class: "line", d: `M${points.map((one) => one.map((value) => value.toFixed(1)).join(" ")).join("L")}`, stroke: looks[k].colour, "stroke-dasharray": looks[k].dash }));
    points.forEach(([x, y], round) => root.append(tip(draw("circle", {
      cx: x, cy: y, r: round === 0 ? 5 : 3.2, fill: round === 0 ? "var(--panel)" : looks[k].colour, stroke: looks[k].colour, "stroke-width": round === 0 ? 2 : 0.5,
    }), () => tipLines(looks[k].label, `round ${round + 1}`))));
  });
  return root;
}

function spectrumFigure() {
  const entries = () => pictured(dataset().pictures.spectra);
  const ROLES = { global: { colour: "var(--c0)", dash: null }, local: { colour: "var(--c1)", dash: "6 3" }, merged: { colour: "var(--c2)", dash: "2 3" } };
  return figure({
    title: "Singular values of item tables",
    about: () => `Largest first. A steep fall means that the table uses few of its dimensions. Information abundance is the sum of all over the largest: ${asked(entries(), { choice: "" }) ? "the higher, the more dimensions are in use" : "none here"}.`,
    toggles: { log: { label: "log scale", on: true } },
    choices: { label: "Client", list: () => numbered(entries(), (one) => `${nameOf(one)}, user ${one.user}`) },
    body: (width, options) => {
      const one = asked(entries(), options);
      if (!one) return WATCH;
      const series = one.tables.map((table, k) => ({
        ...(ROLES[table.role] ?? { colour: `var(--c${k})`, dash: null }), label: `${table.role} (${table.name})`, x: table.values.map((_, place) => place + 1), y: table.values,
      }));
      return [lineChart(`Singular values, ${nameOf(one)}, user ${one.user}`, width, series,
        { ...BY_ROUND, label: "dimension" }, { label: "singular value", format: tidy, log: options.log, zero: true }, { names: false })[0],
      el("ul", { class: "key" }, one.tables.map((table, k) => el("li", {}, lineSample(series[k]), `${table.role} (${table.name}): abundance ${tidy(table.abundance)} of ${table.values.length}`))), abundanceByRound(one, width)];
    },
    table: (options) => {
      const one = asked(entries(), options);
      return one && { heads: ["dimension", ...one.tables.map((table) => table.name)], rows: one.tables[0].values.map((_, k) => [String(k + 1), ...one.tables.map((table) => tidy(table.values[k]))]) };
    },
  });
}

/** Where the method notes it every round: information abundance of the client's tables. */
function abundanceByRound(one, width) {
  const looks = { received: ["var(--c0)", null], own: ["var(--c1)", "6 3"], mixed: ["var(--c2)", "2 3"] };
  const series = Object.entries(one.rounds).map(([label, y], k) => ({
    label, colour: looks[label]?.[0] ?? `var(--c${k})`, dash: looks[label]?.[1], x: y.map((_, round) => round + 1), y,
  }));
  if (!series.length || series[0].y.length < 2) return null;
  return [el("h4", { style: { marginTop: ".8rem" } }, "Information abundance by round"), lineChart("Information abundance by round", width, series,
    BY_ROUND, { label: "abundance", format: tidy }, { names: false, height: 220 })];
}

function weightFigure() {
  const entries = () => pictured(dataset().pictures.weights);
  return figure({
    title: "Whose tables a client receives (W)",
    about: () => {
      const one = entries()[0];
      return one ? `Row: a watched client; column: how much of whose upload is in the table the server makes for it. The weights of a row sum to 1 over all ${whole(one.clients)} clients; equal shares would be ${tidy(1 / one.clients)} each.` : "";
    },
    choices: { label: "Method", list: () => numbered(entries(), nameOf) },
    body: (width, options) => {
      const one = asked(entries(), options);
      if (!one) return "No chosen run under this protocol makes a table for each client and watched two or more of them.";
      return heatMap("Weights among watched clients", Math.min(width, 560), one.matrix, one.users.map((user) => `user ${user}`), one.users, { values: true });
    },
    table: (options) => {
      const one = asked(entries(), options);
      return one && { heads: ["client", ...one.users], rows: one.matrix.map((row, k) => [one.users[k], ...row.map(tidy)]) };
    },
  });
}

function mergingFigure() {
  const entries = () => pictured(dataset().pictures.merging);
  return figure({
    title: "How much of the global table is taken (rho)",
    about: "For every watched client and the first items of the data: 0 keeps the client's own row, 1 takes the global one.",
    choices: { label: "Method", list: () => numbered(entries(), nameOf) },
    body: (width, options) => {
      const one = asked(entries(), options);
      if (!one) return "No chosen run under this protocol merges tables item by item and watched a client.";
      return [heatMap("Rho of the first items", width, one.matrix, one.users.map((user) => `user ${user}`), one.matrix[0].map((_, k) => String(k + 1)), { high: 1, format: share }),
        el("ul", { class: "key" }, one.users.map((user, k) => one.means[k] && el("li", {}, `user ${user}: mean ${share(one.means[k][0])} over own items, ${share(one.means[k][1])} over others`)))];
    },
    table: (options) => {
      const one = asked(entries(), options);
      return one && { heads: ["client", ...one.matrix[0].map((_, k) => `item ${k + 1}`)], rows: one.matrix.map((row, k) => [one.users[k], ...row.map(share)]) };
    },
  });
}

function sparsityFigure() {
  const entries = () => shown().filter((one) => one.result.sparsity);
  const known = (options) => {
    const one = asked(entries(), options);
    return Object.entries(one?.result.sparsity.tables ?? {}).map(([table, shares], k) => ({
      label: table, colour: `var(--c${k % COLOURS})`, dash: DASHES[Math.floor(k / COLOURS) % DASHES.length],
      x: one.result.sparsity.rounds, y: shares[options.exact ? "zero" : Object.keys(shares).find((name) => name !== "zero") ?? "zero"],
    }));
  };
  return figure({
    title: "Sparsity of what is shared",
    about: () => `${dataset().name}, protocol ${protocol().name}: share of values of each shared table that are smaller than 0.001, by round, mean over seeds.`,
    choices: { label: "Method", list: () => numbered(entries(), (one) => one.label) },
    toggles: { exact: { label: "exactly 0 only" }, log: { label: "log scale" } },
    body: (width, options) => (known(options).length
      ? lineChart("Sparsity of shared tables by round", width, known(options), BY_ROUND,
        { label: "share of values", format: percentTick, read: percent, log: options.log, zero: true, most: 1 })
      : "None of the chosen methods shares a table in rounds."),
    table: (options) => {
      const lines = known(options);
      const rounds = lines[0]?.x ?? [];
      return { heads: ["round", ...lines.map((one) => one.label)], rows: rounds.map((at, k) => [String(at), ...lines.map((one) => percent(one.y[k]))]) };
    },
  });
}
