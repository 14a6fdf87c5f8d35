// The head of the page, and what the audit found.

const PROBES = { leak: "leak", duplicates: "repeated pairs", time: "time", selection: "selection", data: "data", sitting: "same sitting", ties: "order of the file", future: "others' future" };

function head() {
  const { about } = model;
  const theme = el("button", { class: "theme", type: "button", id: "theme", onclick: turnTheme });
  document.getElementById("top").append(
    el("p", { class: "brand" }, "Ownview report"),
    el("h1", {}, model.title),
    el("p", { class: "muted" },
      `${about.runs} finished runs of ${labels.length} methods. Made on ${about.created} with Ownview ${about.version}`,
      about.revisions.length ? `; runs made at revision ${about.revisions.join(", ")}` : "",
      about.devices.length ? ` on ${about.devices.join(", ")}.` : "."),
    theme);
  sayTheme();
}

const dark = () => document.documentElement.dataset.theme === "dark";
const sayTheme = () => replace(document.getElementById("theme"), dark() ? "Light page" : "Dark page");
function setTheme(name) {
  document.documentElement.dataset.theme = name;
}
function turnTheme() {
  setTheme(dark() ? "light" : "dark");
  sayTheme();
}
setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

function findingsSection() {
  const node = el("section", { id: "findings", "aria-labelledby": "findings-title" });
  const update = () => {
    const found = dataset().protocols.flatMap((one) => one.findings.map((finding) => ({ ...finding, protocol: one })));
    const loud = found.filter((one) => one.fires);
    const calm = found.filter((one) => !one.fires);
    replace(node,
      el("h2", { id: "findings-title" }, `Before the numbers: ${dataset().name}`),
      el("p", { class: "lead" }, loud.length ? "The audit has something to say about how these numbers were measured." : "The audit found nothing to object to."),
      loud.length ? el("ul", { class: "findings" }, loud.map(finding)) : null,
      dataset().protocols.filter((one) => one.picture).map(question),
      calm.length ? el("details", { class: "calm" }, el("summary", {}, `${calm.length} checks that found nothing`), el("ul", { class: "findings" }, calm.map(finding))) : null);
  };
  listeners.push(update);
  update();
  return node;
}

function question(one) {
  return el("details", { class: "question" }, el("summary", {}, `What ${one.name} asks, as a picture`),
    el("img", { src: `data:image/svg+xml,${encodeURIComponent(one.picture)}`, alt: `What trains, what is known and what is asked under ${one.name}` }));
}

function finding(one) {
  const source = one.source === "protocol" ? "follows from the protocol's rules" : `measured: ${one.source}`;
  return el("li", { class: one.fires ? "fires" : null },
    el("span", { class: `tag ${one.fires ? "warn" : "good"}` }, `${one.protocol.name}: ${PROBES[one.probe] ?? one.probe}`),
    sentence(one.sentence), " ", el("span", { class: "where" }, `(${source})`));
}

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;
