// The page put together: controls, sections, and how everything was made.

function segments(legend, name, options, value, pick) {
  return el("fieldset", {}, el("legend", {}, legend), el("div", { class: "segments" }, options.map((option) =>
    el("label", {}, el("input", { type: "radio", name, value: option, checked: option === value, onchange: () => pick(option) }), option))));
}

function controls() {
  const node = el("div", { class: "controls", role: "group", "aria-label": "What is shown" });
  const chips = el("details", { class: "methods", open: innerWidth > 900 });
  const fillBar = () => {
    const kept = document.activeElement?.closest?.("#bar") ? [document.activeElement.name, document.activeElement.value] : null;
    replace(node,
      el("label", { class: "field" }, el("span", {}, "Dataset"), el("select", { name: "dataset", onchange: (event) => choose({ dataset: Number(event.target.value), person: null }) },
        model.datasets.map((data, k) => el("option", { value: k, selected: k === chosen.dataset }, data.name)))),
      segments("Protocol", "protocol", dataset().protocols.map((one) => one.name), protocol().name, (name) => choose({ protocol: name })),
      segments("Metric", "metric", TABLE, chosen.metric, (metric) => choose({ metric })),
      chips);
    const all = dataset().variants.map((variant) => variant.label);
    const count = all.filter((label) => !chosen.hidden.has(label)).length;
    replace(chips, el("summary", {}, `Methods: ${count} of ${all.length}`), el("div", { class: "chips", role: "group", "aria-label": "Methods shown" },
      all.map((label) => el("label", { class: "chip" }, el("input", { type: "checkbox", name: "method", value: label, checked: !chosen.hidden.has(label), onchange: (event) => toggle(label, event.target.checked) }), swatch(look(label)), label)),
      el("button", { type: "button", name: "all", onclick: () => choose({ hidden: new Set() }) }, "all"),
      el("button", { type: "button", name: "none", onclick: () => choose({ hidden: new Set(all) }) }, "none")));
    if (kept) [...node.querySelectorAll("input, select, button")].find((one) => one.name === kept[0] && (one.type !== "checkbox" && one.type !== "radio" ? true : one.value === kept[1]))?.focus();
  };
  listeners.push(fillBar);
  fillBar();
  return node;
}

function toggle(label, on) {
  const hidden = new Set(chosen.hidden);
  if (on) hidden.delete(label);
  else hidden.add(label);
  choose({ hidden });
}

const section = (id, name, lead, ...children) => el("section", { id, "aria-labelledby": `${id}-title` },
  el("h2", { id: `${id}-title` }, name), lead ? el("p", { class: "lead" }, lead) : null, children);
const grid = (...children) => el("div", { class: "grid" }, children);

function madeSection() {
  const node = el("section", { id: "made", "aria-labelledby": "made-title" });
  const update = () => replace(node,
    el("h2", { id: "made-title" }, "How the numbers were made"),
    el("div", { class: "panel" }, dataset().protocols.map((one) => el("details", {}, el("summary", {}, `Protocol ${one.name}`), settingsList(one.settings), one.notes.map((note) => el("p", {}, note)))),
      dataset().variants.map((variant, place) => el("details", {}, el("summary", {}, variant.label), settingsList(variant.settings),
        Object.entries(dataset().results).filter(([, by]) => by[place]).map(([name, by]) => el("p", {}, `${name}: seeds ${by[place].seeds.join(", ")}; folders ${by[place].folders.join(", ")}`))))),
    el("div", { id: "absent" }),
    model.about.unfinished.length ? el("p", {}, `Not finished, and left out: ${model.about.unfinished.join(", ")}.`) : null,
    model.about.missing.map((text) => el("p", { class: "small muted" }, sentence(text))));
  listeners.push(update);
  update();
  return node;
}

/** Which charts have nothing to show for the dataset and protocol, and why: they take no room above. */
function sayAbsent() {
  const without = figures.filter((one) => one.absent);
  replace(document.getElementById("absent"), without.length ? el("details", {}, el("summary", {}, `${without.length} charts have nothing to show here`),
    el("ul", {}, without.map((one) => el("li", {}, `${one.called()}: ${one.absent}`)))) : null);
}

const settingsList = (settings) => el("dl", { class: "settings" }, Object.entries(settings).map(([name, value]) =>
  [el("dt", {}, name), el("dd", { class: "num" }, Array.isArray(value) ? value.join(", ") || "none" : String(value))]));

/** The answer before everything that it was made from. */
function verdictSection() {
  const [first, ...others] = model.verdict;
  return el("section", { id: "verdict", "aria-labelledby": "verdict-title" }, el("h2", { id: "verdict-title" }, "In short"),
    el("p", { class: "answer" }, first), others.map((text) => el("p", {}, text)));
}

/** One dataset and few methods with a verdict make one screen: the rest is there, folded. */
function folded(children) {
  const bar = document.getElementById("bar");
  bar.hidden = true;
  return el("details", { id: "rest", ontoggle: (event) => { bar.hidden = !event.target.open; } },
    el("summary", {}, "Everything that was measured: the audit, charts, costs, lists, settings"), children);
}

const FEW = 8; // methods whose table fits a screen

function page() {
  head();
  document.getElementById("bar").append(controls());
  const short = model.verdict.length > 0;
  const one = short && model.datasets.length === 1 && labels.length <= FEW;
  const sections = [
    findingsSection(),
    one ? section("intervals", "Intervals", null, intervalsFigure()) : resultsSection(),
    section("training", "Training", null, convergence()),
    section("users", "Who is served", null, activityFigure(), distributionChart()),
    section("cost", "What it costs", null, grid(
      costChart({ title: "Accuracy and bytes", about: "Bytes on the wire to and from one client in a round, mean over rounds.", field: "bytes", label: "bytes a client and round", format: bytes }),
      costChart({ title: "Accuracy and seconds", about: "Seconds of a round in the field: the slowest client's training, timed alone, plus the server's part; communication is left out.", field: "seconds", label: "seconds a round", format: seconds }))),
    attacksSection(),
    section("recommended", "What is recommended", null, grid(popularityChart(), coverageChart()), oftenFigure(), personFigure()),
    section("papers", "Beside the publications", null, paperScatter()),
    section("clients", "Inside the clients", "The papers' pictures, drawn from clients that runs were told to watch.", layoutFigure(), trajectoryFigure(),
      grid(weightFigure(), mergingFigure()), grid(spectrumFigure(), sparsityFigure())),
    madeSection()];
  document.getElementById("main").append(...(short ? [verdictSection()] : []), ...(one ? [resultsSection(false), folded(sections)] : sections));
  const cited = Object.entries(model.papers);
  document.getElementById("foot").append(
    cited.length ? el("p", {}, "Published figures: ", cited.map(([paper, text]) => `${paper}: ${text}`).join("; "), ".") : "",
    el("p", {}, `Ownview ${model.about.version}. This page holds everything it shows and makes no request.`));
  drawFigures();
  for (const one of figures) resized.observe(one.host);
}

page();
