// What the reader has chosen, and who wants to know.

const model = JSON.parse(document.getElementById("model").textContent);

const labels = [...new Set(model.datasets.flatMap((data) => data.variants.map((variant) => variant.label)))];
const COLOURS = 8;
const DASHES = [null, "7 3", "2 3", "9 3 2 3"];
const PER_DASH = 4;

const chosen = {
  dataset: 0,
  protocol: model.datasets[0].protocols[0].name,
  metric: "HR@10",
  hidden: new Set(),
  person: null,
};

/** How a method looks: the same everywhere, whatever else is shown. */
function look(label) {
  const place = labels.indexOf(label);
  return {
    label,
    colour: `var(--c${place % COLOURS})`,
    dash: DASHES[Math.floor(place / PER_DASH) % DASHES.length],
    shape: (place + 2 * Math.floor(place / COLOURS)) % SHAPES.length,
  };
}

const dataset = () => model.datasets[chosen.dataset];
const protocol = () => dataset().protocols.find((one) => one.name === chosen.protocol) ?? dataset().protocols[0];
const FLAWS = new Set(["leak", "duplicates", "selection", "data", "ties"]);
/** Whether the protocol's numbers are not what they seem; other findings tell what was asked. */
const flawed = (one) => one.findings.some((finding) => finding.fires && FLAWS.has(finding.probe));
const firing = (one) => one.findings.filter((finding) => finding.fires && finding.probe !== "time");

const scoreOf = (one) => one.result?.cells[chosen.metric]?.mean ?? -1;

/** Variants that are shown and have a result under the protocol: their look, place and result, the best first. */
function shown(name = protocol().name) {
  return dataset().variants
    .map((variant, place) => ({ ...look(variant.label), place, settings: variant.settings, result: dataset().results[name][place] }))
    .filter((one) => one.result && !chosen.hidden.has(one.label))
    .sort((a, b) => scoreOf(b) - scoreOf(a));
}

/** What a question would be answered if the reader had hidden no method. */
function withEveryMethod(ask) {
  const kept = chosen.hidden;
  chosen.hidden = new Set();
  try {
    return ask();
  } finally {
    chosen.hidden = kept;
  }
}

function variantOf(place) {
  return { ...look(dataset().variants[place].label), place };
}

/** Entries of a list of pictures that belong to what is chosen. */
const pictured = (list) => list.filter((one) =>
  one.protocol === protocol().name && !chosen.hidden.has(dataset().variants[one.variant].label));

const listeners = [];
function choose(change) {
  Object.assign(chosen, change);
  if (!dataset().protocols.some((one) => one.name === chosen.protocol)) chosen.protocol = dataset().protocols[0].name;
  hideTip();
  for (const listener of listeners) listener();
  drawFigures();
}
const drawFigures = () => {
  for (const one of figures) one.update();
  sayAbsent();
};

/** "protocol honest, test, all items ranked": what stands behind every number. */
const measured = () => `${dataset().name}, protocol ${protocol().name}: ${chosen.metric} of ${protocol().ranked}${protocol().cuts.length > 1 ? `, ${protocol().cuts.length} cuts pooled` : ""}`;
/** What a random order of the same candidates reaches, or null where runs do not tell. */
const chanceOf = (one) => one.chance?.[chosen.metric] ?? null;
const seedsOf = (result) => `${result.seeds.length} seed${result.seeds.length > 1 ? "s" : ""} (${result.seeds.join(", ")})${result.cuts > 1 ? `, ${result.cuts} cuts pooled` : ""}`;
