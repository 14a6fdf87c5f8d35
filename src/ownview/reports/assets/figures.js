// Curves, groups, spread over users, cost, and the papers beside what was reached here.

function convergence() {
  const curves = () => shown().filter((one) => one.result.curve);
  const what = (loss) => (loss ? "training loss" : chosen.metric);
  const series = ({ loss }) => curves()
    .map((one) => ({ ...one, marked: one.result.chosen_rounds, x: one.result.curve.rounds, y: one.result.curve[loss ? "loss" : chosen.metric] }))
    .filter((one) => one.y);
  return figure({
    title: "Convergence",
    about: () => `${measured()} on ${curves()[0]?.result.curve.stage ?? "validation"}, after every round, mean over seeds. A ring marks the round that was chosen, one a seed. Models that are not trained in rounds have no curve.`,
    toggles: { log: { label: "log scale" }, loss: { label: "training loss instead" } },
    body: (width, options) => {
      const lines = series(options);
      if (!lines.length) return "None of the chosen methods was trained in rounds.";
      return lineChart(`Convergence: ${what(options.loss)} by round`, width, lines,
        BY_ROUND, { label: what(options.loss), format: tidy, read: share, log: options.log, zero: true, better: options.loss ? "down" : "up", chance: options.loss ? null : chanceOf(protocol()) }, { height: 340 });
    },
    table: (options) => {
      const lines = series(options);
      const rounds = [...new Set(lines.flatMap((one) => one.x))].sort((a, b) => a - b);
      return { heads: ["round", ...lines.map((one) => one.label)], rows: rounds.map((at) => [String(at), ...lines.map((one) => share(one.y[one.x.indexOf(at)]))]) };
    },
  });
}

