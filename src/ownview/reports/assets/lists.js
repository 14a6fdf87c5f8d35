// What is recommended: to everybody, and to one user by title.

const title = (place) => dataset().titles[place];

function bandNames() {
  const ends = model.bands.map((end) => 100 * end);
  return ends.map((end, k) => (k === 0 ? `the most popular ${end} % of items` : `${ends[k - 1]} % to ${end} %`));
}

// One hue from dark to light; the text on it keeps its contrast.
const SHADES = [1, 0.72, 0.48, 0.28, 0.13];
const bandColour = (k) => ({ fill: "var(--c0)", "fill-opacity": SHADES[k], ink: k < 2 ? "var(--panel)" : "var(--ink)" });

function popularityChart() {
  const known = () => shown().filter((one) => one.result.taste);
  const rows = () => [
    ...known().map((one) => ({ label: one.label, colour: one.colour, parts: one.result.taste.bands })),
    ...(protocol().chosen ? [{ label: "what users chose", parts: protocol().chosen }] : []),
  ];
  return figure({
    title: "How popular is what is recommended?",
    about: () => `${dataset().name}, protocol ${protocol().name}: where the ten recommendations of every user fall, items ordered by how often they stand in training. The last row is training itself.`,
    body: (width) => (known().length
      ? [stackedRows("Popularity of recommended items", width, rows(), bandNames(), bandColour),
        el("ul", { class: "key" }, bandNames().map((name, k) => el("li", {},
          draw("svg", { width: 14, height: 14, "aria-hidden": "true" }, draw("rect", { width: 14, height: 14, rx: 2, ...bandColour(k) })), name)))]
      : "None of the chosen runs holds its recommendations; run them again with this version."),
    table: () => ({ heads: ["method", ...bandNames()], rows: rows().map((row) => [row.label, ...row.parts.map(percent)]) }),
  });
}

function coverageChart() {
  const known = () => shown().filter((one) => one.result.taste);
  return figure({
    title: "How much of the catalogue?",
    about: () => `${dataset().name}, protocol ${protocol().name}: share of all items that stand in at least one list of ten (coverage@10) against how unevenly recommendations are shared out (Gini@10: 0 all items equally often, 1 a few take all). Better here means more varied: accuracy stands in the table.`,
    body: (width) => (known().length
      ? scatterChart("Coverage and Gini index", width, known().map((one) => ({
        ...one, x: one.result.taste.coverage, y: one.result.taste.gini,
        words: `${one.label}: coverage ${percent(one.result.taste.coverage)}, Gini ${share(one.result.taste.gini)}`,
        tip: () => tipLines(one.label, `coverage@10 ${percent(one.result.taste.coverage)} of the items`, `Gini@10 ${share(one.result.taste.gini)}`, seedsOf(one.result)),
      })), { label: "coverage@10", format: percentTick, zero: true, room: 0.12, better: "right" }, { label: "Gini@10", format: tidy, better: "down" })
      : "None of the chosen runs holds its recommendations; run them again with this version."),
    table: () => ({
      heads: ["method", "coverage@10", "Gini@10"],
      rows: known().map((one) => [one.label, percent(one.result.taste.coverage), share(one.result.taste.gini)]),
    }),
  });
}

function oftenFigure() {
  const known = () => shown().filter((one) => one.result.taste?.often.length);
  return figure({
    title: "What is recommended most",
    about: () => `${dataset().name}, protocol ${protocol().name}, first seed: the items in most users' ten, and the share of users that get them.`,
    body: () => (known().length
      ? el("div", { class: "lists titles" }, known().map((one) => el("div", {}, el("h4", {}, swatch(one), one.label),
        el("ol", {}, one.result.taste.often.slice(0, 5).map(([place, part]) => el("li", {}, el("span", { class: "entry" }, el("span", {}, title(place)), " ", el("span", { class: "muted num" }, percent(part)))))))))
      : "None of the chosen runs holds its recommendations; run them again with this version."),
    table: () => ({
      heads: ["place", ...known().map((one) => one.label)],
      rows: Array.from({ length: 10 }, (_, k) => [String(k + 1), ...known().map((one) => {
        const entry = one.result.taste.often[k];
        return entry ? `${title(entry[0])} (${percent(entry[1])})` : "";
      })]),
    }),
  });
}

/** What the user did choose: a line for one item, a list for several. */
function heldOut(places) {
  if (places.length === 0) return null;
  if (places.length === 1) return el("p", { class: "small held-out" }, "Held out: ", el("span", { class: "hit" }, title(places[0])));
  return el("div", { class: "small held-out" }, `Held out (${places.length}):`,
    el("ul", { tabindex: 0, "aria-label": "Held out" }, places.map((place) => el("li", { class: "hit" }, title(place)))));
}

function personFigure() {
  const people = () => dataset().people[protocol().name] ?? [];
  const current = (options) => people().find((one) => one.user === options.choice) ?? people()[0];
  return figure({
    title: () => "One user, every method",
    about: () => `${dataset().name}, protocol ${protocol().name}, first seed: what is known of the user, latest first, and what each method would show next. Green: what was held out, which the user did choose.`,
    choices: { label: "User", list: () => people().map((one) => [one.user, `${one.user} (${one.known} items known)`]) },
    body: (width, options) => {
      const one = current(options);
      if (!one) return "None of the runs holds users with their history; run them again with this version.";
      const mine = shown().filter((method) => one.lists[method.place]);
      return el("div", { class: "person titles", "data-user": one.user },
        el("div", { class: "history" }, el("h4", {}, `History (${one.history.length} of ${one.known})`),
          el("ol", { tabindex: 0, "aria-label": "History, latest first" }, one.history.map((place) => el("li", {}, title(place)))),
          heldOut(one.test)),
        el("div", { class: "lists" }, mine.map((method) => el("div", {}, el("h4", {}, swatch(method), method.label),
          el("ol", {}, one.lists[method.place].map(([place, hit]) => el("li", { class: hit ? "hit" : null }, title(place), hit ? " ✓ held out" : "")))))));
    },
  });
}