function activityFigure() {
  const known = () => shown().filter((one) => one.result.groups);
  const between = (cell) => `${share(cell.low)} to ${share(cell.high)}`;
  const range = ([low, high]) => (low === high ? String(low) : `${low}–${high}`);
  return figure({
    title: "By activity",
    about: () => `${measured()}, mean and 95 % interval over users. Users in four groups of nearly equal size, by number of interactions that train: the least active on the left. Numbers below are interactions; all panels have the same scale.`,
    body: (width) => {
      if (!known().length) return "None of the chosen runs tells results of every user.";
      const most = Math.max(...known().flatMap((one) => one.result.groups.map((group) => group.cells[chosen.metric].high)), chanceOf(protocol()) ?? 0, 1e-9);
      const columns = Math.max(1, Math.floor((width + 14) / (width < 430 ? 164 : 194)));
      const each = Math.floor((width - 14 * (columns - 1)) / columns);
      return el("div", { class: "facets", style: { gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))` } }, known().map((one) => el("div", {}, el("h4", {}, swatch(one), one.label),
        groupPanel(`${one.label} by activity: ${chosen.metric}`, each, one.result.groups.map((group) => ({
          ...group.cells[chosen.metric], name: `${range(group.interactions)} interactions`, short: range(group.interactions),
          tip: () => tipLines(`${one.label}, ${range(group.interactions)} interactions`, `${chosen.metric} ${share(group.cells[chosen.metric].mean)}`, `95 % interval over users ${between(group.cells[chosen.metric])}`, `${whole(group.users)} users, ${seedsOf(one.result)}`),
        })), most, one, { label: chosen.metric, format: tidy, better: "up", chance: chanceOf(protocol()) }))));
    },
    table: () => ({
      heads: ["method", ...(known()[0]?.result.groups ?? []).map((group) => `${range(group.interactions)} interactions`)],
      rows: known().map((one) => [one.label, ...one.result.groups.map(({ cells }) => `${share(cells[chosen.metric].mean)} (${between(cells[chosen.metric])})`)]),
    }),
  });
}

function distributionChart() {
  const known = () => shown().filter((one) => one.result.distribution);
  return figure({
    title: "Over users",
    about: () => `${dataset().name}, protocol ${protocol().name}: share of users whose own NDCG@10 is at least so high (mean over seeds). Where a curve begins on the left is the share that finds its held-out item at all.`,
    toggles: { log: { label: "log scale" } },
    body: (width, { log }) => (known().length
      ? lineChart("Distribution of NDCG@10 over users", width,
        known().map((one) => ({ ...one, x: one.result.distribution.x, y: one.result.distribution.share })),
        { label: "NDCG@10 at least", format: tidy }, { label: "share of users", format: percentTick, read: percent, log, zero: true, most: 1, better: "up" }, { step: true, height: 320, names: false })
      : "None of the chosen runs tells results of every user."),
    table: () => ({
      heads: ["NDCG@10 at least", ...known().map((one) => one.label)],
      rows: (known()[0]?.result.distribution.x ?? []).map((x, k) => [x ? tidy(x) : "more than 0", ...known().map((one) => percent(one.result.distribution.share[k]))]),
    }),
  });
}

function costChart({ title, about, field, label, format }) {
  const known = () => shown().filter((one) => one.result.cost && one.result.cost[field] > 0 && one.result.cells[chosen.metric]);
  const left = () => shown().filter((one) => !known().some((other) => other.place === one.place)).map((one) => one.label);
  return figure({
    title,
    about: () => `${about} ${measured()}.${left().length ? ` Not shown, as they send nothing or are not federated: ${left().join(", ")}.` : ""}`,
    toggles: { log: { label: "log scale across", on: true } },
    body: (width, { log }) => (known().length
      ? scatterChart(title, width, known().map((one) => ({
        ...one, x: one.result.cost[field], y: one.result.cells[chosen.metric].mean,
        words: `${one.label}: ${format(one.result.cost[field])}, ${chosen.metric} ${share(one.result.cells[chosen.metric].mean)}`,
        tip: () => tipLines(one.label, `${chosen.metric} ${share(one.result.cells[chosen.metric].mean)}`,
          `${bytes(one.result.cost.down)} down, ${bytes(one.result.cost.up)} up a round`,
          `${seconds(one.result.cost.seconds)} a round in the field`,
          `a client holds ${bytes(one.result.cost.client_bytes)}, the server ${bytes(one.result.cost.server_bytes)}`, seedsOf(one.result)),
      })), { label, format, log, zero: !log, room: 0.14, better: "left" }, { label: chosen.metric, format: tidy, zero: true, better: "up", chance: chanceOf(protocol()) })
      : "None of the chosen methods tells such a cost."),
    table: () => ({
      heads: ["method", label, chosen.metric],
      rows: known().map((one) => [one.label, format(one.result.cost[field]), share(one.result.cells[chosen.metric].mean)]),
    }),
  });
}

function paperScatter() {
  const known = () => dataset().published.filter((one) =>
    one.metric === chosen.metric && !chosen.hidden.has(dataset().variants[one.variant].label));
  // Points of one run lie on one level: only the leftmost, the first of equal ones, carries the name.
  const leftmost = (one) => one === known().filter((other) => other.variant === one.variant && other.here === one.here)
    .reduce((best, other) => (other.published < best.published ? other : best));
  return figure({
    title: "Papers against here",
    about: () => `${dataset().name}: published ${chosen.metric} across, reached here upwards; on the dashed line they agree. Filled: the same settings, rounds and protocol. Hollow: numbers of the settings, rounds or what the round was chosen on differ; a point's hint says how. All protocols of the papers, whichever is chosen above.`,
    body: (width) => (known().length
      ? scatterChart("Published figures against those reached here", Math.min(width, 620), known().map((one) => ({
        ...variantOf(one.variant), label: leftmost(one) ? variantOf(one.variant).label : "", x: one.published, y: one.here, hollow: one.differs.length > 0,
        words: `${one.row} in ${one.paper}'s table ${one.table}: published ${share(one.published)}, here ${share(one.here)}`,
        tip: () => tipLines(`${one.row}, ${one.paper}, table ${one.table}`, `published ${share(one.published)}, here ${share(one.here)} (${share(one.here - one.published)})`,
          `here: ${dataset().variants[one.variant].label}, protocol ${one.protocol}`, one.differs),
      })), { label: `published ${chosen.metric}`, format: tidy }, { label: `${chosen.metric} here`, format: tidy }, { diagonal: true, height: 420, names: true })
      : "No run here stands beside a published figure. That needs one of the papers' datasets, a method of theirs, protocol paper, and python -m reproduction report, which knows the figures."),
    table: () => ({
      heads: ["here", "paper", "table", "row", "published", "here", "difference", "differs"],
      rows: known().map((one) => [dataset().variants[one.variant].label, one.paper, one.table, one.row, share(one.published), share(one.here), share(one.here - one.published), one.differs.join("; ") || "nothing"]),
    }),
  });
}
